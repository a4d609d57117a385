//! The PMIx server of the tasks of a step on one node, through the library `libpmix` of the host (SL-W-05).
//!
//! Programs of Open MPI learn their rank and exchange addresses through PMIx. The messages between a task and its
//! server are private to the library, so the server uses the library too. It is found at run time: muster needs it
//! neither to be built nor to run other programs.
//!
//! [`serve`] runs in a process of its own, as the owner of the job. The library has threads of its own and reads what
//! tasks send; neither belongs into the shim, which is root and has one thread. Shim and server speak over a socket:
//! [`protocol`].
//!
//! Fences over all nodes travel through the shims, as those of PMI-1 and PMI-2 do. Fences of tasks of one node end
//! there. Fences of some tasks of several nodes are answered with `PMIX_ERR_NOT_SUPPORTED`, as are publish, lookup,
//! spawn, connect, groups, queries and job control; the shim is told of a spawn, so that people hear of it. In a direct
//! modex, a task asks for data that a task of another node has put. It is answered from the data that fences without
//! collection have carried; data that was put after the last fence of its task is not found.

mod contribution;
mod facts;
mod layout;
mod library;
pub mod protocol;
mod server;
mod tasks;

pub use contribution::BadFence;
pub use layout::BadProgram;
pub use library::Failure as LibraryFailure;
pub use server::ServeError;
use std::os::unix::net::UnixStream;

/// Serves the program that the shim at the other end of the socket begins with, until the shim closes its side. A
/// process can do this once.
///
/// # Errors
/// Says what failed. The shim has been told, if it could be.
pub fn serve(socket: &UnixStream) -> Result<(), ServeError> {
    server::serve(socket, &library::NAMES)
}

/// The version of the library of this host, as it calls itself.
///
/// # Errors
/// Says why it cannot be used: it is not there, or has other functions.
pub fn available() -> Result<String, LibraryFailure> {
    library::Library::load(&library::NAMES).map(|library| library.version())
}
