//! `oarmonitor`: what a running job uses on its nodes, again and again. A step of the job looks at its processes there.

use super::{
    ended::{Ended, Failure, print},
    site::Site,
    words::{self, Known, Takes},
};
use muster_cli::{
    connection::ConnectionOptions,
    step::attend::{Attendance, attend},
};
use muster_client::{Moment, StepAddress};
use muster_oar::text::{decimal, shown};
use muster_schemas::{
    CommandId, JobId,
    resources::IndexSet,
    steps::{StepGroup, StepInput, StepOutput, StepPlace, StepProgram, StepSpec, StepStreams},
    views::RunNodeView,
};

const OPTIONS: [Known; 5] = [
    ('j', "job_id", Takes::Value),
    ('f', "frequency", Takes::Value),
    ('v', "verbose", Takes::Nothing),
    ('h', "help", Takes::Nothing),
    ('V', "version", Takes::Nothing),
];
const USAGE: &str = "usage: oarmonitor [-f SECONDS] -j JOB\n";
/// The seconds between two looks, if none are given.
const FREQUENCY: u32 = 60;
/// How long the step waits for its nodes.
const WAIT_SECONDS: u32 = 60;
/// The exit status if the job has no nodes.
const NO_NODES: u8 = 4;
/// Prints a line for each look: processes, seconds of processor time, and bytes of memory of the job on the node, without
/// those that look. `$1` is the number of seconds between two looks. Processes of the run there are known by their variables.
/// The name of a process may have spaces and parentheses; the values stand behind the last of these.
const LOOK: &str = r#"tick=$(getconf CLK_TCK); page=$(getconf PAGESIZE)
while :; do
  for one in $(grep -lzxF "MUSTER_CONTAINMENT_ID=$MUSTER_CONTAINMENT_ID" /proc/[0-9]*/environ 2>/dev/null); do
    grep -qzxF MUSTER_OAR_MONITOR=1 "$one" 2>/dev/null || sed 's/.*) //' "${one%environ}stat" 2>/dev/null
  done | awk -v tick="$tick" -v page="$page" -v node="$MUSTER_NODE_NAME" -v now="$(date +%s)" '
    { processes++; cpu += $12 + $13; memory += $22 * page }
    END { printf "%d %s %d %.2f %.0f\n", now, node, processes, cpu / tick, memory; fflush() }'
  sleep "$1"
done"#;

/// Runs a command line of `oarmonitor`: it ends with the job, or is interrupted.
pub fn run(connection: &ConnectionOptions, line: &[String]) -> Ended {
    let words = words::read(line, &OPTIONS)?;
    if words.has("help") {
        print(USAGE);
        return Ok(0);
    }
    let Some(word) = words.value("job_id").filter(|_| words.operands.is_empty()) else {
        return Err(Failure { text: USAGE.trim_end().to_owned(), status: 2 });
    };
    let number = |word: &str| {
        let wrong = || Failure::new(format_args!("expected a number from 1 on, found '{}'", shown(word)));
        decimal::<u32>(word).filter(|number| *number > 0).ok_or_else(wrong)
    };
    let job = JobId::job(u64::from(number(word)?));
    let frequency = words.value("frequency").map_or(Ok(FREQUENCY), number)?;
    let mut site = Site::open(connection)?;
    let detail = site.client.job(job, Moment::Now)?;
    let nodes = detail.runs.iter().rev().find(|run| run.ended.is_none()).map(|run| run.nodes.as_slice());
    let nodes = nodes.filter(|nodes| !nodes.is_empty()).ok_or_else(|| Failure {
        text: format!("The job {job} does not have currently assigned hostnames"),
        status: NO_NODES,
    })?;
    let spec = spec(nodes, frequency);
    print("time node processes cpu_seconds memory_bytes\n");
    let answer = site.client.launch_step(CommandId::new_now(), job, &spec, WAIT_SECONDS)?;
    let address = StepAddress { job, run: answer.run, step: answer.step };
    let ended = attend(site.client.another(), address, &spec, &Attendance::by("oarmonitor"));
    // It never ends by itself: the end of the job ends it.
    ended.map(|_| 0).map_err(Failure::new)
}

/// One task on each node.
fn spec(nodes: &[RunNodeView], frequency: u32) -> StepSpec {
    let mut group = StepGroup {
        component: nodes.first().map_or(0, |node| node.component),
        environment: [("MUSTER_OAR_MONITOR".to_owned(), "1".to_owned()), ("LC_ALL".to_owned(), "C".to_owned())].into(),
        ..StepGroup::default()
    };
    for (rank, node) in (0..).zip(nodes.iter().filter(|node| node.component == group.component)) {
        let ranks = IndexSet::from_range(rank, rank);
        let words = ["/bin/sh", "-c", LOOK, "oarmonitor", &frequency.to_string()];
        group.places.push(StepPlace { node: node.node.clone(), ranks: ranks.clone(), cores: None });
        group.programs.push(StepProgram { ranks, argv: words.map(str::to_owned).to_vec() });
    }
    StepSpec {
        name: "oarmonitor".to_owned(),
        groups: vec![group],
        streams: StepStreams {
            stdin: StepInput::Nothing,
            stdout: StepOutput::Client,
            stderr: Some(StepOutput::Client),
            append_output: false,
            terminal: None,
        },
        overlaps: true,
        ..StepSpec::default()
    }
}
