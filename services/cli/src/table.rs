//! Tables for people: aligned columns, two spaces between them, cut only where a terminal would wrap.

use std::io::Write;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Left: for text.
    Left,
    /// Right: for numbers.
    Right,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The heading.
    pub title: &'static str,
    /// The alignment.
    pub align: Align,
}

/// A column of text.
pub const fn left(title: &'static str) -> Column {
    Column { title, align: Align::Left }
}

/// A column of numbers.
pub const fn right(title: &'static str) -> Column {
    Column { title, align: Align::Right }
}

/// The look of a cell on a terminal with colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// No style.
    #[default]
    Plain,
    /// In order.
    Good,
    /// Needs attention.
    Warning,
    /// Went wrong.
    Bad,
    /// Of little interest.
    Dim,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "\x1b[32m",
            Self::Warning => "\x1b[33m",
            Self::Bad => "\x1b[31m",
            Self::Dim => "\x1b[2m",
        }
    }
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell with a style.
    pub fn styled(text: impl AsRef<str>, style: Style) -> Self {
        Self { text: printable(text.as_ref()), style }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::Plain)
    }
}

/// The text without control characters, which could steer a terminal: names come from users.
pub fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}

/// How a table is printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// The width at which lines are cut.
    pub width: Option<usize>,
    /// Use colours.
    pub colours: bool,
}

/// Rows under titles.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// Whether columns without any text are printed too.
    has_all_columns: bool,
}

impl Table {
    /// An empty table.
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new(), has_all_columns: false }
    }

    /// The same table, printed with its empty columns.
    pub fn with_all_columns(self) -> Self {
        Self { has_all_columns: true, ..self }
    }

    /// Adds a row at the end, with one cell for each column.
    pub fn push(&mut self, row: impl Into<Vec<Cell>>) {
        let row = row.into();
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the table with its headings. Columns (but the first) whose cells are all empty are left out, unless all
    /// are wanted.
    pub fn write(&self, layout: Layout, out: &mut impl Write) -> std::io::Result<()> {
        let used: Vec<usize> = (0..self.columns.len())
            .filter(|at| *at == 0 || self.has_all_columns || self.rows.is_empty() || self.has_text(*at))
            .collect();
        let widths: Vec<usize> = used.iter().map(|at| self.width_of(*at)).collect();
        let titles: Vec<Cell> = self.columns.iter().map(|column| Cell::from(column.title)).collect();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let line = self.line(row, &used, &widths, layout);
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn has_text(&self, column: usize) -> bool {
        self.rows.iter().any(|row| !row[column].text.is_empty())
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].text.chars().count());
        cells.chain([self.columns[column].title.chars().count()]).max().unwrap_or(0)
    }

    fn line(&self, row: &[Cell], used: &[usize], widths: &[usize], layout: Layout) -> String {
        let mut line = String::new();
        let mut left = layout.width.unwrap_or(usize::MAX);
        for (place, (at, width)) in used.iter().zip(widths).enumerate() {
            let last = place + 1 == used.len();
            let padding = width - row[*at].text.chars().count();
            let gap = if place == 0 { 0 } else { 2 };
            let (before, after) = match self.columns[*at].align {
                Align::Right => (padding + gap, 0),
                Align::Left => (gap, if last { 0 } else { padding }),
            };
            if left <= before {
                break;
            }
            left -= before;
            line.extend(std::iter::repeat_n(' ', before));
            let text = cut(&row[*at].text, left);
            left -= text.chars().count();
            let code = if layout.colours { row[*at].style.code() } else { "" };
            if code.is_empty() {
                line.push_str(&text)
            } else {
                line.extend([code, &text, "\x1b[0m"])
            }
            let after = after.min(left);
            left -= after;
            line.extend(std::iter::repeat_n(' ', after));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// The text, or its beginning with `…` if it is longer than `width`.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(table: &Table, layout: Layout) -> String {
        let mut out = Vec::new();
        table.write(layout, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn example() -> Table {
        let mut table = Table::new([right("JOB"), left("NAME"), left("EMPTY"), left("REASON")]);
        table.push(["7".into(), "short".into(), "".into(), Cell::styled("held", Style::Warning)]);
        table.push(["1234".into(), "evil\x1b[31m".into(), "".into(), "".into()]);
        table
    }

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        assert_eq!(
            print(&example(), Layout::default()),
            " JOB  NAME       REASON\n   7  short      held\n1234  evil?[31m\n"
        );
    }

    #[test]
    fn lines_are_cut_to_the_terminal() {
        let text = print(&example(), Layout { width: Some(13), colours: false });
        assert_eq!(text, " JOB  NAME\n   7  short\n1234  evil?[…\n");
    }

    #[test]
    fn colours_do_not_shift_columns() {
        let text = print(&example(), Layout { width: None, colours: true });
        assert!(text.contains("   7  short      \x1b[33mheld\x1b[0m\n"), "{text:?}");
    }
}
