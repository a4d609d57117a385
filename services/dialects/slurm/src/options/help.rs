//! The output of `--help`, `--usage` and `--version` (SL-C-01), made from the table of options.

use super::{Argument, Command, Heading, OPTIONS, OptionSpec, SiteOptions};
use std::fmt::Write;

/// The release of Slurm with these command lines and this output.
pub const RELEASE: &str = "26.11.0";

/// The line of `--version`, with the shown version of Slurm and muster's own.
pub fn version(release: &str, muster: &str) -> String {
    format!("slurm {release} (muster {muster})\n")
}

/// The text of `--help`.
pub fn help(command: Command, site: SiteOptions) -> String {
    let mut text = first_line(command);
    for heading in Heading::ALL {
        let options: Vec<&OptionSpec> = options_of(command, site).filter(|option| option.heading == heading).collect();
        if options.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{heading}\n"));
        for option in options {
            push_option(&mut text, option);
        }
    }
    text
}

/// The text of `--usage`.
pub fn usage(command: Command, site: SiteOptions) -> String {
    let mut text = first_line(command);
    let mut line = String::from("   ");
    for option in options_of(command, site) {
        let word = match option.short {
            Some(letter) => format!(" [-{letter}{}]", value(option, " ")),
            None => format!(" [--{}{}]", option.name, value(option, "=")),
        };
        if line.len() + word.len() > 100 {
            text.push_str(&line);
            text.push('\n');
            line = String::from("   ");
        }
        line.push_str(&word);
    }
    text + &line + "\n"
}

fn first_line(command: Command) -> String {
    let operands = match command {
        Command::Sbatch => "[ : [OPTIONS...]] SCRIPT [ARGUMENTS...]",
        Command::Salloc => "[ : [OPTIONS...]] [COMMAND [ARGUMENTS...]]",
        Command::Srun => "PROGRAM [ARGUMENTS...] [ : [OPTIONS...] PROGRAM [ARGUMENTS...]]",
    };
    format!("Usage: {command} [OPTIONS...] {operands}\n")
}

fn options_of(command: Command, site: SiteOptions) -> impl Iterator<Item = &'static OptionSpec> {
    OPTIONS.iter().chain(site.all()).filter(move |option| option.commands.contains(command))
}

fn value(option: &OptionSpec, separator: &str) -> String {
    match option.argument {
        Argument::Flag => String::new(),
        Argument::Required(_) => format!("{separator}{}", option.value_name),
        Argument::Optional(_) => format!("[{}{}]", separator.trim_start(), option.value_name),
    }
}

fn push_option(text: &mut String, option: &OptionSpec) {
    let short = option.short.map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
    let name = format!("{short}--{}{}", option.name, value(option, "="));
    let result = writeln!(text, "  {name:<34} {}", option.help);
    debug_assert!(result.is_ok(), "writing to a string never fails");
}
