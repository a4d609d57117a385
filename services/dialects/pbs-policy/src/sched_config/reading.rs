//! Reads `sched_config` (PBS-F-01, PBS-F-03, PBS-F-04, PBS-S-04, PBS-S-05).

use super::{
    names::{self, Meaning, Setting},
    settings::{
        Charge, FairShareModel, HolidaysStale, ModeOptions, ResourcesMax, SchedConfig, StartsBlocked, StrictOrder,
    },
};
use crate::{
    findings::Findings,
    lines::{self, Entry, Word},
    mode::{Mode, PerMode, show_modes},
    sort::{MOST_KEYS, SortBy, SortKey},
    values,
};
use muster_schemas::policy::LogFilter;
use std::collections::BTreeMap;

/// The maximum number of `ignore_queue` lines (PBS-Q-12).
const MOST_IGNORED_QUEUES: usize = 16;

/// The longest name of a queue or resource, and the longest prefix, in bytes.
const LONGEST_NAME: usize = 255;

/// The words in the column that says when a line holds.
const WHEN: [&str; 6] = ["prime", "non_prime", "non-prime", "nonprime", "all", "none"];

/// Reads a file. Options that are left out have their defaults. Mistakes are added to the findings, and the values of
/// their lines do not count.
pub fn read(bytes: &[u8], findings: &mut Findings) -> SchedConfig {
    let mut reader = Reader {
        config: SchedConfig::default(),
        findings,
        set: BTreeMap::new(),
        sorts: PerMode::default(),
        key_lines: Vec::new(),
        ignore_lines: 0,
    };
    for line in lines::lines(bytes).filter(|line| !lines::is_comment(line)) {
        reader.read_entry(&lines::entry(&line));
    }
    reader.finish()
}

struct Reader<'f> {
    config: SchedConfig,
    findings: &'f mut Findings,
    /// The lines that set each option, by its canonical name.
    set: BTreeMap<&'static str, PerMode<Option<u32>>>,
    /// The place of the `sort_by` in force.
    sorts: PerMode<Option<Place>>,
    /// The `key` lines and the modes in which they hold.
    key_lines: Vec<(Place, Vec<Mode>)>,
    ignore_lines: usize,
}

/// A word that outlives its line.
#[derive(Clone, Debug)]
struct Place {
    text: String,
    line: u32,
    column: u32,
}

impl Place {
    fn of(word: Word) -> Self {
        Self { text: word.text.to_owned(), line: word.line, column: word.column }
    }

    fn word(&self) -> Word<'_> {
        Word { text: &self.text, line: self.line, column: self.column }
    }
}

impl Reader<'_> {
    fn read_entry(&mut self, entry: &Entry) {
        let (name, setting) = match names::meaning(entry.name.text) {
            Meaning::Option(name, setting) => (name, setting),
            Meaning::NoEffect(instead) => return self.read_without_effect(entry, instead),
            Meaning::Unknown if entry.name.text.is_empty() => {
                return self.findings.error(Word { text: ":", ..entry.name }, "expected a name in front of the colon");
            }
            Meaning::Unknown => return self.findings.unknown(entry.name, "no such option", names::known()),
        };
        let value = self.value_of(entry);
        let modes = self.modes_of(entry, setting);
        let Some(value) = value else { return };
        // The value is looked at although the words behind it are wrong: it may be another mistake.
        let modes = modes.unwrap_or_default();
        if self.set_value(setting, value, &modes) && !setting.is_list() {
            self.note_repetition(name, entry.name, &modes);
        }
    }

    /// A name that is accepted because files of other releases have it (PBS-F-03).
    fn read_without_effect(&mut self, entry: &Entry, instead: Option<&str>) {
        if self.value_of(entry).is_none() {
            return;
        }
        let instead = instead.map(|name| format!("; {name} does something similar")).unwrap_or_default();
        self.findings.warning(entry.name, format!("has no effect here{instead}"));
    }

    fn value_of<'a>(&mut self, entry: &Entry<'a>) -> Option<Word<'a>> {
        if entry.value.is_none() {
            self.findings.error(entry.name, "expected a value behind the name");
        }
        let value = entry.value?;
        if entry.is_open {
            self.findings.error(value, "expected a quote at the end of the value");
            return None;
        }
        if value.is_garbled() {
            self.findings.error(value, "expected a value in UTF-8");
            return None;
        }
        Some(value)
    }

    /// The modes in which a line holds; `None` if its last words are wrong.
    fn modes_of(&mut self, entry: &Entry, setting: Setting) -> Option<Vec<Mode>> {
        let Some(when) = entry.rest.first() else { return Some(Mode::BOTH.to_vec()) };
        let Some(modes) = when_modes(when.text) else {
            self.findings.unknown(*when, "expected prime, non_prime, all or none", WHEN);
            return None;
        };
        if let Some(extra) = entry.rest.get(1) {
            self.findings.error(*extra, format!("expected nothing behind '{}'", when.text));
            return None;
        }
        if setting.has_when() {
            return Some(modes.to_vec());
        }
        if modes.is_empty() {
            self.findings.warning(*when, "the option has one value for all times: the line has no effect");
            return Some(Vec::new());
        }
        self.findings.warning(*when, "the option has one value for all times: the word has no effect");
        Some(Mode::BOTH.to_vec())
    }

    /// Warns of a line that overrides others (PBS-F-01).
    fn note_repetition(&mut self, option: &'static str, name: Word, modes: &[Mode]) {
        let set = self.set.entry(option).or_default();
        let mut overridden: BTreeMap<u32, Vec<Mode>> = BTreeMap::new();
        for mode in modes {
            if let Some(line) = set.get_mut(*mode).replace(name.line) {
                overridden.entry(line).or_default().push(*mode);
            }
        }
        for (line, modes) in overridden {
            let scope =
                if modes.len() == Mode::BOTH.len() { String::new() } else { format!(" for {}", show_modes(&modes)) };
            self.findings.warning(name, format!("is set again{scope}: line {line} no longer counts"));
        }
    }

    /// Sets an option in these modes; `false` if the value is wrong.
    fn set_value(&mut self, setting: Setting, value: Word, modes: &[Mode]) -> bool {
        let counts = !modes.is_empty();
        match setting {
            Setting::Switch(field) => {
                let Some(on) = self.boolean(value) else { return false };
                modes.iter().for_each(|mode| *field(self.config.modes.get_mut(*mode)) = on);
            }
            Setting::SortBy => return self.set_sort(value, modes),
            Setting::Key => return self.add_key(value, modes),
            Setting::IgnoreQueue => return self.ignore_queue(value, counts),
            Setting::LogFilter => return self.set_log_filter(value, counts),
            Setting::DedicatedPrefix => {
                return self.name(value, "a prefix").is_some_and(|prefix| {
                    put(&mut self.config.dedicated_prefix, prefix, counts);
                    true
                });
            }
            Setting::CheckResources => return self.set_checked_resources(value, counts),
            Setting::HalfLife => return self.set_half_life(value, counts),
            Setting::MaxStarve | Setting::SyncTime | Setting::LoadSettle => {
                let Some(seconds) = self.seconds(value) else { return false };
                put(self.seconds_of(setting), seconds, counts);
            }
            Setting::UnknownShares | Setting::Prestage => {
                let Some(number) = self.count(value) else { return false };
                let field = match setting {
                    Setting::Prestage => &mut self.config.prestaged_jobs,
                    _ => &mut self.config.unknown_shares,
                };
                put(field, number, counts);
            }
            Setting::StrictOrder
            | Setting::ResourcesMax
            | Setting::StarvingBlocks
            | Setting::FairShareModel
            | Setting::FairShareCharge
            | Setting::HolidaysStale => return self.set_choice(setting, value, counts),
        }
        true
    }

    fn seconds_of(&mut self, setting: Setting) -> &mut u64 {
        match setting {
            Setting::MaxStarve => &mut self.config.max_starve_seconds,
            Setting::SyncTime => &mut self.config.sync_seconds,
            _ => &mut self.config.load_settle_seconds,
        }
    }

    fn set_choice(&mut self, setting: Setting, value: Word, counts: bool) -> bool {
        macro_rules! choose {
            ($field:ident, $($word:literal => $meaning:expr),+) => {{
                let words = [$($word),+];
                let place = words.iter().position(|word| value.is(word));
                let Some(chosen) = place.and_then(|place| [$($meaning),+].into_iter().nth(place)) else {
                    self.findings.unknown(value, &format!("expected {}", words.join(" or ")), words);
                    return false;
                };
                put(&mut self.config.$field, chosen, counts);
            }};
        }
        match setting {
            Setting::StrictOrder => {
                choose!(strict_order, "sorted" => StrictOrder::Sorted, "arrival" => StrictOrder::Arrival);
            }
            Setting::ResourcesMax => {
                choose!(resources_max, "capacity" => ResourcesMax::Capacity, "per_job" => ResourcesMax::PerJob);
            }
            Setting::StarvingBlocks => {
                choose!(starving_blocks, "always" => StartsBlocked::Always, "resources" => StartsBlocked::Resources);
            }
            Setting::FairShareModel => {
                choose!(fair_share_model, "leaf" => FairShareModel::Leaf, "tree" => FairShareModel::Tree);
            }
            Setting::FairShareCharge => {
                choose!(fair_share_charge, "cput" => Charge::CpuTime, "ncpus*walltime" => Charge::CpusTimesWalltime);
            }
            _ => choose!(holidays_stale, "apply" => HolidaysStale::Apply, "ignore" => HolidaysStale::Ignore),
        }
        true
    }

    fn set_sort(&mut self, value: Word, modes: &[Mode]) -> bool {
        let Some(sort) = SortBy::parse(value.text) else {
            self.findings.unknown(value, "no such sort", sort_names());
            return false;
        };
        for mode in modes {
            self.config.modes.get_mut(*mode).sort_by = sort;
            *self.sorts.get_mut(*mode) = Some(Place::of(value));
        }
        true
    }

    fn add_key(&mut self, value: Word, modes: &[Mode]) -> bool {
        let key = match SortBy::parse(value.text) {
            Some(SortBy::Key(key)) => key,
            Some(SortBy::NoSort) => {
                self.findings.warning(value, "does not sort: the line has no effect");
                return true;
            }
            Some(SortBy::MultiSort) => {
                self.findings.error(value, "expected the name of a sort; multi_sort is for sort_by");
                return false;
            }
            None => {
                self.findings.unknown(value, "no such sort", SortKey::ALL.map(SortKey::name));
                return false;
            }
        };
        let full: Vec<Mode> =
            modes.iter().copied().filter(|mode| self.config.modes.get(*mode).keys.len() >= MOST_KEYS).collect();
        if !full.is_empty() {
            let message = format!("is more than the {MOST_KEYS} keys that are allowed in {}", show_modes(&full));
            self.findings.error(value, message);
            return false;
        }
        modes.iter().for_each(|mode| self.config.modes.get_mut(*mode).keys.push(key));
        self.key_lines.push((Place::of(value), modes.to_vec()));
        true
    }

    fn ignore_queue(&mut self, value: Word, counts: bool) -> bool {
        let Some(queue) = self.name(value, "a queue") else { return false };
        if !counts {
            return true;
        }
        self.ignore_lines += 1;
        if self.ignore_lines > MOST_IGNORED_QUEUES {
            let message = format!("is more than the {MOST_IGNORED_QUEUES} ignore_queue lines that are allowed");
            self.findings.error(value, message);
            return false;
        }
        if self.config.ignores(&queue) {
            self.findings.warning(value, "the queue is ignored already");
            return true;
        }
        self.config.ignored_queues.push(queue);
        true
    }

    fn set_log_filter(&mut self, value: Word, counts: bool) -> bool {
        let Some(filter) = self.count(value).map(LogFilter::new) else { return false };
        if filter.unknown() > 0 {
            self.findings.warning(value, format!("{} of the sum belongs to no class", filter.unknown()));
        }
        put(&mut self.config.log_filter, filter, counts);
        true
    }

    fn set_half_life(&mut self, value: Word, counts: bool) -> bool {
        match values::seconds(value.text) {
            Some(seconds) if seconds > 0 => {
                put(&mut self.config.half_life_seconds, seconds, counts);
                true
            }
            _ => {
                self.findings.error(value, "expected a time above zero, such as 24:00:00");
                false
            }
        }
    }

    fn set_checked_resources(&mut self, value: Word, counts: bool) -> bool {
        let names: Vec<String> = value.text.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            self.findings.error(value, "expected names of resources with commas between them");
            return false;
        }
        put(&mut self.config.checked_resources, Some(names), counts);
        true
    }

    fn boolean(&mut self, value: Word) -> Option<bool> {
        let boolean = values::boolean(value.text);
        if boolean.is_none() {
            self.findings.unknown(value, "expected true or false", values::BOOLEANS);
        }
        boolean
    }

    fn seconds(&mut self, value: Word) -> Option<u64> {
        let seconds = values::seconds(value.text);
        if seconds.is_none() {
            self.findings.error(value, "expected a time, such as 24:00:00");
        }
        seconds
    }

    fn count(&mut self, value: Word) -> Option<u32> {
        let count = values::decimal(value.text).and_then(|number| u32::try_from(number).ok());
        if count.is_none() {
            self.findings.error(value, format!("expected an integer from 0 to {}", u32::MAX));
        }
        count
    }

    fn name(&mut self, value: Word, kind: &str) -> Option<String> {
        if value.text.is_empty() || value.text.len() > LONGEST_NAME {
            self.findings.error(value, format!("expected {kind} of 1 to {LONGEST_NAME} bytes"));
            return None;
        }
        Some(value.text.to_owned())
    }

    /// Finds what shows only when all lines are read.
    fn finish(mut self) -> SchedConfig {
        self.warn_of_sorts_without_keys();
        for (place, modes) in std::mem::take(&mut self.key_lines) {
            let is_used = |mode: &Mode| self.config.modes.get(*mode).sort_by == SortBy::MultiSort;
            if !modes.is_empty() && !modes.iter().any(is_used) {
                let message =
                    format!("the key is not used in {}, because sort_by is not multi_sort", show_modes(&modes));
                self.findings.warning(place.word(), message);
            }
        }
        for mode in Mode::BOTH {
            self.warn_of_usage_and_strict_priority(mode);
        }
        self.config
    }

    /// `multi_sort` without keys is `no_sort` (PBS-S-04).
    fn warn_of_sorts_without_keys(&mut self) {
        let lacks_keys = |options: &ModeOptions| options.sort_by == SortBy::MultiSort && options.keys.is_empty();
        let modes: Vec<Mode> = Mode::BOTH.into_iter().filter(|mode| lacks_keys(self.config.modes.get(*mode))).collect();
        let mut by_line: BTreeMap<u32, (Place, Vec<Mode>)> = BTreeMap::new();
        for mode in modes {
            if let Some(place) = self.sorts.get(mode) {
                by_line.entry(place.line).or_insert_with(|| (place.clone(), Vec::new())).1.push(mode);
            }
        }
        for (place, modes) in by_line.into_values() {
            let message = format!("there is no key for {}: jobs are not sorted", show_modes(&modes));
            self.findings.warning(place.word(), message);
        }
    }

    /// Strict priority is a sort; fair share, which has the first word, would undo it (PBS-FS-10).
    fn warn_of_usage_and_strict_priority(&mut self, mode: Mode) {
        let options = self.config.modes.get(mode);
        if !options.fair_share || options.sort_by != SortBy::Key(SortKey::FairShare) {
            return;
        }
        if let Some(place) = self.sorts.get(mode) {
            let message = format!("fair_share is true in {}, so usage decides before this sort", show_modes(&[mode]));
            self.findings.warning(place.word(), message);
        }
    }
}

/// Sets a field, unless the line has no effect.
fn put<T>(field: &mut T, value: T, counts: bool) {
    if counts {
        *field = value;
    }
}

/// The modes of a word in the last column; none of `none`.
fn when_modes(word: &str) -> Option<&'static [Mode]> {
    Some(match word.to_ascii_lowercase().as_str() {
        "prime" => &[Mode::Prime],
        "non_prime" | "non-prime" | "nonprime" => &[Mode::NonPrime],
        "all" => &Mode::BOTH,
        "none" => &[],
        _ => return None,
    })
}

fn sort_names() -> impl Iterator<Item = &'static str> {
    SortKey::ALL.into_iter().map(SortKey::name).chain(["no_sort", "multi_sort"])
}
