//! Properties of every description and of any bytes.

use muster_hpcpack::{
    changes::judge,
    description::{
        Format, GroupDependency, JobDescription, SystemValues, TaskDescription,
        attributes::{Attribute, TaskAttribute},
        values::SystemAttribute,
    },
    options::{Verb, job},
    result_file::ResultFile,
    settings::Settings,
    size::Size,
    tasks,
    template::{FilterDefinition, Limits, Template},
};
use proptest::{collection::vec, prelude::*, sample};
use std::collections::BTreeMap;

/// Valid texts for each attribute.
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
        "Name" | "Project" => any_text(60).prop_map(|text| text.replace(char::is_control, "_")).boxed(),
        "EmailAddress" | "JobTemplate" | "CommandLine" | "WorkDirectory" | "StdInFilePath" | "StdOutFilePath"
        | "StdErrFilePath" => any_text(60),
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
    /// Any possible description.
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
        let system = SystemValues::default().with(SystemAttribute::Id, 7).with(SystemAttribute::Owner, "<ann> & \"co\"");
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

    /// HPC-F-15
    #[test]
    fn a_filter_changes_every_property_and_no_task(before in descriptions(), after in descriptions()) {
        let system = SystemValues::default().with(SystemAttribute::Id, 7);
        for format in [Format::Xml, Format::Json] {
            let (input, output) = (before.write_as(format, &system), after.write_as(format, &system));
            let taken = judge(format, input.as_bytes(), output.as_bytes()).expect("a description");
            let tasks = (before.tasks.clone(), before.dependencies.clone());
            prop_assert_eq!((&taken.description.tasks, &taken.description.dependencies), (&tasks.0, &tasks.1));
            let properties = JobDescription { tasks: tasks.0, dependencies: tasks.1, ..after.clone() };
            prop_assert_eq!(&taken.description, &properties);
            let is_same = properties == before;
            prop_assert_eq!(taken.differences.is_empty(), is_same);
            let again = judge(format, output.as_bytes(), output.as_bytes()).expect("a description");
            prop_assert_eq!((again.differences, again.warnings), (vec![], vec![]));
        }
    }

    /// HPC-F-17
    #[test]
    fn any_output_of_a_filter_is_taken_or_refused(
        before in descriptions(), at in any::<sample::Index>(), bytes in vec(any::<u8>(), 0..20),
    ) {
        for format in [Format::Xml, Format::Json] {
            let input = before.write_as(format, &SystemValues::default());
            let mut output = input.clone().into_bytes();
            let at = at.index(output.len());
            let end = (at + bytes.len()).min(output.len());
            output.splice(at..end, bytes.iter().copied());
            if let Ok(taken) = judge(format, input.as_bytes(), &output) {
                prop_assert_eq!(taken.description.tasks, before.tasks.clone());
            }
        }
    }

    /// HPC-J-16, HPC-J-22..24
    #[test]
    fn every_description_has_a_size_or_is_refused(description in descriptions()) {
        if let Ok(size) = Size::of(&description.attributes, &description.tasks) {
            prop_assert!(1 <= size.min && size.min <= size.max);
            let _ = tasks::faults(&description, size, description.attributes.run_time);
        }
    }

    /// HPC-T-02
    #[test]
    fn templates_are_read_as_they_were_written(
        defaults in some_of(Attribute::ALL, Attribute::name), name in "[A-Za-z][A-Za-z0-9 ]{0,9}[a-z]",
        description in any_text(40), max in 0..4000i64, filters in vec("/[a-z/]{0,9}[a-z]", 0..4),
    ) {
        let mut template = Template::new(name);
        template.description = description;
        for (attribute, text) in defaults {
            // An empty default does not count.
            let default = Some(text.as_str()).filter(|text| !text.is_empty());
            let limits = Limits { max: (attribute == Attribute::Priority).then_some(max), ..Limits::default() };
            let _ = template.set(attribute, default, limits);
        }
        for (index, path) in filters.iter().enumerate() {
            let filter = FilterDefinition::new(format!("f{index}"), path.as_str()).expect("a filter");
            template.submission_filters.push(filter.clone());
            template.activation_filters.insert(0, FilterDefinition { reverts_on_unknown: true, ..filter });
        }
        let written = template.write();
        let read = Template::read(written.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{written}"));
        prop_assert_eq!(read, (template, vec![]), "{}", written);
    }

    /// HPC-C-01
    #[test]
    fn any_words_are_a_command_or_wrong_usage(words in vec("[-/a-z:=*0-9]{0,12}", 0..6), text in any::<String>()) {
        for verb in Verb::ALL {
            for line in [words.clone(), vec![text.clone()], vec![format!("/jobname:{text}"), "/numcores:2".into()]] {
                if let Ok(command) = job(verb, &line) {
                    let mut description = JobDescription::default();
                    command.edits.iter().try_for_each(|edit| edit.apply(&mut description)).expect("a checked edit");
                }
            }
        }
    }

    /// HPC-F-66, HPC-C-08
    #[test]
    fn any_result_file_and_assignment_is_read_or_refused(bytes in vec(any::<u8>(), 0..100), text in any::<String>()) {
        let _ = ResultFile::read(&bytes);
        let _ = ResultFile::read(format!("hold-until={text}\nmessage={text}").as_bytes());
        let _ = Settings::default().with(&[&text, &format!("ReBalancingInterval={text}")]);
        let _ = Template::read(&bytes);
    }
}
