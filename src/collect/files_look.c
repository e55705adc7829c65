/* Which files matter, and the document about them. */
#include "collect/files_look.h"

#include "base/clock.h"
#include "base/intern.h"
#include "base/jsonw.h"
#include "base/map.h"
#include "collect/files_look_parts.h"
#include "collect/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct seen_file {
    uint32_t object;
    int pid;
    uint64_t inode;
    struct str path; /* NUL-terminated; empty: there was no room for it */
    uint64_t ns, bytes;
};

struct files_look {
    struct arena paths;
    size_t path_bytes;
    struct map_u64 by_object; /* to index + 1 */
    VEC(struct seen_file) files;
    uint64_t left_out;
};

/* All that a look needs while it lasts. */
struct looking {
    struct views views;
    struct counted_folders counted;
    uint64_t deadline_ns;
};

/* Files of one folder. */
struct seen_folder {
    const char *path;
    int pid; /* of one that used it */
    uint64_t used, tiny, gone;
};

int files_look_open(struct files_look **ret)
{
    struct files_look *look = calloc(1, sizeof(*look));
    if (!look)
        return -ENOMEM;
    *ret = look;
    return 0;
}

void files_look_close(struct files_look *look)
{
    if (!look)
        return;
    arena_deinit(&look->paths);
    map_u64_deinit(&look->by_object);
    VEC_FREE(&look->files);
    free(look);
}

/* NULL in *ret: there is no room. */
static int file_need(struct files_look *look, uint32_t object, struct seen_file **ret)
{
    uint64_t *known = map_u64_find(&look->by_object, object);
    *ret = NULL;
    if (known) {
        *ret = &look->files.data[*known - 1];
        return 0;
    }
    if (look->files.len >= FILES_LOOK_SEEN_MAX) {
        look->left_out++;
        return 0;
    }
    struct seen_file fresh = {.object = object};
    if (VEC_RESERVE(&look->files, look->files.len + 1) < 0)
        return -ENOMEM;
    uint64_t *at = map_u64_at(&look->by_object, object, NULL);
    if (!at)
        return -ENOMEM;
    look->files.data[look->files.len++] = fresh;
    *at = look->files.len;
    *ret = &look->files.data[look->files.len - 1];
    return 0;
}

int files_look_named(struct files_look *look, uint32_t object, int pid, uint64_t inode,
                     struct str path)
{
    struct seen_file *file;
    if (object == 0 || path.len < 2 || path.data[0] != '/' || memchr(path.data, 0, path.len))
        return 0;
    int r = file_need(look, object, &file);
    if (r < 0 || !file)
        return r;
    file->pid = pid;
    file->inode = inode;
    if (str_eq(file->path, path))
        return 0;
    if (look->path_bytes + path.len > FILES_LOOK_PATH_BYTES_MAX) {
        look->left_out++;
        return 0;
    }
    look->path_bytes += path.len;
    file->path = (struct str){arena_dup_len(&look->paths, path.data, path.len), path.len};
    return arena_failed(&look->paths) ? -ENOMEM : 0;
}

void files_look_used(struct files_look *look, uint32_t object, uint64_t ns, uint64_t bytes)
{
    const uint64_t *known = map_u64_find(&look->by_object, object);
    if (!known)
        return;
    look->files.data[*known - 1].ns += ns;
    look->files.data[*known - 1].bytes += bytes;
}

/* ---- the document ---- */

static void u64_put(struct jsonw *json, const char *key, uint64_t value)
{
    jsonw_key(json, key);
    jsonw_u64(json, value);
}

static void text_put(struct jsonw *json, const char *key, struct str text)
{
    jsonw_key(json, key);
    jsonw_text(json, text);
}

static void path_put(struct jsonw *json, struct str path)
{
    char shown[OBJECT_NAME_BYTES];
    text_put(json, "path", object_name_shown(path, shown));
}

static void bool_put(struct jsonw *json, const char *key, bool truth)
{
    jsonw_key(json, key);
    jsonw_bool(json, truth);
}

static void mount_put(struct jsonw *json, const struct file_facts *facts)
{
    uint32_t flags = facts->mount->flags;
    text_put(json, "filesystem", facts->mount->type);
    text_put(json, "mount", str_from(facts->mount->point));
    bool_put(json, "network", flags & FILESYSTEM_NETWORK);
    bool_put(json, "memory", flags & FILESYSTEM_MEMORY);
    bool_put(json, "overlay", flags & FILESYSTEM_OVERLAY);
    bool_put(json, "cow", flags & FILESYSTEM_COW || facts->shared_extents > 0);
}

static void facts_put(struct jsonw *json, const struct file_facts *facts)
{
    if (!facts->na[FACT_SIZE][0]) {
        u64_put(json, "size_bytes", facts->size_bytes);
        u64_put(json, "allocated_bytes", facts->allocated_bytes);
    }
    if (!facts->na[FACT_FILESYSTEM][0])
        mount_put(json, facts);
    if (!facts->na[FACT_FREE][0]) {
        jsonw_key(json, "free_pct");
        jsonw_decimal(json, facts->free_permille, 1);
        u64_put(json, "free_bytes", facts->free_bytes);
    }
    if (!facts->na[FACT_EXTENTS][0]) {
        u64_put(json, "extents", facts->extents);
        u64_put(json, "fragments", facts->fragments);
        u64_put(json, "shared_extents", facts->shared_extents);
        bool_put(json, "extents_more", facts->extents_more);
    }
    if (!facts->na[FACT_FOLDER][0]) {
        u64_put(json, "folder_entries", facts->folder_entries);
        bool_put(json, "folder_entries_more", facts->folder_entries_more);
    }
    jsonw_key(json, "na");
    jsonw_object_begin(json);
    for (unsigned i = 0; i < FACTS; i++)
        if (facts->na[i][0])
            text_put(json, fact_keys[i], str_from(facts->na[i]));
    jsonw_object_end(json);
}

static void unlooked_set(struct file_facts *facts, const char *reason)
{
    *facts = (struct file_facts){0};
    for (unsigned i = 0; i < FACTS; i++)
        snprintf(facts->na[i], sizeof(facts->na[i]), "%s", reason);
}

/* Most time and bytes first. A byte weighs as much as a nanosecond: at 1 GB/s they are the same. */
static int file_compare(const void *a, const void *b)
{
    const struct seen_file *left = a, *right = b;
    uint64_t left_weight = left->ns + left->bytes, right_weight = right->ns + right->bytes;
    if (left_weight != right_weight)
        return left_weight < right_weight ? 1 : -1;
    return (left->object > right->object) - (left->object < right->object);
}

static int files_put(struct files_look *look, struct looking *looking, struct jsonw *json)
{
    struct fiemap *fiemap = malloc(fiemap_bytes());
    size_t put = 0;
    if (!fiemap)
        return -ENOMEM;
    qsort(look->files.data, look->files.len, sizeof(look->files.data[0]), file_compare);
    jsonw_key(json, "files");
    jsonw_array_begin(json);
    for (size_t i = 0; i < look->files.len && put < FILES_LOOK_FILES_MAX; i++) {
        const struct seen_file *file = &look->files.data[i];
        struct looked_file looked = {.path = file->path.data, .inode = file->inode};
        struct file_facts facts;
        if (file->path.len == 0)
            continue;
        bool late = clock_mono_ns() >= looking->deadline_ns;
        const struct view *view = late ? NULL : views_of(&looking->views, file->pid);
        unlooked_set(&facts, late ? "there was no time left to look" : "/proc cannot be read");
        if (view)
            file_look(view, &looked, &looking->counted, fiemap, &facts);
        jsonw_object_begin(json);
        u64_put(json, "object", file->object);
        path_put(json, file->path);
        facts_put(json, &facts);
        jsonw_object_end(json);
        put++;
    }
    jsonw_array_end(json);
    free(fiemap);
    return 0;
}

/* ---- folders ---- */

struct folders {
    struct intern paths; /* id n is list.data[n - 1] */
    VEC(struct seen_folder) list;
    VEC(uint32_t) of_file; /* id of the folder of each file; 0: none */
};

static void folders_deinit(struct folders *folders)
{
    intern_deinit(&folders->paths);
    VEC_FREE(&folders->list);
    VEC_FREE(&folders->of_file);
}

static int folders_make(struct files_look *look, struct folders *ret)
{
    for (size_t i = 0; i < look->files.len; i++) {
        const struct seen_file *file = &look->files.data[i];
        char path[4096];
        uint32_t id = 0;
        bool fresh = false;
        if (file->path.len > 0 && folder_of(file->path, path, sizeof(path)) &&
            intern_add(&ret->paths, str_from(path), &id, &fresh) < 0)
            return -ENOMEM;
        struct seen_folder folder = {.pid = file->pid};
        if ((fresh && VEC_PUSH(&ret->list, folder) < 0) || VEC_PUSH(&ret->of_file, id) < 0)
            return -ENOMEM;
        if (id != 0)
            ret->list.data[id - 1].used++;
    }
    return 0;
}

/* The most used one that was not told yet, 0 when there is none left. */
static uint32_t folder_next(const struct folders *folders, const bool *told)
{
    uint32_t best = 0;
    for (uint32_t id = 1; id <= folders->list.len; id++)
        if (!told[id - 1] && folders->list.data[id - 1].used >= FILES_LOOK_FOLDER_MIN &&
            (best == 0 || folders->list.data[id - 1].used > folders->list.data[best - 1].used))
            best = id;
    return best;
}

/* How large the files of a folder are that were used; only regular ones count as tiny. False:
 * there was no time for all of them. */
static bool sizes_look(const struct files_look *look, const struct folders *folders, uint32_t id,
                       int folder_fd, uint64_t deadline_ns, struct seen_folder *ret)
{
    for (size_t i = 0; i < look->files.len; i++) {
        struct stat status;
        if (folders->of_file.data[i] != id)
            continue;
        if (clock_mono_ns() >= deadline_ns)
            return false;
        const char *name = strrchr(look->files.data[i].path.data, '/') + 1;
        if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
            ret->gone += errno == ENOENT;
        else if (S_ISREG(status.st_mode))
            ret->tiny += status.st_size < FILES_LOOK_TINY_BYTES;
    }
    return true;
}

static void folder_put(const struct files_look *look, const struct folders *folders, uint32_t id,
                       struct looking *looking, struct jsonw *json)
{
    struct seen_folder folder = folders->list.data[id - 1];
    struct str path = intern_get(&folders->paths, id);
    const struct view *view = views_of(&looking->views, folder.pid);
    const struct view_mount *mount = view ? view_mount_of(view, path.data) : NULL;
    const char *na = !mount ? "no mount is known that holds it" : look_forbidden(mount);
    const char *na_sizes = na;
    char words[128];
    uint64_t entries = 0;
    bool more = false;
    if (!na) {
        int fd = view_open(view, path.data, O_PATH | O_DIRECTORY);
        if (fd < 0)
            na_sizes = na = look_error(-fd, words, sizeof(words));
        else if (!sizes_look(look, folders, id, fd, looking->deadline_ns, &folder))
            na_sizes = "there was no time left to look at all of them";
        if (fd >= 0)
            close(fd);
    }
    if (!na && clock_mono_ns() >= looking->deadline_ns)
        na = "there was no time left to look";
    int r = na ? 0 : folder_count(view, path.data, &looking->counted, &entries, &more);
    if (r < 0)
        na = r == -EPERM ? "to read it as somebody else would change its access time"
                         : look_error(-r, words, sizeof(words));
    jsonw_object_begin(json);
    path_put(json, path);
    u64_put(json, "used", folder.used);
    if (!na_sizes) {
        u64_put(json, "tiny", folder.tiny);
        u64_put(json, "gone", folder.gone);
    }
    if (!na) {
        u64_put(json, "entries", entries);
        bool_put(json, "entries_more", more);
    }
    jsonw_key(json, "na");
    jsonw_object_begin(json);
    if (na_sizes)
        text_put(json, "tiny", str_from(na_sizes));
    if (na)
        text_put(json, "entries", str_from(na));
    jsonw_object_end(json);
    jsonw_object_end(json);
}

static int folders_put(struct files_look *look, struct looking *looking, struct jsonw *json)
{
    struct folders folders = {0};
    int r = folders_make(look, &folders);
    bool *told = r == 0 ? calloc(folders.list.len + 1, sizeof(*told)) : NULL;
    if (r == 0 && !told)
        r = -ENOMEM;
    jsonw_key(json, "folders");
    jsonw_array_begin(json);
    for (int i = 0; i < FILES_LOOK_FOLDERS_MAX && r == 0; i++) {
        uint32_t id = folder_next(&folders, told);
        if (id == 0)
            break;
        told[id - 1] = true;
        folder_put(look, &folders, id, looking, json);
    }
    jsonw_array_end(json);
    free(told);
    folders_deinit(&folders);
    return r;
}

int files_look_finish(struct files_look *look, uint64_t ns_max, struct sink *sink)
{
    struct looking looking = {.deadline_ns = clock_mono_ns() + ns_max};
    char *text = NULL;
    size_t len = 0;
    if (look->path_bytes == 0)
        return 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return -ENOMEM;
    struct jsonw json;
    jsonw_init(&json, out, 0);
    jsonw_object_begin(&json);
    u64_put(&json, "schema", 1);
    int r = files_put(look, &looking, &json);
    if (r == 0)
        r = folders_put(look, &looking, &json);
    if (r == 0) {
        u64_put(&json, "left_out", look->left_out);
        jsonw_object_end(&json);
    }
    if (fclose(out) != 0 && r == 0)
        r = -ENOMEM;
    if (r == 0)
        r = sink_document(sink, "files", (struct str){text, len});
    free(text);
    counted_folders_deinit(&looking.counted);
    views_deinit(&looking.views);
    return r;
}
