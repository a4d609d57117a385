//! No text makes the checker panic, and no checked program makes the interpreter panic.

use super::support::{Server, clock, in_queue, job, node, queue};
use muster_basl::{Amount, Job, Limits, Machine, Program, Snapshot, config::Config};
use proptest::prelude::*;

/// Words of the language, so that random texts come far.
const WORDS: [&str; 96] = [
    "sched_main",
    "(",
    ")",
    "{",
    "}",
    ";",
    ":",
    "|",
    ",",
    "@",
    "=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "++",
    "--",
    "Int",
    "Float",
    "String",
    "Size",
    "Job",
    "Que",
    "Server",
    "CNode",
    "Set",
    "Range",
    "Fun",
    "Void",
    "Dayofweek",
    "DateTime",
    "if",
    "else",
    "while",
    "for",
    "foreach",
    "in",
    "switch",
    "case",
    "default",
    "break",
    "continue",
    "return",
    "exit",
    "print",
    "EQ",
    "NEQ",
    "LT",
    "GE",
    "AND",
    "OR",
    "a",
    "b",
    "f",
    "js",
    "q",
    "1",
    "0",
    "2.5",
    "10kb",
    "\"x\"",
    "NULLSTR",
    "NOJOB",
    "EMPTYSETJOB",
    "QUEUED",
    "SYNCRUN",
    "MON",
    "ASC",
    "OP_EQ",
    "OP_MAX",
    "JobAction",
    "Sort",
    "QueFilter",
    "QueJobFind",
    "JobStateGet",
    "JobIdGet",
    "ServerJobsGet",
    "AllServersLocalHostGet",
    "JobSizeResReqGet",
    "datetimeGet",
    "\n",
    "//",
    "(1, 2)",
    "(12:00:00)",
    "(1|1|1998)",
    "sched_main() {",
    "Int a;",
    "a = 1;",
    "f(",
    "Int f(Job a) {",
    "return(a);",
    "é",
    "\"",
    "?",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec(prop::sample::select(&WORDS[..]), 0..120).prop_map(|words| words.join(" ")),
        ".{0,300}",
        prop::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    ]
}

/// The variables of random programs by type: two of each.
const VARIABLES: &str = "Int i1; Int i2; Float f1; Float f2; String s1; String s2; Size z1; Size z2; DateTime t1; DateTime t2;
    Job j1; Job j2; Que q1; Que q2; CNode n1; CNode n2; Server v1; Server v2; Set Job js1; Set Job js2; Set Que qs1; Set Que qs2;
    Range Int ri1; Range Int ri2; Range DateTime rt1; Range DateTime rt2; Dayofweek d1; Dayofweek d2;";

fn either(name: &'static str) -> impl Strategy<Value = String> {
    (1..=2).prop_map(move |number| format!("{name}{number}"))
}

fn int() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        either("i"),
        any::<i64>().prop_map(|number| number.saturating_abs().to_string()),
        (-3..4_i64).prop_map(|number| format!("({number})")),
        prop::sample::select(
            &["QUEUED", "RUNNING", "OP_EQ", "OP_MAX", "ASC", "DESC", "SYNCRUN", "DELETE", "MODIFYRES"][..]
        )
        .prop_map(str::to_owned),
        either("j").prop_map(|job| format!("JobStateGet({job})")),
        either("q").prop_map(|que| format!("QueNumJobsGet({que})")),
        either("n").prop_map(|node| format!("CNodeStateGet({node})")),
        either("i").prop_map(|int| format!("{int}++")),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (
                inner.clone(),
                prop::sample::select(&["+", "-", "*", "/", "%", "EQ", "LT", "GE", "AND", "OR"][..]),
                inner.clone()
            )
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            inner.clone().prop_map(|operand| format!("(-{operand})")),
            inner.clone().prop_map(|operand| format!("(!{operand})")),
            (either("z"), either("z")).prop_map(|(left, right)| format!("({left} LE {right})")),
            (either("s"), either("s")).prop_map(|(left, right)| format!("({left} EQ {right})")),
            (either("t"), either("t")).prop_map(|(left, right)| format!("({left} GT {right})")),
            (either("js"), either("js")).prop_map(|(left, right)| format!("({left} EQ {right})")),
            (inner.clone(), either("j"), either("s")).prop_map(|(int, job, text)| format!("own({int}, {job}, {text})")),
            (either("j"), inner.clone(), either("s"))
                .prop_map(|(job, action, text)| format!("JobAction({job}, {action}, {text})")),
            (either("js"), inner).prop_map(|(set, order)| format!("Sort({set}, keyOf, {order})")),
        ]
    })
    .boxed()
}

fn statement() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        (either("i"), int()).prop_map(|(to, value)| format!("{to} = {value};")),
        (either("f"), int(), either("f")).prop_map(|(to, value, other)| format!("{to} = {other} * 1.5 - {value};")),
        (either("s"), either("s"), either("j"))
            .prop_map(|(to, left, job)| format!("{to} = {left} + JobIdGet({job}) + {left};")),
        (either("s"), either("s")).prop_map(|(to, left)| format!("{to} = \"mem=\" + {left};")),
        (either("z"), either("z"), prop::sample::select(&["+", "-", "*", "/"][..]), either("z"))
            .prop_map(|(to, left, operator, right)| format!("{to} = {left} {operator} {right} + 1kb;")),
        (either("z"), either("j"), either("s"))
            .prop_map(|(to, job, name)| format!("{to} = JobSizeResReqGet({job}, {name});")),
        (either("t"), either("j")).prop_map(|(to, job)| format!("{to} = JobDateTimeCreatedGet({job});")),
        either("t").prop_map(|to| format!("{to} = (23:59:61);")),
        (either("js"), either("q")).prop_map(|(to, que)| format!("{to} = QueJobsGet({que});")),
        either("js").prop_map(|to| format!("{to} = ServerJobsGet(AllServersLocalHostGet());")),
        (either("q"), either("q"), int())
            .prop_map(|(to, que, value)| format!("{to} = QueFilter({que}, keyOf, OP_LE, {value});")),
        (either("j"), either("q"), int(), int()).prop_map(|(to, que, test, value)| format!(
            "{to} = QueJobFind({que}, JobPriorityGet, {test} + 0, {value});"
        )),
        (either("j"), either("q")).prop_map(|(to, que)| format!("{to} = QueJobFind({que}, sizeOf, OP_MIN);")),
        (either("rt"), either("t")).prop_map(|(range, time)| format!(
            "{range} = ((18:00:00), (06:00:00)); switch({time}) {{ case in {range}: {{ i1 = 1; }} }}"
        )),
        (either("ri"), either("i")).prop_map(|(range, int)| format!(
            "{range} = (-2, 5); switch({int}) {{ case in {range}: {{ i1 = 1; }} case 7: {{ }} default: {{ i2++; }} }}"
        )),
        int().prop_map(|value| format!("print({value});")),
        prop::sample::select(&["f1", "s1", "z1", "t1", "j1", "q1", "n1", "v1", "ri1", "rt1", "d1", "js1 EQ js2"][..])
            .prop_map(|name| format!("print({name});")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let block = prop::collection::vec(inner, 0..4).prop_map(|statements| statements.join("\n"));
        prop_oneof![
            (int(), block.clone(), block.clone())
                .prop_map(|(test, then, otherwise)| format!("if( {test} ) {{ {then} }} else {{ {otherwise} }}")),
            (int(), block.clone()).prop_map(|(test, body)| format!(
                "while( {test} ) {{ {body} i1--; if( i1 LT 0 ) {{ break; }} continue; }}"
            )),
            (either("j"), either("js"), block.clone())
                .prop_map(|(job, set, body)| format!("foreach( {job} in {set} ) {{ {body} }}")),
            (either("q"), block.clone()).prop_map(|(que, body)| format!(
                "foreach( {que} in ServerQueuesGet(AllServersLocalHostGet()) ) {{ {body} }}"
            )),
            (either("n"), block.clone())
                .prop_map(|(node, body)| format!("foreach( {node} in AllNodesGet() ) {{ {body} }}")),
            block.prop_map(|body| format!("{{ Int i1; String s1; {body} }}")),
        ]
    })
    .boxed()
}

fn program_text() -> impl Strategy<Value = String> {
    let block = || prop::collection::vec(statement(), 0..6).prop_map(|statements| statements.join("\n"));
    (any::<bool>(), block(), block(), int()).prop_map(|(is_global, inner, main, result)| {
        let (outside, inside) = if is_global { (VARIABLES, "") } else { ("Int unused;", VARIABLES) };
        format!(
            "{outside}
             Int keyOf(Job j) {{ return(JobPriorityGet(j) - 1); }}
             Size sizeOf(Job j) {{ return(JobSizeResReqGet(j, \"mem\")); }}
             Int own(Int n, Job j, String s) {{ {inside} if( n GT 3 OR n LT 0 ) {{ return(n); }} {inner} return({result}); }}
             sched_main() {{ {inside} {main} }}"
        )
    })
}

fn snapshot() -> Snapshot {
    let jobs = (0..6).map(|number| {
        let state = ["Q", "R", "H", "W", "E", "?"][number];
        let request = [("mem".to_owned(), Amount::Text(format!("{number}mb")))].into();
        let job = Job {
            priority: Some(number as i64 % 3),
            request,
            ctime: Some(i64::MAX - number as i64),
            ..job(&number.to_string(), state)
        };
        in_queue(["a", "b", "gone"][number % 3], job)
    });
    Snapshot {
        queues: vec![queue("a"), queue("b")],
        nodes: vec![node("n1", "free", Some(f64::NAN)), node("n2", "down", None)],
        jobs: jobs.collect(),
        ..Snapshot::default()
    }
}

/// Two cycles; what they print does not depend on anything but their input.
fn run(program: Program) {
    let Ok(mut machine) = Machine::new(program.into(), &clock(), &mut Limits::default()) else { return };
    let mut again = machine.clone();
    for _ in 0..2 {
        let mut limits = Limits { statements: 20_000, ..Limits::default() };
        let outcome = machine.cycle(&snapshot(), &clock(), &mut Server::default(), &mut limits);
        let mut limits = Limits { statements: 20_000, ..Limits::default() };
        assert_eq!(outcome, again.cycle(&snapshot(), &clock(), &mut Server::default(), &mut limits));
        assert!(outcome.statements <= 20_000 + 4096);
        assert_eq!(Machine::restore(machine.program().clone(), machine.globals().clone()).map(|_| ()), Ok(()));
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_checker_panic(text in text()) {
        match Program::check("fuzz", &text) {
            Ok(program) => run(program),
            Err(faults) => prop_assert!(!faults.is_empty() && faults.len() <= 200),
        }
    }

    #[test]
    fn no_configuration_makes_the_reader_panic(text in "(\\$(node|momhost|clienthost|serverhost)?[ *\\[\\]a-zA-Z0-9]{0,40}\n?){0,9}") {
        let _ = Config::parse("fuzz", &text);
    }

    /// PBS-X-13: whatever a checked program does, the interpreter survives it.
    #[test]
    fn no_checked_program_makes_the_interpreter_panic(text in program_text()) {
        match Program::check("fuzz", &text) {
            Ok(program) => run(program),
            Err(faults) => prop_assert!(false, "{faults:#?} in\n{text}"),
        }
    }

    /// A part of a program, or one with a part taken out.
    #[test]
    fn torn_programs_are_checked(text in program_text(), from in any::<prop::sample::Index>(), length in 0..40_usize) {
        let letters: Vec<char> = text.chars().collect();
        let start = from.index(letters.len());
        let torn: String = letters[..start].iter().chain(&letters[(start + length).min(letters.len())..]).collect();
        if let Ok(program) = Program::check("fuzz", &torn) {
            run(program);
        }
    }
}
