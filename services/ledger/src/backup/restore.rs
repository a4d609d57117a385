//! Restoring a backup.

use super::{
    Step, files,
    manifest::{KEY, Kept, Listed, Locked, Manifest, list},
    verify,
};
use crate::{
    from_hex, hex,
    restored::Mark,
    signing::Signer,
    storage::{Layout, Storage},
};
use anyhow::{Context as _, bail, ensure};
use muster_schemas::codec::FEATURE_LEVEL;
use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

/// A backup that was restored.
#[derive(Clone, Debug)]
pub struct Restored {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub manifest: Manifest,
}

/// Restores a backup to a data folder without a ledger: the latest of a folder of backups, or the one that is named.
/// The next ledger on that folder records that the log was restored.
///
/// # Errors
/// If there is no such backup, the data folder has a ledger, the key is missing, or the backup does not verify or cannot
/// be copied. Then the data folder has no ledger as before.
pub fn restore(
    dir: &Path,
    name: Option<&str>,
    data_dir: &Path,
    progress: &mut dyn FnMut(Step),
) -> anyhow::Result<Restored> {
    let backup = list(dir)?.choose(dir, name)?;
    let level = backup.manifest.feature_level;
    ensure!(
        level <= FEATURE_LEVEL,
        "backup {} was made of a newer muster's log (feature level {level}, this one has {FEATURE_LEVEL}): install that version",
        backup.name
    );
    let layout = Layout::new(data_dir);
    refuse_beside_a_ledger(&layout)?;
    make_data_folder(data_dir)?;
    let _locked = Locked::lock(data_dir)?;
    check_key(&backup, &layout)?;
    check_files(&backup, progress)?;
    verify(&backup.folder, progress).with_context(|| {
        format!("backup {} does not verify, and {} stays as it is", backup.name, data_dir.display())
    })?;
    check_end(&backup)?;
    let draft = layout.own().with_extension("restoring");
    let put = Put { backup: &backup, layout: &layout, draft: &draft, owner: Owner::of(data_dir)? };
    if let Err(error) = put.put(progress) {
        let _ = files::remove_folder(&draft);
        return Err(error.context(format!("nothing was restored, and {} has no ledger as before", data_dir.display())));
    }
    let Listed { name, manifest, .. } = backup;
    Ok(Restored { name, manifest })
}

fn refuse_beside_a_ledger(layout: &Layout) -> anyhow::Result<()> {
    let own = layout.own();
    match fs::read_dir(&own).map(|mut entries| entries.next().is_none()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| own.display().to_string()),
        Ok(true) => Ok(()),
        Ok(false) => bail!(
            "there is a ledger in {}, and nothing was changed: stop it, and move that folder away if the backup is to take \
             its place",
            own.display()
        ),
    }
}

/// Others have to pass through it, as through the one that `muster serve` makes.
fn make_data_folder(data_dir: &Path) -> anyhow::Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o711).create(data_dir);
    made.with_context(|| format!("making {}", data_dir.display()))
}

/// A log without its key cannot be continued, and it is better to know that before.
fn check_key(backup: &Listed, layout: &Layout) -> anyhow::Result<()> {
    let there = layout.key();
    let path = match there.try_exists().with_context(|| there.display().to_string())? {
        true => there,
        false if backup.manifest.has_key => backup.folder.join(KEY),
        false => bail!(
            "backup {} has no private key (it was made without --with-key), and {} does not exist: put the key there \
             from its own backup first. Nothing was changed",
            backup.name,
            there.display()
        ),
    };
    ensure!(
        hex(&Signer::load(&path)?.public_key()) == backup.manifest.public_key,
        "{} is not the key of the log in backup {}. Nothing was changed",
        path.display(),
        backup.name
    );
    Ok(())
}

fn check_files(backup: &Listed, progress: &mut dyn FnMut(Step)) -> anyhow::Result<()> {
    let (mut done, total) = (0, backup.manifest.bytes());
    for file in &backup.manifest.files {
        let path = backup.folder.join(&file.path);
        let sum = files::sum(&path, |bytes| {
            done += bytes;
            progress(Step::Files(done, total));
        });
        let sum = sum.with_context(|| path.display().to_string())?;
        ensure!(is_same(file, &sum), "{} is not the file that was backed up. Nothing was changed", path.display());
    }
    Ok(())
}

/// The next ledger compares the end of the log with what the manifest says, and would not start.
fn check_end(backup: &Listed) -> anyhow::Result<()> {
    let Manifest { sequence, hash, .. } = &backup.manifest;
    let head = Storage::open_read_only(&backup.folder)?.log()?.head()?;
    ensure!(
        head.sequence == *sequence && hex(&head.hash) == *hash,
        "the manifest of backup {} says that its log ends at record {sequence}, but it ends at another, record {}. Nothing \
         was changed",
        backup.name,
        head.sequence
    );
    Ok(())
}

fn is_same(file: &Kept, sum: &files::Sum) -> bool {
    sum.bytes == file.bytes && sum.blake3 == file.blake3
}

/// Whom the restored files belong to.
#[derive(Clone, Copy)]
struct Owner {
    user: u32,
    group: u32,
}

impl Owner {
    /// The owner of the data folder; only root can give files to others.
    fn of(data_dir: &Path) -> anyhow::Result<Option<Self>> {
        let found = fs::metadata(data_dir).with_context(|| data_dir.display().to_string())?;
        Ok((crate::own_user() == 0).then_some(Self { user: found.uid(), group: found.gid() }))
    }

    fn give(self, path: &Path) -> anyhow::Result<()> {
        std::os::unix::fs::lchown(path, Some(self.user), Some(self.group))
            .with_context(|| format!("giving {} to its owner", path.display()))
    }
}

/// Puts a backup into a data folder.
struct Put<'a> {
    backup: &'a Listed,
    layout: &'a Layout,
    draft: &'a Path,
    owner: Option<Owner>,
}

impl Put<'_> {
    /// All of it, or nothing: the ledger's folder gets its name last.
    fn put(&self, progress: &mut dyn FnMut(Step)) -> anyhow::Result<()> {
        files::remove_folder(self.draft)?;
        for folder in ["", "log", "snapshots", "archive"] {
            files::make_folder(&self.draft.join(folder))?;
            self.give(&self.draft.join(folder))?;
        }
        let (mut done, total) = (0, self.backup.manifest.bytes());
        for file in &self.backup.manifest.files {
            let Some(path) = file.path.strip_prefix("ledger/") else { continue };
            let (from, to) = (self.backup.folder.join(&file.path), self.draft.join(path));
            let sum = files::copy(&from, &to, |bytes| {
                done += bytes;
                progress(Step::Files(done, total));
            })?;
            ensure!(is_same(file, &sum), "{} has changed meanwhile", from.display());
            self.give(&to)?;
        }
        self.mark()?;
        for folder in ["log", "snapshots", "archive", ""] {
            files::sync_folder(&self.draft.join(folder))?;
        }
        // A key without a log is no ledger: if this ends here, the restore can be repeated.
        self.put_key()?;
        let own = self.layout.own();
        fs::rename(self.draft, &own)
            .with_context(|| format!("renaming {} to {}", self.draft.display(), own.display()))?;
        crate::sync_folder_of(&own).with_context(|| own.display().to_string())
    }

    fn mark(&self) -> anyhow::Result<()> {
        let Manifest { sequence, hash, .. } = &self.backup.manifest;
        let hash = from_hex(hash).and_then(|hash| hash.try_into().ok()).context("the manifest's hash is none")?;
        let mark = Mark::new(*sequence, &hash, &self.backup.name);
        let path = self.draft.join("restored");
        files::write(&path, &serde_json::to_vec(&mark)?)?;
        self.give(&path)
    }

    fn put_key(&self) -> anyhow::Result<()> {
        let key = self.layout.key();
        if key.try_exists().with_context(|| key.display().to_string())? {
            return Ok(());
        }
        let draft: PathBuf = key.with_extension("key.restoring");
        if let Err(error) = fs::remove_file(&draft)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error).with_context(|| draft.display().to_string());
        }
        files::copy(&self.backup.folder.join(KEY), &draft, |_| {})?;
        self.give(&draft)?;
        fs::rename(&draft, &key).with_context(|| format!("renaming {}", draft.display()))?;
        crate::sync_folder_of(&key).with_context(|| key.display().to_string())
    }

    fn give(&self, path: &Path) -> anyhow::Result<()> {
        self.owner.map_or(Ok(()), |owner| owner.give(path))
    }
}
