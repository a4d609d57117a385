//! What a job says about the sockets, cores and threads of its nodes: `-B` and the options for each of the three.

use super::Settings;
use crate::{messages::Refusal, options::values};

/// The least numbers, as far as they are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// Sockets of each node.
    pub sockets: Option<u32>,
    /// Cores of each socket.
    pub cores: Option<u32>,
    /// Threads of each core.
    pub threads: Option<u32>,
}

/// The option with all three.
const ALL: &str = "extra-node-info";

impl Geometry {
    /// Reads the options: an option for one number goes before that for all.
    ///
    /// # Errors
    /// A value is no number, no range and not `*`.
    pub fn of(settings: &Settings) -> Result<Self, Refusal> {
        let all: Vec<&str> = settings.text(ALL).map_or_else(Vec::new, |text| text.split(':').collect());
        if all.len() > 3 {
            return Err(Refusal::BadValue(ALL));
        }
        let number = |at: usize, option: &'static str| {
            let own = settings.text(option).map(|text| (text, option));
            let given = own.or_else(|| all.get(at).map(|text| (*text, ALL)));
            given.map_or(Ok(None), |(text, option)| least(text).ok_or(Refusal::BadValue(option)))
        };
        Ok(Self {
            sockets: number(0, "sockets-per-node")?,
            cores: number(1, "cores-per-socket")?,
            threads: number(2, "threads-per-core")?,
        })
    }
}

/// The least of `N`, `N-M` or `*`, which is any; `None` if it is something else.
fn least(text: &str) -> Option<Option<u32>> {
    if text == "*" {
        return Some(None);
    }
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let (least, most) = (values::count(least)?, values::count(most)?);
    (least <= most).then_some(Some(least))
}
