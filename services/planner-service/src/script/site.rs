//! The cluster as a scheduling program sees it during a cycle.

use super::message::{Asked, FromScript};
use muster_pbs_plan::state_file::StateFile;
use muster_pbs_script::{
    action::{Accepted, Action, Answer, Code, Refusal},
    site::Site,
    state_site::{StateSite, hosts_of},
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

    fn start(&self, job: &str, hosts: Vec<String>) -> Result<Vec<String>, Refusal> {
        let (answer, answered) = sync_channel(1);
        let gone = |_| Refusal::new(Code::Internal, "the planner has left the cycle");
        let sent = self.0.send(FromScript::Asked(Asked { job: job.to_owned(), hosts, answer }));
        sent.map_err(|_| gone(()))?;
        answered.recv().map_err(|_| gone(()))?
    }
}

/// What there was at the start of the cycle, with the starts that the ledger accepted since.
#[derive(Debug)]
pub(crate) struct LiveSite {
    picture: StateSite,
    ask: Ask,
}

impl LiveSite {
    /// A cluster in this state.
    pub fn new(state: StateFile, ask: Ask) -> Self {
        Self { picture: StateSite::new(state), ask }
    }

    fn start(&mut self, job: &str, place: Option<&str>) -> Answer {
        self.picture.check_start(job)?;
        let hosts = place.into_iter().flat_map(hosts_of).map(str::to_owned).collect();
        let nodes = self.ask.start(job, hosts)?;
        self.picture.note_start(job, &nodes);
        Ok(Accepted { nodes, ..Accepted::default() })
    }
}

impl Site for LiveSite {
    fn state(&self) -> &StateFile {
        self.picture.state()
    }

    fn act(&mut self, action: &Action) -> Answer {
        match action {
            Action::Run { job, place } | Action::AsyRun { job, place } => self.start(job, place.as_deref()),
            // The comments of a cycle become the reasons why jobs wait.
            Action::Comment { .. } => self.picture.act(action),
            _ => Err(Refusal::new(Code::NotSupported, "here a scheduling program can start jobs and comment on them")),
        }
    }
}
