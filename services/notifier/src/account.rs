//! The users that commands and mail programs run as.

use crate::DeliveryError;
use anyhow::{Context as _, bail, ensure};
use muster_schemas::event::Owner;
use nix::unistd::{Gid, Uid, User, getgrouplist};
use std::ffi::CString;

/// A user of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    /// The login name.
    pub name: String,
    /// The home directory.
    pub home: String,
    /// The user to change to; `None` if it is the user that the notifier runs as.
    pub change: Option<Numbers>,
}

/// A user as the kernel's numbers.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Numbers {
    pub uid: u32,
    pub gid: u32,
    /// All groups.
    pub groups: Vec<u32>,
}

/// The account for the mail program: the one of this name if the notifier is root, else its own.
///
/// # Errors
/// There is no such account here, or it is root's.
pub(crate) fn of_mail(name: &str) -> anyhow::Result<Account> {
    unprivileged(name, "mail programs")
}

/// The same for programs of the site that put nodes to sleep and wake them.
///
/// # Errors
/// As [`of_mail`].
pub(crate) fn of_site(name: &str) -> anyhow::Result<Account> {
    unprivileged(name, "programs of the site")
}

fn unprivileged(name: &str, what: &str) -> anyhow::Result<Account> {
    let own = Uid::effective();
    if !own.is_root() {
        let user = User::from_uid(own).ok().flatten();
        let (name, home) = user.map_or_else(|| (own.to_string(), "/".into()), |user| (user.name.clone(), home(&user)));
        return Ok(Account { name, home, change: None });
    }
    let user = User::from_name(name).with_context(|| format!("the account `{name}` cannot be looked up"))?;
    let Some(user) = user else { bail!("the account `{name}` of {what} does not exist on this host") };
    ensure!(!user.uid.is_root(), "the account `{name}` is root's, and {what} never run as root");
    changed_to(&user)
}

/// The owner of a job as this host knows it, by name, as nodes do. Only root can run something as another user.
pub(crate) fn of_owner(owner: &Owner) -> Result<Account, DeliveryError> {
    let name = &owner.user;
    let found = User::from_name(name)
        .map_err(|errno| DeliveryError::Temporary(format!("user `{name}` cannot be looked up: {}", errno.desc())))?;
    // It may be known again when a directory server is back.
    let user = found
        .ok_or_else(|| DeliveryError::Temporary(format!("user `{name}` does not exist on the notifier's host")))?;
    let own = Uid::effective();
    if user.uid == own && !own.is_root() {
        return Ok(Account { name: user.name.clone(), home: home(&user), change: None });
    }
    if !own.is_root() {
        let reason = format!("the notifier does not run as root and cannot run commands as {name}");
        return Err(DeliveryError::Permanent(reason));
    }
    if user.uid.is_root() && owner.uid != 0 {
        return Err(DeliveryError::Permanent(format!("user `{name}` is root on the notifier's host")));
    }
    changed_to(&user).map_err(|error| DeliveryError::Temporary(error.to_string()))
}

fn changed_to(user: &User) -> anyhow::Result<Account> {
    let name = CString::new(user.name.as_str()).context("a user's name holds a NUL byte")?;
    let groups =
        getgrouplist(&name, user.gid).with_context(|| format!("the groups of `{}` cannot be looked up", user.name))?;
    let groups = groups.into_iter().map(Gid::as_raw).collect();
    let change = Numbers { uid: user.uid.as_raw(), gid: user.gid.as_raw(), groups };
    Ok(Account { name: user.name.clone(), home: home(user), change: Some(change) })
}

fn home(user: &User) -> String {
    user.dir.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F0
    #[test]
    fn a_mail_program_never_runs_as_root() {
        if !Uid::effective().is_root() {
            assert_eq!(of_mail("no-such-account").unwrap().change, None);
            return muster_surroundings::skipped("only root can run mail programs as somebody else");
        }
        let root = of_mail("root").unwrap_err().to_string();
        assert_eq!(root, "the account `root` is root's, and mail programs never run as root");
        let unknown = of_mail("no-such-account").unwrap_err().to_string();
        assert_eq!(unknown, "the account `no-such-account` of mail programs does not exist on this host");
        assert_ne!(of_mail("nobody").unwrap().change.unwrap().uid, 0);
    }

    /// User ids differ from host to host; names do not, or must not.
    #[test]
    fn an_owner_is_who_has_the_name_here() {
        if !Uid::effective().is_root() {
            return muster_surroundings::skipped("only root runs commands as others");
        }
        let owner = |user: &str, uid| Owner { user: user.into(), uid, gid: uid };
        let nobody = User::from_name("nobody").unwrap().unwrap().uid.as_raw();
        assert_eq!(of_owner(&owner("nobody", 4_000_000)).unwrap().change.unwrap().uid, nobody);
        let root = of_owner(&owner("root", 1001)).unwrap_err();
        assert_eq!(root, DeliveryError::Permanent("user `root` is root on the notifier's host".into()));
        let gone = of_owner(&owner("no-such-user", 0)).unwrap_err();
        assert_eq!(gone, DeliveryError::Temporary("user `no-such-user` does not exist on the notifier's host".into()));
    }
}
