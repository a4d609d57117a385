//! Messages between a runner and its supervisors, over a private socket.

use crate::{
    account::Account,
    call::{Captured, FileAfter, SurplusAnswer},
};
use bytes::Bytes;
use muster_schemas::codec;
use muster_schemas::filter::FilterExit;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, Read};

/// The part of a call that the supervisor must know.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// The program's absolute path.
    pub program: String,
    /// Its arguments, without the program's name.
    pub arguments: Vec<String>,
    /// All of its environment.
    pub environment: Vec<(String, String)>,
    /// The call's private folder, which does not exist yet. Its parent does.
    pub folder: String,
    /// The files to make in it.
    pub files: Vec<NewFile>,
    /// The time limit of the call.
    pub time_limit_seconds: u32,
    /// The user to become first; `None` for no change.
    pub account: Option<Account>,
    /// The users that may own the program.
    pub trusted: Vec<u32>,
    /// The lines for a persistent program.
    pub lines: Option<Lines>,
}

/// A file for the filter.
#[derive(Debug, Serialize, Deserialize)]
pub struct NewFile {
    /// Its name in the folder.
    pub name: String,
    /// What it holds.
    pub contents: Bytes,
}

/// The lines for a persistent program, without line ends.
#[derive(Debug, Serialize, Deserialize)]
pub struct Lines {
    /// The first one, if it does not run yet.
    pub load: String,
    /// The one for the call.
    pub call: String,
    /// The `id` in the call's line, and in the answer to it.
    pub id: String,
    /// The one before it is retired.
    pub unload: String,
}

/// The reply to an order.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The call was made.
    Done(Box<Outcome>),
    /// It could not be made because of this machine, not the filter; this says why. Another runner may try.
    Failed(String),
}

/// The result of the call.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub result: FilterExit,
    /// The files of the order afterwards, in the same order.
    pub files: Vec<FileAfter>,
    /// The contents of the result file, or what was answered in addition to the code.
    pub result_lines: Captured,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// How long it took.
    pub duration_micros: u64,
    /// The hash of the program's file.
    pub program_hash: Option<String>,
    /// Repeated answers of a persistent program to earlier calls.
    pub surplus: Vec<SurplusAnswer>,
}

/// The name of the XML document in a call's folder.
pub const DOCUMENT: &str = "job.xml";
/// The name of the script of a component to be staged.
pub const SCRIPT: &str = "script";
/// The name of the JSON document.
pub const DOCUMENT_JSON: &str = "job.json";
/// The name of the result file.
pub const RESULT_FILE: &str = "result";

/// Encodes a message.
pub fn to_bytes<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    codec::encode(message).map_err(io::Error::other)
}

/// Decodes a message.
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    codec::decode(bytes).map_err(io::Error::other)
}

/// How many bytes follow a header.
pub fn body_bytes(header: [u8; codec::HEADER_BYTES]) -> io::Result<usize> {
    let [_, _, a, b, c, d, ..] = header;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > codec::MAX_BODY_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {length} bytes")));
    }
    Ok(length)
}

/// Waits for a message; `None` at the end of the stream.
pub fn receive<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<Option<T>> {
    let mut bytes = vec![0; codec::HEADER_BYTES];
    match stream.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut header = [0; codec::HEADER_BYTES];
    header.copy_from_slice(&bytes);
    bytes.resize(codec::HEADER_BYTES + body_bytes(header)?, 0);
    stream.read_exact(&mut bytes[codec::HEADER_BYTES..])?;
    from_bytes(&bytes).map(Some)
}
