/* The protocols, and what all connections share. */
#include "protocol/protocol.h"

#include <errno.h>
#include <stdlib.h>

const struct protocol_ops *const protocols[] = {
    &protocol_http2, &protocol_http1, &protocol_dns, &protocol_postgres,
    &protocol_mysql, &protocol_redis, NULL,
};

const char *protocol_name(enum request_protocol protocol)
{
    static const char *const names[REQUEST_PROTOCOLS] = {
        [REQUEST_HTTP1] = "http",    [REQUEST_HTTP2] = "http2", [REQUEST_POSTGRESQL] = "postgresql",
        [REQUEST_MYSQL] = "mysql",   [REQUEST_REDIS] = "redis", [REQUEST_DNS] = "dns",
        [REQUEST_SQLITE] = "sqlite",
    };
    return protocol < REQUEST_PROTOCOLS && names[protocol] ? names[protocol] : "unknown";
}

const struct protocol_ops *protocol_guess(const struct protocol_piece *first, uint16_t port,
                                          enum request_role *ret_role)
{
    for (size_t i = 0; protocols[i]; i++) {
        int role = protocols[i]->guess(first, port);
        if (role > 0) {
            *ret_role = (enum request_role)role;
            return protocols[i];
        }
    }
    return NULL;
}

struct protocol {
    const struct protocol_ops *ops;
    struct protocol_opts opts;
    int verdict;
    uint64_t answered;
    const struct protocol_teller *teller; /* while a piece is looked at */
    max_align_t state[];
};

int protocol_open(const struct protocol_ops *ops, const struct protocol_opts *opts,
                  struct protocol **ret)
{
    struct protocol *protocol = calloc(1, sizeof(*protocol) + ops->state_bytes);
    if (!protocol)
        return -ENOMEM;
    protocol->ops = ops;
    protocol->opts = *opts;
    *ret = protocol;
    return 0;
}

/* Between a protocol and whoever listens: a connection that has answered before is reused. */
static int tell_request(void *context, const struct protocol_request *request)
{
    struct protocol *protocol = context;
    struct protocol_request told = *request;
    if (protocol->answered > 0)
        told.flags |= REQUEST_REUSED;
    if (!(told.flags & REQUEST_UNANSWERED))
        protocol->answered++;
    return protocol->teller->request(protocol->teller->context, &told);
}

static int tell_service(void *context, struct str name)
{
    struct protocol *protocol = context;
    return protocol->teller->service ? protocol->teller->service(protocol->teller->context, name)
                                     : 0;
}

int protocol_piece(struct protocol *protocol, const struct protocol_piece *piece,
                   const struct protocol_teller *teller)
{
    const struct protocol_teller between = {protocol, tell_request, tell_service};
    if (protocol->verdict != PROTOCOL_GOES_ON)
        return protocol->verdict;
    protocol->teller = teller;
    int r = protocol->ops->piece(protocol->state, &protocol->opts, piece, &between);
    if (r > 0)
        protocol->verdict = r;
    return r;
}

int protocol_close(struct protocol *protocol, uint64_t time_ns,
                   const struct protocol_teller *teller)
{
    if (!protocol)
        return 0;
    const struct protocol_teller between = {protocol, tell_request, tell_service};
    protocol->teller = teller;
    int r = protocol->ops->close(protocol->state, &protocol->opts, time_ns, &between);
    free(protocol);
    return r;
}
