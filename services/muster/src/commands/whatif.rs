//! `muster whatif`: the log's own jobs under another policy.

use crate::{
    cli::{ConnectionOptions, WhatifOptions},
    exit::{CommandResult, Failure},
    policies, records,
    show::{counted, local_time, print_json},
    table::{Table, left, right},
    terminal::{Progress, print_table},
    whole_file::WholeFile,
};
use muster_planner::{
    chart::courses,
    energy::{Occupation, SleepPolicy},
    whatif::{Group, History, JobDifference, Notes, Report, courses_of, replay},
};
use muster_schemas::policy::Policy;
use std::sync::Arc;

/// `--policy in-force`
const IN_FORCE: &str = "in-force";
/// The maximum number of users shown to people; programs get all.
const SHOWN_USERS: usize = 20;

/// Replays the log and prints the differences.
pub fn whatif(connection: &ConnectionOptions, options: &WhatifOptions) -> CommandResult {
    if let Some(idle_seconds) = options.sleep_after {
        return energy(connection, options, idle_seconds);
    }
    if !(options.tolerance.is_finite() && options.tolerance >= 0.0) {
        return Err(Failure::usage("--tolerance must be 0 or more seconds"));
    }
    let policy: Option<Arc<Policy>> = match options.policy.as_str() {
        IN_FORCE => None,
        name => Some(Arc::new(policies::load(name)?)),
    };
    let svg = options.svg.as_deref().map(WholeFile::create).transpose()?;
    let mut history = History::new(options.from, options.to);
    records::each(connection, &mut |record| history.add(record))?;
    let mut progress = Progress::new();
    let replayed = replay(&history, policy.as_ref(), &mut |record| {
        progress.show(|| format!("replayed up to {}", local_time(record.time)));
    });
    drop(progress);
    let name = policy.as_ref().map(|policy| policy.name.as_str());
    let report = Report::new(&history, &replayed, name, options.tolerance);
    if let Some(file) = svg {
        let courses_of = courses_of(&history, &replayed, &report.policy);
        file.write(courses(&format!("What if: policy {}", report.policy), &courses_of).as_bytes())?;
    }
    if options.json {
        print_json(&report)?;
    } else {
        tell(&report)?;
    }
    Ok(0)
}

/// Tells the energy that the nodes would have used if they slept while nothing ran on them.
fn energy(connection: &ConnectionOptions, options: &WhatifOptions, idle_seconds: u32) -> CommandResult {
    if options.from.is_some() || options.to.is_some() {
        return Err(Failure::usage("--sleep-after tells about the whole log: leave --from and --to out"));
    }
    let mut occupation = Occupation::default();
    records::each(connection, &mut |record| occupation.add(record))?;
    let Some(watts) = occupation.watts() else {
        return Err(Failure::usage(
            "the settings do not say what nodes use: set energy.watts_busy, watts_idle and so on",
        ));
    };
    let policy = SleepPolicy { idle_seconds: Some(idle_seconds), wake_up_seconds: options.wake_up, watts };
    let awake = occupation.estimate(&SleepPolicy { idle_seconds: None, ..policy });
    let asleep = occupation.estimate(&policy);
    if options.json {
        print_json(&serde_json::json!({ "always_awake": awake, "sleeping": asleep }))?;
        return Ok(0);
    }
    let (without, with) = (awake.kilowatt_hours(), asleep.kilowatt_hours());
    println!("if no node slept:                {without:.3} kWh");
    println!("if nodes slept after {idle_seconds} s idle: {with:.3} kWh, {:.3} kWh less", without - with);
    println!("nodes would have been woken {} times, each for up to {} s", asleep.wakes, options.wake_up);
    Ok(0)
}

fn tell(report: &Report) -> Result<(), Failure> {
    println!(
        "policy {}: of {}, {} would have started earlier, {} later, {} within {} s",
        report.policy,
        counted(report.jobs, "job"),
        report.earlier,
        report.later,
        report.same,
        report.tolerance_seconds
    );
    let source =
        if report.is_in_force { ", the time between an event and the plan that follows it included" } else { "" };
    println!("greatest difference of a start: {:.3} s{source}", report.max_difference_seconds);
    if report.started_only_before + report.started_only_after > 0 {
        println!(
            "not counted: {} that started in the log only, {} in the replay only",
            report.started_only_before, report.started_only_after
        );
    }
    let mut groups = vec![("all", &report.all)];
    groups.extend(report.queues.iter().map(|group| ("queue", group)));
    let mut users: Vec<&Group> = report.users.iter().collect();
    users.sort_by(|one, other| other.before.jobs.cmp(&one.before.jobs).then(one.name.cmp(&other.name)));
    groups.extend(users.iter().take(SHOWN_USERS).map(|group| ("user", *group)));
    println!("\nseconds from submission to start, and bounded slowdown, before -> after");
    print_groups(&groups)?;
    if users.len() > SHOWN_USERS {
        println!("and {} more users; --json has all", users.len() - SHOWN_USERS);
    }
    print_jobs("jobs that gain most", report.gained.iter().map(|job| (job, "")))?;
    print_jobs("jobs that lose most", report.lost.iter().map(|job| (job, "")))?;
    let explained = report.first_differences.iter().map(|difference| (&difference.job, difference.explanation));
    print_jobs("first differences, and what explains them", explained)?;
    tell_notes(&report.notes);
    Ok(())
}

fn print_groups(groups: &[(&str, &Group)]) -> std::io::Result<()> {
    let mut table = Table::new([
        left("OF"),
        left("NAME"),
        right("JOBS"),
        right("MEAN WAIT"),
        right("MEDIAN"),
        right("P95"),
        right("MEAN BSLD"),
        right("P95 BSLD"),
    ]);
    for (kind, Group { name, before, after }) in groups {
        let pair = |before: f64, after: f64| format!("{before:.1} -> {after:.1}").into();
        table.push([
            (*kind).into(),
            name.as_str().into(),
            before.jobs.to_string().into(),
            pair(before.mean_wait, after.mean_wait),
            pair(before.median_wait, after.median_wait),
            pair(before.p95_wait, after.p95_wait),
            pair(before.mean_bsld, after.mean_bsld),
            pair(before.p95_bsld, after.p95_bsld),
        ]);
    }
    print_table(&table)
}

fn print_jobs<'r>(title: &str, jobs: impl Iterator<Item = (&'r JobDifference, &'static str)>) -> std::io::Result<()> {
    let mut table = Table::new([
        left("JOB"),
        left("USER"),
        left("QUEUE"),
        left("STARTED"),
        left("WOULD HAVE"),
        right("SECONDS"),
        left("WHY"),
    ]);
    for (job, why) in jobs {
        table.push([
            job.job.to_string().into(),
            job.user.as_str().into(),
            job.queue.as_str().into(),
            local_time(job.before).into(),
            local_time(job.after).into(),
            format!("{:+.3}", job.seconds).into(),
            why.into(),
        ]);
    }
    if table.is_empty() {
        return Ok(());
    }
    println!("\n{title}");
    print_table(&table)
}

/// Prints which parts of the replay are guesses.
fn tell_notes(notes: &Notes) {
    let Notes { runs_of_walltime, runs_without_end, started_before_cancelled, refused_commands, refused_starts } =
        *notes;
    let lines = [
        (runs_of_walltime, "runs took their walltime, because the log does not say how long they would have taken"),
        (runs_without_end, "runs have no walltime and no end in the log; they have not ended"),
        (started_before_cancelled, "cancellations of waiting jobs came too late: the job had started, and ran on"),
        (
            refused_commands,
            "holds, releases, changes and requeues came at another point of the job's life and were refused",
        ),
        (refused_starts, "starts were refused by the rules"),
    ];
    for (count, text) in lines.into_iter().filter(|(count, _)| *count > 0) {
        println!("note: {count} {text}");
    }
}
