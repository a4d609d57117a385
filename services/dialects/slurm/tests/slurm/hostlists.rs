//! Lists of node names and of counts.

use muster_slurm::hostlist::{HostlistError, compress, compress_counts, compress_sorted, expand, expand_counts};
use proptest::{collection::vec, prelude::*};

/// SL-C-05.
#[test]
fn lists_are_expanded_in_the_order_written() {
    assert_eq!(expand("nid[00001-00003,00011]").unwrap(), ["nid00001", "nid00002", "nid00003", "nid00011"]);
    assert_eq!(expand("b,a[9-11]").unwrap(), ["b", "a9", "a10", "a11"]);
    assert_eq!(expand("r[1-2]n[08-09]-ib").unwrap(), ["r1n08-ib", "r1n09-ib", "r2n08-ib", "r2n09-ib"]);
    assert!(expand("").unwrap().is_empty());
}

/// SL-C-05.
#[test]
fn names_are_compressed_in_their_order() {
    assert_eq!(compress(&["a1", "a2", "a4"]), "a[1-2,4]");
    assert_eq!(compress(&["x", "a1", "b1", "a2"]), "x,a1,b1,a2");
    assert_eq!(compress(&["a9", "a10", "a11"]), "a[9-11]");
    assert_eq!(compress::<&str>(&[]), "");
}

/// SL-E-09: zero padding kept, numeric order.
#[test]
fn the_list_of_a_job_is_in_numeric_order_with_its_zeros() {
    assert_eq!(compress_sorted(&["nid00012", "nid00001", "nid00011"]), "nid[00001,00011-00012]");
    assert_eq!(compress_sorted(&["n10", "n9", "n9", "n11"]), "n[9-11]");
    assert_eq!(compress_sorted(&["a1", "a01"]), "a01,a1");
    assert_eq!(compress_sorted(&["a099", "a100"]), "a[099-100]");
}

#[test]
fn what_is_no_list_is_told() {
    assert_eq!(expand("n[1-3"), Err(HostlistError::Brackets("n[1-3".into())));
    assert_eq!(expand("n1]"), Err(HostlistError::Brackets("n1]".into())));
    assert_eq!(expand("a,,b"), Err(HostlistError::EmptyName("a,,b".into())));
    assert_eq!(expand("n[3-1]"), Err(HostlistError::Range("3-1".into())));
    assert_eq!(expand("n[]"), Err(HostlistError::Range(String::new())));
    assert_eq!(expand("n[1-4000000000]"), Err(HostlistError::TooMany));
}

/// SL-E-09.
#[test]
fn equal_neighbours_of_counts_are_joined() {
    assert_eq!(compress_counts(&[4, 4]), "4(x2)");
    assert_eq!(compress_counts(&[72, 72, 36]), "72(x2),36");
    assert_eq!(compress_counts(&[1, 2, 1]), "1,2,1");
    assert_eq!(expand_counts("72(x2),36"), Some(vec![72, 72, 36]));
    assert_eq!(expand_counts("72(x2"), None);
    assert_eq!(expand_counts("1(x99999999999)"), None);
    assert_eq!(expand_counts("1(x600000),2(x600000)"), None, "so many together");
}

fn names() -> impl Strategy<Value = Vec<String>> {
    let name =
        ("[a-z]{1,2}(-)?", 0u32..30, 0usize..4).prop_map(|(stem, number, width)| format!("{stem}{number:0width$}"));
    vec(prop_oneof![4 => name, 1 => "[a-z]{1,5}".prop_map(|text| text)], 0..30)
}

proptest! {
    /// SL-C-05: compressed names expand to the same names.
    #[test]
    fn compressed_names_are_expanded_to_the_same(names in names()) {
        prop_assert_eq!(expand(&compress(&names)).unwrap(), names);
    }

    /// SL-E-09: the sorted list has the same names, each once.
    #[test]
    fn sorting_loses_and_adds_no_name(names in names()) {
        let mut expected = names.clone();
        expected.sort();
        expected.dedup();
        let mut sorted = expand(&compress_sorted(&names)).unwrap();
        sorted.sort();
        prop_assert_eq!(sorted, expected);
    }

    #[test]
    fn counts_are_read_as_they_were_written(counts in vec(0u64..5, 0..30)) {
        prop_assert_eq!(expand_counts(&compress_counts(&counts)).unwrap(), counts);
    }

    #[test]
    fn any_text_is_a_list_or_told(text in "[a-z0-9\\[\\],x()-]{0,30}|\\PC{0,30}") {
        let _ = expand_counts(&text);
        if let Ok(names) = expand(&text) {
            prop_assert_eq!(text.is_empty(), names.is_empty());
        }
    }
}
