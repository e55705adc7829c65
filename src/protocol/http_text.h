/* What HTTP/1 and HTTP/2 say the same way: the text of a request, and what is kept of its headers
 * where somebody asked for payloads. */
#pragma once

#include "base/str.h"
#include "protocol/protocol.h"

/* "GET /users/?" into `to`, whose length is returned. *ret_hash as url_normalise(). */
size_t http_text(struct str method, struct str target, char *to, size_t room, uint64_t *ret_hash);

/* Whether these bytes may be a host: what a header says is hostile. */
bool http_host_valid(struct str host);

/* Lines of a request, bounded; zeroed is empty. */
struct http_payload {
    char *data;
    size_t len;
};
enum { HTTP_PAYLOAD_BYTES = 2048 };

/* Both leave out what has no room, and everything where there is no memory. Values of headers
 * that let somebody in become …, in URLs the same. */
void http_payload_request(struct http_payload *payload, struct str method, struct str target);
void http_payload_header(struct http_payload *payload, struct str name, struct str value);
void http_payload_deinit(struct http_payload *payload);
