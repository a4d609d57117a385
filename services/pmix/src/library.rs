//! The PMIx library of the host, found at run time (SL-W-05). All unsafe code of this crate is here.
//!
//! [`types`] has the declarations of its C headers, [`infos`] passes facts to it, [`upcalls`] has the functions that it
//! calls. The library keeps its state in globals, so a process can have one [`Server`] in its life.

mod infos;
mod types;
mod upcalls;

use crate::facts::{Fact, Maps};
use infos::Infos;
use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    sync::{Arc, mpsc},
};
use types::{OperationCallback, Proc, STATUS_OPERATION_SUCCEEDED, ServerModule};
pub use types::{STATUS_NOT_FOUND, STATUS_NOT_SUPPORTED, STATUS_SUCCESS, STATUS_UNREACH, Status};
pub use upcalls::{Members, ModexAnswer, OperationAnswer, Upcall};

/// Where the library is looked for, in this order.
pub const NAMES: [&CStr; 2] = [c"libpmix.so.2", c"libpmix.so"];

/// Why the library cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// There is none.
    #[error(
        "this node lacks the PMIx library {name}, which programs of PMIx need; on Debian and Ubuntu, install the package \
         libpmix2 ({why})"
    )]
    Missing {
        /// The name that it was looked for by.
        name: String,
        /// What the dynamic linker says.
        why: String,
    },
    /// It lacks a function.
    #[error("the PMIx library has no function {0}; it is too old or too new for muster")]
    Unknown(String),
    /// A function failed.
    #[error("{function} of the PMIx library failed: {why}")]
    Refused {
        /// The function.
        function: &'static str,
        /// What the library says.
        why: String,
    },
    /// The process has had a server.
    #[error("a process can have one PMIx server only")]
    Second,
    /// A text with a zero byte.
    #[error("the PMIx library cannot be told a text with a zero byte")]
    Text,
}

/// The functions of the library, with the types of `pmix.h` and `pmix_server.h`.
#[derive(Clone, Copy)]
struct Functions {
    get_version: unsafe extern "C" fn() -> *const c_char,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    server_init: unsafe extern "C" fn(*mut ServerModule, *mut types::Info, usize) -> Status,
    server_finalize: unsafe extern "C" fn() -> Status,
    generate_regex: Generate,
    generate_ppn: Generate,
    register_nspace: unsafe extern "C" fn(
        *const c_char,
        c_int,
        *mut types::Info,
        usize,
        Option<OperationCallback>,
        *mut c_void,
    ) -> Status,
    register_client: unsafe extern "C" fn(
        *const Proc,
        libc::uid_t,
        libc::gid_t,
        *mut c_void,
        Option<OperationCallback>,
        *mut c_void,
    ) -> Status,
    setup_fork: unsafe extern "C" fn(*const Proc, *mut *mut *mut c_char) -> Status,
    setup_local_support:
        unsafe extern "C" fn(*const c_char, *mut types::Info, usize, Option<OperationCallback>, *mut c_void) -> Status,
    dmodex_request: unsafe extern "C" fn(*const Proc, types::ModexResponse, *mut c_void) -> Status,
}

type Generate = unsafe extern "C" fn(*const c_char, *mut *mut c_char) -> Status;

/// The library.
#[derive(Clone)]
pub struct Library {
    functions: Functions,
}

impl Library {
    /// Loads the library, by the first of these names under which it is found.
    ///
    /// # Errors
    /// It is not there, or lacks functions.
    pub fn load(names: &[&CStr]) -> Result<Self, Failure> {
        let mut missing = Failure::Missing { name: String::new(), why: String::new() };
        for (index, name) in names.iter().enumerate() {
            // SAFETY: the name ends with a zero byte. The library's initializers run; they are trusted as those of any
            // library of the host.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
            if !handle.is_null() {
                return Ok(Self { functions: Functions::of(handle)? });
            }
            // The first name is the one that packages install.
            if index == 0 {
                missing = Failure::Missing { name: name.to_string_lossy().into_owned(), why: linker_error() };
            }
        }
        Err(missing)
    }

    /// What the library calls its version.
    pub fn version(&self) -> String {
        // SAFETY: the function may be called at any time, and returns a text that stays.
        let version = unsafe { (self.functions.get_version)() };
        // SAFETY: as above.
        unsafe { text_of(version) }
    }

    /// Starts the server. From then on the library calls `listener` from threads of its own.
    ///
    /// # Errors
    /// The library fails, or this process has had a server.
    pub fn start(
        self,
        namespace: &str,
        facts: &[Fact],
        listener: impl Fn(Upcall) + Send + Sync + 'static,
    ) -> Result<Server, Failure> {
        let namespace = CString::new(namespace).map_err(|_| Failure::Text)?;
        let name = types::name_of(&namespace).ok_or(Failure::Text)?;
        let mut infos = Infos::new(facts).ok_or(Failure::Text)?;
        if !upcalls::listen(namespace.clone(), Box::new(listener)) {
            return Err(Failure::Second);
        }
        // The library may keep the pointer.
        let module = Box::leak(Box::new(upcalls::module()));
        let (pointer, count) = infos.as_raw();
        // SAFETY: the module and the array of infos are as the headers declare them (checked by a test). The library
        // copies the infos before it returns.
        let status = unsafe { (self.functions.server_init)(module, pointer, count) };
        self.check("PMIx_server_init", status)?;
        Ok(Server { library: self, namespace, name })
    }

    fn check(&self, function: &'static str, status: Status) -> Result<(), Failure> {
        if status == STATUS_SUCCESS || status == STATUS_OPERATION_SUCCEEDED {
            return Ok(());
        }
        // SAFETY: the function may be called at any time with any number, and returns a text that stays.
        let why = unsafe { text_of((self.functions.error_string)(status)) };
        Err(Failure::Refused { function, why: format!("{why} ({status})") })
    }
}

/// The server that the library runs in this process.
pub struct Server {
    library: Library,
    namespace: CString,
    name: types::Namespace,
}

impl Server {
    /// Packs the lists of nodes and of their ranks.
    ///
    /// # Errors
    /// The library fails.
    pub fn maps(&self, nodes: &str, ranks: &str) -> Result<Maps, Failure> {
        let functions = self.library.functions;
        Ok(Maps {
            nodes: self.generate("PMIx_generate_regex", functions.generate_regex, nodes)?,
            ranks: self.generate("PMIx_generate_ppn", functions.generate_ppn, ranks)?,
        })
    }

    fn generate(&self, function: &'static str, generate: Generate, list: &str) -> Result<Vec<u8>, Failure> {
        let list = CString::new(list).map_err(|_| Failure::Text)?;
        let mut generated = std::ptr::null_mut();
        // SAFETY: the text ends with a zero byte, and the library stores a pointer of its own or leaves it null.
        let status = unsafe { generate(list.as_ptr(), &raw mut generated) };
        self.library.check(function, status)?;
        if generated.is_null() {
            return Err(Failure::Refused { function, why: "it returned nothing".to_owned() });
        }
        // SAFETY: the library returns what `length_of_map` expects, from malloc, for the caller to free.
        unsafe {
            let bytes = std::slice::from_raw_parts(generated.cast::<u8>(), types::length_of_map(generated)).to_vec();
            libc::free(generated.cast());
            Ok(bytes)
        }
    }

    /// Describes the program, of which `local` tasks are on this node.
    ///
    /// # Errors
    /// The library fails.
    pub fn register_program(&self, local: usize, facts: &[Fact]) -> Result<(), Failure> {
        let mut infos = Infos::new(facts).ok_or(Failure::Text)?;
        let (pointer, count) = infos.as_raw();
        let local = c_int::try_from(local).unwrap_or(c_int::MAX);
        let register = self.library.functions.register_nspace;
        // SAFETY: the namespace ends with a zero byte. `wait` returns when the library is done with the infos.
        let status = wait(|callback, data| unsafe {
            register(self.namespace.as_ptr(), local, pointer, count, Some(callback), data)
        });
        self.library.check("PMIx_server_register_nspace", status)
    }

    /// Lets a task of this user and group connect.
    ///
    /// # Errors
    /// The library fails.
    pub fn register_task(&self, rank: u32, uid: u32, gid: u32) -> Result<(), Failure> {
        let proc = self.proc(rank);
        let register = self.library.functions.register_client;
        // SAFETY: the library copies the name of the process; `wait` returns after that. It gets no object.
        let status = wait(|callback, data| unsafe {
            register(&raw const proc, uid, gid, std::ptr::null_mut(), Some(callback), data)
        });
        self.library.check("PMIx_server_register_client", status)
    }

    /// The variables by which a task finds this server.
    ///
    /// # Errors
    /// The library fails.
    pub fn environment(&self, rank: u32) -> Result<Vec<(String, String)>, Failure> {
        let proc = self.proc(rank);
        let mut variables = std::ptr::null_mut();
        // SAFETY: the library makes an array of texts from malloc, with a null pointer as its last.
        let status = unsafe { (self.library.functions.setup_fork)(&raw const proc, &raw mut variables) };
        // SAFETY: as above; nobody else has the array.
        let texts = unsafe { types::take_texts(variables) };
        self.library.check("PMIx_server_setup_fork", status)?;
        let pairs = texts.iter().filter_map(|text| text.split_once('='));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Asks for the data that a local task has put for other nodes. The answer is [`Upcall::Data`]; if the task has
    /// committed nothing yet, it comes after the first commit.
    pub fn request_data(&self, rank: u32) {
        let proc = self.proc(rank);
        // SAFETY: the library copies the name of the process. The pointer is only a number, the rank.
        let status = unsafe {
            (self.library.functions.dmodex_request)(
                &raw const proc,
                upcalls::data,
                std::ptr::without_provenance_mut(rank as usize),
            )
        };
        // The task is then one without data.
        drop(self.library.check("PMIx_server_dmodex_request", status));
    }

    /// Waits until the library's thread has taken up all earlier requests.
    pub fn flush(&self) {
        let setup = self.library.functions.setup_local_support;
        // SAFETY: the namespace ends with a zero byte, and there are no infos. An empty setup has no effect; its answer
        // comes from the library's thread, which takes up requests one after the other.
        let status = wait(|callback, data| unsafe {
            setup(self.namespace.as_ptr(), std::ptr::null_mut(), 0, Some(callback), data)
        });
        drop(self.library.check("PMIx_server_setup_local_support", status));
    }

    /// Stops the server. Answers must not be given after that.
    pub fn stop(self) {
        // SAFETY: the server runs, and ends here.
        let _ = unsafe { (self.library.functions.server_finalize)() };
    }

    fn proc(&self, rank: u32) -> Proc {
        Proc { namespace: self.name, rank }
    }
}

/// Calls a function of the library that answers by a callback, and waits for the answer. There is no time limit here:
/// the shim limits how long it waits for this process.
fn wait(call: impl FnOnce(OperationCallback, *mut c_void) -> Status) -> Status {
    /// Passes the status to the waiting thread.
    unsafe extern "C" fn done(status: Status, data: *mut c_void) {
        // SAFETY: `data` is what `Arc::into_raw` made below, and the library passes it once.
        let sender = unsafe { Arc::from_raw(data.cast::<mpsc::SyncSender<Status>>()) };
        let _ = sender.try_send(status);
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let data = Arc::into_raw(Arc::new(sender)).cast_mut().cast::<c_void>();
    let status = call(done, data);
    if status != STATUS_SUCCESS {
        // SAFETY: in this case the library does not call back, so the pointer is still ours.
        drop(unsafe { Arc::from_raw(data.cast::<mpsc::SyncSender<Status>>()) });
        return status;
    }
    receiver.recv().unwrap_or(types::STATUS_ERROR)
}

impl Functions {
    fn of(handle: *mut c_void) -> Result<Self, Failure> {
        // SAFETY: the types of the fields are those of the functions in the headers.
        unsafe {
            Ok(Self {
                get_version: function(handle, c"PMIx_Get_version")?,
                error_string: function(handle, c"PMIx_Error_string")?,
                server_init: function(handle, c"PMIx_server_init")?,
                server_finalize: function(handle, c"PMIx_server_finalize")?,
                generate_regex: function(handle, c"PMIx_generate_regex")?,
                generate_ppn: function(handle, c"PMIx_generate_ppn")?,
                register_nspace: function(handle, c"PMIx_server_register_nspace")?,
                register_client: function(handle, c"PMIx_server_register_client")?,
                setup_fork: function(handle, c"PMIx_server_setup_fork")?,
                setup_local_support: function(handle, c"PMIx_server_setup_local_support")?,
                dmodex_request: function(handle, c"PMIx_server_dmodex_request")?,
            })
        }
    }
}

/// A function of a loaded library.
///
/// # Safety
/// `F` is the type of a function pointer, and that of the function of this name.
unsafe fn function<F: Copy>(handle: *mut c_void, name: &CStr) -> Result<F, Failure> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the handle is of `dlopen`, and the name ends with a zero byte.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if address.is_null() {
        return Err(Failure::Unknown(name.to_string_lossy().into_owned()));
    }
    // SAFETY: the address is that of a function of this type, as the caller says; both have the size of a pointer.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

fn linker_error() -> String {
    // SAFETY: the function returns null or a text that stays until the next call of the linker by this thread.
    unsafe { text_of(libc::dlerror()) }
}

/// A copy of a text of the library.
///
/// # Safety
/// The pointer is null or that of a text that ends with a zero byte.
unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
