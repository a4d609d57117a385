//! The seam between the services and the dialects: what a service asks the dialect of a job.
//!
//! A job records its dialect when it is submitted ([`JobSpec::dialect`]). A service that comes to something that dialects differ
//! in looks that name up in the [`Dialects`] that it was given, and asks. No service names a dialect, and no dialect knows a
//! service: both know only this crate. The program puts them together.
//!
//! Every question has an answer of its own, so a dialect answers only what it has words for.

use jiff::Zoned;
use muster_schemas::{
    event::StopReason, filter_order::DescribedJob, job::JobSpec, node::LaunchOrder, notify::NotifyItem, time::Timestamp,
};
use nix::sys::resource::Resource;
use std::{collections::BTreeMap, fmt};

/// What a dialect says of its jobs. A job of no dialect gets the answers that stand here.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// Its name in the records of jobs and steps.
    fn name(&self) -> &'static str;

    /// Variables of what is launched, which are known only now that it is known where: they go over those that the order
    /// brings. Asked on the node of the launch.
    fn variables(&self, _order: &LaunchOrder, _host: &Host<'_>) -> Variables {
        Variables::default()
    }

    /// The name of a variable that has the process id of a task, which only the task's process knows.
    fn process_id_variable(&self, _order: &LaunchOrder) -> Option<&'static str> {
        None
    }

    /// The soft limits of the tasks, and how much of each; `None` for no limit. No task gets more than its node allows.
    fn soft_limits(&self, _order: &LaunchOrder) -> Vec<(Resource, Option<u64>)> {
        Vec::new()
    }

    /// What stands at the end of the output of a script that did not end by itself, with the end of its line.
    fn end_note(&self, _order: &LaunchOrder, _ending: Ending, _at: &Zoned) -> Option<String> {
        None
    }

    /// The subject of a mail, where it is not muster's own.
    fn mail_subject(&self, _item: &NotifyItem) -> Option<String> {
        None
    }

    /// Whether filters and staging programs are told of its jobs in words of its own, [`request`](Self::request) and
    /// [`staged_script`](Self::staged_script); if not, they are told as of jobs of no dialect.
    fn tells_requests(&self) -> bool {
        false
    }

    /// What a job asks for in words of this dialect, which filters are told beside its description and may change. `job` is
    /// the whole job or, in a call about one component, that component alone.
    fn request(&self, _job: &DescribedJob) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Takes over what filters changed of the words of [`request`](Self::request) for the component at `offset`.
    ///
    /// # Errors
    /// Why a component cannot be as the words say, for people.
    fn take_request(
        &self,
        _spec: &mut JobSpec,
        _offset: u32,
        _before: &BTreeMap<String, String>,
        _after: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        Ok(())
    }

    /// The script with what is to be staged for the component at `offset`, as the site's staging program reads it.
    fn staged_script(&self, _spec: &JobSpec, _offset: u32) -> Option<String> {
        None
    }
}

/// The node of a launch, as far as a dialect may ask about it.
pub struct Host<'a> {
    /// When the launch is.
    pub now: Timestamp,
    /// Logs a user in and runs a command line there that every shell understands, within so many seconds: gives what it says on
    /// standard output, or why it could not be started.
    pub login: &'a Login<'a>,
}

/// See [`Host::login`].
pub type Login<'a> = dyn Fn(&str, &str, u32) -> Result<Vec<u8>, String> + 'a;

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
    /// What went wrong and did not keep the job from being launched, for the log of the node.
    pub remark: Option<String>,
}

/// Why a script was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its walltime was over.
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

    /// These. Filters and staging programs are told of jobs of no dialect in the words of `plain`.
    pub const fn new(all: &'static [&'static dyn Dialect], plain: Option<&'static dyn Dialect>) -> Self {
        Self { all, plain }
    }

    /// The dialect of this name; `None` for none, and for one that this program does not know.
    pub fn named(&self, name: Option<&str>) -> Option<&'static dyn Dialect> {
        let name = name?;
        self.all.iter().copied().find(|dialect| dialect.name() == name)
    }

    /// The dialect in whose words filters and staging programs are told of a job. Whatever dialect its user says that it is of, they
    /// are told of it in some words.
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
