//! The comparison of a recorded decision with the repeated one.

use muster_domain::State;
use muster_schemas::{
    JobId, NodeId, Sequence, Timestamp,
    command::Start,
    event::{Event, Record},
    filter::ChainSpec,
    plan::{
        BackfillPass, PlanChange, PlanRecord, PlannedComponent, PlannedComponents, PredictedStart, ProposedPlan,
        RefusedChange,
    },
    resources::Placement,
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

/// A single difference between a repeated decision and the recorded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The record of the plan.
    pub sequence: Sequence,
    /// The time that was planned for.
    pub at: Timestamp,
    /// The subject of the difference.
    pub what: What,
    /// The job, unless it is about a reservation.
    pub job: Option<JobId>,
    /// The recorded value, for people; `None` if there was none.
    pub recorded: Option<String>,
    /// The value planned now, for people; `None` if there was none.
    pub planned: Option<String>,
}

/// The subject of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Whether or where a job starts.
    Start,
    /// Why a job waits.
    Reason,
    /// The promise of a job.
    Slot,
    /// When a job is expected to start.
    Prediction,
    /// The nodes of a reservation.
    Reservation,
    /// Whether a run grows or shrinks, resources are kept for a job, or runs make way for it.
    Change,
    /// The findings of a backfill pass for the components of a job, or which pass it is.
    Components,
}

impl What {
    /// As a word for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Reason => "reason",
            Self::Slot => "promise",
            Self::Prediction => "prediction",
            Self::Reservation => "reservation",
            Self::Change => "change",
            Self::Components => "backfill pass",
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}, planned for {}: {}", self.sequence, self.at, self.what.word())?;
        if let Some(job) = self.job {
            write!(f, " of job {job}")?;
        }
        let none = || "nothing".to_owned();
        let (recorded, planned) = (self.recorded.clone(), self.planned.clone());
        write!(f, ": recorded {}, planned {}", recorded.unwrap_or_else(none), planned.unwrap_or_else(none))
    }
}

/// The content of a plan.
pub(super) struct Decision {
    content: ProposedPlan,
    sequence: Sequence,
    /// Jobs whose starts were refused: it is not recorded where they would have started.
    refused: BTreeSet<JobId>,
    /// Other refusals: only the request is recorded.
    refused_changes: BTreeSet<RefusedChange>,
    /// Jobs that had events between the last record that the plan had seen and its commit. The ledger may have left out
    /// what the plan says about them.
    touched: BTreeSet<JobId>,
}

impl Decision {
    /// As recorded: `since` are the records between what was seen and the record of the plan.
    pub fn recorded(record: &Record, plan: &PlanRecord, since: &VecDeque<Record>) -> Self {
        let mut content = ProposedPlan {
            seen: plan.seen,
            at: plan.at,
            left_out: plan.left_out.clone(),
            starts: Vec::new(),
            reasons: plan.reasons.clone(),
            slots: plan.slots.clone(),
            predictions: plan.predictions.clone(),
            ..ProposedPlan::default()
        };
        let mut touched = BTreeSet::new();
        for other in since {
            match &other.event {
                Event::RunAllocated { job, placement, .. } if other.command == record.command => {
                    content.starts.push(Start { job: *job, placement: Placement::clone(placement) });
                }
                // A start that the job's filters were asked about.
                Event::FilterChainStarted { job, chain } if other.command == record.command => {
                    content.starts.extend(offered(*job, chain));
                    // If the job is first asked whether others shall make way for it, no reason is recorded.
                    touched.insert(*job);
                }
                Event::ReservationPlaced { name, nodes } if other.command == record.command => {
                    content.reservations.push((name.clone(), nodes.clone()));
                }
                Event::BackfillPassed { pass } if other.command == record.command => {
                    content.backfill_pass = Some(BackfillPass::clone(pass));
                }
                // Of two planners that start at the same time, the second has not seen what the first one told.
                Event::Planned { plan } => {
                    let reasons = plan.reasons.iter().map(|waiting| waiting.job);
                    let slots = plan.slots.iter().map(|slot| slot.job);
                    let predictions = plan.predictions.iter().map(|prediction| prediction.job);
                    touched.extend(reasons.chain(slots).chain(predictions));
                }
                event => {
                    let job = event.job();
                    touched.extend(job.into_iter().chain(job.map(JobId::whole)));
                }
            }
        }
        Self {
            content,
            sequence: record.sequence,
            refused: plan.refused.iter().copied().collect(),
            refused_changes: plan.refused_changes.iter().copied().collect(),
            touched,
        }
    }

    /// A plan without recorded content.
    pub fn silent(sequence: Sequence, at: Timestamp) -> Self {
        Self { sequence, ..Self::planned(ProposedPlan { at, ..ProposedPlan::default() }) }
    }

    /// As planned now.
    pub fn planned(content: ProposedPlan) -> Self {
        let (refused, refused_changes, touched) = Default::default();
        Self { content, sequence: Sequence(0), refused, refused_changes, touched }
    }

    /// Predictions alone, as made now.
    pub fn predicted(predictions: Vec<PredictedStart>) -> Self {
        Self::planned(ProposedPlan { predictions, ..ProposedPlan::default() })
    }

    /// Its content.
    pub fn content(&self) -> &ProposedPlan {
        &self.content
    }

    /// Whether it predicts and decides nothing.
    pub fn is_prediction(&self) -> bool {
        let ProposedPlan { starts, reasons, slots, reservations, predictions, .. } = &self.content;
        !predictions.is_empty()
            && starts.is_empty()
            && reasons.is_empty()
            && slots.is_empty()
            && reservations.is_empty()
            && self.refused.is_empty()
            && self.refused_changes.is_empty()
    }

    /// Where the repeated decision differs from this one.
    pub fn compare(&self, again: &Self, state: &State, only_starts: bool) -> Vec<Difference> {
        let (one, other) = (&self.content, &again.content);
        let mut differences = self.compare_starts(again, state);
        if only_starts {
            return differences;
        }
        if self.is_prediction() {
            let known: BTreeMap<JobId, _> = other.predictions.iter().map(|told| (told.job, told.start)).collect();
            for told in &one.predictions {
                let now = known.get(&told.job).copied();
                if now != Some(told.start) {
                    let text = |start: Option<Timestamp>| start.map_or("unknown".into(), |start| start.to_string());
                    differences.push(self.difference(
                        What::Prediction,
                        told.job,
                        Some(text(told.start)),
                        now.map(text),
                    ));
                }
            }
            return differences;
        }
        let reason = |told: &muster_schemas::event::WaitingJob| (told.job, told.reason.to_string());
        let (recorded, planned) = (one.reasons.iter().map(reason), other.reasons.iter().map(reason));
        self.compare_told(What::Reason, recorded.collect(), planned.collect(), &mut differences);
        let slot = |told: &muster_schemas::plan::PlannedSlot| {
            let text =
                |slot: &muster_schemas::plan::SlotSpec| format!("{} on {}", slot.start, place(state, &slot.placement));
            (told.job, told.slot.as_ref().map_or_else(|| "taken back".to_owned(), text))
        };
        let (recorded, planned) = (one.slots.iter().map(slot), other.slots.iter().map(slot));
        self.compare_told(What::Slot, recorded.collect(), planned.collect(), &mut differences);
        self.compare_refused_changes(again, &mut differences);
        self.compare_reservations(again, state, &mut differences);
        self.compare_passes(again, state, &mut differences);
        differences
    }

    /// A refused change must have been planned again: its job and its kind.
    fn compare_refused_changes(&self, again: &Self, differences: &mut Vec<Difference>) {
        let plan = &again.content;
        for RefusedChange { job, what } in &self.refused_changes {
            let is_planned = match what {
                PlanChange::Growth => plan.growths.iter().any(|growth| growth.job == *job),
                PlanChange::Shrink => plan.shrinks.iter().any(|shrink| shrink.job == *job),
                PlanChange::Keep => plan.reserved.iter().any(|kept| kept.job == *job),
                PlanChange::Preemption => plan.preemptions.iter().any(|preemption| preemption.for_job == *job),
            };
            if !is_planned {
                let recorded = format!("a refused {}", what.word());
                differences.push(self.difference(What::Change, *job, Some(recorded), None));
            }
        }
    }

    /// Recorded findings of a backfill pass must be found again; the ledger leaves out jobs that no longer wait.
    fn compare_passes(&self, again: &Self, state: &State, differences: &mut Vec<Difference>) {
        let (one, other) = (&self.content.backfill_pass, &again.content.backfill_pass);
        let number = |pass: &Option<BackfillPass>| pass.as_ref().map(|pass| format!("{}", pass.number));
        if number(one) != number(other) {
            differences.push(Difference {
                sequence: self.sequence,
                at: self.content.at,
                what: What::Components,
                job: None,
                recorded: number(one),
                planned: number(other),
            });
            return;
        }
        let told = |pass: &Option<BackfillPass>| -> BTreeMap<JobId, String> {
            let jobs = pass.iter().flat_map(|pass| &pass.jobs);
            jobs.map(|planned| (planned.job, components(state, planned))).collect()
        };
        self.compare_told(What::Components, told(one), told(other), differences);
    }

    fn compare_starts(&self, again: &Self, state: &State) -> Vec<Difference> {
        let text = |start: &Start| place(state, &start.placement);
        let recorded: BTreeMap<JobId, &Start> = self.content.starts.iter().map(|start| (start.job, start)).collect();
        let planned: BTreeMap<JobId, &Start> = again.content.starts.iter().map(|start| (start.job, start)).collect();
        let jobs: BTreeSet<JobId> = recorded.keys().chain(planned.keys()).chain(&self.refused).copied().collect();
        let mut differences = Vec::new();
        for job in jobs {
            let (was, is) = (recorded.get(&job), planned.get(&job));
            if self.refused.contains(&job) && was.is_none() {
                if is.is_none() {
                    differences.push(self.difference(What::Start, job, Some("a refused start".into()), None));
                }
            } else if was != is {
                differences.push(self.difference(
                    What::Start,
                    job,
                    was.map(|start| text(start)),
                    is.map(|start| text(start)),
                ));
            }
        }
        differences
    }

    /// Recorded content must be planned again; planned content must have been recorded, unless the ledger may have left
    /// it out.
    fn compare_told(
        &self,
        what: What,
        recorded: BTreeMap<JobId, String>,
        planned: BTreeMap<JobId, String>,
        differences: &mut Vec<Difference>,
    ) {
        let jobs: BTreeSet<JobId> = recorded.keys().chain(planned.keys()).copied().collect();
        let starts: BTreeSet<JobId> =
            self.content.starts.iter().flat_map(|start| [start.job, start.job.whole()]).collect();
        for job in jobs {
            let (was, is) = (recorded.get(&job), planned.get(&job));
            let may_be_left_out = self.touched.contains(&job) || starts.contains(&job);
            if was != is && !(was.is_none() && may_be_left_out) {
                differences.push(self.difference(what, job, was.cloned(), is.cloned()));
            }
        }
    }

    fn compare_reservations(&self, again: &Self, state: &State, differences: &mut Vec<Difference>) {
        let text = |nodes: &[NodeId]| nodes.iter().map(|node| state.node_name(*node)).collect::<Vec<_>>().join(",");
        for (name, nodes) in &self.content.reservations {
            let planned = again.content.reservations.iter().find(|(other, _)| other == name).map(|(_, nodes)| nodes);
            if planned != Some(nodes) {
                differences.push(Difference {
                    sequence: self.sequence,
                    at: self.content.at,
                    what: What::Reservation,
                    job: None,
                    recorded: Some(format!("{name} has {}", text(nodes))),
                    planned: planned.map(|nodes| format!("{name} has {}", text(nodes))),
                });
            }
        }
    }

    fn difference(&self, what: What, job: JobId, recorded: Option<String>, planned: Option<String>) -> Difference {
        Difference { sequence: self.sequence, at: self.content.at, what, job: Some(job), recorded, planned }
    }
}

/// When and where components are expected to start, for people.
fn components(state: &State, planned: &PlannedComponents) -> String {
    let component = |planned: &PlannedComponent| {
        let start = planned.start.map_or_else(|| "unknown".to_owned(), |start| start.to_string());
        let nodes: Vec<_> = planned.nodes.iter().map(|node| state.node_name(*node)).collect();
        format!("{start} on {}", nodes.join(" "))
    };
    planned.components.iter().map(component).collect::<Vec<_>>().join(", ")
}

fn offered(job: JobId, chain: &ChainSpec) -> Option<Start> {
    let offer = chain.offer.as_ref().filter(|offer| !offer.growth && offer.preempts.is_empty())?;
    Some(Start { job, placement: Placement::clone(&offer.placement) })
}

/// A placement for people: `n1(0-3) n2(0)`, with GPUs after a second colon.
fn place(state: &State, placement: &Placement) -> String {
    let share = |share: &muster_schemas::resources::NodeShare| {
        let gpus = if share.gpus.is_empty() { String::new() } else { format!(":{}", share.gpus) };
        format!("{}({}{gpus})", state.node_name(share.node), share.cores)
    };
    placement.shares().map(share).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{
        CommandId,
        event::{Actor, TraceContext, WaitingJob},
        job::WaitReason,
    };
    use std::sync::Arc;

    fn planned(sequence: u64, jobs: &[u64]) -> Record {
        Record {
            sequence: Sequence(sequence),
            time: Timestamp::MIN,
            actor: Arc::new(Actor::Planner),
            command: CommandId::new_now(),
            trace: TraceContext::default(),
            event: Event::Planned { plan: Arc::new(PlanRecord { reasons: reasons(jobs), ..PlanRecord::default() }) },
            epoch: 0,
        }
    }

    fn reasons(jobs: &[u64]) -> Vec<WaitingJob> {
        jobs.iter().map(|job| WaitingJob { job: JobId::job(*job), reason: WaitReason::NotPlannedYet }).collect()
    }

    /// Two planners start at the same time and plan for the same state: the ledger leaves out of the second plan what the first
    /// one has told. A reason that neither of them told is a difference.
    #[test]
    fn what_an_unseen_plan_told_is_left_out_of_the_next() {
        let mine = planned(3, &[]);
        let Event::Planned { plan } = &mine.event else { panic!("a plan") };
        let again = Decision::planned(ProposedPlan { reasons: reasons(&[7]), ..ProposedPlan::default() });
        let differences = |since: VecDeque<Record>| {
            Decision::recorded(&mine, plan, &since).compare(&again, &State::new(), false).len()
        };
        assert_eq!(differences(VecDeque::from([planned(2, &[7])])), 0);
        assert_eq!(differences(VecDeque::from([planned(2, &[8])])), 1);
    }
}
