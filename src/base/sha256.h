/* SHA-256 (FIPS 180-4): tells whether two outputs are the same, and names a golden one in a
 * way any other tool can check (`sha256sum`). Not used to keep secrets. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_TEXT_BYTES = 2 * SHA256_BYTES + 1 };

struct sha256 {
    uint32_t state[8];
    uint64_t len; /* bytes taken in so far */
    uint8_t block[64];
};

void sha256_init(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t len);
/* Ends the hash: lower-case hex with a NUL. `hash` must be initialised anew to be used again. */
void sha256_finish(struct sha256 *hash, char text[SHA256_TEXT_BYTES]);

/* What machines without instructions for it use, for tests on those that have them. */
void sha256_blocks_plain(uint32_t state[8], const uint8_t *blocks, size_t count);
