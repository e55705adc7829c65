/* A process and all that it has started. */
#pragma once

/* SIGKILL to all of them. Each is stopped first, so that it can start no more while we look for the
 * next; whose parent has ended before is not found. */
void tree_kill(int pid);
