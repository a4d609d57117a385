//! Lines that a filter writes to its result file (HPC-F-66).

use crate::{
    codes::{Code, Warning, Warnings},
    description::attributes::check_text,
};
use muster_schemas::{policy::words::shorten, time::Timestamp};

/// The most bytes of a result file that are read.
pub const MOST_BYTES: usize = 64 << 10;

/// A hold that a filter asks for with verdict 3 (HPC-H-04).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldUntil {
    /// Until this time.
    At(Timestamp),
    /// This many seconds after the verdict.
    After(u32),
}

impl HoldUntil {
    /// The time, for a verdict given at `verdict_time`.
    pub const fn time(self, verdict_time: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::After(seconds) => verdict_time.plus_seconds(seconds as i64),
        }
    }

    /// Reads an RFC 3339 time or `+seconds`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix('+') {
            Some(seconds) if seconds.bytes().all(|byte| byte.is_ascii_digit()) => seconds.parse().ok().map(Self::After),
            Some(_) => None,
            None => {
                let time: jiff::Timestamp = text.parse().ok()?;
                let time = Timestamp(time.as_microsecond());
                (Timestamp::MIN..=Timestamp::MAX).contains(&time).then_some(Self::At(time))
            }
        }
    }
}

/// What a filter said in its result file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultFile {
    /// `hold-until`: used with verdict 3.
    pub hold_until: Option<HoldUntil>,
    /// `message`: shown with the job, in addition to the standard message; up to 200 characters.
    pub message: Option<String>,
    /// Warnings about ignored lines. The verdict is valid anyway.
    pub warnings: Vec<Warning>,
}

impl ResultFile {
    /// Reads lines `key=value`. The last line of a key counts; empty lines are ignored.
    pub fn read(bytes: &[u8]) -> Self {
        let (mut file, mut warnings) = (Self::default(), Warnings::default());
        let (bytes, is_cut) = match bytes.get(..MOST_BYTES) {
            Some(start) if bytes.len() > MOST_BYTES => (start, true),
            _ => (bytes, false),
        };
        let text = String::from_utf8_lossy(bytes);
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if let Err(reason) = file.take(line) {
                let text = format!("line {} of the result file was ignored: {reason}", index + 1);
                warnings.push(Code::ResultFileNotValid, text);
            }
        }
        if is_cut {
            let text = format!("the result file was not read beyond {} KiB", MOST_BYTES >> 10);
            warnings.push(Code::ResultFileNotValid, text);
        }
        file.warnings = warnings.finish();
        file
    }

    fn take(&mut self, line: &str) -> Result<(), String> {
        let (key, value) = line.split_once('=').ok_or_else(|| format!("`{}` is not key=value", shorten(line)))?;
        let value = value.trim();
        match key.trim() {
            "hold-until" => {
                let expected = "expected a time such as 2026-11-20T08:30:00Z, or + and seconds";
                let hold = HoldUntil::parse(value);
                self.hold_until = Some(hold.ok_or_else(|| format!("hold-until=`{}`: {expected}", shorten(value)))?);
            }
            "message" => {
                check_text("FilterMessage", value).map_err(|refusal| refusal.text)?;
                self.message = Some(value.to_owned());
            }
            other => return Err(format!("`{}` is no known key; known are hold-until and message", shorten(other))),
        }
        Ok(())
    }
}
