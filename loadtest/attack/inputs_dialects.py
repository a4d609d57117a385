"""Bad command lines for the commands of PBS and of OAR: their letters and options with odd values, requests and lists that are
well-formed in part, `qmgr` directives, filters, admission rules, scripts with directives."""

import os

import mutate
import raw
from inputs_cli import Cli

# The letters of each command; one that takes a value is followed by a colon.
PBS = {
    "qsub": "a:A:b:c:C:d:D:e:fF:hIj:J:k:K:l:L:m:M:nN:o:p:P:q:r:R:S:t:T:u:v:Vw:W:xXz",
    "qstat": "acCeE:fF:D:giln1pqrstu:xGHJMQEBW:T",
    "qalter": "a:A:c:e:h:j:k:l:m:M:N:o:p:P:r:R:S:t:u:v:W:",
    "qselect": "a:A:c:h:HJl:N:p:P:q:r:s:t:Tu:x",
    "qdel": "aAcEm:pt:vW:x", "qhold": "h:t:", "qrls": "h:t:", "qsig": "as:", "qrerun": "fW:", "qmove": "", "qorder": "", "qmsg": "EO",
    "qrun": "aH:", "qenable": "", "qdisable": "", "qstart": "", "qstop": "", "qmgr": "ac:enz",
    "pbsnodes": "acC:dD:F:HjlLnN:opqrs:Svx", "tracejob": "aslmvzw:p:n:f:c:", "printjob": "as", "pbs_stagein": "H:", "pbsdsh": "c:n:h:osuv",
}
CHANGES_ALL = {"qenable", "qdisable", "qstart", "qstop", "qmgr", "qrun", "pbsnodes"}
RESOURCES = [
    "select=", "select=1:ncpus=", "select=2:mem=", "select=1:ncpus=1+", "select=1+1:host=", "nodes=", "nodes=1:ppn=", "nodes=node1+",
    "walltime=", "ncpus=", "mem=", "place=", "place=scatter:excl:group=", "software=", "min_walltime=1,max_walltime=", "select=1:ncpus=1:ngpus=", "",
]
ATTRIBUTES = ["depend=", "depend=afterok:", "depend=on:", "block=", "stagein=", "stageout=", "group_list=", "umask=", "run_count=",
    "sandbox=", "x=", "release_nodes_on_stop=", "array_state_count=", "queue=", ""]
MANAGER = [
    "create queue ", "create queue odd queue_type=", "set queue default ", "set queue default resources_max.walltime=",
    "set queue default max_run=", "set queue default max_run=[u:PBS_GENERIC=", "set queue default acl_users+=", "set queue odd route_destinations=",
    "set queue odd enabled=true,started=", "unset queue default ", "delete queue odd", "delete queue ", "list queue ", "list server", "print server",
    "print queue ", "set server ", "set server default_queue=", "set server managers+=", "set server scheduling=", "set server max_queued=",
    "set server query_other_jobs=", "unset server ", "create node ", "set node node1 ", "set node node1 comment=", "set node node1 state=",
    "set node node1 resources_available.ncpus=", "set node node1 properties+=", "delete node ", "list node ", "create resource r type=",
    "create hook h", "set hook h ", "import hook h application/x-python default ", "list hook", "active queue ", "set ", "help ", "x ", "",
]
OAR = {
    "oarsub": ["-I", "-S", "-l:", "-p:", "-q:", "-t:", "-a:", "-n:", "-d:", "-O:", "-E:", "-r:", "--array:", "--array-param-file:", "--hold",
        "--project:", "--notify:", "--checkpoint:", "--signal:", "-s:", "--stagein-md5sum:", "-C:", "--resubmit:"],
    "oarstat": ["-f", "-s", "-e", "-p", "-J", "-Y", "-X", "-D", "-j:", "-u:", "--array:", "--sql:", "-c", "--gantt:", "--accounting:"],
    "oardel": ["-s:", "-c", "--array", "--sql:", "--force-terminate-finishing-job", "-e:"],
    "oarhold": ["-r", "--array", "--sql:"], "oarresume": ["--array", "--sql:"],
    "oarnodes": ["-s", "-l", "-J", "-Y", "-X", "-D", "-e:", "-r:", "--sql:"],
    "oarnodesetting": ["-r:", "-h:", "--sql:", "-s:", "-m:", "-d:", "-p:", "-n", "-a"],
    "oaraccounting": ["--reinitialize", "--delete-before:"],
    "oaradmissionrules": ["-S", "-I", "-f", "-H", "-Y", "-N", "-s:", "-n", "-r:", "-m:", "-d:"],
    "oarcp": ["-r"], "oarmonitor": ["-f:", "-j:"],
    "oarnotify": ["-l", "-e:", "-d:", "-E", "-D", "--add:", "--change:", "--remove:"],
    "oarqueue": ["-l", "-e:", "-d:", "-E", "-D", "--add:", "--change:", "--remove:"],
    "oarprint": ["-f:", "-j:", "-P:", "-F:", "-T:", "-C:", "-l"], "oarproperty": ["-l", "-q", "-a:", "-c", "-d:", "-r:"],
    "oarremoveresource": [], "oarsh": ["-n", "-l:"], "oarwalltime": ["--force", "--whole", "--delay-next-jobs"],
    "oar_resources_add": ["-H:", "-C:", "-c:", "--host0:", "--host-prefix:", "--host-suffix:", "--memory:", "-a:"],
}
REQUESTS = [
    "nodes=", "/nodes=2/core=", "/host=1/cpu=1/core=1,walltime=", "{mem > 1}/nodes=", "{", "{gpu='YES'}/host=1+/host=1,walltime=", "nodes=1,walltime=",
    "/switch=1/nodes=ALL,walltime=", "core=1+", "nodes=BEST/", "",
]
FILTERS = [
    "mem > ", "host = 'node1' AND ", "NOT (", "cpu IN (", "state LIKE '%", "a = 'b' OR 1=1; --", "host BETWEEN ", "(" * 300, "x IS NULL", "gpu=",
    "'", "",
]
TYPES = ["besteffort", "deploy", "cosystem", "container", "inner=", "timesharing=", "timesharing=user,", "idempotent", "desktop_computing",
    "noop", "set_placeholder=", "postpone=", "deadline=", "expire=", ""]
SETTINGS = ["state=", "mem=", "gpu=", "available_upto=", "=", "core=", "x!", ""]
ADDED = ["odd,1,", "odd,", ",,,", "default,5,Default", ""]


def followed(cli, beginnings):
    """A good beginning with an odd end, or something else."""
    if cli.choices.random() < 0.15:
        return raw.to_bytes(cli.value())
    return raw.to_bytes(cli.choice(beginnings)) + raw.to_bytes(cli.choice(["1", "2", "1:00", "node1", "default", "true", cli.value()]))


def value_of_pbs(cli, name, letter):
    """What the letter takes, mostly."""
    several = {"l": RESOURCES, "W": ATTRIBUTES, "J": ["0-", "1-3:", "1-5%", ""], "t": ["0-", "1-3%", ""], "s": ["Q", "R", "SIG", "running", ""]}
    if name == "qmgr" and letter == "c":
        return followed(cli, MANAGER)
    if letter == "F" and name in ("qstat", "pbsnodes"):
        return raw.to_bytes(cli.choice(["json", "dsv", "default", cli.value()]))
    return followed(cli, several[letter]) if letter in several else raw.to_bytes(cli.value())


def line_of_pbs(cli, name):
    """A command line of PBS."""
    letters, words = PBS[name], []
    for _ in range(cli.choice((0, 1, 1, 1, 2, 3)) if letters else 0):
        at = cli.choice([at for at, letter in enumerate(letters) if letter != ":"])
        words.append(f"-{letters[at]}")
        if letters[at + 1:at + 2] == ":":
            words.append(value_of_pbs(cli, name, letters[at]))
    return [*words, *operands_of_pbs(cli, name)]


def operands_of_pbs(cli, name):
    jobs = [*cli.jobs, "1[]", "4[1]", "4[1-2]", "2.server", "1@other", "3[", "default", "@default", "default@"]
    several = {
        "qsub": (["job.sh"], ["pbs.sh"], ["--", "true"], ["--", "true", cli.value()], [], ["job.sh", "job.sh"]),
        "qmove": (["default", cli.choice(jobs)], [cli.value(), cli.choice(jobs)], [cli.choice(jobs)]),
        "qmsg": (["hello", cli.choice(jobs)], [cli.value(), cli.choice(jobs)]), "qselect": ([], [cli.value()]),
        "pbsnodes": ([], ["node1"], ["node1", cli.value()], ["-C", cli.value(), "node2"]), "qmgr": ([], [cli.value()]),
        "pbsdsh": (["true"], ["--", "true"], [cli.value()]),
        **{verb: (["default"], [cli.value()], []) for verb in ("qenable", "qdisable", "qstart", "qstop")},
    }
    return list(cli.choice(several.get(name, ([cli.choice(jobs)], [cli.choice(jobs), cli.choice(jobs)], [cli.value()], []))))


def value_of_oar(cli, option):
    several = {"-l": REQUESTS, "-p": FILTERS + SETTINGS, "--sql": FILTERS, "-t": TYPES, "--add": ADDED, "--change": ADDED, "-P": SETTINGS, "-a": SETTINGS,
        "--gantt": ["2026-11-20 08:30:00,", "2026-11-20 08:30:00, 2026-11-21 ", ","], "--accounting": ["2026-11-20,", "2026-11-20, 2026-11-", ""],
        "-r": ["1", "/bin/true", "2026-11-20 08:30:00", "a,", ""], "-s": ["Alive", "Absent", "Dead", ".", "/etc", ""], "--notify": ["mail:", "exec:", "[", ""]}
    return followed(cli, several[option]) if option in several else raw.to_bytes(cli.value())


def line_of_oar(cli, name):
    """A command line of OAR."""
    words = []
    for _ in range(cli.choice((0, 1, 1, 2, 3)) if OAR[name] else 0):
        option = cli.choice(OAR[name])
        words.append(option.rstrip(":"))
        if option.endswith(":"):
            words.append(value_of_oar(cli, option.rstrip(":")))
    jobs = cli.choice(cli.jobs)
    several = {
        "oarsub": (["true"], ["./oar.sh"], [cli.value()], [], ["sleep 1", "x"]), "oarstat": ([], [cli.value()]), "oarsh": (["node1", "true"], [cli.value()]),
        "oarcp": (["job.sh", "node1:/tmp/odd-copy"], [cli.value(), cli.value()]), "oarwalltime": ([jobs], [jobs, "+1:0"], [jobs, cli.value()], [cli.value()]),
        "oarprint": (["host"], [cli.value()]), "oarnodes": ([], ["node1"], [cli.value()]), "oarremoveresource": (["99"], [cli.value()]),
    }
    return [*words, *cli.choice(several.get(name, ([jobs], [jobs, cli.value()], [])))]


def scripts(cli):
    """Scripts with odd directives, made anew now and then."""
    for name, sign, beginnings in (("pbs.sh", b"#PBS -l ", RESOURCES), ("oar.sh", b"#OAR -l ", REQUESTS)):
        path = cli.user.write(name, "", 0o755)
        with open(path, "wb") as file:
            file.write(b"#!/bin/sh\n" + sign + followed(cli, beginnings) + b"\n" + sign[:5] + raw.to_bytes(mutate.words(cli.choices)) + b"\ntrue\n")


def each(run, cli, count, names, line, dialect):
    for number in range(count):
        if number % 20 == 0:
            scripts(cli)
        name = names[number % len(names)]
        words = line(cli, name)
        own = cli.choice((True, True, False))
        status, *_ = cli.call(words if own else [dialect, name, *words], name=f"{dialect} {name}", own=os.path.join(cli.links, name) if own else None,
            environment=environment(cli))
        if cli.user is run.user and own:
            # A status above 0 of these can be that of a job, or of one operand of several.
            run.was_asked(False)
        if number % 150 == 149:
            run.system.root("cancel", "--matching", seconds=120)
            if cli.user is run.administrator:
                run.restore()


def environment(cli):
    """Variables that the commands read, seldom."""
    if cli.choices.random() > 0.15:
        return {}
    names = ["PBS_DEFAULT", "PBS_DPREFIX", "QSUB_ARGS", "PBS_JOBID", "PBS_NODEFILE", "PBS_O_WORKDIR", "OAR_JOB_ID", "OAR_JOBID", "OAR_NODEFILE", "OARDO_USER",
        "OAR_JOB_KEY_FILE", "COLUMNS"]
    return {cli.choice(names): mutate.words(cli.choices).replace("\0", "")}


def pbs(run, count):
    """The commands of PBS as an ordinary user."""
    each(run, Cli(run, run.user), count, list(PBS), line_of_pbs, "pbs")


def oar(run, count):
    """The commands of OAR as an ordinary user."""
    each(run, Cli(run, run.user), count, list(OAR), line_of_oar, "oar")


def administrators(run, count):
    """Those that change the cluster, as an administrator."""
    cli = Cli(run, run.administrator)
    each(run, cli, count - count // 2, ["qmgr", *sorted(CHANGES_ALL), "qalter", "qmgr"], line_of_pbs, "pbs")
    each(run, cli, count // 2, ["oarnodesetting", "oarqueue", "oarnotify", "oarproperty", "oaradmissionrules", "oaraccounting", "oarremoveresource",
        "oarwalltime", "oar_resources_add"], line_of_oar, "oar")


KINDS = [("cli-pbs", 1800, pbs), ("cli-oar", 1500, oar), ("cli-dialects-administrator", 900, administrators)]
