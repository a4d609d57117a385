//! The options of `#PBS` lines.

use super::translation::{Foreign, Translation, foreign, leading_number, read};
use crate::{getopt::Takes::*, messages::Refusal};

const MARKER: &str = "#PBS";

static OPTIONS: &[Foreign] = &[
    foreign('a', "start_time", Value),
    foreign('A', "account", Value),
    foreign('c', "checkpoint", Value),
    foreign('C', "working_dir", Value),
    foreign('e', "error", Value),
    foreign('h', "hold", Nothing),
    foreign('I', "interactive", Nothing),
    foreign('j', "join", Value),
    foreign('J', "job_array", Value),
    foreign('k', "keep", Value),
    foreign('l', "resource_list", Value),
    foreign('m', "mail_options", Value),
    foreign('M', "mail_user_list", Value),
    foreign('N', "job_name", Value),
    foreign('o', "out", Value),
    foreign('p', "priority", Value),
    foreign('q', "destination", Value),
    foreign('r', "rerunable", Value),
    foreign('S', "script_path", Value),
    foreign('t', "array", Value),
    foreign('u', "running_user", Value),
    foreign('v', "variable_list", Value),
    foreign('V', "all_env", Nothing),
    foreign('W', "attributes", Value),
    foreign('z', "no_std", Nothing),
];

/// What the words of `#PBS` lines ask for.
pub(super) fn translate(words: &[String]) -> Result<Translation, Refusal> {
    let mut all = Translation::default();
    let mut exported: Vec<String> = Vec::new();
    read(OPTIONS, words, |letter, value| {
        match letter {
            'a' => all.put("begin", value),
            'A' => all.put("account", value),
            'e' => all.put_file("error", value),
            'h' => all.set("hold"),
            'J' | 't' => all.put("array", value),
            'l' => Resources::default().take_list(value, &mut all)?,
            'm' => all.put("mail-type", mail_types(value)?),
            'M' => all.put("mail-user", value),
            'N' => all.put("job-name", value),
            'o' => all.put_file("output", value),
            'p' => all.put("nice", value),
            'q' => all.put("partition", value),
            'v' => exported.push(value.to_owned()),
            'W' => take_attribute(value, &mut all),
            // Jobs have their environment and one file of output here without being asked to.
            'V' => {}
            'j' if value == "oe" => {}
            other => all.skip(MARKER, format!("-{other} {value}").trim_end()),
        }
        Ok(())
    })?;
    if !exported.is_empty() {
        all.put("export", exported.join(","));
    }
    Ok(all)
}

/// The occasions for mail in `-m`.
fn mail_types(value: &str) -> Result<String, Refusal> {
    let has = |letter: char| value.contains(letter) || value.contains(letter.to_ascii_uppercase());
    let types: Vec<&str> = [('b', "BEGIN"), ('e', "END"), ('a', "FAIL")]
        .into_iter()
        .filter(|(letter, _)| has(*letter))
        .map(|(_, word)| word)
        .collect();
    match (has('n'), types.is_empty()) {
        (true, _) => Ok("NONE".to_owned()),
        (false, true) => Err(Refusal::ForeignValue(format!("-m={value} invalid"))),
        (false, false) => Ok(types.join(",")),
    }
}

/// `-W umask=NUMBER` and `-W depend=LIST`.
fn take_attribute(value: &str, all: &mut Translation) {
    let (key, argument) = value.split_once('=').unwrap_or((value, ""));
    match key.to_ascii_lowercase().as_str() {
        "umask" => match umask(argument) {
            Some(umask) => all.umask = Some(umask),
            None => all.warnings.push("Invalid umask ignored".to_owned()),
        },
        "depend" => all.put("dependency", argument),
        _ => all.skip(MARKER, &format!("-W {value}")),
    }
}

/// A mask as C reads numbers: octal after a 0, hexadecimal after `0x`, decimal otherwise.
fn umask(text: &str) -> Option<u32> {
    let number = match (text.strip_prefix("0x"), text.strip_prefix('0')) {
        (Some(digits), _) => u32::from_str_radix(digits, 16),
        (None, Some(digits)) if !digits.is_empty() => u32::from_str_radix(digits, 8),
        _ => text.parse(),
    };
    number.ok().filter(|mask| *mask <= 0o777)
}

/// The resources of `-l` that are settled only together.
#[derive(Default)]
struct Resources {
    has_select: bool,
    cpus: Option<u64>,
    tasks: Option<u64>,
    gpus: u64,
}

impl Resources {
    /// `NAME=VALUE,...`; a value of `select` has its own resources after colons.
    fn take_list(mut self, list: &str, all: &mut Translation) -> Result<(), Refusal> {
        for entry in list.split(',').filter(|entry| !entry.is_empty()) {
            let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
            match name {
                "cput" | "pcput" | "walltime" => all.put("time", value),
                "nodes" => take_nodes(value, all),
                _ => self.take_chunk(entry, all)?,
            }
        }
        if let (true, Some(cpus), Some(tasks @ 1..)) = (self.has_select, self.cpus, self.tasks)
            && cpus > tasks
        {
            all.put("cpus-per-task", (cpus / tasks).to_string());
        }
        if self.gpus > 0 {
            all.put("gres", format!("gpu:{}", self.gpus));
        }
        Ok(())
    }

    fn take_chunk(&mut self, entry: &str, all: &mut Translation) -> Result<(), Refusal> {
        for part in entry.split(':') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match name.to_ascii_lowercase().as_str() {
                "select" => {
                    self.has_select = true;
                    all.put("nodes", number(value, "nodes")?.to_string());
                }
                "ncpus" => {
                    self.cpus = Some(number(value, "mincpus")?);
                    all.put("mincpus", value);
                }
                "mpiprocs" => {
                    self.tasks = Some(number(value, "ntasks-per-node")?);
                    all.put("ntasks-per-node", value);
                }
                "naccelerators" => self.gpus = number(value, "gres")?,
                "accelerator" if value.eq_ignore_ascii_case("true") => self.gpus = self.gpus.max(1),
                "file" => all.put("tmp", without_byte(value)),
                "mem" => all.put("mem", without_byte(value)),
                "nice" => all.put("nice", value),
                "proc" => all.put("constraint", value),
                _ => all.skip(MARKER, &format!("-l {part}")),
            }
        }
        Ok(())
    }
}

fn number(value: &str, option: &'static str) -> Result<u64, Refusal> {
    value.parse().map_err(|_| Refusal::BadValue(option))
}

/// A size without the `b` of its unit: `4gb` is `4g`.
fn without_byte(size: &str) -> &str {
    size.strip_suffix(['b', 'B']).unwrap_or(size)
}

/// `COUNT[:ppn=N]` or `NAME[:ppn=N]`, several joined by `+`: counts and `ppn` are summed, names are nodes.
fn take_nodes(value: &str, all: &mut Translation) {
    let (mut count, mut tasks, mut names) = (0u64, 0u64, Vec::new());
    for part in value.split(['+', ':']) {
        match part.strip_prefix("ppn=") {
            Some(per_node) => tasks = tasks.saturating_add(leading_number(per_node).unwrap_or(0)),
            None if part.starts_with(|c: char| c.is_ascii_alphabetic()) => names.push(part),
            None => count = count.saturating_add(leading_number(part).unwrap_or(0)),
        }
    }
    if count > 0 {
        all.put("nodes", count.to_string());
    }
    if tasks > 0 {
        all.put("ntasks", tasks.saturating_mul(count.max(1)).to_string());
    }
    if !names.is_empty() {
        all.put("nodelist", names.join(","));
    }
}
