//! Reads `holidays`, in the form of UNICOS 8 (PBS-T-01, PBS-T-03, PBS-T-04, PBS-T-06).

use super::{Holiday, Holidays, Hours, Start};
use crate::{
    findings::Findings,
    lines::{self, Word},
    values,
};
use jiff::{ToSpan, civil::Date};

/// The first word of a file of the first version of the form. It is skipped.
const VERSION: &str = "HOLIDAYFILE_VERSION1";

/// The number of the last day of a year.
const LAST_DAY: u64 = 366;

/// The rows with hours. The place of a day is its weekday, Monday first; `weekday` is last.
const ROWS: [&str; 8] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "weekday"];

/// The place of `weekday` in the rows, and the number of days for which it stands.
const WEEKDAY: usize = 7;
const WORKING_DAYS: usize = 5;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Reads a file. Mistakes are added to the findings, and their lines do not count.
pub fn read(bytes: &[u8], findings: &mut Findings) -> Holidays {
    let mut reader = Reader { year: None, rows: [None; 8], holidays: Vec::new(), findings };
    for line in lines::lines(bytes).filter(|line| !lines::is_comment(line)) {
        reader.read_line(&lines::words(&line));
    }
    reader.finish()
}

struct Reader<'f> {
    year: Option<(i16, u32)>,
    /// The hours of each row and its line.
    rows: [Option<(Hours, u32)>; 8],
    holidays: Vec<HolidayRow>,
    findings: &'f mut Findings,
}

struct HolidayRow {
    holiday: Holiday,
    /// The written month and day, if they can be read.
    date: Option<(i8, i8)>,
    /// The number as it stands in the file.
    number: String,
    line: u32,
    column: u32,
}

impl Reader<'_> {
    fn read_line(&mut self, words: &[Word]) {
        let Some((first, rest)) = words.split_first() else { return };
        if first.is(VERSION) {
            return;
        }
        if first.is("YEAR") {
            return self.read_year(*first, rest);
        }
        if let Some(row) = ROWS.iter().position(|row| first.is(row)) {
            return self.read_hours(row, *first, rest);
        }
        if !first.text.bytes().all(|byte| byte.is_ascii_digit()) {
            let known = ROWS.into_iter().chain(["YEAR", VERSION]);
            return self.findings.unknown(
                *first,
                "expected YEAR, weekday, a day of the week, or a day from 1 to 366",
                known,
            );
        }
        // A number of four digits is a year with the hours of weekdays behind it.
        if first.text.len() == 4 { self.read_hours(WEEKDAY, *first, rest) } else { self.read_holiday(*first, rest) }
    }

    fn read_year(&mut self, name: Word, rest: &[Word]) {
        let word = rest.first().copied().unwrap_or(name);
        let year = rest.first().and_then(|word| values::decimal(word.text)).and_then(|year| i16::try_from(year).ok());
        let Some(year) = year.filter(|year| *year <= 9999) else {
            return self.findings.error(word, "expected a year");
        };
        if let Some((_, line)) = self.year.replace((year, word.line)) {
            self.findings.warning(name, format!("is set again: line {line} no longer counts"));
        }
        self.warn_of_rest(rest.get(1));
    }

    fn read_hours(&mut self, row: usize, name: Word, rest: &[Word]) {
        let [prime, non_prime, ..] = rest else {
            let message = "expected two times behind the day: when prime and when non-prime time starts";
            return self.findings.error(name, message);
        };
        let (prime, non_prime) = (self.read_start(*prime, "prime"), self.read_start(*non_prime, "non-prime"));
        let (Some(prime), Some(non_prime)) = (prime, non_prime) else { return };
        if prime == non_prime && !matches!(prime, Start::At(_)) {
            self.findings.warning(name, format!("both times are {prime}: it is prime all day"));
        }
        if let Some((_, line)) = self.rows[row].replace((Hours { prime, non_prime }, name.line)) {
            self.findings.warning(name, format!("is set again: line {line} no longer counts"));
        }
        self.warn_of_rest(rest.get(2));
    }

    fn read_start(&mut self, word: Word, mode: &str) -> Option<Start> {
        let start = start(word.text);
        if start.is_none() {
            let message = format!("expected the time at which {mode} time starts: 0000 to 2359, all or none");
            self.findings.error(word, message);
        }
        start
    }

    fn read_holiday(&mut self, number: Word, rest: &[Word]) {
        let Some(day) = values::decimal(number.text).filter(|day| *day <= LAST_DAY) else {
            return self.findings.error(number, "expected a day from 1 to 366");
        };
        let Some(day) = u16::try_from(day).ok().filter(|day| *day > 0) else {
            return self.findings.warning(number, "there is no such day: the line has no effect");
        };
        let words = rest.iter().map(|word| word.text).collect::<Vec<_>>().join(" ");
        let date = month(rest.first()).zip(rest.get(1).and_then(|word| word.text.parse().ok()));
        let number_text = number.text.to_owned();
        let Word { line, column, .. } = number;
        self.holidays.push(HolidayRow { holiday: Holiday { day, words }, date, number: number_text, line, column });
    }

    fn warn_of_rest(&mut self, word: Option<&Word>) {
        if let Some(word) = word {
            self.findings.warning(*word, "is not read: nothing is expected here");
        }
    }

    fn finish(self) -> Holidays {
        // PBS takes year 0 for none, too.
        let year = self.year.map(|(year, _)| year).filter(|year| *year > 0);
        if year.is_none() {
            let word = Word::of_file("YEAR");
            self.findings.warning(word, "is not there: it is prime at all times, and there are no holidays");
        }
        for row in &self.holidays {
            if let Some(year) = year {
                warn_of_date(row, year, self.findings);
            }
        }
        let mut hours = [None; WEEKDAY];
        for (day, hours) in hours.iter_mut().enumerate() {
            let weekday = self.rows[WEEKDAY].filter(|_| day < WORKING_DAYS);
            *hours = self.rows[day].or(weekday).map(|(hours, _)| hours);
        }
        let holidays = self.holidays.into_iter().map(|row| (row.holiday.day, row.holiday)).collect();
        Holidays { year, hours, holidays }
    }
}

fn start(text: &str) -> Option<Start> {
    if text.eq_ignore_ascii_case("all") {
        return Some(Start::All);
    }
    if text.eq_ignore_ascii_case("none") {
        return Some(Start::None);
    }
    let number = values::decimal(text).filter(|_| text.len() <= 4)?;
    let (hour, minute) = (number / 100, number % 100);
    let minutes = (hour < 24 && minute < 60).then_some(hour * 60 + minute)?;
    u16::try_from(minutes).ok().map(Start::At)
}

/// The number of a month whose name or abbreviation this is.
fn month(word: Option<&Word>) -> Option<i8> {
    let name = word?.text.to_ascii_lowercase();
    let place = MONTHS.iter().position(|month| name.starts_with(month))?;
    i8::try_from(place + 1).ok()
}

/// The number decides; a date that is another day is most likely a leftover of another year (PBS-T-04).
fn warn_of_date(row: &HolidayRow, year: i16, findings: &mut Findings) {
    let Some((month, day)) = row.date else { return };
    let written = Date::new(year, month, day).ok();
    if written.and_then(|date| u16::try_from(date.day_of_year()).ok()) == Some(row.holiday.day) {
        return;
    }
    let word = Word { text: &row.number, line: row.line, column: row.column };
    let absent = format!("no day of {year}");
    let meant = written.map_or_else(|| absent.clone(), |date| format!("day {}", date.day_of_year()));
    let counted = Date::new(year, 1, 1).and_then(|first| first.checked_add(i64::from(row.holiday.day - 1).days()));
    let counted = counted.ok().filter(|date| date.year() == year);
    let counted = counted.map_or(absent, |date| date.strftime("%b %-d").to_string());
    let date = row.holiday.words.split(' ').take(2).collect::<Vec<_>>().join(" ");
    findings.warning(word, format!("the number counts: it is {counted}, but '{date}' is {meant}"));
}
