#!/usr/bin/env python3
"""Takes from `muster up` what it needs: room, files, processes, its own log. Each case says what has to hold and what was
seen. `--rounds` repeats the cases that are left to chance; `--only NAME` runs one case."""

import json
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import attack
import cluster
import hostile

SMALL_FILE_SYSTEM_MIB = 48
# The witness of the log's end is written each second: what is older than that is not lost unnoticed.
WITNESSED_AFTER_SECONDS = 3


class Site:
    """A folder with a system of its own, and what was submitted to it."""

    def __init__(self, binary, folder):
        self.folder, self.binary = folder, binary
        folder.mkdir(parents=True, exist_ok=True)
        self.system = attack.System(binary, folder / "data")
        self.process, self.acknowledged = None, []
        self.log = folder.parent / f"{folder.name}.log"

    def start(self, *more, limits=(), user=None, environment=None):
        def limit():
            for kind, value in limits:
                resource.setrlimit(kind, (value, value))
            if user:
                os.setgroups([])
                os.setresgid(user.gid, user.gid, user.gid)
                os.setresuid(user.uid, user.uid, user.uid)

        words = [self.binary, "--data", self.system.data, "up", "--nodes", "2", "--cpus", "8", "--memory", "4G", *more]
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=limit, env=os.environ | (environment or {})
            )
        return self

    def is_ready(self, seconds=30):
        """Whether it comes to serve; not, if it ends before that."""
        try:
            attack.until(lambda: self.process.poll() is not None or self.system.is_ready(), "ready", seconds)
        except TimeoutError:
            return False
        return self.process.poll() is None

    def submit(self, count, *more):
        """How many of so many submissions were refused or not answered."""
        refused = 0
        for _ in range(count):
            answer = self.system.run("submit", "--parsable", "-o", "/dev/null", "-D", "/", *more, "--", "true", seconds=60)
            if answer.returncode == 0:
                self.acknowledged.append(answer.stdout.strip())
            else:
                refused += 1
        return refused

    def lost(self):
        """What was acknowledged and the log does not know."""
        known = {event["data"]["job"] for event in self.system.events("job") if "job" in event["data"]}
        return [number for number in self.acknowledged if number not in known]

    def kill(self):
        self.process.kill()
        self.process.wait()
        for pid in attack.processes_that_name(f"{self.system.data}/spool"):
            os.kill(pid, signal.SIGKILL)

    def stop(self):
        self.process.terminate()
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.kill()
            return "did not stop within 60 s"

    def last_words(self):
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

    def has_panicked(self):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return any(words in text for words in ("panicked", "terminate called", "fatal runtime error"))


class Cases:
    """Each returns (what was seen, whether it is as it has to be)."""

    def __init__(self, options, folder):
        self.options, self.folder, self.choices = options, folder, random.Random(options.seed)

    def site(self, name):
        return Site(self.options.binary, self.folder / name)

    def disk_full(self, site):
        """Nothing acknowledged is lost, and it goes on once there is room, also after SIGKILL on a full disk."""
        with small_file_system(site.folder):
            site.start()
            site.is_ready()
            site.submit(20)
            filler = site.folder / "filler"
            fill(filler)
            refused = 0
            # The log has room set aside, which has to be used up first.
            for _ in range(800):
                refused += site.submit(1, "--env", "A=" + self.choices.randbytes(50_000).hex())
                if refused >= 5:
                    break
                fill(filler)
            site.kill()
            site.start()
            came_up_full, said = site.is_ready(15), site.last_words()
            filler.unlink()
            if site.process.poll() is not None:
                site.start()
            ready = site.is_ready()
            lost = site.lost() if ready else site.acknowledged
            more = site.submit(5) if ready else 5
            verified = ready and site.system.run("audit", "verify").returncode == 0
            site.stop()
        seen = f"{len(site.acknowledged)} acknowledged, {refused} refused, lost {lost}; up on the full disk: {came_up_full}"
        return f"{seen} ({said}); with room: ready {ready}, refused {more}", refused and verified and not lost and not more

    def read_only(self, site):
        """It refuses to start, and says why; nothing is lost when it is writable again."""
        with small_file_system(site.folder):
            site.start().is_ready()
            site.submit(20)
            site.stop()
            subprocess.run(["mount", "-o", "remount,ro", site.folder], check=True)
            is_up = site.start().is_ready(15)
            said, status = site.last_words(), site.process.poll()
            subprocess.run(["mount", "-o", "remount,rw", site.folder], check=True)
            if status is None:
                site.kill()
            lost = site.lost() if site.start().is_ready() else site.acknowledged
            site.stop()
        return f"up: {is_up}, status {status}: {said}; lost {lost}", not is_up and not lost

    def two_on_one(self, site):
        """The second is refused, the first goes on."""
        site.start().is_ready()
        second = Site(self.options.binary, site.folder)
        second.start()
        try:
            status = second.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            status = None
            second.process.kill()
        refused = site.submit(5)
        lost = site.lost()
        site.stop()
        return f"the second ended with {status}; first: {refused} refused, lost {lost}", status and not refused and not lost

    def few_files_64(self, site):
        return self.limited(site, resource.RLIMIT_NOFILE, 64)

    def few_files_256(self, site):
        return self.limited(site, resource.RLIMIT_NOFILE, 256)

    def little_memory(self, site):
        return self.limited(site, resource.RLIMIT_AS, 1_500_000 * 1024)

    def limited(self, site, kind, value):
        """It works, or says in a sentence why not; what is acknowledged is kept either way."""
        is_up = site.start(limits=[(kind, value)]).is_ready()
        refused = site.submit(30) if is_up else 30
        said, status = site.last_words(), site.process.poll()
        site.kill() if status is None else None
        lost = site.lost() if site.start().is_ready() else site.acknowledged
        site.stop()
        seen = f"up: {is_up}, status {status}: {said}; {30 - refused} acknowledged, lost {lost}"
        return seen, not lost and not site.has_panicked()

    def few_processes(self, site):
        """As an ordinary user who may have few processes and threads: it works, or says in a sentence why not."""
        seen, is_right = [], True
        with hostile.two_users() as (user, _):
            os.chmod(self.folder, 0o711)
            os.chown(site.folder, user.uid, user.gid)
            # Begun without a limit: a first start that fails half way is `first_start_killed`.
            site.start(user=user).is_ready()
            site.stop()
            for most in (10, 30, 50, 80, 150):
                is_up = site.start(limits=[(resource.RLIMIT_NPROC, most)], user=user).is_ready(10)
                refused = site.submit(20) if is_up else 20
                said, status = site.last_words(), site.process.poll()
                site.kill() if status is None else None
                seen.append(f"{most}: up {is_up}, status {status}, {20 - refused} acknowledged ({said[:160]})")
                is_right &= not site.has_panicked() and (is_up or bool(said))
            lost = site.lost() if site.start(user=user).is_ready() else site.acknowledged
            site.stop()
        return f"{'; '.join(seen)}; lost {lost}", is_right and not lost

    def first_start_killed(self, site):
        """SIGKILL in the middle of the very first start, when nothing was acknowledged yet: the next start serves. As root and not."""
        told = []
        with hostile.two_users() as (user, _):
            os.chmod(self.folder, 0o711)
            os.chmod(site.folder, 0o711)
            for number in range(12):
                of = user if number % 2 else None
                one = Site(self.options.binary, site.folder / f"first{number}")
                if of:
                    os.chown(one.folder, of.uid, of.gid)
                one.start(user=of)
                attack.until((one.system.data / "ledger").exists, "a ledger's folder", 20)
                time.sleep(self.choices.uniform(0, 0.12))
                one.process.kill()
                one.process.wait()
                if not one.start(user=of).is_ready(20):
                    told.append(f"{'user' if of else 'root'}: {one.last_words()[-160:]}")
                one.kill() if one.process.poll() is None else None
        return f"{len(told)} of 12 do not start again: {told}", not told

    def clock_jumps(self, site):
        """The clock of `muster up` alone jumps by days while jobs run (libfaketime): none is lost or ended by its walltime."""
        library = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
        if not library:
            return "NOT DONE: Debian's package libfaketime is not installed", True
        clock = site.folder / "clock"
        clock.write_text("+0")
        faked = {"LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        site.start(environment=faked).is_ready()
        refused, offsets = 0, []
        for _ in range(4):
            refused += self.jump(site, clock, offsets)
        clock.write_text("+0")
        refused += site.submit(3)
        ended = [site.system.run("job", "wait", number).returncode for number in site.acknowledged]
        for number in (number for number, status in zip(site.acknowledged, ended) if status):
            print(f"  job {number}: {site.system.run('job', 'events', number).stdout}", flush=True)
        lost = [event for event in site.system.events() if "node_lost" in json.dumps(event)]
        steps = {name: site.system.run(*name.split()).returncode for name in ("audit verify", "replay --verify")}
        stopped = site.stop()
        bad = sum(1 for status in ended if status)
        seen = f"offsets {offsets}; {len(ended)} jobs, {bad} did not end well, {refused} refused, {len(lost)} records of node_lost, {steps}, stop {stopped}"
        return seen, not (bad or refused or lost or any(steps.values()) or stopped)

    def jump(self, site, clock, offsets):
        """Jobs that run across a jump there, a second one on, and back; how many were refused."""
        refused = 0
        for offset in (self.choices.choice(["+1d", "+400d", "+3600", "+30"]), self.choices.choice(["-1d", "-400d", "-3600", "-30"])):
            refused += site.submit(2, "-t", "1", "--name", "short") + self.long_jobs(site)
            clock.write_text(offset)
            offsets.append(offset)
            time.sleep(1.5)
            refused += site.submit(2, "-t", "1")
        return refused

    def long_jobs(self, site):
        """Two jobs that run for some seconds; how many were refused."""
        refused = 0
        for _ in range(2):
            answer = site.system.run("submit", "--parsable", "-o", "/dev/null", "-D", "/", "-t", "2", "--", "sleep", "6", seconds=60)
            refused += answer.returncode != 0
            site.acknowledged += [answer.stdout.strip()] if answer.returncode == 0 else []
        return refused

    def permissions(self, site):
        """Nothing in a data folder can be read or changed by others, but the socket, with which everybody talks (F20)."""
        os.umask(0o022)
        site.start().is_ready()
        site.submit(5, "--env", "SECRET=x")
        site.system.run("run", "--job", "1", "--", "true")
        told = open_to_others(site.system.data)
        site.stop()
        told += [line for line in open_to_others(site.system.data) if line not in told]
        return f"open to others: {told}", not told

    def cluster_permissions(self, site):
        """The same of all that `ops/local-cluster` makes."""
        os.umask(0o022)
        both = cluster.Cluster(self.options, attack.new_folder(site.folder))
        site.process = None
        both.start()
        try:
            site.submit(5)
            told = open_to_others(site.folder / "etc", site.folder / "log", site.folder / "run", site.folder / "nats", site.folder / "data")
        finally:
            both.control("stop")
        return f"open to others: {told}", not told

    def lost_ledger(self, site):
        """Without its ledger/ it stops acknowledging, and a start beside the old key makes no new log (F11)."""
        site.start().is_ready()
        site.submit(10)
        shutil.rmtree(site.system.data / "ledger")
        time.sleep(3)
        refused = site.submit(5)
        said = site.last_words()
        site.kill()
        is_up = site.start().is_ready(15)
        again = site.last_words()
        site.kill() if site.process.poll() is None else None
        return f"{refused} of 5 refused while it ran ({said}); up again: {is_up} ({again})", refused == 5 and not is_up

    def lost_wal(self, site):
        """A removed write-ahead log after SIGKILL is noticed at the start (F4)."""
        site.start().is_ready()
        site.submit(60)
        time.sleep(WITNESSED_AFTER_SECONDS)
        site.kill()
        newest = max((site.system.data / "ledger").rglob("*.log"), key=lambda path: path.stat().st_mtime)
        newest.unlink()
        is_up = site.start().is_ready(15)
        said = site.last_words()
        lost = site.lost() if is_up else "not asked"
        site.kill() if site.process.poll() is None else None
        return f"{newest.name} removed; up again: {is_up} ({said}); lost {lost}", not is_up

    def cut_wal(self, site):
        """The end of the write-ahead log cut off by chance is noticed at the start (F4)."""
        site.start().is_ready()
        site.submit(40)
        time.sleep(WITNESSED_AFTER_SECONDS)
        site.kill()
        newest = max((site.system.data / "ledger").rglob("*.log"), key=lambda path: path.stat().st_mtime)
        size = newest.stat().st_size
        cut = self.choices.choice([1, 7, 100, 300, self.choices.randrange(1, max(2, size))])
        os.truncate(newest, max(0, size - cut))
        is_up = site.start().is_ready(15)
        said = site.last_words()
        lost = site.lost() if is_up else []
        site.kill() if site.process.poll() is None else None
        return f"the last {cut} of {size} bytes cut off; up again: {is_up} ({said}); lost {lost}", not lost


    def copied_folder(self, site):
        """A ledger on a copy of the folder, on the same NATS server, does not answer beside the first one (F10)."""
        both = cluster.Cluster(self.options, attack.new_folder(site.folder))
        site.process = None
        both.start()
        try:
            site.submit(20)
            both.kill("ledger")
            copy = site.folder / "copy"
            copy.mkdir()
            shutil.copytree(both.system.data / "ledger", copy / "ledger", ignore=shutil.ignore_patterns("*.sock"))
            shutil.copy2(both.system.data / "ledger.key", copy)
            both.restart("ledger")
            both.wait_until_ready()
            site.submit(5)
            words = [self.options.binary, "--data", copy, "serve", "ledger", "--config", site.folder / "etc/ledger.toml"]
            with open(site.log, "ab") as out:
                second = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            refused = 0
            end = time.monotonic() + 20
            while second.poll() is None and time.monotonic() < end:
                refused += site.submit(10)
            status, said = second.poll(), site.last_words()
            second.kill()
            second.wait()
            refused_after = site.submit(10)
            lost = site.lost()
        finally:
            both.control("stop")
        twice = len(site.acknowledged) - len(set(site.acknowledged))
        seen = f"{twice} numbers twice, lost {lost}, of {len(site.acknowledged)}, {refused} refused beside it, {refused_after} of 10 after it; second: {status}"
        return f"{seen} ({said})", status and not twice and not lost and not refused_after


def open_to_others(*folders):
    """Files and folders that an ordinary user can read or change, as their modes and those of the way to them say."""
    found = []
    for folder in folders:
        is_shut = not folder.stat().st_mode & 0o001
        for path in [folder, *([] if is_shut else sorted(reachable(folder)))]:
            # What emulated nodes have as their own /tmp and /etc/hosts is for everybody, and so is where that is.
            if path.name == "host.plan" or path.parent.name == "host" or "/host/tmp/" in str(path):
                continue
            mode = path.lstat().st_mode
            if mode & 0o006 and not stat.S_ISLNK(mode) and path.name != "muster.sock":
                found.append(f"{path.relative_to(folder.parent)} {stat.filemode(mode)}")
    return found


def reachable(folder):
    """What is below a folder and can be reached by others."""
    for path in folder.iterdir():
        yield path
        if path.is_dir() and not path.is_symlink() and path.lstat().st_mode & 0o001:
            yield from reachable(path)


class small_file_system:
    """A tmpfs that is gone with the block."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_FILE_SYSTEM_MIB}m", "tmpfs", self.folder], check=True)

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.folder], check=True)


def fill(path):
    """Writes until there is no room."""
    with open(path, "ab", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 65_536)
        except OSError:
            pass


REPEATED = {"cut_wal", "lost_wal"}
ALL = ["disk_full", "read_only", "two_on_one", "few_files_64", "few_files_256", "little_memory", "few_processes", "first_start_killed", "clock_jumps", "permissions", "lost_ledger"]


def main():
    if "--only" in sys.argv:
        at = sys.argv.index("--only")
        names = [sys.argv[at + 1]]
        del sys.argv[at : at + 2]
    else:
        names = [*ALL, "cluster_permissions", "copied_folder", "lost_wal", "cut_wal"]
    options = attack.arguments(__doc__, 3)
    folder = attack.new_folder(options.folder)
    cases, failures, results = Cases(options, folder), 0, []
    for name in names:
        for number in range(options.rounds if name in REPEATED else 1):
            site = cases.site(f"{name}-{number}")
            seen, is_right = getattr(cases, name)(site)
            panicked = " PANICKED" if site.has_panicked() else ""
            failures += not is_right
            results.append({"case": name, "right": bool(is_right)})
            print(f"{'held' if is_right else 'FAULT'} {name}:{panicked} {seen}", flush=True)
    print(json.dumps(results))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
