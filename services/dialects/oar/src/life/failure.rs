//! What goes wrong with a job, and what follows.

use super::state::State;

/// Something that went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The working directory is missing on the node.
    WorkingDirectory,
    /// The files for the output cannot be written.
    OutputFiles,
    /// The script before the command failed on the first node.
    Prologue,
    /// The script after the command failed on the first node.
    Epilogue,
    /// The script before the job failed on the server.
    ServerPrologue,
    /// The script after the job failed on the server.
    ServerEpilogue,
    /// A node could not be prepared: it does not answer, or the isolation group, a file or the user's shell is missing.
    Preparation,
    /// An isolation group could not be removed.
    Cleanup,
    /// The site's script after a suspension failed on the server.
    AfterSuspend,
    /// The site's script before a resumption failed on the server.
    BeforeResume,
    /// A node could not suspend or resume the job.
    SuspendOnNode,
}

/// The nodes that are suspected after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspected {
    /// None.
    None,
    /// The first node of the job.
    First,
    /// Those on which it failed.
    AtFault,
}

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consequence {
    /// The state that the job comes to; `None` if it stays as it would be without.
    pub state: Option<State>,
    /// The nodes that are suspected.
    pub suspected: Suspected,
    /// Whether a new job may take its place (OAR-J-20).
    pub may_be_made_anew: bool,
    /// Whether all queues stop until an operator enables them (OAR-J-19).
    pub stops_queues: bool,
}

/// What follows from a failure. An error on a front host, of a deploy or cosystem job, suspects no node (OAR-T-61).
pub fn consequence(failure: Failure, is_on_front_host: bool) -> Consequence {
    let plain = |state, suspected| Consequence { state, suspected, may_be_made_anew: false, stops_queues: false };
    let consequence = match failure {
        Failure::WorkingDirectory | Failure::OutputFiles => plain(Some(State::Error), Suspected::None),
        Failure::Prologue => Consequence { may_be_made_anew: true, ..plain(Some(State::Error), Suspected::First) },
        Failure::Preparation => Consequence { may_be_made_anew: true, ..plain(Some(State::Error), Suspected::AtFault) },
        Failure::Epilogue => plain(Some(State::Terminated), Suspected::First),
        Failure::Cleanup => plain(Some(State::Terminated), Suspected::AtFault),
        Failure::ServerPrologue | Failure::ServerEpilogue => {
            Consequence { stops_queues: true, ..plain(Some(State::Error), Suspected::None) }
        }
        Failure::AfterSuspend => plain(Some(State::Resuming), Suspected::None),
        Failure::BeforeResume => plain(Some(State::Error), Suspected::None),
        Failure::SuspendOnNode => plain(Some(State::Error), Suspected::AtFault),
    };
    if is_on_front_host {
        return Consequence { suspected: Suspected::None, may_be_made_anew: false, ..consequence };
    }
    consequence
}
