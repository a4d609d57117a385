//! Accounts, associations and service classes: how they change, and which jobs they admit.

use crate::support::*;
use muster_domain::{
    accounts::{Amount, Counter},
    orders::{OrderSeed, reconcile},
};
use muster_schemas::{
    JobId, PartId,
    accounts::{
        AccountChange, AccountSettings, AccountSpec, AssociationKey, AssociationSpec, Bounds, Budget, ClassSpec,
        JobBounds, UseLimits, UserSpec,
    },
    cluster::ClusterConfig,
    command::{Command, JobFilter, JobSelection, Refusal, RefusalCode, Reply},
    event::{Actor, Event, JobChange, StopReason},
    job::{ExitStatus, Holds, JobSpec, JobType, Outcome},
    plan::{ProposedPlan, ProposedPreemption},
    resources::Placement,
};

const LIMITS: AccountSettings = AccountSettings {
    associations: true,
    limits: true,
    classes: true,
    refuses_hopeless: false,
    queue_classes: std::collections::BTreeMap::new(),
    usage_half_life_seconds: 0,
};

fn account(name: &str, parent: Option<&str>) -> AccountChange {
    let spec = AccountSpec { name: name.into(), parent: parent.map(Into::into), ..AccountSpec::default() };
    AccountChange::Account { before: None, after: Some(spec) }
}

fn known(name: &str, default_account: &str) -> AccountChange {
    let spec = UserSpec { name: name.into(), default_account: default_account.into() };
    AccountChange::User { before: None, after: Some(spec) }
}

fn of(account: &str, user: Option<&str>) -> AssociationKey {
    AssociationKey { account: account.into(), user: user.map(Into::into), queue: None }
}

fn association(account: &str, user: Option<&str>, limits: UseLimits) -> AssociationSpec {
    AssociationSpec { of: of(account, user), limits, ..AssociationSpec::default() }
}

fn added(spec: AssociationSpec) -> AccountChange {
    AccountChange::Association { before: None, after: Some(spec) }
}

fn class(spec: ClassSpec) -> AccountChange {
    AccountChange::Class { before: None, after: Some(spec) }
}

/// All users of account `optics` may use these classes.
fn opened(classes: &[&str]) -> AccountChange {
    let classes = classes.iter().map(|class| (*class).to_owned()).collect();
    added(AssociationSpec { of: of("optics", None), classes, ..AssociationSpec::default() })
}

fn change(changes: Vec<AccountChange>) -> Command {
    Command::ChangeAccounts { changes }
}

/// Account `science` with `optics` below it, and account `abc`; `ada` is in optics (her default) and abc.
fn cluster(settings: AccountSettings, of_science: UseLimits, of_ada: UseLimits) -> Cluster {
    let mut cluster = Cluster::with(ClusterConfig { accounts: Some(settings), ..config() });
    cluster.ok(
        &user("oper"),
        change(vec![
            account("science", None),
            account("optics", Some("science")),
            account("abc", None),
            known("ada", "optics"),
            known("bob", "optics"),
            added(association("science", None, of_science)),
            added(association("optics", Some("ada"), of_ada)),
            added(association("abc", Some("ada"), UseLimits::default())),
            added(association("optics", Some("bob"), UseLimits::default())),
            class(ClassSpec { name: "normal".into(), ..ClassSpec::default() }),
        ]),
    );
    cluster
}

fn jobs(most: u64) -> UseLimits {
    UseLimits { each_user: Bounds { jobs: Some(most), ..Bounds::default() }, ..UseLimits::default() }
}

fn of_parts(count: usize) -> JobSpec {
    let mut spec = job(1, 1);
    let other = spec.components[0].clone();
    spec.components.resize(count, other);
    spec
}

fn submit(cluster: &mut Cluster, name: &str, spec: JobSpec) -> Result<JobId, Refusal> {
    match cluster.run(&user(name), Command::Submit { jobs: vec![spec] })?.1 {
        Reply::Submitted(ids) => Ok(ids[0]),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refusal(cluster: &mut Cluster, name: &str, spec: JobSpec) -> String {
    let before = cluster.state.digest();
    let refusal = submit(cluster, name, spec).expect_err("it is more than may be");
    assert_eq!(refusal.code, RefusalCode::LimitReached, "{refusal}");
    assert_eq!(cluster.state.digest(), before, "a refusal changes nothing");
    refusal.message
}

fn on(account: &str, mut spec: JobSpec) -> JobSpec {
    spec.components.iter_mut().for_each(|component| component.account = Some(account.into()));
    spec
}

fn in_class(class: &str, mut spec: JobSpec) -> JobSpec {
    spec.components.iter_mut().for_each(|component| component.class = Some(class.into()));
    spec
}

/// SL-L-01, SL-L-03, SL-L-04: three components are three jobs, even next to an existing job.
#[test]
fn components_count_singly_towards_what_may_be_submitted() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), jobs(2));
    let text = "limit reached: 2 jobs of each user in association optics/ada";
    assert_eq!(refusal(&mut cluster, "ada", of_parts(3)), text);
    let first = submit(&mut cluster, "ada", job(1, 1)).unwrap();
    assert_eq!(refusal(&mut cluster, "ada", of_parts(2)), text);
    let second = submit(&mut cluster, "ada", job(1, 1)).unwrap();
    assert_eq!(refusal(&mut cluster, "ada", job(1, 1)), text);
    // Other accounts and other users have limits of their own.
    submit(&mut cluster, "ada", on("abc", of_parts(3))).unwrap();
    submit(&mut cluster, "bob", of_parts(3)).unwrap();
    // Finished jobs no longer count.
    cluster.run_through(first, 0);
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[second]) });
    submit(&mut cluster, "ada", of_parts(2)).unwrap();
    cluster.assert_replays();
}

/// SL-L-01, SL-M-02: a component that was ended alone does not count as a job until all components run again.
#[test]
fn a_component_that_was_ended_alone_counts_no_more() {
    let mut settings = config();
    settings.queues[0].max_jobs = Some(3);
    let mut cluster = cluster(LIMITS, UseLimits::default(), jobs(2));
    cluster.ok(&root(), Command::Configure { change: Box::new(settings.into()), keep_unnamed: true });
    let id = submit(&mut cluster, "ada", of_parts(2)).unwrap();
    let components = ["node1", "node2"].iter().flat_map(|node| cluster.placement(&[node], 1).components).collect();
    let run = cluster.state.next_run();
    let start =
        muster_schemas::command::Start { job: id, placement: muster_schemas::resources::Placement { components } };
    cluster.ok(&muster_schemas::event::Actor::Planner, commit(vec![start]));
    ["node1", "node2"]
        .iter()
        .for_each(|node| drop(cluster.ok(&executor(node), Command::NodeStarted { part: PartId::new(run, 0) })));
    cluster.ok(&user("ada"), Command::Cancel { jobs: JobSelection::Component { job: id, component: 1 } });
    let text = "limit reached: 2 jobs of each user in association optics/ada";
    assert_eq!(refusal(&mut cluster, "ada", job(1, 1)), text, "it is being ended");
    cluster.end(run, "node2", ExitStatus::Signal(15));
    submit(&mut cluster, "ada", job(1, 1)).unwrap();
    assert_eq!(refusal(&mut cluster, "ada", job(1, 1)), text);
    // The queue has room for one more too, but not once the job has all its components again.
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[id]), hold: false, delay_seconds: 0 });
    cluster.end(run, "node1", ExitStatus::Signal(15));
    assert!(refusal(&mut cluster, "bob", job(1, 1)).contains("takes at most 3 jobs"));
    cluster.assert_replays();
}

/// SL-L-03: jobs of one command count together, and if one is refused none is accepted.
#[test]
fn jobs_of_one_command_count_together() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), jobs(2));
    let three = Command::Submit { jobs: vec![job(1, 1), job(1, 1), job(1, 1)] };
    cluster.refused(&user("ada"), three, RefusalCode::LimitReached, "job 3 of the submission: limit reached: 2 jobs");
    assert_eq!(cluster.state.unfinished_jobs(), 0);
    let with_array = Command::Submit { jobs: vec![array("0-1".parse().unwrap(), None), job(1, 1)] };
    cluster.refused(&user("ada"), with_array, RefusalCode::LimitReached, "job 2 of the submission: limit reached: 2");
    assert_eq!(cluster.state.unfinished_jobs(), 0);
}

/// SL-L-01: tasks of an array count individually, waiting or running.
#[test]
fn tasks_of_arrays_count_singly() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), jobs(3));
    let text = "limit reached: 3 jobs of each user in association optics/ada";
    assert_eq!(refusal(&mut cluster, "ada", array("0-3".parse().unwrap(), None)), text);
    let id = submit(&mut cluster, "ada", array("0-2".parse().unwrap(), None)).unwrap();
    assert_eq!(refusal(&mut cluster, "ada", job(1, 1)), text);
    let run = cluster.start(JobId::task(id.number, 0), &["node1"], 1);
    assert_eq!(refusal(&mut cluster, "ada", job(1, 1)), text);
    cluster.end(run, "node1", ExitStatus::Code(0));
    submit(&mut cluster, "ada", job(1, 1)).unwrap();
    assert_eq!(refusal(&mut cluster, "ada", job(1, 1)), text);
    cluster.assert_replays();
}

/// SL-L-02: an account's limit on all together covers the accounts below it and all their users.
#[test]
fn limits_of_an_account_are_of_all_below_it() {
    let together = UseLimits { together: Bounds { jobs: Some(3), ..Bounds::default() }, ..UseLimits::default() };
    let mut cluster = cluster(LIMITS, together, UseLimits::default());
    submit(&mut cluster, "ada", of_parts(2)).unwrap();
    submit(&mut cluster, "bob", job(1, 1)).unwrap();
    let text = "limit reached: 3 jobs of all in association science";
    assert_eq!(refusal(&mut cluster, "bob", job(1, 1)), text);
    submit(&mut cluster, "ada", on("abc", job(1, 1))).unwrap();
}

/// A limit on each user is set once for the account, and overridden for a user with a different limit.
#[test]
fn users_have_the_limits_of_their_account_unless_they_have_their_own() {
    let mut cluster = cluster(LIMITS, jobs(1), jobs(2));
    submit(&mut cluster, "bob", job(1, 1)).unwrap();
    let text = "limit reached: 1 jobs of each user in association optics/bob";
    assert_eq!(refusal(&mut cluster, "bob", job(1, 1)), text);
    submit(&mut cluster, "ada", of_parts(2)).unwrap();
    let text = "limit reached: 2 jobs of each user in association optics/ada";
    assert_eq!(refusal(&mut cluster, "ada", job(1, 1)), text);
}

/// SL-L-02: the class of the queue, the component's class and the association are three sets of limits; a limit of a
/// class overrides the association's limit of the same kind.
#[test]
fn three_sets_of_limits_hold() {
    let settings = AccountSettings { queue_classes: [("other".to_owned(), "narrow".to_owned())].into(), ..LIMITS };
    let mut cluster = cluster(settings, UseLimits::default(), jobs(4));
    let narrow = UseLimits { together: Bounds { jobs: Some(1), ..Bounds::default() }, ..UseLimits::default() };
    let wide = jobs(3);
    cluster.ok(
        &user("oper"),
        change(vec![
            class(ClassSpec { name: "narrow".into(), limits: narrow, ..ClassSpec::default() }),
            class(ClassSpec { name: "wide".into(), limits: wide, ..ClassSpec::default() }),
            opened(&["normal", "wide"]),
        ]),
    );
    let in_other = |mut spec: JobSpec| {
        spec.components[0].queue = Some("other".into());
        spec
    };
    // The queue's class; only the first component is in that queue.
    submit(&mut cluster, "ada", in_other(of_parts(2))).unwrap();
    let text = "limit reached: 1 jobs of all in class narrow";
    assert_eq!(refusal(&mut cluster, "bob", in_other(job(1, 1))), text);
    // The association.
    submit(&mut cluster, "ada", of_parts(2)).unwrap();
    let text = "limit reached: 4 jobs of each user in association optics/ada";
    assert_eq!(refusal(&mut cluster, "ada", job(1, 1)), text);
    // The component's own class overrides the association.
    submit(&mut cluster, "ada", in_class("wide", of_parts(3))).unwrap();
    let text = "limit reached: 3 jobs of each user in class wide";
    assert_eq!(refusal(&mut cluster, "ada", in_class("wide", job(1, 1))), text);
    cluster.assert_replays();
}

/// SL-L-02: if two classes limit the same, the queue's counts, whether it is stricter or not.
#[test]
fn the_class_of_the_queue_goes_before_that_of_the_component() {
    for (of_queue, own) in [(1, 3), (3, 1)] {
        let settings = AccountSettings { queue_classes: [("other".to_owned(), "first".to_owned())].into(), ..LIMITS };
        let mut cluster = cluster(settings, UseLimits::default(), UseLimits::default());
        let limited =
            |name: &str, most| class(ClassSpec { name: name.into(), limits: jobs(most), ..Default::default() });
        cluster
            .ok(&user("oper"), change(vec![limited("first", of_queue), limited("second", own), opened(&["second"])]));
        let spec = |count| {
            let mut spec = in_class("second", of_parts(count));
            spec.components.iter_mut().for_each(|component| component.queue = Some("other".into()));
            spec
        };
        submit(&mut cluster, "ada", spec(of_queue as usize)).unwrap();
        let text = format!("limit reached: {of_queue} jobs of each user in class first");
        assert_eq!(refusal(&mut cluster, "ada", spec(1)), text);
    }
}

/// SL-L-05, SL-S-20: a job that could never start is refused at once if the site wants it so, and otherwise waits.
#[test]
fn hopeless_jobs_are_refused_where_the_site_says_so() {
    let limits = UseLimits {
        together: Bounds { cores: Some(4), nodes: Some(3), ..Bounds::default() },
        each_user: Bounds { running_jobs: Some(2), ..Bounds::default() },
        each_job: JobBounds { cores: Some(3), walltime_seconds: Some(3600), ..JobBounds::default() },
        ..UseLimits::default()
    };
    let strict = AccountSettings { refuses_hopeless: true, ..LIMITS };
    let mut strict = cluster(strict, UseLimits::default(), limits.clone());
    let mut patient = cluster(LIMITS, UseLimits::default(), limits);
    let lasting = |seconds| {
        let mut spec = job(1, 1);
        spec.components[0].alternatives[0].walltime_seconds = Some(seconds);
        spec
    };
    let wide = |parts: &[u32]| {
        let components = parts.iter().flat_map(|cores| job(1, *cores).components).collect();
        JobSpec { components, ..JobSpec::default() }
    };
    let cases = [
        (of_parts(3), "2 running jobs of each user"),
        (wide(&[4]), "3 cores of each job"),
        (wide(&[3, 2]), "4 cores of all"),
        (lasting(3601), "3600 seconds of walltime of each job"),
    ];
    for (spec, text) in cases {
        let text = format!("limit reached: {text} in association optics/ada");
        assert_eq!(refusal(&mut strict, "ada", spec.clone()), text);
        submit(&mut patient, "ada", spec).unwrap();
    }
    for spec in [of_parts(2), wide(&[3, 1]), lasting(3600), array("0-9".parse().unwrap(), None)] {
        submit(&mut strict, "ada", spec).unwrap();
    }
    // One alternative that is short enough is sufficient.
    let mut ways = lasting(3600);
    ways.components[0].alternatives.extend(lasting(7200).components.remove(0).alternatives);
    submit(&mut strict, "ada", ways).unwrap();
    // A job without a walltime gets the longest allowed.
    let plain = submit(&mut strict, "ada", job(1, 1)).unwrap();
    let job = strict.state.job(plain).unwrap();
    assert_eq!(job.lead().shape.alternatives[0].walltime_seconds, Some(3600));
}

/// A class can refuse hopeless jobs although the site lets them wait.
#[test]
fn a_class_can_refuse_what_is_hopeless() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    let limits = UseLimits { each_job: JobBounds { nodes: Some(1), ..JobBounds::default() }, ..UseLimits::default() };
    let spec = ClassSpec { name: "small".into(), limits, refuses_hopeless: true, ..ClassSpec::default() };
    cluster.ok(&user("oper"), change(vec![class(spec), opened(&["small"])]));
    let text = "limit reached: 1 nodes of each job in class small";
    assert_eq!(refusal(&mut cluster, "ada", in_class("small", job(2, 1))), text);
    submit(&mut cluster, "ada", in_class("small", job(1, 1))).unwrap();
}

/// SL-L-07: the whole job is refused if one component names something that does not exist or is not for its owner.
#[test]
fn unknown_accounts_and_classes_are_refused_where_enforced() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    let mut spec = of_parts(2);
    spec.components[1].account = Some("nope".into());
    let submit_of = |spec| Command::Submit { jobs: vec![spec] };
    let text = "account: user ada has no association with `nope` in queue `default`";
    cluster.refused(&user("ada"), submit_of(spec), RefusalCode::NotFound, text);
    // The account exists, and bob is not in it; carl is unknown.
    cluster.refused(&user("bob"), submit_of(on("abc", job(1, 1))), RefusalCode::NotFound, "account: user bob has no");
    cluster.refused(&user("carl"), submit_of(job(1, 1)), RefusalCode::NotFound, "account: none is given");
    let spec = in_class("nope", job(1, 1));
    cluster.refused(&user("ada"), submit_of(spec), RefusalCode::NotFound, "class: `nope` does not exist");
    assert_eq!(cluster.state.unfinished_jobs(), 0);
    // The default account and class of a component that names none.
    let id = submit(&mut cluster, "ada", job(1, 1)).unwrap();
    let lead = cluster.state.job(id).unwrap().lead();
    assert_eq!((lead.account.as_deref(), lead.class().map(|class| &**class)), (Some("optics"), Some("normal")));
}

/// The classes that an association may use, and its default class.
#[test]
fn associations_name_the_classes_that_they_may_use() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    let before = association("optics", Some("ada"), UseLimits::default());
    let after = AssociationSpec { classes: vec!["high".into()], default_class: Some("high".into()), ..before.clone() };
    let high = ClassSpec { name: "high".into(), priority: 100, ..ClassSpec::default() };
    let changed = AccountChange::Association { before: Some(before), after: Some(after) };
    cluster.ok(&user("oper"), change(vec![class(high), changed]));
    let normal = Command::Submit { jobs: vec![in_class("normal", job(1, 1))] };
    cluster.refused(&user("ada"), normal, RefusalCode::PermissionDenied, "class: `normal` is not one that ada may use");
    let id = submit(&mut cluster, "ada", job(1, 1)).unwrap();
    let job_of = |cluster: &Cluster| cluster.state.job(id).unwrap().clone();
    assert_eq!(job_of(&cluster).lead().class().map(|class| &**class), Some("high"));
    assert_eq!(cluster.state.priority_of(&job_of(&cluster)), 100);
    let to = |class: &str| Command::ChangeClass { jobs: ids(&[id]), class: class.into() };
    cluster.refused(&user("ada"), to("normal"), RefusalCode::PermissionDenied, "class: `normal`");
    cluster.refused(&user("bob"), to("high"), RefusalCode::PermissionDenied, "belongs to ada");
    assert_eq!(cluster.ok(&user("ada"), to("high")).len(), 1);
}

/// SL-L-07: without any list, a user with an association may use `normal`; a list of an account counts for the accounts
/// below it; a user with only one class gets that; operators may use all.
#[test]
fn who_has_no_list_may_use_the_usual_class_alone() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    cluster.ok(&user("oper"), change(vec![class(ClassSpec { name: "high".into(), ..ClassSpec::default() })]));
    let to = |class: &str| Command::Submit { jobs: vec![in_class(class, job(1, 1))] };
    let text = "class: `high` is not one that ada may use";
    cluster.refused(&user("ada"), to("high"), RefusalCode::PermissionDenied, text);
    cluster.ok(&user("ada"), to("normal"));
    let before = association("science", None, UseLimits::default());
    let after = AssociationSpec { classes: vec!["high".into()], ..before.clone() };
    let listed = AccountChange::Association { before: Some(before.clone()), after: Some(after) };
    cluster.ok(&user("oper"), change(vec![listed]));
    cluster.refused(&user("ada"), to("normal"), RefusalCode::PermissionDenied, "class: `normal` is not one");
    let id = submit(&mut cluster, "ada", job(1, 1)).unwrap();
    assert_eq!(cluster.state.job(id).unwrap().lead().class().map(|class| &**class), Some("high"));
    cluster.ok(&user("oper"), Command::ChangeClass { jobs: ids(&[id]), class: "normal".into() });
    // A default class that may not be used is refused.
    let ada = association("optics", Some("ada"), UseLimits::default());
    let after = AssociationSpec { default_class: Some("normal".into()), ..ada.clone() };
    let changed = AccountChange::Association { before: Some(ada), after: Some(after) };
    let text = "its default class `normal` is not one that it may use";
    cluster.refused(&user("oper"), change(vec![changed]), RefusalCode::Invalid, text);
    cluster.assert_replays();
}

/// SL-L-07: among a user's associations in an account, the one for the queue comes first; without a list of classes,
/// the account's counts.
#[test]
fn the_nearest_association_that_names_classes_says_which_may_be_used() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    let high = ClassSpec { name: "high".into(), ..ClassSpec::default() };
    let with = |of: AssociationKey, classes: &[&str]| {
        let classes = classes.iter().map(|class| (*class).to_owned()).collect();
        added(AssociationSpec { of, classes, ..AssociationSpec::default() })
    };
    let in_other = AssociationKey { queue: Some("other".into()), ..of("optics", Some("ada")) };
    let changes = vec![class(high), with(of("optics", None), &["normal"]), with(in_other, &["high"])];
    cluster.ok(&user("oper"), change(changes));
    let to = |queue: &str, class: &str| {
        let mut spec = in_class(class, job(1, 1));
        spec.components[0].queue = Some(queue.into());
        Command::Submit { jobs: vec![spec] }
    };
    for (queue, may_use, may_not) in [("default", "normal", "high"), ("other", "high", "normal")] {
        let text = format!("class: `{may_not}` is not one that ada may use");
        cluster.refused(&user("ada"), to(queue, may_not), RefusalCode::PermissionDenied, &text);
        cluster.ok(&user("ada"), to(queue, may_use));
    }
}

/// SL-C-36: the class of one waiting component can be changed, and the component counts there from then on.
#[test]
fn a_component_that_waits_can_have_another_class() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    cluster.ok(
        &user("oper"),
        change(vec![
            class(ClassSpec { name: "one".into(), limits: jobs(1), ..ClassSpec::default() }),
            opened(&["normal", "one"]),
        ]),
    );
    let id = submit(&mut cluster, "ada", of_parts(2)).unwrap();
    let jobs = JobSelection::Component { job: id, component: 1 };
    cluster.ok(&user("ada"), Command::ChangeClass { jobs, class: "one".into() });
    let classes: Vec<_> = cluster.state.job(id).unwrap().components.iter().map(|one| one.class().cloned()).collect();
    assert_eq!(classes, [Some("normal".into()), Some("one".into())]);
    assert!(refusal(&mut cluster, "ada", in_class("one", job(1, 1))).ends_with("1 jobs of each user in class one"));
    cluster.assert_replays();
    let components = ["node1", "node2"].iter().flat_map(|node| cluster.placement(&[node], 1).components).collect();
    let start =
        muster_schemas::command::Start { job: id, placement: muster_schemas::resources::Placement { components } };
    cluster.ok(&muster_schemas::event::Actor::Planner, commit(vec![start]));
    let again = Command::ChangeClass { jobs: ids(&[id]), class: "one".into() };
    cluster.refused(&user("ada"), again, RefusalCode::PermissionDenied, "class of a job that has started");
}

fn to_account(jobs: JobSelection, account: &str) -> Command {
    Command::Modify { jobs, change: JobChange { account: Some(account.into()), ..JobChange::default() } }
}

fn to_queue(jobs: JobSelection, queue: &str) -> Command {
    Command::Modify { jobs, change: JobChange { queue: Some(queue.into()), ..JobChange::default() } }
}

/// SL-L-01, SL-L-03: jobs moved into another account are checked against its limits like new ones, all jobs of a
/// command together.
#[test]
fn another_account_takes_no_more_jobs_than_may_be() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), jobs(2));
    let all: Vec<JobId> = (0..3).map(|_| submit(&mut cluster, "ada", on("abc", job(1, 1))).unwrap()).collect();
    let text = "limit reached: 2 jobs of each user in association optics/ada";
    cluster.refused(&user("ada"), to_account(ids(&all), "optics"), RefusalCode::LimitReached, text);
    // Of jobs selected by a filter, as many move as there is room for.
    let matching = to_account(JobSelection::Matching(JobFilter::default()), "optics");
    let (_, reply) = cluster.run(&user("ada"), matching).unwrap();
    assert_eq!(reply, Reply::Jobs(all[..2].to_vec()));
    assert_eq!(refusal(&mut cluster, "ada", job(1, 1)), text);
    // A job that is already there comes no nearer to the limit, and a job that leaves makes room.
    cluster.ok(&user("ada"), to_account(ids(&all[..2]), "optics"));
    cluster.ok(&user("ada"), to_account(ids(&all[..1]), "abc"));
    cluster.ok(&user("ada"), to_account(ids(&all[2..]), "optics"));
    let wide = submit(&mut cluster, "ada", on("abc", of_parts(2))).unwrap();
    let part = JobSelection::Component { job: wide, component: 1 };
    cluster.refused(&user("ada"), to_account(part, "optics"), RefusalCode::LimitReached, text);
    cluster.assert_replays();
}

/// SL-L-03, SL-C-36: the same holds for another class.
#[test]
fn another_class_takes_no_more_jobs_than_may_be() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    let one = ClassSpec { name: "one".into(), limits: jobs(1), ..ClassSpec::default() };
    cluster.ok(&user("oper"), change(vec![class(one), opened(&["normal", "one"])]));
    let (first, second) =
        (submit(&mut cluster, "ada", of_parts(2)).unwrap(), submit(&mut cluster, "ada", job(1, 1)).unwrap());
    let to = |jobs| Command::ChangeClass { jobs, class: "one".into() };
    let text = "limit reached: 1 jobs of each user in class one";
    cluster.refused(&user("ada"), to(ids(&[first])), RefusalCode::LimitReached, text);
    cluster.ok(&user("ada"), to(JobSelection::Component { job: first, component: 1 }));
    cluster.refused(&user("ada"), to(ids(&[second])), RefusalCode::LimitReached, text);
    cluster.assert_replays();
}

/// SL-L-07: a job moves into another account or queue only if its owner may use its class there.
#[test]
fn a_class_goes_along_only_where_it_may_be_used() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    let before = association("abc", Some("ada"), UseLimits::default());
    let after = AssociationSpec { classes: vec!["normal".into()], ..before.clone() };
    let high = ClassSpec { name: "high".into(), priority: 100, ..ClassSpec::default() };
    let changed = AccountChange::Association { before: Some(before), after: Some(after) };
    cluster.ok(&user("oper"), change(vec![class(high), changed, opened(&["high", "normal"])]));
    let id = submit(&mut cluster, "ada", in_class("high", job(1, 1))).unwrap();
    let text = "class: `high` is not one that ada may use";
    cluster.refused(&user("ada"), to_account(ids(&[id]), "abc"), RefusalCode::PermissionDenied, text);
    cluster.ok(&user("ada"), Command::ChangeClass { jobs: ids(&[id]), class: "normal".into() });
    cluster.ok(&user("ada"), to_account(ids(&[id]), "abc"));
}

/// SL-L-01: a full queue takes no job from another queue, and counts each component of jobs with several.
#[test]
fn a_full_queue_takes_no_job_from_another() {
    let mut settings = config();
    settings.queues[1].max_jobs = Some(2);
    let mut cluster = Cluster::with(settings);
    let all: Vec<JobId> = (0..3).map(|_| submit(&mut cluster, "ada", job(1, 1)).unwrap()).collect();
    let text = "queue `other` takes at most 2 jobs";
    cluster.refused(&user("ada"), to_queue(ids(&all), "other"), RefusalCode::LimitReached, text);
    let wide = submit(&mut cluster, "ada", of_parts(2)).unwrap();
    cluster.ok(&user("ada"), to_queue(JobSelection::Component { job: wide, component: 1 }, "other"));
    cluster.ok(&user("ada"), to_queue(ids(&all[..1]), "other"));
    cluster.ok(&user("ada"), to_queue(ids(&all[..1]), "other"));
    cluster.refused(&user("ada"), to_queue(ids(&[wide]), "other"), RefusalCode::LimitReached, text);
    cluster.refused(&user("ada"), to_queue(ids(&all[1..2]), "other"), RefusalCode::LimitReached, text);
    cluster.assert_replays();
}

/// Two concurrent changes of one record do not undo each other; a command is all or nothing.
#[test]
fn changes_are_made_of_what_is() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    let before = association("optics", Some("bob"), UseLimits::default());
    let to = |limits| AccountChange::Association {
        before: Some(before.clone()),
        after: Some(association("optics", Some("bob"), limits)),
    };
    cluster.ok(&user("oper"), change(vec![to(jobs(1))]));
    let both = change(vec![account("late", None), to(jobs(2))]);
    cluster.refused(&user("oper"), both, RefusalCode::Conflict, "association `optics/bob` has been changed meanwhile");
    assert!(!cluster.state.accounts().accounts().any(|spec| spec.name == "late"));
    let again = change(vec![account("abc", None)]);
    cluster.refused(&user("oper"), again, RefusalCode::Conflict, "account `abc` exists already");
    let unnamed = change(vec![account("x", Some("nowhere"))]);
    cluster.refused(&user("oper"), unnamed, RefusalCode::NotFound, "account `nowhere` does not exist");
    cluster.refused(&user("ada"), change(Vec::new()), RefusalCode::PermissionDenied, "operators");
}

/// A limit on the walltime of each job must be a valid walltime: jobs without one get it.
#[test]
fn a_limit_on_walltime_is_a_walltime() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    for seconds in [0, u64::MAX] {
        let each_job = JobBounds { walltime_seconds: Some(seconds), ..JobBounds::default() };
        let limits = UseLimits { each_job, ..UseLimits::default() };
        let wide = change(vec![added(association("abc", Some("bob"), limits.clone()))]);
        cluster.refused(&user("oper"), wide, RefusalCode::Invalid, "walltime");
        let wide = change(vec![class(ClassSpec { name: "wide".into(), limits, ..ClassSpec::default() })]);
        cluster.refused(&user("oper"), wide, RefusalCode::Invalid, "walltime");
    }
}

/// Records that are in use stay: an account with associations, an association with jobs, a class that is named.
#[test]
fn what_is_used_is_not_removed() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    let id = submit(&mut cluster, "ada", on("abc", job(1, 1))).unwrap();
    let gone = AccountChange::Account {
        before: Some(AccountSpec { name: "abc".into(), ..AccountSpec::default() }),
        after: None,
    };
    let part =
        AccountChange::Association { before: Some(association("abc", Some("ada"), UseLimits::default())), after: None };
    cluster.refused(&user("oper"), change(vec![gone.clone()]), RefusalCode::Conflict, "it has associations");
    let both = change(vec![part, gone]);
    cluster.refused(&user("oper"), both.clone(), RefusalCode::Conflict, "job 1 is in it");
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    cluster.ok(&user("oper"), both);
    assert!(!cluster.state.accounts().accounts().any(|spec| spec.name == "abc"));
    cluster.assert_replays();
}

/// A site that enforces nothing takes any account and class, and counts nothing.
#[test]
fn nothing_is_enforced_unless_a_site_says_so() {
    let mut cluster = cluster(AccountSettings::default(), jobs(1), jobs(1));
    submit(&mut cluster, "ada", of_parts(3)).unwrap();
    submit(&mut cluster, "carl", in_class("nope", on("nope", job(1, 1)))).unwrap();
    // Once it does, existing jobs count.
    let on = ClusterConfig { accounts: Some(LIMITS), ..config() };
    let events = cluster.ok(&root(), Command::Configure { change: Box::new(on.into()), keep_unnamed: false });
    assert!(matches!(events.as_slice(), [Event::AccountSettingsChanged { .. }]), "{events:?}");
    assert!(refusal(&mut cluster, "ada", job(1, 1)).contains("1 jobs of each user"));
    cluster.assert_replays();
}

/// SL-L-01: components count individually towards the jobs in a queue, both existing and new ones.
#[test]
fn components_count_singly_towards_what_a_queue_takes() {
    let mut settings = config();
    settings.queues[0].max_jobs = Some(3);
    let mut cluster = Cluster::with(settings);
    let first = submit(&mut cluster, "ada", of_parts(2)).unwrap();
    assert!(refusal(&mut cluster, "bob", of_parts(2)).contains("takes at most 3 jobs"));
    submit(&mut cluster, "bob", job(1, 1)).unwrap();
    assert!(refusal(&mut cluster, "bob", job(1, 1)).contains("takes at most 3 jobs"));
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[first]) });
    submit(&mut cluster, "bob", of_parts(2)).unwrap();
    cluster.assert_replays();
}

/// `ann` coordinates `science`, and with it `optics`.
fn coordinated() -> Cluster {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    let before = AccountSpec { name: "science".into(), ..AccountSpec::default() };
    let after = AccountSpec { coordinators: vec!["ann".into()], ..before.clone() };
    cluster.ok(&user("oper"), change(vec![AccountChange::Account { before: Some(before), after: Some(after) }]));
    cluster
}

/// Coordinators change users, limits and accounts below theirs, and nothing else.
#[test]
fn coordinators_change_their_accounts_and_those_below() {
    let mut cluster = coordinated();
    let limited = |most| AccountChange::Association {
        before: Some(association("optics", Some("bob"), UseLimits::default())),
        after: Some(association("optics", Some("bob"), jobs(most))),
    };
    let lens = account("lenses", Some("optics"));
    let eve = [known("eve", "optics"), added(association("optics", Some("eve"), UseLimits::default()))];
    cluster.ok(&user("ann"), change(vec![lens, limited(3)]));
    cluster.ok(&user("ann"), change(eve.to_vec()));
    let whole = |account: &str| added(association(account, None, jobs(9)));
    cluster.ok(&user("ann"), change(vec![whole("lenses"), whole("optics")]));
    let named = |name: &str, parent: Option<&str>, coordinators: &[&str]| AccountSpec {
        name: name.into(),
        parent: parent.map(Into::into),
        coordinators: coordinators.iter().map(|name| (*name).to_owned()).collect(),
        ..AccountSpec::default()
    };
    let changed = |before, after| AccountChange::Account { before: Some(before), after: Some(after) };
    let more = changed(named("optics", Some("science"), &[]), named("optics", Some("science"), &["bob"]));
    cluster.ok(&user("ann"), change(vec![more]));
    cluster.ok(&user("bob"), change(vec![added(association("lenses", Some("bob"), UseLimits::default()))]));

    let own_limits = AccountChange::Association {
        before: Some(association("science", None, UseLimits::default())),
        after: Some(association("science", None, jobs(9))),
    };
    let foreign = added(association("abc", Some("bob"), UseLimits::default()));
    let moved = changed(named("lenses", Some("optics"), &[]), named("lenses", Some("abc"), &[]));
    let top = account("mine", None);
    let open = added(AssociationSpec {
        classes: vec!["high".into()],
        ..association("lenses", Some("ada"), UseLimits::default())
    });
    let made = class(ClassSpec { name: "high".into(), ..ClassSpec::default() });
    cluster.ok(&user("oper"), change(vec![made.clone()]));
    for (name, refused) in [
        ("ann", own_limits),
        ("ann", foreign),
        ("ann", moved),
        ("ann", top),
        ("ann", open),
        ("ann", class(ClassSpec { name: "mine".into(), ..ClassSpec::default() })),
        ("ada", added(association("lenses", Some("ada"), UseLimits::default()))),
        ("bob", account("more", Some("science"))),
    ] {
        let before = cluster.state.digest();
        let refusal = cluster.run(&user(name), change(vec![refused.clone()])).expect_err("not a coordinator's");
        assert_eq!(refusal.code, RefusalCode::PermissionDenied, "{name}: {refused:?}: {refusal}");
        assert_eq!(cluster.state.digest(), before, "a refusal changes nothing");
    }
}

/// Coordinators cancel and hold the jobs of their accounts, but change nothing that would run as its owner.
#[test]
fn coordinators_control_the_jobs_of_their_accounts() {
    let mut cluster = coordinated();
    let of_optics = submit(&mut cluster, "ada", job(1, 1)).unwrap();
    let of_abc = submit(&mut cluster, "ada", on("abc", job(1, 1))).unwrap();
    let hold = |job| Command::Hold {
        jobs: JobSelection::Ids(vec![job]),
        holds: Holds { user: true, ..Holds::default() },
        reason: String::new(),
    };
    let cancel = |job| Command::Cancel { jobs: JobSelection::Ids(vec![job]) };
    let named = |job| Command::Modify {
        jobs: JobSelection::Ids(vec![job]),
        change: JobChange { name: Some("other".into()), ..JobChange::default() },
    };
    for (name, command) in
        [("ann", hold(of_abc)), ("ann", cancel(of_abc)), ("ann", named(of_optics)), ("bob", cancel(of_optics))]
    {
        let refusal = cluster.run(&user(name), command).expect_err("not a coordinator of it");
        assert_eq!(refusal.code, RefusalCode::PermissionDenied, "{refusal}");
    }
    cluster.ok(&user("ann"), hold(of_optics));
    let all = JobSelection::Matching(JobFilter { user: Some("ada".into()), ..JobFilter::default() });
    let (_, reply) = cluster.run(&user("ann"), Command::Cancel { jobs: all }).unwrap();
    assert_eq!(reply, Reply::Jobs(vec![of_optics]));
}

/// A user who coordinates an account cannot be removed, or would coordinate it after being added again.
#[test]
fn a_coordinator_is_not_removed() {
    let mut cluster = coordinated();
    cluster.ok(&user("oper"), change(vec![known("ann", "optics")]));
    let spec = UserSpec { name: "ann".into(), default_account: "optics".into() };
    let gone = AccountChange::User { before: Some(spec), after: None };
    let refusal = cluster.run(&user("oper"), change(vec![gone.clone()])).expect_err("she coordinates");
    assert_eq!(refusal.message, "user `ann` cannot be removed: it coordinates account `science`");
    let before = AccountSpec { name: "science".into(), coordinators: vec!["ann".into()], ..AccountSpec::default() };
    let after = AccountSpec { coordinators: Vec::new(), ..before.clone() };
    let free = AccountChange::Account { before: Some(before), after: Some(after) };
    cluster.ok(&user("oper"), change(vec![free, gone]));
}

/// The state counts what was used for budgets alone, so that the states of clusters without any stay what they were.
#[test]
fn only_budgets_are_counted() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    let counter = |name: &str| Counter::Association(of(name, None));
    let run = |cluster: &mut Cluster| {
        let id = submit(cluster, "ada", job(1, 1)).unwrap();
        let run = cluster.start(id, &["node1"], 1);
        cluster.pass(10);
        cluster.end(run, "node1", ExitStatus::Code(0));
        let now = cluster.now;
        cluster.state.spent(&counter("science"), now).seconds(Amount::CoreSeconds)
    };
    assert_eq!(run(&mut cluster), 0);
    let spec = |budget| association("science", None, UseLimits { budget, ..UseLimits::default() });
    let budget = Budget { core_seconds: Some(1_000), ..Budget::default() };
    let changed = |before, after| AccountChange::Association { before: Some(spec(before)), after: Some(spec(after)) };
    cluster.ok(&user("oper"), change(vec![changed(Budget::default(), budget)]));
    assert_eq!(run(&mut cluster), 10);
    assert_eq!(run(&mut cluster), 20);
    cluster.ok(&user("oper"), change(vec![changed(budget, Budget::default())]));
    cluster.ok(&user("oper"), change(vec![changed(Budget::default(), budget)]));
    assert_eq!(run(&mut cluster), 10, "a budget that is set again begins with nothing used");
}

/// `RawUsage=0`: what ended jobs used is forgotten, for an account with all that is below it, and nothing else is.
#[test]
fn past_use_is_forgotten_when_an_operator_says_so() {
    let settings = AccountSettings { usage_half_life_seconds: 1_000_000_000, ..LIMITS };
    let budget = Budget { core_seconds: Some(1_000), ..Budget::default() };
    let limited = || UseLimits { budget, ..UseLimits::default() };
    let mut cluster = cluster(settings, limited(), limited());
    let used = |cluster: &Cluster| {
        let spent = |name: &str, user: Option<&str>| {
            let counter = Counter::Association(of(name, user));
            cluster.state.spent(&counter, cluster.now).seconds(Amount::CoreSeconds) > 0
        };
        let shares = cluster.state.fair_use(cluster.now).keys().cloned().collect::<Vec<_>>();
        (spent("science", None), spent("optics", Some("ada")), shares)
    };
    let run = |cluster: &mut Cluster, name: &str, spec: JobSpec| {
        let id = submit(cluster, name, spec).unwrap();
        let run = cluster.start(id, &["node1"], 1);
        cluster.pass(100);
        cluster.end(run, "node1", ExitStatus::Code(0));
    };
    run(&mut cluster, "ada", job(1, 1));
    run(&mut cluster, "bob", job(1, 1));
    run(&mut cluster, "ada", on("abc", job(1, 1)));
    let (abc, ada, bob) = (of("abc", Some("ada")), of("optics", Some("ada")), of("optics", Some("bob")));
    assert_eq!(used(&cluster), (true, true, vec![abc.clone(), ada.clone(), bob.clone()]));
    let forget = |of: AssociationKey| change(vec![AccountChange::AssociationUse { of }]);
    cluster.refused(&user("ada"), forget(ada.clone()), RefusalCode::PermissionDenied, "");
    cluster.refused(&user("oper"), forget(of("nope", None)), RefusalCode::NotFound, "nope");
    cluster.refused(&user("oper"), forget(of("abc", Some("bob"))), RefusalCode::NotFound, "abc");
    cluster.ok(&user("oper"), forget(ada));
    assert_eq!(used(&cluster), (true, false, vec![abc.clone(), bob]));
    cluster.ok(&user("oper"), forget(of("science", None)));
    assert_eq!(used(&cluster), (false, false, vec![abc]));
    run(&mut cluster, "ada", job(1, 1));
    assert!(used(&cluster).1, "it is counted again");
    cluster.assert_replays();
}

/// The same for the budget of a class.
#[test]
fn past_use_of_a_class_is_forgotten() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    let budget = Budget { core_seconds: Some(1_000), ..Budget::default() };
    let before = ClassSpec { name: "normal".into(), ..ClassSpec::default() };
    let after = ClassSpec { limits: UseLimits { budget, ..UseLimits::default() }, ..before.clone() };
    cluster.ok(&user("oper"), change(vec![AccountChange::Class { before: Some(before), after: Some(after) }]));
    let id = submit(&mut cluster, "ada", job(1, 1)).unwrap();
    let run = cluster.start(id, &["node1"], 1);
    cluster.pass(10);
    cluster.end(run, "node1", ExitStatus::Code(0));
    let counter = Counter::Class("normal".into());
    let used = |cluster: &Cluster| cluster.state.spent(&counter, cluster.now).seconds(Amount::CoreSeconds);
    assert_eq!(used(&cluster), 10);
    let forget = |name: &str| change(vec![AccountChange::ClassUse { name: name.into() }]);
    cluster.refused(&user("oper"), forget("nope"), RefusalCode::NotFound, "nope");
    cluster.ok(&user("oper"), forget("normal"));
    assert_eq!(used(&cluster), 0);
}

/// `GraceTime` of a QOS: a job that makes way has longer to end than others.
#[test]
fn a_job_that_makes_way_has_the_grace_of_its_class() {
    let mut cluster = Cluster::new();
    let low = ClassSpec { name: "low".into(), preemption_grace_seconds: 30, ..ClassSpec::default() };
    let too_long = ClassSpec { preemption_grace_seconds: 86_401, ..low.clone() };
    cluster.refused(&user("oper"), change(vec![class(too_long)]), RefusalCode::Invalid, "preemption_grace_seconds");
    let high = ClassSpec { name: "high".into(), priority: 10, preempts: vec!["low".into()], ..ClassSpec::default() };
    cluster.ok(&user("oper"), change(vec![class(low), class(high)]));
    let of_class = |class: &str| {
        let mut spec = job(1, 4);
        spec.components[0].class = Some(class.into());
        spec
    };
    let victim = cluster.submit("ada", of_class("low"));
    let run = cluster.start(victim, &["node1"], 4);
    let gains = cluster.submit("ada", of_class("high"));
    let claims = vec![Placement::default()];
    let preemption = ProposedPreemption { for_job: gains, victims: vec![victim], claims, index: 1, count: 1 };
    let plan = ProposedPlan { preemptions: vec![preemption], ..ProposedPlan::default() };
    cluster.ok(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
    let part = PartId::new(run, 0);
    let stop = OrderSeed::Stop { part, reason: StopReason::Preempted, grace_seconds: 40 };
    assert_eq!(reconcile(&cluster.state, cluster.node_id("node1"), &[part]), [stop]);
    cluster.assert_replays();
}

/// OAR-T-22: a best-effort job that is idempotent waits again whenever it has made way, however often, however young and whatever
/// its exit code; one that is not is over.
#[test]
fn best_effort_jobs_come_back_however_often_they_make_way() {
    let mut cluster = Cluster::new();
    let low = ClassSpec { name: "besteffort".into(), cancels_preempted: true, ..ClassSpec::default() };
    let high =
        ClassSpec { name: "high".into(), priority: 10, preempts: vec!["besteffort".into()], ..ClassSpec::default() };
    cluster.ok(&user("oper"), change(vec![class(low), class(high)]));
    let of_class = |class: &str, types| {
        let mut spec = JobSpec { types, ..job(1, 4) };
        spec.components[0].class = Some(class.into());
        spec.requeue.max_runs = 2;
        spec
    };
    let makes_way = |cluster: &mut Cluster, victim: JobId, status| {
        let run = cluster.start(victim, &["node1"], 4);
        let gains = cluster.submit("ada", of_class("high", Vec::new()));
        let claims = vec![Placement::default()];
        let preemption = ProposedPreemption { for_job: gains, victims: vec![victim], claims, index: 1, count: 1 };
        let plan = ProposedPlan { preemptions: vec![preemption], ..ProposedPlan::default() };
        cluster.ok(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
        cluster.end(run, "node1", status);
        cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[gains]) });
    };
    let idempotent = cluster.submit("ada", of_class("besteffort", vec![JobType::BestEffort { requeue: true }]));
    for status in [ExitStatus::Signal(15), ExitStatus::Code(0), ExitStatus::Code(99), ExitStatus::Signal(9)] {
        makes_way(&mut cluster, idempotent, status);
        assert!(cluster.is_waiting(idempotent), "after {status:?}");
    }
    let once = cluster.submit("ada", of_class("besteffort", vec![JobType::BestEffort { requeue: false }]));
    makes_way(&mut cluster, once, ExitStatus::Code(99));
    assert_eq!(cluster.outcome(once), Some(Outcome::Preempted));
    cluster.assert_replays();
}

/// OAR-T-26: operators put a job that runs into another class, and back; its owner does not, and a job that is over stays.
#[test]
fn operators_change_the_class_of_a_job_that_runs() {
    let mut cluster = cluster(LIMITS, UseLimits::default(), UseLimits::default());
    cluster.ok(&user("oper"), change(vec![class(ClassSpec { name: "besteffort".into(), ..ClassSpec::default() })]));
    let id = submit(&mut cluster, "ada", job(1, 1)).unwrap();
    let run = cluster.start(id, &["node1"], 1);
    let to = |class: &str| Command::ChangeClass { jobs: ids(&[id]), class: class.into() };
    cluster.refused(&user("ada"), to("besteffort"), RefusalCode::PermissionDenied, "class of a job that has started");
    cluster.refused(&user("oper"), to("nothing"), RefusalCode::NotFound, "class: `nothing` does not exist");
    let class_of = |cluster: &Cluster| cluster.state.job(id).unwrap().lead().class().map(|class| class.to_string());
    cluster.ok(&user("oper"), to("besteffort"));
    assert_eq!(class_of(&cluster).as_deref(), Some("besteffort"));
    cluster.ok(&user("oper"), to("normal"));
    assert_eq!(class_of(&cluster).as_deref(), Some("normal"));
    cluster.end(run, "node1", muster_schemas::job::ExitStatus::Code(0));
    cluster.refused(&user("oper"), to("besteffort"), RefusalCode::Conflict, "is over");
    cluster.assert_replays();
}
