//! The states of nodes (SL-C-28).

use muster_schemas::{
    energy::PowerPhase,
    time::Timestamp,
    views::{NodeStateWord, NodeView},
};

/// The base state of a node, without flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeBase {
    /// It has not reported yet.
    Unknown,
    /// It is out of service.
    Down,
    /// No job uses it.
    Idle,
    /// Jobs use all of it.
    Allocated,
    /// Jobs use part of it.
    Mixed,
}

/// Facts that the core's view of a node lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// A job has the node to itself, even if cores are free.
    pub is_exclusive: bool,
    /// The remains of a job are being cleaned up.
    pub is_completing: bool,
    /// An active reservation keeps it.
    pub is_reserved: bool,
    /// A waiting job is planned to start on it.
    pub is_planned: bool,
    /// An operator has declared it down.
    pub is_declared_down: bool,
    /// An active reservation for maintenance keeps it.
    pub is_maintained: bool,
}

/// The state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeState {
    /// The base state.
    pub base: NodeBase,
    /// It takes no new jobs.
    pub is_draining: bool,
    /// The remains of a job are being cleaned up.
    pub is_completing: bool,
    /// It is closed for maintenance.
    pub is_maintained: bool,
    /// A reservation keeps it.
    pub is_reserved: bool,
    /// A waiting job is planned to start on it.
    pub is_planned: bool,
    /// It does not answer: shown as `*` after the word.
    pub is_silent: bool,
    /// Its power state, if it is not simply awake: shown as `~`, `%` or `#` after the word.
    pub power: Option<PowerPhase>,
}

impl NodeState {
    /// The state of a node at a moment.
    pub fn of(node: &NodeView, facts: NodeFacts, now: Timestamp) -> Self {
        let power = node.power.map(|power| power.phase);
        let base = match node.state {
            NodeStateWord::Lost if power.is_some() && !facts.is_declared_down => used(node, facts),
            NodeStateWord::Lost => NodeBase::Down,
            NodeStateWord::Up | NodeStateWord::Drained | NodeStateWord::Unknown if facts.is_declared_down => {
                NodeBase::Down
            }
            NodeStateWord::Unknown => NodeBase::Unknown,
            NodeStateWord::Up | NodeStateWord::Drained => used(node, facts),
        };
        Self {
            base,
            is_draining: node.state == NodeStateWord::Drained && base != NodeBase::Down,
            is_completing: facts.is_completing,
            is_maintained: facts.is_maintained
                || node.closures.iter().any(|closure| closure.from <= now && now < closure.until),
            is_reserved: facts.is_reserved,
            is_planned: facts.is_planned,
            is_silent: power.is_none() && matches!(node.state, NodeStateWord::Lost | NodeStateWord::Unknown),
            power,
        }
    }

    /// Whether no job uses it.
    pub const fn is_idle(self) -> bool {
        matches!(self.base, NodeBase::Idle)
    }

    /// Whether it takes new jobs, apart from lack of room.
    pub const fn serves(self) -> bool {
        !self.is_draining && !matches!(self.base, NodeBase::Down | NodeBase::Unknown)
    }

    /// Whether jobs use any of it.
    pub const fn is_busy(self) -> bool {
        matches!(self.base, NodeBase::Allocated | NodeBase::Mixed) || self.is_completing
    }

    /// Long and short word, without the `*`.
    fn words(self) -> (&'static str, &'static str) {
        match self.base {
            NodeBase::Down => ("down", "down"),
            _ if self.is_draining && self.is_busy() => ("draining", "drng"),
            _ if self.is_draining => ("drained", "drain"),
            NodeBase::Unknown => ("unknown", "unk"),
            _ if self.is_maintained => ("maint", "maint"),
            _ if self.is_completing => ("completing", "comp"),
            NodeBase::Allocated => ("allocated", "alloc"),
            NodeBase::Mixed => ("mixed", "mix"),
            NodeBase::Idle if self.is_reserved => ("reserved", "resv"),
            NodeBase::Idle if self.is_planned => ("planned", "plnd"),
            NodeBase::Idle => ("idle", "idle"),
        }
    }

    /// The short word: `drng`, `down*`.
    pub fn short(self) -> String {
        self.with_star(self.words().1)
    }

    /// The long word: `draining`, `down*`.
    pub fn long(self) -> String {
        self.with_star(self.words().0)
    }

    fn with_star(self, word: &str) -> String {
        let mark = match self.power {
            Some(PowerPhase::Asleep) => "~",
            Some(PowerPhase::FallingAsleep) => "%",
            Some(PowerPhase::Waking) => "#",
            None if self.is_silent => "*",
            None => "",
        };
        format!("{word}{mark}")
    }

    /// As `scontrol show node` shows it: `IDLE+DRAIN`, `DOWN*`, `MIXED`.
    pub fn flags(self) -> String {
        let base = match self.base {
            NodeBase::Unknown => "UNKNOWN",
            NodeBase::Down => "DOWN",
            NodeBase::Idle => "IDLE",
            NodeBase::Allocated => "ALLOCATED",
            NodeBase::Mixed => "MIXED",
        };
        let star = if self.is_silent { "*" } else { "" };
        let mut text = format!("{base}{star}");
        let flags = [
            (self.power == Some(PowerPhase::Asleep), "+POWERED_DOWN"),
            (self.power == Some(PowerPhase::FallingAsleep), "+POWERING_DOWN"),
            (self.power == Some(PowerPhase::Waking), "+POWERING_UP"),
            (self.is_completing, "+COMPLETING"),
            (self.is_draining, "+DRAIN"),
            (self.is_maintained, "+MAINTENANCE"),
            (self.is_reserved, "+RESERVED"),
            (self.is_planned, "+PLANNED"),
        ];
        flags.iter().filter(|(set, _)| *set).for_each(|(_, flag)| text.push_str(flag));
        text
    }
}

fn used(node: &NodeView, facts: NodeFacts) -> NodeBase {
    match node.cores_used {
        0 if node.jobs.is_empty() => NodeBase::Idle,
        used if used >= node.spec.cores || facts.is_exclusive => NodeBase::Allocated,
        _ => NodeBase::Mixed,
    }
}

/// A node state in `sinfo -t` (SL-C-29).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateTest {
    /// Exactly that word.
    Word(&'static str),
    /// Takes no new jobs, with or without running ones.
    Drain,
    /// Does not answer.
    Silent,
    /// Every node.
    All,
}

impl StateTest {
    /// The possible words, in the order of the message.
    pub const WORDS: [(&'static str, Self); 31] = [
        ("alloc", Self::Word("allocated")),
        ("allocated", Self::Word("allocated")),
        ("all", Self::All),
        ("comp", Self::Word("completing")),
        ("completing", Self::Word("completing")),
        ("down", Self::Word("down")),
        ("drain", Self::Drain),
        ("drained", Self::Word("drained")),
        ("draining", Self::Word("draining")),
        ("drng", Self::Word("draining")),
        ("idle", Self::Word("idle")),
        ("maint", Self::Word("maint")),
        ("mix", Self::Word("mixed")),
        ("mixed", Self::Word("mixed")),
        ("no_respond", Self::Silent),
        ("planned", Self::Word("planned")),
        ("plnd", Self::Word("planned")),
        ("resv", Self::Word("reserved")),
        ("reserved", Self::Word("reserved")),
        ("unk", Self::Word("unknown")),
        ("unknown", Self::Word("unknown")),
        ("noresp", Self::Silent),
        // No node of muster is ever in these.
        ("blocked", Self::Word("blocked")),
        ("fail", Self::Word("fail")),
        ("failing", Self::Word("failing")),
        ("future", Self::Word("future")),
        ("power_down", Self::Word("power_down")),
        ("power_up", Self::Word("power_up")),
        // These are the power states of nodes.
        ("powered_down", Self::Word("powered_down")),
        ("powering_down", Self::Word("powering_down")),
        ("powering_up", Self::Word("powering_up")),
    ];

    /// The test for a word in any case, with or without the star; `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.trim_end_matches('*');
        Self::WORDS.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, test)| test)
    }

    /// Whether a node's state matches.
    pub fn takes(self, state: NodeState) -> bool {
        match self {
            Self::Word("powered_down") => state.power == Some(PowerPhase::Asleep),
            Self::Word("powering_down") => state.power == Some(PowerPhase::FallingAsleep),
            Self::Word("powering_up") => state.power == Some(PowerPhase::Waking),
            Self::Word(word) => state.words().0 == word,
            Self::Drain => state.is_draining,
            Self::Silent => state.is_silent,
            Self::All => true,
        }
    }
}
