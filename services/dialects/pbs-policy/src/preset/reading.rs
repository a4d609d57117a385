//! Reads the file `config` of a preset (PBS-P-02, PBS-P-23).

use super::{
    kinds::{self, BackfillMode, Enforced, Preset, QueueName, RestartAction, Variance},
    options::{Kind, OPTIONS, PresetOption},
    settings::PresetConfig,
};
use crate::{
    findings::Findings,
    lines::{self, Line, Word},
    values::{self, Decimal},
};
use std::{borrow::Cow, collections::BTreeMap};

/// The argument of options that the shipped file leaves to the site.
const TO_BE_SET: &str = "???";

/// The seconds of a day.
const DAY: u64 = 24 * 3600;

/// The maximum number of queues in a list.
const MOST_QUEUES: usize = 256;

/// The longest name, host or path, in bytes.
const LONGEST_TEXT: usize = 1024;

/// Reads the file of a preset. Mistakes are added to the findings, and the values of their lines do not count.
pub fn read(bytes: &[u8], preset: Preset, findings: &mut Findings) -> PresetConfig {
    let mut reader = Reader { config: PresetConfig::new(preset), findings, set: BTreeMap::new() };
    for line in lines::lines(bytes) {
        // A comment begins anywhere in a line.
        let text = line.text.split('#').next().unwrap_or_default();
        let line = Line { number: line.number, text: Cow::Borrowed(text) };
        if let Some((name, arguments)) = lines::words(&line).split_first() {
            reader.read_option(*name, arguments);
        }
    }
    reader.finish()
}

struct Reader<'f> {
    config: PresetConfig,
    findings: &'f mut Findings,
    /// The line of each option.
    set: BTreeMap<&'static str, u32>,
}

impl Reader<'_> {
    fn read_option(&mut self, name: Word, arguments: &[Word]) {
        let Some(option) = OPTIONS.iter().find(|option| name.is(option.name)) else {
            return self.findings.unknown(name, "no such option", OPTIONS.iter().map(|option| option.name));
        };
        let previous = self.set.insert(option.name, name.line);
        let preset = self.config.preset;
        if !option.readers.contains(&preset) {
            return self.findings.warning(name, format!("has no effect: {} does not read it", preset.name()));
        }
        let Some(argument) = arguments.first() else {
            return self.findings.error(name, "expected an argument behind the name");
        };
        if argument.text == TO_BE_SET {
            return self.findings.error(name, "must be set");
        }
        if let Kind::Queues(field) = option.kind {
            // The first mistake in a line is enough: a line can hold any number.
            let _ = arguments.iter().all(|words| self.add_queues(field, *words));
            return;
        }
        if let Some(extra) = arguments.get(1) {
            return self.findings.error(*extra, "expected one argument only");
        }
        self.set_option(option, name, *argument);
        if let Some(line) = previous.filter(|_| !matches!(option.kind, Kind::NoEffect)) {
            self.findings.warning(name, format!("is set again: line {line} no longer counts"));
        }
    }

    fn set_option(&mut self, option: &PresetOption, name: Word, argument: Word) {
        let text = argument.text;
        let config = &mut self.config;
        let expected = match option.kind {
            Kind::Boolean(field) => match kinds::boolean(text) {
                Some(value) => return *field(config) = value,
                None => return self.findings.unknown(argument, "expected true or false", kinds::booleans()),
            },
            Kind::Integer(field, least, most) => {
                match kinds::integer(text).filter(|number| (least..=most).contains(number)) {
                    Some(number) => return *field(config) = number,
                    None => format!("an integer from {least} to {most}"),
                }
            }
            Kind::Ratio(field) => match Decimal::parse(text).filter(|number| *number <= Decimal::whole(1)) {
                Some(number) => return *field(config) = number,
                None => "a number from 0 to 1".to_owned(),
            },
            Kind::Time(field) => match values::seconds(text) {
                Some(seconds) => return *field(config) = seconds,
                None => "a time HH:MM:SS".to_owned(),
            },
            Kind::Clock(field) => match values::seconds(text).filter(|seconds| *seconds <= DAY) {
                Some(seconds) => return *field(config) = seconds,
                None => "a time of day HH:MM:SS, up to 24:00:00".to_owned(),
            },
            Kind::Path(field) => match Some(text).filter(|text| text.starts_with('/') && is_plain(text)) {
                Some(path) => return *field(config) = Some(path.to_owned()),
                None => "an absolute path".to_owned(),
            },
            Kind::Host(field) => match Some(text).filter(|text| !text.starts_with('-') && is_plain(text)) {
                Some(host) => return *field(config) = Some(host.to_lowercase()),
                None => "the name of a host".to_owned(),
            },
            Kind::Text(field) => match Some(text).filter(|text| is_plain(text)) {
                Some(name) => return *field(config) = Some(name.to_owned()),
                None => "a name".to_owned(),
            },
            Kind::Queue(field) => match QueueName::parse(text) {
                Some(queue) => return *field(config) = Some(queue),
                None => "one queue, or queue@host".to_owned(),
            },
            Kind::Queues(field) => {
                let _ = self.add_queues(field, argument);
                return;
            }
            Kind::Enforced(field) => match Enforced::parse(text) {
                Some(enforced) => return *field(config) = enforced,
                None => "a boolean, or MM/DD/YYYY@HH:MM:SS".to_owned(),
            },
            Kind::Size(field) => match values::kilobytes(text).filter(|size| *size > 0) {
                Some(size) => return *field(config) = size,
                None => "a size of 1kb or more, such as 256mb".to_owned(),
            },
            Kind::Variance => match Variance::parse(text) {
                Some(variance) => return config.target_load_variance = variance,
                None => "-m%,+n% with integers".to_owned(),
            },
            Kind::RestartAction => match restart_action(text) {
                Some(action) => return config.restart_action = action,
                None => "NONE, RESUBMIT or RERUN".to_owned(),
            },
            Kind::BackfillMode => match backfill_mode(text) {
                Some(mode) => return config.backfill_mode = mode,
                None => "none, static or dynamic".to_owned(),
            },
            Kind::NoEffect => return self.findings.warning(name, "has no effect here"),
        };
        self.findings.error(argument, format!("expected {expected}"));
    }

    /// Adds the queues of a word to a list; `false` if there is a mistake.
    fn add_queues(&mut self, field: fn(&mut PresetConfig) -> &mut Vec<QueueName>, words: Word) -> bool {
        // A comma at an end continues the list in the next word or line.
        for text in words.text.split(',').filter(|text| !text.is_empty()) {
            let queues = field(&mut self.config);
            let problem = match QueueName::parse(text) {
                None => "expected queues or queue@host with commas between them".to_owned(),
                Some(queue) if queues.contains(&queue) => "the queue is in the list already".to_owned(),
                Some(_) if queues.len() >= MOST_QUEUES => format!("is more than the {MOST_QUEUES} queues of a list"),
                Some(queue) => {
                    queues.push(queue);
                    continue;
                }
            };
            self.findings.error(Word { text, ..words }, problem);
            return false;
        }
        true
    }

    /// Finds the mistakes that show only when all lines are read.
    fn finish(self) -> PresetConfig {
        let preset = self.config.preset;
        for option in OPTIONS.iter().filter(|option| option.is_required && option.readers.contains(&preset)) {
            if !self.set.contains_key(option.name) {
                self.findings.error(Word::of_file(option.name), "must be set");
            }
        }
        let is_enforced = self.config.enforce_dedicated_time != Enforced::Never;
        if let Some(line) = self.set.get("ENFORCE_DEDICATED_TIME").filter(|_| is_enforced)
            && !self.set.contains_key("DEDICATED_TIME_COMMAND")
        {
            let word = Word { text: "ENFORCE_DEDICATED_TIME", line: *line, column: 1 };
            self.findings.error(word, "needs DEDICATED_TIME_COMMAND, which is not set");
        }
        self.config
    }
}

fn is_plain(text: &str) -> bool {
    text.len() <= LONGEST_TEXT && !text.contains([',', char::REPLACEMENT_CHARACTER])
}

fn restart_action(text: &str) -> Option<RestartAction> {
    let all = [RestartAction::None, RestartAction::Resubmit, RestartAction::Rerun];
    all.into_iter().find(|action| action.name().eq_ignore_ascii_case(text))
}

fn backfill_mode(text: &str) -> Option<BackfillMode> {
    let all = [BackfillMode::None, BackfillMode::Static, BackfillMode::Dynamic];
    all.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(text))
}
