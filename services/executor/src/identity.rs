//! The identity of a job's processes on this node.

use muster_names::User;
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// A user as this node knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The login name.
    pub user: String,
    /// The user number.
    pub uid: u32,
    /// The primary group.
    pub gid: u32,
    /// All groups, the primary one among them.
    pub groups: Vec<u32>,
    /// The home directory.
    pub home: String,
    /// The login shell.
    pub shell: String,
}

/// Recently looked-up users and groups. A lookup can ask a directory server, so it is kept for a minute.
#[derive(Debug, Default)]
pub struct Identities {
    users: Recent<Identity>,
    /// The numbers of groups. Failed lookups are kept too: users name groups, and each lookup holds up all launches.
    groups: Recent<Result<Option<u32>, String>>,
}

/// Answers of the last minute, by name.
#[derive(Debug)]
struct Recent<T>(HashMap<String, (Instant, T)>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Clone> Recent<T> {
    const KEPT: Duration = Duration::from_secs(60);
    const MAX_KNOWN: usize = 10_000;

    fn get(&self, name: &str) -> Option<T> {
        let (looked_up, answer) = self.0.get(name)?;
        (looked_up.elapsed() < Self::KEPT).then(|| answer.clone())
    }

    fn keep(&mut self, name: &str, answer: T) -> T {
        if self.0.len() >= Self::MAX_KNOWN {
            self.0.clear();
        }
        self.0.insert(name.to_owned(), (Instant::now(), answer.clone()));
        answer
    }
}

impl Identities {
    /// The user of this name with a group of his as the first one, if this executor may start processes for him.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn in_group(&mut self, user: &str, group: Option<&str>) -> Result<Identity, String> {
        let identity = self.of(user)?;
        let Some(name) = group else { return Ok(identity) };
        let number = self.groups.get(name).unwrap_or_else(|| {
            let known = muster_names::group_number(name).map_err(|why| why.to_string());
            self.groups.keep(name, known)
        });
        let number = number.map_err(|why| format!("group `{name}` cannot be looked up on this node: {why}"))?;
        let number = number.ok_or_else(|| format!("group `{name}` does not exist on this node"))?;
        identity.led_by(number).ok_or_else(|| format!("user `{user}` may not use group `{name}` on this node"))
    }

    /// The user of this name, if this executor may start processes for it.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn of(&mut self, user: &str) -> Result<Identity, String> {
        if let Some(identity) = self.users.get(user) {
            return Ok(identity);
        }
        let identity = look_up(user)?;
        may_become(&identity)?;
        Ok(self.users.keep(user, identity))
    }
}

impl Identity {
    /// The same user with one of his groups as the first one. The group of root is only for root: who is in it by mistake does
    /// not get it by asking.
    fn led_by(self, group: u32) -> Option<Self> {
        let is_his = self.groups.contains(&group) && (group != 0 || self.uid == 0);
        is_his.then_some(Self { gid: group, ..self })
    }
}

/// A user of this node, whoever this process is.
///
/// # Errors
/// A sentence for people.
pub fn look_up(user: &str) -> Result<Identity, String> {
    let failed = |why: std::io::Error| format!("user `{user}` cannot be looked up on this node: {why}");
    let found = User::ask(user).map_err(failed)?;
    let entry = found.ok_or_else(|| format!("user `{user}` does not exist on this node"))?;
    let groups = entry.groups().map_err(failed)?;
    Ok(Identity { user: entry.name, uid: entry.uid, gid: entry.gid, groups, home: entry.home, shell: entry.shell })
}

fn may_become(identity: &Identity) -> Result<(), String> {
    let own = Uid::effective();
    if own.is_root() || own.as_raw() == identity.uid {
        return Ok(());
    }
    Err(format!(
        "this node's executor runs as user number {own}, not as root, and cannot start processes of user `{}`",
        identity.user
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_exists_and_an_invented_user_does_not() {
        let mut identities = Identities::default();
        let root = identities.of("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert!(root.groups.contains(&0));
        let error = identities.of("no-such-user-here").unwrap_err();
        assert_eq!(error, "user `no-such-user-here` does not exist on this node");
    }

    /// PBS-Q-02: the group of a job is one of its owner on the node, and never that of root unless he is root.
    #[test]
    fn a_user_gets_a_group_that_he_is_in_and_never_that_of_root() {
        let user = |uid, groups: &[u32]| Identity {
            user: "ann".into(),
            uid,
            gid: 1000,
            groups: groups.to_vec(),
            home: String::new(),
            shell: String::new(),
        };
        let ann = user(1000, &[1000, 7, 0]);
        let led = ann.clone().led_by(7).unwrap();
        assert_eq!((led.gid, &led.groups), (7, &ann.groups));
        assert_eq!([ann.clone().led_by(0), ann.led_by(8)], [None, None]);
        assert_eq!(user(0, &[0]).led_by(0).map(|root| root.gid), Some(0));
    }

    /// PBS-Q-02: a group that is named again is not looked up again, not even one that does not exist.
    #[test]
    fn groups_are_looked_up_once_a_minute() {
        let mut identities = Identities::default();
        let mut led = |group| identities.in_group("root", group);
        assert_eq!(led(None).map(|root| root.gid), Ok(0));
        let root_group = muster_names::group_name(0).expect("root's group has a name");
        assert_eq!(led(Some(&root_group)).map(|root| root.gid), Ok(0));
        let error = led(Some("no-such-group-here")).unwrap_err();
        assert_eq!(error, "group `no-such-group-here` does not exist on this node");
        assert_eq!(identities.groups.keep("no-such-group-here", Ok(Some(123_456))), Ok(Some(123_456)));
        let error = identities.in_group("root", Some("no-such-group-here")).unwrap_err();
        assert_eq!(error, "user `root` may not use group `no-such-group-here` on this node");
    }
}
