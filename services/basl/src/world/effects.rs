//! What a cycle's own actions change in what it sees (PBS-X-08).

use super::{
    Counts, Queue, World,
    amounts::{SUMMED, Value, find, grown, put},
    at,
};
use crate::{
    actions::{Action, Answer},
    constants::number,
    text::Text,
    values::{Reference, object, set},
};

impl World {
    /// Whether there is such a job, and it was not deleted.
    pub(crate) fn job_place(&self, job: i64) -> Option<usize> {
        let place = usize::try_from(job).ok()?;
        self.jobs.get(place).filter(|job| !job.is_deleted).map(|_| place)
    }

    /// Notes an action that was done.
    pub(crate) fn note(&mut self, place: usize, action: Action, parameter: &str, answer: &Answer) {
        let state = match action {
            Action::SyncRun | Action::AsyncRun => {
                self.assign(place);
                self.occupy(parameter, answer);
                number::RUNNING
            }
            Action::Hold => number::HELD,
            Action::Rerun | Action::Release => number::QUEUED,
            Action::Delete => {
                if let Some(job) = self.jobs.get_mut(place) {
                    job.is_deleted = true;
                }
                return;
            }
            Action::ModifyResource => return self.request(place, parameter),
            Action::ModifyAttribute => return self.modify(place, parameter),
            Action::Signal => return,
        };
        if let Some(job) = self.jobs.get_mut(place) {
            job.state = state;
        }
    }

    /// The amounts of server and queue grow by what a started job asks for.
    fn assign(&mut self, place: usize) {
        let Some(job) = self.jobs.get(place) else { return };
        let queue = job.queue.and_then(|queue| self.queues.get_mut(queue)).map(|queue| &mut queue.assigned);
        let server = self.servers.first_mut().map(|server| &mut server.assigned);
        for assigned in server.into_iter().chain(queue) {
            for (name, is_size) in SUMMED {
                let Some(name) = self.names.get(name) else { continue };
                let sum = find(&job.request, *name).and_then(|more| grown(find(assigned, *name), more, is_size));
                if let Some(sum) = sum {
                    put(assigned, *name, sum);
                }
            }
        }
    }

    /// The nodes of a started job are its own, unless they are timeshared.
    fn occupy(&mut self, hosts: &str, answer: &Answer) {
        let hosts: Vec<&str> =
            hosts.split(['+', ',', ' ']).map(|host| host.split([':', '#']).next().unwrap_or("")).collect();
        for (place, node) in self.nodes.iter_mut().enumerate() {
            let is_its = match answer {
                Answer::StartedOn(places) => places.contains(&place),
                Answer::Done | Answer::Refused => hosts.contains(&node.name.text()) && !node.name.text().is_empty(),
            };
            if is_its && !node.is_timeshared {
                node.state = number::CNODE_INUSE_EXCLUSIVE;
            }
        }
    }

    fn request(&mut self, place: usize, parameter: &str) {
        let Some((name, amount)) = parameter.split_once('=') else { return };
        let number = self.resource_number(name);
        if let Some(job) = self.jobs.get_mut(place) {
            put(&mut job.request, number, Value::of_text(amount));
        }
    }

    fn modify(&mut self, place: usize, parameter: &str) {
        let Some((attribute, value)) = parameter.split_once('=') else { return };
        let Some(job) = self.jobs.get_mut(place) else { return };
        let text = || Reference::Text(Text::fixed(value));
        match attribute {
            "Priority" => job.priority = value.parse().unwrap_or(job.priority),
            "Job_Name" => job.name = text(),
            "Mail_Users" => job.mail = text(),
            "stagein" => job.stage_in = text(),
            "stageout" => job.stage_out = text(),
            "Rerunable" => job.rerunnable = i64::from(matches!(value, "True" | "true" | "TRUE" | "y" | "1")),
            _ => {}
        }
    }

    /// A queue of some jobs, which has a name and nothing else.
    pub(crate) fn add_queue(&mut self, name: &str, jobs: &[i64]) -> i64 {
        let name = Reference::Text(Text::fixed(name));
        let jobs = set(jobs.iter().filter_map(|job| usize::try_from(*job).ok()));
        self.queues.push(Queue { name, of_type: -1, jobs, ..Queue::default() });
        object(Some(self.queues.len() - 1))
    }

    /// Counts the nodes of a specification for the functions that tell the numbers. Whether it was understood.
    pub(crate) fn query(&mut self, server: i64, specification: &str) -> bool {
        let Some(wanted) = specification.strip_prefix("nodes") else { return false };
        let wanted = match wanted.strip_prefix('=') {
            Some(wanted) => wanted,
            None if wanted.is_empty() => "",
            None => return false,
        };
        let counts = self.count(wanted);
        let place = usize::try_from(server).ok().and_then(|place| self.servers.get_mut(place));
        place.map(|server| server.counts = Some(counts)).is_some()
    }

    pub(super) fn counts(&self, server: i64) -> Counts {
        match at(&self.servers, server).map(|server| server.counts) {
            Some(Some(counts)) => counts,
            Some(None) if server == 0 => self.count(""),
            _ => Counts::default(),
        }
    }

    /// Counts the nodes that have the properties of one part of `2:fast+1:big`. If numbers are wanted, 0 available
    /// nodes mean later, and -1 means never.
    fn count(&self, wanted: &str) -> Counts {
        let mut counts = Counts::default();
        let (mut needed, mut has_number) = (0_i64, false);
        let parts: Vec<Vec<&str>> = wanted
            .split('+')
            .map(|part| {
                let mut words: Vec<&str> = part.split(':').map(str::trim).filter(|word| !word.is_empty()).collect();
                let number = words.first().and_then(|word| word.parse::<i64>().ok());
                if number.is_some() {
                    words.remove(0);
                    has_number = true;
                }
                needed = needed.saturating_add(number.unwrap_or(1).max(0));
                words
            })
            .collect();
        for node in &self.nodes {
            let has = |word: &&str| {
                *word == node.name.text() || node.properties.text().split(',').any(|of| of.trim() == *word)
            };
            if !parts.iter().any(|words| words.iter().all(has)) {
                continue;
            }
            match node.state {
                number::CNODE_FREE => counts.available += 1,
                number::CNODE_INUSE_EXCLUSIVE | number::CNODE_INUSE_SHARED => counts.allocated += 1,
                number::CNODE_RESERVE => counts.reserved += 1,
                _ => counts.down += 1,
            }
        }
        let all = counts.available + counts.allocated + counts.reserved + counts.down;
        if has_number && needed > counts.available {
            counts.available = if needed > all { -1 } else { 0 };
        }
        counts
    }
}
