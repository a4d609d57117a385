//! The command language of `qmgr`.

use muster_pbs::qmgr::{
    Change, Command, Object, ObjectKind, ObjectName, Operation, Printed, Setting, Verb, list, parse, print, script,
};
use proptest::prelude::*;

fn command(text: &str) -> Command {
    parse(text).unwrap_or_else(|wrong| panic!("{text}: {wrong}")).unwrap_or_else(|| panic!("{text}: nothing"))
}

fn change(attribute: &str, resource: Option<&str>, operation: Operation, value: &str) -> Change {
    let resource = resource.map(str::to_owned);
    Change { attribute: attribute.to_owned(), resource, value: Some((operation, value.to_owned())) }
}

#[test]
fn commands_have_a_verb_an_object_names_and_attributes() {
    let read = command("set queue batch,long@pbs1 resources_max.walltime = 10:00:00, enabled=true");
    assert_eq!((read.verb, read.kind), (Verb::Set, Some(ObjectKind::Queue)));
    let name = |name: &str, server: Option<&str>| ObjectName {
        name: Some(name.to_owned()),
        server: server.map(str::to_owned),
    };
    assert_eq!(read.names, [name("batch", None), name("long", Some("pbs1"))]);
    let expected = [
        change("resources_max", Some("walltime"), Operation::Assign, "10:00:00"),
        change("enabled", None, Operation::Assign, "true"),
    ];
    assert_eq!(read.changes, expected);
    let read = command("s s managers += \"ann@*,bob@*\"");
    assert_eq!((read.verb, read.kind, read.names.len()), (Verb::Set, Some(ObjectKind::Server), 0));
    assert_eq!(read.changes, [change("managers", None, Operation::Add, "ann@*,bob@*")]);
    assert_eq!(command("set server operators-=bob").changes, [change("operators", None, Operation::Remove, "bob")]);
    let read = command("create node n1 np=4,properties='a,b'");
    assert_eq!(read.changes[1], change("properties", None, Operation::Assign, "a,b"));
    let read = command("unset server resources_max.mem, comment");
    assert_eq!(read.changes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["resources_max.mem", "comment"]);
    assert_eq!(command("print server").changes, []);
    assert_eq!(command("list queue @default").names, [ObjectName { name: None, server: Some("default".into()) }]);
    assert_eq!(command("active queue a,b").names.len(), 2);
    assert_eq!(command("active queue").names, []);
    assert_eq!(command("set queue enabled = true").names, [], "the active queues");
    assert_eq!(command("quit").kind, None);
    for blank in ["", "   ", "# create queue x"] {
        assert_eq!(parse(blank), Ok(None));
    }
}

#[test]
fn an_error_names_its_place_its_word_and_what_was_expected() {
    for (text, message) in [
        ("make queue a", "character 1: `make`: expected create, delete, set, unset, list, print, active, quit or help"),
        ("create quarry a", "character 8: `quarry`: expected server, queue, node, resource, sched or hook"),
        ("create", "character 7: the command ends here: expected server, queue, node, resource, sched or hook"),
        ("create queue", "character 13: the command ends here: expected the name of a queue"),
        ("create queue a,", "character 16: the command ends here: expected the name of a queue"),
        ("create queue a@b@c", "character 14: `a@b@c`: expected the name of a queue"),
        ("set server", "character 11: the command ends here: expected an attribute"),
        ("set server scheduling", "character 22: the command ends here: expected =, += or -="),
        (
            "set server scheduling = ",
            "character 25: the command ends here: expected a value; an empty one needs quotes",
        ),
        ("set server comment = a b", "character 24: `b`: expected a comma; values with blanks need quotes"),
        ("set server comment = \"a b", "character 22: `\"a`: the quote is not closed"),
        ("set queue a b", "character 14: the command ends here: expected =, += or -="),
        ("set server é=1", "character 12: `é=1`: expected an attribute"),
        ("unset server comment = a", "character 22: `=`: this command takes no values"),
        ("delete queue a b", "character 16: `b`: expected nothing more"),
        ("set server resources_max. = 1", "character 26: `=`: expected a resource"),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), message, "{text}");
    }
}

#[test]
fn a_script_has_commands_by_line() {
    let text =
        "# all\ncreate queue a; set queue a \\\n  enabled = true\n\nset server x ; y\nset server comment = 'a;b'\n";
    let all = script(text);
    let lines: Vec<usize> = all.iter().map(|written| written.line).collect();
    assert_eq!(lines, [2, 2, 5, 5, 6]);
    assert_eq!(all[1].command.as_ref().unwrap().to_string(), "set queue a enabled = true");
    assert_eq!(all[3].command.as_ref().unwrap_err().column, 16);
    assert_eq!(all[4].command.as_ref().unwrap().changes[0].value, Some((Operation::Assign, "a;b".into())));
}

fn setting(attribute: &str, resource: Option<&str>, values: &[&str]) -> Setting {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Setting { attribute: attribute.to_owned(), resource: resource.map(str::to_owned), values, printed: Printed::Set }
}

fn objects() -> Vec<Object> {
    let read_only = Setting { printed: Printed::Never, ..setting("state_count", None, &["Transit:0 Queued:0"]) };
    vec![
        Object {
            kind: ObjectKind::Server,
            name: "pbs1".into(),
            settings: vec![
                setting("scheduling", None, &["True"]),
                setting("default_queue", None, &["batch"]),
                setting("managers", None, &["ann@*", "bob@login.example.org"]),
                setting("comment", None, &["it's \"down\", soon"]),
                read_only,
            ],
        },
        Object {
            kind: ObjectKind::Queue,
            name: "batch".into(),
            settings: vec![
                setting("queue_type", None, &["Execution"]),
                setting("resources_max", Some("walltime"), &["10:00:00"]),
                setting("enabled", None, &["True"]),
            ],
        },
    ]
}

#[test]
fn what_is_printed_makes_the_same_objects() {
    let printed = print(&objects());
    let expected = "#\n# Create queues and set their attributes.\n#\n#\n# Create and define queue batch\n#\ncreate queue batch\n\
                    set queue batch queue_type = Execution\nset queue batch resources_max.walltime = 10:00:00\n\
                    set queue batch enabled = True\n#\n# Set server attributes.\n#\nset server scheduling = True\n\
                    set server default_queue = batch\nset server managers = ann@*\n\
                    set server managers += bob@login.example.org\n\
                    set server comment = it\\'s\\ \\\"down\\\"\\,\\ soon\n";
    assert_eq!(printed, expected);
    let changes: Vec<Change> =
        script(&printed).into_iter().flat_map(|written| written.command.unwrap().changes).collect();
    let last = changes.last().unwrap();
    assert_eq!(last.value, Some((Operation::Assign, "it's \"down\", soon".into())));
    assert_eq!(changes.len(), 8);
}

#[test]
fn what_is_listed_is_broken_at_commas() {
    let names: Vec<String> = (0..12).map(|number| format!("user{number}@host.example")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let object =
        Object { kind: ObjectKind::Queue, name: "q".into(), settings: vec![setting("acl_users", None, &names)] };
    let listed = list(&[object]);
    assert!(listed.starts_with("Queue q\n\tacl_users = user0@host.example,user1@host.example,"), "{listed}");
    assert!(listed.lines().all(|line| line.len() < 90) && listed.lines().count() > 4, "{listed}");
    assert!(listed.ends_with("\n\n"));
}

proptest! {
    #[test]
    fn no_text_makes_qmgr_panic(text in "(\\PC|\n){0,60}", likely in "(set|create|print| |s|queue|server|[a-z.,=+@;#'\"\\\\\n-]){0,24}") {
        for text in [&text, &likely] {
            let _ = script(text);
            if let Ok(Some(command)) = parse(text) {
                let printed = command.to_string();
                prop_assert_eq!(parse(&printed).unwrap_or_else(|wrong| panic!("{text:?} -> {printed:?}: {wrong}")), Some(command));
            }
        }
    }

    #[test]
    fn commands_are_read_as_they_are_printed(
        names in prop::collection::vec("[a-z][a-z0-9]{0,6}", 1..4),
        values in prop::collection::vec(("[a-z_]{1,8}", prop::option::of("[a-z]{1,5}"), "[ -~]{0,12}"), 1..4),
    ) {
        let names = names.into_iter().map(|name| ObjectName { name: Some(name), server: None }).collect();
        let of = |(attribute, resource, value): (String, Option<String>, String)| {
            Change { attribute, resource, value: Some((Operation::Add, value)) }
        };
        let changes = values.into_iter().map(of).collect();
        let command = Command { verb: Verb::Set, kind: Some(ObjectKind::Queue), names, changes };
        prop_assert_eq!(parse(&command.to_string()).unwrap(), Some(command));
    }
}
