//! The functions that the library calls from its own threads. None of them waits: a call is handed to the listener, and
//! answered later if it has an answer.

use super::types::{
    self, Info, ModexCallback, OperationCallback, Proc, RANK_ALL, RANK_LOCAL_NODE, RANK_LOCAL_PEERS,
    STATUS_NOT_SUPPORTED, STATUS_OPERATION_SUCCEEDED, STATUS_SUCCESS, ServerModule, SpawnCallback, Status,
};
use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    sync::OnceLock,
};

/// A call of the library.
pub enum Upcall {
    /// A task has connected.
    Joined {
        /// Its rank.
        rank: u32,
        /// Lets it continue, if it waits.
        answer: Option<OperationAnswer>,
    },
    /// A task is done.
    Finalized {
        /// Its rank.
        rank: u32,
        /// Lets it continue, if it waits.
        answer: Option<OperationAnswer>,
    },
    /// A task asks for the end of the program, and waits until that is known.
    Abort {
        /// Its rank.
        rank: u32,
        /// The exit status that it asks for.
        status: i32,
        /// Its message, at most [`MAX_MESSAGE_BYTES`].
        message: String,
        /// To let it continue.
        answer: OperationAnswer,
    },
    /// All tasks of this node among those of a fence are in it.
    Fence {
        /// Its tasks.
        members: Members,
        /// Whether its data is for all members at its end.
        collects: bool,
        /// [`STATUS_SUCCESS`], or why it cannot be.
        status: Status,
        /// What the library wants the other servers to get.
        data: Vec<u8>,
        /// To end it: with the data of all servers.
        answer: ModexAnswer,
    },
    /// A task asks for what a task of another node has put.
    Direct {
        /// The rank of the other task.
        rank: u32,
        /// To answer: with what [`Upcall::Data`] on the other node had.
        answer: ModexAnswer,
    },
    /// A task asks for more processes, and has been refused them.
    Spawn {
        /// Its rank.
        rank: u32,
    },
    /// What a local task has put for others, as asked for.
    Data {
        /// Its rank.
        rank: u32,
        /// The data, if there is any.
        data: Option<Vec<u8>>,
    },
}

/// The tasks of a fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// All tasks of the program.
    All,
    /// All tasks of this node.
    Local,
    /// These tasks.
    Ranks(Vec<u32>),
    /// Tasks of another program too.
    Foreign,
}

/// The longest message of an abort, in bytes; the rest is cut off.
pub const MAX_MESSAGE_BYTES: usize = 1 << 10;

/// Lets a task continue that waits for an operation.
pub struct OperationAnswer {
    callback: OperationCallback,
    data: *mut c_void,
}

// SAFETY: the library takes answers from any thread, and nobody follows its pointer here.
unsafe impl Send for OperationAnswer {}

impl OperationAnswer {
    /// Gives the answer.
    pub fn give(self, status: Status) {
        // SAFETY: the callback and its pointer belong to one call of the library, and are used once since this
        // consumes them. The server runs: its owner gives no answers after it has stopped it.
        unsafe { (self.callback)(status, self.data) }
    }
}

/// Answers with data.
pub struct ModexAnswer {
    callback: ModexCallback,
    data: *mut c_void,
}

// SAFETY: as for `OperationAnswer`.
unsafe impl Send for ModexAnswer {}

impl ModexAnswer {
    /// Gives the answer: data, or an error.
    pub fn give(self, answer: Result<Vec<u8>, Status>) {
        /// Frees the data of an answer.
        unsafe extern "C" fn release(answer: *mut c_void) {
            // SAFETY: the pointer is of `Box::into_raw` below, and the library passes it once.
            drop(unsafe { Box::from_raw(answer.cast::<Vec<u8>>()) });
        }
        let (status, bytes) = match answer {
            Ok(bytes) => (STATUS_SUCCESS, bytes),
            Err(status) => (status, Vec::new()),
        };
        if bytes.is_empty() {
            // SAFETY: as in `OperationAnswer::give`; without data there is nothing to free.
            return unsafe { (self.callback)(status, std::ptr::null(), 0, self.data, None, std::ptr::null_mut()) };
        }
        let bytes = Box::into_raw(Box::new(bytes));
        // SAFETY: as in `OperationAnswer::give`. The bytes stay until the library has called `release`.
        unsafe {
            (self.callback)(status, (*bytes).as_ptr().cast(), (*bytes).len(), self.data, Some(release), bytes.cast())
        }
    }
}

struct Listener {
    namespace: CString,
    tell: Box<dyn Fn(Upcall) + Send + Sync>,
}

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Sets the listener. Returns false if there was one before.
pub fn listen(namespace: CString, tell: Box<dyn Fn(Upcall) + Send + Sync>) -> bool {
    LISTENER.set(Listener { namespace, tell }).is_ok()
}

/// The functions that the library calls.
pub fn module() -> ServerModule {
    ServerModule {
        client_connected: Some(connected),
        client_finalized: Some(finalized),
        abort: Some(abort),
        fence_nb: Some(fence),
        direct_modex: Some(direct),
        names: [std::ptr::null(); 3],
        spawn: Some(spawn),
        absent: [std::ptr::null(); 18],
        client_connected2: Some(connected_with_infos),
        later: [std::ptr::null(); 32],
    }
}

fn tell(upcall: Upcall) {
    if let Some(listener) = LISTENER.get() {
        (listener.tell)(upcall);
    }
}

/// The rank of a process, if it is one of the program.
///
/// # Safety
/// The pointer is null or that of a process.
unsafe fn rank_of(proc: *const Proc) -> Option<u32> {
    // SAFETY: as the caller says.
    let proc = unsafe { proc.as_ref() }?;
    let listener = LISTENER.get()?;
    types::is_text(&proc.namespace, listener.namespace.to_bytes()).then_some(proc.rank)
}

/// Elements of the library as a slice.
///
/// # Safety
/// The pointer is null, or that of this many elements, which do not change during the lifetime of the slice.
unsafe fn slice_of<'a, T>(elements: *const T, count: usize) -> &'a [T] {
    if elements.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts(elements, count) }
}

unsafe extern "C" fn connected(
    proc: *const Proc,
    _object: *mut c_void,
    callback: Option<OperationCallback>,
    data: *mut c_void,
) -> Status {
    // SAFETY: the library passes a process.
    unsafe { tell_of(proc, callback, data, |rank, answer| Upcall::Joined { rank, answer }) }
}

/// Tells of a step in the life of a task, which continues once the shim has heard of it, if the library lets it wait.
///
/// # Safety
/// The pointer is that of a process.
unsafe fn tell_of(
    proc: *const Proc,
    callback: Option<OperationCallback>,
    data: *mut c_void,
    upcall: impl FnOnce(u32, Option<OperationAnswer>) -> Upcall,
) -> Status {
    // SAFETY: as the caller says.
    let Some(rank) = (unsafe { rank_of(proc) }) else { return STATUS_OPERATION_SUCCEEDED };
    // The library waits for an answer only where it says how to give it.
    let status = if callback.is_some() { STATUS_SUCCESS } else { STATUS_OPERATION_SUCCEEDED };
    tell(upcall(rank, callback.map(|callback| OperationAnswer { callback, data })));
    status
}

unsafe extern "C" fn connected_with_infos(
    proc: *const Proc,
    object: *mut c_void,
    _infos: *mut Info,
    _count: usize,
    callback: Option<OperationCallback>,
    data: *mut c_void,
) -> Status {
    // SAFETY: the arguments are those of this function.
    unsafe { connected(proc, object, callback, data) }
}

unsafe extern "C" fn finalized(
    proc: *const Proc,
    _object: *mut c_void,
    callback: Option<OperationCallback>,
    data: *mut c_void,
) -> Status {
    // SAFETY: the library passes a process.
    unsafe { tell_of(proc, callback, data, |rank, answer| Upcall::Finalized { rank, answer }) }
}

/// The whole program ends, whichever tasks are named: an MPI program cannot continue without some of its tasks.
unsafe extern "C" fn abort(
    proc: *const Proc,
    _object: *mut c_void,
    status: c_int,
    message: *const c_char,
    _procs: *mut Proc,
    _count: usize,
    callback: Option<OperationCallback>,
    data: *mut c_void,
) -> Status {
    // SAFETY: the library passes a process.
    let (Some(rank), Some(callback)) = (unsafe { rank_of(proc) }, callback) else { return types::STATUS_ERROR };
    // SAFETY: the library passes null or a text that ends with a zero byte.
    let message = unsafe { message_of(message) };
    tell(Upcall::Abort { rank, status, message, answer: OperationAnswer { callback, data } });
    STATUS_SUCCESS
}

/// The beginning of a message.
///
/// # Safety
/// The pointer is null or that of a text that ends with a zero byte.
unsafe fn message_of(message: *const c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    let bytes = unsafe { CStr::from_ptr(message) }.to_bytes();
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_MESSAGE_BYTES)]).trim().replace(char::is_control, " ")
}

unsafe extern "C" fn fence(
    procs: *const Proc,
    proc_count: usize,
    infos: *const Info,
    info_count: usize,
    bytes: *mut c_char,
    length: usize,
    callback: Option<ModexCallback>,
    data: *mut c_void,
) -> Status {
    let Some(callback) = callback else { return types::STATUS_ERROR };
    // SAFETY: the library passes arrays of these lengths, which stay until the call returns.
    let (procs, infos, bytes) =
        unsafe { (slice_of(procs, proc_count), slice_of(infos, info_count), slice_of(bytes.cast::<u8>(), length)) };
    tell(Upcall::Fence {
        members: members_of(procs),
        collects: flag(infos, "pmix.collect"),
        status: collective_status(infos),
        data: bytes.to_vec(),
        answer: ModexAnswer { callback, data },
    });
    STATUS_SUCCESS
}

fn members_of(procs: &[Proc]) -> Members {
    let mut ranks = Vec::with_capacity(procs.len());
    for proc in procs {
        // SAFETY: a reference is a pointer to a process.
        match unsafe { rank_of(proc) } {
            Some(RANK_ALL) => return Members::All,
            Some(RANK_LOCAL_NODE | RANK_LOCAL_PEERS) => return Members::Local,
            Some(rank) => ranks.push(rank),
            None => return Members::Foreign,
        }
    }
    Members::Ranks(ranks)
}

/// Whether a flag is set. One without a value is.
fn flag(infos: &[Info], key: &str) -> bool {
    let info = infos.iter().find(|info| types::is_text(&info.key, key.as_bytes()));
    // SAFETY: with this type the union holds a flag, which the library has set from a `bool`.
    info.is_some_and(|info| info.value.kind != types::TYPE_BOOL || unsafe { info.value.data.flag })
}

/// What the library says of the tasks that should have come: `PMIX_LOCAL_COLLECTIVE_STATUS`.
fn collective_status(infos: &[Info]) -> Status {
    let info = infos.iter().find(|info| types::is_text(&info.key, b"pmix.loc.col.st"));
    // SAFETY: with this type the union holds a status.
    info.filter(|info| info.value.kind == types::TYPE_STATUS)
        .map_or(STATUS_SUCCESS, |info| unsafe { info.value.data.status })
}

unsafe extern "C" fn direct(
    proc: *const Proc,
    _infos: *const Info,
    _count: usize,
    callback: Option<ModexCallback>,
    data: *mut c_void,
) -> Status {
    // SAFETY: the library passes a process.
    let (Some(rank), Some(callback)) = (unsafe { rank_of(proc) }, callback) else { return types::STATUS_NOT_FOUND };
    tell(Upcall::Direct { rank, answer: ModexAnswer { callback, data } });
    STATUS_SUCCESS
}

/// No process is started. The function is there so that people hear of it: without it the library itself would refuse.
unsafe extern "C" fn spawn(
    proc: *const Proc,
    _infos: *const Info,
    _info_count: usize,
    _apps: *const c_void,
    _app_count: usize,
    _callback: Option<SpawnCallback>,
    _data: *mut c_void,
) -> Status {
    // SAFETY: the library passes a process.
    if let Some(rank) = unsafe { rank_of(proc) } {
        tell(Upcall::Spawn { rank });
    }
    // With any status but success the library answers the task, and expects no call back.
    STATUS_NOT_SUPPORTED
}

/// The library has what a local task has put. `data` is the task's rank.
pub unsafe extern "C" fn data(status: Status, bytes: *mut c_char, length: usize, data: *mut c_void) {
    // SAFETY: the library passes this many bytes, which stay until the call returns.
    let bytes = unsafe { slice_of(bytes.cast::<u8>(), length) };
    let data_of_task = (status == STATUS_SUCCESS && !bytes.is_empty()).then(|| bytes.to_vec());
    tell(Upcall::Data { rank: data.addr() as u32, data: data_of_task });
}
