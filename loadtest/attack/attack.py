"""What the attacks on reliability share: a client of a system, a load that leaves marks, and the comparison of both.

The comparison trusts nobody alone. A job writes one line, a mark, for each of its processes; the client remembers what was
acknowledged to it; the log says which runs there were. All three have to tell the same story.
"""

import argparse
import http.client
import json
import os
import random
import re
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SETTLES_WITHIN_SECONDS = 300
MOST_OPEN_MARKS = 400


def arguments(description, rounds):
    """The options that all drivers have; the seed is printed so that a run's choices can be repeated."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help="how many blows (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--binary", type=Path, default=shutil.which("muster"), help="the program (default: in the path)")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/muster-attack"), help="is emptied first (%(default)s)")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--batch-clients", type=int, default=0, help="besides, clients of `sbatch` whose scripts have `srun` steps (%(default)s)")
    parser.add_argument("--nats-server", type=Path, default=Path("nats-server"), help="if it is not in the path")
    parser.add_argument("--ledgers", type=int, choices=(1, 3), default=1, help="of a cluster, each with a NATS server (%(default)s)")
    options = parser.parse_args()
    if not options.binary:
        parser.error("there is no muster in the path: give --binary")
    options.binary = options.binary.resolve()
    options.folder = options.folder.resolve()
    print(f"seed {options.seed}", flush=True)
    return options


def new_folder(folder):
    """An empty folder that the drivers made; one that holds anything else is left alone."""
    sign = folder / "made-by-attack"
    if folder.exists() and any(folder.iterdir()) and not sign.exists():
        raise SystemExit(f"{folder} holds something that is not ours")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sign.touch()
    return folder


def until(condition, what, seconds=60):
    """Polls until the condition holds and returns its value; raises once the time is over."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
    return value


def processes_that_name(text):
    """The ids of living processes with this text in their command line, this one excepted."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in words and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


class Connection(http.client.HTTPConnection):
    """HTTP over the system's socket."""

    def __init__(self, path):
        super().__init__("muster", timeout=30)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class System:
    """A running system, as its users see it."""

    def __init__(self, binary, data):
        self.binary, self.data = binary, data

    def run(self, *words, seconds=600):
        """The command's result; it is never an exception if the command fails."""
        command = [self.binary, "--data", self.data, *words]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)

    def is_ready(self):
        return self.run("status").returncode == 0

    def nodes_up(self):
        return self.run("nodes").stdout.split().count("up")

    def events(self, kinds="job,run,step"):
        """All events of these kinds, oldest first."""
        answer = self.run("events", "--json", "--kind", kinds)
        if answer.returncode:
            raise RuntimeError(answer.stderr)
        return [json.loads(line) for line in answer.stdout.splitlines()]

    def usage(self):
        """How many runs accounting says were started."""
        answer = self.run("usage", "--json")
        if answer.returncode:
            return None
        return sum(row["amounts"]["started_runs"] for row in json.loads(answer.stdout)["rows"])


# ------------------------------------------------------------------------------------------------------------------ load


def job(name, program, nodes=1, array=None, requeue=False):
    """A job specification; the folder that it runs in is filled in by the load."""
    count = {"range": {"min": nodes, "max": nodes}}
    launch = {"program": program, "stdout": "/dev/null"}
    alternatives = [{"requests": [{"path": [{"level": "node", "count": count}]}]}]
    spec = {"name": name, "components": [{"launch": launch, "alternatives": alternatives}]}
    spec |= {"environment": {"PATH": "/usr/bin:/bin"}}
    if array:
        spec["array"] = {"indices": f"0-{array - 1}"}
    if requeue:
        spec["requeue"] = {"on_node_lost": True, "on_exit_codes": [], "max_runs": 10}
    return spec


class Kinds:
    """The kinds of jobs in the load. Each gives a specification, its tasks and how many marks each of its runs makes."""

    def __init__(self, system, marks):
        self.system = system
        self.mark = f"echo $MUSTER_JOB_ID $MUSTER_RUN_ID $MUSTER_STEP_ID $MUSTER_TASK_RANK >>{marks}"
        self.step = f"{system.binary} run --data {system.data}"
        self.errors = marks.with_name("errors")
        self.all = [self.plain, self.slow, self.array, self.two_nodes, self.requeue, self.wide_array, self.steps]

    def tasks(self, seconds):
        return {"tasks": {"argv": ["/bin/sh", "-c", f"{self.mark}; sleep {seconds}"]}}

    def plain(self, key):
        return job(key, self.tasks(0.02)), 1, 1

    def slow(self, key):
        return job(key, self.tasks(1.5), requeue=True), 1, 1

    def array(self, key):
        return job(key, self.tasks(0.05), array=4), 4, 1

    def two_nodes(self, key):
        return job(key, self.tasks(0.1), nodes=2), 1, 2

    def requeue(self, key):
        return job(key, self.tasks(0.1), nodes=2, requeue=True), 1, 2

    def wide_array(self, key):
        return job(key, self.tasks(0.1), nodes=2, array=2, requeue=True), 2, 2

    def steps(self, key):
        """A script of two nodes with a step on both: one mark of the script, two of the step."""
        text = f"#!/bin/sh\n{self.mark}\n{self.step} -n 2 -- /bin/sh -c '{self.mark}' 2>>{self.errors} || exit 9\n"
        return job(key, {"script": {"text": text, "args": []}}, nodes=2), 1, 3

    def batch_script(self):
        """What `sbatch` submits: a mark of the script on the first of two nodes, a step on both and one on one of them."""
        srun = f"{self.system.binary} slurm srun"
        steps = [f"{srun} -n {count} /bin/sh -c '{self.mark}' 2>>{self.errors} || exit 9" for count in (2, 1)]
        return "\n".join(["#!/bin/sh", "#SBATCH -N 2 -n 2 -o /dev/null", self.mark, *steps, ""]), 4


class Load:
    """Clients that submit until told to stop, and what was acknowledged to them."""

    def __init__(self, system, marks, seed, clients, batch_clients=0):
        self.system, self.marks, self.seed = system, marks, seed
        self.kinds = Kinds(system, marks)
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.acknowledged = {}  # number of the job: (kind, tasks, marks of a run)
        self.requests = self.repeats = self.promised_marks = 0
        self.faults = []
        marks.touch()
        os.chmod(marks, 0o666)
        self.threads = [threading.Thread(target=self.client, args=(n,), daemon=True) for n in range(clients)]
        self.threads += [threading.Thread(target=self.batch_client, daemon=True) for _ in range(batch_clients)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        """Ends when each client has an answer to its last request."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(timeout=180)
            if thread.is_alive():
                self.faults.append("a client got no answer for 180 s")

    def is_full(self):
        """So many jobs are open that another would only make the queue longer."""
        written = self.marks.read_bytes().count(b"\n")
        return self.promised_marks - written > MOST_OPEN_MARKS

    def client(self, number):
        choices = random.Random(f"{self.seed} {number}")
        connection, earlier, count = None, [], 0
        while not self.stopping.is_set():
            if count % 10 == 0 and self.is_full():
                time.sleep(0.1)
                continue
            count += 1
            key = f"a{self.seed}-{number}-{count}"
            kind = choices.choice(self.kinds.all)
            spec, tasks, marks = kind(key)
            body = json.dumps({"jobs": [spec | {"working_directory": str(self.marks.parent)}]})
            connection, jobs = self.submit(connection, key, body)
            self.remember(jobs, kind.__name__, tasks, marks)
            earlier.append((key, body, jobs))
            if choices.random() < 0.1:
                connection = self.repeat(connection, choices.choice(earlier[-50:]))
        if connection:
            connection.close()

    def batch_client(self):
        """Submits scripts with `sbatch`, which waits for a system that is away, and asks again by itself."""
        text, marks = self.kinds.batch_script()
        environment = {"PATH": "/usr/bin:/bin", "MUSTER_DATA": str(self.system.data), "MUSTER_WAIT_SECONDS": "150"}
        command = [self.system.binary, "slurm", "sbatch", "--parsable", "-D", str(self.marks.parent)]
        while not self.stopping.is_set():
            if self.is_full():
                time.sleep(0.1)
                continue
            answer = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, timeout=180)
            if answer.returncode:
                self.faults.append(f"sbatch: status {answer.returncode}: {answer.stderr[-300:]}")
            else:
                self.remember([answer.stdout.strip()], "sbatch with srun", 1, marks)

    def submit(self, connection, key, body):
        """Asks until there is an answer, always with the same key, as a careful client does."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        end = time.monotonic() + 170
        while time.monotonic() < end:
            try:
                connection = connection or Connection(self.system.data / "muster.sock")
                connection.request("POST", "/v1/jobs", body, headers)
                answer = connection.getresponse()
                text = answer.read()
                if answer.status == 200:
                    return connection, json.loads(text)["jobs"]
                if answer.status < 500 and answer.status != 429:
                    self.faults.append(f"{key}: refused: {answer.status} {text[:200]}")
                    return connection, []
            except (OSError, http.client.HTTPException):
                connection = connection.close() if connection else None
            time.sleep(0.05)
        self.faults.append(f"{key}: no answer")
        return None, []

    def remember(self, jobs, kind, tasks, marks):
        with self.lock:
            self.requests += 1
            self.promised_marks += len(jobs) * tasks * marks
            for number in jobs:
                if number in self.acknowledged:
                    self.faults.append(f"number {number} was given twice")
                self.acknowledged[number] = (kind, tasks, marks)

    def repeat(self, connection, earlier):
        """The repeat of a request gets the first one's answer."""
        key, body, jobs = earlier
        connection, again = self.submit(connection, key, body)
        with self.lock:
            self.repeats += 1
            if jobs and again and again != jobs:
                self.faults.append(f"{key}: was {jobs}, is {again} when repeated")
        return connection


# ------------------------------------------------------------------------------------------------------------ comparison


class Story:
    """What the log says of jobs and runs."""

    def __init__(self, events):
        self.finished, self.why, self.runs = {}, {}, defaultdict(dict)
        self.started_runs, self.lost = set(), []
        for event in events:
            self.take(event["type"].removeprefix("muster.").removesuffix(".v1"), event["data"], event)

    def take(self, kind, data, event):
        if kind == "job.allocated":
            self.runs[data["job"]].setdefault(data["run"], None)
        elif kind == "job.started":
            self.started_runs.add(data["run"])
        elif kind == "run.ended":
            self.runs[data["job"]][data["run"]] = data["outcome"]
        elif kind == "job.finished":
            self.finished[data["job"]] = data["outcome"]
            self.why[data["job"]] = event["summary"]
        if "node_lost" in (data.get("outcome"), data.get("reason")):
            self.lost.append(f"record {event['id']} {event['time']}: {event['summary']} {data.get('detail')}")


def task_ids(number, tasks):
    """An array's tasks are named `ARRAY_INDEX`, another job is its only task."""
    return [number] if tasks == 1 else [f"{number}_{index}" for index in range(tasks)]


def read_marks(path):
    """How often each process of each run left its mark: (job, run, step, rank)."""
    return Counter(tuple(line.split()) for line in path.read_text().splitlines())


def compare(load, story):
    """The faults in what the clients, the marks and the log say, and the number of acknowledged tasks."""
    faults, marks = list(load.faults), read_marks(load.marks)
    of_run = Counter()
    for (number, run, *_), count in marks.items():
        of_run[number, run] += count
    faults += [f"{mark} was made {count} times" for mark, count in marks.items() if count > 1]
    faults += [f"a mark is malformed: {mark}" for mark in marks if len(mark) != 4]
    faults += [f"not by any blow of ours: {what}" for what in story.lost]
    tasks_in_all = 0
    for number, (kind, tasks, expected) in load.acknowledged.items():
        for task in task_ids(number, tasks):
            tasks_in_all += 1
            faults += faults_of_task(task, kind, expected, story, of_run)
    known = {str(run) for runs in story.runs.values() for run in runs}
    faults += [f"the log does not know run {run} of {number}" for number, run in of_run if run not in known]
    return faults, tasks_in_all


def faults_of_task(task, kind, expected, story, of_run):
    outcome, runs = story.finished.get(task), story.runs.get(task, {})
    if outcome != "completed":
        return [f"{kind} {task} ended as {outcome}: {story.why.get(task)}; runs {runs}"]
    faults = []
    good = [run for run, end in runs.items() if end == "completed"]
    if len(good) != 1:
        faults.append(f"{kind} {task} completed {len(good)} runs: {runs}")
    if len(runs) > 1:
        faults.append(f"{kind} {task} has {len(runs)} runs: {runs}")
    faults += [
        f"{kind} {task}: run {run} made {of_run[task, str(run)]} marks, not {expected}"
        for run in good
        if of_run[task, str(run)] != expected
    ]
    return faults


def wait_until_finished(load, system):
    """All that was acknowledged is over, or the time is; returns what the log says then."""
    end = time.monotonic() + SETTLES_WITHIN_SECONDS
    while True:
        story = Story(system.events())
        wanted = (task for n, (_, tasks, _) in load.acknowledged.items() for task in task_ids(n, tasks))
        open_tasks = [task for task in wanted if task not in story.finished]
        if not open_tasks or time.monotonic() > end:
            return story
        print(f"  {len(open_tasks)} tasks are open, such as {open_tasks[:3]}", flush=True)
        time.sleep(2)


def check_usage(system, story, faults):
    """What accounting counted is what the log says was started."""
    try:
        until(lambda: system.usage() == len(story.started_runs), "usage", 30)
    except TimeoutError:
        faults.append(f"usage has {system.usage()} started runs, the log {len(story.started_runs)}")


def check_history(system, folder, faults, data=None):
    """The history verifies, also as a bundle and for those who do not have muster; decisions are made again alike. `data` has the log
    if the gateway's folder does not."""
    stored = System(system.binary, data) if data else system
    bundle = folder / "bundle"
    steps = {
        "audit verify": lambda: system.run("audit", "verify"),
        "audit export": lambda: stored.run("audit", "export", str(bundle)),
        "verify-bundle": lambda: subprocess.run(
            [REPOSITORY / "ops/verify-bundle", bundle], capture_output=True, text=True
        ),
        "replay --verify": lambda: stored.run("replay", "--verify"),
    }
    for name, step in steps.items():
        answer = step()
        last = (answer.stdout + answer.stderr).strip().splitlines()[-1:]
        print(f"  {name}: status {answer.returncode}: {' '.join(last)[:200]}", flush=True)
        if answer.returncode:
            faults.append(f"{name}: status {answer.returncode}: {(answer.stdout + answer.stderr)[-400:]}")


def check_logs(folder, faults):
    """Nobody panicked."""
    for log in folder.rglob("*.log"):
        for line in log.read_text(errors="replace").splitlines():
            if re.search(r"panicked|terminate called|SIGSEGV", line):
                faults.append(f"{log.name}: {line[:200]}")


def check_nothing_left(folder, faults):
    """After the end no process is left that names the folder."""
    try:
        until(lambda: not processes_that_name(f"{folder}/"), "", 20)
    except TimeoutError:
        left = processes_that_name(f"{folder}/")
        faults.append(f"processes are left: {left}")


def report(title, blows, load, story, tasks, faults):
    """The result in a form to copy into a table; the exit status."""
    print(f"\n{title}: {sum(blows.values())} blows {dict(blows)}")
    print(f"  {load.requests} requests acknowledged, {tasks} tasks, {load.repeats} repeats asked,", end=" ")
    print(f"{len(story.started_runs)} runs started by the log, {sum(read_marks(load.marks).values())} marks")
    print(f"  {Counter(kind for kind, *_ in load.acknowledged.values())}")
    print(f"  {len(story.lost)} records of node_lost, {len(faults)} faults")
    for fault in faults[:40]:
        print(f"  FAULT {fault}")
    errors = load.kinds.errors.read_text().splitlines() if load.kinds.errors.exists() else []
    for message, count in Counter(re.sub(r"\d+", "N", line) for line in errors).most_common(10):
        print(f"  {count} times said by steps: {message}")
    return 1 if faults else 0
