//! `muster job ...`

use crate::{
    cells,
    cli::{ConnectionOptions, FilterOptions, HoldKinds, JobCommand, ModifyOptions, SelectionOptions},
    commands::{events, hpcpack, submit},
    exit::{CommandResult, Failure},
    output_files::{self, Stream},
    show,
    table::{Table, left, right},
    terminal::{self, waiting},
    values::{compress_hosts, format_duration, format_size, parse_hosts, signal_name},
};
use jiff::tz::TimeZone;
use muster_cli::stderr_line;
use muster_client::Client;
use muster_schemas::{
    CommandId, JobId, Timestamp,
    command::{JobFilter, JobSelection},
    event::JobChange,
    job::{Dependency, DependencyKind, Holds, Program},
    views::{
        CommandAnswer, HoldRequest, JobDetail, JobsRequest, ModifyRequest, ReleaseRequest, RequeueRequest, RunView,
        ShrinkRequest, SignalRequest,
    },
};

/// Shows or changes jobs.
pub fn run(connection: &ConnectionOptions, command: JobCommand) -> CommandResult {
    let client = &mut connection.client()?;
    let id = CommandId::new_now();
    let answer = match command {
        JobCommand::Show { query, id } => {
            let detail = waiting("reading the job", || client.job(id, query.moment()))?;
            if query.json {
                show::print_json(&detail)?;
            } else {
                print_detail(&detail, query.at.unwrap_or_else(Timestamp::now))?;
            }
            return Ok(0);
        }
        JobCommand::Hpcpack(verb) => return hpcpack::job(connection, &verb.words()),
        JobCommand::Events { json, id } => return events::of_job(client, id, json),
        JobCommand::Wait { ids } => return submit::wait_for_all(connection, client, &ids),
        JobCommand::Cancel(jobs) => client.cancel(id, &request(jobs))?,
        JobCommand::Suspend(jobs) => client.suspend(id, &request(jobs))?,
        JobCommand::Resume(jobs) => client.resume(id, &request(jobs))?,
        JobCommand::Hold { kinds, reason, jobs } => {
            client.hold(id, &HoldRequest { jobs: selection(jobs), holds: holds(kinds), reason })?
        }
        JobCommand::Release { kinds, jobs } => {
            client.release(id, &ReleaseRequest { jobs: selection(jobs), holds: holds(kinds) })?
        }
        JobCommand::Requeue { hold, jobs } => {
            client.requeue(id, &RequeueRequest { jobs: selection(jobs), hold, delay_seconds: 0 })?
        }
        JobCommand::Signal { signal, jobs } => client.signal(id, &SignalRequest { jobs: selection(jobs), signal })?,
        JobCommand::Shrink { nodes, keep, component, id: job } => {
            let keep = keep.map_or_else(|| Ok(Vec::new()), |list| parse_hosts(&list)).map_err(Failure::usage)?;
            client.shrink(id, job, &ShrinkRequest { nodes, keep, component })?;
            return Ok(0);
        }
        JobCommand::Modify(options) => modify(client, id, *options)?,
    };
    if answer.jobs.is_empty() {
        stderr_line!("muster: no job matches");
    }
    Ok(0)
}

fn request(jobs: SelectionOptions) -> JobsRequest {
    JobsRequest { jobs: selection(jobs) }
}

fn selection(options: SelectionOptions) -> JobSelection {
    let FilterOptions { user, queue, account, name, state } = options.filter;
    if options.matching {
        JobSelection::Matching(JobFilter { user, queue, account, name, states: state })
    } else {
        JobSelection::Ids(options.ids)
    }
}

fn holds(kinds: HoldKinds) -> Holds {
    let HoldKinds { operator, system } = kinds;
    Holds { user: !operator && !system, operator, system }
}

fn modify(client: &mut Client, id: CommandId, options: ModifyOptions) -> Result<CommandAnswer, Failure> {
    let change = JobChange {
        name: options.set_name,
        queue: options.set_queue,
        account: options.set_account,
        priority: options.priority,
        begin: options.begin,
        walltime_seconds: options.time,
        max_running: options.max_running,
        component: options.component,
        ..JobChange::default()
    };
    if change == (JobChange { component: change.component, ..JobChange::default() }) {
        return Err(Failure::usage("nothing to change: name at least one option such as --priority"));
    }
    Ok(client.modify(id, &ModifyRequest { jobs: selection(options.jobs), change })?)
}

fn print_detail(detail: &JobDetail, now: Timestamp) -> Result<(), Failure> {
    let JobDetail { job, spec, .. } = detail;
    let time = |time: Option<Timestamp>| time.map(show::local_time);
    let component = spec.components.first();
    let launch = component.map(|component| &component.launch);
    let state = match &job.outcome {
        Some(outcome) => outcome.to_string(),
        None => job.state.word().to_owned(),
    };
    let elapsed = cells::elapsed_seconds(job, now).map(format_duration);
    let size = [(u64::from(job.node_count), "node"), (job.tasks.into(), "task"), (job.cores, "CPU")];
    let size = size.map(|(count, thing)| show::counted(count, thing)).join(", ");
    let limit = job.walltime_seconds.map(|seconds| format_duration(i64::try_from(seconds).unwrap_or(i64::MAX)));
    let dependencies = component.map(|component| dependencies_text(&component.dependencies.all_of));
    show::print_fields(&[
        ("Job", Some(cells::job_id_text(job))),
        ("Name", Some(job.name.clone())),
        ("Owner", Some(job.owner.clone())),
        ("Account", job.account.clone()),
        ("Queue", Some(job.queue.clone())),
        ("Priority", Some(job.priority.to_string())),
        ("Dialect", job.dialect.clone()),
        ("State", Some(state)),
        ("Reason", job.reason.as_ref().map(|reason| show::with_local_times(&reason.text, &TimeZone::system()))),
        ("Message", job.filtering.as_ref().and_then(|filtering| filtering.message.clone())),
        ("Tasks", job.array.as_ref().map(cells::array_text)),
        ("Submitted", time(Some(job.submitted))),
        ("Not before", time(job.begin)),
        ("Reservation", job.reservation.clone()),
        ("Promised", time(job.slot_start)),
        ("Expected", time(job.predicted_start)),
        ("Started", time(job.started)),
        ("Ended", time(job.ended)),
        ("Run time", elapsed),
        ("Walltime", limit),
        ("Size", Some(size)),
        ("Nodes", (!job.nodes.is_empty()).then(|| compress_hosts(&job.nodes))),
        ("After", dependencies.filter(|text| !text.is_empty())),
        ("Command", launch.and_then(|launch| program_text(&launch.program))),
        ("Container", launch.and_then(|launch| launch.container.clone())),
        ("Directory", Some(spec.working_directory.clone()).filter(|directory| !directory.is_empty())),
        ("Output", output_files::path(detail, Stream::Output)),
        ("Errors", output_files::path(detail, Stream::Errors)),
        (
            "Checkpoint",
            spec.checkpoint.map(|c| format!("{} {} s before the end", signal_name(c.signal), c.seconds_before_end)),
        ),
        ("Comment", spec.attributes.get("muster.comment").cloned()),
    ])?;
    if !detail.runs.is_empty() {
        println!();
        terminal::print_table(&runs_table(&detail.runs))?;
    }
    Ok(())
}

fn program_text(program: &Program) -> Option<String> {
    match program {
        Program::None => None,
        Program::Script { args, .. } if args.is_empty() => Some("a script".into()),
        Program::Script { args, .. } => Some(format!("a script with {}", args.join(" "))),
        Program::Tasks { argv } => Some(argv.join(" ")),
    }
}

fn dependencies_text(all_of: &[Vec<Dependency>]) -> String {
    let groups: Vec<String> =
        all_of.iter().map(|any_of| any_of.iter().map(dependency_text).collect::<Vec<_>>().join(" or ")).collect();
    groups.join(", ")
}

fn dependency_text(dependency: &Dependency) -> String {
    let job = dependency.job.map(|job: JobId| job.to_string()).unwrap_or_default();
    let text = match dependency.kind {
        DependencyKind::Started => format!("job {job} has started"),
        DependencyKind::Ended => format!("job {job} has ended"),
        DependencyKind::Succeeded => format!("job {job} has ended well"),
        DependencyKind::Failed => format!("job {job} has failed"),
        DependencyKind::NotFailed => format!("job {job} has ended, and its program has not failed"),
        DependencyKind::SameIndexSucceeded => format!("the same task of {job} has ended well"),
        DependencyKind::Singleton => "no earlier job of this name".into(),
        DependencyKind::BeforeStarted
        | DependencyKind::BeforeEnded
        | DependencyKind::BeforeSucceeded
        | DependencyKind::BeforeFailed => format!("job {job} waits for this one"),
        DependencyKind::Count(count) => format!("{count} jobs have let it go"),
        DependencyKind::Running => format!("job {job} runs"),
    };
    match dependency.delay_seconds {
        0 => text,
        delay => format!("{text} + {}", format_duration(i64::from(delay))),
    }
}

fn runs_table(runs: &[RunView]) -> Table {
    let mut table = Table::new([
        right("RUN"),
        left("STARTED"),
        left("ENDED"),
        left("OUTCOME"),
        right("CPU TIME"),
        right("MEMORY"),
        left("NODES"),
    ]);
    for run in runs {
        let nodes: Vec<String> = run.nodes.iter().map(|part| format!("{}({})", part.node, part.cores)).collect();
        let ended = run.ended.is_some();
        table.push([
            run.run.to_string().into(),
            run.started.map(show::local_time).unwrap_or_default().into(),
            run.ended.map(show::local_time).unwrap_or_default().into(),
            run.outcome.as_ref().map(ToString::to_string).unwrap_or_default().into(),
            cell(ended, || format!("{:.2} s", run.usage.cpu_time_micros as f64 / 1e6)),
            cell(ended, || format_size(run.usage.peak_memory_bytes)),
            nodes.join(" ").into(),
        ]);
    }
    table
}

fn cell(shown: bool, text: impl FnOnce() -> String) -> crate::table::Cell {
    if shown { text().into() } else { "".into() }
}
