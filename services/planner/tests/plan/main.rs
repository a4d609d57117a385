//! The planner's decisions, with every plan checked by the ledger's rules.

mod accounts;
mod fixed;
mod forecast;
mod layout;
mod left_out;
mod limit;
mod ordering;
mod placement;
mod properties;
mod quotas;
#[path = "../common/requests.rs"]
mod requests;
mod routes;
mod sharing;
mod sleeping;
mod suspended;
mod turns;
mod use_share;
mod way;
mod world;
