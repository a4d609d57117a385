//! The public event of a record is the same bytes whenever and wherever it is made.

use muster_domain::State;
use muster_schemas::{
    JobId, Sequence,
    cause::{Causes, RecordsByJob},
    event::Record,
    public::cloud_event,
};
use std::convert::Infallible;

struct Log<'a>(&'a [Record]);

impl RecordsByJob for Log<'_> {
    type Error = Infallible;

    fn last_before(&self, job: JobId, before: Sequence) -> Result<Option<Sequence>, Infallible> {
        let mut newest = self.0.iter().rev();
        let found = newest.find(|record| record.sequence < before && record.event.job() == Some(job));
        Ok(found.map(|record| record.sequence))
    }
}

impl Log<'_> {
    /// The causes of the records from this place on, for a reader that begins there, as after a restart. It is the first
    /// record of a command.
    fn causes_from(&self, place: usize) -> Vec<Option<Sequence>> {
        let mut causes = Causes::default();
        let of = |record| causes.of(record, self).unwrap_or_else(|never| match never {});
        self.0[place..].iter().map(of).collect()
    }
}

/// Each event when its record was appended, at the end of the history, and by a reader that starts in the middle from a
/// snapshot: the same bytes. The last one starts behind `middle` records.
pub fn assert_they_stay(log: &[Record], state: &State, middle: usize) {
    let known = Log(log);
    let causes = known.causes_from(0);
    let mut then = State::new();
    let mut first = Vec::new();
    let cut = middle.min(log.len());
    let mut snapshot = None;
    for (at, record) in log.iter().enumerate() {
        snapshot = snapshot.or_else(|| (at == cut).then(|| then.to_snapshot_bytes().expect("it is small")));
        then.apply(record).expect("it was applied before");
        first.push(cloud_event(record, causes[at], &then));
    }
    let assert_same = |place: usize, causes: &[Option<Sequence>], state: &State, when: &str| {
        for (at, cause) in (place..).zip(causes) {
            assert_eq!(cloud_event(&log[at], *cause, state), first[at], "record {} {when}", log[at].sequence);
        }
    };
    assert_same(0, &causes, state, "read at the end");
    let bytes = snapshot.unwrap_or_else(|| then.to_snapshot_bytes().expect("it is small"));
    let mut restored = State::from_snapshot_bytes(&bytes).expect("it is fresh");
    assert_same(0, &causes[..cut], &restored, "read from a snapshot");
    // Who starts there reads the command whose records it is among from its beginning.
    let command = log.get(cut).map(|record| record.command);
    let begin = log[..cut].iter().rposition(|record| Some(record.command) != command).map_or(0, |last| last + 1);
    let causes = known.causes_from(begin);
    for (at, record) in log.iter().enumerate().skip(cut) {
        restored.apply(record).expect("it was applied before");
        assert_same(at, &causes[at - begin..=at - begin], &restored, "read after a restart");
    }
    assert_same(begin, &causes, &restored, "read at the end by who was restarted");
}
