#!/usr/bin/python3
"""Statements and commands as they are taken out of pieces, against the account of the server.

Clients that nobody here wrote talk to PostgreSQL, MariaDB and Redis through a proxy that notes every
piece (protocol_proxy.py); what protocols_dump makes of it is compared, statement by statement, with
pg_stat_statements, the performance schema and INFO commandstats.

    protocols_sql.py NAME PROTOCOLS_DUMP
"""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import server_tools  # noqa: E402
from protocol_proxy import Proxy, requests_of  # noqa: E402

SKIP = 77
PATIENCE_S = 600
# Whole pieces, for what sends more in one than is looked at of it.
WHOLE = 1 << 16


def same_from_all_sides(tool, dump, *options, splits=(0, 1, 13)):
    """Both sides and every split tell the same requests."""
    first = None
    for role in ("client", "server"):
        for split in splits:
            told = requests_of(tool, dump, "--role", role, *options, *(["--split", str(split)] if split else []))
            broken = [c for c in told["connection"] if c["verdict"] != "goes on" or not c["protocol"]]
            assert not broken, (role, split, broken)
            for request in told["request"]:
                assert not request["unanswered"], request
                assert request["start"] <= request["first_byte"] <= request["end"], request
            seen = collections.Counter((r["conn"], r["text"], r["result"], r["parameters"], r["start"], r["end"],
                                        r["bytes_out"], r["bytes_in"]) for r in told["request"])
            first = first or seen
            assert seen == first, (role, split, list((seen - first).items())[:5], list((first - seen).items())[:5])
    return told


def compare(ours, theirs):
    print(f"{sum(theirs.values())} of {len(theirs)} kinds")
    assert theirs, "the server counted nothing"
    assert ours == theirs, f"only ours {ours - theirs}, only theirs {theirs - ours}"


# ---- PostgreSQL ----

class Counted(server_tools.PostgreSQL):
    """With the extension that counts statements."""

    def spawn(self, *command):
        super().spawn(*command, "-c", "shared_preload_libraries=pg_stat_statements", "-c",
                      "pg_stat_statements.track_utility=on", "-c", "pg_stat_statements.max=1000")

    def start(self):
        super().start()
        self.sql("CREATE EXTENSION pg_stat_statements")
        self.sql("CREATE TABLE t (a int PRIMARY KEY, b text)")
        self.sql("CREATE DATABASE shop TEMPLATE postgres")
        self.socket = self.folder / ".s.PGSQL.5432"

    def forget(self):
        self.sql("SELECT pg_stat_statements_reset()")

    def account(self, tool, folder):
        """Calls by text, with what is left of literals taken out as we do."""
        rows = json.loads(self.sql(
            "SELECT json_agg(json_build_array(s.query, s.calls)) FROM pg_stat_statements s "
            "JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = 'shop'"))
        texts = normalised(tool, folder, [query for query, _ in rows])
        total = collections.Counter()
        for text, (_, calls) in zip(texts, rows):
            total[text] += calls
        return total


def normalised(tool, folder, texts):
    """Their texts through our normaliser, by way of a conversation that nobody had."""
    dump = folder / "texts"

    def message(kind, body):
        return kind + struct.pack("!i", len(body) + 4) + body
    pieces = [("out", struct.pack("!ii", 8 + 10, 3 << 16) + b"user\0bob\0\0"), ("in", message(b"Z", b"I"))]
    for text in texts:
        pieces += [("out", message(b"Q", text.encode() + b"\0")), ("in", message(b"Z", b"I"))]
    with open(dump, "w") as out:
        for way, data in pieces:
            json.dump({"conn": 1, "dir": way, "time": 1, "head": data.hex(), "bytes": len(data)}, out)
            out.write("\n")
    told = requests_of(tool, dump, "--protocol", "postgresql")["request"]
    assert len(told) == len(texts), told
    return [r["text"] for r in told]


def constants_too(counter):
    """TRUE and FALSE are values to them; and what begins, ends and forgets is not always counted."""
    total = collections.Counter()
    for text, count in counter.items():
        total[re.sub(r"\b(true|false|null)\b", "?", text, flags=re.IGNORECASE)] += count
    return total


# Before version 16 the extension counts a prepared BEGIN only the first time; DEALLOCATE it never counts.
UNCOUNTED = re.compile(r"(BEGIN|END|COMMIT|DEALLOCATE ALL)$")


def check_pg(tool, folder, use, head_bytes=1024, failed=(0,), uncounted=False):
    with Counted(folder / "pg") as server:
        dump = folder / "pieces"
        server.forget()
        with Proxy(dump, str(server.socket), head_bytes=head_bytes) as proxy:
            use(server, proxy.port)
        theirs = server.account(tool, folder)
    told = same_from_all_sides(tool, dump)
    assert {s["service"] for s in told["service"]} == {"shop"}, told["service"]
    requests = [r for r in told["request"] if not r["text"].startswith("PREPARE ")]
    assert sum(r["failed"] for r in requests) in failed, [r for r in requests if r["failed"]]
    ours = collections.Counter(r["text"] for r in requests if not r["failed"] and r["result"] != "EMPTY")
    if uncounted:
        for counter in (ours, theirs):
            for text in [t for t in counter if UNCOUNTED.match(t)]:
                del counter[text]
    compare(constants_too(ours), constants_too(theirs))
    return told


def pg_psql(tool, folder):
    """Simple queries, errors, results that are longer than what is seen of them, COPY both ways."""
    def use(server, port):
        lines = [f"INSERT INTO t VALUES ({i}, 'x{i}'), ({i + 1}, 'it''s'), ({i + 2}, NULL);" for i in range(0, 300, 3)]
        lines += [f"SELECT * FROM t WHERE a = {i};" for i in range(50)]
        lines += [f"SELECT a FROM t WHERE a IN ({', '.join(map(str, range(i)))});" for i in range(1, 20)]
        lines += ["INSERT INTO t VALUES (1, 'twice');"] * 3  # an error each
        lines += ["SELECT nothing FROM nowhere;"]
        lines += ["SELECT repeat('x', 5000) FROM t;", "SELECT b FROM t ORDER BY a;", "SELECT count(*) FROM t;"] * 4
        lines += [f"SELECT '{'y' * 20000}';", "/* a comment */ SELECT 1 -- and another\n;", ";", "DO $$BEGIN NULL; END$$;"]
        lines += ["COPY t TO STDOUT;"]
        lines += ["COPY t FROM STDIN;\n" + "".join(f"{i}\tz\n" for i in range(1000, 4000)) + "\\."]
        lines += ["UPDATE t SET b = 'q' WHERE a > 5;", "BEGIN;", "DELETE FROM t;", "ROLLBACK;"]
        # A session of its own each way: a file, and one statement after the other.
        (server.folder / "script").write_text("\n".join(lines))
        server.ask(server.bin / "psql", "-h", "127.0.0.1", "-p", str(port), "-U", "bench", "-Xq", "-f", "script", "shop")
    told = check_pg(tool, folder, use, failed=(4,))
    errors = collections.Counter(r["result"] for r in told["request"] if r["failed"])
    assert errors == {"ERROR 23505": 3, "ERROR 42P01": 1}, errors
    selects = [r for r in told["request"] if r["text"] == "SELECT * FROM t WHERE a = ?"]
    assert len({r["parameters"] for r in selects}) == 50
    assert {r["result"] for r in selects} == {"SELECT"}
    copies = {r["text"]: r for r in told["request"] if r["text"].startswith("COPY")}
    assert copies["COPY t FROM STDIN"]["bytes_out"] > 3000 * 7, copies
    assert copies["COPY t TO STDOUT"]["bytes_in"] > 300 * 5, copies


def pg_bench(mode):
    def case(tool, folder):
        def use(server, port):
            server.ask(server.bin / "pgbench", "-h", "127.0.0.1", "-p", str(port), "-U", "bench", "-n", "-c", "3", "-t", "40",
                       "-M", mode, "shop")
        told = check_pg(tool, folder, use, uncounted=mode == "prepared")
        assert sum(r["text"] == "BEGIN" for r in told["request"]) == 120  # transactions, says pgbench
        updates = [r for r in told["request"] if r["text"].startswith("UPDATE pgbench_accounts")]
        assert len(updates) == 120 and len({r["parameters"] for r in updates}) > 100, updates[:3]
    return case


PG_PIPELINE = """
import psycopg, sys
with psycopg.connect(host="127.0.0.1", port=sys.argv[1], user="bench", dbname="shop") as c:
    with c.pipeline():
        for i in range(60):
            c.execute("INSERT INTO t VALUES (%s, %s)", (i, "x" * i))
    c.commit()
    with c.pipeline():
        cursors = [c.execute("SELECT b FROM t WHERE a = %s", (i,)) for i in range(60)]
        assert [len(cursor.fetchone()[0]) for cursor in cursors] == list(range(60))
    c.commit()
    try:
        with c.pipeline():
            for i in (100, 5, 101, 102):  # 5 is there already: what follows is passed over
                c.execute("INSERT INTO t VALUES (%s, 'late')", (i,))
    except psycopg.errors.UniqueViolation:
        c.rollback()
    with c.cursor() as k:
        with k.copy("COPY t FROM STDIN") as copy:
            for i in range(1000, 3000):
                copy.write_row((i, "copied"))
        with k.copy("COPY t TO STDOUT") as copy:
            assert sum(1 for _ in copy.rows()) == 2060
        k.execute("SELECT * FROM t WHERE a > %s", (10,))
        k.fetchall()
        k.execute("SELECT * FROM t WHERE a > %s", (10,), binary=True)
        k.execute("SELECT * FROM t WHERE a = %s", (10,), prepare=True)
        k.execute("SELECT * FROM t WHERE a = %s", (11,), prepare=True)
"""


def pg_pipeline(tool, folder):
    """psycopg: extended queries in pipelines, an error within one, COPY, prepared statements."""
    def use(server, port):
        (server.folder / "client.py").write_text(PG_PIPELINE)
        server.ask(python_with("psycopg"), "client.py", str(port))
    # Where the error comes back at once, the client sends the last one no more.
    told = check_pg(tool, folder, use, head_bytes=WHOLE, failed=(2, 3), uncounted=True)
    failed = collections.Counter(r["result"] for r in told["request"] if r["failed"])
    assert failed in ({"ERROR 23505": 1, "aborted": 2}, {"ERROR 23505": 1, "aborted": 1}), failed


# ---- MariaDB ----

class MariaDB(server_tools.Server):
    missing = "mariadb-server"
    ends_by = signal.SIGTERM  # it does not mind SIGINT

    @staticmethod
    def there():
        return all(map(shutil.which, ("mariadbd", "mariadb", "mariadb-slap", "mariadb-install-db")))

    def start(self):
        self.socket = str(self.folder / "my.sock")
        data = self.folder / "data"
        self.ask("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal",
                 "--skip-test-db", f"--tmpdir={self.folder}")  # names in /tmp are the same for two at a time
        self.spawn("mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={self.socket}", "--skip-networking",
                   "--performance-schema=ON", "--local-infile=1", f"--pid-file={self.folder}/pid", f"--tmpdir={self.folder}",
                   "--performance-schema-digests-size=1000", "--innodb-flush-log-at-trx-commit=0")
        self.wait_ready(lambda: subprocess.run(["mariadb-admin", "--no-defaults", "-S", self.socket, "-u", "root", "ping"],
                                               capture_output=True, check=False).returncode == 0)
        self.sql("CREATE DATABASE shop; CREATE USER bob@localhost IDENTIFIED BY 'hunter2';"
                 "GRANT ALL ON *.* TO bob@localhost; CREATE TABLE shop.t (a int PRIMARY KEY, b text)")

    def sql(self, text):
        return self.ask("mariadb", "--no-defaults", "-S", self.socket, "-u", "root", "-NB", "-e", text)

    def forget(self):
        self.sql("TRUNCATE performance_schema.events_statements_summary_by_digest")

    def account(self):
        """Statements by text. A client has its answer before the statement is counted: once nobody has anything left to
        do, all are."""
        self.wait_idle()
        return self.counted()

    def counted(self):
        """Squeezed, so that only what both call the same is left."""
        total = collections.Counter()
        rows = self.sql("SELECT DIGEST_TEXT, COUNT_STAR, SUM_ERRORS FROM "
                        "performance_schema.events_statements_summary_by_digest WHERE SCHEMA_NAME = 'shop' AND DIGEST_TEXT IS NOT NULL")
        for row in rows.splitlines():
            text, count, errors = row.rsplit("\t", 2)
            total[squeezed(text)] += int(count) - int(errors)
        return +total


def squeezed(text):
    text = re.sub(r"/\*.*?\*/", "", text).replace("...", "?").replace("`", "").replace("NULL", "?")
    text = re.sub(r"\s+|;$", "", text).upper()
    return re.sub(r"\(\?(,\?)+\)", "(?)", text)  # to them the values of a call are a list, too


def check_my(tool, folder, use, failed=0, head_bytes=1024, ignore=lambda text: False, races=0):
    """`races`: the server counts without a lock, and forgets as many at most when several clients ask the same."""
    with MariaDB(folder / "my") as server:
        dump = folder / "pieces"
        server.forget()
        with Proxy(dump, server.socket, head_bytes=head_bytes) as proxy:
            use(server, ["--no-defaults", "-h", "127.0.0.1", "-P", str(proxy.port), "-u", "bob", "-phunter2",
                         "--skip-ssl"], proxy.port)
        theirs = server.account()
    told = same_from_all_sides(tool, dump)
    assert {s["service"] for s in told["service"]} == {"shop"}, told["service"]
    assert not any("hunter2" in json.dumps(r) for r in told["request"])
    assert sum(r["failed"] for r in told["request"]) == failed, [r for r in told["request"] if r["failed"]]
    ours = collections.Counter(squeezed(r["text"]) for r in told["request"] if not r["failed"] and not ignore(r["text"]))
    forgotten = +(ours - theirs)
    compare(ours, theirs + forgotten if forgotten.total() <= races else theirs)
    return told


def my_client(tool, folder):
    """mariadb's own client: results longer than what is seen of them, errors, a file, several results."""
    def use(server, at, _):
        lines = [f"INSERT INTO t VALUES ({i}, 'x{i}'), ({i + 1}, 'it\\'s'), ({i + 2}, \"z\");" for i in range(0, 300, 3)]
        lines += [f"SELECT b FROM t WHERE a = {i};" for i in range(50)]
        lines += ["INSERT INTO t VALUES (1, 'twice');"] * 3
        lines += ["SELECT nothing FROM nowhere;", "SELECT repeat('x', 5000) FROM t;", "SELECT * FROM t;",
                  "SELECT a FROM t WHERE a < 0;", "UPDATE t SET b = 'q' WHERE a > 5;"]
        lines += ["LOAD DATA LOCAL INFILE 'rows' INTO TABLE t;"]
        (server.folder / "rows").write_text("".join(f"{i}\tz\n" for i in range(1000, 5000)))
        (server.folder / "script").write_text("\n".join(lines))
        with open(server.folder / "script") as script:
            server.ask("mariadb", *at, "-f", "--local-infile=1", "shop", stdin=script)
    told = check_my(tool, folder, use, failed=4, ignore=lambda text: text.startswith(("USE ", "FIELD LIST")))
    errors = collections.Counter(r["result"] for r in told["request"] if r["failed"])
    assert errors == {"ERROR 1062": 3, "ERROR 1146": 1}, errors
    selects = [r for r in told["request"] if r["text"] == "SELECT b FROM t WHERE a = ?"]
    assert len({r["parameters"] for r in selects}) == 50
    loads = [r for r in told["request"] if r["text"].startswith("LOAD DATA")]
    assert len(loads) == 1 and loads[0]["bytes_out"] > 4000 * 7, loads


MY_PYTHON = """
import pymysql, sys
c = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="bob", password="hunter2", database="shop",
                    ssl_disabled=True, autocommit=True, client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS)
with c.cursor() as k:
    for i in range(40):
        k.execute("INSERT INTO t VALUES (%s, %s)", (i, "it's" * i))
        k.execute("SELECT b FROM t WHERE a = %s", (i,))
        assert k.fetchall() == (("it's" * i,),)
    k.executemany("INSERT INTO t (a, b) VALUES (%s, %s)", [(i, "m") for i in range(100, 400)])
    k.execute("SELECT a, b FROM t")
    assert len(k.fetchall()) == 340
    k.execute("SELECT %s", ("x" * 17_000_000,))
c.ping()
c.close()
"""


def my_python(tool, folder):
    """PyMySQL, with a statement of more than 16 MB: its packet goes on in another."""
    def use(server, _, port):
        server.sql("SET GLOBAL max_allowed_packet = 64 << 20")
        (server.folder / "client.py").write_text(MY_PYTHON)
        server.ask(python_with("pymysql"), "client.py", str(port))
    told = check_my(tool, folder, use, ignore=lambda text: text == "PING")
    assert [r["result"] for r in told["request"] if r["text"] == "PING"] == ["OK"]
    assert max(r["bytes_out"] for r in told["request"]) > 17_000_000


def my_slap(tool, folder):
    def use(server, at, _):
        server.ask("mariadb-slap", *at, "--create-schema=shop", "--no-drop", "--concurrency=4", "--iterations=1",
                   "--query=SELECT count(*) FROM t WHERE a > 5", "--number-of-queries=200")
    told = check_my(tool, folder, use, ignore=lambda text: text.startswith(("USE ", "DROP ", "CREATE ")), races=10)
    assert sum(r["text"].startswith("SELECT count(*)") for r in told["request"]) == 200


MY_PERL = """
use DBI;
my $c = DBI->connect("DBI:MariaDB:host=127.0.0.1;port=$ARGV[0];database=shop;mariadb_server_prepare=1", "bob", "hunter2",
    {RaiseError => 1, mariadb_server_prepare => 1}) or die;
my $insert = $c->prepare("INSERT INTO t VALUES (?, ?)");
$insert->execute($_, "x" x $_) for (1 .. 30);
my $select = $c->prepare("SELECT b FROM t WHERE a = ?");
for (1 .. 30, 5) { $select->execute($_); my @row = $select->fetchrow_array; die unless $row[0] eq "x" x $_; $select->finish; }
my $all = $c->prepare("SELECT a, b, repeat('y', 100) FROM t");
$all->execute(); my $n = 0; $n++ while ($all->fetchrow_array); die unless $n == 30;
$c->disconnect;
"""


def my_prepared(tool, folder):
    """Perl's driver: statements prepared by the server, their values apart from their text."""
    def use(server, _, port):
        (server.folder / "client.pl").write_text(MY_PERL)
        server.ask("perl", "client.pl", str(port))
        globals()["status"] = dict(row.split("\t") for row in
                                   server.sql("SHOW GLOBAL STATUS LIKE 'Com_stmt%'").splitlines())
    with MariaDB(folder / "my") as server:
        dump = folder / "pieces"
        with Proxy(dump, server.socket) as proxy:
            use(server, None, proxy.port)
    told = same_from_all_sides(tool, dump)
    count = collections.Counter(r["text"] for r in told["request"])
    print(count, status)
    assert count["INSERT INTO t VALUES (?)"] == 30 and count["SELECT b FROM t WHERE a = ?"] == 31, count
    executed = sum(n for text, n in count.items() if re.match("(INSERT|SELECT)", text))
    prepared = sum(n for text, n in count.items() if text.startswith("PREPARE "))
    assert executed == int(status["Com_stmt_execute"]) and prepared == int(status["Com_stmt_prepare"]) == 3
    selects = [r["parameters"] for r in told["request"] if r["text"] == "SELECT b FROM t WHERE a = ?"]
    assert len(set(selects)) == 30, selects  # one of them twice


# ---- Redis ----

def check_redis(tool, folder, use, head_bytes=1024, splits=(0, 1, 13)):
    if not server_tools.Redis.there():
        return SKIP
    with server_tools.Redis(folder / "redis") as server:
        dump = folder / "pieces"
        server.ask("redis-cli", "-s", server.socket, "config", "resetstat")
        with Proxy(dump, server.socket, head_bytes=head_bytes) as proxy:
            use(server, ["-h", "127.0.0.1", "-p", str(proxy.port)])
        rows = server.ask("redis-cli", "-s", server.socket, "info", "commandstats").splitlines()
    theirs = collections.Counter()
    for row in rows:
        if row.startswith("cmdstat_"):
            name, _, figures = row[8:].partition(":")
            figures = dict(item.split("=") for item in figures.split(","))
            theirs[name.upper().replace("|", " ")] += int(figures["calls"]) + int(figures["rejected_calls"])
    theirs -= collections.Counter({"CONFIG RESETSTAT": 1})  # our own
    told = same_from_all_sides(tool, dump, splits=splits)
    ours = collections.Counter(re.sub(r" \?.*", "", r["text"]) for r in told["request"])
    print(ours)
    compare(ours, theirs)
    return told


def redis_client(tool, folder):
    def use(server, at):
        lines = [f"set key{i} {'v' * i}" for i in range(1, 50)] + [f"get key{i}" for i in range(60)]
        lines += ["lpush list " + " ".join(f"item{i}" for i in range(500)), "lrange list 0 -1", "get list", "get key1",
                  "multi", "incr n", "incr n", "exec", "hset h a 1 b 2 c 3", "hgetall h", "config get maxmemory",
                  "eval 'return {1,2,{3,4}}' 0", "mget key1 key2 nothing", "object encoding h", f"set big {'b' * 200000}",
                  "get big", "ping"]
        server.ask("redis-cli", *at, input="\n".join(lines) + "\n")
        server.ask("redis-cli", *at, "-3", input="hgetall h\nget key3\nget nothing\n")
    told = check_redis(tool, folder, use)
    failed = [(r["text"], r["result"]) for r in told["request"] if r["failed"]]
    assert failed == [("GET ?", "WRONGTYPE")], failed
    assert len({r["parameters"] for r in told["request"] if r["text"] == "GET ?"}) == 63


def redis_benchmark(tool, folder):
    def use(server, at):
        server.ask("redis-benchmark", *at, "-q", "-P", "16", "-c", "5", "-n", "2000", "-r", "100", "-t", "set,get,lpush,mset")
    told = check_redis(tool, folder, use, head_bytes=WHOLE, splits=(0,))
    assert sum(r["text"] == "GET ?" for r in told["request"]) == 2000


def redis_pipe(tool, folder):
    """Ten thousand commands at once: more than wait for an answer one by one."""
    def use(server, at):
        data = b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\nk%d\r\n$1\r\nv\r\n" % (len(str(i)) + 1, i) for i in range(10000))
        subprocess.run(["redis-cli", *at, "--pipe"], input=data, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE_S)
    check_redis(tool, folder, use, head_bytes=WHOLE, splits=(0,))


REDIS_PYTHON = """
import redis, sys, threading, time
r = redis.Redis(port=int(sys.argv[1]))
for size in (1, 10, 100):
    with r.pipeline(transaction=size == 10) as p:
        for i in range(size):
            p.set(f"k{i}", "x" * 20)
        p.execute()
s = r.pubsub()
s.subscribe("a", "b")
for i in range(20):
    r.publish("a", "m" * i)
end = time.monotonic() + 600
seen = 0
while seen < 20 and time.monotonic() < end:
    m = s.get_message(ignore_subscribe_messages=True, timeout=1)
    seen += m is not None
assert seen == 20
s.unsubscribe()
s.get_message(timeout=1)
s.get_message(timeout=1)
s.close()
assert list(r.scan_iter("k*", count=10))
"""


def redis_python(tool, folder):
    """redis-py: pipelines of which only the head is seen, transactions, subscriptions."""
    def use(server, at):
        (server.folder / "client.py").write_text(REDIS_PYTHON)
        server.ask(python_with("redis"), "client.py", at[-1])
    check_redis(tool, folder, use, head_bytes=WHOLE)


CASES = {
    "pg-psql": (pg_psql, lambda: server_tools.PostgreSQL.there(), "postgresql"),
    "pg-simple": (pg_bench("simple"), lambda: server_tools.PostgreSQL.there(), "postgresql"),
    "pg-extended": (pg_bench("extended"), lambda: server_tools.PostgreSQL.there(), "postgresql"),
    "pg-prepared": (pg_bench("prepared"), lambda: server_tools.PostgreSQL.there(), "postgresql"),
    "pg-pipeline": (pg_pipeline, lambda: server_tools.PostgreSQL.there() and python_with("psycopg"), "python3-psycopg"),
    "my-client": (my_client, MariaDB.there, "mariadb-server"),
    "my-slap": (my_slap, MariaDB.there, "mariadb-server"),
    "my-python": (my_python, lambda: MariaDB.there() and python_with("pymysql"), "python3-pymysql"),
    "my-prepared": (my_prepared, lambda: MariaDB.there() and perl_has("DBD::MariaDB"), "libdbd-mariadb-perl"),
    "redis-client": (redis_client, server_tools.Redis.there, "redis-server"),
    "redis-benchmark": (redis_benchmark, server_tools.Redis.there, "redis-server"),
    "redis-pipe": (redis_pipe, server_tools.Redis.there, "redis-server"),
    "redis-python": (redis_python, lambda: server_tools.Redis.there() and python_with("redis"), "python3-redis"),
}


def python_with(name):
    """The Python that has a module: Debian's, where this one is another."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def perl_has(name):
    return subprocess.run(["perl", f"-M{name}", "-e", "1"], capture_output=True, check=False).returncode == 0


def main():
    case, there, package = CASES[sys.argv[1]]
    if not there():
        print("skipped: not installed:", package)
        return SKIP
    with tempfile.TemporaryDirectory(prefix="whyslow-sql-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        case(sys.argv[2], folder)
    print("ok")
    return 0


sys.exit(main())
