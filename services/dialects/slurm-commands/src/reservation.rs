//! Reservations that `scontrol` makes, changes and deletes (SL-C-33, SL-C-38).

use super::{
    Ended, print, shown,
    site::{Site, knows_user, now},
};
use muster_client::{ClientError, Moment};
use muster_schemas::{
    CommandId, Timestamp,
    plan::{ReservationSpec, ReservedNodes},
    views::ErrorCode,
};
use muster_slurm::{
    features,
    queries::{
        Failure,
        reservation::{Known, changed, created, refused},
        reservation_flags::Flags,
        update::Update,
    },
    show::{record::JobRecord, sinfo::NodeRecord},
};
use std::{collections::BTreeSet, sync::Arc};

/// `scontrol create`.
pub fn create(site: &mut Site, update: &Update) -> Ended {
    let spec = with_known(site, |known, _| created(update, known))?;
    require_free(site, true, &spec)?;
    let done = site.client.reserve(CommandId::new_now(), &spec);
    done.map_err(|error| failure(site, true, &error))?;
    print(&format!("Reservation created: {}\n", spec.name));
    Ok(0)
}

/// `scontrol update reservation`.
pub fn change(site: &mut Site, update: &Update, name: Option<&str>) -> Ended {
    let missing = || Failure::error("scontrol", "Reservation must be given.  No reservation update.");
    let name = name.ok_or_else(missing)?;
    let spec = with_known(site, |known, reservations| {
        let before = reservations.iter().find(|spec| spec.name == name);
        changed(update, before.ok_or_else(|| refused(false, "Requested reservation is invalid"))?, known)
    })?;
    if ["StartTime", "Nodes", "NodeCnt", "PartitionName"].iter().any(|key| update.value(key).is_some()) {
        require_free(site, false, &spec)?;
    }
    let done = site.client.change_reservation(CommandId::new_now(), &spec);
    done.map_err(|error| failure(site, false, &error))?;
    print("Reservation updated.\n");
    Ok(0)
}

/// `scontrol delete`.
pub fn delete(site: &mut Site, name: &str) -> Ended {
    let done = site.client.remove_reservation(CommandId::new_now(), name);
    let said = |text: &str| Failure::plain(format_args!("delete_reservation reservationname={name}: {text}"));
    done.map(|_| 0).map_err(|error| match error.code() {
        Some(ErrorCode::NotFound) => said("Requested reservation is invalid"),
        Some(ErrorCode::PermissionDenied) => said("Access/permission denied"),
        _ => site.failure(&error),
    })
}

/// Refuses a reservation with too few nodes on which no job may still run when it begins, unless it ignores jobs. Those of
/// one by count are chosen by the planner, which takes free ones first.
fn require_free(site: &mut Site, is_new: bool, spec: &ReservationSpec) -> Result<(), Failure> {
    if Flags::of(spec).has("IGNORE_JOBS") {
        return Ok(());
    }
    let (names, needed) = match &spec.nodes {
        ReservedNodes::Named(names) => (names.iter().cloned().collect(), names.len()),
        ReservedNodes::Count { count, .. } => (candidates(site, spec)?, *count as usize),
    };
    // One that stays ahead begins that far from now, whatever it said first.
    let ahead = Timestamp::now().plus_seconds(i64::try_from(spec.stays_ahead_seconds).unwrap_or(i64::MAX));
    let start = if spec.stays_ahead_seconds > 0 { ahead } else { spec.start };
    let views = site.current(None, None, false)?;
    let running = views.into_iter().filter(|view| view.nodes.iter().any(|node| names.contains(node))).collect();
    let is_in_the_way = |job: &&JobRecord| {
        // Jobs inside of it are not in its way.
        let is_inside = job.reservation.as_deref() == Some(&spec.name);
        !is_inside && !job.state.is_finished() && job.end().is_none_or(|end| end > start)
    };
    let records = site.records(running, true)?;
    let busy: BTreeSet<&String> = records.iter().filter(is_in_the_way).flat_map(|job| &job.nodes).collect();
    match names.iter().filter(|name| !busy.contains(name)).count() < needed {
        true => Err(refused(is_new, "Requested nodes are busy")),
        false => Ok(()),
    }
}

/// The nodes that a reservation by count can have: those of its partition and with its features that no other reservation has
/// then, unless it overlaps others.
fn candidates(site: &mut Site, spec: &ReservationSpec) -> Result<BTreeSet<String>, Failure> {
    let ReservedNodes::Count { filter, queue, .. } = &spec.nodes else { return Ok(BTreeSet::new()) };
    let page = site.client.reservations(Moment::Now).map_err(|error| site.failure(&error))?;
    let others = page.reservations.iter().filter(|other| {
        let ((start, end), (other_start, other_end)) = (taken(spec), taken(&other.spec));
        let is_apart = other_end <= start || end <= other_start;
        !spec.overlaps && !is_apart && other.spec.name != spec.name
    });
    let reserved: BTreeSet<&String> = others.flat_map(|other| &other.nodes).collect();
    let (nodes, partitions) = (shown::nodes(site)?, shown::partitions(site)?);
    // Without the named partition the system refuses the reservation.
    let partition = queue.as_ref().and_then(|name| partitions.iter().find(|partition| partition.name == *name));
    let can_be = |node: &&Arc<NodeRecord>| {
        let features: Vec<&str> = node.features.split(',').collect();
        partition.is_none_or(|partition| partition.has(node))
            && filter.as_ref().is_none_or(|filter| features::fits(filter, &features))
            && !reserved.contains(&node.name)
    };
    Ok(nodes.iter().filter(can_be).map(|node| node.name.clone()).collect())
}

/// The time in which others do not get the nodes of a reservation: for one that stays ahead it has no end.
fn taken(spec: &ReservationSpec) -> (Timestamp, Timestamp) {
    (spec.start, if spec.stays_ahead_seconds > 0 { Timestamp::MAX } else { spec.end })
}

fn with_known<T>(
    site: &mut Site,
    act: impl FnOnce(&Known<'_>, &[ReservationSpec]) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let page = site.client.reservations(Moment::Now).map_err(|error| site.failure(&error))?;
    let reservations: Vec<ReservationSpec> = page.reservations.into_iter().map(|view| view.spec).collect();
    let (nodes, partitions) = (shown::nodes(site)?, shown::partitions(site)?);
    let partition = |name: &str| {
        let partition = partitions.iter().find(|partition| partition.name == name)?;
        let serving = nodes.iter().filter(|node| partition.has(node));
        Some(serving.map(|node| node.name.clone()).collect())
    };
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let known = Known {
        now: &now(),
        nodes: &names,
        partition: &partition,
        is_taken: &|name| reservations.iter().any(|spec| spec.name == name),
        knows_user: &knows_user,
    };
    act(&known, &reservations)
}

fn failure(site: &Site, is_new: bool, error: &ClientError) -> Failure {
    let says = |text: &str| error.to_string().contains(text);
    let text = match error.code() {
        None => return site.failure(error),
        Some(ErrorCode::PermissionDenied) => "Access/permission denied",
        Some(ErrorCode::Conflict) if says("exists already") => "Duplicate reservation name",
        Some(ErrorCode::Conflict) if says("belongs to reservation") => {
            "Requested reservation overlaps with another reservation"
        }
        Some(ErrorCode::NotFound) if says("queue") => "Invalid partition name specified",
        Some(ErrorCode::NotFound) if says("node") => "Invalid node name specified",
        Some(ErrorCode::NotFound) => "Requested reservation is invalid",
        Some(ErrorCode::Invalid) if says("has passed already") => "Invalid time specified",
        Some(ErrorCode::Invalid) if says("are asked for") => "Requested nodes are busy",
        Some(_) => return refused(is_new, &error.to_string()),
    };
    refused(is_new, text)
}
