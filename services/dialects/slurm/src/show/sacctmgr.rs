//! `sacctmgr show`: accounts, users, service classes, clusters, and the limits of users in accounts.

use super::{
    Clock,
    cells::put,
    columns::{Field, FormatError, Layout, ListStyle},
};
use crate::duration;

/// What somebody or something may have at most; `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Running jobs of all together.
    pub group_jobs: Option<u64>,
    /// Jobs of all together that wait or run.
    pub group_submitted: Option<u64>,
    /// Processors of all together.
    pub group_cpus: Option<u64>,
    /// Running jobs of each.
    pub jobs: Option<u64>,
    /// Jobs of each that wait or run.
    pub submitted: Option<u64>,
    /// Processors of a job.
    pub cpus: Option<u64>,
    /// How long a job may run, in seconds.
    pub walltime_seconds: Option<u64>,
}

/// An account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Whose it is.
    pub organization: String,
}

/// A user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The login name.
    pub name: String,
    /// The account of jobs that name none.
    pub default_account: String,
    /// `None`, `Operator` or `Administrator`.
    pub admin: &'static str,
}

/// A service class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qos {
    /// Its name.
    pub name: String,
    /// What it adds to the priority of its jobs.
    pub priority: i64,
    /// What its jobs may have: of all together, and of each user.
    pub limits: Limits,
}

/// A user in an account, or an account as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Association {
    /// The cluster.
    pub cluster: String,
    /// The account.
    pub account: String,
    /// The user; empty for the account as a whole.
    pub user: String,
    /// The partition that it is for; empty for all.
    pub partition: String,
    /// The service classes that may be used.
    pub classes: Vec<String>,
    /// The service class of jobs that name none.
    pub default_class: String,
    /// What they may have.
    pub limits: Limits,
}

/// A cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// The host of its controller.
    pub host: String,
    /// The port of its controller.
    pub port: u16,
}

macro_rules! field {
    ($names:expr, $header:literal, $width:literal, $write:expr) => {
        Field { letter: None, names: $names, header: $header, width: $width, write: $write, is_detailed: false }
    };
}

/// A row of a table, and its table.
pub trait Listed: Sized + 'static {
    /// Its columns.
    const FIELDS: &'static [Field<Self>];
    /// The columns that are shown if none are asked for.
    const USUAL: &'static str;
}

/// A table in the columns that are asked for, or the usual ones.
///
/// # Errors
/// A column that does not exist; nothing is listed then.
pub fn list<R: Listed>(
    rows: &[R],
    format: Option<&str>,
    style: &ListStyle,
    no_header: bool,
    clock: &Clock,
) -> Result<String, FormatError> {
    let layout = Layout::listed(format.unwrap_or(R::USUAL), R::FIELDS, style)?;
    let mut out = String::new();
    if !no_header {
        layout.write_header(&mut out);
        if *style == ListStyle::Columns {
            layout.write_dashes(&mut out);
        }
    }
    for row in rows {
        layout.write_row(row, clock, &mut out);
    }
    Ok(out)
}

/// A limit; no limit is empty.
fn limit(limit: Option<u64>, out: &mut String) {
    limit.into_iter().for_each(|limit| put(limit, out));
}

fn cpus(limit: Option<u64>, out: &mut String) {
    limit.into_iter().for_each(|limit| put(format_args!("cpu={limit}"), out));
}

fn walltime(seconds: Option<u64>, out: &mut String) {
    seconds.into_iter().for_each(|seconds| out.push_str(&duration::long(seconds)));
}

impl Listed for Account {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["Account", "Name"], "Account", 10, |row, _, out| out.push_str(&row.name)),
        field!(&["Description", "Descr"], "Descr", 20, |row, _, out| out.push_str(&row.description)),
        field!(&["Organization", "Org"], "Org", 20, |row, _, out| out.push_str(&row.organization)),
    ];
    const USUAL: &'static str = "Account,Description,Organization";
}

impl Listed for User {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["User", "Name"], "User", 10, |row, _, out| out.push_str(&row.name)),
        field!(&["DefaultAccount", "DefAcct"], "Def Acct", 10, |row, _, out| out.push_str(&row.default_account)),
        field!(&["AdminLevel", "Admin"], "Admin", 9, |row, _, out| out.push_str(row.admin)),
    ];
    const USUAL: &'static str = "User,DefaultAccount,AdminLevel";
}

impl Listed for Qos {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["Name"], "Name", 10, |row, _, out| out.push_str(&row.name)),
        field!(&["Priority"], "Priority", 10, |row, _, out| put(row.priority, out)),
        field!(&["GraceTime"], "GraceTime", 10, |_, _, out| out.push_str("00:00:00")),
        field!(&["GrpJobs"], "GrpJobs", 7, |row, _, out| limit(row.limits.group_jobs, out)),
        field!(&["GrpSubmit", "GrpSubmitJobs"], "GrpSubmit", 9, |row, _, out| limit(row.limits.group_submitted, out)),
        field!(&["GrpTRES"], "GrpTRES", 13, |row, _, out| cpus(row.limits.group_cpus, out)),
        field!(&["MaxTRES", "MaxTRESPerJob"], "MaxTRES", 13, |row, _, out| cpus(row.limits.cpus, out)),
        field!(&["MaxWall"], "MaxWall", 11, |row, _, out| walltime(row.limits.walltime_seconds, out)),
        field!(&["MaxJobsPU", "MaxJobsPerUser"], "MaxJobsPU", 9, |row, _, out| limit(row.limits.jobs, out)),
        field!(&["MaxSubmitPU", "MaxSubmitJobsPerUser"], "MaxSubmitPU", 11, |row, _, out| {
            limit(row.limits.submitted, out);
        }),
    ];
    const USUAL: &'static str =
        "Name,Priority,GraceTime,GrpTRES,GrpJobs,GrpSubmit,MaxTRES,MaxWall,MaxJobsPU,MaxSubmitPU";
}

impl Listed for Association {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["Cluster"], "Cluster", 10, |row, _, out| out.push_str(&row.cluster)),
        field!(&["Account"], "Account", 10, |row, _, out| out.push_str(&row.account)),
        field!(&["User"], "User", 10, |row, _, out| out.push_str(&row.user)),
        field!(&["Partition"], "Partition", 10, |row, _, out| out.push_str(&row.partition)),
        field!(&["Share", "Fairshare"], "Share", 9, |_, _, out| out.push('1')),
        field!(&["GrpJobs"], "GrpJobs", 7, |row, _, out| limit(row.limits.group_jobs, out)),
        field!(&["GrpTRES"], "GrpTRES", 13, |row, _, out| cpus(row.limits.group_cpus, out)),
        field!(&["GrpSubmit", "GrpSubmitJobs"], "GrpSubmit", 9, |row, _, out| limit(row.limits.group_submitted, out)),
        field!(&["MaxJobs"], "MaxJobs", 7, |row, _, out| limit(row.limits.jobs, out)),
        field!(&["MaxTRES", "MaxTRESPerJob"], "MaxTRES", 13, |row, _, out| cpus(row.limits.cpus, out)),
        field!(&["MaxSubmit", "MaxSubmitJobs"], "MaxSubmit", 9, |row, _, out| limit(row.limits.submitted, out)),
        field!(&["MaxWall"], "MaxWall", 11, |row, _, out| walltime(row.limits.walltime_seconds, out)),
        field!(&["QOS"], "QOS", 20, |row, _, out| out.push_str(&row.classes.join(","))),
        field!(&["DefaultQOS", "DefQOS"], "Def QOS", 9, |row, _, out| out.push_str(&row.default_class)),
    ];
    const USUAL: &'static str = "Cluster,Account,User,Partition,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,\
        MaxSubmit,MaxWall,QOS,DefaultQOS";
}

impl Listed for Cluster {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["Cluster", "Name"], "Cluster", 10, |row, _, out| out.push_str(&row.name)),
        field!(&["ControlHost"], "ControlHost", 15, |row, _, out| out.push_str(&row.host)),
        field!(&["ControlPort"], "ControlPort", 12, |row, _, out| put(row.port, out)),
    ];
    const USUAL: &'static str = "Cluster,ControlHost,ControlPort";
}
