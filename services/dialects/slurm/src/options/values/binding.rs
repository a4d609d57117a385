//! Values of `--cpu-bind`, `--mem-bind` and the inner levels of `--distribution`.

use super::number;
use muster_schemas::{
    binding::{CoreBinding, MemoryBinding, MemoryDomains, SocketOrder},
    resources::IndexSet,
};

/// The most entries of a list, repetitions included.
const MAX_LISTED: usize = 4_096;
/// The most hexadecimal digits of a mask.
const MAX_DIGITS: usize = 1_024;

/// The value of `--cpu-bind`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuBind {
    /// Whether each task tells what it is bound to.
    pub is_verbose: bool,
    /// The binding, if one is named.
    pub cores: Option<CoreBinding>,
    /// The word of the binding in `SLURM_CPU_BIND_TYPE`, with a colon before a list.
    pub kind: String,
    /// Its list, as written.
    pub list: String,
}

impl CpuBind {
    /// Reads `[quiet|verbose,]TYPE`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let Words { is_verbose, kind, list, others } = Words::of(text)?;
        let cores = match (kind.to_ascii_lowercase().as_str(), list) {
            ("", None) => None,
            ("no" | "none", None) => Some(CoreBinding::All),
            // In order of ranks, one core for each.
            ("rank" | "cores" | "threads", None) => Some(CoreBinding::Own),
            // A node is one board.
            ("boards", None) => Some(CoreBinding::All),
            ("sockets" | "ldoms", None) => Some(CoreBinding::Sockets),
            ("rank_ldom", None) => Some(CoreBinding::EachSocket),
            ("map_cpu", Some(list)) => Some(CoreBinding::Listed(repeated(list, single)?)),
            ("mask_cpu", Some(list)) => Some(CoreBinding::Listed(repeated(list, mask)?)),
            ("map_ldom", Some(list)) => Some(CoreBinding::ListedSockets(repeated(list, single)?)),
            ("mask_ldom", Some(list)) => Some(CoreBinding::ListedSockets(repeated(list, mask)?)),
            _ => return None,
        };
        let colon = if list.is_some() { ":" } else { "" };
        let kind = format!("{}{colon}", kind.to_ascii_lowercase());
        others.is_empty().then(|| Self { is_verbose, cores, kind, list: list.unwrap_or_default().to_owned() })
    }
}

/// The value of `--mem-bind`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemBind {
    /// Whether each task tells what it is bound to.
    pub is_verbose: bool,
    /// The binding; `None` leaves it to the kernel.
    pub memory: Option<MemoryBinding>,
    /// The word of the binding in `SLURM_MEM_BIND_TYPE`, with a colon before a list.
    pub kind: String,
    /// Its list, as written.
    pub list: String,
}

impl MemBind {
    /// Reads `[quiet|verbose,][prefer,][sort,]TYPE`; `None` for anything else. Sorting free pages has no effect.
    pub fn parse(text: &str) -> Option<Self> {
        let Words { is_verbose, kind, list, others } = Words::of(text)?;
        let is_preference = others.iter().any(|word| matches!(word.as_str(), "p" | "prefer"));
        if !others.iter().all(|word| matches!(word.as_str(), "p" | "prefer" | "sort" | "nosort")) {
            return None;
        }
        let domains = match (kind.to_ascii_lowercase().as_str(), list) {
            ("" | "no" | "none", None) => None,
            ("local", None) => Some(MemoryDomains::Local),
            ("rank", None) => Some(MemoryDomains::Rank),
            ("map_mem", Some(list)) => Some(MemoryDomains::Listed(repeated(list, single)?)),
            ("mask_mem", Some(list)) => Some(MemoryDomains::Listed(repeated(list, mask)?)),
            _ => return None,
        };
        let memory = domains.map(|domains| MemoryBinding { domains, is_preference });
        let colon = if list.is_some() { ":" } else { "" };
        let kind = format!("{}{colon}", kind.to_ascii_lowercase());
        Some(Self { is_verbose, memory, kind, list: list.unwrap_or_default().to_owned() })
    }
}

/// How `--distribution` deals tasks out to the sockets of a node: its second level. `None` if it names none.
pub fn socket_order(distribution: &str) -> Option<SocketOrder> {
    let lower = distribution.to_ascii_lowercase();
    let levels = lower.split(',').next().unwrap_or_default();
    match levels.split(':').nth(1)? {
        "block" => Some(SocketOrder::Block),
        "fcyclic" => Some(SocketOrder::FullCyclic),
        // Slurm's usual order.
        _ => Some(SocketOrder::Cyclic),
    }
}

/// The words of a value: how loud it is, its type with its list, and what else is named before it.
struct Words<'a> {
    is_verbose: bool,
    kind: &'a str,
    list: Option<&'a str>,
    others: Vec<String>,
}

impl<'a> Words<'a> {
    /// The list of a type contains commas, so everything from the type on belongs to it. `None` if a word follows that.
    fn of(text: &'a str) -> Option<Self> {
        const BEFORE: [&str; 8] = ["q", "quiet", "v", "verbose", "p", "prefer", "sort", "nosort"];
        let mut words = Self { is_verbose: false, kind: "", list: None, others: Vec::new() };
        let mut left = text;
        while !left.is_empty() {
            let (word, rest) = left.split_once(',').unwrap_or((left, ""));
            let lower = word.to_ascii_lowercase();
            if !BEFORE.contains(&lower.as_str()) {
                (words.kind, words.list) = left.split_once(':').map_or((left, None), |(kind, list)| (kind, Some(list)));
                break;
            }
            match lower.as_str() {
                "v" | "verbose" => words.is_verbose = true,
                "q" | "quiet" => words.is_verbose = false,
                _ => words.others.push(lower),
            }
            left = rest;
        }
        (!text.is_empty()).then_some(words)
    }
}

/// A list of entries, each of which may be repeated: `0x3*2,0xc`.
fn repeated(list: &str, entry: impl Fn(&str) -> Option<IndexSet>) -> Option<Vec<IndexSet>> {
    let mut entries = Vec::new();
    for word in list.split(',') {
        let (one, times) = match word.split_once('*') {
            Some((one, times)) => (one, number(times)? as usize),
            None => (word, 1),
        };
        if times == 0 || entries.len() + times > MAX_LISTED {
            return None;
        }
        let one = entry(one)?;
        entries.extend(std::iter::repeat_n(one, times));
    }
    Some(entries)
}

/// The number of one core, decimal, or hexadecimal after `0x`.
fn single(text: &str) -> Option<IndexSet> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?,
        None => number(text)?,
    };
    Some(IndexSet::from_range(number, number))
}

/// The numbers of the bits of a hexadecimal number, at least one.
fn mask(text: &str) -> Option<IndexSet> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return None;
    }
    let mut bits = Vec::new();
    for (digit, place) in digits.chars().rev().zip(0..) {
        let digit = digit.to_digit(16)?;
        bits.extend((0..4).filter(|bit| digit >> bit & 1 == 1).map(|bit| place * 4 + bit));
    }
    Some(bits.into_iter().collect()).filter(|bits: &IndexSet| !bits.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(texts: &[&str]) -> Vec<IndexSet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn cores(text: &str) -> Option<CoreBinding> {
        CpuBind::parse(text)?.cores
    }

    #[test]
    fn cores_are_bound_by_words_maps_and_masks() {
        assert_eq!(cores("none"), Some(CoreBinding::All));
        assert_eq!(cores("Verbose,Cores"), Some(CoreBinding::Own));
        assert_eq!(cores("sockets"), Some(CoreBinding::Sockets));
        assert_eq!(cores("rank_ldom"), Some(CoreBinding::EachSocket));
        assert_eq!(cores("q,map_cpu:3,0x1"), Some(CoreBinding::Listed(sets(&["3", "1"]))));
        assert_eq!(cores("mask_cpu:0x3*2,0xf00000000"), Some(CoreBinding::Listed(sets(&["0-1", "0-1", "32-35"]))));
        assert_eq!(cores("mask_ldom:0x2"), Some(CoreBinding::ListedSockets(sets(&["1"]))));
        let loud = CpuBind::parse("v").unwrap();
        assert!(loud.is_verbose && loud.cores.is_none());
        let asked = CpuBind::parse("verbose,mask_cpu:0x1,0x2").unwrap();
        assert_eq!((asked.is_verbose, asked.kind.as_str(), asked.list.as_str()), (true, "mask_cpu:", "0x1,0x2"));
    }

    #[test]
    fn what_is_no_binding_is_refused() {
        let huge = format!("mask_cpu:{}", "f".repeat(MAX_DIGITS + 1));
        for text in [
            "",
            "core",
            "map_cpu",
            "map_cpu:",
            "map_cpu:a",
            "map_cpu:1,,2",
            "map_cpu:0*0",
            "map_cpu:0*5000",
            "mask_cpu:0x0",
            "mask_cpu:0xg",
            "mask_cpu:-1",
            "cores:1",
            "none,cores",
            "prefer,cores",
            "map_cpu:0x+1",
            &huge,
        ] {
            assert_eq!(CpuBind::parse(text), None, "{text}");
        }
    }

    #[test]
    fn memory_is_bound_by_words_maps_and_masks() {
        let memory = |text: &str| MemBind::parse(text).and_then(|bind| bind.memory);
        let to = |domains, is_preference| Some(MemoryBinding { domains, is_preference });
        assert_eq!(memory("local"), to(MemoryDomains::Local, false));
        assert_eq!(memory("v,prefer,sort,rank"), to(MemoryDomains::Rank, true));
        assert_eq!(memory("map_mem:1,0"), to(MemoryDomains::Listed(sets(&["1", "0"])), false));
        assert_eq!(memory("p,mask_mem:0x3"), to(MemoryDomains::Listed(sets(&["0-1"])), true));
        assert_eq!(memory("none"), None);
        for text in ["", "cores", "local:1", "map_mem:", "local,prefer"] {
            assert_eq!(MemBind::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_second_level_of_a_distribution_is_about_sockets() {
        let order = |text| socket_order(text);
        assert_eq!(order("block"), None);
        assert_eq!(order("cyclic,pack"), None);
        assert_eq!(order("block:block"), Some(SocketOrder::Block));
        assert_eq!(order("Plane=2:FCyclic:block,nopack"), Some(SocketOrder::FullCyclic));
        assert_eq!(order("*:*"), Some(SocketOrder::Cyclic));
    }
}
