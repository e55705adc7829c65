/* Rows kept on disk by build-id, so that an image is read once a machine. */
#pragma once

#include "unwind/rows.h"
#include "unwind/unwind.h"
#include "unwind/unwind_elf.h"

/* Names what the rows were made from. */
struct rows_key {
    size_t len; /* of the build-id; 0: nothing to go by, no caching */
    uint8_t build_id[ELF_BUILD_ID_MAX];
    uint64_t tables; /* sizes and places of the tables: a stripped file has fewer */
};

/* False if the file has no build-id. */
bool rows_key_make(const struct unwind_elf *file, const char *debug_path, struct rows_key *ret);

/* False if there is none, or it is damaged, of another version, or for something else: then
 * the rows are built and saved again. */
bool rows_file_load(const char *dir, const struct rows_key *key, enum unwind_machine machine,
                    uint64_t base, struct unwind_rows *ret, void **ret_memory);
/* The same for a file that is in memory already, aligned as malloc() does it: the rows point
 * into it. */
bool rows_file_parse(const void *bytes, size_t size, const struct rows_key *key,
                     enum unwind_machine machine, uint64_t base, struct unwind_rows *ret);
/* The checksum over all that follows the header. */
uint64_t rows_file_sum(const void *body, size_t len);
/* Written whole or not at all; a cache that cannot be written is not worth a word. */
void rows_file_save(const char *dir, const struct rows_key *key, enum unwind_machine machine,
                    const struct unwind_rows *rows);
