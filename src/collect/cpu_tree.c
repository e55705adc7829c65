/* Whose announcements are ours, where those of the whole machine are heard. */
#include "collect/cpu_parts.h"

/* MMAP2 and COMM begin with the pid, FORK and EXIT with pid and parent's pid. */
struct announced {
    struct perf_event_header header;
    uint32_t pid, ppid;
};

int cpu_tree_begin(struct collector *c)
{
    uint64_t *root = map_u64_at(&c->tree, (uint32_t)c->opts.pid, NULL);
    if (!root)
        return -1;
    *root = 1;
    return 0;
}

static bool is_member(const struct collector *c, uint32_t pid)
{
    const uint64_t *member = map_u64_find(&c->tree, pid);
    return member && *member;
}

bool cpu_tree_concerns(struct collector *c, const struct perf_event_header *header)
{
    const struct announced *record = (const void *)header;
    if (header->size < sizeof(*record))
        return true; /* whoever reads it will say what is wrong with it */
    if (header->type != PERF_RECORD_FORK || record->pid == record->ppid)
        return is_member(c, record->pid);
    /* A pid that comes back belongs to whoever made it last. */
    bool ours = is_member(c, record->ppid);
    uint64_t *member = ours || map_u64_find(&c->tree, record->pid)
                           ? map_u64_at(&c->tree, record->pid, NULL)
                           : NULL;
    if (member)
        *member = ours;
    return ours;
}
