//! Names of output files.

use muster_schemas::{JobId, node::LaunchOrder};

/// The pattern of standard output when the job names none.
pub fn default_pattern(job: JobId) -> &'static str {
    if job.index.is_some() { "muster-%A_%a.out" } else { "muster-%j.out" }
}

/// Fills in a pattern for the task of a rank: `%j` job, `%J` its own number, `%A` number of the job or array, `%a` index in it, `%x` name, `%N` node,
/// `%t` rank, `%u` user, `%%` a per cent sign; in a step `%s` how many steps of its run came before, `%n` the node's place in
/// it. Anything else stays as it is.
pub fn expand(pattern: &str, order: &LaunchOrder, node: &str, rank: u32) -> String {
    let mut path = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        path.push_str(&rest[..at]);
        let mut after = rest[at + 1..].chars();
        match after.next() {
            Some('j') => path.push_str(&order.job.to_string()),
            Some('J') => path.push_str(&order.number().to_string()),
            Some('A') => path.push_str(&order.job.number.to_string()),
            Some('a') => path.push_str(&order.job.index.unwrap_or(0).to_string()),
            Some('x') => path.push_str(&as_file_name(&order.name)),
            Some('N') => path.push_str(&as_file_name(node)),
            Some('t') => path.push_str(&rank.to_string()),
            Some('s') if order.step.0 > 0 => path.push_str(&(order.step.0 - 1).to_string()),
            Some('n') if order.step.0 > 0 => path.push_str(&order.node_index.to_string()),
            Some('u') => path.push_str(&as_file_name(&order.owner.user)),
            Some('%') => path.push('%'),
            Some(other) => path.extend(['%', other]),
            None => path.push('%'),
        }
        rest = after.as_str();
    }
    path.push_str(rest);
    path
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
            ("%q%", "%q%"),
            ("%é", "%é"),
            ("", ""),
        ] {
            assert_eq!(expand(pattern, &order, "n1", 5), path, "{pattern}");
        }
        order.environment.insert(muster_schemas::node::JOB_NUMBER_VARIABLE.into(), "14".into());
        assert_eq!(expand("%J-%j", &order, "n1", 5), "14-12_3");
        order.job = JobId::job(12);
        assert_eq!(expand(default_pattern(order.job), &order, "n1", 0), "muster-12.out");
        order.job = JobId::task(12, 3);
        assert_eq!(expand(default_pattern(order.job), &order, "n1", 0), "muster-12_3.out");
    }
}
