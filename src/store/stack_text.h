/* Readable stacks for SQL: frame_text(id) is a frame's function,
 * stack_text(id) the whole stack, "main;decode;inner", root first. */
#pragma once

#include "store/reader.h"

/* Adds the functions to the recording's own connection. */
MUST_USE int stack_text_register(struct recording *recording, struct why *why);
