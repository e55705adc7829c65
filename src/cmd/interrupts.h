/* What whyslow says when a signal comes: what happens now, and what the next one will do. */
#pragma once

#include "target/interrupt.h"

/* For interrupt_watch(): writes to stderr from the signal handler. */
void interrupts_tell(const struct interrupt_note *note);
