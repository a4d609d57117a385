//! The file with the rules.

use super::{
    calendar::{Period, Span, WEEK},
    json::{self, Json, Node, Wrong},
    rule::{Field, Limits, Pattern},
};
use crate::{
    options::date,
    text::{decimal, shown},
};
use jiff::tz::TimeZone;
use muster_schemas::quota::QuotaAmount;
use std::{collections::BTreeMap, fmt};

/// The longest file, in bytes.
const LONGEST: usize = 4 * 1024 * 1024;
/// The word for the number of resources.
const ALL: &str = "ALL";
/// The days of a week, as files name them.
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// The times that fill the gaps of a week, in all spellings.
const GAPS: [&str; 3] = ["* * * *", "*,*,*,*", "default"];

/// A mistake in the file. The file is not used at all (OAR-Q-11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The line, from 1.
    pub line: usize,
    /// The place in the line, in characters from 1.
    pub column: usize,
    /// The mistake, and the expected form.
    pub message: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for Broken {}

/// Reads a file (OAR-Q-02, OAR-Q-10) without knowing the cluster.
///
/// # Errors
/// The first mistake, with its place.
pub fn parse(text: &str, zone: &TimeZone) -> Result<File, Broken> {
    let place = |(at, message): Wrong| {
        let before = &text[..at.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Broken { line, column, message }
    };
    if text.len() > LONGEST {
        return Err(place((0, format!("a file of rules has at most {LONGEST} bytes"))));
    }
    let reader = Reader { zone };
    json::read(text).and_then(|node| reader.file(&node)).map_err(place)
}

/// The content of a file. `ALL` is still a part of a cluster that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The sets of rules with their names; that of the rules of all times is empty.
    pub sets: Vec<(String, BTreeMap<Pattern, Limits>)>,
    /// The week, in order and without gap.
    pub week: Vec<Period>,
    /// Single spans, in order of their begin.
    pub spans: Vec<Span>,
    /// The types that are counted.
    pub counted_types: Vec<String>,
}

struct Reader<'r> {
    zone: &'r TimeZone,
}

/// Sets of rules by name, with their numbers.
type Sets = BTreeMap<String, usize>;

impl Reader<'_> {
    fn file(&self, node: &Node) -> Result<File, Wrong> {
        let entries = object(node, "an object with the rules in \"quotas\"")?;
        let value = |name: &str| entries.iter().find(|(_, key, _)| key == name).map(|(.., node)| node);
        let counted_types = value("job_types").map(texts).transpose()?.unwrap_or_default();
        let (mut sets, mut numbers) = (Vec::new(), Sets::new());
        for (_, name, node) in entries.iter().filter(|(_, name, _)| !is_known(name)) {
            numbers.insert(name.clone(), sets.len());
            sets.push((name.clone(), rules(node)?));
        }
        let always = value("quotas").map(rules).transpose()?;
        let spans = value("oneshot").map(|node| self.spans(node, &numbers)).transpose()?.unwrap_or_default();
        let week = match (value("periodical"), always) {
            (Some(periodical), Some(_)) => {
                return Err((periodical.at, "the rules are in \"quotas\" or in a calendar, not in both".to_owned()));
            }
            (Some(periodical), None) => week(periodical, &numbers)?,
            // The rules are the same all week.
            (None, always) => {
                let week = vec![Period { begin: 0, end: WEEK, rules: sets.len() }];
                sets.push((String::new(), always.unwrap_or_default()));
                week
            }
        };
        Ok(File { sets, week, spans, counted_types })
    }

    /// `["2026-07-23 19:30", "2026-08-29 08:30", "rules", "why"]`
    fn spans(&self, node: &Node, sets: &Sets) -> Result<Vec<Span>, Wrong> {
        let mut spans = Vec::new();
        for entry in list(node, "a list of spans")? {
            let [begin, end, rules] = first_three(entry, "[begin, end, rules, description]")?;
            let moment = |(at, word): &(usize, String)| date::seconds(word, 0, self.zone).map_err(|why| (*at, why));
            let span = Span { begin: moment(&begin)?, end: moment(&end)?, rules: set(&rules, sets)? };
            if span.end <= span.begin {
                return Err((end.0, "the end of a span is after its begin".to_owned()));
            }
            spans.push(span);
        }
        spans.sort_by_key(|span| span.begin);
        Ok(spans)
    }
}

fn rules(node: &Node) -> Result<BTreeMap<Pattern, Limits>, Wrong> {
    let entries = object(node, "an object of rules")?;
    let rule = |(at, key, node): &(usize, String, Node)| {
        let pattern = pattern(key).map_err(|why| (*at, why))?;
        Ok((pattern, limits(node)?))
    };
    let rules = entries.iter().map(rule).collect::<Result<BTreeMap<_, _>, Wrong>>()?;
    if rules.len() < entries.len() {
        return Err((node.at, "two rules are about the same jobs".to_owned()));
    }
    Ok(rules)
}

fn limits(node: &Node) -> Result<Limits, Wrong> {
    let Json::List(values) = &node.value else {
        return Ok(Limits { resources: limit(node, 1)?, jobs: None, resource_seconds: None });
    };
    let [resources, jobs, hours] = values.as_slice() else {
        return Err((node.at, format!("expected [resources, jobs, hours], found {} values", values.len())));
    };
    Ok(Limits { resources: limit(resources, 1)?, jobs: limit(jobs, 1)?, resource_seconds: limit(hours, 3600)? })
}

/// A limit in small units of which a whole one has this number; `None` for -1.
fn limit(node: &Node, units: u64) -> Result<Option<QuotaAmount>, Wrong> {
    const BILLION: u64 = 1_000_000_000;
    let word = match &node.value {
        Json::Number(word) | Json::Text(word) => word.trim(),
        _ => return Err((node.at, "expected a number, ALL or x*ALL".to_owned())),
    };
    if word == "-1" {
        return Ok(None);
    }
    let amount = match word.strip_suffix(ALL) {
        None => scaled(word, units).map(QuotaAmount::Fixed),
        Some(rest) => {
            let factor =
                if rest.is_empty() { "1" } else { rest.trim_end().strip_suffix('*').unwrap_or("?").trim_end() };
            scaled(factor, BILLION * units).map(QuotaAmount::BillionthsOfCores)
        }
    };
    let wrong = || (node.at, format!("expected -1, a number from 0, ALL or x*ALL, found '{}'", shown(word)));
    amount.map(Some).ok_or_else(wrong)
}

fn is_known(name: &str) -> bool {
    matches!(name, "quotas" | "job_types" | "periodical" | "oneshot")
}

fn object<'n>(node: &'n Node, what: &str) -> Result<&'n [(usize, String, Node)], Wrong> {
    match &node.value {
        Json::Object(entries) => Ok(entries),
        _ => Err((node.at, format!("expected {what}"))),
    }
}

fn list<'n>(node: &'n Node, what: &str) -> Result<&'n [Node], Wrong> {
    match &node.value {
        Json::List(entries) => Ok(entries),
        _ => Err((node.at, format!("expected {what}"))),
    }
}

fn text(node: &Node) -> Result<(usize, String), Wrong> {
    match &node.value {
        Json::Text(text) => Ok((node.at, text.clone())),
        _ => Err((node.at, "expected a text in double quotes".to_owned())),
    }
}

fn texts(node: &Node) -> Result<Vec<String>, Wrong> {
    list(node, "a list of types")?.iter().map(|entry| text(entry).map(|(_, text)| text)).collect()
}

fn first_three(node: &Node, form: &str) -> Result<[(usize, String); 3], Wrong> {
    let entries = list(node, form)?;
    match entries {
        [one, two, three] | [one, two, three, _] => Ok([text(one)?, text(two)?, text(three)?]),
        _ => Err((node.at, format!("expected {form}"))),
    }
}

fn set((at, name): &(usize, String), sets: &Sets) -> Result<usize, Wrong> {
    sets.get(name).copied().ok_or_else(|| (*at, format!("no rules are called '{}'", shown(name))))
}

/// `queue,project,type,user`
fn pattern(key: &str) -> Result<Pattern, String> {
    let fields: Vec<Field> = key.split(',').map(|word| Field::of(word.trim())).collect();
    let [queue, project, kind, user] = <[Field; 4]>::try_from(fields)
        .map_err(|_| format!("expected queue,project,type,user, found '{}'", shown(key)))?;
    if kind == Field::Each {
        return Err("'/' is not allowed for the type: a job has several".to_owned());
    }
    Ok(Pattern { queue, project, kind, user })
}

/// A decimal number times a whole one, without what is behind the point.
fn scaled(word: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    if fraction.len() > 9 {
        return None;
    }
    let tenths = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let number = u128::from(decimal::<u64>(whole)?) * tenths + u128::from(decimal::<u64>(fraction)?);
    u64::try_from(number.checked_mul(u128::from(factor))? / tenths).ok()
}

/// The week of a list such as `["08:00-19:00 mon-fri * *", "rules", "why"]`. It has no gaps.
fn week(node: &Node, sets: &Sets) -> Result<Vec<Period>, Wrong> {
    let mut week: Vec<(Period, usize)> = Vec::new();
    let mut filling = None;
    for entry in list(node, "a list of periods")? {
        let entries = list(entry, "[times, rules, description]")?;
        let ([times, rules] | [times, rules, _]) = entries else {
            return Err((entry.at, "expected [times, rules, description]".to_owned()));
        };
        let (times, rules) = (text(times)?, set(&text(rules)?, sets)?);
        if GAPS.contains(&times.1.trim()) {
            filling = Some(rules);
            continue;
        }
        let parts = parts_of_week(&times.1).map_err(|why| (times.0, why))?;
        week.extend(parts.into_iter().map(|(begin, end)| (Period { begin, end, rules }, times.0)));
    }
    week.sort_by_key(|(period, _)| period.begin);
    without_gaps(&week, filling, node.at)
}

fn without_gaps(week: &[(Period, usize)], filling: Option<usize>, place: usize) -> Result<Vec<Period>, Wrong> {
    let mut whole: Vec<Period> = Vec::new();
    let mut at = 0;
    let end = (Period { begin: WEEK, end: WEEK, rules: 0 }, place);
    for (period, place) in week.iter().chain([&end]) {
        if period.begin < at {
            return Err((*place, format!("two periods overlap on {}", of_week(period.begin))));
        }
        if period.begin > at {
            let message = format!("no period covers {}; \"* * * *\" fills gaps", of_week(at));
            let rules = filling.ok_or((*place, message))?;
            whole.push(Period { begin: at, end: period.begin, rules });
        }
        at = period.end;
        whole.extend((period.begin < WEEK).then_some(*period));
    }
    Ok(whole)
}

/// A second of the week as people say it: `mon 08:00`.
fn of_week(second: i64) -> String {
    let day = usize::try_from(second / 86_400).ok().and_then(|day| DAYS.get(day)).unwrap_or(&"sun");
    format!("{day} {:02}:{:02}", second % 86_400 / 3600, second % 3600 / 60)
}

/// The parts of the week that `08:00-19:00 mon-wed * *` means, each from begin to end.
fn parts_of_week(text: &str) -> Result<Vec<(i64, i64)>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [times, days, "*", "*"] = words[..] else {
        return Err(format!("expected \"hh:mm-hh:mm days * *\", found '{}'", shown(text)));
    };
    let (begin, end) = times_of(times)?;
    let days = days_of(days)?;
    Ok(days.into_iter().map(|day| (day * 86_400 + begin, day * 86_400 + end)).collect())
}

fn times_of(word: &str) -> Result<(i64, i64), String> {
    if word == "*" {
        return Ok((0, 86_400));
    }
    let wrong = || format!("expected times such as 08:00-19:00, found '{}'", shown(word));
    let time = |word: &str| {
        let (hour, minute) = word.split_once(':')?;
        let (hour, minute) = (decimal::<i64>(hour)?, decimal::<i64>(minute)?);
        (hour < 24 && minute < 60 || (hour, minute) == (24, 0)).then_some(hour * 3600 + minute * 60)
    };
    let (begin, end) = word.split_once('-').ok_or_else(wrong)?;
    let (begin, end) = time(begin).zip(time(end)).ok_or_else(wrong)?;
    // 00:00 as an end is the end of the day.
    let end = if end == 0 { 86_400 } else { end };
    if end <= begin {
        return Err(format!("the times {} end before they begin; a night is two periods", shown(word)));
    }
    Ok((begin, end))
}

/// The days of `*`, `mon-wed` (also over the end of the week) or `sat,sun`.
fn days_of(word: &str) -> Result<Vec<i64>, String> {
    let number = |word: &str| {
        let day = DAYS.iter().position(|day| day.eq_ignore_ascii_case(word));
        day.ok_or_else(|| format!("expected days such as mon-wed or sat,sun, found '{}'", shown(word)))
    };
    let days: Vec<usize> = match word.split_once('-') {
        _ if word == "*" => (0..7).collect(),
        Some((first, last)) => {
            let (first, last) = (number(first)?, number(last)?);
            (first..=if last < first { last + 7 } else { last }).map(|day| day % 7).collect()
        }
        None => word.split(',').map(number).collect::<Result<_, _>>()?,
    };
    Ok(days.into_iter().filter_map(|day| i64::try_from(day).ok()).collect())
}
