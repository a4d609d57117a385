//! The tree of shares in `resource_group` (PBS-FS-01 to PBS-FS-04).

use crate::{
    findings::Findings,
    fraction::Fraction,
    lines::{self, Word},
    values,
};
use std::collections::BTreeMap;

/// The name of the whole machine in the file.
pub const ROOT: &str = "root";

/// The name of the group of all users who are not in the file.
pub const UNKNOWN: &str = "unknown";

/// The maximum number of levels below the root. Parts of deeper members would have terms of any length.
pub const DEEPEST: u32 = 32;

/// The shares of a user who is not in the file (PBS-FS-04).
const SHARES_OF_UNKNOWN_USER: u32 = 1;

/// The number of fields in a line.
const FIELDS: usize = 4;

/// A group or a user in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its number in the file; `None` for the root, the group of unknown users, and these users.
    pub number: Option<i64>,
    /// The index of its parent, which is lower than its own; the root is its own parent.
    pub parent: usize,
    /// Its shares of what the parent has.
    pub shares: u32,
    /// Its part of the machine.
    pub part: Fraction,
    /// Its distance from the root.
    pub depth: u32,
}

/// The tree of groups and users with their parts of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// The root, the group of unknown users, then all others, each behind its parent.
    members: Vec<Member>,
    /// The indices of all members but the root and the group of unknown users.
    by_name: BTreeMap<String, usize>,
}

impl Shares {
    /// The index of the root.
    pub const ROOT: usize = 0;

    /// The index of the group of unknown users.
    pub const UNKNOWN: usize = 1;

    /// The tree without a file: the root and the group of unknown users (PBS-FS-02).
    pub fn new(unknown_shares: u32) -> Self {
        let mut shares = Self { members: Vec::new(), by_name: BTreeMap::new() };
        shares.members.push(member(ROOT, None, Self::ROOT, 0, 0));
        shares.members.push(member(UNKNOWN, None, Self::ROOT, unknown_shares, 1));
        shares.divide();
        shares
    }

    /// Reads a file. Mistakes are added to the findings.
    pub fn read(bytes: &[u8], unknown_shares: u32, findings: &mut Findings) -> Self {
        let mut reader = Reader { shares: Self::new(unknown_shares), findings, numbers: BTreeMap::new() };
        for line in lines::lines(bytes).filter(|line| !lines::is_comment(line)) {
            reader.read_line(&lines::words(&line));
        }
        let mut shares = reader.shares;
        shares.divide();
        shares
    }

    /// The root, the group of unknown users, then all others, each behind its parent.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The member that a user is. The names `root` and `unknown` belong to no user: jobs of users who are called so are
    /// those of unknown users.
    pub fn find(&self, user: &str) -> Option<&Member> {
        self.index_of(user).map(|index| &self.members[index])
    }

    /// The index of the member that a user is.
    pub fn index_of(&self, user: &str) -> Option<usize> {
        self.by_name.get(user).copied()
    }

    /// The tree with those of these users who are not in it as members of the group of unknown users, with one share
    /// each (PBS-FS-04).
    #[must_use]
    pub fn with_users<'u>(&self, users: impl IntoIterator<Item = &'u str>) -> Self {
        let mut shares = self.clone();
        for user in users {
            if shares.index_of(user).is_none() {
                shares.add(member(user, None, Self::UNKNOWN, SHARES_OF_UNKNOWN_USER, 2));
            }
        }
        shares.divide();
        shares
    }

    /// The indices of a member's children, in the order of the file.
    pub fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.members.len()];
        for (index, member) in self.members.iter().enumerate().skip(1) {
            children[member.parent].push(index);
        }
        children
    }

    fn add(&mut self, member: Member) {
        self.by_name.insert(member.name.clone(), self.members.len());
        self.members.push(member);
    }

    /// Computes all parts: the shares of a member, divided by those of all children of its parent, times the part of the
    /// parent (PBS-FS-03).
    fn divide(&mut self) {
        let mut sums = vec![0u64; self.members.len()];
        for member in self.members.iter().skip(1) {
            sums[member.parent] += u64::from(member.shares);
        }
        self.members[Self::ROOT].part = Fraction::one();
        for index in 1..self.members.len() {
            let Member { parent, shares, .. } = self.members[index];
            self.members[index].part = self.members[parent].part.times(u64::from(shares), sums[parent]);
        }
    }
}

fn member(name: &str, number: Option<i64>, parent: usize, shares: u32, depth: u32) -> Member {
    Member { name: name.to_owned(), number, parent, shares, part: Fraction::zero(), depth }
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
        let depth = self.shares.members[parent].depth + 1;
        if depth > DEEPEST {
            return self.findings.error(*name, format!("is more than {DEEPEST} levels below the root"));
        }
        self.shares.add(member(name.text, number, parent, shares.unwrap_or_default(), depth));
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
            let known = self.shares.by_name.keys().map(String::as_str).chain([ROOT, UNKNOWN]);
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
