//! `oaradmissionrules`: shows the rules that submissions go through, and sets the site's own, which is a submission filter.

use super::{
    ended::{Ended, Failure, print},
    site::Site,
    words::{self, Known, Takes, Words},
};
use muster_cli::connection::ConnectionOptions;
use muster_client::Moment;
use muster_oar::{
    options::{
        perl::{self, Text},
        rules::DEFAULT_RULES,
    },
    text::{decimal, shown},
};
use muster_schemas::{
    CommandId,
    filter::{FilterForm, FilterSpec},
};
use std::io::Read as _;

const OPTIONS: [Known; 17] = [
    ('S', "show-all", Takes::Nothing),
    ('s', "show", Takes::Value),
    ('n', "new", Takes::Nothing),
    ('m', "modify", Takes::Value),
    ('d', "delete", Takes::Value),
    ('I', "id", Takes::Nothing),
    ('f', "full", Takes::Nothing),
    ('H', "no-header", Takes::Nothing),
    ('r', "from-file", Takes::Value),
    ('w', "to-file", Takes::Value),
    ('e', "edit", Takes::Maybe),
    ('P', "priority", Takes::Value),
    ('Y', "enabled", Takes::Nothing),
    ('N', "disabled", Takes::Nothing),
    ('l', "list", Takes::Nothing),
    ('h', "help", Takes::Nothing),
    ('V', "version", Takes::Nothing),
];
const USAGE: &str = "usage: oaradmissionrules -S [-I | -f | -H] [-Y | -N]\n       oaradmissionrules -s RULE [-I | -f | -H]\n       \
                     oaradmissionrules -n -r PROGRAM\n       oaradmissionrules -m RULE -r PROGRAM\n       \
                     oaradmissionrules -d RULE\nPROGRAM is the absolute path of a submission filter on the hosts of the \
                     filter-runners.\n";

/// A rule, as it is shown.
struct Rule {
    id: usize,
    priority: usize,
    text: String,
}

/// Runs a command line of `oaradmissionrules`.
pub fn run(connection: &ConnectionOptions, line: &[String]) -> Ended {
    let words = words::read(line, &OPTIONS)?;
    if words.has("help") {
        print(USAGE);
        return Ok(0);
    }
    if let Some(word) = words.operands.first() {
        return Err(Failure::new(format_args!("expected an option, found '{}'", shown(word))));
    }
    for (option, instead) in [
        ("edit", "write the program with an editor of yours and name it with -r"),
        ("to-file", "-H prints the rule"),
        ("priority", "the rule of the site comes after those that are built in"),
    ] {
        if words.has(option) {
            return Err(Failure::new(format_args!("--{option} is not supported: {instead}; nothing was changed")));
        }
    }
    let mut site = Site::open(connection)?;
    let own = site.client.filter_settings(Moment::Now)?.submission;
    if words.has("new") {
        return new(&mut site, &words, own.as_ref());
    }
    if let Some(word) = words.value("modify") {
        require_own(word, own.as_ref())?;
        set(&mut site, Some(program(&words)?))?;
        print(&format!("Admission rule modified: #{}\n", own_id()));
        return Ok(0);
    }
    if let Some(word) = words.value("delete") {
        require_own(word, own.as_ref())?;
        set(&mut site, None)?;
        print(&format!("Admission rule deleted: #{}\n", own_id()));
        return Ok(0);
    }
    show(&words, own.as_ref())
}

/// The id of the site's rule: it comes last.
const fn own_id() -> usize {
    DEFAULT_RULES.len() + 1
}

fn all(own: Option<&FilterSpec>) -> Vec<Rule> {
    let built_in = (1..).zip(DEFAULT_RULES);
    let mut rules: Vec<Rule> =
        built_in.map(|(id, text)| Rule { id, priority: id, text: format!("{text} (built in)") }).collect();
    let text = |filter: &FilterSpec| format!("submission filter '{}': {}", shown(&filter.name), filter.path);
    rules.extend(own.map(|filter| Rule { id: own_id(), priority: own_id(), text: text(filter) }));
    rules
}

fn show(words: &Words, own: Option<&FilterSpec>) -> Ended {
    let mut rules = all(own);
    if let Some(word) = words.value("show") {
        let id = decimal::<usize>(word);
        rules.retain(|rule| Some(rule.id) == id);
        if rules.is_empty() {
            return Err(Failure::new(format_args!("admission rule #{} does not exist", shown(word))));
        }
    } else if !words.has("show-all") && !words.has("list") {
        return Err(Failure::new(USAGE.trim_end()));
    }
    if words.has("disabled") && !words.has("enabled") {
        // All rules are in force.
        rules.clear();
    }
    let one = |rule: &Rule| match (words.has("id"), words.has("no-header")) {
        (true, _) => format!("{}\n", rule.id),
        (_, true) => format!("{}\n", rule.text),
        _ => format!("--- ({}) RULE #{}\n{}\n---\n", rule.priority, rule.id, rule.text),
    };
    print(&rules.iter().map(one).collect::<String>());
    Ok(0)
}

fn new(site: &mut Site, words: &Words, own: Option<&FilterSpec>) -> Ended {
    if let Some(filter) = own {
        return Err(Failure::new(format_args!(
            "the rule of the site is {} already (`oaradmissionrules -m {} -r PROGRAM` replaces it); nothing was changed",
            filter.path,
            own_id()
        )));
    }
    let program = program(words)?;
    set(site, Some(program))?;
    print(&format!("New admission rule created: #{}\n", own_id()));
    Ok(0)
}

/// The longest rule that is looked at, in bytes.
const LONGEST_RULE: u64 = 1 << 20;

/// Why a file with a rule of OAR is no program; `None` for a program, and for a file that is not here.
fn why_not(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(LONGEST_RULE).read_to_end(&mut bytes).ok()?;
    Some(match perl::recognised(&String::from_utf8_lossy(&bytes)) {
        Text::Default(known) => {
            format!("it is a default rule of OAR, which {}. Here that is {}", known.meaning, known.instead)
        }
        Text::Rule(line, word) => format!(
            "it is a rule in Perl (line {line}: {word}), which is not run here. Write it as a program, a submission filter, and \
             name that"
        ),
        Text::Program | Text::Other => return None,
    })
}

/// The program of a rule. It is run on other hosts, so nothing but its text is asked here, if it has one.
fn program(words: &Words) -> Result<String, Failure> {
    let path = words.value("from-file").ok_or_else(|| Failure::new("-r names the program; nothing was changed"))?;
    if let Some(why) = why_not(path) {
        return Err(Failure::new(format_args!("{}: {why}; nothing was changed", shown(path))));
    }
    let is_right = path.starts_with('/') && !path.contains(char::is_control);
    let wrong = || {
        Failure::new(format_args!(
            "-r: expected the absolute path of a program, found '{}'; a rule is a program here, see the chapter on \
             filters. Nothing was changed",
            shown(path)
        ))
    };
    is_right.then(|| path.to_owned()).ok_or_else(wrong)
}

fn require_own(word: &str, own: Option<&FilterSpec>) -> Result<(), Failure> {
    match decimal::<usize>(word) {
        Some(id) if id == own_id() && own.is_some() => Ok(()),
        Some(id) if (1..own_id()).contains(&id) => {
            Err(Failure::new(format_args!("admission rule #{id} is built in and stays; nothing was changed")))
        }
        _ => Err(Failure::new(format_args!("admission rule #{} does not exist; nothing was changed", shown(word)))),
    }
}

fn set(site: &mut Site, program: Option<String>) -> Result<(), Failure> {
    let mut settings = site.client.filter_settings(Moment::Now)?;
    settings.submission = program.map(|path| FilterSpec {
        name: path.rsplit('/').next().unwrap_or_default().to_owned(),
        path,
        form: FilterForm::Exec,
        revert_on_unknown: false,
    });
    let done = site.client.set_filter_settings(CommandId::new_now(), &settings);
    done.map(drop).map_err(|error| Failure::new(format_args!("{error}; nothing was changed")))
}
