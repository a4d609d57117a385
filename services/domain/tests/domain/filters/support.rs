//! Helpers for filters and their answers.

use crate::support::*;
use muster_domain::filters::calls::{self, CallSeed, DocumentSeed};
use muster_schemas::{
    JobId, RunId, Sequence,
    command::{CallOutcome, CallReport, Command, Reply, Start},
    event::{Actor, Event, Intake, Validated},
    filter::{
        FileAfter, FilterExit, FilterForm, FilterReport, FilterSettings, FilterSpec, JobDocument, PropertyChange,
        TemplateSpec,
    },
    filter_order::FilterWork,
    job::{JobSpec, WaitReason},
    plan::{ProposedPlan, StartFacts},
    resources::{ComponentPlacement, Count, IndexSet, Level, LevelCount, NodeShare, Placement, Request},
};

/// A filter of a template that can be reverted.
pub fn filter(name: &str) -> FilterSpec {
    FilterSpec {
        name: name.into(),
        path: format!("/opt/filters/{name}"),
        form: FilterForm::Verbs,
        revert_on_unknown: false,
    }
}

/// A filter with the form that cannot be reverted.
pub fn exec(name: &str) -> FilterSpec {
    FilterSpec { form: FilterForm::Exec, ..filter(name) }
}

pub fn runner(name: &str) -> Actor {
    Actor::Runner(name.into())
}

pub fn ended(exit: FilterExit) -> FilterReport {
    FilterReport { exit, duration_micros: 1000, ..FilterReport::runner_lost() }
}

pub fn code(code: u8) -> FilterReport {
    ended(FilterExit::Code(code))
}

/// The filter answered 1 and left this description.
pub fn changed(text: &str) -> FilterReport {
    let change =
        PropertyChange { property: "Priority".into(), old: Some("Normal".into()), new: Some("BelowNormal".into()) };
    FilterReport {
        file: FileAfter::Changed { document: JobDocument::xml(text.as_bytes()), changes: vec![change], template: None },
        ..code(1)
    }
}

/// Like [`changed`], with a description that names this template.
pub fn moved_to(text: &str, name: &str) -> FilterReport {
    let mut report = changed(text);
    if let FileAfter::Changed { template, .. } = &mut report.file {
        *template = Some(name.into());
    }
    report
}

/// A script on this many cores, on any number of nodes.
pub fn cores(min: u32, max: u32, priority: i64) -> JobSpec {
    let mut spec = job(1, 1);
    spec.components[0].priority = Some(priority);
    let alternative = &mut spec.components[0].alternatives[0];
    alternative.requests = vec![Request {
        path: vec![LevelCount { level: Level::Core, count: Count::Range { min, max } }],
        ..Request::default()
    }];
    alternative.walltime_seconds = Some(300);
    spec
}

/// The public names of events.
pub fn words(events: &[Event]) -> Vec<String> {
    let word = |event: &Event| {
        let (kind, verb) = event.kind_verb();
        format!("{kind}.{verb}")
    };
    events.iter().map(word).collect()
}

impl Cluster {
    pub fn set_filters(&mut self, settings: FilterSettings) {
        self.ok(&root(), Command::SetParameters { filters: Some(Box::new(settings)), scheduling: None });
    }

    pub fn set_template(&mut self, name: &str, submission: &[FilterSpec], activation: &[FilterSpec]) {
        let template = TemplateSpec {
            name: name.into(),
            submission_filters: submission.to_vec(),
            activation_filters: activation.to_vec(),
            ..TemplateSpec::default()
        };
        self.ok(&root(), Command::SetTemplate { template: Box::new(template) });
    }

    /// Submits a job with a description, whose text is `x0`.
    pub fn describe(&mut self, template: &str, spec: JobSpec) -> (JobId, Vec<Event>) {
        let intake = Intake {
            template: Some(template.into()),
            document: Some(JobDocument::xml(b"x0".as_slice())),
            ..Intake::default()
        };
        self.intake(spec, intake)
    }

    #[track_caller]
    pub fn intake(&mut self, spec: JobSpec, intake: Intake) -> (JobId, Vec<Event>) {
        match self.run(&user("ada"), Command::SubmitDocument { spec: Box::new(spec), intake: Box::new(intake) }) {
            Ok((events, Reply::Submitted(ids))) => (ids[0], events),
            other => panic!("submission: {other:?}"),
        }
    }

    /// The outstanding call of a job.
    pub fn seed(&self, job: JobId) -> Option<CallSeed> {
        calls::call_seed(&self.state, job)
    }

    /// The outstanding call of a job as its filter sees it: name, kind, action, description.
    pub fn asked(&self, job: JobId) -> Option<String> {
        let seed = self.seed(job)?;
        let document = match seed.document {
            DocumentSeed::Received(at) | DocumentSeed::Changed(at) | DocumentSeed::Validated(at) => self.document(at),
            DocumentSeed::None => "-".into(),
        };
        Some(match &seed.work {
            FilterWork::Filter { filter, parameters: None, .. } => {
                format!("{} {} {} {document}", filter.name, seed.call.kind.word(), seed.call.action.word())
            }
            FilterWork::Filter { filter, parameters: Some(told), .. } => format!(
                "{} {} {} {} {} {}",
                filter.name,
                seed.call.action.word(),
                told.pass,
                told.index,
                told.backfill,
                told.count
            ),
            FilterWork::Validate { .. } => format!("check {document}"),
        })
    }

    /// The description in a record.
    fn document(&self, at: Sequence) -> String {
        let record = &self.log[at.0 as usize - 1];
        let document = match &record.event {
            Event::JobSubmitted { intake: Some(intake), .. } | Event::JobConfigured { intake, .. } => {
                intake.document.clone()
            }
            Event::JobValidated { validated, .. } => validated.document.clone(),
            Event::FilterVerdict { report, .. } => match &report.file {
                FileAfter::Changed { document, .. } => Some(document.clone()),
                other => panic!("record {at} changed nothing: {other:?}"),
            },
            other => panic!("record {at} has no description: {other:?}"),
        };
        document.map_or_else(|| "none".into(), |document| String::from_utf8_lossy(&document.bytes).into_owned())
    }

    /// A runner claims the outstanding call of a job.
    #[track_caller]
    pub fn claim(&mut self, name: &str, job: JobId) -> (muster_schemas::filter::CallId, u32) {
        let seed = self.seed(job).expect("a call is outstanding");
        let command = Command::ClaimCalls { calls: vec![(seed.call, seed.attempt)] };
        match self.run(&runner(name), command) {
            Ok((_, Reply::Claimed(own))) if own == [true] => (seed.call, seed.attempt),
            other => panic!("claim of {}: {other:?}", seed.call),
        }
    }

    #[track_caller]
    pub fn report(
        &mut self,
        name: &str,
        (call, attempt): (muster_schemas::filter::CallId, u32),
        outcome: CallOutcome,
    ) -> Vec<Event> {
        let reports = vec![CallReport { call, attempt, outcome }];
        self.ok(&runner(name), Command::ReportCalls { reports, has_others: false })
    }

    /// A runner claims the outstanding call of a job and answers at once.
    #[track_caller]
    pub fn answer(&mut self, job: JobId, report: FilterReport) -> Vec<Event> {
        let call = self.claim("r1", job);
        self.report("r1", call, CallOutcome::Called(Box::new(report)))
    }

    /// The check after the filters passes the job with this specification.
    #[track_caller]
    pub fn pass_check(&mut self, job: JobId, spec: JobSpec) -> Vec<Event> {
        let document = Some(JobDocument::xml(b"effective".as_slice()));
        self.pass_check_as(job, Validated { spec, document, ..Validated::default() })
    }

    #[track_caller]
    pub fn pass_check_as(&mut self, job: JobId, validated: Validated) -> Vec<Event> {
        let call = self.claim("r1", job);
        self.report("r1", call, CallOutcome::Validated(Box::new(validated)))
    }

    /// A queued job with a template.
    pub fn queue(&mut self, template: &str, spec: JobSpec) -> JobId {
        let (id, _) = self.describe(template, spec.clone());
        while self.asked(id).is_some_and(|asked| !asked.starts_with("check")) {
            self.answer(id, code(0));
        }
        self.pass_check(id, spec);
        id
    }

    pub fn reason(&self, job: JobId) -> Option<WaitReason> {
        self.state.wait_reason(self.state.job(job)?)
    }

    pub fn warnings(&self, job: JobId) -> Vec<String> {
        let filtering = self.state.job(job).and_then(|job| job.filters.as_ref());
        filtering
            .map(|filtering| filtering.warnings.iter().map(|warning| warning.code.clone()).collect())
            .unwrap_or_default()
    }

    pub fn run_of(&self, job: JobId) -> Option<RunId> {
        self.state.job(job)?.run()
    }

    /// The number of cores kept for a job, or offered to it.
    pub fn kept(&self, job: JobId) -> u64 {
        let kept = self.state.job(job).and_then(|job| job.filters.as_ref()?.kept());
        kept.map_or(0, |(_, placement)| count(placement))
    }

    /// The number of cores on which a job runs.
    pub fn running_on(&self, job: JobId) -> u64 {
        let run = self.run_of(job).and_then(|run| self.state.run(run));
        run.map_or(0, |run| count(&run.placement))
    }

    /// Free resources, and those kept for a job, up to this many cores.
    pub fn free(&self, job: Option<JobId>, cores: u64) -> Placement {
        let kept = job.and_then(|job| self.state.job(job)?.filters.as_ref()?.kept());
        let kept = kept.map(|(_, placement)| (**placement).clone()).unwrap_or_default();
        let mut left = cores.saturating_sub(count(&kept));
        let mut shares: Vec<NodeShare> = Vec::new();
        for node in self.state.nodes() {
            let own = kept.shares().find(|share| share.node == node.id).map(|share| share.cores.clone());
            let more = node.free_cores.smallest(left.min(node.free_cores.len()));
            left -= more.len();
            let cores = own.unwrap_or_default().union(&more);
            if !cores.is_empty() {
                let (gpus, memory_bytes, tasks, exclusive) = (IndexSet::new(), 0, 1, false);
                shares.push(NodeShare { node: node.id, cores, gpus, memory_bytes, tasks, exclusive });
            }
        }
        Placement { components: vec![ComponentPlacement { alternative: 0, shares }] }
    }

    /// A plan with one start, as the planner would propose it.
    #[track_caller]
    pub fn offer(&mut self, job: JobId, placement: Placement, facts: StartFacts) -> Vec<Event> {
        let plan = ProposedPlan {
            starts: vec![Start { job, placement }],
            start_facts: vec![facts],
            pass: 4,
            epoch: 1,
            ..ProposedPlan::default()
        };
        match self.run(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) }) {
            Ok((events, Reply::Planned(refused))) if refused.is_empty() => events,
            other => panic!("start of job {job}: {other:?}"),
        }
    }

    /// Offers a job this many cores.
    #[track_caller]
    pub fn offer_cores(&mut self, job: JobId, cores: u64) -> Vec<Event> {
        let placement = self.free(Some(job), cores);
        self.offer(job, placement, facts(job, cores))
    }

    /// Why a start is refused.
    #[track_caller]
    pub fn refused_start(&mut self, job: JobId, cores: u64) -> String {
        let placement = self.free(Some(job), cores);
        let plan = ProposedPlan { starts: vec![Start { job, placement }], ..ProposedPlan::default() };
        match self.run(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) }) {
            Ok((_, Reply::Planned(refused))) if refused.len() == 1 => refused[0].reason.clone(),
            other => panic!("start of job {job}: {other:?}"),
        }
    }
}

pub fn facts(job: JobId, count: u64) -> StartFacts {
    StartFacts { job, index: 1, backfill: false, count, latest_start: None }
}

fn count(placement: &Placement) -> u64 {
    placement.shares().map(|share| share.cores.len()).sum()
}

/// A cluster of nodes with this many cores each.
pub fn cluster(nodes: u32, cores: u32) -> Cluster {
    let mut wanted = config();
    wanted.nodes = (1..=nodes).map(|number| node(&format!("node{number}"), cores)).collect();
    Cluster::with(wanted)
}
