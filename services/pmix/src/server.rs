//! The server: between the library and the shim (SL-W-05).
//!
//! Three threads: the library's, which says what tasks want; one that reads from the shim; and this one, which decides
//! and answers. The first two only put events into one channel. It has no limit of its own: tasks wait for the answers
//! to their requests, and the shim sends one message for each fence and each end of a task. A task that connects again
//! and again fills the memory of its own job.

use crate::{
    contribution::{self, BadFence, Contribution},
    facts,
    layout::{BadProgram, Layout},
    library::{self, Library, Members, ModexAnswer, OperationAnswer, Upcall},
    protocol::{self, Decoder, FromServer, Program, Reader, ToServer},
    tasks::{Missing, Tasks},
};
use muster_schemas::content::ContentBytes;
use std::{
    collections::{BTreeMap, VecDeque},
    ffi::CStr,
    io,
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, PoisonError, mpsc},
};

/// Why a server ends before its time.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The shim cannot be reached, or sends what cannot be understood.
    #[error("the connection to the shim failed: {0}")]
    Shim(#[from] io::Error),
    /// The first message is something else, or it comes again.
    #[error("the shim does not begin with a program, or begins twice")]
    OutOfOrder,
    /// The program cannot be served.
    #[error("the program cannot be served: {0}")]
    Program(#[from] BadProgram),
    /// The library.
    #[error(transparent)]
    Library(#[from] library::Failure),
    /// A fence.
    #[error(transparent)]
    Fence(#[from] BadFence),
}

/// Variables that Open MPI 4 needs in addition to those of the library. Without the first two, and without variables of
/// Slurm, each task believes to be alone: the component `orte` says so. The others say that the task is bound to its
/// cores already. Later versions ignore all of them.
const OF_OPEN_MPI: [(&str, &str); 4] = [
    ("OMPI_MCA_schizo", "^orte"),
    ("OMPI_MCA_ess", "pmi"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("OMPI_MCA_orte_externally_bound", "1"),
];

enum Event {
    Heard(ToServer),
    /// The shim has closed its side.
    Closed,
    Unreadable(io::Error),
    Called(Upcall),
}

/// What local tasks have put for other nodes, as far as the library has answered.
type Given = Arc<Mutex<BTreeMap<u32, Vec<u8>>>>;

/// Serves the program that the shim at the other end of the socket begins with, until it closes its side. Failures are
/// also sent to the shim.
///
/// # Errors
/// Says what failed.
pub fn serve(socket: &UnixStream, names: &[&CStr]) -> Result<(), ServeError> {
    let mut reader = Reader::new(socket.try_clone()?, Decoder::of_server());
    let program = match reader.read()? {
        Some(ToServer::Begin(program)) => program,
        Some(_) => return Err(ServeError::OutOfOrder),
        None => return Ok(()),
    };
    let (mut desk, sender, events) = begin(program, names, socket).inspect_err(|error| tell(socket, error))?;
    std::thread::spawn(move || read_all(reader, &sender));
    let served = desk.run(&events).inspect_err(|error| tell(socket, error));
    // Only now: the shim is to hear of the failure before tasks lose their server.
    desk.server.stop();
    served
}

/// Tells the shim of a failure, unless it is that the shim cannot be reached.
fn tell(socket: &UnixStream, error: &ServeError) {
    if !matches!(error, ServeError::Shim(_)) {
        // If it is gone now, there is nobody to tell.
        let _ = protocol::write(socket, &FromServer::Failed { why: error.to_string() });
    }
}

fn read_all(mut reader: Reader<UnixStream, ToServer>, events: &mpsc::Sender<Event>) {
    loop {
        let event = match reader.read() {
            Ok(Some(message)) => Event::Heard(message),
            Ok(None) => Event::Closed,
            Err(error) => Event::Unreadable(error),
        };
        let is_last = !matches!(event, Event::Heard(_));
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}

type Begun<'a> = (Desk<'a>, mpsc::Sender<Event>, mpsc::Receiver<Event>);

/// Starts the library's server, and tells the shim the variables of the tasks.
fn begin<'a>(program: Program, names: &[&CStr], socket: &'a UnixStream) -> Result<Begun<'a>, ServeError> {
    let layout = Layout::new(program)?;
    let (sender, events) = mpsc::channel();
    let given = Given::default();
    let listener = listener(sender.clone(), given.clone());
    let library = Library::load(names)?;
    let server = library.start(&layout.program().namespace, &facts::of_server(&layout), listener)?;
    let maps = server.maps(&facts::node_list(&layout), &facts::rank_list(&layout))?;
    let local = layout.here().ranks.clone();
    server.register_program(local.len(), &facts::of_program(&layout, maps))?;
    let mut environments = Vec::with_capacity(local.len());
    for rank in &local {
        server.register_task(*rank, layout.program().uid, layout.program().gid)?;
        let mut variables = server.environment(*rank)?;
        variables.extend(OF_OPEN_MPI.map(|(name, value)| (name.to_owned(), value.to_owned())));
        environments.push((*rank, variables));
    }
    protocol::write(socket, &FromServer::Ready { environments })?;
    let desk = Desk {
        tasks: Tasks::new(&local),
        layout,
        server,
        socket,
        given,
        known: BTreeMap::new(),
        elsewhere: BTreeMap::new(),
        next_fence: 0,
        exchanged: None,
        waiting: VecDeque::new(),
        is_over: false,
    };
    Ok((desk, sender, events))
}

fn listener(events: mpsc::Sender<Event>, given: Given) -> impl Fn(Upcall) + Send + Sync {
    move |upcall| match upcall {
        Upcall::Data { rank, data } => {
            let mut given = given.lock().unwrap_or_else(PoisonError::into_inner);
            match data {
                Some(data) => drop(given.insert(rank, data)),
                None => drop(given.remove(&rank)),
            }
        }
        // After the end nobody listens, and the library stops.
        upcall => drop(events.send(Event::Called(upcall))),
    }
}

/// The state of the thread that decides.
struct Desk<'a> {
    layout: Layout,
    server: library::Server,
    socket: &'a UnixStream,
    tasks: Tasks,
    given: Given,
    /// What local tasks have put before the last fence.
    known: BTreeMap<u32, Vec<u8>>,
    /// What tasks of other nodes have put, as far as fences have not collected it.
    elsewhere: BTreeMap<u32, ContentBytes>,
    /// The number of the next fence over all nodes.
    next_fence: u32,
    /// The fence that the nodes exchange now.
    exchanged: Option<(u32, ModexAnswer)>,
    /// Fences that begin after it: nodes number them one after the other.
    waiting: VecDeque<Fence>,
    /// Whether the shim has been told of the program's end.
    is_over: bool,
}

/// A fence over all nodes in which all local tasks are.
struct Fence {
    collects: bool,
    data: Vec<u8>,
    answer: ModexAnswer,
}

impl Desk<'_> {
    fn run(&mut self, events: &mpsc::Receiver<Event>) -> Result<(), ServeError> {
        // The channel stays open: the listener has a sender.
        for event in events {
            match event {
                Event::Heard(message) => self.heard(message)?,
                Event::Called(upcall) => self.called(upcall)?,
                Event::Closed => return Ok(()),
                Event::Unreadable(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn heard(&mut self, message: ToServer) -> Result<(), ServeError> {
        match message {
            ToServer::Begin(_) => Err(ServeError::OutOfOrder),
            ToServer::Met { number, contributions } => self.met(number, &contributions),
            ToServer::Broken { number, .. } => {
                if let Some(answer) = self.take_exchanged(number) {
                    answer.give(Err(library::STATUS_UNREACH));
                }
                self.begin_next()
            }
            ToServer::Ended { rank } => {
                let missing = self.tasks.ended(rank);
                self.abort_without(missing)
            }
        }
    }

    fn called(&mut self, upcall: Upcall) -> Result<(), ServeError> {
        match upcall {
            Upcall::Joined { rank, answer } => {
                self.send(&FromServer::Joined { rank })?;
                answer.into_iter().for_each(|answer| answer.give(library::STATUS_SUCCESS));
                let missing = self.tasks.joined(rank);
                self.abort_without(missing)
            }
            Upcall::Finalized { rank, answer } => {
                self.tasks.finalized(rank);
                self.send(&FromServer::Finalized { rank })?;
                answer.into_iter().for_each(|answer| answer.give(library::STATUS_SUCCESS));
                Ok(())
            }
            Upcall::Abort { rank, status, message, answer } => self.aborted(rank, status, &message, answer),
            Upcall::Fence { status, answer, .. } if status != library::STATUS_SUCCESS => {
                answer.give(Err(status));
                Ok(())
            }
            Upcall::Fence { members, collects, data, answer, .. } => {
                self.fence(&members, Fence { collects, data, answer })
            }
            Upcall::Direct { rank, answer } => {
                answer.give(self.elsewhere.get(&rank).map(|data| data.0.clone()).ok_or(library::STATUS_NOT_FOUND));
                Ok(())
            }
            Upcall::Spawn { rank } => self.send(&FromServer::NoSpawn { rank }),
            // The listener has taken it.
            Upcall::Data { .. } => Ok(()),
        }
    }

    /// The shim hears of the abort before the task continues, and so before its end.
    fn aborted(&mut self, rank: u32, status: i32, message: &str, answer: OperationAnswer) -> Result<(), ServeError> {
        let why = match message {
            // Open MPI says so if the program gives no reason.
            "" | "N/A" => "it aborted the program".to_owned(),
            message => format!("it aborted the program: {message}"),
        };
        let told = self.abort(rank, Some(status), why);
        answer.give(library::STATUS_SUCCESS);
        told
    }

    fn abort_without(&mut self, missing: Option<Missing>) -> Result<(), ServeError> {
        missing.map_or(Ok(()), |Missing { rank, why }| self.abort(rank, None, why.to_owned()))
    }

    fn abort(&mut self, rank: u32, status: Option<i32>, why: String) -> Result<(), ServeError> {
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(());
        }
        self.send(&FromServer::Abort { rank, status, why })
    }

    fn fence(&mut self, members: &Members, fence: Fence) -> Result<(), ServeError> {
        match scope(&self.layout, members) {
            Scope::Local => fence.answer.give(Ok(fence.data)),
            Scope::Whole => self.waiting.push_back(fence),
            Scope::Other => fence.answer.give(Err(library::STATUS_NOT_SUPPORTED)),
        }
        self.begin_next()
    }

    /// Gives the contribution to the next fence to the shim, if none is exchanged.
    fn begin_next(&mut self) -> Result<(), ServeError> {
        if self.exchanged.is_some() {
            return Ok(());
        }
        let Some(fence) = self.waiting.pop_front() else { return Ok(()) };
        let put = self.newly_put();
        // What the fence collects is in the library of each node.
        let direct = if fence.collects { Vec::new() } else { put };
        let contribution = Contribution { collected: ContentBytes(fence.data), direct }.to_bytes()?;
        let number = self.next_fence;
        self.next_fence += 1;
        self.exchanged = Some((number, fence.answer));
        self.send(&FromServer::Fence { number, contribution: ContentBytes(contribution) })
    }

    /// What local tasks have put for other nodes and had not at the last fence.
    fn newly_put(&mut self) -> Vec<(u32, ContentBytes)> {
        for rank in &self.layout.here().ranks {
            self.server.request_data(*rank);
        }
        self.server.flush();
        let given = std::mem::take(&mut *self.given.lock().unwrap_or_else(PoisonError::into_inner));
        let is_new = |(rank, data): &(&u32, &Vec<u8>)| self.known.get(rank) != Some(data);
        let put = given.iter().filter(is_new).map(|(rank, data)| (*rank, ContentBytes(data.clone()))).collect();
        self.known.extend(given);
        put
    }

    fn met(&mut self, number: u32, contributions: &[ContentBytes]) -> Result<(), ServeError> {
        // An answer may come twice.
        let Some(answer) = self.take_exchanged(number) else { return Ok(()) };
        match contribution::joined(&self.layout, contributions) {
            Ok(Contribution { collected, direct }) => {
                self.elsewhere.extend(direct.into_iter().filter(|(rank, _)| !self.layout.is_local(*rank)));
                answer.give(Ok(collected.0));
                self.begin_next()
            }
            Err(error) => {
                answer.give(Err(library::STATUS_UNREACH));
                Err(error.into())
            }
        }
    }

    fn take_exchanged(&mut self, number: u32) -> Option<ModexAnswer> {
        self.exchanged.take_if(|(exchanged, _)| *exchanged == number).map(|(_, answer)| answer)
    }

    fn send(&self, message: &FromServer) -> Result<(), ServeError> {
        Ok(protocol::write(self.socket, message)?)
    }
}

/// The tasks that have to come to a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Tasks of this node only.
    Local,
    /// All tasks, on several nodes.
    Whole,
    /// Some of several nodes.
    Other,
}

fn scope(layout: &Layout, members: &Members) -> Scope {
    match members {
        Members::Local => Scope::Local,
        Members::All if layout.nodes().len() == 1 => Scope::Local,
        Members::All => Scope::Whole,
        Members::Ranks(ranks) if ranks.iter().all(|rank| layout.is_local(*rank)) => Scope::Local,
        Members::Ranks(ranks) if is_all(ranks, layout.size()) => Scope::Whole,
        Members::Ranks(_) | Members::Foreign => Scope::Other,
    }
}

/// Whether these are the ranks below `size`.
fn is_all(ranks: &[u32], size: u32) -> bool {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len() == size as usize && sorted.last().is_some_and(|last| *last < size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::tests::program;

    /// SL-W-05
    #[test]
    fn a_fence_is_of_this_node_of_all_nodes_or_refused() {
        let layout = Layout::new(program()).unwrap();
        let of = |ranks: &[u32]| scope(&layout, &Members::Ranks(ranks.to_vec()));
        assert_eq!([of(&[1, 3]), of(&[3])], [Scope::Local; 2]);
        assert_eq!([of(&[4, 3, 2, 1, 0]), scope(&layout, &Members::All)], [Scope::Whole; 2]);
        assert_eq!([of(&[0, 1]), of(&[0, 1, 2, 3, 9]), scope(&layout, &Members::Foreign)], [Scope::Other; 3]);
    }

    /// SL-W-05: the shim is told what is missing, and where to get it.
    #[test]
    fn a_host_without_the_library_says_so() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        protocol::write(&ours, &ToServer::Begin(program())).unwrap();
        let error = serve(&theirs, &[c"libpmix-that-nobody-has.so.2", c"libpmix-either.so"]).unwrap_err();
        drop(theirs);
        let mut reader = Reader::new(ours, Decoder::of_shim());
        let Some(FromServer::Failed { why }) = reader.read().unwrap() else { panic!("{error}") };
        assert!(why.contains("libpmix-that-nobody-has.so.2") && why.contains("libpmix2"), "{why}");
        assert_eq!(reader.read().unwrap(), None);
    }

    #[test]
    fn a_program_that_does_not_fit_is_told_to_the_shim() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        protocol::write(&ours, &ToServer::Begin(Program { node: 9, ..program() })).unwrap();
        assert!(matches!(serve(&theirs, &[]), Err(ServeError::Program(BadProgram::Ranks))));
        assert!(matches!(Reader::new(ours, Decoder::of_shim()).read(), Ok(Some(FromServer::Failed { .. }))));
    }

    #[test]
    fn a_shim_that_says_nothing_is_no_failure() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        serve(&theirs, &[]).unwrap();
    }
}
