//! Names of output files.

use muster_schemas::{
    node::{LaunchOrder, RESTART_COUNT_VARIABLE},
    output::{self, as_file_name, of_job},
};

pub use muster_schemas::output::default_pattern;

/// Fills in a pattern for the task of a rank: in addition to what [`of_job`] knows, `%J` is the job's own number, `%N`
/// node, `%t` rank, `%r` how often it was started before; in a step `%s` is the number of earlier steps of its run,
/// `%n` the node's index in it.
pub fn expand(pattern: &str, order: &LaunchOrder, node: &str, rank: u32) -> String {
    output::expand(pattern, |symbol| value(symbol, order, node, rank))
}

fn value(symbol: char, order: &LaunchOrder, node: &str, rank: u32) -> Option<String> {
    Some(match symbol {
        'J' => order.number().to_string(),
        'N' => as_file_name(node),
        't' => rank.to_string(),
        's' if order.step.0 > 0 => (order.step.0 - 1).to_string(),
        'n' if order.step.0 > 0 => order.node_index.to_string(),
        'r' => order.environment.get(RESTART_COUNT_VARIABLE).cloned().unwrap_or_else(|| "0".to_owned()),
        _ => return of_job(symbol, order.job, &order.name, &order.owner.user),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::order;
    use muster_schemas::JobId;

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
