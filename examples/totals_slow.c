/* Trouble 4, a lock convoy: everybody waits while one computes. */
#include "ledger.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t totals_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t totals_all[LEDGER_ACCOUNTS];

void totals_add(unsigned worker, const struct order *order)
{
    (void)worker;
    pthread_mutex_lock(&totals_lock);
    totals_all[order->account] += order_settle(order);
    pthread_mutex_unlock(&totals_lock);
}

void totals_collect(uint64_t totals[LEDGER_ACCOUNTS])
{
    memcpy(totals, totals_all, sizeof(totals_all));
}
