/* What a recording did not embed, read from the files here, if they are the same build. */
#include "cmd/report_parts.h"

#include "base/fd.h"
#include "symbolize/elf_file.h"
#include "symbolize/embed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { FUNCTIONS_MAX = 16 };

/* The functions whose code has it: itself, and those it was inlined into. */
static size_t hosts_find(const struct profile *profile, uint32_t function,
                         struct embed_function *ret)
{
    const struct profile_function *own = &profile->functions[function];
    size_t count = 0;
    if (own->address != 0 && own->size_bytes != 0)
        ret[count++] = (struct embed_function){0, own->address, own->size_bytes, 1};
    for (size_t i = 1; i < profile->frame_count && count < FUNCTIONS_MAX; i++) {
        const struct profile_frame *frame = &profile->frames[i];
        const struct profile_place *places = &profile->places[frame->places];
        const struct profile_function
            *host = &profile->functions[places[frame->place_count - 1].function];
        bool has = false, known = host->address == 0 || host->image != own->image;
        for (uint32_t p = 0; p < frame->place_count; p++)
            has = has || places[p].function == function;
        for (size_t k = 0; k < count; k++)
            known = known || ret[k].start == host->address;
        if (has && !known)
            ret[count++] = (struct embed_function){0, host->address, host->size_bytes, 1};
    }
    return count;
}

static int image_open(const struct image_info *info, const char *path, struct why *why)
{
    if (info->kind != IMAGE_FILE)
        return why_set(why, WHY_FAILED, ENOTSUP, NULL, "its image is no file");
    if (info->build_id.len == 0)
        return why_set(why, WHY_FAILED, ENOTSUP, NULL,
                       "'%s' has no build-id to know the file here by", path);
    AUTO(fd_close) int fd = file_open_regular(path); /* a recording may name anything */
    if (fd < 0)
        return why_errno(why, -fd, NULL, "'%s'", path);
    struct elf_file file = ELF_FILE_NONE;
    char build_id[2 * ELF_BUILD_ID_BYTES_MAX + 1] = "";
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int r = copy < 0 ? why_errno(why, errno, NULL, "'%s'", path)
                     : elf_file_open(copy, path, &file, why);
    if (r < 0)
        return r;
    bool same = elf_file_build_id(&file, build_id) && str_is(info->build_id, build_id);
    elf_file_close(&file);
    if (!same)
        return why_set(why, WHY_FAILED, ESTALE, NULL,
                       "'%s' here is another build (build-id %s, recorded %.*s)", path,
                       build_id[0] ? build_id : "none", (int)MIN(info->build_id.len, 64u),
                       info->build_id.data);
    return fd_take(&fd);
}

static int embed_here(const struct report_run *run, uint32_t function, int fd,
                      const struct image_info *info, struct embedded *ret,
                      struct embed_counts *ret_counts, struct why *why)
{
    struct embed_function functions[FUNCTIONS_MAX];
    size_t count = hosts_find(&run->main.profile, function, functions);
    char folder[4096];
    struct symbols_opts opts = {
        .cache_dir = symbols_cache_dir(folder, sizeof(folder)),
        .lines = true,
    };
    struct symbols *symbols = NULL;
    int r = symbols_open(fd, info, &opts, &symbols, why);
    if (r < 0)
        return r;
    struct sink_memory memory = SINK_MEMORY_INIT;
    uint32_t image;
    r = sink_image(&memory.sink, info, &image);
    if (r == 0)
        r = embed_hot(symbols, fd, image, functions, count, NULL, &memory.sink, ret_counts);
    if (r == 0)
        r = embedded_from_memory(run->arena, &memory, run->main.profile.functions[function].image,
                                 ret);
    symbols_close(symbols);
    sink_memory_deinit(&memory);
    return r < 0 ? why_errno(why, -r, NULL, "the file here could not be read") : 0;
}

int report_reread(const struct report_run *run, uint32_t function, struct embedded *ret,
                  const char **ret_note)
{
    const struct profile *profile = &run->main.profile;
    const struct image_info *info = &profile->images[profile->functions[function].image];
    const char *path = arena_dup_len(run->arena, info->path.data, info->path.len);
    struct why why = {0};
    struct embed_counts counts = {0};
    AUTO(fd_close) int fd = image_open(info, path, &why);
    int r = fd < 0 ? fd : embed_here(run, function, fd, info, ret, &counts, &why);
    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        *ret = (struct embedded){0};
        *ret_note = arena_printf(run->arena, "not in the recording, and not read here: %s",
                                 why.what);
        return 0;
    }
    const char *sources = counts.source_lines > 0    ? ""
                          : counts.files_newer > 0   ? "; its source is newer than the binary"
                          : counts.files_missing > 0 ? "; its source is not here"
                                                     : "; it has no line information";
    *ret_note = arena_printf(run->arena,
                             "not in the recording; read from '%s' here, which is the same "
                             "build%s",
                             path, sources);
    return 0;
}
