//! `pbsdsh`: runs a program on the nodes of the job that it is called in, as steps of the job.

use super::{
    ended::{Ended, Failure},
    site::{Site, variable},
};
use muster_cli::{
    stderr_line,
    step::attend::{Attendance, attend},
};
use muster_client::{Moment, StepAddress};
use muster_pbs::{
    job_id::PbsJobId,
    queries::{SpreadRequest, pbsdsh},
};
use muster_schemas::{
    CommandId, JobId,
    resources::IndexSet,
    steps::{StepGroup, StepInput, StepOutput, StepPlace, StepProgram, StepSpec, StepStreams},
};

/// How long a copy waits for its node.
const WAIT_SECONDS: u32 = 60;
/// The program sees its place in the node file, which differs from copy to copy. Its words stay words.
const NUMBERED: &str = "set -f; at=$MUSTER_TASK_RANK; shift \"$at\"; PBS_VNODENUM=$1; PBS_NODENUM=$1; \
    while [ \"$1\" != / ]; do shift; done; shift; export PBS_VNODENUM PBS_NODENUM; exec \"$@\"";

/// Runs a command line of `pbsdsh`. Its status is the highest of the copies.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let request = pbsdsh(words)?;
    let job = own_job()?;
    let lines = node_file()?;
    let lines: Vec<&str> = lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let places = request.on.of(&lines)?;
    let rounds: Vec<&[(usize, &str)]> = match request.one_by_one {
        true => places.chunks(1).collect(),
        false => vec![&places],
    };
    let mut status = 0;
    for places in rounds {
        status = status.max(round(site, job, &request, places)?);
    }
    Ok(status)
}

/// The job that it is called in.
fn own_job() -> Result<JobId, Failure> {
    let id =
        variable("PBS_JOBID").ok_or_else(|| Failure::new("it is called outside of a job: PBS_JOBID is not set"))?;
    let id: PbsJobId = id.parse()?;
    id.single().ok_or_else(|| Failure::new(format_args!("PBS_JOBID names several jobs: {id}")))
}

fn node_file() -> Result<String, Failure> {
    let path = variable("PBS_NODEFILE").ok_or_else(|| Failure::new("PBS_NODEFILE is not set"))?;
    std::fs::read_to_string(&path).map_err(|error| Failure::new(format_args!("{path}: {error}")))
}

/// Runs copies at the same time, and returns the highest of their statuses.
fn round(site: &mut Site, job: JobId, request: &SpreadRequest, places: &[(usize, &str)]) -> Result<u8, Failure> {
    let detail = site.client.job(job, Moment::Now)?;
    let nodes = detail.runs.iter().rev().find(|run| run.ended.is_none()).map(|run| run.nodes.as_slice());
    let nodes = nodes.ok_or_else(|| Failure::new(format_args!("job {job} does not run")))?;
    if request.is_verbose {
        for (at, host) in places {
            stderr_line!("pbsdsh: {} on {host} (vnode {at})", request.words[0]);
        }
    }
    let mut group_places: Vec<StepPlace> = Vec::new();
    for (rank, (_, host)) in (0_u32..).zip(places) {
        // The node file may have names in full.
        let is_host = |node: &str| node == *host || host.split('.').next() == Some(node);
        let node = nodes.iter().map(|node| &node.node).find(|node| is_host(node));
        let node = node.ok_or_else(|| Failure::new(format_args!("{host} is no node of job {job}")))?;
        match group_places.iter_mut().find(|place| place.node == *node) {
            Some(place) => drop(place.ranks.insert(rank)),
            None => {
                let ranks = IndexSet::from_range(rank, rank);
                group_places.push(StepPlace { node: node.clone(), ranks, cores: None });
            }
        }
    }
    let spec = spec(request, places, group_places);
    let answer = site.client.launch_step(CommandId::new_now(), job, &spec, WAIT_SECONDS)?;
    let address = StepAddress { job, run: answer.run, step: answer.step };
    let status = attend(site.client.another(), address, &spec, &Attendance::by("pbsdsh"));
    let status = status.map_err(|failure| Failure::new(failure.to_string()))?;
    if request.is_verbose {
        stderr_line!("pbsdsh: {} ended with {status}", request.words[0]);
    }
    Ok(status)
}

fn spec(request: &SpreadRequest, places: &[(usize, &str)], group_places: Vec<StepPlace>) -> StepSpec {
    let mut argv: Vec<String> = ["/bin/sh", "-c", NUMBERED, "pbsdsh"].map(str::to_owned).to_vec();
    argv.extend(places.iter().map(|(at, _)| at.to_string()));
    argv.push("/".to_owned());
    argv.extend(request.words.iter().cloned());
    let ranks = IndexSet::first_n(u32::try_from(places.len()).unwrap_or(u32::MAX));
    let group = StepGroup { places: group_places, programs: vec![StepProgram { ranks, argv }], ..StepGroup::default() };
    let (stdout, stderr) = match request.is_silent {
        true => (StepOutput::Discarded, StepOutput::Discarded),
        false => (StepOutput::Client, StepOutput::Client),
    };
    StepSpec {
        name: request.words[0].clone(),
        groups: vec![group],
        streams: StepStreams {
            stdin: StepInput::Nothing,
            stdout,
            stderr: Some(stderr),
            append_output: false,
            terminal: None,
        },
        overlaps: true,
        ..StepSpec::default()
    }
}
