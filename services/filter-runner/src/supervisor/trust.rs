//! Which programs may run: those that only trusted users can change (HPC-F-73).

use super::Stop;
use crate::call::Captured;
use muster_schemas::filter::FilterExit;
use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata},
    io::{self, Read as _},
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt},
    path::{Component, Path, PathBuf},
};

/// The number of symbolic links that the kernel follows.
const MAX_LINKS: u32 = 40;
/// The number of nested interpreters that the kernel follows.
const MAX_INTERPRETERS: u32 = 4;
/// The part of a script's first line that the kernel reads.
const FIRST_LINE_BYTES: usize = 256;

/// Programs that were checked before. Only the contents of their files are remembered; each call checks again whether
/// they may run.
#[derive(Debug, Default)]
pub struct Programs {
    known: HashMap<PathBuf, (Version, Contents)>,
}

/// Files with the same version have the same contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

#[derive(Clone, Debug)]
struct Contents {
    hash: String,
    interpreter: Option<PathBuf>,
}

impl Programs {
    /// The hash of a program that may be run; `None` if it may be executed but not read.
    pub fn vet(&mut self, program: &str, trusted: &[u32]) -> Result<Option<String>, Stop> {
        let (hash, mut interpreter) = self.look_at(Path::new(program), trusted)?;
        for _ in 0..MAX_INTERPRETERS {
            let Some(path) = interpreter else { return Ok(hash) };
            interpreter = match self.look_at(&path, trusted) {
                Err(Stop::Result(FilterExit::NotFound(_), _)) => {
                    return refuse(FilterExit::NotFound(format!("{} (the interpreter of {program})", path.display())));
                }
                other => other?.1,
            };
        }
        not_runnable(Path::new(program), "has interpreters of interpreters without end")
    }

    fn look_at(&mut self, path: &Path, trusted: &[u32]) -> Result<(Option<String>, Option<PathBuf>), Stop> {
        if !path.is_absolute() {
            return not_runnable(path, "is not an absolute path");
        }
        let (file, metadata) = resolve(path, trusted)?;
        if !metadata.is_file() {
            return not_runnable(path, "is not a regular file");
        }
        if metadata.mode() & 0o111 == 0 {
            return not_runnable(path, "is not executable");
        }
        match self.contents(file, &metadata) {
            Ok(contents) => Ok((Some(contents.hash.clone()), contents.interpreter.clone())),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok((None, None)),
            Err(error) => not_runnable(path, &format!("cannot be read: {error}")),
        }
    }

    fn contents(&mut self, file: PathBuf, metadata: &Metadata) -> io::Result<&Contents> {
        use std::collections::hash_map::Entry;
        let version = Version {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        };
        match self.known.entry(file) {
            Entry::Occupied(mut known) => {
                if known.get().0 != version {
                    let contents = read(known.key())?;
                    known.insert((version, contents));
                }
                Ok(&known.into_mut().1)
            }
            Entry::Vacant(unknown) => {
                let contents = read(unknown.key())?;
                Ok(&unknown.insert((version, contents)).1)
            }
        }
    }
}

fn read(path: &Path) -> io::Result<Contents> {
    let mut file = File::open(path)?;
    let mut beginning = Vec::with_capacity(FIRST_LINE_BYTES);
    (&mut file).take(FIRST_LINE_BYTES as u64).read_to_end(&mut beginning)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&beginning);
    hasher.update_reader(file)?;
    Ok(Contents { hash: hasher.finalize().to_hex().to_string(), interpreter: interpreter(&beginning) })
}

/// The interpreter that a script's first line names.
fn interpreter(beginning: &[u8]) -> Option<PathBuf> {
    let line = beginning.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?.trim_ascii_start();
    let path = line.split(|byte| matches!(byte, b' ' | b'\t')).next().filter(|path| !path.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// Follows a path as the kernel does, and checks every folder, link and file on the way. Returns the file without
/// links.
fn resolve(path: &Path, trusted: &[u32]) -> Result<(PathBuf, Metadata), Stop> {
    let mut links = 0;
    let mut current = PathBuf::from("/");
    let mut metadata = inspect(&current, path, trusted)?;
    let mut ahead = names_reversed(path);
    while let Some(name) = ahead.pop() {
        if name == ".." {
            current.pop();
            continue;
        }
        if !metadata.is_dir() {
            return refuse(FilterExit::NotFound(path.display().to_string()));
        }
        let next = current.join(name);
        metadata = inspect(&next, path, trusted)?;
        if !metadata.is_symlink() {
            current = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return not_runnable(path, "leads over too many symbolic links");
        }
        let target = fs::read_link(&next).or_else(|error| not_runnable(path, &error.to_string()))?;
        if target.is_absolute() {
            current = PathBuf::from("/");
        }
        ahead.extend(names_reversed(&target));
        metadata = inspect(&current, path, trusted)?;
    }
    Ok((current, metadata))
}

fn names_reversed(path: &Path) -> Vec<OsString> {
    let name = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// Checks one file or folder on the way to a program.
fn inspect(here: &Path, program: &Path, trusted: &[u32]) -> Result<Metadata, Stop> {
    let metadata = match fs::symlink_metadata(here) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return refuse(FilterExit::NotFound(program.display().to_string()));
        }
        Err(error) => return not_runnable(program, &format!("cannot be looked at: {}: {error}", here.display())),
    };
    if let Some(what) = weakness(&metadata, trusted) {
        let who = "only root and the configured administrators may be able to change it or a folder on its path";
        return not_runnable(program, &format!("is not trusted: {} {what}, but {who}", here.display()));
    }
    Ok(metadata)
}

/// Why somebody who is not trusted could change this. A link has no mode of its own. In a sticky folder such as `/tmp`
/// others can make new files, but neither change nor replace those of trusted users.
fn weakness(metadata: &Metadata, trusted: &[u32]) -> Option<String> {
    if !trusted.contains(&metadata.uid()) {
        return Some(format!("belongs to user number {}", metadata.uid()));
    }
    let mode = metadata.mode();
    let sticky = metadata.is_dir() && mode & libc::S_ISVTX != 0;
    (mode & 0o022 != 0 && !sticky && !metadata.is_symlink())
        .then(|| format!("can be written by its group or by all (mode {:04o})", mode & 0o7777))
}

fn refuse<T>(result: FilterExit) -> Result<T, Stop> {
    Err(Stop::Result(result, Captured::default()))
}

fn not_runnable<T>(program: &Path, why: &str) -> Result<T, Stop> {
    refuse(FilterExit::NotRunnable(format!("{} {why}", program.display())))
}
