/* Objects, waits and events of a recording. */
#include "store/writer_parts.h"

#include <errno.h>

static struct recording_writer *of(struct sink *sink)
{
    return (struct recording_writer *)sink; /* the sink is its first member */
}

int writer_object(struct sink *sink, const struct object_info *info, uint32_t *ret_id)
{
    return wait_book_object(&of(sink)->book, info, ret_id);
}

int writer_object_name(struct sink *sink, uint32_t object, struct str name)
{
    return wait_book_object_name(&of(sink)->book, object, name);
}

int writer_wait(struct sink *sink, const struct wait_info *info, uint32_t *ret_id)
{
    return wait_book_wait(&of(sink)->book, info, ret_id);
}

int writer_wait_add(struct sink *sink, uint32_t wait, const struct wait_tally *tally)
{
    return wait_book_add(&of(sink)->book, wait, tally);
}

int writer_wait_event(struct sink *sink, const struct wait_event *event)
{
    struct recording_writer *writer = of(sink);
    return event->wait == 0 || event->wait > writer->book.waits.len ? -EINVAL : 0;
}
