/* Parts of MySQL's protocol that need no connection: numbers, the greeting, commands. */
#pragma once

#include "protocol/protocol.h"

enum mysql_capability {
    MYSQL_CAN_MYSQL = 1 << 0, /* not set by MariaDB's, which have more capabilities then */
    MYSQL_CAN_WITH_DB = 1 << 3,
    MYSQL_CAN_COMPRESS = 1 << 5,
    MYSQL_CAN_SSL = 1 << 11,
    MYSQL_CAN_SECURE = 1 << 15,
    MYSQL_CAN_LENENC_AUTH = 1 << 21,
    MYSQL_CAN_DEPRECATE_EOF = 1 << 24,
    MYSQL_CAN_OPTIONAL_METADATA = 1 << 25,
    MYSQL_CAN_ZSTD = 1 << 26,
    MYSQL_CAN_ATTRIBUTES = 1 << 27,
};

enum mysql_status { MYSQL_MORE_RESULTS = 0x0008, MYSQL_CURSOR_EXISTS = 0x0040 };

/* What a command is answered with. */
enum mysql_reply {
    MYSQL_REPLY_UNKNOWN, /* no such command */
    MYSQL_REPLY_NONE,
    MYSQL_REPLY_ONE,     /* packet */
    MYSQL_REPLY_RESULTS, /* one or more: OK, an error, or columns and rows */
    MYSQL_REPLY_PREPARED,
    MYSQL_REPLY_FIELDS, /* columns up to an EOF */
    MYSQL_REPLY_ROWS,   /* the same of rows */
    MYSQL_REPLY_LOGIN,
    MYSQL_REPLY_STREAM, /* replication */
};

enum mysql_code {
    MYSQL_INIT_DB = 0x02,
    MYSQL_QUERY = 0x03,
    MYSQL_PREPARE = 0x16,
    MYSQL_EXECUTE = 0x17,
    MYSQL_CLOSE = 0x19,
    MYSQL_RESET = 0x1a,
    MYSQL_FETCH = 0x1c,
    MYSQL_BULK_EXECUTE = 0xfa,
};

struct mysql_command {
    uint8_t code;
    uint8_t reply; /* enum mysql_reply */
    const char *text;
};

/* Never NULL. */
const struct mysql_command *mysql_command(uint8_t code);

/* The rest of a packet; nothing is read beyond it. */
struct mysql_bytes {
    const uint8_t *at;
    size_t len;
};

uint32_t mysql_u16(const uint8_t *from);
uint32_t mysql_u24(const uint8_t *from);
uint32_t mysql_u32(const uint8_t *from);
/* A number of up to nine bytes. False: it is not all there, or none. */
bool mysql_take_number(struct mysql_bytes *bytes, uint64_t *ret);
bool mysql_skip(struct mysql_bytes *bytes, uint64_t count);
/* The server's status in a packet that says OK; 0 where it cannot be read. */
uint32_t mysql_ok_status(struct mysql_bytes packet);

/* The server's capabilities; false: that is no greeting. */
bool mysql_greeting(struct mysql_bytes packet, uint64_t *ret_capabilities);
/* The client's answer to it. */
bool mysql_login(struct mysql_bytes packet, uint64_t *ret_capabilities, struct str *ret_database);

/* The SQL of a query, behind attributes if they can be there. False: it cannot be found. */
bool mysql_query_text(struct mysql_bytes packet, bool attributes, struct str *ret);
/* Hash of the values in an execution, behind its head; `parameters` of the statement. */
uint64_t mysql_values_hash(struct mysql_bytes values, uint32_t parameters);
