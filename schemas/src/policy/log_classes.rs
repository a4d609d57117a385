//! Classes of lines about cycles, and which of them the planner leaves out of its own log (PBS-F-12).

/// A class of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LogClass {
    /// Errors.
    Error = 1,
    /// Errors of the system.
    System = 2,
    /// Actions of administrators.
    Admin = 4,
    /// Actions on jobs.
    Job = 8,
    /// What jobs used.
    JobUsage = 16,
    /// Violations of security.
    Security = 32,
    /// Actions of the scheduler.
    Scheduler = 64,
    /// Messages for finding faults.
    Debug = 128,
    /// Further messages for finding faults.
    Debug2 = 256,
}

impl LogClass {
    /// All classes.
    pub const ALL: [Self; 9] = [
        Self::Error,
        Self::System,
        Self::Admin,
        Self::Job,
        Self::JobUsage,
        Self::Security,
        Self::Scheduler,
        Self::Debug,
        Self::Debug2,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::System => "system",
            Self::Admin => "admin",
            Self::Job => "job",
            Self::JobUsage => "job usage",
            Self::Security => "security",
            Self::Scheduler => "scheduler",
            Self::Debug => "debug",
            Self::Debug2 => "debug2",
        }
    }
}

/// The sum of the classes that are not logged. It filters the planner's log; events in the ledger are never filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFilter {
    sum: u32,
}

impl LogFilter {
    /// The filter with this sum.
    pub const fn new(sum: u32) -> Self {
        Self { sum }
    }

    /// The sum.
    pub const fn sum(self) -> u32 {
        self.sum
    }

    /// Whether lines of this class are left out.
    pub const fn hides(self, class: LogClass) -> bool {
        self.sum & class as u32 != 0
    }

    /// The rest of the sum, which belongs to no class.
    pub fn unknown(self) -> u32 {
        let known = LogClass::ALL.iter().fold(0, |sum, class| sum | *class as u32);
        self.sum & !known
    }

    /// The names of the classes that are left out, with commas.
    pub fn shown(self) -> String {
        let hidden = LogClass::ALL.iter().filter(|class| self.hides(**class));
        hidden.map(|class| class.name()).collect::<Vec<_>>().join(", ")
    }
}
