//! How many jobs of a user are planned in a cycle (OAR-Q-12).

use crate::{engine::Engine, model::lead_queue, queue::Place};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

impl Engine {
    /// The jobs behind those of their users that are planned in each queue in a cycle. The queue is sorted.
    pub(super) fn beyond_users_most(&self) -> HashSet<Place> {
        let most = self.queue.most_jobs_per_user();
        let mut beyond = HashSet::new();
        if most == 0 {
            return beyond;
        }
        let mut seen: HashMap<(&str, &Arc<str>), u32> = HashMap::new();
        for place in self.queue.blocks().into_iter().flat_map(|block| self.queue.sorted(block)) {
            let Some(entry) = self.queue.get(*place) else { continue };
            let queue = lead_queue(&self.classes.get(entry.class).demand);
            let jobs = seen.entry((queue, &entry.holder.user)).or_default();
            *jobs += 1;
            if *jobs > most {
                beyond.insert(*place);
            }
        }
        beyond
    }
}
