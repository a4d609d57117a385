//! The values of `scheduler_policy`.

use muster_pbs_script::policy_word::ProgramWord;
use proptest::prelude::*;

fn tcl(body: &str, init: Option<&str>) -> ProgramWord {
    ProgramWord::Tcl { body: body.into(), init: init.map(Into::into) }
}

fn external(words: &[&str]) -> ProgramWord {
    ProgramWord::External { command: words.iter().map(|word| (*word).to_owned()).collect() }
}

/// PBS-X-01, PBS-X-14, PBS-X-21: the three kinds of programs.
#[test]
fn policies_name_programs() {
    for (text, word) in [
        ("basl:turns.basl", ProgramWord::Basl { file: "turns.basl".into() }),
        (" basl : /etc/a b.basl ", ProgramWord::Basl { file: "/etc/a b.basl".into() }),
        ("tcl:body", tcl("body", None)),
        ("tcl:body,init", tcl("body", Some("init"))),
        ("tcl:", tcl("sched_tcl", None)),
        ("tcl:,init", tcl("sched_tcl", Some("init"))),
        ("external:/opt/plan -v", external(&["/opt/plan", "-v"])),
        ("external:'a b' \"c \\\" d\" e\\ f ''", external(&["a b", "c \" d", "e f", ""])),
    ] {
        assert_eq!(ProgramWord::parse(text).as_ref(), Ok(&word), "{text}");
    }
    assert_eq!(tcl("a", Some("b")).to_string(), "tcl:a,b");
}

/// PBS-X-01: what is wrong, what was expected, and where.
#[test]
fn mistakes_in_policies_are_told() {
    for (text, message) in [
        ("fifo", "scheduler_policy: expected basl:FILE, tcl:BODY[,INIT] or external:COMMAND, found `fifo`"),
        ("perl:a", "scheduler_policy: expected basl:FILE, tcl:BODY[,INIT] or external:COMMAND, found `perl:a`"),
        ("basl:", "scheduler_policy: expected a file after `basl:`, found `basl:`"),
        ("tcl:a,b,c", "scheduler_policy: expected two files at most after `tcl:`, as tcl:BODY,INIT, found `tcl:a,b,c`"),
        ("tcl:a,", "scheduler_policy: expected two files at most after `tcl:`, as tcl:BODY,INIT, found `tcl:a,`"),
        ("external:  ", "scheduler_policy: expected a program after `external:`, found `external:  `"),
        ("external:''", "scheduler_policy: expected a program after `external:`, found `external:''`"),
        (
            "external:a 'b",
            "scheduler_policy: expected a closing quote, or a character after the backslash, in the command, found `external:a 'b`",
        ),
        ("external:a\nb", "scheduler_policy: expected one line of at most 4096 characters, found `external:a b`"),
    ] {
        assert_eq!(ProgramWord::parse(text).map_err(|bad| bad.to_string()), Err(message.into()));
    }
}

proptest! {
    #[test]
    fn any_policy_is_read_or_refused(text in ".{0,60}") {
        if let Err(bad) = ProgramWord::parse(&format!("external:{text}")) {
            prop_assert!(!bad.to_string().contains(char::is_control));
        }
        let _ = ProgramWord::parse(&text);
    }
}
