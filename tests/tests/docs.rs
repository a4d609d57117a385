//! The documentation holds together: links lead to files, and the book leads to every page. Pages, messages and
//! comments are in plain English.

use regex::Regex;
use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};

#[test]
fn every_relative_link_leads_to_a_file() {
    let root = root();
    let pages = files_below(&root).into_iter().filter(|path| is_page(path));
    let broken: Vec<String> = pages
        .flat_map(|page| links_of(&page).into_iter().map(move |link| (page.clone(), link)))
        .filter(|(_, link)| !link.exists())
        .map(|(page, link)| format!("{} -> {}", shown(&page), shown(&link)))
        .collect();
    assert!(broken.is_empty(), "links to what does not exist:\n{}", broken.join("\n"));
}

#[test]
fn the_book_leads_to_every_page() {
    let start = root().join("docs/README.md");
    let mut reached = BTreeSet::from([start.clone()]);
    let mut to_read = vec![start];
    while let Some(page) = to_read.pop() {
        let new = links_of(&page).into_iter().filter(|link| reached.insert(link.clone()));
        to_read.extend(new.filter(|link| is_page(link)));
    }
    let missed: Vec<String> = files_below(&root().join("docs"))
        .into_iter()
        .filter(|path| !reached.contains(path))
        .map(|path| shown(&path))
        .collect();
    assert!(missed.is_empty(), "no way leads from docs/README.md to:\n{}", missed.join("\n"));
}

#[test]
fn links_are_found() {
    let text = "[a](one.md) and [b](two/three.md#part), [c](https://example.org), [d](#here)\n\
                ```sh\necho [no](code.md)\n```\n`[no](quoted.md)` ![e](picture.png)\n";
    assert_eq!(targets(text), ["one.md", "two/three.md", "picture.png"]);
}

/// The turns of speech that readers stumbled over most often: a pattern, and what to write instead.
const TURNS: [(&str, &str); 5] = [
    (r"\banew\b", "again, or a word with re-"),
    (r"\b(?:go|goes|going|went|gone) on\b", "continue, keep running, carry on"),
    (
        r"\b(?:at most|at least|after|only|first|last|more than|to|of|for|in|with|out|every) so (?:many|much|long)\b|\bso (?:many|much) (?:of|as)\b|\bas (?:many|much|long)\b[^.|]*\bas may\b|(?:^|[.;:] )So (?:many|much|long)\b",
        "at most this many, a maximum of, limit reached",
    ),
    (
        r"(?:^|[.;:] )(?:- )?Of (?:a|an|the|those|these|each|what|it|all) |\b(?:is|are|be|was|were) of (?:a|an|the|another|one|this|that|two|other)\b",
        "the subject first: If a job ..., For each ...; belongs to",
    ),
    (
        r"(?:^|[.;:] )(?:- )?(?:Who(?:ever|m)?|What) (?:is|are|has|does|they|of|falls|comes|asks|wants|needs|runs|submits|stands|can|may)\b[^?|]*[,.]",
        "name the noun: A client that ..., Anything that ...",
    ),
];

/// Tokens of Rust that can contain a quote: comments, characters, and literals with their text. No source has
/// literals with `r##`.
const TOKENS: &str = r##"(?s)//[^\n]*|'(?:\\.[^']*|[^'\\\n])'|r#"(.*?)"#|r"([^"]*)"|"((?:\\.|[^"\\])*)""##;

/// Folders with sources whose comments are in plain English.
const PLAIN_COMMENTS: [&str; 4] = ["loadtest", "schemas", "services", "tests"];

/// Pages that people write. Generated pages follow their sources.
#[test]
fn pages_are_in_plain_english() {
    let generated = [root().join("docs/reference"), root().join("docs/conformance.md")];
    let prose = Prose::new();
    let is_written = |path: &PathBuf| is_page(path) && !generated.iter().any(|folder| path.starts_with(folder));
    let pages = files_below(&root()).into_iter().filter(is_written);
    let found: Vec<String> = pages
        .flat_map(|page| {
            let text = fs::read_to_string(&page).expect("a page can be read");
            let turns = prose.turns_in(&text);
            turns.into_iter().map(move |(line, turn, better)| format!("{}:{line}: `{turn}`: {better}", shown(&page)))
        })
        .collect();
    assert!(found.is_empty(), "say it plainly:\n{}", found.join("\n"));
}

/// Messages of programs: literals of more than one word.
#[test]
fn messages_are_in_plain_english() {
    let sources = ["schemas/src", "services"].map(|folder| files_below(&root().join(folder))).concat();
    let (sources, prose) = (sources.into_iter().filter(|path| is_source(path)), Prose::new());
    let found: Vec<String> = sources
        .flat_map(|source| {
            let text = fs::read_to_string(&source).expect("a source can be read");
            let messages = literals_in(&text).into_iter().filter(|(_, literal)| literal.contains(' '));
            let turns = messages.flat_map(|(line, literal)| {
                let turns = prose.turns_in(&literal).into_iter();
                turns.map(move |(_, turn, better)| format!("{line}: `{turn}`: {better}"))
            });
            turns.map(|turn| format!("{}:{turn}", shown(&source))).collect::<Vec<_>>()
        })
        .collect();
    assert!(found.is_empty(), "say it plainly:\n{}", found.join("\n"));
}

/// Comments of the sources below these folders.
#[test]
fn comments_are_in_plain_english() {
    let sources: Vec<PathBuf> = PLAIN_COMMENTS.iter().flat_map(|folder| files_below(&root().join(folder))).collect();
    let (sources, prose) = (sources.into_iter().filter(|path| is_source(path)), Prose::new());
    let found: Vec<String> = sources
        .flat_map(|source| {
            let text = fs::read_to_string(&source).expect("a source can be read");
            let turns = prose.turns_in(&comments_in(&text));
            turns.into_iter().map(move |(line, turn, better)| format!("{}:{line}: `{turn}`: {better}", shown(&source)))
        })
        .collect();
    assert!(found.is_empty(), "say it plainly:\n{}", found.join("\n"));
}

#[test]
fn turns_are_found_in_prose_only() {
    let text = "It goes on.\n```sh\nIt goes on.\n```\n`anew` is quoted.\nWhat is unused, is free.\n";
    let lines: Vec<usize> = Prose::new().turns_in(text).into_iter().map(|(line, ..)| line).collect();
    assert_eq!(lines, [1, 6]);
}

#[test]
fn literals_are_found() {
    let source = r##"// "no"
        fn f<'a>(c: char) -> &'a str {
            let q = ['"', '\'', '\\'];
            let raw = [r"C:\", r#"a "b" c"#];
            g("one \"two\"\nthree \
               four") }"##;
    let literals = [(4, "C:\\"), (4, "a \"b\" c"), (5, "one \\\"two\\\"\nthree four")];
    assert_eq!(literals_in(source), literals.map(|(line, text)| (line, text.to_owned())));
}

#[test]
fn comments_are_found() {
    let source = "//! One.\nfn f() { // two\n    g(\"// no\", '\"'); /// three\n}\n";
    assert_eq!(comments_in(source), "One.\ntwo\nthree\n");
}

fn root() -> PathBuf {
    normal(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// Whether the file is a Rust source below a folder `src`.
fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs") && shown(path).contains("/src/")
}

/// All files below a folder, except those of hidden folders and build results.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let entry = entry.expect("the folder can be read");
        let name = entry.file_name();
        let is_left_out = name.to_string_lossy().starts_with('.') || name == "target";
        match entry.file_type().expect("the entry can be looked at") {
            _ if is_left_out => {}
            kind if kind.is_dir() => files.extend(files_below(&entry.path())),
            _ => files.push(entry.path()),
        }
    }
    files.sort();
    files
}

/// The files that a page links to, whether they exist or not.
fn links_of(page: &Path) -> Vec<PathBuf> {
    let Ok(text) = fs::read_to_string(page) else { return Vec::new() };
    let folder = page.parent().unwrap_or(page);
    targets(&text).into_iter().map(|target| normal(&folder.join(target))).collect()
}

/// The relative targets of the links in a text, without the part after `#`.
fn targets(text: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            // Every second part is code: it is between backquotes.
            targets.extend(line.split('`').step_by(2).flat_map(targets_of_prose));
        }
    }
    targets
}

fn targets_of_prose(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let files = targets.map(|(target, _)| target.split('#').next().unwrap_or_default());
    files.filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

/// Finds turns in prose.
struct Prose {
    quoted: Regex,
    turns: [(Regex, &'static str); 5],
}

impl Prose {
    fn new() -> Self {
        let compiled = |text| Regex::new(text).expect("a regular expression");
        Self { quoted: compiled("`[^`]*`"), turns: TURNS.map(|(turn, better)| (compiled(turn), better)) }
    }

    /// Each hit with its line, the turn, and what to write instead. Blocks between fences and text between
    /// backquotes are not prose.
    fn turns_in(&self, text: &str) -> Vec<(usize, String, &'static str)> {
        let (mut is_fenced, mut found) = (false, Vec::new());
        for (number, line) in text.lines().enumerate() {
            if line.starts_with("```") {
                is_fenced = !is_fenced;
            }
            if is_fenced {
                continue;
            }
            let prose = self.quoted.replace_all(line, "``");
            for (turn, better) in &self.turns {
                found.extend(turn.find(&prose).map(|hit| (number + 1, hit.as_str().to_owned(), *better)));
            }
        }
        found
    }
}

/// The texts between quotes in a source, each with its line. Line breaks in them are real, and continued
/// lines are joined.
fn literals_in(source: &str) -> Vec<(usize, String)> {
    let tokens = Regex::new(TOKENS).expect("a regular expression");
    let continued = Regex::new(r"\\\n\s*").expect("a regular expression");
    let texts = tokens.captures_iter(source).filter_map(|found| (1..=3).find_map(|group| found.get(group)));
    texts
        .map(|text| {
            let line = 1 + source[..text.start()].matches('\n').count();
            (line, continued.replace_all(text.as_str(), "").replace("\\n", "\n"))
        })
        .collect()
}

/// The comments in a source, each on its line; the other lines are empty.
fn comments_in(source: &str) -> String {
    let tokens = Regex::new(TOKENS).expect("a regular expression");
    let mut lines = vec![""; source.lines().count()];
    for token in tokens.find_iter(source).filter(|token| token.as_str().starts_with("//")) {
        let line = source[..token.start()].matches('\n').count();
        lines[line] = token.as_str().trim_start_matches(['/', '!']).trim_start();
    }
    lines.join("\n")
}
