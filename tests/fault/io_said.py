#!/usr/bin/python3
"""What is said on sockets goes wrong while it is recorded: garbage, halves, silence, floods, ends.

    io_said.py CASE kernel|user WHYSLOW

The client is recorded, whatever it does; the server here is a few lines of its own, since no real
one would behave like that. Nothing may crash, nothing may be made up, and what was given up is said.
"""

import json
import pathlib
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
import io_tools  # noqa: E402
from wait_tools import between, need_kernel_tier, time_between, timed  # noqa: E402

name, tier = sys.argv[1], sys.argv[2]
lab = io_tools.Lab(sys.argv[3], [], "whyslow-said-")


class Peer(threading.Thread):
    """Listens, and does with every connection what it is told."""

    def __init__(self, with_each):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.with_each = with_each
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            try:
                self.with_each(connection)
            except OSError:
                pass


def head_read(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            break
        data += part
    return data


def answer(connection, body=b"hello", status=b"200 OK"):
    connection.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))


def lost_of(counters):
    """Pieces that were lost, or sockets of which nothing could be told: the library in the target never waits for whyslow,
    and a connection that has lost one is not understood any more."""
    lost = counters["io.lost.ring_full"] + counters["io.lost.objects"] if tier == "user" else 0
    timed("all that was said has been seen", lost == 0, str(lost))
    return lost


def sure(counters, good, detail):
    """What holds where nothing of what was said is counted as lost."""
    assert good or lost_of(counters) > 0, detail


def record(text, status=0):
    """Python that runs as the client, with `connect()` and `s`; what the recording says then."""
    (lab.folder / "client.py").write_text("import os, socket, sys, time, signal\n"
                                          "def connect(port):\n"
                                          "    return socket.create_connection(('127.0.0.1', port))\n" + text)
    path, _, _ = lab.record_io("/usr/bin/python3", lab.folder / "client.py", tier=tier, status=status)
    counters = lab.counters(path)
    print({k: v for k, v in counters.items() if v and ("request" in k or "connection" in k or "heads" in k or "lost" in k)})
    requests = lab.query(path, "SELECT said.text AS text, answer.text AS result, protocol, role, count, unanswered, failed, "
                         "total_ns / 1e6 AS ms, bytes_out, bytes_in FROM request "
                         "LEFT JOIN text AS said ON said.id = request.text LEFT JOIN text AS answer ON answer.id = result")
    print(requests)
    # Whatever was said, what we say of it can be read.
    json.loads(lab.run(lab.whyslow, "io", "--json", "--requests", path).stdout)
    lab.run(lab.whyslow, "io", path)
    return requests, counters, path


def case_garbage():
    peer = Peer(lambda connection: (connection.recv(4096), connection.sendall(bytes(range(256)) * 20)))
    requests, counters, _ = record(f"""
for start in (b"GET ", b"POST /", b"HTTP/1.1 ", b"*3\\r\\n$3\\r\\n", b"Q\\0\\0\\0", b"PRI * HTTP/2.0\\r\\n"):
    s = connect({peer.port})
    s.sendall(start + os.urandom(3000))
    s.recv(4096)
    s.close()
""")
    assert not [row for row in requests if not row["unanswered"]], "a request was made up"
    unknown = counters["io.connections.unknown"] + counters["io.connections.broken"]
    assert unknown >= 5 - lost_of(counters), counters


def case_half():
    """Half a request, then nothing; half an answer, then nothing."""
    peer = Peer(lambda connection: (head_read(connection) and connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this"), connection.close()))
    requests, counters, _ = record(f"""
s = connect({peer.port}); s.sendall(b"GET /half HTT"); s.close()
s = connect({peer.port}); s.sendall(b"GET /whole HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
while s.recv(4096): pass
s.close()
""")
    whole = [(row["text"], row["unanswered"]) for row in requests if "whole" in row["text"]]
    sure(counters, whole == [("GET /whole", 1)], requests)
    assert not [row for row in requests if "half" in row["text"] and not row["unanswered"]]


def case_silent():
    peer = Peer(lambda connection: head_read(connection))
    requests, counters, _ = record(f"""
s = connect({peer.port}); s.settimeout(0.3)
s.sendall(b"GET /never HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
try: s.recv(10)
except TimeoutError: pass
s.close()
""")
    sure(counters, len(requests) == 1 and requests[0]["unanswered"] == 1, requests)
    time_between("ms that it waited", sum(row["ms"] for row in requests), 290, 5000)
    assert counters["io.requests.unanswered"] == sum(row["unanswered"] for row in requests) <= 1, counters


def case_bodies():
    """100 MB up and down, of which nothing is kept."""
    def serve(connection):
        _, _, body = head_read(connection).partition(b"\r\n\r\n")  # it may have come with some of the body
        left = 100_000_000 - len(body)
        while left > 0:
            left -= len(connection.recv(1 << 20)) or left
        answer(connection, b"x" * 100_000_000)
        head_read(connection)
        answer(connection)

    peer = Peer(serve)
    requests, counters, path = record(f"""
s = connect({peer.port})
s.sendall(b"POST /up HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 100000000\\r\\n\\r\\n")
for _ in range(100): s.sendall(b"secret-of-the-body " * 50000 + b"x" * 50000)
got = 0
while got < 100000000: got += len(s.recv(1 << 20)) or sys.exit("the answer ended too early")
s.settimeout(100)
s.sendall(b"GET /after HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
end = b""
while not end.endswith(b"hello"): end += s.recv(4096)
""")
    ups = [row for row in requests if row["text"] == "POST /up"]
    sure(counters, [(row["count"], row["result"], row["unanswered"]) for row in ups] == [(1, "200", 0)], requests)
    for way in ("bytes_out", "bytes_in"):
        moved = sum(row[way] for row in ups)
        sure(counters, moved >= 100_000_000, (way, moved))
        between(way, moved, 0, 100_000_500)
    sure(counters, [row["result"] for row in requests if row["text"] == "GET /after"] == ["200"], requests)
    data = pathlib.Path(path).read_bytes()
    assert b"secret-of-the-body" not in data and len(data) < 5_000_000, len(data)


def case_switched():
    def serve(connection):
        head_read(connection)
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
        while connection.recv(4096):
            connection.sendall(b"HTTP/1.1 200 OK\r\nnot what it seems")

    peer = Peer(serve)
    requests, counters, _ = record(f"""
s = connect({peer.port})
s.sendall(b"GET /socket HTTP/1.1\\r\\nHost: x\\r\\nUpgrade: x\\r\\nConnection: upgrade\\r\\n\\r\\n")
s.recv(4096)
for _ in range(20):
    s.sendall(b"GET /inside HTTP/1.1\\r\\n\\r\\n")
    s.recv(4096)
""")
    assert not [row for row in requests if "inside" in row["text"]], requests
    sure(counters, counters["io.connections.switched"] == 1, counters)


def case_dies():
    peer = Peer(lambda connection: head_read(connection))
    requests, counters, _ = record(f"""
s = connect({peer.port})
s.sendall(b"GET /last HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
os.kill(os.getpid(), signal.SIGKILL)
""", status=128 + 9)
    sure(counters, [row["unanswered"] for row in requests] == [1], requests)


def case_execs():
    """What was asked before an exec is answered after it."""
    peer = Peer(lambda connection: [(head_read(connection), answer(connection)) for _ in range(2)])
    requests, counters, _ = record(f"""
s = connect({peer.port}); s.set_inheritable(True)
s.sendall(b"GET /first HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
s.recv(4096)
s.sendall(b"GET /second HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
os.execv("/usr/bin/python3", ["python3", "-c", f"import socket; print(socket.socket(fileno={{s.fileno()}}).recv(4096))"])
""")
    first = [row for row in requests if row["text"] == "GET /first"]
    sure(counters, [row["result"] for row in first] == ["200"], requests)
    sure(counters, sum(row["count"] for row in requests if row["text"] == "GET /second") == 1, requests)


def case_many():
    """More connections at once than anybody needs; every one has its request."""
    peer = Peer(lambda connection: threading.Thread(target=lambda: (head_read(connection), answer(connection)),
                                                    daemon=True).start())
    requests, counters, _ = record(f"""
all = [connect({peer.port}) for _ in range(400)]
for i, s in enumerate(all): s.sendall(b"GET /%d HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" % i)
for s in all: s.recv(4096)
""")
    seen = sum(row["count"] for row in requests if row["text"] == "GET /?" and row["result"] == "200")
    # Each connection has one: whatever was lost of it, more than that one it cannot cost.
    between("requests", seen, 400 - lost_of(counters), 400)


try:
    if tier == "kernel":
        need_kernel_tier()
    globals()["case_" + name]()
    print("ok")
finally:
    lab.close()
