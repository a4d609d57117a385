//! `docs/conformance.md` maps promises and requirements to tests: the map must be true.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A test, and the ids that its doc comment names.
struct Test {
    file: String,
    name: String,
    ids: BTreeSet<String>,
}

/// The id and the text of each row; the tests of a row are found in the tests themselves.
fn rows() -> Vec<(String, String)> {
    let text = fs::read_to_string(map()).expect("docs/conformance.md");
    text.lines().filter_map(row).map(|(id, words)| (id.to_owned(), words.to_owned())).collect()
}

fn map() -> PathBuf {
    repository().join("docs/conformance.md")
}

fn row(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.strip_prefix("| ")?.split(" | ");
    let (id, words) = (cells.next()?, cells.next()?);
    is_id(id).then_some((id, words))
}

/// Whether it is an id such as `OAR-A-02`.
fn is_id(word: &str) -> bool {
    let mut parts = word.split('-');
    let (Some(spec), Some(chapter), Some(number), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let is_chapter = !chapter.is_empty() && chapter.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    ["M", "HPC", "SL", "PBS", "OAR"].contains(&spec) && is_chapter && is_number
}

/// The tests of the repository that name an id.
fn tests() -> Vec<Test> {
    let mut files = Vec::new();
    for folder in ["schemas", "services", "tests", "loadtest"] {
        sources_below(&repository().join(folder), &mut files);
    }
    files.sort();
    files.iter().flat_map(|file| tests_in(file)).filter(|test| !test.ids.is_empty()).collect()
}

fn sources_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            sources_below(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The tests of a file: functions behind a `#[test]` attribute of any kind.
fn tests_in(path: &Path) -> Vec<Test> {
    let text = fs::read_to_string(path).expect("a source file");
    let file = path.strip_prefix(repository()).expect("a file of the repository").display().to_string();
    let (mut tests, mut ids, mut is_test) = (Vec::new(), BTreeSet::new(), false);
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            let words = words.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
            ids.extend(words.filter(|word| is_id(word)).map(str::to_owned));
            continue;
        }
        if line.starts_with("#[") {
            is_test |= line.contains("test");
            continue;
        }
        let function = line.trim_start_matches("pub ").trim_start_matches("async ").strip_prefix("fn ");
        if let Some((name, _)) = function.and_then(|rest| rest.split_once('(')).filter(|_| is_test) {
            tests.push(Test { file: file.clone(), name: name.to_owned(), ids: std::mem::take(&mut ids) });
        }
        (ids, is_test) = (BTreeSet::new(), false);
    }
    tests
}

/// The map is made from the doc comments of the tests: `MUSTER_BLESS=1` rewrites it.
#[test]
fn the_map_names_all_tests_of_each_row() {
    let mut by_id: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for test in tests() {
        for id in test.ids {
            by_id.entry(id).or_default().entry(test.file.clone()).or_default().push(test.name.clone());
        }
    }
    let text = fs::read_to_string(map()).expect("docs/conformance.md");
    let mut made = String::new();
    for line in text.lines() {
        match row(line) {
            Some((id, words)) => made += &format!("| {id} | {words} | {} |\n", named(by_id.get(id), id)),
            None => made += &format!("{line}\n"),
        }
    }
    if std::env::var_os("MUSTER_BLESS").is_some() {
        fs::write(map(), &made).expect("the map can be written");
    }
    let stale = text.lines().zip(made.lines()).find(|(old, new)| old != new);
    let is_true = stale.is_none() || std::env::var_os("MUSTER_BLESS").is_some();
    assert!(is_true, "docs/conformance.md differs from the tests: write it with MUSTER_BLESS=1, review it: {stale:?}");
}

fn named(tests: Option<&BTreeMap<String, Vec<String>>>, id: &str) -> String {
    let files = tests.unwrap_or_else(|| panic!("no test names {id} in its doc comment"));
    let of_file = |(file, names): (&String, &Vec<String>)| format!("`{file}`: `{}`", names.join("`, `"));
    files.iter().map(of_file).collect::<Vec<_>>().join("; ")
}

/// Every id in a doc comment belongs to a row.
#[test]
fn every_id_that_a_test_names_has_its_row() {
    let rows: BTreeSet<String> = rows().into_iter().map(|(id, _)| id).collect();
    let unknown: Vec<String> = tests()
        .into_iter()
        .flat_map(|test| test.ids.into_iter().map(move |id| (id, test.file.clone(), test.name.clone())))
        .filter(|(id, ..)| !rows.contains(id))
        .map(|(id, file, name)| format!("{id}: {file} `{name}`"))
        .collect();
    assert_eq!(unknown, Vec::<String>::new());
}

#[test]
fn every_id_of_the_map_stands_once_and_is_known() {
    let mut seen = BTreeSet::new();
    let known = known_ids();
    let rows = rows();
    assert!(rows.len() > 50, "only {} rows were read", rows.len());
    for (id, _) in rows {
        assert!(seen.insert(id.clone()), "{id} stands twice");
        if let Some(known) = known.as_ref().filter(|_| !id.starts_with("M-")) {
            assert!(known.contains(&id), "{id} is in no specification");
        }
    }
}

/// Requirements that nobody has implemented: what `docs/oar.md` lists as not there yet.
const NOT_DONE: [&str; 3] = ["OAR-A-09", "OAR-G-19", "OAR-J-19"];

#[test]
fn what_is_not_done_has_neither_row_nor_test() {
    let rows: BTreeSet<String> = rows().into_iter().map(|(id, _)| id).collect();
    let named: BTreeSet<String> = tests().into_iter().flat_map(|test| test.ids).collect();
    let done: Vec<&str> = NOT_DONE.into_iter().filter(|id| rows.contains(*id) || named.contains(*id)).collect();
    assert_eq!(done, Vec::<&str>::new(), "these are done: they belong into docs/conformance.md, not into NOT_DONE");
}

#[test]
fn every_requirement_of_hpc_pack_slurm_and_oar_has_its_row() {
    let ids: BTreeSet<String> = rows().into_iter().map(|(id, ..)| id).collect();
    let is_meant = |id: &String| ["HPC-", "SL-", "OAR-"].iter().any(|of| id.starts_with(of));
    let missing = known_ids().unwrap_or_default().into_iter().filter(|id| is_meant(id) && !ids.contains(id));
    let missing: Vec<String> = missing.filter(|id| !NOT_DONE.contains(&id.as_str())).collect();
    assert_eq!(missing, Vec::<String>::new());
}

/// The ids of all specifications, which are beside the repository on developers' machines.
fn known_ids() -> Option<BTreeSet<String>> {
    let specification = |name: &str| fs::read_to_string(repository().join("../shared/spec").join(name));
    // The list lacks the last section of this one.
    let (Ok(list), Ok(slurm)) = (specification("ids.tsv"), specification("slurm-hetjobs.md")) else {
        muster_surroundings::skipped("the list of the specifications' ids is not beside the repository");
        return None;
    };
    let listed = list.lines().skip(1).filter_map(|line| line.split('\t').next());
    let written = slurm.lines().filter_map(|line| line.strip_prefix("- **")?.split("**").next());
    Some(listed.chain(written.filter(|word| is_id(word))).map(str::to_owned).collect())
}
