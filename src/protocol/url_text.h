/* Targets of requests with their values taken out, so that requests for the same thing are one.
 *
 *     /users/4711/items?page=2&sort=name   →   /users/?/items?page=?&sort=?
 *
 * A segment of a path is a value when it is a number, a UUID, eight or more hex digits, or long and
 * random as only machines write; inside a segment ("photo-12345.jpg") the parts are looked at. A
 * query keeps its names. User and password before a host go. Any bytes do no harm. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* Into `to`, whose length is returned; what has no room is left out. *ret_hash changes with the
 * values, 0: there were none. */
size_t url_normalise(struct str target, char *to, size_t room, uint64_t *ret_hash);

/* As it was said, but without user and password, and with … for values whose names say that
 * they are secret. For who asked to keep what was said. */
size_t url_without_secrets(struct str target, char *to, size_t room);

/* Whether a header or parameter of this name holds what lets somebody in: password, token, … */
bool url_name_is_secret(struct str name);
