//! The command lines of the commands that list and control.

use crate::support::{ago, records, view};
use jiff::{Zoned, tz::TimeZone};
use muster_schemas::trigger::TriggerView;
use muster_slurm::{
    job_id::{IdExpression, StepName},
    queries::{
        self, Failure, Request, Surroundings, check_nodes, copy,
        nodes::{NodeChange, PartitionState, check_node_change, node_change, partition_state},
        sacct,
        sacctmgr::{self, Deed, Kind},
        scancel::{self, Recipients},
        scontrol::{self, Entity, Variant, Verb},
        sinfo, squeue, strigger,
        update::{Change, Subject, Update},
        words,
    },
    select::Action,
    show::{
        columns::ListStyle,
        data::DataFormat,
        sinfo::Arrangement,
        squeue::{Format, LONG_FORMAT, START_FORMAT, STEP_FORMAT, States},
        strigger as table,
    },
    size::Units,
    words::{NodeBase, NodeState, State},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fmt::Debug;

fn now() -> Zoned {
    ago(0).to_jiff().to_zoned(TimeZone::UTC)
}

fn no_variable(_: &str) -> Option<String> {
    None
}

/// The callers of the tests are ann and bob.
fn around<'a>(variable: &'a dyn Fn(&str) -> Option<String>) -> Surroundings<'a> {
    let knows_user = &|user: &str| ["ann", "bob", "0"].contains(&user);
    Surroundings { variable, user: "ann", knows_user, is_root: false, now: now() }
}

fn split(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn run<T: Debug>(request: Result<Request<T>, Failure>) -> T {
    match request {
        Ok(Request::Run(command)) => command,
        other => panic!("{other:?}"),
    }
}

fn squeue(text: &str) -> Result<Request<squeue::Squeue>, Failure> {
    squeue::parse(&split(text), &around(&no_variable))
}

fn scancel(text: &str) -> Result<Request<scancel::Scancel>, Failure> {
    scancel::parse(&split(text), &around(&no_variable))
}

fn sacct(text: &str) -> Result<Request<sacct::Sacct>, Failure> {
    sacct::parse(&split(text), &around(&no_variable))
}

fn scontrol(text: &str) -> Result<Request<scontrol::Scontrol>, Failure> {
    scontrol::parse(&split(text))
}

/// The lines and the exit status of a refusal.
fn refusal<T: Debug>(result: Result<T, Failure>) -> (String, u8) {
    let failure = result.expect_err("a refusal");
    (failure.lines.join("\n"), failure.code)
}

fn error(text: &str) -> (String, u8) {
    (text.to_owned(), 1)
}

fn texts(ids: &[IdExpression]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// SL-C-01, SL-C-02
#[test]
fn options_are_abbreviated_glued_and_refused() {
    let hint = "Try \"squeue --help\" for more information";
    assert_eq!(refusal(squeue("--bogus")), error(&format!("squeue: unrecognized option '--bogus'\n{hint}")));
    assert_eq!(refusal(squeue("-%")), error(&format!("squeue: invalid option -- '%'\n{hint}")));
    assert_eq!(
        refusal(squeue("--start=1")),
        error(&format!("squeue: option '--start' doesn't allow an argument\n{hint}"))
    );
    assert_eq!(refusal(squeue("-u")), error(&format!("squeue: option requires an argument -- 'u'\n{hint}")));
    let ambiguous = refusal(squeue("--no"));
    assert!(
        ambiguous.0.starts_with("squeue: option '--no' is ambiguous; possibilities: '--noconvert' "),
        "{ambiguous:?}"
    );
    let glued = run(squeue("-hlu ann --part=debug -p p2,p3 --iter 5"));
    assert!(glued.listing.no_header && glued.listing.is_dated);
    assert_eq!(glued.listing.filter.users, ["ann".to_owned()].into());
    assert_eq!(glued.listing.filter.partitions, ["p2".to_owned(), "p3".to_owned()].into());
    assert_eq!(glued.iterate_seconds, Some(5));
    assert!(matches!(squeue("-V"), Ok(Request::Version)));
    assert!(matches!(squeue("--help"), Ok(Request::Help)));
    assert!(matches!(squeue("--usage"), Ok(Request::Usage)));
}

/// SL-C-01
#[test]
fn every_command_tells_how_it_is_called() {
    for command in [
        "sacct", "sacctmgr", "sattach", "sbcast", "scancel", "scontrol", "sdiag", "seff", "sinfo", "sprio", "squeue",
        "sreport", "sshare", "sstat", "strigger", "scrontab",
    ] {
        let help = queries::help(command).expect("a command");
        assert!(help.starts_with(&format!("Usage: {command} [OPTIONS...]")), "{help}");
        assert_eq!(help.contains("Valid <COMMAND> values are:\n"), matches!(command, "sacctmgr" | "scontrol"));
        let (_, of_help) = help.split_once("\n\nHelp options:\n").expect("a heading");
        assert!(of_help.contains("-V, --version\n"), "{help}");
        let usage = queries::usage(command).expect("a command");
        assert!(usage.starts_with(&format!("Usage: {command} [-")) && usage.lines().count() == 1, "{usage}");
    }
    assert_eq!(queries::help("sbatch"), None);
}

/// SL-C-23, SL-C-24
#[test]
fn squeue_takes_its_columns_from_options_and_variables() {
    let format = |text: &str, variable: &dyn Fn(&str) -> Option<String>| {
        run(squeue::parse(&split(text), &around(variable))).listing.format
    };
    let letters = |text: &str| Format::Letters(text.to_owned());
    assert_eq!(format("-l", &no_variable), letters(LONG_FORMAT));
    assert_eq!(format("-s", &no_variable), letters(STEP_FORMAT));
    assert_eq!(format("--start", &no_variable), letters(START_FORMAT));
    let set = |name: &str| (name == "SQUEUE_FORMAT").then(|| "%i".to_owned());
    assert_eq!(format("", &set), letters("%i"));
    assert_eq!(format("-o %j", &set), letters("%j"));
    assert_eq!(format("-O jobid -o %j", &set), Format::Names("jobid".to_owned()));
    for (text, own) in [("-l", LONG_FORMAT), ("-s", STEP_FORMAT), ("--start", START_FORMAT)] {
        assert_eq!(format(text, &set), letters(own), "{text} has a format of its own");
    }
    let users = |name: &str| (name == "SQUEUE_USERS").then(|| "bob".to_owned());
    let listing = run(squeue::parse(&split(""), &around(&users))).listing;
    assert_eq!(listing.filter.users, ["bob".to_owned()].into());
    assert_eq!(run(squeue("--me -u bob")).listing.filter.users, ["ann".to_owned()].into());
    assert_eq!(run(squeue("--start")).listing.filter.states, States::These(vec![State::Pending]));
}

/// SL-C-25, SL-C-26
#[test]
fn squeue_refuses_ids_and_states_that_are_none() {
    assert_eq!(refusal(squeue("-j abc")), error("squeue: error: Invalid job id: abc"));
    let (lines, code) = refusal(squeue("-t FOO"));
    assert_eq!((lines.lines().next(), code), (Some("squeue: error: Invalid job state specified: FOO"), 1));
    assert!(lines.contains("PENDING,RUNNING,SUSPENDED,COMPLETED"), "{lines}");
}

/// SL-C-25
#[test]
fn squeue_takes_ids_in_every_form() {
    assert_eq!(texts(&run(squeue("-j 93+1,43_[3-5],7")).ids), ["93+1", "43_[3-5]", "7"]);
    assert_eq!(texts(&run(squeue("--job=93")).ids), ["93"]);
    assert_eq!(texts(&run(squeue("-j93 -h")).ids), ["93"]);
    assert_eq!(run(squeue("-s 93.0")).steps.map(|steps| texts(&steps)), Some(vec!["93.0".to_owned()]));
    assert_eq!(run(squeue("-t pd,CG")).listing.filter.states, States::These(vec![State::Pending, State::Completing]));
    assert_eq!(run(squeue("-t all")).listing.filter.states, States::All);
    assert_eq!(run(squeue("-s -j 93")).steps.map(|steps| texts(&steps)), Some(vec!["93".to_owned()]));
    for (text, other) in [
        ("--account=a", "--accounts=a"),
        ("--partition=p", "--partitions=p"),
        ("--nodelist=n", "--nodes=n"),
        ("--nodelist=n", "--node=n"),
        ("--name=x", "--names=x"),
    ] {
        let filter = |text: &str| run(squeue(text)).listing.filter;
        assert_eq!(filter(text), filter(other), "{other}");
        assert_ne!(filter(text), filter(""), "{other}");
    }
    let nodes = run(squeue("-w nid[1-2]")).listing.filter.nodes;
    assert_eq!(nodes, ["nid1".to_owned(), "nid2".to_owned()].into());
    let unknown = check_nodes("squeue", &nodes, |name| name == "nid1");
    assert_eq!(refusal(unknown), error("squeue: error: Invalid node name nid2"));
}

/// SL-C-27
#[test]
fn squeue_tells_its_options_if_asked_to() {
    let lines = run(squeue("-v -u ann")).verbose;
    assert!(lines.contains(&"verbose     = 1".to_owned()), "{lines:?}");
    assert!(lines.contains(&"users       = ann".to_owned()), "{lines:?}");
    assert_eq!(run(squeue("-u ann")).verbose, Vec::<String>::new());
}

/// SL-C-29
#[test]
fn sinfo_takes_its_arrangement_filters_and_columns() {
    let sinfo = |text: &str| sinfo::parse(&split(text), &around(&no_variable));
    let overview = |text: &str| run(sinfo(text)).overview;
    assert_eq!(overview("-s").arrangement, Arrangement::Summary);
    assert_eq!(overview("-R").arrangement, Arrangement::Reasons);
    let long = overview("-N -l -p p2 -n nid[1-2] -e -h");
    assert_eq!((long.arrangement, long.is_long, long.is_exact, long.no_header), (Arrangement::Nodes, true, true, true));
    assert_eq!((long.partitions.len(), long.nodes.len()), (1, 2));
    assert_eq!((overview("-r").responding, overview("-d").responding), (Some(true), Some(false)));
    assert_eq!(overview("-t drain,idle").states.len(), 2);
    assert_eq!(refusal(sinfo("-t foo")).1, 1);
    assert_eq!(overview("-o %N").format, Some(Format::Letters("%N".to_owned())));
    assert!(run(sinfo("-T")).reservations);
    let set = |name: &str| match name {
        "SINFO_FORMAT" => Some("%P".to_owned()),
        "SINFO_PARTITION" => Some("p2".to_owned()),
        _ => None,
    };
    let from_variables = run(sinfo::parse(&split(""), &around(&set))).overview;
    assert_eq!(from_variables.format, Some(Format::Letters("%P".to_owned())));
    assert!(from_variables.partitions.contains("p2"));
    for text in ["-R", "-N", "-s"] {
        let overview = run(sinfo::parse(&split(text), &around(&set))).overview;
        assert_eq!(overview.format, None, "{text} has a format of its own");
    }
}

/// SL-A-07, SL-A-09
#[test]
fn sacct_refuses_what_is_no_id_field_or_state() {
    assert_eq!(refusal(sacct("-j abc")), error("sacct: fatal: Bad job/step specified: abc"));
    assert_eq!(refusal(sacct("-o JobID,nope")), error("sacct: error: Invalid field requested: \"nope\""));
    assert_eq!(refusal(sacct("-s FOO")), error("sacct: fatal: unrecognized job state value 'FOO'"));
    assert_eq!(refusal(sacct("-S never")), error("sacct: error: Invalid time specification (pos=0): never"));
    for window in ["-S now -E now-1hours", "-s R -E now-1hours", "-E now-2days"] {
        let (lines, status) = refusal(sacct(window));
        assert!(lines.starts_with("sacct: error: Start time (") && lines.contains(") requested is after end time ("));
        assert_eq!(status, 1);
    }
    assert_eq!(refusal(sacct("123 124")), error("Unknown arguments: 123 124"));
    let unknown = "sacct: error: str_2_job_flags: Invalid job flag Fast";
    assert_eq!(refusal(sacct("-F schedmain,Fast")), error(unknown));
    assert_eq!(refusal(sacct("-x 12,anna")), error("sacct: error: Invalid association id: anna"));
    let wanted = run(sacct("-C knl,big -R Priority -T")).wanted;
    assert_eq!((wanted.features.len(), wanted.reasons.len(), wanted.truncates), (2, 1, true));
    for option in ["-x one", "-i some", "-I 4-2", "-k soon", "-K 5"] {
        assert_eq!(refusal(sacct(option)).1, 1, "{option}");
    }
    assert_eq!(refusal(sacct("--whole-hetjob=maybe")), error("sacct: fatal: Invalid --whole-hetjob value: maybe"));
}

/// SL-A-04, SL-A-07
#[test]
fn sacct_takes_windows_styles_and_components() {
    let usual = run(sacct(""));
    let midnight = ago(8 * 3600 + 20 * 60);
    assert_eq!((usual.wanted.from, usual.wanted.to), (Some(midnight), None), "since midnight");
    assert_eq!(usual.wanted.users, ["ann".to_owned()].into());
    assert_eq!(usual.report.style, ListStyle::Columns);
    let named = run(sacct("-j 7,93+1,43_2,7.batch -X -n -P -o jobid%20,state"));
    assert_eq!(texts(&named.ids), ["7", "93+1", "43_2", "7.batch"]);
    assert_eq!((named.wanted.from, named.wanted.jobs_only, named.report.no_header), (None, true, true));
    assert_eq!(named.report.style, ListStyle::Separated { by: "|".to_owned(), ends: false });
    assert_eq!(named.report.format, "jobid%20,state");
    let several = run(sacct("-j 7 -j 43_[1,2] -s R -s PD -u ann -u bob"));
    assert_eq!(texts(&several.ids), ["7", "43_[1-2]"]);
    assert_eq!((several.wanted.states.len(), several.wanted.users.len()), (2, 2), "lists are joined");
    let style = |text: &str| run(sacct(text)).report.style;
    assert_eq!(style("-p --delimiter=,"), ListStyle::Separated { by: ",".to_owned(), ends: true });
    assert_eq!(run(sacct("-S now-1hours -E now")).wanted.from, Some(ago(3600)));
    assert_eq!(run(sacct("-s R")).wanted.from, Some(ago(0)), "a state without a window is asked for now");
    let window = |text: &str| {
        let wanted = run(sacct(text)).wanted;
        (wanted.from, wanted.to)
    };
    let hour = Some(ago(3600));
    assert_eq!(window("-s R -S now-1hours"), (hour, hour), "a state without an end is that at the start");
    assert_eq!(window("-S now-1hours"), (hour, None));
    assert_eq!(window("-j 7 -s R"), (None, None));
    let turned = refusal(sacct("-s R -E now-1hours")).0;
    assert!(turned.starts_with("sacct: error: Start time (") && turned.contains("is after end time ("), "{turned}");
    let units = |text: &str| run(sacct(text)).report.units;
    assert_eq!([units(""), units("--noconvert")], [Units::Largest, Units::Measured]);
    assert_eq!([units("--units=K"), units("--units=g")], [Units::Power(1), Units::Power(3)]);
    assert_eq!(refusal(sacct("--units=X")), error("sacct: fatal: Invalid unit type"));
    assert_eq!(run(sacct("-B -j 7")).submitted, Some(sacct::Submitted::Script));
    let lacks =
        "sacct: fatal: When requesting job environment you must also request specific jobs with the '-j' option.";
    assert_eq!(refusal(sacct("--env-vars")), error(lacks));
    let data = |text: &str| run(sacct(text)).data;
    assert_eq!([data("--json"), data("--yaml"), data("")], [Some(DataFormat::Json), Some(DataFormat::Yaml), None]);
    let whole = |text: &str| run(sacct(text)).whole_hetjob;
    assert_eq!(
        [whole("--whole-hetjob"), whole("--whole-hetjob=yes"), whole("--whole-hetjob=no"), whole("")],
        [Some(true), Some(true), Some(false), None]
    );
    assert!(run(sacct("-a")).wanted.users.is_empty());
    assert!(run(sacct("-e")).field_names && run(sacct("--help-fields")).field_names);
    assert!(run(sacct("-t")).wanted.jobs_only);
    assert!(run(sacct("-N nid1")).wanted.users.is_empty(), "everybody's on a node");
    let root = Surroundings { is_root: true, ..around(&no_variable) };
    assert!(run(sacct::parse(&split(""), &root)).wanted.users.is_empty(), "everybody's for root");
    let format = |text: &str| run(sacct(text)).report.format;
    assert_eq!(format("-o jobid -o elap%12,State"), "jobid,Elapsed%12,State");
    assert_eq!(format("--fields=user"), "user");
    assert_eq!(format("-o reserved%12,ResvCPU"), "Planned%12,PlannedCPU", "columns by their earlier names");
}

/// SL-A-07, SL-C-04
#[test]
fn sacct_looks_back_for_times() {
    let from = |text: &str| run(sacct(&format!("-S {text}"))).wanted.from.map(|from| from.to_string());
    let at = |text: &str| Some(text.to_owned());
    assert_eq!(from("07:00"), at("2026-11-20T07:00:00.000000Z"));
    assert_eq!(from("12:00"), at("2026-11-20T12:00:00.000000Z"));
    assert_eq!(from("1115"), at("2026-11-15T00:00:00.000000Z"));
    assert_eq!(from("12/24"), at("2025-12-24T00:00:00.000000Z"));
    assert_eq!(from("uts0"), at("1970-01-01T00:00:00.000000Z"));
    assert_eq!(from("midnight"), from("today"));
}

/// SL-C-31
#[test]
fn scancel_refuses_what_names_no_job() {
    assert_eq!(refusal(scancel("")), error("scancel: error: No job identification provided"));
    assert_eq!(refusal(scancel("abc")), error("scancel: error: Invalid job id abc"));
    assert_eq!(refusal(scancel("0")), error("scancel: error: Invalid job id 0"));
    assert_eq!(refusal(scancel("-u nosuch")), error("scancel: error: Invalid user name: nosuch"));
    let (lines, code) = refusal(scancel("-t FOO"));
    assert_eq!((lines.lines().next(), code), (Some("scancel: error: Invalid job state specified: FOO"), 1));
    assert_eq!(refusal(scancel("-s NOPE 7")), error("scancel: error: Unknown job signal: NOPE"));
}

/// SL-C-30, SL-C-32
#[test]
fn scancel_takes_ids_filters_and_signals() {
    let command = run(scancel("-s usr1 -b -v 7 93+1 43_[3-4] 8.0"));
    assert_eq!(texts(&command.ids), ["7", "93+1", "43_[3-4]", "8.0"]);
    assert_eq!((command.signal, command.recipients, command.verbosity), (Some(10), Recipients::Script, 1));
    assert_eq!(run(scancel("-f -s 9 7")).recipients, Recipients::All);
    assert_eq!(run(scancel("--signal=SIGKILL 7")).signal, Some(9));
    let filter = run(scancel("-u bob -p p2 -n job -A abc -q high -t PD -w nid1 -R r1 --wckey=k -i -Q")).filter;
    assert_eq!((filter.user.as_deref(), filter.partition.as_deref()), (Some("bob"), Some("p2")));
    assert_eq!((filter.name.as_deref(), filter.account.as_deref()), (Some("job"), Some("abc")));
    assert_eq!((filter.qos.as_deref(), filter.states), (Some("high"), vec![State::Pending]));
    assert_eq!((filter.nodes.len(), filter.reservation.as_deref()), (1, Some("r1")));
    assert_eq!(filter.wckey.as_deref(), Some("k"));
    assert_eq!(run(scancel("--me")).filter.user.as_deref(), Some("ann"));
    let set = |name: &str| (name == "SCANCEL_INTERACTIVE").then(|| "1".to_owned());
    assert!(run(scancel::parse(&split("7"), &around(&set))).interactive);
    for off in ["", "0", "f", "false"] {
        let unset = |name: &str| (name == "SCANCEL_INTERACTIVE").then(|| off.to_owned());
        assert!(!run(scancel::parse(&split("7"), &around(&unset))).interactive, "{off}");
    }
}

/// SL-C-33
#[test]
fn scontrol_takes_keywords_in_any_case_and_abbreviated() {
    let shown = |text: &str| match run(scontrol(text)).verb {
        Verb::Show { entity, id } => (entity, id),
        other => panic!("{other:?}"),
    };
    let seven = Some("7".to_owned());
    let of_jobs =
        ["show job 7", "show job=7", "SHOW JOB 7", "sh j 7", "-d show jobs 7", "show jobid=7", "show jobid 7"];
    for text in of_jobs.into_iter().chain(["show jobid -dd 7", "show JobId=7 -o"]) {
        assert_eq!(shown(text), (Entity::Jobs, seven.clone()), "{text}");
    }
    assert!(run(scontrol("show jobid -dd 7")).details);
    assert_eq!(shown("show node"), (Entity::Nodes, None));
    assert_eq!(shown("show nodename=n1"), (Entity::Nodes, Some("n1".to_owned())));
    assert_eq!(shown("show partitions").0, Entity::Partitions);
    assert_eq!(shown("show partitionname=p2"), (Entity::Partitions, Some("p2".to_owned())));
    assert_eq!(shown("show reservations").0, Entity::Reservations);
    assert_eq!(shown("show reservationname=r"), (Entity::Reservations, Some("r".to_owned())));
    assert_eq!(shown("show stepid=7.0"), (Entity::Steps, Some("7.0".to_owned())));
    assert_eq!(shown("show hostnames n[1-2]"), (Entity::Hostnames, Some("n[1-2]".to_owned())));
    assert_eq!(shown("show hostlist a1,a2"), (Entity::Hostlist, Some("a1,a2".to_owned())));
    assert_eq!(shown("show lic").0, Entity::Licences);
    assert_eq!(shown("show res").0, Entity::Reservations);
    assert_eq!(shown("show config").0, Entity::Configuration);
    assert_eq!(shown("show part p2"), (Entity::Partitions, Some("p2".to_owned())));
    assert!(run(scontrol("-o show job")).one_line);
    assert!(run(scontrol("show job 7 -o")).one_line);
    assert_eq!(refusal(scontrol("notajob")), error("invalid keyword: notajob"));
    assert_eq!(refusal(scontrol("show foo")), error("invalid entity:foo for keyword:show"));
    assert_eq!(refusal(scontrol("hold")), error("too few arguments for keyword:hold"));
    assert!(matches!(scontrol("version"), Ok(Request::Version)));
    assert_eq!(run(scontrol("ping")).verb, Verb::Ping);
}

/// SL-C-33, SL-C-37, SL-M-09
#[test]
fn scontrol_acts_on_ids_in_several_words_or_a_list() {
    let act = |text: &str| match run(scontrol(text)).verb {
        Verb::Act { action, ids, variant, .. } => (action, texts(&ids), variant),
        other => panic!("{other:?}"),
    };
    let ids = |list: &[&str]| list.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(act("hold 7,93+1 43_2"), (Action::Hold, ids(&["7", "93+1", "43_2"]), Variant::Plain));
    assert_eq!(act("uhold jobid=7"), (Action::Hold, ids(&["7"]), Variant::UserHold));
    assert_eq!(act("requeuehold 7"), (Action::Requeue, ids(&["7"]), Variant::Held));
    assert_eq!(act("requeue 7"), (Action::Requeue, ids(&["7"]), Variant::Plain));
    assert_eq!(act("res 7").0, Action::Resume);
    assert_eq!(act("susp 7").0, Action::Suspend);
    assert_eq!(act("rel 7").0, Action::Release);
    assert_eq!(refusal(scontrol("hold abc")), error("Invalid job id specified for job abc"));
    assert_eq!(act("requeuehold State=SpecialExit 7"), (Action::Requeue, ids(&["7"]), Variant::SpecialExit));
    assert_eq!(refusal(scontrol("requeuehold State=Odd 7")), error("Invalid state: Odd"));
    let verb = run(scontrol("requeue incomplete 7")).verb;
    assert!(matches!(verb, Verb::Act { only_incomplete: true, variant: Variant::Plain, .. }));
    let verb = run(scontrol("hold jobname=x name=y")).verb;
    assert!(matches!(verb, Verb::Act { names, ids, .. } if names == ["x", "y"] && ids.is_empty()));
    assert_eq!(run(scontrol("completing")).verb, Verb::Completing);
    let write = run(scontrol("write batch_script 93+1 -")).verb;
    assert!(matches!(write, Verb::WriteScript { file: Some(file), .. } if file == "-"));
}

fn update(text: &str) -> Update {
    match run(scontrol(text)).verb {
        Verb::Update(update) | Verb::Create(update) => update,
        other => panic!("{other:?}"),
    }
}

/// SL-C-36, SL-M-07
#[test]
fn an_update_is_a_list_of_pairs() {
    let change = update("update jobid=93+2 account=abc TimeLimit+=30 nice-=5 licenses=ansys:2");
    assert!(matches!(&change.subject, Subject::Jobs(ids) if texts(ids) == ["93+2"]));
    let pairs: Vec<_> = change.pairs.iter().map(|pair| (pair.key, pair.change, pair.value.as_str())).collect();
    assert_eq!(
        pairs,
        [
            ("Account", Change::Set, "abc"),
            ("TimeLimit", Change::Add, "30"),
            ("Nice", Change::Subtract, "5"),
            ("Licenses", Change::Set, "ansys:2"),
        ]
    );
}

/// SL-C-36
#[test]
fn every_key_of_jobs_is_known_in_any_case() {
    for key in "TimeLimit TimeMin Name Account Partition QOS Priority Nice Comment Dependency StartTime EligibleTime \
                Features ReservationName ReqNodeList ExcNodeList NumNodes NumCPUs NumTasks MinMemoryNode MinMemoryCPU \
                Licenses Requeue"
        .split_whitespace()
    {
        let change = update(&format!("update JobId=7 {}=1", key.to_lowercase()));
        assert_eq!(change.value(key), Some("1"), "{key}");
    }
}

/// SL-C-36
#[test]
fn an_unknown_key_is_told_and_nothing_is_changed() {
    let wanted = error("Update of this parameter is not supported: foo=bar\nRequest aborted");
    assert_eq!(refusal(scontrol("update jobid=7 foo=bar")), wanted);
    assert_eq!(refusal(scontrol("update foo=bar")).1, 1);
    assert_eq!(
        refusal(scontrol("update jobid=7 timelimit=soon")),
        error("Invalid TimeLimit value: soon\nRequest aborted")
    );
}

/// SL-C-38
#[test]
fn nodes_partitions_and_reservations_are_updated_alike() {
    let nodes = update("update nodename=nid[1-2] state=drain reason=disk");
    assert_eq!(nodes.subject, Subject::Nodes(vec!["nid1".to_owned(), "nid2".to_owned()]));
    assert_eq!((nodes.value("State"), nodes.value("Reason")), (Some("drain"), Some("disk")));
    let partition = update("update partition=p2 state=down");
    assert_eq!(partition.subject, Subject::Partition("p2".to_owned()));
    let made = update("create reservation reservationname=r1 starttime=now duration=10 nodes=nid00012 users=root");
    assert_eq!(made.subject, Subject::Reservation(Some("r1".to_owned())));
    assert_eq!((made.value("Duration"), made.value("Users")), (Some("10"), Some("root")));
    let unnamed = update("create reservation starttime=now duration=10 nodes=nid00012 users=root");
    assert_eq!(unnamed.subject, Subject::Reservation(None));
}

/// SL-C-38
#[test]
fn nodes_are_taken_out_of_service_only_with_a_reason() {
    let change = |text: &str| node_change(&update(text));
    let denied = "You must specify a reason when DOWNING or DRAINING a node. Request denied";
    for word in ["drain", "down", "fail"] {
        assert_eq!(refusal(change(&format!("update nodename=n1 state={word}"))), error(denied));
    }
    let drained = change("update nodename=n1 state=DRAIN reason=disk");
    assert_eq!(drained, Ok(Some((NodeChange::Drain, "disk".to_owned()))));
    assert_eq!(change("update nodename=n1 state=resume"), Ok(Some((NodeChange::Resume, String::new()))));
    assert_eq!(change("update nodename=n1 reason=x"), Ok(None));
    assert_eq!(refusal(change("update nodename=n1 state=asleep")).1, 1);
    let idle = NodeState {
        base: NodeBase::Idle,
        is_draining: false,
        is_completing: false,
        is_maintained: false,
        is_reserved: false,
        is_planned: false,
        is_silent: false,
        power: None,
    };
    let invalid = error("slurm_update error: Invalid node state specified");
    assert_eq!(refusal(check_node_change(NodeChange::Resume, idle)), invalid);
    let drained = NodeState { is_draining: true, ..idle };
    assert_eq!(check_node_change(NodeChange::Resume, drained), Ok(()));
    assert_eq!(check_node_change(NodeChange::Undrain, drained), Ok(()));
    let down = NodeState { base: NodeBase::Down, ..idle };
    assert_eq!(check_node_change(NodeChange::Resume, down), Ok(()));
    for state in [idle, down, NodeState { is_draining: true, ..down }] {
        assert_eq!(refusal(check_node_change(NodeChange::Undrain, state)), invalid);
    }
}

/// SL-C-38
#[test]
fn a_partition_takes_and_starts_jobs_or_does_not() {
    let state = |word: &str| partition_state(&update(&format!("update partition=p2 state={word}")));
    let wanted = |is_enabled, is_started| Ok(Some(PartitionState { is_enabled, is_started }));
    assert_eq!(state("up"), wanted(true, true));
    assert_eq!(state("DOWN"), wanted(true, false));
    assert_eq!(state("drain"), wanted(false, true));
    assert_eq!(state("inactive"), wanted(false, false));
    assert_eq!(refusal(state("away")).1, 1);
}

/// SL-C-31, SL-C-32
#[test]
fn scancel_tells_what_it_does_and_asks_before() {
    let says = |text: &str, step: Option<StepName>| run(scancel(text)).announcement("7", step);
    assert_eq!(says("7", None), "scancel: Terminating job 7");
    assert_eq!(says("7.0", Some(StepName::Number(0))), "scancel: Terminating step 7.0");
    assert_eq!(says("-b -s 10 7", None), "scancel: Signal 10 to batch job 7");
    assert_eq!(says("-s 10 7", None), "scancel: Signal 10 to job 7");
    let job = records([view(json!({}))]).remove(0);
    assert_eq!(words::question(&job), "Cancel job_id=7 name=foo partition=debug [y/n]? ");
    let question = words::question_of_step(&job, StepName::Number(0));
    assert_eq!(question, "Cancel step_id=7.0 name=foo partition=debug [y/n]? ");
}

/// SL-C-31: a missing job is an error if jobs are looked up first.
#[test]
fn scancel_misses_jobs_where_it_looks_them_up() {
    assert!(!run(scancel("7 8")).looks_up() && !run(scancel("-v -f 7")).looks_up());
    assert!(!run(scancel("-n foo 7")).looks_up(), "a filter that matches nothing is no failure");
    for text in ["-i 7", "-s 10 7", "-b 7", "7 8.0"] {
        assert!(run(scancel(text)).looks_up(), "{text}");
    }
    let of = |text: &str| {
        let command = run(scancel(text));
        command.not_there(&command.ids[0])
    };
    let said = |text: &str| Failure { lines: vec![format!("scancel: error: {text}")], code: 1 };
    assert_eq!(of("-i 7"), said("Kill job error on job id 7: Invalid job id specified"));
    assert_eq!(of("7.0"), said("Kill job error on job step id 7.0: Invalid job id specified"));
    assert_eq!(of("-Q -i 7"), Failure { lines: Vec::new(), code: 1 });
    assert!(run(scancel("7")).ends_waiting_jobs() && run(scancel("-s KILL 7")).ends_waiting_jobs());
    let signal = run(scancel("-s USR1 7"));
    assert!(!signal.ends_waiting_jobs());
    assert_eq!(signal.still_waits("7"), said("Kill job error on job id 7: Job is pending execution"));
}

/// SL-M-12
#[test]
fn sbcast_needs_two_names_and_an_id_that_is_one() {
    let sbcast = |text: &str| copy::sbcast(&split(text));
    let command = run(sbcast("-f -p --jobid=123+1 a /tmp/a"));
    assert_eq!((command.source.as_str(), command.destination.as_str()), ("a", "/tmp/a"));
    assert!(command.force && command.preserve);
    assert_eq!(command.job.map(|id| id.to_string()), Some("123+1".to_owned()));
    assert_eq!(run(sbcast("-C --jobid=123.1 a b")).job.map(|id| id.to_string()), Some("123.1".to_owned()));
    assert_eq!(refusal(sbcast("a")), error("sbcast: error: Need two file names, have 1 names specified"));
    let (lines, code) = refusal(sbcast("--jobid=x a b"));
    assert!(lines.contains("Invalid job id specified") && code == 1, "{lines}");
}

/// SL-M-14
#[test]
fn sattach_attaches_to_one_step_of_one_component() {
    let sattach = |text: &str| copy::sattach(&split(text));
    let command = run(sattach("-l 93.0"));
    assert_eq!((command.job.to_string(), command.step.to_string(), command.label), ("93".into(), "0".into(), true));
    assert_eq!(refusal(sattach("93.0,94.0")).1, 1);
    assert_eq!(refusal(sattach("93.0 94.0")).1, 1);
    assert_eq!(refusal(sattach("93")), error("sattach: error: Invalid job step id: 93"));
    assert_eq!(refusal(sattach("")), error("sattach: error: No job step id specified"));
}

/// SL-L-07
#[test]
fn sacctmgr_takes_a_deed_a_kind_and_pairs() {
    let parse = |text: &str| sacctmgr::parse(&split(text));
    let shown = run(parse("-nP show assoc user=ann format=account,user"));
    assert_eq!((shown.deed, shown.kind, shown.no_header), (Deed::Show, Kind::Association, true));
    assert_eq!(shown.format.as_deref(), Some("account,user"));
    let made = run(parse("-i add user bob account=test"));
    assert_eq!((made.deed, made.kind, made.immediate), (Deed::Add, Kind::User, true));
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(made.wanted, [pair("name", "bob"), pair("account", "test")]);
    let changed = run(parse("modify user where name=bob set MaxJobs=2"));
    assert_eq!((changed.wanted, changed.set), (vec![pair("name", "bob")], vec![pair("maxjobs", "2")]));
    assert_eq!(refusal(parse("frobnicate user")), error("invalid keyword: frobnicate"));
}

/// SL-L-02: what `sacctmgr` takes has an effect, and everything else is refused.
#[test]
fn nothing_is_ignored_by_sacctmgr() {
    let parse = |text: &str| sacctmgr::parse(&split(text));
    let told = |text: &str| refusal(parse(text)).0;
    let shown = run(parse("-Q --json show assoc tree onlydefaults"));
    assert!(shown.quiet && shown.tree && shown.only_defaults);
    assert_eq!(shown.data, Some(DataFormat::Json));
    assert_eq!(told("-r add user bob account=test"), "Can't run this command in readonly mode.");
    assert!(parse("-r show user").is_ok());
    for verb in ["dump", "load", "archive", "clear", "shutdown"] {
        assert!(told(&format!("{verb} file")).contains("accounts are part of the scheduler's log"), "{verb}");
    }
    for line in ["show user foo=bar", "show event maxcpus=4", "show txn start=today", "show qos set priority=1"] {
        assert!(told(line).starts_with(" Unknown condition: "), "{line}");
    }
    for line in [
        "show user ann withassoc cluster=alpha adminlevel=none",
        "list accounts names=test parent=root",
        "show events nodes=n1 start=2026-01-01 end=now condflags=open",
        "show tres id=1",
        "show assoc where acct=test users=ann",
    ] {
        assert!(parse(line).is_ok(), "{line}");
    }
}

/// SL-L-02: outages that are listed go on, so they are in any time that ends after they have begun.
#[test]
fn outages_are_selected_by_time() {
    let now = "2026-11-27T10:00:00[UTC]".parse().expect("a time");
    let until = |text: &str| run(sacctmgr::parse(&split(&format!("show event {text}")))).period_end(&now);
    let second = |text: &str| Ok(Some(text.parse::<jiff::Timestamp>().expect("a time").as_second()));
    let seconds = |text: &str| until(text).map(|end| end.map(|end| end.to_jiff().as_second()));
    assert_eq!(seconds("end=2020-02-02"), second("2020-02-02T00:00:00Z"));
    assert_eq!(seconds("en=now en=2026-11-26T08:00"), second("2026-11-26T08:00:00Z"));
    for open in ["st=2020-02-02", "start=now", "sta=today stat=drain", "condflags=Open", "nodes=n1"] {
        assert_eq!(seconds(open), Ok(None), "{open}");
    }
    for wrong in ["st=foo", "end=whenever", "condflags=closed", "cond="] {
        let refused = until(wrong).expect_err(wrong);
        assert!(refused.lines[0].contains("Invalid"), "{wrong}: {refused:?}");
    }
}

/// SL-C-38: a step's time limit is set, raised and lowered; nothing else of a step changes.
#[test]
fn the_time_limit_of_a_step_is_changed() {
    use muster_slurm::queries::steps::step_limit;
    let limit = |pairs: &str, now| step_limit(&update(&format!("update stepid=7.0 {pairs}")), now);
    assert_eq!(limit("timelimit=2", None), Ok(Some(120)));
    assert_eq!(limit("timelimit=+2", Some(60)), Ok(Some(180)));
    assert_eq!(limit("timelimit-=1", Some(180)), Ok(Some(120)));
    assert_eq!([limit("timelimit=UNLIMITED", Some(60)), limit("timelimit=-1", Some(600))], [Ok(None), Ok(None)]);
    for (pairs, now) in [("timelimit=+2", None), ("timelimit-=2", Some(120)), ("", Some(60))] {
        assert!(limit(pairs, now).is_err(), "{pairs}");
    }
    assert!(refusal(scontrol::parse(&split("update stepid=7.0 name=x"))).0.starts_with("Update of this parameter"));
}

/// SL-C-38: a reason alone is one for nodes that are out of service.
#[test]
fn nodes_are_given_reasons_alone() {
    use muster_slurm::queries::nodes::node_reason;
    let reason = |text: &str| node_reason(&update(&format!("update nodename=n1 {text}")));
    assert_eq!(reason("reason=disk").as_deref(), Some("disk"));
    assert_eq!([reason("state=resume"), reason("reason=")], [None, None]);
}

proptest! {
    /// No command line makes a command panic, and a refusal has a message and a status.
    #[test]
    fn any_words_are_taken_or_refused(words in prop::collection::vec("\\PC{0,12}|--?[a-zA-Z=]{0,10}|[a-z]+=[0-9+-]{0,4}", 0..6)) {
        let around = around(&no_variable);
        let failures = [
            squeue::parse(&words, &around).err(),
            sinfo::parse(&words, &around).err(),
            sacct::parse(&words, &around).err(),
            scancel::parse(&words, &around).err(),
            scontrol::parse(&words).err(),
            sacctmgr::parse(&words).err(),
            copy::sbcast(&words).err(),
            copy::sattach(&words).err(),
        ];
        for failure in failures.into_iter().flatten() {
            prop_assert!(failure.code > 0 && failure.lines.iter().any(|line| !line.is_empty()));
        }
    }
}

/// SL-C-33: without a command, commands are read from the input.
#[test]
fn the_lines_of_a_shell_are_commands() {
    use muster_slurm::queries::shell::{Line, options, read};
    let asked = |command: &str, text: &str| options(command, &split(text));
    assert_eq!(asked("scontrol", ""), Some(Vec::new()));
    assert_eq!(asked("scontrol", "-o -a"), Some(split("-o -a")));
    assert_eq!(asked("sacctmgr", "-n"), Some(split("-n")));
    for (command, text) in
        [("scontrol", "show job"), ("scontrol", "--version"), ("squeue", ""), ("scontrol", "--bogus")]
    {
        assert_eq!(asked(command, text), None, "{command} {text}");
    }
    let words = |list: &[&str]| Line::Command(list.iter().map(|word| (*word).to_owned()).collect());
    assert_eq!(read("scontrol", "show job 7\n"), words(&["show", "job", "7"]));
    assert_eq!(read("scontrol", "update jobid=7 comment='a b'"), words(&["update", "jobid=7", "comment=a b"]));
    assert_eq!(read("scontrol", " \t\n"), Line::Nothing);
    assert_eq!(read("scontrol", "!!"), Line::Again);
    assert_eq!([read("scontrol", "exit"), read("sacctmgr", "quit")], [Line::Exit, Line::Exit]);
    assert_eq!(read("scontrol", "oneliner"), Line::Mode("--oneliner"));
    assert_eq!(read("sacctmgr", "oneliner"), words(&["oneliner"]));
    assert_eq!(read("scontrol", "notify 7 'open"), Line::Unclosed);
}

/// SL-C-38: partitions are queues.
#[test]
fn partitions_are_made_and_changed_as_queues() {
    use muster_schemas::cluster::{MakesWay, QueueSpec, QueueValue, WayOut};
    use muster_slurm::queries::partitions::{PartitionChange, queue_change};
    let before: QueueSpec = serde_json::from_value(json!({
        "name": "p2", "nodes": ["n1", "n2"], "max_walltime_seconds": 3600, "makes_way": { "by": "cancel", "grace_seconds": 5 },
    }))
    .expect("a queue");
    let is_node = |name: &str| ["n1", "n2", "n3"].contains(&name);
    let change = |text: &str| {
        let update = update(text);
        let Subject::Partition(name) = update.subject.clone() else { panic!("{text}") };
        queue_change(&update, &name, Some(&before), true, is_node, |class| class == "long")
    };
    let after = |text: &str| change(&format!("update partitionname=p2 {text}")).expect(text);
    let made = after("nodes=n[1-3] maxtime=2:00:00 defaulttime=30 default=yes prioritytier=5 state=up");
    let queue = made.named(Some(&before));
    assert!(made.is_default && (queue.enabled, queue.started) == (None, None), "it was up before");
    assert_eq!(queue.nodes, Some(["n1", "n2", "n3"].map(str::to_owned).to_vec()));
    assert_eq!((queue.max_walltime_seconds, queue.default_walltime_seconds), (Some(7200), Some(1800)));
    assert_eq!(queue.priority, Some(5));
    let nodes = |text: &str| after(text).queue.nodes;
    assert_eq!(nodes("nodes+=n3"), ["n1", "n2", "n3"]);
    assert_eq!(nodes("nodes-=n1"), ["n2"]);
    assert_eq!(nodes("nodes=ALL"), [""; 0]);
    let none = PartitionChange { queue: before.clone(), is_default: false, class: None };
    assert_eq!(after("hidden=no minnodes=0 allowgroups=ALL lln=no defaulttime=NONE rootonly=no"), none);
    let unlimited = after("maxtime=unlimited");
    let named = unlimited.named(Some(&before));
    assert_eq!((unlimited.queue.max_walltime_seconds, named.max_walltime_seconds), (None, None));
    assert_eq!(named.unset, [QueueValue::MaxWalltimeSeconds]);
    assert_eq!(after("preemptmode=off").named(Some(&before)).unset, [QueueValue::MakesWay]);
    assert_eq!(queue.unset, []);
    let asked = after("maxnodes=4 minnodes=2 rootonly=yes").queue;
    assert_eq!((asked.most_asked["nodes"], asked.least_asked["nodes"]), (4, 2));
    assert_eq!(asked.users, ["root"]);
    let preempted = |text: &str| after(text).queue.makes_way;
    assert_eq!(preempted("preemptmode=requeue"), Some(MakesWay { by: WayOut::Requeue, grace_seconds: 5 }));
    assert_eq!(preempted("gracetime=9 preemptmode=suspend"), Some(MakesWay { by: WayOut::Suspend, grace_seconds: 9 }));
    for gangs in ["preemptmode=GANG,SUSPEND", "preemptmode=suspend,gang"] {
        assert_eq!(preempted(gangs), Some(MakesWay { by: WayOut::Suspend, grace_seconds: 5 }), "{gangs}");
    }
    assert_eq!(preempted("preemptmode=off"), None);
    assert_eq!(
        ["qos=long", "qos=", "qos=N/A", "state=up"].map(|text| after(text).class.map(|class| class.len())),
        [Some(4), Some(0), Some(0), None]
    );
    let unknown = change("update partitionname=p2 qos=lnog").expect_err("there is no such QOS");
    assert_eq!(unknown.lines, ["slurm_update error: Invalid qos specification"]);
    for wrong in [
        "nodes=n9",
        "nodes-=n1,n2",
        "hidden=yes",
        "default=perhaps",
        "default=no",
        "maxnodes=x",
        "preemptmode=within",
        "preemptmode=gang",
        "preemptmode=suspend,cancel",
        "preemptmode=off gracetime=3",
        "allowaccounts=a",
        "lln=yes",
        "topology=t",
    ] {
        assert!(change(&format!("update partitionname=p2 {wrong}")).is_err(), "{wrong}");
    }
    // The list of users is not lost to a key that could not bring it back.
    let of = |users: &[&str], value: &str| {
        let users = users.iter().map(|user| (*user).to_owned()).collect();
        let before = QueueSpec { users, ..before.clone() };
        let changed = queue_change(
            &update(&format!("update partitionname=p2 rootonly={value}")),
            "p2",
            Some(&before),
            true,
            is_node,
            |_| true,
        );
        changed.map(|change| change.queue.users)
    };
    assert!(of(&["ann"], "yes").is_err());
    assert_eq!(of(&["ann"], "no").unwrap(), ["ann"]);
    assert_eq!(of(&["root"], "yes").unwrap(), ["root"]);
    assert_eq!(of(&["root"], "no").unwrap(), [""; 0]);
}

/// SL-C-38
#[test]
fn features_of_nodes_are_replaced() {
    use muster_slurm::queries::nodes::node_features;
    let features = |text: &str| node_features(&update(&format!("update nodename=n1 {text}")));
    assert_eq!(features("state=resume"), Ok(None));
    assert_eq!(features("features=knl,gpu"), Ok(Some(vec!["knl".to_owned(), "gpu".to_owned()])));
    assert_eq!(features("availablefeatures="), Ok(Some(Vec::new())));
    assert_eq!(features("weight=1"), Ok(None));
    assert!(features("gres=gpu:2").is_err());
}

/// SL-C-38
#[test]
fn weights_of_nodes_are_numbers() {
    use muster_slurm::queries::nodes::node_weight;
    let weight = |text: &str| node_weight(&update(&format!("update nodename=n1 {text}")));
    assert_eq!(weight("state=resume"), Ok(None));
    assert_eq!(weight("weight=0"), Ok(Some(0)));
    assert_eq!(weight("Weight=4294967280"), Ok(Some(4_294_967_280)));
    for wrong in ["-1", "heavy", "4294967281", ""] {
        let refused = weight(&format!("weight={wrong}")).expect_err(wrong);
        assert_eq!(refused.lines, [format!("Invalid input: {wrong}"), "Request aborted".to_owned()]);
    }
}

/// What muster does not know is refused by its name, and nothing is set.
#[test]
fn a_trigger_waits_for_what_the_log_tells() {
    let strigger = |text: &str| strigger::parse(&split(text), &around(&|_| None));
    let told = |text: &str| match strigger(text) {
        Err(failure) => failure.lines.join("\n"),
        Ok(request) => panic!("{text}: {request:?}"),
    };
    let set = |text: &str| match run(strigger(&format!("--set {text}"))).deed {
        strigger::Deed::Set(wish) => wish,
        other => panic!("{text}: {other:?}"),
    };
    let wish = set("--jobid=12 --time --offset=-600 -p /home/ann/save");
    assert_eq!((wish.on, wish.job, wish.offset_seconds), (strigger::Happening::Time, Some(12), -600));
    let wish = set("-nn[1-2] -d --flags=perm --program=/bin/tell");
    assert_eq!((wish.nodes, wish.is_permanent), (vec!["n1".to_owned(), "n2".to_owned()], true));
    assert_eq!(set("--node --idle -p /bin/tell").nodes, [""; 0], "all nodes");
    let words = strigger::parse(&["--set", "-j7", "--fini", "-p", "/bin/tell me  twice"], &around(&|_| None));
    let strigger::Deed::Set(wish) = run(words).deed else { panic!("it sets a trigger") };
    assert_eq!(wish.program, ["/bin/tell", "me", "twice"]);
    for (text, wanted) in [
        ("--get --clear", "You must use exactly one of the following options: --set, --get or --clear"),
        ("--clear", "You must specify a --id, --jobid, or --user to clear"),
        ("--set -p /bin/x", "You must specify a trigger (--down, --up, --drained, --idle, --time or --fini)"),
        ("--set --fini -p /bin/x", "You must specify a --jobid value"),
        ("--set --down", "You must specify a --program value"),
        ("--set --down -p x", "The --program value must start with \"/\""),
        ("--set --down -p /x -o 40000", "The --offset parameter must be between +/-32000"),
        ("--set --down -p /x --flags=x", "Invalid flags x"),
        ("--set --down -p /x -j1 -n", "--node and --jobid cannot be used together"),
        ("--set -a -p /x", "--primary_slurmctld_failure never happens in muster; no trigger was set"),
        ("--set --fail -p /x", "--fail never happens in muster; no trigger was set"),
        ("--get -j x", "Invalid jobid x"),
    ] {
        assert_eq!(told(text), format!("strigger: error: {wanted}"), "{text}");
    }
}

#[test]
fn triggers_are_listed_as_slurm_does() {
    let trigger = |trigger, on: Value, job_number: Value| {
        let view = json!({ "trigger": trigger, "user": "joe", "job_number": job_number, "spec": {
            "on": on, "offset_seconds": if trigger == 123 { -600 } else { 0 },
            "program": ["/home/joe/tell", "me"], "is_permanent": trigger == 125
        }});
        serde_json::from_value::<TriggerView>(view).expect("a trigger")
    };
    let triggers = [
        trigger(123, json!({ "walltime_ends": "1235" }), json!(1235)),
        trigger(125, json!({ "nodes": { "nodes": { "named": ["n1", "n2"] }, "turn": "down" } }), json!(null)),
        trigger(126, json!({ "nodes": { "nodes": "all", "turn": "idle" } }), json!(null)),
    ];
    let list = |text: &str| match run(strigger::parse(&split(&format!("--get {text}")), &around(&|_| None))).deed {
        strigger::Deed::Get { which, no_header } => table::list(&triggers, &which, no_header),
        other => panic!("{other:?}"),
    };
    let heading = "TRIG_ID RES_TYPE   RES_ID TYPE                                OFFSET USER     FLAGS PROGRAM\n";
    let time =
        "    123 job          1235 time                                  -600 joe            /home/joe/tell me\n";
    let down =
        "    125 node       n[1-2] down                                     0 joe      PERM  /home/joe/tell me\n";
    let idle =
        "    126 node            * idle                                     0 joe            /home/joe/tell me\n";
    assert_eq!(list(""), format!("{heading}{time}{down}{idle}"));
    assert_eq!(list("-N -j 1235"), time);
    assert_eq!(list("-N --node"), format!("{down}{idle}"));
    assert_eq!(list("-N --idle"), idle);
    assert_eq!(list("--id=9"), "");
}
