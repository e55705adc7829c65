/* Names of system calls, for the machines that recordings come from: data/syscalls.txt. */
#pragma once

#include "base/str.h"

enum syscall_machine { SYSCALLS_X86_64, SYSCALLS_AARCH64 };

enum { SYSCALLS_MAX = 512 }; /* numbers are below it */

extern const char *const syscall_names_x86_64[SYSCALLS_MAX];
extern const char *const syscall_names_aarch64[SYSCALLS_MAX];

/* The one whyslow runs on. */
enum syscall_machine syscall_machine_here(void);
/* From the kernel's name of it ("x86_64", "aarch64"); an unknown one is as here. */
enum syscall_machine syscall_machine_named(struct str name);

/* "epoll_wait"; NULL: no such number there. */
const char *syscall_name_on(enum syscall_machine machine, int32_t number);
const char *syscall_name(int32_t number); /* here */
