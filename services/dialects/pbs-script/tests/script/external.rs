//! External programs, here in Python.

use super::support::{
    Bench, TEN, bench_with, is_gone, job, node, poll_for, queue, short, site, started, state, state_of,
};
use muster_pbs_plan::state_file::State;
use muster_pbs_script::{
    action::{Accepted, Action, Code},
    cycle::{Bounds, Decision, End},
    scheduler::Hour,
    state_site::StateSite,
    trigger::Command,
};
use std::{fs, time::Duration};

/// Says and hears lines, and keeps what it heard in the file `heard`.
const LIBRARY: &str = r#"
import sys, json, os, time
heard_file = open("heard", "a", buffering=1)
def hear():
    line = sys.stdin.readline()
    if not line: sys.exit(0)
    heard_file.write(line)
    return json.loads(line)
def say(text):
    sys.stdout.write(text + "\n"); sys.stdout.flush()
def ask(**message):
    say(json.dumps(message)); return hear()
def begin():
    init = hear(); assert init["t"] == "init", init
    say('{"t":"ready","v":1,"name":"test"}')
"#;

fn program_with(text: &str, bounds: Bounds) -> Bench {
    let script = format!("{LIBRARY}\n{text}\n");
    bench_with("external:/usr/bin/python3 plan.py 'one word'", &[("plan.py", &script)], bounds)
}

fn program(text: &str) -> Bench {
    program_with(text, short())
}

fn has_python() -> bool {
    let is_here = std::path::Path::new("/usr/bin/python3").exists();
    if !is_here {
        muster_surroundings::skipped("python3 is not in /usr/bin");
    }
    is_here
}

fn heard(bench: &Bench) -> Vec<String> {
    let text = fs::read_to_string(bench.folder.path().join("heard")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// W14. PBS-X-22, PBS-X-23: one exchange, line by line.
#[test]
fn one_exchange_goes_line_by_line() {
    if !has_python() {
        return;
    }
    let text = r#"
begin()
while True:
    cycle = hear()
    if cycle["t"] == "quit": break
    if cycle["cmd"] == "SCH_SCHEDULE_TERM":
        say('{"t":"stat","id":1,"what":"selstat"}'); hear()
        say('{"t":"run","id":2,"job":"12"}'); hear()
        say('{"t":"end","seq":7}')
    else:
        say('{"t":"run","id":9,"job":"11","seq":7}'); hear()
        say('{"t":"end","seq":%d}' % cycle["seq"])
"#;
    let mut bench = program(text);
    let jobs = vec![job("11", "batch", &[("ncpus", "4")]), job("12", "batch", &[("cput", "90")])];
    let mut site = StateSite::new(state(vec![queue("batch")], vec![node("node1", "free", None)], jobs));
    // Six cycles before, so that this is number 7.
    for now in 0..6 {
        bench.on(Command::Cmd, now, &mut site);
    }
    fs::write(bench.folder.path().join("heard"), "").expect("a file");
    let now = 895_200_000;
    bench.scheduler.note(Command::Term);
    // TIME is due as well, and TERM goes first.
    let report = bench.cycle(now, &mut site);
    assert_eq!((report.begun.seq, report.begun.reason), (7, Command::Term));
    assert_eq!(report.end, End::Done(None));
    let next = bench.cycle(now, &mut site);
    assert_eq!((next.begun.seq, next.begun.reason, next.started), (8, Command::Recyc, 0));
    assert!(next.decisions.is_empty(), "what is stale is not asked of the site: {:?}", next.decisions);
    assert_eq!(
        heard(&bench),
        [
            r#"{"t":"cycle","seq":7,"cmd":"SCH_SCHEDULE_TERM","code":2,"now":895200000,"mode":"prime","dedicated":false,"deadline_ms":20000}"#,
            r#"{"t":"reply","id":1,"ok":true,"data":[{"id":"11","queue":"batch","user":"ann","state":"Q","request":{"ncpus":"4"}},{"id":"12","queue":"batch","user":"ann","state":"Q","request":{"cput":"00:01:30"}}]}"#,
            r#"{"t":"reply","id":2,"ok":true,"data":{}}"#,
            r#"{"t":"cycle","seq":8,"cmd":"SCH_SCHEDULE_RECYC","code":4,"now":895200000,"mode":"prime","dedicated":false,"deadline_ms":20000}"#,
            r#"{"t":"reply","id":9,"ok":false,"code":"STALE_CYCLE","text":"cycle 7 is not in progress, but cycle 8"}"#,
        ]
    );
    let run = Action::Run { job: "12".into(), place: None };
    assert_eq!(report.decisions, [Decision { action: run, answer: Ok(Accepted::default()) }]);
    assert_eq!((state_of(&site, "11"), state_of(&site, "12")), (State::Q, State::R));
    let Bench { folder, scheduler } = bench;
    scheduler.quit(now);
    let is_told = || fs::read_to_string(folder.path().join("heard")).unwrap_or_default();
    let is_last = |text: &String| text.lines().last() == Some(r#"{"t":"quit"}"#);
    poll_for("the program is told to end", is_told, is_last);
}

/// PBS-X-22: the first message; by default a cycle has 180 s (PBS-C-13); mode and dedicated time are told.
#[test]
fn the_program_is_told_what_it_needs() {
    if !has_python() {
        return;
    }
    let mut bench = program_with(
        "begin()\nwhile True:\n    say('{\"t\":\"end\",\"seq\":%d}' % hear()[\"seq\"])",
        Bounds::default(),
    );
    let hour = Hour { now: TEN, is_prime: false, is_dedicated: true };
    let report = bench.scheduler.step(hour, &mut site(&[])).expect("a cycle");
    assert_eq!(report.end, End::Done(None));
    assert_eq!(
        heard(&bench),
        [
            r#"{"t":"init","v":1,"args":["/usr/bin/python3","plan.py","one word"],"tz":"UTC"}"#.to_owned(),
            format!(
                r#"{{"t":"cycle","seq":1,"cmd":"SCH_SCHEDULE_FIRST","code":10,"now":{TEN},"mode":"non_prime","dedicated":true,"deadline_ms":180000}}"#
            ),
        ]
    );
}

/// PBS-T-07: a program that is told another zone is started again; the same zone changes nothing.
#[test]
fn another_zone_starts_the_program_again() {
    if !has_python() {
        return;
    }
    let text = r#"
begin()
while True:
    cycle = hear()
    if cycle["t"] == "quit": break
    say('{"t":"end","seq":%d}' % cycle["seq"])
"#;
    let mut bench = program(text);
    let mut site = site(&[]);
    for zone in ["UTC", "Europe/Zurich", "Europe/Zurich", "no/such"] {
        bench.scheduler.set_zone(zone, TEN);
        assert_eq!(bench.on(Command::Cmd, TEN, &mut site).end, End::Done(None), "{zone}");
    }
    let heard = heard(&bench);
    let zones: Vec<&str> = heard.iter().filter_map(|line| line.split_once(r#""tz":""#)).map(|(_, zone)| zone).collect();
    assert_eq!(zones, [r#"UTC"}"#, r#"Europe/Zurich"}"#]);
    assert_eq!(heard.iter().filter(|line| line.contains("quit")).count(), 1);
}

/// PBS-X-23: status has the shape of a state file, and shows what the cycle did; a refused run changes nothing.
#[test]
fn status_shows_what_was_done() {
    if !has_python() {
        return;
    }
    let text = r#"
begin()
cycle = hear()
for what in ["server", "queues", "nodes", "jobs", "selstat"]:
    reply = ask(t="stat", id=what, what=what); assert reply["ok"] and reply["id"] == what, reply
assert not ask(t="run", id=1, job="1", place="node2")["ok"]
assert ask(t="stat", id=2, what="jobs")["data"][0]["state"] == "Q"
assert ask(t="run", id=3, job="1", place="node1")["data"] == {"nodes": ["node1"]}
job = ask(t="stat", id=4, what="jobs")["data"][0]
assert job["state"] == "R" and job["nodes"] == ["node1"] and job["started"] == cycle["now"], job
node = ask(t="stat", id=5, what="nodes")["data"][0]
assert node["state"] == "job-exclusive" and node["loadave"] == 1.5, node
assert ask(t="stat", id=6, what="selstat")["data"] == []
refused = ask(t="run", id=7, job="1"); assert refused["code"] == "BAD_STATE", refused
for message in [
    dict(t="comment", job="1", text="runs"), dict(t="alter", job="1", changes=[dict(name="Priority", value="3")]),
    dict(t="signal", job="1", signal="USR1"), dict(t="rerun", job="1"), dict(t="hold", job="1"), dict(t="release", job="1", kinds="u"),
    dict(t="move", job="1", to="batch"), dict(t="queue", queue="batch", set="stop"), dict(t="reserve", resources=["nodes=1"]),
    dict(t="unreserve", number=1), dict(t="asyrun", job="1"), dict(t="delete", job="1", delay=3),
]:
    reply = ask(id=message["t"], **message); assert reply["ok"], (message, reply)
reply = ask(t="stagein", id=1, job="1"); assert reply["code"] == "BAD_STATE", reply
say('{"t":"end","seq":1}')
hear()
"#;
    let mut bench = program(text);
    let mut site = site(&["1"]);
    site.change(|state| state.nodes.push(node("node2", "down", None)));
    let report = bench.cycle(TEN, &mut site);
    assert_eq!(report.end, End::Done(None), "{report:?}");
    assert_eq!((report.decisions.len(), report.started), (16, 2));
    assert_eq!(state_of(&site, "1"), State::E);
    // What was decided can be stored and read again (PBS-X-25).
    let stored = serde_json::to_string(&report).expect("JSON");
    assert_eq!(serde_json::from_str::<muster_pbs_script::scheduler::Report>(&stored).expect("a report"), report);
}

/// PBS-X-25: a replay of the decisions reaches the same state without any program.
#[test]
fn a_replay_of_the_decisions_reaches_the_same_state() {
    if !has_python() {
        return;
    }
    let text = r#"
begin()
hear()
for job, kind in [("1", "run"), ("2", "hold"), ("1", "rerun"), ("3", "delete"), ("9", "run"), ("1", "asyrun")]:
    ask(t=kind, id=1, job=job)
say('{"t":"end","seq":1}')
hear()
"#;
    let (mut site, mut replayed) = (site(&["1", "2", "3"]), site(&["1", "2", "3"]));
    let report = program(text).cycle(TEN, &mut site);
    for Decision { action, answer } in &report.decisions {
        use muster_pbs_script::site::Site as _;
        assert_eq!(&replayed.act(action), answer);
    }
    use muster_pbs_script::site::Site as _;
    assert_eq!(replayed.state(), site.state());
}

/// PBS-X-24: two bad lines in a cycle are answered, the third ends cycle and process.
#[test]
fn the_third_bad_line_ends_cycle_and_process() {
    if !has_python() {
        return;
    }
    let text = r#"
begin()
sys.stderr.write("%d.\n" % os.getpid()); sys.stderr.flush()
bad = ["nonsense", '{"t":"fly","id":4}', '{"t":"run","id":5}', '{"id":6}', '[1]', '{"t":"run","id":7,"job":"1","plase":"n"}', '{"t":"run","job":"1"}', '{"t":"stat","id":8,"what":"all"}', '{"t":"end"}', '{"t":"ready","v":1}', '{"t":"end","seq":99}', '{"t":"run","id":5,"job":"1","seq":"x"}']
for at in range(0, len(bad), 2):
    cycle = hear()
    for line in bad[at:at + 2]:
        say(line); hear()
    say('{"t":"end","seq":%d}' % cycle["seq"])
hear()
ask(t="run", id=1, job="1")
for line in bad[:3]: say(line); hear()
"#;
    let mut bench = program(text);
    let mut site = site(&["1", "2"]);
    for _ in 0..6 {
        let report = bench.on(Command::Cmd, TEN, &mut site);
        assert_eq!((report.end, report.lines.len()), (End::Done(None), 2));
    }
    let report = bench.on(Command::Cmd, TEN, &mut site);
    let End::Failed(what) = &report.end else { panic!("{report:?}") };
    assert_eq!(what, "the program sent 3 bad lines in a cycle; the last one: run: missing field `job`");
    assert_eq!((started(&report), state_of(&site, "1")), (vec!["1"], State::R));
    let process = bench.printed(".\n").trim_end_matches(".\n").parse().expect("a number");
    poll_for("its end", || is_gone(process), |is_gone| *is_gone);
    let heard = heard(&bench).join("\n");
    for answer in [
        r#"{"t":"reply","id":null,"ok":false,"code":"BAD_REQUEST","text":"expected a JSON object, found `nonsense`: "#,
        r#"{"t":"reply","id":4,"ok":false,"code":"BAD_REQUEST","text":"there is no message `fly`"}"#,
        r#"{"t":"reply","id":5,"ok":false,"code":"BAD_REQUEST","text":"run: missing field `job`"}"#,
        r#"{"t":"reply","id":6,"ok":false,"code":"BAD_REQUEST","text":"the field t is missing"}"#,
        r#"{"t":"reply","id":7,"ok":false,"code":"BAD_REQUEST","text":"run: unknown field `plase`, "#,
        r#""text":"run: the field id is missing"}"#,
        r#"{"t":"reply","id":8,"ok":false,"code":"BAD_REQUEST","text":"stat: unknown variant `all`"#,
        r#""text":"end: missing field `seq`"}"#,
        r#""text":"there was no cycle 99 so far"}"#,
    ] {
        assert!(heard.contains(answer), "{answer} in:\n{heard}");
    }
}

/// PBS-X-24: pauses of 1, 2, 4 seconds and more between starts, and no sixth try.
#[test]
fn a_program_that_fails_five_times_is_given_up() {
    if !has_python() {
        return;
    }
    let mut bench = program("begin()\nhear()\nsys.stderr.write('no idea\\n'); sys.exit(7)");
    let mut site = site(&[]);
    let mut now = TEN;
    for pause in [1, 2, 4, 8] {
        let report = bench.cycle(now, &mut site);
        let End::Failed(what) = &report.end else { panic!("{report:?}") };
        assert!(what.starts_with("the program closed its streams: it exited with status 7"), "{what}");
        assert!(!report.gave_up);
        assert_eq!(bench.scheduler.due(), Some(now + pause));
        assert_eq!(bench.scheduler.step(Hour::prime(now + pause - 1), &mut site), None);
        now += pause;
    }
    let report = bench.cycle(now, &mut site);
    assert!(report.gave_up);
    assert!(!bench.scheduler.cycles().is_scheduling());
    bench.scheduler.note(Command::New);
    assert_eq!(bench.scheduler.step(Hour::prime(now + 100), &mut site), None);
    assert_eq!(heard(&bench).iter().filter(|line| line.contains("init")).count(), 5);
    // A person who sets scheduling true gives it another five tries, and the first at once.
    bench.scheduler.set_scheduling(true);
    assert!(!bench.cycle(now, &mut site).gave_up);
}

/// PBS-X-24: a good cycle ends the row of failures.
#[test]
fn a_good_cycle_ends_the_row_of_failures() {
    if !has_python() {
        return;
    }
    let text = "begin()\ncycle = hear()\nif cycle['seq'] % 2: sys.exit(1)\nsay('{\"t\":\"end\",\"seq\":%d}' % cycle['seq'])\nhear()";
    let mut bench = program(text);
    let mut site = site(&[]);
    for round in 0..7 {
        let now = TEN + 100 * round;
        assert!(bench.on(Command::New, now, &mut site).end.is_failure());
        assert_eq!(bench.scheduler.due(), Some(now + 1));
        assert_eq!(bench.cycle(now + 1, &mut site).end, End::Done(None));
        // It reads one more line and ends: the next cycle meets a process that is gone or goes.
        let _ = bench.scheduler.reload(now + 2);
    }
}

/// PBS-X-22: a program has ten seconds to be ready, here fewer; and must speak the right version first.
#[test]
fn a_program_must_be_ready_in_time() {
    if !has_python() {
        return;
    }
    assert_eq!(Bounds::default().ready, Duration::from_secs(10));
    let bounds = Bounds { ready: Duration::from_millis(700), ..short() };
    for (text, trouble) in [
        ("while True: time.sleep(1)", "the program was not ready within 0.7 s"),
        (
            "say('{\"t\":\"ready\",\"v\":2}'); hear(); hear()",
            "the program speaks version 2 of the protocol, this is version 1",
        ),
        ("say('{\"t\":\"end\",\"seq\":1}'); hear(); hear()", "the program sent another message before `ready`"),
        (
            "say('hello'); hear(); hear()",
            "the program was expected to say `ready`: expected a JSON object, found `hello`: expected value at line 1 column 1",
        ),
    ] {
        let report = program_with(text, bounds.clone()).cycle(TEN, &mut site(&[]));
        assert_eq!(report.end, End::Failed(trouble.into()), "{text}");
    }
}

/// PBS-C-13, PBS-X-24: at the deadline cycle and process end, with all that the process started; what was accepted
/// stays.
#[test]
fn the_deadline_ends_cycle_and_process() {
    if !has_python() {
        return;
    }
    let text = r#"
import subprocess
begin()
hear()
ask(t="run", id=1, job="1")
child = subprocess.Popen(["sleep", "1000"], stderr=subprocess.DEVNULL)
sys.stderr.write("%d %d.\n" % (os.getpid(), child.pid)); sys.stderr.flush()
while True: pass
"#;
    let mut bench = program_with(text, Bounds { cycle: Duration::from_secs(2), ..short() });
    let mut site = site(&["1"]);
    let report = bench.cycle(TEN, &mut site);
    assert_eq!(report.end, End::TimeOver("the cycle took longer than 2 s".into()));
    assert_eq!((report.started, state_of(&site, "1")), (1, State::R));
    for number in bench.printed(".\n").trim_end_matches(".\n").split(' ') {
        let process = number.parse().expect("a number");
        poll_for("its end", || is_gone(process), |is_gone| *is_gone);
    }
    // One start, and the cycle itself is to be made again.
    let again = bench.cycle(TEN + 1, &mut site);
    assert_eq!(again.begun.triggers, [Command::First, Command::Recyc]);
}

/// PBS-X-23: what is said between two cycles is answered with STALE_CYCLE, and does nothing.
#[test]
fn actions_outside_a_cycle_are_refused() {
    if !has_python() {
        return;
    }
    let text = r#"
begin()
cycle = hear()
say('{"t":"end","seq":1}')
say('{"t":"run","id":1,"job":"1"}')
say('{"t":"stat","id":2,"what":"jobs"}')
say('whatever')
sys.stderr.write("said.\n"); sys.stderr.flush()
replies = [hear(), hear(), hear()]
sys.stderr.write("heard.\n"); sys.stderr.flush()
cycle = hear(); assert cycle["t"] == "cycle", cycle
say('{"t":"end","seq":1}')
say('{"t":"end","seq":2}')
say('{"t":"run","id":3,"job":"1"}')
sys.stderr.write("more.\n"); sys.stderr.flush()
reply = hear(); assert reply["code"] == "STALE_CYCLE", reply
cycle = hear(); say('{"t":"end","seq":3}')
hear()
"#;
    let mut bench = program(text);
    let mut site = site(&["1"]);
    assert_eq!(bench.cycle(TEN, &mut site).end, End::Done(None));
    bench.printed("said.\n");
    bench.scheduler.tend();
    bench.printed("heard.\n");
    let codes: Vec<bool> = heard(&bench).iter().map(|line| line.contains("\"STALE_CYCLE\"")).collect();
    assert_eq!(codes[2..], [true, true, false]);
    assert_eq!(bench.on(Command::New, TEN, &mut site).end, End::Done(None));
    bench.printed("more.\n");
    // The beginning of the next cycle answers it, too.
    assert_eq!(bench.on(Command::New, TEN, &mut site).end, End::Done(None));
    assert_eq!(state_of(&site, "1"), State::Q);
}

/// A program that talks without end between cycles, writes lines without end, or reads nothing, harms itself only.
#[test]
fn floods_harm_nobody() {
    if !has_python() {
        return;
    }
    let jobs = || (0..3000).map(|number| number.to_string()).collect::<Vec<_>>();
    let ids = jobs();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let bounds = Bounds { cycle: Duration::from_secs(2), ..short() };
    for (text, trouble) in [
        ("hear()\nwhile True: sys.stdout.write('x' * 65536)", "the program sent a line of more than 1048576 bytes"),
        ("hear()\nwhile True: say('{\"t\":\"stat\",\"id\":1,\"what\":\"jobs\"}')", "the cycle took longer than 2 s"),
        ("hear()\nwhile True: say('{\"t\":\"end\",\"seq\":0}')", "the cycle took longer than 2 s"),
        ("hear()\nx = 'x' * (1 << 31)", "the program closed its streams: it exited with status 1"),
    ] {
        let mut site = site(&ids);
        let bounds = Bounds { memory_bytes: 1 << 30, ..bounds.clone() };
        let report = program_with(&format!("begin()\n{text}"), bounds).cycle(TEN, &mut site);
        let what = report.end.trouble().unwrap_or_default();
        assert!(what.starts_with(trouble), "{text}: {what}");
    }
    let mut bench = program(
        "begin()\nhear()\nsay('{\"t\":\"end\",\"seq\":1}')\nfor n in range(2000): say('x')\nsys.stderr.write('done.\\n'); sys.stderr.flush()\nwhile True: hear()",
    );
    let mut site = site(&[]);
    bench.cycle(TEN, &mut site);
    bench.printed("done.\n");
    let report = bench.on(Command::New, TEN, &mut site);
    assert_eq!(report.end, End::Failed("the program does not stop talking between two cycles".into()));
}

/// Many requests may be on their way before the first reply is read.
#[test]
fn requests_can_be_sent_ahead() {
    if !has_python() {
        return;
    }
    let text = r#"
begin()
hear()
count = 20000
say("\n".join('{"t":"stat","id":%d,"what":"jobs"}' % n for n in range(count)))
assert [hear()["id"] for n in range(count)] == list(range(count))
say('{"t":"end","seq":1}')
hear()
"#;
    assert_eq!(program(text).cycle(TEN, &mut site(&["1", "2"])).end, End::Done(None));
}

/// PBS-X-14: standard error goes to the print file, which is bounded.
#[test]
fn the_print_file_is_bounded() {
    if !has_python() {
        return;
    }
    let text = "begin()\nhear()\nfor n in range(3000): sys.stderr.write('%08d\\n' % n)\nsys.stderr.write('last.\\n'); sys.stderr.flush()\nsay('{\"t\":\"end\",\"seq\":1}')\nhear()";
    let mut bench = program_with(text, Bounds { print_bytes: 10_000, ..short() });
    bench.cycle(TEN, &mut site(&[]));
    bench.printed("last.\n");
    let size = |name: &str| fs::metadata(bench.folder.path().join(name)).expect("a file").len();
    assert!(size("sched_out") <= 10_000 && size("sched_out.1") <= 10_000);
    assert_eq!(bench.scheduler.due(), Some(TEN + 600));
}

/// PBS-X-22: numbers of refusals are words of the protocol.
#[test]
fn codes_are_words() {
    assert_eq!(serde_json::to_string(&Code::StaleCycle).expect("JSON"), "\"STALE_CYCLE\"");
    assert_eq!(serde_json::to_string(&Code::TooMany).expect("JSON"), "\"TOO_MANY\"");
}
