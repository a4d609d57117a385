//! `muster audit ...`.

use crate::{
    cli::{AuditCommand, ConnectionOptions},
    exit::{CommandResult, Failure},
    show,
    terminal::Progress,
};
use muster_commands::stderr_line;
use muster_ledger::{bundle::BundleError, verify, witness::Unsigned};
use muster_schemas::{Sequence, Timestamp, views::VerifyProgress};
use serde::Serialize;
use std::path::Path;

/// Verifies or exports the history.
pub fn run(connection: &ConnectionOptions, command: &AuditCommand) -> CommandResult {
    match command {
        AuditCommand::Verify { offline: true, json } => verify_folder(&connection.data_dir()?, *json),
        AuditCommand::Verify { offline: false, json } => verify_running(connection, *json),
        AuditCommand::Export { from, to, file } => export(&connection.data_dir()?, *from, *to, file),
    }
}

/// What a verification found.
#[derive(Serialize)]
struct Verdict {
    verified_to: Sequence,
    last: Sequence,
    checkpoints: u64,
    unsigned_records: u64,
    unsigned_since: Option<Timestamp>,
    fault: Option<String>,
}

impl Verdict {
    /// Which records are signed.
    fn coverage(&self) -> String {
        match self.unsigned_since {
            Some(since) => format!("no signature covers the last {} records, since {since}", self.unsigned_records),
            None => "signatures cover all of them".to_owned(),
        }
    }

    fn tell(&self, json: bool) -> CommandResult {
        if json {
            show::print_json(self)?;
        }
        match &self.fault {
            Some(fault) => Err(Failure::failed(format!(
                "the history does not verify: after record {} of {}: {fault}",
                self.verified_to, self.last
            ))),
            None => {
                if !json {
                    println!(
                        "the history verifies: {} records in one chain, {} signed checkpoints, every digest reached again",
                        self.verified_to, self.checkpoints
                    );
                    println!("{}", self.coverage());
                }
                Ok(0)
            }
        }
    }
}

fn verify_running(connection: &ConnectionOptions, json: bool) -> CommandResult {
    let mut progress = Progress::new();
    let report = connection.client()?.verify(Sequence(1), |report| {
        progress.show(|| format!("verified {} of {} records", report.to, report.head));
    })?;
    drop(progress);
    if !report.complete && report.fault.is_none() {
        return Err(Failure::failed(format!("the verification ended early, after record {}", report.to)));
    }
    let last = Sequence(report.head.0.max(report.to.0));
    let VerifyProgress { to: verified_to, checkpoints, unsigned_records, unsigned_since, fault, .. } = report;
    Verdict { verified_to, last, checkpoints, unsigned_records, unsigned_since, fault }.tell(json)
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
    Verdict { verified_to, last, checkpoints, unsigned_records, unsigned_since, fault }.tell(json)
}

fn unreadable(error: &BundleError) -> Failure {
    Failure::failed(error.to_string())
}

/// Writes a bundle; what is said of it goes to standard error if the bundle itself is standard output.
fn export(data_dir: &Path, from: Option<u64>, to: Option<u64>, path: &Path) -> CommandResult {
    let cannot = |error: std::io::Error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    let is_printed = path == Path::new("-");
    let file: Box<dyn std::io::Write> =
        if is_printed { Box::new(std::io::stdout()) } else { Box::new(std::fs::File::create(path).map_err(cannot)?) };
    let out = std::io::BufWriter::new(file);
    let mut progress = Progress::new();
    let (first, last) = (Sequence(from.unwrap_or(1)), Sequence(to.unwrap_or(0)));
    let exported = muster_ledger::export(data_dir, first, last, out, |sequence| {
        progress.show(|| format!("exported up to record {sequence}"));
    });
    drop(progress);
    let exported = exported.map_err(|error| unreadable(&error))?;
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
