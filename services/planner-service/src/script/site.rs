//! The cluster as a scheduling program sees it during a cycle.

use super::message::{Asked, Done, FromScript, Seen};
use muster_pbs_plan::state_file::{JobState, StateFile};
use muster_pbs_script::{
    action::{Accepted, Action, Answer, Change, Code, Refusal},
    site::Site,
    state_site::{Reservations, StateSite},
};
use std::sync::mpsc::sync_channel;
use tokio::sync::mpsc::UnboundedSender;

/// The way to the planner.
#[derive(Clone, Debug)]
pub(crate) struct Ask(UnboundedSender<FromScript>);

impl Ask {
    /// Asks over this channel.
    pub const fn new(channel: UnboundedSender<FromScript>) -> Self {
        Self(channel)
    }

    fn act(&self, action: Action, avoid: Vec<String>) -> Result<Done, Refusal> {
        let (answer, answered) = sync_channel(1);
        let gone = |_| Refusal::new(Code::Internal, "the planner has left the cycle");
        let sent = self.0.send(FromScript::Asked(Asked { action, avoid, answer }));
        sent.map_err(|_| gone(()))?;
        answered.recv().map_err(|_| gone(()))?
    }
}

/// What there was at the start of the cycle, with what the ledger has accepted since.
#[derive(Debug)]
pub(crate) struct LiveSite {
    picture: StateSite,
    ask: Ask,
}

impl LiveSite {
    /// A cluster in this state, of which some nodes are reserved.
    pub fn new(state: StateFile, ask: Ask, reserved: &Reservations) -> Self {
        let mut picture = StateSite::new(state);
        picture.reserve_again(reserved);
        Self { picture, ask }
    }

    /// The reservations, to be kept until the next cycle.
    pub fn reservations(&self) -> Reservations {
        self.picture.reservations()
    }

    fn start(&mut self, job: &str, action: &Action) -> Answer {
        self.picture.check_start(job)?;
        let avoid = self.reservations().of.into_values().flatten().collect();
        let Done { nodes, full, .. } = self.ask.act(action.clone(), avoid)?;
        self.picture.note_start(job, &nodes);
        self.picture.note_full(&full);
        Ok(Accepted { nodes, ..Accepted::default() })
    }

    /// Comments are the program's own: they become the reasons why jobs wait. Everything else of a change is asked for.
    fn alter(&mut self, job: &str, changes: &[Change]) -> Answer {
        let is_comment = |change: &&Change| change.name == "comment" && change.resource.is_none();
        let (comments, others): (Vec<&Change>, Vec<&Change>) = changes.iter().partition(is_comment);
        if !others.is_empty() {
            let changes = others.into_iter().cloned().collect();
            self.ask_for(Action::Alter { job: job.to_owned(), changes })?;
        }
        for comment in comments {
            self.picture.act(&Action::Comment { job: job.to_owned(), text: comment.value.clone() })?;
        }
        Ok(Accepted::default())
    }

    fn ask_for(&mut self, action: Action) -> Answer {
        let job = action.job().map(str::to_owned);
        let seen = self.ask.act(action, Vec::new())?.seen;
        match (seen, job) {
            (Seen::Job(now), Some(job)) => {
                // Its group has been looked up, and its comment may have been made in this cycle.
                let known = self.picture.state().jobs.iter().find(|known| known.id == now.id);
                let (group, comment) =
                    known.map(|known| (known.group.clone(), known.comment.clone())).unwrap_or_default();
                let now =
                    JobState { group: group.or(now.group.clone()), comment: comment.or(now.comment.clone()), ..*now };
                self.picture.note_job(&job, Some(now));
            }
            (Seen::NoJob, Some(job)) => self.picture.note_job(&job, None),
            (Seen::Queue(now), _) => self.picture.note_queue(*now),
            _ => {}
        }
        Ok(Accepted::default())
    }
}

impl Site for LiveSite {
    fn state(&self) -> &StateFile {
        self.picture.state()
    }

    fn act(&mut self, action: &Action) -> Answer {
        match action {
            Action::Run { job, .. } | Action::AsyRun { job, .. } => self.start(job, action),
            Action::Alter { job, changes } => self.alter(job, changes),
            // These are known to the program and its planner only.
            Action::Comment { .. } | Action::Reserve { .. } | Action::Unreserve { .. } => self.picture.act(action),
            _ => self.ask_for(action.clone()),
        }
    }
}
