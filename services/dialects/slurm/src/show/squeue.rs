//! `squeue`: unfinished jobs and steps (SL-C-23 to C-27, SL-I-05 to I-09, SL-P-12).

mod fields;
mod filter;
mod json;
mod sort;
mod steps;

pub use fields::FIELDS;
pub use filter::{Filter, States};
pub use json::document;
pub use sort::{Sort, SortError};
pub use steps::{STEP_FIELDS, list_steps};

use super::{
    Clock, cells,
    columns::{FormatError, Layout},
    record::JobRecord,
};

/// The columns of `squeue`.
pub const DEFAULT_FORMAT: &str = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
/// The columns of `squeue -l`.
pub const LONG_FORMAT: &str = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
/// The columns of `squeue -s`.
pub const STEP_FORMAT: &str = "%.15i %.8j %.9P %.8u %.9M %N";
/// The columns of `squeue --start`.
pub const START_FORMAT: &str = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
/// The order of `squeue`.
pub const DEFAULT_SORT: &str = "P,t,-p";
/// The order of `squeue --start`.
pub const START_SORT: &str = "S";
/// Room for a row, so that the buffer seldom grows.
const ROW_BYTES: usize = 96;

/// The form of a listing's columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// `-o`: letters.
    Letters(String),
    /// `-O`: names.
    Names(String),
}

/// What a listing shows, and how.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The columns.
    pub format: Format,
    /// The filter for jobs.
    pub filter: Filter,
    /// The order.
    pub sort: String,
    /// Without the line above the columns (`-h`).
    pub no_header: bool,
    /// A date at the top (`-l`).
    pub is_dated: bool,
    /// A line for each task of an array (`-r`).
    pub is_by_task: bool,
}

impl Default for Listing {
    fn default() -> Self {
        Self {
            format: Format::Letters(DEFAULT_FORMAT.to_owned()),
            filter: Filter::default(),
            sort: DEFAULT_SORT.to_owned(),
            no_header: false,
            is_dated: false,
            is_by_task: false,
        }
    }
}

impl Listing {
    /// Whether the listing needs all the details of jobs. An invalid listing does not.
    pub fn is_detailed(&self) -> bool {
        let shows = self.layout().is_ok_and(|layout| layout.fields().any(|field| field.is_detailed));
        shows || Sort::read(&self.sort).is_ok_and(|sort| sort.is_detailed()) || self.filter.is_detailed()
    }

    fn layout(&self) -> Result<Layout<JobRecord>, FormatError> {
        match &self.format {
            Format::Letters(format) => Layout::printf(format, FIELDS),
            Format::Names(format) => Layout::named(format, FIELDS),
        }
    }
}

/// Why a listing is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    /// A column that does not exist.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// An order that does not exist.
    #[error(transparent)]
    Sort(#[from] SortError),
}

/// The jobs that match the listing, in its order.
///
/// # Errors
/// An order that does not exist.
pub fn choose(records: Vec<JobRecord>, listing: &Listing, clock: &Clock) -> Result<Vec<JobRecord>, SortError> {
    let sort = Sort::read(&listing.sort)?;
    let chosen = takes(records, listing);
    let order = sort.order(&chosen, clock);
    let mut chosen: Vec<Option<JobRecord>> = chosen.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|place| chosen[place].take()).collect())
}

fn takes(mut records: Vec<JobRecord>, listing: &Listing) -> Vec<JobRecord> {
    records.retain(|record| listing.filter.takes(record));
    if listing.is_by_task { records.into_iter().flat_map(JobRecord::into_tasks).collect() } else { records }
}

/// The whole listing of jobs.
///
/// # Errors
/// A column or an order that does not exist; nothing is listed then.
pub fn list(records: Vec<JobRecord>, listing: &Listing, clock: &Clock) -> Result<String, ListingError> {
    let layout = listing.layout()?;
    let sort = Sort::read(&listing.sort)?;
    let records = takes(records, listing);
    let mut out = String::with_capacity(ROW_BYTES * (records.len() + 2));
    if listing.is_dated {
        cells::date_line(clock.now, clock, &mut out);
    }
    if !listing.no_header {
        layout.write_header(&mut out);
    }
    for place in sort.order(&records, clock) {
        layout.write_row(&records[place], clock, &mut out);
    }
    Ok(out)
}
