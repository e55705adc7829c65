#!/usr/bin/python3
"""Requests that whyslow sees on sockets beside the account of whoever answered them.

    io_servers.py CASE WHYSLOW

Real servers, and clients that nobody here wrote, on loopback. Counts are equal; times are
compared where the server measures them, with statements that take long enough to be measured
(judged in the suite `truth` only).
"""

import collections
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import io_tools  # noqa: E402
import server_tools  # noqa: E402
from wait_tools import between, need_kernel_tier, skip, time_between, timed  # noqa: E402

name = sys.argv[1]
lab = io_tools.Lab(sys.argv[2], [], "whyslow-requests-")

REQUESTS = """SELECT request.protocol AS protocol, request.role AS role, said.text AS text, peer.text AS peer,
    answer.text AS result, sum(count) AS count, sum(total_ns) / 1e6 AS ms, sum(first_byte_ns) / 1e6 AS first_ms,
    sum(bytes_out) AS bytes_out, sum(bytes_in) AS bytes_in, sum(failed) AS failed, sum(reused) AS reused,
    sum(unanswered) AS unanswered, sum(parameters) AS parameters
    FROM request LEFT JOIN text AS said ON said.id = request.text LEFT JOIN text AS peer ON peer.id = request.peer
    LEFT JOIN text AS answer ON answer.id = request.result
    GROUP BY request.protocol, request.role, request.text, request.peer, request.result"""


def need(server):
    if not server.there():
        skip(f"not installed: {server.missing}")


def requests(path, role, protocol):
    rows = lab.query(path, REQUESTS)
    for row in rows[:60]:
        print("  ", row)
    print("  ", {k: v for k, v in lab.counters(path).items() if "request" in k or "connection" in k or "lost" in k})
    found = [row for row in rows if row["role"] == role and row["protocol"] == protocol]
    assert found, f"no request of {protocol} as {role}"
    return found


def check_stacks(path, inside):
    """That a library's functions are looked at must not cut the stacks of the calls they make, nor
    add calls of its own to the program's."""
    below = [row for row in lab.io(path, "--stacks")["stacks"] if inside in row["stack"]]
    whole = sum(row["calls"] for row in below if "unknown" not in row["stack"][-1])
    print(f"calls below {inside}:", io_tools.total(below), "of them with whole stacks:", whole)
    assert whole == io_tools.total(below) >= 10
    assert not [row for row in lab.rows(path).rows if row["syscall"] in (335, 336)], "a probe's own calls"


def counts(rows, failed=None):
    """Answered requests by text."""
    found = collections.Counter()
    for row in rows:
        if not row["unanswered"] and (failed is None or bool(row["failed"]) == failed):
            found[row["text"]] += row["count"]
    return found


def client(server, *command, **more):
    """A recorded client, as a user of the server."""
    path, said, _ = lab.record_io(*command, **more)
    return path, said


class Attached:
    """A recorder of a process of a running server, and of what it starts."""

    def __init__(self, server, pid, *options):
        self.server = server
        lab.count += 1
        self.path = str(lab.folder / f"{lab.count}.whyslow")
        self.process = subprocess.Popen([lab.whyslow, "record", "--io", "-p", str(pid), *options, "-o", self.path],
                                        env=lab.environment, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        lab.wait_recording(self.process, self.path)
        return self

    def __exit__(self, *_):
        self.server.wait_idle()  # the call that sent the last answer has returned
        self.process.send_signal(server_tools.signal.SIGINT)
        _, words = self.process.communicate(timeout=600)
        print(words)
        assert self.process.returncode == 0, self.process.returncode


# ---- PostgreSQL ----

class Statements(server_tools.PostgreSQL):
    settings = ("shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track=top",
                "pg_stat_statements.track_utility=on", "compute_query_id=on")

    def start(self):
        super().start()
        self.sql("CREATE EXTENSION pg_stat_statements")
        self.sql("CREATE TABLE items(id int PRIMARY KEY, name text)")

    def reset(self):
        self.sql("SELECT pg_stat_statements_reset()")

    def account(self):
        """Calls and ms by text with every value as ?, as we write it."""
        text = self.sql("SELECT calls, total_exec_time, regexp_replace(query, E'[\\n\\r\\t ]+', ' ', 'g') "
                        "FROM pg_stat_statements")
        rows = {}
        for line in text.splitlines():
            calls, ms, query = line.split("|", 2)
            if "pg_stat_statements" not in query:
                query = re.sub(r"\$\d+", "?", query).strip().rstrip(";")
                before = rows.get(query, (0, 0))
                rows[query] = (before[0] + int(calls), before[1] + float(ms))
        for query, row in rows.items():
            print("   server:", row, query)
        return rows


def plain(text):
    """What both sides may write differently: case of keywords, blanks around brackets and commas."""
    text = re.sub(r"\(\s*\?(\s*,\s*\?)*\s*\)", "(?)", text)
    text = re.sub(r"\s*([(),=+<>*])\s*", r"\1", re.sub(r"\s+", " ", text.strip()))
    return text.upper()


def same(ours, theirs, only=None):
    ours = collections.Counter({plain(k): v for k, v in collections.Counter(ours).items()})
    wanted = collections.Counter()
    for text, (calls, _) in theirs.items():
        wanted[plain(text)] += calls
    for text in set(wanted) | set(ours):
        if only is None or only(text):
            assert ours[text] == wanted[text], (text, ours[text], wanted[text], ours, wanted)
    assert sum(wanted.values()) > 0


def case_postgresql_client():
    need(server_tools.PostgreSQL)
    with Statements(lab.folder / "pg") as server:
        at = [*server.at, "postgres"]
        for mode in ("simple", "extended", "prepared"):
            server.reset()
            path, _ = client(server, server.bin / "pgbench", *server.at, "-n", "-M", mode, "-c", "2", "-t", "200", "postgres")
            # pgbench asks a few things of its own, once; transactions begin and end.
            # What is only parsed is a request, but no call. BEGIN as a prepared statement is counted once by
            # the server, however often it is executed.
            ends = ("BEGIN", "END") if mode != "prepared" else ()
            same(counts(requests(path, "client", "postgresql")), server.account(),
                 only=lambda text: not text.startswith("PREPARE") and ("PGBENCH_" in text or text in ends))
        # Many in one message round.
        (lab.folder / "pipe.sql").write_text("\\startpipeline\n" + "SELECT id FROM items WHERE id = 7;\n" * 10 +
                                             "\\endpipeline\n")
        server.reset()
        path, _ = client(server, server.bin / "pgbench", *server.at, "-n", "-M", "extended", "-f", lab.folder / "pipe.sql",
                         "-t", "50", "postgres")
        rows = requests(path, "client", "postgresql")
        same(counts(rows), server.account(), only=lambda text: "ITEMS" in text)
        assert counts(rows)["SELECT id FROM items WHERE id = ?"] == 500, counts(rows)
        # COPY both ways, several statements in one string, an error, and times.
        (lab.folder / "script.sql").write_text("\n".join([
            "COPY items FROM STDIN;", *(f"{i}\tname {i}" for i in range(5000)), "\\.",
            "COPY items TO STDOUT;", *("SELECT pg_sleep(0.02);" for _ in range(20)),
            "SELECT nothing FROM nowhere;", "INSERT INTO items VALUES (1, 'twice');",
            "SELECT name FROM items WHERE id IN (1, 2, 3);", "SELECT name FROM items WHERE id IN (4, 5);"]))
        server.reset()
        path, _ = client(server, server.bin / "psql", *server.at, "-Xq", "-o", "/dev/null", "-f", lab.folder / "script.sql",
                         "postgres")
        rows, theirs = requests(path, "client", "postgresql"), server.account()
        same(counts(rows, failed=False), theirs, only=lambda text: "PG_SLEEP" in text or text.startswith("COPY"))
        results = {row["result"] for row in rows if row["failed"]}
        assert results == {"ERROR 42P01", "ERROR 23505"}, results
        sleeps = [row for row in rows if "pg_sleep" in row["text"]]
        measured = next(ms for text, (_, ms) in theirs.items() if "pg_sleep" in text)
        time_between("ms of 20 statements of 20 ms", sum(row["ms"] for row in sleeps), measured, measured * 1.05 + 10)
        lists = [row for row in rows if "IN (?)" in row["text"]]
        assert len(lists) == 1 and lists[0]["count"] == 2, lists
        print(at)


def case_postgresql_server():
    need(server_tools.PostgreSQL)
    with Statements(lab.folder / "pg") as server:
        server.reset()
        with Attached(server, server.pid) as recorder:
            load = server.benchmark(transactions=100, clients=2)
            said, _ = load.communicate(timeout=600)
            assert load.returncode == 0, said
        same(counts(requests(recorder.path, "server", "postgresql")), server.account(),
             only=lambda text: "PGBENCH_" in text and "TRUNCATE" not in text and "COUNT" not in text)


def case_postgresql_screen():
    """A client that waits for one slow statement: `whyslow run` names it, and on the first screen where that wait is a
    tenth of the wall time."""
    need(server_tools.PostgreSQL)
    with server_tools.PostgreSQL(lab.folder / "pg") as server:
        done = subprocess.run([lab.whyslow, "run", "--runs", "2", "--out", lab.folder / "out", "--", server.bin / "psql",
                               *server.at, "-Xc", "SELECT pg_sleep(0.5)", "postgres"], env=lab.environment,
                              capture_output=True, text=True, check=False, timeout=server_tools.PATIENCE_S)
        print(done.stdout, done.stderr)
        assert done.returncode == 0, done.returncode
        made = lab.folder / "out" / "latest"
        # Where its own minute is over before it has come to that, calls are not recorded.
        timed("calls were recorded", (made / "recording-io.whyslow").exists())
        if (made / "recording-io.whyslow").exists():
            assert "SELECT pg_sleep(?)" in (made / "profile_result.json").read_text(), made
        first, _, _ = done.stdout.partition("\nHotspots")
        timed("on the first screen",
              bool(re.search(r"\nRequests \(the network's replies take \d+% of the wall time\)\n.*\n  SELECT pg_sleep\(\?\) ", first)))


def case_postgresql_python():
    need(server_tools.PostgreSQL)
    try:
        import psycopg2  # noqa: F401
    except ImportError:
        skip("not installed: python3-psycopg2")
    with Statements(lab.folder / "pg") as server:
        server.reset()
        (lab.folder / "many.py").write_text(f"""
import psycopg2
c = psycopg2.connect(host={str(server.folder)!r}, user="bench", dbname="postgres")
k = c.cursor()
def load(n):
    k.execute("SELECT name FROM items WHERE id = %s", (n,))
    return k.fetchall()
for i in range(412):
    load(i)
""")
        path, _ = client(server, sys.executable, lab.folder / "many.py")
        rows = requests(path, "client", "postgresql")
        same(counts(rows), server.account(), only=lambda text: "ITEMS" in text)
        row = next(row for row in rows if "items" in row["text"])
        assert row["count"] == 412 and row["parameters"] == 412, row
        stored = (lab.folder / path).read_bytes()
        assert b"id = 411" not in stored, "a value was kept"


# ---- MariaDB ----

def digests(server):
    rows = {}
    for line in server.sql("SELECT count_star, digest_text FROM performance_schema.events_statements_summary_by_digest "
                           "WHERE schema_name = 'shop'").splitlines():
        count, text = line.split("\t", 1)
        rows[text.replace("`", "").strip()] = (int(count), 0)
    print("   server:", rows)
    return rows


def mariadb_plain(text):
    """A digest writes blanks around everything, and (...) for lists."""
    text = re.sub(r"\(\s*\.\.\.\s*\)", "(?)", text).replace("`", "")
    return plain(re.sub(r"\s*([.;])\s*", r"\1", text))


def case_mariadb():
    need(server_tools.MariaDB)
    with server_tools.MariaDB(lab.folder / "maria") as server:
        server.sql("CREATE TABLE shop.items(id int PRIMARY KEY, name varchar(40));")
        server.sql("TRUNCATE performance_schema.events_statements_summary_by_digest")
        (lab.folder / "script.sql").write_text(
            "".join(f"INSERT INTO items VALUES ({i}, 'name {i}');\n" for i in range(200)) +
            "".join(f"SELECT name FROM items WHERE id = {i};\n" for i in range(300)) +
            "SELECT nothing FROM nowhere;\nINSERT INTO items VALUES (1, 'twice');\nSELECT name FROM items;\n")
        (lab.folder / "my.cnf").write_text("[client]\npassword=secret-word\n")
        path, _ = client(server, "sh", "-c", f"exec mariadb --defaults-file={lab.folder}/my.cnf --force -h 127.0.0.1 -P {server.port} -u app "
                         f"shop <{lab.folder}/script.sql >/dev/null")
        rows, theirs = requests(path, "client", "mysql"), digests(server)
        ours = collections.Counter({mariadb_plain(k): v for k, v in counts(rows).items()})
        wanted = collections.Counter({mariadb_plain(k): v[0] for k, v in theirs.items()})
        for text in wanted:
            if "ITEMS" in text or "NOWHERE" in text:
                assert ours[text] == wanted[text], (text, ours, wanted)
        assert {row["result"] for row in rows if row["failed"]} == {"ERROR 1146", "ERROR 1062"}, rows
        assert b"secret-word" not in (lab.folder / path).read_bytes()


# ---- redis ----

def commandstats(redis):
    text = redis.ask("redis-cli", "-s", redis.socket, "info", "commandstats")
    return {m.group(1).upper(): int(m.group(2)) for m in re.finditer(r"cmdstat_([a-z|]+):calls=(\d+)", text)}


def by_command(rows):
    found = collections.Counter()
    for text, count in counts(rows).items():
        found[text.split()[0]] += count
    return found


def resp(*words):
    return f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)


def case_redis():
    need(server_tools.Redis)
    with server_tools.Redis(lab.folder / "redis") as redis:
        redis.ask("redis-cli", "-s", redis.socket, "config", "resetstat")
        with Attached(redis, redis.pid) as recorder:
            redis.ask("redis-benchmark", "-s", redis.socket, "-t", "set,get,lpush", "-c", "4", "-n", "5000", "-P", "16", "-q")
            redis.ask("redis-cli", "-s", redis.socket, "--pipe",
                      input="".join(resp("SET", f"key:{i}", f"value-{i}") for i in range(3000)))
            redis.ask("redis-cli", "-s", redis.socket, "eval", "return redis.call('get', KEYS[1])", "1", "key:7")
        theirs, ours = commandstats(redis), by_command(requests(recorder.path, "server", "redis"))
        print(theirs, ours)
        theirs["GET"] -= 1  # the script's own
        for command in ("SET", "GET", "LPUSH", "EVAL"):
            assert ours[command] == theirs[command], (command, ours[command], theirs[command])
        # The client's side.
        redis.ask("redis-cli", "-s", redis.socket, "config", "resetstat")
        path, _ = client(redis, "redis-benchmark", "-s", redis.socket, "-t", "incr", "-c", "4", "-n", "2000", "-q")
        ours, theirs = by_command(requests(path, "client", "redis")), commandstats(redis)
        assert ours["INCR"] == theirs["INCR"] == 2000, (ours, theirs)
        assert b"value-17" not in (lab.folder / recorder.path).read_bytes(), "a value was kept"


# ---- HTTP ----

def logged(nginx):
    return collections.Counter((row[0], row[2]) for row in nginx.served())


def by_status(rows):
    found = collections.Counter()
    for row in rows:
        if not row["unanswered"]:
            found[row["text"].split()[0], row["result"]] += row["count"]
    return found


def case_http():
    need(server_tools.Nginx)
    with server_tools.Nginx(lab.folder / "nginx") as nginx:
        urls = [f"{nginx.url}/index.html?page={i}" for i in range(13)]
        # One connection for all of them.
        path, _ = client(nginx, "curl", "-s", "-o", "/dev/null", "--remote-name-all", *urls, cwd=lab.folder)
        rows = requests(path, "client", "http")
        assert by_status(rows) == logged(nginx) == {("GET", "200"): 13}, rows
        assert len(rows) == 1 and rows[0]["reused"] == 12 and rows[0]["parameters"] == 13, rows
        assert rows[0]["text"] == "GET /index.html?page=?", rows
        # A connection for each.
        path, _ = client(nginx, "curl", "-s", "--no-keepalive", "-H", "Connection: close", "-o", "/dev/null",
                         "--remote-name-all", *urls, cwd=lab.folder)
        rows = requests(path, "client", "http")
        assert by_status(rows) == logged(nginx) == {("GET", "200"): 13}, rows
        assert sum(row["reused"] for row in rows) == 0, rows
        # What is not there, a large body, HEAD, and a secret.
        # Not on the command line, which is kept as it is.
        (lab.folder / "curl.conf").write_text('header = "Authorization: Bearer not-to-be-kept"\n')
        path, _ = client(nginx, "curl", "-s", "-o", "/dev/null", "-K", lab.folder / "curl.conf", f"{nginx.url}/nothing", "--next", "-s", "-o", "/dev/null", f"{nginx.url}/large.bin", "--next", "-s",
                         "-I", "-o", "/dev/null", f"{nginx.url}/index.html", options=["--keep-payloads"])
        rows = requests(path, "client", "http")
        assert by_status(rows) == logged(nginx), rows
        large = next(row for row in rows if "large.bin" in row["text"])
        between("bytes of a megabyte", large["bytes_in"], 1 << 20, (1 << 20) + 2000)
        assert b"not-to-be-kept" not in (lab.folder / path).read_bytes()


def case_http_server():
    need(server_tools.Nginx)
    with server_tools.Nginx(lab.folder / "nginx") as nginx:
        worker = int(subprocess.run(["pgrep", "-P", str(nginx.pid)], capture_output=True, text=True,
                                    check=True).stdout.split()[0])
        with Attached(nginx, worker) as recorder:
            for _ in range(5):
                nginx.ask("curl", "-s", "-o", "/dev/null", f"{nginx.url}/index.html", "-o", "/dev/null",
                          f"{nginx.url}/missing")
            if shutil.which("wrk"):
                nginx.ask("wrk", "-t", "1", "-c", "4", "-d", "1", f"{nginx.url}/index.html")
        rows, theirs = requests(recorder.path, "server", "http"), logged(nginx)
        ours = by_status(rows)
        print(ours, theirs)
        assert ours == theirs, (ours, theirs)


def case_http_clients():
    """Clients of other languages, whose requests hop between calls and threads."""
    need(server_tools.Nginx)
    with server_tools.Nginx(lab.folder / "nginx") as nginx:
        (lab.folder / "get.py").write_text(f"""
import http.client, urllib.request
c = http.client.HTTPConnection("127.0.0.1", {nginx.port})
for i in range(7):
    c.request("GET", f"/index.html?n={{i}}")
    c.getresponse().read()
for i in range(5):
    urllib.request.urlopen("{nginx.url}/index.html").read()
""")
        path, _ = client(nginx, sys.executable, lab.folder / "get.py")
        rows = requests(path, "client", "http")
        assert by_status(rows) == logged(nginx) == {("GET", "200"): 12}, rows
        assert sum(row["reused"] for row in rows) == 6, rows
        if not shutil.which("node"):
            skip("not installed: nodejs")
        (lab.folder / "get.js").write_text(f"""
const http = require("http");
const agent = new http.Agent({{ keepAlive: true, maxSockets: 1 }});
const get = (i) => new Promise((done) => http.get({{ port: {nginx.port}, host: "127.0.0.1", path: "/index.html?" + i, agent }},
    (res) => {{ res.resume(); res.on("end", done); }}));
(async () => {{ for (let i = 0; i < 9; i++) await get(i); agent.destroy(); }})();
""")
        path, _ = client(nginx, "node", lab.folder / "get.js")
        assert by_status(requests(path, "client", "http")) == logged(nginx) == {("GET", "200"): 9}


def case_sqlite():
    (lab.folder / "lite.py").write_text("""
import sqlite3
db = sqlite3.connect("shop.db", isolation_level=None)
db.execute("CREATE TABLE items(id INTEGER PRIMARY KEY, name TEXT)")
for i in range(100):
    db.execute("INSERT INTO items VALUES (?, ?)", (i, f"name {i}"))
for i in range(250):
    db.execute("SELECT name FROM items WHERE id = ?", (i,)).fetchall()
""")
    path, _ = client(None, sys.executable, lab.folder / "lite.py", cwd=lab.folder)
    rows = requests(path, "inside", "sqlite")
    found = counts(rows)
    assert found["INSERT INTO items VALUES (?)"] + found["INSERT INTO items VALUES (?, ?)"] == 100, found
    assert found["SELECT name FROM items WHERE id = ?"] == 250, found
    check_stacks(path, "sqlite3_step")


def case_tls():
    need(server_tools.Nginx)
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", lab.folder / "key.pem",
                           "-out", lab.folder / "cert.pem", "-days", "2", "-subj", "/CN=localhost"],
                          capture_output=True, check=False)
    if done.returncode != 0:
        skip("openssl makes no certificate")
    for file in ("key.pem", "cert.pem"):
        (lab.folder / file).chmod(0o644)

    class Secure(server_tools.Nginx):
        def start(self):
            self.secure = server_tools.free_port()
            self.more = (f"listen 127.0.0.1:{self.secure} ssl; ssl_certificate {lab.folder}/cert.pem; "
                         f"ssl_certificate_key {lab.folder}/key.pem;")
            super().start()

    with Secure(lab.folder / "nginx") as nginx:
        (lab.folder / "get.py").write_text(f"""
import http.client, ssl
context = ssl._create_unverified_context()
c = http.client.HTTPSConnection("127.0.0.1", {nginx.secure}, context=context)
for i in range(511):
    c.request("GET", "/index.html", headers={{"Cookie": "not-to-be-kept"}})
    c.getresponse().read()
""")
        path, _ = client(nginx, sys.executable, lab.folder / "get.py")
        rows = requests(path, "client", "http")
        assert by_status(rows) == logged(nginx) == {("GET", "200"): 511}, rows
        flags = lab.query(path, "SELECT flags, peer FROM connection")
        assert [row["flags"] & 1 for row in flags] == [1] and str(nginx.secure) in flags[0]["peer"], flags
        assert b"not-to-be-kept" not in (lab.folder / path).read_bytes()
        check_stacks(path, "SSL_write_ex")


try:
    need_kernel_tier()
    globals()["case_" + name.replace("-", "_")]()
    print("ok")
finally:
    lab.close()
