"""Requests as they are taken out of pieces, against the account of the server that answered them.

A real client talks to a real server through a proxy that notes every piece (protocol_proxy.py); what
protocols_dump makes of it is compared with the server's own log, request by request.

    protocols.py NAME PROTOCOLS_DUMP
"""

import collections
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
from protocol_proxy import Proxy, requests_of  # noqa: E402
from server_tools import Server, free_port  # noqa: E402

SKIP = 77
PATIENCE_S = 600


class Nginx(Server):
    """nginx on loopback, HTTP/1 and HTTP/2 without TLS, with one line of JSON a request in its log."""

    def start(self):
        self.port, self.port2 = free_port(), free_port()
        root = self.folder / "root"
        (root / "users").mkdir(parents=True)
        (root / "small").write_text("x" * 100)
        (root / "large").write_bytes(os.urandom(3 << 20))
        (root / "text").write_text("a line of text\n" * 20000)
        for name in ("users", "small", "large", "text", ""):
            (root / name).chmod(0o755)
        own = "\n".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in
                        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (self.folder / "conf").write_text(f"""
            daemon off; worker_processes 1; pid {self.folder}/pid; error_log {self.folder}/error;
            events {{ worker_connections 256; }}
            http {{
                {own}
                log_format account escape=json '{{"line":"$request","status":"$status","method":"$request_method",'
                    '"uri":"$request_uri","host":"$http_host","in":$request_length,"out":$bytes_sent,'
                    '"connection":"$connection","nth":$connection_requests}}';
                access_log {self.folder}/access account;
                gzip on; gzip_types text/plain application/octet-stream; gzip_min_length 10;
                client_max_body_size 64m; default_type text/plain; root {root};
                server {{ listen 127.0.0.1:{self.port}; include {self.folder}/places; }}
                server {{ listen 127.0.0.1:{self.port2} http2; include {self.folder}/places; }}
            }}""")
        cookies = "\n".join(f'add_header Set-Cookie "c{i}={"v" * 200}";' for i in range(8))
        (self.folder / "places").write_text(f"""
            location /users/ {{ return 200 "a user"; }}
            location /gone/ {{ return 410; }}
            location /empty {{ return 204; }}
            location /moved {{ return 302 /small; }}
            location /heads {{ {cookies} return 200 "many headers"; }}
            location /upload {{ client_body_in_single_buffer on; dav_methods PUT; }}
            """)
        self.spawn("nginx", "-p", str(self.folder), "-c", str(self.folder / "conf"), "-e", str(self.folder / "error"))
        self.wait_ready(lambda: accepts(self.port) and accepts(self.port2))

    def account(self, count):
        """Its log, once there are so many lines: nginx writes when it is done with a request."""
        end = time.monotonic() + PATIENCE_S
        while True:
            lines = (self.folder / "access").read_text().splitlines()
            # The connections that wait_ready() made said nothing.
            rows = [row for row in map(json.loads, lines) if row["line"]]
            if len(rows) >= count or time.monotonic() > end:
                assert len(rows) == count, (len(rows), count, rows)
                return rows
            time.sleep(0.02)


def accepts(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def curl(*arguments, **more):
    # It sends a body after the answer that allows it, or refuses it, however late that comes.
    words = ["curl", "-sS", "-o", "/dev/null", "--noproxy", "*", "--expect100-timeout", str(PATIENCE_S), *arguments]
    done = subprocess.run(words, capture_output=True, timeout=PATIENCE_S, check=False, **more)
    assert done.returncode == 0, (arguments, done.stderr)


def text_of(row):
    """What the parser must call this line of the log; paths of this test have numbers at one place only."""
    path, _, query = row["uri"].partition("?")
    path = "/".join("?" if part.isdigit() else part for part in path.split("/"))
    names = [item.partition("=")[0] + "=?" for item in query.split("&") if item]
    return f'{row["method"]} {path}' + ("?" + "&".join(names) if names else "")


def compare(told, account, bytes_in=False):
    """Counts, texts and results are the same; where asked so are bytes."""
    def bag(rows):
        return collections.Counter(rows)
    ours = bag((r["text"], r["result"]) for r in told["request"])
    theirs = bag((text_of(r), r["status"]) for r in account)
    assert ours == theirs, (ours - theirs, theirs - ours, told["connection"])
    for request in told["request"]:
        assert request["failed"] == (request["result"][0] in "45"), request
        assert not request["unanswered"] and not request["cut"], request
        assert request["start"] <= request["first_byte"] <= request["end"], request
    if bytes_in:
        ours = bag((r["text"], r["bytes_out"], r["bytes_in"]) for r in told["request"])
        theirs = bag((text_of(r), r["in"], r["out"]) for r in account)
        assert ours == theirs, (ours - theirs, theirs - ours)


def check(tool, folder, server, port, use, count, bytes_in=False, verdicts=("goes on",), splits=(0, 1, 7), **options):
    """`use` talks through the proxy; the pieces are looked at from both sides and split."""
    dump = folder / "pieces"
    with Proxy(dump, ("127.0.0.1", port), **options) as proxy:
        use(proxy.port)
    account = server.account(count)
    for role in ("client", "server"):
        for split in splits:
            told = requests_of(tool, dump, "--role", role, *(["--split", str(split)] if split else []))
            assert {c["verdict"] for c in told["connection"]} <= set(verdicts), told["connection"]
            compare(told, account, bytes_in)
    return told


# ---- HTTP/1 ----

def http_keepalive(tool, folder):
    with Nginx(folder / "nginx") as server:
        def use(port):
            at = f"http://127.0.0.1:{port}"
            urls = [f"{at}/users/{i}?page={i}&sort=name" for i in range(40)]
            urls += [f"{at}/gone/1", f"{at}/empty", f"{at}/moved", f"{at}/nothing", f"{at}/large", f"{at}/small"]
            sinks = [a for _ in urls[1:] for a in ("-o", "/dev/null")]
            curl(*sinks, *urls)
        told = check(tool, folder, server, server.port, use, 46, bytes_in=True)
        assert len(told["connection"]) == 1 and sum(r["reused"] for r in told["request"]) == 45
        assert told["service"][0]["service"].startswith("127.0.0.1:")
        # The same statement with other values: as many hashes as values.
        assert len({r["parameters"] for r in told["request"] if "users" in r["text"]}) == 40


def http_single(tool, folder):
    with Nginx(folder / "nginx") as server:
        def use(port):
            for i in range(10):
                curl("-H", "Connection: close", f"http://127.0.0.1:{port}/users/{i}")
            curl("-I", f"http://127.0.0.1:{port}/large")
            curl("--http1.0", f"http://127.0.0.1:{port}/small")
        told = check(tool, folder, server, server.port, use, 12, bytes_in=True)
        assert len(told["connection"]) == 12 and not any(r["reused"] for r in told["request"])


def http_pipelined(tool, folder):
    with Nginx(folder / "nginx") as server:
        def use(port):
            with socket.create_connection(("127.0.0.1", port)) as s:
                s.sendall(b"".join(b"GET /users/%d HTTP/1.1\r\nHost: shop.example\r\n\r\n" % i for i in range(20)) +
                          b"GET /small HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n")
                while s.recv(4096):
                    pass
        # Twenty heads are more than 1 KiB: the proxy keeps all of a piece here.
        told = check(tool, folder, server, server.port, use, 21, bytes_in=True, head_bytes=1 << 16)
        assert told["service"][0]["service"] == "shop.example"


def http_chunked(tool, folder):
    """Answers and bodies in chunks; gzip makes nginx send chunks of its own size."""
    with Nginx(folder / "nginx") as server:
        def use(port):
            at = f"http://127.0.0.1:{port}"
            for i in range(3):
                curl("--compressed", f"{at}/text?n={i}", f"{at}/users/{i}", "-o", "/dev/null")
            curl("-T", "-", f"{at}/nothing", input=b"z" * 100000)
            curl("-H", "Expect: 100-continue", "--data-binary", "@-", f"{at}/users/9", input=b"y" * 3_000_000)
        check(tool, folder, server, server.port, use, 8, splits=(0,))


def http_heads(tool, folder):
    """Heads that are longer than what is kept of a piece, in both directions."""
    with Nginx(folder / "nginx") as server:
        def use(port):
            at = f"http://127.0.0.1:{port}"
            cookie = "Cookie: " + "c" * 2000
            curl("-H", cookie, f"{at}/heads", f"{at}/users/1", f"{at}/heads", *["-o", "/dev/null"] * 2)
        check(tool, folder, server, server.port, use, 3, splits=(0,))


# ---- HTTP/2 ----

def nghttp(*arguments):
    """nghttp sends all requests at once on one connection; curl of Debian 12 cannot use one twice without TLS."""
    done = subprocess.run(["nghttp", "-n", *arguments], capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, (arguments, done.stderr)


def http2(tool, folder):
    with Nginx(folder / "nginx") as server:
        def use(port):
            at = f"http://127.0.0.1:{port}"
            nghttp(*[f"{at}/users/{i}?page={i}" for i in range(8)])
            nghttp(f"{at}/gone/1", f"{at}/empty", f"{at}/small")
            curl("--http2-prior-knowledge", "-d", "a=b", f"{at}/users/77?page=1")
            curl("--http2-prior-knowledge", "-I", f"{at}/large")
        told = check(tool, folder, server, server.port2, use, 13)
        assert {c["protocol"] for c in told["connection"]} == {"http2"}
        assert len({r["parameters"] for r in told["request"] if "users" in r["text"]}) == 9


def http2_parallel(tool, folder):
    """h2load keeps ten streams open on each of two connections; headers are mostly references."""
    with Nginx(folder / "nginx") as server:
        def use(port):
            subprocess.run(["h2load", "-n", "2000", "-c", "2", "-m", "10", f"http://127.0.0.1:{port}/users/12"], check=True,
                           capture_output=True, timeout=PATIENCE_S)
        told = check(tool, folder, server, server.port2, use, 2000, head_bytes=1 << 16, splits=(0, 5))
        assert len(told["connection"]) == 2


def http2_large(tool, folder):
    """A body of which only heads are kept: either every request is told, or the connection is given up."""
    with Nginx(folder / "nginx") as server:
        dump = folder / "pieces"
        with Proxy(dump, ("127.0.0.1", server.port2)) as proxy:
            curl("--http2-prior-knowledge", f"http://127.0.0.1:{proxy.port}/large")
        account = server.account(1)
        for role in ("client", "server"):
            told = requests_of(tool, dump, "--role", role)
            verdict = told["connection"][0]["verdict"]
            assert verdict in ("goes on", "broken"), told
            if verdict == "goes on":
                compare(told, account)
            else:
                assert not told["request"], told
            middle = requests_of(tool, dump, "--role", role, "--middle")
            assert middle["connection"][0]["verdict"] == "middle" and not middle["request"]


# ---- DNS ----

class Dnsmasq(Server):
    """dnsmasq with a few names of its own and nobody to ask; its log has every question."""

    def start(self):
        self.port = free_port(socket.SOCK_DGRAM)
        self.spawn("dnsmasq", "-k", "-C", "/dev/null", "--port", str(self.port), "--listen-address=127.0.0.1",
                   "--bind-interfaces", "--no-resolv", "--no-hosts", "--user=", "--group=", "--log-queries=extra", "--log-facility=-",
                   "--local=/example/", "--address=/shop.example/192.0.2.7", "--pid-file=",
                   "--ptr-record=7.2.0.192.in-addr.arpa,shop.example", "--local=/in-addr.arpa/")
        self.wait_ready(lambda: accepts(self.port))

    def __exit__(self, *what):
        self.process.terminate()  # SIGINT is not for it
        super().__exit__(*what)

    def account(self):
        """(type, name) of each question in its log."""
        log = (self.folder / "log").read_text()
        return [(line.split("query[")[1].split("]")[0], line.split("] ")[-1].split()[0])
                for line in log.splitlines() if "query[" in line]


def dig(port, questions, *ways):
    """Asks all of them once, however long an answer takes, and returns what dig was answered: [(type, name, result)]."""
    words = ["dig", f"-p{port}", "@127.0.0.1", "+tries=1", f"+time={PATIENCE_S}", *ways]
    done = subprocess.run([*words, *[w for t, n in questions for w in (n, t)]], check=True, capture_output=True,
                          timeout=PATIENCE_S, text=True)
    results = [line.split("status: ")[1].split(",")[0] for line in done.stdout.splitlines() if "status: " in line]
    assert len(results) == len(questions), done.stdout
    return [(t, n, r) for (t, n), r in zip(questions, results)]


def dns_check(tool, folder, kind, splits):
    questions = [("A", "www.shop.example"), ("AAAA", "no.example"), ("MX", "Shop.Example"), ("A", "elsewhere.test"),
                 ("PTR", "7.2.0.192.in-addr.arpa")]
    dump = folder / "pieces"
    answered = []
    with Dnsmasq(folder / "dnsmasq") as server:
        with Proxy(dump, ("127.0.0.1", server.port), kind=kind) as proxy:
            for _ in range(5):
                answered += dig(proxy.port, questions, *(["+tcp", "+keepopen"] if kind == "tcp" else []))
        account = server.account()
    assert collections.Counter((t, n.lower()) for t, n in account) == \
        collections.Counter((t, n.lower()) for t, n, _ in answered), (account, answered)
    assert {r for _, _, r in answered} == {"NOERROR", "NXDOMAIN", "REFUSED"}, answered
    expected = collections.Counter((f'{t} {"?.in-addr.arpa" if t == "PTR" else n.lower()}', r) for t, n, r in answered)
    for role in ("client", "server"):
        for split in splits:
            told = requests_of(tool, dump, "--role", role, "--port", "53", *(["--split", str(split)] if split else []))
            assert {c["verdict"] for c in told["connection"]} == {"goes on"}, told["connection"]
            ours = collections.Counter((r["text"], r["result"]) for r in told["request"])
            assert ours == expected, (ours - expected, expected - ours)
            for request in told["request"]:
                assert request["failed"] == (request["result"] != "NOERROR") and not request["unanswered"], request
                assert request["start"] <= request["first_byte"] <= request["end"], request
    # Not without its port: these bytes could be anything.
    assert {c["protocol"] for c in requests_of(tool, dump)["connection"]} == {""}


def dns(tool, folder):
    dns_check(tool, folder, "udp", (0,))


def dns_stream(tool, folder):
    dns_check(tool, folder, "tcp", (0, 1, 2, 3, 13, 20))


CASES = {
    "dns": (dns, ("dnsmasq", "dig")),
    "dns-stream": (dns_stream, ("dnsmasq", "dig")),
    "http-keepalive": (http_keepalive, ("nginx", "curl")),
    "http-single": (http_single, ("nginx", "curl")),
    "http-pipelined": (http_pipelined, ("nginx",)),
    "http-chunked": (http_chunked, ("nginx", "curl")),
    "http-heads": (http_heads, ("nginx", "curl")),
    "http2": (http2, ("nginx", "curl", "nghttp")),
    "http2-parallel": (http2_parallel, ("nginx", "h2load")),
    "http2-large": (http2_large, ("nginx", "curl")),
}


def main():
    os.environ["PATH"] += ":/usr/sbin"
    case, programs = CASES[sys.argv[1]]
    missing = [p for p in programs if not shutil.which(p)]
    if missing:
        print("skipped: there is no", " and no ".join(missing))
        return SKIP
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        case(sys.argv[2], folder)
    return 0


sys.exit(main())
