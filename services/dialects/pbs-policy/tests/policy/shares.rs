//! The tree of shares.

use crate::support::{RESOURCE_GROUP, checked, errors_in, policy, shown, warnings_in};
use muster_pbs_policy::shares::{DEEPEST, Shares};

const FILE: &str = "resource_group";

fn shares(text: &str) -> Shares {
    policy(&[(FILE, text)]).shares
}

fn part(shares: &Shares, name: &str) -> String {
    let members = shares.members();
    members.iter().find(|member| member.name == name).map(|member| member.part.to_string()).expect("a member")
}

/// W4: PBS-FS-01, PBS-FS-03.
#[test]
fn parts_of_the_sample_are_exact() {
    let shares = shares(RESOURCE_GROUP);
    for (name, expected) in [
        ("root", "1"),
        ("grp1", "2/11"),
        ("grp2", "4/11"),
        ("grp3", "2/11"),
        ("unknown", "2/11"),
        ("usr1", "1/11"),
        ("grp4", "1/11"),
        ("grp5", "1/22"),
        ("usr2", "1/22"),
        ("grp6", "8/33"),
        ("usr3", "4/33"),
        ("usr4", "2/33"),
        ("usr5", "2/33"),
        ("usr6", "4/33"),
        ("usr7", "2/11"),
        ("usr8", "1/22"),
        ("usr9", "1/22"),
        ("usr10", "1/22"),
    ] {
        assert_eq!(part(&shares, name), expected, "{name}");
    }
    assert_eq!(shares.find("usr2").and_then(|member| member.number), Some(61));
}

/// PBS-FS-02: without a file the tree is the root and the unknown users.
#[test]
fn without_a_file_all_users_are_unknown() {
    let checked = checked(&[("sched_config", "unknown_shares: 3"), ("holidays", "YEAR 2026")]);
    assert_eq!(shown(&checked.warnings), Vec::<String>::new());
    let shares = checked.policy.expect("no errors").shares;
    assert_eq!((shares.members().len(), part(&shares, "unknown")), (2, "1".to_owned()));
}

/// PBS-FS-04.
#[test]
fn unknown_users_divide_their_part_equally() {
    let shares = shares("bob 60 root 10\nguest 61 unknown 2\n");
    assert_eq!((part(&shares, "bob"), part(&shares, "guest")), ("1/2".to_owned(), "1/2".to_owned()));
    let seen = shares.with_users(["bob", "ann", "zoe", "ann"]);
    assert_eq!(part(&seen, "bob"), "1/2");
    assert_eq!([part(&seen, "guest"), part(&seen, "ann"), part(&seen, "zoe")], ["1/4", "1/8", "1/8"]);
    assert_eq!(seen.members().len(), shares.members().len() + 2);
    assert!(shares.find("ann").is_none());
}

/// PBS-FS-04: a user is not the whole machine because of his name.
#[test]
fn users_named_root_or_unknown_are_unknown_users() {
    let shares = shares("bob 60 root 10\n");
    assert!(shares.find("root").is_none() && shares.find("unknown").is_none());
    let seen = shares.with_users(["root", "unknown"]);
    let parts = ["root", "unknown"].map(|user| seen.find(user).expect("seen").part.to_string());
    assert_eq!(parts, ["1/4", "1/4"]);
}

/// PBS-FS-03: a sum of zero gives zero.
#[test]
fn members_without_shares_have_no_part() {
    let policy = policy(&[("sched_config", "unknown_shares: 0"), (FILE, "a 1 root 0\nb 2 a 5\n")]);
    let parts: Vec<String> = policy.shares.members().iter().map(|member| member.part.to_string()).collect();
    assert_eq!(parts, ["1", "0", "0", "0"]);
}

/// PBS-FS-01: comments and blanks.
#[test]
fn comments_are_left_out() {
    let shares = shares("# users\n\n* more\n  bob\t60   root 10 # a comment\r\n");
    assert_eq!(part(&shares, "bob"), "1/2");
}

/// PBS-FS-01, PBS-FS-02.
#[test]
fn mistakes_are_errors_at_their_words() {
    for (text, expected) in [
        ("u1 60 root", "expected four fields: name, number, parent, shares; there are 3 (token 'root')"),
        ("u1 60 root 5 6", "expected four fields: name, number, parent, shares (token '6')"),
        ("u1 x root 5", "expected an integer that identifies the group or user (token 'x')"),
        ("u1 60 grpX 5", "no line above defines the parent; is 'grp1' meant? (token 'grpX')"),
        ("u1 60 elsewhere 5", "no line above defines the parent (token 'elsewhere')"),
        ("u1 60 rot 5", "no line above defines the parent; is 'root' meant? (token 'rot')"),
        ("u1 60 u1 5", "no line above defines the parent (token 'u1')"),
        ("u1 60 root -5", "expected shares: an integer from 0 to 4294967295 (token '-5')"),
        ("u1 60 root 4294967296", "expected shares: an integer from 0 to 4294967295 (token '4294967296')"),
        ("root 60 root 5", "exists by itself and cannot be defined (token 'root')"),
        ("unknown 60 root 5", "exists by itself and cannot be defined (token 'unknown')"),
    ] {
        assert_eq!(errors_in(FILE, &format!("grp1 50 root 10\n{text}\n")), [format!("{FILE}:2: {expected}")], "{text}");
    }
    assert_eq!(
        errors_in(FILE, "u1 60 root 5\nu1 61 root 6\n"),
        ["resource_group:2: the name is defined already (token 'u1')"]
    );
}

/// PBS-FS-02: PBS put a member with an undefined parent under the unknown users without a word.
#[test]
fn a_parent_must_stand_above_its_children() {
    assert_eq!(
        errors_in(FILE, "u1 60 grp1 5\ngrp1 50 root 10\n"),
        ["resource_group:1: no line above defines the parent (token 'grp1')"]
    );
}

/// PBS-FS-02: members of a group with a mistake are not mistakes.
#[test]
fn one_mistake_is_one_error() {
    assert_eq!(
        errors_in(FILE, "grp1 50 root many\nu1 60 grp1 5\nu2 61 grp1 5\n"),
        ["resource_group:1: expected shares: an integer from 0 to 4294967295 (token 'many')"]
    );
}

/// PBS-FS-01: a duplicate number is a warning.
#[test]
fn a_number_that_stands_twice_is_warned_of() {
    assert_eq!(
        warnings_in(FILE, "u1 60 root 5\nu2 60 root 5\n"),
        ["resource_group:2: the number is the one of line 1, too (token '60')"]
    );
}

/// PBS-FS-03: a chain of any length is refused with words, and the deepest tree that is allowed is exact.
#[test]
fn a_tree_has_a_deepest_level() {
    let chain = |levels: u32| {
        let line = |level: u32| {
            let parent = if level == 1 { "root".to_owned() } else { format!("g{}", level - 1) };
            format!("g{level} {level} {parent} 4294967291\nx{level} {} {parent} 4294967279\n", level + 1_000_000)
        };
        (1..=levels).map(line).collect::<String>()
    };
    let deepest = shares(&chain(DEEPEST));
    let name = format!("g{DEEPEST}");
    assert_eq!(deepest.find(&name).map(|member| member.depth), Some(DEEPEST));
    assert!(part(&deepest, &name).len() > 500);
    let errors = errors_in(FILE, &chain(DEEPEST + 1));
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert_eq!(errors[0], "resource_group:65: is more than 32 levels below the root (token 'g33')");
}

/// PBS-F-01: Z8, both names of the file are known.
#[test]
fn the_file_has_two_names() {
    let policy = policy(&[("resources_group", "bob 60 root 10\n")]);
    assert!(policy.shares.find("bob").is_some());
    let both = checked(&[("resources_group", "bob 60 root 10\n"), ("resource_group", "bob 60 root 10\n")]);
    let expected =
        "resources_group:1: resource_group is there as well: only one of them may be (token 'resources_group')";
    assert_eq!(shown(&both.errors), [expected]);
}
