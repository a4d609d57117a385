//! Why executors take their nodes out of service: the words with which they begin a reason, and by which others know it
//! again (OAR-J-18, OAR-S-07, OAR-X-06).

/// What makes a node unfit for jobs, as its executor finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitCause {
    /// A run cannot be kept together there.
    Containment,
    /// Processes or control groups of a job stay there.
    Remains,
    /// The prolog failed.
    Prolog,
    /// The epilog failed.
    Epilog,
    /// The prolog of the first node failed.
    JobProlog,
    /// The epilog of the first node failed.
    JobEpilog,
    /// The node file for programs of the site could not be written.
    NodeFile,
    /// The program that suspends processes failed.
    SuspendProgram,
    /// The program ahead of a continuation failed.
    BeforeResumeProgram,
    /// The health check failed.
    HealthCheck,
    /// The executor cannot write down what it is to start.
    Spool,
}

/// The words with which an executor begins the message that the program after a suspension failed. Its node stays in service
/// (OAR-S-04).
pub const AFTER_SUSPEND_PROGRAM: &str = "after_suspend_program";

impl UnfitCause {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Containment,
        Self::Remains,
        Self::Prolog,
        Self::Epilog,
        Self::JobProlog,
        Self::JobEpilog,
        Self::NodeFile,
        Self::SuspendProgram,
        Self::BeforeResumeProgram,
        Self::HealthCheck,
        Self::Spool,
    ];

    /// The words with which a reason begins. A space or a colon follows.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Containment => "the run cannot be contained",
            Self::Remains => "processes or control groups",
            Self::Prolog => "prolog",
            Self::Epilog => "epilog",
            Self::JobProlog => "job prolog",
            Self::JobEpilog => "job epilog",
            Self::NodeFile => "the node file of the site's programs",
            Self::SuspendProgram => "suspend program",
            Self::BeforeResumeProgram => "before_resume_program",
            Self::HealthCheck => "health check",
            Self::Spool => "the node's spool",
        }
    }

    /// A reason: this cause, and what is known of it.
    pub fn because(self, why: impl std::fmt::Display) -> String {
        format!("{}: {why}", self.words())
    }

    /// The cause that an executor has given as a reason. An operator can write the same words, so who gave the reason has to be
    /// known too.
    pub fn of_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| begins_with(reason, cause.words()))
    }
}

/// Whether a text begins with the words of a cause.
pub fn begins_with(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| rest.starts_with([' ', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-X-06: each cause is known again by its words, and no other text is taken for one.
    #[test]
    fn causes_are_known_by_their_first_words() {
        for cause in UnfitCause::ALL {
            assert_eq!(UnfitCause::of_reason(&format!("{} /x failed", cause.words())), Some(cause));
            assert_eq!(UnfitCause::of_reason(&cause.because("x")), Some(cause));
            assert_eq!(UnfitCause::of_reason(&format!("the {} x", cause.words())), None);
        }
        for other in ["", "prologue", "fan cannot be removed", "maintenance"] {
            assert_eq!(UnfitCause::of_reason(other), None, "{other}");
        }
    }
}
