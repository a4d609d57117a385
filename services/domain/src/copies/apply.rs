//! What records do to the copying of files.

use crate::{
    copies::{
        CopyStage,
        decide::{bound_to, unbound_from},
    },
    jobs::Job,
    state::State,
    unapplied::no_arm,
};
use muster_schemas::{
    JobId, NodeId, RunId,
    copies::{CopyDirection, CopyReport},
    event::{Event, Record},
};

impl State {
    /// Applies a record about the copying of files.
    pub(crate) fn copying_changed(&mut self, record: &Record) {
        match &record.event {
            Event::CopyingBegan { job, node, direction, run } => self.copying_began(*job, *node, *direction, *run),
            Event::CopyingEnded { job, direction, bytes, milliseconds, .. } => {
                let report = CopyReport { bytes: *bytes, milliseconds: *milliseconds, failure: None };
                self.copying_ended(*job, *direction, report);
            }
            Event::CopyingFailed { job, direction, bytes, milliseconds, reason, until, .. } => {
                let failure = Some(reason.clone());
                let report = CopyReport { bytes: *bytes, milliseconds: *milliseconds, failure };
                self.copying_failed(*job, *direction, report);
                if until.is_some() {
                    self.change_job(*job, |job| job.begin_at(*until));
                    self.void_plans(*job);
                }
            }
            event => no_arm(event),
        }
    }

    fn copying_began(&mut self, id: JobId, node: NodeId, direction: CopyDirection, run: Option<RunId>) {
        let copy = self.sequence;
        self.change_stage(
            id,
            match direction {
                CopyDirection::In => CopyStage::Coming { node, copy, run },
                CopyDirection::Out => CopyStage::Leaving { node, copy },
            },
        );
        if direction == CopyDirection::In && run.is_none() {
            self.bind(id, node);
            self.void_plans(id);
        }
    }

    fn copying_ended(&mut self, id: JobId, direction: CopyDirection, report: CopyReport) {
        let Some(job) = self.job(id) else { return };
        let stage = match (direction, job.copies.as_ref().map(|copies| copies.stage)) {
            (CopyDirection::Out, _) => CopyStage::Out,
            (CopyDirection::In, Some(CopyStage::Coming { node, .. })) => CopyStage::In { node },
            _ => return,
        };
        let run = job.run();
        self.change_stage(id, stage);
        self.keep_report(id, report);
        if let Some(run) = run {
            self.files_came(run);
        }
    }

    /// The files of a run are there: its launch is ordered.
    fn files_came(&mut self, run: RunId) {
        let (since, timeout) = (self.sequence, self.settings.launch_timeout_seconds);
        let deadline = self.time.plus_seconds(i64::from(timeout));
        self.change_run(run, |run| {
            run.waits_for_files = false;
            run.launch_deadline = deadline;
            run.parts.iter_mut().for_each(|part| part.since = since);
        });
    }

    fn copying_failed(&mut self, id: JobId, direction: CopyDirection, report: CopyReport) {
        if direction == CopyDirection::Out {
            self.change_stage(id, CopyStage::Out);
        } else {
            self.unbind(id);
            self.change_stage(id, CopyStage::Failed);
            self.change_job(id, |job| {
                if let Some(copies) = &mut job.copies {
                    copies.failures = copies.failures.saturating_add(1);
                }
            });
        }
        self.keep_report(id, report);
    }

    /// The run of a job is over: the next one gets fresh copies.
    pub(crate) fn files_used(&mut self, id: JobId) {
        if self.job(id).is_some_and(|job| job.copies.is_some()) {
            self.unbind(id);
            self.change_job(id, |job| {
                if let Some(copies) = job.copies.as_mut().filter(|copies| copies.stage != CopyStage::Failed) {
                    copies.stage = CopyStage::Wanted;
                }
            });
        }
    }

    /// The job is over: files that are copied ahead for it are not needed.
    pub(crate) fn copies_dropped(&mut self, id: JobId) {
        let ahead = self.job(id).filter(|job| job.is_copied_ahead()).and_then(Job::copying);
        if let Some((node, copy, _)) = ahead {
            self.change_stage(id, CopyStage::Dropped { node, copy });
        }
    }

    /// The time has come at which a job whose files could not be copied waits no longer.
    pub(crate) fn copies_wanted_again(&mut self, id: JobId) {
        if self.job(id).and_then(|job| job.copies.as_ref()).is_some_and(|copies| copies.stage == CopyStage::Failed) {
            self.change_stage(id, CopyStage::Wanted);
        }
    }

    fn change_stage(&mut self, id: JobId, stage: CopyStage) {
        self.change_job(id, |job| job.copies.get_or_insert_default().stage = stage);
    }

    fn keep_report(&mut self, id: JobId, report: CopyReport) {
        self.change_job(id, |job| job.copies.get_or_insert_default().last = Some(report));
    }

    /// The job asks for the node that gets its files.
    fn bind(&mut self, id: JobId, node: NodeId) {
        let name = self.node_name(node).into_owned();
        let names = |job: &Job| {
            let mut requests = job.components.iter().flat_map(|component| component.shape.alternatives.iter());
            requests.any(|alternative| alternative.requests.iter().any(|request| !request.nodes.is_empty()))
        };
        // One that its owner names stays.
        if self.job(id).is_some_and(|job| !names(job)) {
            self.reshape_all(id, |alternatives| bound_to(alternatives, &name));
            self.change_job(id, |job| job.copies.get_or_insert_default().is_bound = true);
        }
    }

    fn unbind(&mut self, id: JobId) {
        let Some(copies) = self.job(id).and_then(|job| job.copies.as_ref()).filter(|copies| copies.is_bound) else {
            return;
        };
        let node = match copies.stage {
            CopyStage::Coming { node, .. } | CopyStage::In { node } => Some(node),
            _ => None,
        };
        if let Some(name) = node.map(|node| self.node_name(node).into_owned()) {
            self.reshape_all(id, |alternatives| unbound_from(alternatives, &name));
        }
        self.change_job(id, |job| job.copies.get_or_insert_default().is_bound = false);
    }
}
