#!/usr/bin/env python3
"""Takes from `muster up` what it needs: room, files, processes, its own log. Each case says what has to hold and what was
seen. `--rounds` repeats the cases that are left to chance; `--only NAME` runs one case."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

import attack
import cluster

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

    def start(self, *more, limits=()):
        def limit():
            for kind, value in limits:
                resource.setrlimit(kind, (value, value))

        words = [self.binary, "--data", self.system.data, "up", "--nodes", "2", "--cpus", "8", "--memory", "4G", *more]
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=limit)
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
        text = self.log.read_text(errors="replace")
        return "panicked" in text or "terminate called" in text


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
            shutil.copytree(both.system.data / "ledger", copy / "ledger")
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
ALL = ["disk_full", "read_only", "two_on_one", "few_files_64", "few_files_256", "little_memory", "lost_ledger"]


def main():
    if "--only" in sys.argv:
        at = sys.argv.index("--only")
        names = [sys.argv[at + 1]]
        del sys.argv[at : at + 2]
    else:
        names = [*ALL, "copied_folder", "lost_wal", "cut_wal"]
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
