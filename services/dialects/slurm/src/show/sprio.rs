//! `sprio`: what makes up the priority of waiting jobs.
//!
//! The numbers are those of the policy that orders the jobs. They come from the first key of its order that is
//! `priority` or a formula. A formula is taken apart where it is a sum: a part that uses only how long a job has waited
//! is its age, one that uses only what it asks for its size, and so on.

use super::{
    Clock,
    cells::{NULL, put},
    columns::{Field, FormatError, Layout},
    record::JobRecord,
    tres,
};
use crate::words::State;
use muster_schemas::{
    fair_tree,
    policy::{
        OrderKey, Policy,
        formula::{Formula, Variable, Variables},
    },
    time::Timestamp,
};
use std::collections::BTreeMap;

/// The divisor that turns a priority into a fraction.
const SCALE: f64 = 4_294_967_295.0;
/// All columns (`-l`).
const LONG_FORMAT: &str = "%.15i %9r %.8u %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10Q %.11N %.20T";
/// All columns with factors (`-l -n`).
const LONG_NORMALIZED: &str = "%.15i %9r %.8u %10y %10S %10a %10b %10f %10j %10p %10q %20t";

/// A factor of a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Age,
    FairShare,
    Size,
    Partition,
    Site,
}

/// What a factor adds to a priority, and how much it adds at most or for each unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Factor {
    /// What it adds.
    pub part: f64,
    /// Its weight; 0 if the order has no such factor.
    pub weight: f64,
}

impl Factor {
    fn normalized(self) -> f64 {
        if self.weight == 0.0 { 0.0 } else { self.part / self.weight }
    }

    fn add(&mut self, part: f64, weight: f64) {
        // A missing value puts the job last, and adds nothing that could be shown.
        self.part += if part.is_finite() { part } else { 0.0 };
        self.weight += weight;
    }
}

/// The factors of a priority.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Factors {
    /// How long the job has waited.
    pub age: Factor,
    /// How much its account and user have used of their shares.
    pub fair_share: Factor,
    /// What it asks for.
    pub size: Factor,
    /// The priority of its partition.
    pub partition: Factor,
    /// The priority of its service class.
    pub qos: Factor,
    /// Its own priority, and everything else.
    pub site: Factor,
    /// How much its owner has lowered it.
    pub nice: f64,
}

impl Factors {
    /// The priority: 0 means held, so it is at least 1.
    pub fn priority(&self) -> f64 {
        let Self { age, fair_share, size, partition, qos, site, nice } = self;
        (age.part + fair_share.part + size.part + partition.part + qos.part + site.part - nice).round().max(1.0)
    }

    fn of(&mut self, kind: Kind) -> &mut Factor {
        match kind {
            Kind::Age => &mut self.age,
            Kind::FairShare => &mut self.fair_share,
            Kind::Size => &mut self.size,
            Kind::Partition => &mut self.partition,
            Kind::Site => &mut self.site,
        }
    }
}

/// The site's rules about priorities.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The policy in force.
    pub policy: Policy,
    /// The priorities of partitions.
    pub partitions: BTreeMap<String, i64>,
    /// The highest priority of a service class.
    pub highest_class: i64,
    /// The factors of users in accounts.
    pub fair_factors: fair_tree::Factors,
}

impl Rules {
    /// The factors of a job's priority at a moment; without a job, the weights that the policy gives to factors.
    pub fn factors(&self, job: Option<&JobRecord>, now: Timestamp) -> Factors {
        let of_queue = job.and_then(|job| self.policy.queues.get(&job.partition)?.order.as_ref());
        let order = of_queue.unwrap_or(&self.policy.order);
        let mut factors = Factors::default();
        match order.iter().find(|key| matches!(key, OrderKey::Priority | OrderKey::Formula { .. })) {
            Some(OrderKey::Formula { text, descending }) => {
                // The policy in force was checked; a formula of a later version adds nothing that is known here.
                if let Ok(formula) = Formula::parse(text) {
                    self.add_formula(&formula, if *descending { 1.0 } else { -1.0 }, job, now, &mut factors);
                }
            }
            _ => self.add_own(1.0, job, &mut factors),
        }
        factors
    }

    fn add_formula(
        &self,
        formula: &Formula,
        sign: f64,
        job: Option<&JobRecord>,
        now: Timestamp,
        factors: &mut Factors,
    ) {
        let queue_priority = job.and_then(|job| self.partitions.get(&job.partition).copied()).unwrap_or(0);
        let values = Values { job, now, queue_priority, fair_factors: &self.fair_factors };
        for addend in formula.addends() {
            let weight = sign * addend.weight;
            if addend.rest.is_variable(Variable::Priority) {
                self.add_own(weight, job, factors);
                continue;
            }
            let kind = kind(addend.rest.variables());
            factors.of(kind).add(weight * addend.rest.evaluate(&values), weight);
        }
    }

    /// The job's own priority: that of its service class, what its owner took off, and the rest.
    fn add_own(&self, weight: f64, job: Option<&JobRecord>, factors: &mut Factors) {
        let class = job.map_or(0, |job| job.class_priority) as f64;
        let highest = self.highest_class.max(0) as f64;
        let nice = job.map_or(0, |job| job.request().nice) as f64;
        let own = job.map_or(0, |job| job.own_priority) as f64;
        factors.qos.add(weight * class, weight * highest);
        factors.nice += weight * nice;
        factors.site.add(weight * (own + nice), weight);
    }
}

/// The factor that a part of a sum belongs to.
fn kind(variables: impl Iterator<Item = Variable>) -> Kind {
    let of = |variable| match variable {
        Variable::Submit | Variable::Age0 | Variable::Wait => Kind::Age,
        Variable::Walltime | Variable::Procs | Variable::Nodes | Variable::MemoryBytes | Variable::Gpus => Kind::Size,
        Variable::QueuePriority => Kind::Partition,
        Variable::FairShare | Variable::ShareRank | Variable::UseShare => Kind::FairShare,
        Variable::Priority | Variable::Attribute(_) => Kind::Site,
    };
    let mut kinds = variables.map(of);
    let first = kinds.next().unwrap_or(Kind::Site);
    if kinds.all(|kind| kind == first) { first } else { Kind::Site }
}

struct Values<'v> {
    job: Option<&'v JobRecord>,
    now: Timestamp,
    queue_priority: i64,
    fair_factors: &'v fair_tree::Factors,
}

impl Variables for Values<'_> {
    fn value(&self, variable: Variable) -> f64 {
        let Some(job) = self.job else { return f64::NAN };
        let seconds = |micros: i64| micros as f64 / 1e6;
        match variable {
            Variable::Submit => seconds(job.submitted.0),
            Variable::Age0 => seconds(job.submitted.0).max(1.0),
            Variable::Wait => seconds(self.now.micros_since(job.submitted)).max(0.0),
            Variable::Walltime => job.limit_seconds.map_or(f64::INFINITY, |seconds| seconds as f64),
            Variable::Procs => job.cpus as f64,
            Variable::Nodes => f64::from(job.node_count),
            Variable::MemoryBytes => tres::megabytes_of(job).unwrap_or(0) as f64 * 1_048_576.0,
            Variable::Gpus => job.gpus as f64,
            Variable::Priority => job.own_priority.saturating_add(job.class_priority) as f64,
            Variable::QueuePriority => self.queue_priority as f64,
            Variable::FairShare => self.fair_factors.get(job.account.as_deref(), &job.user, &job.partition),
            Variable::ShareRank | Variable::UseShare | Variable::Attribute(_) => f64::NAN,
        }
    }
}

/// A line of `sprio`.
pub struct Row {
    /// The job; `None` for the line of the weights.
    job: Option<JobRecord>,
    factors: Factors,
}

/// Writes a value of a job; the line of weights has none.
fn of_job(row: &Row, out: &mut String, write: impl FnOnce(&JobRecord, &mut String)) {
    if let Some(job) = &row.job {
        write(job, out);
    }
}

/// Writes a factor's part of the priority, or its weight.
fn part(row: &Row, factor: Factor, out: &mut String) {
    let value = if row.job.is_some() { factor.part } else { factor.weight };
    // There is no -0 in Slurm's tables.
    put(format_args!("{:.0}", value.round() + 0.0), out);
}

/// Writes a factor, or its weight.
fn normalized(row: &Row, factor: Factor, out: &mut String) {
    match row.job {
        Some(_) => put(format_args!("{:.7}", factor.normalized() + 0.0), out),
        None => part(row, factor, out),
    }
}

macro_rules! field {
    ($letter:literal, $header:literal, $write:expr) => {
        Field::<Row>::new(Some($letter), &[], $header, $write)
    };
}

/// The columns of `sprio`.
pub static FIELDS: &[Field<Row>] = &[
    field!('a', "AGE", |row, _, out| normalized(row, row.factors.age, out)),
    field!('A', "AGE", |row, _, out| part(row, row.factors.age, out)),
    field!('b', "ASSOC", |row, _, out| normalized(row, Factor::default(), out)),
    field!('B', "ASSOC", |row, _, out| part(row, Factor::default(), out)),
    field!('f', "FAIRSHARE", |row, _, out| normalized(row, row.factors.fair_share, out)),
    field!('F', "FAIRSHARE", |row, _, out| part(row, row.factors.fair_share, out)),
    field!('i', "JOBID", |row, _, out| match &row.job {
        Some(job) => put(job.number, out),
        None => out.push_str("Weights"),
    }),
    field!('j', "JOBSIZE", |row, _, out| normalized(row, row.factors.size, out)),
    field!('J', "JOBSIZE", |row, _, out| part(row, row.factors.size, out)),
    field!('N', "NICE", |row, _, out| of_job(row, out, |_, out| put(format_args!("{:.0}", row.factors.nice), out))),
    field!('o', "ACCOUNT", |row, _, out| {
        of_job(row, out, |job, out| out.push_str(job.account.as_deref().unwrap_or(NULL)));
    }),
    field!('O', "QOSNAME", |row, _, out| of_job(row, out, |job, out| out.push_str(job.qos()))),
    field!('p', "PARTITION", |row, _, out| normalized(row, row.factors.partition, out)),
    field!('P', "PARTITION", |row, _, out| part(row, row.factors.partition, out)),
    field!('q', "QOS", |row, _, out| normalized(row, row.factors.qos, out)),
    field!('Q', "QOS", |row, _, out| part(row, row.factors.qos, out)),
    field!('r', "PARTITION", |row, _, out| of_job(row, out, |job, out| out.push_str(&job.partition))),
    field!('S', "SITE", |row, _, out| part(row, row.factors.site, out)),
    field!('t', "TRES", |_, _, _| {}),
    field!('T', "TRES", |_, _, _| {}),
    field!('u', "USER", |row, _, out| of_job(row, out, |job, out| out.push_str(&job.user))),
    field!('y', "PRIORITY", |row, _, out| {
        of_job(row, out, |_, out| put(format_args!("{:16.14}", row.factors.priority() / SCALE), out));
    }),
    field!('Y', "PRIORITY", |row, _, out| {
        of_job(row, out, |_, out| put(format_args!("{:.0}", row.factors.priority()), out));
    }),
];

/// How the priorities are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The columns; `None` for the usual ones.
    pub format: Option<String>,
    /// All columns.
    pub is_long: bool,
    /// Factors instead of their parts.
    pub is_normalized: bool,
    /// Whether certain users are meant, so that the usual columns name them.
    pub names_users: bool,
    /// The weights instead of jobs.
    pub weights: bool,
    /// Without the line above the columns.
    pub no_header: bool,
}

/// Whether a job has a priority that could be shown: it waits, is not held, and may start as far as time is concerned.
pub fn has_factors(job: &JobRecord, now: Timestamp) -> bool {
    job.state == State::Pending && job.priority > 0 && job.eligible.is_none_or(|eligible| eligible <= now)
}

/// The table of these jobs, in the order of their numbers.
///
/// # Errors
/// A letter that is no column.
pub fn sprio(mut jobs: Vec<JobRecord>, rules: &Rules, report: &Report, clock: &Clock) -> Result<String, FormatError> {
    jobs.sort_by_key(|job| job.number);
    let rows: Vec<Row> = jobs
        .into_iter()
        .map(|job| {
            let factors = rules.factors(Some(&job), clock.now);
            Row { job: Some(job), factors }
        })
        .collect();
    let weights = rules.factors(None, clock.now);
    let format = report.format.clone().unwrap_or_else(|| usual(report, &weights));
    let layout = Layout::printf(&format, FIELDS)?;
    let mut out = String::new();
    if !report.no_header {
        layout.write_header(&mut out);
    }
    match report.weights {
        true => layout.write_row(&Row { job: None, factors: weights }, clock, &mut out),
        false => rows.iter().for_each(|row| layout.write_row(row, clock, &mut out)),
    }
    Ok(out)
}

/// The usual columns: of the factors only those that have a weight.
fn usual(report: &Report, weights: &Factors) -> String {
    match (report.is_long, report.is_normalized) {
        (true, false) => return LONG_FORMAT.to_owned(),
        (true, true) => return LONG_NORMALIZED.to_owned(),
        _ => {}
    }
    let mut format = String::from("%.15i %9r");
    if report.names_users {
        format.push_str(" %.8u");
    }
    format.push_str(if report.is_normalized { " %10y %10S" } else { " %.10Y %.10S" });
    let factors = [
        (weights.age, 'A'),
        (weights.fair_share, 'F'),
        (weights.size, 'J'),
        (weights.partition, 'P'),
        (weights.qos, 'Q'),
    ];
    for (_, letter) in factors.into_iter().filter(|(factor, _)| factor.weight != 0.0) {
        match report.is_normalized {
            true => put(format_args!(" %10{}", letter.to_ascii_lowercase()), &mut format),
            false => put(format_args!(" %.10{letter}"), &mut format),
        }
    }
    format
}
