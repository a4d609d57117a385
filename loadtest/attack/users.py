#!/usr/bin/env python3
"""Two hostile users of one host against a `muster up` of root: who becomes root, who touches or reads what is not his.

Needs root, and makes the users `faa` and `fbb` if they are missing. Every check has a name; the status is 1 if one failed.

    loadtest/attack/users.py --binary target/release/muster
"""

import json
import os
import re
import socket
import stat
import subprocess
import sys
import time

from hostile import Checks, System, arguments, folder, request, two_users, until

RECORDER = """#!/bin/sh
# Tells of its caller: who it is, and each of its words in brackets.
{{ printf 'uid=%s' "$(id -u)"; for word; do printf ' [%s]' "$word"; done; printf '\\n'; }} >>{book}
"""
TOKENS = {"faa": "faa-secret-token-0123456789", "fbb": "fbb-secret-token-0123456789"}
ADDRESSES = [
    "--exec=!id>/tmp/ran@x", "-oQ/tmp@x", "-E!id@x", "|id@x", "/tmp/file@x", "-@x", "--@x", "-s@x", "a@x -oQ", "a@x\n-oQ",
    "`id`@x", "$(id)@x", "a@-x", "\t-E@x", "~!id@x", "-f", "--exec=id", "a,-E@x", ";id@x", "a@x;id",
]
"""Words that some mail program takes for an option, a pipe, a file or a command."""


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("attacks", nargs="*", help="only these attacks")
    options = parser.parse_args()
    if os.geteuid():
        raise SystemExit("two users need root")
    checks = Checks()
    with folder(options.keep) as where, two_users() as (a, b):
        for attack in chosen(options.attacks):
            print(f"\n== {attack.__name__}: {attack.__doc__.splitlines()[0]}")
            own = os.path.join(where, attack.__name__)
            os.mkdir(own, 0o755)
            attack(checks, options.binary, own, a, b)
    return checks.close()


def chosen(names):
    """The attacks to make."""
    every = (mail, programs, control, secrets, outputs, files, tokens, words_of_root, leftovers)
    return [attack for attack in every if not names or attack.__name__ in names]


def recorder(where, name):
    """A program that records its caller, in a book that everybody may write: its path and the book's."""
    book, program = os.path.join(where, f"{name}.book"), os.path.join(where, name)
    with open(program, "w", encoding="utf-8") as file:
        file.write(RECORDER.format(book=book))
    os.chmod(program, 0o755)
    open(book, "w", encoding="utf-8").close()
    os.chmod(book, 0o666)
    return program, book


def lines(path):
    """The lines of a file that may be missing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def fresh(user, name):
    """The path of a file in the user's home that is not there, whatever an earlier attack left."""
    path = os.path.join(user.home, name)
    if os.path.lexists(path):
        os.unlink(path)
    return path


# Mail


def mail(checks, binary, where, a, b):
    """Addresses as options of the mail program, by every way in (F0)."""
    program, book = recorder(where, "mailer")
    with System(binary, where, f'[notifier.mail]\nprogram = "{program}"\n') as system:
        for address in ADDRESSES:
            for way, status in ways_of_mail(system, b, address):
                checks.check(f"mail: {way} refuses {address!r}", status_is_refused(status), status)
        honest = system.submit(b, "--mail", "fbb", "--", "true")
        system.wait(honest)
        until(lambda: len(lines(book)) >= 2)
        called = lines(book)
        checks.check("mail: an honest address gets its two mails", len(called) >= 2, called)
        checks.check("mail: the program never runs as root", called and not any(line.startswith("uid=0 ") for line in called), called)
        checks.check("mail: the address stands behind --", all(" [--] [fbb]" in line for line in called), called)
        checks.check("mail: nothing hostile reached the program", all(line.endswith("[fbb]") for line in called), called)
        mail_names(checks, system, b, book)
    mailutils(checks, binary, where, b)


def status_is_refused(answer):
    """A command that failed, or a request with a status of refusal."""
    return answer[0] not in (0, 200, 201, 202) if isinstance(answer[0], int) else False


def ways_of_mail(system, user, address):
    """Every way to give an address: its name, and status and words of the answer."""
    muster = system.binary
    script = user.write("mail.sh", "#!/bin/sh\ntrue\n", 0o755)

    def command(*words):
        answer = system.of(user, *words)
        return answer.returncode, answer.stdout + answer.stderr, muster

    yield "submit --mail", command("submit", f"--mail={address}", "--", "true")
    yield "submit --notify", command("submit", f"--notify=mail:{address}", "--", "true")
    yield "sbatch --mail-user", command("slurm", "sbatch", "--mail-type=ALL", f"--mail-user={address}", script)
    if "\n" not in address:
        header = user.write("header.sh", f"#!/bin/sh\n#SBATCH --mail-type=ALL\n#SBATCH --mail-user='{address}'\ntrue\n", 0o755)
        yield "#SBATCH --mail-user", command("slurm", "sbatch", header)
    yield "job submit /emailaddress", command("job", "submit", f"/emailaddress:{address}", "/notifyoncompletion:true", "true")
    yield "POST /v1/jobs", system.http(user, "POST", "/v1/jobs", {"jobs": [with_mail(system, user, address)]})


def with_mail(system, user, address):
    """A job's description that asks for mail."""
    spec = json.loads(system.of(user, "submit", "--dry-run", "--notify", "mail:fbb", "--", "true").stdout)
    spec["notifications"][0]["sink"] = {"mail": address}
    return spec


def mail_names(checks, system, user, book):
    """Names of jobs are in the subject: they are one word of it, whatever they are."""
    before = len(lines(book))
    for name in ("-E!id", "--exec=id", "a b", "$(id)", "`id`"):
        system.wait(system.submit(user, f"--name={name}", "--mail", "fbb", "--notify-on", "ended", "--", "true"))
    until(lambda: len(lines(book)) >= before + 5)
    called = lines(book)[before:]
    whole = all(re.fullmatch(r"uid=[1-9]\d* \[-s\] \[\[muster\] job \d+ .*\] \[--\] \[fbb\]", line) for line in called)
    checks.check("mail: names of jobs never begin a word of the program", len(called) == 5 and whole, called)


def mailutils(checks, binary, where, user):
    """GNU mail itself, where it is installed: no address of ours makes it run a program."""
    if not os.path.exists("/usr/bin/mail"):
        return print("skipped mail: GNU mailutils is not installed")
    own = os.path.join(where, "gnu")
    os.mkdir(own, 0o755)
    mark = os.path.join(user.home, "ran")
    with System(binary, own, '[notifier.mail]\nprogram = "/usr/bin/mail"\n') as system:
        for address in (f"--exec=!id>{mark}@x", f"--exec=!touch${{IFS}}{mark}@x"):
            answer = system.of(user, "submit", f"--mail={address}", "--", "true")
            checks.check(f"mail: GNU mail, {address!r} is refused", answer.returncode != 0, answer.stdout)
        job = system.submit(user, "--name", f"~!touch {mark}", "--mail", "fbb", "--notify-on", "ended", "--", "true")
        system.wait(job)
        until(lambda: re.search("delivered|given up", system.root("job", "events", job).stdout))
        made = [name for name in os.listdir(user.home) if name.startswith("ran")]
        checks.check("mail: GNU mail ran nothing of ours", not made, made)


# Programs of notifications, staging, filters


def programs(checks, binary, where, a, b):
    """Programs with a user's words: never as root, never as options."""
    stager, staged = recorder(where, "stager")
    filter_, filtered = recorder(where, "filter")
    configuration = f'[staging]\nprogram = "{stager}"\n[slurm]\nburst_buffer_directives = ["BB"]\n[filter_runner]\naccount = "nobody"\n'
    os.chmod(os.path.dirname(where), 0o711)
    with System(binary, where, configuration) as system:
        notification(checks, system, b)
        system.root("cluscfg", "setparams", f"SubmissionFilterProgram={filter_}")
        script = b.write("bb.sh", "#!/bin/sh\n#BB --exec=id -oQ $(id)\ntrue\n", 0o755)
        answer = system.of(b, "slurm", "sbatch", "--bb=--exec=id", "--job-name=--exec=id", script)
        print(f"        sbatch --bb says {(answer.stdout + answer.stderr).strip()!r}")
        system.of(b, "submit", "--name=--exec=id", "--no-wait", "--", "true")
        until(lambda: lines(filtered), 10)
        until(lambda: lines(staged), 10)
        for name, book in (("staging", staged), ("filters", filtered)):
            seen = lines(book)
            checks.check(f"programs: {name} is called", seen, system.said())
            checks.check(f"programs: {name} never runs as root", not any(line.startswith("uid=0") for line in seen), seen)
            checks.check(f"programs: no word of {name} is the user's", not any("exec=id" in line or "oQ" in line for line in seen), seen)
        users_filter(checks, system, b)
        prologs(checks, system, b)


def notification(checks, system, user):
    """Commands of notifications are the owner's, without groups, capabilities or open files of root."""
    mark = fresh(user, "notified")
    probe = f"(id -u; id -G; grep CapEff /proc/self/status; ls -l /proc/self/fd | grep -c -e ledger -e spool) >{mark}; setsid sleep 4141 &"
    system.wait(system.submit(user, "--notify", f"exec:{probe}", "--notify-on", "ended", "--", "true"))
    seen = until(lambda: len(lines(mark)) >= 4 and lines(mark)) or lines(mark)
    checks.check("programs: a notification runs as the owner", seen[:2] == [str(user.uid), str(user.gid)], seen)
    checks.check("programs: a notification has no capability", any(line.endswith("0000000000000000") for line in seen), seen)
    checks.check("programs: a notification has no file of root's open", seen[-1:] == ["0"], seen)
    gone = until(lambda: not pids_with("sleep\0" + "4141"))
    checks.check("programs: what a notification left in a session of its own is gone", gone, pids_with("sleep\0" + "4141"))


def users_filter(checks, system, user):
    """A filter that an ordinary user can change is not run, and he defines none."""
    program, book = os.path.join(user.home, "filter"), fresh(user, "filter.book")
    user.write("filter", f"#!/bin/sh\nid -u >{book}\n", 0o755)
    os.chmod(user.home, 0o755)
    answer = system.of(user, "cluscfg", "setparams", f"SubmissionFilterProgram={program}")
    checks.check("programs: a user sets no filter", answer.returncode, answer.stdout)
    system.root("cluscfg", "setparams", f"SubmissionFilterProgram={program}")
    system.of(user, "submit", "--no-wait", "--", "true")
    until(lambda: lines(book), 3)
    checks.check("programs: a filter that a user owns is not run", not lines(book), lines(book))
    system.root("cluscfg", "setparams", "SubmissionFilterProgram=")


def prologs(checks, system, user):
    """Task prologs and epilogs are the user's."""
    mark = fresh(user, "prolog")
    program = user.write("prolog.sh", f"#!/bin/sh\nid -u >>{mark}\n", 0o755)
    script = user.write("steps.sh", f"#!/bin/sh\n{system.binary} slurm srun --task-prolog={program} --task-epilog={program} true\n", 0o755)
    out = os.path.join(user.home, "steps.out")
    answer = system.of(user, "slurm", "sbatch", "--wait", "-o", out, script)
    checks.check("programs: prologs and epilogs run as the owner", lines(mark) == [str(user.uid)] * 2, (lines(mark), answer.stderr, lines(out)))


def pids_with(words):
    """The processes whose command line has these words, which have NUL between them."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                if words in file.read():
                    found.append(int(pid))
        except OSError:
            continue
    return found


# Control of another's jobs


def control(checks, binary, where, a, b):
    """Every verb of one user against the jobs of the other."""
    with System(binary, where, nodes=2, cpus=8) as system:
        jobs = victims(system, a)
        before = {name: picture(system, job) for name, job in jobs.items()}
        for name, answer in ways_of_control(system, b, jobs):
            checks.check(f"control: {name} is refused", answer[0] not in (0, 200, 201, 202), answer)
        for name, job in jobs.items():
            after = picture(system, job)
            checks.check(f"control: the {name} of the other is as it was", after == before[name], (before[name], after))
        answer = system.of(b, "cancel", "--matching")
        checks.check("control: cancel --matching touches only his own", all(picture(system, jobs[n]) == before[n] for n in jobs), answer.stdout)


def victims(system, user):
    """Jobs of each kind: one that runs with a step, one that waits, an array, one of two components."""
    running = system.submit(user, "-J", "running", "--", "sleep", "600")
    user.write("het.sh", "#!/bin/sh\nsleep 600\n", 0o755)
    het = system.of(user, "slurm", "sbatch", "--parsable", "-n1", ":", "-n1", os.path.join(user.home, "het.sh")).stdout.strip()
    jobs = {
        "job": running, "held job": system.submit(user, "--hold", "--", "true"),
        "array": system.submit(user, "--array", "0-1", "--", "sleep", "600"), "components": het,
    }
    until(lambda: all(system.is_running(jobs[name]) for name in ("job",)))
    system.of(user, "step", "run", "--job", running, "--", "true")
    # It ends with its job.
    subprocess.Popen(
        [system.binary, "run", "--job", running, "--", "sleep", "599"], env=user.environment(MUSTER_DATA=system.data), user=user.uid,
        group=user.gid, extra_groups=[], cwd=user.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    until(lambda: "running" in system.root("step", "list", running).stdout)
    return jobs


def picture(system, job):
    """What of a job a stranger must not change: all that its description and state say, without times that run."""
    shown = json.loads(system.root("job", "show", "--json", job).stdout)
    document = shown[0] if isinstance(shown, list) else shown
    for key in ("reason", "estimate", "forecast", "elapsed_seconds", "seq"):
        document.pop(key, None)
    return re.sub(r'"[a-z_]*(elapsed|reason|seq|used)[a-z_]*": [^,}]*', "", json.dumps(document, sort_keys=True))


def ways_of_control(system, user, jobs):
    """Each way to touch what is another's: its name, and status and words of the answer."""
    for name, words in command_ways(jobs):
        answer = system.of(user, *words, seconds=10)
        yield name, (answer.returncode, answer.stdout + answer.stderr)
    for name, method, path, body in http_ways(jobs):
        yield name, system.http(user, method, path, body)


def command_ways(jobs):
    """Ways by commands of muster, of HPC Pack and of Slurm."""
    job, held, array, het = jobs["job"], jobs["held job"], jobs["array"], jobs["components"]
    for verb in ("cancel", "hold", "suspend", "resume", "requeue"):
        for target in (job, array, f"{array}_1", het):
            yield f"job {verb} {target}", ("job", verb, target)
    yield "job release", ("job", "release", held)
    yield "cancel", ("cancel", job)
    for signal_ in ("KILL", "USR1", "STOP", "0"):
        yield f"job signal {signal_}", ("job", "signal", signal_, job)
    for option in (("--priority", "1"), ("--set-name", "x"), ("-t", "1m"), ("--begin", "+1h"), ("--set-account", "x")):
        yield f"job modify {option[0]}", ("job", "modify", *option, held)
    yield "job modify --max-running", ("job", "modify", "--max-running", "1", array)
    yield "job modify --component", ("job", "modify", "--component", "1", "--set-name", "x", het)
    yield "step run", ("step", "run", "--job", job, "--", "id")
    yield "run --job", ("run", "--job", job, "--", "id")
    yield "shell", ("shell", job, "--", "id")
    yield "step attach", ("step", "attach", f"{job}.1")
    yield "step signal", ("step", "signal", "KILL", f"{job}.1")
    yield "step end", ("step", "end", f"{job}.1")
    yield "logs", ("logs", job)
    for words in (
        ("job", "cancel", job, "/force"), ("job", "cancel", job, "/message:x"), ("job", "finish", job), ("job", "requeue", job),
        ("job", "submit", f"/id:{held}"), ("job", "modify", held, "/priority:Highest"), ("job", "add", held, "true"), ("job", "modify", held, "/jobname:x"),
    ):
        yield f"HPC Pack {' '.join(words)}", words
    for words in slurm_ways(job, held, array, het):
        yield f"Slurm {' '.join(words)}", ("slurm", *words)
    for words in (("node", "drain", "node1"), ("config", "apply", "--yes", "/dev/null"), ("reserve", "--start", "now", "--duration", "1h", "--nodes", "node1", "x")):
        yield " ".join(words), words


def slurm_ways(job, held, array, het):
    """Words of Slurm's commands against each of the other's jobs."""
    for target in (job, array, f"{array}_1", het, f"{het}+1", f"{job}.0", f"{job}.1"):
        yield ("scancel", target)
        yield ("scancel", "-s", "USR1", target)
    yield ("scancel", "-b", "-s", "KILL", job)
    yield ("scancel", "-f", job)
    for verb in ("hold", "release", "suspend", "resume", "requeue", "requeuehold", "top", "uhold"):
        yield ("scontrol", verb, held if verb in ("release", "top") else job)
    yield ("scontrol", "update", f"jobid={held}", "priority=9")
    yield ("scontrol", "update", f"jobid={held}", "timelimit=1")
    yield ("scontrol", "update", f"jobid={held}", "comment=x")
    yield ("scontrol", "update", f"jobid={array}", "arraytaskthrottle=1")
    yield ("scontrol", "notify", job, "x")
    yield ("scontrol", "write", "batch_script", job, "-")
    yield ("srun", f"--jobid={job}", "--overlap", "id")
    yield ("sattach", f"{job}.1")
    yield ("sbcast", f"--jobid={job}", "/etc/hostname", "/tmp/x")
    yield ("sacctmgr", "-i", "add", "account", "x")
    yield ("sacctmgr", "-i", "modify", "user", "faa", "set", "adminlevel=admin")
    yield ("scontrol", "update", "nodename=node1", "state=drain", "reason=x")


def http_ways(jobs):
    """Ways by requests of one's own making."""
    job, held, het = jobs["job"], jobs["held job"], jobs["components"]
    ids = {"jobs": {"ids": [job]}}
    bodies = {
        "cancel": ids, "hold": ids, "suspend": ids, "resume": ids, "requeue": ids, "end": ids, "signal": {**ids, "signal": 9},
        "release": {"jobs": {"ids": [held]}}, "tell": {**ids, "text": "x"}, "change-class": {**ids, "class": "normal"},
        "hold-until": {"jobs": {"ids": [held]}, "until": None}, "modify": {"jobs": {"ids": [held]}, "change": {"name": "x"}},
    }
    for verb, body in bodies.items():
        yield f"POST {verb}", "POST", f"/v1/jobs/actions/{verb}", body
    yield "POST modify attributes", "POST", "/v1/jobs/actions/modify", {"jobs": {"ids": [het]}, "change": {"attributes": {"x": "y"}}}
    yield "POST conclude", "POST", f"/v1/jobs/{job}/conclude", {"status": {"code": 0}}
    yield "POST keep", "POST", f"/v1/jobs/{job}/keep", {"seconds": 10}
    yield "POST enter", "POST", f"/v1/jobs/{job}/enter", None
    launch = {"groups": [{"argv": ["id"], "tasks": 1}]}
    yield "POST steps", "POST", f"/v1/jobs/{job}/steps/launch", {"groups": [{"programs": [{"argv": ["id"]}]}]}
    yield "POST steps/launch", "POST", f"/v1/jobs/{job}/steps/launch", launch
    yield "POST step signal", "POST", f"/v1/jobs/{job}/steps/1/signal", {"signal": 9}
    yield "POST step end", "POST", f"/v1/jobs/{job}/steps/1/end", {}
    yield "POST step input", "POST", f"/v1/jobs/{job}/steps/1/input?run={job}.1&offset=0&is_last=true", "x"
    yield "GET step output", "GET", f"/v1/jobs/{job}/steps/1/output?run={job}.1&reader=1&from=0", None
    yield "POST step terminal", "POST", f"/v1/jobs/{job}/steps/1/terminal", {"run": f"{job}.1", "size": {"rows": 1, "columns": 1}}
    for path in ("description", "document", "described"):
        yield f"GET {path}", "GET", f"/v1/jobs/{job}/{path}", None
    yield "GET records", "GET", "/v1/records?from=1", None
    yield "PUT config", "PUT", "/v1/config", {}
    yield "POST accounts", "POST", "/v1/accounts/actions/change", {}


# Secrets


def secrets(checks, binary, where, a, b):
    """Environment, script, arguments, notifications and tokens of one user in every view of the other, also of the past."""
    with System(binary, where) as system:
        words = {"environment": "envSECRETq1", "script": "scriptSECRETq2", "argument": "argSECRETq3", "notification": "noteSECRETq4", "mail": "mailSECRETq5"}
        script = a.write("secret.sh", f"#!/bin/sh\n: {words['script']}\nsleep 600\n", 0o700)
        job = system.submit(a, "--env", f"TOKEN={words['environment']}", "--notify", f"exec:: {words['notification']}", "--mail", f"{words['mail']}@x",
                            "-o", "/dev/null", script, words["argument"])
        until(lambda: system.is_running(job))
        step = ("run", "--job", job, "--", "true", "stepSECRETq6")
        system.of(a, *step)
        words["argument of a step"] = "stepSECRETq6"
        views = dict(all_views(system, b, job))
        own = json.dumps([answer for _, answer in all_views(system, a, job)])
        checks.check("secrets: the owner does see his script and environment", words["script"] in own and words["environment"] in own)
        for kind, word in words.items():
            leaks = [name for name, text in views.items() if word in text]
            checks.check(f"secrets: the {kind} is in none of {len(views)} views of the other", not leaks, leaks)
        processes = user_sees_processes(b, words.values())
        checks.check("secrets: environment, script and notification are in no readable process", not processes, processes)


def all_views(system, user, job):
    """Everything that a user can look at: its name and what it says."""
    past = [(), ("--at", "-1s"), ("--at-seq", "999999"), ("--at-seq", "20"), ("--at-seq", "12")]
    for words in (("job", "show", job), ("job", "show", "--json", job), ("jobs", "-a", "--json"), ("jobs", "-a"), ("explain", job), ("status", job), ("status", "--json", job)):
        for when in past:
            yield " ".join((*words, *when)), said(system.of(user, *words, *when))
    for words in (
        ("events",), ("events", "--json"), ("events", "--job", job, "--json"), ("job", "events", job), ("job", "events", "--json", job), ("top", "--once"),
        ("logs", job), ("logs", "--path", job), ("usage",), ("usage", "--json"), ("step", "list", job), ("step", "list"), ("plan",), ("audit", "verify"),
        ("audit", "export", "-"), ("replay",), ("whatif", "--policy", "fcfs"), ("job", "view", job), ("job", "view", job, "/xml"), ("job", "view", job, "/history"),
        ("job", "listtasks", job), ("job", "list", "/all"), ("job", "clone", job), ("filter", "list"), ("config", "show"), ("doctor",),
    ):
        yield " ".join(words), said(system.of(user, *words, seconds=10))
    for words in (
        ("squeue", "-o", "%all"), ("squeue", "--json"), ("squeue", "-O", "jobid,command,name,comment"), ("scontrol", "show", "job", job), ("scontrol", "-d", "show", "job", job),
        ("scontrol", "show", "job", job, "--json"), ("sacct", "-a", "-o", "ALL"), ("sacct", "-a", "--json"), ("sacct", "-B", "-j", job), ("sacct", "--env-vars", "-j", job),
        ("scontrol", "write", "batch_script", job, "-"), ("scontrol", "show", "step", f"{job}.0"), ("squeue", "-s"),
    ):
        yield " ".join(words), said(system.of(user, "slurm", *words, seconds=10))
    for path in (
        "jobs", "jobs/all", "jobs/details", f"jobs/{job}", f"jobs/{job}/described", f"jobs/{job}/description", f"jobs/{job}/document", f"jobs/{job}/events",
        f"jobs/{job}/explanation", f"jobs/{job}/steps", "steps", "records", "records?from=1", "events?follow=false", "usage", "plan", "jobs/forecast", "statistics",
        f"jobs/{job}/description?at_seq=20", f"jobs/{job}?at_seq=20", "parameters", "templates", "policy", "config", "filters", "queues", "reservations", "info",
    ):
        yield f"GET {path}", system.http(user, "GET", f"/v1/{path}")[1]


def said(answer):
    """Both streams of a command."""
    return answer.stdout + answer.stderr


def user_sees_processes(user, words):
    """Which of the words the other user finds in /proc (arguments of his processes are every user's to see, by Unix)."""
    hidden = [word for word in words if not word.startswith(("arg", "step"))]
    answer = user.run("/bin/sh", "-c", "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'")
    return [word for word in hidden if word in answer.stdout]


# Output files


def outputs(checks, binary, where, a, b):
    """Output through links, fifos and races: written as the user, or not at all."""
    with System(binary, where) as system:
        precious = os.path.join(where, "precious")
        with open(precious, "w", encoding="utf-8") as file:
            file.write("precious\n")
        others = a.write("mine", "precious\n", 0o600)
        for target in (precious, others, "/etc/shadow", "/etc/muster-attack", os.path.join(system.data, "ledger.key"), os.path.join(system.data, "spool/x"), system.socket):
            link = os.path.join(b.home, "link")
            b.call(relink, target, link)
            for name in (link, target):
                before = content(target)
                system.wait(system.submit(b, "-o", name, "-e", name, "--", "echo", "attack"))
                checks.check(f"outputs: {'a link to ' if name == link else ''}{target} is left alone", content(target) == before)
        system.wait(system.submit(b, "-i", others, "-o", f"{b.home}/input.out", "--", "cat"))
        checks.check("outputs: input is read as the user", "precious" not in "".join(lines(f"{b.home}/input.out")))
        fifo(checks, system, b)
        race(checks, system, b, precious)
        reading(checks, system, a, b, others)


def relink(target, link):
    """Makes a symbolic link anew."""
    if os.path.lexists(link):
        os.unlink(link)
    os.symlink(target, link)
    return True


def content(path):
    """What is in a file, or that it is missing, or that it is none."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "no file"
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        return error.errno


def fifo(checks, system, user):
    """A fifo that nobody reads blocks its own job, and nobody else's."""
    path = os.path.join(user.home, "fifo")
    user.call(make_fifo, path)
    stuck = system.submit(user, "-o", path, "--", "echo", "attack")
    other = system.submit(user, "-o", "/dev/null", "--", "true")
    checks.check("outputs: a fifo holds up nobody else", system.wait(other).returncode == 0)
    system.root("cancel", stuck)
    until(lambda: not system.is_running(stuck))
    checks.check("outputs: a job at a fifo can be cancelled", not system.is_running(stuck), system.state(stuck))


def make_fifo(path):
    """A fifo, if there is none."""
    if not os.path.exists(path):
        os.mkfifo(path)
    return True


def race(checks, system, user, precious):
    """A name that is a file now and a link to root's file the next moment."""
    source = (
        "import os,time\nend=time.monotonic()+12\nn=0\nwhile time.monotonic()<end:\n"
        f" os.symlink({precious!r},'t1'); os.rename('t1','swap')\n open('t2','w').close(); os.rename('t2','swap'); n+=1\nprint(n)"
    )
    swapper = subprocess.Popen(
        ["/usr/bin/python3", "-c", source], cwd=user.home, user=user.uid, group=user.gid, extra_groups=[], stdout=subprocess.PIPE, text=True
    )
    name, jobs = os.path.join(user.home, "swap"), 0
    while swapper.poll() is None:
        system.wait(system.submit(user, "-o", name, "--", "echo", "attack"))
        jobs += 1
    swaps = swapper.stdout.read().strip()
    checks.check(f"outputs: root's file survives {jobs} jobs beside {swaps} swaps", content(precious) == b"precious\n", content(precious))


def reading(checks, system, a, b, others):
    """`logs` reads with the rights of who asks, and of the job's owner: nobody reads another's file through it."""
    link = os.path.join(b.home, "look")
    b.call(relink, others, link)
    job = system.submit(b, "-o", link, "--append", "--", "true")
    system.wait(job)
    for name, target in (("another user's", others), ("root's", "/etc/shadow"), ("the key", os.path.join(system.data, "ledger.key"))):
        b.call(relink, target, link)
        answer = system.of(b, "logs", job)
        secret = content(target)
        leaked = isinstance(secret, bytes) and secret[:20].decode(errors="replace") in answer.stdout
        checks.check(f"outputs: logs through a link shows nothing of {name} file", not leaked, said(answer))


# Files of muster's own


# The nodes of a job, the names of emulated nodes and where their folders are, and a link to the program.
OF_EVERYBODY = ("/nodes", "/host/hosts", "/host.plan", "/bin/muster-rsh")


def files(checks, binary, where, a, b):
    """Files and modes of the data folder and the spool (F20)."""
    with System(binary, where) as system:
        script = a.write("file.sh", "#!/bin/sh\nsleep 600\n", 0o700)
        job = system.submit(a, "-o", "/dev/null", script)
        until(lambda: system.is_running(job))
        opened = b.call(readable, system.data)
        checks.check("files: another user reads no file below the data folder", not opened[0], opened[0])
        checks.check("files: another user lists no folder below the data folder but what he must pass", not opened[1], opened[1])
        checks.check("files: another user writes nothing below the data folder", not b.call(writable, system.data))
        # An emulated node's own /tmp is one for everybody, as that of a host; a link has no mode.
        modes = {path: os.lstat(path).st_mode for path in walk(system.data) if not path.endswith("/host/tmp")}
        loose = [path for path, mode in modes.items() if mode & 0o022 and not stat.S_ISSOCK(mode) and not stat.S_ISLNK(mode)]
        checks.check("files: nothing below the data folder is writable by group or others", not loose, loose)
        # A job's list of its nodes is for its processes, and no secret: every user sees where jobs run.
        spool = [path for path in walk(os.path.join(system.data, "spool")) if os.path.isfile(path) and not path.endswith(OF_EVERYBODY)]
        hidden = [path for path in spool if b.call(can_read, path)]
        checks.check("files: no file of the spool can be read by others through its path", not hidden, hidden)


def walk(top):
    """All paths below a folder."""
    return [os.path.join(path, name) for path, folders, names in os.walk(top) for name in folders + names]


def can_read(path):
    """Whether the caller opens a file."""
    try:
        with open(path, "rb"):
            return True
    except OSError:
        return False


def readable(top):
    """The files that the caller opens below a folder, and the folders that he lists, with the names that root knows."""
    found, listed = [], []
    for known in ("ledger/witness", "ledger.key", "ledger/log/CURRENT", "ledger/log/000004.log", "spool/node1/shims.log", "spool/node1/launched.0", "spool/node1/cluster", "spool/node1/lock"):
        if can_read(os.path.join(top, known)):
            found.append(known)
    for path in ("", "ledger", "ledger/log", "spool", "spool/node1", "spool/node1/runs", "spool/node1/free"):
        try:
            os.listdir(os.path.join(top, path))
            listed.append(path)
        except OSError:
            continue
    return found, listed


def writable(top):
    """The folders in which the caller makes a file."""
    made = []
    for path in ("", "ledger", "spool", "spool/node1", "spool/node1/runs", "spool/node1/free"):
        try:
            open(os.path.join(top, path, "attack"), "x", encoding="utf-8").close()
            made.append(path)
        except OSError:
            continue
    return made


# Tokens of jobs


def tokens(checks, binary, where, a, b):
    """A job's token is good for that job while it runs, and for nothing else."""
    port = free_port()
    tokens_file = os.path.join(where, "tokens")
    with open(tokens_file, "w", encoding="utf-8") as file:
        file.writelines(f"{token} {name}\n" for name, token in TOKENS.items())
    os.chmod(tokens_file, 0o600)
    address = f"127.0.0.1:{port}"
    with System(binary, where, f'[gateway]\nlisten = "{address}"\ntokens_file = "{tokens_file}"\n') as system:
        over_tcp = {"MUSTER_SERVER": f"http://{address}", "MUSTER_TOKEN": TOKENS["faa"]}
        note = fresh(a, "token")
        script = a.write("token.sh", f"#!/bin/sh\numask 077\nprintf %s \"$MUSTER_TOKEN\" >{note}\nexec sleep 600\n", 0o700)
        job = a.run(system.binary, "submit", "--parsable", "-o", "/dev/null", script, **over_tcp).stdout.strip()
        other = a.run(system.binary, "submit", "--parsable", "-o", "/dev/null", "--", "sleep", "600", **over_tcp).stdout.strip()
        token = (until(lambda: lines(note)) or [""])[0]
        checks.check("tokens: the job has a token that is not its user's", token and token not in TOKENS.values(), token)
        with_token = {"Authorization": f"Bearer {token}"}
        token_ways(checks, address, with_token, job, other)
        checks.check("tokens: a changed token is refused", request(address, "GET", f"/v1/jobs/{job}", None, {"Authorization": f"Bearer {token[:-2]}xx"})[0] == 401)
        checks.check("tokens: none at all is refused", request(address, "GET", "/v1/jobs")[0] == 401)
        checks.check("tokens: it opens nothing over the socket for another", system.http(b, "POST", "/v1/jobs/actions/cancel", {"jobs": {"ids": [job]}}, **with_token)[0] not in (200, 202))
        system.root("cancel", job)
        system.wait(job)
        status = until(lambda: (lambda seen: seen if seen in (401, 403) else 0)(request(address, "GET", f"/v1/jobs/{job}", None, with_token)[0]), 10)
        checks.check("tokens: after the end it is worth nothing", status in (401, 403), status)


def token_ways(checks, address, with_token, job, other):
    """What a job's token may do and what not."""
    checks.check("tokens: it reads its own job", request(address, "GET", f"/v1/jobs/{job}", None, with_token)[0] == 200)
    for method, path, body in (
        ("GET", f"/v1/jobs/{other}", None), ("GET", f"/v1/jobs/{other}/description", None), ("GET", "/v1/jobs", None), ("GET", "/v1/jobs/all", None),
        ("GET", "/v1/events", None), ("GET", "/v1/records", None), ("GET", "/v1/usage", None), ("GET", "/v1/steps", None), ("GET", "/v1/config", None),
        ("POST", "/v1/jobs/actions/cancel", {"jobs": {"ids": [other]}}), ("POST", "/v1/jobs/actions/cancel", {"jobs": {"matching": {}}}),
        ("POST", "/v1/jobs/actions/cancel", {"jobs": {"ids": [job, other]}}), ("POST", "/v1/jobs/actions/signal", {"jobs": {"ids": [other]}, "signal": 9}),
        ("POST", f"/v1/jobs/{other}/steps/launch", {"groups": []}), ("POST", "/v1/jobs", {"jobs": []}), ("POST", "/v1/jobs/described", {}),
        ("POST", "/v1/nodes/actions/drain", {"nodes": ["node1"]}), ("PUT", "/v1/config", {}),
        ("POST", "/v1/reservations", {}), ("GET", f"/v1/jobs/{other}/../{other}", None), ("GET", f"/v1/jobs/{job}%2f..%2f{other}", None),
    ):
        answer = request(address, method, path, body, with_token)
        checks.check(f"tokens: {method} {path} {json.dumps(body)[:60]} is refused", answer[0] not in (0, 200, 201, 202), answer)


def free_port():
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# Words that root's programs read


def words_of_root(checks, binary, where, a, b):
    """`--uid`, identities in requests, variables that loaders and shells obey: nothing runs as root or as another."""
    mark = fresh(b, "as")
    with System(binary, where) as system:
        script = b.write("who.sh", f"#!/bin/sh\nid -u >>{mark}\n", 0o755)
        for option in ("--uid=0", "--uid=root", "--uid=faa", "--gid=0", "--uid=0 --gid=0"):
            system.of(b, "slurm", "sbatch", "--wait", "-o", "/dev/null", *option.split(), script)
        spec = json.loads(system.of(b, "submit", "--dry-run", "-o", "/dev/null", script).stdout)
        for field in ("user", "owner", "uid", "account_user", "submitted_by"):
            system.http(b, "POST", "/v1/jobs", {"jobs": [{**spec, field: "root"}]})
        system.http(b, "POST", "/v1/jobs", {"jobs": [spec]}, **{"X-Muster-User": "root", "X-Remote-User": "root", "Authorization": "Bearer root"})
        loader = loader_variables(b)
        system.wait(system.submit(b, "-o", "/dev/null", script, **loader))
        system.of(b, "slurm", "sbatch", "--wait", "--get-user-env", "-o", "/dev/null", script, **loader)
        until(lambda: not json.loads(system.root("jobs", "--json").stdout or "[]"))
        seen = lines(mark)
        checks.check("root: every job ran as its submitter", seen and set(seen) == {str(b.uid)}, seen)
        ran = set(lines(os.path.join(b.home, "loaded")))
        checks.check("root: BASH_ENV, ENV, PATH ran nothing as root", "0" not in ran, ran)
        checks.check("root: LD_PRELOAD is only the job's", not os.path.exists("/etc/muster-attack"))


def loader_variables(user):
    """Variables that a careless program of root would obey; each writes who obeyed."""
    book = fresh(user, "loaded")
    shell = user.write("env.sh", f"/usr/bin/id -u >>{book}\n", 0o755)
    os.makedirs(os.path.join(user.home, "bin"), exist_ok=True)
    for name in ("su", "sh", "id", "getent", "env"):
        user.write(f"bin/{name}", f"#!/bin/dash\n/usr/bin/id -u >>{book}\nexit 1\n", 0o755)
    return {
        "BASH_ENV": shell, "ENV": shell, "LD_PRELOAD": f"{user.home}/evil.so", "LD_LIBRARY_PATH": user.home, "PATH": f"{user.home}/bin:/usr/bin:/bin",
        "PYTHONSTARTUP": shell, "GCONV_PATH": user.home, "IFS": "/",
    }


# What jobs leave


def leftovers(checks, binary, where, a, b):
    """Daemons, storms of forks and processes deaf to TERM: gone with the job."""
    with System(binary, where) as system:
        storms = {
            "a daemon in a session of its own": ("4242", "setsid -f sleep {0}; exit 0"),
            "a daemon with a clean environment": ("4243", "setsid -f env -i sleep {0}; exit 0"),
            "sixty detached processes": ("4244", "for i in $(seq 60); do setsid -f sleep {0}; done; exit 0"),
            "a double fork deaf to TERM": ("4245", "(trap '' TERM HUP; (setsid -f env -i sh -c 'trap \"\" TERM; sleep {0}') & ) ; exit 0"),
            "a chain that forks until it is killed": ("4246", "timeout 5 sh -c 'n=0; while [ $n -lt 200 ]; do setsid -f env -i sleep {0}; n=$((n+1)); done'; exit 0"),
        }
        for name, (mark, text) in storms.items():
            script = b.write("storm.sh", "#!/bin/sh\n" + text.format(mark) + "\n", 0o755)
            system.wait(system.submit(b, "-o", "/dev/null", script))
            gone = until(lambda: not pids_with(f"sleep\0{mark}"))
            checks.check(f"leftovers: {name} is gone after the job", gone, pids_with(f"sleep\0{mark}"))
        mine = b.write("deaf.sh", "#!/bin/sh\ntrap '' TERM HUP INT\nsetsid -f sleep 4247\nwhile :; do sleep 4247; done\n", 0o755)
        job = system.submit(b, "--kill-grace", "1", "-o", "/dev/null", mine)
        until(lambda: pids_with("sleep\0" + "4247"))
        system.of(b, "cancel", job)
        gone = until(lambda: not pids_with("sleep\0" + "4247"))
        checks.check("leftovers: a cancelled job deaf to TERM leaves nothing", gone)
        start = time.monotonic()
        system.wait(system.submit(a, "-o", "/dev/null", "--", "true"))
        print(f"        a job of the other user afterwards took {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
