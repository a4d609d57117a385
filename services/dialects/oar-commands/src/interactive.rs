//! Shells in jobs: `oarsub -I` and `oarsub -C`.

use super::{
    answer::{refused, require_accepted},
    ended::{Ended, Failure, print},
    jobs,
    lower::shell_words,
    site::{Site, seconds},
};
use muster_cli::{
    held::HeldJob,
    interrupts::{Interrupts, is_end},
    stderr_line,
    step::attend::{Attendance, attend},
    terminal::size,
    verdict::wait_until_decided,
};
use muster_client::{Client, Moment, StepAddress};
use muster_oar::{dialect, options::date};
use muster_schemas::{
    CommandId, JobId, Timestamp,
    command::JobSelection,
    job::{JobSpec, JobState},
    resources::IndexSet,
    steps::{StepGroup, StepInput, StepOutput, StepPlace, StepProgram, StepSpec, StepStreams},
    views::{JobsRequest, RunNodeView},
};
use std::io::IsTerminal as _;

/// How long the shell waits for cores of its job: nobody else uses them.
const WAIT_SECONDS: u32 = 60;
/// How often the predicted start is looked at, in seconds. The planner predicts no more often.
const PREDICTION_SECONDS: u32 = 5;
/// The exit status if the job did not start.
const NOT_STARTED: u8 = 11;
/// The exit status if a connection is refused.
const REFUSED: u8 = 20;

/// Submits the job, waits until it has its resources, and stays until the shell ends (OAR-J-08).
pub fn submit(site: &mut Site, spec: JobSpec, shell: &str) -> Ended {
    require_terminal(NOT_STARTED)?;
    let interrupts = Interrupts::watch();
    // If the command ended here, nobody would know the number of the job.
    interrupts.put_off();
    let answer = site.client.submit(CommandId::new_now(), &[spec]);
    let answer = answer.inspect_err(|_| interrupts.end_the_command()).map_err(refused)?;
    let job = *answer.jobs.first().ok_or_else(|| Failure::new("the answer names no job"))?;
    print(&format!("OAR_JOB_ID={job}\n"));
    let mut canceller = site.client.another();
    interrupts.handle(move |signal| {
        if is_end(signal) {
            delete(&mut canceller, job);
        }
    });
    let held = HeldJob::of(&site.client, job);
    let ended = wait(site, job, answer.is_judged).and_then(|()| run(site, job, shell, &interrupts, NOT_STARTED));
    held.give_back(&mut site.client, ended.as_ref().ok().map(|_| 0), "oarsub");
    ended?;
    print(&format!("Disconnected from OAR job {job}.\n"));
    Ok(0)
}

/// Opens a shell in a job that runs (OAR-J-12).
pub fn connect(site: &mut Site, job: JobId, shell: &str) -> Ended {
    require_terminal(REFUSED)?;
    let interrupts = Interrupts::watch();
    run(site, job, shell, &interrupts, REFUSED)?;
    print(&format!("Disconnected from OAR job {job}.\n"));
    Ok(0)
}

fn require_terminal(status: u8) -> Result<(), Failure> {
    match std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        true => Ok(()),
        false => Err(Failure { text: "standard input and output of a shell in a job are a terminal".into(), status }),
    }
}

/// The user does not want to wait any longer.
fn delete(client: &mut Client, job: JobId) -> ! {
    match client.cancel(CommandId::new_now(), &JobsRequest { jobs: JobSelection::Ids(vec![job]) }) {
        Ok(_) => stderr_line!("oarsub: job {job} is being deleted"),
        Err(error) if error.is_refusal() => {}
        Err(error) => stderr_line!("oarsub: job {job} may still wait: {error}"),
    }
    std::process::exit(i32::from(NOT_STARTED))
}

/// Waits until it runs.
fn wait(site: &mut Site, job: JobId, is_judged: bool) -> Result<(), Failure> {
    if is_judged {
        let view = wait_until_decided(&mut site.client, job)?;
        require_accepted(&view)?;
    }
    print("Interactive mode: waiting...\n");
    let mut told = None;
    let view = loop {
        let view = site.client.wait_for_start(job, Some(PREDICTION_SECONDS))?;
        if !matches!(view.state, JobState::Held | JobState::Queued | JobState::Launching) {
            break view;
        }
        if let Some(start) = news(&mut told, view.slot_start.or(view.predicted_start)) {
            print(&format!("Start prediction: {}\n", date::written(seconds(start), &site.zone)));
        }
    };
    match view.outcome {
        None => {
            print("Starting...\n");
            Ok(())
        }
        Some(outcome) => Err(Failure { text: format!("job {job} never ran: {outcome}"), status: NOT_STARTED }),
    }
}

/// The predicted start of a waiting job, if it is another one than was told last (OAR-J-09).
fn news(told: &mut Option<Timestamp>, foreseen: Option<Timestamp>) -> Option<Timestamp> {
    let is_news = foreseen.is_some() && foreseen != *told;
    foreseen.filter(|_| is_news).inspect(|start| *told = Some(*start))
}

/// Runs the shell.
fn run(site: &mut Site, job: JobId, shell: &str, interrupts: &Interrupts, status: u8) -> Result<u8, Failure> {
    let detail = site.client.job(job, Moment::Now)?;
    let nodes = detail.runs.iter().rev().find(|run| run.ended.is_none()).map(|run| run.nodes.as_slice());
    let nodes = nodes.filter(|nodes| !nodes.is_empty());
    let nodes = nodes.ok_or_else(|| Failure { text: format!("job {job} does not run"), status })?;
    let hosts = dialect::hosts(nodes, jobs::is_apart(&detail));
    if hosts.is_none() {
        stderr_line!("oarsub: the job has too many nodes for a variable; OAR_NODEFILE names the first one only");
    }
    print(&format!("Connect to OAR job {job} via the node {}\n", nodes[0].node));
    let spec = step(shell_words(shell), &nodes[0], hosts);
    let answer = site.client.launch_step(CommandId::new_now(), job, &spec, WAIT_SECONDS)?;
    let address = StepAddress { job, run: answer.run, step: answer.step };
    let how = Attendance { interrupts: Some(interrupts), ..Attendance::by("oarsub") };
    attend(site.client.another(), address, &spec, &how).map_err(|failure| Failure::new(failure.to_string()))
}

/// One task with a terminal, which has all the cores of the job on its node.
pub fn step(words: Vec<String>, node: &RunNodeView, hosts: Option<String>) -> StepSpec {
    let rank = IndexSet::first_n(1);
    let group = StepGroup {
        component: node.component,
        places: vec![StepPlace { node: node.node.clone(), ranks: rank.clone(), cores: None }],
        cpus_per_task: u32::try_from(node.cores.len()).unwrap_or(u32::MAX),
        environment: hosts.map(|hosts| (dialect::HOSTS.to_owned(), hosts)).into_iter().collect(),
        programs: vec![StepProgram { ranks: rank, argv: words.clone() }],
        ..StepGroup::default()
    };
    StepSpec {
        name: words.into_iter().next().unwrap_or_default(),
        groups: vec![group],
        streams: StepStreams {
            stdin: StepInput::Nothing,
            stdout: StepOutput::Discarded,
            stderr: None,
            append_output: false,
            terminal: Some(size().unwrap_or_default()),
        },
        overlaps: true,
        ..StepSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-J-09
    #[test]
    fn a_changed_prediction_is_told_once() {
        let at = |second| Some(Timestamp::from_unix_seconds(second));
        let mut told = None;
        let said = [None, at(100), at(100), None, at(100), at(90), at(90), at(100)].map(|one| news(&mut told, one));
        assert_eq!(said, [None, at(100), None, None, None, at(90), None, at(100)]);
    }
}
