//! The command line of `oarsub` and the directives of its scripts.

use crate::support::s;
use jiff::tz::TimeZone;
use muster_oar::{
    options::{
        anterior::Policy,
        array::{self, command},
        date,
        getopt::{self, Given, Name, Words},
        keys::Source,
        notify::{self, Sink, Tag},
        output::{self, Stream},
        reservation::{self, Window},
        rules::{self, Caller, Container, SiteRules},
        script,
        submission::{self, Array, Submission},
        types::{self, Kind, Nodes, Reading, ShareForm},
    },
    refusal::{Code, Refusal},
    request::site::Site,
};
use proptest::prelude::*;

/// 2026-11-26 10:00:00 UTC.
const NOW: i64 = 1_795_687_200;

fn zone() -> TimeZone {
    TimeZone::get("Europe/Zurich").expect("a known zone")
}

fn words(line: &str) -> Words {
    let words = muster_words(line);
    getopt::read(&words).unwrap_or_else(|refusal| panic!("{line}: {refusal}"))
}

/// The words of a line as a shell gives them: blanks separate, quotes group.
fn muster_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.chars() {
        match (quote, character) {
            (Some(open), character) if open == character => quote = None,
            (None, '"') => {
                quote = Some('"');
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (_, character) => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

fn read(line: &str) -> Result<Submission, Refusal> {
    let (zone, site_types) = (zone(), ["licensed".to_owned()]);
    let reading = Reading { now: NOW, zone: &zone, site_types: &site_types };
    submission::read(&getopt::read(&muster_words(line))?, &Site::of(&s()), reading)
}

fn submitted(line: &str) -> Submission {
    read(line).unwrap_or_else(|refusal| panic!("{line}: {refusal}"))
}

fn refused(line: &str) -> (u8, String) {
    let refusal = read(line).expect_err(line);
    (refusal.code.exit_status(), refusal.to_string())
}

/// OAR-C-02: letters, long names, shortened ones, glued and separate values, and operands among them.
#[test]
fn options_are_read_in_all_their_forms() {
    for line in [
        "-I -l nodes=2 -t container",
        "-Il nodes=2 -tcontainer",
        "--interactive --resource nodes=2 --type=container",
        "--inter --resou=nodes=2 --ty container",
    ] {
        let read = words(line);
        assert_eq!(
            (read.values(Name::Resource), read.values(Name::Type)),
            (vec!["nodes=2"], vec!["container"]),
            "{line}"
        );
        assert!(read.has(Name::Interactive) && read.operands.is_empty());
    }
    let read = words("-C 42 --array 10 ./prog -n x arg -- -l");
    assert_eq!((read.value(Name::Connect), read.value(Name::Array)), (Some("42"), Some("10")));
    assert_eq!(read.operands, ["./prog", "arg", "-l"]);
    assert_eq!(words("-C").value(Name::Connect), Some(""));
    assert_eq!(words("-C -I").value(Name::Connect), Some(""));
    for (line, expected) in [
        ("-Z", "no option is called -Z"),
        ("--projet x", "no option is called --projet; is 'project' meant?"),
        ("--res x", "the option --res could be --reservation or --resource"),
        ("-l", "--resource: the value is missing"),
        ("--hold=yes", "--hold: takes no value"),
        ("--=x", "no option is called --"),
        ("-lnodes=1 -ü", "no option is called -ü"),
    ] {
        let refusal = getopt::read(&muster_words(line)).expect_err(line);
        assert_eq!((refusal.to_string().as_str(), refusal.code), (expected, Code::Usage), "{line}");
    }
    let every = "-I -C -l x -p x -q x -r x -t x -d x -n x -a x -O x -E x -S --array x --array-param-file x --checkpoint x \
        --signal x --project x --notify x --resubmit x --hold --stagein x -s x --stagein-md5sum x -k -i x -e x \
        --import-job-key-inline x --ssh_private_key x --ssh_public_key x -J -Y -X -D -v -V -h --interactive --connect \
        --resource x --property x --queue x --reservation x --type x --directory x --name x --anterior x --stdout x \
        --stderr x --scanscript";
    assert_eq!(words(every).operands, Vec::<String>::new());
}

/// OAR-C-05: directives of scripts add to requests, types and dependencies, and give way to the command line elsewhere.
#[test]
fn directives_add_to_the_command_line_or_give_way_to_it() {
    let text = "#!/bin/bash\n#OAR -l /nodes=4/cpu=1,walltime=3:15:00\n#OAR -p switch = 's3' or switch = 's5'\n\
        #OAR -t besteffort\n#OAR --name=from script\n# OAR -t none\n#OARX -t none\n\n#OAR --stdout \"out %jobid%.log\"\n\
        prog\n#OAR -a 12\n#OAR -k\n";
    let directives = script::directives(text).expect("directives");
    let value = |name: Name| directives.iter().find(|given| given.name == name).map(|given| given.value.as_str());
    assert_eq!(value(Name::Property), Some("switch = 's3' or switch = 's5'"));
    assert_eq!((value(Name::JobName), value(Name::Stdout)), (Some("from script"), Some("out %jobid%.log")));
    assert_eq!(directives.len(), 7);
    let mut read = words("-l nodes=1 -t idempotent -n own script.sh");
    let warnings = script::merge(&mut read, directives);
    assert_eq!(read.values(Name::Resource), ["nodes=1", "/nodes=4/cpu=1,walltime=3:15:00"]);
    assert_eq!((read.values(Name::Type), read.values(Name::Anterior)), (vec!["idempotent", "besteffort"], vec!["12"]));
    assert_eq!(read.values(Name::JobName), ["own"]);
    assert_eq!(warnings, ["--name of the command line replaces 'from script' of the script"]);
    assert_eq!(script::directives("prog\n#OAR -t x\n"), Ok(vec![]));
    for (text, expected) in [
        ("#!/bin/sh\n#OAR --jupiter x", "script, line 2: no option is called --jupiter"),
        ("#OAR -Z", "script, line 1: '-Z' is no option"),
        ("#OAR nodes=2", "script, line 1: 'nodes=2' is no option"),
        ("#OAR -I", "script, line 1: --interactive is an option of the command line alone"),
        ("#OAR -l", "script, line 1: the value of --resource is missing"),
        ("#OAR --hold now", "script, line 1: --hold takes no value, found 'now'"),
    ] {
        let refusal = script::directives(text).expect_err(text);
        assert_eq!((refusal.to_string().as_str(), refusal.code.exit_status()), (expected, 12), "{text}");
    }
    let quoted = script::directives("#OAR -p \"switch='s1'\"\n#OAR -lnodes=2\n").expect("directives");
    assert_eq!(quoted[0], Given { name: Name::Property, value: "switch='s1'".to_owned() });
    assert_eq!(quoted[1].value, "nodes=2");
}

/// OAR-J-11, OAR-K-05: what an interactive job cannot be, each with its exit status.
#[test]
fn what_an_interactive_job_cannot_be() {
    for (line, status) in [
        ("-I -r now", 7),
        ("-I --array 2", 8),
        ("-I --array-param-file f", 9),
        ("-I -t noop", 17),
        ("-I -t desktop_computing", 17),
    ] {
        assert_eq!(refused(line).0, status, "{line}");
    }
    assert!(submitted("-I -t container -l nodes=10,walltime=2:10:00").is_interactive);
}

/// OAR-C-04: exit status of each kind of refusal (3, 10, 11 and 20 are those of the live system).
#[test]
fn refusals_have_their_exit_status() {
    for (line, status, message) in [
        ("-l nodes=2", 5, "nothing to run: a command, -I or -t noop is missing"),
        ("--array 0 x", 6, "--array: expected a number of jobs from 1 to 100000"),
        ("--array 2 --array-param-file f x", 6, "the size of an array is the one of --array or of the file, not both"),
        ("-r yesterday x", 7, "-r: expected YYYY-MM-DD hh:mm:ss or now, found 'yesterday'"),
        ("--array 2 -r now x", 7, "an array cannot be a reservation"),
        ("-t cosystem=x y", 8, "-t cosystem=x: expected no value or standby, found 'x' (job id -2)"),
        ("-l /racks=1 x", 8, "-l, column 2: no level is called 'racks' (job id -3)"),
        ("-p core=x y", 8, "-p, column 6: no property is called 'x' (job id -5)"),
        ("--notify sms:1 x", 8, "--notify: expected mail:ADDRESS or exec:PATH, found 'sms:1' (job id -6)"),
        ("-q a/b x", 8, "-q: 'a/b' is no name of a queue (job id -8)"),
        ("--ssh_public_key f x", 8, "--ssh_public_key needs --ssh_private_key (job id -10)"),
        (
            "-O a;b x",
            8,
            "-O: expected a file name of letters, digits, _ . / - % \\ and blanks, at most 4096 bytes (job id -12)",
        ),
        ("--notify \"exec:/bin/sh;x\" y", 16, "--notify: exec takes letters, digits, _ . / - and blanks; found ';'"),
        ("-l nodes x", 18, "-l, column 6: expected = and a count after 'nodes', found the end of the request"),
    ] {
        assert_eq!(refused(line), (status, message.to_owned()), "{line}");
    }
    assert_eq!(read("-E a|b x").expect_err("refused").code.job_id_code(), Some(-13));
    assert_eq!([-1, -2, -3, -4].map(|code| Code::Resubmission(code).exit_status()), [4; 4]);
}

#[test]
fn a_whole_command_line_becomes_settings() {
    let job = submitted(
        "-q default -l nodes=2,walltime=1 -l nodes=4 -p \"core > 1\" -p \"switch='s1'\" --project bio -n \"my run\" -d /tmp \
         -a 10 -a 11 -a 10 --checkpoint 30 --signal 10 --hold -O out -E err --stagein in.tgz \
         --stagein-md5sum D41D8CD98F00B204E9800998ECF8427E prog -- --x 1",
    );
    assert_eq!(job.command.as_deref(), Some("prog --x 1"));
    let shapes: Vec<String> = job.alternatives.iter().map(ToString::to_string).collect();
    assert_eq!(shapes, ["/network_address=2,walltime=1:0:0", "/network_address=4,walltime=2:0:0"]);
    assert_eq!(job.filter.to_string(), "core > 1 AND switch = 's1'");
    assert_eq!((job.project.as_str(), job.name.as_str(), job.directory.as_deref()), ("bio", "my run", Some("/tmp")));
    assert_eq!((jobs_of(&job), job.checkpoint, job.signal, job.is_held), (vec![10, 11], 30, 10, true));
    assert_eq!((job.stdout.as_deref(), job.stderr.as_deref()), (Some("out"), Some("err")));
    let stage_in = job.stage_in.expect("given");
    assert_eq!((stage_in.path.as_str(), stage_in.md5.as_deref()), ("in.tgz", Some("d41d8cd98f00b204e9800998ecf8427e")));
}

/// OAR-C-06: arrays by number and by a file of parameters.
#[test]
fn arrays_by_number_and_by_file() {
    assert_eq!(submitted("--array 3 prog").array, Array::Equal(3));
    assert_eq!(submitted("--array-param-file p.txt prog").array, Array::Parameters("p.txt".to_owned()));
    let text = "# my file\n\n100\n  \"\"  \n\"a b\" 'c#d' # three\n   # nothing\n7";
    let jobs = array::parameters(text).expect("jobs");
    assert_eq!(jobs, ["100", "", "\"a b\" 'c#d'", "7"]);
    assert_eq!(
        jobs.iter().map(|job| command("prog", job)).collect::<Vec<_>>(),
        ["prog 100", "prog", "prog \"a b\" 'c#d'", "prog 7"]
    );
    assert_eq!(array::parameters("# nothing\n").expect_err("empty").code, Code::ArraySize);
    let refusal = array::parameters(&format!("a\n{}", "x".repeat(70_000))).expect_err("too long");
    assert_eq!((refusal.code, refusal.to_string().starts_with("--array-param-file, line 2: ")), (Code::Script, true));
    assert_eq!(array::parameters(&"x\n".repeat(100_001)).expect_err("too many").code, Code::ArraySize);
}

/// OAR-T-01: types and their values; OAR-T-71, OAR-T-80, OAR-T-85: those that few sites use.
#[test]
fn types_have_the_values_they_know() {
    let zone = zone();
    let site_types = ["licensed".to_owned()];
    let reading = Reading { now: NOW, zone: &zone, site_types: &site_types };
    let kind = |text: &str| types::read(&[text], reading).map(|types| types[0].kind.clone());
    let share = |by_user, by_name| Kind::TimeSharing(ShareForm { by_user, by_name });
    for (text, expected) in [
        ("besteffort", Kind::BestEffort),
        ("idempotent", Kind::Idempotent),
        ("deploy", Kind::Deploy(Nodes::Alive)),
        ("deploy=standby", Kind::Deploy(Nodes::Standby)),
        ("cosystem=standby", Kind::Cosystem(Nodes::Standby)),
        ("noop", Kind::Noop(Nodes::Alive)),
        ("container", Kind::Container(None)),
        ("container=big", Kind::Container(Some("big".to_owned()))),
        ("inner=42", Kind::Inner("42".to_owned())),
        ("inner=big", Kind::Inner("big".to_owned())),
        ("timesharing=user,*", share(true, false)),
        ("timesharing=*,user", share(true, false)),
        ("timesharing=name,*", share(false, true)),
        ("timesharing=user,name", share(true, true)),
        ("timesharing=*,*", share(false, false)),
        ("placeholder=w", Kind::Placeholder("w".to_owned())),
        ("allowed=w", Kind::Allowed("w".to_owned())),
        ("allow=w", Kind::Allowed("w".to_owned())),
        ("desktop_computing", Kind::DesktopComputing),
        ("token:fluent=12", Kind::Token("fluent".to_owned(), 12)),
        ("postpone=2026-11-26 12:00:00", Kind::Postpone(NOW + 3600)),
        ("state=permissive", Kind::Permissive),
        ("licensed", Kind::Site),
        ("licensed=x", Kind::Site),
    ] {
        assert_eq!(kind(text), Ok(expected), "{text}");
    }
    for (text, expected) in [
        ("bestefort", "-t bestefort: no type is called 'bestefort'; is 'besteffort' meant? (job id -2)"),
        ("besteffort=1", "-t besteffort=1: this type takes no value (job id -2)"),
        ("cosystem=x", "-t cosystem=x: expected no value or standby, found 'x' (job id -2)"),
        ("inner", "-t inner: the value is missing (job id -2)"),
        ("inner=0", "-t inner=0: expected the id or the name of a container, found '0' (job id -2)"),
        ("timesharing", "-t timesharing: the value is missing (job id -2)"),
        (
            "timesharing=user",
            "-t timesharing=user: expected user or *, a comma, and name or *, found 'user' (job id -2)",
        ),
        (
            "timesharing=user,user",
            "-t timesharing=user,user: expected user or *, a comma, and name or *, found 'user,user' (job id -2)",
        ),
        ("token:x=0", "-t token:x=0: expected a number from 1, found '0' (job id -2)"),
        ("state=up", "-t state=up: expected permissive, found 'up' (job id -2)"),
        ("expire=soon", "-t expire=soon: expected YYYY-MM-DD hh:mm:ss or now, found 'soon' (job id -2)"),
        ("container=a b", "-t container=a b: 'a b' is no name (job id -2)"),
    ] {
        assert_eq!(kind(text).expect_err(text).to_string(), expected);
    }
    assert_eq!(types::read(&["besteffort", "besteffort"], reading).map(|types| types.len()), Ok(1));
    assert!(types::read(&["inner=1", "inner=2"], reading).is_err());
    assert!(types::read(&["token:a=1", "token:b=1"], reading).is_ok());
}

/// OAR-G-12: forms of dates; a date may be missing.
#[test]
fn dates_are_read_in_the_zone_of_the_site() {
    let zone = zone();
    let at = |text: &str| date::seconds(text, NOW, &zone);
    for (text, expected) in [
        ("now", NOW),
        ("2026-11-26 11:00:00", NOW),
        ("2026-11-26 11:00", NOW),
        ("2026-11-26 11", NOW),
        (" 2026-11-26  11:0:5 ", NOW + 5),
        ("11:30", NOW + 1800),
        ("10:59:59", NOW - 1),
        ("2026-11-27 11:00:00", NOW + 86_400),
        // Clocks go forward at 02:00 on 2026-03-29 and back at 03:00 on 2026-10-25.
        ("2026-03-29 02:30:00", 1_774_747_800),
        ("2026-10-25 02:30:00", 1_792_888_200),
    ] {
        assert_eq!(at(text), Ok(expected), "{text}");
    }
    for text in
        ["", "2026-11-26", "2026-13-01 10:00", "26-11-26 10:00", "2026-11-26 24:00", "11:60", "1:2:3:4", "+1:00", "x"]
    {
        assert!(at(text).is_err(), "{text}");
    }
    assert_eq!(date::written(NOW, &zone), "2026-11-26 11:00:00");
    assert_eq!(date::written(i64::MAX, &TimeZone::UTC).len(), 19);
}

/// OAR-G-12: the end of `-r` is the walltime unless `-l` has one; what has passed is refused; OAR-G-14: a late start keeps
/// its end.
#[test]
fn reservations_have_their_times() {
    let job = submitted("-r \"2026-11-26 12:00:00, 2026-11-26 13:30:00\" x");
    let times = job.reservation.expect("a reservation");
    assert_eq!((times.start, times.walltime, job.alternatives[0].walltime), (NOW + 3600, 5400, 5400));
    assert_eq!(job.warnings, Vec::<String>::new());
    let job = submitted("-r \"2026-11-26 12:00:00, 2026-11-26 13:30:00\" -l nodes=1,walltime=1 -l nodes=2 x");
    assert_eq!(job.reservation.map(|times| times.walltime), Some(3600));
    assert_eq!(job.alternatives.len(), 1);
    assert_eq!(
        job.warnings,
        ["a reservation has one shape: only the first -l counts", "the walltime of -l counts, not the end of -r"]
    );
    let late = submitted("-r 10:30 -l walltime=2 x").reservation.expect("a reservation");
    assert_eq!((late.asked, late.start, late.walltime), (NOW - 1800, NOW, 5400));
    assert_eq!(
        refused("-r 9:00 -l walltime=2 x"),
        (7, "-r: the reservation is too old: its end has passed".to_owned())
    );
    assert_eq!(refused("-r \"12:00, 12:00\" x").1, "-r: the end of a reservation is after its start");
    let window = Window { start: 100, end: None };
    assert_eq!(window.times(50, 149).map(|times| (times.start, times.walltime)), Ok((149, 1)));
    assert!(window.times(50, 150).is_err());
    assert!(reservation::read("now", NOW, &zone()).is_ok());
}

/// OAR-N-01, OAR-N-05: forms of notifications; the tags limit them, whatever their case and blanks.
#[test]
fn notifications_and_their_tags() {
    let tags = |text: &str| notify::read(text).map(|one| one.tags.into_iter().map(Tag::word).collect::<Vec<_>>());
    assert_eq!(tags("mail:ann@example.org").map(|tags| tags.len()), Ok(6));
    assert_eq!(tags("[ end,Error ]mail:ann@example.org"), Ok(vec!["END", "ERROR"]));
    assert_eq!(tags(" [RUNNING] exec:/bin/x"), Ok(vec!["RUNNING"]));
    let sink = |text: &str| notify::read(text).map(|one| one.sink);
    assert_eq!(sink("mail: a@x, b@y "), Ok(Sink::Mail(vec!["a@x".to_owned(), "b@y".to_owned()])));
    let exec = Sink::Exec { path: "/opt/x".to_owned(), arguments: vec!["-a".to_owned(), "1".to_owned()] };
    assert_eq!(sink("exec:/opt/x  -a 1"), Ok(exec));
    for text in
        ["", "mail", "mail:", "mail:a b", "mail:-oX", "[ENDE]mail:a", "[END mail:a", "exec:", "exec:relative", "sms:1"]
    {
        assert_eq!(notify::read(text).expect_err(text).code, Code::Notification, "{text}");
    }
    for text in ["exec:/x;y", "exec:/x $HOME", "exec:/x `y`", "exec:/x 'a'", "exec:/ä"] {
        assert_eq!(notify::read(text).expect_err(text).code.exit_status(), 16, "{text}");
    }
    assert_eq!(notify::read("[ENDE]mail:a").expect_err("refused").message, "no tag is called 'ENDE'; is 'END' meant?");
}

/// OAR-N-09: control characters in names and notifications are refused.
#[test]
fn no_mail_header_can_be_forged() {
    assert!(notify::read("mail:a@x\nBcc: b@y").is_err());
    for option in ["-n", "--project"] {
        let line = [option, "x\r\nBcc: b@y", "prog"];
        let (zone, site) = (zone(), Site::of(&s()));
        let reading = Reading { now: NOW, zone: &zone, site_types: &[] };
        let refusal = submission::read(&getopt::read(&line).expect("words"), &site, reading).expect_err("refused");
        assert_eq!(refusal.code, Code::Rule, "{option}");
    }
}

/// W9, OAR-N-02: the subject of a mail.
#[test]
fn w9_the_subject_of_a_mail() {
    assert_eq!(notify::subject(Tag::End, 4242, "my run", "frontend1"), "*OAR* [END]: 4242 (my run) on frontend1");
    assert_eq!(notify::subject(Tag::Info, 7, "", "f"), "*OAR* [INFO]: 7 () on f");
}

/// OAR-J-16: names of output files.
#[test]
fn output_files_have_their_names() {
    assert_eq!(output::filled("/tmp/%jobname%-%jobid%.%x%", 7, "a%jobid%"), "/tmp/a%jobid%-7.%x%");
    assert_eq!(output::filled("100%", 1, ""), "100%");
    for name in ["", " ", "a;b", "a\nb", "ä", "$HOME"] {
        assert!(output::check(Stream::Output, name).is_err(), "{name}");
    }
    assert!(output::check(Stream::Errors, "out %jobid%.log").is_ok());
}

/// OAR-X-09, OAR-X-10: sources of key pairs; private keys are never printed.
#[test]
fn keys_come_from_one_place_and_are_not_printed() {
    let keys = |line: &str| submitted(&format!("{line} prog")).keys;
    assert_eq!(keys(""), None);
    assert_eq!(keys("-k").map(|keys| keys.source), Some(Source::Made));
    assert_eq!(keys("-e /tmp/%jobid%").and_then(|keys| keys.export).as_deref(), Some("/tmp/%jobid%"));
    let files = Source::Files { private: "k".to_owned(), public: Some("p".to_owned()) };
    assert_eq!(keys("--ssh_private_key k --ssh_public_key p").map(|keys| keys.source), Some(files));
    let inline = submitted("--import-job-key-inline SECRET prog");
    assert_eq!(inline.keys.as_ref().map(|keys| keys.source.clone()), Some(Source::Inline("SECRET".to_owned())));
    assert!(!format!("{inline:?}").contains("SECRET"));
    for line in ["-i a --import-job-key-inline b x", "-i a --ssh_private_key b x", "--ssh_public_key p x"] {
        assert_eq!(read(line).expect_err(line).code.job_id_code(), Some(-10), "{line}");
    }
}

fn ruled(line: &str, caller: &Caller) -> Result<(Submission, String), Refusal> {
    let mut job = submitted(line);
    let containers = |name: &str| match name {
        "42" => Some(Container { is_reservation: false, is_over: false }),
        "43" => Some(Container { is_reservation: true, is_over: false }),
        "44" => Some(Container { is_reservation: false, is_over: true }),
        _ => None,
    };
    let filter = rules::apply(&mut job, caller, &SiteRules::default(), &containers)?;
    Ok((job, filter.to_string()))
}

fn ann() -> Caller {
    Caller { user: "ann".to_owned(), ..Caller::default() }
}

/// OAR-C-07: the default rules may change a job and refuse it with their text.
#[test]
fn the_default_rules_change_and_refuse_jobs() {
    let (job, filter) = ruled("x", &ann()).expect("accepted");
    assert_eq!((job.queue.as_deref(), filter.as_str()), (Some("default"), "drain = 'NO' AND desktop_computing = 'NO'"));
    for (line, caller, expected) in [
        ("x", Caller { user: "root".to_owned(), ..Caller::default() }, "the account root submits no jobs (job id -2)"),
        ("-q admin x", ann(), "the queue admin is for the group admin (job id -2)"),
        ("-q defautl x", ann(), "-q: no queue is called 'defautl'; is 'default' meant? (job id -8)"),
    ] {
        assert_eq!(ruled(line, &caller).expect_err(line).to_string(), expected);
    }
    let admin = Caller { groups: vec!["admin".to_owned()], ..ann() };
    assert!(ruled("-q admin x", &admin).is_ok());
    let (job, _) = ruled("-I -l nodes=1,walltime=13", &ann()).expect("accepted");
    assert_eq!(job.alternatives[0].walltime, 43_200);
    assert_eq!(ruled("-l nodes=1,walltime=13 x", &ann()).expect("accepted").0.alternatives[0].walltime, 46_800);
}

/// OAR-G-15: a user has two waiting reservations at most.
#[test]
fn a_third_waiting_reservation_is_refused() {
    let caller = |waiting_reservations| Caller { waiting_reservations, ..ann() };
    assert!(ruled("-r now x", &caller(1)).is_ok());
    assert!(ruled("-r now x", &caller(2)).is_err());
    assert!(ruled("x", &caller(2)).is_ok());
    let exempt = SiteRules { many_reservations: vec!["ann".to_owned()], ..SiteRules::default() };
    assert!(rules::apply(&mut submitted("-r now x"), &caller(9), &exempt, &|_| None).is_ok());
}

/// OAR-T-20: the type and the queue of best effort belong together, and neither is a reservation.
#[test]
fn best_effort_is_a_queue_and_a_type() {
    let (job, filter) = ruled("-t besteffort x", &ann()).expect("accepted");
    assert_eq!((job.queue.as_deref(), filter.contains("besteffort = 'YES'")), (Some("besteffort"), true));
    let (job, filter) = ruled("-q besteffort x", &ann()).expect("accepted");
    assert!(job.is(|kind| *kind == Kind::BestEffort) && filter.contains("besteffort = 'YES'"));
    let (job, _) = ruled("-q default -t besteffort x", &ann()).expect("accepted");
    assert_eq!(job.queue.as_deref(), Some("besteffort"));
    for line in ["-t besteffort -r now x", "-q besteffort -r now x"] {
        assert_eq!(ruled(line, &ann()).expect_err(line).message, "a best-effort job cannot be a reservation");
    }
}

/// OAR-T-13, OAR-T-15: inner jobs need a container that lives, and a fixed start only fits inside another one.
#[test]
fn inner_jobs_need_a_container_that_lives() {
    for (line, expected) in [
        ("-t inner=42 x", None),
        ("-t inner=42 -r now x", Some("an inner job of 42 cannot be a reservation: its container is none")),
        ("-t inner=43 -r now x", None),
        ("-t inner=44 x", Some("the container 44 has ended")),
        ("-t inner=45 x", Some("no container has the id or name 45")),
    ] {
        assert_eq!(ruled(line, &ann()).err().map(|refusal| refusal.message).as_deref(), expected, "{line}");
    }
}

/// OAR-T-61: deploy needs nodes for it, and whole ones.
#[test]
fn nodes_are_deployed_whole() {
    let (_, filter) = ruled("-t deploy -l /switch=1/nodes=2 x", &ann()).expect("accepted");
    assert!(filter.contains("deploy = 'YES'"));
    for level in ["cpu", "core", "resource_id"] {
        let refusal = ruled(&format!("-t deploy -l nodes=1/{level}=1 x"), &ann()).expect_err(level);
        assert_eq!(refusal.code, Code::Rule);
    }
    assert!(ruled("-t deploy x", &ann()).is_err(), "the default demand is a part of a node");
}

/// OAR-Q-09: a user who lifts quotas is not obeyed.
#[test]
fn only_administrators_lift_quotas() {
    let (job, _) = ruled("-t no_quotas x", &ann()).expect("accepted");
    assert_eq!((job.types.len(), job.warnings.len()), (0, 1));
    let admin = Caller { groups: vec!["admin".to_owned()], ..ann() };
    let (job, _) = ruled("-q admin -t no_quotas x", &admin).expect("accepted");
    assert!(job.is(|kind| *kind == Kind::NoQuotas));
}

/// OAR-S-30: the delay and the signal of a checkpoint.
#[test]
fn the_signal_of_a_checkpoint_is_a_number() {
    let job = submitted("--checkpoint 30 x");
    assert_eq!((job.checkpoint, job.signal), (30, 12));
    assert_eq!(submitted("--checkpoint 30 --signal 10 x").signal, 10);
    for line in ["--checkpoint -1 x", "--signal 0 x", "--signal 65 x", "--signal USR1 x", "--checkpoint 99999999999 x"]
    {
        assert!(read(line).is_err(), "{line}");
    }
}

fn jobs_of(submission: &submission::Submission) -> Vec<u64> {
    submission.dependencies.iter().map(|one| one.job).collect()
}

/// OAR-D-01, OAR-D-04: the jobs that must end before, each once, and which end of each counts.
#[test]
fn dependencies_are_ids_of_jobs() {
    assert_eq!(jobs_of(&submitted("-a 10 -a 11 --anterior=10 x")), [10, 11]);
    let policies = submitted("-a 10 -a 11:always -a 12:error-passes -a 13:strict x").dependencies;
    let policies: Vec<_> = policies.iter().map(|one| one.policy).collect();
    assert_eq!(policies, [None, Some(Policy::Always), Some(Policy::ErrorPasses), Some(Policy::Strict)]);
    for line in
        ["-a 0 x", "-a x y", "-a -1 y", "-a 99999999999999999999 y", "-a 10: y", "-a 10:never y", "-a :always y"]
    {
        assert!(read(line).is_err(), "{line}");
    }
}

fn any_words() -> impl Strategy<Value = Vec<String>> {
    let known = prop_oneof![
        Just("-l"),
        Just("nodes=2"),
        Just("-t"),
        Just("inner=3"),
        Just("--type=container"),
        Just("-r"),
        Just("now"),
        Just("-a"),
        Just("12"),
        Just("--array"),
        Just("-I"),
        Just("-k"),
        Just("-i"),
        Just("--notify"),
        Just("mail:a@b"),
        Just("[END]exec:/x"),
        Just("--"),
        Just("-"),
        Just("--="),
        Just("-lnodes=1,walltime=0:1"),
        Just("prog"),
        Just("--checkpoint"),
        Just("-p"),
        Just("core=1"),
        Just("-O"),
        Just("%jobid%"),
        Just("--stagein"),
        Just("-C"),
        Just("--re"),
        Just("ä"),
    ];
    proptest::collection::vec(prop_oneof![4 => known.prop_map(str::to_owned), 1 => ".{0,12}"], 0..14)
}

proptest! {
    /// OAR-C-02: any words are a submission or a refusal.
    #[test]
    fn any_command_line_is_read_or_refused(words in any_words()) {
        let (zone, site) = (zone(), Site::of(&s()));
        let reading = Reading { now: NOW, zone: &zone, site_types: &[] };
        let read = getopt::read(&words).and_then(|read| submission::read(&read, &site, reading));
        prop_assert!(read.err().is_none_or(|refusal| !refusal.to_string().contains(char::is_control)));
    }

    /// OAR-C-05: any script has directives or is refused.
    #[test]
    fn any_script_is_read_or_refused(lines in proptest::collection::vec(prop_oneof![
        "#OAR -[a-zA-Z] ?.{0,12}", "#OAR --[a-z-]{0,10}[ =].{0,8}", "#OAR.{0,12}", ".{0,20}",
    ], 0..8)) {
        let text = format!("#!/bin/sh\n{}", lines.join("\n"));
        if let Ok(directives) = script::directives(&text) {
            let _ = script::merge(&mut words("-n x"), directives);
        }
        let _ = array::parameters(&text);
    }

    /// OAR-G-12, OAR-T-01, OAR-N-01: any value of a date, a type or a notification is read or refused.
    #[test]
    fn any_value_is_read_or_refused(text in prop_oneof!["[0-9:, -]{0,24}", ".{0,24}", "[a-z]{3,9}=.{0,9}", "\\[[A-Z,]{0,9}\\](mail|exec):.{0,9}"], now in -1_000_000_000_000_i64..1_000_000_000_000) {
        let zone = zone();
        let _ = date::seconds(&text, now, &zone);
        let _ = reservation::read(&text, now, &zone);
        let _ = types::read(&[&text], Reading { now, zone: &zone, site_types: &[] });
        let _ = notify::read(&text);
        let _ = output::filled(&text, 1, "x");
        let _ = date::written(now, &zone);
    }
}

/// OAR-C-07: default rules of OAR are known by their text, with what does the same here; others are told by the line that reaches
/// for the job, and programs are none of them.
#[test]
fn rules_in_perl_are_recognised() {
    use muster_oar::options::perl::{KNOWN, Text, recognised};
    let default = |text: &str| match recognised(text) {
        Text::Default(known) => known.instead,
        other => panic!("{text}: {other:?}"),
    };
    for (text, instead) in [
        ("# Title: default queue\nif (not defined($queue_name)) {$queue_name=\"default\";}", "rule #1, default_queue"),
        ("die (\"no\") if ( $user eq \"root\" or $user eq \"oar\" );", "rule #2; name others in a filter"),
        ("$jobproperties_applied_after_validation = \"drain='NO'\";", "rule #3"),
        ("my @bad_resources = (\"type\",\"state\");\nforeach my $mold (@{$ref_resource_list}){}", "rule #5"),
        ("my @bad_resources = (\"cpu\",\"core\");\nif (grep(/^deploy$/, @{$type_list})){ die }", "rule #8"),
        (
            "if (grep(/^besteffort$/, @{$type_list}) and not $queue_name eq \"besteffort\"){ $queue_name = \"besteffort\"; }",
            "rule #6",
        ),
        ("if (open(FILE, \"< $ENV{HOME}/unlimited_reservation.users\")){ }", "rule #10"),
        (
            "my $max_walltime = OAR::IO::sql_to_duration(\"12:00:00\");\nif ($jobType eq \"INTERACTIVE\"){ }",
            "rule #11, 12 hours",
        ),
        ("my $default_wall = OAR::IO::sql_to_duration(\"2:00:00\");", "rule #12, 2 hours"),
    ] {
        assert_eq!(default(text), instead, "{text}");
    }
    let own = "# our rule\n\nif ($project eq 'x') { die 'no' }\n";
    assert_eq!(recognised(own), Text::Rule(3, "$project"));
    assert_eq!(recognised("#!/usr/bin/perl\nprint $user;"), Text::Program);
    assert_eq!(recognised("Dear all, \u{0}"), Text::Other);
    assert_eq!(KNOWN.len(), 17);
}
