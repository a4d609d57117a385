//! The server of PMIx programs, as the shim has it: a process of its own, which is the owner's, because the library that
//! it uses has threads and reads what tasks send (SL-W-05).

use crate::{
    PMIX_SERVER,
    containment::{Entrance, MARKER},
    host::{Host, Kept},
    shim::fork::{self, Forked, as_user, fork_into},
    spool::{RunFolder, SpooledOrder, TEMPORARY},
};
use muster_pmix::protocol::{self, Decoder, FromServer, Program, ToServer};
use muster_schemas::steps::ProcessGroup;
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use std::{
    collections::BTreeMap,
    ffi::{CString, c_char},
    fs::DirBuilder,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, AsRawFd as _, BorrowedFd},
        unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _, net::UnixStream},
    },
    path::Path,
    ptr,
    time::{Duration, Instant},
};

/// How long the server may take until tasks can be started.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How much is read of it at once.
const READ_BYTES: usize = 64 << 10;
/// How often it is read before its messages are taken.
const MAX_READS: usize = 16;
/// The folder with its files, in the temporary folder of the step.
const FOLDER: &str = "pmix";
/// Names of the submitter's variables that the server gets, besides those that begin with `PMIX_MCA_`.
const INHERITED: [&str; 2] = ["LD_LIBRARY_PATH", "PATH"];

/// The server of the tasks here.
pub struct PmixServer {
    socket: UnixStream,
    decoder: Decoder<FromServer>,
    /// What it has not read yet.
    unread: Vec<u8>,
    /// The variables of each task.
    environments: BTreeMap<u32, Vec<(String, String)>>,
}

impl PmixServer {
    /// Starts it for a step, and waits until tasks can be started.
    ///
    /// # Errors
    /// Why there is none, for people.
    pub fn start(
        spooled: &SpooledOrder,
        group: &ProcessGroup,
        folder: &RunFolder,
        entrance: &Entrance,
        host: Option<&Host>,
    ) -> Result<Self, String> {
        let failed = |what: &str, error: io::Error| format!("the PMIx server cannot {what}: {error}");
        let program = spooled.pmix_program.as_deref().ok_or("this node has no PMIx server")?;
        let (ours, theirs) = UnixStream::pair().map_err(|error| failed("be connected", error))?;
        let temporary = make_folder(spooled, folder)?;
        launch(spooled, program, &temporary, entrance, host, &theirs)?;
        drop(theirs);
        let mut server =
            Self { socket: ours, decoder: Decoder::of_shim(), unread: Vec::new(), environments: BTreeMap::new() };
        let begin = ToServer::Begin(begun(spooled, group, temporary));
        server.socket.set_write_timeout(Some(START_LIMIT)).map_err(|error| failed("be used", error))?;
        protocol::write(&server.socket, &begin).map_err(|error| failed("be told of the step", error))?;
        server.socket.set_nonblocking(true).map_err(|error| failed("be used", error))?;
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            match self.decoder.take() {
                Ok(Some(FromServer::Ready { environments })) => {
                    self.environments = environments.into_iter().collect();
                    return Ok(());
                }
                Ok(Some(FromServer::Failed { why })) => return Err(why),
                Ok(_) => {}
                Err(error) => return Err(format!("the PMIx server said something else: {error}")),
            }
            // Whatever else it says: the server is the user's.
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("the PMIx server was not ready after {} s", START_LIMIT.as_secs()));
            }
            let millis = PollTimeout::try_from(left.as_millis()).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], millis) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(format!("the PMIx server cannot be waited for: {}", errno.desc())),
            }
            if !self.receive() {
                return Err("the PMIx server ended before it was ready".to_owned());
            }
        }
    }

    /// The variables of a task.
    pub fn variables(&self, rank: u32) -> &[(String, String)] {
        self.environments.get(&rank).map_or(&[], Vec::as_slice)
    }

    /// The descriptor on which it is heard.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads what it has said. Returns whether it is still there.
    pub fn receive(&mut self) -> bool {
        let mut buffer = vec![0; READ_BYTES];
        for _ in 0..MAX_READS {
            match self.socket.read(&mut buffer) {
                Ok(0) => return false,
                Ok(length) => self.decoder.feed(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }

    /// Its next message.
    ///
    /// # Errors
    /// It said something that is none.
    pub fn next(&mut self) -> Result<Option<FromServer>, String> {
        self.decoder.take().map_err(|error| format!("the PMIx server said something else: {error}"))
    }

    /// Tells it something, as far as it reads without waiting. Returns whether there is more for it.
    ///
    /// # Errors
    /// The message is longer than messages can be.
    pub fn tell(&mut self, message: &ToServer) -> io::Result<bool> {
        self.unread.extend(protocol::to_bytes(message)?);
        Ok(self.tell_rest())
    }

    /// Tells it what it has not read yet, in the same way.
    pub fn tell_rest(&mut self) -> bool {
        while !self.unread.is_empty() {
            match self.socket.write(&self.unread) {
                Ok(length) => drop(self.unread.drain(..length)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                // Its end is heard when it is read.
                Err(_) => self.unread.clear(),
            }
        }
        false
    }
}

/// The folder for its files, of which none is left of an earlier step. It lies in a folder of the owner's, so it is made as
/// that user: other processes of his could put a link in its place.
fn make_folder(spooled: &SpooledOrder, folder: &RunFolder) -> Result<String, String> {
    let path = folder.file(TEMPORARY).join(FOLDER);
    let make = || match std::fs::remove_dir_all(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => DirBuilder::new().mode(0o700).create(&path),
    };
    let failed = |error| format!("the PMIx server cannot have the folder {}: {error}", path.display());
    as_user(&spooled.identity, || make().map_err(failed))?;
    Ok(path.display().to_string())
}

/// The whole program, of which this node is a part.
fn begun(spooled: &SpooledOrder, group: &ProcessGroup, temporary: String) -> Program {
    let order = &spooled.order;
    // Components are numbered in the job, and not all of them need be in the step.
    let mut components: Vec<u32> = order.nodes.iter().map(|node| node.component).collect();
    components.sort_unstable();
    components.dedup();
    let app = |component: u32| components.binary_search(&component).map_or(0, |at| at as u32);
    let mut of_ranks: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for ((node, place), ranks) in order.nodes.iter().zip(0..).zip(group.ranks.iter()) {
        of_ranks.extend(ranks.iter().map(|rank| (rank, (place, app(node.component)))));
    }
    Program {
        namespace: format!("muster.{}.{}", order.part.run(), order.step),
        node: order.node_index,
        node_names: order.nodes.iter().map(|node| node.name.clone()).collect(),
        node_of_rank: of_ranks.values().map(|(node, _)| *node).collect(),
        app_of_rank: of_ranks.values().map(|(_, app)| *app).collect(),
        uid: spooled.identity.uid,
        gid: spooled.identity.gid,
        temporary,
    }
}

/// Forks the server. It hears no signals: those of a step are for its tasks, and it ends when the shim lets go of it.
fn launch(
    spooled: &SpooledOrder,
    program: &Path,
    temporary: &str,
    entrance: &Entrance,
    host: Option<&Host>,
    socket: &UnixStream,
) -> Result<(), String> {
    let text = |bytes: &[u8]| CString::new(bytes).map_err(|_| "the name of its program holds a NUL byte".to_owned());
    let path = text(program.as_os_str().as_bytes())?;
    let arguments = [path.clone(), text(PMIX_SERVER.as_bytes())?];
    let variables = variables(spooled, temporary);
    let pointers = |texts: &[CString]| -> Vec<*const c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let (argument_pointers, variable_pointers) = (pointers(&arguments), pointers(&variables));
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null");
    let null = null.map_err(|error| format!("/dev/null cannot be opened: {error}"))?;
    // The user need not be able to look into the folder of the program: only the program itself has to be for all.
    let opened =
        std::fs::File::open(program).map_err(|error| format!("{} cannot be opened: {error}", program.display()))?;
    let kept = Kept::on_the_way_to([Path::new(temporary), program]);
    let groups = fork::groups_of(&spooled.identity);
    let forked = fork_into(entrance).map_err(|errno| format!("the PMIx server cannot be started: {}", errno.desc()))?;
    let Forked::Child { joined } = forked else { return Ok(()) };
    let become_it = || -> Result<(), Errno> {
        fork::join(entrance, joined)?;
        host.map_or(Ok(()), |host| host.enter(&kept))?;
        fork::change_user(&spooled.identity, &groups)?;
        for (from, to) in [(socket.as_raw_fd(), 0), (null.as_raw_fd(), 1), (null.as_raw_fd(), 2)] {
            // SAFETY: the standard streams of the shim are not used in this process any more.
            Errno::result(unsafe { libc::dup2(from, to) })?;
        }
        let (arguments, variables) = (argument_pointers.as_ptr(), variable_pointers.as_ptr());
        // SAFETY: both lists end with a null pointer, and what they point to lives until the program has replaced this one.
        unsafe {
            libc::execveat(opened.as_raw_fd(), c"".as_ptr(), arguments.cast(), variables.cast(), libc::AT_EMPTY_PATH)
        };
        Err(Errno::last())
    };
    let _ = become_it();
    // SAFETY: this process has nothing to save; the shim hears that the socket is closed.
    unsafe { libc::_exit(127) }
}

/// The submitter's variables that choose and set up the library, those that name its folder, and the one by which the
/// processes of the run are found.
fn variables(spooled: &SpooledOrder, temporary: &str) -> Vec<CString> {
    let is_for_it = |name: &&String| INHERITED.contains(&name.as_str()) || name.starts_with("PMIX_MCA_");
    let inherited = spooled.order.environment.iter().filter(|(name, _)| is_for_it(name));
    let inherited = inherited.map(|(name, value)| (name.as_str(), value.as_str()));
    let marker = spooled.marker();
    let own = [("TMPDIR", temporary), (MARKER, marker.as_str())];
    inherited.chain(own).filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok()).collect()
}
