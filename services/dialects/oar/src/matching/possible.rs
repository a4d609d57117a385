//! Whether a job can ever run.

use super::groups::{Forest, Lack};
use crate::{
    order::Order,
    predicate::Predicate,
    refusal::{Code, Refusal},
    request::demand::Alternative,
    resources::table::Table,
};

/// The alternatives that all resources which are not dead can satisfy, whatever their states and jobs (OAR-R-15), counted
/// from 0.
///
/// # Errors
/// There is none (-5): what the first alternative lacks.
pub fn possible(
    alternatives: &[Alternative],
    table: &Table,
    job: &Predicate,
    site: &Predicate,
) -> Result<Vec<usize>, Refusal> {
    let check =
        |shape: &Alternative| Forest::new(&shape.groups, table, &Order::default(), job, site).find(&|_| true).map(drop);
    let checks: Vec<Result<(), Lack>> = alternatives.iter().map(check).collect();
    let fitting: Vec<usize> = checks.iter().enumerate().filter(|(_, check)| check.is_ok()).map(|(at, _)| at).collect();
    match checks.into_iter().find_map(Result::err) {
        Some(lack) if fitting.is_empty() => {
            Err(Refusal::new(Code::Resources, format!("there are not enough resources: {lack}")))
        }
        _ => Ok(fitting),
    }
}
