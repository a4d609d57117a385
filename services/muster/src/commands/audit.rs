//! `muster audit ...` on the log in a data folder.

use crate::{
    cli::{AuditCommand, ConnectionOptions},
    elsewhere::only_muster,
    exit::{CommandResult, Failure, Status},
    roles::speak_when_libraries_give_up,
    terminal::Progress,
    whole_file::WholeFile,
};
use muster_cli::stderr_line;
use muster_commands::audit::{Verdict, verdict_on};
use muster_ledger::{
    bundle::BundleError,
    export::Exported,
    hex,
    log::LogError,
    storage::Storage,
    verify::{self, kind_of},
    witness::Unsigned,
};
use muster_schemas::{Sequence, command::FaultKind};
use std::path::Path;

/// Verifies or exports the history.
pub fn run(connection: &ConnectionOptions, command: &AuditCommand) -> CommandResult {
    speak_when_libraries_give_up();
    match command {
        AuditCommand::Verify { offline: true, public_key, json } => {
            let folder = connection.data_dir()?;
            if let Some(key) = public_key {
                check_key(&folder, key)?;
            }
            verify_folder(&folder, *json)
        }
        AuditCommand::Verify { offline: false, .. } => Err(only_muster()),
        AuditCommand::Export { from, to, file } => export(&connection.data_dir()?, *from, *to, file),
    }
}

/// Refuses a log that was begun with another key than the known one, in hexadecimal: it is another history, whoever
/// signed it.
fn check_key(data_dir: &Path, known: &str) -> Result<(), Failure> {
    let identity = Storage::open_read_only(data_dir).and_then(|storage| storage.identity());
    let found = hex(&identity.map_err(|error| unreadable(&error.into()))?.public_key);
    if found.eq_ignore_ascii_case(known) {
        return Ok(());
    }
    let words = verdict_on(Some(FaultKind::Invalid));
    Err(Failure::failed(format!(
        "{words}: it was begun with the key {found}, and not with {known}: it is another history"
    )))
}

fn unreadable(error: &BundleError) -> Failure {
    match error {
        BundleError::Log(missing @ LogError::Missing(_)) => Failure::new(Status::NotFound, missing.to_string()),
        error => Failure::failed(format!("{}: {error}", verdict_on(Some(kind_of(error))))),
    }
}

fn verify_folder(data_dir: &Path, json: bool) -> CommandResult {
    let mut progress = Progress::new();
    let report = muster_ledger::verify_folder(data_dir, |report| {
        progress.show(|| format!("verified {} of {} records", report.verified, report.last));
    });
    drop(progress);
    let report = report.map_err(|error| unreadable(&error))?;
    let verify::Progress { verified: verified_to, last, checkpoints, unsigned, fault } = report;
    let Unsigned { records: unsigned_records, since: unsigned_since } = unsigned;
    let (fault, fault_kind) = fault.map(|fault| (fault.detail, fault.kind)).unzip();
    Verdict { verified_to, last, checkpoints, unsigned_records, unsigned_since, fault, fault_kind }.tell(json)
}

/// Writes a bundle, whole or not at all; messages go to standard error if the bundle goes to standard output.
fn export(data_dir: &Path, from: Option<u64>, to: Option<u64>, path: &Path) -> CommandResult {
    let range = (Sequence(from.unwrap_or(1)), Sequence(to.unwrap_or(0)));
    let is_printed = path == Path::new("-");
    let exported = if is_printed {
        write_bundle(data_dir, range, &mut std::io::stdout())
    } else {
        WholeFile::create(path)?.fill(|file| write_bundle(data_dir, range, file))
    }?;
    if is_printed {
        stderr_line!("muster: wrote records {} to {}", exported.first, exported.last);
    } else {
        println!("wrote records {} to {} to {}", exported.first, exported.last, path.display());
    }
    if !exported.signed {
        stderr_line!("muster: the bundle is not signed: the cluster's key cannot be read");
    }
    if !is_printed {
        println!("verify it with: ops/verify-bundle {}", path.display());
    }
    Ok(0)
}

fn write_bundle(
    data_dir: &Path,
    (first, last): (Sequence, Sequence),
    out: &mut dyn std::io::Write,
) -> Result<Exported, Failure> {
    let out = std::io::BufWriter::new(out);
    let mut progress = Progress::new();
    let exported = muster_ledger::export(data_dir, first, last, out, |sequence| {
        progress.show(|| format!("exported up to record {sequence}"));
    });
    exported.map_err(|error| Failure::failed(error.to_string()))
}
