/* From registers and a slice of stack to return addresses, without frame pointers.
 *
 *     unwind_image_load()      once an image: rows built from .eh_frame/.debug_frame
 *     unwind_space_map()       the images of one address space
 *     unwind_walk()            once a sample
 *
 * The walk is the core: it allocates nothing, takes no lock, calls nothing that
 * does, reads only the slice it was given, and may run in a signal handler or
 * inside a target. Loading and mapping allocate and belong to one thread.
 *
 * Order at each frame: the row for the pc, else the frame pointer with bounds
 * checks, else the walk ends with a reason. Nothing of the target is trusted:
 * a walk takes at most UNWIND_FRAMES_MAX steps, and the stack pointer must grow
 * (except across a signal frame, which may jump to another stack in the slice). */
#pragma once

#include "base/macros.h"
#include "base/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum unwind_machine { UNWIND_X86_64, UNWIND_AARCH64 };
/* That of this build. */
enum unwind_machine unwind_machine_here(void);

/* DWARF's numbers: x86_64 0–15 (7 is sp, 6 the frame pointer), aarch64 0–31
 * (31 is sp, 29 the frame pointer, 30 the link register). The pc is apart. */
enum { UNWIND_REGISTERS = 32, UNWIND_FRAMES_MAX = 1024 };
struct unwind_registers {
    uint64_t pc;
    uint64_t reg[UNWIND_REGISTERS];
    uint32_t known; /* bit n: reg[n] has a value */
};

/* sp and up, as copied by the kernel: bytes[0] lies at `address`. A deep stack may have more
 * parts above, copied at the same moment; parts of parts are not looked at. */
struct unwind_slice {
    uint64_t address;
    const uint8_t *bytes; /* any alignment */
    size_t len;
    const struct unwind_slice *more;
    size_t more_count;
};

/* Why a walk ended; stored as frame_info.reason, so the numbers are for ever. */
enum unwind_end {
    UNWIND_ROOT = 0,       /* complete: _start, clone3 or a thread's root */
    UNWIND_TRUNCATED = 1,  /* the next frame lies beyond the slice */
    UNWIND_NO_MAPPING = 2, /* the pc is in no mapping that we know */
    UNWIND_NO_ROW = 3,     /* no row, and the frame pointer leads nowhere */
    UNWIND_BAD_CFA = 4,    /* the stack would not grow */
    UNWIND_UNREADABLE = 5, /* a slot below the slice, or in a register we do not have */
    UNWIND_EXPRESSION = 6, /* an expression that we do not evaluate */
    UNWIND_TOO_DEEP = 7,   /* UNWIND_FRAMES_MAX */
    UNWIND_NO_STACK =
        8, /* the sample has no registers or no slice (a kernel thread, a dying one) */
    UNWIND_NOT_EXECUTABLE = 9, /* the return address is not in executable memory */
    UNWIND_ENDS,
};
/* "stack slice ended": a few words for people; never NULL. */
const char *unwind_end_text(unsigned end);

struct unwind_image;

struct unwind_image_opts {
    const char *cache_dir;  /* rows kept by build-id; NULL: none */
    const char *debug_path; /* a separate debug file whose .debug_frame helps; NULL: none */
};

/* Corrupt input is -EBADMSG with the place in `why`; an image without any unwind
 * table is fine (its frames go by frame pointer). The fd is not kept. */
MUST_USE int unwind_image_load(int fd, const struct unwind_image_opts *opts,
                               struct unwind_image **ret, struct why *why);
/* An ELF image as it lies in memory, for the vDSO. The bytes are not kept. */
MUST_USE int unwind_image_load_memory(const void *bytes, size_t len, struct unwind_image **ret,
                                      struct why *why);
void unwind_image_free(struct unwind_image *image); /* NULL is fine */
size_t unwind_image_rows(const struct unwind_image *image);
/* ELF vaddr of a file offset, from the program headers; false if no PT_LOAD has it. */
bool unwind_image_vaddr(const struct unwind_image *image, uint64_t file_offset, uint64_t *ret);
/* Before the instruction there, the stack is as it was when the function was called: nothing is on
 * it but where to return to. False when that is not known. */
bool unwind_image_bare_at(const struct unwind_image *image, uint64_t vaddr);

/* One address space. Images are borrowed and must live as long. */
struct unwind_space;
MUST_USE int unwind_space_new(enum unwind_machine machine, struct unwind_space **ret);
MUST_USE int unwind_space_clone(const struct unwind_space *space, struct unwind_space **ret);
void unwind_space_free(struct unwind_space *space); /* NULL is fine */
/* Only executable ranges. Replaces what it overlaps. `image` may be NULL: code without a
 * file (a JIT's), walked by frame pointer. `tag` comes back with every frame inside. */
MUST_USE int unwind_space_map(struct unwind_space *space, uint64_t address, uint64_t size_bytes,
                              uint64_t file_offset, const struct unwind_image *image, uint32_t tag);
MUST_USE int unwind_space_unmap(struct unwind_space *space, uint64_t address, uint64_t size_bytes);
void unwind_space_clear(struct unwind_space *space); /* exec */
/* The mapping that holds a pc: its tag and the ELF vaddr (the pc itself without image). */
bool unwind_space_find(const struct unwind_space *space, uint64_t pc, uint32_t *ret_tag,
                       uint64_t *ret_vaddr);

enum unwind_how { UNWIND_LEAF, UNWIND_BY_ROW, UNWIND_BY_FRAME_POINTER, UNWIND_BY_SIGNAL };

struct unwind_frame {
    uint64_t pc;    /* to look up: already minus one for return addresses */
    uint64_t vaddr; /* the same in the image's addresses */
    uint32_t tag;   /* of the mapping; 0 if in none */
    uint8_t how;    /* enum unwind_how: how this frame was found */
};

struct unwind_result {
    uint32_t count;
    enum unwind_end end;
    uint32_t by_frame_pointer; /* frames found without a row: less sure */
    uint64_t last_sp;          /* where the walk stood: how much slice it would have needed */
};

/* A direct-mapped pc cache in front of the row search, and what the last walk of a
 * thread found; one a space is enough. Zero it to begin. */
struct unwind_cache;
MUST_USE int unwind_cache_new(struct unwind_cache **ret);
void unwind_cache_free(struct unwind_cache *cache); /* NULL is fine */

/* `frames` has room for `max` (at least 1); innermost first. A space that was changed
 * since the last walk with this cache is noticed. `cache` may be NULL. */
void unwind_walk(const struct unwind_space *space, const struct unwind_registers *registers,
                 const struct unwind_slice *slice, struct unwind_cache *cache,
                 struct unwind_frame *frames, size_t max, struct unwind_result *ret);
