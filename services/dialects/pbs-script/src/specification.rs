//! Requests for nodes such as `nodes=2:fast+1:big`: how many there are, and which.

use muster_pbs_plan::state_file::{NodeState, StateFile};

/// Maximum number of parts.
const MOST_PARTS: usize = 1000;

/// A request for nodes; one without parts is for any node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Specification<'t> {
    parts: Vec<Part<'t>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Part<'t> {
    count: usize,
    /// A name or properties of the nodes.
    words: Vec<&'t str>,
}

/// Nodes by what can be done with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Free ones.
    pub available: usize,
    /// Those that jobs have.
    pub allocated: usize,
    /// Reserved ones.
    pub reserved: usize,
    /// All others.
    pub down: usize,
}

impl<'t> Specification<'t> {
    /// Reads `nodes` or `nodes=PART+PART`, in which a part is `N`, `N:property` or `name`. `None` for anything else.
    pub fn parse(text: &'t str) -> Option<Self> {
        let rest = text.strip_prefix("nodes")?;
        let Some(rest) = rest.strip_prefix('=') else {
            return rest.is_empty().then_some(Self { parts: Vec::new() });
        };
        let parts: Vec<Part> = rest.split('+').take(MOST_PARTS + 1).map(Part::parse).collect::<Option<_>>()?;
        (parts.len() <= MOST_PARTS).then_some(Self { parts })
    }

    /// The nodes that any part is about.
    pub fn counts(&self, state: &StateFile) -> Counts {
        let mut counts = Counts::default();
        for node in &state.nodes {
            if self.parts.is_empty() || self.parts.iter().any(|part| part.fits(node)) {
                *match condition(node) {
                    Condition::Free => &mut counts.available,
                    Condition::Used => &mut counts.allocated,
                    Condition::Reserved => &mut counts.reserved,
                    Condition::Down => &mut counts.down,
                } += 1;
            }
        }
        counts
    }

    /// Free nodes for all parts, as places in the list; `None` if there are too few. Each part takes the first that
    /// fit.
    pub fn choose(&self, state: &StateFile) -> Option<Vec<usize>> {
        let mut chosen = Vec::new();
        for part in &self.parts {
            let fitting = state.nodes.iter().enumerate().filter(|(place, node)| {
                part.fits(node) && condition(node) == Condition::Free && !chosen.contains(place)
            });
            let new: Vec<usize> = fitting.map(|(place, _)| place).take(part.count).collect();
            if new.len() < part.count {
                return None;
            }
            chosen.extend(new);
        }
        Some(chosen)
    }
}

impl<'t> Part<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        let mut words: Vec<&str> = text.split(':').map(str::trim).collect();
        let count = words.first().and_then(|word| word.parse().ok());
        if count.is_some() {
            words.remove(0);
        }
        let is_right = words.iter().all(|word| !word.is_empty()) && (count.is_some() || !words.is_empty());
        is_right.then_some(Self { count: count.unwrap_or(1), words })
    }

    fn fits(&self, node: &NodeState) -> bool {
        let has = |word: &&str| node.name == *word || node.properties.iter().any(|property| property == word);
        self.words.iter().all(has)
    }
}

/// The use that a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Jobs can have it.
    Free,
    /// Jobs have it.
    Used,
    /// It is reserved.
    Reserved,
    /// Nothing.
    Down,
}

/// The condition that the words of a node's state give. A node without a state is free.
pub fn condition(node: &NodeState) -> Condition {
    let has = |wanted: &[&str]| {
        let state = node.state.as_deref().unwrap_or("free");
        state.split(',').any(|word| wanted.contains(&word.trim()))
    };
    if has(&["down", "offline", "unknown", "state-unknown", "busy"]) {
        Condition::Down
    } else if has(&["reserve"]) {
        Condition::Reserved
    } else if has(&["job-exclusive", "job-sharing"]) {
        Condition::Used
    } else {
        Condition::Free
    }
}
