//! Items that the ledger puts on the work queue for notifiers. Each has everything that a notifier needs, so that
//! notifiers need no state.

use crate::{
    energy::SiteProgram,
    event::Owner,
    ids::{JobId, RunId, Sequence},
    job::{Occasion, Outcome, Sink},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One notification to deliver: the payload of a work item on [`crate::subjects::NOTIFY_SUBJECT`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifyItem {
    /// The job, or the task of an array; number 0 for a trigger on nodes.
    pub job: JobId,
    /// The record that it is about.
    pub of: Sequence,
    /// Which of the job's notifications, from 0.
    pub notification: u32,
    /// Which of its occasions.
    pub occasion: Occasion,
    /// Where to send it.
    pub sink: Sink,
    /// When it happened.
    pub time: Timestamp,
    /// The event, as one word: `started`, `held`, `released`, or how the job ended.
    pub event: String,
    /// How the job ended, if it has.
    pub outcome: Option<Outcome>,
    /// The cluster's name.
    pub cluster: String,
    /// The job's name.
    pub name: String,
    /// Whose job it is; commands run as this user.
    pub owner: Owner,
    /// The queue of its first component.
    pub queue: String,
    /// The run, if the job has or had one.
    pub run: Option<RunId>,
    /// Names of the run's nodes, in order of rank.
    pub nodes: Vec<String>,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// When its processes started, if they did.
    pub started: Option<Timestamp>,
    /// For an array: the outcomes of its tasks so far, each once.
    pub task_outcomes: Option<Vec<Outcome>>,
    /// For a job that is over and has run: the file of its standard output. Parts that differ between its tasks stay as
    /// in the pattern. The state has it only if it was changed after the submission, as a pattern; it is filled in when the item is queued.
    pub output: Option<String>,
    /// The dialect of the job.
    pub dialect: Option<String>,
    /// Whether a delivery that fails is not tried again: the program of a trigger runs once.
    pub is_tried_once: bool,
    /// The reason, if the event has one.
    pub why: Option<String>,
    /// A program of the site that is run instead of a sink, as the owner, who is never root.
    pub program: Option<SiteProgram>,
}

impl NotifyItem {
    /// The same for every delivery of this notification and for no other: receivers use it to drop duplicates, and the
    /// work queue drops items that are enqueued again.
    pub fn key(&self) -> String {
        format!("{}/{}/{}", self.job, self.of, self.notification)
    }
}

/// The result of a delivery attempt of a notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryResult {
    /// The mail server took it, or the command exited with 0.
    Delivered,
    /// It was given up after several attempts.
    GivenUp {
        /// Number of attempts.
        attempts: u32,
        /// The error of the last attempt.
        error: String,
    },
}
