//! The changes that are accepted from a filter's file.

use crate::support::{codes, read};
use muster_hpcpack::{
    changes::{BadOutput, Difference, Taken, judge, unannounced},
    codes::Code,
    description::{Format, JobDescription, SystemValues, values::SystemAttribute},
    priority::Priority,
    run_time::RunTime,
};

fn system() -> SystemValues {
    SystemValues::default()
        .with(SystemAttribute::Id, 12)
        .with(SystemAttribute::State, "ExternalValidation")
        .with(SystemAttribute::Owner, "ann")
        .with(SystemAttribute::UserName, "ann")
}

const JOB: &str = "<Job Priority='Normal' Name='x' RuntimeSeconds='90' MinCores='2' NodeGroups='a'>
    <ExtendedTerms><Term><Name>Mesh</Name><Value>fine</Value></Term></ExtendedTerms>
    <Tasks><Task Name='one' CommandLine='a'/><Task Name='two' CommandLine='b'/></Tasks></Job>";

fn input() -> String {
    read(JOB).write(&system())
}

/// The accepted changes after the filter has replaced texts in its file, each of which must be there.
fn edited(edits: &[(&str, &str)]) -> Result<Taken, BadOutput> {
    let mut output = input();
    for (old, new) in edits {
        assert!(output.contains(old), "`{old}` is not in {output}");
        output = output.replace(old, new);
    }
    judge(Format::Xml, input().as_bytes(), output.as_bytes())
}

fn taken(edits: &[(&str, &str)]) -> Taken {
    edited(edits).unwrap_or_else(|bad| panic!("{bad}"))
}

fn difference(attribute: &str, old: Option<&str>, new: Option<&str>) -> Difference {
    Difference { attribute: attribute.into(), old: old.map(str::to_owned), new: new.map(str::to_owned) }
}

/// HPC-F-11
#[test]
fn an_edit_that_the_filter_did_not_announce_is_warned_of() {
    assert_eq!(unannounced(b"<Job/>", b"<Job/>"), None);
    let warning = unannounced(b"<Job/>", b"<Job />").expect("a warning");
    assert_eq!(warning.code, Code::FilterFileChangesIgnored);
}

/// HPC-F-12
#[test]
fn no_difference_is_no_change_and_no_warning() {
    let same = Taken { description: read(JOB), differences: vec![], warnings: vec![] };
    assert_eq!(taken(&[]), same);
    assert_eq!(taken(&[("Priority=\"Normal\"", "PRIORITY='normal'"), ("\n", "\n\n"), ("fine", " fine ")]), same);
}

/// HPC-F-13
#[test]
fn job_level_properties_are_set_changed_and_removed() {
    let result = taken(&[
        ("Name=\"x\"", "Name='y' JobTemplate='BigJob' IsExclusive='1'"),
        (" NodeGroups=\"a\"", ""),
        ("<Name>Mesh</Name>\n      <Value>fine</Value>", "<Name>Size</Name><Value>3</Value>"),
        (
            "<Dependencies />",
            "<EnvironmentVariables><Variable><Name>A</Name><Value>1</Value></Variable></EnvironmentVariables>",
        ),
    ]);
    assert_eq!(
        result.differences,
        [
            difference("Name", Some("x"), Some("y")),
            difference("JobTemplate", None, Some("BigJob")),
            difference("IsExclusive", None, Some("true")),
            difference("NodeGroups", Some("a"), None),
            difference("ExtendedTerms/Mesh", Some("fine"), None),
            difference("ExtendedTerms/Size", None, Some("3")),
            difference("EnvironmentVariables/A", None, Some("1")),
        ]
    );
    assert_eq!(result.description.attributes.node_groups, None);
    assert_eq!(result.description.environment["A"], "1");
    assert_eq!(result.warnings, []);
}

fn priority(edits: &[(&str, &str)]) -> Result<Option<Priority>, BadOutput> {
    edited(edits).map(|taken| taken.description.attributes.priority)
}

/// HPC-F-14
#[test]
fn the_priority_that_the_filter_changed_counts() {
    let (by_name, by_value) = (" Priority=\"Normal\"", " ExpandedPriority=\"2000\"");
    assert_eq!(priority(&[(by_name, " Priority='BelowNormal'")]), Ok(Priority::new(1000)));
    assert_eq!(priority(&[(by_value, " ExpandedPriority='1500'")]), Ok(Priority::new(1500)));
    let both = |value: &'static str| priority(&[(by_name, " Priority='BelowNormal'"), (by_value, value)]);
    assert_eq!(both(" ExpandedPriority='1500'"), Ok(Priority::new(1500)));
    assert!(
        matches!(both(" ExpandedPriority='3000'"), Err(BadOutput::NotValid(error)) if error.code == Code::PriorityConflict)
    );
    assert_eq!(both(""), Ok(Priority::new(1000)), "one is set and the other taken away");
    assert_eq!(priority(&[(by_name, "")]), Ok(None), "removed");
    assert_eq!(priority(&[(by_name, ""), (by_value, "")]), Ok(None), "removed");
}

/// HPC-F-14
#[test]
fn the_run_time_that_the_filter_changed_counts() {
    let run_time = |edits: &[(&str, &str)]| edited(edits).map(|taken| taken.description.attributes.run_time);
    let (minutes, seconds) = (" RunTime=\"2\"", " RuntimeSeconds=\"90\"");
    assert_eq!(run_time(&[(minutes, " RunTime='1:0'")]), Ok(Some(RunTime::Seconds(3600))));
    assert_eq!(run_time(&[(minutes, " RunTime='Infinite'")]), Ok(Some(RunTime::Infinite)));
    assert_eq!(run_time(&[(seconds, " RuntimeSeconds='45'")]), Ok(Some(RunTime::Seconds(45))));
    assert_eq!(
        run_time(&[(minutes, " RunTime='3'"), (seconds, " RuntimeSeconds='170'")]),
        Ok(Some(RunTime::Seconds(170)))
    );
    assert!(run_time(&[(minutes, " RunTime='9'"), (seconds, " RuntimeSeconds='170'")]).is_err());
    assert_eq!(
        taken(&[(seconds, " RuntimeSeconds='60'")]).differences,
        [difference("RunTime", Some("90 s"), Some("1"))]
    );
}

/// HPC-F-14
#[test]
fn old_names_of_sizes_count_when_the_filter_sets_them() {
    let taken = taken(&[(" Name=", " MinimumNumberOfProcessors='4' MaximumNumberOfProcessors='8' Name=")]);
    let attributes = taken.description.attributes;
    assert_eq!((attributes.min_cores, attributes.max_cores), (Some(4), Some(8)));
    assert_eq!(taken.differences.len(), 3, "{:?}", taken.differences);
}

/// HPC-F-15
#[test]
fn changes_of_tasks_are_never_taken() {
    for (edits, left_out) in [
        (&[("CommandLine=\"b\"", "CommandLine='c' MinCores='9'")][..], "task 2: CommandLine, MinCores"),
        (&[("</Tasks>", "<Task/></Tasks>")], "1 task added"),
        (&[("<Task Version=\"3.000\" Name=\"two\" CommandLine=\"b\" />", "")], "1 task removed"),
        (
            &[
                ("\"one\"", "\"1\""),
                ("\"two\"", "\"one\""),
                ("\"1\"", "\"two\""),
                ("=\"a\" />", "=\"A\" />"),
                ("=\"b\"", "=\"a\""),
                ("=\"A\"", "=\"b\""),
            ],
            "the tasks are in another order",
        ),
        (
            &[("<Dependencies />", "<Dependencies><Parent GroupId='1'><Child GroupId='2'/></Parent></Dependencies>")],
            "Dependencies",
        ),
    ] {
        let mut edits = edits.to_vec();
        edits.push((" Name=\"x\"", " Name=\"y\""));
        let taken = taken(&edits);
        assert_eq!(taken.description.tasks, read(JOB).tasks);
        assert_eq!(taken.description.dependencies, []);
        assert_eq!(taken.differences, [difference("Name", Some("x"), Some("y"))], "{left_out}");
        let warnings: Vec<String> = taken.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings, [format!("[TaskChangesIgnored] changes of tasks were not taken: {left_out}")]);
    }
}

/// HPC-F-16
#[test]
fn changes_of_system_attributes_are_not_taken() {
    let result =
        taken(&[("Id=\"12\"", "Id='1'"), ("UserName=\"ann\"", "Progress='5'"), (" Name=\"x\"", " Name=\"y\"")]);
    assert_eq!(result.differences, [difference("Name", Some("x"), Some("y"))]);
    let warnings: Vec<String> = result.warnings.iter().map(ToString::to_string).collect();
    let expected = "[ReadOnlyChangesIgnored] changes of read-only properties were not taken: Id, UserName, Progress";
    assert_eq!(warnings, [expected]);
    assert_eq!(codes(&taken(&[(" Priority=", " Colour='red' Priority=")]).warnings), [Code::UnknownJobTerm]);
}

/// HPC-F-17
#[test]
fn output_that_cannot_be_read_is_refused_with_the_reason() {
    assert_eq!(judge(Format::Xml, input().as_bytes(), b""), Err(BadOutput::Empty));
    for (edits, code) in [
        (&[("Priority=\"Normal\"", "Priority='High'")][..], Code::PriorityNotValid),
        (&[("RunTime=\"2\"", "RunTime='0'")], Code::RunTimeNotValid),
        (&[(" Name=\"x\"", " Name='x' name='x'")], Code::JobXmlNotValid),
        (&[(" Name=\"x\"", " IsExclusive='2'")], Code::JobXmlNotValid),
        (&[("</Job>", "")], Code::JobXmlNotValid),
        (&[("<Job", "<!DOCTYPE Job><Job")], Code::JobXmlNotValid),
        (&[("MinCores=\"2\"", "MinCores='two'")], Code::JobXmlNotValid),
    ] {
        match edited(edits) {
            Err(BadOutput::NotValid(error)) => assert_eq!(error.code, code, "{edits:?}"),
            other => panic!("{edits:?}: {other:?}"),
        }
    }
}

/// HPC-F-20
#[test]
fn what_was_not_specified_is_absent_in_what_the_filter_sees() {
    let seen = read("<Job Name='x'/>").write(&system());
    assert!(seen.contains(" State=\"ExternalValidation\""), "{seen}");
    let unseen = ["RunTime", "RuntimeSeconds", "Priority", "MinCores", "UnitType", "JobTemplate", "AutoCalculate"];
    assert!(unseen.iter().all(|name| !seen.contains(name)), "{seen}");
}

/// HPC-F-13
#[test]
fn a_filter_may_answer_in_json() {
    let description = read(JOB);
    let input = description.write_as(Format::Json, &system());
    assert_eq!(judge(Format::Json, input.as_bytes(), input.as_bytes()).map(|taken| taken.differences), Ok(vec![]));
    let output = input.replace("\"Priority\": \"Normal\"", "\"Priority\": \"BelowNormal\"");
    let taken = judge(Format::Json, input.as_bytes(), output.as_bytes()).expect("taken");
    assert_eq!(taken.description.attributes.priority, Priority::new(1000));
    let expected = JobDescription { attributes: taken.description.attributes.clone(), ..description };
    assert_eq!(taken.description, expected);
}
