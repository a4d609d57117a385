//! The attributes of jobs.

use super::{
    places,
    states::job_state,
    status::{Attribute, Kind, Status, Value},
};
use crate::{
    attributes::{Attributes, names},
    flavour::Flavour,
    job_id::PbsJobId,
    value::{show_kilobytes, show_seconds},
};
use jiff::tz::TimeZone;
use muster_schemas::{
    ids::JobId,
    job::{ExitStatus, Holds, JobState, Occasion, Sink, WaitReason},
    resources::{Memory, Per},
    time::Timestamp,
    views::{ArrayView, CopyWord, JobDetail, JobView, OutcomeWord, ReasonWord, RunView},
};

/// What the attributes of jobs depend on beside the jobs.
#[derive(Clone, Debug)]
pub struct Sources<'a> {
    /// The server's name.
    pub server: &'a str,
    /// The member of the family.
    pub flavour: Flavour,
    /// The current time.
    pub now: Timestamp,
    /// The reader's zone.
    pub zone: &'a TimeZone,
}

/// A job as lists have it.
pub fn of_view(view: &JobView, sources: &Sources<'_>) -> Status {
    build(view, None, sources)
}

/// A job with all its details.
pub fn of_detail(detail: &JobDetail, sources: &Sources<'_>) -> Status {
    build(&detail.job, Some(detail), sources)
}

/// Files are to be copied before the start.
const PRESTAGEIN: u32 = 11;
/// They are copied ahead.
const STAGEIN: u32 = 14;
/// They are copied, and the job starts then.
const STAGEGO: u32 = 15;
/// They were copied ahead.
const STAGECMP: u32 = 16;
/// They could not be copied.
const STAGEFAIL: u32 = 37;
/// Results are copied.
const STAGEOUT: u32 = 51;

/// A walltime of this length or more stands for no limit.
const UNLIMITED_SECONDS: u64 = 100 * 366 * 86_400;

/// How long the latest run of a job has lasted, if it has started.
fn elapsed(view: &JobView, now: Timestamp) -> Option<u64> {
    let until = view.ended.unwrap_or(now);
    Some(u64::try_from(until.micros_since(view.started?) / 1_000_000).unwrap_or(0))
}

fn array_counts(array: &ArrayView) -> String {
    let expired: u64 = array.finished.values().sum();
    format!("Queued:{} Running:{} Exiting:0 Expired:{expired} ", array.waiting, array.running)
}

fn nodes_only(view: &JobView) -> String {
    view.nodes.iter().map(|node| format!("{node}/0")).collect::<Vec<_>>().join("+")
}

/// A task of an array that has not started, from the view of the array.
pub fn of_task(array: &JobView, index: u32, sources: &Sources<'_>) -> Status {
    let view = JobView { id: JobId::task(array.id.number, index), array: None, ..array.clone() };
    build(&view, None, sources)
}

fn build(view: &JobView, detail: Option<&JobDetail>, sources: &Sources<'_>) -> Status {
    let id = PbsJobId::of(view.id, view.array.is_some(), sources.server);
    let mut job = Job {
        view,
        detail,
        kept: detail.map(|detail| Attributes(&detail.spec.attributes)),
        run: detail.and_then(|detail| detail.runs.last()),
        sources,
        status: Status::new(Kind::Job, id.to_string()),
    };
    job.identity();
    job.used();
    job.place();
    job.options();
    job.resources();
    job.life();
    job.rest();
    job.status
}

struct Job<'a> {
    view: &'a JobView,
    detail: Option<&'a JobDetail>,
    kept: Option<Attributes<'a>>,
    run: Option<&'a RunView>,
    sources: &'a Sources<'a>,
    status: Status,
}

impl<'a> Job<'a> {
    fn kept(&self, name: &str) -> Option<&'a str> {
        self.kept.and_then(|kept| kept.get(name))
    }

    fn is_torque(&self) -> bool {
        self.sources.flavour == Flavour::Torque
    }

    fn host(&self) -> &'a str {
        self.kept(names::SUBMIT_HOST).unwrap_or(self.sources.server)
    }

    fn identity(&mut self) {
        self.status.set("Job_Name", self.view.name.clone());
        self.status.set("Job_Owner", format!("{}@{}", self.view.owner, self.host()));
    }

    fn elapsed(&self) -> Option<u64> {
        elapsed(self.view, self.sources.now)
    }

    fn used(&mut self) {
        let Some(elapsed) = self.elapsed() else { return };
        let usage = self.run.map(|run| run.usage).unwrap_or_default();
        let cpu = usage.cpu_time_micros / 1_000_000;
        let name = "resources_used";
        if !self.is_torque() {
            let percent = cpu.saturating_mul(100).checked_div(elapsed).unwrap_or(0);
            self.status.set_resource(name, "cpupercent", percent.to_string());
        }
        self.status.set_resource(name, "cput", show_seconds(cpu));
        self.status.set_resource(name, "mem", show_kilobytes(usage.peak_memory_bytes));
        if !self.is_torque() {
            self.status.set_resource(name, "ncpus", self.view.cores.to_string());
        }
        self.status.set_resource(name, "walltime", show_seconds(elapsed));
    }

    fn place(&mut self) {
        let state = job_state(self.view, self.sources.flavour);
        self.status.set("job_state", state.to_string());
        self.status.set("queue", self.view.queue.clone());
        self.status.set("server", self.sources.server);
        match self.kept(names::PROJECT) {
            // The project is the account here.
            Some(_) => self.status.set_if("Account_Name", self.kept(names::ACCOUNT)),
            None => self.status.set_if("Account_Name", self.view.account.clone()),
        }
        self.status.set("Checkpoint", self.kept(names::CHECKPOINT).unwrap_or("u"));
        self.status.set_time("ctime", Some(self.view.submitted));
        self.status.set_if("depend", self.kept(names::DEPEND));
        if let Some(detail) = self.detail {
            let launch = detail.spec.components.first().map(|component| &component.launch);
            let stdout = launch.and_then(|launch| launch.stdout.as_deref());
            let stderr = launch.and_then(|launch| launch.stderr.as_deref()).or(stdout);
            self.status.set("Error_Path", places::output_path(detail, stderr, self.host()));
        }
        match self.run.filter(|_| self.view.started.is_some()) {
            Some(run) => {
                self.status.set("exec_host", places::exec_host(run, self.sources.flavour));
                if !self.is_torque() {
                    self.status.set("exec_vnode", places::exec_vnode(run));
                }
            }
            None if self.view.nodes.is_empty() => {}
            None => self.status.set("exec_host", nodes_only(self.view)),
        }
        self.status.set_time("Execution_Time", self.view.begin);
    }

    fn options(&mut self) {
        let Holds { user, operator, system } = self.view.holds;
        let letters: String = [(user, 'u'), (operator, 'o'), (system, 's')]
            .iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, c)| c)
            .collect();
        self.status.set("Hold_Types", if letters.is_empty() { "n".to_owned() } else { letters });
        self.status.set_if("interactive", self.kept(names::INTERACTIVE));
        self.status.set("Join_Path", self.kept(names::JOIN_PATH).unwrap_or("n"));
        self.status.set("Keep_Files", self.kept(names::KEEP_FILES).unwrap_or("n"));
        self.status.set("Mail_Points", self.kept(names::MAIL_POINTS).map_or_else(|| self.mail_points(), str::to_owned));
        self.status.set_if("Mail_Users", self.kept(names::MAIL_USERS));
        self.status.set_time(
            "mtime",
            [self.view.ended, self.view.started, Some(self.view.submitted)].into_iter().flatten().next(),
        );
        if let Some(detail) = self.detail {
            let stdout = detail.spec.components.first().and_then(|component| component.launch.stdout.as_deref());
            self.status.set("Output_Path", places::output_path(detail, stdout, self.host()));
        }
        self.status.set("Priority", self.view.priority.to_string());
        self.status.set_time("qtime", Some(self.view.submitted));
        // `qalter` changes what is kept, and leaves the submission as it was.
        let rerunnable = match self.kept(names::RERUNABLE) {
            Some(kept) => kept == "True",
            None => self.detail.is_none_or(|detail| detail.spec.requeue.on_node_lost),
        };
        self.status.set(names::RERUNABLE, if rerunnable { "True" } else { "False" });
    }

    /// The mail points of a job of another dialect.
    fn mail_points(&self) -> String {
        let mails = self.detail.into_iter().flat_map(|detail| &detail.spec.notifications);
        let on: Vec<Occasion> =
            mails.filter(|mail| matches!(mail.sink, Sink::Mail(_))).flat_map(|mail| mail.on.clone()).collect();
        let points = [(Occasion::Failed, 'a'), (Occasion::Started, 'b'), (Occasion::Ended, 'e')];
        let letters: String = points.iter().filter(|(point, _)| on.contains(point)).map(|(_, letter)| letter).collect();
        if letters.is_empty() { "n".to_owned() } else { letters }
    }

    /// The memory that it asked for, of a job of another dialect.
    fn memory(&self) -> Option<u64> {
        let components = &self.detail?.spec.components;
        let requests = components.iter().filter_map(|one| one.alternatives.first()).flat_map(|way| &way.requests);
        let amounts = requests.filter_map(|request| {
            let Memory { bytes, per } = request.memory?;
            let units = match per {
                Per::Node => u64::from(self.view.node_count),
                Per::Task => u64::from(request.tasks.unwrap_or(1)),
                Per::Core => self.view.cores,
                Per::Gpu | Per::Request => 1,
            };
            bytes.checked_mul(units)
        });
        amounts.reduce(|one, other| one.saturating_add(other)).filter(|bytes| *bytes > 0)
    }

    fn resources(&mut self) {
        let name = names::RESOURCE_LIST;
        let walltime = self.view.walltime_seconds.filter(|seconds| *seconds < UNLIMITED_SECONDS).map(show_seconds);
        let mut all: Vec<(String, String)> = Vec::new();
        if let Some(kept) = self.kept {
            all.extend(kept.resources().map(|(name, text)| (name.to_owned(), text.to_owned())));
        }
        let computed = [
            ("ncpus", Some(self.view.cores.to_string())),
            ("nodect", Some(self.view.node_count.to_string())),
            ("mem", self.memory().map(show_kilobytes)),
        ];
        for (name, text) in computed {
            if let Some(text) = text.filter(|_| all.iter().all(|(known, _)| known != name)) {
                all.push((name.to_owned(), text));
            }
        }
        // What operators and defaults made of it counts.
        all.retain(|(name, _)| name != "walltime");
        all.extend(walltime.map(|walltime| ("walltime".to_owned(), walltime)));
        all.sort();
        for (resource, text) in all {
            self.status.set_resource(name, &resource, text);
        }
    }

    fn life(&mut self) {
        self.status.set_if("Shell_Path_List", self.kept(names::SHELL));
        self.status.set_if("stagein", self.kept(names::STAGEIN));
        self.status.set_if("stageout", self.kept(names::STAGEOUT));
        if !self.is_torque() {
            self.status.set_time("stime", self.view.started);
            self.status.set_if("jobdir", self.detail.map(|detail| detail.spec.working_directory.clone()));
        }
        self.status.set("substate", substate(self.view).to_string());
        let Some(detail) = self.detail else { return };
        let is_own = |name: &str| name.starts_with("MUSTER_");
        let shown = detail.spec.environment.iter().filter(|(name, _)| !is_own(name));
        let variables: Vec<(String, String)> = shown.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !variables.is_empty() {
            let value = Value::Variables(variables);
            self.status.attributes.push(Attribute { name: "Variable_List", resource: None, value });
        }
        if self.is_torque() {
            self.status.set("euser", self.view.owner.clone());
            self.status.set("queue_type", "E");
        }
    }

    fn rest(&mut self) {
        self.status.set("comment", self.comment());
        self.status.set_time("etime", Some(self.view.begin.unwrap_or(self.view.submitted)));
        let expected = self.view.predicted_start.or(self.view.slot_start).filter(|_| self.view.started.is_none());
        if let Some(at) = expected {
            let (name, resource) = ("estimated", Some("start_time".to_owned()));
            self.status.attributes.push(Attribute { name, resource, value: Value::Time(at) });
        }
        if !self.is_torque() {
            self.status.set("run_count", self.view.runs.to_string());
        }
        let exit_name = if self.is_torque() { "exit_status" } else { "Exit_status" };
        let exit = exit_status(self.view, self.sources.flavour).map(|status| status.to_string());
        self.status.set_if(exit_name, exit);
        let arguments = if self.is_torque() { "submit_args" } else { "Submit_arguments" };
        self.status.set_if(arguments, self.kept(names::SUBMIT_ARGUMENTS));
        match self.is_torque() {
            true => self.rest_of_torque(),
            false => self.rest_of_pbs_pro(),
        }
    }

    fn rest_of_torque(&mut self) {
        self.status.set_time("start_time", self.view.started);
        self.status.set("start_count", self.view.runs.to_string());
        self.status.set_time("comp_time", self.view.ended);
        self.status.set("fault_tolerant", "False");
        let elapsed = self.elapsed().filter(|_| self.view.ended.is_some());
        self.status.set_if("total_runtime", elapsed.map(|seconds| format!("{seconds}.000000")));
        self.status.set_if("submit_host", self.kept(names::SUBMIT_HOST));
        self.status.set_if("init_work_dir", self.detail.map(|detail| detail.spec.working_directory.clone()));
        let left = self.view.walltime_seconds.zip(self.elapsed()).filter(|_| self.view.ended.is_none());
        if let Some((limit, elapsed)) = left {
            let left = i128::from(limit) - i128::from(elapsed);
            self.status.set_resource("Walltime", "Remaining", left.to_string());
        }
    }

    fn rest_of_pbs_pro(&mut self) {
        if let Some(array) = &self.view.array {
            self.status.set("array", "True");
            self.status.set("array_state_count", array_counts(array));
            self.status.set_if("array_indices_submitted", self.kept(names::ARRAY_INDICES));
            self.status.set("array_indices_remaining", array.remaining.to_string());
        } else if let Some(index) = self.view.id.index {
            let array = PbsJobId::of(self.view.id.whole(), true, self.sources.server);
            self.status.set("array_id", array.to_string());
            self.status.set("array_index", index.to_string());
        }
        if let Some(ended) = self.view.ended {
            self.status.set("history_timestamp", ended.unix_seconds().to_string());
        }
        self.status.set("project", self.kept(names::PROJECT).unwrap_or("_pbs_project_default"));
        self.status.set_if("Submit_Host", self.kept(names::SUBMIT_HOST));
    }

    fn comment_of_waiting(&self) -> String {
        let has_begun = |array: &ArrayView| array.running > 0 || array.finished.values().any(|count| *count > 0);
        if self.view.array.as_ref().is_some_and(has_begun) {
            return "Job Array Began".to_owned();
        }
        if self.view.state == JobState::Launching {
            return format!("Job was sent for execution on ({})", self.view.nodes.join("+"));
        }
        let ended = self.view.outcome.as_ref().map(ToString::to_string);
        let standing = self.view.comment.as_ref().filter(|comment| comment.until > self.sources.now);
        let why = standing.map(|comment| comment.text.clone());
        let why = why.or_else(|| self.view.reason.as_ref().map(|reason| reason.text.clone()));
        let held = (!self.view.holds.is_empty()).then(|| WaitReason::Held(self.view.holds).to_string());
        let why = ended.or(why).or(held).unwrap_or_else(|| "it waits for resources".to_owned());
        // Its owner and operators read more than that here.
        let failed = self.view.copies.as_ref().filter(|copies| copies.stage == CopyWord::Failed);
        match failed.and_then(|copies| copies.last.as_ref()?.failure.as_ref()) {
            Some(failure) => format!("Not Running: {why}: {failure}"),
            None => format!("Not Running: {why}"),
        }
    }

    /// What became of the job in words; a started one names its nodes and the time of its start (PBS-L-06).
    fn comment(&self) -> String {
        let Some(started) = self.view.started else { return self.comment_of_waiting() };
        let zoned = Timestamp::from_unix_seconds(started.unix_seconds()).to_jiff().to_zoned(self.sources.zone.clone());
        let nodes = match self.run {
            Some(run) => places::exec_vnode(run),
            None => format!("({})", self.view.nodes.join("+")),
        };
        let end = match self.view.outcome.as_ref().map(|outcome| outcome.outcome) {
            None => "",
            Some(OutcomeWord::Completed | OutcomeWord::DeclaredFinished) => " and finished",
            Some(OutcomeWord::Cancelled) => " and was deleted",
            Some(OutcomeWord::TimedOut) => " and exceeded its walltime",
            Some(_) => " and failed",
        };
        format!("Job run at {} on {nodes}{end}", zoned.strftime("%a %b %d at %H:%M"))
    }
}

/// The substate: the finer state of servers of the family. Policies tell by it how far the files of a job are (PBS-G-05).
pub fn substate(view: &JobView) -> u32 {
    let code = view.reason.as_ref().map(|reason| reason.code);
    let copies = view.copies.as_deref().map(|copies| (copies.stage, copies.has_before));
    match (view.state, code) {
        (JobState::Launching, _) if matches!(copies, Some((CopyWord::Coming, _))) => STAGEGO,
        (JobState::Finished, _) if matches!(copies, Some((CopyWord::Leaving, _))) => STAGEOUT,
        (JobState::Held | JobState::Queued, _) if matches!(copies, Some((CopyWord::Ahead, _))) => STAGEIN,
        (JobState::Held | JobState::Queued, _) if matches!(copies, Some((CopyWord::Failed, _))) => STAGEFAIL,
        (JobState::Held | JobState::Queued, Some(ReasonWord::StagingFailed)) => STAGEFAIL,
        (JobState::Held | JobState::Queued, Some(ReasonWord::StagingIn)) => PRESTAGEIN,
        (JobState::Held | JobState::Queued, _) if !view.holds.is_empty() => 20,
        (JobState::Held | JobState::Queued, Some(ReasonWord::Dependency | ReasonWord::DependencyNeverMet)) => 22,
        (JobState::Held | JobState::Queued, Some(ReasonWord::BeginTime | ReasonWord::HeldUntil)) => 30,
        (JobState::Held | JobState::Queued, _) if matches!(copies, Some((CopyWord::Here, _))) => STAGECMP,
        (JobState::Held | JobState::Queued, _) if matches!(copies, Some((CopyWord::Wanted, true))) => PRESTAGEIN,
        (JobState::Held | JobState::Queued, _) => 10,
        (JobState::Launching, _) => 41,
        (JobState::Running, _) => 42,
        (JobState::Suspended, _) => 45,
        (JobState::Finishing, _) => 51,
        (JobState::Finished, _) => match view.outcome.as_ref().map(|outcome| outcome.outcome) {
            Some(OutcomeWord::Completed | OutcomeWord::DeclaredFinished) | None => 92,
            Some(OutcomeWord::Cancelled) => 91,
            Some(_) => 93,
        },
    }
}

/// The exit status of a job that is over: that of its script, 256 more than a signal's number, or the family's number
/// for a reason. A job that was deleted always has one, so that programs do not take it for a success.
fn exit_status(view: &JobView, flavour: Flavour) -> Option<i32> {
    let outcome = view.outcome.as_ref()?;
    let by_flavour = |pro: i32, torque: i32| if flavour == Flavour::PbsPro { pro } else { torque };
    Some(match (outcome.outcome, outcome.exit_status) {
        (OutcomeWord::Completed | OutcomeWord::DeclaredFinished, _) => 0,
        (_, Some(ExitStatus::Code(code))) => i32::from(code),
        (_, Some(ExitStatus::Signal(signal))) => 256 + i32::from(signal),
        (OutcomeWord::LaunchFailed, None) => -1,
        (OutcomeWord::TimedOut, None) => by_flavour(-29, -11),
        (OutcomeWord::OutOfMemory, None) => by_flavour(-27, -10),
        (_, None) => by_flavour(256 + 9, 256 + 15),
    })
}
