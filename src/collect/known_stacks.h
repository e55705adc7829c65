/* Stacks that were walked once, told to a kernel program so that it recognises them.
 *
 *     known_stacks_learn()    after a traced walk that reached the root
 *     known_stacks_check()    when something was mapped anew: what hung on it is taken back
 *     known_stacks_forget()   a process ended or became another program
 *
 * A mirror of the maps "known" and "known_long" of bpf/offcpu.bpf.c. Stacks of one place (process,
 * pc, sp) stand there under 0, 1, … without a gap, since the program looks no further than the
 * first that is missing. Bounded by the maps: the oldest make room. Of one place there is
 * a bound, too; what is beyond is counted, and the program copies it every time. One thread. */
#pragma once

#include "base/macros.h"
#include "format/offcpu.h"
#include "unwind/trace.h"

struct known_stacks;

struct known_counts {
    uint64_t learnt;
    uint64_t twice;       /* copied again before the program knew them */
    uint64_t unlearnable; /* not walked to the root, or hanging on more than can be compared */
    uint64_t full;        /* too many of one place */
    uint64_t taken_back;  /* those that were pushed out among them */
    uint64_t pushed_out;  /* to make room for others */
};

/* Fds of the two maps; -1: nobody is told (tests). */
MUST_USE int known_stacks_open(int known_fd, int long_fd, struct known_stacks **ret);
void known_stacks_close(struct known_stacks *known); /* NULL is fine */

/* What stands at an address of the process's code; 0: no code. The same thing at the same place
 * is the same number. */
struct known_code {
    uint64_t (*at)(void *context, uint64_t address);
    void (*gone)(void *context, uint64_t ref); /* taken back; may be NULL */
    void *context;
};

struct known_walk {
    const struct offcpu_known_key *place; /* `alike` is not looked at */
    const struct unwind_registers *registers;
    const struct unwind_trace *trace;
    const struct known_code *code; /* as of the walk */
    uint64_t ref;
    enum unwind_machine machine;
};
/* 0, also where nothing could be learnt; *ret_ref is the ref that the program uses for this
 * stack from now on, 0: it does not know it. -errno of the maps. */
MUST_USE int known_stacks_learn(struct known_stacks *known, const struct known_walk *walk,
                                uint64_t *ret_ref);

/* The ref of a stack that is known, 0 if it is not: what the program does, for copies that were
 * made before it was told. */
uint64_t known_stacks_find(const struct known_stacks *known, const struct offcpu_known_key *place,
                           const struct unwind_registers *registers,
                           const struct unwind_slice *slice, enum unwind_machine machine);

/* Stacks whose code is not what it was are taken back. */
void known_stacks_check(struct known_stacks *known, uint32_t kernel_tgid, uint32_t exec,
                        const struct known_code *code);
void known_stacks_forget(struct known_stacks *known, uint32_t kernel_tgid, uint32_t exec);

struct known_counts known_stacks_counts(const struct known_stacks *known);

/* For tests: what the program would be told; NULL: nothing under that key. */
const struct offcpu_known *known_stacks_get(const struct known_stacks *known,
                                            const struct offcpu_known_key *key);
