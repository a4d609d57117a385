//! Reservations that `scontrol` makes, changes and deletes (SL-C-33, SL-C-38).

use super::{
    Ended, print, shown,
    site::{Site, knows_user, now},
};
use muster_client::{ClientError, Moment};
use muster_schemas::{
    CommandId,
    plan::{ReservationSpec, ReservedNodes},
    views::ErrorCode,
};
use muster_slurm::{
    queries::{
        Failure,
        reservation::{Known, changed, created, refused},
        reservation_flags::Flags,
        update::Update,
    },
    show::record::JobRecord,
};

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
    if ["StartTime", "Nodes", "PartitionName"].iter().any(|key| update.value(key).is_some()) {
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

/// Refuses a reservation of named nodes on which jobs may still run when it begins, unless it ignores them.
fn require_free(site: &mut Site, is_new: bool, spec: &ReservationSpec) -> Result<(), Failure> {
    let ReservedNodes::Named(names) = &spec.nodes else { return Ok(()) };
    if Flags::of(spec).has("IGNORE_JOBS") {
        return Ok(());
    }
    let views = site.current(None, None, false)?;
    let running = views.into_iter().filter(|view| view.nodes.iter().any(|node| names.contains(node))).collect();
    let is_in_the_way = |job: &JobRecord| {
        // Jobs inside of it are not in its way.
        let is_inside = job.reservation.as_deref() == Some(&spec.name);
        !is_inside && !job.state.is_finished() && job.end().is_none_or(|end| end > spec.start)
    };
    match site.records(running, true)?.iter().any(is_in_the_way) {
        true => Err(refused(is_new, "Requested nodes are busy")),
        false => Ok(()),
    }
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
