#!/usr/bin/env python3
"""Bad input by every way in: HTTP, commands, files, scripts, answers of filters. Nothing may break, and what is refused changes nothing.

Needs root, and makes the users `faa` (an administrator of the system here) and `fbb` if they are missing. The seed repeats all
choices. Kinds of input may be named; `--scale 0.1` makes a tenth of each.

    loadtest/attack/inputs.py --binary target/release/muster --seed 2401
"""

import json
import os
import random
import re
import subprocess
import sys
import time
import traceback
from collections import Counter, defaultdict

import inputs_cli
import inputs_dialects
import inputs_files
import inputs_http
import raw
from hostile import System, arguments, folder, two_users, until

SHOWN_OF_A_FAULT = 4
MOST_GROWTH_MIB = 400
MOST_NEW_FILES = 40
KINDS = [
    *inputs_http.KINDS, *inputs_cli.KINDS, *inputs_dialects.KINDS, *inputs_files.KINDS,
]
"""Each is (name, inputs, function of the run and the number of inputs)."""


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of inputs of each kind (%(default)s)")
    parser.add_argument("--log", default="/dev/null", help="a file for every input and what came of it")
    parser.add_argument("kinds", nargs="*", help=f"only these: {' '.join(name for name, *_ in KINDS)}")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with folder(options.keep) as where, two_users() as (a, b):
        os.chmod(where, 0o711)
        with System(options.binary, where, configuration(where, options.binary), nodes=2, cpus=8) as system:
            run = Run(options, system, a, b)
            for name, count, attack in KINDS:
                if not options.kinds or name in options.kinds:
                    run.attack(name, max(1, int(count * options.scale)), attack)
            run.close()
        run.check_log()
        return run.report()


def configuration(where, binary):
    """An administrator who is not root, tokens for both and for the agent of a node, and little patience with bodies that do not come."""
    made = subprocess.run([binary, "agent", "token", AGENT], capture_output=True, text=True, check=True)
    for name, text in (("agent.token", made.stdout), ("agents", made.stderr.strip().splitlines()[-1] + "\n")):
        with open(os.path.join(where, name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(os.path.join(where, name), 0o600)
    tokens = os.path.join(where, "tokens")
    with open(tokens, "w", encoding="utf-8") as file:
        file.write("".join(f"{token} {name}\n" for name, token in TOKENS.items()))
    os.chmod(tokens, 0o600)
    return (
        f'[cluster]\nadministrators = ["faa"]\nagents_make_nodes = true\n[gateway]\nagents_file = "{where}/agents"\nlisten = "127.0.0.1:0"\ntokens_file = "{tokens}"\n'
        'body_seconds = 2\nhead_seconds = 4\n[filter_runner]\naccount = "nobody"\n'
    )


TOKENS = {"faa": "faa-secret-token-0123456789", "fbb": "fbb-secret-token-0123456789"}
AGENT = "far1"


class Run:
    """The system under attack, what was sent, and what did not hold."""

    def __init__(self, options, system, administrator, user):
        self.system, self.administrator, self.user = system, administrator, user
        self.seed, self.choices = options.seed, random.Random(options.seed)
        self.counts, self.results, self.faults = Counter(), defaultdict(Counter), []
        self.seen, self.remarks, self.refused, self.last = Counter(), Counter(), [], 0
        self.name, self.where = "", system.where
        with open(os.path.join(self.where, "agent.token"), encoding="utf-8") as file:
            self.agent = file.read().strip()
        self.log = open(options.log, "w", encoding="utf-8", errors="replace", buffering=1)
        self.address = ("127.0.0.1", int(re.search(r"TCP.*address=\S*?127\.0\.0\.1:(\d+)", plain(system.said())).group(1)))
        self.memory = [self.resident_mib()]
        self.files = [self.open_files()]

    # What is noted

    def note(self, result, what=""):
        """One input more of the present kind, and what came of it."""
        self.log.write(f"{self.name}\t{result}\t{what}\n")
        self.counts[self.name] += 1
        self.results[self.name][result] += 1

    def fault(self, what, detail=""):
        """A rule did not hold. Of faults alike only a few are shown."""
        like = f"{self.name}: {re.sub(r'[0-9]+', 'N', what)}"
        self.seen[like] += 1
        if self.seen[like] <= SHOWN_OF_A_FAULT:
            print(f"FAULT   {self.name}: {what}: {str(detail)[:1500]}", flush=True)
            self.faults.append(f"{self.name}: {what}")

    def remark(self, what, detail=""):
        """Something that breaks no rule but could be better."""
        self.remarks[f"{self.name}: {what}"] += 1
        if self.remarks[f"{self.name}: {what}"] <= 2:
            print(f"remark  {self.name}: {what}: {str(detail)[:500]}", flush=True)

    # The system

    def resident_mib(self):
        with open(f"/proc/{self.system.process.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) // 1024

    def open_files(self):
        return len(os.listdir(f"/proc/{self.system.process.pid}/fd"))

    def sequence(self):
        """The last record, as the user is told."""
        answer = raw.ask(self.system.socket, raw.request("GET", "/v1/info"), self.user)
        return json.loads(answer.body)["head"] if answer.status == 200 else self.last

    def was_asked(self, is_refused):
        """Notes between which records a request of the user was answered."""
        before, self.last = self.last, self.sequence()
        if is_refused and self.last > before:
            self.refused.append((before, self.last))

    def attack(self, name, count, attack):
        """All inputs of one kind, and the system afterwards."""
        self.name, begun = name, time.monotonic()
        self.choices = random.Random(f"{self.seed} {name}")
        self.last = self.sequence()
        try:
            attack(self, count)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, SystemExit) as error:
            self.fault(f"the driver failed: {type(error).__name__} {error}"[:200], traceback.format_exc())
        self.refused_change_nothing()
        self.recover()
        self.memory.append(self.resident_mib())
        self.files.append(self.open_files())
        seconds = time.monotonic() - begun
        print(
            f"{name}: {self.counts[name]} inputs in {seconds:.0f} s, {dict(self.results[name].most_common(12))}; "
            f"{self.memory[-1]} MiB, {self.files[-1]} files", flush=True,
        )

    def refused_change_nothing(self):
        """No event of the user is between the records where only refused requests were answered."""
        intervals, self.refused = self.refused, []
        if not intervals:
            return
        answer = self.system.root("events", "--json", seconds=120)
        for line in answer.stdout.splitlines():
            event = json.loads(line)
            if event["actor"] != f"user:{self.user.name}" or event["type"] == "muster.command.refused.v1":
                continue
            number = int(event["id"])
            if any(before < number <= last for before, last in intervals):
                self.fault("a refused request changed something", event)

    def recover(self):
        """It answers as before, and a job of the user runs."""
        if self.system.process.poll() is not None:
            raise SystemExit(f"FAULT   {self.name}: the system ended: {self.system.said()[-2000:]}")
        self.system.root("cancel", "--matching", seconds=120)
        self.restore()
        answer = raw.ask(self.system.socket, raw.request("GET", "/healthz"))
        if answer.status != 200:
            self.fault("it is not healthy afterwards", answer)
        said = self.system.of(self.user, "submit", "--wait", "-o", "/dev/null", "-e", "/dev/null", "-t", "1", "--", "true", seconds=40)
        if said.returncode:
            self.fault("a job does not run afterwards", (said, self.system.root("nodes").stdout, self.system.root("jobs").stdout[-800:]))

    def restore(self):
        """What an administrator may have set is as it was at the start, so that jobs can run."""
        for words in (
            ("config", "apply", "--yes", self.good_configuration()), ("config", "apply", "--policy", "easy"),
            ("cluscfg", "setparams", "SubmissionFilterProgram=", "ActivationFilterProgram="), ("node", "resume", "node[1-2]"),
            ("pbs", "qmgr", "-c", "set server scheduling=true"), ("pbs", "qenable", "default"), ("pbs", "qstart", "default"),
            *(("pbs", "qmgr", "-c", f"unset queue default {name}") for name in ("acl_users", "acl_user_enable", "resources_max", "max_run")),
        ):
            said = self.system.root(*words)
            if said.returncode not in (0, 1):
                self.fault(f"it cannot be restored: {words[0]}", said)
        for line in self.system.root("reservations").stdout.splitlines()[1:]:
            self.system.root("unreserve", line.split()[0])

    def good_configuration(self):
        """The configuration's file with the nodes in it."""
        path = os.path.join(self.where, "good.toml")
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write('[cluster]\nadministrators = ["faa"]\nagents_make_nodes = true\n[[nodes]]\nname = "node[1-2]"\ncores = 8\nmemory = "2G"\n[[queues]]\nname = "default"\n[accounts]\nenforce = []\n')
        return path

    # The end

    def close(self):
        """The history verifies, and decisions are made again alike."""
        self.name = "at the end"
        until(lambda: self.open_files() <= self.files[0] + MOST_NEW_FILES, 30)
        self.memory.append(self.resident_mib())
        self.files.append(self.open_files())
        if max(self.memory) > self.memory[0] + MOST_GROWTH_MIB:
            self.fault("memory has grown without bound", self.memory)
        if self.files[-1] > self.files[0] + MOST_NEW_FILES:
            self.fault("open files have grown", self.files)
        for words in (("audit", "verify"), ("replay", "--verify")):
            said = self.system.root(*words, seconds=600)
            print(f"{' '.join(words)}: status {said.returncode}: {(said.stdout + said.stderr).strip().splitlines()[-1:]}", flush=True)
            if said.returncode:
                self.fault(f"{' '.join(words)} fails", said)

    def check_log(self):
        """It stopped as it was told to, and nobody panicked."""
        if self.system.process.returncode:
            self.fault(f"the clean stop ended with {self.system.process.returncode}", self.system.said()[-1500:])
        errors = Counter()
        for line in plain(self.system.said()).splitlines():
            if re.search(r"panicked|terminate called|SIGSEGV|overflow", line):
                self.fault("it panicked", line)
            elif " ERROR " in line or "WARN" in line:
                errors[re.sub(r"\d+|\"[^\"]*\"|`[^`]*`", "N", line.partition(" ")[2])[:160]] += 1
        for line, count in errors.most_common(25):
            print(f"  {count} times in the log: {line}")

    def report(self):
        print(f"\n{sum(self.counts.values())} inputs, seed {self.seed}; memory {self.memory} MiB, files {self.files}")
        for name, count in self.counts.items():
            print(f"  {count:6} {name}: {dict(self.results[name].most_common(14))}")
        for what, count in self.remarks.most_common():
            print(f"  remark {count} times: {what}")
        for like, count in self.seen.most_common():
            print(f"  FAULT {count} times: {like}")
        return 1 if self.seen else 0


def plain(text):
    """Without the colours of a log."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


if __name__ == "__main__":
    sys.exit(main())
