//! What holds for every description and for any bytes.

use muster_hpcpack::description::{
    Format, GroupDependency, JobDescription, SystemValues, TaskDescription,
    attributes::{Attribute, TaskAttribute},
};
use proptest::{collection::vec, prelude::*, sample};
use std::collections::BTreeMap;

/// Texts that each attribute can have.
fn text_for(name: &'static str) -> BoxedStrategy<String> {
    let number = (0..100_000u32).prop_map(|number| number.to_string());
    let name_list = vec("[a-z0-9-]{1,8}", 0..4).prop_map(|names| names.join(","));
    match name {
        "Priority" => (0..=4000u32).prop_map(|value| value.to_string()).boxed(),
        "RunTime" => prop_oneof![Just("Infinite".to_owned()), "[1-9][0-9]{0,3}", "[0-9]{1,2}:[0-9]{1,3}:[1-9]"].boxed(),
        "UnitType" => sample::select(vec!["Core", "socket", "NODE"]).prop_map(str::to_owned).boxed(),
        "NodeGroupOp" => sample::select(vec!["Union", "intersect", "Uniform"]).prop_map(str::to_owned).boxed(),
        "Type" => sample::select(vec!["Basic", "ParametricSweep", "Service"]).prop_map(str::to_owned).boxed(),
        "NodeGroups" | "RequestedNodes" | "ExcludedNodes" | "RequiredNodes" | "DependsOn" => name_list.boxed(),
        "OrderBy" => sample::select(vec!["memory", "-cores", "cores,-memory"]).prop_map(str::to_owned).boxed(),
        "SoftwareLicense" => vec("[a-z]{1,5}:([1-9][0-9]?|[*])", 0..4).prop_map(|items| items.join(",")).boxed(),
        "HoldUntil" => (0..4_000_000_000i64)
            .prop_map(|seconds| muster_schemas::time::Timestamp::from_unix_seconds(seconds).to_string())
            .boxed(),
        "JobValidExitCodes" | "ValidExitCodes" => {
            sample::select(vec!["", "0", "-1,0..7"]).prop_map(str::to_owned).boxed()
        }
        "ParentJobIds" => {
            vec(1..1000u32, 0..4).prop_map(|ids| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")).boxed()
        }
        "Name" | "Project" | "EmailAddress" | "JobTemplate" | "CommandLine" | "WorkDirectory" | "StdInFilePath"
        | "StdOutFilePath" | "StdErrFilePath" => any_text(60),
        name if name.starts_with("Is")
            || name.starts_with("Auto")
            || name.starts_with("Fail") && !name.ends_with("Count") =>
        {
            booleans()
        }
        "SingleNode" | "RunUntilCanceled" | "Preemptable" | "NotifyOnStart" | "NotifyOnCompletion" => booleans(),
        _ => number.boxed(),
    }
}

fn booleans() -> BoxedStrategy<String> {
    sample::select(vec!["true", "False", "1", "0"]).prop_map(str::to_owned).boxed()
}

/// Any text that XML can hold, with the characters that need care.
fn any_text(most: usize) -> BoxedStrategy<String> {
    let character = prop_oneof![
        4 => any::<char>().prop_filter("XML holds it", |c| {
            matches!(c, '\t' | '\n' | '\r') || (*c >= ' ' && !matches!(*c, '\u{fffe}' | '\u{ffff}'))
        }),
        1 => sample::select(vec!['<', '&', '"', '\'', '>', '\r', '\n', '\t', ' ', '*']),
    ];
    vec(character, 0..most).prop_map(|characters| characters.into_iter().collect()).boxed()
}

fn some_of<A: Copy + std::fmt::Debug + 'static>(
    all: &[A],
    name: fn(A) -> &'static str,
) -> BoxedStrategy<Vec<(A, String)>> {
    let each: Vec<BoxedStrategy<Option<(A, String)>>> = all
        .iter()
        .map(|attribute| {
            let attribute = *attribute;
            proptest::option::of(text_for(name(attribute)).prop_map(move |text| (attribute, text))).boxed()
        })
        .collect();
    each.prop_map(|given| given.into_iter().flatten().collect()).boxed()
}

type Pairs = Vec<(String, String)>;

fn pairs() -> BoxedStrategy<Pairs> {
    vec(("[A-Za-z_]{1,10}", any_text(30)), 0..4).boxed()
}

fn variables(pairs: Pairs) -> BTreeMap<String, String> {
    pairs.into_iter().collect()
}

fn terms(pairs: Pairs) -> muster_hpcpack::description::Terms {
    let mut terms = muster_hpcpack::description::Terms::default();
    for (name, value) in pairs {
        terms.set(&name, &value).expect("a term");
    }
    terms
}

prop_compose! {
    fn tasks()(
        attributes in some_of(TaskAttribute::ALL, TaskAttribute::name),
        variable_pairs in pairs(), extended in pairs(), custom in pairs(),
    ) -> TaskDescription {
        let mut task = TaskDescription {
            environment: variables(variable_pairs),
            extended_terms: terms(extended),
            custom_properties: terms(custom),
            ..TaskDescription::default()
        };
        for (attribute, text) in attributes {
            task.attributes.set(attribute, Some(&text)).expect("a value");
        }
        task
    }
}

prop_compose! {
    /// Any description that can be made.
    pub fn descriptions()(
        attributes in some_of(Attribute::ALL, Attribute::name),
        variable_pairs in pairs(), extended in pairs(), custom in pairs(),
        dependencies in vec((0..9u32, 0..9u32), 0..5),
        tasks in vec(tasks(), 0..4),
    ) -> JobDescription {
        let mut description = JobDescription {
            environment: variables(variable_pairs),
            extended_terms: terms(extended),
            custom_properties: terms(custom),
            dependencies: dependencies.into_iter().map(|(parent, child)| GroupDependency { parent, child }).collect(),
            tasks,
            ..JobDescription::default()
        };
        for (attribute, text) in attributes {
            description.attributes.set(attribute, Some(&text)).expect("a value");
        }
        description
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// HPC-J-48
    #[test]
    fn what_is_written_is_read_as_it_was(description in descriptions()) {
        let system = SystemValues::default().with("Id", 7).with("Owner", "<ann> & \"co\"");
        for format in [Format::Xml, Format::Json] {
            let written = description.write_as(format, &system);
            prop_assert_eq!(Format::of(written.as_bytes()), format);
            let (read, warnings) = JobDescription::read_as(format, written.as_bytes())
                .unwrap_or_else(|error| panic!("{error}\n{written}"));
            prop_assert_eq!(&read, &description, "{}", written);
            prop_assert_eq!(warnings, vec![]);
        }
    }

    /// HPC-J-47
    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        for format in [Format::Xml, Format::Json] {
            let _ = JobDescription::read_as(format, &bytes);
        }
    }

    /// HPC-J-47
    #[test]
    fn any_damage_to_a_description_is_read_or_refused(
        description in descriptions(), at in any::<sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        for format in [Format::Xml, Format::Json] {
            let mut bytes = description.write_as(format, &SystemValues::default()).into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if cut {
                bytes.truncate(at);
            }
            let _ = JobDescription::read_as(format, &bytes);
        }
    }
}
