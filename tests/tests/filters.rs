//! Filters on real processes and a real NATS server, with runners that are killed.
//!
//! `MUSTER_FILTER_JOBS` is the number of jobs that are filtered while runners are killed at random,
//! `MUSTER_FILTER_SEED` repeats the choices of a run (the moments depend on the machine).

use muster_bus::{LedgerClient, NatsBus, NatsConfig, SharedBus, testing::NatsServer};
use muster_schemas::{
    JobId, Sequence,
    cluster::ClusterChange,
    command::{Command, JobSelection, Query, QueryAnswer, Reply},
    event::{Actor, Event, Intake, Owner, Record, TraceContext},
    filter::{
        ActivationOrdering, CallId, FilterAction, FilterExit, FilterForm, FilterKind, FilterSettings, FilterSpec,
        StagingSettings, TemplateSpec,
    },
    job::{Component, ComponentStaging, JobSpec, Launch, Outcome, Program},
};
use muster_tests::muster_binary;
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, Uid, User, chown},
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, Permissions},
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command as Process, Stdio},
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

/// The maximum time to wait for anything.
const DEADLINE: Duration = Duration::from_secs(120);

/// A cluster of one node whose runners are separate processes. Everything ends when this is dropped.
struct Site {
    runtime: Runtime,
    ledger: LedgerClient,
    runners: BTreeMap<String, Child>,
    system: Child,
    folder: tempfile::TempDir,
    _nats: NatsServer,
}

impl Site {
    fn start() -> Self {
        let nats = NatsServer::start();
        let folder = tempfile::tempdir().expect("a temporary folder");
        open_to_all(folder.path(), 0o755);
        let bus = format!("[bus]\nurl = {:?}\n", nats.url());
        fs::write(folder.path().join("bus.toml"), &bus).expect("a file");
        let cluster = "[[nodes]]\nname = \"node1\"\ncores = 16\nmemory = \"16G\"\n[executor]\nnode = \"node1\"\nbind_cpus = false\n";
        fs::write(folder.path().join("system.toml"), bus + cluster).expect("a file");
        let state = folder.path().join("state");
        fs::create_dir(&state).expect("a folder");
        let account = Uid::effective().is_root().then(|| user("nobody").uid);
        chown(&state, account, None).expect("the folder can be given away");
        let roles = ["ledger", "gateway", "planner", "executor"];
        let system = serve(folder.path(), &roles, "system.toml", "system");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let config = NatsConfig { url: nats.url(), ..NatsConfig::default() };
        let bus: SharedBus = runtime.block_on(NatsBus::connect(config)).expect("NATS answers");
        let ledger = LedgerClient::new(bus);
        Self { runtime, ledger, runners: BTreeMap::new(), system, folder, _nats: nats }
    }

    /// Starts a runner and waits until it is ready.
    fn run(&mut self, name: &str) {
        let bus = self.read("bus.toml");
        let file = format!("{name}.toml");
        let runner = format!("[filter_runner]\nname = \"{name}\"\naccount = \"nobody\"\n");
        fs::write(self.path(&file), bus + &runner).expect("a file");
        let process = serve(self.folder.path(), &["filter-runner"], &file, name);
        self.runners.insert(name.to_owned(), process);
    }

    fn signal(&self, runner: &str, signal: Signal) {
        let process = i32::try_from(self.runners[runner].id()).expect("a process id");
        kill(Pid::from_raw(process), signal).expect("it runs");
    }

    /// Kills a runner with SIGKILL.
    fn kill(&mut self, runner: &str) {
        let mut process = self.runners.remove(runner).expect("it runs");
        process.kill().expect("it runs");
        process.wait().expect("it is our child");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// A program that nobody else can change.
    fn program(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("a file");
        open_to_all(&path, 0o755);
        path.display().to_string()
    }

    /// Sends a command that must succeed.
    fn ask(&self, command: Command) -> Reply {
        let own = own_user();
        let actor = Actor::User(Owner { user: own.name, uid: own.uid.as_raw(), gid: own.gid.as_raw() });
        let answer = self.runtime.block_on(self.ledger.command(actor, TraceContext::default(), command));
        answer.expect("an answer").result.unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    fn submit(&self, script: &str, template: Option<&str>) -> JobId {
        self.submit_job(spec(script), template)
    }

    fn submit_job(&self, spec: JobSpec, template: Option<&str>) -> JobId {
        let command = match template {
            None => Command::Submit { jobs: vec![spec] },
            Some(template) => {
                let intake = Intake { template: Some(template.into()), ..Intake::default() };
                Command::SubmitDocument { spec: Box::new(spec), intake: Box::new(intake) }
            }
        };
        match self.ask(command) {
            Reply::Submitted(jobs) => jobs[0],
            other => panic!("{other:?}"),
        }
    }

    /// All records of the log.
    fn records(&self) -> Vec<Record> {
        let mut records: Vec<Record> = Vec::new();
        loop {
            let from = records.last().map_or(Sequence(1), |record| record.sequence.next());
            let query = Query::Replay { from, max_bytes: 4 << 20 };
            match self.runtime.block_on(self.ledger.query(&query)).expect("an answer") {
                QueryAnswer::Records(page) if page.records.is_empty() => return records,
                QueryAnswer::Records(page) => records.extend(page.records),
                other => panic!("{other:?}"),
            }
        }
    }

    fn events(&self) -> Vec<Event> {
        self.records().into_iter().map(|record| record.event).collect()
    }

    /// Polls until there is a result.
    fn poll<T>(&self, what: &str, look: impl Fn() -> Option<T>) -> T {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(Instant::now() < deadline, "waited in vain for {what}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the log has such an event.
    fn wait_for(&self, what: &str, is_it: impl Fn(&Event) -> bool) -> Event {
        self.poll(what, || self.events().into_iter().find(&is_it))
    }

    fn wait_until_finished(&self, job: JobId) -> Outcome {
        let event = self
            .wait_for("the end of a job", |event| matches!(event, Event::JobFinished { job: of, .. } if *of == job));
        match event {
            Event::JobFinished { outcome, .. } => outcome,
            other => panic!("{other:?}"),
        }
    }

    fn wait_for_file(&self, name: &str) {
        self.poll(name, || (!self.read(name).is_empty()).then_some(()));
    }

    fn logs(&self) -> String {
        let names = self.runners.keys().map(String::as_str).chain(["system"]);
        let tail = |name: &str| {
            let log = self.read(&format!("{name}.log"));
            let lines: Vec<&str> = log.lines().rev().take(20).collect();
            format!("--- {name}\n{}\n", lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
        };
        names.map(tail).collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for process in self.runners.values_mut().chain([&mut self.system]) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn spec(script: &str) -> JobSpec {
    let program = Program::Script { text: format!("#!/bin/sh\n{script}\n"), args: Vec::new() };
    let launch = Launch { program, stdout: Some("/dev/null".into()), ..Launch::default() };
    let component = Component { launch, ..Component::default() };
    JobSpec { components: vec![component], working_directory: "/".into(), ..JobSpec::default() }
}

fn own_user() -> User {
    User::from_uid(Uid::effective()).expect("users can be looked up").expect("who runs the test is a user")
}

fn user(name: &str) -> User {
    User::from_name(name).expect("users can be looked up").unwrap_or_else(|| panic!("there is no user {name}"))
}

fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

/// Starts roles, and waits until they are ready.
fn serve(folder: &Path, roles: &[&str], config: &str, log: &str) -> Child {
    let log = fs::File::options().append(true).create(true).open(folder.join(format!("{log}.log"))).expect("a file");
    let mut command = Process::new(muster_binary());
    command.arg("serve").args(roles).arg("--config").arg(folder.join(config));
    command.arg("--data").arg(folder.join("data")).env("XDG_RUNTIME_DIR", folder);
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().expect("muster starts");
    let mut line = String::new();
    BufReader::new(process.stdout.take().expect("it is piped")).read_line(&mut line).expect("text");
    assert!(line.starts_with("muster is ready"), "{roles:?} said `{line}`");
    process
}

fn filter(name: &str, path: String, form: FilterForm) -> FilterSpec {
    FilterSpec { name: name.into(), path, form, revert_on_unknown: false }
}

/// Defines one filter for all submissions: its first attempt does `first`, later ones let the job pass.
fn with_submission_filter(site: &Site, first: &str) {
    let text = format!(
        "#!/bin/sh\necho \"$MUSTER_INVOCATION_ID $MUSTER_ATTEMPT\" >>{}\nif [ $MUSTER_ATTEMPT = 1 ]; then {first}; fi\nexit 0\n",
        site.path("state/calls").display()
    );
    let path = site.program("check", &text);
    let settings = FilterSettings {
        submission: Some(filter("check", path, FilterForm::Exec)),
        submission_timeout_seconds: 3,
        ..FilterSettings::default()
    };
    site.ask(Command::SetParameters { filters: Some(Box::new(settings)), scheduling: None });
}

/// The runners that got attempts of the only call, and the verdicts.
fn story(events: &[Event]) -> (Vec<(u32, &str)>, Vec<&FilterExit>) {
    let invoked = events.iter().filter_map(|event| match event {
        Event::FilterInvoked { attempt, runner, .. } => Some((*attempt, runner.as_str())),
        _ => None,
    });
    let verdicts = events.iter().filter_map(|event| match event {
        Event::FilterVerdict { report, .. } => Some(&report.exit),
        _ => None,
    });
    (invoked.collect(), verdicts.collect())
}

/// The worked example X-9 of HPC Pack (HPC-F-85), with a shorter limit.
#[test]
fn a_call_of_a_runner_that_is_killed_goes_to_another_one_with_the_same_id() {
    let mut site = Site::start();
    site.run("r1");
    with_submission_filter(&site, "exec sleep 60");
    let job = site.submit("true", None);
    site.wait_for_file("state/calls");
    site.kill("r1");
    site.run("r2");
    assert_eq!(site.wait_until_finished(job), Outcome::Completed);
    let events = site.events();
    assert_eq!(story(&events), (vec![(1, "r1"), (2, "r2")], vec![&FilterExit::Code(0)]));
    let calls = site.read("state/calls");
    let calls: Vec<(&str, &str)> = calls.lines().filter_map(|line| line.split_once(' ')).collect();
    let [(first, "1"), (second, "2")] = calls[..] else { panic!("{calls:?}") };
    assert_eq!(first, second);
}

/// The worked example X-9 of HPC Pack (HPC-F-86): the runner was only cut off, and comes back with an answer.
#[test]
fn an_answer_of_a_runner_that_was_cut_off_is_recorded_as_late_and_changes_nothing() {
    let mut site = Site::start();
    site.run("r1");
    with_submission_filter(&site, "sleep 0.5; exit 7");
    let job = site.submit("true", None);
    site.wait_for_file("state/calls");
    site.signal("r1", Signal::SIGSTOP);
    site.run("r2");
    assert_eq!(site.wait_until_finished(job), Outcome::Completed);
    site.signal("r1", Signal::SIGCONT);
    let late = site.wait_for("a late result", |event| matches!(event, Event::FilterLateResult { .. }));
    let Event::FilterLateResult { attempt: 1, runner, exit: FilterExit::Code(7), .. } = late else {
        panic!("{late:?}")
    };
    assert_eq!(runner, "r1");
    assert_eq!(story(&site.events()), (vec![(1, "r1"), (2, "r2")], vec![&FilterExit::Code(0)]));
}

/// HPC-F-07, HPC-F-91: recorded only when a second runner does not have it either.
#[test]
fn a_program_that_no_runner_has_is_put_to_a_second_one_before_it_counts() {
    let mut site = Site::start();
    site.run("r1");
    site.run("r2");
    let missing = site.path("nowhere").display().to_string();
    let submission = Some(filter("check", missing.clone(), FilterForm::Exec));
    let settings = FilterSettings { submission, ..FilterSettings::default() };
    site.ask(Command::SetParameters { filters: Some(Box::new(settings)), scheduling: None });
    let job = site.submit("true", None);
    let refused = format!("[SubmissionFilterNotFound] submission filter 'check' was not found: {missing}");
    assert_eq!(site.wait_until_finished(job), Outcome::Refused(refused));
    let events = site.events();
    let (invoked, verdicts) = story(&events);
    assert_eq!(verdicts, [&FilterExit::NotFound(missing)]);
    let asked: BTreeSet<&str> = invoked.iter().map(|(_, runner)| *runner).collect();
    assert_eq!(asked, BTreeSet::from(["r1", "r2"]));
}

/// HPC-F-87
#[test]
fn without_runners_jobs_wait_and_go_on_when_one_comes() {
    let mut site = Site::start();
    with_submission_filter(&site, "exit 0");
    let job = site.submit("true", None);
    site.wait_for("the alert", |event| matches!(event, Event::FilterRunnersMissing { calls: 1, .. }));
    assert!(!site.events().iter().any(|event| matches!(event, Event::JobFinished { .. })));
    site.run("r1");
    assert_eq!(site.wait_until_finished(job), Outcome::Completed);
}

/// SL-B-01: a runner that is killed while staging is missed long before the call's time limit, which is a day; another
/// one makes the call.
#[test]
fn staging_goes_on_elsewhere_when_its_runner_is_killed() {
    let mut site = Site::start();
    let calls = site.path("state/calls").display().to_string();
    let hangs_once = "[ $1-$MUSTER_ATTEMPT = stage_in-1 ] && exec sleep 600\nexit 0\n";
    let program = site.program("stage", &format!("#!/bin/sh\necho $1 $MUSTER_ATTEMPT >>{calls}\n{hangs_once}"));
    let staging = StagingSettings { program: Some(program), ..StagingSettings::default() };
    let change = Box::new(ClusterChange { staging: Some(staging), ..ClusterChange::default() });
    site.ask(Command::Configure { change, keep_unnamed: true });
    site.run("r1");
    let staged = ComponentStaging { directives: vec!["#DW all".into()], ..ComponentStaging::default() };
    let job = site.submit_job(JobSpec { staging: vec![staged], ..spec("true") }, None);
    site.wait_for_file("state/calls");
    site.kill("r1");
    site.run("r2");
    assert_eq!(site.wait_until_finished(job), Outcome::Completed);
    let is_out = |event: &Event| matches!(event, Event::FilterChainPassed { kind: FilterKind::StageOut, .. });
    site.wait_for("the end of staging out", is_out);
    assert_eq!(site.read("state/calls"), "stage_in 1\nstage_in 2\nstage_out 1\n");
}

/// A filter after the licence counter that rejects a third of the calls with "keep them", so that licences are returned. It
/// draws lots: the number of the pass can be the same modulo 3 whenever a job is asked about.
const REFUSES_SOME: &str = "#!/bin/sh\n[ $2 = revert ] && exit 0\n\
    [ $(($(od -An -N1 -tu1 /dev/urandom) % 3)) = 0 ] && exit 2\nexit 0\n";

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

/// The number of calls handed out, and of finished jobs.
fn progress(events: &[Event]) -> (u64, u64) {
    let count = |is_it: fn(&Event) -> bool| events.iter().filter(|event| is_it(event)).count() as u64;
    let made = count(|event| matches!(event, Event::FilterInvoked { .. }));
    (made, count(|event| matches!(event, Event::JobFinished { .. })))
}

/// HPC-F-80, HPC-F-84, HPC-F-85, HPC-F-86, HPC-F-51: four runners, killed at random, and a filter that keeps licences.
#[test]
fn every_chain_is_complete_and_every_licence_given_back_whatever_runners_are_killed() {
    let jobs = number("MUSTER_FILTER_JOBS").unwrap_or(60);
    let seed = number("MUSTER_FILTER_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("repeat the choices with MUSTER_FILTER_SEED={seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let mut site = Site::start();
    let names = ["r1", "r2", "r3", "r4"];
    names.iter().for_each(|name| site.run(name));
    let licences = with_licences(&site, 8);

    let script = format!("rm -f {}/job-$MUSTER_JOB_ID", licences.display());
    let submitted: Vec<JobId> = (0..jobs).map(|_| site.submit(&script, Some("Licensed"))).collect();
    let mut made = 0_u64;
    loop {
        // A runner is killed after every few calls, so that on any machine kills happen while there is work.
        let next = made + random.random_range(2..12_u64);
        let finished;
        (made, finished) = site.poll("calls and the ends of jobs", || {
            let (made, finished) = progress(&site.events());
            (made >= next || finished >= jobs).then_some((made, finished))
        });
        if finished >= jobs {
            break;
        }
        let name = names[random.random_range(0..names.len())];
        println!("{finished} of {jobs} finished; killing {name}");
        site.kill(name);
        site.run(name);
    }
    let events = site.events();
    for job in &submitted {
        let is_good = |event: &Event| matches!(event, Event::JobFinished { job: of, outcome: Outcome::Completed, .. } if of == job);
        assert!(events.iter().any(is_good), "job {job} did not complete");
    }
    check_chains(&events);
    let left: Vec<_> = fs::read_dir(&licences)
        .expect("the folder of licences")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| name.to_string_lossy().starts_with("job-"))
        .collect();
    assert_eq!(left, Vec::<std::ffi::OsString>::new(), "licences were not given back");
}

/// Defines a template whose jobs need one of this many licences; returns the folder of licences in use.
fn with_licences(site: &Site, count: u32) -> PathBuf {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/filters/licence_counter.py");
    let text = fs::read_to_string(example).expect("the example");
    // Every job of the template needs one, whatever its description says.
    let text = text.replace("if not wants_licence(arguments[2]):", "if False:");
    let licences = site.path("licences");
    fs::create_dir(&licences).expect("a folder");
    fs::write(licences.join("count"), format!("{count}\n")).expect("a file");
    let account = Uid::effective().is_root().then(|| user("nobody").uid);
    chown(&licences, account, None).expect("the folder can be given away");
    let template = TemplateSpec {
        name: "Licensed".into(),
        activation_filters: vec![
            filter("licences", site.program("licence_counter.py", &text), FilterForm::Verbs),
            filter("refuses", site.program("refuses_some", REFUSES_SOME), FilterForm::Verbs),
        ],
        ..TemplateSpec::default()
    };
    site.ask(Command::SetTemplate { template: Box::new(template) });
    let settings = FilterSettings {
        activation_timeout_seconds: 3,
        retry_interval_seconds: 1,
        ordering: ActivationOrdering::Relaxed,
        ..FilterSettings::default()
    };
    site.ask(Command::SetParameters { filters: Some(Box::new(settings)), scheduling: None });
    licences
}

/// The state of a chain.
#[derive(Debug, Default)]
struct Chain {
    verdicts: Vec<CallId>,
    reverted: Vec<u32>,
    passed: bool,
    failed_at: Option<u32>,
    is_rolled_back: bool,
}

/// Each chain ended; each call has one verdict; a chain that failed reverted exactly the filters that had passed,
/// in reverse order.
fn check_chains(events: &[Event]) {
    let mut chains: BTreeMap<u64, Chain> = BTreeMap::new();
    for event in events {
        match event {
            Event::FilterChainStarted { chain, .. } => drop(chains.insert(chain.number, Chain::default())),
            Event::FilterVerdict { call, .. } => of(&mut chains, call.chain).verdicts.push(*call),
            Event::FilterReverted { call, .. } | Event::FilterRevertFailed { call, .. } => {
                of(&mut chains, call.chain).reverted.push(call.position);
            }
            Event::FilterChainPassed { chain, .. } => of(&mut chains, *chain).passed = true,
            Event::FilterChainFailed { chain, position, .. } => of(&mut chains, *chain).failed_at = Some(*position),
            Event::FilterRollbackCompleted { chain, .. } => of(&mut chains, *chain).is_rolled_back = true,
            _ => {}
        }
    }
    assert!(chains.values().any(|chain| !chain.reverted.is_empty()), "nothing was rolled back");
    for (number, chain) in &chains {
        let calls: BTreeSet<&CallId> = chain.verdicts.iter().collect();
        assert_eq!(calls.len(), chain.verdicts.len(), "chain {number}: a call has two verdicts: {chain:?}");
        assert!(chain.verdicts.iter().all(|call| call.action == FilterAction::Filter), "chain {number}: {chain:?}");
        match chain.failed_at {
            None => assert!(chain.passed, "chain {number} did not end: {chain:?}"),
            Some(position) => {
                let expected: Vec<u32> = (0..position).rev().collect();
                assert!(chain.is_rolled_back && chain.reverted == expected, "chain {number}: {chain:?}");
            }
        }
    }
}

fn of(chains: &mut BTreeMap<u64, Chain>, number: u64) -> &mut Chain {
    chains.get_mut(&number).unwrap_or_else(|| panic!("chain {number} did not begin"))
}

/// HPC-F-23
#[test]
fn a_cancel_ends_the_call_of_a_submission_filter() {
    let mut site = Site::start();
    site.run("r1");
    with_submission_filter(&site, &format!("echo $$ >{}; exec sleep 60", site.path("state/pid").display()));
    let job = site.submit("true", None);
    site.wait_for_file("state/pid");
    site.ask(Command::Cancel { jobs: JobSelection::Ids(vec![job]) });
    assert_eq!(site.wait_until_finished(job), Outcome::Cancelled);
    let process = PathBuf::from(format!("/proc/{}", site.read("state/pid").trim()));
    site.poll("the end of the filter", || (!process.exists()).then_some(()));
}
