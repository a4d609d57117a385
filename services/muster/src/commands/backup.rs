//! `muster backup` and `muster restore`.

use crate::{
    cli::{BackupCommand, BackupOptions, ConnectionOptions, RestoreOptions},
    exit::{CommandResult, Failure},
    roles::speak_when_libraries_give_up,
    show,
    table::{Cell, Table, left, right},
    terminal::Progress,
};
use muster_cli::zone;
use muster_ledger::backup::{self, Backups, Listed, Made, Manifest, Options, Restored, Step};
use muster_schemas::{Sequence, Timestamp, resources::size_text};
use serde::Serialize;
use std::path::Path;

/// The view of a backup.
#[derive(Serialize)]
struct View<'a> {
    name: &'a str,
    made: Timestamp,
    last: Sequence,
    time: Timestamp,
    hash: &'a str,
    cluster_id: String,
    public_key: &'a str,
    feature_level: u32,
    version: &'a str,
    has_key: bool,
    verified_from: Option<Sequence>,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    copied_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<&'a [String]>,
}

impl<'a> View<'a> {
    fn of(name: &'a str, manifest: &'a Manifest) -> Self {
        Self {
            name,
            made: manifest.made,
            last: manifest.sequence,
            time: manifest.time,
            hash: &manifest.hash,
            cluster_id: manifest.cluster_id.to_string(),
            public_key: &manifest.public_key,
            feature_level: manifest.feature_level,
            version: &manifest.version,
            has_key: manifest.has_key,
            verified_from: manifest.verified_from,
            bytes: manifest.bytes(),
            copied_bytes: None,
            removed: None,
        }
    }
}

/// Makes a backup, or lists those of a folder.
pub fn backup(connection: &ConnectionOptions, options: &BackupOptions) -> CommandResult {
    speak_when_libraries_give_up();
    if let Some(BackupCommand::List { dir, json }) = &options.command {
        return list(dir, *json);
    }
    let Some(dir) = &options.dir else { return Err(Failure::usage("the folder of backups is missing")) };
    let how = Options {
        with_key: options.with_key,
        verify: !options.no_verify,
        keep: options.keep.map(|keep| usize::try_from(keep).unwrap_or(usize::MAX)),
    };
    let mut progress = Progress::new();
    let made = backup::make(&connection.data_dir()?, dir, how, &mut |step| show_step(&mut progress, step));
    drop(progress);
    let Made { name, manifest, copied_bytes, removed } = made.map_err(failure)?;
    if options.json {
        let view = View::of(&name, &manifest);
        show::print_json(&View { copied_bytes: Some(copied_bytes), removed: Some(&removed), ..view })?;
        return Ok(0);
    }
    println!(
        "made backup {name}: records up to {}, {} in {} files, {} of it copied",
        manifest.sequence,
        size_text(manifest.bytes()),
        manifest.files.len(),
        size_text(copied_bytes)
    );
    match manifest.verified_from {
        None => println!("it was not verified"),
        Some(Sequence(1)) => println!("it verifies, from the first record on"),
        Some(from) => {
            println!("it verifies from record {from} on; archives of earlier ones are not in the ledger's folder")
        }
    }
    if !manifest.has_key {
        println!("the private key is not in it: keep a copy of ledger.key elsewhere");
    }
    if !removed.is_empty() {
        println!("removed {}", removed.join(", "));
    }
    Ok(0)
}

fn list(dir: &Path, json: bool) -> CommandResult {
    let Backups { whole: all, damaged } = backup::list(dir).map_err(failure)?;
    if json {
        let views: Vec<_> = all.iter().map(|Listed { name, manifest, .. }| View::of(name, manifest)).collect();
        show::print_json(&views)?;
        return told(&damaged);
    }
    let zone = zone::of_process();
    let columns = [left("BACKUP"), left("MADE"), right("LAST"), right("SIZE"), left("KEY"), left("VERIFIED")];
    let mut table = Table::new(columns);
    for Listed { name, manifest, .. } in &all {
        let word = |is: bool| if is { "yes" } else { "no" };
        table.push([
            Cell::from(name.clone()),
            Cell::from(show::local_time_column(manifest.made, &zone)),
            Cell::from(manifest.sequence.to_string()),
            Cell::from(size_text(manifest.bytes())),
            Cell::from(word(manifest.has_key).to_owned()),
            Cell::from(word(manifest.verified_from.is_some()).to_owned()),
        ]);
    }
    show::print_or_say(&table, "no backups")?;
    told(&damaged)
}

/// Says which backups are damaged.
fn told(damaged: &[(String, String)]) -> CommandResult {
    if damaged.is_empty() {
        return Ok(0);
    }
    let each: Vec<_> = damaged.iter().map(|(name, why)| format!("backup {name} is damaged: {why}")).collect();
    Err(Failure::failed(each.join("\nmuster: ")))
}

/// Puts a backup into a data folder.
pub fn restore(connection: &ConnectionOptions, options: &RestoreOptions) -> CommandResult {
    speak_when_libraries_give_up();
    let data_dir = connection.data_dir()?;
    let mut progress = Progress::new();
    let show = &mut |step| show_step(&mut progress, step);
    let restored = backup::restore(&options.dir, options.backup.as_deref(), &data_dir, show);
    drop(progress);
    let Restored { name, manifest } = restored.map_err(failure)?;
    if options.json {
        show::print_json(&View::of(&name, &manifest))?;
        return Ok(0);
    }
    println!("restored backup {name} to {}: records up to {}", data_dir.display(), manifest.sequence);
    println!("the ledger records this at its next start, and integrations see it");
    Ok(0)
}

fn show_step(progress: &mut Progress, step: Step) {
    progress.show(|| match step {
        Step::Files(done, total) => format!("{} of {}", size_text(done), size_text(total)),
        Step::Records(verified, last) => format!("verified {verified} of {last} records"),
    });
}

fn failure(error: anyhow::Error) -> Failure {
    Failure::failed(format!("{error:#}"))
}
