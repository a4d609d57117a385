//! Jobs and steps in containers, with the OCI runtimes that this machine has and an image that the test makes.

use crate::{
    mpi::{self, RING},
    system::{Output, System},
};
use muster_surroundings::skipped;
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, Uid},
};
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

/// A program for all commands of the image, without libraries.
const BUSYBOX: &str = "/bin/busybox";
const COMMANDS: [&str; 10] = ["sh", "cat", "hostname", "id", "pwd", "sleep", "touch", "ls", "tail", "tty"];
const NOBODY: u32 = 65_534;

/// The runtimes that are to be tried, if anything can be.
pub fn runtimes() -> Vec<&'static str> {
    if !Uid::effective().is_root() {
        skipped("only root can start jobs of other users");
        return Vec::new();
    }
    let namespace =
        Command::new("setpriv").args(["--reuid=65534", "--clear-groups", "unshare", "--user", "true"]).status();
    if !namespace.is_ok_and(|status| status.success()) {
        skipped("users cannot have user namespaces here");
        return Vec::new();
    }
    let program = fs::read(BUSYBOX).unwrap_or_default();
    let needs_libraries =
        program.chunks(4_096).next().is_none_or(|start| start.windows(8).any(|text| text == b"ld-linux"));
    if needs_libraries {
        skipped(
            "there is no busybox without libraries for an image; ops/prerequisites --tests installs busybox-static",
        );
        return Vec::new();
    }
    let there: Vec<_> =
        ["/usr/bin/crun", "/usr/sbin/runc"].into_iter().filter(|path| Path::new(path).exists()).collect();
    if there.is_empty() {
        skipped("there is neither crun nor runc; ops/prerequisites --tests installs them");
    }
    there
}

/// A system whose jobs nobody's own folder is open to, with an image, and one runtime.
pub struct Site {
    pub system: System,
    pub image: String,
}

impl Site {
    fn start(runtime: &str) -> Self {
        Self::start_in(&std::env::temp_dir(), runtime)
    }

    /// Starts it in a folder below this one.
    pub fn start_in(place: &Path, runtime: &str) -> Self {
        let mut system = System::stopped_in(place);
        fs::set_permissions(system.path(""), fs::Permissions::from_mode(0o777)).expect("its own folder");
        let settings = format!("[executor]\ncontainer_runtime = \"{runtime}\"\n");
        let options = system.configure_for_others(2, &settings);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        if Self::hides_cgroup_2(runtime) {
            // This runtime works with one version of control groups only, and a machine with two shows it one.
            let hide = "umount --lazy /sys/fs/cgroup/unified && exec \"$@\"";
            system.launch_through(&["unshare", "--mount", "sh", "-c", hide, "sh"], &options);
        } else {
            system.launch("up", &options);
        }
        let line = system.await_ready();
        assert!(line.starts_with("muster is ready: "), "it said `{line}`, and:\n{}", system.log());
        let image = make_image(&system.path("image"));
        Self { system, image }
    }

    fn hides_cgroup_2(runtime: &str) -> bool {
        let controllers = fs::read_to_string("/sys/fs/cgroup/unified/cgroup.controllers").unwrap_or_default();
        runtime.ends_with("/crun") && !controllers.trim().is_empty()
    }

    /// Submits a job of nobody and returns its number.
    fn submit(&self, words: &[&str]) -> String {
        let words: Vec<&str> = ["submit", "--parsable"].iter().chain(words).copied().collect();
        let Output { status, stdout, stderr } = self.system.run_as_nobody(&words);
        assert_eq!(status, 0, "{words:?}\n{stdout}{stderr}");
        stdout.trim().to_owned()
    }

    /// How a job ended: its outcome as a word, and what it says about it.
    fn end_of(&self, job: &str) -> (String, String) {
        self.system.wait_for_state(job, "finished");
        let outcome = self.system.json(&["job", "show", job, "--json"])["job"]["outcome"].clone();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        (text(&outcome["outcome"]), text(&outcome["detail"]))
    }

    /// The processes of the runtime.
    fn runtimes(&self) -> Vec<i32> {
        let spool = self.spool().display().to_string();
        let of_runtime = |process: &i32| {
            let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&command).into_owned();
            words.contains(&spool) && words.contains("--bundle")
        };
        let all = fs::read_dir("/proc").expect("there is /proc").flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(of_runtime).collect()
    }

    fn spool(&self) -> PathBuf {
        let spool = self.system.path("data/spool");
        spool.canonicalize().unwrap_or(spool)
    }

    /// Nothing of any container is left, neither processes nor files.
    fn is_clean(&self) {
        self.system.wait_until("no runtime is left", || self.runtimes().is_empty());
        let spool = self.spool();
        let left = || {
            let nodes = fs::read_dir(&spool).expect("there is a spool").flatten();
            let folders = nodes.flat_map(|node| ["runs", "free"].map(|folder| node.path().join(folder)));
            let runs = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
            runs.map(|run| run.path().join("container")).filter(|folder| folder.exists()).collect::<Vec<_>>()
        };
        self.system.wait_until("no files of a container are left", || left().is_empty());
    }
}

/// An OCI bundle with a shell. Its root belongs to root: nobody can change it.
pub fn make_image(folder: &Path) -> String {
    let bin = folder.join("rootfs/bin");
    fs::create_dir_all(&bin).expect("a folder");
    fs::create_dir(folder.join("rootfs/etc")).expect("a folder");
    fs::copy(BUSYBOX, bin.join("busybox")).expect("a copy");
    for command in COMMANDS {
        symlink("busybox", bin.join(command)).expect("a link");
    }
    fs::write(folder.join("rootfs/etc/motd"), "within\n").expect("a file");
    // As `runc spec` writes it, and a program that nobody has asked for.
    let description = r#"{"ociVersion": "1.0.2", "root": {"path": "rootfs", "readonly": true},
        "process": {"args": ["false"], "cwd": "/", "env": ["OF_IMAGE=1", "PATH=/bin"]},
        "hooks": {"prestart": [{"path": "/bin/false"}]},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}]}"#;
    fs::write(folder.join("config.json"), description).expect("a file");
    folder.display().to_string()
}

/// An OCI bundle with the programs and libraries of this machine, and nothing else of it.
fn make_image_of_machine(folder: &Path) -> String {
    let root = folder.join("rootfs");
    fs::create_dir_all(&root).expect("a folder");
    let mut mounts = Vec::new();
    for name in ["bin", "etc", "lib", "lib64", "sbin", "usr"] {
        let own = Path::new("/").join(name);
        match fs::read_link(&own) {
            Ok(to) => symlink(to, root.join(name)).expect("a link"),
            Err(_) if own.is_dir() => {
                fs::create_dir(root.join(name)).expect("a folder");
                mounts
                    .push(serde_json::json!({"destination": own, "type": "none", "source": own, "options": ["rbind"]}));
            }
            Err(_) => {}
        }
    }
    let description = serde_json::json!({"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "mounts": mounts});
    fs::write(folder.join("config.json"), description.to_string()).expect("a file");
    folder.display().to_string()
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_script_of_a_user_runs_in_an_image_of_somebody_else() {
    for runtime in runtimes() {
        // A folder that is not one that all containers see.
        let site = Site::start_in(Path::new("/var/tmp"), runtime);
        let script = "#!/bin/sh\necho \"$(cat /etc/motd) in $(pwd) on $(hostname), $# words, $OF_IMAGE$OWN\"\n\
                      touch made; cat $MUSTER_NODEFILE; echo x > $MUSTER_TMPDIR/x\n\
                      ls / | while read entry; do echo \"/$entry\"; done\nls /usr >&2\nexit 7\n";
        site.system.write("job.sh", script);
        let job =
            site.submit(&["--container", "./image", "-o", "out", "-e", "err", "--env", "OWN=2", "job.sh", "a", "b c"]);
        assert_eq!(site.end_of(&job).0, "failed", "{runtime}: {}", site.system.read("err"));
        let shown = site.system.json(&["job", "show", &job, "--json"]);
        assert_eq!(shown["job"]["outcome"]["exit_status"]["code"], 7, "{shown}");
        let told = site.system.ok(&["job", "show", &job]);
        let has_image = |line: &str| line.starts_with("Container") && line.ends_with(&format!(" {}", site.image));
        assert!(told.lines().any(has_image), "{told}");
        let (here, output) = (site.system.path(""), site.system.read("out"));
        let first = format!(
            "within in {} on node1, 2 words, 12\nnode1\n/bin\n",
            here.display().to_string().trim_end_matches('/')
        );
        assert!(output.starts_with(&first), "{runtime}:\n{output}");
        assert!(site.system.read("err").contains("/usr"), "the image has no such folder");
        assert_eq!(fs::metadata(site.system.path("made")).expect("it is made").uid(), NOBODY);
        assert_eq!(entries(Path::new(&site.image).join("rootfs").as_path()), ["bin", "etc"], "the image is left alone");
        site.is_clean();
    }
}

#[test]
fn steps_run_in_containers_on_every_node() {
    for runtime in runtimes() {
        let site = Site::start(runtime);
        // The last word says that the task has its connection to the process management.
        let line = "echo \"$SLURM_PROCID $(hostname) $(cat /etc/motd) $SLURM_CONTAINER\"; \
                    echo cmd=init pmi_version=1 pmi_subversion=1 >&$PMI_FD; read answer <&$PMI_FD; echo \"$answer\"; \
                    echo cmd=finalize >&$PMI_FD; read answer <&$PMI_FD";
        let words = ["slurm", "srun", "-N2", "-n4", "--container", &site.image, "sh", "-c", line];
        let Output { status, stdout, stderr } = site.system.run_as_nobody(&words);
        assert_eq!((status, stderr.as_str()), (0, ""), "{runtime}");
        let mut lines: Vec<&str> = stdout.lines().filter(|line| !line.starts_with("cmd=")).collect();
        lines.sort_unstable();
        let line = |rank: u32, node: u32| format!("{rank} node{node} within {}", site.image);
        assert_eq!(lines, [line(0, 1), line(1, 1), line(2, 2), line(3, 2)], "{runtime}");
        let answers = stdout.lines().filter(|line| line.starts_with("cmd=response_to_init"));
        assert_eq!(answers.count(), 4, "{runtime}: {stdout}");
        let words = ["slurm", "srun", "--container", &site.image, "sh", "-c", "exit 5"];
        assert_eq!(site.system.run_as_nobody(&words).status, 5, "{runtime}");
        // A job outside of containers has steps in them, and steps that are not.
        let job = site.submit(&["-n", "2", "--", "sleep", "600"]);
        site.system.wait_for_state(&job, "running");
        let step = |options: &[&str]| {
            let words = ["step", "run", "--overlap", "-n", "1"].iter().chain(options).copied();
            let words: Vec<&str> = words.chain([job.as_str(), "--", "sh", "-c", "cat /etc/motd || true"]).collect();
            site.system.run_as_nobody(&words)
        };
        assert_eq!(step(&["--container", "./image"]).stdout, "within\n", "{runtime}");
        assert_ne!(step(&[]).stdout, "within\n", "{runtime}");
        let run = ["run", "--job", &job, "-n", "2", "-o", "run", "--container", "./image", "--", "cat", "/etc/motd"];
        let Output { status, stderr, .. } = site.system.run_as_nobody(&run);
        assert_eq!((status, site.system.read("run").as_str()), (0, "within\nwithin\n"), "{runtime}: {stderr}");
        site.system.ok(&["cancel", &job]);
        site.end_of(&job);
        site.is_clean();
    }
}

/// SL-W-01, SL-W-05: tasks in containers find the PMIx server of their node, and each other.
#[test]
fn an_open_mpi_program_in_containers_is_one_world() {
    for runtime in runtimes() {
        let site = Site::start(runtime);
        if !mpi::built(&site.system, "mpicc.openmpi", RING, "ring") {
            return;
        }
        let image = make_image_of_machine(&site.system.path("machine"));
        // Otherwise the library warns that tasks in containers cannot read each other's memory.
        let export = "--export=ALL,OMPI_MCA_btl_vader_single_copy_mechanism=none";
        let words = ["slurm", "srun", "--mpi=pmix", export, "-N2", "-n4", "--container", &image, "./ring"];
        let Output { status, stdout, stderr } = site.system.run_as_nobody(&words);
        if runtime.ends_with("/runc") {
            assert_ne!(status, 0, "{stdout}");
            assert!(stderr.contains("`--mpi=pmix` needs crun"), "{stderr}");
            continue;
        }
        assert_eq!((status, stderr.as_str()), (0, ""), "{runtime}: {stdout}");
        assert_eq!(mpi::sorted(&stdout), mpi::ring(&["node1", "node1", "node2", "node2"]), "{runtime}");
        site.is_clean();
    }
}

#[test]
fn a_container_is_told_of_its_end_and_leaves_nothing_behind() {
    for runtime in runtimes() {
        let site = Site::start(runtime);
        let listens = "trap 'echo told; exit 3' TERM; echo begun; while :; do sleep 0.1; done";
        let job = site.submit(&["--container", "./image", "-o", "listens", "--", "sh", "-c", listens]);
        site.system.wait_until("it runs", || site.system.read("listens").contains("begun"));
        site.system.ok(&["cancel", &job]);
        assert_eq!(site.end_of(&job).0, "cancelled", "{runtime}");
        assert!(
            site.system.read("listens").lines().any(|line| line == "told"),
            "{runtime}: {}",
            site.system.read("listens")
        );
        site.is_clean();
        let deaf = "trap '' TERM; echo begun; while :; do sleep 0.1; done";
        let job = site.submit(&["--container", "./image", "--kill-grace", "1", "-o", "deaf", "--", "sh", "-c", deaf]);
        site.system.wait_until("it runs", || site.system.read("deaf").contains("begun"));
        site.system.ok(&["cancel", &job]);
        assert_eq!(site.end_of(&job).0, "cancelled", "{runtime}");
        site.is_clean();
        let killed = site.submit(&["--container", "./image", "--", "sh", "-c", "kill -KILL $$"]);
        assert_eq!(site.end_of(&killed).0, "failed", "{runtime}");
        let shown = site.system.json(&["job", "show", &killed, "--json"]);
        assert_eq!(shown["job"]["outcome"]["exit_status"]["code"], 137, "{runtime}: {shown}");
    }
}

#[test]
fn a_batch_script_of_slurm_knows_its_container_and_lists_show_it() {
    for runtime in runtimes() {
        let site = Site::start(runtime);
        site.system
            .write("job.sh", "#!/bin/sh\n#SBATCH --container=./image -o out\necho $SLURM_CONTAINER $(cat /etc/motd)\n");
        let Output { status, stdout, stderr } =
            site.system.run_as_nobody(&["slurm", "sbatch", "--parsable", "--wait", "job.sh"]);
        assert_eq!((status, stderr.as_str()), (0, ""), "{runtime}: {}", site.system.read("out"));
        assert_eq!(site.system.read("out"), format!("{} within\n", site.image));
        let job = stdout.trim();
        let shown = site.system.ok(&["slurm", "scontrol", "show", "job", job]);
        assert!(shown.lines().any(|line| line.trim() == format!("Container={}", site.image)), "{shown}");
        let listed = site.system.ok(&["slurm", "sacct", "-nP", "-X", "-j", job, "-o", "Container"]);
        assert_eq!(listed.trim(), site.image);
        // Steps of an allocation use the image that the allocation was asked for with.
        let words =
            ["slurm", "salloc", "-Q", "-n1", "--container=./image", "muster", "slurm", "srun", "cat", "/etc/motd"];
        let Output { status, stdout, stderr } = site.system.run_as_nobody(&words);
        assert_eq!((status, stdout.as_str()), (0, "within\n"), "{runtime}: {stderr}");
        let listed = site.system.ok(&["slurm", "squeue", "-h", "-t", "all", "-j", job, "-O", "Container:200"]);
        assert_eq!(listed.trim(), site.image);
    }
}

/// The processes of root can only be kept in their job by crun.
#[test]
fn root_has_containers_of_crun_only() {
    for runtime in runtimes() {
        let site = Site::start(runtime);
        let job =
            site.system.submit(&["--container", &site.image, "-o", "out", "--", "sh", "-c", "id -u; cat /etc/motd"]);
        let (outcome, detail) = site.end_of(&job);
        if runtime.ends_with("/crun") {
            assert_eq!((outcome.as_str(), site.system.read("out").as_str()), ("completed", "0\nwithin\n"), "{detail}");
        } else {
            assert_eq!(outcome, "launch_failed");
            assert!(detail.contains("root's containers need crun"), "{detail}");
        }
        site.is_clean();
    }
}

#[test]
fn what_cannot_be_a_container_is_refused_with_the_reason() {
    let Some(runtime) = runtimes().pop() else { return };
    let site = Site::start(runtime);
    let end = |image: &str| {
        let job = site.submit(&["--container", image, "--", "true"]);
        let (outcome, detail) = site.end_of(&job);
        assert_eq!(outcome, "launch_failed", "{image}: {detail}");
        detail
    };
    let missing = end("/no/such/image");
    assert!(
        missing.contains("the container image `/no/such/image` cannot be used: it does not exist on this node"),
        "{missing}"
    );
    let other = end("ubuntu:22.04");
    assert!(other.contains("it is no OCI bundle"), "{other}");
    fs::create_dir(site.system.path("broken")).expect("a folder");
    site.system.write("broken/config.json", "no");
    let broken = end("./broken");
    assert!(broken.contains("`config.json` is no JSON"), "{broken}");
    for hostile in ["--root=/", "-v", ""] {
        let option = format!("--container={hostile}");
        let Output { status, stderr, .. } = site.system.run_as_nobody(&["submit", &option, "--", "true"]);
        assert_ne!(status, 0, "{hostile}");
        assert!(stderr.contains("launch.container"), "{hostile}: {stderr}");
        let line = ["slurm", "srun", &option, "true"];
        let is_refused = site.system.run_as_nobody(&line).status != 0;
        assert_eq!(is_refused, !hostile.is_empty(), "Slurm takes an empty name for none");
    }
    let words = ["slurm", "srun", "--container=/no/such/image", "true"];
    let Output { status, stderr, .. } = site.system.run_as_nobody(&words);
    assert_ne!(status, 0);
    assert!(stderr.contains("it does not exist on this node"), "{stderr}");
    site.is_clean();
}

#[test]
fn a_node_without_a_runtime_says_so() {
    let mut system = System::stopped();
    system.write("site.toml", "[executor]\ncontainer_runtime = \"none\"\n");
    let config = system.path("site.toml").display().to_string();
    system.restart(&["--nodes", "1", "--cpus", "2", "--memory", "1G", "--config", &config]);
    let job = system.submit(&["--container", "ubuntu:22.04", "--", "true"]);
    system.wait_for_state(&job, "finished");
    let outcome = system.json(&["job", "show", &job, "--json"])["job"]["outcome"].to_string();
    assert!(outcome.contains("containers are switched off on this node"), "{outcome}");
}

/// The processes in a container count as those of its job, also when nobody is there to end them properly.
#[test]
fn a_container_is_within_the_limits_of_its_job_and_outlives_nobody() {
    for runtime in runtimes() {
        let site = Site::start(runtime);
        if site.system.log().contains("memory limits: cgroup") {
            // `tail` buffers a line without end; the limit keeps it from doing so for ever.
            let greedy = "ulimit -v 1000000; tail /dev/zero";
            let job = site.submit(&["--container", "./image", "--mem", "60M", "--", "sh", "-c", greedy]);
            assert_eq!(site.end_of(&job).0, "out_of_memory", "{runtime}");
        } else {
            skipped("this machine has no control group that limits memory");
        }
        let deaf = "trap '' TERM; echo begun; while :; do sleep 0.1; done";
        let job = site.submit(&["--container", "./image", "-o", "deaf", "--", "sh", "-c", deaf]);
        site.system.wait_until("it runs", || site.system.read("deaf").contains("begun"));
        let started = site.runtimes();
        let [started] = started[..] else { panic!("{started:?} are the runtimes of one container") };
        let status = fs::read_to_string(format!("/proc/{started}/status")).expect("it runs");
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).and_then(|id| id.trim().parse().ok());
        kill(Pid::from_raw(parent.expect("it has a parent")), Signal::SIGKILL).expect("the shim runs");
        assert_eq!(site.end_of(&job).0, "node_lost", "{runtime}");
        site.is_clean();
    }
}

#[test]
fn a_task_with_a_terminal_has_it_in_its_container() {
    // The other one wants to make a device for it.
    for runtime in runtimes().into_iter().filter(|runtime| runtime.ends_with("/crun")) {
        let site = Site::start(runtime);
        let line = "tty && exit 4";
        let Output { status, stdout, stderr } = site.system.shell(&format!(
            "export MUSTER_SERVER={} MUSTER_TOKEN={}; unset MUSTER_DATA\n\
             script -qec \"muster slurm srun --pty --container=$PWD/image sh -c '{line}'\" /dev/null",
            site.system.server(),
            System::TOKEN,
        ));
        assert_eq!(status, 4, "{runtime}: {stdout}{stderr}");
        assert!(stdout.contains("/dev/pts/"), "{runtime}: {stdout}");
        site.is_clean();
    }
}

/// A program with the name of a runtime of images, which writes down the words that it is called with and runs what follows the
/// image, beside the machine's programs.
fn stand_in(system: &System, name: &str) -> String {
    let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" > FOLDER/words\nuntil [ \"$1\" = -- ]; do shift; done\nshift 2\n\
                  IN_IMAGE=1 exec \"$@\"\n";
    let program = system.path(name);
    system.write(name, &script.replace("FOLDER/", &system.path("").display().to_string()));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its own file");
    program.display().to_string()
}

/// Runtimes of images are called in their own words: with the image, the folders of the job and its directory; the job's
/// variables reach its program.
#[test]
fn runtimes_of_images_are_called_in_their_own_words() {
    for (name, begins, directory, folder) in
        [("apptainer", &["exec"][..], "--pwd", "--bind"), ("podman", &["run", "--rm"], "--workdir", "--volume")]
    {
        let mut system = System::stopped_in(Path::new("/var/tmp"));
        let program = stand_in(&system, name);
        system.write("runtime.toml", &format!("[executor]\ncontainer_runtime = \"{program}\"\n"));
        system.write("image.sif", "");
        system.restart(&["--nodes", "1", "--config", "runtime.toml"]);
        let say = "echo $IN_IMAGE$OWN; exit 3";
        let job = system.submit(&["--container", "./image.sif", "-o", "out", "--env", "OWN=2", "--", "sh", "-c", say]);
        system.wait_for_state(&job, "finished");
        let outcome = system.json(&["job", "show", &job, "--json"])["job"]["outcome"].clone();
        assert_eq!(outcome["exit_status"]["code"], 3, "{name}: {outcome}");
        assert_eq!(system.read("out"), "12\n", "{name}");
        let words = system.read("words");
        let words: Vec<&str> = words.lines().collect();
        assert!(words.starts_with(begins), "{name}: {words:?}");
        let here = system.path("").display().to_string();
        let has = |option: &str, is_it: &dyn Fn(&str) -> bool| {
            words.windows(2).any(|pair| pair[0] == option && is_it(pair[1]))
        };
        assert!(has(directory, &|path| path == here.trim_end_matches('/')), "{name}: {words:?}");
        assert!(has(folder, &|mount| mount.ends_with(":rw")), "{name}: {words:?}");
        assert!(has("--", &|image| image == system.path("image.sif").display().to_string()), "{name}: {words:?}");
        assert!(words.ends_with(&["sh", "-c", say]), "{name}: {words:?}");
    }
}
