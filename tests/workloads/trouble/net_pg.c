/* A client of a real PostgreSQL: one statement a row, or one for all.
 *
 *     net_pg n_plus_one|batched COUNT CONNINFO */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long balance_of(PGconn *connection, int id)
{
    char text[16];
    const char *values[] = {text};
    snprintf(text, sizeof(text), "%d", id);
    PGresult *result = PQexecParams(connection,
                                    "SELECT abalance FROM pgbench_accounts WHERE aid = $1", 1, NULL,
                                    values, NULL, NULL, 0);
    if (PQntuples(result) != 1)
        exit(1);
    long balance = atol(PQgetvalue(result, 0, 0));
    PQclear(result);
    return balance;
}

static long balances_of(PGconn *connection, int count)
{
    char text[16];
    const char *values[] = {text};
    long sum = 0;
    snprintf(text, sizeof(text), "%d", count);
    PGresult *result = PQexecParams(connection,
                                    "SELECT abalance FROM pgbench_accounts WHERE aid <= $1", 1,
                                    NULL, values, NULL, NULL, 0);
    if (PQntuples(result) != count)
        exit(1);
    for (int i = 0; i < count; i++)
        sum += atol(PQgetvalue(result, i, 0));
    PQclear(result);
    return sum;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int count = atoi(argv[2]);
    long sum = 0;
    PGconn *connection = PQconnectdb(argv[3]);
    if (PQstatus(connection) != CONNECTION_OK) {
        fputs(PQerrorMessage(connection), stderr);
        return 1;
    }
    if (strcmp(argv[1], "batched") == 0)
        sum = balances_of(connection, count);
    else
        for (int i = 1; i <= count; i++)
            sum += balance_of(connection, i);
    printf("%ld\n", sum);
    PQfinish(connection);
    return 0;
}
