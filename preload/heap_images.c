/* Which image an address is in, without the loader's lock, and the table of those that were met.
 *
 * glibc 2.35 and later answer it themselves, in any context. Before that the list of images is
 * read when the library starts and whenever dlopen() or dlclose() has returned: what the loader
 * brings in by itself stays unknown until then. */
#include "heap_walk.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>

/* HEAP_IMAGES_LISTED: the test of what older ones get. */
#if defined(DLFO_STRUCT_HAS_EH_DBASE) && !defined(HEAP_IMAGES_LISTED)
#define HAS_FIND_OBJECT 1
#pragma weak _dl_find_object
#endif

enum { LISTED_MAX = 1024 };

/* Two lists: one is read while the other is written. */
static struct heap_found listed[2][LISTED_MAX];
static uint32_t listed_count[2];
static uint32_t listed_now;

/* Images that were published, in this process or, before it was forked, in its parent. */
struct known_image {
    uint64_t start; /* 0: not yet, or gone */
    uint64_t end;
    uint64_t load;
    const char *name;
    uint16_t epoch;
};
static struct known_image known[HEAP_IMAGES_MAX];
static uint32_t known_count;

bool heap_readable(uint64_t address)
{
    /* The kernel reads the new mask first, and then refuses what is to be done with it. */
    return heap_raw6(SYS_rt_sigprocmask, -1, (long)address, 0, 8, 0, 0) != -EFAULT;
}

static bool ask_loader(uint64_t pc, struct heap_found *ret)
{
#ifdef HAS_FIND_OBJECT
    struct dl_find_object found;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    if (!_dl_find_object || _dl_find_object((void *)pc, &found) != 0)
        return false;
    *ret = (struct heap_found){
        .start = (uint64_t)found.dlfo_map_start,
        .end = (uint64_t)found.dlfo_map_end,
        .load = found.dlfo_link_map->l_addr,
        .header = found.dlfo_eh_frame,
        .name = found.dlfo_link_map->l_name,
    };
    return true;
#else
    (void)pc, (void)ret;
    return false;
#endif
}

static bool loader_answers(void)
{
#ifdef HAS_FIND_OBJECT
    return _dl_find_object != NULL;
#else
    return false;
#endif
}

static bool look_in_list(uint64_t pc, struct heap_found *ret)
{
    uint32_t now = __atomic_load_n(&listed_now, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < listed_count[now]; i++) {
        if (pc - listed[now][i].start >= listed[now][i].end - listed[now][i].start)
            continue;
        *ret = listed[now][i];
        return true;
    }
    return false;
}

static int list_one(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    uint32_t next = *(const uint32_t *)data;
    struct heap_found found = {
        .start = UINT64_MAX, .load = info->dlpi_addr, .name = info->dlpi_name};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD) {
            found.start = start < found.start ? start : found.start;
            found.end = start + part->p_memsz > found.end ? start + part->p_memsz : found.end;
        } else if (part->p_type == PT_GNU_EH_FRAME) {
            found.header = (const uint8_t *)start; // NOLINT(performance-no-int-to-ptr)
        }
    }
    if (found.start < found.end && listed_count[next] < LISTED_MAX)
        listed[next][listed_count[next]++] = found;
    return 0;
}

__attribute__((constructor)) static void list_images(void)
{
    if (loader_answers())
        return;
    uint32_t next = !listed_now;
    listed_count[next] = 0;
    dl_iterate_phdr(list_one, &next);
    __atomic_store_n(&listed_now, next, __ATOMIC_RELEASE);
}

static bool find(uint64_t pc, struct heap_found *ret)
{
    return loader_answers() ? ask_loader(pc, ret) : look_in_list(pc, ret);
}

/* ---- the window's table ---- */

static struct heap_image *images(void)
{
    return (struct heap_image *)((char *)heap_process + heap_process->images_at);
}

char heap_program[HEAP_PATH_MAX];

static void copy_path(char *path, const char *name)
{
    static const char vdso[] = "linux-vdso."; /* the only one without a path */
    size_t same = 0, i = 0;
    while (vdso[same] && name[same] == vdso[same])
        same++;
    const char *from = !vdso[same] ? "[vdso]" : name[0] ? name : heap_program;
    for (; from[i] && i + 1 < HEAP_PATH_MAX; i++)
        path[i] = from[i];
    path[i] = '\0';
}

/* Twice, when two threads meet an image at once: that does no harm. */
static void publish(const struct known_image *image)
{
    struct heap_process *process = heap_process;
    if (__atomic_load_n(&process->images, __ATOMIC_RELAXED) >= process->images_max)
        return;
    uint32_t at = __atomic_fetch_add(&process->images, 1, __ATOMIC_RELAXED);
    if (at >= process->images_max)
        return;
    struct heap_image *row = &images()[at];
    row->end = image->end;
    row->load = image->load;
    row->epoch = image->epoch;
    copy_path(row->path, image->name ? image->name : "");
    __atomic_store_n(&row->start, image->start, __ATOMIC_RELEASE);
}

static uint32_t known_used(void)
{
    uint32_t count = __atomic_load_n(&known_count, __ATOMIC_ACQUIRE);
    return count < HEAP_IMAGES_MAX ? count : HEAP_IMAGES_MAX;
}

static void meet(const struct heap_found *found)
{
    uint32_t used = known_used();
    for (uint32_t i = 0; i < used; i++)
        if (__atomic_load_n(&known[i].start, __ATOMIC_ACQUIRE) == found->start)
            return;
    if (used == HEAP_IMAGES_MAX)
        return;
    uint32_t at = __atomic_fetch_add(&known_count, 1, __ATOMIC_RELAXED);
    if (at >= HEAP_IMAGES_MAX)
        return;
    struct known_image *image = &known[at];
    image->end = found->end;
    image->load = found->load;
    image->name = found->name;
    image->epoch = (uint16_t)heap_process->image_epoch;
    __atomic_store_n(&image->start, found->start, __ATOMIC_RELEASE);
    publish(image);
}

bool heap_image_find(uint64_t pc, struct heap_found *ret)
{
    if (!find(pc, ret))
        return false;
    meet(ret);
    return true;
}

/* One thread at a time looks at what has changed. */
static uint32_t busy;

void heap_images_publish(void)
{
    busy = 0; /* whoever it was is not in this process */
    uint32_t used = known_used();
    for (uint32_t i = 0; i < used; i++) {
        known[i].epoch = 0;
        if (known[i].start != 0)
            publish(&known[i]);
    }
}

static bool is_gone(const struct known_image *image)
{
    struct heap_found found;
    return !find(image->start, &found) || found.start != image->start || found.end != image->end ||
           found.load != image->load || found.name != image->name;
}

/* In the window's rows: those that end with `epoch`. */
static void end_rows(uint64_t start, uint16_t epoch)
{
    uint32_t count = heap_process->images;
    count = count < heap_process->images_max ? count : heap_process->images_max;
    for (uint32_t i = 0; i < count; i++)
        if (images()[i].start == start && images()[i].gone_epoch == 0)
            images()[i].gone_epoch = epoch;
}

/* Nodes of before keep their epoch, and with it their images. */
static void forget_gone(void)
{
    uint32_t used = known_used();
    uint16_t epoch = (uint16_t)(heap_process->image_epoch + 1);
    bool any = false;
    for (uint32_t i = 0; i < used; i++) {
        if (known[i].start == 0 || !is_gone(&known[i]))
            continue;
        end_rows(known[i].start, epoch);
        __atomic_store_n(&known[i].start, 0, __ATOMIC_RELEASE);
        any = true;
    }
    /* The last epoch goes on for ever: its pcs may be of images that are gone. */
    if (!any || heap_process->image_epoch >= UINT16_MAX)
        return;
    __atomic_store_n(&heap_process->image_epoch, epoch, __ATOMIC_RELEASE);
    __atomic_store_n(&heap_rules_epoch, heap_rules_epoch + heap_mix(epoch), __ATOMIC_RELEASE);
    __atomic_fetch_add(&heap_walk_stamp, 1, __ATOMIC_RELEASE);
}

void heap_walk_images_changed(bool gone)
{
    /* Not for ever: a signal handler may have left from in here. */
    for (unsigned i = 0; i < 1000 && __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE); i++)
        heap_raw6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    list_images();
    if (gone && heap_process)
        forget_gone();
    __atomic_fetch_add(&heap_rules_opens, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}
