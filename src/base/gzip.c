/* zlib behind three calls. Exporters write through it, the pprof importer reads with it. */
#include "base/gzip.h"

#include "base/vec.h"

#include <errno.h>
#include <zlib.h>

enum {
    WINDOW_GZIP = 15 + 16, /* zlib's way of saying: gzip, not raw zlib */
    CHUNK_BYTES = 64 << 10,
    MEMBERS_MAX = 1 << 16,
};

struct gzip_writer {
    FILE *out;
    z_stream z;
    int error;
    unsigned char chunk[CHUNK_BYTES];
};

int gzip_writer_open(FILE *out, struct gzip_writer **ret)
{
    struct gzip_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return -ENOMEM;
    writer->out = out;
    if (deflateInit2(&writer->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_GZIP, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(writer);
        return -ENOMEM;
    }
    *ret = writer;
    return 0;
}

static void pump(struct gzip_writer *writer, int flush)
{
    int rc;
    do {
        writer->z.next_out = writer->chunk;
        writer->z.avail_out = sizeof(writer->chunk);
        rc = deflate(&writer->z, flush);
        size_t len = sizeof(writer->chunk) - writer->z.avail_out;
        if (fwrite(writer->chunk, 1, len, writer->out) != len)
            writer->error = -EIO;
    } while (writer->error == 0 && writer->z.avail_out == 0 && rc == Z_OK);
}

int gzip_writer_put(struct gzip_writer *writer, const void *data, size_t len)
{
    while (len > 0 && writer->error == 0) {
        /* zlib counts in unsigned int. */
        size_t part = MIN(len, (size_t)1 << 30);
        writer->z.next_in = (unsigned char *)(uintptr_t)data;
        writer->z.avail_in = (unsigned)part;
        pump(writer, Z_NO_FLUSH);
        data = (const char *)data + part;
        len -= part;
    }
    return writer->error;
}

int gzip_writer_finish(struct gzip_writer *writer)
{
    writer->z.avail_in = 0;
    if (writer->error == 0)
        pump(writer, Z_FINISH);
    return writer->error;
}

void gzip_writer_close(struct gzip_writer *writer)
{
    if (!writer)
        return;
    deflateEnd(&writer->z);
    free(writer);
}

static ssize_t stream_write(void *cookie, const char *data, size_t len)
{
    int r = gzip_writer_put(cookie, data, len);
    if (r == 0)
        return (ssize_t)len;
    errno = -r;
    return 0;
}

static int stream_close(void *cookie)
{
    int r = gzip_writer_finish(cookie);
    gzip_writer_close(cookie);
    errno = -r;
    return r < 0 ? EOF : 0;
}

FILE *gzip_stream(FILE *out)
{
    struct gzip_writer *writer;
    if (gzip_writer_open(out, &writer) < 0)
        return NULL;
    cookie_io_functions_t functions = {.write = stream_write, .close = stream_close};
    FILE *stream = fopencookie(writer, "w", functions);
    if (!stream)
        gzip_writer_close(writer);
    return stream;
}

bool gzip_is(struct str bytes)
{
    return bytes.len >= 2 && (uint8_t)bytes.data[0] == 0x1f && (uint8_t)bytes.data[1] == 0x8b;
}

/* Room for more output, never beyond the limit plus one byte: that byte tells "too large"
 * apart from "just fits". */
static int grow(char **data, size_t *cap, size_t size_max)
{
    size_t want = MIN(MAX(*cap * 2, (size_t)CHUNK_BYTES), size_max + 1);
    if (want <= *cap)
        return -EFBIG;
    char *more = realloc(*data, want);
    if (!more)
        return -ENOMEM;
    *data = more;
    *cap = want;
    return 0;
}

static int unpack(z_stream *z, size_t size_max, char **data, size_t *cap, size_t *len)
{
    unsigned members = 0;
    for (;;) {
        if (*len == *cap) {
            int r = grow(data, cap, size_max);
            if (r < 0)
                return r;
        }
        size_t room = MIN(*cap - *len, (size_t)1 << 30);
        z->next_out = (unsigned char *)*data + *len;
        z->avail_out = (unsigned)room;
        int rc = inflate(z, Z_NO_FLUSH);
        *len += room - z->avail_out;
        if (rc == Z_MEM_ERROR)
            return -ENOMEM;
        if (rc == Z_STREAM_END) {
            /* Members may stand one after the other; anything else behind is ignored. */
            struct str rest = {(const char *)z->next_in, z->avail_in};
            if (!gzip_is(rest) || ++members >= MEMBERS_MAX)
                return 0;
            if (inflateReset(z) != Z_OK)
                return -EBADMSG;
        } else if (rc != Z_OK || (z->avail_in == 0 && z->avail_out > 0)) {
            return -EBADMSG; /* damaged, or it ends in the middle */
        }
    }
}

int gzip_unpack(struct str bytes, size_t size_max, char **ret, size_t *ret_len)
{
    if (bytes.len > UINT32_MAX)
        return -EFBIG;
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)bytes.data,
                  .avail_in = (unsigned)bytes.len};
    if (inflateInit2(&z, WINDOW_GZIP) != Z_OK)
        return -ENOMEM;
    char *data = NULL;
    size_t cap = 0, len = 0;
    int r = unpack(&z, size_max, &data, &cap, &len);
    inflateEnd(&z);
    if (r == 0 && len > size_max)
        r = -EFBIG;
    if (r < 0) {
        free(data);
        return r;
    }
    *ret = data;
    *ret_len = len;
    return 0;
}
