//! Names of output files.

use muster_schemas::{
    JobId,
    node::{LaunchOrder, RESTART_COUNT_VARIABLE},
};

/// The pattern of standard output when the job names none.
pub fn default_pattern(job: JobId) -> &'static str {
    if job.index.is_some() { "muster-%A_%a.out" } else { "muster-%j.out" }
}

/// A width in a pattern has no effect beyond this.
const WIDEST: usize = 10;

/// Fills in a pattern for the task of a rank: `%j` job, `%J` its own number, `%A` number of the job or array, `%a` index in it, `%b` its last digit,
/// `%x` name, `%N` node, `%t` rank, `%u` user, `%r` how often it was started before, `%%` a per cent sign; in a step `%s` how
/// many steps of its run came before, `%n` the node's place in it. A width, as in `%5j`, pads a number with zeros. Anything
/// else stays as it is.
pub fn expand(pattern: &str, order: &LaunchOrder, node: &str, rank: u32) -> String {
    let mut path = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        path.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let symbol = after[digits..].chars().next();
        let end = at + 1 + digits + symbol.map_or(0, char::len_utf8);
        match symbol.and_then(|symbol| value(symbol, order, node, rank)) {
            Some(text) if digits > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                let width = after[..digits].parse().map_or(WIDEST, |width: usize| width.min(WIDEST));
                path.push_str(&format!("{text:0>width$}"));
            }
            Some(text) => path.push_str(&text),
            None => path.push_str(&rest[at..end]),
        }
        rest = &rest[end..];
    }
    path.push_str(rest);
    path
}

fn value(symbol: char, order: &LaunchOrder, node: &str, rank: u32) -> Option<String> {
    let index = order.job.index.unwrap_or(0);
    Some(match symbol {
        'j' => order.job.to_string(),
        'J' => order.number().to_string(),
        'A' => order.job.number.to_string(),
        'a' => index.to_string(),
        'b' => (index % 10).to_string(),
        'x' => as_file_name(&order.name),
        'N' => as_file_name(node),
        't' => rank.to_string(),
        's' if order.step.0 > 0 => (order.step.0 - 1).to_string(),
        'n' if order.step.0 > 0 => order.node_index.to_string(),
        'r' => order.environment.get(RESTART_COUNT_VARIABLE).cloned().unwrap_or_else(|| "0".to_owned()),
        'u' => as_file_name(&order.owner.user),
        '%' => "%".to_owned(),
        _ => return None,
    })
}

/// A name that people chose must not lead into another folder.
fn as_file_name(name: &str) -> String {
    name.replace('/', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::order;

    #[test]
    fn patterns() {
        let mut order = order(7);
        order.job = JobId::task(12, 3);
        order.name = "a/b".into();
        order.owner.user = "ann".into();
        for (pattern, path) in [
            ("out", "out"),
            ("%j.out", "12_3.out"),
            ("%A-%a", "12-3"),
            ("%J", "12"),
            ("%x.%N.%t.%u", "a_b.n1.5.ann"),
            ("100%%j", "100%j"),
            ("%5A-%03a%99A-%4x", "00012-0030000000012-a_b"),
            ("%b.%r", "3.0"),
            ("%7", "%7"),
            ("%7q", "%7q"),
            ("%q%", "%q%"),
            ("%é", "%é"),
            ("", ""),
        ] {
            assert_eq!(expand(pattern, &order, "n1", 5), path, "{pattern}");
        }
        order.environment.insert(muster_schemas::node::JOB_NUMBER_VARIABLE.into(), "14".into());
        assert_eq!(expand("%J-%j", &order, "n1", 5), "14-12_3");
        order.environment.insert(RESTART_COUNT_VARIABLE.into(), "2".into());
        assert_eq!(expand("%r.%2r", &order, "n1", 0), "2.02");
        order.job = JobId::job(12);
        assert_eq!(expand(default_pattern(order.job), &order, "n1", 0), "muster-12.out");
        order.job = JobId::task(12, 3);
        assert_eq!(expand(default_pattern(order.job), &order, "n1", 0), "muster-12_3.out");
    }
}
