//! Where chunks go: `place=scatter:excl:group=switch`.

use crate::{refusal::Refusal, text::is_name};
use std::fmt;

/// How chunks are spread over hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrangement {
    /// Anywhere; several may share a host.
    #[default]
    Free,
    /// All on one host.
    Pack,
    /// Each on its own host.
    Scatter,
    /// Each on its own virtual node. Here a host is one virtual node.
    VScatter,
}

/// Whether other jobs may use the rest of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// They may.
    Shared,
    /// They may not use the same virtual nodes.
    Excl,
    /// They may not use the same hosts.
    ExclHost,
}

/// The value of `place`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// How chunks are spread.
    pub arrangement: Option<Arrangement>,
    /// Whether other jobs may use the rest.
    pub exclusion: Option<Exclusion>,
    /// All chunks go to hosts with the same value of this property.
    pub group: Option<String>,
}

const ARRANGEMENTS: [(&str, Arrangement); 4] = [
    ("free", Arrangement::Free),
    ("pack", Arrangement::Pack),
    ("scatter", Arrangement::Scatter),
    ("vscatter", Arrangement::VScatter),
];

const EXCLUSIONS: [(&str, Exclusion); 3] =
    [("shared", Exclusion::Shared), ("excl", Exclusion::Excl), ("exclhost", Exclusion::ExclHost)];

impl Place {
    /// Reads an arrangement, an exclusion and a group in any order, each at most once.
    ///
    /// # Errors
    /// A word that is none of them, or given twice.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let mut place = Self::default();
        for word in text.split(':') {
            let known = |names: &[(&str, Arrangement)]| names.iter().find(|(name, _)| *name == word).map(|(_, a)| *a);
            let exclusion = EXCLUSIONS.iter().find(|(name, _)| *name == word).map(|(_, exclusion)| *exclusion);
            let group = word.strip_prefix("group=").filter(|name| is_name(name)).map(str::to_owned);
            let is_second = match (known(&ARRANGEMENTS), exclusion, group) {
                (Some(arrangement), ..) => place.arrangement.replace(arrangement).is_some(),
                (_, Some(exclusion), _) => place.exclusion.replace(exclusion).is_some(),
                (.., Some(group)) => place.group.replace(group).is_some(),
                (None, None, None) => {
                    let expected = "expected free, pack, scatter or vscatter; shared, excl or exclhost; group=NAME";
                    return Err(Refusal::value("place", word, expected));
                }
            };
            if is_second {
                return Err(Refusal::value("place", word, "only one of its kind can be given"));
            }
        }
        Ok(place)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrangement = ARRANGEMENTS.iter().find(|(_, arrangement)| Some(*arrangement) == self.arrangement);
        let exclusion = EXCLUSIONS.iter().find(|(_, exclusion)| Some(*exclusion) == self.exclusion);
        let names = arrangement.map(|(name, _)| *name).into_iter().chain(exclusion.map(|(name, _)| *name));
        let group = self.group.as_ref().map(|group| format!("group={group}"));
        let words: Vec<String> = names.map(str::to_owned).chain(group).collect();
        f.write_str(&words.join(":"))
    }
}
