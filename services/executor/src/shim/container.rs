//! Tasks in containers: the program of a task is a container runtime, which starts the task's command within an image.
//!
//! A runtime runs as the owner of the job, and nothing that it starts leaves the run's containment: an OCI runtime gets a
//! user and a mount namespace and no others, so that signals, shared memory and the network are those of the node. Words
//! of the user stand only where a runtime takes none for an option.

mod bundle;
mod root;

use super::{
    execution::{Environment, ProgramPath, c_string},
    files::{plain, umask_of},
};
use crate::{
    containment::MARKER,
    environment::USUAL_PATH,
    runtimes::{Kind, Runtime},
    spool::{CONTAINER, NODE_FILE, RunFolder, SCRIPT, SpooledOrder, TEMPORARY, give, overwrite},
};
use bundle::Bundle;
use muster_schemas::steps::ProcessManagement;
use root::Mount;
use std::{
    ffi::CStr,
    fs::{self, DirBuilder},
    io,
    os::{
        fd::RawFd,
        unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    },
    path::{Path, PathBuf},
};

/// The number of a task's connection to its process management, within its container.
pub const MANAGEMENT: RawFd = 3;

const ROOT: &str = "root";
const STATE: &str = "state";
/// Folders of the node that every container sees: devices and kernel interfaces, and the files that the processes of a
/// parallel program share.
const OF_NODE: [&str; 4] = ["/proc", "/sys", "/dev", "/tmp"];
/// Files of the node that a container sees in place of its own, if it has them: the names of other nodes.
const NAMES: [&str; 2] = ["/etc/hosts", "/etc/resolv.conf"];
/// A working directory in one of these is that of the image.
const OF_IMAGE: [&str; 9] = ["bin", "boot", "etc", "lib", "lib32", "lib64", "libx32", "sbin", "usr"];

/// Makes the folder for the containers of a launch, which belongs to the shim, with what their runtime writes to, which
/// belongs to the user.
///
/// # Errors
/// If the disk refuses.
pub fn make_folder(spooled: &SpooledOrder, folder: &RunFolder) -> io::Result<()> {
    folder.remove_container()?;
    let own = folder.file(CONTAINER);
    DirBuilder::new().mode(0o711).create(&own)?;
    fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
    for (name, mode) in [(ROOT, 0o755), (STATE, 0o700)] {
        DirBuilder::new().mode(mode).create(own.join(name))?;
        give(&own.join(name), &spooled.identity)?;
    }
    Ok(())
}

/// The containers of a launch.
pub struct Container {
    runtime: Runtime,
    image: String,
    /// The image as an OCI bundle, for a runtime that takes one.
    bundle: Option<Bundle>,
    mounts: Vec<Mount>,
    directory: String,
    folder: PathBuf,
    /// The beginning of the name of each container.
    name: String,
    umask: u32,
}

/// The program of one task.
pub struct Contained {
    pub program: ProgramPath,
    pub environment: Environment,
}

impl Container {
    /// Looks at the image as its user, finds the runtime, and lays out the root folder. `None` if the launch asks for no
    /// container.
    ///
    /// # Errors
    /// Why there is no container, for people.
    pub fn open(spooled: &SpooledOrder, folder: &RunFolder) -> Result<Option<Self>, String> {
        let order = &spooled.order;
        let Some(image) = &order.launch.container else { return Ok(None) };
        let failed = |why: String| format!("the container image `{image}` cannot be used: {why}");
        if image.is_empty() || image.starts_with('-') {
            return Err(failed("it is no name of an image".to_owned()));
        }
        let is_bundle = bundle::is_there(image).map_err(failed)?;
        let runtime = spooled.container_runtime.find(is_bundle).map_err(failed)?;
        if runtime.kind == Kind::Runc && spooled.identity.uid == 0 {
            return Err(failed(
                "runc would take the processes of root out of the job: root's containers need crun".to_owned(),
            ));
        }
        if runtime.kind == Kind::Runc && offers_pmix(spooled) {
            return Err(failed(
                "in a container of runc a task is root, which its PMIx server does not believe: `--mpi=pmix` needs crun"
                    .to_owned(),
            ));
        }
        let own = folder.file(CONTAINER);
        let wanted = mounts(&order.working_directory, folder);
        let (bundle, mounts) = if is_bundle {
            let bundle = Bundle::read(Path::new(image)).map_err(failed)?;
            let laid_out = root::lay_out(&bundle.root, bundle.is_read_only, &wanted, &own.join(ROOT));
            let mounts = laid_out.map_err(failed)?;
            (Some(bundle), mounts)
        } else {
            (None, wanted)
        };
        Ok(Some(Self {
            runtime,
            image: image.clone(),
            bundle,
            mounts,
            directory: order.working_directory.clone(),
            folder: own,
            name: format!("muster-{}", spooled.key()),
            umask: umask_of(order),
        }))
    }

    /// The files of the node that its runtime reads.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let root = self.bundle.as_ref().map(|bundle| bundle.root.as_path());
        [Path::new(&self.image), &self.folder].into_iter().chain(root)
    }

    /// The program of a task: `command` in a container of its own, with these variables.
    ///
    /// # Errors
    /// Why it cannot be made, for people.
    pub fn program(&self, spooled: &SpooledOrder, task: &TaskInContainer<'_>) -> Result<Contained, String> {
        let failed =
            |error: io::Error| format!("the container of task {} cannot be made: {}", task.rank, plain(&error));
        match &self.bundle {
            Some(bundle) => {
                let folder = self.folder.join(task.rank.to_string());
                self.write_configuration(spooled, bundle, &folder, task).map_err(failed)?;
                self.of_bundle(&folder, task)
            }
            None => self.of_image(task),
        }
    }

    fn write_configuration(
        &self,
        spooled: &SpooledOrder,
        bundle: &Bundle,
        folder: &Path,
        task: &TaskInContainer<'_>,
    ) -> io::Result<()> {
        let runs_as_root_within = self.runtime.kind == Kind::Runc;
        let identity = &spooled.identity;
        let configuration = bundle.configuration(&bundle::Process {
            command: task.command,
            variables: task.variables,
            directory: &self.directory,
            umask: self.umask,
            outer: (identity.uid, identity.gid),
            // It refuses to work without a root user within.
            inner: if runs_as_root_within { (0, 0) } else { (identity.uid, identity.gid) },
            // It wants to make a device for a terminal.
            has_terminal: task.has_terminal && self.runtime.kind == Kind::Crun,
            root: &self.folder.join(ROOT),
            mounts: &self.mounts,
        });
        DirBuilder::new().mode(0o711).create(folder)?;
        fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
        let file = folder.join("config.json");
        overwrite(&file, 0o600, &configuration)?;
        give(&file, identity)
    }

    /// `crun` and `runc`.
    fn of_bundle(&self, folder: &Path, task: &TaskInContainer<'_>) -> Result<Contained, String> {
        let state = self.folder.join(STATE);
        let path = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let mut argv = vec![path(&self.runtime.program), b"--root".to_vec(), path(&state)];
        match self.runtime.kind {
            Kind::Crun => argv.push(b"--cgroup-manager=disabled".to_vec()),
            // Its warnings are no output of the task.
            _ => argv.extend([b"--rootless=true".to_vec(), b"--log".to_vec(), path(&state.join("log"))]),
        }
        // The kernel keeps few key rings for each user.
        argv.extend([b"run".to_vec(), b"--no-new-keyring".to_vec(), b"--bundle".to_vec(), path(folder)]);
        if task.is_managed {
            argv.extend([b"--preserve-fds".to_vec(), b"1".to_vec()]);
        }
        argv.push(format!("{}.{}", self.name, task.rank).into_bytes());
        // The runtime itself needs none of the user's variables, and some would disturb it. Those of muster tell whose
        // process it is.
        let own = task.variables.iter().filter(|variable| {
            let text = variable.to_bytes();
            text.starts_with(b"MUSTER_") || text.starts_with(MARKER.as_bytes())
        });
        let mut variables: Vec<_> = own.map(|variable| (*variable).to_owned()).collect();
        variables.push(c_string(format!("PATH={USUAL_PATH}:/usr/sbin:/sbin").as_bytes())?);
        variables.push(c_string(&[b"XDG_RUNTIME_DIR=", path(&state).as_slice()].concat())?);
        Ok(Contained { program: self.runtime_with(argv)?, environment: Environment::of(variables) })
    }

    /// Apptainer and podman, which pass on the variables.
    fn of_image(&self, task: &TaskInContainer<'_>) -> Result<Contained, String> {
        let bind = |mount: &Mount| {
            let mode = if mount.is_read_only { "ro" } else { "rw" };
            format!("{}:{}:{mode}", mount.source.display(), mount.target.display())
        };
        // What all containers see of a node they bring themselves, and the separators of their lists cannot be in a path.
        let is_brought =
            |mount: &Mount| mount.is_optional || OF_NODE.iter().any(|path| mount.target == Path::new(path));
        let can_be_said = |mount: &Mount| !mount.target.to_string_lossy().contains([':', ',', '\\']);
        let mounts = self.mounts.iter().filter(|mount| !is_brought(mount) && can_be_said(mount));
        let mut argv = vec![self.runtime.program.display().to_string()];
        let mut add = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
        match self.runtime.kind {
            Kind::Podman => {
                add(&["run", "--rm", "--env-host", "--userns=keep-id", "--network=host", "--pid=host", "--ipc=host"]);
                add(&["--uts=host", "--cgroups=disabled", "--log-driver=none", "--interactive", "--entrypoint="]);
                add(&["--name", &format!("{}.{}", self.name, task.rank), "--workdir", &self.directory]);
                if task.has_terminal {
                    add(&["--tty"]);
                }
                if task.is_managed {
                    add(&["--preserve-fds=1"]);
                }
                mounts.for_each(|mount| add(&["--volume", &bind(mount)]));
                add(&["--volume", "/tmp:/tmp"]);
            }
            _ => {
                add(&["exec", "--pwd", &self.directory]);
                mounts.for_each(|mount| add(&["--bind", &bind(mount)]));
            }
        }
        add(&["--", &self.image]);
        let mut argv: Vec<Vec<u8>> = argv.into_iter().map(String::into_bytes).collect();
        argv.extend(task.command.iter().map(|word| word.to_bytes().to_vec()));
        let variables = task.variables.iter().map(|variable| (*variable).to_owned()).collect();
        Ok(Contained { program: self.runtime_with(argv)?, environment: Environment::of(variables) })
    }

    fn runtime_with(&self, argv: Vec<Vec<u8>>) -> Result<ProgramPath, String> {
        let program = c_string(self.runtime.program.as_os_str().as_bytes())?;
        Ok(ProgramPath::new(program, argv.iter().map(|word| c_string(word)).collect::<Result<_, _>>()?))
    }
}

/// Whether the tasks of a launch find each other by PMIx.
fn offers_pmix(spooled: &SpooledOrder) -> bool {
    let group = spooled.tasks.as_ref().and_then(|tasks| tasks.process_group.as_ref());
    group.is_some_and(|group| group.management == ProcessManagement::Pmix)
}

/// A task that is to run in a container.
pub struct TaskInContainer<'a> {
    pub rank: u32,
    /// Its command, the name of the program first; that is looked for within.
    pub command: &'a [std::ffi::CString],
    /// Its variables, as `NAME=VALUE`.
    pub variables: &'a [&'a CStr],
    pub has_terminal: bool,
    /// Whether it has a connection to a process management.
    pub is_managed: bool,
}

/// What the containers of a launch see of the node.
fn mounts(directory: &str, run: &RunFolder) -> Vec<Mount> {
    let mut paths: Vec<(PathBuf, bool)> = OF_NODE.iter().map(|path| (PathBuf::from(path), false)).collect();
    let is_of_image = |path: &Path| {
        let first = path.components().nth(1).map(|first| first.as_os_str().to_owned());
        first.is_none_or(|first| OF_IMAGE.iter().any(|name| first == *name))
    };
    if !is_of_image(Path::new(directory)) {
        paths.push((directory.into(), false));
    }
    paths.push((run.file(TEMPORARY), false));
    paths.extend([NODE_FILE, SCRIPT].map(|name| (run.file(name), true)));
    let mut mounts: Vec<Mount> = Vec::new();
    for (path, is_read_only) in paths {
        // What lies in another of them is seen there.
        if path.exists() && !mounts.iter().any(|mount| path.starts_with(&mount.source)) {
            mounts.push(Mount::same(path, is_read_only));
        }
    }
    let names = NAMES.iter().map(PathBuf::from).filter(|path| path.exists());
    mounts.extend(names.map(|path| Mount { is_optional: true, ..Mount::same(path, true) }));
    mounts
}
