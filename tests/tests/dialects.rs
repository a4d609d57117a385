//! A dialect is one thing in one place: code that jobs of all dialects go through names none of them (decision 35).

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folders that know no dialect. They ask for differences through `services/dialects/dialect`.
const ROOMS: [&str; 8] = [
    "schemas",
    "services/bus",
    "services/domain",
    "services/executor",
    "services/ledger",
    "services/notifier",
    "services/planner",
    "services/planner-service",
];

/// What is left out of them: scheduling programs are those of one dialect, and plan in place of the planner.
const LEFT_OUT: [&str; 2] = ["services/planner-service/src/script.rs", "services/planner-service/src/script"];

/// The names of dialects, and the prefixes of their variables.
const WORDS: [&str; 7] = ["slurm", "sbatch", "hpcpack", "hpc pack", "ccp", "pbs", "oar"];

#[test]
fn no_room_of_all_dialects_names_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for file in ROOMS.iter().flat_map(|room| sources_below(&root.join(room).join("src"))) {
        if LEFT_OUT.iter().any(|left_out| file.starts_with(root.join(left_out))) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source is text");
        let shown = file.strip_prefix(&root).unwrap_or(&file).display();
        let lines = text.lines().zip(1..).filter_map(|(line, number)| Some((number, word_in(line)?)));
        found.extend(lines.map(|(number, word)| format!("{shown}:{number}: `{word}`")));
    }
    assert!(found.is_empty(), "words of a dialect where none is known:\n{}", found.join("\n"));
}

/// The sources below a folder, without those of tests.
fn sources_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a room has sources") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            files.extend(sources_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
    files
}

/// The first word of a dialect in a line, even inside a name such as `muster_slurm`. The ids of requirements, such as
/// `OAR-S-06`, name a document and not a dialect.
fn word_in(line: &str) -> Option<&'static str> {
    let line = line.to_lowercase();
    WORDS.into_iter().find(|word| {
        line.match_indices(word).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + word.len()..]);
            // Short ones occur in other words, such as `board`.
            let is_whole = word.len() > 3 || !after.starts_with(char::is_alphanumeric);
            is_whole && !before.ends_with(char::is_alphanumeric) && !is_rest_of_id(after)
        })
    })
}

/// Whether the text continues an id: `-S-06`.
fn is_rest_of_id(text: &str) -> bool {
    let mut parts = text.split('-');
    let is_word = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    parts.next() == Some("")
        && parts.next().is_some_and(is_word)
        && parts.next().is_some_and(|number| number.starts_with(|character: char| character.is_ascii_digit()))
}

#[test]
fn words_are_found_and_ids_are_not() {
    for (line, word) in [
        ("    order.environment.get(\"SLURM_SUBMIT_HOST\")?;", Some("slurm")),
        ("use muster_slurm::mail;", Some("slurm")),
        ("/// Those of Slurm, such as", Some("slurm")),
        ("// as HPC Pack has them", Some("hpc pack")),
        ("/// Suspended time does not use up the walltime (OAR-S-06).", None),
        ("/// As OAR has it (OAR-S-06).", Some("oar")),
        ("    set(\"CCP_JOBID\", id);", Some("ccp")),
        ("    set(\"SLURMD_NODENAME\", name);", Some("slurm")),
        ("let board = soar;", None),
    ] {
        assert_eq!(word_in(line), word, "{line}");
    }
}
