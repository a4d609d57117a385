#!/usr/bin/env python3
"""Hostile connections, over TCP, TLS and the socket: unfinished bodies and heads, slow ones, tokens that are not right.

Needs root, and makes the users `faa` and `fbb` if they are missing; `openssl` for the attack `tls`. All traffic is on
loopback addresses. `fbb` attacks; `faa` and root are those who must still get in.

    loadtest/attack/tcp.py --binary target/release/muster [ATTACK...]
"""

import contextlib
import json
import os
import re
import resource
import select
import socket
import ssl
import subprocess
import sys
import threading
import time

import raw
from hostile import Checks, System, arguments, folder, two_users, until

TOKENS = {"faa": "faa-secret-token-0123456789", "fbb": "fbb-secret-token-0123456789", "nosuch": "nosuch-secret-token-01234567",
    "root": "root-secret-token-0123456789"}
ATTACKER, HONEST = "127.0.0.1", "127.0.0.2"
"""Addresses, because who has shown no token is counted by address."""
MOST_GROWTH = 450 << 20
"""Resident memory may grow by this much. One caller has 128 MiB on their way at most, and what is read in pieces takes up to
three times as much memory."""


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("attacks", nargs="*", help="only these attacks")
    options = parser.parse_args()
    if os.geteuid():
        raise SystemExit("two users need root")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    checks = Checks()
    every = (
        bodies, chunked_bodies, announced, slow_bodies, heads, few_files, many_addresses, idle, slow_readers, slow_followers, tls, tokens,
        revoked_tokens, job_tokens, early_refusals, refusal_records, pipelining, upgrades,
        components_over_tcp,
    )
    with folder(options.keep) as where, two_users() as (a, b):
        for attack in every:
            if not options.attacks or attack.__name__ in options.attacks:
                print(f"\n== {attack.__name__}: {attack.__doc__.splitlines()[0]}", flush=True)
                own = os.path.join(where, attack.__name__)
                os.mkdir(own, 0o755)
                attack(checks, options.binary, own, a, b)
    return checks.close()


# What attacks share


class Gateway(System):
    """A system with a port, tokens, and what the attack wants of `[gateway]`."""

    def __init__(self, binary, where, more="", files=None, **size):
        self.tokens = os.path.join(where, "tokens")
        write_tokens(self.tokens, TOKENS)
        super().__init__(with_few_files(binary, where, files) if files else binary, where,
            f'[gateway]\nlisten = "127.0.0.1:0"\ntokens_file = "{self.tokens}"\n{more}', **size)

    def __enter__(self):
        super().__enter__()
        self.port = int(re.search(r"listens on TCP.*127\.0\.0\.1:(\d+)", re.sub(r"\x1b\[[0-9;]*m", "", self.said()))[1])
        self.address = (ATTACKER, self.port)
        self.honest_address = (ATTACKER, self.port, HONEST)
        return self

    def memory(self):
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) << 10

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def ask(self, method, path, body=None, headers=(), where=None, user=None, seconds=20):
        """A request; over TCP unless told otherwise."""
        data = raw.request(method, path, b"" if body is None else json.dumps(body).encode(), headers)
        return raw.ask(where or self.address, data, user, method, seconds)


def with_few_files(binary, where, files):
    """A program that is muster with so many open files."""
    path = os.path.join(where, "muster")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nulimit -n {files}\nexec {os.path.abspath(binary)} "$@"\n')
    os.chmod(path, 0o755)
    return path


def write_tokens(path, tokens, mode=0o600):
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(f"{token} {name}\n" for name, token in tokens.items()))
    os.chmod(path, mode)


def bearer(token):
    return f"authorization: Bearer {token}"


def still_in(checks, name, system, honest, over_tcp=True):
    """Others get in and submit: by the socket, as root, and over TCP from an address of their own. Says how long it took."""
    begun = time.monotonic()
    said = system.of(honest, "submit", "--parsable", "--hold", "--", "true")
    checks.check(f"{name}: another user submits by the socket", said.returncode == 0, said)
    said = system.root("submit", "--parsable", "--hold", "--", "true")
    checks.check(f"{name}: root submits", said.returncode == 0, said)
    if over_tcp:
        answer = system.ask("GET", "/v1/info", headers=[bearer(TOKENS["faa"])], where=system.honest_address)
        checks.check(f"{name}: a token from another address is let in", answer.status == 200, answer)
    print(f"        {time.monotonic() - begun:.2f} s for all of them")


def runs_a_job(checks, name, system, honest):
    said = system.of(honest, "submit", "--wait", "-o", "/dev/null", "-e", "/dev/null", "--", "true", seconds=60)
    checks.check(f"{name}: a job runs", said.returncode == 0, said)


def end_well(checks, name, system):
    """It lives, nobody panicked, the history verifies."""
    said = system.said()
    checks.check(f"{name}: nobody panicked", "panicked" not in said and system.process.poll() is None, said[-1500:])
    verified = system.root("audit", "verify", seconds=120)
    checks.check(f"{name}: the history verifies", verified.returncode == 0, verified)


def open_ones(connections):
    """Those that the other side has not ended. What it sent is thrown away."""
    left = []
    for connection in connections:
        connection.setblocking(False)
        try:
            while connection.recv(1 << 16):
                pass
        except BlockingIOError:
            left.append(connection)
        except OSError:
            pass
    return left


def close(connections):
    for connection in connections:
        connection.close()


def push(connections, data, seconds):
    """Sends each of them all of the data, as far as they take it in this time; the answers that came meanwhile."""
    left = {connection: memoryview(data) for connection in connections}
    end, answers = time.monotonic() + seconds, []
    for connection in connections:
        connection.setblocking(False)
    while left and time.monotonic() < end:
        readable, writable, _ = select.select(list(left), list(left), [], 0.2)
        for connection in readable:
            answers.append(first_bytes(connection))
            left.pop(connection, None)
        for connection in writable:
            if connection in left:
                send_some(connection, left)
    return answers


def first_bytes(connection):
    try:
        return connection.recv(4096)
    except OSError as error:
        return str(error).encode()


def send_some(connection, left):
    try:
        sent = connection.send(left[connection][:1 << 18])
    except BlockingIOError:
        return
    except OSError:
        left.pop(connection)
        return
    left[connection] = left[connection][sent:]
    if not left[connection]:
        left.pop(connection)


class Peak:
    """The most memory that a system has, looked at all the time by a thread."""

    def __init__(self, system):
        self.system, self.base = system, system.memory()
        self.most, self.is_over = self.base, False
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        while not self.is_over:
            self.most = max(self.most, self.system.memory())
            time.sleep(0.05)

    def stop(self):
        """The growth, in bytes."""
        self.is_over = True
        self.thread.join()
        return self.most - self.base


def grows_little(checks, name, peak, bound=MOST_GROWTH):
    growth = peak.stop()
    print(f"        memory grew by {growth >> 20} MiB from {peak.base >> 20}")
    checks.check(f"{name}: memory is bounded", growth < bound, f"{growth >> 20} MiB")


# Bodies


def bodies(checks, binary, where, a, b):
    """One user sends 60 MB of a 61 MB body, 30 times at once (F6)."""
    with Gateway(binary, where) as system:
        head = b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\ncontent-length: 61000000\r\n"
        for name, where_to, more in (
            ("by the socket", system.socket, b""), ("with a token", system.address, bearer(TOKENS["fbb"]).encode() + b"\r\n"),
            ("without a token", system.address, b""),
        ):
            peak = Peak(system)
            several = [raw.connect(where_to, b) for _ in range(30)]
            answers = push(several, head + more + b"\r\n" + b"[" * 60_000_000, 12)
            still_in(checks, f"bodies {name}", system, a)
            print(f"        {len(answers)} were answered meanwhile: {sorted({answer[:12] for answer in answers})}")
            ended = until(lambda several=several: not open_ones(several), 90)
            checks.check(f"bodies {name}: all end in time", ended, f"{len(open_ones(several))} are open")
            close(several)
            grows_little(checks, f"bodies {name}", peak)
        runs_a_job(checks, "bodies", system, a)
        checks.check("bodies: memory is given back", until(lambda: system.memory() < peak.base + (150 << 20), 20),
            f"{system.memory() >> 20} MiB")
        end_well(checks, "bodies", system)


def chunked_bodies(checks, binary, where, a, b):
    """The same in chunks, whose length nobody says."""
    with Gateway(binary, where) as system:
        peak = Peak(system)
        several = [raw.connect(system.socket, b) for _ in range(30)]
        chunk = b"%x\r\n%s\r\n" % (1 << 20, b"[" * (1 << 20))
        push(several, b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + chunk * 60, 12)
        still_in(checks, "chunked bodies", system, a)
        checks.check("chunked bodies: all end in time", until(lambda: not open_ones(several), 90), len(several))
        close(several)
        grows_little(checks, "chunked bodies", peak)
        small = [raw.connect(system.socket, b) for _ in range(300)]
        peak = Peak(system)
        push(small, b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + b"%x\r\n%s\r\n" % (900_000,
            b"[" * 900_000), 12)
        still_in(checks, "300 bodies of 0.9 MB", system, a)
        close(small)
        grows_little(checks, "300 bodies of 0.9 MB", peak)
        end_well(checks, "chunked bodies", system)


def announced(checks, binary, where, a, b):
    """A body that is announced as too large is refused unread, and the connection with it."""
    with Gateway(binary, where) as system:
        for length in (67_108_865, 70_000_000, 2**40, 2**63 - 1):
            answer = raw.ask(system.socket, b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n[" % length, b)
            checks.check(f"announced {length}: refused at once",
                answer.status == 413 and answer.says_close and "larger than" in answer.text, answer)
        end_well(checks, "announced", system)


def slow_bodies(checks, binary, where, a, b):
    """Bodies that come byte by byte are ended, however many."""
    with Gateway(binary, where, "body_seconds = 2\n") as system:
        several = [raw.connect(system.socket, b) for _ in range(100)]
        for connection in several:
            connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n")
        begun, left = time.monotonic(), several
        while left and time.monotonic() < begun + 30:
            left = [connection for connection in left if trickle(connection)]
            time.sleep(0.3)
        print(f"        the last ended after {time.monotonic() - begun:.1f} s")
        checks.check("slow bodies: all end", not left, len(left))
        close(several)
        answer = slow_one(system, b)
        checks.check("slow bodies: the reason is told",
            answer.status == 400 and "has not come in time" in answer.text and answer.says_close, answer)
        end_well(checks, "slow bodies", system)


def trickle(connection):
    """Sends a byte more; whether it is taken."""
    try:
        connection.send(b"[")
        connection.setblocking(False)
        return connection.recv(4096) == b"never"
    except BlockingIOError:
        return True
    except OSError:
        return False


def slow_one(system, user):
    with raw.connect(system.socket, user) as connection:
        connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n[")
        return raw.Reader(connection).answer("POST")


# Heads and connections


def heads(checks, binary, where, a, b):
    """1,000 half-sent heads over TCP without a token, and 1,000 by the socket (F7)."""
    with Gateway(binary, where, "head_seconds = 8\n") as system:
        files, peak, several = system.open_files(), Peak(system), []
        begun = time.monotonic()
        for where_to in (system.address, system.socket):
            several += [half for _ in range(1000) if (half := half_head(where_to, b))]
        print(f"        {len(several)} connected in {time.monotonic() - begun:.1f} s, {system.open_files() - files} files more")
        still_in(checks, "heads", system, a)
        runs_a_job(checks, "heads", system, a)
        checks.check("heads: all end", until(lambda: not open_ones(several), 30), len(open_ones(several)))
        print(f"        all had ended after {time.monotonic() - begun:.1f} s")
        close(several)
        checks.check("heads: their files are closed", until(lambda: system.open_files() <= files + 5, 20), system.open_files() - files)
        grows_little(checks, "heads", peak)
        slow_heads(checks, system, b)
        end_well(checks, "heads", system)


def half_head(where, user):
    try:
        connection = raw.connect(where, user, 5)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        connection.sendall(b"GET /v1/jobs HTTP/1.1\r\nhost: x\r\nauthor")
    return connection


def slow_heads(checks, system, user):
    """A head that goes on coming byte by byte, in time each, ends all the same."""
    several = [raw.connect(system.socket, user) for _ in range(20)]
    begun, left = time.monotonic(), several
    while left and time.monotonic() < begun + 40:
        left = [connection for connection in left if trickle(connection)]
        time.sleep(0.5)
    checks.check("heads: those that come byte by byte end", not left, f"{len(left)} after 40 s")
    close(several)


def few_files(checks, binary, where, a, b):
    """`ulimit -n 256` and 300 connections over TCP and by the socket: others get in, jobs run."""
    with Gateway(binary, where, "head_seconds = 20\n", files=256) as system:
        several = [half for where_to in (system.address, system.socket) for _ in range(300) if (half := half_head(where_to, b))]
        print(f"        {len(several)} connected, {len(open_ones(several))} are open, {system.open_files()} files")
        still_in(checks, "few files", system, a)
        runs_a_job(checks, "few files", system, a)
        checks.check("few files: never out of files", "Too many open files" not in system.said(), system.said()[-800:])
        own = system.of(b, "jobs")
        print(f"        the attacker himself is told: {own.returncode} {own.stderr.strip()[:150]!r}")
        checks.check("few files: all end", until(lambda: not open_ones(several), 40), len(open_ones(several)))
        close(several)
        end_well(checks, "few files", system)


def many_addresses(checks, binary, where, a, b):
    """The same from forty addresses: root gets in, and after the time for heads everybody."""
    with Gateway(binary, where, "head_seconds = 10\n", files=256) as system:
        several = [half for number in range(40) for _ in range(10) if (half := half_head((ATTACKER, system.port, f"127.0.1.{number + 1}"),
            b))]
        said = system.root("submit", "--parsable", "--hold", "--", "true")
        checks.check("many addresses: root submits", said.returncode == 0, said)
        other = system.of(a, "submit", "--parsable", "--hold", "--", "true")
        print(f"        {len(open_ones(several))} of {len(several)} are open, {system.open_files()} files; another user is told: {other.returncode} {other.stderr.strip()[:150]!r}")
        runs_as_root = system.root("submit", "--wait", "-o", "/dev/null", "--", "true", seconds=60)
        checks.check("many addresses: a job of root runs", runs_as_root.returncode == 0, runs_as_root)
        checks.check("many addresses: all end", until(lambda: not open_ones(several), 30), len(open_ones(several)))
        close(several)
        still_in(checks, "many addresses, afterwards", system, a)
        checks.check("many addresses: never out of files", "Too many open files" not in system.said(), system.said()[-800:])
        end_well(checks, "many addresses", system)


def idle(checks, binary, where, a, b):
    """Connections that ask once and then nothing end; who follows events does not."""
    with Gateway(binary, where, "head_seconds = 3\n") as system:
        several = [raw.connect(system.socket, b) for _ in range(200)]
        for connection in several:
            connection.sendall(raw.request("GET", "/healthz"))
        followers = [raw.connect(system.socket, b) for _ in range(20)]
        for connection in followers:
            connection.sendall(raw.request("GET", "/v1/events"))
        silent = [raw.connect(system.address) for _ in range(200)]
        checks.check("idle: those that asked once end", until(lambda: not open_ones(several), 20), len(open_ones(several)))
        checks.check("idle: those that never asked end", until(lambda: not open_ones(silent), 20), len(open_ones(silent)))
        checks.check("idle: who follows events stays", len(open_ones(followers)) == len(followers), len(open_ones(followers)))
        close(several + followers + silent)
        end_well(checks, "idle", system)


# Slow readers


def slow_readers(checks, binary, where, a, b):
    """Large answers that nobody reads: memory is bounded, others are served."""
    with Gateway(binary, where, nodes=1) as system:
        for number in range(3):
            system.submit(a, "--hold", "--array", "0-5", "--", "true")
        for path in ("/openapi.json", "/v1/jobs?limit=10000", "/metrics"):
            peak, several = Peak(system), []
            for _ in range(600):
                with contextlib.suppress(OSError):
                    connection = raw.connect(system.socket, b, 5)
                    connection.sendall(raw.request("GET", path) * 20)
                    several.append(connection)
            still_in(checks, f"slow readers of {path}", system, a)
            close(several)
            grows_little(checks, f"slow readers of {path}", peak)
        end_well(checks, "slow readers", system)


def slow_followers(checks, binary, where, a, b):
    """600 who ask for all events and read none."""
    with Gateway(binary, where, nodes=2) as system:
        for _ in range(6):
            system.submit(b, "-o", "/dev/null", "-e", "/dev/null", "--array", "0-299", "--", "true")
        until(lambda: not json.loads(system.root("jobs", "--json").stdout or "{}").get("jobs", []), 120)
        said = system.root("events", "--json", seconds=60).stdout
        print(f"        the events have {len(said) >> 10} KiB")
        peak, several = Peak(system), []
        for _ in range(600):
            with contextlib.suppress(OSError):
                connection = raw.connect(system.socket, b, 5)
                connection.sendall(raw.request("GET", "/v1/events?from=1"))
                several.append(connection)
        time.sleep(5)
        still_in(checks, "slow followers", system, a)
        system.submit(b, "-o", "/dev/null", "-e", "/dev/null", "--array", "0-299", "--", "true")
        runs_a_job(checks, "slow followers", system, a)
        close(several)
        # As much as one caller may have on the way, and some room: streams are answers too.
        grows_little(checks, "slow followers", peak, 200 << 20)
        end_well(checks, "slow followers", system)


# TLS


def tls(checks, binary, where, a, b):
    """Handshakes half done, plain HTTP to the port of TLS, old versions, rubbish."""
    certificate, key = make_certificate(where)
    with Gateway(binary, where, f'head_seconds = 4\ntls_certificate = "{certificate}"\ntls_key = "{key}"\n') as system:
        hello = client_hello()
        shapes = {
            "nothing": b"", "half a hello": hello[:40], "a hello without an end": hello, "plain HTTP": raw.request("GET", "/healthz"),
            "SSL 2": b"\x80\x2e\x01\x00\x02" + b"\0" * 41, "a record of 65535": b"\x16\x03\x01\xff\xff" + b"a" * 65535,
            "an alert": b"\x15\x03\x03\x00\x02\x02\x28",
            "random": os.urandom(4000), "a heartbeat": b"\x18\x03\x02\x00\x03\x01\x40\x00", "empty records": b"\x16\x03\x01\x00\x00" * 5000,
            "hellos": hello * 50,
        }
        for name, data in shapes.items():
            several = [connection for _ in range(40) if (connection := sent(system.address, data))]
            trusted = over_tls(system, certificate)
            checks.check(f"TLS: {name}: others are served", trusted.startswith(b"HTTP/1.1 200"), trusted)
            said = [piece for connection in several if (piece := raw.until_end(connection, 12)) is None]
            checks.check(f"TLS: {name}: all end", not said, len(said))
            close(several)
        old_versions(checks, system, certificate)
        silent_after_handshake(checks, system, certificate)
        end_well(checks, "TLS", system)


def make_certificate(where):
    certificate, key = os.path.join(where, "gateway.pem"), os.path.join(where, "gateway.key")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", certificate,
        "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )
    os.chmod(key, 0o600)
    return certificate, key


def client_hello():
    """The first message of a client, as OpenSSL writes it."""
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(into, out, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


def sent(where, data):
    try:
        connection = raw.connect(where, None, 5)
        with contextlib.suppress(OSError):
            connection.sendall(data)
        return connection
    except OSError:
        return None


def context(certificate, version=None):
    trusted = ssl.create_default_context(cafile=certificate)
    if version:
        trusted.set_ciphers("ALL:@SECLEVEL=0")
        trusted.minimum_version = trusted.maximum_version = version
    return trusted


def over_tls(system, certificate, version=None, data=None):
    """The first bytes of an answer over TLS, or why there is none."""
    try:
        plain = socket.create_connection(system.address, 10, source_address=(HONEST, 0))
        with context(certificate, version).wrap_socket(plain, server_hostname="127.0.0.1") as connection:
            connection.sendall(data or raw.request("GET", "/v1/info", b"", [bearer(TOKENS["faa"])]))
            return connection.recv(4096)
    except (OSError, ssl.SSLError, ValueError) as error:
        return str(error).encode()


def old_versions(checks, system, certificate):
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        said = over_tls(system, certificate, version)
        checks.check(f"TLS: {version.name} is refused", not said.startswith(b"HTTP/"), said)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        said = over_tls(system, certificate, version)
        checks.check(f"TLS: {version.name} is served", said.startswith(b"HTTP/1.1 200"), said)
    for words in (["-cipher", "NULL:aNULL:EXPORT:RC4:3DES@SECLEVEL=0", "-tls1_2"], ["-alpn", "h2"], ["-servername", "a" * 250],
            ["-legacy_renegotiation"], ["-cipher", "AES128-SHA:@SECLEVEL=0", "-tls1_2"]):
        said = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{system.port}", *words],
            input=b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\nR\n", capture_output=True, timeout=20)
        text = (said.stdout + said.stderr).decode(errors="replace")
        alerts = re.findall("(?:alert|error:).*", text)[:1]
        name = f"s_client {' '.join(words)[:50]}"
        print(f"        {name}: status {said.returncode}, {alerts}")
        checks.check(f"TLS: {name} does not end the gateway", system.process.poll() is None)


def silent_after_handshake(checks, system, certificate):
    several = []
    for _ in range(30):
        plain = socket.create_connection(system.address, 10)
        several.append(context(certificate).wrap_socket(plain, server_hostname="127.0.0.1"))
    left = [connection for connection in several if not ends(connection, 12)]
    checks.check("TLS: those that are silent after the handshake end", not left, len(left))
    close(several)


def ends(connection, seconds):
    connection.settimeout(seconds)
    try:
        return connection.recv(4096) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


# Tokens


def tokens(checks, binary, where, a, b):
    """Wrong tokens, guessed tokens, odd headers."""
    good = TOKENS["fbb"]
    with Gateway(binary, where) as system:
        def info(*headers, where_from=None):
            return system.ask("GET", "/v1/info", headers=headers, where=where_from)

        checks.check("tokens: the right one is taken", '"caller":"fbb"' in info(bearer(good)).text, info(bearer(good)))
        checks.check("tokens: `bearer` in small letters too", info(f"authorization: bearer {good}").status == 200)
        odd = [
            (), ("authorization:",), ("authorization: Bearer",), ("authorization: Bearer ",), (f"authorization: Basic {good}",),
            (f"authorization: {good}",), (bearer(good[:-1]),), (bearer(good + "x"),), (bearer(good.upper()),), (bearer("#"),),
            (bearer("a" * 80_000),),
            (bearer(good) + ", Bearer x",), (b"authorization: Bearer " + good.encode() + b"\xff",), (bearer(f"{good} fbb"),),
            (f"cookie: token={good}",), (f"x-authorization: Bearer {good}",), (f"proxy-authorization: Bearer {good}",),
            (bearer(TOKENS["nosuch"]),), (bearer("job.1.1." + "0" * 64),), (bearer("job.1.1"),),
            (bearer("*"),), (bearer("' or 1=1"),), (bearer("../tokens"),),
            ("x-remote-user: root", "x-forwarded-for: 127.0.0.1", "x-real-ip: 127.0.0.1"),
        ]
        for number, headers in enumerate(odd):
            # Each from an address of its own, so that none waits for the others.
            answer = info(*headers, where_from=(ATTACKER, system.port, f"127.0.2.{number + 1}"))
            checks.check(f"tokens: {str(headers)[:60]} is refused", answer.status in (401, 431) and good not in answer.text, answer)
        answer = system.ask("GET", f"/v1/info?token={good}&access_token={good}", where=system.honest_address)
        checks.check("tokens: none in an address", answer.status == 401, answer)
        two = info(bearer("wrong-token-0123456789"), bearer(good), where_from=(ATTACKER, system.port, "127.0.3.1"))
        other = info(bearer(good), bearer("wrong-token-0123456789"), where_from=(ATTACKER, system.port, "127.0.3.2"))
        print(f"        two headers: wrong first {two.status}, right first {other.status}")
        guesses(checks, system, info, good)
        checks.check("tokens: the log has none of them", good not in system.said() and "wrong-token" not in system.said())
        end_well(checks, "tokens", system)


def guesses(checks, system, info, good):
    """Who guesses waits longer each time; who has the right token does not."""
    times = []
    for number in range(9):
        begun = time.monotonic()
        status = info(bearer(f"guess-number-{number:08}")).status
        times.append(round(time.monotonic() - begun, 2))
        checks.check(f"tokens: guess {number} is refused", status == 401, status)
    print(f"        guesses took {times} s")
    checks.check("tokens: guesses take longer each time", times[-1] > 3 and times[0] < 1, times)
    begun = time.monotonic()
    answer = info(bearer(good))
    checks.check("tokens: the right token of the same address does not wait", answer.status == 200 and time.monotonic() - begun < 2,
        (answer, time.monotonic() - begun))
    several = [connection for _ in range(2000) if (connection := sent(system.address,
        raw.request("GET", "/v1/info", b"", [bearer("guess-at-once-0123456")])))]
    answer = info(bearer(good), where_from=system.honest_address)
    checks.check("tokens: 2,000 guesses at once keep nobody out", answer.status == 200, answer)
    print(f"        {len(open_ones(several))} of {len(several)} guesses at once wait")
    close(several)


def revoked_tokens(checks, binary, where, a, b):
    """A token that is taken out of the file is worth nothing a moment later, also on a connection that is kept."""
    with Gateway(binary, where) as system:
        kept = raw.connect(system.address)
        reader = raw.Reader(kept)
        request = raw.request("GET", "/v1/info", b"", [bearer(TOKENS["fbb"])])
        kept.sendall(request)
        checks.check("revoked: good before", reader.answer().status == 200)
        write_tokens(system.tokens, {"faa": TOKENS["faa"]})
        checks.check("revoked: refused", until(lambda: raw.ask(system.address, request).status == 401, 5))
        kept.sendall(request)
        checks.check("revoked: refused on a connection that was kept", reader.answer().status == 401)
        kept.close()
        checks.check("revoked: others go on", system.ask("GET", "/v1/info", headers=[bearer(TOKENS["faa"])],
            where=system.honest_address).status == 200)
        write_tokens(system.tokens, TOKENS, 0o644)
        os.utime(system.tokens, (1, 1))
        checks.check("revoked: a file that all can read opens no door",
            until(lambda: system.ask("GET", "/v1/info", headers=[bearer(TOKENS["faa"])],
            where=(ATTACKER, system.port, "127.0.4.1")).status == 401, 5))
        for number, text in enumerate(("short fbb\n", "\0" * 1000, f"{TOKENS['fbb']} fbb extra\n", "\xff\xfe", "")):
            with open(system.tokens, "w", encoding="latin-1") as file:
                file.write(text)
            os.chmod(system.tokens, 0o600)
            os.utime(system.tokens, (100 + number, 100 + number))
            closed = until(lambda number=number: raw.ask((ATTACKER, system.port, f"127.0.4.{number + 10}"), request).status == 401, 5)
            checks.check(f"revoked: a file with {text[:12]!r} opens no door", closed)
        write_tokens(system.tokens, TOKENS)
        checks.check("revoked: the good file is taken again", until(lambda: raw.ask(system.honest_address, request).status == 200, 5))
        end_well(checks, "revoked", system)


def job_tokens(checks, binary, where, a, b):
    """The token of a job used for other jobs, other addresses, and after its run (D6 of the operators)."""
    with Gateway(binary, where, nodes=2, cpus=8) as system:
        others = {"own other": system.submit(b, "-o", "/dev/null", "--", "sleep", "600"),
            "another's": system.submit(a, "-o", "/dev/null", "--", "sleep", "600")}
        until(lambda: all(system.is_running(job) for job in others.values()))
        mark = os.path.join(b.home, "token")
        script = b.write("tell.sh", f"#!/bin/sh\necho $MUSTER_TOKEN >{mark}.$MUSTER_RUN_ID.new; mv {mark}.$MUSTER_RUN_ID.new {mark}.$MUSTER_RUN_ID\nsleep 600\n", 0o755)
        over = {"MUSTER_SERVER": f"http://127.0.0.1:{system.port}", "MUSTER_TOKEN": TOKENS["fbb"]}
        for old in token_files(b):
            os.unlink(old)
        job = b.run(system.binary, "submit", "--parsable", "-o", "/dev/null", "-e", "/dev/null", script, **over).stdout.strip()
        array = b.run(system.binary, "submit", "--parsable", "-o", "/dev/null", "-e", "/dev/null", "--array", "0-1", script,
            **over).stdout.strip()
        until(lambda: len(token_files(b)) >= 3)
        known = {}
        for path in token_files(b):
            with open(path, encoding="utf-8") as file:
                token = file.read().strip()
            known[token.split(".")[1]] = token
        checks.check("job tokens: each job and task has its own", set(known) == {job, f"{array}_0", f"{array}_1"}, known.keys())
        token = known.get(job, "")
        own_is_good(checks, system, job, token)
        attack_with(checks, system, job, token, {**others, "array": array, "task": f"{array}_0"})
        task = known.get(f"{array}_0", "")
        attack_with(checks, system, f"{array}_0", task, {"other task": f"{array}_1", "its array": array, "job": job})
        forge(checks, system, job, token, others)
        checks.check("job tokens: the other jobs run as before", all(system.is_running(one) for one in others.values()))
        system.root("job", "requeue", job)
        checks.check("job tokens: nothing after a requeue", until(lambda: token_status(system, job, token) == 401, 30),
            token_status(system, job, token))
        system.root("cancel", array)
        checks.check("job tokens: nothing after a cancel", until(lambda: token_status(system, f"{array}_0", task) == 401, 30))
        checks.check("job tokens: none is in the log", not any(one in system.said() for one in known.values()))
        end_well(checks, "job tokens", system)


def token_files(user):
    return [os.path.join(user.home, name) for name in os.listdir(user.home) if name.startswith("token.") and not name.endswith(".new")]


def token_status(system, job, token):
    return system.ask("GET", f"/v1/jobs/{job}", headers=[bearer(token)]).status


# A step without places, which may share the cores of others.
STEP = {"overlaps": True, "groups": [{"programs": [{"argv": ["true"]}]}], "streams": {"stdout": "discarded"}}


def own_is_good(checks, system, job, token):
    checks.check("job tokens: it reads itself", token_status(system, job, token) == 200)
    answer = system.ask("POST", f"/v1/jobs/{job}/steps/launch", STEP, [bearer(token)])
    checks.check("job tokens: it starts a step", answer.status == 200, answer)
    for change in ({"change": {"name": "x"}}, {"change": {"attributes": {"slurm.comment": "y"}}}):
        answer = system.ask("POST", "/v1/jobs/actions/modify", {"jobs": {"ids": [job]}, **change}, [bearer(token)])
        checks.check(f"job tokens: it changes itself ({next(iter(change))})", answer.status == 200, answer)


def attack_with(checks, system, job, token, others):
    """Every address of the document with the token, for others and as tricks."""
    document = json.loads(system.ask("GET", "/openapi.json").body)
    taken = []
    for path, item in document["paths"].items():
        for method in item:
            # To agents, each such token is a guess, which is answered ever later: one is enough.
            if path in ("/healthz", "/openapi.json", "/v1/info", "/v1/refusals", "/v1/dialects") or path.startswith("/v1/agent/"):
                continue
            for name, other in others.items():
                for address in addresses(path, job, other, item[method]):
                    answer = system.ask(method.upper(), address, bodies_for(path, other, job), [bearer(token)], seconds=5)
                    if answer.status in (200, 0):
                        taken.append((name, method, address, answer.status, answer.text[:100]))
    checks.check(f"job tokens: that of {job} is good for nothing else", not taken, taken[:8])
    print(f"        {len(taken)} of all addresses were answered")
    agent = system.ask("POST", "/v1/agent/pull", {}, [bearer(token)], seconds=60)
    checks.check(f"job tokens: that of {job} is none of an agent", agent.status == 401, agent)
    for verb, body in of_several(job, next(iter(others.values()))):
        answer = system.ask("POST", f"/v1/jobs/actions/{verb}", body, [bearer(token)])
        checks.check(f"job tokens: {verb} of {json.dumps(body)[:70]} is refused", answer.status in (400, 403, 404, 422), answer)


def addresses(path, own, other, operation):
    """Ways to name another job in an address."""
    query = "&".join(f"{one['name']}={other if one['name'] in ('id', 'job') else 1}" for one in operation.get("parameters",
        []) if one["in"] == "query" and one.get("required"))
    tail = f"?{query}" if query else ""
    filled = path.replace("{step}", "1").replace("{name}", "node1")
    if "{id}" not in path:
        more = [f"{filled}?id={own}&id={other}", f"{filled}?id={own}%2C{other}", f"{filled}?id={own},{other}",
            f"{filled}?id={own}&x={other}"] if path in ("/v1/jobs", "/v1/jobs/details") else []
        return [filled + tail, *more]
    named = [other, f"{own}/../{other}", f"{own}%2f..%2f{other}", f"%{ord(other[0]):02x}{other[1:]}", f"{own},{other}", f"{own}%00",
        f" {other}", f"+{other}", f"0{other}"]
    return [filled.replace("{id}", one) + tail for one in named]


def bodies_for(path, other, own):
    if path.endswith("/steps/launch"):
        return STEP
    if "/actions/" in path and "/jobs/" in path:
        return {"jobs": {"ids": [other]}}
    return {}


def of_several(own, other):
    """Selections that have its own job and others in them."""
    selections = [{"ids": [own, other]}, {"ids": [other, own]}, {"ids": []}, {"matching": {}}, {"matching": {"user": "fbb"}},
        {"component": {"job": other, "component": 0}}, {"ids": [own], "matching": {}}]
    for jobs in selections:
        yield "cancel", {"jobs": jobs}
    yield "modify", {"jobs": {"ids": [other]}, "change": {"name": "x"}}
    yield "modify", {"jobs": {"ids": [other]}, "change": {"attributes": {"x": "y"}}}
    yield "tell", {"jobs": {"ids": [other]}, "text": "x"}
    yield "signal", {"jobs": {"ids": [own, other]}, "signal": 9}


def forge(checks, system, job, token, others):
    """Tokens made out of a good one, and the streams of another's step through its own address."""
    _, _, run, proof = token.split(".")
    other = next(iter(others.values()))
    for number, one in enumerate((f"job.{other}.{run}.{proof}", f"job.{job}.{int(run) + 1}.{proof}", f"job.{job}.0.{proof}",
            f"job.{job}.{run}.{'0' * 64}", f"job.{job}.{run}.{proof[:-2]}", f"JOB.{job}.{run}.{proof}", f"job.{job}_0.{run}.{proof}",
            f"job.{job}+0.{run}.{proof}", f"job.{job}.{run}.{proof}.x")):
        answer = system.ask("GET", f"/v1/jobs/{job}", headers=[bearer(one)], where=(ATTACKER, system.port, f"127.0.5.{number + 1}"))
        checks.check(f"job tokens: a forged one ({number}) is refused", answer.status == 401, answer)
    for other_run in range(1, int(run)):
        answer = system.ask("GET", f"/v1/jobs/{job}/steps/1/output?run={other_run}&reader=1", headers=[bearer(token)], seconds=5)
        checks.check(f"job tokens: no output of run {other_run} through its own address", answer.status >= 400, answer)
        answer = system.ask("POST", f"/v1/jobs/{job}/steps/1/input?run={other_run}&offset=0", headers=[bearer(token)], seconds=5)
        checks.check(f"job tokens: no input to run {other_run} through its own address", answer.status >= 400, answer)


# Requests


def early_refusals(checks, binary, where, a, b):
    """What is refused before its body is read ends the connection and says so; what is in the body is no request (F21)."""
    with Gateway(binary, where) as system:
        hidden = raw.request("POST", "/v1/jobs", json.dumps({"jobs": [spec_of(system, b, "smuggled")]}).encode())
        filler = hidden * 40
        cases = {
            "unknown address": ("POST", "/v1/nowhere", ()), "wrong method": ("DELETE", "/v1/jobs", ()),
            "unknown parameter": ("POST", "/v1/jobs/actions/cancel?x=1", ()), "empty key": ("POST", "/v1/jobs", ("idempotency-key: ",)),
            "long key": ("POST", "/v1/jobs", ("idempotency-key: " + "a" * 300,)),
            "no such job": ("POST", "/v1/jobs/999/steps/launch", ()), "not a job": ("POST", "/v1/jobs/x/steps/launch", ()),
            "not JSON": ("POST", "/v1/jobs", ()), "GET with a body": ("GET", "/v1/info", ()),
            "healthz with a body": ("POST", "/healthz", ()), "expect": ("POST", "/v1/nowhere", ("expect: 100-continue",)),
            "input": ("POST", "/v1/jobs/1/steps/1/input?run=1&offset=0", ()), "DELETE with a body": ("DELETE", "/v1/templates/none", ()),
            "PUT with a body": ("PUT", "/v1/policy", ()), "HEAD with a body": ("HEAD", "/v1/jobs", ()),
        }
        for name, (method, path, headers) in cases.items():
            for way, where_to, more in (("socket", system.socket, ()), ("TCP", system.address, ()),
                    ("token", system.address, (bearer(TOKENS["fbb"]),))):
                data = b"%s %s HTTP/1.1\r\nhost: x\r\n" % (method.encode(), path.encode())
                data += b"".join(line.encode() + b"\r\n" for line in (*headers,
                    *more)) + b"content-length: %d\r\n\r\n" % len(filler) + filler + raw.request("GET", "/healthz")
                judge_early(checks, f"early: {name} ({way})", where_to, b, data, method)
        jobs = system.root("jobs", "-a", "--json").stdout
        checks.check("early: nothing in a body was taken for a request", "smuggled" not in jobs, jobs[:300])
        end_well(checks, "early", system)


def judge_early(checks, name, where, user, data, method):
    """Either the answer says that it ends the connection, and it does, or the request behind it is answered."""
    try:
        with raw.connect(where, user) as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(data)
            reader = raw.Reader(connection)
            first = reader.answer(method)
            if first.status == 0:
                return checks.check(name, False, first)
            if first.says_close:
                rest = reader.buffer + (raw.until_end(connection, 10) or b"")
                return checks.check(f"{name} says that it ends, and ends", not rest, rest[:300])
            second = reader.answer()
            checks.check(f"{name} keeps the connection and answers the next", second.status == 200, (first, second))
    except OSError as error:
        checks.check(name, False, error)


def spec_of(system, user, name):
    spec = json.loads(system.of(user, "submit", "--dry-run", "-o", "/dev/null", "-e", "/dev/null", "--", "true").stdout)
    return {**spec, "name": name, "environment": {"PATH": "/usr/bin:/bin"}}


def refusal_records(checks, binary, where, a, b):
    """Refusals of one user, noted by programs or made by the system, make few records (F17)."""
    with Gateway(binary, where) as system:
        victim = system.submit(a, "--hold", "--", "true")
        before = json.loads(system.ask("GET", "/v1/info", where=system.socket).body)["head"]
        statuses = set()
        for number in range(1000):
            statuses.add(system.ask("POST", "/v1/refusals", {"what": "x", "why": f"because {number}"}, where=system.socket, user=b).status)
        for number in range(1000):
            statuses.add(system.ask("POST", "/v1/jobs/actions/cancel", {"jobs": {"ids": [victim]}}, where=system.socket, user=b).status)
        after = json.loads(system.ask("GET", "/v1/info", where=system.socket).body)["head"]
        print(f"        statuses {statuses}, {after - before} records for 2,000 refusals")
        checks.check("refusals: they make few records", after - before < 150, after - before)
        told = system.ask("POST", "/v1/refusals", {"what": "y", "why": "of another"}, where=system.socket, user=a)
        said = system.root("events", "--json", "--kind", "command").stdout
        checks.check("refusals: those of another user are noted all the same", told.status == 200 and "of another" in said, said[-400:])
        for body in ({"what": "", "why": "x"}, {"what": "a" * 65, "why": "x"}, {"what": "x", "why": ""}, {"what": "x", "why": "a" * 1025},
                {"what": "a\nb", "why": "x"}, {"what": "x", "why": "\x1b[31m"}, {"what": "x"}):
            answer = system.ask("POST", "/v1/refusals", body, where=system.socket, user=b)
            print(f"        {str(body)[:40]}: {answer.status} {answer.text[:100]}")
            checks.check(f"refusals: {str(body)[:40]} is judged", answer.status in (200, 400, 422, 429), answer)
        shown = system.root("events", "--kind", "command").stdout
        checks.check("refusals: no control character comes out", "\x1b" not in shown, shown[-200:])
        end_well(checks, "refusals", system)


def pipelining(checks, binary, where, a, b):
    """Many requests in one write are answered one after the other, each once."""
    with Gateway(binary, where) as system:
        token = bearer(TOKENS["fbb"])
        with raw.connect(system.address) as connection:
            connection.sendall(b"".join(raw.request("GET", f"/v1/jobs/{number}", b"", [token]) for number in range(1, 201)))
            reader = raw.Reader(connection)
            answers = [reader.answer() for _ in range(200)]
        in_order = all(f"{number}" in answer.text for number, answer in enumerate(answers, 1))
        checks.check("pipelining: 200 answers in order", in_order and {answer.status for answer in answers} == {404}, answers[:2])
        spec = spec_of(system, b, "piped")
        posts = [raw.request("POST", "/v1/jobs", json.dumps({"jobs": [spec]}).encode(),
            [token, f"idempotency-key: piped-{number}"]) for number in range(50)]
        with raw.connect(system.address) as connection:
            connection.sendall(b"".join(posts) + b"rubbish\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            reader = raw.Reader(connection)
            answers = [reader.answer() for _ in range(51)]
        jobs = [json.loads(answer.body)["jobs"][0] for answer in answers[:50] if answer.status == 200]
        checks.check("pipelining: 50 submissions are 50 jobs", len(set(jobs)) == 50, (len(jobs), answers[-2:]))
        checks.check("pipelining: rubbish behind them is refused", answers[50].status in (0, 400), answers[50])
        with raw.connect(system.address) as connection:
            connection.sendall(b"".join(posts[:10]))
        again = [raw.ask(system.address, post) for post in posts[:10]]
        same = [json.loads(answer.body)["jobs"][0] for answer in again if answer.status == 200]
        checks.check("pipelining: the same keys get the same answers", same == jobs[:10], (same, jobs[:10]))
        with raw.connect(system.address) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(raw.request("GET", "/v1/info", b"", [token]) * 20_000)
        runs_a_job(checks, "pipelining", system, a)
        end_well(checks, "pipelining", system)


def upgrades(checks, binary, where, a, b):
    """Upgrade requests, tunnels and HTTP/2 lead nowhere."""
    token = bearer(TOKENS["fbb"])
    with Gateway(binary, where) as system:
        cases = {
            "h2c": raw.request("GET", "/v1/info", b"", [token, "connection: upgrade, http2-settings", "upgrade: h2c",
            "http2-settings: AAMAAABkAAQAAP__"]), "websocket": raw.request("GET", "/v1/events", b"", [token, "connection: upgrade",
            "upgrade: websocket", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-version: 13"]),
            "TLS": raw.request("OPTIONS", "*", b"", [token, "connection: upgrade", "upgrade: TLS/1.2"]),
            "preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
            "CONNECT": b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: 127.0.0.1:22\r\n" + token.encode() + b"\r\n\r\nhello",
            "proxy": raw.request("GET", "http://127.0.0.1:1/x", b"", [token]),
            "TRACE": raw.request("TRACE", "/v1/info", b"", [token, "x-secret: 1"]),
            "origin": raw.request("GET", "/v1/info", b"", [token, "origin: http://evil.example"]),
            "preflight": raw.request("OPTIONS", "/v1/jobs", b"", ["origin: http://evil.example", "access-control-request-method: POST"]),
        }
        for name, data in cases.items():
            answer = raw.ask(system.address, data, seconds=1.5 if name == "websocket" else 10)
            checks.check(f"upgrades: {name} does not change the protocol", answer.status != 101 and answer.status < 500, answer)
            checks.check(f"upgrades: {name}: no word for other origins", answer.header("access-control-allow-origin") is None, answer)
            if name == "TRACE":
                checks.check("upgrades: TRACE does not echo", "x-secret" not in answer.text, answer)
        runs_a_job(checks, "upgrades", system, a)
        end_well(checks, "upgrades", system)


def components_over_tcp(checks, binary, where, a, b):
    """A heterogeneous job over TCP whose script runs steps on its components through the job's token."""
    with Gateway(binary, where, nodes=2, cpus=4) as system:
        over = {"MUSTER_SERVER": f"http://127.0.0.1:{system.port}", "MUSTER_TOKEN": TOKENS["fbb"]}
        out = os.path.join(b.home, "het.out")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(out)
        srun = f"{system.binary} slurm srun"
        script = b.write("het-tcp.sh", f"#!/bin/sh\n{srun} --het-group=0,1 sh -c 'echo group $SLURM_HET_SIZE $SLURM_PROCID'\n{srun} --het-group=1 echo second\n{system.binary} run -- echo third\necho server $MUSTER_SERVER\n", 0o755)
        said = b.run(system.binary, "slurm", "sbatch", "--wait", "--parsable", "-o", out, "-n1", ":", "-n2", script, seconds=90, **over)
        with open(out, encoding="utf-8") as file:
            text = file.read()
        checks.check("components over TCP: the job ends well", said.returncode == 0, (said, text))
        checks.check("components over TCP: each component ran its tasks",
            text.count("group") == 3 and text.count("second") == 2 and "third" in text, text)
        checks.check("components over TCP: by the gateway's port", f"server http://127.0.0.1:{system.port}" in text, text)
        stranger = b.run(system.binary, "slurm", "squeue", MUSTER_SERVER=over["MUSTER_SERVER"], MUSTER_TOKEN="wrong-token-0123456789",
            MUSTER_WAIT_SECONDS="1")
        checks.check("components over TCP: not with a wrong token", stranger.returncode != 0, stranger)
        end_well(checks, "components over TCP", system)


if __name__ == "__main__":
    sys.exit(main())
