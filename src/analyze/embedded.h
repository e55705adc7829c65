/* Source lines and instructions that a recording carries for its hottest functions. */
#pragma once

#include "base/arena.h"
#include "model/sink_memory.h"
#include "store/reader.h"

struct embedded_line {
    struct str file;
    uint32_t line;
    struct str text;
};

struct embedded_instruction {
    uint32_t image;
    uint64_t address;
    uint32_t size;
    struct str text;
};

struct embedded {
    struct embedded_line *lines; /* by file and line */
    size_t line_count;
    struct embedded_instruction *instructions; /* by image and address */
    size_t instruction_count;
};

MUST_USE int embedded_load(struct arena *arena, struct recording *recording, struct embedded *ret,
                           struct why *why);
/* The same from what was caught in memory, copied. `image` replaces the ids. */
MUST_USE int embedded_from_memory(struct arena *arena, const struct sink_memory *memory,
                                  uint32_t image, struct embedded *ret);
/* Empty when there is none. */
struct str embedded_source(const struct embedded *embedded, struct str file, uint32_t line);
/* The first line of a file at or after `line`, or NULL. */
const struct embedded_line *embedded_line_from(const struct embedded *embedded, struct str file,
                                               uint32_t line);
/* The first instruction of an image at or after `address`, or NULL. */
const struct embedded_instruction *embedded_code_from(const struct embedded *embedded,
                                                      uint32_t image, uint64_t address);
