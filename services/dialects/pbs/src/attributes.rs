//! What a PBS job asked for, kept as attributes under the names that servers of the family use, so that `qstat -f` shows
//! it as given, and so that policies can sort by it.
//!
//! An attribute has the key `pbs.NAME`, a resource of it `pbs.NAME.RESOURCE` (`pbs.Resource_List.walltime`). What was
//! not given has no attribute.

use std::collections::BTreeMap;

/// The names of attributes.
pub mod names {
    /// `-A`.
    pub const ACCOUNT: &str = "Account_Name";
    /// `-J` or `-t`, the indices as written.
    pub const ARRAY_INDICES: &str = "array_indices_submitted";
    /// `-W block`.
    pub const BLOCK: &str = "block";
    /// `-c`.
    pub const CHECKPOINT: &str = "Checkpoint";
    /// `-W depend`.
    pub const DEPEND: &str = "depend";
    /// `-e`.
    pub const ERROR_PATH: &str = "Error_Path";
    /// `-W group_list`.
    pub const GROUP_LIST: &str = "group_list";
    /// `-I`.
    pub const INTERACTIVE: &str = "interactive";
    /// `-j`.
    pub const JOIN_PATH: &str = "Join_Path";
    /// `-k`.
    pub const KEEP_FILES: &str = "Keep_Files";
    /// `-m`.
    pub const MAIL_POINTS: &str = "Mail_Points";
    /// `-M`.
    pub const MAIL_USERS: &str = "Mail_Users";
    /// `-o`.
    pub const OUTPUT_PATH: &str = "Output_Path";
    /// `-p`.
    pub const PRIORITY: &str = "Priority";
    /// `-P` of PBS Pro.
    pub const PROJECT: &str = "project";
    /// `-R` of PBS Pro.
    pub const REMOVE_FILES: &str = "Remove_Files";
    /// `-r`.
    pub const RERUNABLE: &str = "Rerunable";
    /// `-l`, each resource under its own name.
    pub const RESOURCE_LIST: &str = "Resource_List";
    /// `-W run_count`.
    pub const RUN_COUNT: &str = "run_count";
    /// `-W sandbox`.
    pub const SANDBOX: &str = "sandbox";
    /// The server's name.
    pub const SERVER: &str = "server";
    /// `-S`.
    pub const SHELL: &str = "Shell_Path_List";
    /// `-W stagein`.
    pub const STAGEIN: &str = "stagein";
    /// `-W stageout`.
    pub const STAGEOUT: &str = "stageout";
    /// The command line.
    pub const SUBMIT_ARGUMENTS: &str = "Submit_arguments";
    /// The host on which the job was submitted.
    pub const SUBMIT_HOST: &str = "Submit_Host";
    /// `-W umask`.
    pub const UMASK: &str = "umask";
    /// `-u`.
    pub const USER_LIST: &str = "User_List";
    /// `-W x`.
    pub const EXTENSION: &str = "x";
}

/// The beginning of the keys.
const PREFIX: &str = "pbs.";

/// The key of an attribute.
pub fn key(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The key of a resource of `Resource_List`.
pub fn resource_key(resource: &str) -> String {
    format!("{PREFIX}{}.{resource}", names::RESOURCE_LIST)
}

/// The attributes of a job.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(pub &'a BTreeMap<String, String>);

impl<'a> Attributes<'a> {
    /// An attribute.
    pub fn get(self, name: &str) -> Option<&'a str> {
        self.0.get(&key(name)).map(String::as_str)
    }

    /// A requested resource.
    pub fn resource(self, name: &str) -> Option<&'a str> {
        self.0.get(&resource_key(name)).map(String::as_str)
    }

    /// All requested resources, in order of their names.
    pub fn resources(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let beginning = resource_key("");
        let from = self.0.range(beginning.clone()..);
        from.map_while(move |(key, value)| Some((key.strip_prefix(beginning.as_str())?, value.as_str())))
    }
}
