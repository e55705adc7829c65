/* What a file is, before SQLite is let near it: its own messages ("file is not
 * a database") help nobody who has mixed up two names. */
#pragma once

#include "base/macros.h"
#include "base/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct identity {
    uint64_t size_bytes;
    uint32_t schema;    /* user_version of the header */
    bool wal_mode;      /* the header says that a log may lie beside it */
    bool has_wal;       /* and it does, with something in it */
    bool foreign_index; /* the log's index (-shm) is another user's */
    char wal[4096 + 8]; /* its name */
};

/* "an ELF program or library", "text"; never NULL. */
const char *identify_bytes(const unsigned char *head, size_t len);

/* Is `path` a recording, whole as far as its header and size can tell? */
MUST_USE int identify_recording(const char *path, struct identity *ret, struct why *why);
