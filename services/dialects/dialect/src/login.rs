//! The environment of a login, for dialects whose jobs get it.

use crate::{Host, Variables};
use muster_schemas::node::LaunchOrder;
use std::collections::BTreeMap;

/// The time limit of a login. Nodes have a minute to confirm a launch, unless the site sets another limit.
const LOGIN_SECONDS: u32 = 40;

/// The mark before the input of [`parse`]. A login may print something first.
pub const MARK: &str = "muster-login-environment";

/// Variables that only have a meaning during the login.
const OF_LOGIN_ITSELF: [&str; 12] = [
    "_",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "TERM",
    "DISPLAY",
    "HOSTNAME",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_CLASS",
    "XDG_SESSION_ID",
    "XDG_SESSION_TYPE",
];

/// The variables of `env -0` after [`MARK`] and a NUL, without those about the login itself, which has ended. The
/// last of several marks counts. `None` without a mark.
pub fn parse(said: &[u8]) -> Option<BTreeMap<String, String>> {
    let said = String::from_utf8_lossy(said);
    let (_, variables) = said.rsplit_once(&format!("{MARK}\0"))?;
    let variables = variables.split_terminator('\0').filter_map(|entry| entry.split_once('='));
    let is_kept = |name: &str| !name.is_empty() && !OF_LOGIN_ITSELF.contains(&name);
    let kept = variables.filter(|(name, _)| is_kept(name));
    Some(kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// The variables that a login of the job's user on this node sets, except those that the job has already. Without an
/// answer in time the job runs with what it has.
pub fn variables(order: &LaunchOrder, host: &Host<'_>) -> Variables {
    let print = format!("printf '{}\\0'; env -0", MARK);
    let said = (host.login)(&print, LOGIN_SECONDS);
    let known = said.and_then(|said| parse(&said).ok_or("it did not come to its end".to_owned()));
    match known {
        Ok(known) => {
            let set = known.into_iter().filter(|(name, _)| !order.environment.contains_key(name)).collect();
            Variables { set, remark: None }
        }
        Err(why) => {
            let remark = format!("the environment of a login of {} is not loaded: {why}", order.owner.user);
            Variables { set: BTreeMap::new(), remark: Some(remark) }
        }
    }
}
