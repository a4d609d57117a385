//! The records of a log, from its beginning: from a data folder, or through a gateway.

use crate::{cli::ConnectionOptions, exit::Failure, terminal::Progress};
use muster_ledger::storage::Storage;
use muster_schemas::{Sequence, event::Record};
use std::path::Path;

/// The maximum number of bytes of records in one request.
const PAGE_BYTES: u32 = 4 << 20;

/// Visits every record in order. Without `--server` it reads the data folder itself, which does not disturb a
/// running system.
pub fn each(connection: &ConnectionOptions, visit: &mut dyn FnMut(&Record)) -> Result<(), Failure> {
    match &connection.server {
        Some(_) => each_of_gateway(connection, visit),
        None => each_of_folder(&connection.data_dir()?, visit),
    }
}

fn each_of_folder(data_dir: &Path, visit: &mut dyn FnMut(&Record)) -> Result<(), Failure> {
    let cannot = |error: &dyn std::fmt::Display| Failure::failed(error.to_string());
    let storage = Storage::open_read_only(data_dir).map_err(|error| cannot(&error))?;
    let last = storage.log().and_then(|log| log.head()).map_err(|error| cannot(&error))?.sequence;
    let mut progress = Progress::new();
    let read = storage.read(Sequence(1), last, |stored| {
        let record = stored.record()?;
        progress.show(|| format!("read {} of {last} records", record.sequence));
        visit(&record);
        Ok(())
    });
    read.map_err(|error| cannot(&error))
}

fn each_of_gateway(connection: &ConnectionOptions, visit: &mut dyn FnMut(&Record)) -> Result<(), Failure> {
    let mut client = connection.client()?;
    let mut progress = Progress::new();
    let mut next = Sequence(1);
    loop {
        let page = client.records(next, PAGE_BYTES)?;
        let Some(last) = page.records.last() else { return Ok(()) };
        next = last.sequence.next();
        page.records.iter().for_each(&mut *visit);
        progress.show(|| format!("read {} records", last.sequence));
    }
}
