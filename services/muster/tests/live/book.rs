//! The book is true: every block of it is executed, in order, and its pages show what really happens.

mod chapters;
mod pages;
pub mod python;

use crate::system::System;
use nix::sys::signal::Signal;
use std::{collections::BTreeSet, path::Path};

/// A command of a page, and the output that the page shows.
struct Shown<'a> {
    /// The line of the page.
    line: usize,
    command: String,
    output: Vec<&'a str>,
}

enum Content<'a> {
    Console(Vec<Shown<'a>>),
    /// Text that is not typed line by line: its language, and the text.
    Text(&'a str, String),
}

/// The part of a page between two fences, and its first line.
struct Block<'a> {
    line: usize,
    content: Content<'a>,
}

#[test]
fn the_first_page_of_the_book_is_true() {
    let text = page("docs/start-here.md");
    let mut system = System::stopped();
    for block in blocks(&text) {
        match block.content {
            Content::Text("sh", script) => drop(done(&system, &script)),
            Content::Text(language, _) => panic!("line {}: nobody knows how to execute {language}", block.line),
            Content::Console(commands) => commands.iter().for_each(|shown| follow(&mut system, shown)),
        }
    }
}

#[test]
fn the_thirty_seconds_of_the_readme_are_true() {
    let text = page("README.md");
    let mut system = System::stopped();
    for Block { line, content } in blocks(&text) {
        match content {
            Content::Text("sh", script) => {
                let is_ours = |line: &str| line.starts_with("ops/quickstart ") || line.starts_with("ops/test ");
                assert!(
                    script.lines().all(is_ours),
                    "line {line}: these build everything and run every test: {script}"
                );
            }
            Content::Text(language, _) => panic!("line {line}: nobody knows how to execute {language}"),
            Content::Console(commands) => {
                for shown in &commands {
                    // A person would not look this quickly.
                    if shown.command == "muster jobs" {
                        system.wait_for_state("1_6", "running");
                    }
                    follow(&mut system, shown);
                }
            }
        }
    }
}

/// The text of a page. `tests/tests/docs.rs` finds the pages that are executed by the calls of this and of `Chapter::new`.
fn page(file: &str) -> String {
    std::fs::read_to_string(repository().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn repository() -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    folder.canonicalize().expect("the repository")
}

fn follow(system: &mut System, shown: &Shown<'_>) {
    let words: Vec<&str> = shown.command.split_whitespace().collect();
    match words[..] {
        ["export", ..] => {}
        ["muster", "up", ref options @ ..] => {
            system.stop();
            let options: Vec<&str> = options.iter().copied().filter(|word| *word != "&").collect();
            system.restart(&options);
        }
        ["kill", "-9", ..] => system.signal(Signal::SIGKILL),
        // It needs a terminal and a person who leaves it; `steps.rs` tests such steps.
        ["muster", "step", "run", .., "--pty", _, "--", "top"] => {}
        // A person would not type the number of a new job this quickly.
        ["muster", "step", "run", ..] => {
            let job = words.iter().position(|word| *word == "--").map(|at| words[at - 1]);
            system.wait_for_state(job.expect("a command stands behind --"), "running");
            compare(shown, &words, &said(system, shown));
        }
        _ => compare(shown, &words, &said(system, shown)),
    }
}

/// The output of the command, or its error if the page shows one. Messages about waiting are on standard error.
fn said(system: &System, shown: &Shown<'_>) -> String {
    let output = system.shell(&shown.command);
    let is_error = shown.output.first().is_some_and(|line| line.starts_with("muster: "));
    assert_eq!(output.status != 0, is_error, "line {}: `{}` gave {output:?}", shown.line, shown.command);
    if is_error { output.stderr } else { output.stdout }
}

fn done(system: &System, script: &str) -> String {
    let output = system.shell(script);
    assert_eq!(output.status, 0, "{script}\n{output:?}");
    output.stdout
}

/// Compares what must be the same on any machine at any time: messages and files word for word, the headings of tables,
/// numbers and names of jobs, the history of a job.
fn compare(shown: &Shown<'_>, words: &[&str], seen: &str) {
    let page: Vec<&str> = shown.output.iter().copied().filter(|line| line.trim() != "...").collect();
    let seen: Vec<&str> = seen.lines().collect();
    let told = |what: &str| format!("line {}: `{}`: {what}\n{}", shown.line, shown.command, seen.join("\n"));
    match words {
        ["cat", ..] | ["muster", "submit", ..] | ["muster", "step", "run", ..] => {
            assert_eq!(sorted(&page), sorted(&seen), "{}", told("another output"));
        }
        ["muster", "job", "events", ..] => {
            let happened = |lines: &[&str]| sorted(lines).into_iter().map(sentence).collect::<BTreeSet<_>>();
            assert_eq!(happened(&page), happened(&seen), "{}", told("another history"));
        }
        // How far back ten seconds reaches depends on how quickly one types.
        ["muster", "jobs", ..] if !words.contains(&"--at") => {
            let jobs = |lines: &[&str]| lines.iter().map(|line| first_words(line, 2)).collect::<BTreeSet<_>>();
            let missing: Vec<_> = jobs(&page).difference(&jobs(&seen)).cloned().collect();
            assert!(missing.iter().all(|job| job.contains('[')), "{}", told(&format!("without {missing:?}")));
        }
        ["muster", "doctor" | "jobs" | "nodes" | "usage", ..] | ["muster", "step", "list", ..] => {
            let heading = |lines: &[&str]| lines.first().map(|line| first_words(line, usize::MAX));
            assert_eq!(heading(&page), heading(&seen), "{}", told("another heading"));
        }
        _ => {
            let start = |lines: &[&str]| lines.first().map(|line| first_words(line, 2));
            assert_eq!(start(&page), start(&seen), "{}", told("another beginning"));
        }
    }
}

fn sorted<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let mut lines = lines.to_vec();
    lines.sort_unstable();
    lines
}

fn first_words(line: &str, count: usize) -> String {
    line.split_whitespace().take(count).collect::<Vec<_>>().join(" ")
}

/// The text of a line of events after number, date, time and actor, without what varies between runs: the user, and
/// which of two nodes starts last.
fn sentence(line: &str) -> String {
    let user = std::env::var("USER").unwrap_or_default();
    let word = |word: &str| match word {
        "ada" | "root" => "USER".to_owned(),
        _ if word == user => "USER".to_owned(),
        _ => word.replace("node1", "NODE").replace("node2", "NODE"),
    };
    line.split_whitespace().skip(4).map(word).collect::<Vec<_>>().join(" ")
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((line, fence)) = lines.next() {
        let Some(language) = fence.strip_prefix("```").filter(|language| !language.is_empty()) else { continue };
        let inside: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| *line != "```").collect();
        let content = match language {
            "console" => Content::Console(commands(&inside)),
            _ => Content::Text(language, inside.iter().map(|(_, line)| format!("{line}\n")).collect()),
        };
        blocks.push(Block { line: line + 1, content });
    }
    blocks
}

fn commands<'a>(lines: &[(usize, &'a str)]) -> Vec<Shown<'a>> {
    let mut commands: Vec<Shown<'a>> = Vec::new();
    for (line, text) in lines {
        // Administrators have another prompt.
        match (text.strip_prefix("$ ").or(text.strip_prefix("# ")), commands.last_mut()) {
            (Some(command), _) => {
                commands.push(Shown { line: line + 1, command: command.to_owned(), output: Vec::new() });
            }
            (None, Some(shown)) if shown.output.is_empty() && shown.command.ends_with('\\') => {
                shown.command += &format!("\n{text}");
            }
            (None, Some(shown)) => shown.output.push(text),
            (None, None) => panic!("line {}: output of no command", line + 1),
        }
    }
    commands
}
