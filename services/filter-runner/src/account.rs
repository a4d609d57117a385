//! The account that filters run under.

use crate::SetupError;
use nix::unistd::{Gid, Uid, User, getgrouplist};
use serde::{Deserialize, Serialize};
use std::ffi::CString;

/// An account to switch to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The user number, never 0.
    pub uid: u32,
    /// The primary group.
    pub gid: u32,
    /// All groups.
    pub groups: Vec<u32>,
}

/// The account of this name if this process is root; otherwise `None`, and filters run as this user (HPC-F-70).
pub fn to_switch_to(name: &str) -> Result<Option<Account>, SetupError> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    let failed = |why: String| SetupError::Account { name: name.to_owned(), why };
    let user = look_up(name).map_err(&failed)?;
    if user.uid.is_root() {
        return Err(failed("it is root's, and filters never run as root".into()));
    }
    let c_name = CString::new(name).map_err(|_| failed("its name holds a NUL byte".into()))?;
    let groups = getgrouplist(&c_name, user.gid).map_err(|errno| failed(errno.desc().into()))?;
    let groups = groups.into_iter().map(Gid::as_raw).collect();
    Ok(Some(Account { uid: user.uid.as_raw(), gid: user.gid.as_raw(), groups }))
}

/// The user ids of root and of these users. A runner that is not root also trusts itself: anyone who can change its
/// files controls it anyway (HPC-F-73).
pub fn trusted(administrators: &[String]) -> Result<Vec<u32>, SetupError> {
    let mut trusted = vec![0, Uid::effective().as_raw()];
    for name in administrators {
        let user = look_up(name).map_err(|why| SetupError::Account { name: name.clone(), why })?;
        trusted.push(user.uid.as_raw());
    }
    trusted.sort_unstable();
    trusted.dedup();
    Ok(trusted)
}

fn look_up(name: &str) -> Result<User, String> {
    let found = User::from_name(name).map_err(|errno| format!("it cannot be looked up: {}", errno.desc()))?;
    found.ok_or_else(|| format!("it does not exist; `useradd --system --shell /usr/sbin/nologin {name}` makes it"))
}
