//! `muster plan`: running jobs, promised and foreseen starts, and the accuracy of past predictions.

use super::explain::node_text;
use crate::{
    cli::{ConnectionOptions, PlanOptions},
    exit::{CommandResult, Failure},
    show::{self, counted, local_time},
    table::{Table, left, right},
    terminal::{self, waiting},
    values::{compress_hosts, format_duration},
    whole_file::WholeFile,
};
use muster_planner::{chart, timetable::gantt};
use muster_schemas::{
    Timestamp,
    plan::ReservedNodes,
    views::{NodePromise, PlanAccuracy, PredictionErrors, Timetable},
};

/// For this many nodes the share taken is shown; for the others only the names.
const SHOWN_NODES: usize = 4;
const A_DAY_SECONDS: i64 = 86_400;

/// Shows the plan.
pub fn plan(connection: &ConnectionOptions, options: &PlanOptions) -> CommandResult {
    if options.accuracy {
        return accuracy(connection, options);
    }
    let moment = options.query.moment();
    let svg = options.svg.as_deref().map(WholeFile::create).transpose()?;
    let mut client = connection.client()?;
    let table = waiting("planning", || client.timetable(options.queue.as_deref(), options.limit, moment))?;
    if let Some(file) = svg {
        let nodes: Vec<String> = client.nodes(moment)?.nodes.into_iter().map(|node| node.spec.name).collect();
        file.write(chart::gantt(&gantt(&table, &nodes)).as_bytes())?;
    } else if options.query.json {
        show::print_json(&table)?;
    } else {
        print(&table)?;
    }
    Ok(0)
}

fn print(plan: &Timetable) -> Result<(), Failure> {
    println!("Plan of {} under policy {}", local_time(plan.time), plan.policy);
    section("Running", &running(plan))?;
    section("Waiting, in order", &waits(plan))?;
    if plan.more_waiting > 0 {
        println!("and {} more", counted(plan.more_waiting, "job"));
    }
    section("Reservations", &reservations(plan))?;
    section("Closures", &closures(plan))?;
    if !plan.unavailable_nodes.is_empty() {
        println!("\nTake no jobs: {}", compress_hosts(&plan.unavailable_nodes));
    }
    if !plan.sleeping.is_empty() {
        let names: Vec<String> = plan.sleeping.iter().map(|sleep| sleep.node.clone()).collect();
        println!("\nAsleep, or on their way: {}", compress_hosts(&names));
    }
    Ok(())
}

fn section(title: &str, table: &Table) -> std::io::Result<()> {
    if table.is_empty() {
        return Ok(());
    }
    println!("\n{title}");
    terminal::print_table(table)
}

fn running(plan: &Timetable) -> Table {
    let mut table =
        Table::new([right("JOB"), left("USER"), left("QUEUE"), left("START"), left("EXPECTED END"), left("NODES")]);
    for run in &plan.running {
        table.push([
            run.job.to_string().into(),
            (&run.user).into(),
            (&run.queue).into(),
            local_time(run.start).into(),
            run.expected_end.map_or_else(|| "not known".to_owned(), local_time).into(),
            nodes_text(&run.nodes).into(),
        ]);
    }
    table
}

fn waits(plan: &Timetable) -> Table {
    let mut table = Table::new([
        right("#"),
        right("JOB"),
        left("USER"),
        left("QUEUE"),
        right("WALLTIME"),
        left("EXPECTED START"),
        left("RESERVED"),
        left("REASON"),
    ]);
    for wait in &plan.waiting {
        let walltime = wait.walltime_seconds.map(|seconds| format_duration(i64::try_from(seconds).unwrap_or(i64::MAX)));
        table.push([
            wait.place.to_string().into(),
            wait.job.to_string().into(),
            (&wait.user).into(),
            (&wait.queue).into(),
            walltime.unwrap_or_default().into(),
            wait.expected_start.map(local_time).unwrap_or_default().into(),
            nodes_text(&wait.nodes).into(),
            wait.reason.as_ref().map_or("starts now", |reason| &reason.text).to_owned().into(),
        ]);
    }
    table
}

fn reservations(plan: &Timetable) -> Table {
    let mut table = Table::new([left("NAME"), left("START"), left("END"), left("NODES")]);
    for reservation in &plan.reservations {
        let nodes = match &reservation.asked {
            ReservedNodes::Count { count, .. } if reservation.nodes.is_empty() => {
                format!("{}, not chosen yet", counted(u64::from(*count), "node"))
            }
            _ => compress_hosts(&reservation.nodes),
        };
        let (start, end) = (local_time(reservation.start), local_time(reservation.end));
        table.push([(&reservation.name).into(), start.into(), end.into(), nodes.into()]);
    }
    table
}

fn closures(plan: &Timetable) -> Table {
    let mut table = Table::new([left("NODE"), left("FROM"), left("UNTIL"), left("REASON")]);
    for closure in &plan.closures {
        table.push([
            (&closure.node).into(),
            local_time(closure.from).into(),
            closure.until.map_or_else(|| "not known".to_owned(), local_time).into(),
            (&closure.reason).into(),
        ]);
    }
    table
}

fn nodes_text(nodes: &[NodePromise]) -> String {
    if nodes.len() <= SHOWN_NODES {
        return nodes.iter().map(node_text).collect::<Vec<_>>().join(", ");
    }
    let names: Vec<String> = nodes.iter().map(|node| node.node.clone()).collect();
    compress_hosts(&names)
}

fn accuracy(connection: &ConnectionOptions, options: &PlanOptions) -> CommandResult {
    let since = options.since.unwrap_or_else(|| Timestamp::now().plus_seconds(-A_DAY_SECONDS));
    let mut client = connection.client()?;
    let report = waiting("reading the log", || client.plan_accuracy(since))?;
    if options.query.json {
        show::print_json(&report)?;
    } else {
        print_accuracy(&report)?;
    }
    Ok(0)
}

fn print_accuracy(report: &PlanAccuracy) -> Result<(), Failure> {
    println!(
        "{} started from {} to {}; nothing was foreseen for {} of them",
        counted(report.started, "job"),
        local_time(report.since),
        local_time(report.until),
        report.unforeseen
    );
    if report.first.count == 0 {
        return Ok(());
    }
    println!("\nHow far predicted starts were off");
    let mut table = Table::new([
        left("PREDICTION"),
        right("JOBS"),
        right("MEDIAN"),
        right("MEAN"),
        right("95%"),
        right("NO LATER"),
    ]);
    let mut push = |name: String, errors: &PredictionErrors| {
        let time = |seconds: f64| format_duration(seconds.round() as i64);
        table.push([
            name.into(),
            errors.count.to_string().into(),
            time(errors.median_seconds).into(),
            time(errors.mean_seconds).into(),
            time(errors.p95_seconds).into(),
            format!("{:.1}%", errors.kept_share * 100.0).into(),
        ]);
    };
    push("first of each job".to_owned(), &report.first);
    for lead in report.leads.iter().filter(|lead| lead.errors.count > 0) {
        push(format!("{} ahead", format_duration(lead.lead_seconds)), &lead.errors);
    }
    for queue in &report.queues {
        push(format!("first, queue {}", queue.queue), &queue.errors);
    }
    terminal::print_table(&table)?;
    let mut worst = Table::new([right("JOB"), left("QUEUE"), left("PREDICTED AT"), left("PREDICTED"), left("STARTED")]);
    for miss in &report.worst {
        worst.push([
            miss.job.to_string().into(),
            (&miss.queue).into(),
            local_time(miss.predicted_at).into(),
            local_time(miss.predicted).into(),
            local_time(miss.started).into(),
        ]);
    }
    section("Farthest off", &worst)?;
    Ok(())
}
