//! Circles of files that use each other, directly or through others.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use crate::{names::Uses, source::Source};

/// Files each of which uses all the others, directly or through them: more than one.
pub type Circle = BTreeSet<usize>;

/// The circles of a crate, by their first file.
pub fn circles_of(uses: &Uses) -> Vec<Circle> {
    let mut next: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for one in &uses.uses {
        next.entry(one.from).or_default().insert(one.to);
    }
    let reached: BTreeMap<usize, BTreeSet<usize>> =
        next.keys().map(|file| (*file, reached_from(*file, &next))).collect();
    let is_reached = |from: usize, to: usize| reached.get(&from).is_some_and(|files| files.contains(&to));
    let circles: BTreeSet<Circle> = reached
        .keys()
        .map(|file| reached[file].iter().copied().filter(|other| is_reached(*other, *file)).collect::<Circle>())
        .filter(|circle| circle.len() > 1)
        .collect();
    circles.into_iter().collect()
}

fn reached_from(file: usize, next: &BTreeMap<usize, BTreeSet<usize>>) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut to_look_at = vec![file];
    while let Some(at) = to_look_at.pop() {
        let new = next.get(&at).into_iter().flatten().filter(|file| reached.insert(**file));
        to_look_at.extend(new);
    }
    reached
}

/// The uses within a circle, one line for each pair of files: `bus.rs -> message.rs: Message, Subscription`.
pub fn shown(circle: &Circle, source: &Source, uses: &Uses) -> String {
    let mut pairs: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for one in uses.uses.iter().filter(|one| circle.contains(&one.from) && circle.contains(&one.to)) {
        pairs.entry((&source.files[one.from], &source.files[one.to])).or_default().push(&one.item);
    }
    pairs.iter().fold(String::new(), |mut text, ((from, to), items)| {
        writeln!(text, "    {from} -> {to}: {}", items.join(", ")).expect("a string takes everything");
        text
    })
}
