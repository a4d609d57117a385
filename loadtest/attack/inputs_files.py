"""Bad files: configurations, policies, job XML, scripts, traces, and what filters answer."""

import json
import os
import re
import shutil
import signal
import stat
import time

import mutate
import raw
from attack import REPOSITORY
from hostile import until
from inputs_cli import Cli

TOML_VALUES = [
    '""', '"x"', "0", "-1", "1", "9223372036854775807", "9223372036854775808", "1e400", "nan", "inf", "true", "[]", "[[]]", "{}",
    '["a", 1]', '"\\u0000"', '"\\ud800"', '"\\u001b[31m"', "1979-05-27T07:32:00Z", "0x7fffffffffffffff",
    '"64G"', '"99999999999999T"', '"-1G"', '"node[1-999999999]"', '"node[1-]"', '["node[1-5]", "node[9-1]"]', '"127.0.0.1:99999"',
    '"/nonexistent/x"', "'''a\nb'''", '"' + "a" * 5000 + '"', "{ a = 1, a = 2 }", "[1, [2, [3, [4]]]]", "65536", "4294967296",
    "0.0", "-0.0", "1_000", "01", '"a', "", "{ max_age_seconds = -1, max_bytes = 1e9 }", '{ gpu = true, mem = 64, "" = "x" }',
    '["a100", ""]', '"text\\q"', "tru", '"job.1.1.x"',
]
FORMULAS = [
    "wait", "1/0", "ln(-1)", "wait ^ 1e308", "(" * 40 + "1" + ")" * 40, "(" * 5000, "-" * 3000 + "1", "not " * 1000 + "1",
    "1 +" * 999 + "1", "1 + " * 1200 + "1", "x", "wait walltime", "min()", "min(1)", "max(" + "1," * 900 + "1)", "if(1)", "attribute(\"",
    "attribute(1)",
    "attribute(\"" + "a" * 3000 + "\")", "1 < 2 < 3", "2 ^ 3 ^ 2", "1e999", "1e-999", ".5", "5.", "0x1", "\u00e9", "🙂", "nan", "inf",
    "1 %% 2", "a" * 4097, "\\", "\"", "1;2", "wait\x00", "wait # x", "sqrt(-1)", "pow(0, -1)", "exp(1e9)", "0 % 0",
    "priority * 1e308 * 1e308 - 1e308 * 1e308",
]
SWF_NUMBERS = ["-1", "0", "1", "-2", "99999999999999999999", "1e400", "nan", "inf", "x", "", "2147483648", "9223372036854775807", "0.5",
    "-0", "1e18"]
SCRIPT_OPTIONS = ["--nodes", "-N", "--ntasks", "--time", "--mem", "--array", "--after", "--begin", "--deadline", "--constraint", "--gpus",
    "--licences", "--warn", "--checkpoint", "--notify", "--mail", "--env", "--output", "--name", "--queue", "--nodse", "--max-runs",
    "--requeue-on-exit"]
SBATCH_OPTIONS = [
    "--nodes", "-N", "--ntasks", "--time", "--mem", "--array", "--dependency", "--begin", "--deadline", "--constraint", "--gres",
    "--licenses", "--signal", "--mail-type", "--mail-user", "--export", "--output", "--job-name", "--partition", "--nodse", "--time-min",
    "--switches", "--distribution", "--cpus-per-task", "--bb", "--comment",
    "--hint", "--core-spec", "--gpus-per-task", "--mem-per-gpu", "--acctg-freq", "--nice", "--priority", "--exclude", "--nodelist",
    "--nodefile", "--extra-node-info", "--threads-per-core", "hetjob", "packjob",
]
XML_ATTRIBUTES = ["Name", "MinCores", "MaxCores", "MinNodes", "MaxNodes", "RuntimeSeconds", "RunTime", "Priority", "UnitType",
    "RequestedNodes", "NodeGroups", "ExcludedNodes", "IsExclusive", "RunUntilCanceled", "Project", "SoftwareLicense", "EmailAddress",
    "HoldUntil", "ParentJobIds", "JobTemplate", "FailOnTaskFailure", "Unknown", "xmlns"]
TASK_ATTRIBUTES = ["CommandLine", "Name", "MinCores", "MaxCores", "Type", "StartValue", "EndValue", "IncrementValue", "DependsOn",
    "StdOutFilePath", "WorkDirectory", "RuntimeSeconds", "RequiredNodes", "IsRerunnable", "Parametric", "EnvironmentVariables"]


def file_in(run, name, data):
    """A file of the user's with these bytes."""
    path = os.path.join(run.user.home, name)
    with open(path, "wb") as file:
        file.write(data)
    os.chown(path, run.user.uid, run.user.gid)
    os.chmod(path, 0o755)
    return path


# Configurations


def configuration_keys():
    """All keys of the configuration by their sections, as the reference has them."""
    section, keys = "", []
    for line in (REPOSITORY / "docs/reference/configuration.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## `(\[.*\])`", line):
            section = heading[1]
        elif row := re.match(r"\| `(\w+)` \| ", line):
            keys.append((section, row[1]))
    return keys


def configuration_text(choices, keys):
    """A configuration with one to four odd lines in it, or its bytes changed."""
    text = '[cluster]\nname = "x"\n[[nodes]]\nname = "node[1-2]"\ncores = 4\nmemory = "4G"\n[[queues]]\nname = "default"\n'
    for _ in range(choices.choice((1, 1, 2, 4))):
        section, key = choices.choice(keys)
        key = key + "x" if choices.random() < 0.1 else key
        line = f"{key} = {choices.choice(TOML_VALUES)}\n"
        text = text.replace(f"{section}\n", f"{section}\n{line}",
            1) if choices.random() < 0.8 and f"{section}\n" in text else f"{text}{section}\n{line}"
    data = text.encode()
    return mutate.text_made_bad(data, choices) if choices.random() < 0.2 else data


def configurations(run, count):
    """Configuration files with odd values at each key, by `config check`."""
    cli, keys = Cli(run, run.user), configuration_keys()
    for number in range(count):
        path = file_in(run, "odd.toml", configuration_text(run.choices, keys))
        status, out, err = cli.call(["config", "check", path], name="config check")
        check_places(run, path, status, err)


def check_places(run, path, status, err):
    """What is wrong with a file is told with its place, and with status 2."""
    if status == 0:
        return
    text = err.decode(errors="replace")
    if status != 2:
        run.fault(f"a wrong file has status {status}", (text, open(path, "rb").read()[:600]))
    elif not re.search(re.escape(path) + r":\d+:\d+: .{8}", text):
        run.fault("an error does not tell its place", (text[:600], open(path, "rb").read()[:600]))


def reloads(run, count):
    """A running system reads a bad configuration on SIGHUP: it goes on with what it had."""
    keys = configuration_keys()
    own, system = run.system.configuration, run.system
    with open(own, "rb") as file:
        good = file.read()
    before = system.root("config", "show").stdout
    for number in range(count):
        with open(own, "wb") as file:
            file.write(b"[cluster]\nname = 7\n" if number % 5 == 0 else mutate.text_made_bad(configuration_text(run.choices, keys),
                run.choices))
        checked = system.root("config", "check", own)
        size = len(system.said())
        os.kill(system.process.pid, signal.SIGHUP)
        told = until(lambda: len(system.said()) > size, 5)
        run.note("wrong" if checked.returncode else "right")
        if checked.returncode and not told:
            run.fault("a bad configuration is read again without a word", checked.stderr)
        if checked.returncode and system.root("config", "show").stdout != before:
            run.fault("a bad configuration changed something", checked.stderr)
        if not checked.returncode:
            before = until(lambda: system.root("config", "show").stdout, 5)
    with open(own, "wb") as file:
        file.write(good)
    os.kill(system.process.pid, signal.SIGHUP)


def applied(run, count):
    """Configurations and policies that an administrator puts in force."""
    cli, keys = Cli(run, run.administrator), configuration_keys()
    for number in range(count):
        data = policy_text(run) if number % 2 else configuration_text(run.choices, keys)
        path = file_in(run, "odd-applied.toml", data)
        cli.call(["config", "apply", "--policy", path] if number % 2 else ["config", "apply", "--yes", path], name="config apply")
        if number % 25 == 24:
            run.restore()


# Policies


def policy_text(run):
    """A policy with odd values, or a formula."""
    choices = run.choices
    formula = choices.choice(FORMULAS) if choices.random() < 0.7 else mutate.words(choices)
    by_formula = json.dumps([{"formula": formula}]).replace('"formula":', "formula =")
    order = choices.choice([
        by_formula, by_formula, by_formula, by_formula, '["fcfs", "fcfs"]', "[]", '"fcfs"', "[1]", json.dumps(["fcfs"] * 40),
        f"[{choices.choice(TOML_VALUES)}]", '[{ formula = "wait", descending = 1 }]',
    ])
    lines = [f"version = {1 if choices.random() < 0.93 else choices.choice(TOML_VALUES)}", f"order = {order}"]
    if choices.random() < 0.2:
        lines.append(f"{choices.choice(['max_starts', 'name', 'unknown', 'version'])} = {choices.choice(TOML_VALUES)}")
    if choices.random() < 0.3:
        lines += ["[backfill]", 'mode = "easy"',
            f"{choices.choice(['reservations', 'candidates', 'look_ahead', 'require_walltime', 'components', 'mode'])} = {choices.choice(TOML_VALUES)}"]
    if choices.random() < 0.25:
        whose = choices.choice(['"user"', '"all"', *TOML_VALUES])
        lines += ["[[limit]]", f"per = {whose}",
            f"{choices.choice(['name', 'queue', 'max_cores', 'max_gpus', 'max_nodes'])} = {choices.choice(TOML_VALUES)}"]
    if choices.random() < 0.15:
        queue = choices.choice(["default", '""', "x", "a.b"])
        lines += [f"[queue.{queue}]", f"order = {order}"]
    data = ("\n".join(lines) + "\n").encode("utf-8", "replace")
    return mutate.text_made_bad(data, choices) if choices.random() < 0.15 else data


def policies(run, count):
    """Policy files and formulas, by `config check` and in a simulation."""
    cli = Cli(run, run.user)
    trace = REPOSITORY / "tests/data/worked_example.swf"
    for number in range(count):
        path = file_in(run, "odd-policy.toml", policy_text(run))
        status, _, err = cli.call(["config", "check", "--policy", path], name="config check --policy")
        check_places(run, path, status, err)
        if status == 0:
            cli.call(["simulate", str(trace), "--policy", path], name="simulate")


def traces(run, count):
    """Traces in the Standard Workload Format that are wrong."""
    cli, choices = Cli(run, run.user), run.choices
    good = (REPOSITORY / "tests/data/worked_example.swf").read_bytes()
    for _ in range(count):
        lines = good.decode().splitlines()
        for _ in range(choices.choice((1, 2, 5))):
            at = choices.randrange(len(lines))
            fields = lines[at].split(" ")
            fields[choices.randrange(len(fields))] = choices.choice(SWF_NUMBERS)
            lines[at] = " ".join(fields)
        data = "\n".join(lines).encode()
        data = mutate.text_made_bad(data, choices) if choices.random() < 0.3 else data
        data = b"\x1f\x8b" + choices.randbytes(60) if choices.random() < 0.05 else data
        path = file_in(run, "odd.swf", data)
        cli.call(["simulate", path, "--policy", choice_of_policy(choices),
            *choices.choice(([], ["--procs", "1"], ["--procs", "99999999999"], ["--limit", "0"], ["--skip", "18446744073709551615"]))],
            name="simulate")


def choice_of_policy(choices):
    return choices.choice(["fcfs", "easy", "conservative", "wfp3", "unicep", "f1"])


# Job XML and templates


def xml_text(choices, root="Job"):
    """A description of a job with odd attributes, elements, entities and encodings."""
    def attributes(names):
        return "".join(f' {choices.choice(names)}="{escaped(mutate.words(choices))}"' for _ in range(choices.choice((0, 1, 1, 2, 4))))

    tasks = "".join(f'<Task CommandLine="true"{attributes(TASK_ATTRIBUTES)}/>' for _ in range(choices.choice((0, 1, 1, 2))))
    text = f"<{root}{attributes(XML_ATTRIBUTES)}><Tasks>{tasks}</Tasks></{root}>"
    special = [
        f'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "{"&a;" * 10}"><!ENTITY c "{"&b;" * 10}">]><Job Name="&c;"/>',
        '<!DOCTYPE a SYSTEM "file:///etc/passwd"><Job/>', "<Job>" + "<a>" * 20000, "<Job>" + "<a>" * 3000 + "</a>" * 3000 + "</Job>",
        '<?xml version="1.0" encoding="UTF-16"?><Job/>', '<?xml version="9.9"?><Job/>', "<Job Name='&#0;'/>", "<Job Name='&#x110000;'/>",
        "<Job Name='&nothing;'/>", "<Job><![CDATA[" + "]]" * 100, "<Job/><Job/>", "<a:Job xmlns:a='x'/>", "<Job Name='a' Name='b'/>",
        "<Job a" + "a" * 100_000 + "='1'/>", "",
        "<Job><Tasks><Task CommandLine='true' Type='ParametricSweep' StartValue='0' EndValue='9223372036854775807' IncrementValue='1'/></Tasks></Job>", "<Job><Tasks><Task CommandLine='true' Type='ParametricSweep' StartValue='-9223372036854775808' EndValue='9223372036854775807' IncrementValue='-1'/></Tasks></Job>",
        "<Job>" + "<Tasks><Task CommandLine='true'/></Tasks>" * 3000 + "</Job>",
        "<Job><EnvironmentVariables><Variable><Name>=</Name><Value>\t</Value></Variable></EnvironmentVariables></Job>",
        "<Job><Dependencies><Dependency TaskName='a'/></Dependencies></Job>",
    ]
    data = (choices.choice(special) if choices.random() < 0.25 else text).encode("utf-8", "replace")
    if choices.random() < 0.2:
        data = mutate.text_made_bad(data, choices)
    return choices.choice((data, data, data, data.decode(errors="replace").encode("utf-16"), b"\xef\xbb\xbf" + data))


def escaped(text):
    return "".join(f"&#{ord(letter)};" if letter in "<&\"\n\t" else letter for letter in text if letter >= " " or letter in "\n\t")


def json_text(choices):
    """The same in JSON."""
    value = {"Name": "x", "MinCores": 1, "MaxCores": 1, "Tasks": [{"CommandLine": "true", "Name": "a"}],
        "Request": {"Partition": "default", "NumTasks": 1}}
    for _ in range(choices.choice((1, 2))):
        value = mutate.made_bad(value, choices)
    data = json.dumps(value).encode()
    return mutate.text_made_bad(data, choices) if choices.random() < 0.4 else data


def descriptions(run, count):
    """Job descriptions by `job submit`, `job new`, `filter test`, and templates by `jobtemplate import`."""
    cli, choices = Cli(run, run.user), run.choices
    administrator = Cli(run, run.administrator)
    for number in range(count):
        kind = number % 5
        if kind == 4:
            path = file_in(run, "odd-template.xml", xml_text(choices, "JobTemplate").replace(b"Tasks", b"Items").replace(b"Task",
                b"Property"))
            administrator.call(["jobtemplate", "import", path], name="jobtemplate import")
        elif kind == 3:
            path = file_in(run, "odd.json", json_text(choices))
            cli.call(["job", "submit", "/nowait", f"/jobfile:{path}"], name="job submit")
        else:
            path = file_in(run, "odd.xml", xml_text(choices))
            cli.call(["job", ("submit", "new", "submit")[kind], *(["/nowait"] if kind != 1 else []), f"/jobfile:{path}"], name="job submit")
        if number % 100 == 99:
            run.system.root("cancel", "--matching", seconds=120)


# Scripts


def script_text(choices, mark, options):
    """A script with odd lines of options."""
    lines = [choices.choice(["#!/bin/sh", "#!/bin/sh", "#!/bin/sh", "#!", "", "#!/nonexistent", "#! /bin/sh -e -x", "#!" + "a" * 5000,
        "\ufeff#!/bin/sh"])]
    for _ in range(choices.choice((1, 1, 2, 3))):
        option, value = choices.choice(options), mutate.words(choices).replace("\n", choices.choice((" ", "\n")))
        blank = choices.choice((" ", " ", " ", "\t", "", "  ", "\r"))
        joined = choices.choice(("=", " ", ""))
        quote = choices.choice(("", "", "'", '"', "\\"))
        lines.append(f"#{mark}{blank}{option}{joined}{quote}{value}{choices.choice((quote, quote, ''))}{choices.choice(('', '', ' # x', ' extra'))}")
    lines += ["true", f"#{mark} --nodes 3", ""]
    data = choices.choice(("\n", "\n", "\n", "\n", "\r\n")).join(lines).encode("utf-8", "replace")
    if choices.random() < 0.08:
        data = mutate.text_made_bad(data, choices)
    return data + b"#" * (5 << 20) if choices.random() < 0.01 else data


def scripts(run, count):
    """Scripts with #MUSTER and #SBATCH lines: shown what would be submitted, or submitted."""
    cli, choices = Cli(run, run.user), run.choices
    for number in range(count):
        if number % 2:
            path = file_in(run, "odd-sbatch.sh", script_text(choices, "SBATCH", SBATCH_OPTIONS))
            cli.call(["slurm", "sbatch", *choices.choice(([], ["--test-only"], ["-H"])), path], name="slurm sbatch")
            run.was_asked(False)
        else:
            path = file_in(run, "odd-muster.sh", script_text(choices, "MUSTER", SCRIPT_OPTIONS))
            status, _, err = cli.call(["submit", *choices.choice((["--dry-run"], ["--dry-run"], ["--hold"])), path], name="submit script")
            if status not in (0, 2, None) and err.splitlines()[-1:] and b"odd-muster.sh:" in err.splitlines()[-1]:
                run.fault(f"a wrong script has status {status}", (err[:400], open(path, "rb").read()[:400]))
            run.was_asked(bool(status))
        if number % 150 == 149:
            run.system.root("cancel", "--matching", seconds=120)


# Starting


def starts(run, count):
    """`up` and `serve` with odd words, in a folder of their own: none may get far with them."""
    cli, choices = Cli(run, run.user), run.choices
    for _ in range(count):
        scratch = os.path.join(run.user.home, "odd-data")
        shutil.rmtree(scratch, ignore_errors=True)
        words = choices.choice([
            ["up", "--nodes", cli.value()], ["up", "--cpus", cli.value()], ["up", "--memory", cli.value()], ["up", "--policy", cli.value()],
            ["up", "--config", cli.value("config")], ["serve", cli.value()], ["serve", "executor", "--node", cli.value()],
            ["serve", "ledger", "planner"], ["serve"], ["up", cli.value()], ["up", "--nodes", "0"], ["up", "--nodes", "99999999"],
            ["up", "--cpus", "65537", "--nodes", "1"], ["up", "--memory", "1"],
        ])
        if words[:2] in (["up", "--nodes"], ["up", "--cpus"]) and words[2] in ("7", "1", "00", "+3"):
            continue
        cli.call(["--data", scratch, *words], name=words[0])
        for pid in filter(str.isdigit, os.listdir("/proc")):
            kill_if_of(int(pid), scratch)


def kill_if_of(pid, scratch):
    """Ends what was left by one of our starts."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if scratch.encode() in file.read():
                os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


# Answers of filters

FILTER = """#!/usr/bin/env python3
# Answers as the job's name says: its number is the line of the book of answers.
import json, os, re, signal, sys, time
xml = open(sys.argv[1]).read()
name = re.search(r'Name="answer(\\d+)"', xml)
if not name:
    sys.exit(0)
answer = json.load(open("{book}"))[int(name[1])]
if "result" in answer:
    open(os.environ["MUSTER_RESULT_FILE"], "wb").write(bytes.fromhex(answer["result"]))
for file, what in answer.get("files", {{}}).items():
    path = os.path.join(os.path.dirname(sys.argv[1]), file)
    if what == "gone":
        os.unlink(path)
    elif what == "folder":
        os.unlink(path); os.mkdir(path)
    elif what == "fifo":
        os.unlink(path); os.mkfifo(path)
    elif what.startswith("link:"):
        os.unlink(path); os.symlink(what[5:], path)
    elif what.startswith("large:"):
        open(path, "wb").write(b"<Job Name='" + b"a" * int(what[6:]) + b"'/>")
    elif what == "locked":
        os.chmod(path, 0)
    else:
        open(path, "wb").write(bytes.fromhex(what))
sys.stdout.write("\\x1b[31mout\\0" * answer.get("noise", 0)); sys.stderr.write("err\\xff" * answer.get("noise", 0))
sys.stdout.flush()
if answer.get("child"):
    if os.fork() == 0:
        os.setsid(); time.sleep(30); os._exit(0)
if answer.get("signal"):
    os.kill(os.getpid(), answer["signal"])
if answer.get("sleep"):
    time.sleep(answer["sleep"])
os._exit(answer.get("code", 1))
"""
SERVER = """#!/usr/bin/env python3
# A persistent filter that answers as the job's name says.
import json, re, sys, time
for line in sys.stdin:
    call = json.loads(line)
    answer = json.dumps({{"id": call["id"], "code": 0}}).encode()
    if call["type"] == "call":
        name = re.search(r'Name="answer(\\d+)"', open(call["job_xml"]).read())
        if name:
            answer = bytes.fromhex(json.load(open("{book}"))[int(name[1])]["line"]).replace(b"@ID@", call["id"].encode())
    sys.stdout.buffer.write(answer + b"\\n"); sys.stdout.buffer.flush()
"""


def odd_answer(choices):
    """What a filter does: exit code, result file, changed description, noise."""
    answer = {"code": choices.choice([1, 1, 1, 0, 2, 3, 4, 5, 64, 77, 126, 127, 128, 255])}
    results = [b"message=" + raw.to_bytes(mutate.words(choices)), b"hold-until=" + raw.to_bytes(mutate.words(choices)), b"\xff\xfe",
        b"\0" * 100, b"message=" + b"a" * 500_000, b"=\n" * 10000, b"hold-until=+99999999999999999999", b"message=\x1b[31m", b""]
    if choices.random() < 0.5:
        answer["result"] = choices.choice(results).hex()
    if choices.random() < 0.7:
        what = choices.choice(["gone", "folder", "fifo", "link:/etc/passwd", "link:/dev/zero", "link:/proc/self/environ", "large:17000000",
            "large:4000000", "locked", xml_text(choices).hex(), xml_text(choices).hex(), xml_text(choices).hex()])
        answer["files"] = {"job.xml": what}
    elif choices.random() < 0.6:
        answer["files"] = {"job.json": choices.choice(["gone", "folder", "fifo", "link:/etc/passwd", json_text(choices).hex(),
            json_text(choices).hex(), json_text(choices).hex()])}
        if choices.random() < 0.2:
            answer["files"]["job.xml"] = xml_text(choices).hex()
    answer |= choices.choice([{}, {}, {}, {}, {"noise": 1}, {"noise": 200_000}, {"signal": 9}, {"signal": 11}, {"sleep": 1.5},
        {"child": True}])
    return answer


def odd_line(choices):
    """What a persistent filter says to a call."""
    lines = [
        b'{"id":"@ID@","code":%s}' % raw.to_bytes(json.dumps(mutate.odd(choices))),
        b'{"id":"@ID@","code":1,"message":%s}' % raw.to_bytes(json.dumps(mutate.odd(choices))),
        b'{"id":"@ID@","code":0,"hold_until":%s}' % raw.to_bytes(json.dumps(mutate.odd(choices))),
        b'{"id":"other","code":0}\n{"id":"@ID@","code":0}',
        b'{"id":"@ID@","code":0}\n{"id":"@ID@","code":1}', b"", b"not json", b"\xff\xfe", b'{"code":0}', b'{"id":"@ID@"}',
        b'{"id":"@ID@","code":0,"unknown":1}', b"[" * 100_000, b'{"id":"@ID@","code":0,"message":"' + b"a" * 2_000_000 + b'"}',
        b'{"id":"@ID@","id":"@ID@","code":0}', b'{"id":"@ID@","code":0}' * 2,
    ]
    return {"line": choices.choice(lines).hex()}


def filters(run, count):
    """Odd answers of submission filters: each job is judged, and the runner goes on."""
    folder = os.path.join(run.where, "filters")
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o755)
    of_programs, of_servers = count - count // 4, count // 4
    program = filter_program(folder, "program", FILTER, [odd_answer(run.choices) for _ in range(of_programs)])
    server = filter_program(folder, "server", SERVER, [odd_line(run.choices) for _ in range(of_servers)])
    run.system.root("cluscfg", "setparams", f"SubmissionFilterProgram={program}", "SubmissionFilterTimeout=1")
    judged(run, of_programs, ["submit", "--no-wait"])
    run.system.root("cluscfg", "setparams", "SubmissionFilterProgram=", "SubmissionFilterTimeout=15")
    run.system.root("jobtemplate", "new", "Odd")
    run.system.root("jobtemplate", "add-filter", "Odd", "server", "/kind:submission", f"/path:{server}", "/mode:persistent")
    judged(run, of_servers, ["job", "submit", "/nowait", "/jobtemplate:Odd"])
    run.system.root("jobtemplate", "remove-filter", "Odd", "server", "/kind:submission")


def filter_program(folder, name, text, answers):
    book, path = os.path.join(folder, f"{name}.json"), os.path.join(folder, name)
    with open(book, "w", encoding="utf-8") as file:
        json.dump(answers, file)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.format(book=book))
    os.chmod(path, stat.S_IRWXU | 0o055)
    return path


def judged(run, count, words):
    """Submits a job for each answer, and waits until each has been judged."""
    numbers = []
    for number in range(count):
        name = [f"/jobname:answer{number}"] if words[0] == "job" else ["--name", f"answer{number}", "-o", "/dev/null", "-e", "/dev/null",
            "-t", "1"]
        said = run.system.of(run.user, *words, *name, *([] if words[0] == "job" else ["--"]), "true")
        found = re.search(r"(\d+)", said.stdout)
        if said.returncode or not found:
            run.fault("a job that a filter is to judge is not taken", said)
            continue
        numbers.append(found[1])
    end = time.monotonic() + 240
    open_ones = set(numbers)
    while open_ones and time.monotonic() < end:
        for number in list(open_ones):
            shown = json.loads(run.system.root("job", "show", "--json", number).stdout or "[{}]")
            job = shown.get("job", {})
            if job.get("state") == "finished":
                run.note(job["outcome"]["outcome"], job["outcome"])
                open_ones.discard(number)
        time.sleep(0.2)
    for number in sorted(open_ones)[:5]:
        run.fault("a job is never judged, or does not end", (run.system.root("job", "show", number).stdout[-600:], run.system.root("job",
            "events", number).stdout[-800:]))
    for _ in open_ones:
        run.note("open")


KINDS = [
    ("configurations", 1200, configurations), ("reloads", 60, reloads), ("applied", 150, applied), ("policies", 800, policies),
    ("traces", 250, traces), ("descriptions", 700, descriptions), ("scripts", 900, scripts), ("starts", 60, starts),
    ("filters", 200, filters),
]
