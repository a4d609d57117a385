//! The process management interface of a step's tasks on this node, and fences with the step's other nodes through the
//! executor: for PMI a socket to each task (SL-W-04), for PMIx a server in a process of its own (SL-W-05).

mod libraries;
mod lookout;
mod pmix;

use crate::{
    containment::Entrance,
    environment::{OF_MANAGEMENT, OwnValue},
    host::Host,
    spool::{RunFolder, SpooledOrder},
};
pub use libraries::Library;
use lookout::Lookout;
pub use lookout::Warning;
use muster_pmi::{Effect, Layout, Server};
use muster_pmix::protocol::{FromServer, ToServer};
use muster_schemas::{
    content::ContentBytes,
    fence,
    resources::IndexSet,
    steps::{ProcessGroup, ProcessManagement},
};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use pmix::PmixServer;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, AsRawFd as _, BorrowedFd, RawFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

/// How much is read of a task's requests before the next task has its turn.
const READ_BYTES: usize = 16 << 10;
/// How often a task is read once it has ended: more than its socket holds.
const LAST_READS: usize = 64;
/// The longest reason of an abort, in bytes.
const MAX_WHY_BYTES: usize = 1_000;
/// The most that waits to be read by a task. One that does not read is no program of this interface.
const MAX_UNREAD_BYTES: usize = 1 << 20;

/// The token of the PMIx server among those of tasks, which are ranks.
const OF_PMIX: u64 = u64::MAX;
const BAD_FENCE: &str = "what its other nodes contributed to a fence cannot be understood";
/// What tasks are told that ask in PMI for what their step offers in PMIx.
const OTHER_INTERFACE: &str = "it asks for PMI, and the step offers PMIx: name `pmi2` as the kind of MPI";

/// The end of a parallel program before all of its tasks were done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abort {
    /// The task of this node that is the reason, if one is.
    pub rank: Option<u32>,
    /// The exit status that it asked for, if it did.
    pub status: Option<u8>,
    /// Why, for people.
    pub why: String,
}

/// The process management of the tasks here.
pub struct Management {
    server: Server,
    /// The name of the program's space of keys.
    space: String,
    size: usize,
    epoll: Epoll,
    connections: BTreeMap<u32, Connection>,
    /// The server that tasks ask instead, if the step offers PMIx.
    pmix: Option<PmixServer>,
    /// The tasks that have begun with it and are not done.
    pmix_members: BTreeSet<u32>,
    group: ProcessGroup,
    /// The ranks of the tasks here.
    local: IndexSet,
    folder: RunFolder,
    /// Whether other places take part in fences.
    has_others: bool,
    /// The fence that waits for its answer.
    fence: Option<u32>,
    /// Whether the executor has not been told of it.
    is_fence_news: bool,
    abort: Option<Abort>,
    /// Where its tasks may be programs that find nobody; `None` once one of them has asked, or been told.
    lookout: Option<Lookout>,
    /// Whether a task has been refused more processes, and whether that is said.
    refused_spawn: Refusal,
}

/// A refusal that is said once, however often a program tries again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Refusal {
    #[default]
    Never,
    /// To this task.
    Unsaid(u32),
    Said,
}

struct Connection {
    socket: UnixStream,
    /// What the task has not read yet.
    unread: Vec<u8>,
    /// Whether it is heard when the task has read some of it. Most answers are taken at once, and cost one call of the
    /// system less.
    waits_for_room: bool,
}

impl Management {
    /// The process management of a step; no task is connected.
    pub fn new(spooled: &SpooledOrder, group: &ProcessGroup, folder: &RunFolder) -> io::Result<Self> {
        let order = &spooled.order;
        let layout = layout(spooled, group);
        let space = format!("{}.{}", order.part.run(), order.step);
        Ok(Self {
            size: layout.size(),
            server: Server::new(layout, space.clone()),
            space,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            connections: BTreeMap::new(),
            pmix: None,
            pmix_members: BTreeSet::new(),
            group: group.clone(),
            local: spooled.tasks.as_ref().map_or_else(IndexSet::new, |tasks| tasks.ranks.clone()),
            folder: folder.clone(),
            has_others: order.nodes.len() > 1,
            fence: None,
            is_fence_news: false,
            abort: None,
            lookout: None,
            refused_spawn: Refusal::default(),
        })
    }

    /// The programs of the tasks need these libraries. Whether they find each other concerns only tasks that have others, and
    /// is told once for each component.
    pub fn watch(&mut self, spooled: &SpooledOrder, needed: BTreeMap<u32, Library>) {
        let nodes = &spooled.order.nodes;
        let own = nodes.get(spooled.order.node_index as usize).map(|node| node.component);
        let is_first =
            nodes.iter().position(|node| Some(node.component) == own) == Some(spooled.order.node_index as usize);
        if self.size > 1 && is_first {
            self.lookout = Some(Lookout::new(self.group.management, needed));
        }
    }

    /// The tasks have started.
    pub fn started(&mut self, now: Duration) {
        if let Some(lookout) = &mut self.lookout {
            lookout.begin(now);
        }
    }

    /// When the tasks are looked at next.
    pub fn next_look(&self) -> Option<Duration> {
        self.lookout.as_ref().and_then(Lookout::next)
    }

    /// Looks at the living tasks, by process, if it is time to. Returns what one of them is to be told, once.
    pub fn look(&mut self, tasks: &BTreeMap<i32, u32>, now: Duration) -> Option<Warning> {
        let warning = self.lookout.as_mut()?.look(tasks, now);
        self.told(warning)
    }

    /// The same for a task that has ended; the others live.
    pub fn look_at_ended(&mut self, rank: u32, is_success: bool, tasks: &BTreeMap<i32, u32>) -> Option<Warning> {
        let warning = self.lookout.as_mut()?.ended(rank, is_success, tasks);
        self.told(warning)
    }

    fn told(&mut self, warning: Option<Warning>) -> Option<Warning> {
        if warning.is_some() {
            self.lookout = None;
        }
        warning
    }

    /// Starts what the tasks need before they are started.
    ///
    /// # Errors
    /// Why they cannot be started, for people.
    pub fn begin(&mut self, spooled: &SpooledOrder, entrance: &Entrance, host: Option<&Host>) -> Result<(), String> {
        if self.group.management != ProcessManagement::Pmix {
            return Ok(());
        }
        let server = PmixServer::start(spooled, &self.group, &self.folder, entrance, host)?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, OF_PMIX);
        let watched = self.epoll.add(server.descriptor(), event);
        watched.map_err(|errno| format!("the PMIx server cannot be watched: {}", errno.desc()))?;
        self.pmix = Some(server);
        Ok(())
    }

    /// Lets go of what no task needs any more.
    pub fn end(&mut self) {
        if let Some(server) = self.pmix.take() {
            let _ = self.epoll.delete(server.descriptor());
        }
    }

    /// Connects a task; returns its side.
    pub fn connect(&mut self, rank: u32) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        self.epoll.add(&ours, EpollEvent::new(EpollFlags::EPOLLIN, rank.into()))?;
        self.connections.insert(rank, Connection { socket: ours, unread: Vec::new(), waits_for_room: false });
        Ok(theirs)
    }

    /// The variables by which a task finds its side of the connection.
    pub fn variables(&self, rank: u32, descriptor: RawFd) -> impl Iterator<Item = (String, OwnValue)> {
        let values = [descriptor.to_string(), rank.to_string(), self.size.to_string(), self.space.clone()];
        let of_pmix = self.pmix.as_ref().map_or(&[][..], |server| server.variables(rank)).iter().cloned();
        let own = OF_MANAGEMENT.into_iter().map(str::to_owned).zip(values).chain(of_pmix);
        own.map(|(name, value)| (name, OwnValue::Text(value)))
    }

    /// The descriptor that is ready when a task has said something.
    pub fn ready(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    /// Serves the tasks that have said something, without waiting for any.
    pub fn serve(&mut self) {
        let mut events = [EpollEvent::empty(); 256];
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        for event in &events[..count] {
            if event.data() == OF_PMIX {
                self.serve_pmix();
                continue;
            }
            let Ok(rank) = u32::try_from(event.data()) else { continue };
            if event.events().contains(EpollFlags::EPOLLOUT) {
                self.send(rank, &[]);
            }
            if event.events().intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR) {
                self.receive(rank);
            }
        }
    }

    /// Hears the PMIx server, and tells it what it had no room for.
    fn serve_pmix(&mut self) {
        let Some(server) = &mut self.pmix else { return };
        let is_there = server.receive();
        while let Some(message) = self.pmix.as_mut().map(PmixServer::next) {
            match message {
                Ok(Some(message)) => self.heard(message),
                Ok(None) => break,
                Err(why) => return self.lose_pmix(why),
            }
        }
        if !is_there {
            return self.lose_pmix("the PMIx server of this node has ended".to_owned());
        }
        self.tell_pmix(None);
    }

    fn heard(&mut self, message: FromServer) {
        match message {
            FromServer::Fence { number, contribution } => self.begin_fence(number, &contribution.0),
            FromServer::Abort { rank, status, why } => self.abort_as_asked(rank, status, why),
            FromServer::Failed { why } => self.abort(None, why),
            FromServer::Joined { rank } if self.is_local(rank) => {
                self.lookout = None;
                self.pmix_members.insert(rank);
            }
            FromServer::Finalized { rank } => drop(self.pmix_members.remove(&rank)),
            FromServer::NoSpawn { rank } if self.is_local(rank) => self.refuse_spawn(rank),
            // The server is the user's: what makes no sense is passed over.
            FromServer::Joined { .. } | FromServer::NoSpawn { .. } | FromServer::Ready { .. } => {}
        }
    }

    fn is_local(&self, rank: u32) -> bool {
        self.local.contains(rank)
    }

    /// Tells the PMIx server something; what it has no room for follows when it has read.
    fn tell_pmix(&mut self, message: Option<&ToServer>) {
        let Some(server) = &mut self.pmix else { return };
        let told = match message {
            Some(message) => server.tell(message),
            None => Ok(server.tell_rest()),
        };
        let has_more = match told {
            Ok(has_more) => has_more,
            Err(error) => return self.abort(None, format!("the PMIx server cannot be told of a fence: {error}")),
        };
        let waits = if has_more { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
        // A descriptor in the set can always be changed.
        let mut event = EpollEvent::new(EpollFlags::EPOLLIN | waits, OF_PMIX);
        let _ = self.epoll.modify(server.descriptor(), &mut event);
    }

    fn lose_pmix(&mut self, why: String) {
        self.end();
        self.abort(None, why);
    }

    /// A task has ended.
    pub fn ended(&mut self, rank: u32) {
        // What it said last comes before its end. Processes that it has left behind may continue to write.
        let _ = (0..LAST_READS).all(|_| self.receive(rank));
        self.disconnect(rank);
        // The server has said what a task did before that task could end.
        self.serve_pmix();
        if self.pmix_members.remove(&rank) {
            self.abort(Some(rank), "it left without finalizing".to_owned());
        }
        self.tell_pmix(Some(&ToServer::Ended { rank }));
        let effect = self.server.ended(rank);
        self.take(effect);
    }

    /// The fence that the tasks are in may have its answer.
    pub fn look_for_answer(&mut self) {
        let Some(answer) = self.fence.and_then(|number| self.folder.fence_answer(number)) else { return };
        let number = self.fence.take().unwrap_or_default();
        match answer {
            Ok(joined) if self.pmix.is_some() => self.fenced_by_pmix(number, &joined),
            Ok(joined) => self.fenced(&joined),
            Err(why) => {
                self.tell_pmix(Some(&ToServer::Broken { number, why: why.clone() }));
                self.abort(None, why);
            }
        }
    }

    /// Whether the executor is to be told of a fence; it is taken to be told.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.is_fence_news)
    }

    fn refuse_spawn(&mut self, rank: u32) {
        if self.refused_spawn == Refusal::Never {
            self.refused_spawn = Refusal::Unsaid(rank);
        }
    }

    /// What a task is to be told that asked for more processes, once.
    pub fn take_refusal(&mut self) -> Option<Warning> {
        let Refusal::Unsaid(rank) = self.refused_spawn else { return None };
        self.refused_spawn = Refusal::Said;
        Some(Warning {
            rank,
            text: format!(
                "muster: warning: task {rank} asked for more processes (MPI_Comm_spawn), which a step does not start: the program \
                 gets an error. Start it with the launcher of its MPI library (mpirun) in the job.\n"
            ),
        })
    }

    /// Why the program is over, if it is.
    pub fn take_abort(&mut self) -> Option<Abort> {
        self.abort.take()
    }

    fn fenced_by_pmix(&mut self, number: u32, joined: &[u8]) {
        let Some(contributions) = fence::split(joined) else { return self.abort(None, BAD_FENCE.to_owned()) };
        let contributions = contributions.into_iter().map(|bytes| ContentBytes(bytes.to_vec())).collect();
        self.tell_pmix(Some(&ToServer::Met { number, contributions }));
    }

    fn fenced(&mut self, joined: &[u8]) {
        let effects = fence::split(joined).and_then(|contributions| self.server.fenced(contributions).ok());
        match effects {
            Some(effects) => self.take(effects),
            None => self.abort(None, BAD_FENCE.to_owned()),
        }
    }

    /// A task asked for the end, with a status if it is given.
    fn abort_as_asked(&mut self, rank: u32, status: Option<i32>, why: String) {
        if status.is_none() {
            // It broke a rule: nothing that it says counts any more.
            self.disconnect(rank);
        }
        // As the low byte counts when a process ends.
        self.abort_with(Some(rank), status.map(|status| status.to_le_bytes()[0]), &why);
    }

    fn abort(&mut self, rank: Option<u32>, why: String) {
        self.abort_with(rank, None, &why);
    }

    /// The reason may have words of a task.
    fn abort_with(&mut self, rank: Option<u32>, status: Option<u8>, why: &str) {
        let why = why.get(..why.floor_char_boundary(MAX_WHY_BYTES)).unwrap_or(why).replace(char::is_control, " ");
        self.abort.get_or_insert(Abort { rank, status, why });
    }

    /// Reads from a task once. Returns whether it may have said more.
    fn receive(&mut self, rank: u32) -> bool {
        let Some(connection) = self.connections.get_mut(&rank) else { return false };
        let mut buffer = [0; READ_BYTES];
        match connection.socket.read(&mut buffer) {
            Ok(1..) if self.pmix.is_some() => {
                self.lookout = None;
                self.disconnect(rank);
                self.abort(Some(rank), OTHER_INTERFACE.to_owned());
                false
            }
            Ok(length @ 1..) => {
                self.lookout = None;
                let effects = self.server.received(rank, &buffer[..length]);
                self.take(effects);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            // All of its processes have closed it.
            Ok(_) | Err(_) => {
                self.disconnect(rank);
                let effect = self.server.closed(rank);
                self.take(effect);
                false
            }
        }
    }

    fn disconnect(&mut self, rank: u32) {
        if let Some(connection) = self.connections.remove(&rank) {
            let _ = self.epoll.delete(&connection.socket);
        }
    }

    fn take(&mut self, effects: impl IntoIterator<Item = Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { rank, bytes } => self.send(rank, &bytes),
                Effect::Fence { contribution, .. } if !self.has_others => {
                    self.fenced(&fence::join([contribution.as_slice()]));
                }
                Effect::Fence { number, contribution } => self.begin_fence(number, &contribution),
                Effect::Abort { rank, status, why } => self.abort_as_asked(rank, status, why),
                Effect::NoSpawn { rank } => self.refuse_spawn(rank),
            }
        }
    }

    fn begin_fence(&mut self, number: u32, contribution: &[u8]) {
        match self.folder.begin_fence(number, contribution) {
            Ok(()) => (self.fence, self.is_fence_news) = (Some(number), true),
            Err(error) => self.abort(None, format!("a fence cannot be kept in the spool: {error}")),
        }
    }

    /// Sends what the task takes without waiting; the rest follows when it reads.
    fn send(&mut self, rank: u32, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(&rank) else { return };
        connection.unread.extend_from_slice(bytes);
        let written = loop {
            match connection.socket.write(&connection.unread) {
                Ok(length) => break length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break 0,
                // It has closed its side, or ended: its end is told apart.
                Err(_) => break connection.unread.len(),
            }
        };
        connection.unread.drain(..written);
        if connection.waits_for_room == connection.unread.is_empty() {
            connection.waits_for_room = !connection.unread.is_empty();
            let waits = if connection.waits_for_room { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
            let mut event = EpollEvent::new(EpollFlags::EPOLLIN | waits, rank.into());
            // A descriptor in the set can always be changed.
            let _ = self.epoll.modify(&connection.socket, &mut event);
        }
        if connection.unread.len() > MAX_UNREAD_BYTES {
            self.disconnect(rank);
            self.abort(Some(rank), "it does not read the answers of the process manager".to_owned());
        }
    }
}

/// Each place of the step is a node of its own, although components can share one: tasks of two places have two servers.
fn layout(spooled: &SpooledOrder, group: &ProcessGroup) -> Layout {
    let mut by_rank: BTreeMap<u32, u32> = BTreeMap::new();
    for (place, ranks) in (0..).zip(group.ranks.iter()) {
        by_rank.extend(ranks.iter().map(|rank| (rank, place)));
    }
    let local = spooled.tasks.as_ref().map_or_else(Vec::new, |tasks| tasks.ranks.iter().collect());
    Layout::new(by_rank.into_values().collect(), local)
}

/// Makes a descriptor one that the program of a task inherits, with this number if one is given.
pub fn inherit(socket: &UnixStream, number: Option<RawFd>) -> Result<(), nix::errno::Errno> {
    use nix::{
        errno::Errno,
        fcntl::{FcntlArg, FdFlag, fcntl},
    };
    match number.filter(|number| *number != socket.as_raw_fd()) {
        None => fcntl(socket, FcntlArg::F_SETFD(FdFlag::empty())).map(drop),
        // SAFETY: whatever had the number is not used in this process any more.
        Some(number) => Errno::result(unsafe { libc::dup2(socket.as_raw_fd(), number) }).map(drop),
    }
}
