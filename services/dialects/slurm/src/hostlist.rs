//! Lists of node names, `nid[00001-00003,00011]`, and lists of counts, `4(x2),36` (SL-C-05, SL-E-09).

pub use muster_schemas::hosts::{HostlistError, compress, compress_sorted, expand, sort};

/// The most counts in a list: protects from `1(x4000000000)`.
const MOST_COUNTS: usize = 1_000_000;

/// Counts of nodes in order, equal neighbours joined: `4(x2)`, `72(x2),36`.
pub fn compress_counts(counts: &[u64]) -> String {
    let texts: Vec<String> = counts
        .chunk_by(|left, right| left == right)
        .map(|chunk| match chunk {
            [only] => only.to_string(),
            chunk => format!("{}(x{})", chunk[0], chunk.len()),
        })
        .collect();
    texts.join(",")
}

/// Reads the output of [`compress_counts`]; `None` for anything else, or for more than 1,000,000 counts.
pub fn expand_counts(text: &str) -> Option<Vec<u64>> {
    let mut counts = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (count, times) = match part.split_once("(x") {
            None => (part, 1),
            Some((count, times)) => (count, number(times.strip_suffix(')')?)?),
        };
        let times = usize::try_from(times).ok().filter(|times| counts.len() + times <= MOST_COUNTS)?;
        counts.extend(std::iter::repeat_n(number(count)?, times));
    }
    Some(counts)
}

fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
