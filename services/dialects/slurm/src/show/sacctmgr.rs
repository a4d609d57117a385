//! `sacctmgr show`: accounts, users, service classes, clusters, and the limits of users in accounts.

mod json;
mod records;
mod texts;

pub use json::AsData;
pub use records::{Outage, TRES, Transaction, Tres, transactions};
pub use texts::{configuration, statistics};

use super::{
    Clock,
    cells::put,
    columns::{Field, FormatError, Layout, ListStyle},
};
use crate::{
    accounts::{ROOT, tres, tres_minutes, tres_run_minutes, wall},
    duration,
};
use muster_schemas::{
    accounts::{AccountSpec, AssociationKey, AssociationSpec, Bounds, ClassSpec, DEFAULT_CLASS, JobBounds, UserSpec},
    cluster::ClusterSettings,
    views::AccountsPage,
};

/// An account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Its specification.
    pub spec: AccountSpec,
    /// One of its associations, if they are shown too.
    pub association: Option<Association>,
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
    /// The accounts that the user coordinates.
    pub coordinated: Vec<String>,
    /// One of the user's associations, if they are shown too.
    pub association: Option<Association>,
}

/// A service class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qos(pub ClassSpec);

/// A user in an account, or an account as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Association {
    /// The cluster.
    pub cluster: String,
    /// The parent account; empty for users.
    pub parent: String,
    /// Its specification, with the classes that it may use directly or through its account.
    pub spec: AssociationSpec,
    /// How far its account is indented.
    pub indent: usize,
    /// Its account and those above it, from the root, and its user: `/physics/optics/0-ann/`.
    pub lineage: String,
    /// Whether it is the one of its user's default account.
    pub is_default: bool,
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

/// All accounts, including the root of them.
pub fn accounts(page: &AccountsPage) -> Vec<Account> {
    let root = AccountSpec {
        name: ROOT.to_owned(),
        description: "default root account".to_owned(),
        organisation: ROOT.to_owned(),
        ..AccountSpec::default()
    };
    let mut all: Vec<Account> = page.accounts.iter().cloned().chain([root]).map(account).collect();
    all.sort_by(|one, other| one.spec.name.cmp(&other.spec.name));
    all
}

const fn account(spec: AccountSpec) -> Account {
    Account { spec, association: None }
}

/// A row for each association of each account, or the row itself if it has none (`withassoc`).
pub fn with_associations<R: Associated>(rows: Vec<R>, associations: &[Association]) -> Vec<R> {
    let of = |row: R| {
        let own: Vec<R> = associations.iter().filter(|one| row.has(one)).map(|one| row.with(one)).collect();
        if own.is_empty() { vec![row] } else { own }
    };
    rows.into_iter().flat_map(of).collect()
}

/// A row that can be shown with its associations.
pub trait Associated: Sized {
    /// Whether an association is one of it.
    fn has(&self, association: &Association) -> bool;
    /// The same row with an association.
    fn with(&self, association: &Association) -> Self;
    /// The association that it is shown with.
    fn association(&self) -> Option<&Association>;
}

impl Associated for Account {
    fn has(&self, association: &Association) -> bool {
        association.spec.of.account == self.spec.name
    }

    fn with(&self, association: &Association) -> Self {
        Self { association: Some(association.clone()), ..self.clone() }
    }

    fn association(&self) -> Option<&Association> {
        self.association.as_ref()
    }
}

impl Associated for User {
    fn has(&self, association: &Association) -> bool {
        association.spec.of.user.as_deref() == Some(&self.name)
    }

    fn with(&self, association: &Association) -> Self {
        Self { association: Some(association.clone()), ..self.clone() }
    }

    fn association(&self) -> Option<&Association> {
        self.association.as_ref()
    }
}

/// The accounts that a user coordinates.
fn coordinated(page: &AccountsPage, user: &str) -> Vec<String> {
    let is_of = |spec: &&AccountSpec| spec.coordinators.iter().any(|name| name == user);
    page.accounts.iter().filter(is_of).map(|spec| spec.name.clone()).collect()
}

/// All users, including `root`, who may do everything.
pub fn users(page: &AccountsPage, settings: &ClusterSettings) -> Vec<User> {
    let admin = |name: &str| match name {
        ROOT => "Administrator",
        name if settings.administrators.iter().any(|known| known == name) => "Administrator",
        name if settings.operators.iter().any(|known| known == name) => "Operator",
        _ => "None",
    };
    let row = |name: &str, account: &str| User {
        name: name.to_owned(),
        default_account: account.to_owned(),
        admin: admin(name),
        coordinated: coordinated(page, name),
        association: None,
    };
    let known = page.users.iter().map(|UserSpec { name, default_account }| row(name, default_account));
    let root = (!page.users.iter().any(|user| user.name == ROOT)).then(|| row(ROOT, ROOT));
    let mut all: Vec<User> = known.chain(root).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// All service classes, including `normal`.
pub fn classes(page: &AccountsPage) -> Vec<Qos> {
    let normal = ClassSpec {
        name: DEFAULT_CLASS.to_owned(),
        description: "Normal QOS default".to_owned(),
        ..ClassSpec::default()
    };
    let is_made = page.classes.iter().any(|class| class.name == DEFAULT_CLASS);
    let mut all: Vec<Qos> = page.classes.iter().cloned().chain((!is_made).then_some(normal)).map(Qos).collect();
    // `normal` comes first.
    all.sort_by_key(|class| class.0.name != DEFAULT_CLASS);
    all
}

/// All associations as a tree: each account, its users, and the accounts below it.
pub fn associations(page: &AccountsPage, cluster: &str) -> Vec<Association> {
    let of = |account: &str, user: Option<&str>| AssociationSpec {
        of: AssociationKey { account: account.to_owned(), user: user.map(str::to_owned), queue: None },
        shares: 1,
        ..AssociationSpec::default()
    };
    let row = |spec: AssociationSpec, parent: &str, classes: &[String]| {
        let classes = if spec.classes.is_empty() { classes.to_vec() } else { spec.classes.clone() };
        let is_default = spec.of.user.as_deref().is_some_and(|user| {
            let known = page.users.iter().find(|known| known.name == user);
            known.map_or(spec.of.account == ROOT, |known| known.default_account == spec.of.account)
        });
        Association {
            cluster: cluster.to_owned(),
            parent: parent.to_owned(),
            lineage: lineage(page, &spec.of),
            is_default,
            spec: AssociationSpec { classes, ..spec },
            indent: 0,
        }
    };
    let normal = [DEFAULT_CLASS.to_owned()];
    let mut rows = vec![row(of(ROOT, None), "", &normal), row(of(ROOT, Some(ROOT)), "", &normal)];
    // A stack of accounts to visit, with the classes of their parents.
    let mut next: Vec<(&AccountSpec, Vec<String>)> = below(page, None, &normal);
    while let Some((account, above)) = next.pop() {
        if rows.len() > page.associations.len() + page.accounts.len() + 2 {
            break;
        }
        let own = |spec: &&AssociationSpec| spec.of.account == account.name;
        let whole = page.associations.iter().filter(own).find(|spec| spec.of.user.is_none());
        let parent = account.parent.as_deref().unwrap_or(ROOT);
        rows.push(row(whole.cloned().unwrap_or_else(|| of(&account.name, None)), parent, &above));
        let classes = rows.last().map(|row| row.spec.classes.clone()).unwrap_or_default();
        let users = page.associations.iter().filter(own).filter(|spec| spec.of.user.is_some());
        rows.extend(users.map(|spec| row(spec.clone(), "", &classes)));
        next.extend(below(page, Some(&account.name), &classes));
    }
    rows
}

/// The accounts from the root to that of an association, and its user.
fn lineage(page: &AccountsPage, of: &AssociationKey) -> String {
    let mut names = Vec::new();
    let mut name = Some(of.account.as_str()).filter(|name| *name != ROOT);
    // No tree is deeper than it has accounts.
    while let Some(account) = name.filter(|_| names.len() <= page.accounts.len()) {
        names.push(account);
        let known = page.accounts.iter().find(|known| known.name == account);
        name = known.and_then(|known| known.parent.as_deref()).filter(|parent| *parent != ROOT);
    }
    let mut path: String = names.iter().rev().map(|name| format!("/{name}")).collect();
    path.extend(of.user.iter().map(|user| format!("/0-{user}")));
    path + "/"
}

/// The number of a QOS. It is made from its name, so it is the same everywhere; `normal` is 1, as in Slurm.
pub fn qos_id(name: &str) -> u32 {
    match name {
        DEFAULT_CLASS => 1,
        _ => association_id(&AssociationKey { account: name.to_owned(), ..AssociationKey::default() }),
    }
}

/// Indents accounts by how far they are below the root, as `tree` shows them.
pub fn indent(rows: &mut [Association], page: &AccountsPage) {
    for row in rows {
        let mut above = page.accounts.iter().find(|account| account.name == row.spec.of.account);
        let mut depth = usize::from(above.is_some()) + usize::from(row.spec.of.user.is_some());
        // No tree is deeper than it has accounts.
        for _ in 0..page.accounts.len() {
            let parent = above.and_then(|account| account.parent.as_deref());
            above = page.accounts.iter().find(|account| Some(account.name.as_str()) == parent);
            depth += usize::from(above.is_some());
        }
        row.indent = depth;
    }
}

/// The number of an association. It is made from its names, so it is the same everywhere, and for an association that is made
/// again; two associations have the same only by a rare accident.
pub fn association_id(of: &AssociationKey) -> u32 {
    let parts = [Some(of.account.as_str()), of.user.as_deref(), of.queue.as_deref()];
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in parts.into_iter().flat_map(|part| part.unwrap_or_default().bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // It must fit a signed number, and 0 means none.
    u32::try_from((hash >> 16) & 0x7fff_ffff).unwrap_or(0).max(1)
}

/// The association of a user's jobs in an account and a partition, if there is one.
pub fn association_of(page: &AccountsPage, account: &str, user: &str, queue: &str) -> Option<u32> {
    let of_user = |spec: &&AssociationSpec| spec.of.account == account && spec.of.user.as_deref() == Some(user);
    let is_for =
        |wanted: Option<&str>| page.associations.iter().filter(of_user).find(|spec| spec.of.queue.as_deref() == wanted);
    is_for(Some(queue)).or_else(|| is_for(None)).map(|spec| association_id(&spec.of))
}

/// The children of an account, in reverse order.
fn below<'p>(page: &'p AccountsPage, parent: Option<&str>, classes: &[String]) -> Vec<(&'p AccountSpec, Vec<String>)> {
    let children = page.accounts.iter().rev().filter(|account| account.parent.as_deref() == parent);
    children.map(|account| (account, classes.to_vec())).collect()
}

macro_rules! field {
    ($names:expr, $header:literal, $width:literal, $write:expr) => {
        Field { letter: None, names: $names, header: $header, width: $width, write: $write, is_detailed: false }
    };
}

/// A column of an association in the table of what it belongs to.
macro_rules! associated {
    ($name:literal, $header:literal, $width:literal) => {
        associated!(&[$name], $name, $header, $width)
    };
    ($names:expr, $name:literal, $header:literal, $width:literal) => {
        field!($names, $header, $width, |row, clock, out| cell(row, $name, clock, out))
    };
}

/// Writes what an association has in its own table under this name; nothing without one.
fn cell<R: Associated>(row: &R, name: &str, clock: &Clock, out: &mut String) {
    let field = Association::FIELDS.iter().find(|field| field.names.contains(&name));
    if let (Some(association), Some(field)) = (row.association(), field) {
        (field.write)(association, clock, out);
    }
}

/// A row of a table, with its table.
pub trait Listed: Sized + 'static {
    /// Its columns.
    const FIELDS: &'static [Field<Self>];
    /// The default columns.
    const USUAL: &'static str;
    /// More default columns if associations are shown too.
    const WITH_ASSOCIATIONS: &'static str = "";
}

/// A table with these columns, whose names may be abbreviated.
///
/// # Errors
/// A column that does not exist; nothing is listed then.
pub fn list<R: Listed>(
    rows: &[R],
    format: &str,
    style: &ListStyle,
    no_header: bool,
    clock: &Clock,
) -> Result<String, FormatError> {
    let layout = Layout::listed(&whole_names::<R>(format), R::FIELDS, style)?;
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

/// The names of the columns of a table, four in a line.
pub fn names<R: Listed>() -> String {
    let mut out = String::new();
    for line in R::FIELDS.chunks(4) {
        let mut text = String::new();
        line.iter().for_each(|field| put(format_args!("{:<20}", field.header), &mut text));
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

/// A format with the full names of columns.
fn whole_names<R: Listed>(format: &str) -> String {
    let whole = |part: &str| {
        let (name, width) = part.split_at(part.find('%').unwrap_or(part.len()));
        let name = name.trim();
        let begins = |known: &&&str| known.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        let is = |known: &&&str| known.eq_ignore_ascii_case(name);
        let all = || R::FIELDS.iter().flat_map(|field| field.names);
        let found = all().find(is).or_else(|| all().find(begins).filter(|_| !name.is_empty()));
        format!("{}{width}", found.copied().unwrap_or(name))
    };
    format.split(',').map(whole).collect::<Vec<_>>().join(",")
}

/// A limit; no limit is empty.
fn limit(limit: Option<u64>, out: &mut String) {
    limit.into_iter().for_each(|limit| put(limit, out));
}

fn amounts(bounds: &Bounds, out: &mut String) {
    out.push_str(&tres(bounds.cores, bounds.nodes, bounds.gpus, bounds.memory_bytes));
}

fn job_amounts(bounds: &JobBounds, out: &mut String) {
    out.push_str(&tres(bounds.cores, bounds.nodes, bounds.gpus, bounds.memory_bytes));
}

impl Listed for Account {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["Account", "Name"], "Account", 10, |row, _, out| out.push_str(&row.spec.name)),
        field!(&["Description"], "Descr", 20, |row, _, out| out.push_str(&row.spec.description)),
        field!(&["Organization"], "Org", 20, |row, _, out| out.push_str(&row.spec.organisation)),
        // Users in it have no parent.
        field!(&["ParentName"], "ParentName", 10, |row, _, out| match (row.spec.name.as_str(), &row.association) {
            (ROOT, _) => {}
            (_, Some(one)) if one.spec.of.user.is_some() => {}
            _ => out.push_str(row.spec.parent.as_deref().unwrap_or(ROOT)),
        }),
        field!(&["Coordinators"], "Coord Accounts", 20, |row, _, out| out.push_str(&row.spec.coordinators.join(","))),
        associated!("Cluster", "Cluster", 10),
        associated!("User", "User", 10),
        associated!("Partition", "Partition", 10),
        associated!(&["Share", "Fairshare"], "Share", "Share", 9),
        associated!("GrpJobs", "GrpJobs", 7),
        associated!("GrpTRES", "GrpTRES", 13),
        associated!("GrpSubmitJobs", "GrpSubmit", 9),
        associated!("GrpWall", "GrpWall", 11),
        associated!("GrpTRESMins", "GrpTRESMins", 13),
        associated!("MaxJobs", "MaxJobs", 7),
        associated!(&["MaxTRES", "MaxTRESPerJob"], "MaxTRES", "MaxTRES", 13),
        associated!(&["MaxSubmitJobs", "MaxSubmitJobsPerUser"], "MaxSubmitJobs", "MaxSubmit", 9),
        associated!("MaxWallDurationPerJob", "MaxWall", 11),
        associated!("MaxTRESMins", "MaxTRESMins", 13),
        associated!("QOS", "QOS", 20),
        associated!(&["DefaultQOS", "DefQOS"], "DefaultQOS", "Def QOS", 9),
    ];
    const USUAL: &'static str = "Account,Description,Organization";
    const WITH_ASSOCIATIONS: &'static str = ",Cluster,ParentName,User,Share,GrpJobs,GrpTRES,GrpSubmitJobs,GrpWall,\
        GrpTRESMins,MaxJobs,MaxTRES,MaxSubmitJobs,MaxWallDurationPerJob,MaxTRESMins,QOS,DefaultQOS";
}

impl Listed for User {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["User", "Name"], "User", 10, |row, _, out| out.push_str(&row.name)),
        field!(&["DefaultAccount", "DefAcct"], "Def Acct", 10, |row, _, out| out.push_str(&row.default_account)),
        field!(&["AdminLevel"], "Admin", 9, |row, _, out| out.push_str(row.admin)),
        field!(&["DefaultWCKey"], "Def WCKey", 10, |_, _, _| {}),
        field!(&["Coordinators"], "Coord Accounts", 20, |row, _, out| out.push_str(&row.coordinated.join(","))),
        associated!("Cluster", "Cluster", 10),
        associated!("Account", "Account", 10),
        associated!("Partition", "Partition", 10),
        associated!(&["Share", "Fairshare"], "Share", "Share", 9),
        associated!("GrpJobs", "GrpJobs", 7),
        associated!("GrpTRES", "GrpTRES", 13),
        associated!("GrpSubmitJobs", "GrpSubmit", 9),
        associated!("GrpWall", "GrpWall", 11),
        associated!("GrpTRESMins", "GrpTRESMins", 13),
        associated!("MaxJobs", "MaxJobs", 7),
        associated!(&["MaxTRES", "MaxTRESPerJob"], "MaxTRES", "MaxTRES", 13),
        associated!("MaxTRESPerNode", "MaxTRESPerNode", 14),
        associated!(&["MaxSubmitJobs", "MaxSubmitJobsPerUser"], "MaxSubmitJobs", "MaxSubmit", 9),
        associated!("MaxWallDurationPerJob", "MaxWall", 11),
        associated!("MaxTRESMins", "MaxTRESMins", 13),
        associated!("QOS", "QOS", 20),
        associated!(&["DefaultQOS", "DefQOS"], "DefaultQOS", "Def QOS", 9),
    ];
    const USUAL: &'static str = "User,DefaultAccount,AdminLevel";
    const WITH_ASSOCIATIONS: &'static str = ",Cluster,Account,Partition,Share,MaxJobs,MaxTRES,MaxTRESPerNode,\
        MaxSubmitJobs,MaxWallDurationPerJob,MaxTRESMins,QOS,DefaultQOS";
}

impl Listed for Qos {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["Name"], "Name", 10, |row, _, out| out.push_str(&row.0.name)),
        field!(&["Priority"], "Priority", 10, |row, _, out| put(row.0.priority, out)),
        field!(&["GraceTime"], "GraceTime", 10, |row, _, out| {
            out.push_str(&duration::long(row.0.preemption_grace_seconds.into()));
        }),
        field!(&["Preempt"], "Preempt", 10, |row, _, out| out.push_str(&row.0.preempts.join(","))),
        field!(&["PreemptExemptTime"], "PreemptExemptTime", 19, |_, _, _| {}),
        field!(&["PreemptMode"], "PreemptMode", 11, |row, _, out| {
            out.push_str(match (row.0.cancels_preempted, row.0.suspends_preempted) {
                (true, _) => "cancel",
                (_, true) => "suspend",
                _ => "cluster",
            });
        }),
        field!(&["Flags"], "Flags", 20, |row, _, out| {
            out.push_str(if row.0.refuses_hopeless { "DenyOnLimit" } else { "" });
        }),
        field!(&["UsageThreshold"], "UsageThres", 10, |_, _, _| {}),
        field!(&["UsageFactor"], "UsageFactor", 11, |_, _, out| out.push_str("1.000000")),
        field!(&["GrpTRES"], "GrpTRES", 13, |row, _, out| amounts(&row.0.limits.together, out)),
        field!(&["GrpTRESMins"], "GrpTRESMins", 13, |row, _, out| out.push_str(&tres_minutes(&row.0.limits.budget))),
        field!(&["GrpTRESRunMins"], "GrpTRESRunMins", 13, |row, _, out| {
            out.push_str(&tres_run_minutes(&row.0.limits.remaining));
        }),
        field!(&["GrpJobs"], "GrpJobs", 7, |row, _, out| limit(row.0.limits.together.running_jobs, out)),
        field!(&["GrpSubmitJobs"], "GrpSubmit", 9, |row, _, out| limit(row.0.limits.together.jobs, out)),
        field!(&["GrpWall"], "GrpWall", 11, |row, _, out| out.push_str(&wall(row.0.limits.budget.run_seconds))),
        field!(&["MaxTRES", "MaxTRESPerJob"], "MaxTRES", 13, |row, _, out| job_amounts(&row.0.limits.each_job, out)),
        field!(&["MaxTRESPerNode"], "MaxTRESPerNode", 14, |_, _, _| {}),
        field!(&["MaxTRESMins"], "MaxTRESMins", 13, |_, _, _| {}),
        field!(&["MaxWallDurationPerJob"], "MaxWall", 11, |row, _, out| {
            out.push_str(&wall(row.0.limits.each_job.walltime_seconds));
        }),
        field!(&["MaxTRESPerUser", "MaxTRESPU"], "MaxTRESPU", 13, |row, _, out| {
            amounts(&row.0.limits.each_user, out);
        }),
        field!(&["MaxJobsPerUser", "MaxJobsPU"], "MaxJobsPU", 9, |row, _, out| {
            limit(row.0.limits.each_user.running_jobs, out);
        }),
        field!(&["MaxSubmitJobsPerUser", "MaxSubmitPU"], "MaxSubmitPU", 11, |row, _, out| {
            limit(row.0.limits.each_user.jobs, out);
        }),
        field!(&["MaxTRESPerAccount", "MaxTRESPerAcct", "MaxTRESPA"], "MaxTRESPA", 13, |row, _, out| {
            amounts(&row.0.limits.each_account, out);
        }),
        field!(&["MaxJobsPerAccount", "MaxJobsPerAcct", "MaxJobsPA"], "MaxJobsPA", 9, |row, _, out| {
            limit(row.0.limits.each_account.running_jobs, out);
        }),
        field!(
            &["MaxSubmitJobsPerAccount", "MaxSubmitJobsPerAcct", "MaxSubmitPA"],
            "MaxSubmitPA",
            11,
            |row, _, out| limit(row.0.limits.each_account.jobs, out)
        ),
        field!(&["MinTRES", "MinTRESPerJob"], "MinTRES", 13, |_, _, _| {}),
        field!(&["Description"], "Descr", 20, |row, _, out| out.push_str(&row.0.description)),
    ];
    const USUAL: &'static str = "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags%40,UsageThreshold,\
        UsageFactor,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmitJobs,GrpWall,MaxTRES,MaxTRESPerNode,\
        MaxTRESMins,MaxWallDurationPerJob,MaxTRESPerUser,MaxJobsPerUser,MaxSubmitJobsPerUser,MaxTRESPerAccount,\
        MaxJobsPerAccount,MaxSubmitJobsPerAccount,MinTRES";
}

impl Listed for Association {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["Cluster"], "Cluster", 10, |row, _, out| out.push_str(&row.cluster)),
        field!(&["Account"], "Account", 10, |row, _, out| {
            put(format_args!("{:indent$}{}", "", row.spec.of.account, indent = row.indent), out);
        }),
        field!(&["User"], "User", 10, |row, _, out| out.push_str(row.spec.of.user.as_deref().unwrap_or_default())),
        field!(&["Partition"], "Partition", 10, |row, _, out| {
            out.push_str(row.spec.of.queue.as_deref().unwrap_or_default());
        }),
        field!(&["ParentName"], "ParentName", 10, |row, _, out| out.push_str(&row.parent)),
        field!(&["Share", "Fairshare"], "Share", 9, |row, _, out| put(row.spec.shares.max(1), out)),
        field!(&["Priority"], "Priority", 10, |_, _, _| {}),
        field!(&["GrpJobs"], "GrpJobs", 7, |row, _, out| limit(row.spec.limits.together.running_jobs, out)),
        field!(&["GrpTRES"], "GrpTRES", 13, |row, _, out| amounts(&row.spec.limits.together, out)),
        field!(&["GrpSubmitJobs"], "GrpSubmit", 9, |row, _, out| limit(row.spec.limits.together.jobs, out)),
        field!(&["GrpWall"], "GrpWall", 11, |row, _, out| out.push_str(&wall(row.spec.limits.budget.run_seconds))),
        field!(&["GrpTRESMins"], "GrpTRESMins", 13, |row, _, out| out.push_str(&tres_minutes(&row.spec.limits.budget))),
        field!(&["MaxJobs"], "MaxJobs", 7, |row, _, out| limit(row.spec.limits.each_user.running_jobs, out)),
        field!(&["MaxTRES", "MaxTRESPerJob"], "MaxTRES", 13, |row, _, out| {
            job_amounts(&row.spec.limits.each_job, out);
        }),
        field!(&["MaxTRESPerNode"], "MaxTRESPerNode", 14, |_, _, _| {}),
        field!(&["MaxSubmitJobs", "MaxSubmitJobsPerUser"], "MaxSubmit", 9, |row, _, out| limit(
            row.spec.limits.each_user.jobs,
            out
        )),
        field!(&["MaxWallDurationPerJob"], "MaxWall", 11, |row, _, out| {
            out.push_str(&wall(row.spec.limits.each_job.walltime_seconds));
        }),
        field!(&["MaxTRESMins"], "MaxTRESMins", 13, |_, _, _| {}),
        field!(&["QOS"], "QOS", 20, |row, _, out| out.push_str(&row.spec.classes.join(","))),
        field!(&["DefaultQOS", "DefQOS"], "Def QOS", 9, |row, _, out| {
            out.push_str(row.spec.default_class.as_deref().unwrap_or_default());
        }),
        field!(&["GrpTRESRunMins"], "GrpTRESRunMins", 13, |row, _, out| {
            out.push_str(&tres_run_minutes(&row.spec.limits.remaining));
        }),
        field!(&["ID"], "ID", 10, |row, _, out| put(association_id(&row.spec.of), out)),
    ];
    const USUAL: &'static str = "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmitJobs,GrpWall,\
        GrpTRESMins,MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmitJobs,MaxWallDurationPerJob,MaxTRESMins,QOS,DefaultQOS,\
        GrpTRESRunMins";
}

impl Listed for Cluster {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["Cluster", "Name"], "Cluster", 10, |row, _, out| out.push_str(&row.name)),
        field!(&["ControlHost"], "ControlHost", 15, |row, _, out| out.push_str(&row.host)),
        field!(&["ControlPort"], "ControlPort", 12, |row, _, out| put(row.port, out)),
        field!(&["RPC"], "RPC", 5, |_, _, out| out.push_str("9728")),
        field!(&["Share", "Fairshare"], "Share", 9, |_, _, out| out.push('1')),
        field!(&["GrpJobs"], "GrpJobs", 7, |_, _, _| {}),
        field!(&["GrpTRES"], "GrpTRES", 13, |_, _, _| {}),
        field!(&["GrpSubmitJobs"], "GrpSubmit", 9, |_, _, _| {}),
        field!(&["MaxJobs"], "MaxJobs", 7, |_, _, _| {}),
        field!(&["MaxTRES"], "MaxTRES", 13, |_, _, _| {}),
        field!(&["MaxSubmitJobs"], "MaxSubmit", 9, |_, _, _| {}),
        field!(&["MaxWallDurationPerJob"], "MaxWall", 11, |_, _, _| {}),
        field!(&["QOS"], "QOS", 20, |_, _, out| out.push_str(DEFAULT_CLASS)),
        field!(&["DefaultQOS", "DefQOS"], "Def QOS", 9, |_, _, _| {}),
    ];
    const USUAL: &'static str = "Cluster,ControlHost,ControlPort,RPC,Fairshare,GrpJobs,GrpTRES,GrpSubmitJobs,MaxJobs,MaxTRES,\
        MaxSubmitJobs,MaxWallDurationPerJob,QOS,DefaultQOS";
}
