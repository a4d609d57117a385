//! `muster oar import`: writes a configuration file from the output of `oarnodes -J` and from `oar.conf`.

use super::{
    ended::{Ended, Failure, print},
    words::{self, Known, Takes},
};
use muster_cli::stderr_line;
use muster_oar::{
    import,
    text::{printable, shown},
};
use std::io::Read as _;

const OPTIONS: [Known; 4] = [
    ('\0', "nodes", Takes::Value),
    ('\0', "conf", Takes::Value),
    ('\0', "name", Takes::Value),
    ('h', "help", Takes::Nothing),
];
const USAGE: &str = "usage: muster oar import [--nodes FILE] [--conf FILE] [--name CLUSTER]\n       FILE of --nodes is the \
                     output of `oarnodes -J`, that of --conf is /etc/oar/oar.conf; - is standard input\n";
/// The longest file that is read, in bytes.
const MOST_BYTES: u64 = 512 << 20;

/// Runs a command line of `muster oar import`.
pub fn run(line: &[String]) -> Ended {
    let words = words::read(line, &OPTIONS)?;
    if words.has("help") {
        print(USAGE);
        return Ok(0);
    }
    let (nodes, conf) = (words.value("nodes"), words.value("conf"));
    if !words.operands.is_empty() || (nodes.is_none() && conf.is_none()) {
        return Err(Failure { text: USAGE.trim_end().to_owned(), status: 2 });
    }
    let nodes = nodes.map(text_of).transpose()?;
    let conf = conf.map(text_of).transpose()?;
    let name = words.value("name").unwrap_or("oar");
    let imported = import::configuration(name, nodes.as_deref(), conf.as_deref()).map_err(Failure::new)?;
    for warning in &imported.warnings {
        stderr_line!("{}", warning.chars().map(printable).collect::<String>());
    }
    print(&imported.text);
    Ok(0)
}

fn text_of(path: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let done = match path {
        "-" => std::io::stdin().take(MOST_BYTES + 1).read_to_string(&mut text),
        path => std::fs::File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text)),
    };
    done.map_err(|error| Failure::new(format_args!("{}: {error}", shown(path))))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(Failure::new(format_args!("{}: is longer than {MOST_BYTES} bytes", shown(path))));
    }
    Ok(text)
}
