//! The policies as the specification words them: slow, obvious, and sharing nothing with the planner.

use muster_swf::TraceJob;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backfill {
    None,
    Easy,
    Conservative,
}

/// The key of a job at a time: job, now, first submission of all.
pub type Key = fn(&TraceJob, i64, i64) -> f64;

#[derive(Clone, Copy, Debug)]
pub struct Naive {
    pub order: Option<Key>,
    pub backfill: Backfill,
    pub shortest_candidates_first: bool,
    pub look_ahead: Option<usize>,
}

pub const FCFS: Naive =
    Naive { order: None, backfill: Backfill::None, shortest_candidates_first: false, look_ahead: None };

pub fn spt(job: &TraceJob, _: i64, _: i64) -> f64 {
    job.estimate_seconds as f64
}

pub fn saf(job: &TraceJob, _: i64, _: i64) -> f64 {
    job.estimate_seconds as f64 * job.procs as f64
}

pub fn f1(job: &TraceJob, _: i64, first: i64) -> f64 {
    let age = (job.submit_seconds - first).max(1) as f64;
    (job.estimate_seconds as f64).log10() * job.procs as f64 + 870.0 * age.log10()
}

pub fn wfp3(job: &TraceJob, now: i64, _: i64) -> f64 {
    let ratio = (now - job.submit_seconds) as f64 / job.estimate_seconds as f64;
    -(ratio * ratio * ratio) * job.procs as f64
}

pub fn unicep(job: &TraceJob, now: i64, _: i64) -> f64 {
    let wait = (now - job.submit_seconds) as f64;
    -wait / ((job.procs.max(2) as f64).log2() * job.estimate_seconds as f64)
}

/// The start of each job, with the promises that were broken on the way (there must be none).
pub fn starts(jobs: &[TraceJob], procs: u64, naive: Naive) -> Vec<i64> {
    let mut machine = Machine { jobs, procs, naive, starts: vec![None; jobs.len()], promises: vec![None; jobs.len()] };
    let mut now = jobs.iter().map(|job| job.submit_seconds).min();
    while let Some(time) = now {
        machine.instant(time);
        now = machine.next_event(time);
    }
    machine.starts.into_iter().map(|start| start.expect("every job starts")).collect()
}

struct Machine<'j> {
    jobs: &'j [TraceJob],
    procs: u64,
    naive: Naive,
    starts: Vec<Option<i64>>,
    promises: Vec<Option<i64>>,
}

impl Machine<'_> {
    fn end(&self, at: usize) -> Option<i64> {
        Some(self.starts[at]? + self.jobs[at].runtime_seconds)
    }

    fn running(&self, now: i64) -> Vec<usize> {
        (0..self.jobs.len()).filter(|at| self.end(*at).is_some_and(|end| end > now)).collect()
    }

    fn queue(&self, now: i64) -> Vec<usize> {
        (0..self.jobs.len()).filter(|at| self.starts[*at].is_none() && self.jobs[*at].submit_seconds <= now).collect()
    }

    fn next_event(&self, now: i64) -> Option<i64> {
        let submissions = self.jobs.iter().map(|job| job.submit_seconds);
        let ends = (0..self.jobs.len()).filter_map(|at| self.end(at));
        submissions.chain(ends).chain(self.promises.iter().flatten().copied()).filter(|time| *time > now).min()
    }

    fn free(&self, now: i64) -> u64 {
        self.procs - self.running(now).iter().map(|at| self.jobs[*at].procs).sum::<u64>()
    }

    fn instant(&mut self, now: i64) {
        if self.naive.backfill == Backfill::Conservative {
            return self.conservative(now);
        }
        let mut queue = self.queue(now);
        if let Some(key) = self.naive.order {
            let first = self.jobs.iter().map(|job| job.submit_seconds).min().unwrap_or(0);
            queue.sort_by(|one, other| {
                key(&self.jobs[*one], now, first).total_cmp(&key(&self.jobs[*other], now, first))
            });
        }
        while let Some(head) = queue.first().copied()
            && self.jobs[head].procs <= self.free(now)
        {
            self.starts[head] = Some(now);
            queue.remove(0);
        }
        if self.naive.backfill == Backfill::Easy && !queue.is_empty() {
            self.easy(now, queue[0], queue[1..].to_vec());
        }
    }

    fn easy(&mut self, now: i64, head: usize, mut candidates: Vec<usize>) {
        let mut running = self.running(now);
        let expected_end = |at: &usize| self.starts[*at].expect("it runs") + self.jobs[*at].estimate_seconds;
        running.sort_by_key(expected_end);
        let (mut free, mut shadow) = (self.free(now), now);
        let wanted = self.jobs[head].procs;
        for at in &running {
            let end = expected_end(at);
            if free >= wanted && end > shadow {
                break;
            }
            free += self.jobs[*at].procs;
            shadow = end;
        }
        let mut extra = free - wanted;
        if self.naive.shortest_candidates_first {
            candidates.sort_by_key(|at| self.jobs[*at].estimate_seconds);
        }
        candidates.truncate(self.naive.look_ahead.unwrap_or(usize::MAX));
        for at in candidates {
            let job = &self.jobs[at];
            let ends_before = now + job.estimate_seconds <= shadow;
            if job.procs <= self.free(now) && (ends_before || job.procs <= extra) {
                self.starts[at] = Some(now);
                extra -= if ends_before { 0 } else { job.procs };
            }
        }
    }

    fn conservative(&mut self, now: i64) {
        let waiting = self.queue(now);
        let some_job_ended = (0..self.jobs.len()).any(|at| self.end(at) == Some(now));
        if some_job_ended {
            for at in &waiting {
                let Some(before) = self.promises[*at].take() else { continue };
                let start = self.earliest_start(now, *at);
                assert!(start <= before, "job {at} was promised {before}, then {start}");
                self.promises[*at] = Some(start);
            }
        }
        for at in &waiting {
            if self.promises[*at].is_none() {
                self.promises[*at] = Some(self.earliest_start(now, *at));
            }
        }
        for at in waiting {
            if self.promises[at] == Some(now) {
                self.starts[at] = Some(now);
                self.promises[at] = None;
            }
        }
        assert!(self.running(now).iter().map(|at| self.jobs[*at].procs).sum::<u64>() <= self.procs);
    }

    /// The earliest time from `now` on at which the job fits for its whole estimate, beside what runs and what is
    /// promised to others.
    fn earliest_start(&self, now: i64, at: usize) -> i64 {
        let taken: Vec<(i64, i64, u64)> = (0..self.jobs.len())
            .filter(|other| *other != at)
            .filter_map(|other| {
                let job = &self.jobs[other];
                let runs = self.end(other).is_some_and(|end| end > now);
                let start = if runs { self.starts[other] } else { self.promises[other] }?;
                Some((start, start + job.estimate_seconds, job.procs))
            })
            .collect();
        let job = &self.jobs[at];
        let used = |time: i64| {
            taken.iter().filter(|(from, to, _)| *from <= time && time < *to).map(|(.., procs)| procs).sum::<u64>()
        };
        let fits = |start: i64| {
            let end = start + job.estimate_seconds;
            let inside = taken.iter().map(|(from, ..)| *from).filter(|from| (start..end).contains(from));
            inside.chain([start]).all(|time| used(time) + job.procs <= self.procs)
        };
        let candidates = taken.iter().map(|(_, to, _)| *to).filter(|to| *to >= now).chain([now]);
        candidates.filter(|start| fits(*start)).min().expect("after all others it fits")
    }
}
