//! Queries as addresses.

use muster_schemas::{JobId, Sequence, Timestamp, job::JobState, usage::UsageDimension, usage::UsageQuery};
use std::fmt::Write as _;

/// The moment that an answer shall describe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moment {
    /// Now: everything that was answered before the question.
    #[default]
    Now,
    /// After the last record at or before a time.
    Time(Timestamp),
    /// After a record.
    Sequence(Sequence),
}

impl Moment {
    /// The address with this moment added.
    pub(crate) fn add_to(self, mut path: String) -> String {
        let separator = if path.contains('?') { '&' } else { '?' };
        match self {
            Self::Now => {}
            Self::Time(time) => path.extend([separator.to_string(), format!("at={}", encode(&time.to_string()))]),
            Self::Sequence(sequence) => path.extend([separator.to_string(), format!("at_seq={sequence}")]),
        }
        path
    }
}

/// Which jobs are wanted. Everything that is given must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobQuery {
    /// The moment to describe.
    pub moment: Moment,
    /// These jobs, arrays (with their tasks) or tasks; empty means any.
    pub ids: Vec<JobId>,
    /// Owner's login name.
    pub user: Option<String>,
    /// Queue.
    pub queue: Option<String>,
    /// Account.
    pub account: Option<String>,
    /// Job name.
    pub name: Option<String>,
    /// One of these states; empty means any unfinished state, or any at all if ids are given.
    pub states: Vec<JobState>,
    /// At most this many in a page; `None` leaves it to the gateway.
    pub limit: Option<u32>,
    /// Only jobs after this one.
    pub after: Option<JobId>,
}

impl JobQuery {
    /// The address that asks for it.
    pub(crate) fn path(&self) -> String {
        let mut parameters = Parameters::default();
        parameters.list("id", self.ids.iter().map(ToString::to_string));
        for (name, value) in
            [("user", &self.user), ("queue", &self.queue), ("account", &self.account), ("name", &self.name)]
        {
            parameters.optional(name, value.as_ref());
        }
        parameters.list("state", self.states.iter().map(|state| state.word().to_owned()));
        parameters.optional("limit", self.limit);
        parameters.optional("after", self.after);
        self.moment.add_to(parameters.path("/v1/jobs"))
    }
}

/// The address that asks for all jobs at once.
pub(crate) fn whole_list_path(user: Option<&str>, name: Option<&str>, with_finished: bool) -> String {
    let mut parameters = Parameters::default();
    parameters.optional("user", user);
    parameters.optional("name", name);
    parameters.optional("finished", with_finished.then_some(true));
    parameters.path("/v1/jobs/all")
}

/// The address that asks for details of several jobs.
pub(crate) fn details_path(jobs: &[JobId], with_steps: bool) -> String {
    let mut parameters = Parameters::default();
    parameters.list("id", jobs.iter().map(ToString::to_string));
    parameters.optional("steps", with_steps.then_some(true));
    parameters.path("/v1/jobs/details")
}

/// The address that asks for usage.
pub(crate) fn usage_path(query: &UsageQuery) -> String {
    let mut parameters = Parameters::default();
    parameters.optional("from", query.from);
    parameters.optional("to", query.to);
    parameters.optional("user", query.user.as_ref());
    parameters.optional("account", query.account.as_ref());
    parameters.optional("queue", query.queue.as_ref());
    let word = |dimension: &UsageDimension| match dimension {
        UsageDimension::Window => "window",
        UsageDimension::User => "user",
        UsageDimension::Account => "account",
        UsageDimension::Queue => "queue",
    };
    parameters.list("by", query.by.iter().map(|dimension| word(dimension).to_owned()));
    parameters.path("/v1/usage")
}

/// Parameters of an address.
#[derive(Default)]
pub(crate) struct Parameters(String);

impl Parameters {
    /// A parameter, if it has a value.
    pub(crate) fn optional(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            let separator = if self.0.is_empty() { '?' } else { '&' };
            let _ = write!(self.0, "{separator}{name}={}", encode(&value.to_string()));
        }
    }

    /// A parameter with values separated by commas, if there are any.
    pub(crate) fn list(&mut self, name: &str, values: impl Iterator<Item = String>) {
        let values: Vec<String> = values.collect();
        self.optional(name, (!values.is_empty()).then(|| values.join(",")));
    }

    /// The address with these parameters.
    pub(crate) fn path(&self, path: &str) -> String {
        format!("{path}{}", self.0)
    }
}

/// Text as part of an address: everything but plain letters, digits and `-_.~,` is percent-encoded.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~,".contains(&byte) {
            encoded.push(byte as char);
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_carry_every_filter() {
        let query = JobQuery {
            moment: Moment::Sequence(Sequence(9)),
            ids: vec![JobId::job(1), JobId::task(2, 3)],
            user: Some("a b&c".into()),
            states: vec![JobState::Held, JobState::Queued],
            limit: Some(5),
            ..JobQuery::default()
        };
        assert_eq!(query.path(), "/v1/jobs?id=1,2_3&user=a%20b%26c&state=held,queued&limit=5&at_seq=9");
        assert_eq!(JobQuery::default().path(), "/v1/jobs");
        assert_eq!(
            Moment::Time(Timestamp(0)).add_to("/v1/nodes".into()),
            "/v1/nodes?at=1970-01-01T00%3A00%3A00.000000Z"
        );
    }
}
