/* Runs a program for which perf_event_open(), or another system call, fails, as it does where a
 * container's seccomp profile or a hardened kernel forbids it:
 *
 *     deny [--bpf | --map-from BYTES] ERRNO PROGRAM [ARGUMENT…]
 *
 * --map-from: mmap() of so much or more fails, as it does under a limit of address space. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    unsigned number = SYS_perf_event_open, from = 0;
    if (argc > 1 && strcmp(argv[1], "--bpf") == 0) {
        number = SYS_bpf;
        argv++;
        argc--;
    }
    if (argc > 2 && strcmp(argv[1], "--map-from") == 0) {
        number = SYS_mmap;
        from = (unsigned)strtoul(argv[2], NULL, 10);
        argv += 2;
        argc -= 2;
    }
    unsigned error = argc > 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, from, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
    if (error == 0) {
        fprintf(stderr, "deny [--bpf | --map-from BYTES] ERRNO PROGRAM\n");
        return 2;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
        perror("deny: seccomp");
        return 77; /* skipped: this kernel has no filters */
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
