//! From descriptions to jobs and back: the filters' view, and the check after them.

use crate::support::job_with_tasks;
use muster_hpcpack::{
    changes,
    description::{Format, JobDescription, SystemValues, values},
    jobs::{self, describe, exported, pack, readable, unpack, validate},
};
use muster_schemas::{
    JobId, Timestamp,
    event::{Owner, Validated},
    filter::TemplateSpec,
    filter_order::DescribedJob,
    job::{Component, DependencyKind, JobSpec, JobState, Launch, Occasion, Program, Sink},
    resources::{Alternative, Count, Level, LevelCount, NodeFilter, Request, Sharing},
    tasks::{SizeUnit, TaskKind},
};
use proptest::prelude::*;
use std::{slice, sync::Arc};

pub const NOW: Timestamp = Timestamp(1_800_000_000_000_000);
pub const NO_GROUPS: &[String] = &[];

/// A job that was submitted with this description.
pub fn received(description: &JobDescription) -> DescribedJob {
    let bytes = description.write(&SystemValues::default());
    with_bytes(bytes.as_bytes(), Format::Xml)
}

pub fn with_bytes(bytes: &[u8], format: Format) -> DescribedJob {
    let (description, _) = JobDescription::read_as(format, bytes).unwrap();
    let mut spec = jobs::provisional(&description, format);
    spec.working_directory = "/home/ann".into();
    DescribedJob {
        template: jobs::template_of(&description),
        document: Some(pack(format, bytes)),
        is_as_received: true,
        ..without_description(spec)
    }
}

pub fn without_description(spec: JobSpec) -> DescribedJob {
    DescribedJob {
        id: JobId::job(7),
        owner: Owner { user: "ann".into(), uid: 1000, gid: 1000 },
        submitted: NOW,
        state: JobState::Held,
        is_entering: true,
        name: spec.name.clone(),
        priority: spec.components.first().and_then(|component| component.priority).unwrap_or(0),
        walltime_seconds: None,
        alternatives: spec
            .components
            .first()
            .map(|component| component.alternatives.clone())
            .unwrap_or_default()
            .into(),
        spec: Arc::new(spec),
        tasks: None,
        template: None,
        document: None,
        is_as_received: false,
        component: None,
        changed: Vec::new(),
    }
}

fn check(description: &JobDescription) -> Result<Validated, String> {
    validate(&received(description), NO_GROUPS, &[], None, NOW.plus_seconds(5))
}

pub fn checked(attributes: &str, tasks: &str) -> Validated {
    check(&job_with_tasks(attributes, tasks)).unwrap_or_else(|text| panic!("{text}"))
}

fn refused(attributes: &str, tasks: &str) -> String {
    check(&job_with_tasks(attributes, tasks)).map(|_| ()).expect_err("it is taken")
}

pub const TASK: &str = "<Task CommandLine='hostname'/>";

fn request(validated: &Validated) -> &Request {
    &validated.spec.components[0].alternatives[0].requests[0]
}

fn range(level: Level, min: u32, max: u32) -> LevelCount {
    LevelCount { level, count: Count::Range { min, max } }
}

fn template(text: &str) -> TemplateSpec {
    let text = format!("<JobTemplate Name='T'>{text}</JobTemplate>");
    TemplateSpec { name: "T".into(), revision: 3, text, ..TemplateSpec::default() }
}

fn text_of(described: &jobs::Described) -> String {
    String::from_utf8(described.bytes.clone()).unwrap()
}

/// HPC-F-14, HPC-F-20, HPC-T-01
#[test]
fn a_submission_filter_sees_what_was_specified_and_always_a_template() {
    let text = text_of(&describe(&received(&job_with_tasks("Priority='Normal+5' Name='n'", TASK))).unwrap());
    for shown in [
        "Id=\"7\"",
        "State=\"ExternalValidation\"",
        "Owner=\"ann\"",
        "UserName=\"ann\"",
        "JobTemplate=\"Default\"",
        "Priority=\"Normal\"",
        "ExpandedPriority=\"2005\"",
    ] {
        assert!(text.contains(shown), "{shown} in {text}");
    }
    for absent in ["RunTime", "MinCores", "IsExclusive"] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
}

/// HPC-F-38
#[test]
fn an_activation_filter_sees_effective_values_and_what_was_changed_since() {
    let mut job = received(&job_with_tasks("RunTime='5'", TASK));
    let validated = validate(&job, NO_GROUPS, &[], None, NOW).unwrap();
    job.document = validated.document;
    (job.is_entering, job.state, job.priority, job.walltime_seconds) = (false, JobState::Queued, 3100, Some(90));
    let text = text_of(&describe(&job).unwrap());
    for shown in [
        "State=\"Queued\"",
        "ExpandedPriority=\"3100\"",
        "RuntimeSeconds=\"90\"",
        "MinCores=\"1\"",
        "UnitType=\"Core\"",
        "IsExclusive=\"false\"",
    ] {
        assert!(text.contains(shown), "{shown} in {text}");
    }
    job.state = JobState::Running;
    assert!(text_of(&describe(&job).unwrap()).contains("State=\"Running\""));
}

/// HPC-J-13, HPC-J-16
#[test]
fn sizes_become_ranges_of_their_unit() {
    let cores = checked("MinCores='2' MaxCores='6'", "<Task CommandLine='a' MinCores='2' MaxCores='2'/>");
    assert_eq!(request(&cores).path, [range(Level::Core, 2, 6)]);
    assert_eq!(request(&cores).sharing, Sharing::Shared);
    let tasks = cores.tasks.unwrap();
    assert_eq!((tasks.unit, tasks.min, tasks.max, tasks.tasks[0].min), (SizeUnit::Core, 2, 6, 2));
    let sockets = checked("UnitType='Socket' MinSockets='1' MaxSockets='2'", TASK);
    assert_eq!(request(&sockets).path, [range(Level::Socket, 1, 2)]);
    let nodes = checked("UnitType='Node' MinNodes='2' MaxNodes='3'", TASK);
    assert_eq!(
        (&request(&nodes).path[..], request(&nodes).sharing),
        (&[range(Level::Node, 2, 3)][..], Sharing::WholeNodes)
    );
    let single = checked("MinCores='2' MaxCores='2' SingleNode='1' IsExclusive='1'", TASK);
    assert_eq!(request(&single).path, [range(Level::Node, 1, 1), range(Level::Core, 2, 2)]);
    assert_eq!(request(&single).sharing, Sharing::Exclusive);
    assert!(refused("MinCores='0'", TASK).starts_with("[SizeNotValid] "));
    assert!(refused("MinCores='3' MaxCores='2'", TASK).starts_with("[SizeNotValid] "));
    assert!(refused("RunUntilCanceled='1'", "").starts_with("[SizeNotValid] "));
}

/// HPC-J-14
#[test]
fn a_size_of_another_unit_is_warned_of() {
    let warnings = checked("MinNodes='4'", TASK).warnings;
    assert_eq!(warnings.iter().map(|warning| warning.code.as_str()).collect::<Vec<_>>(), ["UnusedSizeAttribute"]);
    assert!(warnings[0].text.contains("MinNodes"));
}

/// HPC-J-17, HPC-J-18
#[test]
fn node_groups_and_node_names_become_conditions() {
    let has = |name: &str| NodeFilter::Has(name.into());
    let both = checked("NodeGroups='A,B' RequestedNodes='n1,n2' ExcludedNodes='n3'", TASK);
    assert_eq!(request(&both).filter, Some(NodeFilter::All(vec![has("A"), has("B")])));
    assert_eq!(
        (&request(&both).nodes[..], &request(&both).excluded_nodes[..]),
        (&["n1".into(), "n2".into()][..], &["n3".into()][..])
    );
    let any = checked("NodeGroups='A,B' NodeGroupOp='union'", TASK);
    assert_eq!(request(&any).filter, Some(NodeFilter::Any(vec![has("A"), has("B")])));
    let one = checked("NodeGroups='A,B' NodeGroupOp='Uniform' MinMemory='4'", TASK);
    let alternatives = &one.spec.components[0].alternatives;
    assert_eq!(alternatives.len(), 2, "first only A, then only B");
    assert!(
        matches!(&alternatives[1].requests[0].filter, Some(NodeFilter::All(all)) if all.contains(&has("B")) && all.len() == 2)
    );
}

/// HPC-J-08, HPC-J-10, HPC-J-25, HPC-J-44
#[test]
fn the_other_properties_go_where_the_model_has_them() {
    let attributes = "Name='n' Project='p' RunTime='1:30' ParentJobIds='3,4' NotifyOnStart='1' EmailAddress='a@b.c' \
                      SoftwareLicense='cad:2,sim:*' MinCores='1' MaxCores='4' EstimatedProcessMemory='2'";
    let xml = format!(
        "<Job {attributes}><EnvironmentVariables><Variable><Name>V</Name><Value>1</Value></Variable>\
         </EnvironmentVariables><Tasks>{TASK}</Tasks></Job>"
    );
    let job = with_bytes(xml.as_bytes(), Format::Xml);
    let Validated { spec, revision, template, .. } = validate(&job, NO_GROUPS, &[], None, NOW).unwrap();
    assert_eq!((revision, template.as_deref()), (0, Some("Default")));
    let component = &spec.components[0];
    assert_eq!((spec.name.as_str(), component.account.as_deref(), component.priority), ("n", Some("p"), Some(2000)));
    assert_eq!(component.alternatives[0].walltime_seconds, Some(5400));
    let parents: Vec<_> = component.dependencies.all_of.iter().flatten().map(|one| (one.kind, one.job)).collect();
    assert_eq!(parents, [3, 4].map(|id| (DependencyKind::Succeeded, Some(JobId::job(id)))));
    assert_eq!(spec.notifications[0].on, [Occasion::Started]);
    assert_eq!(spec.notifications[0].sink, Sink::Mail("a@b.c".into()));
    assert_eq!(component.alternatives[0].licences, [("cad".into(), 2), ("sim".into(), 4)].into());
    assert_eq!(spec.environment, [("V".into(), "1".into())].into());
    assert_eq!(spec.working_directory, "/home/ann");
    let again = DescribedJob {
        spec: Arc::new(spec),
        ..with_bytes(b"<Job><Tasks><Task CommandLine='a'/></Tasks></Job>", Format::Xml)
    };
    let again = validate(&again, NO_GROUPS, &[], None, NOW).unwrap();
    assert_eq!(again.spec.environment, [].into(), "a variable that is not described any more is gone");
}

/// HPC-J-22, HPC-J-24
#[test]
fn tasks_are_run_by_a_shell_in_the_order_that_is_described() {
    let tasks = "<Task Name='prep' Type='NodePrep' CommandLine='prepare'/>\
                 <Task Name='s' Type='ParametricSweep' StartValue='2' EndValue='9' IncrementValue='3' CommandLine='do *' \
                  StdOutFilePath='out.*'/>\
                 <Task DependsOn='s' CommandLine='a; b' ValidExitCodes='0,3..5' RunTime='2' IsRerunnable='0'/>";
    let validated = checked("RunTime='5' JobValidExitCodes='7'", tasks);
    let list = validated.tasks.unwrap();
    assert_eq!(list.tasks.len(), 3);
    assert_eq!(list.tasks[0].kind, TaskKind::NodePrep);
    assert_eq!(list.tasks[1].kind, TaskKind::Sweep { start: 2, increment: 3, steps: 3 });
    assert_eq!(list.tasks[1].launch.stdout.as_deref(), Some("out.*"));
    assert_eq!((list.tasks[1].valid_exit_codes.as_slice(), list.tasks[1].rerunnable), (&[(7, 7)][..], true));
    let last = &list.tasks[2];
    assert_eq!((&last.after[..], last.run_time_seconds, last.rerunnable), (&[1][..], Some(120), false));
    assert_eq!(last.valid_exit_codes, [(0, 0), (3, 5)]);
    assert_eq!(last.launch.program, Program::Tasks { argv: ["/bin/sh", "-c", "a; b"].map(str::to_owned).into() });
    assert!(!validated.spec.requeue.on_node_lost, "a task may not run again");
}

/// HPC-J-23, HPC-J-24
#[test]
fn all_that_is_wrong_with_tasks_is_told_with_their_names() {
    let text = refused(
        "MaxCores='2' RunTime='1'",
        "<Task Name='big' CommandLine='a' MinCores='3' RunTime='2'/><Task Name='empty'/><Task DependsOn='x' CommandLine='b'/>",
    );
    for part in
        ["[TaskNotValid]", "`big`", "minimum of 3", "run time of 120 s", "`empty`: it has no CommandLine", "`x`"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    let mixed = refused("", "<Task Type='Service' CommandLine='a'/><Task Name='b' CommandLine='b'/>");
    assert!(mixed.starts_with("[TaskNotValid]") && mixed.contains("`b`"), "{mixed}");
    assert!(refused("", "").contains("nothing to run"));
    assert!(refused("", "<Task Type='NodePrep' CommandLine='a'/>").contains("nothing to run"));
}

/// HPC-T-03, HPC-T-05, HPC-T-06, HPC-T-07, HPC-T-08
#[test]
fn a_template_gives_defaults_and_limits_and_tells_every_breach() {
    let limits = "<TemplateItem PropertyName='RuntimeSeconds' MaxVal='60'/>\
                  <TemplateItem PropertyName='MaxCores' MaxVal='4'/><TemplateItem PropertyName='IsExclusive' Default='true'/>";
    let template = Arc::new(template(limits));
    let job = received(&job_with_tasks("JobTemplate='t' MaxCores='8'", TASK));
    let text = validate(&job, NO_GROUPS, slice::from_ref(&template), None, NOW).expect_err("two breaches");
    assert!(text.contains("[TemplateValueTooLarge] template 'T': RunTime = none, allowed at most 1"), "{text}");
    assert!(text.contains("[TemplateValueTooLarge] template 'T': MaxCores = 8, allowed at most 4"), "{text}");
    let job = received(&job_with_tasks("JobTemplate='t' RunTime='1'", TASK));
    let validated = validate(&job, NO_GROUPS, slice::from_ref(&template), None, NOW).unwrap();
    assert_eq!((validated.revision, validated.template.as_deref()), (3, Some("T")));
    assert_eq!(request(&validated).sharing, Sharing::Exclusive);
    let missing = validate(&job, NO_GROUPS, &[], None, NOW).expect_err("no such template");
    assert_eq!(missing, "[TemplateNotFound] there is no template 't'");
}

/// HPC-T-08
#[test]
fn a_template_can_be_for_groups_and_against_users() {
    let for_staff = Arc::new(template("<Access><Allow Group='staff'/><Deny User='bob'/></Access>"));
    let mut job = received(&job_with_tasks("JobTemplate='T'", TASK));
    let denied = validate(&job, NO_GROUPS, slice::from_ref(&for_staff), None, NOW).expect_err("not of the group");
    assert!(denied.starts_with("[TemplateDenied] "), "{denied}");
    validate(&job, &["staff".into()], slice::from_ref(&for_staff), None, NOW).unwrap();
    job.owner.user = "bob".into();
    validate(&job, &["staff".into()], slice::from_ref(&for_staff), None, NOW).expect_err("denied");
}

/// HPC-H-07
#[test]
fn a_described_hold_keeps_its_bounds() {
    let with_hold = |time: Timestamp| check(&job_with_tasks(&format!("HoldUntil='{time}'"), TASK));
    assert_eq!(with_hold(NOW.plus_seconds(60)).unwrap().hold_until, Some(NOW.plus_seconds(60)));
    assert_eq!(with_hold(NOW.plus_seconds(2)).unwrap().hold_until, None, "over before the check came");
    assert!(with_hold(NOW.plus_seconds(-1)).expect_err("past").starts_with("[HoldUntilNotValid] "));
    assert!(with_hold(NOW.plus_seconds(370 * 86_400)).expect_err("far").starts_with("[HoldUntilTooLong] "));
}

/// HPC-J-48
#[test]
fn what_is_exported_can_be_submitted_again() {
    let tasks = "<Task Name='a' CommandLine='x' MinCores='2' MaxCores='2'/><Task CommandLine='y' DependsOn='a'/>";
    let mut job = received(&job_with_tasks("Name='n' Priority='Highest-1' RunTime='0:90' NodeGroups='A'", tasks));
    let first = validate(&job, NO_GROUPS, &[], None, NOW).unwrap();
    (job.document, job.is_entering, job.state) = (first.document.clone(), false, JobState::Queued);
    (job.priority, job.walltime_seconds) = (3999, Some(5400));
    for format in [Format::Xml, Format::Json] {
        let text = exported(&job, values::JobState::Canceled, format, NOW).unwrap();
        assert!(text.contains("Canceled") && !text.contains("\"Queued\""), "{text}");
        let again = validate(&with_bytes(text.as_bytes(), format), NO_GROUPS, &[], None, NOW).unwrap();
        assert_eq!((&again.spec.components, &again.tasks), (&first.spec.components, &first.tasks));
        assert_eq!((&again.spec.name, &again.spec.environment), (&first.spec.name, &first.spec.environment));
        let read = |document: &Option<_>| {
            let (format, bytes) = unpack(Option::as_ref(document).unwrap()).unwrap();
            JobDescription::read_as(format, &bytes).unwrap().0
        };
        assert_eq!(read(&again.document), read(&first.document));
    }
}

fn native() -> DescribedJob {
    let request = Request { tasks: Some(4), cpus_per_task: 2, ..Request::default() };
    let alternative = Alternative { requests: vec![request], walltime_seconds: Some(600), ..Alternative::default() };
    let launch = Launch { program: Program::Tasks { argv: vec!["echo".into(), "a b".into()] }, ..Launch::default() };
    let component = Component {
        account: Some("physics".into()),
        priority: Some(17),
        launch,
        alternatives: vec![alternative],
        ..Component::default()
    };
    let spec = JobSpec {
        name: "x".repeat(100),
        environment: [("HOME".into(), "/h".into())].into(),
        components: vec![component],
        ..JobSpec::default()
    };
    DescribedJob { walltime_seconds: Some(600), ..without_description(spec) }
}

/// HPC-F-02
#[test]
fn a_job_of_another_dialect_is_described_for_filters() {
    let text = text_of(&describe(&native()).unwrap());
    let (read, warnings) = JobDescription::read(text.as_bytes()).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(read.attributes.name.as_deref(), Some(&*"x".repeat(80)));
    assert_eq!((read.attributes.min_cores, read.attributes.project.as_deref()), (Some(8), Some("physics")));
    assert_eq!(read.attributes.run_time.and_then(|time| time.seconds()), Some(600));
    assert_eq!(read.tasks[0].attributes.command_line.as_deref(), Some("echo 'a b'"));
}

/// HPC-F-13
#[test]
fn changes_of_a_job_of_another_dialect_are_taken_and_the_rest_stays() {
    let mut job = native();
    let input = describe(&job).unwrap();
    let output = text_of(&input)
        .replace("Priority=\"Lowest\"", "Priority=\"Highest\"")
        .replace("RuntimeSeconds=\"600\"", "RuntimeSeconds=\"60\"")
        .replace("MinCores=\"8\"", "MinCores=\"6\" OrderBy=\"cores\"")
        .replace("IsExclusive=\"false\"", "IsExclusive=\"true\"");
    let taken = changes::judge(input.format, &input.bytes, output.as_bytes()).unwrap();
    let written = taken.description.write(&SystemValues::default());
    job.document = Some(pack(Format::Xml, written.as_bytes()));
    let validated = validate(&job, NO_GROUPS, &[], None, NOW).unwrap();
    let component = &validated.spec.components[0];
    assert_eq!(component.priority, Some(4000));
    assert_eq!(component.alternatives[0].walltime_seconds, Some(60));
    assert_eq!((request(&validated).sharing, request(&validated).tasks), (Sharing::Exclusive, Some(3)));
    assert_eq!((validated.spec.name.len(), component.account.as_deref()), (100, Some("physics")));
    assert_eq!(component.launch, job.spec.components[0].launch);
    assert_eq!(validated.warnings.len(), 1, "{:?}", validated.warnings);
    assert!(validated.warnings[0].text.starts_with("OrderBy"));
}

/// SL-S-21: a filter that judges one component sees it as if it were the job, and its changes apply to that component
/// alone; whatever belongs to the job as a whole is taken from its first component.
#[test]
fn changes_of_single_components_are_taken_into_each() {
    let mut job = native();
    let mut spec = (*job.spec).clone();
    let mut second = spec.components[0].clone();
    second.alternatives[0].requests[0].tasks = Some(1);
    spec.components.push(second);
    job.spec = Arc::new(spec);
    let changed = |offset: u32, from: &str, to: &str| {
        let part = job.of_component(offset).unwrap();
        let input = describe(&part).unwrap();
        let output = text_of(&input).replace(from, to).replace("Name=\"xx", "Name=\"yx");
        assert_ne!(output, text_of(&input));
        let taken = changes::judge(input.format, &input.bytes, output.as_bytes()).unwrap();
        (offset, pack(Format::Xml, taken.description.write(&SystemValues::default()).as_bytes()))
    };
    let second = changed(1, "Cores=\"2\"", "Cores=\"4\"");
    let validated = |changed| {
        let job = DescribedJob { changed, ..job.clone() };
        validate(&job, NO_GROUPS, &[], None, NOW).unwrap().spec
    };
    let tasks = |spec: &JobSpec| -> Vec<Option<u32>> {
        spec.components.iter().map(|component| component.alternatives[0].requests[0].tasks).collect()
    };
    let only_second = validated(vec![second.clone()]);
    assert_eq!((tasks(&only_second), &only_second.name), (vec![Some(4), Some(2)], &job.spec.name));
    let both = validated(vec![changed(0, "Cores=\"8\"", "Cores=\"6\""), second]);
    assert_eq!((tasks(&both), both.name.starts_with("yx")), (vec![Some(3), Some(2)], true));
}

/// HPC-J-46, HPC-J-47
#[test]
fn documents_are_kept_byte_for_byte_and_bad_ones_are_told_with_their_place() {
    let large = format!("<Job Name='n'><Tasks>{}</Tasks></Job>", TASK.repeat(1000));
    for bytes in [&b"<Job/>"[..], large.as_bytes()] {
        let stored = pack(Format::Xml, bytes);
        assert_eq!(unpack(&stored).unwrap(), (Format::Xml, bytes.to_vec()));
        assert_eq!(stored.is_compressed, bytes.len() > 4096);
    }
    let error = readable(b"<Job>\n <Tasks>\n</Job>").expect_err("not well-formed");
    let place = error.place.expect("a place");
    assert_eq!((place.line, error.to_string().contains("line 3")), (3, true), "{error}");
    assert!(readable(&vec![b' '; (16 << 20) + 1]).expect_err("large").to_string().contains("16 MiB"));
}

proptest! {
    #[test]
    fn no_document_makes_it_panic(bytes: Vec<u8>, is_compressed: bool) {
        let document = muster_schemas::filter::JobDocument { format: "xml".into(), is_compressed, bytes: bytes.into() };
        let job = DescribedJob { document: Some(document), ..without_description(JobSpec::default()) };
        let _ = describe(&job);
        let _ = validate(&job, NO_GROUPS, &[], None, NOW);
    }

    #[test]
    fn whatever_a_native_job_is_its_description_can_be_read(name in "\\PC{0,100}", account in "\\PC{1,90}", tasks in 1u32..100_000, priority: i64) {
        let mut job = native();
        let mut spec = (*job.spec).clone();
        spec.name.clone_from(&name);
        spec.components[0].account = Some(account);
        spec.components[0].alternatives[0].requests[0].tasks = Some(tasks);
        (job.name, job.priority, job.spec) = (name, priority, Arc::new(spec));
        let described = describe(&job).unwrap();
        let taken = changes::judge(described.format, &described.bytes, &described.bytes).unwrap();
        prop_assert!(taken.differences.is_empty());
        job.document = Some(pack(Format::Xml, taken.description.write(&SystemValues::default()).as_bytes()));
        let validated = validate(&job, NO_GROUPS, &[], None, NOW).unwrap();
        prop_assert_eq!(validated.spec, (*job.spec).clone());
    }
}
