//! The job that a submission describes.

use crate::support::{caller, now, rules, settings_of, submission, submission_of, torque};
use muster_pbs::submit::{self, Caller, Program};
use muster_schemas::copies::FileCopy;
use muster_schemas::job::{self, DependencyKind, JobSpec, Occasion, Sink};

fn spec(line: &str) -> JobSpec {
    submission(line).unwrap_or_else(|refusal| panic!("{line}: {refusal}")).spec
}

fn script_of(spec: &JobSpec) -> (&str, &[String]) {
    match &spec.components[0].launch.program {
        job::Program::Script { text, args } => (text, args),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_has_what_its_options_say() {
    let line = "-A phys -q batch -p 7 -h -m abe -M ann@x,bob -N test -a 202703011200 -W \
                depend=afterok:5:6,umask=022 -r n -K 30";
    let spec = spec(line);
    let component = &spec.components[0];
    assert_eq!((spec.name.as_str(), spec.dialect.as_deref(), spec.umask), ("test", Some("pbs"), Some(0o022)));
    assert_eq!((component.account.as_deref(), component.queue.as_deref()), (Some("phys"), Some("batch")));
    assert_eq!((component.priority, component.holds.user), (Some(7), true));
    assert!(component.begin.is_some() && !spec.requeue.on_node_lost && spec.cancelled_if_never_met);
    assert_eq!(component.launch.kill_grace_seconds, Some(30));
    let kinds: Vec<DependencyKind> = component.dependencies.all_of.iter().map(|group| group[0].kind).collect();
    assert_eq!(kinds, [DependencyKind::Succeeded; 2]);
    let [one, two] = &spec.notifications[..] else { panic!("{:?}", spec.notifications) };
    assert_eq!(one.on, [Occasion::Started, Occasion::Ended, Occasion::Failed]);
    assert_eq!((&one.sink, &two.sink), (&Sink::Mail("ann@x".into()), &Sink::Mail("bob".into())));
    assert_eq!(spec.attributes["pbs.Mail_Points"], "abe");
    assert_eq!(spec.attributes["pbs.Submit_arguments"], "-N test job.sh");
    assert_eq!(spec.attributes["pbs.depend"], "afterok:5:6");
}

/// PBS-Q-02: a job runs with a group of its submitter, of which its nodes make sure again.
#[test]
fn a_job_has_a_group_of_its_submitter() {
    assert_eq!(spec("").group, None);
    assert_eq!(spec("-W group_list=phys").group.as_deref(), Some("phys"));
    assert_eq!(spec("-W group_list=wheel@elsewhere,phys").group.as_deref(), Some("phys"));
    assert_eq!(spec("-W group_list=phys").attributes["pbs.group_list"], "phys");
}

/// PBS-Q-02: limits of projects count accounts, so the project of a job is its account, whatever `-A` says; jobs see what `-A`
/// says all the same.
#[test]
fn the_project_of_a_job_is_its_account() {
    let both = spec("-A phys -P ice");
    assert_eq!(both.components[0].account.as_deref(), Some("ice"));
    assert_eq!((&*both.attributes["pbs.Account_Name"], &*both.attributes["pbs.project"]), ("phys", "ice"));
    assert_eq!(both.environment["PBS_ACCOUNT"], "phys");
    assert_eq!(spec("-A phys").environment.get("PBS_ACCOUNT"), None, "its account is told at its launch");
}

#[test]
fn a_job_without_options_has_the_familys_defaults() {
    let spec = spec("");
    assert_eq!((spec.name.as_str(), spec.umask), ("job.sh", Some(0o077)));
    assert!(spec.requeue.on_node_lost && spec.notifications.is_empty() && spec.array.is_none());
    // Processes start in the home folder, as scripts of the family expect.
    assert_eq!(spec.working_directory, "/home/ann");
    assert_eq!(self::spec("-d sub").working_directory, "/data/run 1/sub");
    assert_eq!(self::spec("-m n").notifications, []);
    assert_eq!(self::spec("-m a").notifications[0].sink, Sink::Mail("ann".into()));
    assert_eq!(self::spec("-P proj").components[0].account.as_deref(), Some("proj"));
    assert_eq!(self::spec("-a 202001010000").components[0].begin, None, "a time that has passed is no wait");
}

#[test]
fn a_script_without_interpreter_gets_a_shell() {
    let of = |line: &str, text: &str| submission_of(line, text, &rules()).unwrap().spec;
    assert_eq!(script_of(&of("", "#!/usr/bin/python3\n")).0, "#!/usr/bin/python3\n");
    assert_eq!(script_of(&of("", "true\n")).0, "#!/bin/bash\ntrue\n");
    assert_eq!(
        script_of(&of("-S /bin/zsh -F 'a \"b c\"'", "true\n")),
        ("#!/bin/zsh\ntrue\n", &["a".to_owned(), "b c".to_owned()][..])
    );
    let settings = settings_of("", "", &rules()).unwrap();
    let command = Program::Command(vec!["/bin/echo".into(), "-n".into(), "$x".into()]);
    let spec = submit::lower(&settings, &command, &Caller::default(), &rules(), &now()).unwrap().spec;
    let (text, args) = script_of(&spec);
    assert_eq!((text, args), ("#!/bin/sh\nexec \"$@\"\n", &["/bin/echo".to_owned(), "-n".into(), "$x".into()][..]));
    assert_eq!((spec.name.as_str(), spec.working_directory.as_str()), ("STDIN", "/"));
}

#[test]
fn an_interactive_job_is_an_allocation() {
    let interactive = submission("-I -l select=2 -z").unwrap();
    assert!(interactive.interactive && interactive.silent && !interactive.block);
    assert_eq!(interactive.spec.components[0].launch.program, job::Program::None);
    assert_eq!(interactive.spec.environment["PBS_ENVIRONMENT"], "PBS_INTERACTIVE");
    assert!(submission("-W block=true").unwrap().block);
}

#[test]
fn an_array_has_its_indices_and_its_limit() {
    let array = |line: &str| spec(line).array.unwrap();
    assert_eq!(array("-J 0-9:2%3").indices.to_string(), "0,2,4,6,8");
    assert_eq!(array("-J 0-9:2%3").max_running, Some(3));
    assert_eq!(array("-t 0-9,12%2").indices.len(), 11);
    assert_eq!(array("-W max_run_subjobs=4 -J 0-9").max_running, Some(4));
    assert_eq!(spec("-t 1-3").attributes["pbs.array_indices_submitted"], "1-3");
}

#[test]
fn the_environment_is_the_submitters_only_if_asked_for() {
    let plain = spec("").environment;
    assert_eq!((plain.get("X"), plain.get("PATH")), (None, None));
    assert_eq!((plain["PBS_O_PATH"].as_str(), plain["PBS_O_WORKDIR"].as_str()), ("/bin:/opt/bin", "/data/run 1"));
    let named = ["PBS_O_HOME", "PBS_O_LANG", "PBS_O_LOGNAME", "PBS_O_HOST", "PBS_O_SERVER", "PBS_ENVIRONMENT"];
    let values = ["/home/ann", "C.UTF-8", "ann", "login1.example.org", "pbs1", "PBS_BATCH"];
    assert_eq!(named.map(|name| plain[name].as_str()), values);
    assert_eq!((plain["PBS_O_SYSTEM"].as_str(), plain.get("PBS_O_TZ")), ("Linux", None));
    let mut elsewhere = caller();
    let more = [("MAIL", "/var/mail/ann"), ("SHELL", "/bin/zsh"), ("TZ", "Europe/Zurich")];
    elsewhere.environment.retain(|(name, _)| more.iter().all(|(known, _)| name != known));
    elsewhere.environment.extend(more.map(|(name, value)| (name.into(), value.into())));
    let settings = settings_of("", "true\n", &rules()).unwrap();
    let program = Program::Script { text: "true\n".into(), path: None };
    let told = submit::lower(&settings, &program, &elsewhere, &rules(), &now()).unwrap().spec.environment;
    for (name, value) in more {
        assert_eq!(told[&format!("PBS_O_{name}")], value);
    }
    assert_eq!(plain["MUSTER_PBS_LOGIN"], "1");
    let all = spec("-V -v Y=2,X").environment;
    assert_eq!(["X", "Y", "PATH"].map(|name| all[name].as_str()), ["1", "2", "/bin:/opt/bin"]);
    assert!(!all.contains_key("MUSTER_PBS_LOGIN"));
    // A job submits another one: what is about itself does not go on.
    let mut inside = caller();
    inside.environment.extend([("PBS_JOBID".into(), "1.pbs1".into()), ("MUSTER_PBS_CHUNKS".into(), "9:9:9:9".into())]);
    let settings = settings_of("-V", "true\n", &rules()).unwrap();
    let program = Program::Script { text: "true\n".into(), path: None };
    let spec = submit::lower(&settings, &program, &inside, &rules(), &now()).unwrap().spec;
    assert_eq!((spec.environment.get("PBS_JOBID"), spec.environment["MUSTER_PBS_CHUNKS"].as_str()), (None, "1:1:1:1"));
    assert_eq!(submission_of("", "true\n", &torque()).unwrap().spec.environment["MUSTER_PBS_FLAVOUR"], "torque");
    let limited = self::spec("-l pcput=60,file=1kb,pvmem=2kb").environment;
    assert_eq!(limited["MUSTER_PBS_LIMITS"], "fsize=1024,cpu=60,as=2048");
}

#[test]
fn staged_files_are_copied_by_the_node_of_the_job() {
    let line = "-W stagein=in@fs:/d/in,stageout=out@/d/out";
    let submission = submission_of(line, "true\n", &rules()).unwrap();
    assert_eq!(submission.warnings, [""; 0]);
    let file = |local: &str, host: &str, remote: &str| {
        vec![FileCopy { local: local.into(), host: host.into(), remote: remote.into() }]
    };
    let copies = &submission.spec.copies;
    assert_eq!((&copies.before, &copies.after), (&file("in", "fs", "/d/in"), &file("out", "", "/d/out")));
    assert_eq!(submission.spec.attributes["pbs.stagein"], "in@fs:/d/in");
}
