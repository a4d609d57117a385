//! The seam between services and dialects: what a service asks the dialect of a job.
//!
//! A job records its dialect when it is submitted ([`JobSpec::dialect`]). Where dialects differ, a service looks that
//! name up in its [`Dialects`] and asks. No service names a dialect, and no dialect knows a service: both know only
//! this crate. The program puts them together.
//!
//! Every question has a default answer, so a dialect answers only the questions that concern it.

pub mod login;

use jiff::Zoned;
use muster_schemas::{
    event::StopReason, filter_order::DescribedJob, job::JobSpec, node::LaunchOrder, notify::NotifyItem, time::Timestamp,
};
use nix::sys::resource::Resource;
use std::{collections::BTreeMap, fmt};

/// What a dialect says about its jobs. A job without a dialect gets the default answers.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// Its name in the records of jobs and steps.
    fn name(&self) -> &'static str;

    /// Variables known only once the node of the launch is known; they override those of the order. Asked on that node.
    fn variables(&self, _order: &LaunchOrder, _host: &Host<'_>) -> Variables {
        Variables::default()
    }

    /// The variable with the path of a file that lists the job's nodes in the form of this dialect, and its text. The file
    /// is the job's own and is gone with it.
    fn node_file(&self, _order: &LaunchOrder) -> Option<(&'static str, String)> {
        None
    }

    /// Other variables with the path of the file of [`node_file`](Self::node_file).
    fn node_file_aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// The text of a file that describes the resources of the job in the form of this dialect; `None` if there is none for
    /// this launch. The file is the job's own and is gone with it.
    fn property_file(&self, _order: &LaunchOrder) -> Option<String> {
        None
    }

    /// The variable with the path of the file of [`property_file`](Self::property_file). Steps inside the launch have it too.
    fn property_file_variable(&self) -> Option<&'static str> {
        None
    }

    /// The name of a variable that has the process id of a task, which only the task's process knows.
    fn process_id_variable(&self, _order: &LaunchOrder) -> Option<&'static str> {
        None
    }

    /// Whether launchers of parallel programs in its scripts start processes on other nodes by its own commands. If not,
    /// they are led to `muster-rsh` (SL-W-07).
    fn has_launcher(&self) -> bool {
        false
    }

    /// The soft limits of the tasks, each with its value; `None` for no limit. No task gets more than its node allows.
    fn soft_limits(&self, _order: &LaunchOrder) -> Vec<(Resource, Option<u64>)> {
        Vec::new()
    }

    /// The last line of the output of a script that did not end by itself, including the line end.
    fn end_note(&self, _order: &LaunchOrder, _ending: Ending, _at: &Zoned) -> Option<String> {
        None
    }

    /// The subject of a mail; `None` for muster's own.
    fn mail_subject(&self, _item: &NotifyItem) -> Option<String> {
        None
    }

    /// Whether filters and staging programs get its jobs in its own words, [`request`](Self::request) and
    /// [`staged_script`](Self::staged_script); if not, they get them like jobs without a dialect.
    fn tells_requests(&self) -> bool {
        false
    }

    /// A job's request in the words of this dialect. Filters get it in addition to the description and may change it.
    /// `job` is the whole job or, in a call about one component, that component alone.
    fn request(&self, _job: &DescribedJob) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Applies what filters changed in the words of [`request`](Self::request) to the component at `offset`.
    ///
    /// # Errors
    /// Why a component cannot be as the words say, as text for people.
    fn take_request(
        &self,
        _spec: &mut JobSpec,
        _offset: u32,
        _before: &BTreeMap<String, String>,
        _after: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        Ok(())
    }

    /// The script for the component at `offset` with its staging directives, as the site's staging program reads it.
    fn staged_script(&self, _spec: &JobSpec, _offset: u32) -> Option<String> {
        None
    }
}

/// The node of a launch, as far as a dialect may ask about it.
pub struct Host<'a> {
    /// The time of the launch.
    pub now: Timestamp,
    /// Logs the job's user in there and runs a command line that every shell understands, with a limit in seconds. Returns
    /// its standard output, or why it could not be started.
    pub login: &'a Login<'a>,
}

/// See [`Host::login`].
pub type Login<'a> = dyn Fn(&str, u32) -> Result<Vec<u8>, String> + 'a;

impl fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("now", &self.now).finish_non_exhaustive()
    }
}

/// What a dialect adds to the environment of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    /// The variables.
    pub set: BTreeMap<String, String>,
    /// What went wrong without stopping the launch, for the log of the node.
    pub remark: Option<String>,
}

/// Why a script was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It reached its walltime.
    Walltime,
    /// It was ordered, for this reason.
    Ordered(StopReason),
}

/// The dialects that a program knows.
#[derive(Clone, Copy, Debug)]
pub struct Dialects {
    all: &'static [&'static dyn Dialect],
    plain: Option<&'static dyn Dialect>,
}

impl Dialects {
    /// No dialect: all jobs are plain.
    pub const NONE: Self = Self { all: &[], plain: None };

    /// These. Filters and staging programs get jobs without a dialect in the words of `plain`.
    pub const fn new(all: &'static [&'static dyn Dialect], plain: Option<&'static dyn Dialect>) -> Self {
        Self { all, plain }
    }

    /// The dialect of this name; `None` without a name, and for a name that this program does not know.
    pub fn named(&self, name: Option<&str>) -> Option<&'static dyn Dialect> {
        let name = name?;
        self.all.iter().copied().find(|dialect| dialect.name() == name)
    }

    /// The dialect that describes a job to filters and staging programs. Whatever dialect its user names, they get some
    /// description.
    pub fn telling(&self, spec: &JobSpec) -> Option<&'static dyn Dialect> {
        self.named(spec.dialect.as_deref()).filter(|dialect| dialect.tells_requests()).or(self.plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Named(&'static str, bool);

    impl Dialect for Named {
        fn name(&self) -> &'static str {
            self.0
        }

        fn tells_requests(&self) -> bool {
            self.1
        }
    }

    #[test]
    fn a_job_is_asked_about_in_its_own_dialect_alone() {
        const DIALECTS: Dialects =
            Dialects::new(&[&Named("a", true), &Named("b", true), &Named("silent", false)], Some(&Named("b", true)));
        let name = |dialect: Option<&dyn Dialect>| dialect.map(|dialect| dialect.name());
        assert_eq!([Some("a"), Some("c"), None].map(|of| name(DIALECTS.named(of))), [Some("a"), None, None]);
        let request = |of: Option<&str>| {
            name(DIALECTS.telling(&JobSpec { dialect: of.map(str::to_owned), ..JobSpec::default() }))
        };
        let asked = [Some("a"), Some("silent"), Some("c"), None].map(request);
        assert_eq!(asked, [Some("a"), Some("b"), Some("b"), Some("b")]);
        assert!(Dialects::NONE.named(Some("a")).is_none());
    }
}
