//! How many calls of persistent filters a runner takes ahead of time.
//!
//! A process of a persistent filter makes one call at a time, often in less than a millisecond, which is much less than
//! a claim takes. So calls are claimed ahead, as many as the processes would make within a second at the pace of the
//! last one: many for a fast filter, none for one that hangs, whose calls other runners can take.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How far ahead calls are claimed.
const AHEAD: Duration = Duration::from_secs(1);
/// The most calls that are claimed ahead.
const MOST: usize = 256;
/// How long to wait at a full lane; after that it is full because its filter hangs.
const PATIENCE: Duration = Duration::from_millis(20);

/// The lanes of a runner, one for each persistent filter.
#[derive(Debug)]
pub struct Lanes {
    /// The processes of each filter.
    processes: usize,
    lanes: Mutex<BTreeMap<String, Arc<Lane>>>,
}

#[derive(Debug)]
struct Lane {
    processes: usize,
    /// One for each process.
    turns: Arc<Semaphore>,
    room: Mutex<Room>,
    left: Notify,
}

#[derive(Debug)]
struct Room {
    inside: usize,
    limit: usize,
    /// When a call last left, or the lane was made.
    moved: Instant,
}

impl Lanes {
    /// Lanes for filters with this many processes each.
    pub fn new(processes: usize) -> Self {
        Self { processes: processes.max(1), lanes: Mutex::default() }
    }

    /// A place in the lane of a filter; `None` if it is full and does not move.
    pub async fn enter(&self, filter: &str) -> Option<Place> {
        let lane = self.lane(filter);
        loop {
            // Registered before looking, so that no departure in between is missed.
            let left = lane.left.notified();
            let moved = match lane.try_enter() {
                Ok(()) => return Some(Place { lane: Arc::clone(&lane), pace: None }),
                Err(moved) => moved,
            };
            let patience = PATIENCE.saturating_sub(moved.elapsed());
            if patience.is_zero() || tokio::time::timeout(patience, left).await.is_err() {
                return None;
            }
        }
    }

    fn lane(&self, filter: &str) -> Arc<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(filter) {
            return Arc::clone(lane);
        }
        let room = Room { inside: 0, limit: self.processes, moved: Instant::now() };
        let turns = Arc::new(Semaphore::new(self.processes));
        let lane = Arc::new(Lane { processes: self.processes, turns, room: Mutex::new(room), left: Notify::new() });
        lanes.insert(filter.to_owned(), Arc::clone(&lane));
        lane
    }
}

impl Lane {
    fn room(&self) -> MutexGuard<'_, Room> {
        // No holder of the lock can panic.
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_enter(&self) -> Result<(), Instant> {
        let mut room = self.room();
        if room.inside >= room.limit {
            return Err(room.moved);
        }
        room.inside += 1;
        Ok(())
    }
}

/// A call's place in the lane of its filter; dropping it leaves the lane.
#[derive(Debug)]
pub struct Place {
    lane: Arc<Lane>,
    pace: Option<Duration>,
}

impl Place {
    /// Waits until a process is free for this call.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.lane.turns).acquire_owned().await.ok()
    }

    /// Notes how long the call took.
    pub fn took(&mut self, duration: Duration) {
        self.pace = Some(duration);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut room = self.lane.room();
        room.inside -= 1;
        room.moved = Instant::now();
        if let Some(pace) = self.pace {
            room.limit = limit(pace, room.limit, self.lane.processes);
        }
        drop(room);
        self.lane.left.notify_waiters();
    }
}

/// How many calls of a filter to take, given how long its last call took. It grows step by step and shrinks at once.
fn limit(pace: Duration, before: usize, processes: usize) -> usize {
    let each = usize::try_from(AHEAD.as_micros() / pace.as_micros().max(1)).unwrap_or(MOST);
    let most = before.saturating_mul(2).min(MOST.max(processes));
    each.saturating_mul(processes).clamp(processes, most.max(processes))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn fill(lanes: &Lanes) -> Vec<Place> {
        let mut places = Vec::new();
        while let Some(place) = lanes.enter("check").await {
            places.push(place);
        }
        places
    }

    #[tokio::test]
    async fn calls_of_a_fast_filter_are_taken_ahead() {
        let lanes = Lanes::new(1);
        for _ in 0..10 {
            lanes.enter("check").await.unwrap().took(Duration::from_micros(100));
        }
        assert_eq!(fill(&lanes).await.len(), MOST);
    }

    #[tokio::test]
    async fn of_a_filter_that_hangs_no_call_is_taken_ahead() {
        let lanes = Lanes::new(2);
        let mut places = fill(&lanes).await;
        assert_eq!(places.len(), 2);
        places.iter_mut().for_each(|place| place.took(Duration::from_secs(15)));
        drop(places);
        assert!(fill(&lanes).await.len() <= 2);
    }

    #[tokio::test]
    async fn filters_do_not_wait_for_each_other() {
        let lanes = Lanes::new(1);
        let _hangs = fill(&lanes).await;
        assert!(lanes.enter("other").await.is_some());
    }

    #[tokio::test]
    async fn as_many_calls_have_their_turn_as_there_are_processes() {
        let lanes = Lanes::new(1);
        lanes.enter("check").await.unwrap().took(Duration::from_micros(100));
        let (first, second) = (lanes.enter("check").await.unwrap(), lanes.enter("check").await.unwrap());
        let turn = first.turn().await.unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(1), second.turn()).await.is_err());
        drop(turn);
        assert!(second.turn().await.is_some());
    }
}
