//! Texts of launches: the last line of a job that was ended, and what a login says.

use crate::value::show_seconds;
use std::collections::BTreeMap;

/// The mark before the input of [`login`]. A login may print something first.
pub const LOGIN_MARK: &str = "muster-login-environment";

/// Variables that only have a meaning during the login.
const OF_LOGIN_ITSELF: [&str; 10] = [
    "_",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "TERM",
    "DISPLAY",
    "HOSTNAME",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
    "XDG_SESSION_TYPE",
];

/// The variables of `env -0` after [`LOGIN_MARK`] and a NUL, without those about the login itself. The last of several
/// marks counts; `None` without a mark.
pub fn login(said: &[u8]) -> Option<BTreeMap<String, String>> {
    let said = String::from_utf8_lossy(said);
    let (_, variables) = said.rsplit_once(&format!("{LOGIN_MARK}\0"))?;
    let variables = variables.split_terminator('\0').filter_map(|entry| entry.split_once('='));
    let kept = variables.filter(|(name, _)| !name.is_empty() && !OF_LOGIN_ITSELF.contains(name));
    Some(kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// The last line of a job that reached its walltime.
pub fn walltime(seconds: u64) -> String {
    format!("=>> PBS: job killed: walltime exceeded limit {}\n", show_seconds(seconds))
}
