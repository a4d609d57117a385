//! `qselect`.

use super::operands::Destination;
use crate::{getopt, refusal::Refusal, resources, text::split, value::parse_date_time};
use jiff::Zoned;
use muster_schemas::{resources::Relation, time::Timestamp};

/// A relation to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The name of the resource or attribute.
    pub name: String,
    /// The relation.
    pub relation: Relation,
    /// The value, as written.
    pub value: String,
}

/// A request of `qselect`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectRequest {
    /// The execution time (`-a`), with its relation.
    pub begin: Option<(Relation, Timestamp)>,
    /// Account (`-A`).
    pub account: Option<String>,
    /// Holds, by letter (`-h`).
    pub holds: Option<String>,
    /// Resources (`-l`).
    pub resources: Vec<Comparison>,
    /// Name (`-N`).
    pub name: Option<String>,
    /// Priority (`-p`), with its relation.
    pub priority: Option<(Relation, i64)>,
    /// Project (`-P`).
    pub project: Option<String>,
    /// Queue and server (`-q`).
    pub destination: Option<Destination>,
    /// Whether it may be run again (`-r`).
    pub rerunnable: Option<bool>,
    /// States, by letter (`-s`); empty for all.
    pub states: String,
    /// Other times (`-t`), each the name of an attribute with its relation.
    pub times: Vec<(&'static str, Relation, Timestamp)>,
    /// Users (`-u`).
    pub users: Vec<String>,
    /// Jobs that are over, too (`-x`, `-H`).
    pub history: bool,
    /// Only arrays (`-J`).
    pub only_arrays: bool,
    /// The tasks of arrays, too (`-T`).
    pub tasks: bool,
}

/// Reads a command line. `now` completes dates.
///
/// # Errors
/// An unknown option, or a value that cannot be read.
pub fn qselect(words: &[String], now: &Zoned) -> Result<SelectRequest, Refusal> {
    let read = getopt::read("a:A:c:h:HJl:N:p:P:q:r:s:t:Tu:x", words)?;
    let mut request = SelectRequest {
        history: read.has('x') || read.has('H'),
        only_arrays: read.has('J'),
        tasks: read.has('T'),
        ..SelectRequest::default()
    };
    for given in &read.options {
        take(&mut request, given.letter, &given.value, now)?;
    }
    match read.all_operands().first() {
        None => Ok(request),
        Some(word) => Err(Refusal::Operands(format!("`{}` is not an option", crate::refusal::shown(word)))),
    }
}

fn take(request: &mut SelectRequest, letter: char, value: &str, now: &Zoned) -> Result<(), Refusal> {
    let option = format!("-{letter}");
    let wrong = |why: &str| Err(Refusal::value(&option, value, why));
    let is_word = |letters: &str| !value.is_empty() && value.chars().all(|letter| letters.contains(letter));
    match letter {
        'a' => {
            let (relation, text) = relation(value);
            match parse_date_time(text, now) {
                Some(at) => request.begin = Some((relation, at)),
                None => return wrong("expected [.eq.]date_time"),
            }
        }
        'A' => request.account = Some(value.to_owned()),
        'h' if is_word("uosnp") => request.holds = Some(value.to_owned()),
        'h' => return wrong("expected letters of uos, or n"),
        'l' => request.resources.extend(comparisons(value)?),
        'N' => request.name = Some(value.to_owned()),
        'p' => {
            let (relation, text) = relation(value);
            match text.parse() {
                Ok(priority) => request.priority = Some((relation, priority)),
                Err(_) => return wrong("expected [.eq.]number"),
            }
        }
        'P' => request.project = Some(value.to_owned()),
        'q' => request.destination = Some(Destination::parse(value).map_err(|refusal| refusal.of_option("-q"))?),
        'r' => match value {
            "y" => request.rerunnable = Some(true),
            "n" => request.rerunnable = Some(false),
            _ => return wrong("expected y or n"),
        },
        's' if is_word("BCEFHMQRSTUWX") => request.states = value.to_owned(),
        's' => return wrong("expected letters of states"),
        'u' => {
            let names = split(value, ',').into_iter().map(|user| user.trim().split('@').next().unwrap_or_default());
            request.users = names.filter(|user| !user.is_empty()).map(str::to_owned).collect();
        }
        't' => match time(value, now) {
            Some(time) => request.times.push(time),
            None => return wrong("expected such as q.gt.date_time, with one of a c e m q s before the relation"),
        },
        'c' => return Err(Refusal::unsupported(&option, "jobs are not selected by it")),
        _ => {}
    }
    Ok(())
}

/// The times of `-t`, by letter, with the attributes that have them.
const TIMES: [(char, &str); 6] =
    [('a', "Execution_Time"), ('c', "ctime"), ('e', "etime"), ('m', "mtime"), ('q', "qtime"), ('s', "stime")];

/// `q.gt.11200800`: which time, the relation and the date.
fn time(text: &str, now: &Zoned) -> Option<(&'static str, Relation, Timestamp)> {
    let letter = text.chars().next()?;
    let (_, attribute) = TIMES.iter().find(|(known, _)| *known == letter)?;
    let (relation, date) = relation(&text[letter.len_utf8()..]);
    Some((attribute, relation, parse_date_time(date, now)?))
}

/// The words of relations, between dots.
const RELATIONS: [(&str, Relation); 6] = [
    (".eq.", Relation::Equal),
    (".ne.", Relation::NotEqual),
    (".ge.", Relation::GreaterOrEqual),
    (".gt.", Relation::Greater),
    (".le.", Relation::LessOrEqual),
    (".lt.", Relation::Less),
];

/// The relation that a value begins with, and the rest.
fn relation(text: &str) -> (Relation, &str) {
    let of = |(word, relation): &(&str, Relation)| text.strip_prefix(word).map(|rest| (*relation, rest));
    RELATIONS.iter().find_map(of).unwrap_or((Relation::Equal, text))
}

/// The signs of relations; longer ones first.
const SIGNS: [(&str, Relation); 6] = [
    (">=", Relation::GreaterOrEqual),
    ("<=", Relation::LessOrEqual),
    ("!=", Relation::NotEqual),
    (">", Relation::Greater),
    ("<", Relation::Less),
    ("=", Relation::Equal),
];

/// `walltime.gt.600,mem>=1gb`: the relation as a word or a sign.
fn comparisons(text: &str) -> Result<Vec<Comparison>, Refusal> {
    if text.len() > resources::MOST_BYTES {
        return Err(Refusal::value("-l", text, "the list is too long"));
    }
    let one = |entry: &str| {
        let by_sign = SIGNS.iter().filter_map(|(sign, relation)| Some((entry.find(sign)?, *sign, *relation)));
        let by_word = RELATIONS.iter().filter_map(|(word, relation)| Some((entry.find(word)?, *word, *relation)));
        let first = by_sign.chain(by_word).min_by_key(|(at, sign, _)| (*at, usize::MAX - sign.len()));
        let (at, sign, relation) = first?;
        let (name, value) = (entry[..at].trim(), entry[at + sign.len()..].trim());
        let fits = crate::text::is_name(name) && !value.is_empty();
        fits.then(|| Comparison { name: name.to_owned(), relation, value: value.to_owned() })
    };
    let read = |entry: &str| {
        one(entry).ok_or_else(|| Refusal::value("-l", entry, "expected resource.gt.value or resource>value"))
    };
    split(text, ',').into_iter().map(read).collect()
}
