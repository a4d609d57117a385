//! `muster pbs nodes --memory SIZE FILE [MONITORS]`: the nodes of a file `nodes`, with the loads that the config files of their monitors name, as
//! commands for `qmgr` (PBS-L-01, PBS-L-02).

use super::ended::{Ended, Failure, print};
use muster_cli::stderr_line;
use muster_pbs::{text::is_name, value::Size};
use muster_pbs_policy::{
    findings::{Finding, Findings, escaped},
    folder::{FolderError, read_files},
    lines::{MOST_BYTES, Source},
    nodes::{self, MonitorConfig, Node},
    values::Decimal,
};
use std::path::Path;

const USAGE: &str = "usage: muster pbs nodes --memory SIZE FILE [MONITORS]\n\
                     SIZE is the memory of a node, such as 8gb, of which the file says nothing: correct the lines of those that have another\n\
                     MONITORS is a folder with the config file of each monitor, under the name of its node";
/// The exit status for files with errors.
const POLICY_ERRORS: u8 = 2;

/// Prints the commands. It asks no system, and changes nothing.
pub fn run(words: &[String]) -> Ended {
    let usage = || Failure { text: USAGE.to_owned(), status: POLICY_ERRORS };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_file = |word: &str| !word.starts_with('-');
    let (memory, file, monitors) = match words[..] {
        ["--memory", memory, file] if is_file(file) => (memory, file, None),
        ["--memory", memory, file, monitors] if is_file(file) && is_file(monitors) => {
            (memory, file, Some(Path::new(monitors)))
        }
        _ => return Err(usage()),
    };
    if Size::parse(memory).is_none_or(|size| size.bytes() == 0) {
        let text = format!("--memory {}: expected an amount of memory such as 8gb\n{USAGE}", escaped(memory));
        return Err(Failure { text, status: POLICY_ERRORS });
    }
    let failed = |error: FolderError| Failure { text: error.to_string(), status: POLICY_ERRORS };
    let path = Path::new(file);
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(usage)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let listed = one(folder, name)
        .map_err(failed)?
        .ok_or_else(|| Failure { text: format!("there is no file {}", escaped(file)), status: POLICY_ERRORS })?;
    let monitor = |node: &str| monitors.map_or(Ok(None), |folder| one(folder, node));
    let Commands { lines, errors, warnings } = commands(&listed, memory, monitor).map_err(failed)?;
    warnings.iter().for_each(|warning| stderr_line!("muster pbs nodes: warning: {}", warning.located()));
    if errors.is_empty() {
        print(&lines.concat());
        return Ok(0);
    }
    let told: Vec<String> = errors.iter().map(Finding::located).collect();
    Err(Failure { text: format!("nothing is printed\n{}", told.join("\n")), status: POLICY_ERRORS })
}

/// A file of a folder; `None` if it is not there.
fn one(folder: &Path, name: &str) -> Result<Option<Source>, FolderError> {
    Ok(read_files(folder, &[name])?.into_iter().next())
}

/// The commands for a file, each with its line end, and what is wrong with the files.
#[derive(Default)]
struct Commands {
    lines: Vec<String>,
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
}

fn commands(
    listed: &Source,
    memory: &str,
    monitor: impl Fn(&str) -> Result<Option<Source>, FolderError>,
) -> Result<Commands, FolderError> {
    let mut all = Commands::default();
    let mut findings = Findings::new(&listed.name);
    let found = within_limit(listed).map_or_else(Vec::new, |bytes| nodes::read(bytes, &mut findings));
    all.note(findings, listed);
    for node in found {
        if let Some(what) = unfit(&node) {
            let message = format!("node {}: `{}` is no name here", escaped(&node.name), escaped(what));
            all.errors.push(Finding { file: listed.name.clone(), line: 0, column: 0, message, token: String::new() });
            continue;
        }
        let mut loads = MonitorConfig::default();
        if let Some(config) = monitor(&node.name)? {
            let mut findings = Findings::new(&config.name);
            loads = within_limit(&config).map_or(loads, |bytes| nodes::read_monitor(bytes, &mut findings));
            all.note(findings, &config);
        }
        all.lines.push(command(&node, memory, loads));
    }
    Ok(all)
}

impl Commands {
    fn note(&mut self, findings: Findings, source: &Source) {
        let (errors, warnings) = findings.into_sorted();
        self.errors.extend(errors);
        self.warnings.extend(warnings);
        if within_limit(source).is_none() {
            let message = format!("has more than {MOST_BYTES} bytes");
            let finding = Finding { file: source.name.clone(), line: 0, column: 0, message, token: String::new() };
            self.errors.push(finding);
        }
    }
}

fn within_limit(source: &Source) -> Option<&[u8]> {
    Some(source.bytes.as_slice()).filter(|bytes| bytes.len() <= MOST_BYTES)
}

/// The first word of a node that `qmgr` takes for no name. Such a word could be a path or another command.
fn unfit(node: &Node) -> Option<&str> {
    let is_host = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    let of_node = Some(node.name.as_str()).filter(|name| !is_host(name) || name.starts_with('.'));
    of_node.or_else(|| node.properties.iter().map(String::as_str).find(|property| !is_name(property)))
}

fn command(node: &Node, memory: &str, loads: MonitorConfig) -> String {
    let Node { name, processors, properties, is_timeshared } = node;
    let mut line = format!("create node {name} np={processors},resources_available.mem={memory}");
    if !properties.is_empty() {
        line += &format!(",properties=\"{}\"", properties.join(","));
    }
    let load = |name: &str, load: Option<Decimal>| {
        load.map_or_else(String::new, |load| format!(",resources_available.{name}={load}"))
    };
    line += &load("ideal_load", loads.ideal);
    line += &load("max_load", loads.max);
    line.push('\n');
    match is_timeshared {
        true => format!("# {name} is timeshared: keep the file in the policy folder\n{line}"),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_pbs::qmgr::parse;

    fn source(name: &str, text: &str) -> Source {
        Source { name: name.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    /// PBS-L-01, PBS-L-02: names, processors, properties and loads become commands that `qmgr` reads.
    #[test]
    fn nodes_become_commands() {
        let listed = source("nodes", "# all\nts1:ts np=4\nn2 fast ib np=16\nn3\n");
        let monitor = |node: &str| {
            let text = match node {
                "ts1" => "$ideal_load 2.5\n$max_load 4\n$clienthost head\n",
                "n3" => "max_load 8\n",
                _ => return Ok(None),
            };
            Ok(Some(source(node, text)))
        };
        let made = commands(&listed, "8gb", monitor).expect("read");
        assert_eq!((made.errors, made.warnings), (Vec::new(), Vec::new()));
        assert_eq!(
            made.lines.concat(),
            "# ts1 is timeshared: keep the file in the policy folder\n\
             create node ts1 np=4,resources_available.mem=8gb,resources_available.ideal_load=2.5,resources_available.max_load=4\n\
             create node n2 np=16,resources_available.mem=8gb,properties=\"fast,ib\"\n\
             create node n3 np=1,resources_available.mem=8gb,resources_available.max_load=8\n"
        );
        for line in made.lines.concat().lines() {
            assert_eq!(parse(line).expect("qmgr reads it").is_none(), line.starts_with('#'), "{line}");
        }
    }

    /// PBS-L-02: mistakes of any file are told with their place, and words that could be something else are no names.
    #[test]
    fn mistakes_keep_all_commands_back() {
        let monitor = |_: &str| Ok(Some(source("n1", "$ideal_load 5\n$max_load 4\n")));
        let made = commands(&source("nodes", "n1 np=x\nn2\n../etc/passwd\nn3 a\"b\n"), "8gb", monitor).expect("read");
        let told: Vec<String> = made.errors.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(told[0].starts_with("nodes:1: expected np=n") && told[1].starts_with("n1:2: expected an ideal_load"));
        assert!(told[2].contains("`../etc/passwd` is no name here") && told[3].contains("`a\"b` is no name here"));
    }
}
