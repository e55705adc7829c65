/* What is said on sockets: nothing is looked at. */
#pragma once

static __always_inline void heads_look(const struct io_moment *moment)
{
    (void)moment;
}
