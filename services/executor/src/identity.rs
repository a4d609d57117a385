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

/// Recently looked-up users. A lookup can ask a directory server, so it is kept for a minute.
#[derive(Debug, Default)]
pub struct Identities {
    known: HashMap<String, (Instant, Identity)>,
}

impl Identities {
    const KEPT: Duration = Duration::from_secs(60);
    const MAX_KNOWN: usize = 10_000;

    /// The user of this name, if this executor may start processes for it.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn of(&mut self, user: &str) -> Result<Identity, String> {
        if let Some((looked_up, identity)) = self.known.get(user)
            && looked_up.elapsed() < Self::KEPT
        {
            return Ok(identity.clone());
        }
        let identity = look_up(user)?;
        may_become(&identity)?;
        if self.known.len() >= Self::MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(user.to_owned(), (Instant::now(), identity.clone()));
        Ok(identity)
    }
}

impl Identity {
    /// The same user with a group of a name as the first one, if he is in it on this node. The group of root is only for
    /// root: who is in it by mistake does not get it by asking.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn in_group(self, group: Option<&str>) -> Result<Self, String> {
        let Some(name) = group else { return Ok(self) };
        let known = muster_names::group_number(name);
        let number = known.map_err(|why| format!("group `{name}` cannot be looked up on this node: {why}"))?;
        let number = number.ok_or_else(|| format!("group `{name}` does not exist on this node"))?;
        match self.groups.contains(&number) && (number != 0 || self.uid == 0) {
            true => Ok(Self { gid: number, ..self }),
            false => Err(format!("user `{}` may not use group `{name}` on this node", self.user)),
        }
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
        let root_group = muster_names::group_name(0).expect("root's group has a name");
        let (other, number) = (1..200).find_map(|number| Some((muster_names::group_name(number)?, number))).unwrap();
        let ann = user(1000, &[1000, number, 0]);
        assert_eq!(ann.clone().in_group(None), Ok(ann.clone()));
        assert_eq!(
            ann.clone().in_group(Some(&other)).map(|ann| (ann.gid, ann.groups)),
            Ok((number, vec![1000, number, 0]))
        );
        let refused = |user: Identity, group: &str| user.in_group(Some(group)).unwrap_err();
        assert_eq!(
            refused(ann.clone(), &root_group),
            format!("user `ann` may not use group `{root_group}` on this node")
        );
        assert!(refused(user(1000, &[1000]), &other).contains("may not use group"));
        assert_eq!(refused(ann, "no-such-group-here"), "group `no-such-group-here` does not exist on this node");
        assert_eq!(user(0, &[0]).in_group(Some(&root_group)).map(|root| root.gid), Ok(0));
    }
}
