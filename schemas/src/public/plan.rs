//! Plans and their basis: policies, reservations, resources set aside.

use super::{
    allocation::AllocatedNode,
    declare::public_events,
    names::{Names, node_name},
    words::Amount,
};
use crate::{
    cycle::ProgramCycle,
    ids::{JobId, RunId, Sequence},
    plan::{
        BackfillPass, ComponentMode, PlanCycle, PlanRecord, PlannedComponent, PlannedComponents, QueueLift,
        ReservationSpec, RunUnits,
    },
    policy::{Policy, PolicySource},
    time::Timestamp,
    views::ReasonView,
};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};
use utoipa::ToSchema;

/// Maximum number of jobs that a `plan.made` event lists; its counts include all jobs.
pub const MAX_WAITING_JOBS: usize = 10_000;

public_events! { PlanData
    /// The policy that planners follow changed.
    "policy" "set" PolicySet about policy.name {
        /// The policy from now on.
        policy: Arc<Policy>,
    }
    says |data, f| write!(f, "planners follow the policy {}", data.policy.name);

    /// Files of a policy have mistakes: the policy in force stays.
    "policy" "refused" PolicyRefused about name {
        /// The name of the policy that was refused.
        name: String,
        /// The files that it was made of.
        sources: Vec<PolicySource>,
        /// The mistakes in them, the first 100.
        mistakes: Vec<String>,
    }
    says |data, f| write!(f, "the policy {} was refused for {} mistakes", data.name, data.mistakes.len());

    /// Something about the files of the policy in force is doubtful.
    "policy" "warned" PolicyWarned about name {
        /// The name of the policy.
        name: String,
        /// The warnings, the first 100.
        warnings: Vec<String>,
    }
    says |data, f| write!(f, "the policy {} has {} warnings", data.name, data.warnings.len());

    /// An advance reservation was created or changed.
    "reservation" "set" ReservationSet about reservation.name {
        /// The reservation from now on.
        reservation: Arc<ReservationSpec>,
    }
    says |data, f| {
        let spec = &data.reservation;
        write!(f, "reservation {} was set from {} to {}", spec.name, spec.start, spec.end)
    };

    /// The nodes of a reservation that asks for a number of them were chosen.
    "reservation" "placed" ReservationPlaced about reservation {
        /// Its name.
        reservation: String,
        /// Names of the nodes.
        nodes: Vec<String>,
    }
    says |data, f| {
        write!(f, "reservation {} was given {} nodes", data.reservation, data.nodes.len())
    };

    /// A reservation has begun: its jobs may start.
    "reservation" "begun" ReservationBegun about reservation {
        /// Its name.
        reservation: String,
    }
    says |data, f| write!(f, "reservation {} has begun", data.reservation);

    /// A reservation was removed, or is over.
    "reservation" "removed" ReservationRemoved about reservation {
        /// Its name.
        reservation: String,
    }
    says |data, f| write!(f, "reservation {} was removed", data.reservation);

    /// A plan was made: its results besides its starts, and its input.
    "plan" "made" PlanMade about cluster {
        /// The last record that the planner had seen.
        seen: Sequence,
        /// The time that it planned for.
        at: Timestamp,
        /// Jobs whose starts the ledger refused.
        refused: Vec<JobId>,
        /// Number of jobs that it left out because a start had been refused before.
        left_out: u64,
        /// Number of jobs that wait for a new reason.
        reasons: u64,
        /// Number of promises made, changed or withdrawn.
        slots: u64,
        /// Number of changed predictions of starts.
        predictions: u64,
        /// The first 10,000 jobs with any of these changes, in order of their ids.
        jobs: Vec<PlannedJob>,
        /// The cycle that made it, under planning by turns.
        cycle: Option<Box<PlanCycle>>,
        /// All queues for which the rules of the usual hours are lifted, if they changed.
        lifted: Option<Vec<QueueLift>>,
        /// The units of started jobs on machines whose units have numbers.
        units: Vec<RunUnits>,
    }
    says |data, f| write!(
        f,
        "a plan was made: {} new reasons, {} promises, {} predictions, {} starts refused",
        data.reasons,
        data.slots,
        data.predictions,
        data.refused.len()
    );

    /// The planner made a backfill pass for jobs with several components.
    "plan" "backfilled" PlanBackfilled about cluster {
        /// The number of the pass, from 1.
        number: u64,
        /// The time that it planned for.
        at: Timestamp,
        /// How it considered jobs with several components: `singly` (mode 1) or `together` (mode 2).
        mode: ComponentMode,
        /// Number of jobs that it considered and did not start.
        total: u64,
        /// The first 10,000 of them.
        jobs: Vec<PassedJob>,
    }
    says |data, f| write!(
        f,
        "backfill pass {}, mode {}: {} jobs with several components wait",
        data.number,
        data.mode.number(),
        data.total
    );

    /// A planner started.
    "planner" "started" PlannerStarted about cluster {
        /// Number of planner starts so far, including this one.
        epoch: u64,
    }
    says |data, f| write!(f, "planner {} began its work", data.epoch);

    /// A cycle of a scheduling program is over.
    "planner" "cycled" PlannerCycled about cluster {
        /// The cycle. Its starts and other actions have their own earlier events.
        cycle: Arc<ProgramCycle>,
    }
    says |data, f| {
        let ProgramCycle { number, program, started, done, refused, .. } = &*data.cycle;
        let reason = data.cycle.reasons.first().map_or("", String::as_str);
        write!(f, "cycle {number} of {program} ({reason}): {started} starts, {done} other actions, {refused} refused")?;
        data.cycle.trouble.iter().try_for_each(|trouble| write!(f, "; {trouble}"))
    };

    /// An activation filter keeps jobs of a priority and below from starting.
    "queue" "blocked" QueueBlocked about job {
        /// The job whose filter blocks them.
        job: JobId,
        /// The priority.
        priority: i64,
    }
    says |data, f| {
        write!(f, "job {} keeps jobs of priority {} and below from starting", data.job, data.priority)
    };

    /// A job no longer blocks others.
    "queue" "unblocked" QueueUnblocked about job {
        /// The job that blocked them.
        job: JobId,
    }
    says |data, f| write!(f, "job {} no longer blocks others", data.job);

    /// Resources are set aside for a waiting job.
    "resources" "reserved" ResourcesReserved about job {
        /// The job.
        job: JobId,
        /// The number that its run will have.
        run: RunId,
        /// All resources set aside.
        nodes: Vec<AllocatedNode>,
    }
    says |data, f| {
        write!(f, "{} is kept for job {}", Amount(&data.nodes), data.job)
    };

    /// Resources are no longer set aside for a job.
    "resources" "released" ResourcesReleased about job {
        /// The job.
        job: JobId,
        /// The number that its run would have had.
        run: RunId,
    }
    says |data, f| write!(f, "the resources kept for job {} are free again", data.job);
}

/// A plan's results for a waiting job. Unchanged parts are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PlannedJob {
    /// The job or array.
    pub job: JobId,
    /// Why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReasonView>,
    /// The latest start, as promised; `null` if the promise was withdrawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Timestamp>)]
    pub slot_start: Option<Option<Timestamp>>,
    /// When it is expected to start; `null` if it cannot be predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Timestamp>)]
    pub predicted_start: Option<Option<Timestamp>>,
}

/// A job with several components that did not start in a backfill pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PassedJob {
    /// The job.
    pub job: JobId,
    /// Why it waits.
    pub reason: ReasonView,
    /// When and where its components are expected to start, in their order.
    pub components: Vec<PassedComponent>,
}

/// When and where a component is expected to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PassedComponent {
    /// When; `null` if that is not known.
    pub start: Option<Timestamp>,
    /// Its nodes then.
    pub nodes: Vec<String>,
}

pub(super) fn planned(plan: &PlanRecord) -> PlanMade {
    let mut jobs: BTreeMap<JobId, PlannedJob> = BTreeMap::new();
    let empty = |job| PlannedJob { job, reason: None, slot_start: None, predicted_start: None };
    for waiting in &plan.reasons {
        jobs.entry(waiting.job).or_insert_with_key(|job| empty(*job)).reason = Some((&waiting.reason).into());
    }
    for planned in &plan.slots {
        let start = planned.slot.as_ref().map(|slot| slot.start);
        jobs.entry(planned.job).or_insert_with_key(|job| empty(*job)).slot_start = Some(start);
    }
    for predicted in &plan.predictions {
        jobs.entry(predicted.job).or_insert_with_key(|job| empty(*job)).predicted_start = Some(predicted.start);
    }
    PlanMade {
        seen: plan.seen,
        at: plan.at,
        refused: plan.refused.clone(),
        left_out: plan.left_out.len() as u64,
        reasons: plan.reasons.len() as u64,
        slots: plan.slots.len() as u64,
        predictions: plan.predictions.len() as u64,
        jobs: jobs.into_values().take(MAX_WAITING_JOBS).collect(),
        cycle: plan.cycle.clone(),
        lifted: plan.lifted.clone(),
        units: plan.units.clone(),
    }
}

pub(super) fn passed(pass: &BackfillPass, names: &dyn Names) -> PlanBackfilled {
    let component = |planned: &PlannedComponent| PassedComponent {
        start: planned.start,
        nodes: planned.nodes.iter().map(|node| node_name(names, *node).into_owned()).collect(),
    };
    let job = |planned: &PlannedComponents| PassedJob {
        job: planned.job,
        reason: (&planned.reason).into(),
        components: planned.components.iter().map(component).collect(),
    };
    PlanBackfilled {
        number: pass.number,
        at: pass.at,
        mode: pass.mode,
        total: pass.jobs.len() as u64,
        jobs: pass.jobs.iter().take(MAX_WAITING_JOBS).map(job).collect(),
    }
}
