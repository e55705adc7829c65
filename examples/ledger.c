/* The order importer; see ledger.h. `ledger generate DIR` makes its input,
 * `ledger DIR` runs it. */
#include "ledger.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ORDERS = 12000,
    PAYLOAD_BYTES = 1500,
    NOTE_WORDS = 150,
    ORDERS_PER_RATE = 3,      /* a new currency is looked up this often */
    ORDERS_PER_JOURNAL = 100, /* one in so many is settled and journalled */
    RATE_LINE_BYTES = 96,
};

static struct order orders[ORDERS];

uint64_t statement_line(const struct order *order, char *text, size_t size)
{
    uint64_t cents = (uint64_t)(order->crc_wanted % 100000) * order->rate_milli / 1000;
    snprintf(text, size, "account %04u currency %03u words %03u amount %012" PRIu64 ".%02" PRIu64,
             order->account, order->currency, order->words, cents / 100, cents % 100);
    return cents;
}

/* A small generator: the same input on every machine. */
static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static int generate_orders(FILE *out)
{
    static const char *const words[] = {"parcel", "urgent", "fragile", "return", "gift", "bulk"};
    uint64_t random = 42;
    for (int i = 0; i < ORDERS; i++) {
        char payload[PAYLOAD_BYTES];
        for (int j = 0; j < PAYLOAD_BYTES; j++)
            payload[j] = (char)('A' + next_random(&random) % 26);
        fprintf(out, "%u|%u|%u|%.*s|", next_random(&random) % LEDGER_ACCOUNTS,
                next_random(&random) % LEDGER_CURRENCIES, decode_payload(payload, PAYLOAD_BYTES),
                PAYLOAD_BYTES, payload);
        for (int j = 0; j < NOTE_WORDS; j++)
            fprintf(out, "%s%s", j ? " " : "", words[next_random(&random) % 6]);
        fputc('\n', out);
    }
    return ferror(out);
}

static int generate_rates(FILE *out)
{
    for (unsigned i = 0; i < LEDGER_CURRENCIES; i++) {
        char line[RATE_LINE_BYTES];
        int len = snprintf(line, sizeof(line), "%u %u ", i, 500 + i * 37 % 1000);
        fprintf(out, "%s%*s\n", line, RATE_LINE_BYTES - len, "# set by treasury");
    }
    return ferror(out);
}

static int generate(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/orders.txt", folder);
    FILE *out = fopen(path, "w");
    if (!out || generate_orders(out) || fclose(out) != 0)
        return 1;
    snprintf(path, sizeof(path), "%s/rates.txt", folder);
    out = fopen(path, "w");
    return !out || generate_rates(out) || fclose(out) != 0;
}

static char *read_file(const char *path, size_t *ret_len)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        perror(path);
        exit(1);
    }
    char *data = malloc((size_t)st.st_size + 1);
    size_t len = 0;
    while (data && len < (size_t)st.st_size) {
        ssize_t n = read(fd, data + len, (size_t)st.st_size - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    close(fd);
    if (!data || len != (size_t)st.st_size) {
        fprintf(stderr, "ledger: cannot read %s\n", path);
        exit(1);
    }
    data[len] = '\0';
    *ret_len = len;
    return data;
}

/* Splits the file into orders; the texts stay where they are. */
static unsigned split_orders(char *data)
{
    unsigned count = 0;
    for (char *line = strtok(data, "\n"); line && count < ORDERS; line = strtok(NULL, "\n")) {
        struct order *order = &orders[count++];
        char *end;
        order->account = (uint32_t)strtoul(line, &end, 10);
        order->currency = (uint32_t)strtoul(end + 1, &end, 10);
        order->crc_wanted = (uint32_t)strtoul(end + 1, &end, 10);
        order->payload = end + 1;
        order->payload_len = strcspn(order->payload, "|");
        order->note = order->payload + order->payload_len + 1;
        order->note_len = strlen(order->note);
    }
    return count;
}

static void check_orders(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (decode_payload(orders[i].payload, orders[i].payload_len) != orders[i].crc_wanted) {
            fprintf(stderr, "ledger: order %u is damaged\n", i);
            exit(1);
        }
    }
}

static void count_words(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        orders[i].words = note_words(orders[i].note, orders[i].note_len);
}

static void look_up_rates(unsigned count, const char *rates_path)
{
    for (unsigned i = 0; i < count; i++)
        orders[i].rate_milli = i % ORDERS_PER_RATE == 0 ? order_rate(rates_path, orders[i].currency)
                                                        : orders[i - 1].rate_milli;
}

struct worker {
    unsigned number;
    unsigned count;
};

static void *settle(void *argument)
{
    const struct worker *worker = argument;
    for (unsigned i = worker->number; i < worker->count; i += LEDGER_THREADS)
        totals_add(worker->number, &orders[i]);
    return NULL;
}

static void settle_all(unsigned count, uint64_t *totals)
{
    pthread_t threads[LEDGER_THREADS];
    struct worker workers[LEDGER_THREADS];
    for (unsigned i = 0; i < LEDGER_THREADS; i++) {
        workers[i] = (struct worker){.number = i, .count = count};
        if (pthread_create(&threads[i], NULL, settle, &workers[i]) != 0)
            exit(1);
    }
    for (unsigned i = 0; i < LEDGER_THREADS; i++)
        pthread_join(threads[i], NULL);
    totals_collect(totals);
}

static void keep_journal(unsigned count, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int failed = fd < 0;
    for (unsigned i = 0; i < count && !failed; i += ORDERS_PER_JOURNAL)
        failed = journal_append(fd, &orders[i], i) != 0;
    if (failed || journal_close(fd) != 0) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "generate") == 0)
        return generate(argv[2]);
    if (argc != 2) {
        fprintf(stderr, "usage: ledger generate DIR | ledger DIR\n");
        return 2;
    }
    char orders_path[4096], rates_path[4096], journal_path[4096];
    snprintf(orders_path, sizeof(orders_path), "%s/orders.txt", argv[1]);
    snprintf(rates_path, sizeof(rates_path), "%s/rates.txt", argv[1]);
    snprintf(journal_path, sizeof(journal_path), "%s/journal.txt", argv[1]);

    size_t len;
    char *data = read_file(orders_path, &len);
    unsigned count = split_orders(data);
    check_orders(count);
    count_words(count);
    look_up_rates(count, rates_path);
    uint64_t totals[LEDGER_ACCOUNTS] = {0};
    settle_all(count, totals);
    keep_journal(count, journal_path);

    for (unsigned i = 0; i < LEDGER_ACCOUNTS; i++)
        printf("account %02u total %" PRIu64 "\n", i, totals[i]);
    free(data);
    return 0;
}
