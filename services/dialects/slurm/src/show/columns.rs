//! One engine for all tables: `-o "%.18i %j"`, `-O "JobID:.18,Name"` and `--format=JobID%-12,State` (SL-C-23, C-24,
//! C-29, SL-A-07).
//!
//! A format is compiled once; each row is then written into one buffer, cell by cell, without copies.

use super::Clock;

/// The default width of a named column of `-O`.
const NAMED_WIDTH: usize = 20;

/// The greatest width.
const MOST_WIDTH: usize = 65_535;

/// A kind of column: its letter and names, its header, and how its value is written.
pub struct Field<R: 'static> {
    /// Its letter in printf-like formats.
    pub letter: Option<char>,
    /// Its long names, in any case.
    pub names: &'static [&'static str],
    /// Its header.
    pub header: &'static str,
    /// Its default width in lists of names; negative aligns it to the left.
    pub width: i16,
    /// Writes its value.
    pub write: fn(&R, &Clock, &mut String),
    /// Whether its value needs all the details of a record.
    pub is_detailed: bool,
}

impl<R> Field<R> {
    /// A field of printf-like formats.
    pub const fn new(
        letter: Option<char>,
        names: &'static [&'static str],
        header: &'static str,
        write: fn(&R, &Clock, &mut String),
    ) -> Self {
        Self { letter, names, header, width: 0, write, is_detailed: false }
    }

    /// A field with its own width; negative aligns it to the left.
    pub const fn wide(names: &'static [&'static str], width: i16, write: fn(&R, &Clock, &mut String)) -> Self {
        Self { letter: None, names, header: names[0], width, write, is_detailed: false }
    }

    /// The same field for records with all their details.
    pub const fn detailed(self) -> Self {
        Self { is_detailed: true, ..self }
    }

    fn is_named(&self, name: &str) -> bool {
        self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// How a value longer than its column is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overflow {
    /// Its end is left out.
    Cut,
    /// Its end is replaced by a `+`.
    Mark,
}

struct Column<R: 'static> {
    field: &'static Field<R>,
    /// 0 means the width of the value.
    width: usize,
    is_right: bool,
    overflow: Overflow,
    /// The text between it and the next.
    after: String,
}

/// A compiled format: the text before the first column, and the columns.
pub struct Layout<R: 'static> {
    before: String,
    columns: Vec<Column<R>>,
}

/// The letter or name of an unknown column in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Invalid job format specification: {0}")]
pub struct FormatError(pub String);

/// The layout of a list of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListStyle {
    /// In columns, each followed by a blank.
    Columns,
    /// With this between the values, and after the last one if `ends`.
    Separated {
        /// The separator.
        by: String,
        /// Whether it also follows the last value.
        ends: bool,
    },
}

impl<R> Layout<R> {
    /// Reads `text%[[.]width]letter[text]...`; `%all` is every letter of the table with `|` between (SL-C-24).
    ///
    /// # Errors
    /// A letter that is not in the table.
    pub fn printf(format: &str, fields: &'static [Field<R>]) -> Result<Self, FormatError> {
        if let Some(at) = format.to_ascii_lowercase().find("%all") {
            return Ok(Self::all(&format[..at], fields));
        }
        let mut parts = format.split('%');
        let before = parts.next().unwrap_or_default().to_owned();
        let mut columns = Vec::new();
        for part in parts.filter(|part| !part.is_empty()) {
            let (width, is_right, rest) = width_of(part);
            let Some(letter) = rest.chars().next() else { continue };
            let field = fields.iter().find(|field| field.letter == Some(letter));
            let field = field.ok_or_else(|| FormatError(letter.to_string()))?;
            let after = rest[letter.len_utf8()..].to_owned();
            columns.push(Column { field, width, is_right, overflow: Overflow::Cut, after });
        }
        Ok(Self { before, columns })
    }

    fn all(before: &str, fields: &'static [Field<R>]) -> Self {
        let lettered = fields.iter().filter(|field| field.letter.is_some());
        let column =
            |field| Column { field, width: 0, is_right: false, overflow: Overflow::Cut, after: "|".to_owned() };
        let mut columns: Vec<Column<R>> = lettered.map(column).collect();
        if let Some(last) = columns.last_mut() {
            last.after.clear();
        }
        Self { before: before.to_owned(), columns }
    }

    /// Reads `name[:[.][width][text]],...`; the default width is 20 (SL-C-24). `ALL` is every name of the table.
    ///
    /// # Errors
    /// A name that is not in the table.
    pub fn named(format: &str, fields: &'static [Field<R>]) -> Result<Self, FormatError> {
        let mut columns = Vec::new();
        for part in format.split(',').filter(|part| !part.is_empty()) {
            let (name, size) = part.split_once(':').map_or((part, None), |(name, size)| (name, Some(size)));
            let (width, is_right, after) = size.map_or((NAMED_WIDTH, false, ""), width_of);
            let column = |field| Column { field, width, is_right, overflow: Overflow::Cut, after: after.to_owned() };
            if name.eq_ignore_ascii_case("all") {
                columns.extend(fields.iter().filter(|field| !field.names.is_empty()).map(column));
                continue;
            }
            let field = fields.iter().find(|field| field.is_named(name)).ok_or_else(|| FormatError(name.to_owned()))?;
            columns.push(column(field));
        }
        Ok(Self { before: String::new(), columns })
    }

    /// Reads `name[%[-]width],...`, names in any case; `ALL` is the whole table (SL-A-07).
    ///
    /// # Errors
    /// A name that is not in the table.
    pub fn listed(format: &str, fields: &'static [Field<R>], style: &ListStyle) -> Result<Self, FormatError> {
        let mut columns = Vec::new();
        for part in format.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, width) = part.split_once('%').map_or((part, None), |(name, width)| (name, width.parse().ok()));
            if name.eq_ignore_ascii_case("all") {
                columns.extend(fields.iter().map(|field| list_column(field, field.width, style)));
                continue;
            }
            let field = fields.iter().find(|field| field.is_named(name)).ok_or_else(|| FormatError(name.to_owned()))?;
            columns.push(list_column(field, width.unwrap_or(field.width), style));
        }
        if let (ListStyle::Separated { ends: false, .. }, Some(last)) = (style, columns.last_mut()) {
            last.after.clear();
        }
        Ok(Self { before: String::new(), columns })
    }

    /// The fields of the columns, in order.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field<R>> + '_ {
        self.columns.iter().map(|column| column.field)
    }

    /// The line above the columns.
    pub fn write_header(&self, out: &mut String) {
        out.push_str(&self.before);
        for column in &self.columns {
            let start = out.len();
            out.push_str(column.field.header);
            column.fit(start, Overflow::Cut, out);
        }
        out.push('\n');
    }

    /// A line of dashes below the header.
    pub fn write_dashes(&self, out: &mut String) {
        out.push_str(&self.before);
        for column in &self.columns {
            out.extend(std::iter::repeat_n('-', column.width.max(1)));
            out.push_str(&column.after);
        }
        out.push('\n');
    }

    /// The line of a record.
    pub fn write_row(&self, record: &R, clock: &Clock, out: &mut String) {
        out.push_str(&self.before);
        for column in &self.columns {
            let start = out.len();
            (column.field.write)(record, clock, out);
            column.fit(start, column.overflow, out);
        }
        out.push('\n');
    }
}

fn list_column<R>(field: &'static Field<R>, width: i16, style: &ListStyle) -> Column<R> {
    let (width, is_right) = (usize::from(width.unsigned_abs()), width >= 0);
    match style {
        ListStyle::Columns => Column { field, width, is_right, overflow: Overflow::Mark, after: " ".to_owned() },
        ListStyle::Separated { by, .. } => {
            Column { field, width: 0, is_right, overflow: Overflow::Mark, after: by.clone() }
        }
    }
}

/// The width at the beginning of a format part, whether a point before it aligns to the right, and the rest.
fn width_of(part: &str) -> (usize, bool, &str) {
    let (is_right, part) = part.strip_prefix('.').map_or((false, part), |rest| (true, rest));
    let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &part[..part.len() - rest.len()];
    let width = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(MOST_WIDTH) };
    (width.min(MOST_WIDTH), is_right, rest)
}

impl<R> Column<R> {
    /// Fits the text from `start` into the column, and adds the text after the column. A value always stays on one
    /// line, whatever the name of its job.
    fn fit(&self, start: usize, overflow: Overflow, out: &mut String) {
        let length = match out.as_bytes()[start..].iter().all(|byte| (b' '..=b'~').contains(byte)) {
            true => out.len() - start,
            false => clean(start, out),
        };
        match self.width {
            0 => {}
            width if length > width => shorten(start, width, overflow, out),
            width if self.is_right => insert_blanks(start, width - length, out),
            width => out.extend(std::iter::repeat_n(' ', width - length)),
        }
        out.push_str(&self.after);
    }
}

/// Cuts the text from `start` to this many characters.
fn shorten(start: usize, width: usize, overflow: Overflow, out: &mut String) {
    let kept = match overflow {
        Overflow::Cut => width,
        Overflow::Mark => width - 1,
    };
    let end = out[start..].char_indices().nth(kept).map_or(out.len(), |(at, _)| start + at);
    out.truncate(end);
    if overflow == Overflow::Mark {
        out.push('+');
    }
}

/// Replaces control characters by `?`, and counts the characters.
fn clean(start: usize, out: &mut String) -> usize {
    if out[start..].contains(char::is_control) {
        let cleaned = out[start..].replace(char::is_control, "?");
        out.truncate(start);
        out.push_str(&cleaned);
    }
    out[start..].chars().count()
}

fn insert_blanks(start: usize, count: usize, out: &mut String) {
    const BLANKS: &str = "                                                                ";
    let mut left = count;
    while left > 0 {
        let some = left.min(BLANKS.len());
        out.insert_str(start, &BLANKS[..some]);
        left -= some;
    }
}
