//! A host of its own for an emulated node: several nodes of `muster up` share one machine, but programs on them see
//! several (SL-W-09).
//!
//! Tasks of the node have a mount and a UTS namespace with the node's name, its own `/dev/shm` and `/tmp`, and an
//! `/etc/hosts` that knows all emulated nodes. The namespaces are made by the fork server, which every task descends from;
//! what is in `/dev/shm` and `/tmp` lies in folders, so it outlives the fork server. All other folders are those of the
//! machine, as if every node had mounted them. A folder of `/tmp` that a task cannot do without (its working directory,
//! its spool) is mounted there too, so that a try-out below `/tmp` works.

use muster_schemas::codec;
use nix::{
    errno::Errno,
    fcntl::{OFlag, open, openat},
    mount::{MsFlags, mount},
    sched::{CloneFlags, setns, unshare},
    sys::stat::{Mode, fstat, mkdirat},
    unistd::{Uid, mkdir, sethostname},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    ffi::{CStr, CString, OsStr},
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::{
        fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::{
            ffi::OsStrExt as _,
            fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
        },
    },
    path::{Path, PathBuf},
};

/// The file in a spool that says which host to make. Written by the executor, read by its fork server.
const PLAN: &str = "host.plan";
/// The folder in a spool with what the host has of its own.
const FOLDER: &str = "host";
const HOSTS: &str = "/etc/hosts";
const SHARED_MEMORY: &str = "/dev/shm";
const TEMPORARY: &str = "/tmp";
/// Anybody may make files here, and remove only his own.
const FOR_ALL: u32 = 0o1777;

/// A host to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Its name: that of the node.
    name: String,
    /// The folder that becomes `/dev/shm`.
    shared_memory: PathBuf,
    /// The folder that becomes `/tmp`.
    temporary: PathBuf,
    /// The file that becomes `/etc/hosts`, if this machine has one.
    hosts: Option<PathBuf>,
}

impl Plan {
    /// Makes the folders of a host for a node, and leaves the plan in the spool. `instance` is a name for this executor's
    /// own things, and `nodes` are the emulated nodes.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn make(spool: &Path, node: &str, instance: &str, nodes: &[String]) -> io::Result<()> {
        let folder = spool.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o711).create(&folder)?;
        let plan = Self {
            name: node.to_owned(),
            shared_memory: for_all(Path::new(SHARED_MEMORY).join(format!("muster-{instance}")))?,
            temporary: for_all(folder.join("tmp"))?,
            hosts: hosts(&folder, nodes)?,
        };
        fs::write(spool.join(PLAN), codec::encode(&plan).map_err(io::Error::other)?)
    }

    /// Removes the plan: tasks see the machine as it is.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn remove(spool: &Path) -> io::Result<()> {
        match fs::remove_file(spool.join(PLAN)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes what would stay in the machine's memory, if it is empty. No task of the node may be left: it would lose its
    /// `/dev/shm`.
    pub fn tidy(spool: &Path) {
        if let Ok(Some(plan)) = Self::of(spool) {
            // It stays as long as files are in it.
            let _ = fs::remove_dir(plan.shared_memory);
        }
    }

    fn of(spool: &Path) -> io::Result<Option<Self>> {
        match fs::read(spool.join(PLAN)) {
            Ok(bytes) => codec::decode(&bytes).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Makes a folder for all, in a folder where others may have made something of that name.
fn for_all(path: PathBuf) -> io::Result<PathBuf> {
    made(mkdir(&path, Mode::S_IRWXU))?;
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let folder = File::from(open(&path, flags, Mode::empty())?);
    if folder.metadata()?.uid() != Uid::effective().as_raw() {
        let why = format!("{} belongs to somebody else", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    folder.set_permissions(Permissions::from_mode(FOR_ALL))?;
    Ok(path)
}

/// The machine's own names, and those of the emulated nodes.
fn hosts(folder: &Path, nodes: &[String]) -> io::Result<Option<PathBuf>> {
    let mut text = match fs::read_to_string(HOSTS) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    for (at, node) in nodes.iter().enumerate() {
        // An address for each, none of them that of an interface: launchers would take a node for the host that they are on.
        text.push_str(&format!("127.1.{}.{}\t{node}\n", at / 250 % 256, at % 250 + 1));
    }
    let file = folder.join("hosts");
    fs::write(&file, text)?;
    fs::set_permissions(&file, Permissions::from_mode(0o644))?;
    Ok(Some(file))
}

/// The namespaces of a node's tasks.
#[derive(Debug)]
pub struct Host {
    mounts: OwnedFd,
    name: OwnedFd,
    /// The machine's `/tmp`, seen from within.
    temporary: OwnedFd,
}

impl Host {
    /// Makes the host that the plan in a spool asks for; `None` if there is no plan. This process must have one thread.
    ///
    /// # Errors
    /// The kernel refuses, for people; this process is where it was.
    pub fn make(spool: &Path) -> Result<Option<Self>, String> {
        let plan = Plan::of(spool).map_err(|error| format!("the plan for it cannot be read: {error}"))?;
        let Some(plan) = plan else { return Ok(None) };
        let own = |kind: &str| File::open(format!("/proc/self/ns/{kind}")).map(OwnedFd::from);
        let namespaces = || -> io::Result<_> { Ok((own("mnt")?, own("uts")?)) };
        let (mounts, name) = namespaces().map_err(|error| format!("its namespaces cannot be opened: {error}"))?;
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS)
            .map_err(|errno| format!("namespaces of its own cannot be had: {}", errno.desc()))?;
        let made = plan.furnish().and_then(|temporary| {
            let (mounts, name) = namespaces().map_err(|error| format!("its namespaces cannot be opened: {error}"))?;
            Ok(Self { mounts, name, temporary })
        });
        let back = setns(&mounts, CloneFlags::CLONE_NEWNS).and_then(|()| setns(&name, CloneFlags::CLONE_NEWUTS));
        back.map_err(|errno| format!("this process cannot leave it: {}", errno.desc()))?;
        made.map(Some)
    }

    /// Enters it, with these folders and files of the machine's `/tmp`. After a fork: nothing here allocates memory.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn enter(&self, kept: &[Kept]) -> Result<(), Errno> {
        setns(&self.mounts, CloneFlags::CLONE_NEWNS)?;
        setns(&self.name, CloneFlags::CLONE_NEWUTS)?;
        kept.iter().try_for_each(|kept| self.keep(kept))
    }

    /// Shows an entry of the machine's `/tmp` in this one, unless it is shown already or does not exist. Users write to
    /// both, so no link is followed, and an entry with another kind is left alone.
    fn keep(&self, kept: &Kept) -> Result<(), Errno> {
        let Ok(wanted) = open_entry(self.temporary.as_fd(), &kept.name) else { return Ok(()) };
        let kind = kind_of(&wanted)?;
        let temporary = open(TEMPORARY, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        match kind {
            libc::S_IFDIR => made(mkdirat(&temporary, kept.name.as_c_str(), Mode::from_bits_truncate(0o755)))?,
            libc::S_IFREG => {
                let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
                made(openat(&temporary, kept.name.as_c_str(), flags, Mode::empty()).map(drop))?;
            }
            _ => return Ok(()),
        }
        let shown = open_entry(temporary.as_fd(), &kept.name)?;
        let identity = |file: &OwnedFd| fstat(file).map(|status| (status.st_dev, status.st_ino));
        if kind_of(&shown)? != kind || identity(&shown)? == identity(&wanted)? {
            return Ok(());
        }
        let (mut source, mut target) = ([0; 40], [0; 40]);
        bind(descriptor_path(&mut source, wanted.as_raw_fd()), descriptor_path(&mut target, shown.as_raw_fd()))
    }
}

/// An entry of a folder itself, even if it is a link.
fn open_entry(folder: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    openat(folder, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())
}

fn kind_of(file: &OwnedFd) -> Result<libc::mode_t, Errno> {
    fstat(file).map(|status| status.st_mode & libc::S_IFMT)
}

/// An entry of `/tmp` that a task needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    name: CString,
}

impl Kept {
    /// The entries of `/tmp` on the way to these paths, each once.
    pub fn on_the_way_to<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<Self> {
        let name = |path: &'a Path| path.strip_prefix(TEMPORARY).ok()?.components().next();
        let names: BTreeSet<_> = paths.into_iter().filter_map(name).map(|name| name.as_os_str()).collect();
        let kept = |name: &OsStr| Some(Self { name: CString::new(name.as_bytes()).ok()? });
        names.into_iter().filter(|name| *name != "..").filter_map(kept).collect()
    }
}

impl Plan {
    /// Mounts what the host has of its own, in the namespaces that this process is in; returns the machine's `/tmp`.
    fn furnish(&self) -> Result<OwnedFd, String> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |errno: Errno| format!("{what}: {}", errno.desc())
        };
        // Whatever the machine mounts later is seen here, but not the other way round.
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)
            .map_err(failed("its mounts cannot be made its own"))?;
        sethostname(&self.name).map_err(failed("its name cannot be set"))?;
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let temporary = open(TEMPORARY, flags, Mode::empty()).map_err(failed("`/tmp` cannot be opened"))?;
        let over = |from: &Path, to: &str| {
            mount(Some(from), to, None::<&str>, MsFlags::MS_BIND, None::<&str>)
                .map_err(failed(&format!("`{to}` cannot be replaced")))
        };
        over(&self.shared_memory, SHARED_MEMORY)?;
        self.hosts.as_deref().map_or(Ok(()), |hosts| over(hosts, HOSTS))?;
        over(&self.temporary, TEMPORARY)?;
        Ok(temporary)
    }
}

/// Somebody else may have made it meanwhile.
fn made(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::EEXIST) => Ok(()),
        other => other,
    }
}

fn bind(source: &CStr, target: &CStr) -> Result<(), Errno> {
    mount(Some(source), target, None::<&CStr>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&CStr>)
}

/// `/proc/self/fd/N`, without allocating memory.
fn descriptor_path(buffer: &mut [u8; 40], descriptor: i32) -> &CStr {
    use io::Write as _;
    let mut rest = &mut buffer[..];
    // The longest number leaves room for the end.
    let _ = write!(rest, "/proc/self/fd/{descriptor}\0");
    CStr::from_bytes_until_nul(buffer).unwrap_or(c"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_needs_of_tmp_is_an_entry_of_it() {
        let paths = ["/tmp/a/b", "/tmp/a", "/tmp", "/tmp/c.sh", "/home/tmp/x", "/tmpx/y", "/tmp/../etc"].map(Path::new);
        let names: Vec<_> =
            Kept::on_the_way_to(paths).into_iter().map(|kept| kept.name.into_string().unwrap()).collect();
        assert_eq!(names, ["a", "c.sh"]);
    }

    /// A user could have put a link where the folder is to be.
    #[test]
    fn a_folder_for_all_is_no_link_that_others_have_made() {
        let folder = tempfile::tempdir().unwrap();
        let private = folder.path().join("private");
        DirBuilder::new().mode(0o700).create(&private).unwrap();
        std::os::unix::fs::symlink(&private, folder.path().join("link")).unwrap();
        assert!(for_all(folder.path().join("link")).is_err());
        assert_eq!(private.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
        for_all(folder.path().join("new")).unwrap();
        for_all(folder.path().join("new")).unwrap();
    }

    #[test]
    fn the_path_of_a_descriptor_has_room_for_any() {
        let mut buffer = [0; 40];
        assert_eq!(descriptor_path(&mut buffer, i32::MAX), c"/proc/self/fd/2147483647");
    }

    #[test]
    fn a_plan_survives_the_way_to_the_fork_server() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Plan::of(folder.path()).unwrap(), None);
        Plan::make(folder.path(), "n1", "test-of-a-plan", &["n1".into(), "n2".into()]).unwrap();
        let plan = Plan::of(folder.path()).unwrap().unwrap();
        assert!(plan.shared_memory.exists());
        Plan::tidy(folder.path());
        assert!(!plan.shared_memory.exists());
        assert_eq!(plan.temporary.metadata().unwrap().permissions().mode() & 0o7777, FOR_ALL);
        if let Some(hosts) = plan.hosts {
            assert!(fs::read_to_string(hosts).unwrap().ends_with("127.1.0.1\tn1\n127.1.0.2\tn2\n"));
        }
        Plan::remove(folder.path()).unwrap();
        Plan::remove(folder.path()).unwrap();
        assert_eq!(Plan::of(folder.path()).unwrap(), None);
    }
}
