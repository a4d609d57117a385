//! Scripts, directives and variables.

use muster_pbs::{
    script::{check, directives, prefix, words},
    variables,
};
use proptest::prelude::*;

#[test]
fn directives_end_at_the_first_command() {
    let text = "#!/bin/bash\n\n# a comment\n#PBS -N test # trailing\n  #PBS -l select=1:ncpus=2\n:\n#PBSX -N no\n\
                #PBS-q batch\necho\n#PBS -N late\n";
    let found: Vec<(usize, Vec<String>)> =
        directives(text, "#PBS").unwrap().into_iter().map(|one| (one.line, one.words)).collect();
    let expected = [(4, vec!["-N", "test"]), (5, vec!["-l", "select=1:ncpus=2"]), (8, vec!["-q", "batch"])];
    let expected: Vec<(usize, Vec<String>)> =
        expected.into_iter().map(|(line, words)| (line, words.into_iter().map(str::to_owned).collect())).collect();
    assert_eq!(found, expected);
    assert_eq!(directives("#$ -N a\n", "#$").unwrap().len(), 1);
    let message = directives("#PBS -N 'a\n", "#PBS").unwrap_err().to_string();
    assert_eq!(message, "line 1: unmatched ' in `-N 'a`");
}

#[test]
fn the_prefix_is_that_of_the_option_then_of_the_variable() {
    assert_eq!(prefix(None, None), Some("#PBS"));
    assert_eq!(prefix(None, Some("#QSUB")), Some("#QSUB"));
    assert_eq!(prefix(Some("#X"), Some("#QSUB")), Some("#X"));
    assert_eq!(prefix(Some(""), None), None);
}

#[test]
fn only_text_is_submitted() {
    for bytes in [&b""[..], b" \n\t", b"a\0b", b"#!/bin/sh\r\ntrue\r\n", b"\xff\xfe"] {
        assert!(check(bytes).is_err(), "{bytes:?}");
    }
    assert_eq!(check(b"true\n"), Ok("true\n"));
}

#[test]
fn variables_have_values_or_take_the_submitters() {
    let read = |text: &str| -> Vec<(String, Option<String>)> {
        variables::parse(text).unwrap().into_iter().map(|one| (one.name, one.value)).collect()
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        read("A, B=1,C=\"x,y\",D=p\\,q,E=,F='a=b'"),
        [
            ("A".to_owned(), None),
            ("B".to_owned(), some("1")),
            ("C".to_owned(), some("x,y")),
            ("D".to_owned(), some("p,q")),
            ("E".to_owned(), some("")),
            ("F".to_owned(), some("a=b")),
        ]
    );
    for text in ["=1", "a b=1", "A=\"x"] {
        assert!(variables::parse(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn no_script_makes_directives_panic(text in "(\\PC|\n){0,80}", likely in "(#PBS|[ a-z#'\"\\\\\n-]){0,40}") {
        for text in [&text, &likely] {
            let _ = (directives(text, "#PBS"), words(text, 1), variables::parse(text), check(text.as_bytes()));
        }
    }
}
