//! What tasks are bound to.

use super::shorten;
use muster_schemas::{
    binding::{CoreBinding, MemoryBinding, MemoryDomains},
    resources::IndexSet,
};

/// `all`, `own`, `sockets`, `each-socket`, or the cores of each task: `0-1:2-3`.
pub fn parse_core_binding(text: &str) -> Result<CoreBinding, String> {
    Ok(match text {
        "all" => CoreBinding::All,
        "own" => CoreBinding::Own,
        "sockets" => CoreBinding::Sockets,
        "each-socket" => CoreBinding::EachSocket,
        list => CoreBinding::Listed(sets(list).ok_or_else(|| {
            let list = shorten(list);
            format!(
                "`{list}` is not `all`, `own`, `sockets`, `each-socket` or the cores of each task, such as `0-1:2-3`"
            )
        })?),
    })
}

/// `local`, `rank`, or the memory domains of each task: `0:1`.
pub fn parse_memory_binding(text: &str) -> Result<MemoryBinding, String> {
    let domains = match text {
        "local" => MemoryDomains::Local,
        "rank" => MemoryDomains::Rank,
        list => MemoryDomains::Listed(sets(list).ok_or_else(|| {
            format!("`{}` is not `local`, `rank` or the memory domains of each task, such as `0:1`", shorten(list))
        })?),
    };
    Ok(MemoryBinding { domains, is_preference: false })
}

/// Sets of numbers, separated by colons.
fn sets(text: &str) -> Option<Vec<IndexSet>> {
    let sets = text.split(':').map(|set| set.parse().ok().filter(|set: &IndexSet| !set.is_empty()));
    sets.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_bound_by_words_or_lists() {
        let listed = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IndexSet>>();
        assert_eq!(parse_core_binding("own"), Ok(CoreBinding::Own));
        assert_eq!(parse_core_binding("0-1,4:2"), Ok(CoreBinding::Listed(listed(&["0-1,4", "2"]))));
        let local = MemoryBinding { domains: MemoryDomains::Local, is_preference: false };
        assert_eq!(parse_memory_binding("local"), Ok(local));
        for text in ["", "cores", "0::1", "1-", ":"] {
            assert!(parse_core_binding(text).unwrap_err().contains("the cores of each task"), "{text}");
            assert!(parse_memory_binding(text).is_err(), "{text}");
        }
    }
}
