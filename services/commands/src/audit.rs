//! `muster audit verify`: what a verification found, and verifying the history of a running system.

use crate::{
    cli::ConnectionOptions,
    exit::{CommandResult, Failure},
    show,
    terminal::Progress,
};
use muster_schemas::{Sequence, Timestamp, command::FaultKind, views::VerifyProgress};
use serde::Serialize;

/// What a verification found.
#[derive(Serialize)]
pub struct Verdict {
    /// The last record that verified.
    pub verified_to: Sequence,
    /// The last record of the log.
    pub last: Sequence,
    /// The number of signed checkpoints.
    pub checkpoints: u64,
    /// The number of records at the end that no signature covers.
    pub unsigned_records: u64,
    /// The time of the first such record.
    pub unsigned_since: Option<Timestamp>,
    /// The first fault, if there is one.
    pub fault: Option<String>,
    /// The kind of that fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault_kind: Option<FaultKind>,
}

/// The words before a fault of this kind.
pub const fn verdict_on(kind: Option<FaultKind>) -> &'static str {
    match kind {
        Some(FaultKind::Invalid) => "the history does not verify, something was altered",
        Some(FaultKind::Damaged) => "the history cannot be verified, it is damaged or cannot be read",
        Some(FaultKind::Unproven) => "nothing contradicts in the history, but not all of it is proven",
        None => "the history could not be verified",
    }
}

impl Verdict {
    /// Which records are signed.
    fn coverage(&self) -> String {
        match self.unsigned_since {
            Some(since) => format!("no signature covers the last {} records, since {since}", self.unsigned_records),
            None => "signatures cover all of them".to_owned(),
        }
    }

    /// Prints the verdict, for people or as JSON.
    ///
    /// # Errors
    /// The history does not verify.
    pub fn tell(&self, json: bool) -> CommandResult {
        if json {
            show::print_json(self)?;
        }
        match &self.fault {
            Some(fault) => {
                let words = verdict_on(self.fault_kind);
                Err(Failure::failed(format!("{words}: after record {} of {}: {fault}", self.verified_to, self.last)))
            }
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

/// Asks the ledger to verify its history.
pub(crate) fn verify(connection: &ConnectionOptions, json: bool) -> CommandResult {
    let mut progress = Progress::new();
    let report = connection.client()?.verify(Sequence(1), |report| {
        progress.show(|| format!("verified {} of {} records", report.to, report.head));
    })?;
    drop(progress);
    if !report.complete && report.fault.is_none() {
        return Err(Failure::failed(format!("the verification ended early, after record {}", report.to)));
    }
    let last = Sequence(report.head.0.max(report.to.0));
    let VerifyProgress { to: verified_to, checkpoints, unsigned_records, unsigned_since, fault, fault_kind, .. } =
        report;
    Verdict { verified_to, last, checkpoints, unsigned_records, unsigned_since, fault, fault_kind }.tell(json)
}
