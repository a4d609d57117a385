//! Job XML and JSON: what is read, refused and written.

use crate::support::{codes, job, read, refusal};
use muster_hpcpack::{
    codes::Code,
    description::{
        Format, JobDescription, Place, SystemValues,
        values::{NodeGroupOp, SystemAttribute},
    },
    jobs::readable,
};

const GOLDEN_XML: &str = include_str!("golden/job.xml");
const GOLDEN_JSON: &str = include_str!("golden/job.json");

fn system() -> SystemValues {
    SystemValues::default()
        .with(SystemAttribute::Id, 17)
        .with(SystemAttribute::State, "ExternalValidation")
        .with(SystemAttribute::Owner, "ann")
}

/// HPC-J-40
#[test]
fn everything_that_can_be_said_of_a_job_is_written_so() {
    let description = read(include_str!("golden/everything.xml"));
    assert_eq!(description.write(&system()), GOLDEN_XML);
    assert_eq!(description.write_as(Format::Json, &system()), GOLDEN_JSON);
    assert_eq!(read(GOLDEN_XML), description);
    let json = JobDescription::read_as(Format::Json, GOLDEN_JSON.as_bytes()).expect("JSON");
    assert_eq!(json, (description, vec![]));
}

/// HPC-J-40
#[test]
fn elements_are_matched_by_local_name_in_any_namespace_and_order() {
    let term = "<Term><Name>a</Name><Value>1</Value></Term>";
    for xml in [
        format!("<Job><Tasks/><ExtendedTerms>{term}</ExtendedTerms><Dependencies/></Job>"),
        format!("<Job xmlns='urn:other'><ExtendedTerms xmlns=''>{term}</ExtendedTerms><Tasks/></Job>"),
        format!("<h:Job xmlns:h='urn:x'><ExtendedTerms>{term}</ExtendedTerms></h:Job>"),
    ] {
        assert_eq!(read(&xml).extended_terms.get("A"), Some("1"), "{xml}");
    }
}

/// HPC-J-41
#[test]
fn attribute_names_ignore_case_and_stand_once() {
    assert_eq!(job("NAME='x' isexclusive='1'").attributes.name.as_deref(), Some("x"));
    let error = refusal("<Job Name='x'\n  name='x'/>");
    assert_eq!((error.code, error.place), (Code::JobXmlNotValid, Some(Place { line: 2, column: 3 })));
    assert_eq!(refusal("<Job><Tasks><Task TYPE='Basic' Type='Basic'/></Tasks></Job>").code, Code::JobXmlNotValid);
    assert!(JobDescription::read_as(Format::Json, br#"{"Name": "x", "name": "x"}"#).is_err());
}

/// HPC-J-42
#[test]
fn booleans_and_enumerations_ignore_case_and_refuse_the_rest() {
    for (text, value) in [("true", true), ("True", true), ("FALSE", false), ("1", true), ("0", false)] {
        assert_eq!(job(&format!("IsExclusive='{text}'")).attributes.is_exclusive, Some(value), "{text}");
    }
    for text in ["2", "yes", "", "true "] {
        let error = refusal(&format!("<Job IsExclusive='{text}'/>"));
        assert_eq!(error.text, format!("IsExclusive=`{text}`: expected true, false, 1 or 0"));
        assert_eq!(error.code, Code::JobXmlNotValid);
    }
    assert_eq!(job("NodeGroupOp='uniFORM'").attributes.node_group_op, Some(NodeGroupOp::Uniform));
    let error = refusal("<Job UnitType='Rack'/>");
    assert_eq!(
        error.to_string(),
        "[JobXmlNotValid] line 1, column 6: UnitType=`Rack`: expected one of Core, Socket, Node"
    );
}

/// HPC-J-43
#[test]
fn terms_are_trimmed_and_keep_the_last_value() {
    let xml = "<Job><ExtendedTerms>
        <Term><Name> License </Name><Value>
            one
        </Value></Term>
        <Term><Name>LICENSE</Name><Value>two</Value></Term>
        <Term><Name>lost</Name></Term>
        <Term><Value>lost</Value></Term>
        <Term><Name>empty</Name><Value/></Term>
    </ExtendedTerms></Job>";
    let (description, warnings) = JobDescription::read(xml.as_bytes()).expect("job XML");
    assert_eq!(description.extended_terms.iter().collect::<Vec<_>>(), [("empty", ""), ("LICENSE", "two")]);
    assert_eq!(codes(&warnings), [Code::IncompleteTerm; 2]);
    assert!(warnings[0].text.contains("`lost`"), "{}", warnings[0]);
}

/// HPC-J-44
#[test]
fn variables_are_those_of_the_job_and_of_each_task() {
    let variable = |value: &str| format!("<Variable><Name>A</Name><Value>{value}</Value></Variable>");
    let (job, task) = (variable(" x "), variable("y"));
    let description = read(&format!(
        "<Job><EnvironmentVariables>{job}</EnvironmentVariables><Tasks><Task><EnvironmentVariables>{task}\
         </EnvironmentVariables></Task></Tasks></Job>"
    ));
    assert_eq!(description.environment["A"], " x ");
    assert_eq!(description.tasks[0].environment["A"], "y");
    let bad = "<Variable><Name>A=B</Name><Value>1</Value></Variable>";
    let error = refusal(&format!("<Job><EnvironmentVariables>{bad}</EnvironmentVariables></Job>"));
    assert!(error.text.contains("`A=B`"), "{error}");
}

/// HPC-J-45
#[test]
fn system_attributes_are_ignored_and_unknown_ones_warned_of() {
    let system = "Id='5' State='Running' Owner='root' UserName='root' ErrorCode='x' Progress='50' JobType='Batch'";
    assert_eq!(job(system), JobDescription::default());
    let xml =
        "<Job Colour='red' Version='3.000'><Wheels/><Tasks><Task Id='3' Sound='loud'><Door/></Task></Tasks></Job>";
    let (_, warnings) = JobDescription::read(xml.as_bytes()).expect("job XML");
    assert_eq!(codes(&warnings), [Code::UnknownJobTerm; 4]);
    let texts: String = warnings.iter().map(|warning| warning.text.as_str()).collect();
    assert!(["Colour", "Wheels", "Sound", "Door"].iter().all(|name| texts.contains(name)), "{texts}");
}

/// HPC-J-45: in any element.
#[test]
fn what_is_unknown_is_told_wherever_it_stands() {
    let pair = |inside: &str| format!("<Name>a</Name><Value>b</Value>{inside}");
    for (xml, told) in [
        ("<Job><Tasks Colour='red'/></Job>".to_owned(), "attribute `Colour` of Tasks"),
        ("<Job><Dependencies Colour='red'/></Job>".into(), "attribute `Colour` of Dependencies"),
        ("<Job><Dependencies><Parent groupid='1' Colour='red'/></Dependencies></Job>".into(), "`Colour` of Parent"),
        (
            "<Job><Dependencies><Parent GroupId='1'><Child GroupId='2' Colour=''/></Parent></Dependencies></Job>".into(),
            "attribute `Colour` of Child",
        ),
        ("<Job><CustomProperties Colour=''/></Job>".into(), "attribute `Colour` of CustomProperties"),
        (format!("<Job><ExtendedTerms><Term Colour=''>{}</Term></ExtendedTerms></Job>", pair("")), "`Colour` of Term"),
        (format!("<Job><ExtendedTerms><Term>{}</Term></ExtendedTerms></Job>", pair("<Door/>")), "`Door` in Term"),
        (
            "<Job><EnvironmentVariables><Variable><Name Colour=''>a</Name><Value/></Variable></EnvironmentVariables></Job>"
                .into(),
            "attribute `Colour` of Name",
        ),
    ] {
        let (_, warnings) = JobDescription::read(xml.as_bytes()).expect("job XML");
        assert_eq!(codes(&warnings), [Code::UnknownJobTerm], "{xml}");
        assert!(warnings[0].text.contains(told), "{}", warnings[0]);
    }
    let json = br#"{"Dependencies": [{"Parent": 1, "Child": 2, "Colour": 3}]}"#;
    let (_, warnings) = JobDescription::read_as(Format::Json, json).expect("JSON");
    assert_eq!(codes(&warnings), [Code::UnknownJobTerm]);
}

fn unknown(elements: u32) -> String {
    (0..elements).map(|number| format!("<a{number}/>")).collect()
}

/// HPC-J-45
#[test]
fn of_very_many_warnings_the_first_are_told() {
    let (_, warnings) = JobDescription::read(format!("<Job>{}</Job>", unknown(5000)).as_bytes()).expect("job XML");
    assert_eq!(warnings.len(), 101);
    assert!(warnings[100].text.starts_with("4900 more"), "{}", warnings[100]);
    let (_, warnings) =
        JobDescription::read(format!("<Job>{}</Job>", "<a/>".repeat(5000)).as_bytes()).expect("job XML");
    assert_eq!(codes(&warnings), [Code::UnknownJobTerm], "the same is told once");
}

fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(unit).collect()
}

/// HPC-J-47
#[test]
fn utf_8_and_utf_16_are_read_with_and_without_mark() {
    let xml = "<?xml version=\"1.0\"?><Job Name=\"Größe 𝛼\"/>";
    let marked = format!("\u{feff}{xml}");
    let wide = "<?xml version=\"1.0\" encoding=\"utf-16\"?><Job Name=\"Größe 𝛼\"/>";
    for bytes in [
        xml.as_bytes().to_vec(),
        marked.as_bytes().to_vec(),
        utf16(&marked, u16::to_le_bytes),
        utf16(&marked, u16::to_be_bytes),
        utf16(wide, u16::to_le_bytes),
        utf16(wide, u16::to_be_bytes),
    ] {
        let (description, _) = JobDescription::read(&bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"));
        assert_eq!(description.attributes.name.as_deref(), Some("Größe 𝛼"));
    }
    let json = "\u{feff}{\"Name\":\"Größe 𝛼\"}";
    for bytes in [
        json.as_bytes().to_vec(),
        utf16(json, u16::to_le_bytes),
        utf16(json, u16::to_be_bytes),
        utf16(&json[3..], u16::to_le_bytes),
    ] {
        let (format, description, _) = readable(&bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"));
        assert_eq!((format, description.attributes.name.as_deref()), (Format::Json, Some("Größe 𝛼")));
    }
}

/// HPC-J-47
#[test]
fn what_is_no_job_xml_is_refused_with_its_place() {
    let place = |line, column| Some(Place { line, column });
    for (xml, expected) in [
        ("<Job>\n  <Tasks>\n</Job>", place(3, 1)),
        ("<Other/>", place(1, 1)),
        ("<!DOCTYPE Job [<!ENTITY a \"b\">]>\n<Job Name='&a;'/>", place(1, 1)),
        ("\n<!DOCTYPE Job SYSTEM 'file:///etc/passwd'><Job/>", place(2, 1)),
        ("<Job Name='&unknown;'/>", place(1, 12)),
        ("<Job><Dependencies><Parent/></Dependencies></Job>", place(1, 20)),
        ("<Job Name='a\u{1}b'/>", place(1, 13)),
    ] {
        let error = refusal(xml);
        assert_eq!((error.code, error.place), (Code::JobXmlNotValid, expected), "{xml}: {error}");
    }
    for bytes in [&b""[..], b"\xff\xfe<", b"<Job Name='\xc3\x28'/>", b"\xff\xfe\x00\xd8\x3c\x00", b"<\0J"] {
        let error = JobDescription::read(bytes).expect_err("no job XML");
        assert_eq!(error.code, Code::JobXmlNotValid, "{bytes:?}");
        assert!(error.place.is_some(), "{bytes:?}: {error}");
    }
}

/// HPC-J-47
#[test]
fn what_is_too_large_or_made_to_do_harm_is_refused() {
    let large = format!("<Job><!--{}--></Job>", "x".repeat(16 << 20));
    assert_eq!(refusal(&large).text, "larger than 16 MiB");
    let crowded: String = (0..200_000).map(|number| format!(" a{number}='>'")).collect();
    assert!(refusal(&format!("<Job{crowded}/>")).text.contains("more than 1000 attributes"));
    let nested: String = (0..501).map(|number| format!("<a xmlns:p{number}='u{number}'>")).collect();
    let flat: String = (0..501).map(|number| format!("<a\n b='1' xmlns = 'u{number}'/>")).collect();
    let spaced: String = (0..501).map(|number| format!("<a  xmlns:p{number} ='u{number}'>")).collect();
    for many in [nested, flat, spaced] {
        assert!(refusal(&format!("<Job>{many}")).text.contains("more than 500 declarations of namespaces"));
    }
    let text = format!(
        "<Job><!-- {} --><Tasks><Task CommandLine=\"a{}\"/></Tasks></Job>",
        "<a = '".repeat(2000),
        "=".repeat(2000)
    );
    assert_eq!(read(&text).tasks.len(), 1);
    let deep = format!("<Job>{}{}</Job>", "<a>".repeat(200_000), "</a>".repeat(200_000));
    // A warning or a refusal, but no stack overflow.
    let _ = JobDescription::read(deep.as_bytes());
    let json = format!("{{\"Tasks\": {}", "[".repeat(200_000));
    assert!(JobDescription::read_as(Format::Json, json.as_bytes()).is_err());
}

/// HPC-J-27
#[test]
fn texts_over_their_limits_are_refused_and_never_cut() {
    for (name, most) in [("Name", 80), ("Project", 80), ("EmailAddress", 256)] {
        let exactly = "ä".repeat(most);
        assert!(JobDescription::read(format!("<Job {name}='{exactly}'/>").as_bytes()).is_ok(), "{name}");
        let error = refusal(&format!("<Job {name}='{exactly}x'/>"));
        assert_eq!(error.code, Code::ValueTooLong);
        assert_eq!(error.text, format!("{name} has {} characters, at most {most} are allowed", most + 1));
    }
    let licences = vec!["feature:1"; 17].join(",");
    assert_eq!(refusal(&format!("<Job SoftwareLicense='{licences}'/>")).code, Code::ValueTooLong);
    let term = |name: &str, value: &str| {
        format!("<Job><ExtendedTerms><Term><Name>{name}</Name><Value>{value}</Value></Term></ExtendedTerms></Job>")
    };
    let (name, value) = ("n".repeat(80), "v".repeat(128));
    assert_eq!(read(&term(&name, &value)).extended_terms.get(&name), Some(value.as_str()));
    assert_eq!(refusal(&term(&format!("{name}n"), &value)).code, Code::ValueTooLong);
    assert_eq!(refusal(&term(&name, &format!("{value}v"))).code, Code::ValueTooLong);
    assert_eq!(
        refusal(&format!("<Job><Tasks><Task Name='{}'/></Tasks></Job>", "x".repeat(81))).code,
        Code::ValueTooLong
    );
}

/// HPC-J-06, HPC-E-10: names appear in tables and messages.
#[test]
fn a_control_character_in_a_name_is_refused_with_a_code() {
    for (description, field) in [
        ("<Job Name='a&#10;b'/>", "Name"),
        ("<Job Project='a&#x9;b'/>", "Project"),
        ("<Job><Tasks><Task Name='a&#10;b'/></Tasks></Job>", "Name"),
    ] {
        let error = refusal(description);
        assert_eq!(error.code, Code::JobXmlNotValid);
        assert!(error.text.contains(&format!("{field} has the control character U+00")), "{}", error.text);
    }
}

/// HPC-J-42
#[test]
fn lists_numbers_and_times_are_read_or_refused() {
    let attributes = job(
        "SoftwareLicense='matlab:2, ansys:*' OrderBy='-memory,cores' JobValidExitCodes='0,10..19' ParentJobIds='3, 4' \
         RequestedNodes='n1, n2,,' HoldUntil='2026-11-20 08:30:00'",
    );
    let attributes = attributes.attributes;
    let get = |name| attributes.get(muster_hpcpack::description::attributes::Attribute::named(name).expect(name));
    for (name, text) in [
        ("SoftwareLicense", "matlab:2,ansys:*"),
        ("OrderBy", "-memory,cores"),
        ("JobValidExitCodes", "0,10..19"),
        ("ParentJobIds", "3,4"),
        ("RequestedNodes", "n1,n2"),
        ("HoldUntil", "2026-11-20T08:30:00.000000Z"),
    ] {
        assert_eq!(get(name).as_deref(), Some(text), "{name}");
    }
    for (left, right) in
        [("2026-11-20T09:30:00+01:00", "11/20/2026 08:30:00"), ("11/20/2026 8:30:00 AM", "2026-11-20T08:30:00")]
    {
        assert_eq!(job(&format!("HoldUntil='{left}'")), job(&format!("HoldUntil='{right}'")));
    }
    for wrong in [
        "SoftwareLicense='matlab'",
        "SoftwareLicense='matlab:0'",
        "SoftwareLicense=':1'",
        "OrderBy='disk'",
        "OrderBy='cores,-cores'",
        "OrderBy=''",
        "JobValidExitCodes='9..1'",
        "ParentJobIds='0'",
        "HoldUntil='soon'",
        "MinCores='many'",
        "MinMemory='-1'",
        "HoldUntil='99999-01-01T00:00:00Z'",
    ] {
        assert_eq!(refusal(&format!("<Job {wrong}/>")).code, Code::JobXmlNotValid, "{wrong}");
    }
}

/// HPC-J-48
#[test]
fn what_json_says_is_what_xml_says() {
    let json = br#"{"name": "x", "MinCores": 2, "isExclusive": true, "NodeGroups": ["a", "b"], "RunTime": null,
        "Priority": 2100, "Tasks": [{"CommandLine": "run \"it\"", "DependsOn": "a"}], "Colour": {"r": 1}}"#;
    let (description, warnings) = JobDescription::read_as(Format::Json, json).expect("JSON");
    let xml = "<Job Name='x' MinCores='2' IsExclusive='1' NodeGroups='a,b' Priority='2100'><Tasks>
        <Task CommandLine='run &quot;it&quot;' DependsOn='a'/></Tasks></Job>";
    assert_eq!(description, read(xml));
    assert_eq!(codes(&warnings), [Code::UnknownJobTerm]);
    for wrong in
        ["[]", "{", "{\"Tasks\": {}}", "{\"MinCores\": {}}", "{\"Dependencies\": [1]}", "{\"Name\": \"\\u0001\"}"]
    {
        let error = JobDescription::read_as(Format::Json, wrong.as_bytes()).expect_err(wrong);
        assert_eq!(error.code, Code::JobXmlNotValid, "{wrong}");
    }
}
