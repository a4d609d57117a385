//! Any bytes are read without a panic, and what is said about them can be printed.

use crate::support::{DEDICATED_TIME, HOLIDAYS, RESOURCE_GROUP, SCHED_CONFIG, at, zurich};
use muster_pbs_policy::{
    check::{FILES, check},
    findings::{Findings, nearest},
    lines::Source,
    nodes::read_monitor,
    preset::Preset,
    report, values,
};
use nix::time::{ClockId, clock_gettime};
use proptest::prelude::*;
use std::time::Duration;

/// Words that lead deep into the readers.
const WORDS: &[&str] = &[
    "by_queue",
    "sort_by",
    "key",
    "multi_sort",
    "no_sort",
    "fair_share",
    "half_life",
    "ignore_queue",
    "log_filter",
    "muster_prestage",
    "debug_level",
    "prime",
    "non-prime",
    "none",
    "all",
    "true",
    "maybe",
    "0",
    "24:00:00",
    "YEAR",
    "1998",
    "weekday",
    "0400",
    "2460",
    "366",
    "367",
    "Jan",
    "31",
    "root",
    "unknown",
    "grp1",
    "grp2",
    "4294967295",
    "-1",
    "02/29/2000",
    "02/30/1998",
    "10:00",
    "24:00",
    "np=4",
    "n1:ts",
    "BATCH_QUEUES",
    "a,b@c,",
    "MAX_JOBS",
    "16%",
    "???",
    "01/01/2000@08:00:00",
    "-15%,+10%",
    "$ideal_load",
    "max_load",
    "2.5",
    "\"",
    ":",
    "#",
    "*",
    "\t",
    "\u{feff}",
    "\u{1b}",
    "ä",
    "99999999999999999999",
];

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let word = proptest::sample::select(WORDS.to_vec()).prop_map(str::to_owned);
    let line = proptest::collection::vec(prop_oneof![4 => word, 1 => ".{0,6}"], 0..7).prop_map(|words| words.join(" "));
    let text = proptest::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n").into_bytes());
    prop_oneof![3 => text, 1 => proptest::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// PBS-C-14, PBS-F-04: findings are in order, their tokens stand where they say, and no line breaks the output.
    #[test]
    fn any_files_are_checked(
        texts in proptest::collection::vec(any_text(), FILES.len()),
        present in proptest::collection::vec(any::<bool>(), FILES.len()),
        preset in proptest::option::of(proptest::sample::select(Preset::ALL.to_vec())),
    ) {
        let sources: Vec<Source> = FILES
            .iter()
            .zip(texts)
            .zip(present)
            .filter(|(_, present)| *present)
            .map(|((name, bytes), _)| Source { name: (*name).to_owned(), bytes })
            .collect();
        let checked = check(&sources, preset);
        prop_assert_eq!(checked.policy.is_some(), checked.errors.is_empty());
        prop_assert_eq!(checked.digests.len(), sources.len());
        for findings in [&checked.errors, &checked.warnings] {
            let place = |file: &str| FILES.iter().position(|name| *name == file).expect("a file");
            prop_assert!(findings.is_sorted_by_key(|finding| (place(&finding.file), finding.line, finding.column)));
        }
        let lines = report::lines(&checked, &zurich(), at("2026-03-29T01:59:00", &zurich()));
        prop_assert!(lines.iter().all(|line| !line.chars().any(char::is_control)), "{:?}", lines);
        prop_assert_eq!(check(&sources, preset), checked);
    }

    #[test]
    fn any_monitor_config_is_read(text in any_text(), cpus: u32) {
        let mut findings = Findings::new("config");
        let loads = read_monitor(&text, &mut findings).loads(cpus);
        let (errors, _) = findings.into_sorted();
        prop_assert!(!errors.is_empty() || loads.ideal <= loads.max);
    }

    #[test]
    fn any_values_are_read(text in ".{0,12}", digits in "[0-9:.kmgtbwKMGTBW]{0,30}") {
        for text in [&text, &digits] {
            if let Some(seconds) = values::seconds(text) {
                prop_assert_eq!(values::seconds(&values::show_seconds(seconds)), Some(seconds));
            }
            if let Some(number) = values::Decimal::parse(text) {
                prop_assert_eq!(values::Decimal::parse(&number.to_string()), Some(number));
            }
            let _ = (values::kilobytes(text), values::boolean(text), nearest(text, WORDS.iter().copied()));
        }
    }
}

/// How much longer the check of a file may take than that of its eighth: in proportion it is 8, by the square 64.
const MOST_GROWTH: u32 = 32;

/// The processor time of checking a file: what else the machine does and how fast it is does not matter to a ratio.
fn checking_time(name: &str, text: &str) -> Duration {
    let spent =
        || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every kernel has this clock"));
    let before = spent();
    let checked = check(&[Source::new(name, text)], Some(Preset::SgiOrigin));
    let lines = report::lines(&checked, &zurich(), at("2026-11-20T10:00:00", &zurich()));
    assert!(!lines.is_empty());
    spent() - before
}

/// PBS-C-14: the time for the worst files grows in proportion to their size.
#[test]
fn the_worst_files_do_not_keep_anybody_waiting() {
    let repeated = |line: &str| line.repeat((1 << 20) / line.len());
    let numbered = |line: fn(usize) -> String| (0..30_000).map(line).collect::<String>();
    let texts = [
        ("sched_config", repeated("abcdefghijklmnopqrst: x\n")),
        ("sched_config", repeated("by_queue: true all\n")),
        ("sched_config", repeated("key: longest_job_first\n")),
        ("sched_config", repeated("a ")),
        ("resource_group", numbered(|number| format!("user{number} {number} grou{number} 1\n"))),
        ("resource_group", numbered(|number| format!("user{number} {number} root 4294967295\n"))),
        ("holidays", repeated("1 Feb 30 x x x x x x x\n")),
        ("dedicated_time", repeated("1/1/98 1:00 1/2/98 1:00\n")),
        ("nodes", numbered(|number| format!("n{number}:ts np=4 a b\n"))),
        ("config", format!("BATCH_QUEUES {}", repeated("a,"))),
        ("config", format!("BATCH_QUEUES {}", numbered(|number| format!("q{number},")))),
    ];
    for (name, text) in texts {
        let eighth = &text[..text.len() / 8];
        let least = |text: &str, times: usize| (0..times).map(|_| checking_time(name, text)).min().expect("some");
        let (small, large) = (least(eighth, 5), least(&text, 1));
        // Interrupts count too: who is slow is looked at again.
        let is_fine = |large: Duration| large <= small * MOST_GROWTH;
        assert!(is_fine(large) || is_fine(least(&text, 3)), "{name}: {small:?} and {large:?} for {text:.60}");
    }
}

/// Variants of the examples.
const VARIANTS: u32 = 5_000;

/// A generator of numbers without any surprise (Lehmer's, by Park and Miller).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0 * 48_271 % 2_147_483_647;
        usize::try_from(self.0).unwrap_or(0) % most.max(1)
    }
}

/// An example with one to four changes: bytes put in, taken out, doubled, moved or cut off.
fn mutated(example: &str, numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = example.as_bytes().to_vec();
    for _ in 0..=numbers.below(4) {
        let from = numbers.below(bytes.len() + 1);
        let until = (from + numbers.below(16)).min(bytes.len());
        match numbers.below(6) {
            0 => drop(bytes.drain(from..until)),
            1 => bytes.extend_from_within(from..until),
            2 => bytes.truncate(from),
            3 => bytes.iter_mut().skip(from).take(1).for_each(|byte| *byte ^= 1 << numbers.below(8)),
            _ => drop(bytes.splice(from..from, format!(" {} ", WORDS[numbers.below(WORDS.len())]).into_bytes())),
        }
    }
    bytes
}

/// PBS-C-14, PBS-F-04: files of a site with some mistakes in them are read the same way in each run: a policy or findings with
/// file, line, column and word; and with the outages that a program prints it is the same.
#[test]
fn examples_with_mistakes_are_read() {
    const PRESET: &str = include_str!("../../../../../docs/examples/pbs/preset/config");
    let examples = [
        ("sched_config", SCHED_CONFIG),
        ("resource_group", RESOURCE_GROUP),
        ("holidays", HOLIDAYS),
        ("dedicated_time", DEDICATED_TIME),
        ("config", PRESET),
        ("nodes", "n1:ts fast np=4\nn2 np=2 # slow\n"),
    ];
    let mut numbers = Numbers(1);
    let (mut accepted, mut refused) = (0, 0);
    for variant in 0..VARIANTS {
        let changed = numbers.below(examples.len());
        let sources: Vec<Source> = examples
            .iter()
            .enumerate()
            .map(|(at, (name, text))| {
                let bytes = if at == changed { mutated(text, &mut numbers) } else { text.as_bytes().to_vec() };
                Source { name: (*name).to_owned(), bytes }
            })
            .collect();
        let preset = [None, Some(Preset::SgiOrigin)][numbers.below(2)];
        let checked = check(&sources, preset);
        match checked.policy.is_some() {
            true => accepted += 1,
            false => refused += 1,
        }
        for finding in checked.errors.iter().chain(&checked.warnings).filter(|finding| !finding.token.is_empty()) {
            let located = finding.located();
            let place = format!("{}:{}: column {}: ", finding.file, finding.line, finding.column);
            assert!(located.starts_with(&place) && finding.column > 0, "variant {variant}: {located}");
        }
        assert!(checked.errors.is_empty() == checked.policy.is_some(), "variant {variant}");
    }
    assert!(accepted > 500 && refused > 500, "{accepted} accepted, {refused} refused");
    let mut numbers = Numbers(2);
    for _ in 0..VARIANTS {
        let text = mutated("alpha 01/02/2026 08:00-12:00 01/02/2026 power\n  and cooling\n", &mut numbers);
        let _ = muster_pbs_policy::outages::read(&String::from_utf8_lossy(&text));
        let _ = muster_pbs_policy::allocations::over(&[Source { name: "allocations".into(), bytes: text }]);
    }
}
