//! Values that are one of a few words.

/// Defines an enumeration whose words are read in any case (HPC-J-42).
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$word_doc])* $word,)* }

        impl $name {
            /// All its words.
            pub const ALL: &[Self] = &[$(Self::$word,)*];

            /// The word as written.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$word => stringify!($word),)* }
            }
        }

        impl $crate::description::values::Value for $name {
            fn read(text: &str) -> Result<Self, $crate::codes::Refusal> {
                let found = Self::ALL.iter().find(|word| word.name().eq_ignore_ascii_case(text));
                found.copied().ok_or_else(|| {
                    let words: Vec<&str> = Self::ALL.iter().map(|word| word.name()).collect();
                    let text = format!("expected one of {}", words.join(", "));
                    $crate::codes::Refusal::new($crate::codes::Code::JobXmlNotValid, text)
                })
            }

            fn write(&self) -> String {
                self.name().to_owned()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

pub(crate) use words;

words! {
    /// What the size of a job counts (HPC-J-13).
    #[derive(Default)]
    UnitType {
        /// Cores.
        #[default]
        Core,
        /// Sockets.
        Socket,
        /// Whole nodes.
        Node,
    }
}

words! {
    /// How the node groups of a job are combined (HPC-J-17).
    #[derive(Default)]
    NodeGroupOp {
        /// Nodes that are in all groups.
        #[default]
        Intersect,
        /// Nodes of one group, the first that suffices.
        Uniform,
        /// Nodes that are in any group.
        Union,
    }
}

words! {
    /// The type of a task (HPC-J-22).
    #[derive(Default)]
    TaskType {
        /// Runs once.
        #[default]
        Basic,
        /// Runs once for each value of a sweep.
        ParametricSweep,
        /// Runs on each node as it joins the job, before any other task there.
        NodePrep,
        /// Runs on each node as it leaves the job.
        NodeRelease,
        /// Runs on all resources; an instance that exits is started again.
        Service,
    }
}

words! {
    /// The state of a job (HPC-J-02).
    #[derive(Default)]
    JobState {
        /// Made, not yet submitted.
        #[default]
        Configuring,
        /// Received, not checked yet.
        Submitted,
        /// Its submission filters are running.
        ExternalValidation,
        /// Credentials, template and size are checked.
        Validating,
        /// Waits for resources.
        Queued,
        /// Has resources.
        Running,
        /// Its tasks have ended, and its nodes are being released.
        Finishing,
        /// Ended successfully.
        Finished,
        /// Refused, or ended unsuccessfully.
        Failed,
        /// Being canceled.
        Canceling,
        /// Canceled.
        Canceled,
    }
}

words! {
    /// A job attribute that only the system sets (table 1.1 "system"): written for filters and people, and ignored when
    /// read (HPC-J-45).
    SystemAttribute {
        /// The job's id (HPC-J-01).
        Id,
        /// Its state (HPC-J-02).
        State,
        /// The user who submitted it.
        Owner,
        /// The user that it runs as.
        UserName,
        /// When it was submitted.
        SubmitTime,
        /// When it was made.
        CreateTime,
        /// When it started.
        StartTime,
        /// When it ended.
        EndTime,
        /// When it was last changed.
        ChangeTime,
        /// Its kind.
        JobType,
        /// The code of its failure.
        ErrorCode,
        /// The message of its failure.
        ErrorMessage,
        /// Why it waits (HPC-J-26).
        PendingReason,
        /// Why it failed.
        FailureReason,
        /// How often it was requeued.
        RequeueCount,
        /// How often the system requeued it.
        AutoRequeueCount,
        /// Whether somebody asked to cancel it.
        RequestCancel,
        /// How much of it is done, in percent.
        Progress,
        /// Its own description of its progress; up to 80 characters.
        ProgressMessage,
    }
}
