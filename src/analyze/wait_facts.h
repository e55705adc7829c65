/* What a tier could not know, in its own words: from the document "waits". */
#pragma once

#include "base/arena.h"
#include "model/value.h"

/* A list of texts; empty when there is nothing to say. */
struct value wait_facts_not_known(struct arena *arena, struct str facts_json);
