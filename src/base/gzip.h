/* gzip, out to a stream and in from memory. */
#pragma once

#include "base/str.h"
#include "base/why.h"

#include <stdio.h>

struct gzip_writer; /* on the heap: zlib keeps pointers into it */

/* Writes to `out`, which stays the caller's. */
MUST_USE int gzip_writer_open(FILE *out, struct gzip_writer **ret);
/* 0, -ENOMEM or -EIO; sticky. */
int gzip_writer_put(struct gzip_writer *writer, const void *data, size_t len);
/* Ends the stream; the first failure, or 0. */
MUST_USE int gzip_writer_finish(struct gzip_writer *writer);
void gzip_writer_close(struct gzip_writer *writer); /* NULL is fine */

/* A stdio stream that packs what is written to it into `out`; fclose() ends the gzip stream
 * and reports failures. NULL when out of memory. */
FILE *gzip_stream(FILE *out);

bool gzip_is(struct str bytes);
/* Unpacks all members into memory that the caller frees. -EFBIG when it would be more than
 * `size_max`, -EBADMSG when it is damaged or cut off. */
MUST_USE int gzip_unpack(struct str bytes, size_t size_max, char **ret, size_t *ret_len);
