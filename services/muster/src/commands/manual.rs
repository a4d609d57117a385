//! `muster completions` and `muster man`.

use crate::{cli::Cli, exit::CommandResult};
use clap::CommandFactory;
use std::path::Path;

/// Prints completions for a shell.
pub fn completions(shell: clap_complete::Shell) -> CommandResult {
    clap_complete::generate(shell, &mut Cli::command(), "muster", &mut std::io::stdout());
    Ok(0)
}

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
    let written = write_pages(dir, &command)?;
    println!("wrote {written} pages to {}", dir.display());
    Ok(0)
}

fn write_pages(dir: &Path, command: &clap::Command) -> std::io::Result<usize> {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    std::fs::write(dir.join(page.get_filename()), text)?;
    let mut written = 1;
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        written += write_pages(dir, subcommand)?;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    const HEAD: &str = "# Commands\n\n\
        <!-- Made from the program. To change it, change `services/muster/src/cli.rs` or `job_options.rs`. -->\n\n\
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

    #[test]
    fn the_commands_in_the_docs_are_these() {
        let mut command = Cli::command().disable_help_subcommand(true).version("");
        command.build();
        let mut text = String::from(HEAD);
        write_help(&mut text, &mut command, 0);
        crate::testing::assert_file_is(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/commands.md"), &text);
    }
}
