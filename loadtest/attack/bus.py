#!/usr/bin/env python3
"""Hostile roles on the bus: a whole cluster on a real NATS server with the users of `ops/nats`, each of whom turns bad.

    loadtest/attack/bus.py --binary target/release/muster --nats-server nats-server
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from hostile import Checks, arguments, folder, until

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECRET = "password-of-an-honest-user"
RUBBISH = 8000
"""Hostile messages in all."""

STREAMS = ("MUSTER_LOG", "MUSTER_EVENTS", "MUSTER_NOTIFY", "MUSTER_FILTERS", "MUSTER_CHECKS", "MUSTER_ROUNDS")
SUBJECTS = (
    "muster.log", "muster.log-stored", "muster.log-claimed", "muster.reign", "muster.rounds", "muster.rounds-kept", "muster.ledgers.head1",
    "muster.command.ledger.head1", "muster.events.job.started.1", "muster.notify", "muster.filters", "muster.checks",
    "muster.command.user", "muster.command.planner", "muster.command.notifier", "muster.command.query", "muster.command.head",
    "muster.command.node.node1", "muster.command.node.node2", "muster.command.heartbeat.node1", "muster.command.heartbeat.node2",
    "muster.command.content.node1", "muster.command.content.node2",
    "muster.command.runner.r1", "muster.command.runner-heartbeat.r1", "muster.node.node1.order", "muster.node.node2.order",
    "muster.io.1.0.all.read.node2", "muster.planner.external", "muster.accounting.usage", "muster.integration.STREAM.DELETE.MUSTER_EVENTS",
    "muster.mirror.deliver.x", "muster.fence.node1.node2", "muster.fence.node2.node1",
)
# What each role says and hears of all this, by its purpose as DESIGN and the book have it. Everything else is refused.
SAYS = {
    "planner": {"muster.command.planner", "muster.planner.external", "muster.command.query"},
    "planner-external": set(),
    "notifier": {"muster.command.notifier"},
    "filter-runner": {"muster.command.runner.r1", "muster.command.runner-heartbeat.r1"},
    "accounting": {"muster.command.query"},
    "gateway": {"muster.command.user", "muster.accounting.usage", "muster.io.1.0.all.read.node2", "muster.command.query"},
    "gateway-agents": {
        "muster.command.user", "muster.accounting.usage", "muster.io.1.0.all.read.node2", "muster.command.query", "muster.command.node.node1",
        "muster.command.node.node2", "muster.command.heartbeat.node1", "muster.command.heartbeat.node2", "muster.command.content.node1",
        "muster.command.content.node2",
    },
    "executor-node1": {
        "muster.command.node.node1", "muster.command.heartbeat.node1", "muster.command.content.node1", "muster.command.head",
        "muster.fence.node2.node1",
    },
    "integration": set(),
}
HEARS = {
    "planner": {"muster.log-stored", "muster.reign"}, "planner-external": {"muster.planner.external"}, "notifier": {"muster.reign"},
    "filter-runner": {"muster.reign"}, "accounting": {"muster.log-stored", "muster.accounting.usage", "muster.reign"},
    "gateway": {"muster.log-stored", "muster.reign", "muster.ledgers.head1"},
    "gateway-agents": {"muster.log-stored", "muster.reign", "muster.ledgers.head1"},
    "executor-node1": {"muster.node.node1.order", "muster.fence.node1.node2", "muster.reign"}, "integration": set(),
}
WIDE = (">", "*.>", "muster.>", "muster.*.>", "muster.command.>", "muster.node.*.order", "muster.io.>", "$JS.>", "$JS.API.>", "$SYS.>", "_INBOX_gateway.>", "_INBOX_ledger.>", "muster.command.ledger.>", "muster.rounds.>", "_INBOX*.>", "*.*.*")


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--nats-server", default="nats-server", help="the NATS server")
    parser.add_argument("attacks", nargs="*", help="only these attacks")
    options = parser.parse_args()
    checks = Checks()
    with folder(options.keep) as where:
        for attack in chosen(options.attacks):
            print(f"\n== {attack.__name__}: {attack.__doc__.splitlines()[0]}")
            with Cluster(options, os.path.join(where, attack.__name__)) as cluster:
                attack(checks, cluster)
                panics = cluster.panics()
                checks.check(f"{attack.__name__}: nobody panics", not panics, panics)
    return checks.close()


def chosen(names):
    """The attacks to make."""
    every = (permissions, eavesdropping, consumers, node_reads, rubbish, poisoned_streams, two_ledgers)
    return [attack for attack in every if not names or attack.__name__ in names]


class Cluster:
    """`ops/local-cluster` on a port of its own: every role a process."""

    def __init__(self, options, where):
        self.binary, self.where = shutil.which(options.binary) or os.path.abspath(options.binary), where
        self.data, self.port = os.path.join(where, "data"), free_port()
        self.environment = {
            **os.environ, "MUSTER_BINARY": self.binary, "MUSTER_NATS_SERVER": options.nats_server, "MUSTER_NATS_PORT": str(self.port), "MUSTER_DATA": self.data,
        }
        self.others = []

    def __enter__(self):
        self.script("start", "2", "4")
        return self

    def __exit__(self, *_):
        self.muster("cancel", "--matching")
        until(lambda: self.muster("jobs").stdout.count("\n") < 2, 10)
        for process in self.others:
            process.kill()
            process.wait()
        for name in reversed(self.names()):
            with contextlib.suppress(OSError, ValueError):
                os.kill(self.pid(name), signal.SIGTERM)
        until(lambda: not any(self.runs(name) for name in self.names()), 10)
        for name in self.names():
            with contextlib.suppress(OSError, ValueError):
                os.kill(self.pid(name), signal.SIGKILL)

    def script(self, verb, *words):
        """A verb of ops/local-cluster."""
        answer = subprocess.run(
            [os.path.join(REPOSITORY, "ops/local-cluster"), verb, self.where, *words], env=self.environment, text=True, capture_output=True, timeout=120,
            stdin=subprocess.DEVNULL,
        )
        if answer.returncode:
            raise SystemExit(f"local-cluster {verb}: {answer.stderr}")

    def names(self):
        """The processes."""
        return ["nats", "ledger", "planner", "accounting", "notifier", "filter-runner", "gateway", "node1", "node2"]

    def pid(self, name):
        """The process of a role."""
        with open(os.path.join(self.where, "run", f"{name}.pid"), encoding="utf-8") as file:
            return int(file.read())

    def runs(self, name):
        """Whether a role's process is there and is no zombie."""
        try:
            with open(f"/proc/{self.pid(name)}/stat", encoding="utf-8") as file:
                return file.read().rsplit(")", 1)[1].split()[0] != "Z"
        except (OSError, ValueError):
            return False

    def muster(self, *words, seconds=30):
        """A command of whoever runs this."""
        try:
            return subprocess.run(
                [self.binary, *words], env=self.environment, text=True, errors="replace", capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 124, "", "no answer in time")

    def works(self):
        """A job goes through: submitted, started on a node, ended."""
        return self.muster("submit", "--wait", "-o", "/dev/null", "--", "true", seconds=40).returncode == 0

    def said(self, name):
        """The log of a role."""
        with open(os.path.join(self.where, "log", f"{name}.log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def panics(self):
        """The roles whose logs tell of a panic."""
        logs = os.path.join(self.where, "log")
        return [name for name in os.listdir(logs) if "panicked" in self.said(name.removesuffix(".log"))]

    def client(self, role):
        """A connection with the credentials of a role."""
        with open(os.path.join(self.where, "etc", f"{role}.password"), encoding="utf-8") as file:
            return Nats(self.port, role, file.read().strip())


def free_port():
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Nats:
    """As much of a NATS client as an attacker needs."""

    def __init__(self, port, user, password):
        self.user, self.messages, self.errors, self.next_sid, self.rest = user, [], [], 1, b""
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        options = {"user": user, "pass": password, "verbose": False, "pedantic": False, "headers": True, "no_responders": True, "lang": "hostile", "version": "1"}
        self.send(f"CONNECT {json.dumps(options)}\r\n")
        self.settle()

    def send(self, text, payload=b""):
        """Raw words of the protocol."""
        self.socket.sendall(text.encode() + payload)

    def publish(self, subject, payload=b"", reply=""):
        """Says something, and names where the answer is to go."""
        self.send(f"PUB {subject} {reply + ' ' if reply else ''}{len(payload)}\r\n", payload + b"\r\n")

    def subscribe(self, subject):
        """Listens."""
        self.send(f"SUB {subject} {self.next_sid}\r\n")
        self.next_sid += 1

    def settle(self):
        """Waits until the server has seen everything said before, and gives what it refused since the last time."""
        self.send("PING\r\n")
        while not self.take(10):
            pass
        refused, self.errors = self.errors, []
        return refused

    def listen(self, seconds):
        """Listens for a time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.take(left)

    def take(self, seconds):
        """Reads one line of the server; true if it is the answer to a ping."""
        self.socket.settimeout(max(seconds, 0.01))
        try:
            line = self.line()
        except TimeoutError:
            return False
        if line.startswith((b"MSG ", b"HMSG ")):
            words = line.split()
            self.messages.append((words[1].decode(), self.exactly(int(words[-1]) + 2)[:-2]))
        elif line.startswith(b"-ERR"):
            self.errors.append(line.decode())
        elif line == b"PING":
            self.send("PONG\r\n")
        return line == b"PONG"

    def line(self):
        """One line."""
        while b"\r\n" not in self.rest:
            self.fill()
        line, self.rest = self.rest.split(b"\r\n", 1)
        return line

    def exactly(self, size):
        """So many bytes."""
        while len(self.rest) < size:
            self.fill()
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def fill(self):
        """More of what the server says."""
        got = self.socket.recv(1 << 20)
        if not got:
            raise SystemExit(f"the server ended the connection of {self.user}: {self.errors}")
        self.rest += got

    def inbox(self):
        """Where a role hears its answers."""
        return "_INBOX" if self.user == "integration" else f"_INBOX_{self.user}"

    def ask(self, subject, payload=b"", seconds=2):
        """Asks, and gives the answer, or nothing if there is none or the question is not allowed."""
        inbox = f"{self.inbox()}.ask{self.next_sid}"
        self.subscribe(inbox)
        self.publish(subject, payload, inbox)
        if self.settle():
            return None
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            heard = [payload for at, payload in self.messages if at == inbox]
            if heard:
                return heard[0]
            self.take(end - time.monotonic())
        return None


def has_done(answer):
    """Whether JetStream did what it was asked."""
    return bool(answer) and b'"error"' not in answer and not answer.startswith(b"NATS/1.0 503")


def permissions(checks, cluster):
    """What each role can say and hear is what it is there for."""
    for role in SAYS:
        client = cluster.client(role)
        said, heard = set(), set()
        for subject in SUBJECTS:
            client.publish(subject, b"")
            said |= set() if client.settle() else {subject}
            client.subscribe(subject)
            heard |= set() if client.settle() else {subject}
        checks.check(f"permissions: {role} says only what it is there for, of {len(SUBJECTS)} subjects", said == SAYS[role], said ^ SAYS[role])
        checks.check(f"permissions: {role} hears only what it is there for", heard == HEARS[role], heard ^ HEARS[role])
        wide = []
        for subject in WIDE:
            client.subscribe(subject)
            wide += [] if client.settle() or subject == f"_INBOX_{role}.>" else [subject]
        checks.check(f"permissions: {role} listens at no wide subject of {len(WIDE)}", not wide, wide)
    for user, password in (("ledger", ""), ("ledger", "x"), ("", ""), ("admin", "admin"), ("integration", "integration")):
        checks.check(f"permissions: {user!r} with password {password!r} gets in nowhere", not gets_in(cluster.port, user, password))


def gets_in(port, user, password):
    """Whether the server takes these credentials."""
    try:
        Nats(port, user, password).settle()
        return True
    except (SystemExit, OSError):
        return False


def eavesdropping(checks, cluster):
    """Nobody hears answers and secrets of others while jobs with a secret go by (F8)."""
    spies = {role: cluster.client(role) for role in SAYS if role not in ("gateway", "gateway-agents", "planner", "accounting")}
    for client in spies.values():
        for subject in (*SUBJECTS, *WIDE, *(f"_INBOX_{role}.>" for role in SAYS), "_INBOX.>"):
            client.subscribe(subject)
        client.settle()
    for _ in range(20):
        cluster.muster("submit", "-w", "node2", "--env", f"TOKEN={SECRET}", "-o", "/dev/null", "--", "sleep", "600")
        cluster.muster("jobs", "-a", "--json")
        cluster.muster("cancel", "--matching")
    for role, client in spies.items():
        client.listen(0.5)
        foreign = [subject for subject, _ in client.messages if subject.startswith("_INBOX") and not subject.startswith(client.inbox() + ".")]
        secret = [subject for subject, payload in client.messages if SECRET.encode() in payload]
        checks.check(f"eavesdropping: {role} heard no answer meant for another ({len(client.messages)} messages)", not foreign, foreign)
        checks.check(f"eavesdropping: {role} heard no secret of a job of node2", not secret, secret)


def consumers(checks, cluster):
    """Push consumers with a deliver subject at every stream, and all else that JetStream can be asked (F9)."""
    jobs_work(checks, cluster, "consumers: before")
    for role in SAYS:
        client = cluster.client(role)
        done = [name for name, subject, body in ways_of_jetstream() if has_done(client.ask(subject, json.dumps(body).encode(), 0.3))]
        allowed = [name for name in done if role == "integration" and "MUSTER_EVENTS" in name and not re.match("STREAM.(DELETE|PURGE|UPDATE|CREATE)|MSG", name)]
        checks.check(f"consumers: {role} makes JetStream do nothing but what integrations may", set(done) == set(allowed), sorted(set(done) - set(allowed)))
    cluster.muster("submit", "--array", "0-9", "-o", "/dev/null", "--", "true")
    jobs_work(checks, cluster, "consumers: after")
    cluster.script("kill", "ledger")
    cluster.script("restart", "ledger")
    jobs_work(checks, cluster, "consumers: with the ledger started anew")
    told = cluster.said("ledger")
    checks.check("consumers: the log stream is still a log", "no log" not in told, told[-400:])


def ways_of_jetstream():
    """What a hostile role asks of JetStream: a name, the subject, the words."""
    targets = ("muster.log", "muster.log-stored", "muster.command.user", "muster.command.planner", "muster.node.node1.order", "muster.command.query", "_INBOX_gateway.x")
    for stream in STREAMS:
        for at, target in enumerate(targets):
            config = {"deliver_subject": target, "ack_policy": "none", "deliver_policy": "all"}
            name = f"h{at}"
            yield f"CONSUMER.CREATE {stream} to {target}", f"$JS.API.CONSUMER.CREATE.{stream}", {"stream_name": stream, "config": config}
            yield f"CONSUMER.CREATE named {stream} to {target}", f"$JS.API.CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": {**config, "name": name}}
            yield f"CONSUMER.DURABLE {stream} to {target}", f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.d{name}", {"stream_name": stream, "config": {**config, "durable_name": f"d{name}"}}
        pull = {"stream_name": stream, "config": {"durable_name": "workers", "ack_policy": "none"}}
        yield f"CONSUMER.workers {stream}", f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.workers2", pull
        yield f"CONSUMER.DELETE {stream}", f"$JS.API.CONSUMER.DELETE.{stream}.workers", {}
        yield f"STREAM.UPDATE {stream}", f"$JS.API.STREAM.UPDATE.{stream}", {"name": stream, "subjects": ["muster.>"]}
        yield f"STREAM.PURGE {stream}", f"$JS.API.STREAM.PURGE.{stream}", {}
        yield f"STREAM.MSG.DELETE {stream}", f"$JS.API.STREAM.MSG.DELETE.{stream}", {"seq": 1}
        yield f"MSG.GET {stream}", f"$JS.API.STREAM.MSG.GET.{stream}", {"seq": 1}
        yield f"STREAM.SNAPSHOT {stream}", f"$JS.API.STREAM.SNAPSHOT.{stream}", {"deliver_subject": "muster.log"}
        yield f"STREAM.DELETE {stream}", f"$JS.API.STREAM.DELETE.{stream}", {}
    mirror = {"name": "HOSTILE", "subjects": ["muster.command.>"]}
    yield "STREAM.CREATE over commands", "$JS.API.STREAM.CREATE.HOSTILE", mirror
    yield "STREAM.CREATE mirror", "$JS.API.STREAM.CREATE.HOSTILE2", {"name": "HOSTILE2", "mirror": {"name": "MUSTER_LOG"}}
    yield "STREAM.CREATE republish", "$JS.API.STREAM.CREATE.HOSTILE3", {"name": "HOSTILE3", "subjects": ["x"], "republish": {"src": ">", "dest": "muster.log"}}


def jobs_work(checks, cluster, when):
    """A job goes through."""
    checks.check(f"{when}: a job goes through", cluster.works(), cluster.said("ledger")[-500:])


def node_reads(checks, cluster):
    """An executor reads no records, scripts and jobs of other nodes, and gives no reports for them."""
    script = os.path.join(cluster.where, "secret.sh")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n: {SECRET}\nsleep 600\n")
    job = cluster.muster("submit", "--parsable", "-w", "node2", "--env", f"TOKEN={SECRET}", "-o", "/dev/null", script).stdout.strip()
    until(lambda: job in cluster.muster("jobs", "-s", "running").stdout.split())
    spy = cluster.client("executor-node1")
    answers = [
        spy.ask(subject, body, 0.3) or b""
        for subject in (*SUBJECTS, "muster.command.node.node1", "muster.command.head", "$JS.API.STREAM.MSG.GET.MUSTER_LOG", "$JS.API.DIRECT.GET.MUSTER_LOG.1", "$JS.API.STREAM.MSG.GET.MUSTER_ROUNDS")
        for body in queries(job)
    ]
    checks.check(f"node_reads: none of {len(answers)} questions of node1 shows the job of node2", not any(SECRET.encode() in answer for answer in answers))
    checks.check("node_reads: the job of node2 runs on", job in cluster.muster("jobs", "-s", "running").stdout.split())
    up = cluster.muster("nodes").stdout
    checks.check("node_reads: both nodes are up", len(re.findall(r"\bup\b", up)) == 2, up)


def queries(job):
    """Questions and commands in the forms that a hostile node may guess."""
    yield b""
    for text in ({"records": {"from": 1}}, {"job": job}, {"spec": job}, {"script": job}, {"Records": {"from": 1, "limit": 1000}}, {"cancel": {"jobs": {"ids": [job]}}}):
        yield json.dumps(text).encode()


def rubbish(checks, cluster):
    """Thousands of rubbish messages on every subject that a role may speak on."""
    count = 0
    each = RUBBISH // sum(len(subjects) for subjects in SAYS.values()) + 1
    for role, subjects in SAYS.items():
        client = cluster.client(role)
        client.subscribe(f"{client.inbox()}.>")
        for subject in sorted(subjects):
            for number in range(each):
                reply = ("", f"{client.inbox()}.{number}", "muster.log", "muster.node.node1.order")[number % 4]
                client.publish(subject, garbage(number), reply)
                count += 1
            client.settle()
    checks.check(f"rubbish: {count} messages are sent, at least 7,500", count >= 7500, count)
    dead = [name for name in cluster.names() if not cluster.runs(name)]
    checks.check("rubbish: every process lives", not dead, dead)
    jobs_work(checks, cluster, "rubbish")
    checks.check("rubbish: the history verifies", cluster.muster("audit", "verify").returncode == 0)


def garbage(number):
    """Bytes of many kinds: none, noise, JSON of wrong shape and depth, long ones, CBOR and MessagePack heads that promise much."""
    kinds = (
        b"", os.urandom(1 + number % 4096), b"null", b"[]" * 50, b"[" * 5000, b'{"a":' * 3000, b"\xff" * 64, b"\xdb\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff",
        b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", b'{"command":{"cancel":{"jobs":{"ids":["1"]}}}}', b"\x00" * 10000, json.dumps({"id": "x" * 1000}).encode(), b"\x80", b"\x28\xb5\x2f\xfd" + os.urandom(200),
    )
    return kinds[number % len(kinds)]


def poisoned_streams(checks, cluster):
    """Streams with wrong content, foreign ones, none: told, and the ledger goes on."""
    ledger = cluster.client("ledger")
    for name, spoil in (("rubbish in the log stream", rubbish_in_log), ("the log stream deleted", delete_log), ("a foreign log stream", foreign_log), ("the events deleted", delete_events)):
        before = cluster.said("ledger")
        spoil(ledger)
        jobs_work(checks, cluster, f"poisoned_streams: {name}")
        cluster.script("kill", "ledger")
        cluster.script("restart", "ledger")
        jobs_work(checks, cluster, f"poisoned_streams: {name}, ledger started anew")
        told = [line for line in cluster.said("ledger")[len(before):].splitlines() if "WARN" in line or "ERROR" in line]
        print("        it says: " + "; ".join(line.split(": ", 1)[-1][:160] for line in told[:3]))
    checks.check("poisoned_streams: the history verifies", cluster.muster("audit", "verify").returncode == 0)


def rubbish_in_log(ledger):
    """Content that is no commit."""
    for number in range(20):
        ledger.publish("muster.log", garbage(number))
    ledger.settle()


def delete_log(ledger):
    """No stream at all."""
    ledger.ask("$JS.API.STREAM.DELETE.MUSTER_LOG")


def delete_events(ledger):
    """No events."""
    ledger.ask("$JS.API.STREAM.DELETE.MUSTER_EVENTS")


def foreign_log(ledger):
    """A stream of the same name that somebody else made."""
    ledger.ask("$JS.API.STREAM.DELETE.MUSTER_LOG")
    config = {"name": "MUSTER_LOG", "subjects": ["muster.log"], "storage": "memory", "retention": "limits", "max_msgs": 3}
    ledger.ask("$JS.API.STREAM.CREATE.MUSTER_LOG", json.dumps(config).encode())
    rubbish_in_log(ledger)


def two_ledgers(checks, cluster):
    """A copy of the ledger's folder served beside the first: one answers, numbers are never given twice (F10)."""
    jobs_work(checks, cluster, "two_ledgers: before")
    old = copy_of_ledger(cluster, "old")
    given = submissions(cluster, 10)
    second = second_ledger(cluster, old)
    given += submissions(cluster, 30)
    until(lambda: second.poll() is not None or not cluster.runs("ledger"), 20)
    checks.check("two_ledgers: of two that run, at most one goes on", not (cluster.runs("ledger") and second.poll() is None), told_by(cluster, old))
    second.kill()
    second.wait()
    old_beside_paused(checks, cluster, old)
    twin_beside_paused(checks, cluster, given)
    given += submissions(cluster, 5)
    numbers = [number for number in given if number]
    checks.check(f"two_ledgers: {len(numbers)} of {len(given)} numbers, none given twice", len(numbers) == len(set(numbers)), numbers)
    known = set(re.findall(r"^\s*(\d+)\s", cluster.muster("jobs", "-a").stdout, re.MULTILINE))
    checks.check("two_ledgers: every acknowledged job is in the history", set(numbers) <= known, sorted(set(numbers) - known))
    jobs_work(checks, cluster, "two_ledgers: after")
    checks.check("two_ledgers: the history verifies", cluster.muster("audit", "verify").returncode == 0)


def old_beside_paused(checks, cluster, old):
    """An old copy while the first stands still: it has less than the bus, so it must not answer."""
    os.kill(cluster.pid("ledger"), signal.SIGSTOP)
    second = second_ledger(cluster, old)
    wrong = [number for number in submissions(cluster, 2, 8) if number]
    ended = until(lambda: second.poll() is not None, 20)
    checks.check("two_ledgers: an old copy beside a paused ledger acknowledges nothing", not wrong, wrong)
    print(f"        the old copy {'ended' if ended else 'runs'}: {told_by(cluster, old)}")
    second.kill()
    second.wait()
    os.kill(cluster.pid("ledger"), signal.SIGCONT)
    jobs_work(checks, cluster, "two_ledgers: the paused ledger goes on behind the old copy")


def twin_beside_paused(checks, cluster, given):
    """A copy of all that there is takes over from a paused ledger, which then is not the writer any more."""
    os.kill(cluster.pid("ledger"), signal.SIGSTOP)
    twin = copy_of_folder(cluster, "twin")
    second = second_ledger(cluster, twin)
    mine = submissions(cluster, 3, 20)
    print(f"        the twin acknowledged {mine}")
    os.kill(cluster.pid("ledger"), signal.SIGCONT)
    both = submissions(cluster, 10, 20)
    given += mine + both
    until(lambda: second.poll() is not None or not cluster.runs("ledger"), 20)
    checks.check("two_ledgers: beside a twin, at most one goes on", not (cluster.runs("ledger") and second.poll() is None), told_by(cluster, twin))
    print(f"        the first {'runs' if cluster.runs('ledger') else 'has ended'}, the twin {'runs' if second.poll() is None else 'has ended'}: {told_by(cluster, twin)}")


def copy_of_ledger(cluster, name):
    """The folder of a ledger, copied while it does not run."""
    cluster.script("kill", "ledger")
    copy = copy_of_folder(cluster, name)
    cluster.script("restart", "ledger")
    until(cluster.works)
    return copy


def copy_of_folder(cluster, name):
    """What a ledger has on its disk now."""
    copy = os.path.join(cluster.where, name)
    os.mkdir(copy, 0o711)
    shutil.copytree(os.path.join(cluster.data, "ledger"), os.path.join(copy, "ledger"), ignore=shutil.ignore_patterns("*.sock"))
    shutil.copy2(os.path.join(cluster.data, "ledger.key"), copy)
    return copy


def second_ledger(cluster, data):
    """A ledger on a folder of its own with the credentials of the first."""
    with open(os.path.join(cluster.where, "log", f"{os.path.basename(data)}.log"), "ab") as log:
        process = subprocess.Popen(
            [cluster.binary, "serve", "ledger", "--config", os.path.join(cluster.where, "etc/ledger.toml"), "--data", data],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL,
        )
    cluster.others.append(process)
    return process


def submissions(cluster, count, seconds=10):
    """Numbers of jobs submitted; an empty one for each that was not acknowledged."""
    return [cluster.muster("submit", "--parsable", "-o", "/dev/null", "--", "true", seconds=seconds).stdout.strip() for _ in range(count)]


def told_by(cluster, data):
    """The last words of a second ledger."""
    return cluster.said(os.path.basename(data)).strip()[-300:]


if __name__ == "__main__":
    sys.exit(main())
