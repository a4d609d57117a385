//! The allocations of groups, as the files in `SCHED_ACCT_DIR` of the presets tell them (PBS-P-03).

use crate::{
    findings::{Finding, Findings},
    lines::{self, MOST_BYTES, MOST_LINES, Source, Word},
    values::Decimal,
};
use std::collections::BTreeMap;

/// The file with what each group may use.
pub const ALLOCATED: &str = "allocations";
/// The file with what each group has used.
pub const USED: &str = "current";
/// Both.
pub const FILES: [&str; 2] = [ALLOCATED, USED];

/// Amounts of groups, in the unit of the site.
type Amounts = BTreeMap<String, Decimal>;

/// The groups that have used more than they may, in the order of their names. Each line of a file is `GROUP AMOUNT`; a `#`
/// begins a comment. A group without an allocation has none to use up, and one that is not in [`USED`] has used nothing.
///
/// # Errors
/// All mistakes in both files.
pub fn over(sources: &[Source]) -> Result<Vec<String>, Vec<Finding>> {
    let (mut all, mut mistakes) = (Vec::new(), Vec::new());
    for name in FILES {
        let mut findings = Findings::new(name);
        let bytes = sources.iter().find(|source| source.name == name).map_or(&[][..], |source| &source.bytes);
        all.push(read(bytes, &mut findings));
        mistakes.extend(findings.into_sorted().0);
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let [allocated, used] = &all[..] else { return Ok(Vec::new()) };
    let is_over = |(group, most): &(&String, &Decimal)| used.get(*group).is_some_and(|used| used > *most);
    Ok(allocated.iter().filter(is_over).map(|(group, _)| group.clone()).collect())
}

fn read(bytes: &[u8], findings: &mut Findings) -> Amounts {
    let mut amounts = Amounts::new();
    if bytes.len() > MOST_BYTES || bytes.iter().filter(|byte| **byte == b'\n').count() > MOST_LINES {
        findings.error(Word::of_file(""), format!("expected at most {MOST_BYTES} bytes and {MOST_LINES} lines"));
        return amounts;
    }
    for line in lines::lines(bytes).filter(|line| !lines::is_comment(line)) {
        let words = lines::words(&line);
        let words = words.split(|word| word.text.starts_with('#')).next().unwrap_or_default();
        let (group, amount) = match words {
            [] => continue,
            [group, amount] => (group, amount),
            [.., last] => {
                findings.error(*last, "expected GROUP AMOUNT");
                continue;
            }
        };
        let Some(value) = Decimal::parse(amount.text) else {
            findings.error(*amount, "expected a number such as 1200 or 50.5");
            continue;
        };
        if amounts.insert(group.text.to_owned(), value).is_some() {
            findings.error(*group, "a line above has this group already");
        }
    }
    amounts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(allocated: &str, used: &str) -> Result<Vec<String>, Vec<String>> {
        let sources = [Source::new(ALLOCATED, allocated), Source::new(USED, used)];
        over(&sources).map_err(|mistakes| mistakes.iter().map(|one| format!("{}:{}", one.file, one.line)).collect())
    }

    /// PBS-P-03: a group is over its allocation if it has used more than it may.
    #[test]
    fn groups_use_up_their_allocations() {
        let allocated = "# nodes x hours\nphysics 1000\nchem 50.5 # half\nart 10\n";
        let found = of(allocated, "physics 1000\nchem 50.6\nfilm 99999\n");
        assert_eq!(found, Ok(vec!["chem".to_owned()]), "as much as it may is not more, and film has no allocation");
        assert_eq!(over(&[]), Ok(Vec::new()));
    }

    /// PBS-P-03: all mistakes are told.
    #[test]
    fn mistakes_of_both_files_are_told() {
        let found = of("physics\nchem many\nart 1\nart 2\n", "physics 1 2\n-1\n");
        let places = ["allocations:1", "allocations:2", "allocations:4", "current:1", "current:2"];
        assert_eq!(found, Err(places.map(str::to_owned).to_vec()));
    }
}
