/* A small order importer, the bundled example for whyslow.
 *
 * ledger.c is the program: it reads orders, checks and decodes them, counts the words of their
 * notes, converts them with a table of rates, settles them in four threads and keeps a journal.
 * Each step that can be done badly is a function of this header: *_slow.c do them as programs in
 * the wild often do, *_fixed.c as they should be. All print the same result.
 *
 * The slow one takes about a second. What mending each step alone saves is measured by
 * tests/truth/run_demo.py. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    LEDGER_ACCOUNTS = 64,
    LEDGER_CURRENCIES = 512,
    LEDGER_THREADS = 4,
    LEDGER_RATE_BYTES = 290, /* of a line in the table of rates */
};

struct order {
    const char *payload; /* borrowed from the file read */
    size_t payload_len;
    const char *note;
    size_t note_len;
    uint32_t account;
    uint32_t currency;
    uint32_t crc_wanted;
    uint32_t words;      /* of the note, counted by note_words() */
    uint32_t rate_milli; /* set by order_rate() */
};

/* Trouble 1, a hot loop: the checksum of a payload and its note. */
uint32_t decode_payload(const char *data, size_t len);

/* Trouble 2, allocation churn: how many words of a note do not begin with "g". */
uint32_t note_words(const char *note, size_t len);

/* Trouble 3, a file read again and again: the rate of a currency, in thousandths. */
uint32_t order_rate(const char *rates_path, uint32_t currency);

/* Trouble 4, a lock convoy: adds one order to its account's total. Called by
 * LEDGER_THREADS threads; `worker` is the caller's number. */
void totals_add(unsigned worker, const struct order *order);
void totals_collect(uint64_t totals[LEDGER_ACCOUNTS]);

/* Trouble 5, an fsync for every record. journal_close() makes all of them durable. */
int journal_append(int fd, const struct order *order, uint64_t number);
int journal_close(int fd);

/* The amount of an order, with its statement for every office written out. */
uint64_t order_settle(const struct order *order);
/* One line of the account statement; shared, since both versions must print it alike. */
uint64_t statement_line(const struct order *order, char *text, size_t size);
