//! `muster reserve`, `reservations`, `unreserve`, `node close`, `node open`.

use crate::{
    cli::{CloseOptions, ConnectionOptions, ReservationsOptions, ReserveOptions},
    exit::{CommandResult, Failure, Status},
    show,
    table::{Table, left, right},
    terminal::waiting,
    values::{compress_hosts, parse_hosts},
};
use jiff::tz::TimeZone;
use muster_client::{Client, Moment};
use muster_schemas::{
    CommandId, Timestamp,
    plan::{NodeClosure, Replaced, ReservationSpec, ReservedNodes},
    views::{ClosuresRequest, ReservationView},
};
use std::collections::BTreeMap;

/// Makes a reservation.
pub fn reserve(connection: &ConnectionOptions, options: ReserveOptions) -> CommandResult {
    let spec = spec(options)?;
    connection.client()?.reserve(CommandId::new_now(), &spec)?;
    let (start, end) = (show::local_time(spec.start), show::local_time(spec.end));
    println!("reservation {} from {start} to {end}", spec.name);
    Ok(0)
}

fn spec(options: ReserveOptions) -> Result<ReservationSpec, Failure> {
    let ReserveOptions {
        name,
        start,
        end,
        duration,
        nodes,
        count,
        condition,
        queue,
        users,
        accounts,
        repeat,
        overlap,
        attract,
        flexible,
        until_idle,
        replace,
    } = options;
    let after = |seconds: u64| start.plus_seconds(i64::try_from(seconds).unwrap_or(i64::MAX));
    let nodes = match (nodes, count) {
        (Some(nodes), _) => ReservedNodes::Named(parse_hosts(&nodes).map_err(Failure::usage)?),
        (None, Some(count)) => ReservedNodes::Count { count, filter: condition, queue },
        (None, None) => {
            return Err(Failure::usage("which nodes: name them with --nodes, or say how many with --count"));
        }
    };
    let end = end.or(duration.map(after));
    let end = end.ok_or_else(|| Failure::usage("until when: say --end or --duration"))?;
    Ok(ReservationSpec {
        name,
        start,
        end,
        nodes,
        users,
        accounts,
        repeats_after_seconds: repeat.unwrap_or(0),
        attributes: BTreeMap::new(),
        overlaps: overlap,
        ends_after_idle_seconds: until_idle.unwrap_or(0),
        attracts: attract,
        is_flexible: flexible,
        replaces: replace.map_or(Replaced::None, Replaced::from),
        ..ReservationSpec::default()
    })
}

/// Deletes a reservation.
pub fn unreserve(connection: &ConnectionOptions, name: &str) -> CommandResult {
    connection.client()?.remove_reservation(CommandId::new_now(), name)?;
    Ok(0)
}

/// Lists reservations.
pub fn list(connection: &ConnectionOptions, options: &ReservationsOptions) -> CommandResult {
    let mut client = connection.client()?;
    let page = waiting("reading reservations", || client.reservations(options.query.moment()))?;
    if options.query.json {
        show::print_json(&page)?;
    } else {
        show::print_or_say(&table(&page.reservations), "no reservations")?;
    }
    Ok(0)
}

fn table(reservations: &[ReservationView]) -> Table {
    let zone = TimeZone::system();
    let mut table = Table::new([
        left("RESERVATION"),
        left("STATE"),
        left("START"),
        left("END"),
        right("COUNT"),
        left("NODES"),
        left("USERS"),
        left("ACCOUNTS"),
    ]);
    for ReservationView { spec, nodes, begun } in reservations {
        let (state, count) = match &spec.nodes {
            ReservedNodes::Count { count, .. } if nodes.is_empty() => ("unplaced", *count as usize),
            _ if *begun => ("active", nodes.len()),
            _ if spec.stays_ahead_seconds > 0 => ("ahead", nodes.len()),
            _ => ("planned", nodes.len()),
        };
        let (start, end) = match spec.stays_ahead_seconds {
            0 => (show::local_time_column(spec.start, &zone), show::local_time_column(spec.end, &zone)),
            // It begins that far from now at any time, and has no end.
            seconds => (format!("in {seconds} s"), String::new()),
        };
        table.push([
            (&spec.name).into(),
            state.into(),
            start.into(),
            end.into(),
            count.to_string().into(),
            compress_hosts(nodes).into(),
            spec.users.join(",").into(),
            spec.accounts.join(",").into(),
        ]);
    }
    table
}

/// Closes nodes for a time, in addition to their other closures.
pub fn close(connection: &ConnectionOptions, options: CloseOptions) -> CommandResult {
    let CloseOptions { from, until, reason, nodes } = options;
    let names = parse_hosts(&nodes).map_err(Failure::usage)?;
    let closure = NodeClosure { from, until: until.unwrap_or(Timestamp::MAX), reason };
    let mut client = connection.client()?;
    for (mut closures, nodes) in by_closures(&mut client, names)? {
        let place = closures.partition_point(|other| other.from <= closure.from);
        closures.insert(place, closure.clone());
        client.set_closures(CommandId::new_now(), &ClosuresRequest { nodes, closures })?;
    }
    Ok(0)
}

/// The nodes of these names, grouped by equal closures.
fn by_closures(client: &mut Client, names: Vec<String>) -> Result<BTreeMap<Vec<NodeClosure>, Vec<String>>, Failure> {
    let page = waiting("reading nodes", || client.nodes(Moment::Now))?;
    let mut known: BTreeMap<String, Vec<NodeClosure>> =
        page.nodes.into_iter().map(|node| (node.spec.name, node.closures)).collect();
    let mut groups: BTreeMap<Vec<NodeClosure>, Vec<String>> = BTreeMap::new();
    for name in names {
        let missing = || Failure::new(Status::NotFound, format!("there is no node `{name}`"));
        let closures = known.remove(&name).ok_or_else(missing)?;
        groups.entry(closures).or_default().push(name);
    }
    Ok(groups)
}

/// Removes all closures of nodes.
pub fn open(connection: &ConnectionOptions, nodes: &str) -> CommandResult {
    let nodes = parse_hosts(nodes).map_err(Failure::usage)?;
    let request = ClosuresRequest { nodes, closures: Vec::new() };
    connection.client()?.set_closures(CommandId::new_now(), &request)?;
    Ok(0)
}

/// When a node is closed, for people.
pub fn closures_text(closures: &[NodeClosure]) -> String {
    let texts = closures.iter().map(|closure| {
        let until = match closure.until {
            Timestamp::MAX => "further notice".to_owned(),
            until => show::local_time(until),
        };
        let because = if closure.reason.is_empty() { String::new() } else { format!(" ({})", closure.reason) };
        format!("{} to {until}{because}", show::local_time(closure.from))
    });
    texts.collect::<Vec<_>>().join("; ")
}
