//! What several tests need.

use muster_oar::{
    matching::Forest,
    order::{Key, Order},
    planning::{
        domain::Domain,
        gantt::{Gantt, Placement},
        pass::{Outcome, Pass},
        search::{Shape, Wish},
    },
    power::Purpose,
    predicate::Predicate,
    request::{self, site::Site},
    resources::{
        property::{ID, NODE},
        table::Table,
        value::{Kind, Value},
    },
};

/// Sixteen resources: two switches of two nodes of two processors of two cores. Cores have the number of the resource.
pub fn s() -> Table {
    let mut table = Table::default();
    table.add_property("switch", Kind::Text).expect("new");
    table.add_property("cpu", Kind::Text).expect("new");
    table.add_property("core", Kind::Integer).expect("new");
    for id in 1..=16_i64 {
        let of = |letter: char, size: i64| Value::Text(format!("{letter}{}", (id - 1) / size + 1));
        let values = [
            (ID, Value::Integer(id)),
            ("switch", of('s', 8)),
            (NODE, of('n', 4)),
            ("cpu", of('c', 2)),
            ("core", Value::Integer(id)),
        ];
        table.add(&values).expect("a resource");
    }
    table
}

/// Nodes of one resource each.
pub fn nodes(count: u32) -> Table {
    let mut table = Table::default();
    for number in 1..=count {
        table.add(&[(NODE, Value::Text(format!("n{number:02}")))]).expect("a resource");
    }
    table
}

/// The resources of a text such as `1-4, 9`.
pub fn ids(text: &str) -> Vec<u32> {
    let number = |word: &str| word.trim().parse::<u32>().expect("a number");
    let range = |part: &str| match part.split_once('-') {
        Some((first, last)) => (number(first)..=number(last)).collect::<Vec<_>>(),
        None => vec![number(part)],
    };
    text.split(',').filter(|part| !part.trim().is_empty()).flat_map(range).collect()
}

/// A job that looks for a place: requests such as `nodes=2,walltime=0:0:60`, in the order of resource numbers.
pub fn wish(table: &Table, job: u64, requests: &[&str]) -> Wish {
    filtered_wish(table, job, "", requests)
}

/// The same with the filter of `-p`.
pub fn filtered_wish(table: &Table, job: u64, filter: &str, requests: &[&str]) -> Wish {
    let site = Site::of(table);
    let order = Order(vec![Key { property: ID.to_owned(), is_descending: false }]);
    let filter = request::filter(filter, &site).expect("a filter");
    let shape = |text: &&str| {
        let read = request::alternative(text, &site).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
        let forest = Forest::new(&read.groups, table, &order, &filter, &Predicate::ALWAYS);
        Shape { forest, walltime: read.walltime }
    };
    Wish {
        placement: Placement { job, ..Placement::default() },
        shapes: requests.iter().map(shape).collect(),
        not_before: 0,
        latest_start: None,
        latest_end: None,
        purpose: Purpose::Batch,
    }
}

/// A wish inside the domain of a container.
pub fn inside(key: &str, wish: Wish) -> Wish {
    let placement = Placement { domain: Domain::Inside(key.to_owned()), ..wish.placement.clone() };
    Wish { placement, ..wish }
}

/// A container.
pub fn opening(key: &str, wish: Wish) -> Wish {
    let placement = Placement { opens: Some(key.to_owned()), ..wish.placement.clone() };
    Wish { placement, ..wish }
}

/// What runs already.
pub fn busy(job: u64, resources: &str, start: i64, end: i64) -> Placement {
    Placement { job, start, end, resources: ids(resources).into_iter().collect(), ..Placement::default() }
}

/// A pass without limits.
pub fn plan(table: &Table, guard: i64, now: i64, running: &[Placement], wishes: &[Wish]) -> Vec<Outcome> {
    let gantt = Gantt { guard, placements: running.to_vec() };
    let wishes: Vec<Wish> =
        wishes.iter().map(|wish| Wish { not_before: wish.not_before.max(now), ..wish.clone() }).collect();
    let mut pass = Pass { now, table, gantt, limits: &|_, _| Ok(()), limit_changes: &[] };
    let outcomes = pass.run(&wishes);
    assert_eq!(pass.gantt.conflict(), None);
    outcomes
}

/// The start and the resources of an outcome, or its reason.
pub fn told(outcome: &Outcome) -> String {
    match outcome {
        Ok(found) => format!("{} on {}", found.placement.start, shown(&found.placement.resources)),
        Err(reason) => reason.to_string(),
    }
}

/// Resources as ranges: `1-4, 9`.
pub fn shown(resources: &std::collections::BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for id in resources {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *id => *last = *id,
            _ => ranges.push((*id, *id)),
        }
    }
    let range = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}
