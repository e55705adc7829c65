#!/usr/bin/python3
"""Waits once for each kind of thing an fd can be, and says what it waited for: one line of JSON a
thing, [kind, flags, name]. The other side is a thread, which lets every wait last HOLD_S, and those on the network
as long as is asked for; with "seen" that begins when whoever started us has looked at the wait (tests/truth/seen.py).

    objects_waited.py [SECONDS [seen]]
"""

import json
import os
import pathlib
import select
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
import seen  # noqa: E402

HOLD_S = 0.15
FUTEX = {"x86_64": "202", "aarch64": "98"}.get(os.uname().machine)
CLIENT, SERVER, LISTENING, LOCAL = 1, 2, 4, 8


def above(name):
    """Whoever of this name has started us."""
    pid = os.getpid()
    while pathlib.Path(f"/proc/{pid}/comm").read_text().strip() != name:
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


RECORDER = above("whyslow") if sys.argv[2:] == ["seen"] else None


def main_waits():
    """Whether the first thread sleeps in a call, for certain: of one that does not the kernel names none. Python's own lock
    is a futex."""
    call = pathlib.Path(f"/proc/self/task/{os.getpid()}/syscall").read_text().split()[0]
    return call not in ("running", "-1", FUTEX)


def waited(kind, flags, name, wait, end):
    """`wait` blocks until `end` is called, by another thread, once it does."""
    hold_s = float(sys.argv[1]) if len(sys.argv) > 1 and "127.0.0.1" in name else HOLD_S

    def ends_it():
        while not main_waits():
            time.sleep(seen.PAUSE_S)
        watch = seen.Watch(only=os.getpid())
        while RECORDER and watch.look(RECORDER, [os.getpid()]) is None:
            time.sleep(seen.PAUSE_S)
        time.sleep(hold_s)
        end()

    other = threading.Thread(target=ends_it)
    other.start()
    wait()
    other.join()
    print(json.dumps([kind, flags, name]))


def inode(fd):
    return os.fstat(fd).st_ino


def connected(listener, address):
    client = socket.socket(listener.family, socket.SOCK_STREAM)
    client.connect(address)
    return client, listener.accept()[0]


def sockets(listener, address, name):
    extra = []
    waited("socket", LISTENING | LOCAL, name, lambda: extra.append(listener.accept()),
           lambda: extra.append(connected_client(listener.family, address)))
    client, server = connected(listener, address)
    waited("socket", CLIENT | LOCAL, name, lambda: client.recv(1), lambda: server.send(b"x"))
    waited("socket", SERVER | LOCAL, f"client of {name}", lambda: server.recv(1), lambda: client.send(b"x"))


def connected_client(family, address):
    client = socket.socket(family, socket.SOCK_STREAM)
    client.connect(address)
    return client


def main():
    folder = tempfile.mkdtemp(prefix="whyslow-waited-")
    ends = os.pipe()
    waited("pipe", 0, f"pipe:[{inode(ends[0])}]", lambda: os.read(ends[0], 1), lambda: os.write(ends[1], b"x"))
    fifo = f"{folder}/new\nline"
    os.mkfifo(fifo)
    fd = os.open(fifo, os.O_RDWR)
    waited("pipe", 0, fifo, lambda: os.read(fd, 1), lambda: os.write(fd, b"x"))
    event = os.eventfd(0)
    waited("event", 0, "[eventfd]", lambda: os.eventfd_read(event), lambda: os.eventfd_write(event, 1))
    epoll = select.epoll()
    epoll.register(ends[0], select.EPOLLIN)
    waited("poll_set", 0, "[eventpoll]", epoll.poll, lambda: os.write(ends[1], b"x"))
    outer, inner = os.openpty()
    waited("char_device", 0, os.ttyname(inner), lambda: os.read(inner, 2), lambda: os.write(outer, b"x\n"))
    listener = socket.create_server(("127.0.0.1", 0))
    sockets(listener, listener.getsockname(), f"127.0.0.1:{listener.getsockname()[1]}")
    path = f"{folder}/x.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    sockets(listener, path, f"unix:{path}")
    one, two = socket.socketpair()
    waited("socket", LOCAL, f"socket:[{inode(one.fileno())}]", lambda: one.recv(1), lambda: two.send(b"x"))
    os.unlink(path)
    os.unlink(fifo)
    os.rmdir(folder)


main()
