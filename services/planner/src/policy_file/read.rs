//! Reads the tables of a policy file.

use muster_schemas::policy::{
    Backfill, BackfillMode, CandidateOrder, ComponentPriority, ComponentStart, Components, Limit, LimitPer,
    MOST_STARTS, OrderKey, Policy, QueuePolicy, Turns, UseShare, formula::FormulaError, queue_place, words,
};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The format version that is read and printed.
pub const VERSION: i64 = 1;

/// A table, as errors call it, and its keys.
type Table = (&'static str, &'static [&'static str]);

const POLICY: Table = (
    "the policy",
    &["version", "name", "order", "max_starts", "backfill", "limit", "queue", "turns", "starts_nothing", "use_share"],
);
const ORDER_ENTRY: Table = ("an entry of `order`", &["formula", "descending"]);
const BACKFILL: Table =
    ("[backfill]", &["mode", "reservations", "candidates", "look_ahead", "require_walltime", "components"]);
const COMPONENTS: Table =
    ("[backfill.components]", &["start", "interval_seconds", "window_seconds", "priority", "share_nodes"]);
const LIMIT: Table = (
    "[[limit]]",
    &[
        "per",
        "name",
        "queue",
        "max_running_jobs",
        "max_nodes",
        "max_cores",
        "max_gpus",
        "max_attributes",
        "max_attributes_of_job",
    ],
);
const QUEUE: Table = ("[queue.NAME]", &["order", "backfill"]);
/// Every key of the format, by table.
pub const KEYS: [Table; 6] = [POLICY, ORDER_ENTRY, BACKFILL, COMPONENTS, LIMIT, QUEUE];

pub(super) const NAMED_KEYS: [(&str, OrderKey); 10] = [
    ("queue_priority", OrderKey::QueuePriority),
    ("priority", OrderKey::Priority),
    ("fcfs", OrderKey::Fcfs),
    ("spt", OrderKey::Spt),
    ("saf", OrderKey::Saf),
    ("f1", OrderKey::F1),
    ("wfp3", OrderKey::Wfp3),
    ("unicep", OrderKey::Unicep),
    ("share", OrderKey::Share),
    ("use_share", OrderKey::UseShare),
];
pub(super) const MODES: [(&str, BackfillMode); 3] =
    [("none", BackfillMode::None), ("easy", BackfillMode::Easy), ("conservative", BackfillMode::Conservative)];
pub(super) const CANDIDATES: [(&str, CandidateOrder); 2] =
    [("queue_order", CandidateOrder::QueueOrder), ("sjbf", CandidateOrder::Sjbf)];
pub(super) const COMPONENT_STARTS: [(&str, ComponentStart); 2] =
    [("any_pass", ComponentStart::AnyPass), ("backfill_pass", ComponentStart::BackfillPass)];
pub(super) const COMPONENT_PRIORITIES: [(&str, ComponentPriority); 4] = [
    ("first", ComponentPriority::First),
    ("min", ComponentPriority::Min),
    ("avg", ComponentPriority::Avg),
    ("max", ComponentPriority::Max),
];
pub(super) const PER: [(&str, LimitPer); 5] = [
    ("all", LimitPer::All),
    ("user", LimitPer::User),
    ("group", LimitPer::Group),
    ("account", LimitPer::Account),
    ("queue", LimitPer::Queue),
];

/// A fault in a span of bytes.
pub(super) struct Fault {
    pub(super) span: Range<usize>,
    pub(super) message: String,
}

/// The policy of a text; it is worthless if there are faults.
pub(super) fn read(text: &str, default_name: &str) -> (Policy, Vec<Fault>) {
    let mut reader =
        Reader { text, faults: Vec::new(), spans: BTreeMap::new(), formulas: BTreeMap::new(), broken: BTreeSet::new() };
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        match error.span() {
            Some(span) => reader.not_toml(span, error.message()),
            // The TOML parser can place every fault except a key of very many parts.
            None => reader.fault(0..0, format!("expected keys of fewer parts ({})", error.message())),
        }
    }
    let mut policy = Policy { name: default_name.into(), ..Policy::default() };
    // The contents of a broken file may not mean what they seem to mean.
    if reader.faults.is_empty() && reader.version(document.get_ref()) {
        reader.policy(document.get_ref(), &mut policy);
        reader.sense(&policy);
    }
    (policy, reader.faults)
}

/// Whether the text has a key `version` outside all tables, as policy files do, even if it is wrong in other ways.
pub fn names_version(text: &str) -> bool {
    has(DeTable::parse_recoverable(text).0.get_ref(), "version")
}

/// The text of the span, up to the end of its line.
pub(super) fn token(text: &str, span: &Range<usize>) -> String {
    let (start, end) = (text.floor_char_boundary(span.start), text.ceil_char_boundary(span.end));
    words::shorten(text[start..end.max(start)].lines().next().unwrap_or_default())
}

type Key<'t> = Spanned<Cow<'t, str>>;
type Value<'t> = Spanned<DeValue<'t>>;

struct Reader<'t> {
    text: &'t str,
    faults: Vec<Fault>,
    /// The spans of the values that were read, by their places in the policy.
    spans: BTreeMap<String, Range<usize>>,
    /// The spans of the texts of formulas, without their quotes.
    formulas: BTreeMap<String, Range<usize>>,
    /// Tables with a part that could not be read. Apparent nonsense in them may come from that part.
    broken: BTreeSet<String>,
}

impl Reader<'_> {
    fn fault(&mut self, span: Range<usize>, message: String) {
        self.faults.push(Fault { span, message });
    }

    /// Reports that the content of the span is not what was expected.
    fn expected(&mut self, span: Range<usize>, expected: &str, hint: &str) {
        let next = self.text[self.text.ceil_char_boundary(span.start)..].chars().next();
        let found = match (token(self.text, &span), next) {
            (token, _) if !token.is_empty() => format!("`{token}`"),
            (_, None) => "the end of the file".into(),
            (_, Some('\r' | '\n')) => "the end of the line".into(),
            (_, Some(next)) => format!("`{}`", words::shorten(&next.to_string())),
        };
        self.fault(span, format!("{expected}, found {found}{hint}"));
    }

    fn not_toml(&mut self, span: Range<usize>, message: &str) {
        let is_word = token(self.text, &span).starts_with(char::is_alphabetic);
        let before = &self.text[..self.text.floor_char_boundary(span.start)];
        let is_value = before.trim_end_matches([' ', '[']).ends_with(['=', ',']);
        self.expected(span, message, if is_word && is_value { "; put text in quotes" } else { "" });
    }

    /// Reports that the value at this place is not what was expected.
    fn wrong(&mut self, place: &str, value: &Value<'_>, expected: &str, hint: &str) {
        self.expected(value.span(), &format!("`{place}`: expected {expected}"), hint);
    }

    fn unknown(&mut self, key: &Key<'_>, (table, known): Table) {
        let hint = match words::nearest(key.get_ref(), known.iter().copied()) {
            Some(name) => format!("; nearest known key is `{name}`"),
            None => format!("; known are {}", known.join(", ")),
        };
        self.expected(key.span(), &format!("expected a key of {table}"), &hint);
    }

    /// Whether the file has a version that can be read.
    fn version(&mut self, document: &DeTable<'_>) -> bool {
        let given = document.iter().find(|(key, _)| key.get_ref() == "version");
        let Some((_, value)) = given else {
            self.fault(0..0, format!("`version`: expected `version = {VERSION}`, found no version"));
            return true;
        };
        let is_read = integer(value.get_ref()) == Some(VERSION);
        if !is_read {
            self.wrong("version", value, &format!("{VERSION}, the version of the format that this muster reads"), "");
        }
        is_read
    }

    fn policy(&mut self, document: &DeTable<'_>, policy: &mut Policy) {
        for (key, value) in document {
            let place = key.get_ref().as_ref();
            match place {
                "version" => {}
                "name" => set(&mut policy.name, self.string(place, value)),
                "order" => set(&mut policy.order, self.order(place, value)),
                "backfill" => set(&mut policy.backfill, self.backfill(place, value)),
                "limit" => policy.limits = self.limits(value),
                "queue" => policy.queues = self.queues(value),
                "turns" => policy.turns = self.turns(value).map(Box::new),
                "use_share" => policy.use_share = self.use_share(value).map(Box::new),
                "starts_nothing" => policy.starts_nothing = self.string(place, value),
                "max_starts" => {
                    let most = self.number(place, value, 1, MOST_STARTS.into());
                    set(&mut policy.max_starts, most.and_then(|most| u32::try_from(most).ok()));
                }
                _ => self.unknown(key, POLICY),
            }
        }
    }

    fn order(&mut self, place: &str, value: &Value<'_>) -> Option<Vec<OrderKey>> {
        self.spans.insert(place.into(), value.span());
        let DeValue::Array(entries) = value.get_ref() else {
            return Some(self.order_key(&format!("{place}.0"), value).into_iter().collect());
        };
        let faults_before = self.faults.len();
        let keys = entries.iter().enumerate();
        let keys = keys.filter_map(|(index, entry)| self.order_key(&format!("{place}.{index}"), entry)).collect();
        self.note_broken(place, faults_before);
        Some(keys)
    }

    fn order_key(&mut self, place: &str, value: &Value<'_>) -> Option<OrderKey> {
        self.spans.insert(place.into(), value.span());
        match value.get_ref() {
            DeValue::String(_) => self.word(place, value, &NAMED_KEYS),
            DeValue::Table(table) => {
                let (mut text, mut descending) = (None, false);
                for (key, value) in table {
                    match key.get_ref().as_ref() {
                        "formula" => text = self.formula(place, value),
                        "descending" => set(&mut descending, self.boolean(&format!("{place}.descending"), value)),
                        _ => self.unknown(key, ORDER_ENTRY),
                    }
                }
                match text {
                    Some(text) => Some(OrderKey::Formula { text, descending }),
                    None if has(table, "formula") => None,
                    None => {
                        self.wrong(place, value, "a `formula` in this table", "");
                        None
                    }
                }
            }
            _ => {
                self.wrong(place, value, "the name of an order, such as \"fcfs\", or { formula = \"...\" }", "");
                None
            }
        }
    }

    fn formula(&mut self, place: &str, value: &Value<'_>) -> Option<String> {
        let text = self.string(place, value)?;
        let span = value.span();
        if let Some(start) = self.text[span.clone()].find(&text) {
            let start = span.start + start;
            self.formulas.insert(place.into(), start..start + text.len());
        }
        Some(text)
    }

    fn backfill(&mut self, place: &str, value: &Value<'_>) -> Option<Backfill> {
        let faults_before = self.faults.len();
        let table = self.table(place, value, "a table [backfill]")?;
        let mut backfill = Backfill::default();
        for (key, value) in table {
            let inner = format!("{place}.{}", key.get_ref());
            match key.get_ref().as_ref() {
                "mode" => set(&mut backfill.mode, self.word(&inner, value, &MODES)),
                "reservations" => backfill.reservations = self.count(&inner, value, 0),
                "candidates" => set(&mut backfill.candidates, self.word(&inner, value, &CANDIDATES)),
                "look_ahead" => backfill.look_ahead = self.count(&inner, value, 1),
                "require_walltime" => set(&mut backfill.require_walltime, self.boolean(&inner, value)),
                "components" => set(&mut backfill.components, self.components(&inner, value)),
                _ => self.unknown(key, BACKFILL),
            }
        }
        if !has(table, "mode") {
            self.wrong(&format!("{place}.mode"), value, "a `mode` in this table", "");
        }
        self.note_broken(place, faults_before);
        Some(backfill)
    }

    fn components(&mut self, place: &str, value: &Value<'_>) -> Option<Components> {
        let faults_before = self.faults.len();
        let table = self.table(place, value, "a table [backfill.components]")?;
        let mut components = Components::default();
        for (key, value) in table {
            let inner = format!("{place}.{}", key.get_ref());
            match key.get_ref().as_ref() {
                "start" => set(&mut components.start, self.word(&inner, value, &COMPONENT_STARTS)),
                "interval_seconds" => set(&mut components.interval_seconds, self.count(&inner, value, 1)),
                "window_seconds" => components.window_seconds = self.count(&inner, value, 1),
                "priority" => set(&mut components.priority, self.word(&inner, value, &COMPONENT_PRIORITIES)),
                "share_nodes" => set(&mut components.share_nodes, self.boolean(&inner, value)),
                _ => self.unknown(key, COMPONENTS),
            }
        }
        self.note_broken(place, faults_before);
        Some(components)
    }

    fn limits(&mut self, value: &Value<'_>) -> Vec<Limit> {
        self.spans.insert("limit".into(), value.span());
        let DeValue::Array(entries) = value.get_ref() else {
            self.wrong("limit", value, "tables, each under [[limit]]", "");
            return Vec::new();
        };
        let limits = entries.iter().enumerate().map(|(index, entry)| self.limit(&format!("limit.{index}"), entry));
        limits.collect()
    }

    fn limit(&mut self, place: &str, value: &Value<'_>) -> Limit {
        let faults_before = self.faults.len();
        let mut limit = Limit::default();
        let Some(table) = self.table(place, value, "a table [[limit]]") else { return limit };
        for (key, value) in table {
            let inner = format!("{place}.{}", key.get_ref());
            match key.get_ref().as_ref() {
                "per" => set(&mut limit.per, self.word(&inner, value, &PER)),
                "name" => limit.name = self.string(&inner, value),
                "queue" => limit.queue = self.string(&inner, value),
                "max_running_jobs" => limit.max_running_jobs = self.number(&inner, value, 0, i64::MAX),
                "max_nodes" => limit.max_nodes = self.number(&inner, value, 0, i64::MAX),
                "max_cores" => limit.max_cores = self.number(&inner, value, 0, i64::MAX),
                "max_gpus" => limit.max_gpus = self.number(&inner, value, 0, i64::MAX),
                "max_attributes" => limit.max_attributes = self.maxima(&inner, value),
                "max_attributes_of_job" => limit.max_attributes_of_job = self.maxima(&inner, value),
                _ => self.unknown(key, LIMIT),
            }
        }
        if !has(table, "per") {
            self.wrong(&format!("{place}.per"), value, "a `per` in this table", "");
        }
        self.note_broken(place, faults_before);
        limit
    }

    fn maxima(&mut self, place: &str, value: &Value<'_>) -> BTreeMap<String, u64> {
        let Some(table) = self.table(place, value, "a table such as { memory_kib = 1024 }") else {
            return BTreeMap::new();
        };
        let mut maxima = BTreeMap::new();
        for (name, value) in table {
            if let Some(most) = self.number(&format!("{place}.{}", name.get_ref()), value, 0, i64::MAX) {
                maxima.insert(name.get_ref().to_string(), most);
            }
        }
        maxima
    }

    /// The table has the names of the settings' fields, so it is read as they are stored.
    fn turns(&mut self, value: &Value<'_>) -> Option<Turns> {
        #[derive(serde::Deserialize)]
        struct Only {
            turns: Turns,
        }
        self.spans.insert("turns".into(), value.span());
        match toml::from_str::<Only>(self.text) {
            Ok(only) => Some(only.turns),
            Err(error) => {
                let span = error.span().unwrap_or_else(|| value.span());
                self.fault(span, format!("`turns`: {}", error.message()));
                None
            }
        }
    }

    /// The table has the names of the settings' fields, so it is read as they are stored.
    fn use_share(&mut self, value: &Value<'_>) -> Option<UseShare> {
        #[derive(serde::Deserialize)]
        struct Only {
            use_share: UseShare,
        }
        self.spans.insert("use_share".into(), value.span());
        match toml::from_str::<Only>(self.text) {
            Ok(only) => Some(only.use_share),
            Err(error) => {
                let span = error.span().unwrap_or_else(|| value.span());
                self.fault(span, format!("`use_share`: {}", error.message()));
                None
            }
        }
    }

    fn queues(&mut self, value: &Value<'_>) -> BTreeMap<String, QueuePolicy> {
        let mut queues = BTreeMap::new();
        let Some(table) = self.table("queue", value, "tables, each under [queue.NAME]") else { return queues };
        for (name, value) in table {
            let place = queue_place(name.get_ref());
            let Some(table) = self.table(&place, value, "a table [queue.NAME]") else { continue };
            let faults_before = self.faults.len();
            let mut queue = QueuePolicy::default();
            for (key, value) in table {
                let inner = format!("{place}.{}", key.get_ref());
                match key.get_ref().as_ref() {
                    "order" => queue.order = self.order(&inner, value),
                    "backfill" => queue.backfill = self.backfill(&inner, value),
                    _ => self.unknown(key, QUEUE),
                }
            }
            self.note_broken(&place, faults_before);
            queues.insert(name.get_ref().to_string(), queue);
        }
        queues
    }

    fn table<'v, 't>(&mut self, place: &str, value: &'v Value<'t>, expected: &str) -> Option<&'v DeTable<'t>> {
        self.spans.insert(place.into(), value.span());
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong(place, value, expected, "");
        }
        table
    }

    fn string(&mut self, place: &str, value: &Value<'_>) -> Option<String> {
        self.spans.insert(place.into(), value.span());
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong(place, value, "text in quotes", "");
        }
        text.map(str::to_owned)
    }

    fn boolean(&mut self, place: &str, value: &Value<'_>) -> Option<bool> {
        self.spans.insert(place.into(), value.span());
        let truth = value.get_ref().as_bool();
        if truth.is_none() {
            self.wrong(place, value, "true or false", "");
        }
        truth
    }

    fn count(&mut self, place: &str, value: &Value<'_>, least: i64) -> Option<u32> {
        self.number(place, value, least, u32::MAX.into()).and_then(|number| u32::try_from(number).ok())
    }

    fn number(&mut self, place: &str, value: &Value<'_>, least: i64, most: i64) -> Option<u64> {
        self.spans.insert(place.into(), value.span());
        let number = integer(value.get_ref()).filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.wrong(place, value, &format!("a whole number from {least} to {most}"), "");
        }
        number.and_then(|number| u64::try_from(number).ok())
    }

    fn word<T: Clone>(&mut self, place: &str, value: &Value<'_>, known: &[(&str, T)]) -> Option<T> {
        self.spans.insert(place.into(), value.span());
        let given = value.get_ref().as_str();
        if let Some((_, meaning)) = known.iter().find(|(word, _)| Some(*word) == given) {
            return Some(meaning.clone());
        }
        let names: Vec<String> = known.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let nearest = given.and_then(|given| words::nearest(given, known.iter().map(|(word, _)| *word)));
        let hint = nearest.map(|word| format!("; nearest known word is \"{word}\"")).unwrap_or_default();
        self.wrong(place, value, &format!("one of {}", names.join(", ")), &hint);
        None
    }

    fn note_broken(&mut self, table: &str, faults_before: usize) {
        if self.faults.len() > faults_before {
            self.broken.insert(table.into());
        }
    }

    /// Reports what makes no sense in the policy, with its place.
    fn sense(&mut self, policy: &Policy) {
        for fault in policy.faults() {
            let table = fault.place.rsplit_once('.').map_or("", |(table, _)| table);
            if self.broken.contains(&fault.place) || self.broken.contains(table) {
                continue;
            }
            let span = self.span_of(&fault.place);
            let within = fault.formula.as_ref().and_then(|error| self.within_formula(&fault.place, error));
            match within {
                Some(span) => self.fault(span, format!("`{}`: {}", fault.place, fault.message)),
                None => self.fault(span, fault.to_string()),
            }
        }
    }

    /// The span of a formula's token in the file; `None` if the formula is written with escapes.
    fn within_formula(&self, place: &str, error: &FormulaError) -> Option<Range<usize>> {
        let formula = self.formulas.get(place)?;
        let (before, _) =
            self.text[formula.clone()].char_indices().nth(error.column - 1).unwrap_or((formula.len(), ' '));
        let start = formula.start + before;
        Some(start..(start + error.token.len()).min(formula.end))
    }

    /// The span of the value, or of what contains it.
    fn span_of(&self, place: &str) -> Range<usize> {
        let mut place = place;
        loop {
            match (self.spans.get(place), place.rsplit_once('.')) {
                (Some(span), _) => return span.clone(),
                (None, Some((outer, _))) => place = outer,
                (None, None) => return 0..0,
            }
        }
    }
}

fn set<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

fn has(table: &DeTable<'_>, name: &str) -> bool {
    table.iter().any(|(key, _)| key.get_ref() == name)
}

fn integer(value: &DeValue<'_>) -> Option<i64> {
    value.as_integer().and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok())
}
