//! The group that jobs count for.

use crate::error::ApiError;
use muster_schemas::{event::Owner, job::JobSpec};
use nix::unistd::{Group, User, getgrouplist};
use std::{ffi::CString, sync::Arc};

/// The longest name of a group that is looked for.
const MAX_NAME_BYTES: usize = 255;

/// The submitter of jobs with the number of the group that all of them name as the first one of their processes, if the submitter is in
/// it on this host: limits on groups count that group (PBS-Q-02). Otherwise the group of the submitter stays, and nodes refuse a group
/// that its owner is not in.
///
/// # Errors
/// The jobs name different groups: all jobs of a submission count for one.
pub(crate) async fn effective(caller: Arc<Owner>, jobs: &[JobSpec]) -> Result<Arc<Owner>, ApiError> {
    let mut named = jobs.iter().map(|spec| spec.group.as_deref());
    let first = named.next().flatten();
    if named.any(|other| other != first) {
        return Err(ApiError::invalid("group: all jobs that are submitted together must name the same one".to_owned()));
    }
    // Others are refused when the jobs are checked.
    let is_name = |group: &&str| (1..=MAX_NAME_BYTES).contains(&group.len()) && !group.contains(['\0', ':', '\n']);
    let Some(group) = first.filter(is_name) else { return Ok(caller) };
    let (owner, name) = (caller.clone(), group.to_owned());
    let found = tokio::task::spawn_blocking(move || member_gid(&owner, &name)).await;
    Ok(match found.ok().flatten() {
        Some(gid) if gid != caller.gid => Arc::new(Owner { gid, ..(*caller).clone() }),
        _ => caller,
    })
}

/// The number of a group that a user is in.
fn member_gid(owner: &Owner, name: &str) -> Option<u32> {
    let gid = Group::from_name(name).ok().flatten()?.gid;
    if gid.as_raw() == owner.gid {
        return Some(owner.gid);
    }
    let first = User::from_name(&owner.user).ok().flatten()?.gid;
    let groups = getgrouplist(&CString::new(owner.user.as_str()).ok()?, first).ok()?;
    groups.contains(&gid).then(|| gid.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PBS-Q-02: the group that jobs name counts if the submitter is in it, and if all of them name it.
    #[tokio::test]
    async fn jobs_count_for_the_group_that_they_name() {
        let own = Group::from_gid(nix::unistd::Gid::from_raw(0)).unwrap().unwrap().name;
        let (root, nobody) = (
            Arc::new(Owner { user: "root".into(), uid: 0, gid: 4_242 }),
            Arc::new(Owner { user: "nobody".into(), uid: 65_534, gid: 65_534 }),
        );
        let naming = |group: &str| JobSpec { group: Some(group.to_owned()), ..JobSpec::default() };
        let gid = async |owner: &Arc<Owner>, jobs: &[JobSpec]| effective(owner.clone(), jobs).await.unwrap().gid;
        // `root` is in its group on every host.
        assert_eq!(gid(&root, &[naming(&own), naming(&own)]).await, 0);
        assert_eq!(gid(&root, &[JobSpec::default()]).await, 4_242);
        for mixed in [[naming(&own), JobSpec::default()], [naming(&own), naming("other")]] {
            assert!(effective(root.clone(), &mixed).await.is_err(), "they count for different groups");
        }
        assert_eq!(gid(&root, &[naming("")]).await, 4_242);
        assert_eq!(gid(&root, &[naming(&"g".repeat(256))]).await, 4_242);
        assert_eq!(gid(&root, &[naming("no-such-group-here")]).await, 4_242);
        assert_eq!(gid(&nobody, &[naming(&own)]).await, 65_534, "it is in no such group");
    }
}
