//! Jobs on their way into the queue: received with a description, changed while being configured, checked.

use crate::{
    filters::{Entry, JobFilters, state::DEFAULT_TEMPLATE},
    jobs::JobExtras,
    state::State,
    tasks::TaskBook,
};
use muster_schemas::{
    JobId, Timestamp,
    event::{HoldBy, Intake, Owner, Record, Validated},
    job::JobSpec,
};
use std::sync::Arc;

impl State {
    pub(crate) fn job_received(
        &mut self,
        id: JobId,
        owner: &Arc<Owner>,
        spec: &JobSpec,
        intake: &Intake,
        record: &Record,
    ) {
        self.job_submitted(id, owner, spec, record);
        self.take_in(id, intake, record);
        if !intake.is_configuring {
            self.enter(id);
        }
    }

    pub(crate) fn job_configured(&mut self, id: JobId, spec: &JobSpec, intake: &Intake, record: &Record) {
        self.respecify(id, spec, record);
        self.take_in(id, intake, record);
    }

    /// Stores what comes with a job. The job is being configured until it enters.
    fn take_in(&mut self, id: JobId, intake: &Intake, record: &Record) {
        let now = self.time;
        let template = self.pools.text.share(intake.template.as_deref().unwrap_or(DEFAULT_TEMPLATE));
        // With a description, the check after the filters sets the hold.
        let hold = intake.hold_until.filter(|until| intake.document.is_none() && *until > now);
        self.change_job(id, |job| {
            job.filters = Some(Box::new(JobFilters {
                template: Some(template),
                entry: Entry::Configuring,
                received: intake.document.is_some().then_some(record.sequence),
                hold: hold.map(|until| (until, HoldBy::User)),
                ..JobFilters::default()
            }));
            job.tasks = intake.tasks.as_ref().map(|tasks| Box::new(TaskBook::of(tasks, record.sequence)));
        });
    }

    /// A job that was being configured, or was over, enters the queue. It counts as submitted from now on if it was
    /// being configured.
    pub(crate) fn job_entered(&mut self, id: JobId, now: Timestamp) {
        self.change_job(id, |job| {
            let filters = job.filters.get_or_insert_default();
            if filters.entry == Entry::Configuring {
                job.submitted = now;
                job.queued = now;
            }
            filters.ends_after_verdict = None;
            filters.refusal = None;
        });
        self.enter(id);
    }

    /// Without a description the job is in the queue; with one it is checked next. A chain of filters that begins now
    /// comes first.
    fn enter(&mut self, id: JobId) {
        let has_document = self.job(id).and_then(|job| job.filters.as_ref()?.received).is_some();
        if has_document {
            self.validation_began(id);
        } else {
            self.change_filters(id, |filters| filters.entry = Entry::Entered);
        }
    }

    pub(crate) fn job_validated(&mut self, id: JobId, validated: &Validated, record: &Record) {
        let Some(original) = self.job(id).map(|job| job.submitted_sequence) else { return };
        self.respecify(id, &validated.spec, record);
        let template = validated.template.as_deref().map(|name| self.pools.text.share(name));
        let now = self.time;
        self.change_job(id, |job| {
            let filters = job.filters.get_or_insert_default();
            filters.original.get_or_insert(original);
            filters.template = template.or(filters.template.take());
            filters.revision = Some(validated.revision);
            filters.validated = Some(record.sequence);
            filters.chain = None;
            if let Some(until) = validated.hold_until.filter(|until| *until > now) {
                filters.hold = Some((until, HoldBy::User));
            }
            let before = job.tasks.take();
            let renewed = |tasks| TaskBook::of(tasks, record.sequence).going_on_from(before.as_deref());
            job.tasks = validated.tasks.as_ref().map(|tasks| Box::new(renewed(tasks)));
        });
    }

    /// Gives a waiting job a new specification. Jobs that were put behind it stay behind it.
    fn respecify(&mut self, id: JobId, spec: &JobSpec, record: &Record) {
        let now = self.time;
        let Some(mut job) = self.jobs.get(&id).map(|job| (**job).clone()) else { return };
        self.count_job(&job, false);
        let before = job.components[0].extras.as_mut().map(|extras| std::mem::take(&mut extras.before));
        let components = spec.components.iter().map(|component| self.component(component, now)).collect();
        for replaced in std::mem::replace(&mut job.components, components) {
            self.shapes.give_back(&replaced.shape);
        }
        if let Some(before) = before.filter(|before| !before.is_empty()) {
            job.components[0].extras.get_or_insert_default().before = before;
        }
        job.name = self.pools.text.share(spec.name.as_str());
        job.extras = JobExtras::of(spec);
        job.staging = self.new_staging(&job);
        job.copies = job.extras.as_ref().and_then(|extras| extras.new_copies());
        job.submitted_sequence = record.sequence;
        job.planner_reason = None;
        self.settle_dependencies(&mut job);
        self.count_job(&job, true);
        self.change_job(id, |kept| *kept = job);
        self.put_before_others(id, now);
    }
}
