//! What several tests need.

use muster_oar::resources::{
    property::{ID, NODE},
    table::Table,
    value::{Kind, Value},
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
