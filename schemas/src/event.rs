//! The events of a cluster: everything that can happen.
//!
//! Each kind of event is a row of a table (`event/table.rs`). Rows are only ever appended, because a row's position is
//! its number in the log. New fields go to the end, and zero means "as before" ([`crate::codec`]). A test reads a
//! golden log of every released shape.

mod actor;
mod change;
mod part;
mod reason;
mod record;
mod relevance;
mod signature;
mod table;
mod trace;
pub mod uuid_bytes;

pub use crate::{job::HoldBy, notify::DeliveryResult};
pub use actor::{Actor, Owner};
pub use change::{JobChange, OutputFiles};
pub use part::{EndCause, NodeExit, NodePart, NodeTasks};
pub use reason::{ShrinkReason, StopReason, WaitingJob};
pub use record::{Commit, Record};
pub use relevance::{Concern, PlanEffect, Replay};
pub use signature::SignatureBytes;
pub(crate) use table::event_table;
pub use trace::TraceContext;

use crate::{
    accounts::{AccountChange, AccountSettings},
    cluster::{ClusterSettings, QueueSpec},
    copies::CopyDirection,
    crontab::CronJob,
    cycle::ProgramCycle,
    energy::{PowerOrder, PowerWay},
    filter::{
        CallId, ChainSpec, ChainVerdict, FilterExit, FilterKind, FilterReport, FilterSettings, JobDocument, JobWarning,
        StagingSettings, TemplateSpec,
    },
    ids::{JobId, NodeId, RunId, Sequence, StepId},
    job::{ExitStatus, Holds, JobSpec, Occasion, Outcome, Usage},
    node::{GpuFault, PartUse},
    plan::{BackfillPass, NodeClosure, PlanRecord, ReservationSpec},
    policy::{Policy, PolicySource},
    refusal::RefusalCode,
    resources::{IndexSet, NodeSpec, Placement},
    scheduling::SchedulingSettings,
    steps::{StepShare, StepSpec, TaskStatus},
    tasks::{TaskInstance, TaskList},
    time::Timestamp,
    trigger::TriggerSpec,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use uuid_bytes::UuidBytes;

/// Generates the events of the table and their properties.
macro_rules! events {
    ([$names:ident] $(
        $(#[$doc:meta])*
        $name:ident { $( $(#[$field_doc:meta])* $field:ident: $type:ty, )* }
        is $kind:literal $verb:expr, of [$($of:ident),*], plan $plan:ident, replay $replay:ident,
        concerns [$($concern:ident),*],
        public $subject:ident($data:expr);
    )*) => {
        /// The events of a cluster: everything that can happen.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Event {
            $( $(#[$doc])* $name { $( $(#[$field_doc])* $field: $type, )* }, )*
        }

        impl Event {
            /// Kind and verb of the public event, as in `muster.events.KIND.VERB.ID`.
            #[expect(unused_variables, reason = "a verb can depend on any field, and few do")]
            pub const fn kind_verb(&self) -> (&'static str, &'static str) {
                match self { $( Self::$name { $($field),* } => ($kind, $verb), )* }
            }

            /// The job that the event names. An event that names only a run belongs to that run's job, which the state
            /// knows.
            #[expect(unused_variables, reason = "a job is looked for where there is a run too")]
            pub const fn job(&self) -> Option<JobId> {
                match self { $( Self::$name { $($of,)* .. } => job_among!($($of $of)*), )* }
            }

            /// The run that the event names.
            #[expect(unused_variables, reason = "a run is looked for where there is a job too")]
            pub const fn run(&self) -> Option<RunId> {
                match self { $( Self::$name { $($of,)* .. } => run_among!($($of $of)*), )* }
            }

            /// What it changes for planners.
            pub const fn plan_effect(&self) -> PlanEffect {
                match self { $( Self::$name { .. } => PlanEffect::$plan, )* }
            }

            /// How a replay of the log under another policy treats it.
            pub const fn replay(&self) -> Replay {
                match self { $( Self::$name { .. } => Replay::$replay, )* }
            }

            /// Whether this part of muster acts on events of its kind.
            pub fn concerns(&self, concern: Concern) -> bool {
                let concerns: &[Concern] = match self { $( Self::$name { .. } => &[$(Concern::$concern),*], )* };
                concerns.contains(&concern)
            }
        }
    };
}

/// The job among the fields that identify the subject of an event. Each field is passed twice: once to match its name,
/// once to use it.
macro_rules! job_among {
    () => {
        None
    };
    (job $job:ident $($rest:ident)*) => {
        Some(*$job)
    };
    (call $call:ident) => {
        Some($call.job)
    };
}

/// The run among those fields.
macro_rules! run_among {
    () => { None };
    (run $run:ident) => { Some(*$run) };
    ($other:ident $same:ident $($rest:ident)*) => { run_among!($($rest)*) };
}

event_table!(events);

/// Additions to a job's specification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Intake {
    /// The template that it names.
    pub template: Option<String>,
    /// Its description as it was received (HPC-J-46).
    pub document: Option<JobDocument>,
    /// Its tasks, if it is a list of tasks.
    pub tasks: Option<TaskList>,
    /// The owner's timed hold: no start before this time.
    pub hold_until: Option<Timestamp>,
    /// Whether it is still being configured and waits for [`Event::JobEntered`] (HPC-C-04).
    pub is_configuring: bool,
    /// Parts of the description that were left out or not understood.
    pub warnings: Vec<JobWarning>,
}

/// The outcome of the checks of a job with a description.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Validated {
    /// The template that it was checked with.
    pub template: Option<String>,
    /// The revision of that template.
    pub revision: u64,
    /// The job's full specification from now on.
    pub spec: JobSpec,
    /// Its tasks, if it is a list of tasks.
    pub tasks: Option<TaskList>,
    /// Its description with all defaults (HPC-F-38).
    pub document: Option<JobDocument>,
    /// The job does not start before this time.
    pub hold_until: Option<Timestamp>,
    /// Warnings for people.
    pub warnings: Vec<JobWarning>,
}
