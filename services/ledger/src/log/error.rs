use super::FORMAT_VERSION;
use muster_domain::nodes::Violation;
use muster_schemas::{codec::CodecError, ids::Sequence};
use std::path::PathBuf;

/// Why the log cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another process, or another ledger in this one, has it open.
    #[error("the log in {0} is in use by another ledger; only one can write it")]
    InUse(PathBuf),
    /// Written by a newer program.
    #[error("the log in {folder} was written by a newer muster (layout {found}, this one knows {FORMAT_VERSION})")]
    Newer {
        /// The folder.
        folder: PathBuf,
        /// What was found.
        found: String,
    },
    /// There is no log.
    #[error("there is no log in {0}")]
    Missing(PathBuf),
    /// Files are missing, or their contents are not what was written.
    #[error("the log in {folder} is damaged: {detail}; restore the folder from a backup, nothing was changed")]
    Damaged {
        /// The folder.
        folder: PathBuf,
        /// A description of the damage, as far as it is known.
        detail: String,
    },
    /// The log does not match its witness, or the witness cannot be believed.
    #[error(
        "the log in {folder} does not end as it did: {detail}. Restore the folder from a backup; or, to continue from the \
         present end of the log, start the ledger once with --accept-log-end. Nothing was changed"
    )]
    Witness {
        /// The folder.
        folder: PathBuf,
        /// A description of the fault.
        detail: String,
    },
    /// An index contradicts the records.
    #[error("the log in {folder} was altered: {detail}; restore the folder from a backup, nothing was changed")]
    Index {
        /// The folder.
        folder: PathBuf,
        /// A description of the fault.
        detail: String,
    },
    /// A record is not what it should be.
    #[error("record {sequence} of the log is damaged: {detail}")]
    DamagedRecord {
        /// Its sequence.
        sequence: Sequence,
        /// A description of the fault.
        detail: String,
    },
    /// A record was written by a muster with another stored form.
    #[error("record {sequence} of the log is in a form that this muster does not read: {detail}; nothing was changed")]
    OtherForm {
        /// Its sequence.
        sequence: Sequence,
        /// Its form.
        detail: CodecError,
    },
    /// A limit of this process leaves too little for a database; nothing was opened.
    #[error("the storage got no memory or no thread for the log in {folder}: {detail}")]
    NoRoom {
        /// Its folder.
        folder: PathBuf,
        /// The limit, and what is missing.
        detail: String,
    },
    /// The operating system or RocksDB refused: disk full, no permission, broken disk.
    #[error("the log in {folder} cannot be {action}: {detail}")]
    Storage {
        /// The folder.
        folder: PathBuf,
        /// `opened`, `read`, `copied` or `written`.
        action: &'static str,
        /// The system's message.
        detail: String,
    },
    /// The log is being reopened after a failed write.
    #[error("the log is being opened again after a failed write; try again")]
    Closed,
    /// Records that were moved to an archive are needed, and the archive is missing.
    #[error("record {sequence} was moved to an archive that is not in {folder}: put the file back to read it")]
    Archived {
        /// The record needed.
        sequence: Sequence,
        /// Where archives belong.
        folder: PathBuf,
    },
    /// A value is too large to be stored.
    #[error(transparent)]
    Unencodable(CodecError),
    /// A record contradicts the state before it.
    #[error("{0}. This is a fault of muster: the ledger writes nothing more, please report this message")]
    Contradiction(Violation),
}
