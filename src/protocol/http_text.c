/* The words of a request of HTTP, whatever its version. */
#include "protocol/http_text.h"

#include "protocol/url_text.h"

#include <ctype.h>
#include <stdlib.h>

enum { METHOD_BYTES_MAX = 24 };

size_t http_text(struct str method, struct str target, char *to, size_t room, uint64_t *ret_hash)
{
    size_t len = MIN(MIN(method.len, (size_t)METHOD_BYTES_MAX), room - 1);
    memcpy(to, method.data, len);
    to[len++] = ' ';
    return len + url_normalise(target, to + len, room - len, ret_hash);
}

bool http_host_valid(struct str host)
{
    enum { HOST_BYTES_MAX = 255 };
    for (size_t i = 0; i < host.len; i++)
        if (!isalnum((unsigned char)host.data[i]) &&
            (host.data[i] == '\0' || !strchr("-._~:[]%", host.data[i])))
            return false;
    return host.len > 0 && host.len <= HOST_BYTES_MAX;
}

static void append(struct http_payload *payload, struct str text)
{
    if (!payload->data)
        payload->data = malloc(HTTP_PAYLOAD_BYTES);
    if (!payload->data)
        return;
    size_t len = MIN(text.len, HTTP_PAYLOAD_BYTES - payload->len);
    memcpy(payload->data + payload->len, text.data, len);
    payload->len += len;
}

static void append_url(struct http_payload *payload, struct str url)
{
    char text[HTTP_PAYLOAD_BYTES];
    size_t len = url_without_secrets(url, text, sizeof(text));
    append(payload, (struct str){text, len});
}

void http_payload_request(struct http_payload *payload, struct str method, struct str target)
{
    append(payload, method);
    append(payload, STR(" "));
    append_url(payload, target);
    append(payload, STR("\n"));
}

void http_payload_header(struct http_payload *payload, struct str name, struct str value)
{
    append(payload, name);
    append(payload, STR(": "));
    if (url_name_is_secret(name))
        append(payload, STR("…"));
    else
        append_url(payload, value);
    append(payload, STR("\n"));
}

void http_payload_deinit(struct http_payload *payload)
{
    free(payload->data);
    *payload = (struct http_payload){0};
}
