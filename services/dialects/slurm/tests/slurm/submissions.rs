//! Shared by several tests: submissions from a line of text.

use muster_schemas::{job::JobSpec, resources::Request};
use muster_slurm::{
    environment,
    messages::Refusal,
    moment::Now,
    options::{self, Command, CommandLine},
    request::{Caller, Interactive, Names, Program, Rules, ScriptSource, Settings, Submission, components, lower},
    script,
};

/// A Friday morning in Zurich.
pub fn now() -> Now {
    Now::new(|| "2026-11-20T10:00:00[Europe/Zurich]".parse().unwrap())
}

/// A command line, split at blanks.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

pub fn parse(command: Command, line: &str) -> CommandLine {
    options::parse(command, &words(line)).unwrap()
}

/// A submitter.
pub fn caller() -> Caller {
    Caller {
        names: Names { user: |_| "ann".into(), group: |_| "staff".into() },
        uid: 1000,
        gid: 50,
        directory: "/home/ann".into(),
        environment: vec![("PATH".into(), "/bin".into()), ("SLURM_CONF".into(), "/etc/slurm.conf".into())],
        umask: 0o22,
        host: "login1".into(),
        session: 77,
        submit_line: String::new(),
    }
}

/// The options of each component of a submission.
pub fn settings_of(
    command: Command,
    line: &str,
    text: &str,
    variables: &[(&str, &str)],
) -> Result<Vec<Settings>, Refusal> {
    let line = options::parse(command, &words(line))?;
    let sections = script::options(text)?.sections;
    let lookup = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    components(&sections, &environment::defaults(command, None, lookup), &line, &now())
}

/// The options of each component of `sbatch LINE`, without script and environment.
pub fn settings(line: &str) -> Vec<Settings> {
    settings_of(Command::Sbatch, line, "#!/bin/sh\n", &[]).unwrap()
}

/// The job of a submission by any command, under some rules.
pub fn submit_with(command: Command, line: &str, text: &str, rules: &Rules) -> Result<JobSpec, Refusal> {
    let components = settings_of(command, line, text, &[])?;
    let program = match command {
        Command::Sbatch => Program::Batch {
            text: text.to_owned(),
            args: vec!["arg".to_owned()],
            source: ScriptSource::File("/home/ann/job.sh".to_owned()),
        },
        Command::Salloc => Program::Allocation { by: Interactive::Salloc, words: vec!["bash".to_owned()] },
        Command::Srun => Program::Allocation { by: Interactive::Srun, words: vec!["/bin/hostname".to_owned()] },
    };
    let caller = caller();
    lower(&Submission { components: &components, program, caller: &caller, rules, now: &now() })
}

/// The job of `sbatch LINE` with a script.
pub fn submit_script(line: &str, text: &str) -> Result<JobSpec, Refusal> {
    submit_with(Command::Sbatch, line, text, &Rules::default())
}

/// The job of `sbatch LINE`.
pub fn submit(line: &str) -> JobSpec {
    submit_script(line, "#!/bin/sh\ndate\n").unwrap()
}

/// The refusal of `sbatch LINE`.
pub fn refusal(line: &str) -> Refusal {
    submit_script(line, "#!/bin/sh\ndate\n").unwrap_err()
}

/// The first request of a component.
pub fn request(job: &JobSpec, offset: usize) -> &Request {
    &job.components[offset].alternatives[0].requests[0]
}
