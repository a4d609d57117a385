//! The work on a node once a job is over: its processes are ended within a time, and a user who has no other job there leaves
//! no files behind.
//!
//! Files are removed with the rights of their owner, so that nothing can be removed that the owner could not remove.

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

/// Removes what a user has left behind in these folders before a moment, and what the user's processes shared. This process must have the rights of that user. What cannot be removed is left; returns why, for the first.
pub fn remove_leftovers(folders: &[PathBuf], uid: u32, before: SystemTime) -> Option<io::Error> {
    let in_folders = folders.iter().flat_map(|folder| leftovers(folder, uid, before));
    let failures: Vec<io::Error> = in_folders.filter_map(|path| removal::remove(&path).err()).collect();
    for kind in [Shared::Memory, Shared::Semaphores, Shared::Messages] {
        kind.ids_of(uid).into_iter().for_each(|id| kind.remove(id));
    }
    failures.into_iter().next()
}

/// The entries of a folder that a user owns and that have not changed since. Others belong to a later job.
fn leftovers(folder: &Path, uid: u32, before: SystemTime) -> Vec<PathBuf> {
    let changed = |known: &fs::Metadata| {
        let seconds = u64::try_from(known.ctime()).unwrap_or(0);
        SystemTime::UNIX_EPOCH + Duration::new(seconds, u32::try_from(known.ctime_nsec()).unwrap_or(0))
    };
    let is_left =
        |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|known| known.uid() == uid && changed(&known) <= before);
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_left).collect()
}

/// What processes share by System V's means.
#[derive(Clone, Copy, Debug)]
enum Shared {
    Memory,
    Semaphores,
    Messages,
}

impl Shared {
    /// The ids of those of a user.
    fn ids_of(self, uid: u32) -> Vec<i32> {
        let file = match self {
            Self::Memory => "/proc/sysvipc/shm",
            Self::Semaphores => "/proc/sysvipc/sem",
            Self::Messages => "/proc/sysvipc/msg",
        };
        // Without the file there are none.
        fs::read(file).map(|text| ids(&text, uid)).unwrap_or_default()
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

/// The second field of each line whose field under `uid` is this number.
fn ids(text: &[u8], uid: u32) -> Vec<i32> {
    let mut lines = text.lines().map_while(Result::ok);
    let place = lines.next().and_then(|head| head.split_whitespace().position(|word| word == "uid"));
    let id_of = |line: String| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let owner: u32 = fields.get(place?)?.parse().ok()?;
        (owner == uid).then(|| fields.get(1)?.parse().ok())?
    };
    lines.filter_map(id_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_by_the_head_of_the_table() {
        let text = b"       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid\n\
                     0          3  644           0          0     0     0  1000  1000     0     0\n\
                     0          4  644           0          0     0     0     0     0  1000  1000\nbroken\n";
        assert_eq!(ids(text, 1000), [3]);
        assert_eq!(ids(text, 0), [4]);
        assert_eq!(ids(b"", 0), [0; 0]);
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
        let uid = nix::unistd::Uid::effective().as_raw();
        let folders = [folder.path().to_owned(), "/no/such/folder".into()];
        let left = |before| remove_leftovers(&folders, uid, before).map(|error| error.to_string());
        assert_eq!(left(SystemTime::now() - Duration::from_secs(3_600)), None);
        assert!(tree.exists() && file.exists(), "they belong to a later job");
        let other = uid.wrapping_add(1);
        assert!(leftovers(folder.path(), other, SystemTime::now() + Duration::from_secs(60)).is_empty());
        assert_eq!(left(SystemTime::now() + Duration::from_secs(60)), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(outside.path().exists(), "no link is followed");
    }

    #[test]
    fn a_time_without_end_is_as_before() {
        assert_eq!(Cleaning::default().deadline(), None);
        assert!(Cleaning { unkillable_seconds: 1, ..Cleaning::default() }.deadline().is_some());
    }
}
