//! Parametric tasks.

use crate::{
    codes::{Code, Refusal},
    description::TaskDescription,
};

/// The most steps of a sweep (HPC-J-22).
pub const MOST_STEPS: u32 = 1_000_000;

/// The values of a sweep (HPC-J-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    start: i32,
    increment: i32,
    steps: u32,
}

impl Sweep {
    /// The sweep from `start` to `end` in steps of `increment`.
    ///
    /// # Errors
    /// `TaskNotValid`: start above end, increment below 1, or more than [`MOST_STEPS`] steps.
    pub fn new(start: i32, end: i32, increment: i32) -> Result<Self, Refusal> {
        let refused = |text: String| Err(Refusal::new(Code::TaskNotValid, text));
        if start > end {
            return refused(format!("StartValue={start} is above EndValue={end}"));
        }
        if increment < 1 {
            return refused(format!("IncrementValue={increment}: expected 1 or more"));
        }
        let steps = (i64::from(end) - i64::from(start)) / i64::from(increment) + 1;
        match u32::try_from(steps) {
            Ok(steps) if steps <= MOST_STEPS => Ok(Self { start, increment, steps }),
            _ => refused(format!("{steps} steps, at most {MOST_STEPS} are allowed")),
        }
    }

    /// The sweep of a task. Values not specified are 1; the end must be specified.
    ///
    /// # Errors
    /// `TaskNotValid` as for [`Sweep::new`], or if there is no end.
    pub fn of(task: &TaskDescription) -> Result<Self, Refusal> {
        let attributes = &task.attributes;
        let end = attributes.end_value.ok_or_else(|| Refusal::new(Code::TaskNotValid, "a sweep needs an EndValue"))?;
        Self::new(attributes.start_value.unwrap_or(1), end, attributes.increment_value.unwrap_or(1))
    }

    /// The first value.
    pub const fn start(self) -> i32 {
        self.start
    }

    /// The distance between values, at least 1.
    pub const fn increment(self) -> i32 {
        self.increment
    }

    /// The number of steps, at least 1.
    pub const fn steps(self) -> u32 {
        self.steps
    }
}
