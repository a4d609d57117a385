//! Staging directives in batch scripts: each component gets its own script, made from that of the job (SL-B-01 to
//! B-07).

use crate::{
    attributes::{self, Attributes},
    script::{comment_lines, separates_components},
};
use muster_schemas::job::{ComponentStaging, JobSpec, Program};

/// The words that mark a directive if the site configures no others (SL-B-01).
pub const DIRECTIVE_WORDS: [&str; 2] = ["BB", "DW"];

/// The script of one component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentScript {
    /// What `scontrol write batch_script` prints (SL-B-05, SL-B-06).
    pub text: String,
    /// Its own directives, as in the script.
    pub directives: Vec<String>,
}

/// The scripts of the components of a job that stages something. There is one for each component, even if the script
/// has no part for it because the component is on the command line only. A job with one component keeps its script.
///
/// The first component's script keeps its own comment lines, the line that begins the next component and everything
/// after it, with the directives of others disabled; later scripts have their comment lines and `exit 0`. Blank lines
/// are removed (SL-B-03, SL-B-04).
pub fn scripts(text: &str, words: &[&str], components: usize) -> Vec<ComponentScript> {
    let mut sections = sections(text);
    sections.resize(components.max(sections.len()), Vec::new());
    let of_section = |(offset, section): (usize, &Vec<&str>)| ComponentScript {
        text: match offset {
            0 if sections.len() == 1 => text.to_owned(),
            0 => leader_script(text, section, words),
            _ => lines(text.lines().take(1).chain(section.iter().copied()).chain(["exit 0"])),
        },
        directives: own_directives(section, words),
    };
    sections.iter().enumerate().map(of_section).collect()
}

/// The script of a component of a submitted job, as `scontrol write batch_script` prints it (SL-B-05, SL-B-06): rebuilt
/// if something is staged for the job, else the job's script, as always without a plugin (SL-B-07). `None` if the job
/// has no script.
pub fn script_of(job: &JobSpec, offset: usize) -> Option<String> {
    let Program::Script { text, .. } = &job.components.first()?.launch.program else { return None };
    Some(rebuilt(job, offset).map_or_else(|| text.clone(), |script| script.text))
}

/// The script that the staging program gets for a component: the rebuilt one if it contains the directives, else only
/// the directives, without any commands (SL-B-03, SL-B-08).
pub fn staged_script(job: &JobSpec, offset: u32) -> String {
    let rebuilt = rebuilt(job, offset as usize).filter(|script| !script.directives.is_empty());
    rebuilt.map(|script| script.text).unwrap_or_else(|| {
        let staged = job.staging.iter().find(|staged| staged.component == offset);
        let directives = staged.map_or(&[][..], |staged| &staged.directives);
        lines(std::iter::once("#!/bin/sh").chain(directives.iter().map(String::as_str)).chain(["exit 0"]))
    })
}

/// The rebuilt script of a component, if the job has a script and stages something, as the words of its directives
/// show.
fn rebuilt(job: &JobSpec, offset: usize) -> Option<ComponentScript> {
    let Program::Script { text, .. } = &job.components.first()?.launch.program else { return None };
    let words: Vec<&str> = Attributes(&job.attributes).job(attributes::job::DIRECTIVE_WORDS)?.split(',').collect();
    scripts(text, &words, job.components.len()).into_iter().nth(offset)
}

/// What to stage for a component with these directives. With persistent buffers (`datawarp`) the lines may mention
/// some: `create_persistent name=alpha`, `persistentdw name=alpha`, `destroy_persistent name=alpha` (SL-B-02).
pub fn staging(component: u32, directives: Vec<String>, has_persistent: bool) -> ComponentStaging {
    let mut staging = ComponentStaging { component, ..ComponentStaging::default() };
    for line in directives.iter().filter(|_| has_persistent) {
        let mut words = line.split_ascii_whitespace().skip(1);
        let names = match words.next() {
            Some("create_persistent") => &mut staging.creates,
            Some("persistentdw") => &mut staging.uses,
            Some("destroy_persistent") => &mut staging.destroys,
            _ => continue,
        };
        let name = words.find_map(|word| word.strip_prefix("name=")).filter(|name| !name.is_empty());
        names.extend(name.filter(|name| !names.iter().any(|known| known == name)).map(str::to_owned));
    }
    ComponentStaging { directives, ..staging }
}

/// Whether a script may have staging directives, whatever the site's words are: a comment that begins with a word and
/// is not an option line.
pub fn may_have_directives(text: &str) -> bool {
    let mut lines = comment_lines(text).map(|(_, line)| line);
    lines.any(|line| {
        let word = line.strip_prefix('#').and_then(|rest| rest.split_ascii_whitespace().next());
        line.as_bytes().get(1).is_some_and(u8::is_ascii_alphanumeric) && word != Some("SBATCH")
    })
}

/// The non-blank comment lines of each component, without the script's first line and the lines that begin a component.
fn sections(text: &str) -> Vec<Vec<&str>> {
    let mut sections = vec![Vec::new()];
    for (number, line) in comment_lines(text) {
        if separates_components(line) {
            sections.push(Vec::new());
        } else if let Some(section) = sections.last_mut().filter(|_| number > 1 && !line.trim().is_empty()) {
            section.push(line);
        }
    }
    sections
}

fn own_directives(section: &[&str], words: &[&str]) -> Vec<String> {
    section.iter().filter(|line| is_directive(line, words)).map(|line| (*line).to_owned()).collect()
}

/// Its rest begins with the next component, or with the first command if the script has no part for another one.
fn leader_script(text: &str, section: &[&str], words: &[&str]) -> String {
    let own_lines = comment_lines(text).take_while(|(_, line)| !separates_components(line)).count();
    let own = text.lines().take(1).chain(section.iter().copied()).map(str::to_owned);
    let rest = text.lines().skip(own_lines).filter(|line| !line.trim().is_empty());
    let rest = rest.map(|line| match line.strip_prefix('#') {
        Some(directive) if is_directive(line, words) => format!("#EXCLUDED {directive}"),
        _ => line.to_owned(),
    });
    lines(own.chain(rest))
}

/// Whether a line begins with `#` and one of the words.
fn is_directive(line: &str, words: &[&str]) -> bool {
    let Some(text) = line.strip_prefix('#') else { return false };
    let end = text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len());
    words.contains(&&text[..end])
}

fn lines(lines: impl Iterator<Item = impl AsRef<str>>) -> String {
    lines.fold(String::new(), |text, line| text + line.as_ref() + "\n")
}

/// The script with the lines of a `--bbf` file inserted after its first line (SL-B-08).
pub fn with_directives(text: &str, file: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let separator = if file.ends_with('\n') || file.is_empty() { "" } else { "\n" };
    format!("{first}\n{file}{separator}{rest}")
}
