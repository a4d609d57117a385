//! How the tasks of a step find each other if they are an MPI program (SL-W-03).

use crate::{cli::MpiKind, exit::Failure};
use clap::ValueEnum as _;
use muster_client::{Client, Moment};
use muster_schemas::steps::ProcessManagement;
use muster_slurm_commands::default_management;

/// The variable with the kind of steps that name none, as for `srun`.
const VARIABLE: &str = "SLURM_MPI_TYPE";

/// The process management of a step: as its options say, else as a variable says, else as the site says.
///
/// # Errors
/// The variable names no kind, or the site cannot be asked.
pub fn management(client: &mut Client, given: Option<MpiKind>) -> Result<Option<ProcessManagement>, Failure> {
    match given.map_or_else(of_variable, |kind| Ok(Some(kind)))? {
        Some(kind) => Ok(kind.into()),
        None => default_management(&client.info(Moment::Now)?).map_err(Failure::failed),
    }
}

fn of_variable() -> Result<Option<MpiKind>, Failure> {
    let text = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let read = |text: String| MpiKind::from_str(&text, false).map_err(|_| unknown(&text));
    text.map(read).transpose()
}

fn unknown(text: &str) -> Failure {
    Failure::usage(format!("{VARIABLE}: `{text}` is none of none, pmi2 and pmix; nothing is started"))
}
