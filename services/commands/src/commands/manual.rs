//! `muster man` and `muster version`.

use crate::{cli::Cli, examples, exit::CommandResult};
use clap::CommandFactory;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use std::path::Path;

/// The exit statuses of every command; `docs/reference/exit-status.md` is the contract.
const STATUSES: [(&str, &str); 6] = [
    ("0", "Done."),
    ("1", "Refused or failed; the reason is on standard error."),
    ("2", "Wrong usage; nothing was asked."),
    ("3", "No permission."),
    ("4", "What was named does not exist."),
    ("5", "The service cannot be reached; nothing changed."),
];
/// Commands that exit with the status of the job or step they stand for.
const STAND_FOR_OTHERS: [&str; 5] = ["submit", "run", "shell", "step run", "job wait"];

/// Further meanings of the statuses of `audit verify`, the same as those of `ops/verify-bundle`.
const OF_VERIFY: [(&str, &str); 3] = [
    ("1", "Something was altered."),
    ("2", "The history is damaged, or cannot be read."),
    ("3", "Nothing contradicts, but not all of it is proven."),
];

/// Prints the version.
pub fn version() -> CommandResult {
    println!("{}", Cli::command().render_version().trim_end());
    Ok(0)
}

/// Writes one manual page for each command.
pub fn man(dir: &Path) -> CommandResult {
    std::fs::create_dir_all(dir)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let written = write_pages(dir, &command, "")?;
    println!("wrote {written} pages to {}", dir.display());
    Ok(0)
}

fn write_pages(dir: &Path, command: &clap::Command, words: &str) -> std::io::Result<usize> {
    let page = clap_mangen::Man::new(command.clone());
    std::fs::write(dir.join(page.get_filename()), text_of(&page, command, words)?)?;
    let mut written = 1;
    for below in shown_below(command) {
        written += write_pages(dir, below, format!("{words} {}", below.get_name()).trim_start())?;
    }
    Ok(written)
}

fn shown_below(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set())
}

/// The page of a command; `words` are its words after `muster`.
fn text_of(page: &clap_mangen::Man, command: &clap::Command, words: &str) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if shown_below(command).next().is_some() {
        page.render_subcommands_section(&mut text)?;
    }
    further_sections(command, words).to_writer(&mut text)?;
    Ok(text)
}

fn further_sections(command: &clap::Command, words: &str) -> Roff {
    let mut roff = Roff::new();
    let examples = examples::of(words);
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
        examples.iter().for_each(|(line, what)| entry(&mut roff, bold(*line), &capital(what)));
    }
    roff.control("SH", ["EXIT STATUS"]);
    if STAND_FOR_OTHERS.contains(&words) {
        roff.text([roman(
            "The status of the job or step it waited for (128 plus the number for a signal); otherwise:",
        )]);
    }
    let own: &[(&str, &str)] = if words == "audit verify" { &OF_VERIFY } else { &[] };
    own.iter().chain(&STATUSES).for_each(|(status, what)| entry(&mut roff, bold(*status), what));
    roff.control("SH", ["ENVIRONMENT"]);
    for argument in command.get_arguments() {
        if let Some(variable) = argument.get_env() {
            let option = argument.get_long().map(|long| format!("As --{long}: ")).unwrap_or_default();
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            entry(&mut roff, bold(variable.to_string_lossy()), &format!("{option}{help}."));
        }
    }
    entry(&mut roff, bold("NO_COLOR"), "If it is not empty nothing is coloured.");
    entry(&mut roff, bold("TZ"), "The zone of times that are typed and shown.");
    roff.control("SH", ["SEE ALSO"]);
    roff.text(see_also(command, words));
    roff
}

fn entry(roff: &mut Roff, tag: Inline, text: &str) {
    roff.control("TP", []);
    roff.text([tag]);
    roff.text([roman(text)]);
}

/// Words as a sentence, with a capital and a full stop.
fn capital(words: &str) -> String {
    let mut characters = words.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", characters.as_str())
}

/// The pages of the commands above and below.
fn see_also(command: &clap::Command, words: &str) -> Vec<Inline> {
    let parts: Vec<&str> = words.split_whitespace().collect();
    let page_of = |parts: &[&str]| std::iter::once(&"muster").chain(parts).copied().collect::<Vec<_>>().join("-");
    let above = (0..parts.len()).map(|count| page_of(&parts[..count]));
    let below = shown_below(command).map(|below| format!("{}-{}", page_of(&parts), below.get_name()));
    let pages: Vec<String> = above.chain(below).collect();
    let mut inlines = Vec::new();
    for (at, page) in pages.iter().enumerate() {
        inlines.extend([italic(page.as_str()), roman(if at + 1 == pages.len() { "(1)" } else { "(1), " })]);
    }
    inlines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    const HEAD: &str = "# Commands\n\n\
        <!-- Made from the program. To change it, change `services/commands/src/cli.rs` or `job_options.rs`. -->\n\n\
        What `muster COMMAND --help` says. How values are written is in [scripts.md](scripts.md), what a command exits with in\n\
        [exit-status.md](exit-status.md). `--json` prints what the HTTP API answers, and its keys are as stable: they are described\n\
        in `schemas/openapi.json`.\n";

    fn write_help(text: &mut String, command: &mut clap::Command, depth: usize) {
        let help = command.clone().term_width(100).render_help().to_string();
        let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        let heading = "#".repeat(depth + 2);
        writeln!(text, "\n{heading} `{name}`\n\n```text\n{}\n```", lines.join("\n").trim()).unwrap();
        for subcommand in command.get_subcommands_mut() {
            write_help(text, subcommand, 1);
        }
    }

    /// D26
    #[test]
    fn every_page_has_the_sections_that_people_look_for() {
        let folder = tempfile::tempdir().unwrap();
        man(folder.path()).unwrap();
        let pages: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(pages.len() > 60, "{} pages", pages.len());
        for page in &pages {
            let text = std::fs::read_to_string(page).unwrap();
            for section in ["SYNOPSIS", "EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "SEE ALSO"] {
                assert!(text.contains(section), "{}: {section}", page.display());
            }
            // Every page that is referred to exists.
            let also =
                text.split("SEE ALSO").nth(1).unwrap().replace("\\fI", " ").replace("\\-", "-").replace("\\fR", "");
            for named in also.split([' ', ',', '\n']).filter_map(|word| word.strip_suffix("(1)")) {
                assert!(folder.path().join(format!("{named}.1")).exists(), "{}: {named}", page.display());
            }
        }
        let submit = std::fs::read_to_string(folder.path().join("muster-submit.1")).unwrap();
        assert!(submit.contains("MUSTER_SERVER"), "{submit}");
    }

    #[test]
    fn the_commands_in_the_docs_are_these() {
        let mut command = examples::added_to(Cli::command()).disable_help_subcommand(true).version("");
        command.build();
        let mut text = String::from(HEAD);
        write_help(&mut text, &mut command, 0);
        muster_surroundings::assert_file_is(
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/commands.md"),
            &text,
        );
    }
}
