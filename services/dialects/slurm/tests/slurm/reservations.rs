//! Reservations that `scontrol` makes, changes and deletes (SL-C-33, SL-C-38).

use crate::support::ago;
use jiff::tz::TimeZone;
use muster_schemas::plan::{Replaced, ReservationSpec, ReservedNodes};
use muster_slurm::queries::{
    Failure,
    reservation::{Deleted, Known, changed, created, deleted},
    reservation_flags::Flags,
    update::{Subject, create, update},
};

fn split(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn with_known<T>(act: impl FnOnce(&Known<'_>) -> T) -> T {
    let now = ago(0).to_jiff().to_zoned(TimeZone::UTC);
    let nodes: Vec<String> = (1..=4).map(|number| format!("nid{number}")).collect();
    act(&Known {
        now: &now,
        nodes: &nodes,
        partition: &|name| (name == "p2").then(|| vec!["nid1".to_owned(), "nid2".to_owned()]),
        is_taken: &|name| name == "root_1",
        knows_user: &|name| matches!(name, "root" | "ann"),
    })
}

fn made(text: &str) -> Result<ReservationSpec, Failure> {
    with_known(|known| created(&create(&split(text))?, known))
}

fn named(spec: &ReservationSpec) -> &[String] {
    match &spec.nodes {
        ReservedNodes::Named(names) => names,
        ReservedNodes::Count { .. } => panic!("by count"),
    }
}

/// SL-C-38
#[test]
fn a_reservation_is_made_as_the_specification_has_it() {
    let spec = made("reservation reservationname=r1 starttime=now duration=10 nodes=nid4 users=root").expect("made");
    assert_eq!((spec.name.as_str(), spec.start, spec.end), ("r1", ago(0), ago(-600)));
    assert_eq!((named(&spec), spec.users.as_slice()), (&["nid4".to_owned()][..], &["root".to_owned()][..]));
    let unnamed = made("reservation starttime=now endtime=now+1hour nodecnt=2 accounts=abc").expect("made");
    assert_eq!((unnamed.name.as_str(), unnamed.end), ("abc_1", ago(-3600)));
    assert!(matches!(unnamed.nodes, ReservedNodes::Count { count: 2, filter: None, queue: None }));
    let second =
        made("reservation starttime=now duration=1 nodes=ALL users=root flags=maint,ignore_jobs").expect("made");
    assert_eq!((second.name.as_str(), named(&second).len()), ("root_2", 4), "root_1 is taken");
    let partition = made("reservation starttime=now duration=1 partitionname=p2 users=ann").expect("made");
    assert_eq!(named(&partition), ["nid1", "nid2"]);
    let endless = made("reservation starttime=now duration=UNLIMITED nodes=nid1 users=ann").expect("made");
    assert_eq!(endless.end, ago(-365 * 86_400));
}

/// SL-C-38
#[test]
fn what_a_new_reservation_lacks_is_told() {
    for (text, line) in [
        ("duration=1 nodes=nid1 users=root", "scontrol: error: A start time must be given.  No reservation created."),
        (
            "starttime=now nodes=nid1 users=root",
            "scontrol: error: An end time or duration must be given.  No reservation created.",
        ),
        (
            "starttime=now duration=1 users=root",
            "scontrol: error: CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified.  No reservation \
             created.",
        ),
        (
            "starttime=now duration=1 nodes=nid1",
            "scontrol: error: Either Users/Groups and/or Accounts must be specified.  No reservation created.",
        ),
        (
            "starttime=now endtime=now+1hour duration=1 nodes=nid1 users=root",
            "scontrol: error: StartTime + Duration does not equal EndTime.  No reservation created.",
        ),
        (
            "starttime=never duration=1 nodes=nid1 users=root",
            "scontrol: error: Invalid start time StartTime=never.  No reservation created.",
        ),
        (
            "starttime=now duration=x nodes=nid1 users=root",
            "scontrol: error: Invalid duration Duration=x.  No reservation created.",
        ),
        (
            "starttime=now duration=1 nodes=nid9 users=root",
            "Error creating the reservation: Invalid node name specified",
        ),
        ("starttime=now duration=1 nodes=nid1 users=nosuch", "Error creating the reservation: Invalid user id"),
        (
            "starttime=now duration=1 nodes=ALL partitionname=p9 users=root",
            "Error creating the reservation: Invalid partition name specified",
        ),
        (
            "starttime=now duration=1 nodes=nid1 users=root flags=replace",
            "scontrol: error: Replace flags count only with NodeCnt.  No reservation created.",
        ),
    ] {
        let failure = made(&format!("reservation {text}")).expect_err(text);
        assert_eq!((failure.lines, failure.code), (vec![line.to_owned()], 1), "{text}");
    }
}

/// SL-C-38
#[test]
fn reservations_and_partitions_are_created() {
    let told = |text: &str| made(text).expect_err(text).lines.join("\n");
    assert_eq!(told("starttime=now users=root"), "scontrol: error: Invalid creation entity: starttime=now");
    let partition = create(&split("partitionname=p9 nodes=nid1")).expect("a partition");
    assert_eq!(partition.subject, Subject::Partition("p9".to_owned()));
    let partition = create(&split("partition p9 maxtime=10")).expect("a partition");
    assert_eq!(
        (partition.subject.clone(), partition.value("MaxTime")),
        (Subject::Partition("p9".to_owned()), Some("10"))
    );
    assert!(told("node=nid9 cpus=4").contains("no NodeName"));
    assert!(told("foo res=r1 starttime=now").starts_with("Update of this parameter is not supported: foo"));
    assert!(made("res=r1 starttime=now duration=10 nodes=nid4 users=root").is_ok());
}

/// SL-C-33
#[test]
fn only_what_is_named_of_a_reservation_changes() {
    let before = made("reservation reservationname=r1 starttime=now duration=10 nodes=nid4 users=root").expect("made");
    let after = |text: &str| {
        let update = update(&split(&format!("reservationname=r1 {text}"))).expect("an update");
        with_known(|known| changed(&update, &before, known))
    };
    let longer = after("duration=20 users+=ann").expect("changed");
    assert_eq!((longer.end, longer.users.len(), named(&longer)), (ago(-1200), 2, named(&before)));
    let moved = after("nodes+=nid[1-2]").expect("changed");
    assert_eq!(named(&moved), ["nid4", "nid1", "nid2"]);
    assert_eq!(named(&after("nodes+=nid1 nodes-=nid4").expect("changed")), ["nid1"]);
    assert!(matches!(after("nodecnt=3").expect("changed").nodes, ReservedNodes::Count { count: 3, .. }));
    let refused = after("starttime+=5").expect_err("a time is no list");
    let text = "scontrol: error: The +=/-= notation is not supported when updating StartTime.  No reservation update.";
    assert_eq!(refused.lines, [text]);
}

/// SL-C-38: flags are kept and shown, and those that repeat a reservation do so.
#[test]
fn flags_of_reservations_are_kept_or_refused() {
    let base = "reservation reservationname=r1 starttime=now duration=10 users=root";
    let made = |more: &str| made(&format!("{base} {more}"));
    let shown = |spec: &ReservationSpec| Flags::of(spec).shown();
    let spec = made("nodes=nid1 flags=maint,ignore_jobs,daily").expect("made");
    assert_eq!((shown(&spec).as_str(), spec.repeats_after_seconds), ("MAINT,IGNORE_JOBS,DAILY,SPEC_NODES", 86_400));
    assert_eq!(shown(&made("nodes=nid1").expect("made")), "SPEC_NODES");
    assert_eq!(shown(&made("nodecnt=1 flags=any_nodes,static_alloc").expect("made")), "ANY_NODES,STATIC");
    assert_eq!(shown(&made("nodes=ALL partition=p2 flags=part_nodes").expect("made")), "SPEC_NODES,PART_NODES");
    let over = made("nodes=nid1 flags=overlap").expect("made");
    assert_eq!((shown(&over).as_str(), over.overlaps, spec.overlaps), ("OVERLAP,SPEC_NODES", true, true));
    assert_eq!(shown(&made("nodes=nid1 flags=overlap,maint").expect("made")), "MAINT,OVERLAP,SPEC_NODES");
    let of_muster = ReservationSpec { attributes: Default::default(), ..over.clone() };
    assert_eq!(shown(&of_muster), "OVERLAP,SPEC_NODES");
    let apart = update(&split("reservationname=r1 flags-=overlap")).expect("an update");
    assert!(!with_known(|known| changed(&apart, &over, known)).expect("changed").overlaps);
    let idle = |more: &str| {
        let spec = made(&format!("nodes=nid1 flags={more}")).expect("made");
        (shown(&spec), spec.ends_after_idle_seconds)
    };
    assert_eq!(idle("purge_comp"), ("SPEC_NODES,PURGE_COMP=00:05:00".to_owned(), 300));
    assert_eq!(idle("maint,purge_comp=1:30"), ("MAINT,SPEC_NODES,PURGE_COMP=00:01:30".to_owned(), 90));
    let open = made("nodes=nid1 flags=magnetic,flex").expect("made");
    assert_eq!((shown(&open).as_str(), open.attracts, open.is_flexible), ("FLEX,SPEC_NODES,MAGNETIC", true, true));
    assert!(made("nodes=nid1 flags=promiscuous").expect("made").attracts);
    let shut = update(&split("reservationname=r1 flags-=magnetic,flex")).expect("an update");
    let shut = with_known(|known| changed(&shut, &open, known)).expect("changed");
    assert_eq!((shut.attracts, shut.is_flexible), (false, false));
    let after = |text: &str| {
        let update = update(&split(&format!("reservationname=r1 {text}"))).expect("an update");
        with_known(|known| changed(&update, &spec, known))
    };
    let kept = after("duration=20").expect("changed");
    assert_eq!((shown(&kept), kept.repeats_after_seconds), (shown(&spec), 86_400), "what is not named stays");
    assert_eq!(shown(&after("flags-=daily,maint").expect("changed")), "IGNORE_JOBS,SPEC_NODES");
    assert_eq!(shown(&after("flags=-daily flags+=weekly").expect("changed")), "MAINT,IGNORE_JOBS,WEEKLY,SPEC_NODES");
    assert!(after("flags+=weekly").is_err(), "it has one period");
    let own = ReservationSpec { repeats_after_seconds: 7_200, attributes: Default::default(), ..spec.clone() };
    let update = update(&split("reservationname=r1 flags=maint")).expect("an update");
    let changed = with_known(|known| changed(&update, &own, known)).expect("changed");
    assert_eq!(changed.repeats_after_seconds, 7_200, "a period without a flag stays");
    for (more, text) in [
        ("nodes=nid1 flags=no_hold_jobs_after", "the flag no_hold_jobs_after"),
        ("nodes=nid1 flags=weekday,weekend", "Only one"),
        ("nodes=nid1 flags=purge_comp=soon", "the flag purge_comp=soon"),
        ("nodes=nid1 flags=daily=5:00", "the flag daily=5:00"),
        ("nodes=nid1 flags=hourly,daily", "Only one"),
        ("nodes=nid1 flags=part_nodes", "Part_Nodes flag requires"),
        ("nodes=nid1 features=knl", "Features count only"),
        ("nodes=nid1 nodecnt=2", "not both"),
    ] {
        let failure = made(more).expect_err(more);
        assert!(failure.lines.concat().contains(text), "{more}: {failure:?}");
    }
}

/// SL-C-38: nodes of a reservation by number are replaced if they are out of service, unless they are to stay.
#[test]
fn flags_say_which_nodes_of_a_reservation_are_replaced() {
    let base = "reservation reservationname=r1 starttime=now duration=10 users=root";
    let made = |more: &str| made(&format!("{base} {more}")).expect("made");
    let told = |spec: &ReservationSpec| (Flags::of(spec).shown(), spec.replaces);
    let both = |text: &str, replaces: Replaced| (text.to_owned(), replaces);
    assert_eq!(told(&made("nodecnt=2")), both("", Replaced::Lost), "as in Slurm");
    assert_eq!(told(&made("nodecnt=2 flags=replace_down")), both("REPLACE_DOWN", Replaced::Lost));
    assert_eq!(told(&made("nodecnt=2 flags=replace")), both("REPLACE", Replaced::Used));
    assert_eq!(told(&made("nodecnt=2 flags=static_alloc")), both("STATIC", Replaced::None));
    assert_eq!(told(&made("nodes=nid1")), both("SPEC_NODES", Replaced::None));
    let after = |before: &ReservationSpec, text: &str| {
        let update = update(&split(&format!("reservationname=r1 {text}"))).expect("an update");
        with_known(|known| changed(&update, before, known)).expect("changed")
    };
    let replaced = made("nodecnt=2 flags=replace");
    assert_eq!(after(&replaced, "flags-=replace").replaces, Replaced::Lost);
    assert_eq!(after(&replaced, "duration=20").replaces, Replaced::Used);
    let of_muster = ReservationSpec { replaces: Replaced::None, ..made("nodecnt=2") };
    assert_eq!(after(&of_muster, "duration=20").replaces, Replaced::None, "it was made without");
}

/// SL-C-38: flags about the times of a reservation, and about who deletes it.
#[test]
fn flags_say_when_a_reservation_begins_and_who_deletes_it() {
    let base = "reservation reservationname=r1 duration=10 users=root nodes=nid1";
    let made = |more: &str| made(&format!("{base} {more}")).expect("made");
    let shown = |spec: &ReservationSpec| Flags::of(spec).shown();
    let ahead = made("starttime=now+10minutes flags=time_float");
    assert_eq!((shown(&ahead).as_str(), ahead.stays_ahead_seconds), ("SPEC_NODES,TIME_FLOAT", 600));
    assert_eq!(made("starttime=now flags=time_float").stays_ahead_seconds, 1);
    let after = |before: &ReservationSpec, text: &str| {
        let update = update(&split(&format!("reservationname=r1 {text}"))).expect("an update");
        with_known(|known| changed(&update, before, known)).expect("changed")
    };
    let (longer, later) = (after(&ahead, "duration=20"), after(&ahead, "starttime=now+1hour duration=10"));
    assert_eq!((longer.stays_ahead_seconds, later.stays_ahead_seconds), (600, 3_600));
    assert_eq!(after(&ahead, "flags-=time_float").stays_ahead_seconds, 0);
    // It is a Friday: Saturday and Sunday are one and two days later.
    let weekday = made("starttime=now flags=weekday");
    assert_eq!((shown(&weekday).as_str(), weekday.repeats_after_seconds), ("WEEKDAY,SPEC_NODES", 86_400));
    assert_eq!(weekday.skipped_days, 0b000_0110);
    assert_eq!(made("starttime=now flags=weekend").skipped_days, 0b111_1001, "never again on a Friday");
    let of_saturday = made("starttime=now+24hours flags=weekday");
    assert_eq!(of_saturday.skipped_days, 0b000_0011, "it moves on to Monday, and never comes back");
    let weekly = after(&weekday, "flags=-weekday flags+=weekly");
    assert_eq!((weekly.skipped_days, weekly.repeats_after_seconds), (0, 604_800));
    let open = made("starttime=now flags=user_delete");
    assert!(open.users_may_remove && !weekday.users_may_remove);
    assert_eq!(shown(&open), "SPEC_NODES,USER_DELETE");
}

/// SL-C-38: other nodes are no longer all of a partition.
#[test]
fn a_reservation_of_a_partition_is_one_as_long_as_it_has_its_nodes() {
    let base = "reservation reservationname=r1 starttime=now duration=10 users=root";
    let whole = made(&format!("{base} nodes=ALL partition=p2 flags=part_nodes,maint")).expect("made");
    let of_whole = |text: &str| {
        let update = update(&split(&format!("reservationname=r1 {text}"))).expect("an update");
        with_known(|known| Flags::of(&changed(&update, &whole, known).expect("changed")).shown())
    };
    assert_eq!(of_whole("flags=-maint"), "SPEC_NODES,PART_NODES");
    assert_eq!(of_whole("nodes=nid3"), "MAINT,SPEC_NODES", "it is no longer all of the partition");
}

/// SL-C-33
#[test]
fn delete_takes_the_name_in_both_forms() {
    let delete = |text: &str| deleted(&split(text));
    assert_eq!(delete("reservation=r1"), Ok(Deleted::Reservation("r1".to_owned())));
    assert_eq!(delete("ReservationName r1"), Ok(Deleted::Reservation("r1".to_owned())));
    assert_eq!(delete("partition=p2"), Ok(Deleted::Partition("p2".to_owned())));
    let failure = |text: &str| delete(text).map_err(|failure| failure.lines.concat());
    assert_eq!(failure("jobs=3"), Err("Invalid deletion entity: jobs=3".to_owned()));
    let form = "scontrol: error: Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'";
    assert_eq!(failure("reservation"), Err(form.to_owned()));
}
