/* SHA-256, written after the text of FIPS 180-4. */
#include "base/sha256.h"

#include "base/macros.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void sha256_init(struct sha256 *hash)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    *hash = (struct sha256){0};
    memcpy(hash->state, start, sizeof(start));
}

static uint32_t rotate(uint32_t x, unsigned bits)
{
    return (x >> bits) | (x << (32 - bits));
}

static void block_add_plain(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64];
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (size_t i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (size_t i = 0; i < 64; i++) {
        uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) +
                      round_constants[i] + w[i];
        uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                      ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    const uint32_t added[8] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; i++)
        state[i] += added[i];
}

#ifdef __x86_64__
/* The same with the CPU's own instructions, which keep the state as (a,b,e,f) and (c,d,g,h). A
 * program that prints much must not wait for us. */
__attribute__((target("sha,sse4.1"))) static void block_add_x86(uint32_t state[8],
                                                                const uint8_t *block)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i abcd = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(void *)state), 0xb1);
    __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(void *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(abcd, efgh, 8), cdgh = _mm_blend_epi16(efgh, abcd, 0xf0);
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[16];
    for (size_t i = 0; i < 16; i++) {
        if (i < 4)
            w[i] = _mm_shuffle_epi8(
                _mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i)), swap);
        else
            w[i] = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w[i - 4], w[i - 3]),
                                                      _mm_alignr_epi8(w[i - 1], w[i - 2], 4)),
                                        w[i - 1]);
        __m128i wk = _mm_add_epi32(
            w[i], _mm_loadu_si128((const __m128i *)(const void *)(round_constants + 4 * i)));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
    }
    __m128i feba = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1b);
    __m128i dchg = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xb1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

/* Leaf 7 says SHA, leaf 1 says SSE4.1 and SSSE3. */
static bool x86_has_sha(void)
{
    static int known; /* 0 not asked yet, 1 no, 2 yes; the answer never changes */
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer == 0) {
        unsigned a = 0, b = 0, c = 0, d = 0, c1 = 0;
        bool sse = __get_cpuid(1, &a, &b, &c1, &d) && (c1 & bit_SSE4_1) && (c1 & bit_SSSE3);
        bool sha = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29));
        answer = sse && sha ? 2 : 1;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer == 2;
}
#endif

static void block_add(struct sha256 *hash, const uint8_t *block)
{
#ifdef __x86_64__
    if (x86_has_sha()) {
        block_add_x86(hash->state, block);
        return;
    }
#endif
    block_add_plain(hash->state, block);
}

void sha256_blocks_plain(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        block_add_plain(state, blocks + 64 * i);
}

void sha256_add(struct sha256 *hash, const void *data, size_t len)
{
    const uint8_t *at = data;
    while (len > 0) {
        size_t used = hash->len % sizeof(hash->block);
        size_t n = MIN(len, sizeof(hash->block) - used);
        if (n == sizeof(hash->block)) {
            block_add(hash, at);
        } else {
            memcpy(hash->block + used, at, n);
            if (used + n == sizeof(hash->block))
                block_add(hash, hash->block);
        }
        hash->len += n;
        at += n;
        len -= n;
    }
}

void sha256_finish(struct sha256 *hash, char text[SHA256_TEXT_BYTES])
{
    uint64_t bits = hash->len * 8;
    sha256_add(hash, "\x80", 1);
    while (hash->len % sizeof(hash->block) != 56)
        sha256_add(hash, "", 1);
    uint8_t length[8];
    for (size_t i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(hash, length, sizeof(length));
    for (size_t i = 0; i < 8; i++)
        snprintf(text + 8 * i, 9, "%08x", hash->state[i]);
}
