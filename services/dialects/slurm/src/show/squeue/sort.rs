//! The order of `squeue` (SL-C-25).

use crate::{
    show::{Clock, columns::Field, record::JobRecord},
    words::State,
};
use std::collections::{BTreeMap, BTreeSet};

use super::FIELDS;

/// The letter of an unknown column in an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Invalid sort specification: {0}")]
pub struct SortError(pub String);

/// The keys of the order, most important first.
pub struct Sort {
    keys: Vec<Key>,
}

struct Key {
    by: By,
    is_descending: bool,
}

enum By {
    Number(fn(&JobRecord, &Clock) -> i64),
    Detail(fn(&JobRecord) -> i64),
    Text(fn(&JobRecord) -> &str),
    Cell(&'static Field<JobRecord>),
}

impl Sort {
    /// Reads comma-separated letters of columns, each optionally with `+` or `-`: `P,t,-p`.
    ///
    /// # Errors
    /// An unknown letter.
    pub fn read(text: &str) -> Result<Self, SortError> {
        let mut keys = Vec::new();
        let mut is_descending = false;
        for letter in text.chars() {
            match letter {
                ',' | '+' => is_descending = false,
                '-' => is_descending = true,
                letter => {
                    keys.push(Key { by: by(letter)?, is_descending });
                    is_descending = false;
                }
            }
        }
        Ok(Self { keys })
    }

    /// Whether it needs all the details of jobs.
    pub fn is_detailed(&self) -> bool {
        self.keys.iter().any(|key| match &key.by {
            By::Cell(field) => field.is_detailed,
            By::Detail(_) => true,
            By::Number(_) | By::Text(_) => false,
        })
    }

    /// The indices of jobs in order; equal jobs are ordered by number, then by index in their array. The sort keys are
    /// computed once for each, as numbers in one array: records are large, and a queue can be long.
    pub fn order(&self, records: &[JobRecord], clock: &Clock) -> Vec<usize> {
        let width = self.keys.len() + 2;
        let mut ranks = vec![0; records.len() * width];
        for (column, key) in self.keys.iter().enumerate() {
            let values = key.by.ranks(records, clock);
            for (row, value) in values.into_iter().enumerate() {
                // The complement reverses the order without overflow.
                ranks[row * width + column] = if key.is_descending { !value } else { value };
            }
        }
        for (row, record) in records.iter().enumerate() {
            let (number, index) = place(record);
            ranks[row * width + width - 2] = number;
            ranks[row * width + width - 1] = index;
        }
        let mut order: Vec<usize> = (0..records.len()).collect();
        order.sort_by_key(|row| &ranks[row * width..(row + 1) * width]);
        order
    }
}

impl By {
    /// A number for each job; the numbers compare as the values do.
    fn ranks(&self, records: &[JobRecord], clock: &Clock) -> Vec<i64> {
        match self {
            Self::Number(value) => records.iter().map(|record| value(record, clock)).collect(),
            Self::Detail(value) => records.iter().map(value).collect(),
            Self::Text(value) => ranks_of(&records.iter().map(value).collect::<Vec<_>>()),
            Self::Cell(field) => {
                let cell = |record: &JobRecord| {
                    let mut text = String::new();
                    (field.write)(record, clock, &mut text);
                    text
                };
                let cells: Vec<String> = records.iter().map(cell).collect();
                ranks_of(&cells.iter().map(String::as_str).collect::<Vec<_>>())
            }
        }
    }
}

/// The rank of each text among all different ones.
fn ranks_of(texts: &[&str]) -> Vec<i64> {
    let different: BTreeSet<&str> = texts.iter().copied().collect();
    let places: BTreeMap<&str, i64> = different.into_iter().zip(0..).collect();
    texts.iter().map(|text| places[text]).collect()
}

/// The number, and the index within an array; waiting tasks come after started ones.
fn place(record: &JobRecord) -> (i64, i64) {
    use crate::show::record::ArrayTasks;
    let index = match record.array.as_ref().map(|array| &array.tasks) {
        None => 0,
        Some(ArrayTasks::One(index)) => i64::from(*index),
        Some(ArrayTasks::Waiting(_)) => i64::MAX,
    };
    (number(record.array_number()), index)
}

fn by(letter: char) -> Result<By, SortError> {
    Ok(match letter {
        'A' | 'i' | 'F' => By::Number(|job, _| number(job.array_number())),
        'C' => By::Number(|job, _| number(job.cpus)),
        'D' => By::Number(|job, _| job.node_count.into()),
        'e' => By::Number(|job, _| job.end().map_or(i64::MAX, |time| time.0)),
        'l' => By::Number(|job, _| job.limit_seconds.map_or(i64::MAX, number)),
        'L' => By::Number(|job, clock| job.left_seconds(clock).unwrap_or(i64::MAX)),
        'M' => By::Number(|job, clock| number(job.used_seconds(clock))),
        'p' | 'Q' => By::Number(|job, _| job.priority),
        'S' => By::Number(|job, _| job.start().map_or(i64::MAX, |time| time.0)),
        't' | 'T' => By::Number(|job, _| state_rank(job.state)),
        'U' => By::Number(|job, _| job.person.uid.into()),
        'V' => By::Number(|job, _| job.submitted.0),
        'y' => By::Detail(|job| job.request().nice),
        'P' => By::Text(|job| &job.partition),
        'j' => By::Text(|job| &job.name),
        'u' => By::Text(|job| &job.user),
        other => {
            let field = FIELDS.iter().find(|field| field.letter == Some(other));
            By::Cell(field.ok_or_else(|| SortError(other.to_string()))?)
        }
    })
}

/// Waiting jobs come first, then running ones, then others.
fn state_rank(state: State) -> i64 {
    state as i64
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
