#!/usr/bin/env python3
"""Tampers with the history of a system: with bundles and archives, and with the files of data folders, at random and as somebody
who knows the formats and has no key. Each tamper is found, or does no harm, or is missed.

`--kinds` names what is attacked, `--rounds` says how many tampers of each kind of file, `--forgeries` how many of each forgery.
"""

import argparse
import copy
import gzip
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter, defaultdict
from pathlib import Path

import attack
import backups
import forge

PATIENCE_SECONDS = 60
SLOW_SECONDS = 15
# Of ten submissions each, beside each verification of a system that works.
BUSY_BATCHES = 40
CONFIGURATION = """[ledger]
snapshot_every_records = 1000
checkpoint_every_records = 100
"""
# Jobs whose index is attacked, and looked at.
TOUCHED = (1, 2, 3, 5, 8, 13, 21)
FOUND, HARMLESS, LIMIT, MISSED, CRASH = "found", "harmless", "limit", "MISSED", "CRASH"
SAID = ("panicked", "pthread lock", "terminate called", "SIGSEGV", "RUST_BACKTRACE", "overflow", "memory allocation")
KINDS = ("random", "forge", "events", "keep", "bundle", "forge-bundle", "live", "busy", "backup")


def limit_memory():
    """A tamper that makes muster ask for all memory is a crash, and not one of this machine."""
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    os.nice(5)


class Answer:
    """What a command did."""

    def __init__(self, words, seconds=PATIENCE_SECONDS):
        started = time.monotonic()
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, preexec_fn=limit_memory
            )
            self.status, out = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired as late:
            self.status, out = "hangs", (late.stdout or b"") + (late.stderr or b"")
        self.text = out.decode(errors="replace")
        self.seconds = time.monotonic() - started

    def crash(self):
        """What is wrong about how it ended, if anything is."""
        if self.status == "hangs":
            return f"did not end within {PATIENCE_SECONDS} s"
        if self.status < 0 or self.status >= 100:
            return f"status {self.status}: {self.text[-500:]}"
        said = [word for word in SAID if word in self.text]
        return f"says {said}: {self.text[-500:]}" if said else None

    def last(self):
        lines = self.text.strip().splitlines()
        return lines[-1][:400] if lines else ""


class Up:
    """A `muster up` on a data folder."""

    def __init__(self, binary, data, log, *more):
        self.system, self.log = attack.System(binary, data), log
        words = [binary, "--data", data, "up", "--nodes", "2", "--cpus", "64", "--memory", "64G", *more]
        with open(log, "ab") as out:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=limit_memory
            )

    def is_ready(self, seconds=PATIENCE_SECONDS):
        """True if it serves, False if it ended before that, None if it did neither."""
        try:
            attack.until(lambda: self.process.poll() is not None or self.system.is_ready(), "ready", seconds)
        except TimeoutError:
            return None
        return self.process.poll() is None

    def kill(self):
        """As a power cut: the ledger first, then all that runs on."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for _ in range(20):
            for pid in attack.processes_that_name(f"{self.system.data}/"):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def stop(self):
        """The exit status of a stop that was asked for."""
        self.process.terminate()
        try:
            return self.process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return "did not stop"

    def said(self):
        return self.log.read_text(errors="replace")


# ------------------------------------------------------------------------------------------------------------- the folders


class Base:
    """A data folder that is copied for each tamper, and what its history is."""

    def __init__(self, name, data, work, run, older=None):
        self.name, self.data, self.older = name, data, older
        self.told = self.jobs = self.past = self.documents = None
        archives = [int(path.name.split("-")[1].split(".")[0]) for path in (data / "ledger/archive").glob("*.gz")]
        # The first record that is not in an archive.
        self.first = max(archives, default=0) + 1
        # Whether records may follow: of a folder that is served meanwhile.
        self.grows = False
        # Whether what is added behind its end is left out of the count, because something else is asked.
        self.is_open = False
        self.bundle = work / f"{name}.bundle"
        answer = run(data, "audit", "verify", "--offline", "--json")
        if answer.status:
            raise SystemExit(f"the folder {data} does not verify before anything was done to it: {answer.text}")
        answer = run(data, "audit", "export", self.bundle)
        if answer.status:
            raise SystemExit(f"no bundle of {data}: {answer.text}")
        self.history = forge.History(self.bundle)
        self.amid = self.history.lines[self.history.last * 3 // 4]["record"]["time"]
        self.witnessed = witnessed(data)
        signed = [line["checkpoint"]["of"] for line in self.history.lines if "checkpoint" in line]
        self.checkpoint = max(signed, default=0)
        self.signed = max(self.witnessed, self.checkpoint)
        self.families = forge.contents(data / "ledger/log") if (data / "ledger/log").exists() else {}

    def tell(self):
        print(
            f"{self.name}: {self.history.last} records, checkpoint of {self.checkpoint}, witness of {self.witnessed}; "
            f"{Counter(kind_of(path.relative_to(self.data)) for path in files(self.data))}",
            flush=True,
        )


def witnessed(data):
    """The record that the witness of a folder tells of."""
    return int((data / "ledger/witness").read_text().split("sequence ")[1].split()[0])


def copy_folder(source, target):
    """A copy of a data folder without sockets and pipes."""

    def special(folder, names):
        return [
            name for name in names if not (p := Path(folder, name)).is_symlink() and not (p.is_file() or p.is_dir())
        ]

    shutil.copytree(source, target, symlinks=True, ignore=special)


def submit(system, count, choices, more=None):
    """Submits jobs of several kinds; the names make them known again."""
    connection = attack.Connection(system.data / "muster.sock")
    for number in range(count):
        shape = choices.choice([{}, {"array": 3}, {"nodes": 2}, {}])
        spec = attack.job(f"honest-{number}", {"tasks": {"argv": ["/bin/true", "honest-word"]}}, **shape)
        text = json.dumps({"jobs": [spec | {"working_directory": "/"} | (more or {})]})
        key = f"t{choices.randrange(10**24)}"
        connection.request("POST", "/v1/jobs", text, {"Content-Type": "application/json", "Idempotency-Key": key})
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"not submitted: {answer.status} {said[:300]}")
    connection.close()


def wait_until_idle(system):
    def is_idle():
        answer = system.run("jobs", "--json")
        return answer.returncode == 0 and not json.loads(answer.stdout).get("jobs", [1])

    attack.until(is_idle, "all jobs are over", 300)


def kind_of(path):
    """What a file of a data folder is, by its path in it."""
    name, parts = path.name, path.parts
    if name in ("ledger.key", "witness", "CURRENT", "IDENTITY"):
        return name
    if name.startswith("MANIFEST") or name.startswith("OPTIONS"):
        return name.split("-")[0]
    for end in ("sst", "snapshot", "gz", "books"):
        if name.endswith("." + end):
            return end
    if parts[0] == "ledger":
        return "wal" if name.endswith(".log") and name[:-4].isdigit() else None
    return "spool" if len(parts) > 1 else None


def files(data):
    """The files that are worth tampering with."""
    found = [path for path in data.rglob("*") if path.is_file() and not path.is_symlink()]
    return sorted(path for path in found if kind_of(path.relative_to(data)) and path.stat().st_size)


# --------------------------------------------------------------------------------------------------------- random tampers

# Kinds of records of RocksDB's own files that are used again: its reader can fail to come back from them.
REUSED = [5, 6, 7, 8, 9, 10, 11, 129, 130, 131, 132]


def tamper(path, others, choices):
    """One change of a file that changes something; says what it was."""
    whole = path.read_bytes()
    kinds = [
        "remove",
        cut,
        cut,
        cut_tail,
        cut_tail,
        zeros,
        noise,
        insert,
        append,
        swap,
        swap_parts,
        double,
        flip,
        flip,
        flip,
    ]
    kinds += [reused_kind] * 4 if path.name.startswith("MANIFEST") or path.suffix == ".log" else []
    kinds += ["other"] if others else []
    while True:
        kind = choices.choice(kinds)
        if kind == "remove":
            path.unlink()
            return "removed"
        if kind == "other":
            other = choices.choice(others)
            changed, what = other.read_bytes(), f"has the contents of {other.name}"
        else:
            changed, what = kind(bytearray(whole), choices)
        if changed != whole:
            path.write_bytes(changed)
            return what


def cut(data, choices):
    at = choices.randrange(len(data))
    return bytes(data[:at]), f"cut to {at} of {len(data)}"


def cut_tail(data, choices):
    at = choices.randrange(max(0, len(data) - 300), len(data))
    return bytes(data[:at]), f"cut to {at} of {len(data)}"


def span(data, choices):
    at = choices.randrange(len(data))
    return at, min(len(data), at + choices.choice([1, 4, 16, 64, 512]))


def zeros(data, choices):
    at, end = span(data, choices)
    data[at:end] = bytes(end - at)
    return bytes(data), f"zeros from {at} to {end}"


def noise(data, choices):
    at, end = span(data, choices)
    data[at:end] = choices.randbytes(end - at)
    return bytes(data), f"noise from {at} to {end}"


def insert(data, choices):
    at = choices.randrange(len(data))
    data[at:at] = choices.randbytes(choices.choice([1, 1, 7, 100]))
    return bytes(data), f"something inserted at {at}"


def append(data, choices):
    data += choices.choice([choices.randbytes(choices.randrange(1, 100)), bytes(choices.randrange(1, 40_000))])
    return bytes(data), "something behind it"


def swap(data, choices):
    at, to = choices.randrange(len(data)), choices.randrange(len(data))
    data[at], data[to] = data[to], data[at]
    return bytes(data), f"bytes {at} and {to} exchanged"


def swap_parts(data, choices):
    size = choices.choice([8, 32, 256, 4096])
    at, to = choices.randrange(len(data)), choices.randrange(len(data))
    one, other = data[at : at + size], data[to : to + size]
    data[at : at + size], data[to : to + size] = other, one
    return bytes(data), f"{size} bytes at {at} and {to} exchanged"


def double(data, choices):
    at, end = span(data, choices)
    data[at:at] = data[at:end]
    return bytes(data), f"what is from {at} to {end} is there twice"


def flip(data, choices):
    at, bit = choices.randrange(len(data)), choices.randrange(8)
    data[at] ^= 1 << bit
    return bytes(data), f"bit {bit} of byte {at}"


def reused_kind(data, choices):
    """The kind of a record in one of RocksDB's own files becomes one that is not written here, or such a record is put behind it."""
    kind, at, heads = choices.choice(REUSED), 0, []
    while at + 7 <= len(data):
        if forge.BLOCK_BYTES - at % forge.BLOCK_BYTES < 7:
            at += forge.BLOCK_BYTES - at % forge.BLOCK_BYTES
            continue
        heads.append(at)
        at += 7 + int.from_bytes(data[at + 4 : at + 6], "little")
    if choices.random() < 0.5 and heads:
        at = choices.choice(heads[-3:] if choices.random() < 0.5 else heads)
        data[at + 6] = kind
        return bytes(data), f"kind {kind} at {at}"
    length = choices.choice([0, 1, 4, 7, 300, 32_000, 65_535])
    data += (
        choices.randbytes(4) + length.to_bytes(2, "little") + bytes([kind]) + choices.randbytes(choices.randrange(12))
    )
    return bytes(data), f"a record of kind {kind} and length {length} behind it"


# ----------------------------------------------------------------------------------------------------------------- judging


class Judge:
    """Says of each tampered folder or bundle what came of it, counts, and keeps what is a fault."""

    def __init__(self, options, work):
        self.options, self.work = options, work
        self.binary, self.evidence = options.binary, options.evidence
        self.counts, self.faults, self.kept = defaultdict(Counter), [], Counter()
        self.slowest, self.starts, self.tracebacks = (0, ""), Counter(), Counter()

    def run(self, data, *words, seconds=PATIENCE_SECONDS):
        return Answer([self.binary, "--data", data, *words], seconds)

    def verify(self, base, data, what):
        """What an offline verification comes to: (verdict, what was said)."""
        answer = self.run(data, "audit", "verify", "--offline")
        self.slowest = max(self.slowest, (answer.seconds, what))
        if crash := answer.crash():
            return CRASH, f"audit verify: {crash}"
        if answer.seconds > SLOW_SECONDS:
            self.note("slow verifications", LIMIT, f"{answer.seconds:.1f} s: {base.name}: {what}: {answer.last()}", data)
        if answer.status:
            return self.proof(base, data, answer.last())
        return self.harm(base, data, answer.last())

    def proof(self, base, data, said):
        """Whether a history that does not verify can be exported, and so becomes a bundle that proves it."""
        bundle = self.work / "exported"
        bundle.unlink(missing_ok=True)
        answer = self.run(data, "audit", "export", bundle)
        if crash := answer.crash():
            return CRASH, f"audit export: {crash}"
        if answer.status or forge.History(bundle).payloads == base.history.payloads:
            return FOUND, said
        proven = Answer([sys.executable, "-B", VERIFY_BUNDLE, bundle, "--public-key", base.history.public_key.hex()])
        if proven.status == 0:
            return (
                MISSED,
                f"it does not verify ({said}), but its export is signed and proven: {proven.text.splitlines()[0]}",
            )
        return FOUND, said

    def harm(self, base, data, said):
        """What is another history now, of a folder that verifies."""
        bundle = self.work / "exported"
        answer = self.run(data, "audit", "export", bundle)
        if crash := answer.crash():
            return CRASH, f"audit export: {crash}"
        if answer.status:
            return MISSED, f"it verifies ({said}), but cannot be exported: {answer.last()}"
        return self.compare(base, bundle, said)

    def compare(self, base, bundle, said):
        now, was = forge.History(bundle), base.history
        if base.grows and now.hashes[: was.last] == was.hashes:
            return HARMLESS, said
        if now.payloads == was.payloads and now.hashes == was.hashes and now.header == was.header:
            return HARMLESS, said
        at = next((at for at, pair in enumerate(zip(now.hashes, was.hashes)) if pair[0] != pair[1]), None)
        first = (at if at is not None else min(now.last, was.last)) + 1
        what = f"it verifies ({said}), but from record {first} on it is another ({now.last} of {was.last} records, signed to {base.signed})"
        # A ledger that was cleanly stopped left nothing unsigned: what stands behind its end was added.
        is_limit = first > base.signed and (base.signed < was.last or base.is_open)
        return (LIMIT if is_limit else MISSED), what

    def start(self, base, data, jobs=()):
        """What `muster up` comes to on a folder: (verdict, what was seen). It serves the genuine records, or does not start."""
        log = self.work / "up.log"
        log.unlink(missing_ok=True)
        up = Up(self.binary, data, log, "--config", self.options.configuration)
        try:
            return self.judge_start(base, up, jobs)
        finally:
            up.kill()

    def judge_start(self, base, up, jobs):
        is_ready = up.is_ready()
        self.starts[{True: "served", False: "refused", None: "hung"}[is_ready]] += 1
        if is_ready is None:
            return CRASH, f"up: neither serves nor ends within {PATIENCE_SECONDS} s: {up.said()[-600:]}"
        if not is_ready:
            return self.crashed(up, up.process.returncode) or (FOUND, f"up refuses: {up.said().strip()[-400:]}")
        seen = self.served(base, up, jobs)
        verified = self.run(up.system.data, "audit", "verify")
        status = up.stop()
        if crash := self.crashed(up, status):
            return crash
        if verified.crash():
            return CRASH, f"audit verify of a running system: {verified.crash()}"
        if verified.status:
            return FOUND, f"up serves, audit verify says {verified.last()}"
        again = self.run(up.system.data, "audit", "verify", "--offline")
        if again.crash() or again.status:
            return MISSED, f"up serves and verifies; after its stop: {again.last()}"
        return seen

    def crashed(self, up, status):
        said = up.said()
        words = [word for word in SAID if word in said]
        if words or status == "did not stop" or status < 0 or status >= 100:
            lines = [line for line in said.splitlines() if any(word in line for word in words)]
            return CRASH, f"up: status {status}: {lines[:5]} {said.strip()[-500:]}"
        return None

    def served(self, base, up, touched):
        """Whether the events that it tells, and all of the jobs that it knows, are those that there were."""
        answer = self.run(up.system.data, "events", "--json", "--from", str(base.first))
        if answer.crash():
            return CRASH, f"events: {answer.crash()}"
        if answer.status:
            return FOUND, f"up serves, but tells no events: {answer.last()}"
        events = told_events(answer.text, base.history.last)
        if base.told is None:
            base.told = events
            self.wait_until_over(up)
            base.jobs, base.past = self.jobs(up), self.past(up, base)
            if "" in base.jobs or "" in base.past:
                raise SystemExit(f"the jobs of {base.name} are not told: {base.jobs} {base.past}")
            base.documents = {number: self.documents(up, number) for number in TOUCHED}
        if events != base.told:
            wrong = sorted(key for key in events.keys() | base.told.keys() if events.get(key) != base.told.get(key))
            is_limit = int(wrong[0][0]) > base.signed
            what = f"up serves other events: {len(wrong)} of {len(base.told)}, such as {wrong[:3]}"
            return (LIMIT if is_limit else MISSED), what
        for number in touched:
            if number not in base.documents:
                raise SystemExit(f"what job {number} was is not known")
            answers = self.documents(up, number)
            if answers != base.documents[number]:
                told = [(was, now) for was, now in zip(base.documents[number], answers) if was != now]
                return MISSED, f"up serves the same events, but of job {number} it tells otherwise: {str(told)[:400]}"
        self.wait_until_over(up)
        jobs = self.jobs(up)
        if jobs != base.jobs:
            return MISSED, f"up serves the same events, but other jobs: {differences(jobs, base.jobs)}"
        past = self.past(up, base)
        if past != base.past:
            return MISSED, f"up serves the same events, but another past: {differences(past, base.past)}"
        return HARMLESS, "up serves the same history"

    def wait_until_over(self, up):
        """What waited when the system was killed goes on after a start; how it comes out is compared, not how fast it is."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            answer = self.run(up.system.data, "jobs", "--json")
            if answer.status:
                return
            waiting = json.loads(answer.text)["jobs"]
            if not waiting:
                return
            time.sleep(0.05)
        raise SystemExit(f"{len(waiting)} jobs are not over {PATIENCE_SECONDS} s after a start, such as {waiting[0]}")

    def past(self, up, base):
        """The jobs of a moment amid the history."""
        return self.jobs(up, "--at", base.amid)

    def jobs(self, up, *moment):
        """Owner, name and state of all jobs that are kept."""
        answer = self.run(up.system.data, "jobs", "--all", "--json", "--limit", "10000", *moment)
        if answer.status:
            return {"": answer.last()}
        return {str(job["id"]): (job["owner"], job["name"], job["state"]) for job in json.loads(answer.text)["jobs"]}

    def documents(self, up, number):
        """What is told of one job by what the indexes lead to."""
        answers = [self.run(up.system.data, "job", *words, "--json", str(number)) for words in (["show"], ["events"])]
        times = re.compile(r'"(now|as_of|at|sequence|end|ended|expires)":[^,}]*')
        return [(answer.status, times.sub("", answer.text)) for answer in answers]

    def judge(self, kind, base, what, data, starts, jobs=()):
        """Verifies a folder offline, and starts it too where `starts` says so of what came of that; `jobs` are looked at then."""
        verdict, seen = self.verify(base, data, what)
        if verdict != CRASH and starts(verdict):
            started, saw = self.start(base, data, jobs)
            if (
                started == CRASH
                or verdict == HARMLESS
                and started in (FOUND, MISSED)
                or verdict == LIMIT
                and started == FOUND
            ):
                verdict, seen = started, f"{seen}; {saw}"
            elif verdict == MISSED:
                seen += f"; start: {started}: {saw}"
            elif verdict == FOUND and started in (HARMLESS, MISSED, LIMIT):
                seen += f"; a start all the same: {saw}"
                kind_started = f"{kind} (found by verify, started all the same)"
                self.starts[kind_started] += 1
        self.note(kind, verdict, f"{base.name}: {what}: {seen}", data)
        return verdict

    def note(self, kind, verdict, what, keep=None):
        self.counts[kind][verdict] += 1
        if self.options.verbose and verdict not in (MISSED, CRASH):
            print(f"{verdict} {kind}: {what}", flush=True)
        if kind == "slow verifications":
            print(f"slow: {what}", flush=True)
        elif verdict not in (MISSED, CRASH):
            return
        else:
            self.faults.append(f"{verdict} {kind}: {what}")
            print(self.faults[-1], flush=True)
        self.kept[kind, verdict] += 1
        if keep and self.kept[kind, verdict] <= 3:
            name = f"{kind}-{verdict}-{self.kept[kind, verdict]}-{self.options.seed}".replace("/", "-").replace(
                " ", "-"
            )
            target = self.evidence / name
            shutil.rmtree(target, ignore_errors=True)
            copy_folder(keep, target) if keep.is_dir() else shutil.copy2(keep, target)
            (self.evidence / f"{name}.txt").write_text(what + "\n")

    def report(self):
        print(
            f"\n| kind | rounds | {' | '.join((FOUND, HARMLESS, LIMIT, MISSED, CRASH))} |\n|---|---|---|---|---|---|---|"
        )
        total = Counter()
        for kind, counts in sorted(self.counts.items()):
            self.row(kind, counts)
            total.update(counts)
        self.row("all", total)
        print(f"starts: {dict(self.starts)}; slowest verification: {self.slowest[0]:.1f} s, {self.slowest[1]}")
        print(f"tracebacks of verify-bundle: {dict(self.tracebacks)}")
        for fault in self.faults:
            print(fault)
        return 1 if self.faults else 0

    def row(self, kind, counts):
        cells = " | ".join(str(counts[verdict]) for verdict in (FOUND, HARMLESS, LIMIT, MISSED, CRASH))
        print(f"| {kind} | {sum(counts.values())} | {cells} |")


def told_events(text, last):
    """What is told of the records up to one, by the name of each event."""
    told = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {
        (sequence_of(event), str(event["id"])): json.dumps(event, sort_keys=True)
        for event in told
        if sequence_of(event) <= last
    }


def sequence_of(event):
    return int(re.match(r"\d+", str(event["id"]))[0])


# ----------------------------------------------------------------------------------------------------------------- attacks


class Attacks:
    """What is done, a kind at a time."""

    def __init__(self, options):
        self.options, self.choices = options, random.Random(options.seed)
        self.work = attack.new_folder(options.folder)
        options.evidence.mkdir(parents=True, exist_ok=True)
        options.configuration = self.work / "muster.toml"
        options.configuration.write_text(CONFIGURATION)
        self.judge = Judge(options, self.work)
        self.bases = [self.stopped(), self.killed(), self.archived()]
        for base in self.bases:
            base.tell()

    # -- the folders that are attacked

    def up(self, name, *more):
        return Up(self.options.binary, self.work / name, self.work / f"{name}.log", *more)

    def ready(self, name, configuration=None):
        up = self.up(name, "--config", configuration or self.options.configuration)
        if not up.is_ready():
            raise SystemExit(f"muster up does not start: {up.said()[-1000:]}")
        return up

    def stopped(self):
        """A log with checkpoints, snapshots and tables of two starts, cleanly stopped."""
        up = self.ready("stopped")
        submit(up.system, self.options.jobs, self.choices)
        wait_until_idle(up.system)
        up.stop()
        up = self.ready("stopped")
        submit(up.system, self.options.jobs // 3, self.choices)
        path = up.system.data / "ledger/witness"
        time.sleep(2)
        old, sequence = path.read_bytes(), witnessed(up.system.data)
        submit(up.system, self.options.jobs // 3, self.choices)
        wait_until_idle(up.system)
        if (status := up.stop()) != 0:
            raise SystemExit(f"a stop ends with {status}: {up.said()[-1000:]}")
        return Base("stopped", up.system.data, self.work, self.judge.run, (old, sequence))

    def killed(self):
        """A log that is in the write-ahead log only, whose last records nothing covers yet."""
        for attempt in range(20):
            name = f"killed-{attempt}"
            up = self.ready(name)
            submit(up.system, self.options.jobs // 2, self.choices)
            attack.until(lambda: witnessed(up.system.data) > self.options.jobs, "the end is signed")
            time.sleep(self.choices.random())
            submit(up.system, 12, self.choices)
            up.kill()
            base = Base(name, up.system.data, self.work, self.judge.run)
            if base.signed < base.history.last:
                base.name = "killed"
                return base
        raise SystemExit("no kill left a record without a signature")

    def archived(self):
        """A log whose first records are in an archive, cleanly stopped."""
        configuration = self.work / "archive.toml"
        configuration.write_text(
            f"{CONFIGURATION}archive_after_days = 0\n[cluster]\nfinished_job_retention_seconds = 1\n"
        )
        up = self.ready("archived", configuration)
        archive = up.system.data / "ledger/archive"
        end = time.monotonic() + 120
        while not (archive.exists() and any(archive.glob("*.gz"))):
            if time.monotonic() > end:
                raise SystemExit("nothing is moved to an archive")
            submit(up.system, 60, self.choices)
            wait_until_idle(up.system)
        submit(up.system, 20, self.choices)
        wait_until_idle(up.system)
        up.stop()
        return Base("archived", up.system.data, self.work, self.judge.run)

    def copy(self, base):
        target = self.work / "tampered"
        for path in target.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
        shutil.rmtree(target, ignore_errors=True)
        copy_folder(base.data, target)
        return target

    def reference(self):
        """What an untouched copy of each folder serves; that it serves the same twice shows that the comparison is fair."""
        for base in self.bases:
            for _ in range(2):
                verdict, seen = self.judge.start(base, self.copy(base))
                if verdict != HARMLESS:
                    raise SystemExit(f"an untouched copy of {base.name} is not harmless: {verdict}: {seen}")

    # -- kinds of attacks

    def random(self):
        """Files of data folders, each kind of file as often."""
        for base in self.bases:
            by_kind = defaultdict(list)
            for path in files(base.data):
                by_kind[kind_of(path.relative_to(base.data))].append(path)
            for kind, paths in sorted(by_kind.items()):
                for _ in range(self.options.rounds):
                    self.one_random(base, kind, paths)

    def one_random(self, base, kind, paths):
        data, path = self.copy(base), self.choices.choice(paths)
        what = tamper(data / path.relative_to(base.data), [other for other in paths if other != path], self.choices)
        # The log proves itself; of other files only a start says what they do.
        starts = self.when(0.05 if kind in PROVEN else 0.4)
        self.judge.judge(f"files: {kind}", base, f"{path.relative_to(base.data)}: {what}", data, starts)

    def forge(self):
        self.forgeries(forge.FORGERIES, self.options.forgeries, 0.1)

    def events(self):
        for base in self.bases:
            base.is_open = True
        self.forgeries(forge.EVENTS, self.options.forgeries * 5, 0.05, 0.3)
        for base in self.bases:
            base.is_open = False

    def forgeries(self, names, rounds, starts, of_unfound=1):
        """Folders, by somebody who knows the formats."""
        for base in self.bases:
            # What is in an archive has no place in the write-ahead log.
            fit = names if base.first == 1 else [name for name in names if name in forge.FIT_FOR_ARCHIVED]
            for name in fit:
                for _ in range(rounds):
                    data = self.copy(base)
                    forger = forge.Forger(base, data, self.choices, TOUCHED)
                    what = getattr(forger, name)()
                    if what:
                        self.judge.judge(
                            f"forged: {name}",
                            base,
                            what,
                            data,
                            self.when(starts, self.choices.random() < of_unfound),
                            forger.touched,
                        )

    def when(self, chance, is_unfound=False):
        """A start is made by chance, or of all that was not found."""
        is_chosen = self.choices.random() < chance
        return lambda verdict: is_chosen or is_unfound and verdict != FOUND

    def bundle(self):
        """Bundles and archives at random."""
        targets = [(base.name, base.bundle) for base in self.bases]
        targets += [("archive", path) for path in (self.bases[2].data / "ledger/archive").glob("*.gz")]
        for name, path in targets:
            for _ in range(self.options.rounds):
                target = self.work / f"tampered.{path.suffix}"
                shutil.copy2(path, target)
                what = tamper(target, [], self.choices)
                self.one_bundle("archives: random" if path.suffix == ".gz" else "bundles: random", path, target, what)

    def forge_bundle(self):
        """Bundles, by somebody who knows the format."""
        target = self.work / "tampered.bundle"
        for base in self.bases:
            for name in forge.BUNDLE_FORGERIES:
                for _ in range(self.options.forgeries):
                    data, what = getattr(forge.Counterfeiter(base.bundle, self.choices), name)()
                    target.write_bytes(data)
                    self.one_bundle(f"bundles: {name}", base.bundle, target, what)

    def one_bundle(self, kind, genuine, target, what):
        """The status is 0 only of what the genuine one says, with the right key; without a key also of another's own."""
        if not target.exists():
            return self.judge.note(kind, FOUND, what)
        key = self.bases[
            2 if "archive" in str(genuine) else [base.bundle for base in self.bases].index(genuine)
        ].history.public_key
        is_same = same_bundle(genuine, target)
        with_key, without = (
            Answer([sys.executable, "-B", VERIFY_BUNDLE, target, *more]) for more in (["--public-key", key.hex()], [])
        )
        self.judge.slowest = max(self.judge.slowest, (with_key.seconds, str(target)))
        is_own = f"public key {forge.OWN.public.hex()} (from the bundle itself)" in without.text
        seen = (
            f"{what}: with the key {with_key.status} {with_key.last()!r}, without {without.status} {without.last()!r}"
        )
        crashes = [answer.crash() for answer in (with_key, without) if answer.crash()]
        if crashes:
            return self.judge.note(kind, CRASH, f"{seen}: {crashes[0]}", target)
        # Not a verdict of the verifier's own, although its status is right.
        self.judge.tracebacks.update([with_key.last().split(":")[0]] if "Traceback" in with_key.text else [])
        is_taken = with_key.status == 0 or without.status == 0 and not is_own
        verdict = HARMLESS if is_same else MISSED if is_taken else LIMIT if without.status == 0 else FOUND
        return self.judge.note(kind, verdict, seen, target)

    def keep(self):
        """Files beside the log, each kind with a start each time: the key, the witness, spools, books, options."""
        for base in self.bases[:2]:
            for kind in ("ledger.key", "witness", "spool", "books", "OPTIONS", "IDENTITY", "snapshot"):
                paths = [path for path in files(base.data) if kind_of(path.relative_to(base.data)) == kind]
                for _ in range(self.options.forgeries * 2 if paths else 0):
                    data, path = self.copy(base), self.choices.choice(paths)
                    what = tamper(
                        data / path.relative_to(base.data), [other for other in paths if other != path], self.choices
                    )
                    self.judge.judge(
                        f"started: {kind}", base, f"{path.relative_to(base.data)}: {what}", data, self.when(1)
                    )

    def busy(self):
        """Nothing is tampered with: verifications of a system that works find nothing."""
        up, done = self.ready("busy"), threading.Event()
        # A load without end would make a history that nobody verifies in the time that is allowed.
        allowed = threading.Semaphore(0)

        def load(number):
            choices = random.Random(f"{self.options.seed} {number}")
            while not done.is_set():
                if allowed.acquire(timeout=0.1):
                    submit(up.system, 10, choices)

        threads = [threading.Thread(target=load, args=(number,), daemon=True) for number in range(2)]
        for thread in threads:
            thread.start()
        try:
            for number in range(self.options.rounds):
                allowed.release(BUSY_BATCHES)
                words = ["audit", "verify"] + ["--offline"] * (number % 2)
                answer = self.judge.run(up.system.data, *words)
                verdict = CRASH if answer.crash() else MISSED if answer.status else HARMLESS
                seen = answer.crash() or answer.last()
                self.judge.note(f"false alarms: {' '.join(words)}", verdict, seen)
        finally:
            done.set()
            for thread in threads:
                thread.join(timeout=PATIENCE_SECONDS)
            up.stop()

    def backup(self):
        """A folder of backups, whose latest one is restored with the genuine key."""
        data = self.copy(self.bases[0])
        key = (data / "ledger.key").read_bytes()
        kept = self.work / "backups"
        up = Up(self.options.binary, data, self.work / "backup.log", "--config", self.options.configuration)
        if not up.is_ready():
            raise SystemExit(f"an untouched copy is not served: {up.said()[-500:]}")
        try:
            for _ in range(3):
                submit(up.system, 20, self.choices)
                wait_until_idle(up.system)
                answer = self.judge.run(data, "backup", str(kept))
                if answer.status:
                    raise SystemExit(f"no backup: {answer.text}")
        finally:
            up.stop()
        answer, target = self.restored(kept, key)
        if answer.status:
            raise SystemExit(f"an untouched backup is not restored: {answer.text}")
        genuine = self.work / "genuine"
        copy_folder(target, genuine)
        base = Base("backup", genuine, self.work, self.judge.run)
        base.tell()
        verdict, seen = self.judge.start(base, self.copy(base))
        if verdict != HARMLESS:
            raise SystemExit(f"an untouched restored folder is not harmless: {verdict}: {seen}")
        for name in backups.KINDS:
            for _ in range(self.options.rounds):
                self.one_backup(base, kept, key, name)

    def restored(self, folder, key):
        """What a restore to an empty folder with the genuine key comes to."""
        target = self.work / "restored"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(mode=0o711)
        (target / "ledger.key").write_bytes(key)
        (target / "ledger.key").chmod(0o600)
        return self.judge.run(target, "restore", str(folder)), target

    def one_backup(self, base, kept, key, name):
        folder = self.work / "tampered-backups"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(kept, folder)
        what = getattr(backups.Tamperer(folder, self.choices), name)(tamper)
        if not what:
            return
        listed = self.judge.run(base.data, "backup", "list", str(folder))
        answer, target = self.restored(folder, key)
        if crash := listed.crash() or answer.crash():
            return self.judge.note(f"backups: {name}", CRASH, f"{what}: {crash}", folder)
        if answer.status:
            is_whole = not (target / "ledger").exists() and os.listdir(target) == ["ledger.key"]
            left = "" if is_whole else f"; and it leaves {sorted(path.name for path in target.rglob('*'))[:9]}"
            return self.judge.note(f"backups: {name}", FOUND if is_whole else MISSED, f"{what}: {answer.last()}{left}", folder)
        known = {"ledger", "ledger.key"}
        if more := sorted(set(os.listdir(target)) - known):
            return self.judge.note(f"backups: {name}", MISSED, f"{what}: the restored folder has {more}", folder)
        return self.judge.judge(f"backups: {name}", base, what, target, self.when(0.1))

    def live(self):
        """Files under a system that runs."""
        base = self.bases[0]
        for kind in ("snapshot", "forged snapshot", "wal", "sst", "MANIFEST", "CURRENT", "witness", "ledger.key", "gz"):
            for _ in range(self.options.forgeries):
                self.one_live(base if kind != "gz" else self.bases[2], kind)

    def one_live(self, base, kind):
        data, log = self.copy(base), self.work / "up.log"
        log.unlink(missing_ok=True)
        up = Up(self.options.binary, data, log, "--config", self.options.configuration)
        try:
            if not up.is_ready():
                raise SystemExit(f"an untouched copy of {base.name} is not served: {up.said()[-500:]}")
            verdict, seen = self.judge_live(base, up, kind)
        finally:
            up.kill()
        self.judge.note(f"running: {kind}", verdict, seen, data)

    def judge_live(self, base, up, kind):
        """What past states, a verification, a stop and a look afterwards come to."""
        past = [int(path.stem) for path in (up.system.data / "ledger/snapshots").glob("*.snapshot")]
        # Those whose snapshot has been looked at are what the ledger believes.
        before = {max(past) + more: self.at(up, max(past) + more) for more in (0, 3, 6, 9, 12)}
        if any(answer.status for answer in before.values()):
            return CRASH, f"past states are not told: {[answer.last() for answer in before.values()]}"
        time.sleep(self.choices.choice([0, 1.5]))
        what = self.tamper_live(base, up.system.data, kind)
        # The gateway keeps two past states for a while, so that another is asked for.
        for at, answer in reversed(list(before.items())):
            now = self.at(up, at)
            if answer.status == 0 and now.status == 0 and answer.text != now.text:
                return MISSED, f"{what}: jobs as of record {at} are others"
            if now.crash():
                return CRASH, f"{what}: jobs as of record {at}: {now.crash()}"
        verified = self.judge.run(up.system.data, "audit", "verify")
        status = up.stop()
        if crash := self.judge.crashed(up, status):
            return CRASH, f"{what}: {crash[1]}"
        if verified.crash():
            return CRASH, f"{what}: {verified.crash()}"
        verdict, seen = self.judge.verify(growing(base), up.system.data, what)
        if verdict == CRASH:
            return CRASH, f"{what}: {seen}"
        if verified.status or verdict == FOUND or status:
            return FOUND, f"{what}: verify {verified.status}, stop {status}, verify afterwards {verdict} {seen}"
        return verdict, f"{what}: {seen}"

    def at(self, up, at):
        return self.judge.run(up.system.data, "jobs", "--all", "--json", "--limit", "10000", "--at-seq", str(at))

    def tamper_live(self, base, data, kind):
        if kind == "forged snapshot":
            return forge.Forger(base, data, self.choices, TOUCHED).snapshot_forged()
        paths = [path for path in files(data) if kind_of(path.relative_to(data)) == kind]
        if not paths:
            return f"nothing, for there is no {kind}"
        path = self.choices.choice(paths)
        return f"{path.relative_to(data)}: {tamper(path, [other for other in paths if other != path], self.choices)}"


PROVEN = {"sst", "wal", "MANIFEST", "CURRENT", "witness", "gz", "IDENTITY", "OPTIONS"}
VERIFY_BUNDLE = attack.REPOSITORY / "ops/verify-bundle"


def differences(now, was):
    wrong = sorted(name for name in now.keys() | was.keys() if now.get(name) != was.get(name))
    return f"{len(wrong)} of {len(was)}, such as {[(name, was.get(name), now.get(name)) for name in wrong[:2]]}"


def growing(base):
    other = copy.copy(base)
    other.grows = True
    return other


def same_bundle(genuine, target):
    """Whether both say the same: the last line may be written otherwise, and what is compressed may be so too."""
    return meaning(genuine) == meaning(target)


def said(path):
    data = path.read_bytes()
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return b""


def meaning(path):
    """All lines of a bundle but its last as they are, and what the last says."""
    *lines, trailer = said(path).splitlines(keepends=True) or [b""]
    try:
        found = json.loads(trailer)
        return lines, found["records"], found["sha256"], found["signature"].lower()
    except (ValueError, AttributeError, KeyError, TypeError):
        return lines, path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--binary", type=Path, default=shutil.which("muster"), help="the program (default: in the path)"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path("/tmp/muster-tamper"), help="is emptied first (%(default)s)"
    )
    parser.add_argument("--evidence", type=Path, help="what is missed or crashes is kept here (default: in the folder)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--kinds", default=",".join(KINDS), help="%(default)s")
    parser.add_argument(
        "--rounds", type=int, default=60, help="tampers at random of each kind of file of each folder (%(default)s)"
    )
    parser.add_argument("--forgeries", type=int, default=6, help="rounds of each forgery (%(default)s)")
    parser.add_argument("--jobs", type=int, default=240, help="requests that make the history (%(default)s)")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if not options.binary:
        parser.error("there is no muster in the path: give --binary")
    options.binary, options.folder = options.binary.resolve(), options.folder.resolve()
    options.evidence = (options.evidence or options.folder / "evidence").resolve()
    print(f"seed {options.seed}", flush=True)
    attacks = Attacks(options)
    attacks.reference()
    try:
        for kind in options.kinds.split(","):
            print(f"-- {kind}", flush=True)
            getattr(attacks, kind.replace("-", "_"))()
    finally:
        status = attacks.judge.report()
    return status


if __name__ == "__main__":
    sys.exit(main())
