//! The executor's configuration.

use crate::{
    cleaning::Cleaning,
    containment::ContainmentMode,
    copies::Copier,
    gpus::GpuDevice,
    runtimes::RuntimeChoice,
    site::{self, Isolation, SitePrograms},
};
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Settings of a node's executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The name of the node as the cluster knows it. Default: this host's name up to the first dot.
    pub node: String,
    /// The folder with what the node must not forget; one for each executor, on a local file system that outlives a
    /// reboot. The users of jobs must be able to pass through its parents. Default: `/var/lib/muster/spool`.
    pub spool_dir: PathBuf,
    /// The interval between heartbeats; 1 to 300, and well below the cluster's `node_lost_after_seconds`. Default: 3.
    pub heartbeat_seconds: u32,
    /// How the processes of a run are kept together: `auto` (the best that the host offers), `cgroup2`, `cgroup1` or
    /// `process`. Default: `auto`.
    pub containment: ContainmentMode,
    /// Whether processes are bound to the cores of their run. Default: true; with `muster up` false, and only its only node
    /// can bind.
    pub bind_cpus: bool,
    /// The property of the node with the CPUs of its cores, for jobs whose orders say what their nodes are.
    /// Default: `cpuset`.
    pub cpuset_property: String,
    /// The limit of open files that jobs start with, and can raise; 64 to 1,048,576. Default: 1024.
    pub open_files: u64,
    /// The nodes that are emulated on this host, this one among them, if each is to be a host of its own: with its name,
    /// `/dev/shm` and `/tmp`. Default: none, the node is this host.
    #[serde(skip)]
    pub emulated_nodes: Vec<String>,
    /// The GPUs of the node in the order of their numbers, each as `KIND:FILE[,FILE]...`: `nvidia:/dev/nvidia0`,
    /// `amd:/dev/dri/renderD128`. Default: those that the drivers of this host show.
    pub gpus: Option<Vec<String>>,
    /// How often each GPU is looked at, in seconds; 1 to 3,600. Default: 60.
    pub gpu_check_seconds: u32,
    /// Whether the node may have GPUs that this host has not: then they are numbers and nothing else. Default: false.
    #[serde(skip)]
    pub invents_gpus: bool,
    /// The program that starts containers: `auto` (the best that is there for an image), `none`, or the absolute path of
    /// apptainer, singularity, podman, crun or runc. Default: `auto`.
    #[serde(with = "crate::runtimes::as_text")]
    pub container_runtime: RuntimeChoice,
    /// The site's program before the first process of a job on this node; absolute. Default: none.
    pub prolog: Option<PathBuf>,
    /// The site's program after the last process of a job on this node; absolute. Default: none.
    pub epilog: Option<PathBuf>,
    /// The site's program before the command of a job, on the job's first node only, with arguments; absolute. Default: none.
    pub job_prolog: Option<PathBuf>,
    /// The site's program after the command of a job, on the job's first node only, with arguments; absolute. Default: none.
    pub job_epilog: Option<PathBuf>,
    /// The site's program that suspends the processes of a job and lets them continue, in place of muster's own way; absolute.
    /// Default: none.
    pub suspend_program: Option<PathBuf>,
    /// The site's program right after the processes of a job were suspended, on the job's first node only; absolute. Default: none.
    pub after_suspend_program: Option<PathBuf>,
    /// The site's program right before suspended processes of a job continue, on the job's first node only; absolute. Default: none.
    pub before_resume_program: Option<PathBuf>,
    /// The site's program that makes and removes the groups of jobs, in place of muster's own ones; absolute. Default: none.
    pub isolation_manager: Option<PathBuf>,
    /// The site's program that tells the group of a process; absolute. Default: none.
    pub isolation_reader: Option<PathBuf>,
    /// The site's program that takes a process into a group; absolute. Default: none.
    pub isolation_joiner: Option<PathBuf>,
    /// The site's program that checks whether this node is healthy; absolute. Default: none.
    pub health_check_program: Option<PathBuf>,
    /// From one check to the next; 1 to 86,400. Default: 300.
    pub health_check_interval_seconds: u32,
    /// The account that these programs run as; `root` only if it is named here. Default: `nobody`.
    pub site_program_account: String,
    /// How long one of them may take; 1 to 3,600, and well below the cluster's `launch_timeout_seconds`, because a prolog is
    /// part of the launch. Default: 30.
    pub site_program_timeout_seconds: u32,
    /// The folders in which the files of a user are removed when the user's last job has left this node, and with them what
    /// processes share; absolute. Default: none.
    pub cleaned_folders: Vec<PathBuf>,
    /// How long processes of a job are killed again and again before the node is given up; 1 to 3,600. Default: 60.
    pub unkillable_seconds: u32,
    /// The program that copies files of jobs from and to other hosts, with its first words; it gets two more, from and to, of
    /// which one is `HOST:PATH`. Default: `scp -Brp --`.
    pub copy_command: Vec<String>,
    /// How often the load of the node is measured and recorded, in seconds; 1 to 3,600, or 0 for never. Default: 0.
    pub load_interval_seconds: u32,
    /// The file whose first word is the load of the node. Default: `/proc/loadavg`.
    pub load_file: PathBuf,
    /// The file whose first line has the times that the processors of the node were busy, as that of `/proc/stat`: of the system's
    /// own part policies with a limit on system time know. Default: `/proc/stat`.
    pub stat_file: PathBuf,
    /// The program that shims are started from. It must be muster of this version, else the running one is used. Default:
    /// the running one.
    pub shim_program: Option<PathBuf>,
}

/// The account of the site's programs, unless another one is named.
const NOBODY: &str = "nobody";

impl Default for Config {
    fn default() -> Self {
        Self {
            node: this_host(),
            spool_dir: "/var/lib/muster/spool".into(),
            heartbeat_seconds: 3,
            containment: ContainmentMode::Auto,
            bind_cpus: true,
            cpuset_property: "cpuset".into(),
            open_files: 1024,
            emulated_nodes: Vec::new(),
            gpus: None,
            gpu_check_seconds: 60,
            invents_gpus: false,
            container_runtime: RuntimeChoice::Auto,
            prolog: None,
            epilog: None,
            job_prolog: None,
            job_epilog: None,
            suspend_program: None,
            after_suspend_program: None,
            before_resume_program: None,
            isolation_manager: None,
            isolation_reader: None,
            isolation_joiner: None,
            health_check_program: None,
            health_check_interval_seconds: 300,
            site_program_account: NOBODY.into(),
            site_program_timeout_seconds: 30,
            cleaned_folders: Vec::new(),
            unkillable_seconds: 60,
            copy_command: ["scp", "-Brp", "--"].map(str::to_owned).to_vec(),
            load_interval_seconds: 0,
            load_file: "/proc/loadavg".into(),
            stat_file: "/proc/stat".into(),
            shim_program: None,
        }
    }
}

impl Config {
    /// Refuses values that are out of range.
    ///
    /// # Errors
    /// Names the key and its range.
    pub fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.node.is_empty(), "`node` is empty, and this host has no name");
        anyhow::ensure!(
            (1..=300).contains(&self.heartbeat_seconds),
            "`heartbeat_seconds` is {}, not 1 to 300",
            self.heartbeat_seconds
        );
        anyhow::ensure!(
            (64..=1_048_576).contains(&self.open_files),
            "`open_files` is {}, not 64 to 1048576",
            self.open_files
        );
        anyhow::ensure!(
            (1..=3600).contains(&self.gpu_check_seconds),
            "`gpu_check_seconds` is {}, not 1 to 3600",
            self.gpu_check_seconds
        );
        let (interval, most) = (self.health_check_interval_seconds, self.site_program_timeout_seconds);
        anyhow::ensure!(
            (1..=86_400).contains(&interval),
            "`health_check_interval_seconds` is {interval}, not 1 to 86400"
        );
        anyhow::ensure!((1..=3_600).contains(&most), "`site_program_timeout_seconds` is {most}, not 1 to 3600");
        for (key, program) in self.programs() {
            let is_absolute = program.as_ref().is_none_or(|program| program.is_absolute());
            anyhow::ensure!(is_absolute, "`{key}` is not an absolute path");
        }
        // Executors that are not root run it as themselves.
        let is_powerless = Uid::effective().is_root() && self.site_program_account == NOBODY;
        anyhow::ensure!(
            self.suspend_program.is_none() || !is_powerless,
            "`suspend_program` would run as `{NOBODY}`, who may not stop the processes of users: name an account that may as \
             `site_program_account`, such as `root`"
        );
        anyhow::ensure!(
            self.isolation_manager.is_none() || !is_powerless,
            "`isolation_manager` would run as `{NOBODY}`, who may not move processes into groups: name an account that may \
             as `site_program_account`, such as `root`"
        );
        self.check_isolation()?;
        for folder in &self.cleaned_folders {
            let is_meant = folder.is_absolute() && folder.parent().is_some();
            anyhow::ensure!(is_meant, "`cleaned_folders`: {} is not an absolute path of a folder", folder.display());
        }
        let most = self.unkillable_seconds;
        anyhow::ensure!((1..=3600).contains(&most), "`unkillable_seconds` is {most}, not 1 to 3600");
        let interval = self.load_interval_seconds;
        anyhow::ensure!((0..=3600).contains(&interval), "`load_interval_seconds` is {interval}, not 0 to 3600");
        anyhow::ensure!(self.load_file.is_absolute(), "`load_file` is not an absolute path");
        anyhow::ensure!(self.stat_file.is_absolute(), "`stat_file` is not an absolute path");
        anyhow::ensure!(!self.copy_command.is_empty(), "`copy_command` is empty, and must name a program");
        self.configured_gpus().map(drop)
    }

    fn check_isolation(&self) -> anyhow::Result<()> {
        let programs = [&self.isolation_manager, &self.isolation_reader, &self.isolation_joiner];
        let count = programs.iter().filter(|program| program.is_some()).count();
        anyhow::ensure!(
            count == 0 || count == programs.len(),
            "`isolation_manager`, `isolation_reader` and `isolation_joiner` are needed together"
        );
        let makes_own = matches!(self.containment, ContainmentMode::Cgroup1 | ContainmentMode::Cgroup2);
        anyhow::ensure!(
            count == 0 || !makes_own,
            "`containment` names groups of muster's own, and `isolation_manager` makes others: leave one of them out"
        );
        Ok(())
    }

    /// The GPUs that the configuration names; `None` if it leaves them to be found.
    ///
    /// # Errors
    /// Names the entry that is not a GPU.
    pub fn configured_gpus(&self) -> anyhow::Result<Option<Vec<GpuDevice>>> {
        let read = |text: &String| text.parse().map_err(|why| anyhow::anyhow!("`gpus`: {why}"));
        self.gpus.as_ref().map(|gpus| gpus.iter().map(read).collect()).transpose()
    }

    /// What copies the files of jobs.
    pub(crate) fn copier(&self) -> Copier {
        let host = nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned();
        let mut names = vec![self.node.clone(), host, this_host()];
        names.extend(self.emulated_nodes.iter().cloned());
        Copier { node: self.node.clone(), names, command: self.copy_command.clone() }
    }

    /// The programs of the site by their keys.
    fn programs(&self) -> [(&'static str, &Option<PathBuf>); 11] {
        [
            ("prolog", &self.prolog),
            ("epilog", &self.epilog),
            ("job_prolog", &self.job_prolog),
            ("job_epilog", &self.job_epilog),
            ("suspend_program", &self.suspend_program),
            ("after_suspend_program", &self.after_suspend_program),
            ("before_resume_program", &self.before_resume_program),
            ("isolation_manager", &self.isolation_manager),
            ("isolation_reader", &self.isolation_reader),
            ("isolation_joiner", &self.isolation_joiner),
            ("health_check_program", &self.health_check_program),
        ]
    }

    /// The programs of the site that isolate jobs, if there are any.
    fn isolation(&self) -> Option<Isolation> {
        Some(Isolation {
            manager: self.isolation_manager.clone()?,
            reader: self.isolation_reader.clone()?,
            joiner: self.isolation_joiner.clone()?,
        })
    }

    /// How processes are kept together: if the site makes the groups of jobs, by the process tree beside those.
    pub(crate) fn own_containment(&self) -> ContainmentMode {
        if self.isolation().is_some() { ContainmentMode::Process } else { self.containment }
    }

    /// The work on this node once a job is over.
    pub fn cleaning(&self) -> Cleaning {
        Cleaning { unkillable_seconds: self.unkillable_seconds, folders: self.cleaned_folders.clone() }
    }

    /// The programs of the site, if there are any.
    ///
    /// # Errors
    /// Their account does not exist.
    pub fn site_programs(&self) -> anyhow::Result<Option<SitePrograms>> {
        if self.programs().iter().all(|(_, program)| program.is_none()) {
            return Ok(None);
        }
        let account = site::account(&self.site_program_account)
            .map_err(|why| anyhow::anyhow!("`site_program_account`: {why}"))?;
        Ok(Some(SitePrograms {
            prolog: self.prolog.clone(),
            epilog: self.epilog.clone(),
            health_check: self.health_check_program.clone(),
            account,
            timeout_seconds: self.site_program_timeout_seconds,
            job_prolog: self.job_prolog.clone(),
            job_epilog: self.job_epilog.clone(),
            suspend_program: self.suspend_program.clone(),
            after_suspend_program: self.after_suspend_program.clone(),
            before_resume_program: self.before_resume_program.clone(),
            isolation: self.isolation(),
        }))
    }
}

fn this_host() -> String {
    let name = nix::unistd::gethostname().unwrap_or_default();
    let name = name.to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-S-07: a program that could stop no process of a user is refused before the first job is lost by it.
    #[test]
    fn a_suspend_program_of_nobody_is_refused_where_executors_are_root() {
        let of = |account: &str| Config {
            node: "n1".into(),
            suspend_program: Some("/bin/true".into()),
            site_program_account: account.into(),
            ..Config::default()
        };
        let refused = of(NOBODY).check().err().map(|error| error.to_string());
        let is_told = refused.is_some_and(|why| why.starts_with("`suspend_program` would run as `nobody`"));
        assert_eq!(is_told, Uid::effective().is_root());
        assert!(of("root").check().is_ok());
        assert!(Config { suspend_program: None, ..of(NOBODY) }.check().is_ok());
    }
}
