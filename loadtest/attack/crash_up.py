#!/usr/bin/env python3
"""Kills `muster up` with SIGKILL under load, also with its fork servers and while it starts."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter

import attack


class Up:
    """`muster up`, its processes and its log."""

    def __init__(self, options, folder):
        self.system = attack.System(options.binary, folder / "data")
        self.log = open(folder / "up.log", "ab")
        self.process, self.kills = None, 0

    def start(self):
        words = [self.system.binary, "--data", self.system.data, "up", "--nodes", "4", "--cpus", "8", "--memory", "16G"]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def wait_until_ready(self):
        attack.until(self.is_ready, "muster up is ready")

    def is_ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"muster up ended with {self.process.returncode}: see {self.log.name}")
        return self.system.is_ready()

    def fork_servers(self):
        """Only the servers: the shims that they fork have the same command line, and are not ours to kill."""
        named = attack.processes_that_name(f"{self.system.data}/spool")
        return [pid for pid in named if parent(pid) == self.process.pid]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.kills += 1

    def kill_servers(self, pids):
        for pid in pids:
            try:
                attack.os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            self.kills += 1

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=60)


def parent(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return None


def blow(up, choices):
    """One or more kills of one sort; returns the sort."""
    time.sleep(choices.uniform(0.1, 1.5))
    sort = choices.choice(["alone", "alone", "with fork servers", "fork servers only", "during start"])
    servers = up.fork_servers()
    if sort == "fork servers only":
        up.kill_servers(servers)
        return sort
    up.kill()
    if sort == "with fork servers":
        up.kill_servers(servers)
    if sort == "during start":
        up.start()
        time.sleep(choices.uniform(0, 0.3))
        up.kill()
    time.sleep(choices.uniform(0, 0.3))
    up.start()
    up.wait_until_ready()
    return sort


def main():
    options = attack.arguments(__doc__, 100)
    folder = attack.new_folder(options.folder)
    up, choices, blows, faults = Up(options, folder), random.Random(options.seed), Counter(), []
    up.start()
    up.wait_until_ready()
    load = attack.Load(up.system, folder / "marks", options.seed, options.clients, options.batch_clients)
    load.start()
    for number in range(1, options.rounds + 1):
        blows[blow(up, choices)] += 1
        if number % 10 == 0:
            print(f"{number} blows, {up.kills} kills, {load.requests} requests acknowledged, {len(load.faults)} faults", flush=True)
    load.stop()
    story = attack.wait_until_finished(load, up.system)
    found, tasks = attack.compare(load, story)
    faults += found
    attack.check_usage(up.system, story, faults)
    attack.check_history(up.system, folder, faults)
    if status := up.stop():
        faults.append(f"the clean stop ended with {status}")
    attack.check_nothing_left(folder, faults)
    attack.check_logs(folder, faults)
    print(f"{up.kills} processes killed")
    return attack.report("crash_up", blows, load, story, tasks, faults)


if __name__ == "__main__":
    sys.exit(main())
