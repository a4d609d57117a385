//! `muster completions` and `muster man`.

use crate::{cli::Cli, exit::CommandResult};
use clap::CommandFactory;
use std::path::Path;

/// Prints completions for a shell.
pub fn completions(shell: clap_complete::Shell) -> CommandResult {
    clap_complete::generate(shell, &mut Cli::command(), "muster", &mut std::io::stdout());
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
