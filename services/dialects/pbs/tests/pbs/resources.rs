//! The words of `-l`.

use muster_pbs::resources::{Arrangement, Exclusion, NodesSpec, Place, Select, parse};
use proptest::prelude::*;

#[test]
fn a_list_keeps_quoted_values_together() {
    let list = parse("select=1:ncpus=2:note=\"a,b\"+2, walltime = 1:00:00,software='x y',flag").unwrap();
    let pairs: Vec<(&str, &str)> = list.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
    let expected =
        [("select", "1:ncpus=2:note=\"a,b\"+2"), ("walltime", "1:00:00"), ("software", "'x y'"), ("flag", "")];
    assert_eq!(pairs, expected);
    for (text, why) in [
        ("", "no name"),
        ("a,,b", "no name"),
        ("=1", "no name"),
        ("a=", "no value"),
        ("a b=1", "not the name"),
        ("a=\"x", "quote is not closed"),
    ] {
        let message = parse(text).unwrap_err().to_string();
        assert!(message.contains(why), "{text}: {message}");
    }
    assert!(parse(&"a".repeat(70_000)).is_err());
}

#[test]
fn chunks_have_a_count_and_resources() {
    let select = Select::parse("2:ncpus=4:mem=8gb:mpiprocs=4:host=n1+ncpus=1+3").unwrap();
    assert_eq!(select.count(), 6);
    assert_eq!(select.0[0].get("mem"), Some("8gb"));
    assert_eq!((select.0[1].count, select.0[2].count, select.0[2].resources.len()), (1, 3, 0));
    assert_eq!(select.to_string(), "2:ncpus=4:mem=8gb:mpiprocs=4:host=n1+1:ncpus=1+3");
    for (text, why) in [
        ("", "a chunk is a number"),
        ("2+", "a chunk is a number"),
        ("0:ncpus=1", "at least 1"),
        ("2x:ncpus=1", "at least 1"),
        ("2:ncpus", "resources such as"),
        ("2:ncpus=", "no value"),
        ("2:ncpus=1:ncpus=2", "each resource once"),
        ("2:=1", "not the name"),
        ("2000000", "at most 1000000 chunks"),
    ] {
        let message = Select::parse(text).unwrap_err().to_string();
        assert!(message.contains(why), "{text}: {message}");
    }
    assert!(Select::parse(&"1+".repeat(1_001)).unwrap_err().to_string().contains("kinds"));
}

#[test]
fn a_place_has_each_kind_of_word_once() {
    let place = Place::parse("excl:scatter:group=switch").unwrap();
    assert_eq!((place.arrangement, place.exclusion), (Some(Arrangement::Scatter), Some(Exclusion::Excl)));
    assert_eq!(place.to_string(), "scatter:excl:group=switch");
    for text in ["", "free:pack", "excl:shared", "group=", "group=a:group=b", "near", "free:"] {
        assert!(Place::parse(text).is_err(), "{text}");
    }
}

/// PBS-Q-10: `nodes=N`, `N:property`, `name`, joined by `+`.
#[test]
fn nodes_have_a_count_or_a_name_and_properties() {
    let spec = NodesSpec::parse("2:ppn=4:fast:ib+n17:gpus=1+3#shared").unwrap();
    assert_eq!((spec.count(), spec.processors(), spec.exclusion), (6, 12, Some(Exclusion::Shared)));
    assert_eq!(spec.entries[0].properties, ["fast", "ib"]);
    assert_eq!(spec.to_string(), "2:ppn=4:fast:ib+n17:gpus=1+3#shared");
    for (text, why) in [
        ("", "expected a number or the name"),
        ("2+", "expected a number or the name"),
        ("0", "is 1 to"),
        ("2:ppn=0", "ppn is a number"),
        ("2:ppn=x", "ppn is a number"),
        ("2:ppn=1:ppn=2", "given twice"),
        ("2:", "not the name of a property"),
        ("2:procs=3", "not supported"),
        ("2#half", "expected #shared"),
        ("-n1", "expected a number or the name"),
        ("1000000+1", "at most"),
    ] {
        let message = NodesSpec::parse(text).unwrap_err().to_string();
        assert!(message.contains(why), "{text}: {message}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_requests_panic(text in "\\PC{0,60}", likely in "[0-9a-z:=+#,\"'\\\\]{0,60}") {
        for text in [&text, &likely] {
            let _ = parse(text);
            if let Ok(select) = Select::parse(text) {
                prop_assert_eq!(Select::parse(&select.to_string()).unwrap(), select);
            }
            if let Ok(place) = Place::parse(text) {
                prop_assert_eq!(Place::parse(&place.to_string()).unwrap(), place);
            }
            if let Ok(nodes) = NodesSpec::parse(text) {
                prop_assert_eq!(NodesSpec::parse(&nodes.to_string()).unwrap(), nodes);
            }
        }
    }

    #[test]
    fn chunks_are_read_as_they_are_printed(
        chunks in prop::collection::vec((1u32..100, prop::collection::btree_map("[a-z]{1,6}", "[ -~]{1,9}", 0..4)), 1..5)
    ) {
        let text = |(count, resources): &(u32, std::collections::BTreeMap<String, String>)| {
            let resources = resources.iter().map(|(name, value)| format!(":{name}={}", muster_pbs::text::quoted(value, &[':', '+', ','])));
            format!("{count}{}", resources.collect::<String>())
        };
        let written = chunks.iter().map(text).collect::<Vec<_>>().join("+");
        let select = Select::parse(&written).unwrap();
        for (chunk, (count, resources)) in select.0.iter().zip(&chunks) {
            prop_assert_eq!(chunk.count, *count);
            prop_assert_eq!(&chunk.resources.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(), resources);
        }
        prop_assert_eq!(Select::parse(&select.to_string()).unwrap(), select);
    }
}
