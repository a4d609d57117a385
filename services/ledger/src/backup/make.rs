//! Making a backup.

use super::{
    Step, files,
    manifest::{DRAFT, KEY, Kept, Listed, Locked, MANIFEST, Manifest, list},
    point::{Held, Point},
    verify,
};
use crate::{hex, signing::Signer, storage::Layout};
use anyhow::{Context as _, bail, ensure};
use muster_schemas::{codec, ids::Sequence, time::Timestamp};
use std::{
    collections::HashMap,
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

/// How a backup is made.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether the private key is copied too.
    pub with_key: bool,
    /// Whether the copy is verified.
    pub verify: bool,
    /// How many backups are kept, this one among them; `None` for all.
    pub keep: Option<usize>,
}

/// A backup that was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub manifest: Manifest,
    /// Bytes that were copied. The rest an earlier backup has too.
    pub copied_bytes: u64,
    /// The names of older backups that were removed.
    pub removed: Vec<String>,
}

/// Makes a backup of the ledger that runs on a data folder, in a folder of backups, which is made if it is missing.
///
/// # Errors
/// If no ledger runs there or it refuses, another backup is at work, the folder has backups of another cluster, files
/// cannot be copied, or the copy does not verify. Then there is no new backup, and earlier ones stay as they are.
pub fn make(data_dir: &Path, dir: &Path, options: Options, progress: &mut dyn FnMut(Step)) -> anyhow::Result<Made> {
    let layout = Layout::new(data_dir);
    refuse_inside(&layout, dir)?;
    make_folder_of_backups(dir)?;
    let _locked = Locked::lock(dir)?;
    let earlier = list(dir)?.whole;
    remove_drafts(dir)?;
    let held = Held::ask(&layout)?;
    refuse_another_cluster(dir, &earlier, &held.point)?;
    let made = Timestamp::now();
    let name = free_name(dir, made);
    let draft = dir.join(format!("{name}{DRAFT}"));
    let fill = Fill { layout: &layout, draft: &draft, held: &held, earlier: &earlier, options, made };
    let filled = fill.fill(progress).and_then(|(manifest, copied_bytes)| {
        fs::rename(&draft, dir.join(&name)).with_context(|| format!("renaming {}", draft.display()))?;
        files::sync_folder(dir)?;
        Ok((manifest, copied_bytes))
    });
    let (manifest, copied_bytes) = match filled {
        Ok(filled) => filled,
        Err(error) => {
            // The next backup removes what cannot be removed now.
            let _ = files::remove_folder(&draft);
            let stopped = if held.is_gone() { ": the ledger has stopped meanwhile" } else { "" };
            return Err(error.context(format!("there is no new backup{stopped}, and earlier ones stay as they are")));
        }
    };
    drop(held);
    let removed = match options.keep {
        Some(keep) => thin_out(dir, keep.max(1))?,
        None => Vec::new(),
    };
    Ok(Made { name, manifest, copied_bytes, removed })
}

/// A backup in the ledger's own folder would be lost with it.
fn refuse_inside(layout: &Layout, dir: &Path) -> anyhow::Result<()> {
    let resolved = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let own = layout.own();
    ensure!(!resolved(dir).starts_with(resolved(&own)), "{} is inside {}", dir.display(), own.display());
    Ok(())
}

fn make_folder_of_backups(dir: &Path) -> anyhow::Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.with_context(|| format!("making {}", dir.display()))
}

fn refuse_another_cluster(dir: &Path, earlier: &[Listed], point: &Point) -> anyhow::Result<()> {
    let other = earlier.iter().map(|backup| backup.manifest.cluster_id).find(|id| *id != point.cluster_id);
    let Some(other) = other else { return Ok(()) };
    bail!(
        "{} has backups of another cluster, {other}, and this one is {}: give each cluster a folder of its own",
        dir.display(),
        point.cluster_id
    )
}

/// Removes backups that were cut off.
fn remove_drafts(dir: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry.with_context(|| dir.display().to_string())?;
        if entry.file_name().to_string_lossy().ends_with(DRAFT) {
            files::remove_folder(&entry.path())?;
        }
    }
    Ok(())
}

/// The time in UTC as a name, such as `2026-11-26T17-02-11Z`; with a number behind it if that is taken.
fn free_name(dir: &Path, made: Timestamp) -> String {
    let time = made.to_string();
    let second = time.split('.').next().unwrap_or(&time).trim_end_matches('Z').replace(':', "-");
    let names = std::iter::once(format!("{second}Z")).chain((2_u32..).map(|number| format!("{second}Z-{number}")));
    let mut free = names.filter(|name| !dir.join(name).exists());
    free.next().unwrap_or(second)
}

/// Removes the oldest backups so that this many remain; their names.
fn thin_out(dir: &Path, keep: usize) -> anyhow::Result<Vec<String>> {
    let all = list(dir)?.whole;
    let surplus = all.len().saturating_sub(keep);
    let mut removed = Vec::new();
    for backup in all.into_iter().take(surplus) {
        // One that is removed in part is no backup any more.
        let draft = dir.join(format!("{}{DRAFT}", backup.name));
        fs::rename(&backup.folder, &draft).with_context(|| format!("removing {}", backup.folder.display()))?;
        files::remove_folder(&draft)?;
        removed.push(backup.name);
    }
    Ok(removed)
}

/// A backup that is being filled.
struct Fill<'a> {
    layout: &'a Layout,
    draft: &'a Path,
    held: &'a Held,
    earlier: &'a [Listed],
    options: Options,
    made: Timestamp,
}

/// A file to back up.
struct Source {
    path: PathBuf,
    /// Its path in the backup.
    kept: String,
    bytes: u64,
    /// Whether it may be gone by now: snapshots are thinned out meanwhile.
    may_go: bool,
}

impl Fill<'_> {
    /// Everything up to the manifest, on disk; and the bytes that were copied.
    fn fill(&self, progress: &mut dyn FnMut(Step)) -> anyhow::Result<(Manifest, u64)> {
        let sources = self.sources()?;
        for folder in ["", "ledger", "ledger/log", "ledger/snapshots", "ledger/archive"] {
            files::make_folder(&self.draft.join(folder))?;
        }
        let (mut kept, copied_bytes) = self.copy_all(&sources, progress)?;
        let witness = "ledger/witness";
        let sum = files::write(&self.draft.join(witness), self.held.point.witness.as_bytes())?;
        kept.push(kept_as(witness, sum));
        if self.options.with_key {
            kept.push(self.copy_key()?);
        }
        let verified_from = match self.options.verify {
            true => Some(verify(self.draft, progress).context("the copy does not verify")?),
            false => None,
        };
        self.remove_unlisted(&kept)?;
        for folder in ["ledger/log", "ledger/snapshots", "ledger/archive", "ledger", ""] {
            files::sync_folder(&self.draft.join(folder))?;
        }
        let manifest = self.manifest(kept, verified_from);
        let text = serde_json::to_vec_pretty(&manifest)?;
        files::write(&self.draft.join(MANIFEST), &text)?;
        files::sync_folder(self.draft)?;
        Ok((manifest, copied_bytes))
    }

    fn manifest(&self, files: Vec<Kept>, verified_from: Option<Sequence>) -> Manifest {
        let point = &self.held.point;
        Manifest {
            muster_backup: Manifest::format(),
            made: self.made,
            version: codec::version(),
            feature_level: point.feature_level,
            cluster_id: point.cluster_id,
            public_key: point.public_key.clone(),
            has_key: self.options.with_key,
            sequence: point.sequence,
            hash: point.hash.clone(),
            time: point.time,
            verified_from,
            files,
        }
    }

    /// The files to copy. Archives are listed after the log was held: what left the log before is in them.
    fn sources(&self) -> anyhow::Result<Vec<Source>> {
        let mut sources = Vec::new();
        let is_of_log = |name: &str| !name.starts_with("LOG") && name != "LOCK";
        collect(&self.layout.backup_point(), "ledger/log", false, is_of_log, &mut sources)?;
        let is_archive = |name: &str| name.ends_with(".gz");
        collect(&self.layout.archive(), "ledger/archive", false, is_archive, &mut sources)?;
        // Later ones are of records that the backup does not have.
        let is_snapshot = |name: &str| {
            let of = name.strip_suffix(".snapshot").and_then(|number| number.parse().ok().map(Sequence));
            of.is_some_and(|of| of <= self.held.point.sequence)
        };
        collect(&self.layout.snapshots(), "ledger/snapshots", true, is_snapshot, &mut sources)?;
        Ok(sources)
    }

    fn copy_all(&self, sources: &[Source], progress: &mut dyn FnMut(Step)) -> anyhow::Result<(Vec<Kept>, u64)> {
        let known = self.known();
        let total = sources.iter().map(|source| source.bytes).sum();
        let (mut kept, mut copied, mut done) = (Vec::new(), 0, 0);
        for source in sources {
            let target = self.draft.join(&source.kept);
            let mut read = |bytes: u64| {
                done += bytes;
                progress(Step::Files(done.min(total), total));
            };
            let earlier = known.get(source.kept.as_str()).filter(|(file, _)| file.bytes == source.bytes);
            if let Some((file, path)) = earlier
                && files::sum(&source.path, &mut read).is_ok_and(|sum| sum.blake3 == file.blake3)
                && files::sum(path, |_| {}).is_ok_and(|sum| sum.blake3 == file.blake3)
                && fs::hard_link(path, &target).is_ok()
            {
                kept.push((*file).clone());
                continue;
            }
            match files::copy(&source.path, &target, &mut read) {
                Ok(sum) => {
                    copied += sum.bytes;
                    kept.push(kept_as(&source.kept, sum));
                }
                Err(_) if source.may_go && !source.path.exists() => drop(fs::remove_file(&target)),
                Err(error) => return Err(error),
            }
        }
        Ok((kept, copied))
    }

    /// The files of the latest backup, and where they are.
    fn known(&self) -> HashMap<&str, (&Kept, PathBuf)> {
        let latest = self.earlier.last().into_iter();
        latest
            .flat_map(|backup| {
                backup.manifest.files.iter().map(|file| (file.path.as_str(), (file, backup.folder.join(&file.path))))
            })
            .collect()
    }

    fn copy_key(&self) -> anyhow::Result<Kept> {
        let path = self.layout.key();
        let signer = Signer::load(&path)?;
        ensure!(
            hex(&signer.public_key()) == self.held.point.public_key,
            "{} is not the key of the log",
            path.display()
        );
        Ok(kept_as(KEY, files::copy(&path, &self.draft.join(KEY), |_| {})?))
    }

    /// Removes what the verification has left beside the log.
    fn remove_unlisted(&self, kept: &[Kept]) -> anyhow::Result<()> {
        let log = self.draft.join("ledger/log");
        for entry in fs::read_dir(&log).with_context(|| log.display().to_string())? {
            let entry = entry.with_context(|| log.display().to_string())?;
            let path = format!("ledger/log/{}", entry.file_name().to_string_lossy());
            if !kept.iter().any(|file| file.path == path) {
                fs::remove_file(entry.path()).with_context(|| format!("removing {}", entry.path().display()))?;
            }
        }
        Ok(())
    }
}

fn kept_as(path: &str, sum: files::Sum) -> Kept {
    Kept { path: path.to_owned(), bytes: sum.bytes, blake3: sum.blake3 }
}

/// Adds the regular files of a folder, which need not exist, whose names are wanted.
fn collect(
    folder: &Path,
    kept: &str,
    may_go: bool,
    is_wanted: impl Fn(&str) -> bool,
    sources: &mut Vec<Source>,
) -> anyhow::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| folder.display().to_string())?,
    };
    for entry in entries {
        let entry = entry.with_context(|| folder.display().to_string())?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| is_wanted(name)) else { continue };
        match fs::metadata(entry.path()) {
            Ok(found) if found.is_file() => {
                let kept = format!("{kept}/{name}");
                sources.push(Source { path: entry.path(), kept, bytes: found.len(), may_go });
            }
            Err(error) if !may_go => return Err(error).with_context(|| entry.path().display().to_string()),
            _ => {}
        }
    }
    Ok(())
}
