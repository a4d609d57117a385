//! Accounts, users, associations and service classes, and the limits they put on jobs.

mod apply;
mod budgets;
pub(crate) mod decide;
mod fair_share;
pub(crate) mod fair_use;
pub(crate) mod load;
mod rules;
pub(crate) mod spent;
pub(crate) mod state;
pub(crate) mod validate;

pub use rules::{Amount, Charge, Counter, Rule, Rules, Whose, Within};
pub use spent::Spending;
pub use state::Accounts;
