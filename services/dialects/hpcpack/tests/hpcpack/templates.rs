//! Templates: values, limits, access, filters and their XML.

use crate::support::{codes, job_with_tasks};
use muster_hpcpack::{
    codes::Code,
    description::{
        JobDescription,
        attributes::{Attribute, JobAttributes},
        values::UnitType,
    },
    priority::Priority,
    run_time::RunTime,
    size::Size,
    template::{AccessEntry, FilterDefinition, Limits, Mode, Template, Who, breaches, effective},
};

const GOLDEN: &str = include_str!("golden/template.xml");

fn template(items: &str) -> Template {
    let xml = format!("<JobTemplate Name='T'>{items}</JobTemplate>");
    let (template, warnings) = Template::read(xml.as_bytes()).unwrap_or_else(|error| panic!("{error}: {xml}"));
    assert_eq!(warnings, [], "{xml}");
    template
}

fn item(property: &str, rest: &str) -> String {
    format!("<TemplateItem PropertyName='{property}' {rest}/>")
}

fn default_template() -> Template {
    Template::new("Default")
}

/// The values and the breaches of a job under a template and `Default`.
fn checked(attributes: &str, template: &Template, default_template: &Template) -> (JobAttributes, Vec<String>) {
    let job = job_with_tasks(attributes, "<Task/><Task/><Task/>");
    let values = effective(&job.attributes, template, default_template);
    let size = Size::of(&values, &job.tasks).expect("a size");
    let breaches = breaches(&values, size, template, default_template);
    (values, breaches.iter().map(ToString::to_string).collect())
}

fn breaches_of(attributes: &str, template: &Template) -> Vec<String> {
    checked(attributes, template, &default_template()).1
}

/// HPC-T-02
#[test]
fn a_template_has_items_access_and_ordered_filters() {
    let (template, warnings) = Template::read(GOLDEN.as_bytes()).expect("a template");
    assert_eq!(warnings, []);
    assert_eq!(template.write(), GOLDEN);
    assert_eq!(template.properties().count(), 5);
    assert_eq!(template.defaults().run_time, Some(RunTime::Seconds(90)));
    assert_eq!(template.access.0[1], AccessEntry { is_allowed: false, who: Who::User("eve".into()) });
    let names: Vec<&str> = template.submission_filters.iter().map(|filter| filter.name.as_str()).collect();
    assert_eq!(names, ["run time", "budget"]);
    let budget = FilterDefinition {
        name: "budget".into(),
        path: "/opt/site/budget".into(),
        mode: Mode::Persistent,
        reverts_on_unknown: true,
    };
    assert_eq!(template.submission_filters[1], budget);
    assert_eq!(template.activation_filters, [FilterDefinition::new("licences", "/opt/site/licences").expect("good")]);
}

/// HPC-T-03
#[test]
fn the_users_value_counts_then_the_templates_then_defaults_then_the_built_in_one() {
    let own = template(&(item("Project", "Default='own'") + &item("IsExclusive", "Default='True'")));
    let mut default = default_template();
    default.set(Attribute::Project, Some("all"), Limits::default()).expect("an item");
    default.set(Attribute::Priority, Some("BelowNormal"), Limits::default()).expect("an item");
    let values = checked("IsExclusive='false'", &own, &default).0;
    assert_eq!(values.is_exclusive, Some(false), "the user's");
    assert_eq!(values.project.as_deref(), Some("own"), "the template's");
    assert_eq!(values.priority.map(Priority::value), Some(1000), "that of Default");
    assert_eq!((values.unit_type, values.preemptable), (Some(UnitType::Core), Some(true)), "built in");
    assert_eq!(values.run_time, None);
}

/// HPC-T-03
#[test]
fn a_size_is_the_users_then_the_templates_then_computed() {
    let size = |attributes: &str, template: &Template| {
        let job = job_with_tasks(attributes, "<Task/><Task/><Task/>");
        let values = effective(&job.attributes, template, &default_template());
        Size::of(&values, &job.tasks).map(|size| (size.unit, size.min, size.max)).expect("a size")
    };
    let nodes = template(&(item("UnitType", "Default='Node'") + &item("MaxNodes", "Default='9'")));
    assert_eq!(size("", &nodes), (UnitType::Node, 1, 9));
    assert_eq!(size("MinNodes='2' MaxNodes='4'", &nodes), (UnitType::Node, 2, 4));
    assert_eq!(size("UnitType='Core' MaxNodes='4'", &nodes), (UnitType::Core, 1, 3));
    assert_eq!(size("AutoCalculateMax='true'", &nodes), (UnitType::Node, 1, 3));
    let computing = template(&item("AutoCalculateMax", "Default='True'"));
    assert_eq!(size("MaxCores='7'", &computing), (UnitType::Core, 1, 7), "the user's bound is not computed");
}

/// HPC-T-04
#[test]
fn limits_are_bounds_sets_and_required_values() {
    let limited = template(
        &[
            item("ExpandedPriority", "MinVal='1000' MaxVal='2000'"),
            item("MaxCores", "MinVal='2' MaxVal='8'"),
            item("IsExclusive", "ValueRange='False'"),
            item("UnitType", "ValidValues='Core,Socket'"),
            item("NodeGroups", "ValueRange='a,b,c' RequiredValues='a,b'"),
            item("Project", "ValueRange='wing,tail'"),
        ]
        .concat(),
    );
    assert_eq!(breaches_of("MaxCores='8' Project='WING' NodeGroups='b,a' Priority='Normal'", &limited), [""; 0]);
    assert_eq!(
        breaches_of(
            "MaxCores='9' MinCores='1' Project='x' NodeGroups='a,z' Priority='Normal+1' IsExclusive='1'",
            &limited
        ),
        [
            "[TemplateValueInvalid] template 'T': Project = x, allowed wing, tail",
            "[TemplateValueTooLarge] template 'T': Priority = Normal+1, allowed at most Normal",
            "[TemplateValueTooLarge] template 'T': MaxCores = 9, allowed at most 8",
            "[TemplateValueInvalid] template 'T': IsExclusive = true, allowed False".replace("False", "false").as_str(),
            "[TemplateValueInvalid] template 'T': NodeGroups = z, allowed a, b, c",
            "[TemplateRequiredValueMissing] template 'T': NodeGroups = a,z, allowed only with b among its values",
        ]
    );
    let node = breaches_of("UnitType='Node' MaxNodes='1' MaxCores='99' Project='wing' NodeGroups='a,b'", &limited);
    assert_eq!(node, ["[TemplateValueInvalid] template 'T': UnitType = Node, allowed Core, Socket"], "no cores in it");
    assert_eq!(
        breaches_of("NodeGroups='a,b'", &limited),
        ["[TemplateValueInvalid] template 'T': Project = , allowed wing, tail"]
    );
}

/// HPC-T-04
#[test]
fn computed_sizes_are_checked_too() {
    let limited = template(&item("MaxCores", "MaxVal='2'"));
    assert_eq!(breaches_of("", &limited), ["[TemplateValueTooLarge] template 'T': MaxCores = 3, allowed at most 2"]);
}

/// HPC-T-04
#[test]
fn what_a_template_does_not_limit_default_does() {
    let mut default = default_template();
    default.set(Attribute::Priority, None, Limits { max: Some(2000), ..Limits::default() }).expect("an item");
    default.set(Attribute::MaxCores, None, Limits { max: Some(4), ..Limits::default() }).expect("an item");
    let own = template(&item("MaxCores", "MaxVal='64'"));
    let (_, breaches) = checked("MaxCores='32' Priority='Highest'", &own, &default);
    assert_eq!(breaches, ["[TemplateValueTooLarge] template 'Default': Priority = Highest, allowed at most Normal"]);
}

/// HPC-T-05
#[test]
fn all_breaches_are_told_with_their_codes() {
    let limited = template(
        &[
            item("MinCores", "MinVal='4'"),
            item("RunTime", "MaxVal='1:0'"),
            item("SingleNode", "ValueRange='true'"),
            item("RequestedNodes", "RequiredValues='n1'"),
        ]
        .concat(),
    );
    let job = job_with_tasks("MinCores='1' RunTime='1:1'", "<Task/>");
    let values = effective(&job.attributes, &limited, &default_template());
    let size = Size::of(&values, &job.tasks).expect("a size");
    let found: Vec<Code> =
        breaches(&values, size, &limited, &default_template()).iter().map(|breach| breach.code).collect();
    assert_eq!(
        found,
        [
            Code::TemplateValueTooLarge,
            Code::TemplateValueTooSmall,
            Code::TemplateValueInvalid,
            Code::TemplateRequiredValueMissing,
        ]
    );
}

/// HPC-T-06
#[test]
fn no_run_time_is_larger_than_any_maximum() {
    let limited = template(&item("RuntimeSeconds", "MaxVal='90'"));
    let expected =
        |value: &str| vec![format!("[TemplateValueTooLarge] template 'T': RunTime = {value}, allowed at most 90 s")];
    assert_eq!(breaches_of("", &limited), expected("none"));
    assert_eq!(breaches_of("RunTime='Infinite'", &limited), expected("Infinite"));
    assert_eq!(breaches_of("RuntimeSeconds='91'", &limited), expected("91 s"));
    assert_eq!(breaches_of("RuntimeSeconds='90'", &limited), [""; 0]);
    let with_default = template(&item("RuntimeSeconds", "Default='60' MaxVal='90'"));
    assert_eq!(breaches_of("", &with_default), [""; 0]);
    assert_eq!(breaches_of("RunTime='Infinite'", &with_default).len(), 1);
}

/// HPC-T-07
#[test]
fn the_values_checked_are_those_with_defaults() {
    let limited = template(
        &(item("IsExclusive", "Default='true' ValueRange='true'") + &item("Project", "Default='a' ValueRange='a'")),
    );
    assert_eq!(breaches_of("", &limited), [""; 0]);
    assert_eq!(breaches_of("IsExclusive='0'", &limited).len(), 1);
}

/// HPC-T-08
#[test]
fn who_may_not_submit_is_denied() {
    let check = |entries: &str, user: &str| {
        let template = template(&format!("<Access>{entries}</Access>"));
        template.check_access(user, &["staff".to_owned()]).map_err(|refusal| refusal.code)
    };
    assert_eq!(check("<Allow Group='staff'/>", "ann"), Ok(()));
    assert_eq!(check("<Allow User='ann'/>", "ann"), Ok(()));
    assert_eq!(check("<Allow Everyone='true'/><Deny User='ann'/>", "ann"), Err(Code::TemplateDenied));
    assert_eq!(check("<Allow User='bob'/>", "ann"), Err(Code::TemplateDenied));
    assert_eq!(check("", "ann"), Err(Code::TemplateDenied));
    assert_eq!(default_template().check_access("anybody", &[]), Ok(()));
}

/// HPC-T-11
#[test]
fn big_medium_and_small_jobs_are_templates_with_a_run_time() {
    for (name, limit, seconds) in [("BigJob", "1:0:0", 86_400), ("MediumJob", "1:0", 3600), ("SmallJob", "1", 60)] {
        let items = item("RunTime", &format!("Default='{limit}' MaxVal='{limit}'"));
        let limited = template(&items);
        assert_eq!(checked("", &limited, &default_template()).0.run_time, Some(RunTime::Seconds(seconds)), "{name}");
        assert_eq!(breaches_of(&format!("RuntimeSeconds='{seconds}'"), &limited), [""; 0]);
        assert_eq!(
            breaches_of(&format!("RuntimeSeconds='{}'", seconds + 60), &limited).len(),
            1,
            "{name}: longer than {limit}"
        );
    }
}

/// HPC-T-04
#[test]
fn items_that_make_no_sense_are_refused_with_their_place() {
    for (xml, code) in [
        (item("MaxCores", "MinVal='5' MaxVal='4'"), Code::TemplateNotValid),
        (item("MaxCores", "Default='9' MaxVal='4'"), Code::TemplateNotValid),
        (item("Project", "MaxVal='4'"), Code::TemplateNotValid),
        (item("IsExclusive", "RequiredValues='true'"), Code::TemplateNotValid),
        (item("IsExclusive", "ValueRange='maybe'"), Code::JobXmlNotValid),
        (item("JobTemplate", "Default='x'"), Code::TemplateNotValid),
        (item("MaxCores", "MaxVal='many'"), Code::TemplateXmlNotValid),
        (item("MaxCores", "Default='many'"), Code::JobXmlNotValid),
        (item("ExpandedPriority", "MaxVal='9999'"), Code::PriorityNotValid),
        (item("RuntimeSeconds", "Default='0'"), Code::RunTimeNotValid),
        (item("Name", "") + &item("NAME", ""), Code::TemplateXmlNotValid),
        (item("", ""), Code::TemplateXmlNotValid),
        ("<Access><Maybe User='x'/></Access>".into(), Code::TemplateXmlNotValid),
        ("<Access><Allow/></Access>".into(), Code::TemplateXmlNotValid),
        ("<SubmissionFilters><Filter Name='x' Path='rel'/></SubmissionFilters>".into(), Code::FilterNotValid),
        ("<SubmissionFilters><Filter Path='/x'/></SubmissionFilters>".into(), Code::FilterNotValid),
        ("<ActivationFilters><Filter Name='x' Path='/x' Mode='dll'/></ActivationFilters>".into(), Code::FilterNotValid),
    ] {
        let error = Template::read(format!("<JobTemplate Name='T'>{xml}</JobTemplate>").as_bytes()).expect_err(&xml);
        assert_eq!(error.code, code, "{xml}: {error}");
        assert!(error.place.is_some(), "{error}");
    }
    for xml in ["<Job/>", "<JobTemplate/>", "<JobTemplate Name='T'>", "", "<!DOCTYPE a><JobTemplate Name='T'/>"] {
        let error = Template::read(xml.as_bytes()).expect_err(xml);
        assert_eq!(error.code, Code::TemplateXmlNotValid, "{xml}: {error}");
    }
    let twice = "<SubmissionFilters><Filter Name='x' Path='/x'/><Filter Name='x' Path='/y'/></SubmissionFilters>";
    assert!(Template::read(format!("<JobTemplate Name='T'>{twice}</JobTemplate>").as_bytes()).is_err());
}

/// HPC-T-02
#[test]
fn templates_of_hpc_pack_are_read_and_what_they_have_more_is_warned_of() {
    let xml = r#"<?xml version="1.0" encoding="utf-8"?>
        <JobTemplate Name="Default" Description="The default" CreateTime="1/1/2012 8:00:00 AM">
          <TemplateItem PropertyName="MinCores" Default="1" MinVal="1" MaxVal="2147483647" />
          <TemplateItem PropertyName="IsExclusive" Default="False" ValueRange="" />
          <TemplateItem PropertyName="Priority" Default="Normal" ValueRange="Lowest,BelowNormal,Normal" />
          <TemplateItem PropertyName="NodeGroups" Default="" ValueRange="" RequiredValues="ComputeNodes" />
          <TemplateItem PropertyName="Pool" Default="Default" ValueRange="" RequiredValues="" />
        </JobTemplate>"#;
    let (template, warnings) = Template::read(xml.as_bytes()).expect("a template");
    assert_eq!(codes(&warnings), [Code::UnknownJobTerm]);
    assert!(warnings[0].text.contains("`Pool`"));
    assert_eq!(template.limits(Attribute::Priority).and_then(|limits| limits.max), Some(2000));
    assert_eq!(
        template.limits(Attribute::NodeGroups).map(|limits| limits.required.clone()),
        Some(vec!["ComputeNodes".into()])
    );
    let read_again = Template::read(template.write().as_bytes()).expect("a template");
    assert_eq!(read_again, (template, vec![]));
}

/// HPC-T-02
#[test]
fn an_item_can_be_taken_away() {
    let mut template = template(&(item("Project", "Default='a'") + &item("Name", "Default='b'")));
    template.remove(Attribute::Project);
    assert_eq!(template.properties().collect::<Vec<_>>(), [Attribute::Name]);
    assert_eq!(template.defaults().project, None);
    assert_eq!(
        effective(&JobDescription::default().attributes, &template, &default_template()).name.as_deref(),
        Some("b")
    );
}
