//! `docs/conformance.md` maps promises and requirements to tests: the map must be true.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Id, file and test of each row.
fn rows() -> Vec<(String, String, String)> {
    let text = fs::read_to_string(repository().join("docs/conformance.md")).expect("docs/conformance.md");
    let mut rows = Vec::new();
    for line in
        text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| id ") && !line.contains("---"))
    {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [id, _, test] = cells[..] else { panic!("not a row of three cells: {line}") };
        let quoted: Vec<&str> = test.split('`').filter(|part| !part.trim().is_empty()).collect();
        let [file, name] = quoted[..] else { panic!("not a file and a test: {line}") };
        rows.push((id.to_owned(), file.to_owned(), name.to_owned()));
    }
    rows
}

#[test]
fn every_test_of_the_map_exists() {
    let rows = rows();
    assert!(rows.len() > 50, "only {} rows were read", rows.len());
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for (id, file, name) in &rows {
        let source = files.entry(file).or_insert_with(|| {
            fs::read_to_string(repository().join(file)).unwrap_or_else(|error| panic!("{id}: {file}: {error}"))
        });
        assert!(source.contains(&format!("fn {name}(")), "{id}: {file} has no test `{name}`");
    }
}

#[test]
fn every_id_of_the_map_stands_once_and_is_known() {
    let mut seen = BTreeSet::new();
    let known = known_ids();
    for (id, ..) in rows() {
        assert!(seen.insert(id.clone()), "{id} stands twice");
        let parts: Vec<&str> = id.split('-').collect();
        let well_formed = parts.len() == 3 && parts[2].bytes().all(|byte| byte.is_ascii_digit());
        assert!(well_formed, "{id} is not an id such as OAR-A-02");
        if let Some(known) = known.as_ref().filter(|_| parts[0] != "M") {
            assert!(known.contains(&id), "{id} is in no specification");
        }
    }
}

/// What the specifications let wait and nobody has done: directives of other systems in batch scripts, old names of
/// variables, Perl, a window for it all, and options that sites add.
const NOT_DONE: [&str; 5] = ["SL-C-16", "SL-E-14", "SL-L-09", "SL-M-16", "SL-S-22"];

#[test]
fn every_requirement_of_hpc_pack_and_slurm_has_its_row() {
    let ids: BTreeSet<String> = rows().into_iter().map(|(id, ..)| id).collect();
    let is_of_both = |id: &String| id.starts_with("HPC-") || id.starts_with("SL-");
    let missing = known_ids().unwrap_or_default().into_iter().filter(|id| is_of_both(id) && !ids.contains(id));
    let missing: Vec<String> = missing.filter(|id| !NOT_DONE.contains(&id.as_str())).collect();
    assert_eq!(missing, Vec::<String>::new());
}

/// The ids of all specifications, which lie beside the repository where it is developed.
fn known_ids() -> Option<BTreeSet<String>> {
    let list = fs::read_to_string(repository().join("../shared/spec/ids.tsv")).ok()?;
    Some(list.lines().skip(1).filter_map(|line| line.split('\t').next()).map(str::to_owned).collect())
}
