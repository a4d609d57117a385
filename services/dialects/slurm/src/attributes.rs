//! Slurm options that the job model has no place for, kept as attributes, so that `scontrol show job` and `squeue` can
//! show them as given.
//!
//! A job-wide attribute has the key `slurm.NAME`, one of a component `slurm.OFFSET.NAME` (`slurm.1.comment`). NAME is
//! the long name of the option, the value its argument as given; an option without an argument has the value [`SET`].
//! An option that was not given has no attribute.

use std::collections::BTreeMap;

/// The attribute of an option without argument.
pub const SET: &str = "yes";

/// Names of job-wide attributes.
pub mod job {
    /// The command that submitted the job: [`BATCH`], [`SALLOC`] or [`SRUN`].
    pub const KIND: &str = "kind";
    /// A value of [`KIND`]: `sbatch`.
    pub const BATCH: &str = "sbatch";
    /// A value of [`KIND`]: `salloc`.
    pub const SALLOC: &str = "salloc";
    /// A value of [`KIND`]: `srun` outside an allocation.
    pub const SRUN: &str = "srun";
    /// The script's path, or the command, with its arguments: `Command=` of `scontrol show job`.
    pub const COMMAND: &str = "command";
    /// The whole command line: `SubmitLine` of `sacct`.
    pub const SUBMIT_LINE: &str = "submit-line";
    /// The host on which the job was submitted, and the session there: `AllocNode:Sid=` of `scontrol show job`.
    pub const SUBMIT_HOST: &str = "submit-host";
    /// See [`SUBMIT_HOST`].
    pub const SUBMIT_SESSION: &str = "submit-session";
    /// The words that mark staging directives, separated by commas, if anything is staged for the job (SL-B-01); see
    /// [`crate::burst_buffer::script_of`].
    pub const DIRECTIVE_WORDS: &str = "directive-words";
    /// Whether it was put back with `State=SpecialExit`, and not released or put back otherwise since.
    pub const SPECIAL_EXIT: &str = "special-exit";
    /// The number of the submitter's group, which need not be the user's default group.
    pub const GID: &str = "gid";
}

/// Names of the component attributes that are shown. Any other option that the model has no place for is kept in the
/// same way, under its long name.
pub mod component {
    /// An administrator's comment, which no option of a submission gives.
    pub const ADMIN_COMMENT: &str = "admin-comment";
    /// `--acctg-freq`.
    pub const ACCTG_FREQ: &str = "acctg-freq";
    /// `--bb`, or the directives of the component's part of the script, one per line (SL-B-05).
    pub const BURST_BUFFER: &str = "bb";
    /// `--clusters`.
    pub const CLUSTERS: &str = "clusters";
    /// `--comment`.
    pub const COMMENT: &str = "comment";
    /// `--constraint` as written.
    pub const CONSTRAINT: &str = "constraint";
    /// `--contiguous`.
    pub const CONTIGUOUS: &str = "contiguous";
    /// `--core-spec`.
    pub const CORE_SPEC: &str = "core-spec";
    /// `--cpus-per-task`; the model does not distinguish 1 from not given.
    pub const CPUS_PER_TASK: &str = "cpus-per-task";
    /// `--delay-boot`.
    pub const DELAY_BOOT: &str = "delay-boot";
    /// `--dependency` as written, if the model cannot express all of it.
    pub const DEPENDENCY: &str = "dependency";
    /// `--distribution`.
    pub const DISTRIBUTION: &str = "distribution";
    /// `--exclusive` with its argument, such as `user`.
    pub const EXCLUSIVE: &str = "exclusive";
    /// `--export`.
    pub const EXPORT: &str = "export";
    /// `--extra`.
    pub const EXTRA: &str = "extra";
    /// `--gres`.
    pub const GRES: &str = "gres";
    /// `--job-name`, if it differs from the job's name.
    pub const JOB_NAME: &str = "job-name";
    /// `--licenses` as written.
    pub const LICENSES: &str = "licenses";
    /// `--mail-type` as written, for the leader only (SL-M-06).
    pub const MAIL_TYPE: &str = "mail-type";
    /// `--mail-user`, for the leader only.
    pub const MAIL_USER: &str = "mail-user";
    /// `--mcs-label`.
    pub const MCS_LABEL: &str = "mcs-label";
    /// `--mincpus`.
    pub const MINCPUS: &str = "mincpus";
    /// `--network`.
    pub const NETWORK: &str = "network";
    /// `--nice`, as a number (`--nice` alone is 100).
    pub const NICE: &str = "nice";
    /// `--no-requeue`.
    pub const NO_REQUEUE: &str = "no-requeue";
    /// `--nodes` as written; the model does not distinguish one node from not given.
    pub const NODES: &str = "nodes";
    /// `--ntasks`, if given; the model does not distinguish a computed number from a given one.
    pub const NTASKS: &str = "ntasks";
    /// `--overcommit`.
    pub const OVERCOMMIT: &str = "overcommit";
    /// `--oversubscribe`.
    pub const OVERSUBSCRIBE: &str = "oversubscribe";
    /// `--partition`, if it is a list.
    pub const PARTITION: &str = "partition";
    /// `--reboot`.
    pub const REBOOT: &str = "reboot";
    /// `--reservation`, if it is a list.
    pub const RESERVATION: &str = "reservation";
    /// `--signal` as written.
    pub const SIGNAL: &str = "signal";
    /// `--spread-job`.
    pub const SPREAD_JOB: &str = "spread-job";
    /// `--switches`.
    pub const SWITCHES: &str = "switches";
    /// `--thread-spec`.
    pub const THREAD_SPEC: &str = "thread-spec";
    /// `--time-min`.
    pub const TIME_MIN: &str = "time-min";
    /// `--tmp`.
    pub const TMP: &str = "tmp";
    /// `--wckey`.
    pub const WCKEY: &str = "wckey";
}

/// The key of a job-wide attribute.
pub fn job_key(name: &str) -> String {
    format!("slurm.{name}")
}

/// The key of an attribute of the component at an offset.
pub fn component_key(offset: usize, name: &str) -> String {
    format!("slurm.{offset}.{name}")
}

/// The key of the value of an option that a site has added (SL-S-22).
pub fn site_option_key(offset: usize, name: &str) -> String {
    component_key(offset, &format!("{SITE_OPTION}{name}"))
}

/// The beginning of the name of an attribute with an option that a site has added.
const SITE_OPTION: &str = "site-option.";

/// The Slurm attributes of a job.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(pub &'a BTreeMap<String, String>);

impl<'a> Attributes<'a> {
    /// A job-wide attribute.
    pub fn job(self, name: &str) -> Option<&'a str> {
        self.0.get(&job_key(name)).map(String::as_str)
    }

    /// The values of the options that the site has added, for the component at an offset, by name (SL-S-22).
    pub fn site_options(self, offset: usize) -> impl Iterator<Item = (&'a str, &'a str)> {
        let prefix = site_option_key(offset, "");
        let from =
            self.0.range(prefix.clone()..).map_while(move |(key, value)| Some((key.strip_prefix(&prefix)?, value)));
        from.map(|(name, value)| (name, value.as_str()))
    }

    /// An attribute of the component at an offset.
    pub fn component(self, offset: usize, name: &str) -> Option<&'a str> {
        self.0.get(&component_key(offset, name)).map(String::as_str)
    }
}
