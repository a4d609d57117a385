//! Interactive jobs (`-I`): a shell at this terminal, on the first node of the job.

use crate::{
    ended::{Ended, Failure, print},
    site::Site,
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
use muster_pbs::{environment, job_id::PbsJobId, submit::Submission};
use muster_schemas::{
    CommandId, JobId,
    command::JobSelection,
    resources::IndexSet,
    steps::{StepGroup, StepInput, StepOutput, StepPlace, StepProgram, StepSpec, StepStreams},
    views::{JobsRequest, RunNodeView},
};
use std::io::IsTerminal as _;

/// How long the shell waits for cores of its job: nobody else uses them.
const WAIT_SECONDS: u32 = 60;

/// Submits the job, waits until it has its resources, and stays until the shell ends. The status of the shell is that of
/// the job, and as in the original not that of the command.
pub fn run(site: &mut Site, mut submission: Submission, words: Vec<String>) -> Ended {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let text = "standard input and output must be a terminal for interactive job submission";
        return Err(Failure::new(text));
    }
    if let Some(term) = crate::site::variable("TERM") {
        submission.spec.environment.insert("TERM".to_owned(), term);
    }
    let interrupts = Interrupts::watch();
    // If the command ended here, nobody would know the number of the job.
    interrupts.put_off();
    let answer = site.client.submit(CommandId::new_now(), &[submission.spec]);
    let answer = answer.inspect_err(|_| interrupts.end_the_command())?;
    let job = *answer.jobs.first().ok_or_else(|| Failure::new("the answer names no job"))?;
    let id = site.id_of(job, false);
    let (mut canceller, name) = (site.client.another(), id.clone());
    interrupts.handle(move |signal| {
        if is_end(signal) {
            delete(&mut canceller, job, &name);
        }
    });
    let held = HeldJob::of(&site.client, job);
    let ended = wait(site, job, &id, answer.is_judged).and_then(|()| shell(site, job, words, &interrupts));
    held.give_back(&mut site.client, ended.as_ref().ok().copied(), "qsub");
    ended?;
    print(&format!("\nqsub: job {id} completed\n"));
    Ok(0)
}

/// The user does not want to wait any longer.
fn delete(client: &mut Client, job: JobId, id: &PbsJobId) -> ! {
    match client.cancel(CommandId::new_now(), &JobsRequest { jobs: JobSelection::Ids(vec![job]) }) {
        Ok(_) => stderr_line!("qsub: Job {id} is being deleted"),
        Err(error) if error.is_refusal() => {}
        Err(error) => stderr_line!("qsub: job {id} may still wait: {error}"),
    }
    std::process::exit(1)
}

/// Waits until it runs.
fn wait(site: &mut Site, job: JobId, id: &PbsJobId, is_judged: bool) -> Result<(), Failure> {
    if is_judged {
        let view = wait_until_decided(&mut site.client, job)?;
        if let Some(why) = super::rejection::rejection(&view) {
            return Err(Failure { text: format!("{why} {id}"), status: 188 });
        }
    }
    print(&format!("qsub: waiting for job {id} to start\n"));
    let view = site.client.wait_for_start(job, None)?;
    match view.outcome {
        None => {
            print(&format!("qsub: job {id} ready\n\n"));
            Ok(())
        }
        Some(outcome) => Err(Failure::new(format_args!("job {id} never ran: {outcome}"))),
    }
}

/// Runs the shell, and returns its status.
fn shell(site: &mut Site, job: JobId, words: Vec<String>, interrupts: &Interrupts) -> Result<u8, Failure> {
    let detail = site.client.job(job, Moment::Now)?;
    let nodes = detail.runs.iter().rev().find(|run| run.ended.is_none()).map(|run| run.nodes.as_slice());
    let nodes = nodes.filter(|nodes| !nodes.is_empty());
    let nodes = nodes.ok_or_else(|| Failure::new(format_args!("job {job} is over already")))?;
    let hosts = environment::hosts(nodes, &detail.spec.environment);
    if hosts.is_none() {
        stderr_line!("qsub: warning: the job has too many nodes for a variable; PBS_NODEFILE names the first one only");
    }
    let spec = step(words, &nodes[0], hosts);
    let answer = site.client.launch_step(CommandId::new_now(), job, &spec, WAIT_SECONDS)?;
    let address = StepAddress { job, run: answer.run, step: answer.step };
    let how = Attendance { interrupts: Some(interrupts), ..Attendance::by("qsub") };
    attend(site.client.another(), address, &spec, &how).map_err(|failure| Failure::new(failure.to_string()))
}

/// One task with a terminal, which has all the cores of the job on its node. The programs that it starts share them, and
/// find all nodes of the job in its node file.
fn step(words: Vec<String>, node: &RunNodeView, hosts: Option<String>) -> StepSpec {
    let rank = IndexSet::first_n(1);
    let group = StepGroup {
        component: node.component,
        places: vec![StepPlace { node: node.node.clone(), ranks: rank.clone(), cores: None }],
        cpus_per_task: u32::try_from(node.cores.len()).unwrap_or(u32::MAX),
        environment: hosts.map(|hosts| (environment::HOSTS.to_owned(), hosts)).into_iter().collect(),
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
