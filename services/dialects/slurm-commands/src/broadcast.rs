//! `sbcast` (SL-M-12), and `srun --bcast` (SL-M-13): copies a file to nodes of a job, with a step whose tasks write
//! what they read.

use super::{
    Ended,
    allocation::PATIENCE,
    site::{Site, os_text, surrounding_job},
    wanted,
};
use muster_cli::{caller::read_umask, step::input::pass_on};
use muster_client::{Client, ClientError, Moment, OutputReader, StepAddress};
use muster_schemas::{
    CommandId, JobId,
    job::{ExitStatus, JobState},
    resources::IndexSet,
    step_io::Content,
    steps::{StepGroup, StepInput, StepOutput, StepPlace, StepProgram, StepSpec, StepStreams},
    views::{JobView, RunNodeView},
};
use muster_slurm::{
    job_id::{BroadcastTarget, IdExpression, JobPart, StepName},
    queries::{
        Failure,
        copy::{Sbcast, sbcast},
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    os::unix::fs::MetadataExt as _,
    thread,
};

/// Refuses an existing file. It is a separate step: where nodes share the folder, later tasks would find the file that
/// the first one wrote.
const CHECK: &str = r#"to="$1"
if [ -d "$to" ]; then to="${to%/}/$4"; fi
if [ -e "$to" ]; then echo "$to: File exists" >&2; exit 1; fi
"#;

/// Writes what it reads, all or nothing, and never through a link that somebody put there.
const WRITE: &str = r#"set -eC
to="$1"
if [ -d "$to" ]; then to="${to%/}/$4"; fi
part="$to.sbcast.$MUSTER_NODE_NAME.$$"
: > "$part"
trap 'rm -f -- "$part"' EXIT
cat >> "$part"
chmod -- "$2" "$part"
if [ -n "$3" ]; then touch -d "@$3" -- "$part"; fi
mv -fT -- "$part" "$to"
"#;

/// Runs a command line of `sbcast`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let Some(wish) = wanted(site, sbcast(words)?) else { return Ok(0) };
    let (job, nodes) = target(site, &wish)?;
    let copy = Copy::of(&wish, site.tool)?;
    let mut client = site.client.another().with_patience(PATIENCE);
    copy.send(&mut client, job, &nodes)?;
    Ok(0)
}

/// The job, and its nodes that get the file.
fn target(site: &mut Site, wish: &Sbcast) -> Result<(JobId, Vec<RunNodeView>), Failure> {
    let own = || IdExpression::parse(&surrounding_job()?.to_string());
    let id = wish
        .job
        .clone()
        .or_else(own)
        .ok_or_else(|| Failure::error(site.tool, "Command only valid from within a Slurm job"))?;
    let shown = id.job.to_string();
    let invalid = || Failure::error("sbcast", format_args!("Invalid job id specified: {shown}"));
    let view = site.named(std::slice::from_ref(&id))?.into_iter().next().ok_or_else(invalid)?;
    let detail = site.client.job(view.id, Moment::Now).map_err(|error| site.failure(&error))?;
    let run = detail.runs.iter().rev().find(|run| run.ended.is_none()).ok_or_else(invalid)?;
    let leader = view.id.number;
    let is_in = |component: u32| move |node: &&RunNodeView| node.component == component;
    let mut nodes: Vec<RunNodeView> = match BroadcastTarget::of(&id, view.components > 1) {
        // A task of an array has one component.
        Some(BroadcastTarget::Job(_)) | None if view.id.index.is_some() => run.nodes.clone(),
        Some(BroadcastTarget::Job(number)) if number == leader => run.nodes.clone(),
        Some(BroadcastTarget::Job(number)) => {
            let component = u32::try_from(number - leader).unwrap_or(u32::MAX);
            run.nodes.iter().filter(is_in(component)).cloned().collect()
        }
        Some(BroadcastTarget::Component { offset, .. }) => run.nodes.iter().filter(is_in(offset)).cloned().collect(),
        Some(BroadcastTarget::Step { step: StepName::Number(number), .. }) => {
            let steps = site.client.steps(view.id, Moment::Now).map_err(|error| site.failure(&error))?.steps;
            let step = steps.iter().rev().find(|step| u64::from(step.step.0) == u64::from(number) + 1);
            let parts = step.iter().flat_map(|step| &step.nodes);
            let of_step: BTreeSet<(&String, u32)> = parts.map(|node| (&node.node, node.component)).collect();
            run.nodes.iter().filter(|node| of_step.contains(&(&node.node, node.component))).cloned().collect()
        }
        Some(BroadcastTarget::Step { .. }) => run.nodes.iter().take(1).cloned().collect(),
        None if matches!(id.job, JobPart::Tasks { .. }) => run.nodes.clone(),
        None => Vec::new(),
    };
    // A component that was ended alone takes no steps, but the others still get the file (SL-M-02).
    nodes.retain(|node| node.exit.is_none() && !is_ending(&detail.job, node.component));
    if nodes.is_empty() { Err(invalid()) } else { Ok((view.id, nodes)) }
}

/// Whether a component has ended or is ending, alone or with the others.
fn is_ending(job: &JobView, component: u32) -> bool {
    let component = usize::try_from(component).ok().and_then(|at| job.by_component.get(at));
    component.is_some_and(|component| matches!(component.state, JobState::Finishing | JobState::Finished))
}

/// A file to copy.
pub struct Copy {
    tool: &'static str,
    source: String,
    destination: String,
    directory: String,
    mode: u32,
    /// The time of its last change, if that is kept.
    changed_seconds: Option<i64>,
    force: bool,
}

impl Copy {
    fn of(wish: &Sbcast, tool: &'static str) -> Result<Self, Failure> {
        Self::new(tool, &wish.source, &wish.destination, wish.preserve, wish.force, read_umask())
    }

    /// Reads a file to copy. In the destination `%N` is the name of the node.
    pub fn new(
        tool: &'static str,
        source: &str,
        destination: &str,
        preserve: bool,
        force: bool,
        umask: u32,
    ) -> Result<Self, Failure> {
        let failed =
            |error: std::io::Error| Failure::error(tool, format_args!("Can't open `{source}`: {}", os_text(&error)));
        let metadata = File::open(source).and_then(|file| file.metadata()).map_err(failed)?;
        if !metadata.is_file() {
            return Err(Failure::error(tool, format_args!("`{source}` is not a regular file")));
        }
        let directory = std::env::current_dir().map_err(failed)?.to_string_lossy().into_owned();
        let mode = metadata.mode() & 0o7777;
        Ok(Self {
            tool,
            source: source.to_owned(),
            destination: destination.to_owned(),
            directory,
            // Without -p the file is created like any other: with the umask.
            mode: if preserve { mode } else { mode & !umask },
            changed_seconds: preserve.then(|| metadata.mtime()),
            force,
        })
    }

    /// Copies it to each of these nodes of a job, only once to a node that components share.
    pub fn send(&self, client: &mut Client, job: JobId, nodes: &[RunNodeView]) -> Result<(), Failure> {
        let mut seen = BTreeSet::new();
        let nodes: Vec<RunNodeView> = nodes.iter().filter(|node| seen.insert(&node.node)).cloned().collect();
        let nodes = nodes.as_slice();
        if !self.force {
            self.step(client, job, nodes, CHECK, None)?;
        }
        let file = File::open(&self.source);
        let file = file.map_err(|error| {
            Failure::error(self.tool, format_args!("Can't open `{}`: {}", self.source, os_text(&error)))
        })?;
        self.step(client, job, nodes, WRITE, Some(file))
    }

    /// Runs a script on each node, and prints its output if it fails.
    fn step(
        &self,
        client: &mut Client,
        job: JobId,
        nodes: &[RunNodeView],
        script: &str,
        file: Option<File>,
    ) -> Result<(), Failure> {
        let failed = |error: ClientError| Failure::error(self.tool, error);
        let spec = self.spec(nodes, script, file.is_some());
        let step = client.launch_step(CommandId::new_now(), job, &spec, 60).map_err(failed)?;
        let address = StepAddress { job, run: step.run, step: step.step };
        if let Some(file) = file {
            let feeder = client.another().with_patience(PATIENCE);
            thread::spawn(move || pass_on(feeder, address, None, file));
        }
        let mut said: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        let mut well = IndexSet::new();
        let mut reader = OutputReader::of(address);
        while reader
            .read(client, |frame| match frame.content {
                Content::Error(bytes) => said.entry(frame.rank).or_default().extend_from_slice(bytes),
                Content::Ended(ExitStatus::Code(0)) => drop(well.insert(frame.rank)),
                Content::Output(_) | Content::Ended(_) => {}
            })
            .map_err(failed)?
        {}
        let bad = (0..).zip(nodes).filter(|(rank, _)| !well.contains(*rank));
        let told = bad.map(|(rank, node)| {
            let text = said.get(&rank).map(|bytes| String::from_utf8_lossy(bytes).trim_end().to_owned());
            format!("{}: error: {}: {}", self.tool, node.node, text.as_deref().unwrap_or("the copy was not made"))
        });
        let told: Vec<String> = told.collect();
        if told.is_empty() { Ok(()) } else { Err(Failure { lines: told, code: 1 }) }
    }

    fn spec(&self, nodes: &[RunNodeView], script: &str, has_input: bool) -> StepSpec {
        let mut groups: Vec<StepGroup> = Vec::new();
        for (rank, node) in (0..).zip(nodes) {
            let ranks = IndexSet::from_range(rank, rank);
            let destination = self.destination.replace("%N", &node.node);
            let seconds = self.changed_seconds.map(|seconds| seconds.to_string()).unwrap_or_default();
            let mode = format!("{:o}", self.mode);
            let words = ["/bin/sh", "-c", script, self.tool, &destination, &mode, &seconds, file_name(&self.source)];
            let argv = words.iter().map(|word| (*word).to_owned()).collect();
            let place = StepPlace { node: node.node.clone(), ranks: ranks.clone(), cores: Some(1) };
            let program = StepProgram { ranks, argv };
            match groups.last_mut().filter(|group| group.component == node.component) {
                Some(group) => {
                    group.places.push(place);
                    group.programs.push(program);
                }
                None => groups.push(StepGroup {
                    component: node.component,
                    places: vec![place],
                    programs: vec![program],
                    ..StepGroup::default()
                }),
            }
        }
        let stdin = if has_input { StepInput::AllTasks } else { StepInput::Nothing };
        StepSpec {
            name: self.tool.to_owned(),
            working_directory: Some(self.directory.clone()),
            groups,
            streams: StepStreams { stdin, stderr: Some(StepOutput::Client), ..StepStreams::default() },
            overlaps: true,
            // A check is short, and each node must report its result.
            ends_on_failure: has_input,
            dialect: Some(muster_slurm::NAME.to_owned()),
            ..StepSpec::default()
        }
    }
}

/// The path to which `--bcast` copies a program: the given path, or a name in the given folder or else in the working
/// directory (SL-M-13).
pub fn destination(given: &str, directory: &str, job: JobId, program: &str) -> String {
    let name = format!("slurm_bcast_{}_{}", job.number, file_name(program));
    match given {
        "" => format!("{directory}/{name}"),
        given => {
            let name = if given.ends_with('/') { name.as_str() } else { "" };
            // The program is started by this path, so it must not look like a name to search for.
            let folder = if given.starts_with('/') { String::new() } else { format!("{directory}/") };
            format!("{folder}{given}{name}")
        }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
