//! Values that are one of a few words.

/// Defines an enumeration whose words are read in any case (HPC-J-42).
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$word_doc])* $word,)* }

        impl $name {
            /// Every word of it.
            pub const ALL: &[Self] = &[$(Self::$word,)*];

            /// The word as it is written.
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
    /// What a job's size counts (HPC-J-13).
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
    /// How the node groups of a job go together (HPC-J-17).
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
    JobState {
        /// Made, not yet submitted.
        #[default]
        Configuring,
        /// Taken, nothing checked yet.
        Submitted,
        /// A chain of submission filters is being run.
        ExternalValidation,
        /// Credentials, template and size are checked.
        Validating,
        /// Waits for resources.
        Queued,
        /// Has resources.
        Running,
        /// Its tasks are over, its nodes are being released.
        Finishing,
        /// Ended well.
        Finished,
        /// Refused, or ended badly.
        Failed,
        /// Being canceled.
        Canceling,
        /// Canceled.
        Canceled,
    }
}
