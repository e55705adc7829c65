/* Parts of MySQL's and MariaDB's packets. */
#include "protocol/mysql_parts.h"

#include "base/map.h"

#include <string.h>

enum { LOGIN_HEAD_BYTES = 32, ATTRIBUTES_MAX = 64 };

const struct mysql_command *mysql_command(uint8_t code)
{
    static const struct mysql_command commands[] = {
        {0x01, MYSQL_REPLY_NONE, "QUIT"},
        {MYSQL_INIT_DB, MYSQL_REPLY_ONE, "USE"},
        {MYSQL_QUERY, MYSQL_REPLY_RESULTS, "QUERY"},
        {0x04, MYSQL_REPLY_FIELDS, "FIELD LIST"},
        {0x05, MYSQL_REPLY_ONE, "CREATE DATABASE"},
        {0x06, MYSQL_REPLY_ONE, "DROP DATABASE"},
        {0x07, MYSQL_REPLY_ONE, "REFRESH"},
        {0x08, MYSQL_REPLY_ONE, "SHUTDOWN"},
        {0x09, MYSQL_REPLY_ONE, "STATISTICS"},
        {0x0a, MYSQL_REPLY_RESULTS, "PROCESS INFO"},
        {0x0c, MYSQL_REPLY_ONE, "PROCESS KILL"},
        {0x0d, MYSQL_REPLY_ONE, "DEBUG"},
        {0x0e, MYSQL_REPLY_ONE, "PING"},
        {0x11, MYSQL_REPLY_LOGIN, "CHANGE USER"},
        {0x12, MYSQL_REPLY_STREAM, "BINLOG DUMP"},
        {0x13, MYSQL_REPLY_STREAM, "TABLE DUMP"},
        {0x15, MYSQL_REPLY_ONE, "REGISTER SLAVE"},
        {MYSQL_PREPARE, MYSQL_REPLY_PREPARED, "PREPARE"},
        {MYSQL_EXECUTE, MYSQL_REPLY_RESULTS, "EXECUTE"},
        {0x18, MYSQL_REPLY_NONE, "SEND LONG DATA"},
        {MYSQL_CLOSE, MYSQL_REPLY_NONE, "CLOSE STATEMENT"},
        {MYSQL_RESET, MYSQL_REPLY_ONE, "RESET STATEMENT"},
        {0x1b, MYSQL_REPLY_ONE, "SET OPTION"},
        {MYSQL_FETCH, MYSQL_REPLY_ROWS, "FETCH"},
        {0x1e, MYSQL_REPLY_STREAM, "BINLOG DUMP"},
        {0x1f, MYSQL_REPLY_ONE, "RESET CONNECTION"},
        {MYSQL_BULK_EXECUTE, MYSQL_REPLY_RESULTS, "EXECUTE"},
    };
    static const struct mysql_command none = {0, MYSQL_REPLY_UNKNOWN, ""};
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        if (commands[i].code == code)
            return &commands[i];
    return &none;
}

uint32_t mysql_u16(const uint8_t *from)
{
    return from[0] | (uint32_t)from[1] << 8;
}

uint32_t mysql_u24(const uint8_t *from)
{
    return mysql_u16(from) | (uint32_t)from[2] << 16;
}

uint32_t mysql_u32(const uint8_t *from)
{
    return mysql_u24(from) | (uint32_t)from[3] << 24;
}

bool mysql_skip(struct mysql_bytes *bytes, uint64_t count)
{
    if (count > bytes->len)
        return false;
    bytes->at += count;
    bytes->len -= (size_t)count;
    return true;
}

bool mysql_take_number(struct mysql_bytes *bytes, uint64_t *ret)
{
    if (bytes->len == 0 || bytes->at[0] == 0xfb || bytes->at[0] == 0xff)
        return false;
    size_t len = bytes->at[0] < 0xfb ? 0 : bytes->at[0] == 0xfc ? 2 : bytes->at[0] == 0xfd ? 3 : 8;
    if (bytes->len < len + 1)
        return false;
    uint64_t number = len == 0 ? bytes->at[0] : 0;
    for (size_t i = 0; i < len; i++)
        number |= (uint64_t)bytes->at[1 + i] << (8 * i);
    *ret = number;
    return mysql_skip(bytes, len + 1);
}

uint32_t mysql_ok_status(struct mysql_bytes packet)
{
    uint64_t number;
    if (!mysql_skip(&packet, 1) || !mysql_take_number(&packet, &number) ||
        !mysql_take_number(&packet, &number) || packet.len < 2)
        return 0;
    return mysql_u16(packet.at);
}

bool mysql_greeting(struct mysql_bytes packet, uint64_t *ret_capabilities)
{
    if (packet.len < 1 || packet.at[0] != 10)
        return false;
    const uint8_t *end = memchr(packet.at, 0, packet.len);
    for (const uint8_t *at = packet.at + 1; end && at < end; at++)
        if (*at < ' ' || *at > '~')
            return false;
    /* Version, connection id, eight bytes of a challenge and a zero. */
    if (!end || end == packet.at + 1 ||
        !mysql_skip(&packet, (uint64_t)(end + 1 - packet.at) + 4 + 8 + 1) || packet.len < 2)
        return false;
    uint64_t capabilities = mysql_u16(packet.at);
    if (packet.len >= 7)
        capabilities |= (uint64_t)mysql_u16(packet.at + 5) << 16;
    *ret_capabilities = capabilities;
    return true;
}

bool mysql_login(struct mysql_bytes packet, uint64_t *ret_capabilities, struct str *ret_database)
{
    if (packet.len < LOGIN_HEAD_BYTES)
        return false;
    uint64_t capabilities = mysql_u32(packet.at), auth;
    *ret_capabilities = capabilities;
    *ret_database = STR("");
    mysql_skip(&packet, LOGIN_HEAD_BYTES);
    const uint8_t *end = packet.len > 0 ? memchr(packet.at, 0, packet.len) : NULL;
    if (!(capabilities & MYSQL_CAN_WITH_DB) || !end)
        return true;
    mysql_skip(&packet, (uint64_t)(end + 1 - packet.at));
    if (capabilities & (MYSQL_CAN_LENENC_AUTH | MYSQL_CAN_SECURE)) {
        if (!mysql_take_number(&packet, &auth) || !mysql_skip(&packet, auth))
            return true;
    } else {
        end = packet.len > 0 ? memchr(packet.at, 0, packet.len) : NULL;
        if (!end || !mysql_skip(&packet, (uint64_t)(end + 1 - packet.at)))
            return true;
    }
    struct str rest = {(const char *)packet.at, packet.len};
    *ret_database = str_cut(&rest, '\0');
    return true;
}

/* Bytes that a value of a type takes; text and everything like it says so itself. */
static bool value_skip(struct mysql_bytes *bytes, uint8_t type)
{
    static const uint8_t sizes[] = {[0x01] = 1, [0x02] = 2, [0x03] = 4, [0x04] = 4,
                                    [0x05] = 8, [0x08] = 8, [0x09] = 4, [0x0d] = 2};
    uint64_t len;
    if (type == 0x06) /* NULL */
        return true;
    if (type < sizeof(sizes) && sizes[type] > 0)
        return mysql_skip(bytes, sizes[type]);
    return mysql_take_number(bytes, &len) && mysql_skip(bytes, len);
}

/* Names and values that MySQL 8 lets a client put before a query. */
static bool attributes_skip(struct mysql_bytes *bytes)
{
    uint64_t count, sets, len;
    uint8_t types[ATTRIBUTES_MAX];
    if (!mysql_take_number(bytes, &count) || !mysql_take_number(bytes, &sets) || sets != 1 ||
        count > ATTRIBUTES_MAX)
        return false;
    if (count == 0)
        return true;
    const uint8_t *nulls = bytes->at;
    if (!mysql_skip(bytes, (count + 7) / 8) || bytes->len < 1 || bytes->at[0] != 1)
        return false;
    mysql_skip(bytes, 1);
    for (uint64_t i = 0; i < count; i++) {
        if (bytes->len < 2)
            return false;
        types[i] = bytes->at[0];
        mysql_skip(bytes, 2);
        if (!mysql_take_number(bytes, &len) || !mysql_skip(bytes, len))
            return false;
    }
    for (uint64_t i = 0; i < count; i++)
        if (!(nulls[i / 8] >> (i % 8) & 1) && !value_skip(bytes, types[i]))
            return false;
    return true;
}

bool mysql_query_text(struct mysql_bytes packet, bool attributes, struct str *ret)
{
    /* No SQL begins with a zero: of a connection whose beginning was not seen that tells it. */
    bool there = attributes || (packet.len >= 2 && packet.at[0] == 0 && packet.at[1] == 1);
    if (there && !attributes_skip(&packet))
        return false;
    *ret = (struct str){(const char *)packet.at, packet.len};
    return true;
}

uint64_t mysql_values_hash(struct mysql_bytes values, uint32_t parameters)
{
    size_t nulls = (parameters + 7) / 8;
    if (parameters == 0 || values.len < nulls + 1)
        return 0;
    uint64_t hash = hash_bytes(values.at, nulls);
    /* Types are sent with the first execution only; they are no values. */
    size_t types = values.at[nulls] ? (size_t)parameters * 2 : 0;
    mysql_skip(&values, nulls + 1);
    if (!mysql_skip(&values, types))
        values.len = 0;
    hash = hash_u64(hash ^ hash_bytes(values.at, values.len));
    return hash ? hash : 1;
}
