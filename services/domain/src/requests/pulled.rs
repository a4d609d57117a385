//! Requests for nodes whose agent asks for its orders: each is for one node (OAR-K-05).

use crate::{requests::minimum, validate::invalid};
use muster_schemas::{
    cluster::ClusterSettings,
    command::Refusal,
    resources::{Alternative, Count, Level, Request},
};

/// Checks an alternative that asks for such nodes.
pub(crate) fn alternative(alternative: &Alternative) -> Result<(), Refusal> {
    let requests = &alternative.requests;
    if !requests.iter().any(Request::asks_for_pull) {
        return Ok(());
    }
    let is_one = requests.len() == 1 && requests.iter().all(is_for_one_node);
    if is_one { Ok(()) } else { invalid("request: a job for nodes whose agent pulls has one of them".into()) }
}

fn is_for_one_node(request: &Request) -> bool {
    let mut groups = request.path.iter().filter(|part| matches!(part.level, Level::Group(_) | Level::Node));
    let most_is_one = groups.all(|part| matches!(part.count, Count::Range { min: 1, max: 1 }));
    let needs_more = minimum(request, &ClusterSettings::default()).nodes > 1;
    most_is_one && !needs_more && request.nodes.len() <= 1
}
