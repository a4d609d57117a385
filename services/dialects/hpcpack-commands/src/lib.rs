//! The commands of the HPC Pack dialect, `job`, `jobtemplate` and `cluscfg` (HPC-C-01..09): they read files, ask the
//! system and print. `muster-hpcpack`, which does none of that, knows words, descriptions and tables.

mod call;
mod change;
mod cluscfg;
mod grammar;
mod job;
mod make;
mod show;
mod template;

pub use call::{TOOLS, is_link, rewritten};
pub use cluscfg::run as cluscfg;
pub use grammar::HpcpackVerb;
pub use job::run as job;
pub use make::read_file;
pub use template::run as template;

use muster_cli::{
    connection::ConnectionOptions,
    exit::{Failure, Status},
    stderr_line,
};
use muster_hpcpack::{
    codes::Code,
    options::{self, OptionError, OtherCommand, Takes},
};
use std::path::Path;

/// Reads a command line of `jobtemplate` or `cluscfg`; `None` if it asks for the usage, which is then printed.
fn read<'w>(
    words: &[&'w str],
    known: &[(&'static str, Takes)],
    usage: &str,
) -> Result<Option<OtherCommand<'w>>, Failure> {
    let command = options::others(words, known).map_err(|errors| wrong(&errors))?;
    if command.options.contains_key("help") {
        println!("{usage}");
        return Ok(None);
    }
    Ok(Some(command))
}

/// Reports all wrong options; nothing was changed.
fn wrong(errors: &[OptionError]) -> Failure {
    let status = match errors.iter().map(OptionError::exit_code).max() {
        Some(1) => Status::Failed,
        _ => Status::Usage,
    };
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Failure::new(status, lines.join("\n"))
}

/// Warns if a filter's program is not on this host. That may be right: programs live on the hosts of filter-runners
/// (HPC-F-72).
fn warn_if_missing(program: &str) {
    if !Path::new(program).exists() {
        let text = format!("{program} does not exist on this host; it has to be there for the filter-runners");
        stderr_line!("muster: warning: {}", Code::FilterProgramMissing.message(text));
    }
}

/// The instance to talk to: the given connection, else `/scheduler`, else `CCP_SCHEDULER`, which filters and tasks
/// have. A name without a scheme is a host.
fn connection(connection: &ConnectionOptions, scheduler: Option<&str>) -> ConnectionOptions {
    let is_chosen = connection.data.is_some() || connection.server.is_some();
    let fallback = || std::env::var("CCP_SCHEDULER").ok().filter(|value| !value.is_empty() && !is_chosen);
    let Some(named) = scheduler.map(str::to_owned).or_else(fallback) else { return connection.clone() };
    let mut chosen = connection.clone();
    if named.starts_with('/') {
        (chosen.data, chosen.server) = (Some(named.into()), None);
    } else if named.contains("://") || named.starts_with("unix:") {
        chosen.server = Some(named);
    } else if named.contains(':') {
        chosen.server = Some(format!("http://{named}"));
    } else {
        chosen.server = Some(format!("http://{named}:7457"));
    }
    chosen
}
