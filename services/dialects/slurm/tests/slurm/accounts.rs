//! `sacctmgr add`, `modify` and `delete`: the requests to the system, and the messages.

use muster_schemas::{
    Sequence, Timestamp,
    accounts::{AccountChange, AccountSettings, AccountSpec, AssociationKey, AssociationSpec, ClassSpec, UserSpec},
    job::Holds,
    views::{AccountsPage, ReasonView, ReasonWord},
};
use muster_slurm::{
    accounts::{AdminLevel, Proposal, propose},
    queries::{
        Request,
        sacctmgr::{Sacctmgr, parse},
    },
    words::{refused_limit, waiting_reason},
};

fn command(line: &str) -> Sacctmgr {
    let words: Vec<&str> = line.split_whitespace().collect();
    match parse(&words) {
        Ok(Request::Run(command)) => command,
        other => panic!("{line}: {other:?}"),
    }
}

/// Applies a command line; returns its result with the messages.
fn after(page: &mut AccountsPage, line: &str) -> Proposal {
    let proposal = propose(&command(line), page, "alpha");
    for change in &proposal.changes {
        match change.clone() {
            AccountChange::Account { before, after } => put(&mut page.accounts, before, after),
            AccountChange::User { before, after } => put(&mut page.users, before, after),
            AccountChange::Association { before, after } => put(&mut page.associations, before, after),
            AccountChange::Class { before, after } => put(&mut page.classes, before, after),
            AccountChange::AssociationUse { .. } | AccountChange::ClassUse { .. } => {}
        }
    }
    proposal
}

fn put<T: PartialEq>(list: &mut Vec<T>, before: Option<T>, after: Option<T>) {
    if let Some(before) = before {
        let at = list.iter().position(|known| *known == before).expect("what is changed is there");
        list.remove(at);
    }
    list.extend(after);
}

#[track_caller]
fn says(page: &mut AccountsPage, line: &str, said: &str) -> Vec<AccountChange> {
    let proposal = after(page, line);
    assert_eq!((proposal.said.as_str(), proposal.errors.as_slice()), (said, &[][..]), "{line}");
    proposal.changes
}

#[track_caller]
fn fails(page: &mut AccountsPage, line: &str, error: &str) {
    let proposal = after(page, line);
    assert_eq!(proposal.errors, [error], "{line}");
    assert_eq!(proposal.changes, [], "{line}");
}

fn empty() -> AccountsPage {
    AccountsPage {
        settings: AccountSettings::default(),
        accounts: Vec::new(),
        users: Vec::new(),
        associations: Vec::new(),
        classes: Vec::new(),
        used: Vec::new(),
        sequence: Sequence(1),
        time: Timestamp(0),
    }
}

fn of(account: &str, user: Option<&str>) -> AssociationKey {
    AssociationKey { account: account.into(), user: user.map(Into::into), queue: None }
}

/// Accounts `science`, `test` below it and `abc`, user `ann` in `test` and `abc`.
fn page() -> AccountsPage {
    let mut page = empty();
    for line in [
        "add account science",
        "add account test parent=science",
        "add account abc description=letters organization=school",
        "add user ann account=test,abc",
        "add qos high priority=50",
    ] {
        assert_eq!(after(&mut page, line).errors, [] as [String; 0], "{line}");
    }
    page
}

/// SL-L-02
#[test]
fn accounts_are_added_with_an_association_each() {
    let mut page = empty();
    let said = " Adding Account(s)\n  test\n  abc\n Settings\n  Description     = Account Name\n  \
                Organization    = Parent/Account Name\n Associations\n  A = test       C = alpha     \n  \
                A = abc        C = alpha     \n Settings\n  GrpJobs       = 4\n  GrpTRES       = cpu=8,mem=1G\n";
    let changes = says(&mut page, "add account test,Abc grpjobs=4 grptres=cpu=8,mem=1024", said);
    assert_eq!(changes.len(), 4);
    let abc = page.accounts.iter().find(|account| account.name == "abc").unwrap();
    assert_eq!((abc.description.as_str(), abc.organisation.as_str(), &abc.parent), ("abc", "abc", &None));
    let association = page.associations.iter().find(|spec| spec.of == of("test", None)).unwrap();
    let together = association.limits.together;
    assert_eq!((together.running_jobs, together.cores, together.memory_bytes), (Some(4), Some(8), Some(1 << 30)));
    says(&mut page, "add account test", " Nothing new added.\n");
    let error =
        " Parent account 'nope' doesn't exist on cluster alpha\n        Contact your admin to add this account.";
    fails(&mut page, "add account below parent=nope", error);
    fails(&mut page, "add account", " Need name of account to add.");
    fails(
        &mut page,
        "add account more grptresmin=cpu=1,mem=5",
        "sacctmgr: error: Invalid value for grptresmin (cpu=1,mem=5)",
    );
}

/// SL-L-02
#[test]
fn users_are_added_to_accounts_and_partitions() {
    let mut page = page();
    let said = " Adding User(s)\n  bob\n Settings =\n  Default Account = abc\n Associations =\n  \
                U = bob       A = test       C = alpha     \n  U = bob       A = abc        C = alpha     \n \
                Non Default Settings\n  MaxJobs       = 2\n  MaxSubmitJobs = 4\n  MaxWall       = 1-00:00:00\n";
    let line = "add user bob account=test defaultaccount=abc maxjobs=2 maxsubmitjobs=4 maxwall=1-0";
    says(&mut page, line, said);
    assert!(page.users.contains(&UserSpec { name: "bob".into(), default_account: "abc".into() }));
    let said = " Associations =\n  U = bob       A = test       C = alpha      P = debug     \n";
    says(&mut page, "add user name=bob accounts=test partition=debug", said);
    says(&mut page, "add user bob account=test", " Nothing new added.\n");
    fails(&mut page, "add user carl", " Need name of account to add user to.");
    let error = " This account 'nope' doesn't exist.\n        Contact your admin to add this account.";
    fails(&mut page, "add user carl account=nope", error);
}

/// SL-L-02: limits are set and removed, lists are changed, and everybody not named stays the same.
#[test]
fn what_is_meant_is_modified() {
    let mut page = page();
    let said = " Modified user associations...\n  C = alpha      A = test                 U = ann      \n";
    says(&mut page, "modify user where name=ann account=test set maxjobs=2 maxtres=cpu=4,node=2 qos+=high", said);
    let find = |page: &AccountsPage, of: AssociationKey| {
        page.associations.iter().find(|spec| spec.of == of).cloned().expect("it is there")
    };
    let ann = find(&page, of("test", Some("ann")));
    assert_eq!(ann.limits.each_user.running_jobs, Some(2));
    assert_eq!((ann.limits.each_job.cores, ann.limits.each_job.nodes), (Some(4), Some(2)));
    // It is added to the list that she has from her account.
    assert_eq!(ann.classes, ["high", "normal"]);
    assert_eq!(find(&page, of("abc", Some("ann"))).limits, AssociationSpec::default().limits);
    says(&mut page, "modify user ann account=test set maxjobs=-1 maxtres=cpu=-1 qos-=high", said);
    let ann = find(&page, of("test", Some("ann")));
    assert_eq!((ann.limits.each_user.running_jobs, ann.limits.each_job.cores), (None, None));
    assert_eq!((ann.limits.each_job.nodes, &ann.classes[..]), (Some(2), &["normal".to_owned()][..]));
    let said = " Modified account associations...\n  C = alpha      A = test of science\n";
    says(&mut page, "modify account name=test set fairshare=5 defaultqos=normal", said);
    let test = find(&page, of("test", None));
    assert_eq!((test.shares, test.default_class.as_deref()), (5, Some("normal")));
    says(&mut page, "modify account test set description=new", " Modified accounts...\n  test\n");
    says(&mut page, "modify user ann set defaultaccount=abc", " Modified users...\n  ann\n");
    assert_eq!(page.users[0].default_account, "abc");
    says(&mut page, "modify user nobody set maxjobs=1", " Nothing modified\n");
    fails(&mut page, "modify user ann set", " You didn't give me anything to set");
    fails(&mut page, "modify user ann set maxjobs=many", "sacctmgr: error: Invalid value for maxjobs (many)");
    assert!(after(&mut page, "modify user set maxjobs=1").is_of_all);
    let said = " Modified account associations...\n  C = alpha      A = test of science\n";
    let changes = says(&mut page, "modify account test set grptresrunmins=cpu=90,gres/gpu=2 rawusage=0", said);
    let remaining = find(&page, of("test", None)).limits.remaining;
    assert_eq!((remaining.core_seconds, remaining.gpu_seconds, remaining.node_seconds), (Some(5400), Some(120), None));
    assert_eq!(changes.last(), Some(&AccountChange::AssociationUse { of: of("test", None) }));
    let bad = "sacctmgr: error: Invalid value for rawusage (5): use is only set to 0";
    fails(&mut page, "modify account test set rawusage=5", bad);
}

/// SL-L-02: `normal` can be changed although nobody added it.
#[test]
fn qos_are_added_modified_and_deleted() {
    let mut page = page();
    let said = " Adding QOS(s)\n  low\n Settings\n  Description    = low\n  Flags                    = DenyOnLimit\n  \
                MaxTRESPerUser           = cpu=4\n  MaxJobsPerAccount        = 3\n  Priority                 = -5\n";
    says(&mut page, "add qos low priority=-5 maxtrespu=cpu=4 maxjobspa=3 flags=DenyOnLimit", said);
    let low = page.classes.iter().find(|class| class.name == "low").unwrap();
    assert_eq!((low.priority, low.refuses_hopeless, low.limits.each_account.running_jobs), (-5, true, Some(3)));
    says(&mut page, "modify qos normal set maxjobspu=2 grpjobs=5", " Modified qos...\n  normal\n");
    let normal = page.classes.iter().find(|class| class.name == "normal").unwrap();
    let limits = &normal.limits;
    assert_eq!((limits.each_user.running_jobs, limits.together.running_jobs), (Some(2), Some(5)));
    says(&mut page, "modify qos normal set preemptmode=suspend,gang", " Modified qos...\n  normal\n");
    assert!(page.classes.iter().any(|class| class.name == "normal" && class.suspends_preempted));
    let changes =
        says(&mut page, "modify qos normal set preemptmode=cancel rawusage=0", " Modified qos...\n  normal\n");
    assert_eq!(changes.last(), Some(&AccountChange::ClassUse { name: "normal".into() }));
    let modes = page
        .classes
        .iter()
        .find(|class| class.name == "normal")
        .map(|class| (class.cancels_preempted, class.suspends_preempted));
    assert_eq!(modes, Some((true, false)));
    says(&mut page, "delete qos low,high", " Deleting QOS(s)...\n  high\n  low\n");
    says(&mut page, "delete qos low", " Nothing deleted\n");
    fails(&mut page, "add qos x flags=NoReserve", " Unknown QOS flag used in:\n  'NoReserve'");
}

#[test]
fn deleting_takes_what_hangs_on_it() {
    let mut page = page();
    let error = " Error with request: You can not remove the default account of a user\n  \
                 C = alpha      A = test       U = ann      \n Please either remove the accounts listed above from list \
                 and resubmit,\n or change these users' default accounts to remove the account(s).\n Changes Discarded";
    fails(&mut page, "delete account test", error);
    let said = " Deleting user associations...\n  C = alpha      A = abc        U = ann      \n";
    says(&mut page, "delete user ann account=abc", said);
    // Her only account goes, and she goes with it.
    says(&mut page, "delete account science", " Deleting accounts...\n  science\n");
    let names: Vec<&str> = page.accounts.iter().map(|account| account.name.as_str()).collect();
    assert_eq!((names, page.users.len(), page.associations.len()), (vec!["abc"], 0, 1));
    fails(&mut page, "delete account", " No conditions given to remove, not executing.");
    fails(
        &mut page,
        "delete account root",
        " You are not allowed to remove the root account.\n Use remove cluster instead.",
    );
    let abc = AccountSpec {
        name: "abc".into(),
        description: "letters".into(),
        organisation: "school".into(),
        ..AccountSpec::default()
    };
    assert_eq!(page.accounts, [abc]);
    assert_eq!(
        page.classes,
        [ClassSpec { name: "high".into(), description: "high".into(), priority: 50, ..ClassSpec::default() }]
    );
}

/// SL-C-39, SL-L-04: the core's limits of associations and classes are named in Slurm's words.
#[test]
fn limits_of_associations_and_classes_have_slurms_words() {
    let cases = [
        ("2 running jobs of each user in association test/ann", "AssocMaxJobsLimit"),
        ("2 jobs of each user in association test/ann", "AssocMaxSubmitJobLimit"),
        ("2 running jobs of all in association test", "AssocGrpJobsLimit"),
        ("2 jobs of all in association test", "AssocGrpSubmitJobsLimit"),
        ("8 cores of all in association test", "AssocGrpCpuLimit"),
        ("8 nodes of all in association test", "AssocGrpNodeLimit"),
        ("8 bytes of memory of all in association test", "AssocGrpMemLimit"),
        ("8 cores of each job in association test/ann", "AssocMaxCpuPerJobLimit"),
        ("60 seconds of walltime of each job in association test/ann", "AssocMaxWallDurationPerJobLimit"),
        ("1 running jobs of each user in class high", "QOSMaxJobsPerUserLimit"),
        ("1 jobs of each user in class high", "QOSMaxSubmitJobPerUserLimit"),
        ("9 running jobs of all in class high", "QOSGrpJobsLimit"),
        ("9 cores of all in class high", "QOSGrpCpuLimit"),
        ("9 cores of each user in class high", "QOSMaxCpuPerUserLimit"),
        ("9 nodes of each user in class high", "QOSMaxNodePerUserLimit"),
        ("9 running jobs of each account in class high", "MaxJobsPerAccount"),
        ("9 jobs of each account in class high", "MaxSubmitJobsPerAccount"),
        ("9 cores of each account in class high", "MaxCpuPerAccount"),
        ("9 nodes of each account in class high", "MaxNodePerAccount"),
        ("9 bytes of memory of each account in class high", "MaxMemoryPerAccount"),
        ("9 cores of each job in class high", "QOSMaxCpuPerJobLimit"),
        ("9 nodes of each job in class high", "QOSMaxNodePerJobLimit"),
    ];
    for (text, word) in cases {
        let view = ReasonView { code: ReasonWord::Limit, text: format!("limit reached: {text}"), job: None };
        assert_eq!(waiting_reason(Some(&view), Holds::default(), None), word);
        assert_eq!(refused_limit(&format!("job 2 of the submission: limit reached: {text}")), Some(word));
    }
    assert_eq!(refused_limit("queue `debug` takes at most 3 jobs at a time"), None);
    assert_eq!(refused_limit("limit reached: something else"), None);
}

/// SL-L-07: the level of administrators is in the settings of the cluster, and is given with the user or later.
#[test]
fn users_get_a_level_of_administrators() {
    let mut page = empty();
    says(
        &mut page,
        "add account test",
        " Adding Account(s)\n  test\n Settings\n  Description     = Account Name\n  Organization    = Parent/Account Name\n Associations\n  A = test       C = alpha     \n",
    );
    let added = after(&mut page, "add user ada account=test adminlevel=operator");
    assert!(added.said.contains(" Settings =\n  Admin Level     = Operator\n"), "{}", added.said);
    assert_eq!(added.levels, [("ada".to_owned(), AdminLevel::Operator)]);
    assert_eq!(after(&mut page, "add user bob account=test adminlevel=none").levels, []);
    let changed = after(&mut page, "modify user where name=ada,bob set adminlevel=Admin");
    let both = [("ada".to_owned(), AdminLevel::Administrator), ("bob".to_owned(), AdminLevel::Administrator)];
    assert_eq!((changed.said.as_str(), changed.levels), (" Modified users...\n  ada\n  bob\n", both.to_vec()));
    assert_eq!(changed.changes, [], "the settings are not those of accounts");
    fails(
        &mut page,
        "modify user ada set adminlevel=king",
        " Invalid admin level: king\n Use None, Operator or Administrator",
    );
    let nobody = after(&mut page, "modify user where name=eve set adminlevel=operator");
    assert_eq!((nobody.said.as_str(), nobody.levels), (" Nothing modified\n", Vec::new()));
}

/// SL-L-02: there is one cluster, which exists; what would need another is refused with the reason.
#[test]
fn the_cluster_is_there_already() {
    let mut page = empty();
    fails(&mut page, "add cluster alpha", " This cluster alpha already exists.  Not adding.");
    let errors = after(&mut page, "add cluster name=beta,alpha").errors;
    assert_eq!(errors.len(), 2);
    assert!(errors[0].contains("Cluster beta was not added: accounts belong to one cluster, alpha"), "{errors:?}");
    fails(&mut page, "add cluster", " Need name of cluster to add.");
    let configured = " There is one cluster, which is configured by muster; nothing was changed.";
    fails(&mut page, "delete cluster alpha", configured);
    fails(&mut page, "modify cluster alpha set fairshare=2", configured);
}
