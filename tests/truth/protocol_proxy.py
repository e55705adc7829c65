"""A proxy on loopback between a real client and a real server that notes every piece it passes on.

One JSON line a piece, in the order in which they went by, seen from the client:

    {"conn": 1, "dir": "out", "time": 123456, "head": "474554…", "bytes": 78}

`dir` is "out" (the client asks), "in" (the server answers) or "end" (the connection is gone); `time`
is in nanoseconds; `head` is at most the first `head_bytes` of the piece in hex, `bytes` all it had.
`protocols_dump` reads such a file. A piece is noted before it is passed on, so that an answer never
stands before its question.

    with Proxy(folder / "pieces", ("127.0.0.1", 5432)) as proxy:
        subprocess.run(["psql", "-h", "127.0.0.1", "-p", str(proxy.port), …])
"""

import json
import socket
import subprocess
import threading
import time

HEAD_BYTES = 1024
PIECE_BYTES = 1 << 16
PATIENCE_S = 600


class Proxy:
    """`server` is (host, port) or the path of a Unix socket; `kind` "tcp" or "udp". `piece_bytes` is how much
    a single read takes, to have messages in many pieces."""

    def __init__(self, dump, server, kind="tcp", head_bytes=HEAD_BYTES, piece_bytes=PIECE_BYTES):
        self.dump = open(dump, "w")
        self.server = server
        self.kind = kind
        self.head_bytes = head_bytes
        self.piece_bytes = piece_bytes
        self.lock = threading.Lock()
        self.threads = []
        self.connections = 0
        self.sockets = []
        self.closing = False

    def __enter__(self):
        kind = socket.SOCK_STREAM if self.kind == "tcp" else socket.SOCK_DGRAM
        self.listener = socket.socket(socket.AF_INET, kind)
        self.listener.bind(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        if self.kind == "tcp":
            self.listener.listen(128)
        else:
            self.listener.settimeout(0.1)
        self.spawn(self.accept if self.kind == "tcp" else self.datagrams)
        return self

    def __exit__(self, *_):
        """Waits for connections to end by themselves for a moment: what is still open then is cut."""
        end = time.monotonic() + 2
        while self.kind == "tcp" and time.monotonic() < end and any(t.is_alive() for t in self.threads[1:]):
            time.sleep(0.01)
        self.closing = True
        for each in [self.listener, *self.sockets] if self.kind == "tcp" else []:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join(PATIENCE_S)
        self.listener.close()
        for each in self.sockets:
            each.close()
        self.dump.close()

    def spawn(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def note(self, conn, way, data=b""):
        with self.lock:
            json.dump({"conn": conn, "dir": way, "time": time.monotonic_ns(), "head": data[:self.head_bytes].hex(),
                       "bytes": len(data)}, self.dump)
            self.dump.write("\n")

    def accept(self):
        while not self.closing:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            if isinstance(self.server, tuple):
                server = socket.create_connection(self.server)
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            else:
                server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                server.connect(str(self.server))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets += [client, server]
            left = [2]
            self.spawn(self.pass_on, self.connections, "out", client, server, left)
            self.spawn(self.pass_on, self.connections, "in", server, client, left)

    def pass_on(self, conn, way, source, sink, left):
        try:
            while data := source.recv(self.piece_bytes):
                self.note(conn, way, data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        with self.lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            self.note(conn, "end")

    def datagrams(self):
        """Every client's address is a connection of its own."""
        clients = {}
        while not self.closing:
            try:
                data, address = self.listener.recvfrom(PIECE_BYTES)
            except OSError:
                continue
            if not data:
                continue
            if address not in clients:
                self.connections += 1
                server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                server.connect(self.server)
                server.settimeout(0.1)
                clients[address] = (self.connections, server)
                self.sockets.append(server)
                self.spawn(self.answers, self.connections, server, address)
            conn, server = clients[address]
            self.note(conn, "out", data)
            server.send(data)

    def answers(self, conn, server, address):
        while not self.closing:
            try:
                data = server.recv(PIECE_BYTES)
            except TimeoutError:
                continue
            except OSError:
                return
            if data:
                self.note(conn, "in", data)
                self.listener.sendto(data, address)


def requests_of(tool, dump, *options):
    """What the tool makes of a dump: its lines by kind, "request", "service" and "connection"."""
    done = subprocess.run([tool, *options, dump], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, (done.returncode, done.stderr)
    kinds = {"request": [], "service": [], "connection": []}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        kinds[row["kind"]].append(row)
    return kinds
