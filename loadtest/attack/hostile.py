"""What the drivers that attack as users and on the bus have in common: checks, a system of their own, users."""

import argparse
import contextlib
import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PATIENCE_SECONDS = 30


class Checks:
    """Counts what held, and says at once what did not."""

    def __init__(self):
        self.held = 0
        self.failed = []

    def check(self, name, holds, detail=""):
        """Notes whether the rule `name` held; `detail` says what was seen if it did not."""
        if holds:
            self.held += 1
            print(f"held    {name}", flush=True)
            return
        self.failed.append(name)
        print(f"FAILED  {name}: {str(detail)[-600:]}", flush=True)

    def close(self):
        """Prints the count, and gives the exit status."""
        print(f"\n{self.held + len(self.failed)} checks, {len(self.failed)} failed")
        for name in self.failed:
            print(f"  {name}")
        return 1 if self.failed else 0


def until(condition, seconds=PATIENCE_SECONDS):
    """Asks `condition` until it gives something, and gives that; the last answer when the time is over."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer or time.monotonic() > end:
            return answer
        time.sleep(0.05)


def arguments(text):
    """The options that every driver has."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--binary", default="muster", help="the muster to attack")
    parser.add_argument("--keep", action="store_true", help="leave the folder of the attack behind")
    return parser


@contextlib.contextmanager
def folder(keep):
    """A folder that everybody may enter, gone afterwards."""
    path = tempfile.mkdtemp(prefix="muster-attack-")
    os.chmod(path, 0o711)
    try:
        yield path
    finally:
        print(f"the folder is {path}") if keep else shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def two_users(names=("faa", "fbb")):
    """Two ordinary users, made if they are missing; those that were made are removed."""
    made = [name for name in names if not exists(name)]
    for name in made:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", name], check=True)
    try:
        yield [User(name) for name in names]
    finally:
        for name in made:
            subprocess.run(["userdel", "--remove", name], check=False, capture_output=True)


def exists(name):
    """Whether there is a login of this name."""
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False


class User:
    """A login, and how programs run as it."""

    def __init__(self, name):
        entry = pwd.getpwnam(name)
        self.name, self.uid, self.gid, self.home = name, entry.pw_uid, entry.pw_gid, entry.pw_dir

    def environment(self, **more):
        """What a login would have, and `more`."""
        basis = {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "PATH": "/usr/local/bin:/usr/bin:/bin"}
        return {**basis, "TZ": "UTC", **more}

    def run(self, *command, stdin="", seconds=PATIENCE_SECONDS, **more):
        """Runs a command as this user. A command that does not end has status 124."""
        try:
            return subprocess.run(
                command, input=stdin, text=True, errors="replace", timeout=seconds, cwd=self.home, capture_output=True,
                env=self.environment(**more), user=self.uid, group=self.gid, extra_groups=[],
            )
        except subprocess.TimeoutExpired as late:
            said = [part.decode(errors="replace") if isinstance(part, bytes) else part or "" for part in (late.stdout, late.stderr)]
            return subprocess.CompletedProcess(command, 124, *said)

    def call(self, function, *words):
        """What a function of ours gives when this user runs it, in a process of his."""
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.setgroups([])
            os.setresgid(self.gid, self.gid, self.gid)
            os.setresuid(self.uid, self.uid, self.uid)
            with os.fdopen(writer, "w", encoding="utf-8") as pipe:
                json.dump(function(*words), pipe)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
        return json.loads(said)

    def write(self, name, text, mode=0o644):
        """A file in the user's home, of that user."""
        path = os.path.join(self.home, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chown(path, self.uid, self.gid)
        os.chmod(path, mode)
        return path


class System:
    """A `muster up` in a folder of its own."""

    def __init__(self, binary, where, configuration="", nodes=2, cpus=4):
        self.binary, self.where = shutil.which(binary) or os.path.abspath(binary), where
        self.data = os.path.join(where, "data")
        self.socket = os.path.join(self.data, "muster.sock")
        self.log = os.path.join(where, "up.log")
        self.nodes, self.cpus = nodes, cpus
        self.configuration = os.path.join(where, "muster.toml")
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write(configuration)

    def __enter__(self):
        size = ["--nodes", str(self.nodes), "--cpus", str(self.cpus), "--memory", "2G"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "up", *size, "--data", self.data, "--config", self.configuration],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            )
        if not until(self.is_ready):
            raise SystemExit(f"muster up does not get ready: {self.said()}")
        return self

    def __exit__(self, *_):
        self.root("cancel", "--matching")
        until(lambda: not json.loads(self.root("jobs", "--json").stdout or "[]"), 10)
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def is_ready(self):
        """All nodes are up."""
        return "muster is ready" in self.said() or self.process.poll() is not None

    def said(self):
        """What the processes wrote."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def root(self, *words, seconds=PATIENCE_SECONDS):
        """A command of root."""
        environment = {**os.environ, "MUSTER_DATA": self.data, "TZ": "UTC"}
        return subprocess.run(
            [self.binary, *words], env=environment, text=True, errors="replace", capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL
        )

    def of(self, user, *words, **more):
        """A muster command of a user."""
        return user.run(self.binary, *words, MUSTER_DATA=self.data, **more)

    def submit(self, user, *words, **more):
        """Submits as a user, and gives the number."""
        answer = self.of(user, "submit", "--parsable", *words, **more)
        if answer.returncode:
            raise SystemExit(f"{user.name} cannot submit {words}: {answer.stderr}")
        return answer.stdout.strip()

    def state(self, job):
        """The state of a job as JSON has it, with its outcome."""
        shown = json.loads(self.root("job", "show", "--json", job).stdout or "[]")
        return json.dumps(shown)

    def wait(self, job):
        """Waits until a job has ended."""
        return self.root("job", "wait", job)

    def is_running(self, job):
        """Whether it runs."""
        return job in self.root("jobs", "-s", "running").stdout.split()

    def http(self, user, method, path, body=None, **headers):
        """A raw request over the socket by a user, as the kernel vouches: status and text of the answer."""
        return user.call(request, self.socket, method, path, body, headers)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def request(where, method, path, body=None, headers=None):
    """One request to a socket (a path) or to `host:port`: status and text of the answer, or 0 and what went wrong."""
    connection = UnixConnection(where) if where.startswith("/") else http.client.HTTPConnection(where, timeout=10)
    content = {"Content-Type": "application/json"} if body is not None else {}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), {**content, **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.read(1 << 20).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error)
    finally:
        connection.close()
