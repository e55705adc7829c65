/* What bpf/objects.h and collect/objects.c say to each other: which thing of the kernel's an fd
 * stands for, and how it may be called.
 *
 * Plain structs of fixed size: one side is compiled for the machine, the other for BPF. */
#pragma once

#include <stdint.h>

/* As enum object_kind and enum object_flag of model/wait.h, which programs for the kernel cannot
 * include; collect/objects.c asserts that they are the same. */
enum object_id_kind {
    OBJECT_ID_NONE = 0,
    OBJECT_ID_FILE = 1,
    OBJECT_ID_DIRECTORY = 2,
    OBJECT_ID_BLOCK_DEVICE = 3,
    OBJECT_ID_CHAR_DEVICE = 4,
    OBJECT_ID_PIPE = 5,
    OBJECT_ID_SOCKET = 6,
    OBJECT_ID_EVENT = 7,
    OBJECT_ID_TIMER = 8,
    OBJECT_ID_POLL_SET = 9,
    OBJECT_ID_FUTEX = 10,
    OBJECT_ID_KERNEL_LOCK = 11,
    OBJECT_ID_PROCESS = 12,
    OBJECT_ID_OTHER = 13,
    OBJECT_ID_PATH = 14,
};
enum object_id_flag {
    OBJECT_ID_CLIENT = 1 << 0,
    OBJECT_ID_SERVER = 1 << 1,
    OBJECT_ID_LISTENING = 1 << 2,
    OBJECT_ID_LOCAL = 1 << 3,
};

/* All zero: none. The key of maps: every byte has a meaning. */
struct object_id {
    /* Of a file its inode, with the inode's generation in the upper half, since file systems give
     * the numbers of deleted files to new ones; of an eventfd, epoll and the like, which share
     * one inode, the address of the open file; of a pidfd the pid; of a kernel lock its
     * address. */
    uint64_t ino;
    uint32_t dev; /* of the file system, major << 20 | minor; 0 where numbers are the machine's */
    uint16_t kind;
    uint16_t flags;
};
_Static_assert(sizeof(struct object_id) == 16, "shared with BPF");

enum {
    OBJECTS_SEEN_MAX = 16384, /* told at first sight; one that was forgotten is told again */
    OBJECT_TEXT_BYTES = 1280,
    OBJECT_TEXT_USED_MAX = 1024, /* behind it there is room for one more component */
    OBJECT_COMPONENT_BYTES = 256,
    OBJECT_STEPS_MAX = 48, /* folders and mounts on the way up from a file */
    OBJECT_UNIX_BYTES = 108,
};

/* What object_record.text is. */
enum object_text {
    OBJECT_TEXT_NONE = 0,
    OBJECT_TEXT_PATH = 1, /* names of the file and the folders around it, each with a NUL */
    OBJECT_TEXT_NAME = 2, /* one name: "[eventfd]" */
    /* Unix: the address of its own at 0, the peer's at OBJECT_UNIX_BYTES. */
    OBJECT_TEXT_UNIX = 3,
};
enum object_mark {
    OBJECT_CUT = 1 << 0, /* the path has more folders above */
};

/* `type` of the record, first in it: others may share the ring. */
#define OBJECT_RECORD_TYPE 0x6a626f31u

/* In the ring it ends with its text: the rest of that is not there. */
struct object_record {
    uint32_t type;
    uint32_t tgid; /* of whoever has it open; as the kernel counts */
    struct object_id id;
    uint64_t ino; /* as in "pipe:[1234]" */
    int32_t fd;
    uint16_t text_kind;
    uint16_t text_bytes;
    uint16_t marks;
    /* Of sockets. */
    uint16_t family;
    uint16_t socket_type; /* SOCK_STREAM … */
    uint16_t protocol;    /* IPPROTO_… */
    uint16_t state;       /* as TCP's: 1 established, 10 listening */
    uint16_t local_port, remote_port;
    uint8_t own_bytes, peer_bytes; /* of Unix addresses, without the family */
    uint8_t local[16], remote[16]; /* IPv4 in the first four */
    char text[OBJECT_TEXT_BYTES];
};
_Static_assert(sizeof(struct object_record) == 88 + OBJECT_TEXT_BYTES, "shared with BPF");
