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
}

impl UnfitCause {
    /// All of them.
    pub const ALL: [Self; 10] = [
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
        }
    }

    /// The cause that an executor has given as a reason. An operator can write the same words, so who gave the reason has to be
    /// known too.
    pub fn of_reason(reason: &str) -> Option<Self> {
        let is_meant =
            |cause: &Self| reason.strip_prefix(cause.words()).is_some_and(|rest| rest.starts_with([' ', ':']));
        Self::ALL.into_iter().find(is_meant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-X-06: each cause is known again by its words, and no other text is taken for one.
    #[test]
    fn causes_are_known_by_their_first_words() {
        for cause in UnfitCause::ALL {
            assert_eq!(UnfitCause::of_reason(&format!("{} /x failed", cause.words())), Some(cause));
            assert_eq!(UnfitCause::of_reason(&format!("{}: x", cause.words())), Some(cause));
            assert_eq!(UnfitCause::of_reason(&format!("the {} x", cause.words())), None);
        }
        for other in ["", "prologue", "fan cannot be removed", "maintenance"] {
            assert_eq!(UnfitCause::of_reason(other), None, "{other}");
        }
    }
}
