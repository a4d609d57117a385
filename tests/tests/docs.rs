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

/// Pages with commands or files that no test executes, and why.
const NOT_EXECUTED: [(&str, &str); 4] = [
    ("CONTRIBUTING.md", "its scripts build everything and run every test"),
    ("docs/performance.md", "its programs measure for hours, on a machine of their own"),
    ("ops/systemd/README.md", "it installs services on a host that systemd has started"),
    ("tests/fuzz/README.md", "it needs a program from the registry and runs for minutes"),
];

/// The sources of the tests that execute pages.
const EXECUTING: [&str; 2] = ["services/muster/tests/live/book.rs", "services/muster/tests/live/book"];

/// Each block between fences says its language, and a page with blocks that are more than text is executed by the tests
/// of the book.
#[test]
fn every_page_with_commands_or_files_is_executed() {
    let executed = executed_pages();
    let mut faults = Vec::new();
    let mut with_blocks = BTreeSet::new();
    for page in files_below(&root()).into_iter().filter(|path| is_page(path)) {
        let (name, text) = (shown(&page), fs::read_to_string(&page).expect("a page can be read"));
        for Fenced { line, language, first } in fenced(&text) {
            let is_typed = first.starts_with("$ ") || first.starts_with("# ");
            match language {
                "" => faults.push(format!("{name}:{line}: a block without a language")),
                "text" if is_typed => faults.push(format!("{name}:{line}: commands are `console`, not `text`")),
                "text" => {}
                _ => drop(with_blocks.insert(name.clone())),
            }
        }
    }
    let left_out: BTreeSet<String> = NOT_EXECUTED.iter().map(|(page, _)| (*page).to_owned()).collect();
    let known: BTreeSet<String> = executed.union(&left_out).cloned().collect();
    let tell = |page: &String, what: &str| format!("{page}: {what}");
    faults.extend(with_blocks.difference(&known).map(|page| tell(page, "no test executes its blocks")));
    faults.extend(known.difference(&with_blocks).map(|page| tell(page, "there is nothing to execute")));
    faults.extend(executed.intersection(&left_out).map(|page| tell(page, "it is executed and left out")));
    assert!(faults.is_empty(), "pages that nobody tries:\n{}", faults.join("\n"));
}

/// The pages that the tests of the book name where they execute them.
fn executed_pages() -> BTreeSet<String> {
    let call = Regex::new(r#"\b(?:Chapter::new|page)\(\s*"([^"]+\.md)""#).expect("a regular expression");
    let [file, folder] = EXECUTING.map(|path| root().join(path));
    let sources = files_below(&folder).into_iter().chain([file]);
    let texts = sources.map(|source| fs::read_to_string(source).expect("a source can be read"));
    let pages = texts.flat_map(|text| call.captures_iter(&text).map(|found| found[1].to_owned()).collect::<Vec<_>>());
    pages.collect()
}

/// The start of a block between fences: its line, its language, and what its first line says.
struct Fenced<'a> {
    line: usize,
    language: &'a str,
    first: &'a str,
}

fn fenced(text: &str) -> Vec<Fenced<'_>> {
    let (mut blocks, mut is_inside) = (Vec::new(), false);
    let mut lines = text.lines().enumerate().peekable();
    while let Some((line, text)) = lines.next() {
        let Some(language) = text.trim_start().strip_prefix("```") else { continue };
        is_inside = !is_inside;
        if is_inside {
            let first = lines.peek().map_or("", |(_, first)| *first);
            blocks.push(Fenced { line: line + 1, language: language.trim(), first });
        }
    }
    blocks
}

#[test]
fn blocks_are_found() {
    let text = "a\n```sh\nb\n```\n```\n$ c\n```\n";
    let found: Vec<_> = fenced(text).iter().map(|block| (block.line, block.language, block.first)).collect();
    assert_eq!(found, [(2, "sh", "b"), (5, "", "$ c")]);
}

/// Beginnings of messages that are no commands: `muster is ready`.
const NO_COMMANDS: [&str; 1] = ["is"];

/// Each command that pages, messages and comments name between backquotes is one that `muster` has, as the page made from
/// the program lists them.
#[test]
fn commands_that_are_named_exist() {
    let commands = Commands::new();
    let mut faults = Vec::new();
    for file in files_below(&root()).into_iter().filter(|path| is_page(path) || is_source(path)) {
        let text = fs::read_to_string(&file).expect("a text can be read");
        let texts = if is_page(&file) {
            vec![(1, text)]
        } else {
            literals_in(&text).into_iter().chain([(1, comments_in(&text))]).collect()
        };
        for (start, text) in texts {
            for (line, command) in commands.unknown_in(&text) {
                faults.push(format!("{}:{}: `{command}`", shown(&file), start + line));
            }
        }
    }
    assert!(faults.is_empty(), "there are no such commands:\n{}", faults.join("\n"));
}

#[test]
fn commands_that_do_not_exist_are_found() {
    let text =
        "`muster jobs`, `muster polcy` and\n`muster --data DIR job hodl 7`, `muster job hold 7`, `muster logs x`";
    let found = Commands::new().unknown_in(text);
    assert_eq!(found, [(0, "muster polcy".to_owned()), (1, "muster job hodl".to_owned())]);
}

/// The commands of `muster`, and those below each.
struct Commands {
    known: BTreeSet<String>,
    quoted: Regex,
}

impl Commands {
    fn new() -> Self {
        let page = fs::read_to_string(root().join("docs/reference/commands.md")).expect("the page can be read");
        let heading = Regex::new("(?m)^### `muster ([^`]+)`$").expect("a regular expression");
        let alias = Regex::new(r"(?m)^  [a-z-]+ .*\[alias: ([a-z]+)\]").expect("a regular expression");
        let named = [heading, alias]
            .into_iter()
            .flat_map(|pattern| pattern.captures_iter(&page).map(|found| found[1].to_owned()).collect::<Vec<_>>());
        Self {
            known: named.collect(),
            quoted: Regex::new(r"`(?:sudo )?muster ([^`]+)`").expect("a regular expression"),
        }
    }

    /// Each unknown command with its line, counted from 0.
    fn unknown_in(&self, text: &str) -> Vec<(usize, String)> {
        let lines = text.lines().enumerate();
        let spans = lines.flat_map(|(line, text)| self.quoted.captures_iter(text).map(move |span| (line, span)));
        spans.filter_map(|(line, span)| Some((line, self.unknown(span.get(1)?.as_str())?))).collect()
    }

    /// The words of a command that does not exist. What a command without other commands gets are its arguments.
    fn unknown(&self, line: &str) -> Option<String> {
        let mut words = line.split_whitespace().skip_while({
            let mut is_value = false;
            move |word: &&str| {
                let is_option = word.starts_with('-');
                let skips = is_option || is_value;
                is_value = is_option && !word.contains('=');
                skips
            }
        });
        let is_name = |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
        let first = words.next().filter(is_name).filter(|word| !NO_COMMANDS.contains(word))?;
        if !self.known.contains(first) {
            return Some(format!("muster {first}"));
        }
        let has_others = self.known.iter().any(|known| known.split_once(' ').is_some_and(|(group, _)| group == first));
        let second = words.next().filter(is_name).filter(|word| has_others && !word.starts_with('-'))?;
        let both = format!("{first} {second}");
        (!self.known.contains(&both)).then(|| format!("muster {both}"))
    }
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
