//! Arithmetic, comparisons, statements: what they give.

use super::support::{fault, printed, printed_on};
use muster_basl::Snapshot;

/// PBS-X-04: which operator binds stronger.
#[test]
fn operators_bind_as_documented() {
    assert_eq!(printed("print(2 + 3 * 4);"), ["14"]);
    assert_eq!(printed("print((2 + 3) * 4);"), ["20"]);
    assert_eq!(printed("print(20 / 3 / 2);"), ["3"]);
    assert_eq!(printed("print(-7 / 2); print(-7 % 3);"), ["-3", "-1"]);
    assert_eq!(printed("print(10 - 4 - 3);"), ["3"]);
    assert_eq!(printed("print(1 OR 0 AND 0);"), ["1"]);
    assert_eq!(printed("print((1 OR 0) AND 0);"), ["0"]);
    assert_eq!(printed("print(1 LT 2 EQ 1);"), ["1"]);
    assert_eq!(printed("print(3 GT 2 EQ 2 GT 1);"), ["1"]);
    assert_eq!(printed("print(!0 + 1);"), ["2"]);
    assert_eq!(printed("print(!5); print(!0); print(!!7); print(! 0.0);"), ["0", "1", "1", "1"]);
    assert_eq!(printed("print(- - 3); print(+3); print(2 - -3);"), ["3", "3", "5"]);
    assert_eq!(printed("Int i; i = 4; print(i++); print(i--); print(i);"), ["4", "5", "4"]);
    assert_eq!(printed("Int i; Int j; i = j = 3; print(i + j);"), ["6"]);
    assert_eq!(printed("Int i; Float f; f = i = 2.9; print(f);"), ["2.000000"]);
}

/// PBS-X-04: the right side is looked at only if the left one does not decide.
#[test]
fn and_and_or_look_at_the_right_side_only_if_need_be() {
    let text = "Int told(Int value) { print(value); return(value); }
        sched_main() {
          print(told(0) AND told(2)); print(told(1) OR told(3));
          if( !(told(4) AND told(0)) ) { print(\"neither\"); }
          if( told(0) OR told(5) AND !told(0) ) { print(\"both\"); }
        }";
    let lines = ["0", "0", "1", "1", "4", "0", "neither", "0", "5", "0", "both"];
    assert_eq!(printed_on(text, &Snapshot::default()), lines);
}

/// PBS-X-04: `Int` and `Float` mix, an assignment truncates.
#[test]
fn numbers_mix() {
    assert_eq!(printed("print(1 + 2.5); print(7 / 2); print(7 / 2.0);"), ["3.500000", "3", "3.500000"]);
    assert_eq!(printed("Int i; i = 3.99; print(i); i = -3.99; print(i);"), ["3", "-3"]);
    assert_eq!(printed("Float f; f = 3; f++; print(f); print(f EQ 4);"), ["4.000000", "1"]);
    assert_eq!(printed("Int i; i = 2; print(i GE 1.5); print(1.5 LT i);"), ["1", "1"]);
}

/// PBS-X-04: sizes have the smaller suffix, strings are joined.
#[test]
fn sizes_and_strings() {
    assert_eq!(printed("print(10mb + 10gb);"), ["10250mb"]);
    assert_eq!(printed("print(1gb - 1kb); print(2kb * 3kb); print(9mb / 2mb);"), ["1048575kb", "6kb", "4mb"]);
    assert_eq!(printed("print(1kb EQ 1024b); print(1w EQ 4b); print(-(3mb));"), ["1", "1", "-3mb"]);
    assert_eq!(printed("print(1gb GT 1023mb AND 2w LT 9b);"), ["1"]);
    assert_eq!(printed("String s; s = \"a\" + \"b\" + NULLSTR; print(s); print(s LT \"b\");"), ["ab", "1"]);
    assert_eq!(printed("String s; print(s); print(s EQ NULLSTR); print(s EQ \"\");"), ["null", "1", "1"]);
    assert_eq!(printed(r#"print("a\tb\\\"\q (x)");"#), ["a\tb\\\"\\q (x)"]);
}

/// PBS-X-06: comparisons of moments; it is Friday, 15 May 1998, 10:00.
#[test]
fn moments_without_date_or_time() {
    assert_eq!(printed("print(datetimeGet());"), ["(05/15/1998@10:00:00)"]);
    assert_eq!(printed("print((09:59:59) LT datetimeGet()); print((5|15|1998) EQ datetimeGet());"), ["1", "1"]);
    assert_eq!(printed("print((5|14|1998) LT (09:00:00)); print((5|15|1998@08:00:00) EQ (08:00:00));"), ["1", "1"]);
    assert_eq!(printed("print(datetimeToSecs((1|1|1970@00:01:00)));"), ["60"]);
    let night = "DateTime t; t = AT; switch(t) { case in ((18:00:00), (06:00:00)): { print(\"in\"); } default: { print(\"out\"); } }";
    let at = |time: &str| printed(&night.replace("AT", time))[0].clone();
    for (time, expected) in [("(23:00:00)", "in"), ("(03:00:00)", "in"), ("(12:00:00)", "out"), ("(18:00:00)", "in")] {
        assert_eq!(at(time), expected, "{time}");
    }
}

/// PBS-X-05: no case falls through to the next one, and `break` leaves the loop around a switch.
#[test]
fn a_switch_takes_the_first_case_that_holds() {
    let text = "Void say(Int i) { switch(i) {
          case 1: { print(\"one\"); } case in (2, 4): { print(\"some\"); } case 3: { print(\"three\"); }
          default: { print(\"many\"); } } }
        sched_main() { Int i; for( i = 1; i LT 6; i++ ) { say(i); }
          while( 1 ) { switch(i) { case 6: { break; } } print(\"not here\"); }
          switch(i) { case 7: { print(\"not here\"); } }
          switch(i) { default: { print(\"default\"); } } }";
    let lines = ["one", "some", "some", "some", "many", "default"];
    assert_eq!(printed_on(text, &Snapshot::default()), lines);
}

/// PBS-X-05
#[test]
fn loops_continue_and_end() {
    assert_eq!(
        printed("Int i; for( i = 0; i LT 9; i++ ) { if( i % 2 ) { continue; } if( i GT 5 ) { break; } print(i); }"),
        ["0", "2", "4"]
    );
    assert_eq!(printed("Int i; i = 3; while( i ) { i--; if( i EQ 1 ) { continue; } print(i); }"), ["2", "0"]);
    assert_eq!(printed("Float f; f = 1.0; while( f ) { f = f - 0.5; print(f); }"), ["0.500000", "0.000000"]);
    assert_eq!(printed("Set Job js; Job j; foreach( j in js ) { print(j); } print(j);"), ["NOJOB"]);
}

/// PBS-X-07: what was never assigned. Declarations of inner blocks hide those outside.
#[test]
fn variables_begin_with_nothing() {
    let text =
        "Int i; Float f; String s; Size z; Dayofweek d; DateTime t; Server sv; Que q; Job j; CNode c; Set Job js;
        Range Int r; Range Size rz;
        sched_main() { Int k; print(i); print(f); print(s); print(z); print(d); print(t); print(sv); print(q); print(j);
          print(c); print(js EQ EMPTYSETJOB); print(r); print(rz);
          while( k LT 2 ) { Int x; String y; Job jj; x++; y = y + \"a\"; print(x); print(y); print(jj); k++; }
          { Int i; i = 5; print(i); } print(i); }";
    let lines = [
        "0", "0.000000", "null", "0b", "SUN", "()", "NOSERVER", "NOQUE", "NOJOB", "NOCNODE", "1", "(0, 0)", "(0b, 0b)",
        "1", "a", "NOJOB", "1", "a", "NOJOB", "5", "0",
    ];
    assert_eq!(printed_on(text, &Snapshot::default()), lines);
}

#[test]
fn values_are_shown_as_pbs_showed_them() {
    assert_eq!(
        printed("print((1, 3)); print((2.5, 4)); print((WED, FRI)); print((23gb, 50gb));"),
        ["(1, 3)", "(   2.50,    4.00)", "(WED, FRI)", "(23gb, 50gb)"]
    );
    assert_eq!(
        printed("print(((4|4|1997), (4|10|1997))); print(SAT); print((5|1|1997@14:32:00));"),
        ["((04/04/1997), (04/10/1997))", "SAT", "(05/01/1997@14:32:00)"]
    );
}

#[test]
fn functions_call_each_other_and_themselves() {
    let text = "Int fibonacci(Int n) { if( n LT 2 ) { return(n); } return(fibonacci(n - 1) + fibonacci(n - 2)); }
        String twice(String s) { return(s + s); }
        Float half(Float f) { return(f / 2); }
        Int apply(Fun Int f, Int n) { return(f(n) + 1); }
        Set Job none() { return(EMPTYSETJOB); }
        Void nothing() { }
        sched_main() { print(fibonacci(15)); print(twice(twice(\"ab\") + \"c\")); print(half(5)); print(apply(fibonacci, 10));
          print(none() EQ EMPTYSETJOB); nothing(); print(twice(\"x\") EQ \"xx\" AND fibonacci(3) EQ 2); }";
    let lines = ["610", "ababcababc", "2.500000", "56", "1", "1"];
    assert_eq!(printed_on(text, &Snapshot::default()), lines);
}

/// PBS-X-13: faults have file and line.
#[test]
fn what_has_no_result_is_a_fault() {
    assert_eq!(fault("Int i;\nprint(5 / i);"), "p.basl:3: division by zero");
    assert_eq!(fault("Int i; print(5 % i);"), "p.basl:2: division by zero");
    assert_eq!(fault("Float f; print(1.0 / f);"), "p.basl:2: division by zero");
    assert_eq!(fault("Size z; print(1kb / z);"), "p.basl:2: division by zero");
    assert_eq!(fault("Int i; i = 9223372036854775807; i++;"), "p.basl:2: the result is out of the range of Int");
    assert_eq!(fault("Int i; i = -9223372036854775807; i = i - 2;"), "p.basl:2: the result is out of the range of Int");
    assert_eq!(
        fault("Int i; i = -9223372036854775807 - 1; i = -i;"),
        "p.basl:2: the result is out of the range of Int"
    );
    assert_eq!(
        fault("Int i; i = -9223372036854775807 - 1; i = i / -1;"),
        "p.basl:2: the result is out of the range of Int"
    );
    assert_eq!(
        fault("Float f; f = 9999999999.0; while( 1 ) { f = f * f; }"),
        "p.basl:2: the result is out of the range of Float"
    );
    assert_eq!(fault("Int i; i = 99999999999999999999.0;"), "p.basl:2: the result is out of the range of Int");
    assert_eq!(
        fault("Size z; z = 500000000000000000pb; z = z + z + 1b;"),
        "p.basl:2: the result is out of the range of Size"
    );
}
