//! The work on a node once a job is over: its processes are ended within a time, and a user who has no other job there leaves
//! no files behind.
//!
//! Files are removed with the rights of their owner, so that nothing can be removed that the owner could not remove. This takes
//! as long as there are files, and the owner's next job can begin meanwhile: so everything is found first, and before each
//! removal it is asked whether there is such a job.

use crate::removal;
use muster_schemas::{JobId, unfit::UnfitCause};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    io::{self, BufRead as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

/// The work on a node once a job is over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaning {
    /// How long processes are killed again and again, in seconds; 0 is without end.
    pub unkillable_seconds: u32,
    /// The folders in which the files of a user are removed when the user's last job has left the node.
    pub folders: Vec<PathBuf>,
}

impl Cleaning {
    /// Until when the processes of a job are killed that ends now.
    pub fn deadline(&self) -> Option<Instant> {
        let seconds = Duration::from_secs(self.unkillable_seconds.into());
        (self.unkillable_seconds > 0).then(|| Instant::now() + seconds)
    }
}

/// Why a node is unfit on which a job is over, but not its processes.
pub fn cannot_be_ended(job: Option<JobId>) -> String {
    let of = job.map_or_else(|| "a job".to_owned(), |job| format!("job {job}"));
    format!("{} of {of} cannot be removed", UnfitCause::Remains.words())
}

/// How long it holds for files that their owner has no other job here.
const FRESH: Duration = Duration::from_millis(100);

/// Something that a user has left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// A folder, and the place beside it that it is moved to before it is removed.
    Folder {
        /// Where it was left.
        path: PathBuf,
        /// Where no later job looks for it.
        aside: PathBuf,
    },
    /// A file, or a link.
    File(PathBuf),
    /// What processes shared, by its id.
    Shared(Shared, i32),
}

impl Leftover {
    fn set_aside(&self) -> io::Result<()> {
        match self {
            Self::Folder { path, aside } => unless_gone(fs::rename(path, aside)).or_else(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => Ok(()),
                _ => Err(error),
            }),
            Self::File(_) | Self::Shared(..) => Ok(()),
        }
    }

    /// A folder that stands in its place by now is not replaced, unless it is empty.
    fn put_back(&self) -> io::Result<()> {
        match self {
            Self::Folder { path, aside } => unless_gone(fs::rename(aside, path)),
            Self::File(_) | Self::Shared(..) => Ok(()),
        }
    }

    fn remove(&self) -> io::Result<()> {
        match self {
            // A folder that its owner may not move, such as one in a folder of root, is emptied in its place.
            Self::Folder { path, aside } if !aside.exists() => unless_gone(removal::empty(path)),
            Self::Folder { aside, .. } => removal::remove(aside),
            Self::File(path) => unless_gone(fs::remove_file(path)),
            Self::Shared(kind, id) => {
                kind.remove(*id);
                Ok(())
            }
        }
    }
}

/// The end of another job of the user may have removed it.
fn unless_gone(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// What a user has left behind in these folders before a moment, and what the user's processes shared before it.
pub fn leftovers(folders: &[PathBuf], uid: u32, before: SystemTime) -> Vec<Leftover> {
    let place = |(number, (path, is_folder)): (usize, (PathBuf, bool))| {
        let name = format!(".muster-removed-{}-{number}", std::process::id());
        let aside = path.with_file_name(name);
        if is_folder { Leftover::Folder { path, aside } } else { Leftover::File(path) }
    };
    let mut found: Vec<Leftover> =
        folders.iter().flat_map(|folder| entries(folder, uid, before)).enumerate().map(place).collect();
    for kind in [Shared::Memory, Shared::Semaphores, Shared::Messages] {
        found.extend(kind.ids_of(uid, before).into_iter().map(|id| Leftover::Shared(kind, id)));
    }
    found
}

/// Removes what a user has left behind, until the user `has_other_jobs` here. `as_user` acts with the rights of that user. What
/// cannot be removed is left; returns why, for the first.
pub fn remove_leftovers(
    found: &[Leftover],
    as_user: impl Fn(&dyn Fn() -> io::Result<()>) -> Result<(), String>,
    mut has_other_jobs: impl FnMut() -> bool,
) -> Option<String> {
    let mut failures = Vec::new();
    let mut asked: Option<Instant> = None;
    for one in found {
        // A job that begins from now on does not find the folder, and one that began before is seen by the question.
        if matches!(one, Leftover::Folder { .. })
            && let Err(why) = as_user(&|| one.set_aside())
        {
            failures.push(why);
            continue;
        }
        // Of many files not each is worth the question.
        let is_fresh = matches!(one, Leftover::File(_)) && asked.is_some_and(|asked| asked.elapsed() < FRESH);
        let is_kept = !is_fresh && has_other_jobs();
        if !is_fresh {
            asked = Some(Instant::now());
        }
        failures.extend(as_user(&|| if is_kept { one.put_back() } else { one.remove() }).err());
        if is_kept {
            break;
        }
    }
    failures.into_iter().next()
}

/// The entries of a folder that a user owns and that have not changed since, and whether each is a folder. Others belong to a
/// later job.
fn entries(folder: &Path, uid: u32, before: SystemTime) -> Vec<(PathBuf, bool)> {
    let changed = |known: &fs::Metadata| {
        let seconds = u64::try_from(known.ctime()).unwrap_or(0);
        SystemTime::UNIX_EPOCH + Duration::new(seconds, u32::try_from(known.ctime_nsec()).unwrap_or(0))
    };
    let left = |path: PathBuf| {
        let known = fs::symlink_metadata(&path).ok()?;
        (known.uid() == uid && changed(&known) <= before).then(|| (path, known.is_dir()))
    };
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| left(entry.ok()?.path())).collect()
}

/// What processes share by System V's means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// A segment of memory.
    Memory,
    /// A set of semaphores.
    Semaphores,
    /// A message queue.
    Messages,
}

impl Shared {
    /// The ids of those of a user that were made before a moment.
    fn ids_of(self, uid: u32, before: SystemTime) -> Vec<i32> {
        let file = match self {
            Self::Memory => "/proc/sysvipc/shm",
            Self::Semaphores => "/proc/sysvipc/sem",
            Self::Messages => "/proc/sysvipc/msg",
        };
        // Without the file there are none.
        fs::read(file).map(|text| ids(&text, uid, before)).unwrap_or_default()
    }

    fn remove(self, id: i32) {
        // What cannot be removed stays: it may be gone already.
        // SAFETY: these calls with IPC_RMID use no memory of this process.
        unsafe {
            match self {
                Self::Memory => libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()),
                Self::Semaphores => libc::semctl(id, 0, libc::IPC_RMID),
                Self::Messages => libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()),
            };
        }
    }
}

/// The second field of each line whose field under `uid` is this number, and whose `ctime`, in seconds, is not after a moment.
fn ids(text: &[u8], uid: u32, before: SystemTime) -> Vec<i32> {
    let before = before.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut lines = text.lines().map_while(Result::ok);
    let head = lines.next().unwrap_or_default();
    let place = |name: &str| head.split_whitespace().position(|word| word == name);
    let (owner, changed) = (place("uid"), place("ctime"));
    let id_of = |line: String| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let owner: u32 = fields.get(owner?)?.parse().ok()?;
        let changed: u64 = fields.get(changed?)?.parse().ok()?;
        (owner == uid && changed <= before).then(|| fields.get(1)?.parse().ok())?
    };
    lines.filter_map(id_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// OAR-X-08: what a later job of the user has made since stays.
    #[test]
    fn ids_are_read_by_the_head_of_the_table() {
        let text = b"       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      rtime      ctime\n\
                     0          3  644           0          0     0     0  1000  1000     0     0          0          0        100\n\
                     0          5  644           0          0     0     0  1000  1000     0     0          0          0        101\n\
                     0          4  644           0          0     0     0     0     0  1000  1000          0          0        100\nbroken\n";
        assert_eq!(ids(text, 1000, at(100)), [3]);
        assert_eq!(ids(text, 1000, at(101)), [3, 5]);
        assert_eq!(ids(text, 0, at(100)), [4]);
        assert_eq!(ids(b"", 0, at(100)), [0; 0]);
    }

    /// What this user has left in a folder, without what is shared on this host.
    fn left_in(folder: &Path, before: SystemTime) -> Vec<Leftover> {
        let uid = nix::unistd::Uid::effective().as_raw();
        let mut found = leftovers(&[folder.to_owned(), "/no/such/folder".into()], uid, before);
        found.retain(|one| !matches!(one, Leftover::Shared(..)));
        found
    }

    fn act(act: &dyn Fn() -> io::Result<()>) -> Result<(), String> {
        act().map_err(|error| error.to_string())
    }

    /// OAR-X-08
    #[test]
    fn what_a_user_has_left_goes_and_what_is_newer_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, file, link) = (folder.path().join("tree/x"), folder.path().join("file"), folder.path().join("link"));
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir_all(&tree).unwrap();
        fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        assert_eq!(left_in(folder.path(), SystemTime::now() - Duration::from_secs(3_600)), []);
        let later = SystemTime::now() + Duration::from_secs(60);
        let other = nix::unistd::Uid::effective().as_raw().wrapping_add(1);
        assert!(entries(folder.path(), other, later).is_empty());
        let found = left_in(folder.path(), later);
        assert_eq!(found.len(), 3);
        assert_eq!(remove_leftovers(&found, act, || false), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(outside.path().exists(), "no link is followed");
    }

    /// OAR-X-08: a job of the user that begins meanwhile keeps what is not removed yet, and what it makes itself.
    #[test]
    fn nothing_more_goes_once_the_user_has_another_job() {
        let folder = tempfile::tempdir().unwrap();
        let trees = ["a", "b", "c"].map(|name| folder.path().join(name));
        trees.iter().for_each(|tree| fs::create_dir_all(tree.join("x")).unwrap());
        let found = left_in(folder.path(), SystemTime::now() + Duration::from_secs(60));
        let there = || trees.iter().filter(|tree| tree.join("x").exists()).count();
        let mut asked = Vec::new();
        let failure = remove_leftovers(&found, act, || {
            asked.push(there());
            asked.len() == 2
        });
        assert_eq!(failure, None);
        assert_eq!(asked, [2, 1], "what is removed next is out of the way of jobs that begin");
        assert_eq!(there(), 2, "it is back in its place");
        // What the other job has put into the place of a folder stays too.
        let found = left_in(folder.path(), SystemTime::now() + Duration::from_secs(60));
        let new = found.iter().find_map(|one| match one {
            Leftover::Folder { path, .. } => Some(path.join("new")),
            _ => None,
        });
        let new = new.expect("there are two");
        let failure = remove_leftovers(&found, act, || {
            fs::create_dir_all(&new).unwrap();
            true
        });
        assert!(failure.is_some());
        assert!(new.exists());
    }

    #[test]
    fn a_time_without_end_is_as_before() {
        assert_eq!(Cleaning::default().deadline(), None);
        assert!(Cleaning { unkillable_seconds: 1, ..Cleaning::default() }.deadline().is_some());
    }
}
