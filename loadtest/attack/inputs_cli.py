"""Bad command lines: every command and option that the help of muster, of its HPC Pack verbs and of its Slurm commands names."""

import os
import re
import resource
import shutil
import signal
import subprocess

import mutate
import raw

DOCUMENTED = {0, 1, 2, 3, 4, 5}
SLURM = ["sbatch", "salloc", "srun", "sbcast", "sattach", "squeue", "sinfo", "scancel", "scontrol", "sacct", "sacctmgr", "sdiag", "sprio", "sshare", "sstat", "seff", "sreport", "strigger", "scrontab"]
STANDS_FOR_ANOTHER = re.compile(r"^(submit|run|step run|job wait|job submit|shell|slurm (srun|salloc|sbatch)|(srun|salloc|sbatch)\b|(pbs|oar) |(pbs|oar)$)")
"""These may end with another process's status, or wait for one."""
MAY_LAST = re.compile(r"^(top|events|logs|shell|run|step|submit|job (wait|submit)|up|serve|simulate|whatif|replay|slurm|doctor|filter|plan|audit|job (modify|new|add))|^(srun|salloc|sbatch|squeue|sinfo|sattach|scontrol|sbcast)|^(pbs|oar|agent|backup)$|^(pbs (qsub|pbsdsh)|oar (oarsub|oarsh|oarcp|oarmonitor))")
LEFT_OUT = {"up", "serve"}
"""Started with a folder of their own in `inputs_files.py`."""
SERVERS = ["http://127.0.0.1:1", "http://", "", "x://127.0.0.1", "http://127.0.0.1:99999", "https://127.0.0.1:1", "http://[::1",
    "http://127.0.0.1:1/path?x", "127.0.0.1:1", "http://a b", "http://127.0.0.1:-1"]
SECONDS = 5
MOST_MEMORY = 4 << 30
SCONTROL = [
    "show job", "show node", "show partition", "show hostnames", "show hostlist", "show step", "show config", "show reservation",
    "show license", "show burstbuffer", "show assoc", "hold", "release", "suspend", "resume",
    "requeue", "requeuehold", "update jobid=", "update nodename=node1 state=", "update partitionname=default maxtime=",
    "update jobid=2 timelimit=", "update jobid=3 starttime=", "update jobid=3 numnodes=", "update jobid=4 arraytaskthrottle=",
    "update jobid=3 dependency=", "update jobid=3 features=", "update jobid=3 nice=", "create reservation",
    "create reservation nodes=node1 starttime=", "create reservation duration=", "delete reservation", "top", "notify 2",
    "write batch_script", "wait_job", "ping", "reboot", "cancel_reboot", "setdebug", "show", "update", "",
]
SACCTMGR = ["show assoc", "show user", "show qos format=", "add account", "add user", "add qos", "modify account x set",
    "modify qos normal set maxwall=", "modify qos normal set grptres=", "delete account", "list", "dump", "load", "archive", "-p show", ""]
HPC_VERBS = {
    "job": ["new", "add", "submit", "clone", "modify", "view", "list", "listtasks", "cancel", "finish", "requeue"],
    "jobtemplate": ["new", "set", "allow", "add-filter", "remove-filter", "export", "import", "view", "list", "delete", "copy", "x"],
    "cluscfg": ["setparams", "listparams", "view", "x"],
}
PARAMETERS = [
    "SubmissionFilterTimeout", "ActivationFilterTimeout", "FilterRetryInterval", "ActivationOrdering", "DefaultHoldDuration",
    "SchedulingMode", "PriorityBias", "ReBalancingInterval", "PreemptionBalancedMode", "GrowByPreemptionEnabled", "Nothing",
]


class Command:
    """A command with its options, as the help tells."""

    def __init__(self, words, options):
        self.words, self.options = words, options
        self.name = " ".join(words)


class Cli:
    """Makes command lines, runs them as a user, and judges how they end."""

    def __init__(self, run, user):
        self.run, self.user, self.choices = run, user, run.choices
        self.links = os.path.join(user.home, "links")
        run.system.of(user, "install-commands", self.links)
        user.write("job.sh", "#!/bin/sh\ntrue\n", 0o755)
        self.jobs = ["1", "2", "3", "4_1", "5+1", "6", "999999", "2.0", "2.1"]

    def call(self, words, environment=None, name=None, own=None):
        """Runs one command line; its status, output and errors."""
        name = name or " ".join(words[:3])
        line = [os.fsencode(word) if isinstance(word, str) else word for word in words]
        line = [word.replace(b"\0", b"") for word in line]
        program = own or self.run.system.binary
        status, out, err = bounded([program.encode(), *line], self.user, environment or {}, self.run.system.data, SECONDS)
        self.judge(name, line, status, out, err, own)
        return status, out, err

    def judge(self, name, line, status, out, err, own):
        what = f"{own or 'muster'} {b' '.join(line)[:700]!r} -> {status} {err[:500]!r} {out[:200]!r}"
        self.run.note(f"status {status}" if status is not None else "lasts", what)
        if b"panicked" in err + out or b"RUST_BACKTRACE" in err or b"terminate called" in err:
            self.run.fault(f"{name} panics", what)
        if status is None:
            if not MAY_LAST.search(name):
                self.run.fault(f"{name} does not end within {SECONDS} s", what)
            return
        stands = STANDS_FOR_ANOTHER.search(name) or own
        if status < 0 or status in (101, 134, 139) or (status not in DOCUMENTED and not stands):
            self.run.fault(f"{name} ends with {status}", what)
        # `pbsnodes -q` and `qmgr -z` are asked to say nothing.
        is_quiet = bool(re.search("pbsnodes|qmgr", name)) and any(word in (b"-q", b"-z") for word in line)
        if status and not err.strip() and not out.strip() and not is_quiet:
            self.run.fault(f"{name} ends with {status} and says nothing", what)
        if status and not stands and not err.strip() and name != "doctor" and not re.search("sacctmgr|seff", name):
            self.run.fault(f"{name} ends with {status} and says nothing on standard error", what)
        if b"\x1b" in err + out and any(b"\x1b" in word for word in line):
            self.run.remark("what it says has a control character of its own words as it came", what)

    # Making

    def value(self, option=""):
        """An odd value, now and then a good one."""
        if option in ("server",):
            return self.choices.choice(SERVERS)
        if option in ("data", "ca", "config", "chdir", "output", "error", "input"):
            return self.choices.choice(["/dev/null", "/", "", "x" * 300, "/nonexistent", "job.sh", "\x1b[31m", "a\nb", "%99999j", "%"])
        if self.choices.random() < 0.06:
            return self.choices.choice(mutate.RAW_WORDS)
        if self.choices.random() < 0.15:
            return self.choices.choice(self.jobs)
        return mutate.words(self.choices)

    def operand(self):
        return self.choice(self.jobs + ["node1", "default", "job.sh", "--", "easy"]) if self.choices.random() < 0.75 else self.value()

    def choice(self, several):
        return self.choices.choice(several)


def with_little_memory():
    """What words make a command take must not endanger the host."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def bounded(line, user, environment, data, seconds):
    """Runs a command as a user in a session of its own; `None` as status if it lasted longer and was killed."""
    child = subprocess.Popen(
        line, preexec_fn=with_little_memory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=user.home,
        user=user.uid, group=user.gid, extra_groups=[], start_new_session=True,
        env={**user.environment(MUSTER_DATA=data, MUSTER_WAIT_SECONDS="1"), "EDITOR": "/bin/true", "VISUAL": "", **environment},
    )
    try:
        out, err = child.communicate(timeout=seconds)
        return child.returncode, out[:1 << 20], err[:1 << 16]
    except subprocess.TimeoutExpired:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        out, err = child.communicate()
        return None, out[:1 << 16], err[:1 << 16]


def tree(run, words=()):
    """All commands of muster with their options, by their help."""
    text = run.system.root(*words, "--help").stdout
    names = re.search(r"\nCommands:\n((?:  .*\n)+)", text)
    options = re.findall(r"^\s{2,6}(?:-(\w)(?:, )?)?(?:--([\w-]+))?(?: (<[^>]+>|\[<[^>]+>\]))?", text.partition("Options:")[2], re.M)
    found = [Command(list(words), [(short, long, bool(value)) for short, long, value in options if short or long])]
    for name in re.findall(r"^  ([a-z][\w-]+)", names[1] if names else "", re.M):
        if name not in LEFT_OUT and name != "help":
            found += tree(run, (*words, name))
    return found


def with_option(cli, command):
    """A command line with one to three options that have odd values."""
    words = list(command.words)
    for _ in range(cli.choice((1, 1, 1, 2, 3))):
        if not command.options:
            break
        short, long, takes = cli.choice(command.options)
        value = cli.value(long)
        if not takes:
            words.append(f"--{long}" if long else f"-{short}")
        elif long and cli.choice((True, False)):
            words.append(b"--" + long.encode() + b"=" + raw.to_bytes(value))
        else:
            words += [f"--{long}" if long else f"-{short}", value]
    for _ in range(cli.choice((0, 1, 1, 1, 2))):
        words.append(cli.operand())
    if command.words[:1] in (["submit"], ["run"], ["shell"]) or command.words == ["step", "run"]:
        words += cli.choice(([], ["--", "true"], ["job.sh"], ["--"], ["--", cli.value()]))
    return words


def cli_as(run, count, user):
    cli = Cli(run, user)
    commands = [command for command in tree(run) if command.words]
    for number in range(count):
        command = commands[number % len(commands)] if number < 2 * len(commands) else cli.choice(commands)
        status, *_ = cli.call(with_option(cli, command), name=command.name)
        if user is run.user:
            run.was_asked(bool(status) and not STANDS_FOR_ANOTHER.search(command.name))
        if number % 150 == 149:
            run.system.root("cancel", "--matching", seconds=120)


def own_commands(run, count):
    """Commands of muster as an ordinary user."""
    cli_as(run, count, run.user)


def administrators_commands(run, count):
    """The same as an administrator, who may change the cluster."""
    cli_as(run, count, run.administrator)


def each_option(run, count):
    """Every option of every command once with each of a few odd values."""
    cli = Cli(run, run.user)
    lines = [(command, option) for command in tree(run) if command.words for option in command.options]
    for number in range(count):
        command, (short, long, takes) = lines[number % len(lines)]
        flag = f"--{long}" if long else f"-{short}"
        words = [*command.words, *([flag, cli.value(long)] if takes else [flag]),
            *(["--", "true"] if command.name in ("submit", "shell") else [])]
        status, *_ = cli.call(words, name=command.name)
        run.was_asked(bool(status) and not STANDS_FOR_ANOTHER.search(command.name))


def slurm(run, count):
    """Slurm's commands, as links and as `muster slurm NAME`."""
    cli = Cli(run, run.user)
    options = {name: re.findall(r"(?:-(\w), )?--([\w-]+)(\[?=)?", run.system.root("slurm", name, "--help").stdout) for name in SLURM}
    for number in range(count):
        name = SLURM[number % len(SLURM)]
        words = []
        for _ in range(cli.choice((0, 1, 1, 2, 3))):
            short, long, takes = cli.choice(options[name] or [("", "help", "")])
            if long in ("iterate",):
                continue
            value = raw.to_bytes(cli.value(long))
            words.append(b"--" + long.encode() + b"=" + value if takes else f"--{long}") if long and cli.choice((True, True,
                False)) else words.extend([f"-{short or 'x'}", value])
        words += operands_of_slurm(cli, name)
        if cli.choice((True, False)):
            cli.call(words, environment=odd_environment(cli, name), name=name, own=os.path.join(cli.links, name))
        else:
            cli.call(["slurm", name, *words], environment=odd_environment(cli, name), name=name)
        if number % 150 == 149:
            run.system.root("cancel", "--matching", seconds=120)


def operands_of_slurm(cli, name):
    several = {
        "sbatch": (["job.sh"], ["--wrap", "true"], ["--wrap", "true", ":", "-n1"], ["job.sh", cli.value()], [":", "job.sh"],
        ["-n1", ":", "-n1", ":", "job.sh"], []),
        "srun": (["true"], ["-n1", "true", ":", "true"], ["--jobid=2", "true"], [":"], []),
        "salloc": (["true"], ["-n1", ":", "-n1", "true"], []),
        "sbcast": (["--jobid=2", "job.sh", "/tmp/odd-copy"], [cli.value(), cli.value()]),
        "scontrol": ([*cli.choice(SCONTROL).split(), cli.operand()], [raw.to_bytes(cli.choice(SCONTROL)) + raw.to_bytes(cli.value())],
        [*cli.choice(SCONTROL).split()[:-1], raw.to_bytes((cli.choice(SCONTROL).split() or [""])[-1]) + raw.to_bytes(cli.value())]),
        "sacctmgr": (["-i", *cli.choice(SACCTMGR).split(), cli.operand()],
        [*cli.choice(SACCTMGR).split(), b"name=" + raw.to_bytes(cli.value())]),
    }
    return list(cli.choice(several.get(name, ([], [cli.operand()], [cli.operand(), cli.operand()]))))


def odd_environment(cli, name):
    """Variables that the commands read, seldom."""
    if cli.choices.random() > 0.2:
        return {}
    names = {
        "sbatch": ["SBATCH_TIMELIMIT", "SBATCH_PARTITION", "SBATCH_ARRAY_INX", "SBATCH_EXPORT", "SBATCH_MEM_PER_CPU"],
        "srun": ["SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_MEM_PER_NODE", "SLURM_DISTRIBUTION", "SLURM_HET_SIZE"],
        "salloc": ["SALLOC_TIMELIMIT", "SALLOC_PARTITION"], "squeue": ["SQUEUE_FORMAT", "SQUEUE_SORT", "SQUEUE_STATES",
        "SLURM_TIME_FORMAT"], "sinfo": ["SINFO_FORMAT", "SINFO_SORT"], "sacct": ["SACCT_FORMAT", "SLURM_TIME_FORMAT"],
    }.get(name, ["SLURM_CLUSTERS", "MUSTER_JOB_ID", "COLUMNS"])
    value = mutate.words(cli.choices).replace("\0", "")
    return {cli.choice(names): value}


def hpcpack(run, count):
    """Verbs of HPC Pack with every option that their help names."""
    for user, part in ((run.user, count - count // 3), (run.administrator, count // 3)):
        cli = Cli(run, user)
        known = {verb: re.findall(r"^  /(\w+)(:?)", run.system.root("job", verb, "/help").stdout, re.M) for verb in HPC_VERBS["job"]}
        for _ in range(part):
            tool = cli.choice(("job", "job", "job", "jobtemplate", "cluscfg"))
            verb = cli.choice(HPC_VERBS[tool])
            words = [verb, *operands_of_hpcpack(cli, tool, verb)]
            for _ in range(cli.choice((0, 1, 1, 1, 2))):
                if verb not in ("listparams", "view", "list") or tool == "job":
                    words.append(option_of_hpcpack(cli, tool, known.get(verb)))
            if tool == "job" and verb in ("submit", "add"):
                words += cli.choice((["true"], ["/nowait", "true"], ["/nowait", "true"], []))
            cli.call([tool, *words], name=f"job {verb}" if tool == "job" else tool)
            if tool == "cluscfg" and cli.choices.random() < 0.1:
                run.restore()
        run.system.root("cancel", "--matching", seconds=120)


def operands_of_hpcpack(cli, tool, verb):
    """What a verb wants beside its options, mostly."""
    if cli.choices.random() < 0.1:
        return [cli.operand() for _ in range(cli.choice((1, 2)))]
    if tool == "job":
        return [] if verb in ("new", "submit", "list") else [cli.choice(cli.jobs[:7])]
    if tool == "cluscfg" or verb == "list":
        return []
    more = {"set": [cli.choice(["RunTime", "Priority", "NodeGroups", "Project", cli.value()])],
        "add-filter": ["f", "/kind:submission", "/path:/bin/true"], "remove-filter": ["f"], "copy": ["T2"], "import": [],
        "export": ["odd-template.xml"]}
    return [cli.choice(["T", "T", "Default", cli.value()]), *more.get(verb, [])]


def option_of_hpcpack(cli, tool, known):
    if tool == "cluscfg":
        return cli.choice(PARAMETERS).encode() + b"=" + raw.to_bytes(cli.value())
    name, takes = cli.choice(known) if known else (cli.choice(["kind", "path", "mode", "position", "default", "max", "min", "allowed",
        "group", "only", "revertonunknown", "x"]), ":")
    style = cli.choice((b"/%s:%s", b"--%s=%s", b"/%s=%s", b"-%s:%s"))
    return style % (name.encode(), raw.to_bytes(cli.value("server" if name == "scheduler" else ""))) if takes else b"/" + name.encode()


def clean(run):
    shutil.rmtree(os.path.join(run.user.home, "links"), ignore_errors=True)


KINDS = [("cli-options", 1500, each_option), ("cli-user", 1800, own_commands), ("cli-administrator", 900, administrators_commands),
    ("cli-slurm", 1800, slurm), ("cli-hpcpack", 900, hpcpack)]
