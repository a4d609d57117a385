//! Stored shapes can grow: newer versions of muster read what older ones wrote, and the reverse (M-LOG-14).

use muster_schemas::{
    Sequence, Timestamp,
    codec::{self, CodecError},
    node::{Briefing, Mark, NodeOrder},
};
use proptest::{prelude::*, test_runner::FileFailurePersistence};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{collections::BTreeMap, sync::Arc};

/// Earlier shapes.
mod before {
    use super::{Arc, BTreeMap, Deserialize, Serialize};

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct Job {
        pub name: String,
        pub components: Vec<Component>,
        pub environment: BTreeMap<String, String>,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct Component {
        pub queue: Option<Arc<str>>,
        pub priority: i64,
        pub key: [u8; 4],
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub enum Event {
        Submitted { number: u64, job: Arc<Job> },
        Ended { number: u64, code: Option<u8> },
        Idle,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Record {
        pub sequence: u64,
        pub event: Event,
        pub after: u32,
    }
}

/// The same shapes, each with one more field at its end, and one more event.
mod now {
    use super::{Arc, BTreeMap, Deserialize, Serialize, before};

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct Job {
        pub name: String,
        pub components: Vec<Component>,
        pub environment: BTreeMap<String, String>,
        pub dialect: Option<Arc<str>>,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct Component {
        pub queue: Option<Arc<str>>,
        pub priority: i64,
        pub key: [u8; 4],
        pub window: Option<(i64, i64)>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub enum Event {
        Submitted { number: u64, job: Arc<Job>, is_urgent: bool },
        Ended { number: u64, code: Option<u8>, used: BTreeMap<String, u64> },
        Idle,
        Replaced { number: u64 },
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Record {
        pub sequence: u64,
        pub event: Event,
        pub after: u32,
        pub epoch: u64,
    }

    impl From<before::Job> for Job {
        fn from(before::Job { name, components, environment }: before::Job) -> Self {
            let components = components.into_iter().map(Component::from).collect();
            Self { name, components, environment, dialect: None }
        }
    }

    impl From<before::Component> for Component {
        fn from(before::Component { queue, priority, key }: before::Component) -> Self {
            Self { queue, priority, key, window: None }
        }
    }

    impl From<before::Event> for Event {
        fn from(event: before::Event) -> Self {
            match event {
                before::Event::Submitted { number, job } => {
                    Self::Submitted { number, job: Arc::new((*job).clone().into()), is_urgent: false }
                }
                before::Event::Ended { number, code } => Self::Ended { number, code, used: BTreeMap::new() },
                before::Event::Idle => Self::Idle,
            }
        }
    }

    impl From<before::Record> for Record {
        fn from(before::Record { sequence, event, after }: before::Record) -> Self {
            Self { sequence, event: event.into(), after, epoch: 0 }
        }
    }
}

/// The record without its new parts.
fn without_new(record: &now::Record) -> Option<before::Record> {
    let component = |component: &now::Component| before::Component {
        queue: component.queue.clone(),
        priority: component.priority,
        key: component.key,
    };
    let event = match &record.event {
        now::Event::Submitted { number, job, .. } => {
            let components = job.components.iter().map(component).collect();
            let (name, environment) = (job.name.clone(), job.environment.clone());
            before::Event::Submitted { number: *number, job: Arc::new(before::Job { name, components, environment }) }
        }
        now::Event::Ended { number, code, .. } => before::Event::Ended { number: *number, code: *code },
        now::Event::Idle => before::Event::Idle,
        now::Event::Replaced { .. } => return None,
    };
    Some(before::Record { sequence: record.sequence, event, after: record.after })
}

fn component() -> impl Strategy<Value = now::Component> {
    (proptest::option::of(".{0,3}"), any::<i64>(), any::<[u8; 4]>(), any::<Option<(i64, i64)>>()).prop_map(
        |(queue, priority, key, window)| now::Component { queue: queue.map(Arc::from), priority, key, window },
    )
}

/// Jobs whose length needs one byte, two bytes, or more.
fn job() -> impl Strategy<Value = now::Job> {
    let name = prop_oneof![Just(String::new()), ".{0,8}", "[a-z]{240,260}", "[a-z]{65520,65560}"];
    let dialect = proptest::option::of("[a-z]{0,4}");
    let environment = prop::collection::btree_map("[A-Z]{0,3}", ".{0,4}", 0..3);
    (name, prop::collection::vec(component(), 0..4), environment, dialect).prop_map(
        |(name, components, environment, dialect)| now::Job {
            name,
            components,
            environment,
            dialect: dialect.map(Arc::from),
        },
    )
}

fn record() -> impl Strategy<Value = now::Record> {
    let submitted = (any::<u64>(), job(), any::<bool>()).prop_map(|(number, job, is_urgent)| now::Event::Submitted {
        number,
        job: Arc::new(job),
        is_urgent,
    });
    let used = prop::collection::btree_map("[a-z]{0,2}", any::<u64>(), 0..3);
    let ended = (0..300u64, any::<Option<u8>>(), used).prop_map(|(number, code, used)| now::Event::Ended {
        number,
        code,
        used,
    });
    let replaced = any::<u64>().prop_map(|number| now::Event::Replaced { number });
    let event = prop_oneof![submitted, ended, Just(now::Event::Idle), replaced];
    let small = || prop_oneof![Just(0u32), 0..3u32, any::<u32>()];
    (small(), event, small(), small()).prop_map(|(sequence, event, after, epoch)| now::Record {
        sequence: sequence.into(),
        event,
        after,
        epoch: epoch.into(),
    })
}

fn read<T: DeserializeOwned>(value: &impl Serialize) -> Result<T, CodecError> {
    codec::decode(&codec::encode(value).unwrap())
}

/// The payload of any body.
fn sealed(body: &[u8]) -> Vec<u8> {
    let (length, checksum) = ((body.len() as u32).to_le_bytes(), crc32fast::hash(body).to_le_bytes());
    [&[2, codec::SCHEMA_VERSION], &length[..], &checksum, body].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_failure_persistence(FileFailurePersistence::WithSource("regressions")))]

    #[test]
    fn what_is_written_is_read(record in record(), options: Vec<Option<(u8, Box<str>)>>, number: (u64, i64, u128, char, f64)) {
        prop_assert_eq!(read::<now::Record>(&record).unwrap(), record);
        prop_assert_eq!(read::<Vec<Option<(u8, Box<str>)>>>(&options).unwrap(), options);
        let back: (u64, i64, u128, char, f64) = read(&number).unwrap();
        prop_assert_eq!((back.0, back.1, back.2, back.3, back.4.to_bits()), (number.0, number.1, number.2, number.3, number.4.to_bits()));
    }

    /// A newer muster reads what an older one wrote, with empty values in the new fields.
    #[test]
    fn older_bytes_are_read(record in record()) {
        if let Some(older) = without_new(&record) {
            prop_assert_eq!(read::<now::Record>(&older).unwrap(), now::Record::from(older));
        }
    }

    /// An older muster reads what a newer one wrote, except for unknown kinds of events.
    #[test]
    fn newer_bytes_are_read(record in record()) {
        match without_new(&record) {
            Some(older) => prop_assert_eq!(read::<before::Record>(&record).unwrap(), older),
            None => prop_assert!(read::<before::Record>(&record).is_err()),
        }
    }

    /// As long as nothing new is used, bytes and digests are unchanged: signatures of an older muster stay valid.
    #[test]
    fn unused_fields_have_no_bytes(record in record()) {
        if let Some(older) = without_new(&record) {
            let same = now::Record::from(older.clone());
            prop_assert_eq!(codec::encode(&older).unwrap(), codec::encode(&same).unwrap());
            prop_assert_eq!(codec::digest(&older), codec::digest(&same));
        }
    }

    #[test]
    fn a_digest_is_that_of_the_body(record in record(), jobs in prop::collection::vec(job(), 0..6)) {
        let body = |payload: Vec<u8>| *blake3::hash(&payload[codec::HEADER_BYTES..]).as_bytes();
        prop_assert_eq!(codec::digest(&record), body(codec::encode(&record).unwrap()));
        // More than the hasher gets at a time.
        let all = All { zero: 0, jobs, none: None, last: record.epoch };
        prop_assert_eq!(codec::digest(&all), body(codec::encode(&all).unwrap()));
        prop_assert_eq!(read::<All>(&all).unwrap(), all);
    }

    /// Truncated bytes are an error or, at the end of the outermost struct's fields, an older record; never a panic.
    #[test]
    fn cut_short_or_damaged_bytes_never_panic(record in record(), at in any::<prop::sample::Index>(), noise: u8) {
        let payload = codec::encode(&record).unwrap();
        let mut body = payload[codec::HEADER_BYTES..].to_vec();
        prop_assume!(!body.is_empty());
        let at = at.index(body.len());
        let _ = codec::decode::<now::Record>(&sealed(&body[..at]));
        body[at] = noise;
        let _ = codec::decode::<now::Record>(&sealed(&body));
        let _ = codec::decode::<before::Record>(&sealed(&body));
    }

    #[test]
    fn noise_never_panics(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = codec::decode::<now::Record>(&sealed(&body));
        let _ = codec::decode::<Vec<now::Job>>(&sealed(&body));
        let _ = codec::decode::<Nest>(&sealed(&body));
    }

    /// A list that is encoded item by item has the bytes of the whole struct.
    #[test]
    fn lists_are_encoded_item_by_item_as_in_one(jobs in prop::collection::vec(job(), 0..5), none: Option<u64>, last in 0..3u64) {
        let mut encoder = codec::ListEncoder::default();
        jobs.iter().try_for_each(|job| encoder.push(job)).unwrap();
        let (buffer, start) = encoder.finish(&Rest { none, last }).unwrap();
        let bytes = &buffer[start..];
        prop_assert_eq!(bytes, &codec::encode(&Listed { jobs: jobs.clone(), none, last }).unwrap());
        prop_assert_eq!(codec::decode::<Listed>(bytes).unwrap(), Listed { jobs, none, last });
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct All {
    zero: u8,
    jobs: Vec<now::Job>,
    none: Option<u8>,
    last: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Listed {
    jobs: Vec<now::Job>,
    none: Option<u64>,
    last: u64,
}

#[derive(Serialize)]
struct Rest {
    none: Option<u64>,
    last: u64,
}

/// A type that can contain itself endlessly, even when it is read from zeros.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Nest {
    In(Box<Nest>),
    Out,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Nested {
    number: u8,
    nest: Nest,
}

#[test]
fn what_lies_too_deep_is_an_error_both_ways() {
    let nest = |levels: usize| (0..levels).fold(Nest::Out, |inner, _| Nest::In(Box::new(inner)));
    let deepest = (0..1_000).take_while(|levels| codec::encode(&nest(*levels)).is_ok()).last().unwrap();
    assert_eq!(deepest, 159);
    assert_eq!(read::<Nest>(&nest(deepest)).unwrap(), nest(deepest));
    let deeper = [vec![0; deepest + 1], vec![1]].concat();
    let error = codec::decode::<Nest>(&sealed(&deeper)).unwrap_err();
    assert_eq!(error.to_string(), "not decodable: types lie too deep in each other");
    // A missing field.
    assert_eq!(codec::decode::<Nested>(&sealed(&[7])).unwrap_err(), error);
}

#[test]
fn blocks_have_lengths_and_no_zeros_at_their_ends() {
    let component = before::Component { queue: None, priority: 0, key: [0; 4] };
    let bytes = |value: &dyn Fn() -> Vec<u8>| value()[codec::HEADER_BYTES..].to_vec();
    let job = |components: Vec<before::Component>| {
        codec::encode(&before::Job { name: "a".into(), components, environment: BTreeMap::new() }).unwrap()
    };
    assert_eq!(bytes(&|| job(vec![])), [1, b'a']);
    assert_eq!(bytes(&|| job(vec![component.clone()])), [1, b'a', 1, 0]);
    let other = before::Component { priority: -1, ..component };
    assert_eq!(bytes(&|| job(vec![other.clone()])), [1, b'a', 1, 2, 0, 1]);
    let event = before::Event::Ended { number: 300, code: None };
    assert_eq!(bytes(&|| codec::encode(&event).unwrap()), [1, 3, 251, 44, 1]);
}

/// A digest is that of the body, even if more than the hasher gets at a time precedes zeros at the end.
#[test]
fn zeros_behind_much_are_left_out_of_a_digest_too() {
    #[derive(Serialize)]
    struct Much {
        text: String,
        key: [u8; 4],
        pair: (u8, u64),
    }
    let much = Much { text: "x".repeat(70 << 10), key: [0; 4], pair: (0, 0) };
    let payload = codec::encode(&much).unwrap();
    assert_eq!(codec::digest(&much), *blake3::hash(&payload[codec::HEADER_BYTES..]).as_bytes());
}

/// A struct of zeros is one byte: this many bytes of them would need hundreds of times as much memory.
#[test]
fn lists_of_zeros_do_not_become_very_much() {
    let zeros = |count: usize| {
        let list = codec::encode(&(count as u64)).unwrap();
        sealed(&[&list[codec::HEADER_BYTES..], &vec![0; count]].concat())
    };
    let few = codec::decode::<Vec<now::Job>>(&zeros(1_000)).unwrap();
    assert!(few.len() == 1_000 && few[0] == now::Job::default());
    let error = codec::decode::<Vec<now::Job>>(&zeros(8 << 20)).unwrap_err().to_string();
    assert_eq!(error, "not decodable: lists with more memory than so few bytes can mean");
    assert_eq!(codec::decode::<Vec<u8>>(&zeros(8 << 20)).unwrap().len(), 8 << 20);
}

#[test]
fn lengths_that_lie_are_errors() {
    // A text, a list, a block and a map that claim more than there is.
    for body in [&[9, 1][..], &[0, 9], &[0, 1, 9, 0], &[0, 0, 253, 255, 255, 255, 255, 255, 255, 255, 255]] {
        let error = codec::decode::<now::Job>(&sealed(body)).unwrap_err().to_string();
        assert!(error.contains("a length of"), "{body:?}: {error}");
    }
    assert_eq!(
        codec::decode::<(u8, u8)>(&sealed(&[1, 2, 3])).unwrap_err().to_string(),
        "not decodable: 1 bytes left over"
    );
}

#[test]
fn fields_that_are_skipped_now_and_then_are_refused() {
    #[derive(Serialize)]
    struct Skips {
        #[serde(skip_serializing_if = "Option::is_none")]
        first: Option<u8>,
        second: u8,
    }
    assert!(codec::encode(&Skips { first: Some(1), second: 2 }).is_ok());
    let error = codec::encode(&Skips { first: None, second: 2 }).unwrap_err().to_string();
    assert_eq!(error, "not encodable: the field `first` of a stored type is skipped now and then");
}

/// A briefing without a reign has the same bytes as ever.
#[test]
fn a_briefing_tells_the_reign_of_its_ledger_and_is_as_before_without_one() {
    #[derive(Serialize)]
    struct Before {
        mark: Option<Mark>,
        orders: Vec<NodeOrder>,
    }
    let mark = Some(Mark { session: Timestamp(7), sequence: Sequence(9) });
    let before = codec::encode(&Before { mark, orders: Vec::new() }).unwrap();
    let plain = Briefing { mark, ..Briefing::default() };
    assert_eq!(codec::encode(&plain).unwrap(), before);
    assert_eq!(codec::decode::<Briefing>(&before).unwrap(), plain);
    let reigned = Briefing { epoch: 3, ..plain };
    assert_eq!(codec::decode::<Briefing>(&codec::encode(&reigned).unwrap()).unwrap().epoch, 3);
}
