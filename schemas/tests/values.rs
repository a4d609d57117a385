//! Ids, sets, times and the codec: values survive a round trip, and nothing else is accepted.

use muster_schemas::{
    CommandId, JobId, PartId, RunId, StepId, Timestamp, codec,
    codec::CodecError,
    event::{Event, Owner, TraceContext},
    hosts,
    job::{Launch, Outcome},
    node::{LaunchOrder, NODE_CORES_VARIABLE, OrderNode, node_cores_text},
    policy::{Backfill, BackfillMode, ComponentPriority, ComponentStart, Components},
    resources::IndexSet,
    views::OutcomeView,
};

use proptest::{prelude::*, test_runner::FileFailurePersistence};
use std::{collections::BTreeSet, sync::Arc};

#[test]
fn job_ids_are_read_as_they_are_written() {
    for (text, id) in [("12", JobId::job(12)), ("12_0", JobId::task(12, 0)), ("12_3", JobId::task(12, 3))] {
        assert_eq!(text.parse(), Ok(id));
        assert_eq!(id.to_string(), text);
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{text}\""));
    }
    for wrong in ["", "0", "-1", "+1", "1_", "_1", "1_-1", "1_+1", "12a", "1_4294967296", "18446744073709551616", "1 "]
    {
        assert!(wrong.parse::<JobId>().is_err(), "{wrong:?} was taken for a job id");
    }
}

#[test]
fn host_lists_in_their_corners() {
    assert_eq!(hosts::expand(""), Ok(Vec::new()), "what the empty list is written as");
    assert_eq!(hosts::compress::<&str>(&[]), "");
    assert_eq!(hosts::expand("n[4294967296-4294967297]").unwrap(), ["n4294967296", "n4294967297"], "more than 32 bits");
    let names = ["n9999999999", "n10000000000", "n123456789012345678901"];
    assert_eq!(hosts::compress(&names), "n[9999999999-10000000000],n123456789012345678901");
    for (names, list) in [
        (["n099", "n100", "n1000"], "n[099-100,1000]"),
        (["n099", "n1000", "n1001"], "n[099,1000-1001]"),
        (["n999", "n1000", "n0100"], "n[999-1000,0100]"),
        (["n9", "n09", "n10"], "n9,n[09-10]"),
    ] {
        assert_eq!(hosts::compress(&names), list);
        assert_eq!(hosts::expand(list).unwrap(), names);
    }
}

#[test]
fn a_derived_command_id_depends_on_each_part_and_its_bounds() {
    let id = CommandId::derived(&[b"ab", b"c"]);
    assert_eq!(id, CommandId::derived(&[b"ab", b"c"]));
    assert_ne!(id, CommandId::derived(&[b"a", b"bc"]));
    assert_ne!(id, CommandId::derived(&[b"abc"]));
}

#[test]
fn times_are_rfc_3339_in_json_and_in_order() {
    let time = Timestamp(1_700_000_000_123_456);
    let json = serde_json::to_string(&time).unwrap();
    assert_eq!(json, "\"2023-11-14T22:13:20.123456Z\"");
    assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), time);
    assert!(serde_json::from_str::<Timestamp>("\"yesterday\"").is_err());
    assert!(Timestamp(i64::MAX).to_string().starts_with("9999-12-"));
    assert_eq!(Timestamp(i64::MAX).plus_seconds(i64::MAX), Timestamp(i64::MAX));
}

#[test]
fn index_sets_are_read_as_people_write_them() {
    let cases = [("0-3,8", "0-3,8"), ("8,0-3", "0-3,8"), ("1,2,3", "1-3"), ("0-9:2", "0,2,4,6,8"), ("5-9,0-6", "0-9")];
    for (text, normal) in cases {
        assert_eq!(text.parse::<IndexSet>().unwrap().to_string(), normal);
    }
    for (wrong, column) in [("", 1), ("1,,2", 3), ("3-1", 1), ("1,a", 3), ("0-4:0", 1), ("-1", 1), ("4294967296", 1)] {
        assert_eq!(wrong.parse::<IndexSet>().unwrap_err().column, column, "{wrong:?}");
    }
    assert!("0-4294967295:2".parse::<IndexSet>().is_err(), "a set of 2^31 single ranges");
}

#[test]
fn a_traceparent_is_read_as_it_is_written() {
    let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let context = TraceContext::from_traceparent(text).unwrap();
    assert_eq!(context.to_traceparent().as_deref(), Some(text));
    assert_eq!(TraceContext::default().to_traceparent(), None);
    for wrong in
        ["", "00-0-0-01", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-é-b7ad6b7169203331-01"]
    {
        assert_eq!(TraceContext::from_traceparent(wrong), None);
    }
}

#[test]
fn a_payload_that_is_cut_or_too_long_or_of_another_version_is_refused() {
    let bytes = codec::encode(&Event::QueueRemoved { name: "night".into() }).unwrap();
    for cut in 0..bytes.len() {
        assert!(matches!(codec::decode::<Event>(&bytes[..cut]), Err(CodecError::CutShort { .. })), "cut at {cut}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(codec::decode::<Event>(&longer), Err(CodecError::TooLong(1)));
    let mut newer = bytes.clone();
    newer[1] = codec::SCHEMA_VERSION + 1;
    assert!(matches!(codec::decode::<Event>(&newer), Err(CodecError::UnknownVersion { .. })));
}

#[test]
fn a_failed_encoding_leaves_the_buffer_as_it_was() {
    let mut buffer = vec![1, 2, 3];
    let first = "encoded before the failure";
    struct Refuses;
    impl serde::Serialize for Refuses {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no"))
        }
    }
    assert!(matches!(codec::encode_into(&(first, Refuses), &mut buffer), Err(CodecError::Unencodable(_))));
    assert_eq!(buffer, [1, 2, 3]);
}

fn order_with(cores: &[u64], node_index: u32, told: Option<&str>) -> LaunchOrder {
    let node = |_: &u64| OrderNode { name: "n".into(), tasks: 1, component: 0, facts: None };
    let own = cores.get(node_index as usize).map_or(0, |own| *own as u32);
    LaunchOrder {
        job: JobId::job(1),
        part: PartId::new(RunId(1), 0),
        step: StepId(0),
        name: String::new(),
        owner: Owner { user: "root".into(), uid: 0, gid: 0 },
        account: None,
        queue: String::new(),
        launch: Launch::default(),
        environment: told.map(|told| (NODE_CORES_VARIABLE.to_owned(), told.to_owned())).into_iter().collect(),
        working_directory: "/".into(),
        umask: None,
        nodes: Arc::new(cores.iter().map(node).collect()),
        node_index,
        first_rank: 0,
        total_tasks: 1,
        cpus_per_task: 1,
        cores: (0..own).collect(),
        gpus: IndexSet::new(),
        memory_bytes: 0,
        walltime_seconds: None,
        checkpoint: None,
        kill_grace_seconds: 0,
        trace: TraceContext::default(),
        access: None,
        group: None,
        dialect: None,
    }
}

/// SL-E-03: anything but the ledger's notation for these nodes is refused.
#[test]
fn cores_of_nodes_are_read_as_they_are_written() {
    assert_eq!(node_cores_text([4, 4, 4, 2, 4]), "4x3,2,4");
    let read = |told| order_with(&[4, 4, 2], 2, told).node_cores();
    assert_eq!(read(Some("4x2,2")), Some(vec![4, 4, 2]));
    let wrong =
        ["", "4x2", "4x2,2,2", "4x3", "4x99999999999999999999,2", "4x4000000000", "4,x,2", "x2,2", "4x2x1,2", "4x2,-2"];
    for text in wrong {
        assert_eq!(read(Some(text)), None, "{text}");
    }
    assert_eq!(read(None), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_failure_persistence(FileFailurePersistence::WithSource("regressions")))]

    #[test]
    fn cores_of_nodes_come_out_as_they_went_in(cores in prop::collection::vec(0u64..5, 1..12), at in any::<prop::sample::Index>()) {
        let at = at.index(cores.len()) as u32;
        prop_assert_eq!(order_with(&cores, at, Some(&node_cores_text(cores.clone()))).node_cores(), Some(cores));
    }

    #[test]
    fn a_flipped_bit_is_found(name in ".{0,40}", at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = codec::encode(&Event::QueueRemoved { name }).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(codec::decode::<Event>(&bytes).is_err());
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = codec::decode::<Event>(&bytes);
        // The same after a valid header, so that the body's decoder is reached.
        let mut framed = vec![2, codec::SCHEMA_VERSION];
        framed.extend((bytes.len() as u32).to_le_bytes());
        framed.extend(crc32fast::hash(&bytes).to_le_bytes());
        framed.extend(bytes);
        let _ = codec::decode::<Event>(&framed);
        let _ = codec::decode::<muster_schemas::command::CommandEnvelope>(&framed);
    }

    #[test]
    fn set_operations_agree_with_a_plain_set(
        left in prop::collection::btree_set(0u32..40, 0..30),
        right in prop::collection::btree_set(0u32..40, 0..30),
        count in 0u64..40,
    ) {
        let (a, b): (IndexSet, IndexSet) = (left.iter().copied().collect(), right.iter().copied().collect());
        let plain = |set: &IndexSet| set.iter().collect::<BTreeSet<u32>>();
        prop_assert_eq!(plain(&a.union(&b)), &left | &right);
        prop_assert_eq!(plain(&a.difference(&b)), &left - &right);
        prop_assert_eq!(plain(&a.intersection(&b)), &left & &right);
        prop_assert_eq!(a.contains_all(&b), right.is_subset(&left));
        prop_assert_eq!(a.len(), left.len() as u64);
        prop_assert_eq!(plain(&a.smallest(count)), left.iter().copied().take(count as usize).collect());
        for number in 0..41 {
            prop_assert_eq!(a.contains(number), left.contains(&number));
            let (mut with, mut without) = (a.clone(), a.clone());
            prop_assert_eq!(with.insert(number), !left.contains(&number));
            prop_assert_eq!(without.remove(number), left.contains(&number));
            let rebuilt: IndexSet = with.iter().collect();
            prop_assert_eq!(with, rebuilt, "ranges that touch were not joined");
            let rebuilt: IndexSet = without.iter().collect();
            prop_assert_eq!(without, rebuilt);
        }
        if !a.is_empty() {
            prop_assert_eq!(a.to_string().parse::<IndexSet>().unwrap(), a.clone());
        }
        let bytes = codec::encode(&a).unwrap();
        prop_assert_eq!(codec::decode::<IndexSet>(&bytes).unwrap(), a);
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in "[0-9,:_-]{0,30}|.{0,30}") {
        let _ = text.parse::<IndexSet>();
        let _ = text.parse::<JobId>();
        let _ = TraceContext::from_traceparent(&text);
    }
}

#[test]
fn settings_of_components_are_written_and_read() {
    let backfill = |components: Components| Backfill { mode: BackfillMode::Easy, components, ..Backfill::default() };
    let [apart, shared] = [false, true].map(|share_nodes| Components { share_nodes, ..Components::default() });
    let own = Components {
        start: ComponentStart::BackfillPass,
        interval_seconds: 7,
        window_seconds: Some(9),
        priority: ComponentPriority::Max,
        share_nodes: false,
    };
    for components in [apart, shared, own, Components { share_nodes: true, ..own }] {
        let backfill = backfill(components);
        assert_eq!(codec::decode::<Backfill>(&codec::encode(&backfill).unwrap()).unwrap(), backfill);
        let text = serde_json::to_string(&backfill).unwrap();
        assert_eq!(serde_json::from_str::<Backfill>(&text).unwrap(), backfill);
        assert!(text.starts_with(r#"{"mode":"easy","#), "{text}");
    }
    assert!(serde_json::from_str::<Backfill>(r#"{"mode":"easy","modes":1}"#).is_err());
}

#[test]
fn sizes_are_told_in_peoples_units() {
    use muster_schemas::resources::size_text;
    for (bytes, text) in [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1_023, "1023 bytes"),
        (429_496_729_600, "400 GiB"),
        (512 << 20, "512 MiB"),
        (67_108_864_000, "62.5 GiB"),
        (u64::MAX, "16383.9 PiB"),
    ] {
        assert_eq!(size_text(bytes), text);
    }
}

/// A job that was lost with its node shows the node, and how it was lost.
#[test]
fn a_lost_node_is_told_with_its_reason() {
    let lost = Outcome::NodeLost("node1: not heard of for 31 seconds".into());
    let view = OutcomeView::from(&lost);
    assert_eq!(view.detail.as_deref(), Some("node1: not heard of for 31 seconds"));
    assert_eq!(view.to_string(), "node_lost (node1: not heard of for 31 seconds)");
}
