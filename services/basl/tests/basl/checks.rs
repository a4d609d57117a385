//! What the checker says.

use super::support::{mistakes, program};
use muster_basl::{Fault, Program};

/// The messages of a body of `sched_main`, which begins in line 2.
fn in_main(body: &str) -> Vec<String> {
    mistakes(&format!("sched_main() {{\n{body}\n}}"))
}

/// PBS-X-01: file, line, message and token; all mistakes at once; the nearest known word.
#[test]
fn every_mistake_is_told_with_its_line_and_token() {
    let text = "Int CAP;\n\
                Int cap(Job j) { return(JobStateGat(j)); }\n\
                CAP = \"two\";\n\
                sched_main() {\n\
                Set Job jobs; Job j;\n\
                jobs = ServerJobsGet();\n\
                foreach(j in jobs) {\n\
                if( JobStateGet(j) EQ QUEUD ) { JobAction(j, SYNCRUN, 5); }\n\
                x = 1\n\
                }\n\
                break;\n\
                }\n";
    assert_eq!(
        mistakes(text),
        [
            "p.basl:2: unknown function 'JobStateGat'; did you mean 'JobStateGet'? (token 'JobStateGat')",
            "p.basl:3: 'CAP' is Int, not String (token '\"two\"')",
            "p.basl:6: 'ServerJobsGet' takes 1 argument, not 0 (token 'ServerJobsGet')",
            "p.basl:8: unknown variable 'QUEUD'; did you mean 'QUEUED'? (token 'QUEUD')",
            "p.basl:8: argument 3 of JobAction is String, not Int (token '5')",
            "p.basl:10: expected ';' after the assignment (token '}')",
            "p.basl:11: 'break' outside of a loop (token 'break')",
        ]
    );
}

/// PBS-X-01: for people each mistake has the place of its token in the line, in characters; it is the token's beginning, also
/// behind letters of several bytes, tabs and comments.
#[test]
fn mistakes_have_a_place_in_their_line() {
    let located = |text: &str| match Program::check("p.basl", text) {
        Ok(_) => panic!("no mistake"),
        Err(faults) => faults.iter().map(Fault::located).collect::<Vec<_>>(),
    };
    let one = |text: &str, start: &str| {
        let all = located(text);
        assert!(all.len() == 1 && all[0].starts_with(start), "{all:?}");
    };
    one("sched_main() {\n\tprint(\"\u{fc}\u{20ac}\"); x = 1;\n}", "p.basl:2: column 15: unknown variable 'x'");
    let open = located("// one\nsched_main() { print(\"open); }");
    assert!(open[0].starts_with("p.basl:2: column 22: a string lacks its closing quote"), "{open:?}");
    one("Int f() { } sched_main() { f(); }", "p.basl:1: column 11: 'f' can end without return(Int)");
    one("sched_main() {\n}\n\n   Int b;", "p.basl:4: column 4: expected the end of the file: sched_main comes last");
    let unfinished = located("sched_main() {\n");
    assert!(unfinished[0].starts_with("p.basl:2: column 1: expected '}' at the end of a block"), "{unfinished:?}");
    let both = located("sched_main() { y = 1; x = 1; }");
    assert_eq!(both[0], "p.basl:1: column 16: unknown variable 'y' (token 'y')");
    assert!(both[1].starts_with("p.basl:1: column 23: unknown variable 'x'"), "{both:?}");
}

/// PBS-X-02: definitions, then assignments, then `sched_main`.
#[test]
fn the_parts_of_a_program_come_in_their_order() {
    program("Int a; Void f() { a = 1; } Int b; a = 1; b = a + 1; sched_main() { f(); }");
    let told = |text: &str, message: &str| {
        let all = mistakes(text);
        assert!(all.iter().any(|told| told.contains(message)), "{message} is not in {all:#?}");
    };
    told("Int a;", "expected sched_main() { } at the end of the program (token 'end of file')");
    told("", "p.basl:1: expected sched_main()");
    told("Int a; a = 1; Int b; sched_main() { }", "come before the assignments");
    told("sched_main() { } Int b;", "sched_main comes last (token 'Int')");
    told("sched_main() { ; Int b; b = 1; }", "declarations come before the statements of a block (token 'Int')");
    told("sched_main() { f(); } ", "unknown function 'f'");
    told("Void f() { g(); } Void g() { } sched_main() { f(); }", "'g' is used before its definition");
    told("Int f() { return(A); } Int A; sched_main() { f(); }", "'A' is used before its definition");
    told("Int a; Int a; sched_main() { }", "'a' is defined twice");
    told("Int a(Int b) { Int b; return(b); } sched_main() { }", "'b' is declared twice");
    told("Int JobStateGet; sched_main() { }", "is a predefined function");
    told("Int QUEUED; sched_main() { }", "this word is reserved (token 'QUEUED')");
    told("Int while; sched_main() { }", "this word is reserved");
    told(&format!("Int {}; sched_main() {{ }}", "a".repeat(81)), "a name has a maximum of 80 characters");
    program(&format!("Int {}; sched_main() {{ }}", "a".repeat(80)));
    told("Int a = 1; sched_main() { }", "a value is assigned in a statement");
    told("SCHED_MAIN() { }", "expected a declaration");
    // Case counts, comments do not.
    program("Int a; // b\nInt A; // \"\nsched_main() { a = A; } // the end");
}

/// PBS-X-03
#[test]
fn all_types_and_constants_are_known() {
    program(
        r#"Void all(Int i, Float f, Dayofweek d, DateTime t, String s, Size z, Server sv, Que q, Job j, CNode c,
            Set Server ss, Set Que sq, Set Job sj, Set CNode sc, Range Int ri, Range Float rf, Range Dayofweek rd,
            Range DateTime rt, Range Size rz, Fun Int fi, Fun Void fv, Fun Set Job fs) {
            i = SUCCESS + FAIL + TRUE + FALSE + SYNCRUN + ASYNCRUN + DELETE + RERUN + HOLD + RELEASE + SIGNAL;
            i = MODIFYATTR + MODIFYRES + TRANSIT + QUEUED + HELD + WAITING + RUNNING + EXITING;
            i = SERVER_ACTIVE + SERVER_IDLE + SERVER_SCHED + SERVER_TERM + SERVER_TERMDELAY + QTYPE_E + QTYPE_R;
            i = SCHED_ENABLED + SCHED_DISABLED + CNODE_FREE + CNODE_DOWN + CNODE_OFFLINE + CNODE_RESERVE;
            i = CNODE_INUSE_EXCLUSIVE + CNODE_INUSE_SHARED + CNODE_TIMESHARED + CNODE_CLUSTER + CNODE_UNKNOWN;
            i = OP_EQ + OP_NEQ + OP_LT + OP_LE + OP_GT + OP_GE + OP_MAX + OP_MIN + ASC + DESC;
            d = SUN; d = MON; d = TUE; d = WED; d = THU; d = FRI; d = SAT;
            t = (4|4|1997); t = (12:01:00); t = (4|4|1997@12:01:00);
            s = "text"; s = NULLSTR; z = 10kb; z = 2mw; z = -1b; z = 3GB; z = 6Pw;
            sv = NOSERVER; q = NOQUE; j = NOJOB; c = NOCNODE;
            ss = EMPTYSETSERVER; sq = EMPTYSETQUE; sj = EMPTYSETJOB; sc = EMPTYSETCNODE;
            ri = (1, 3); ri = (-3, -1); rf = (2.3, 4.6); rd = (WED, FRI); rz = (23gb, 50gb);
            rt = ((4|4|1997), (4|10|1997)); rt = ((18:00:00), (06:00:00));
            rt = ((4|4|1997@12:01:00), (4|10|1997@12:30:00)); }
        sched_main() { }"#,
    );
    let told = |body: &str, message: &str| {
        let all = in_main(body);
        assert!(all.iter().any(|told| told.contains(message)), "{message} is not in {all:#?} of {body}");
    };
    told("Void v;", "a variable cannot be Void");
    told("Fun Int f;", "a variable cannot be Fun Int");
    told("Set Int s;", "expected Server, Que, Job or CNode after Set");
    told("Range String r;", "expected Int, Float, Dayofweek, DateTime or Size after Range");
    told("print((2|30|1998));", "no such date or time");
    told("print((24:00:00));", "no such date or time");
    told("print((5, 3));", "the first value of a range is above the second");
    told("print((FRI, MON));", "the first value of a range is above the second");
    told("print((1, MON));", "a range cannot consist of Int and Dayofweek");
    told("print(((4|4|1997), (3|4|1997)));", "the first value of a range is above the second");
    told("Int a; print((a, 3));", "a range consists of two constants");
    told("print(99999999999999999999);", "expected a number such as 5");
    told("print(10xb);", "expected a number such as 5 or 4.3, or a size such as 10kb");
    told("print(\"a);", "a string lacks its closing quote");
}

/// PBS-X-04: `Int` and `Float` mix, and nothing else does.
#[test]
fn other_types_do_not_mix() {
    let told = |body: &str, message: &str| {
        let body = format!("Int i; Float f; String s; Size z; Dayofweek d; DateTime t; Job j; Set Job js; {body}");
        let all = in_main(&body);
        assert_eq!(all.len(), 1, "{all:#?}");
        assert!(all[0].contains(message), "{message} is not in {all:#?}");
    };
    program(
        "sched_main() { Int i; Float f; i = f; f = i; f = i + f * 2; i = 1 + 2.5; if( i LT f AND f ) { i++; f--; } }",
    );
    told("i = z;", "'i' is Int, not Size (token 'z')");
    told("z = 5;", "'z' is Size, not Int");
    told("i = i + z;", "'+' cannot take Int and Size (token '+')");
    told("i = f % 2;", "'%' cannot take Float and Int");
    told("i = i % f;", "'%' cannot take Int and Float");
    told("s = s - s;", "'-' cannot take String and String");
    told("z = z % z;", "'%' cannot take Size and Size");
    told("i = s EQ 5;", "'EQ' cannot compare String with Int");
    told("i = j LT NOJOB;", "'LT' cannot compare Job with Job");
    told("i = js EQ EMPTYSETQUE;", "'EQ' cannot compare Set Job with Set Que");
    told("i = d EQ t;", "'EQ' cannot compare Dayofweek with DateTime");
    told("i = !s;", "a condition needs Int or Float, not String");
    told("i = -s;", "a sign needs Int, Float or Size, not String");
    told("s++;", "++ and -- need Int or Float, not String");
    told("if( j ) { }", "a condition needs Int or Float, not Job");
    told("while( s ) { }", "a condition needs Int or Float, not String");
    told("i = i AND s;", "a condition needs Int or Float, not String");
    told("++i;", "++ and -- stand behind a variable");
    told("5 = i;", "a value can be assigned to a variable only");
    told("i = i < 5;", "less is written LT or LE (token '<')");
}

/// PBS-X-05
#[test]
fn statements_have_their_form() {
    program(
        r#"Int f(Int n) { if( n GT 0 ) { return(n); } else { return(-n); } }
        Void g() { return(); }
        Int forever() { while( 1 ) { ; } }
        Int chosen(Int n) { switch(n) { case 1: { return(1); } default: { return(2); } } }
        sched_main() { Int i; Job j; Set Job js; Range Int r; String s;
          ; i + 1; f(3); { i = 2; } for( i = 0; i LT 3; i++ ) { continue; } for( i = 3; i; i = i - 1 ) { break; }
          foreach( j in js ) { } while( i LT 2 ) { i++; }
          switch( i ) { case 1: { } case in (2, 3): { } case in r: { } default: { } }
          switch( j ) { case NOJOB: { } case in js: { } }
          switch( s ) { case "a": { } case NULLSTR: { } }
          print(i); print("x"); print(f(1 + 2)); g(); return(); exit(3); }"#,
    );
    let told = |body: &str, message: &str| {
        let all = in_main(&format!("Int i; Job j; Set Job js; Que q; Range Int r;\n{body}"));
        assert!(all.iter().any(|told| told.contains(message)), "{message} is not in {all:#?} of {body}");
    };
    told("if( i ) i = 1;", "expected '{' before a block: braces are required (token 'i')");
    told("if( i ) { } else if( i ) { }", "braces are required (token 'if')");
    told("continue;", "'continue' outside of a loop");
    told("switch( i ) { case 1: { break; } }", "'break' outside of a loop");
    told("return(i);", "this function returns no value: write return()");
    told("return;", "return() or return(value)");
    told("foreach( q in js ) { }", "'q' is Que; the set consists of Job (token 'q')");
    told("foreach( j in i ) { }", "foreach needs a Set, not Int");
    told("switch( i ) { case 1: { } case 1: { } }", "a case with this value stands above");
    told("switch( i ) { case \"a\": { } }", "the switch is over Int, this case is String");
    told("switch( i ) { case in js: { } }", "the switch is over Int, which Set Job cannot contain");
    told("switch( i ) { case i: { } }", "the value of a case is a constant");
    told("switch( 5 ) { }", "expected a variable after switch(");
    told("switch( i ) { default: { } case 1: { } }", "default is the last case of a switch");
    told("print(js);", "print cannot show Set Job");
    told("exit(\"a\");", "the value of exit is Int, not String");
    told("else { }", "'else' without 'if'");
    told("for( i; i LT 3; i++ ) { }", "expected an assignment, or ++ or -- behind a variable");
    told("{ i = 1;", "expected '}' at the end of a block (token 'end of file')");
    let all = mistakes("Int f(Int n) { if( n ) { return(1); } } sched_main() { }");
    assert_eq!(all, ["p.basl:1: 'f' can end without return(Int) (token '}')"]);
    assert!(!mistakes("Int f() { while( 1 ) { break; } } sched_main() { }").is_empty());
    assert!(!mistakes("Int f(Int n) { switch(n) { case 1: { return(1); } } } sched_main() { }").is_empty());
    assert!(
        !mistakes("Int f(Int n) { switch(n) { case 1: { } default: { return(1); } } } sched_main() { }").is_empty()
    );
    assert!(!mistakes("Int f(Int n) { if( n ) { } else { return(1); } } sched_main() { }").is_empty());
    assert!(!mistakes("Int f(Int n) { for( n = 0; 1; n++ ) { return(1); } } sched_main() { }").is_empty());
    assert!(!mistakes("Range Int f() { } sched_main() { }").is_empty());
}

/// PBS-X-05: arguments may be any expression. PBS-X-10: keys must fit what is sorted.
#[test]
fn calls_are_checked() {
    let told = |body: &str, message: &str| {
        let text = format!(
            "Int two(Job a, Job b) {{ return(1); }} Void none(Job j) {{ }} Int ofQue(Que q) {{ return(1); }}\n\
             Int apply(Fun Int f, Job j) {{ return(f(j)); }}\n\
             sched_main() {{ Job j; Set Job js; Que q; Int i;\n{body}\n}}"
        );
        let all = mistakes(&text);
        match message {
            "" => assert_eq!(all, Vec::<String>::new(), "{body}"),
            _ => assert!(all.iter().any(|told| told.contains(message)), "{message} is not in {all:#?} of {body}"),
        }
    };
    told("i = two(j, NOJOB) + apply(JobStateGet, j); apply(JobPriorityGet, j);", "");
    told("Sort(js, JobPriorityGet, DESC); Sort(js, JobIdGet, i); Sort(js, JobDateTimeCreatedGet, 9);", "");
    told("j = QueJobFind(q, JobPriorityGet, OP_MAX); j = QueJobFind(q, JobIdGet, OP_LE, \"a\");", "");
    told("q = QueFilter(q, JobDateTimeCreatedGet, OP_GT, (3:3:44)); q = QueFilter(q, JobStateGet, i, QUEUED);", "");
    told("two(j);", "'two' takes 2 arguments, not 1 (token 'two')");
    told("two(j, q);", "argument 2 of two is Job, not Que (token 'q')");
    told("j(1);", "'j' is Job, not a function");
    told("i = none(j);", "'i' is Int, not Void");
    told("print(none(j));", "'none' returns no value");
    told("two = 1;", "'two' is a function, not a variable");
    told("i = two;", "'i' is Int, not Fun Int");
    told("apply(JobIdGet, j);", "argument 1 of apply is Fun Int, not Fun String");
    told("Sort(js, two, ASC);", "the one parameter of a key function of Sort must be Job (token 'two')");
    told("Sort(js, ofQue, ASC);", "the one parameter of a key function of Sort must be Job");
    told("Sort(js, none, ASC);", "a key function cannot return Void");
    told("Sort(js, 5, ASC);", "argument 2 of Sort is a function, not Int");
    told("Sort(i, JobIdGet, ASC);", "argument 1 of Sort is a Set, not Int");
    told("Sort(js, JobIdGet);", "'Sort' takes 3 arguments, not 2");
    told("QueJobFind(q, JobIdGet, OP_EQ);", "without a value the comparison is OP_MAX or OP_MIN (token 'OP_EQ')");
    told("QueJobFind(q, JobIdGet, OP_MAX, \"a\");", "a comparison with a value is OP_EQ");
    told("QueFilter(q, JobIdGet, OP_EQ, 5);", "argument 4 of QueFilter is String, as the key is, not Int");
    told("QueFilter(q, JobIdGet, OP_EQ);", "'QueFilter' takes 4 arguments, not 3");
    told("apply(AllServersGet, j);", "only functions whose one parameter is an object can be passed on");
    told("JobSizeResReqGet(j);", "'JobSizeResReqGet' takes 2 arguments, not 1");
    told("JobSizeResReqGet(j, 5);", "argument 2 of JobSizeResReqGet is String, not Int");
}

#[test]
fn a_name_used_before_any_mistake_of_its_own_gives_one_message() {
    // What follows from a mistake is not told again.
    assert_eq!(in_main("Int i; i = missing + 1 + 2 * (3 + missing2);").len(), 2);
    assert_eq!(in_main("Int i; if( missing EQ 3 ) { i = missing2(i, 4); }").len(), 2);
}

/// The deepest programs that the checker takes fit onto the stack of a thread.
#[test]
fn what_is_just_not_too_much_is_compiled() {
    let blocks = 58;
    let sum = format!("{}1{}{}", "(".repeat(58), " + i".repeat(249), ")".repeat(58));
    let condition = format!("{}i{}", "!(".repeat(28), ")".repeat(28));
    let chain = vec![condition.as_str(); 200].join(" AND ");
    for value in [sum, chain] {
        let open: String = (0..blocks).map(|_| "if( 1 ) {").collect();
        program(&format!("sched_main() {{ Int i; {open} i = {value}; {} }}", "}".repeat(blocks)));
    }
    let text = vec!["\"a\""; 250].join(" + ");
    program(&format!("sched_main() {{ String s; s = {text}; }}"));
}

#[test]
fn too_much_is_refused_with_a_message() {
    let deep = format!("sched_main() {{ Int i; i = {}1{}; }}", "(".repeat(5000), ")".repeat(5000));
    assert!(mistakes(&deep)[0].contains("blocks and expressions inside each other"));
    let blocks = format!("sched_main() {}{}", "{".repeat(5000), "}".repeat(5000));
    assert!(mistakes(&blocks)[0].contains("inside each other"));
    let minus = format!("sched_main() {{ Int i; i = {}i; }}", "- ".repeat(5000));
    assert!(mistakes(&minus)[0].contains("inside each other"));
    let long = format!("sched_main() {{ Int i; i = i{}; }}", " + i".repeat(5000));
    assert!(mistakes(&long)[0].contains("more than 250 operators in one expression"));
    assert!(mistakes(&" ".repeat((1 << 20) + 1))[0].contains("the maximum is 1048576"));
    assert_eq!(mistakes(&"?\n".repeat(1000)).len(), 200);
    assert!(mistakes(&format!("Void f({} Int a) {{ }}", "Fun ".repeat(100_000)))[0].contains("expected a type"));
    assert_eq!(mistakes(&"}".repeat(100_000)).len(), 1);
    let parameters = vec!["Int a"; 300].join(", ");
    assert!(
        mistakes(&format!("Void f({parameters}) {{ }} sched_main() {{ }}"))[0].contains("more than 255 parameters")
    );
    let many: String = (0..5000).map(|number| format!("Int v{number};")).collect();
    assert!(mistakes(&format!("sched_main() {{ {many} }}"))[0].contains("more than 4096 variables"));
}
