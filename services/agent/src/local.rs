//! Orders as they are obeyed here: in a fresh folder, as the user of the agent.

use muster_schemas::{event::Owner, job::Launch, node::LaunchOrder};
use std::path::Path;

/// Variables of the submitter's account, which is another one than that of the agent.
const OF_ACCOUNT: [&str; 8] = ["HOME", "USER", "LOGNAME", "SHELL", "MAIL", "TMPDIR", "XDG_RUNTIME_DIR", "OLDPWD"];

/// The order with the account and the folder that its job has here.
pub(crate) fn localised(order: &LaunchOrder, folder: &Path, account: &Owner) -> LaunchOrder {
    let mut local = order.clone();
    local.owner = account.clone();
    local.working_directory = folder.to_string_lossy().into_owned();
    local.access = None;
    local.group = None;
    OF_ACCOUNT.iter().for_each(|name| drop(local.environment.remove(*name)));
    let Launch { stdout, stderr, .. } = &order.launch;
    local.launch = Launch {
        stdout: stdout.as_deref().map(inner),
        stderr: stderr.as_deref().map(inner),
        stdin: None,
        container: None,
        stage_in: None,
        ..order.launch.clone()
    };
    local
}

/// The name of an output file in the folder of the job: a path that leads elsewhere is reduced to its last part.
fn inner(path: &str) -> String {
    let leads_out = path.starts_with('/') || path.split('/').any(|part| part == "..");
    let last = || path.rsplit('/').next().filter(|last| !matches!(*last, "" | "." | "..")).unwrap_or("output");
    if path == "/dev/null" || !leads_out { path.to_owned() } else { last().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-K-07, OAR-K-11: output files are in the folder of the job.
    #[test]
    fn output_files_are_in_the_folder() {
        for (asked, got) in [
            ("OAR.%J.stdout", "OAR.%J.stdout"),
            ("logs/%J", "logs/%J"),
            ("/home/ada/out.%J", "out.%J"),
            ("../out", "out"),
            ("a/../../out", "out"),
            ("/", "output"),
            ("a/..", "output"),
            ("/dev/null", "/dev/null"),
        ] {
            assert_eq!(inner(asked), got, "{asked}");
        }
    }
}
