"""Real servers for tests and benchmarks: started in a folder of their own, on a socket there,
stopped at the end, without anything of the machine's own configuration.

Both run as an unprivileged user when we are root: PostgreSQL refuses to be root.
"""

import glob
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import time

from seen import asleep, below

PATIENCE_S = 600  # for what hangs: tools/run_tests allows 900


def unprivileged(folder):
    """Gives the folder to a user that servers may be, and says how to become it."""
    if os.geteuid() != 0:
        return []
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


PORTS = iter(range(10000 + os.getpid() * 17 % 20000, 65536))


def free_port(kind=socket.SOCK_STREAM):
    """One that nobody has and the kernel gives to nobody (it gives out those from 32768 on); other tests begin
    elsewhere."""
    for port in PORTS:
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError("no port is free")


class Server:
    """A running program; `with` ends it."""

    ends_by = signal.SIGINT

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.folder.chmod(0o755)
        self.who = unprivileged(self.folder)
        # Not what the machine's libpq or HOME say.
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        self.environment.update(HOME=str(self.folder), LC_ALL="C")
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.send_signal(self.ends_by)
            try:
                self.process.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def spawn(self, *command):
        log = open(self.folder / "log", "w")
        # A session of its own: a Ctrl-C at the test is not the server's.
        self.process = subprocess.Popen([*self.who, *command], cwd=self.folder, env=self.environment, stdout=log,
                                        stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)

    def ask(self, *command, **more):
        done = subprocess.run([*self.who, *command], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              check=False, timeout=PATIENCE_S, **more)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def background(self, *command, **more):
        return subprocess.Popen([*self.who, *command], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                stderr=subprocess.STDOUT, text=True, **{"stdout": subprocess.PIPE, **more})

    def wait_ready(self, ready):
        end = time.monotonic() + PATIENCE_S
        while not ready():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.05)

    def wait_idle(self):
        """Until it has done what follows an answer: then all of it sleeps. Its threads are looked at one after the other,
        and one that is looked at late may have woken one that slept: none has run between two looks."""
        def sleeps():
            try:
                first, second = (asleep([self.process.pid, *below(self.process.pid)]) for _ in range(2))
            except OSError:  # a process that ends just now
                return False
            return first is not None and first == second

        self.wait_ready(sleeps)


class Redis(Server):
    """redis-server on a Unix socket, without persistence."""

    missing = "redis-server and redis-tools"

    @staticmethod
    def there():
        return all(map(shutil.which, ("redis-server", "redis-cli", "redis-benchmark")))

    def start(self):
        self.socket = str(self.folder / "redis.sock")
        self.spawn("redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no",
                   "--daemonize", "no", "--dir", str(self.folder))
        self.wait_ready(lambda: subprocess.run(["redis-cli", "-s", self.socket, "ping"], capture_output=True,
                                               check=False).stdout == b"PONG\n")
        self.pid = self.process.pid

    def watch(self):
        """One session that asks for all figures ten times a second; ends with its process."""
        return subprocess.Popen([*self.who, "redis-cli", "-s", self.socket, "-r", "-1", "-i", "0.1", "info", "all"],
                                cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=open(self.folder / "watched", "w"), stderr=subprocess.STDOUT)

    def watched(self):
        """What it said: the main thread's CPU time and that of commands, in us by time in us."""
        rows, row = [], {}
        for line in (self.folder / "watched").read_text().splitlines():
            key, _, value = line.strip().partition(":")
            if key == "redis_version":
                row = {"commands": 0, "cpu": 0}
                rows.append(row)
            elif key == "server_time_usec":
                row["time"] = int(value)
            elif key in ("used_cpu_user_main_thread", "used_cpu_sys_main_thread"):
                row["cpu"] += float(value) * 1e6
            elif key.startswith("cmdstat_"):
                row["commands"] += int(dict(part.split("=") for part in value.split(","))["usec"])
        return rows[:-1]  # the last may be cut off

    def benchmark(self, requests, **more):
        return self.background("redis-benchmark", "-s", self.socket, "-t", "set", "-c", "8", "-n", str(requests), "--csv",
                               **more)


class Nginx(Server):
    """nginx on a port of its own, one worker, with an access log that says what it served."""

    missing = "nginx-light"
    more = ""  # lines for the server block

    @staticmethod
    def program():
        return shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")

    @staticmethod
    def there():
        return Nginx.program() is not None

    def start(self):
        self.port = free_port()
        root = self.folder / "root"
        root.mkdir()
        root.chmod(0o755)
        (root / "index.html").write_text("<html>hello</html>\n" * 30)
        (root / "large.bin").write_bytes(bytes(range(256)) * 4096)
        (self.folder / "nginx.conf").write_text(f"""
            daemon off; worker_processes 1; pid {self.folder}/pid; error_log {self.folder}/error.log;
            events {{ worker_connections 512; }}
            http {{
                log_format plain '$request_method $request_uri $status $body_bytes_sent $request_time $connection '
                                 '$connection_requests';
                access_log {self.folder}/access.log plain; client_body_temp_path {self.folder}/body;
                proxy_temp_path {self.folder}/proxy; fastcgi_temp_path {self.folder}/fastcgi;
                uwsgi_temp_path {self.folder}/uwsgi; scgi_temp_path {self.folder}/scgi;
                client_max_body_size 200m; keepalive_requests 100000000;
                server {{ listen 127.0.0.1:{self.port}; root {root}; {self.more} }}
            }}""")
        self.spawn(self.program(), "-p", str(self.folder), "-c", str(self.folder / "nginx.conf"))
        self.url = f"http://127.0.0.1:{self.port}"
        self.wait_ready(lambda: subprocess.run(["curl", "-sf", "-o", "/dev/null", f"{self.url}/index.html"],
                                               check=False).returncode == 0)
        self.pid = self.process.pid
        self.served()

    def served(self):
        """Rows of the access log since the last look: method, uri, status, bytes, seconds, connection, number."""
        self.wait_idle()  # it is written after the answer
        rows = [line.split() for line in (self.folder / "access.log").read_text().splitlines()]
        seen, self.looked = getattr(self, "looked", 0), len(rows)
        return rows[seen:]


class MariaDB(Server):
    """A server of its own on a socket and a port, with what it says about statements."""

    missing = "mariadb-server and mariadb-client"
    ends_by = signal.SIGTERM  # it does not mind SIGINT

    @staticmethod
    def program():
        return shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin")

    @staticmethod
    def there():
        return MariaDB.program() is not None and shutil.which("mariadb") and shutil.which("mariadb-install-db")

    def start(self):
        data = self.folder / "data"
        self.port = free_port()
        self.socket = str(self.folder / "m.sock")
        # Made by us, or it would be the server's own user's to make.
        data.mkdir()
        if os.geteuid() == 0:
            os.chown(data, os.stat(self.folder).st_uid, os.stat(self.folder).st_gid)
        self.ask("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal",
                 "--skip-test-db", f"--tmpdir={self.folder}")  # names in /tmp are the same for two at a time
        self.spawn(self.program(), "--no-defaults", f"--datadir={data}", f"--socket={self.socket}", f"--port={self.port}",
                   "--bind-address=127.0.0.1", f"--pid-file={self.folder}/pid", f"--tmpdir={self.folder}", "--performance-schema=ON",
                   "--performance-schema-consumer-events-statements-history-long=ON",
                   "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M")
        self.at = ["--no-defaults", "-u", "root", f"--socket={self.socket}"]
        self.wait_ready(lambda: subprocess.run(["mariadb-admin", *self.at, "ping"], capture_output=True,
                                               check=False).returncode == 0)
        self.ask("mariadb", *self.at, "-e", "CREATE DATABASE shop; CREATE USER app@localhost IDENTIFIED BY 'secret-word';"
                 "GRANT ALL ON shop.* TO app@localhost; CREATE USER app@'127.0.0.1' IDENTIFIED BY 'secret-word';"
                 "GRANT ALL ON shop.* TO app@'127.0.0.1'")
        self.pid = self.process.pid

    def sql(self, text):
        return self.ask("mariadb", *self.at, "-N", "-B", "-e", text)


class PostgreSQL(Server):
    """A cluster of its own on a Unix socket, with durability as it comes."""

    missing = "postgresql and postgresql-contrib"

    @staticmethod
    def programs():
        """The folder of the newest version; Debian does not put it into PATH."""
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/pgbench"), key=lambda p: float(p.split("/")[4]))
        return pathlib.Path(found[-1]).parent if found else None

    @staticmethod
    def there():
        return PostgreSQL.programs() is not None

    settings = ()  # more of them, as for -c

    def start(self):
        self.bin = self.programs()
        data = self.folder / "data"
        self.ask(self.bin / "initdb", "-D", data, "-U", "bench", "-A", "trust", "--no-sync", "--locale=C")
        self.spawn(self.bin / "postgres", "-D", data, "-c", "listen_addresses=", "-c",
                   f"unix_socket_directories={self.folder}", "-c", "autovacuum=off", "-c", "jit=off",
                   *(word for setting in self.settings for word in ("-c", setting)))
        self.at = ["-h", str(self.folder), "-U", "bench"]
        self.wait_ready(lambda: subprocess.run([self.bin / "pg_isready", "-q", *self.at], check=False).returncode == 0)
        self.ask(self.bin / "pgbench", *self.at, "-i", "-q", "-s", "1", "postgres")
        self.pid = self.process.pid

    def sql(self, text):
        return self.ask(self.bin / "psql", *self.at, "-XAtq", "postgres", "-c", text)

    def benchmark(self, seconds=None, transactions=None, clients=8):
        amount = ["-T", str(seconds)] if seconds else ["-t", str(transactions)]
        # One branch: everybody waits for its row.
        return self.background(self.bin / "pgbench", *self.at, "-n", "-c", str(clients), "-j", "2", *amount, "postgres")

    def watch(self, query, every_s):
        """One session that asks again and again; ends with its process."""
        process = subprocess.Popen([*self.who, self.bin / "psql", *self.at, "-XAtq", "postgres"], cwd=self.folder,
                                   env=self.environment, stdin=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdout=open(self.folder / "watched", "w"), text=True)
        process.stdin.write(f"{query} \\watch {every_s}\n")
        process.stdin.flush()
        return process
