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
#include <time.h>
#include <unistd.h>

enum {
    ORDERS = 12000,
    PAYLOAD_BYTES = 2200,
    NOTE_WORDS = 400,
    OFFICES = 90, /* that get a statement of every order */
    /* How many orders are journalled depends on the disk: so many that making each durable takes
     * about this long. Disks differ by a factor of a hundred; the demo should not. */
    JOURNAL_MS = 150,
    JOURNALLED_MIN = 40,
    JOURNALLED_MAX = 1000,
    PROBES = 31,
};

static struct order orders[ORDERS];

uint64_t statement_line(const struct order *order, char *text, size_t size)
{
    uint64_t cents = (uint64_t)(order->crc_wanted % 100000) * order->rate_milli / 1000;
    snprintf(text, size, "account %04u currency %03u words %03u amount %012" PRIu64 ".%02" PRIu64,
             order->account, order->currency, order->words, cents / 100, cents % 100);
    return cents;
}

uint64_t order_settle(const struct order *order)
{
    char text[256];
    uint64_t cents = 0;
    for (int office = 0; office < OFFICES; office++)
        cents = statement_line(order, text, sizeof(text));
    return cents;
}

/* A small generator: the same input on every machine. */
static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* The text of an order: its payload, then its note. */
static size_t generate_text(char *text, uint64_t *random)
{
    static const char *const words[] = {"parcel", "urgent", "fragile", "return", "gift", "bulk"};
    size_t len = 0;
    for (; len < PAYLOAD_BYTES; len++)
        text[len] = (char)('A' + next_random(random) % 26);
    text[len++] = '|';
    for (int i = 0; i < NOTE_WORDS; i++)
        len += (size_t)sprintf(text + len, "%s%s", i ? " " : "", words[next_random(random) % 6]);
    return len;
}

static int generate_orders(FILE *out)
{
    uint64_t random = 42;
    for (int i = 0; i < ORDERS; i++) {
        char text[PAYLOAD_BYTES + NOTE_WORDS * 8 + 2];
        size_t len = generate_text(text, &random);
        fprintf(out, "%u|%u|%u|%s\n", next_random(&random) % LEDGER_ACCOUNTS,
                next_random(&random) % LEDGER_CURRENCIES, decode_payload(text, len), text);
    }
    return ferror(out);
}

static int generate_rates(FILE *out)
{
    for (unsigned i = 0; i < LEDGER_CURRENCIES; i++) {
        char line[LEDGER_RATE_BYTES];
        int len = snprintf(line, sizeof(line), "%u ", 500 + i * 37 % 1000);
        fprintf(out, "%s%*s\n", line, LEDGER_RATE_BYTES - 1 - len, "# set by treasury");
    }
    return ferror(out);
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The median time to make a line durable, in ns; 0 when that fails. */
static uint64_t probe_disk(const char *path)
{
    uint64_t took[PROBES];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    for (int i = 0; i < PROBES; i++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        if (fd < 0 || write(fd, "a line of a journal\n", 20) != 20 || fsync(fd) != 0)
            return 0;
        clock_gettime(CLOCK_MONOTONIC, &to);
        took[i] = (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000u +
                  (uint64_t)(to.tv_nsec - from.tv_nsec);
    }
    close(fd);
    qsort(took, PROBES, sizeof(took[0]), compare_u64);
    return took[PROBES / 2];
}

/* Beside the orders: every how many are journalled. */
static int generate_settings(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/journal.txt", folder);
    uint64_t ns = probe_disk(path);
    uint64_t count = ns ? JOURNAL_MS * 1000000ull / ns : 0;
    if (count < JOURNALLED_MIN || count > JOURNALLED_MAX)
        count = count < JOURNALLED_MIN ? JOURNALLED_MIN : JOURNALLED_MAX;
    snprintf(path, sizeof(path), "%s/settings.txt", folder);
    FILE *out = fopen(path, "w");
    return !out || fprintf(out, "journal every %u\n", (unsigned)(ORDERS / count)) < 0 ||
           fclose(out) != 0;
}

static unsigned read_settings(const char *folder)
{
    char path[4096];
    unsigned every = 0;
    snprintf(path, sizeof(path), "%s/settings.txt", folder);
    FILE *in = fopen(path, "r");
    if (!in || fscanf(in, "journal every %u", &every) != 1 || every == 0) {
        fprintf(stderr, "ledger: cannot read %s; make it with 'ledger generate DIR'\n", path);
        exit(1);
    }
    fclose(in);
    return every;
}

static int generate(const char *folder)
{
    char path[4096];
    if (generate_settings(folder))
        return 1;
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
        size_t len = orders[i].payload_len + 1 + orders[i].note_len;
        if (decode_payload(orders[i].payload, len) != orders[i].crc_wanted) {
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
        orders[i].rate_milli = order_rate(rates_path, orders[i].currency);
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

static void keep_journal(unsigned count, unsigned every, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int failed = fd < 0;
    for (unsigned i = 0; i < count && !failed; i += every)
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
    keep_journal(count, read_settings(argv[1]), journal_path);

    for (unsigned i = 0; i < LEDGER_ACCOUNTS; i++)
        printf("account %02u total %" PRIu64 "\n", i, totals[i]);
    free(data);
    return 0;
}
