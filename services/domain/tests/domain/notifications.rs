//! The notifications that follow from a history.

use crate::support::*;
use muster_domain::notify;
use muster_schemas::{
    JobId, PartId,
    cluster::{ClusterChange, ClusterSettingsChange},
    command::Command,
    cycle::ProgramCycle,
    event::{Actor, EndCause},
    job::{ExitStatus, Holds, JobSpec, Notification, Occasion, Outcome, Sink},
    notify::NotifyItem,
    resources::IndexSet,
};

fn notifying(spec: JobSpec, on: &[&[Occasion]]) -> JobSpec {
    let notification = |(number, on): (usize, &&[Occasion])| Notification {
        on: on.to_vec(),
        sink: Sink::Mail(format!("user{number}@example.org")),
        spares_cancelled: false,
    };
    JobSpec { notifications: on.iter().enumerate().map(notification).collect(), ..spec }
}

/// The items of the records appended by `happen`, each derived from the state as of its record.
fn items_of(cluster: &mut Cluster, happen: impl FnOnce(&mut Cluster)) -> Vec<NotifyItem> {
    let known = cluster.log.len();
    let mut state = cluster.state.clone();
    happen(cluster);
    let mut items = Vec::new();
    for record in &cluster.log[known..] {
        state.apply(record).unwrap();
        let made = notify::items(&state, record);
        assert_eq!(made, notify::items(&state, record));
        items.extend(made);
    }
    items
}

fn told(items: &[NotifyItem]) -> Vec<(u32, Occasion, &str)> {
    items.iter().map(|item| (item.notification, item.occasion, item.event.as_str())).collect()
}

#[test]
fn start_and_end_are_told_unless_something_else_is_asked_for() {
    let mut cluster = Cluster::new();
    let spec = notifying(job(1, 1), &[&[], &[Occasion::Ended], &[Occasion::Failed], &[Occasion::Held]]);
    let job = cluster.submit("ada", spec);
    let items = items_of(&mut cluster, |cluster| cluster.run_through(job, 0));
    assert_eq!(
        told(&items),
        [(0, Occasion::Started, "started"), (0, Occasion::Ended, "completed"), (1, Occasion::Ended, "completed"),]
    );
    let last = &items[2];
    assert_eq!(last.outcome, Some(Outcome::Completed));
    assert_eq!((last.owner.user.as_str(), last.queue.as_str()), ("ada", "default"));
    assert_eq!((last.nodes.as_slice(), last.started.is_some()), (&["node1".to_owned()][..], true));
    assert_eq!(last.key(), format!("{job}/{}/1", last.of));
}

/// PBS-X-24: the operators get a mail when a scheduling program failed so often that scheduling is off; else the administrators.
#[test]
fn operators_are_told_that_a_scheduling_program_gave_up() {
    let mut cluster = Cluster::new();
    let cycled = |cluster: &mut Cluster, gave_up| {
        let trouble = Some("it ended".to_owned());
        let cycle = ProgramCycle { program: "tcl:body".into(), trouble, gave_up, ..ProgramCycle::default() };
        let told = items_of(cluster, |cluster| {
            cluster.ok(&Actor::Planner, Command::NoteCycle { cycle: Box::new(cycle) });
        });
        let address = |item: NotifyItem| {
            assert_eq!((item.job.number, item.event.as_str()), (0, "scheduling_switched_off"));
            let Sink::Mail(address) = item.sink else { panic!("no mail") };
            (address, item.why.unwrap_or_default())
        };
        told.into_iter().map(address).collect::<Vec<_>>()
    };
    let why = "tcl:body failed too often in a row; the last time: it ended";
    assert_eq!(cycled(&mut cluster, false), []);
    assert_eq!(cycled(&mut cluster, true), [("oper".to_owned(), why.to_owned())]);
    let of = |operators: &[&str], administrators: &[&str]| {
        let names = |users: &[&str]| Some(users.iter().map(|user| (*user).to_owned()).collect());
        let settings = ClusterSettingsChange {
            operators: names(operators),
            administrators: names(administrators),
            ..ClusterSettingsChange::default()
        };
        let change = Box::new(ClusterChange { settings, ..ClusterChange::default() });
        Command::Configure { change, keep_unnamed: true }
    };
    cluster.ok(&root(), of(&[], &[]));
    assert_eq!(cycled(&mut cluster, true), [("root".to_owned(), why.to_owned())]);
    cluster.ok(&root(), of(&[], &["eve"]));
    assert_eq!(cycled(&mut cluster, true), [("eve".to_owned(), why.to_owned())]);
    cluster.ok(&root(), of(&["ann", "bob"], &["eve"]));
    assert_eq!(cycled(&mut cluster, true), ["ann", "bob"].map(|user| (user.to_owned(), why.to_owned())));
}

#[test]
fn a_bad_end_is_told_once_and_as_that_where_it_is_asked_for() {
    let mut cluster = Cluster::new();
    let spec = notifying(job(1, 1), &[&[Occasion::Failed, Occasion::Ended], &[Occasion::Ended]]);
    let job = cluster.submit("ada", spec);
    let items = items_of(&mut cluster, |cluster| cluster.run_through(job, 3));
    assert_eq!(told(&items), [(0, Occasion::Failed, "failed"), (1, Occasion::Ended, "failed")]);
}

#[test]
fn holds_are_told() {
    let mut cluster = Cluster::new();
    let job = cluster.submit("ada", notifying(job(1, 1), &[&[Occasion::Held]]));
    let holds = Holds { user: true, ..Holds::default() };
    let items = items_of(&mut cluster, |cluster| {
        cluster.ok(&user("ada"), Command::Hold { jobs: ids(&[job]), holds, reason: String::new() });
        cluster.ok(&user("ada"), Command::Release { jobs: ids(&[job]), holds });
    });
    assert_eq!(told(&items), [(0, Occasion::Held, "held"), (0, Occasion::Held, "released")]);
}

#[test]
fn an_array_tells_of_its_first_start_and_its_end() {
    let mut cluster = Cluster::new();
    let each = &[Occasion::Started, Occasion::Ended, Occasion::EachTask][..];
    let whole = cluster.submit("ada", notifying(array(IndexSet::first_n(2), None), &[&[], each]));
    let items = items_of(&mut cluster, |cluster| {
        // Both have their nodes before the first has started.
        let runs = [0, 1].map(|index| cluster.allocate(JobId::task(whole.number, index), &["node1"], 1));
        for run in runs {
            cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
        }
        cluster.end(runs[0], "node1", ExitStatus::Code(0));
        cluster.end(runs[1], "node1", ExitStatus::Code(3));
    });
    let of = |number: u32| {
        let items = items.iter().filter(move |item| item.notification == number);
        items.map(|item| (item.job, item.event.as_str())).collect::<Vec<_>>()
    };
    assert_eq!(of(0), [(whole, "started"), (whole, "failed")]);
    let tasks = [0, 1].map(|index| JobId::task(whole.number, index));
    assert_eq!(of(1), [(tasks[0], "started"), (tasks[1], "started"), (tasks[0], "completed"), (tasks[1], "failed")]);
    let end = items.iter().rfind(|item| item.job == whole).unwrap();
    assert_eq!(end.task_outcomes, Some(vec![Outcome::Completed, Outcome::Failed(ExitStatus::Code(3))]));
}

#[test]
fn the_end_of_the_walltime_is_told() {
    let mut cluster = Cluster::new();
    let job = cluster.submit("ada", notifying(job(1, 1), &[&[Occasion::WalltimeOver, Occasion::Failed]]));
    let run = cluster.start(job, &["node1"], 1);
    let items = items_of(&mut cluster, |cluster| {
        let exit = exit(ExitStatus::Signal(15), EndCause::Walltime, cluster.now);
        cluster.ok(&executor("node1"), Command::NodeEnded { part: PartId::new(run, 0), exit });
    });
    assert_eq!(told(&items), [(0, Occasion::WalltimeOver, "walltime_over"), (0, Occasion::Failed, "timed_out")]);
    assert_ne!(items[0].key(), items[1].key());
}

/// SL-C-15.
#[test]
fn a_cancelled_job_has_not_failed_where_that_is_spared() {
    let mut cluster = Cluster::new();
    let mut spec = notifying(job(1, 1), &[&[Occasion::Failed, Occasion::Ended], &[Occasion::Failed]]);
    for notification in &mut spec.notifications {
        notification.spares_cancelled = true;
    }
    let job = cluster.submit("ada", spec);
    let items = items_of(&mut cluster, |cluster| {
        cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[job]) });
    });
    assert_eq!(told(&items), [(0, Occasion::Ended, "cancelled")]);
}

#[test]
fn a_job_that_wants_none_gets_none() {
    let mut cluster = Cluster::new();
    let job = cluster.submit("ada", job(1, 1));
    assert_eq!(items_of(&mut cluster, |cluster| cluster.run_through(job, 0)), []);
}

/// OAR-N-04, OAR-N-06: who asks for the end of a job is told, once, before the end of one that runs and with the end of one that
/// waits; nobody is told of ends that nobody asked for.
#[test]
fn wishes_to_end_a_job_are_told_with_who_has_them() {
    let mut cluster = Cluster::new();
    let on: [&[Occasion]; 2] = [&[Occasion::Ended], &[Occasion::EndAsked]];
    let running = cluster.submit("ada", notifying(job(1, 1), &on));
    let run = cluster.start(running, &["node1"], 1);
    let cancel = |job| Command::Cancel { jobs: ids(&[job]) };
    let items = items_of(&mut cluster, |cluster| drop(cluster.ok(&user("oper"), cancel(running))));
    assert_eq!(told(&items), [(1, Occasion::EndAsked, "end_asked")]);
    assert_eq!((items[0].why.as_deref(), items[0].outcome.as_ref()), (Some("oper asked for its end"), None));
    let killed = exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now);
    let ended = Command::NodeEnded { part: PartId::new(run, 0), exit: killed };
    let items = items_of(&mut cluster, |cluster| drop(cluster.ok(&executor("node1"), ended)));
    assert_eq!(told(&items), [(0, Occasion::Ended, "cancelled")]);
    assert_eq!(items[0].why, None);

    let waiting = cluster.submit("ada", notifying(job(1, 1), &on));
    let items = items_of(&mut cluster, |cluster| drop(cluster.ok(&user("ada"), cancel(waiting))));
    assert_eq!(told(&items), [(0, Occasion::Ended, "cancelled"), (1, Occasion::EndAsked, "end_asked")]);
    let by_itself = cluster.submit("ada", notifying(job(1, 1), &on));
    let items = items_of(&mut cluster, |cluster| cluster.run_through(by_itself, 0));
    assert_eq!(told(&items), [(0, Occasion::Ended, "completed")]);
}
