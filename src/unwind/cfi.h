/* Reading .eh_frame and .debug_frame: first which functions there are, then the
 * program of each, turned into rows.
 *
 * The bytes are hostile. A section whose entries do not add up is refused with the
 * place; a single function whose program makes no sense only loses its rows. */
#pragma once

#include "unwind/rows_builder.h"

struct cfi_section {
    const char *name; /* for messages */
    const uint8_t *data;
    size_t len;
    uint64_t vaddr;  /* of the first byte */
    uint64_t got;    /* what datarel counts from; 0: not known */
    bool eh;         /* .eh_frame's dialect */
    bool open_ended; /* no section header said where it ends: the zero entry does */
};

struct cfi_cie {
    uint64_t offset; /* in its section */
    uint64_t code_align;
    int64_t data_align;
    uint32_t ra_column;
    uint32_t rules;  /* what its own program leaves, as a rule set */
    uint8_t section; /* index of the section */
    uint8_t encoding;
    uint8_t flags; /* UNWIND_RULES_SIGNAL */
    bool augmented;
    bool usable;
};

enum cfi_kind { CFI_FUNCTION, CFI_RESTORER, CFI_STUBS };

/* A range of code, as offsets from the image's base, and where its rules come from. */
struct cfi_function {
    uint32_t start;
    uint32_t end;
    uint32_t origin;  /* where the function starts: `start` may have been cut */
    uint32_t cie;     /* CFI_FUNCTION: index; else the place of the first stub */
    uint32_t program; /* offset in the section */
    uint32_t program_len;
    uint8_t kind; /* enum cfi_kind */
};

/* Code is only looked for inside of these. */
struct cfi_range {
    uint64_t start;
    uint64_t end;
};

typedef VEC(struct cfi_function) cfi_functions;

struct cfi {
    struct rows_builder *builder;
    const struct cfi_range *code;
    size_t code_count;
    const struct cfi_section *sections;
    VEC(struct cfi_cie) cies; /* sorted by section and offset */
    size_t skipped;           /* functions that could not be used */
};

void cfi_deinit(struct cfi *cfi);

/* Appends the functions of one section, in the order they stand there. */
MUST_USE int cfi_read(struct cfi *cfi, uint8_t section, cfi_functions *functions, struct why *why);
/* Sorts, and cuts what overlaps an earlier one. */
void cfi_sort(cfi_functions *functions);
/* Adds those of `more` to `functions` that fill its gaps; both sorted, so is the result. */
MUST_USE int cfi_fill(cfi_functions *functions, const cfi_functions *more);
/* Runs the programs of sorted functions into the builder. */
MUST_USE int cfi_emit(struct cfi *cfi, const cfi_functions *functions);

/* Shared by the two files of this reader. */
struct cfi_bytes {
    const uint8_t *at;
    const uint8_t *end;
    bool bad; /* read over the end, or nonsense */
};
uint64_t cfi_fixed(struct cfi_bytes *bytes, unsigned size);
uint64_t cfi_uleb(struct cfi_bytes *bytes);
int64_t cfi_sleb(struct cfi_bytes *bytes);
/* A pointer in one of exception handling's encodings; `vaddr` is that of *bytes. */
uint64_t cfi_pointer(struct cfi_bytes *bytes, uint8_t encoding, uint64_t vaddr, uint64_t got);

/* Runs one program. `function` NULL: a CIE's own, no rows come of it. 0, -EBADMSG for
 * nonsense, other errors are the builder's. */
MUST_USE int cfi_run(struct cfi *cfi, const struct cfi_cie *cie, struct cfi_bytes program,
                     const struct cfi_function *function, const struct cfi_state *initial,
                     struct cfi_state *state);
