//! The file with the quotas of a site, for all dialects (OAR-Q-02, OAR-Q-10, OAR-Q-11).

use muster_cli::zone;
use muster_client::{Client, ClientError, Moment};
use muster_oar::quotas;
use muster_schemas::{
    CommandId, Timestamp,
    cluster::{ClusterChange, ClusterSettingsChange},
    policy::PolicySource,
    quota::QuotaTable,
};
use sha2::{Digest as _, Sha256};
use std::{fmt, fs::File, io::Read as _, path::Path};

/// The longest file, in bytes.
const MOST_BYTES: u64 = 4 << 20;
/// The longest name of a file on record, in bytes.
const MOST_NAME_BYTES: usize = 1000;

/// Why the rules of a file are not used. None of them is, and those in force stay (OAR-Q-11).
#[derive(Debug)]
pub enum Broken {
    /// It cannot be read.
    Unreadable(std::io::Error),
    /// It has a mistake.
    Wrong {
        /// The line, from 1.
        line: usize,
        /// The place in the line, in characters from 1.
        column: usize,
        /// The mistake, and the expected form.
        message: String,
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "it cannot be read: {error}"),
            Self::Wrong { line, column, message } => write!(f, "line {line}, column {column}: {message}"),
        }
    }
}

/// Why the rules of a file did not come into force.
#[derive(Debug)]
pub enum LoadError {
    /// The file.
    Broken(Broken),
    /// The system gave no answer, or refused.
    Client(ClientError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(broken) => write!(f, "{broken}"),
            Self::Client(error) => write!(f, "{error}"),
        }
    }
}

impl From<ClientError> for LoadError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

/// Reads a file; its week is that of the clocks here.
///
/// # Errors
/// The first mistake, with its place.
pub fn read(file: &Path) -> Result<QuotaTable, Broken> {
    let mut bytes = Vec::new();
    let opened = File::open(file).and_then(|opened| opened.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    opened.map_err(Broken::Unreadable)?;
    let text =
        String::from_utf8(bytes).map_err(|error| wrong_byte(error.as_bytes(), error.utf8_error().valid_up_to()))?;
    let zone = zone::of_process();
    let parsed = quotas::parse(&text, &zone);
    let parsed = parsed.map_err(|quotas::Broken { line, column, message }| Broken::Wrong { line, column, message })?;
    let sha256 = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut name = file.display().to_string();
    name.truncate(name.floor_char_boundary(MOST_NAME_BYTES));
    let source = Some(PolicySource { name, sha256 });
    Ok(QuotaTable { source, ..parsed.table(&zone, Timestamp::now().to_jiff()) })
}

fn wrong_byte(bytes: &[u8], at: usize) -> Broken {
    let before = String::from_utf8_lossy(&bytes[..at]);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Broken::Wrong { line, column, message: "expected text in UTF-8".to_owned() }
}

/// The change of the configuration that puts rules in force, in place of all others.
pub fn change(table: QuotaTable) -> ClusterChange {
    let settings = ClusterSettingsChange { quotas: Some(Box::new(table)), ..ClusterSettingsChange::default() };
    ClusterChange { settings, ..ClusterChange::default() }
}

/// Puts the rules of a file in force, unless they are already. Whether they were not.
///
/// # Errors
/// A mistake in the file, or the system does not answer. Nothing was changed.
pub fn load(client: &mut Client, file: &Path) -> Result<bool, LoadError> {
    let table = read(file).map_err(LoadError::Broken)?;
    if client.config(Moment::Now)?.settings.quotas.as_deref() == Some(&table) {
        return Ok(false);
    }
    client.configure(CommandId::new_now(), &change(table), true)?;
    Ok(true)
}
