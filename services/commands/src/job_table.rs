//! Jobs as a table: its columns and the order of its rows.

use crate::{
    cells::{elapsed_seconds, job_id_text, remark, state_cell},
    cli::{JobColumn, SortKey},
    show::local_time_column,
    table::{Cell, Column, Table, left, right},
    values::{compress_hosts, format_duration},
};
use jiff::tz::TimeZone;
use muster_schemas::{Timestamp, views::JobView};
use std::cmp::Ordering;

/// The table of jobs as it was at `now`, with the usual columns; empty columns are left out.
pub fn jobs_table(jobs: &[JobView], now: Timestamp) -> Table {
    table(jobs, now, &JobColumn::USUAL)
}

/// The table of jobs with exactly these columns, even if they are empty: programs count on their places.
pub fn chosen_table(jobs: &[JobView], now: Timestamp, columns: &[JobColumn]) -> Table {
    table(jobs, now, columns).with_all_columns()
}

fn table(jobs: &[JobView], now: Timestamp, columns: &[JobColumn]) -> Table {
    let zone = TimeZone::system();
    let mut table = Table::new(columns.iter().map(|column| heading(*column)).collect::<Vec<_>>());
    for job in jobs {
        table.push(columns.iter().map(|column| cell(job, *column, now, &zone)).collect::<Vec<_>>());
    }
    table
}

const fn heading(column: JobColumn) -> Column {
    match column {
        JobColumn::Job => right("JOB"),
        JobColumn::Name => left("NAME"),
        JobColumn::User => left("USER"),
        JobColumn::Account => left("ACCOUNT"),
        JobColumn::Queue => left("QUEUE"),
        JobColumn::Dialect => left("DIALECT"),
        JobColumn::Priority => right("PRIORITY"),
        JobColumn::State => left("STATE"),
        JobColumn::Time => right("TIME"),
        JobColumn::Walltime => right("WALLTIME"),
        JobColumn::Cpus => right("CPUS"),
        JobColumn::Tasks => right("TASKS"),
        JobColumn::Nodes => left("NODES"),
        JobColumn::Submitted => left("SUBMITTED"),
        JobColumn::Started => left("STARTED"),
        JobColumn::Ended => left("ENDED"),
        JobColumn::Reason => left("REASON"),
    }
}

fn cell(job: &JobView, column: JobColumn, now: Timestamp, zone: &TimeZone) -> Cell {
    let time = |time: Option<Timestamp>| time.map(|time| local_time_column(time, zone)).unwrap_or_default();
    match column {
        JobColumn::Job => job_id_text(job).into(),
        JobColumn::Name => (&job.name).into(),
        JobColumn::User => (&job.owner).into(),
        JobColumn::Account => job.account.as_deref().unwrap_or_default().into(),
        JobColumn::Queue => (&job.queue).into(),
        JobColumn::Dialect => job.dialect.as_deref().unwrap_or_default().into(),
        JobColumn::Priority => job.priority.to_string().into(),
        JobColumn::State => state_cell(job),
        JobColumn::Time => elapsed_seconds(job, now).map(format_duration).unwrap_or_default().into(),
        JobColumn::Walltime => {
            let seconds = job.walltime_seconds.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX));
            seconds.map(format_duration).unwrap_or_default().into()
        }
        JobColumn::Cpus => job.cores.to_string().into(),
        JobColumn::Tasks => job.tasks.to_string().into(),
        JobColumn::Nodes if job.nodes.is_empty() => job.node_count.to_string().into(),
        JobColumn::Nodes => compress_hosts(&job.nodes).into(),
        JobColumn::Submitted => time(Some(job.submitted)).into(),
        JobColumn::Started => time(job.started).into(),
        JobColumn::Ended => time(job.ended).into(),
        JobColumn::Reason => remark(job).into(),
    }
}

/// Sorts jobs by these columns, the first column first. Equal jobs keep their order.
pub fn sort(jobs: &mut [JobView], keys: &[SortKey], now: Timestamp) {
    let by_all = |one: &JobView, other: &JobView| {
        let orders = keys.iter().map(|key| {
            let order = compare(one, other, key.column, now);
            if key.is_descending { order.reverse() } else { order }
        });
        orders.fold(Ordering::Equal, Ordering::then)
    };
    jobs.sort_by(by_all);
}

fn compare(one: &JobView, other: &JobView, column: JobColumn, now: Timestamp) -> Ordering {
    match column {
        JobColumn::Job => one.id.cmp(&other.id),
        JobColumn::Name => one.name.cmp(&other.name),
        JobColumn::User => one.owner.cmp(&other.owner),
        JobColumn::Account => one.account.cmp(&other.account),
        JobColumn::Queue => one.queue.cmp(&other.queue),
        JobColumn::Dialect => one.dialect.cmp(&other.dialect),
        JobColumn::Priority => one.priority.cmp(&other.priority),
        JobColumn::State => state_word(one).cmp(state_word(other)),
        JobColumn::Time => elapsed_seconds(one, now).cmp(&elapsed_seconds(other, now)),
        JobColumn::Walltime => one.walltime_seconds.cmp(&other.walltime_seconds),
        JobColumn::Cpus => one.cores.cmp(&other.cores),
        JobColumn::Tasks => one.tasks.cmp(&other.tasks),
        JobColumn::Nodes => one.node_count.cmp(&other.node_count).then_with(|| one.nodes.cmp(&other.nodes)),
        JobColumn::Submitted => one.submitted.cmp(&other.submitted),
        JobColumn::Started => one.started.cmp(&other.started),
        JobColumn::Ended => one.ended.cmp(&other.ended),
        JobColumn::Reason => remark(one).cmp(&remark(other)),
    }
}

fn state_word(job: &JobView) -> &'static str {
    job.outcome.as_ref().map_or(job.state.word(), |outcome| outcome.outcome.word())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cells::tests::job, table::Layout};
    use muster_schemas::{
        job::{ExitStatus, JobState},
        views::{ArrayView, OutcomeView, OutcomeWord, ReasonView, ReasonWord},
    };

    fn printed(table: &Table) -> Vec<String> {
        let mut out = Vec::new();
        table.write(Layout::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn the_table_of_jobs_reads_well() {
        let running = JobView {
            state: JobState::Running,
            started: Some(Timestamp::from_unix_seconds(100)),
            nodes: vec!["node1".into(), "node2".into()],
            ..job(7)
        };
        let waiting = JobView {
            reason: Some(ReasonView { code: ReasonWord::BehindJob, text: "job 7 is ahead of it".into(), job: None }),
            ..job(8)
        };
        let array = JobView {
            array: Some(ArrayView {
                total: 10,
                remaining: "4-9".parse().unwrap(),
                waiting: 6,
                running: 2,
                finished: [(OutcomeWord::Completed, 2)].into(),
                max_running: Some(2),
                ..ArrayView::default()
            }),
            ..job(9)
        };
        let failed = JobView {
            state: JobState::Finished,
            outcome: Some(OutcomeView {
                outcome: OutcomeWord::Failed,
                exit_status: Some(ExitStatus::Code(3)),
                detail: None,
            }),
            started: Some(Timestamp::from_unix_seconds(10)),
            ended: Some(Timestamp::from_unix_seconds(75)),
            nodes: vec!["node1".into()],
            ..job(10)
        };
        let table = jobs_table(&[running, waiting, array, failed], Timestamp::from_unix_seconds(3800));
        let expected = "
       JOB  NAME   USER  QUEUE    STATE       TIME  CPUS  NODES      REASON
         7  relax  anna  default  running  1:01:40     8  node[1-2]
         8  relax  anna  default  queued               8  2          job 7 is ahead of it
9_[4-9%2]  relax  anna  default  queued               8  2          6 waiting, 2 running, 2 completed
        10  relax  anna  default  failed      1:05     8  node1      exit status 3
";
        let expected: Vec<&str> = expected.trim_start_matches('\n').lines().map(str::trim).collect();
        assert_eq!(printed(&table), expected);
    }

    #[test]
    fn chosen_columns_stand_in_their_order_also_where_they_are_empty() {
        let columns = [JobColumn::Cpus, JobColumn::Account, JobColumn::Job];
        let table = chosen_table(&[job(7), job(8)], Timestamp(0), &columns);
        assert_eq!(printed(&table), ["CPUS  ACCOUNT  JOB", "8             7", "8             8"]);
    }

    #[test]
    fn rows_are_in_the_order_asked_for() {
        let named = |number, name: &str, cores| JobView { name: name.into(), cores, ..job(number) };
        let mut jobs = vec![named(1, "b", 4), named(2, "a", 4), named(3, "c", 9)];
        let keys: Vec<SortKey> = ["-cpus", "name"].iter().map(|key| key.parse().unwrap()).collect();
        sort(&mut jobs, &keys, Timestamp(0));
        assert_eq!(jobs.iter().map(|job| job.number).collect::<Vec<_>>(), [3, 2, 1]);
        assert!("size".parse::<SortKey>().unwrap_err().contains("job, name, user"));
    }
}
