//! The tree of shares in `resource_group` (PBS-FS-01 to PBS-FS-04).

use crate::{
    findings::Findings,
    lines::{self, Word},
    values,
};
pub use muster_schemas::shares::{Member, ROOT, Shares, UNKNOWN};
use std::collections::BTreeMap;

/// The maximum number of levels below the root. Parts of deeper members would have terms of any length.
pub const DEEPEST: u32 = 32;

/// The number of fields in a line.
const FIELDS: usize = 4;

/// Reads a file. Mistakes are added to the findings.
pub fn read(bytes: &[u8], unknown_shares: u32, findings: &mut Findings) -> Shares {
    let mut reader = Reader { shares: Shares::new(unknown_shares), findings, numbers: BTreeMap::new() };
    for line in lines::lines(bytes).filter(|line| !lines::is_comment(line)) {
        reader.read_line(&lines::words(&line));
    }
    let mut shares = reader.shares;
    shares.divide();
    shares
}

struct Reader<'f> {
    shares: Shares,
    findings: &'f mut Findings,
    /// The line of each number.
    numbers: BTreeMap<i64, u32>,
}

impl Reader<'_> {
    fn read_line(&mut self, words: &[Word]) {
        let [name, number, parent, shares] = words else { return self.note_field_count(words) };
        let is_new = self.is_new(*name);
        let number = self.number(*number);
        let parent = self.parent(*parent);
        let shares = values::decimal(shares.text)
            .and_then(|shares| u32::try_from(shares).ok())
            .or_else(|| self.refuse_shares(*shares));
        // A group with a mistake still has children, which are not mistakes.
        let (true, parent) = (is_new, parent.unwrap_or(Shares::ROOT)) else { return };
        let depth = self.shares.members()[parent].depth + 1;
        if depth > DEEPEST {
            return self.findings.error(*name, format!("is more than {DEEPEST} levels below the root"));
        }
        self.shares.add(Member::new(name.text, number, parent, shares.unwrap_or_default()));
    }

    fn note_field_count(&mut self, words: &[Word]) {
        let message = "expected four fields: name, number, parent, shares";
        match (words.get(FIELDS), words.last()) {
            (Some(extra), _) => self.findings.error(*extra, message),
            (None, Some(last)) => self.findings.error(*last, format!("{message}; there are {}", words.len())),
            (None, None) => {}
        }
    }

    fn is_new(&mut self, name: Word) -> bool {
        if [ROOT, UNKNOWN].contains(&name.text) {
            self.findings.error(name, "exists by itself and cannot be defined");
            return false;
        }
        if name.is_garbled() {
            self.findings.error(name, "expected a name in UTF-8");
            return false;
        }
        if self.shares.index_of(name.text).is_some() {
            self.findings.error(name, "the name is defined already");
            return false;
        }
        true
    }

    fn number(&mut self, word: Word) -> Option<i64> {
        let Ok(number) = word.text.parse::<i64>() else {
            self.findings.error(word, "expected an integer that identifies the group or user");
            return None;
        };
        if let Some(line) = self.numbers.insert(number, word.line) {
            self.findings.warning(word, format!("the number is the one of line {line}, too"));
        }
        Some(number)
    }

    fn parent(&mut self, word: Word) -> Option<usize> {
        let parent = match word.text {
            ROOT => Some(Shares::ROOT),
            UNKNOWN => Some(Shares::UNKNOWN),
            name => self.shares.index_of(name),
        };
        if parent.is_none() {
            let names = self.shares.members().iter().skip(2).map(|member| member.name.as_str());
            let known = names.chain([ROOT, UNKNOWN]);
            let message = "no line above defines the parent";
            self.findings.unknown(word, message, known);
        }
        parent
    }

    fn refuse_shares(&mut self, word: Word) -> Option<u32> {
        self.findings.error(word, format!("expected shares: an integer from 0 to {}", u32::MAX));
        None
    }
}
