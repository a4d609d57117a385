//! The commands of the Slurm dialect, under their own names or as `muster slurm NAME` (SL-C-01): they read files, ask
//! the system and print. `muster-slurm`, which does none of that, knows words and tables.

mod accounting;
mod allocation;
mod attach;
mod batch;
mod broadcast;
mod cancel;
mod clusters;
mod control;
mod crontab;
mod diagnosis;
mod ended;
mod forecast;
mod forgotten;
mod holds;
mod info;
mod limits;
mod manager;
mod measured;
mod partition;
mod power_saving;
mod priorities;
mod queue;
mod refusals;
mod reports;
mod reservation;
mod salloc;
mod shell;
mod shown;
mod site;
mod srun;
mod submission;
mod triggers;
mod update;

pub use clusters::CLUSTERS;
pub use site::{
    ACCOUNTING_STORAGE_TYPE, BURST_BUFFER_DIRECTIVES, BURST_BUFFER_TYPE, MPI_DEFAULT, SCHEDULER_PARAMETERS,
    SITE_OPTIONS, VERSION, default_management,
};

use ended::{Ended, print, wanted};
use muster_cli::{
    connection::ConnectionOptions,
    link::{self, Linked},
    stderr_line,
};
use muster_slurm::queries;
use site::Site;

/// The program names of this dialect's commands.
pub const TOOLS: [&str; 19] = [
    "sbatch", "salloc", "srun", "sbcast", "sattach", "squeue", "sinfo", "scancel", "scontrol", "sacct", "sacctmgr",
    "sdiag", "seff", "sprio", "sreport", "sshare", "sstat", "strigger", "scrontab",
];

/// The name of the daemon whose version programs ask for. Its link does nothing else.
pub const CONTROLLER: &str = "slurmctld";

/// Carries the command line out if the program was called through the link of a command of Slurm; `None` if it was not.
pub fn link() -> Option<u8> {
    match link::called_as(TOOLS.into_iter().chain([CONTROLLER]))? {
        Ok(Linked { tool, words, connection }) => Some(run(&connection, tool, &words)),
        Err(status) => Some(status),
    }
}

/// `muster slurm NAME ...`.
pub fn words(connection: &ConnectionOptions, words: Vec<String>) -> u8 {
    if let Some((_, rest)) = words.split_first().filter(|(name, _)| *name == "energy") {
        return power_saving::run(rest);
    }
    let known = words.split_first().and_then(|(name, rest)| Some((TOOLS.into_iter().find(|tool| tool == name)?, rest)));
    match known {
        Some((tool, rest)) => run(connection, tool, rest),
        None => {
            stderr_line!("muster: usage: muster slurm {}|energy ...", TOOLS.join("|"));
            2
        }
    }
}

fn run(connection: &ConnectionOptions, tool: &'static str, words: &[String]) -> u8 {
    let connection = &ConnectionOptions { on_failure: Some(refusals::not_done), ..connection.clone() };
    let ended = match tool {
        "sbatch" => batch::run(connection, words),
        "salloc" => salloc::run(connection, words),
        "srun" => srun::run(connection, words),
        CONTROLLER => daemon(connection, words),
        _ => match queries::shell::options(tool, words) {
            Some(options) => Ok(shell::run(tool, options, |words| {
                finish(connection, tool, words, on_any_cluster(connection, tool, words))
            })),
            None => on_any_cluster(connection, tool, words),
        },
    };
    finish(connection, tool, words, ended)
}

/// Tells the user and the system of a failure, and returns the exit status.
fn finish(connection: &ConnectionOptions, tool: &str, words: &[String], ended: Ended) -> u8 {
    let status = ended.unwrap_or_else(|failure| refusals::tell(&failure));
    if status != 0 {
        refusals::report(connection, tool, words);
    }
    status
}

/// `slurmctld -V`: muster's own services do the work of Slurm's daemons, and are started by `muster`.
fn daemon(connection: &ConnectionOptions, words: &[String]) -> Ended {
    if words.iter().any(|word| word == "-V") {
        print(&site::version_line(connection.patient_client().ok()));
        return Ok(0);
    }
    Err(queries::Failure::error(CONTROLLER, "muster does its work: this program only tells the version (-V)"))
}

/// Runs a command that lists or controls, on the clusters that it names.
fn on_any_cluster(connection: &ConnectionOptions, tool: &'static str, words: &[String]) -> Ended {
    match queries::clusters::asked(tool, words, &site::variable) {
        Some(asked) => on_clusters(connection, tool, words, &asked),
        None => on_cluster(connection, tool, words),
    }
}

/// Runs a command that lists or controls.
fn on_cluster(connection: &ConnectionOptions, tool: &'static str, words: &[String]) -> Ended {
    let mut site = Site::open(tool, connection)?;
    match tool {
        "squeue" => queue::run(&mut site, words),
        "sinfo" => info::run(&mut site, words),
        "scancel" => cancel::run(&mut site, words),
        "scontrol" => control::run(&mut site, words),
        "sattach" => attach::run(&mut site, words),
        "sbcast" => broadcast::run(&mut site, words),
        "sacctmgr" => manager::run(&mut site, words),
        "sdiag" => diagnosis::run(&mut site, words),
        "seff" => measured::seff(&mut site, words),
        "sreport" => reports::run(&mut site, words),
        "scrontab" => crontab::run(connection, &mut site, words),
        "strigger" => triggers::run(&mut site, words),
        "sstat" => measured::sstat(&mut site, words),
        "sprio" => priorities::sprio(&mut site, words),
        "sshare" => priorities::sshare(&mut site, words),
        _ => accounting::run(&mut site, words),
    }
}

/// Runs the command on each of several clusters, and continues after a failure.
fn on_clusters(
    connection: &ConnectionOptions,
    tool: &'static str,
    words: &[String],
    asked: &queries::clusters::Asked,
) -> Ended {
    let clusters = clusters::named(connection, tool, &asked.wish)?;
    if tool == "scontrol" && clusters.len() > 1 {
        return Err(queries::Failure::fatal(tool, "Only one cluster can be used at a time with scontrol"));
    }
    let mut status = 0;
    for (place, cluster) in clusters.iter().enumerate() {
        if asked.has_headings {
            print(&queries::clusters::heading(&cluster.name, place == 0));
        }
        // The rows of all clusters form one table.
        let headless = (tool == "sacct" && place > 0).then(|| "--noheader".to_owned());
        let words: Vec<String> = headless.into_iter().chain(words.iter().cloned()).collect();
        let ended = on_cluster(&cluster.connection, tool, &words).unwrap_or_else(|failure| refusals::tell(&failure));
        refusals::report(&cluster.connection, tool, &words);
        status = status.max(ended);
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        io::Read as _,
        path::{Path, PathBuf},
    };

    /// The files of a folder and those in it, without build results and what begins with a dot.
    fn files_in(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("it is a folder") {
            let entry = entry.expect("it can be read");
            let (name, kind) = (entry.file_name(), entry.file_type().expect("it has a type"));
            if name.to_string_lossy().starts_with('.') || name == "target" {
                continue;
            }
            match kind.is_dir() {
                true => files_in(&entry.path(), found),
                false if kind.is_file() => found.push(entry.path()),
                false => {}
            }
        }
    }

    /// SL-L-09, SL-M-16: nothing of muster is written in Perl, and nothing it is built from draws windows.
    #[test]
    fn no_command_needs_perl_or_a_graphical_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let mut files = Vec::new();
        for folder in ["docs", "ops", "schemas", "services", "tests"] {
            files_in(&root.join(folder), &mut files);
        }
        assert!(files.len() > 1_000, "these are the sources");
        for file in files {
            let is_perl =
                file.extension().is_some_and(|kind| ["pl", "PL", "pm", "xs"].iter().any(|perl| kind == *perl));
            assert!(!is_perl, "{}", file.display());
            let mut first = Vec::new();
            let opened = File::open(&file).expect("it can be read");
            opened.take(64).read_to_end(&mut first).expect("it can be read");
            let first = String::from_utf8_lossy(&first);
            let interpreter = first.lines().next().and_then(|line| line.strip_prefix("#!"));
            assert!(interpreter.is_none_or(|program| !program.contains("perl")), "{}", file.display());
        }
        let lock = fs::read_to_string(root.join("Cargo.lock")).expect("it is there");
        let windows = ["eframe", "fltk", "gtk", "gtk4", "iced", "qmetaobject", "slint", "tauri", "winit", "x11rb"];
        for name in lock.lines().filter_map(|line| line.strip_prefix("name = ")) {
            assert!(!windows.contains(&name.trim_matches('"')), "{name}");
        }
    }
}
