//! The attributes of jobs and tasks (table 1.1).

use super::values::{ExitCodes, JobIds, Names, NodeGroupOp, OrderBy, SoftwareLicense, TaskType, UnitType, Value as _};
use crate::{
    codes::{Code, Refusal},
    priority::Priority,
    run_time::RunTime,
};
use muster_schemas::time::Timestamp;

/// Defines names of attributes and a structure with a field for each. `None` is "not specified".
macro_rules! attributes {
    (
        $(#[$names_doc:meta])* $names:ident,
        $(#[$values_doc:meta])* $values:ident,
        $($(#[$doc:meta])* $name:ident, $field:ident: $type:ty;)*
    ) => {
        $(#[$names_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $names { $($(#[$doc])* $name,)* }

        $(#[$values_doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $values { $($(#[$doc])* pub $field: Option<$type>,)* }

        impl $names {
            /// Every attribute.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name in a description.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The attribute of this name, in any case (HPC-J-41).
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().find(|known| known.name().eq_ignore_ascii_case(name)).copied()
            }
        }

        impl $values {
            /// The value as a description writes it.
            pub fn get(&self, name: $names) -> Option<String> {
                match name { $($names::$name => self.$field.as_ref().map(|value| value.write()),)* }
            }

            /// The value in the JSON form of a description.
            pub fn json(&self, name: $names) -> Option<serde_json::Value> {
                match name { $($names::$name => self.$field.as_ref().map(|value| value.json()),)* }
            }

            /// Fills in what is not specified here from `others`.
            pub fn fill_from(&mut self, others: &Self) {
                $(if self.$field.is_none() {
                    self.$field.clone_from(&others.$field);
                })*
            }

            /// Sets the attribute from the text, or back to "not specified".
            ///
            /// # Errors
            /// A text that is too long (HPC-J-27) or that the attribute cannot have; nothing is changed then, and the
            /// message names attribute and text.
            pub fn set(&mut self, name: $names, text: Option<&str>) -> Result<(), Refusal> {
                if let Some(text) = text {
                    check_text(name.name(), text)?;
                }
                match name {
                    $($names::$name => self.$field = text.map(|text| <$type>::read(text)).transpose().map_err(
                        |refusal| at(name.name(), text.unwrap_or_default(), refusal),
                    )?,)*
                }
                Ok(())
            }
        }
    };
}

attributes! {
    /// A job attribute that users and submission filters may set.
    Attribute,
    /// The specified attributes of a job itself.
    JobAttributes,
    /// What people call the job; up to 80 characters.
    Name, name: String;
    /// What the job is for; up to 80 characters.
    Project, project: String;
    /// Its priority, from `Priority` or `ExpandedPriority` (HPC-J-06..09).
    Priority, priority: Priority;
    /// The name of its template (HPC-T-01).
    JobTemplate, job_template: String;
    /// Its run time, from `RunTime` or `RuntimeSeconds` (HPC-J-10).
    RunTime, run_time: RunTime;
    /// What its size counts (HPC-J-13).
    UnitType, unit_type: UnitType;
    /// The least number of cores of a job counted in cores.
    MinCores, min_cores: i32;
    /// The greatest number of cores of a job counted in cores.
    MaxCores, max_cores: i32;
    /// The least number of sockets of a job counted in sockets.
    MinSockets, min_sockets: i32;
    /// The greatest number of sockets of a job counted in sockets.
    MaxSockets, max_sockets: i32;
    /// The least number of nodes of a job counted in nodes.
    MinNodes, min_nodes: i32;
    /// The greatest number of nodes of a job counted in nodes.
    MaxNodes, max_nodes: i32;
    /// Whether the minimum is computed from the tasks (HPC-J-15).
    AutoCalculateMin, auto_calculate_min: bool;
    /// Whether the maximum is computed from the tasks (HPC-J-15).
    AutoCalculateMax, auto_calculate_max: bool;
    /// Whether no other job has a task on its nodes (HPC-J-19).
    IsExclusive, is_exclusive: bool;
    /// Whether all its resources are on one node.
    SingleNode, single_node: bool;
    /// Whether it keeps its resources when no tasks are left (HPC-J-20).
    RunUntilCanceled, run_until_canceled: bool;
    /// Whether the first failed task stops it (HPC-J-21).
    FailOnTaskFailure, fail_on_task_failure: bool;
    /// Whether tasks that depend on a failed one fail.
    FailDependentTasks, fail_dependent_tasks: bool;
    /// Whether jobs of higher priority may take its resources (HPC-S-12).
    Preemptable, preemptable: bool;
    /// Groups whose nodes it may use (HPC-J-17).
    NodeGroups, node_groups: Names;
    /// How the groups are combined (HPC-J-17).
    NodeGroupOp, node_group_op: NodeGroupOp;
    /// Nodes that it may use (HPC-J-17).
    RequestedNodes, requested_nodes: Names;
    /// Nodes that it may not use (HPC-J-17).
    ExcludedNodes, excluded_nodes: Names;
    /// The least number of cores on a node that it may use.
    MinCoresPerNode, min_cores_per_node: u32;
    /// The greatest number of cores on a node that it may use.
    MaxCoresPerNode, max_cores_per_node: u32;
    /// The least memory of a node that it may use, in MB.
    MinMemory, min_memory: u32;
    /// The greatest memory of a node that it may use, in MB.
    MaxMemory, max_memory: u32;
    /// The memory that each process is expected to use, in MB.
    EstimatedProcessMemory, estimated_process_memory: u32;
    /// Which nodes it prefers.
    OrderBy, order_by: OrderBy;
    /// The licences it needs; up to 160 characters.
    SoftwareLicense, software_license: SoftwareLicense;
    /// The earliest time to start it (HPC-H-07).
    HoldUntil, hold_until: Timestamp;
    /// Whether mail is sent when it starts.
    NotifyOnStart, notify_on_start: bool;
    /// Whether mail is sent when it ends.
    NotifyOnCompletion, notify_on_completion: bool;
    /// Where mail is sent; up to 256 characters.
    EmailAddress, email_address: String;
    /// Exit codes of tasks that mean success.
    JobValidExitCodes, job_valid_exit_codes: ExitCodes;
    /// Jobs that must have finished first (HPC-J-25).
    ParentJobIds, parent_job_ids: JobIds;
    /// How often a task that could not start is tried again.
    TaskExecutionFailureRetryLimit, task_execution_failure_retry_limit: u32;
}

attributes! {
    /// A task attribute that users may set.
    TaskAttribute,
    /// The specified attributes of a task itself.
    TaskAttributes,
    /// What people and `DependsOn` call the task; up to 80 characters.
    Name, name: String;
    /// Its type (HPC-J-22).
    Type, task_type: TaskType;
    /// The command, with its arguments.
    CommandLine, command_line: String;
    /// The folder that it runs in.
    WorkDirectory, work_directory: String;
    /// The file of its standard input.
    StdInFilePath, std_in_file_path: String;
    /// The file of its standard output.
    StdOutFilePath, std_out_file_path: String;
    /// The file of its standard error.
    StdErrFilePath, std_err_file_path: String;
    /// Its run time (HPC-J-24).
    RunTime, run_time: RunTime;
    /// What its size counts.
    UnitType, unit_type: UnitType;
    /// The least number of cores.
    MinCores, min_cores: i32;
    /// The greatest number of cores.
    MaxCores, max_cores: i32;
    /// The least number of sockets.
    MinSockets, min_sockets: i32;
    /// The greatest number of sockets.
    MaxSockets, max_sockets: i32;
    /// The least number of nodes.
    MinNodes, min_nodes: i32;
    /// The greatest number of nodes.
    MaxNodes, max_nodes: i32;
    /// Nodes that it runs on.
    RequiredNodes, required_nodes: Names;
    /// Names of tasks that must have ended first (HPC-J-24).
    DependsOn, depends_on: Names;
    /// Its group in `Dependencies`.
    GroupId, group_id: u32;
    /// Whether no other task runs on its nodes.
    IsExclusive, is_exclusive: bool;
    /// Whether it may start again after a failure of the system.
    IsRerunnable, is_rerunnable: bool;
    /// The first value of a sweep (HPC-J-22); 1 if not specified.
    StartValue, start_value: i32;
    /// The last value of a sweep (HPC-J-22).
    EndValue, end_value: i32;
    /// The step of a sweep (HPC-J-22); 1 if not specified.
    IncrementValue, increment_value: i32;
    /// Exit codes that mean success.
    ValidExitCodes, valid_exit_codes: ExitCodes;
    /// Whether its failure fails the job.
    FailJobOnFailure, fail_job_on_failure: bool;
    /// How many failed instances of a sweep fail the job.
    FailJobOnFailureCount, fail_job_on_failure_count: u32;
}

/// Attributes of a task that only the system sets: ignored when read.
pub(super) const SYSTEM_TASK_ATTRIBUTES: [&str; 26] = [
    "Id",
    "NiceId",
    "State",
    "PreviousState",
    "ParentJobId",
    "InstanceId",
    "InstanceValue",
    "SubmitTime",
    "CreateTime",
    "StartTime",
    "EndTime",
    "ChangeTime",
    "ExitCode",
    "ErrorCode",
    "ErrorMessage",
    "ErrorParams",
    "Output",
    "AllocatedNodes",
    "AllocatedCoreIds",
    "RequeueCount",
    "AutoRequeueCount",
    "PendingReason",
    "FailureReason",
    "HasRuntime",
    "IsServiceConcluded",
    "Closed",
];

/// The longest texts, in characters, by attribute or field (HPC-J-27).
pub const LENGTHS: [(&str, usize); 7] = [
    ("Name", 80),
    ("Project", 80),
    ("ProgressMessage", 80),
    ("EmailAddress", 256),
    ("SoftwareLicense", 160),
    ("CancelMessage", 128),
    ("FilterMessage", 200),
];

/// The longest name and value of a term, in characters (HPC-J-27).
pub const TERM_LENGTHS: (usize, usize) = (80, 128);

/// Whether this field may have the text.
///
/// # Errors
/// `ValueTooLong`, naming field and limit (HPC-J-27); `JobXmlNotValid` if it has a character that XML cannot hold, or a
/// name has a control character.
pub fn check_text(field: &str, text: &str) -> Result<(), Refusal> {
    if let Some(control) = text.chars().find(|character| character.is_control()).filter(|_| is_line(field)) {
        let text = format!("{field} has the control character U+{:04X}", u32::from(control));
        return Err(Refusal::new(Code::JobXmlNotValid, text));
    }
    if let Some((_, most)) = LENGTHS.iter().find(|(name, _)| *name == field) {
        check_length(field, text, *most)?;
    }
    check_characters(field, text)
}

/// Whether the text of a field is a name, which tables and messages show.
fn is_line(field: &str) -> bool {
    ["Name", "Project"].contains(&field)
}

/// Whether an environment can hold a variable.
///
/// # Errors
/// `JobXmlNotValid`: a name with `=`, or a character that XML cannot hold.
pub fn check_variable(name: &str, value: &str) -> Result<(), Refusal> {
    if name.contains('=') {
        let text = format!("the environment variable `{name}` has a `=` in its name");
        return Err(Refusal::new(Code::JobXmlNotValid, text));
    }
    check_characters("the name of an environment variable", name)?;
    check_characters("the value of an environment variable", value)
}

/// Refuses a text longer than `most` characters, naming field and limit (HPC-J-27).
pub(super) fn check_length(field: &str, text: &str, most: usize) -> Result<(), Refusal> {
    let length = text.chars().count();
    if length <= most {
        return Ok(());
    }
    Err(Refusal::new(Code::ValueTooLong, format!("{field} has {length} characters, at most {most} are allowed")))
}

/// Refuses characters that no XML document can hold.
pub(super) fn check_characters(field: &str, text: &str) -> Result<(), Refusal> {
    match text.chars().find(|character| !is_xml(*character)) {
        None => Ok(()),
        Some(character) => {
            let text = format!("{field} has the character {}, which XML cannot hold", character.escape_unicode());
            Err(Refusal::new(Code::JobXmlNotValid, text))
        }
    }
}

/// Whether an XML 1.0 document may contain a character.
pub(super) fn is_xml(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

/// The refusal of a value, with the attribute and the text.
pub(super) fn at(attribute: &str, text: &str, refusal: Refusal) -> Refusal {
    let shown = muster_schemas::policy::words::shorten(text);
    let text = match refusal.text.starts_with("expected ") {
        true => format!("{attribute}=`{shown}`: {}", refusal.text),
        false => format!("{attribute}: {}", refusal.text),
    };
    Refusal { code: refusal.code, text }
}
