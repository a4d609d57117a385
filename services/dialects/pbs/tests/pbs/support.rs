//! Shared by several tests: submissions from a line of text.

use jiff::Zoned;
use muster_pbs::{
    flavour::Flavour,
    refusal::Refusal,
    script,
    submit::{self, Caller, Program, Reading, Rules, Settings, Submission},
};
use muster_schemas::resources::{Alternative, Request};

/// A Friday morning in Zurich.
pub fn now() -> Zoned {
    "2026-11-20T10:00:00[Europe/Zurich]".parse().unwrap()
}

/// A submitter.
pub fn caller() -> Caller {
    let variables = [("HOME", "/home/ann"), ("PATH", "/bin:/opt/bin"), ("LANG", "C.UTF-8"), ("LOGNAME", "ann"), ("X", "1")];
    Caller {
        user: "ann".into(),
        group: "staff".into(),
        home: "/home/ann".into(),
        shell: "/bin/bash".into(),
        directory: "/data/run 1".into(),
        environment: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        host: "login1.example.org".into(),
        arguments: "-N test job.sh".into(),
        is_folder: |path| path == "/data/run 1/logs",
    }
}

pub fn rules() -> Rules {
    Rules { server: "pbs1".into(), ..Rules::default() }
}

pub fn torque() -> Rules {
    Rules { flavour: Flavour::Torque, ..rules() }
}

/// The words of a line, as a shell splits them.
pub fn words(line: &str) -> Vec<String> {
    script::words(line, 0).unwrap()
}

/// The options of `qsub LINE` with a script.
pub fn settings_of(line: &str, text: &str, rules: &Rules) -> Result<Settings, Refusal> {
    let line = submit::line(&words(line))?;
    let prefix = script::prefix(line.value('C'), None);
    let now = now();
    let reading = Reading { now: &now, flavour: rules.flavour, array_limit: 10_001 };
    Settings::read(&[], Some(text), prefix, &line.options, &reading)
}

/// The job of `qsub LINE job.sh` with a script, under some rules.
pub fn submission_of(line: &str, text: &str, rules: &Rules) -> Result<Submission, Refusal> {
    let settings = settings_of(line, text, rules)?;
    let program = Program::Script { text: text.to_owned(), path: Some("jobs/job.sh".into()) };
    submit::lower(&settings, &program, &caller(), rules, &now())
}

pub fn submission(line: &str) -> Result<Submission, Refusal> {
    submission_of(line, "#!/bin/sh\ntrue\n", &rules())
}

/// The message of a refusal.
pub fn refused(line: &str) -> String {
    match submission(line) {
        Ok(accepted) => panic!("{line} is accepted: {accepted:?}"),
        Err(refusal) => refusal.to_string(),
    }
}

pub fn alternative(line: &str) -> Alternative {
    let submission = submission(line).unwrap_or_else(|refusal| panic!("{line}: {refusal}"));
    submission.spec.components.into_iter().next().unwrap().alternatives.into_iter().next().unwrap()
}

/// The only request of a line.
pub fn request(line: &str) -> Request {
    let mut requests = alternative(line).requests;
    assert_eq!(requests.len(), 1, "{line}: {requests:?}");
    requests.pop().unwrap()
}
