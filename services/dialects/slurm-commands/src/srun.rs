//! `srun` (SL-R, SL-C-22, SL-E-05 to E-07): runs a step, in its own allocation if there is none.

mod ahead;
mod interrupted;
mod multi_prog;
mod shown;

use super::{
    Ended,
    allocation::{self, PATIENCE, Wish, allocate},
    broadcast::{self, Copy},
    forecast, print, refusals,
    site::{self, Site, away, os_text, unreachable, variable},
    submission::{
        self, Problem, caller, carry_limits, forget_outer_job, is_of_outer_job, lead_back, printed_only, tell, text_of,
        with_site_options,
    },
};
use interrupted::Tasks;
use multi_prog::ProgramFile;
use muster_cli::{
    connection::ConnectionOptions,
    interrupts::{self, Interrupts},
    stderr_line,
    step::input::{is_null_device, pass_on, standard_input},
    terminal,
};
use muster_client::{Client, ClientError, Moment, OutputReader, StepAddress};
use muster_schemas::{
    CommandId, JobId, Timestamp,
    event::EndCause,
    job::{ExitStatus, JobState},
    steps::{ProcessManagement, StepSpec, TerminalSize},
    views::{ErrorCode, JobDetail, RunNodeView, StepAnswer, StepDetail, StepEndRequest, StepNodeDetail},
};
use muster_slurm::{
    environment::{JobFacts, defaults},
    job_id::IdExpression,
    messages::{self, ExitStatuses, end_note},
    moment::Now,
    options::{Command, CommandLine, parse_with},
    output::{self, Facts},
    queries::Failure,
    request::{Caller, Interactive, Rules, Settings, components, without_effect},
    select::SchedulerParameters,
    steps::{self, Fed, GroupWish, Launcher, PlanError, StepPlan, Streams},
};
use nix::sys::signal::Signal;
use shown::Shown;
use std::{
    collections::BTreeSet,
    fs::File,
    io::IsTerminal as _,
    os::unix::fs::FileTypeExt as _,
    thread,
    time::{Duration, Instant},
};

const COMMAND: Command = Command::Srun;
/// How long one request waits for resources before it is repeated.
const WAIT_SECONDS: u32 = 60;
/// How long a failing command tries to end its step.
const SHORT_PATIENCE: Duration = Duration::from_secs(10);
/// A step that waits at most this long for others does not print that it waits.
const QUIET_SECONDS: u32 = 1;

/// Runs a command line of `srun`.
pub fn run(connection: &ConnectionOptions, words: &[String]) -> Ended {
    start(connection, words).map_err(|problem| problem.failure(COMMAND))
}

fn failed(text: impl std::fmt::Display) -> Problem {
    submission::failed(COMMAND, text)
}

fn start(connection: &ConnectionOptions, words: &[String]) -> Result<u8, Problem> {
    let line = with_site_options(COMMAND, connection, |site| parse_with(COMMAND, site, words))?;
    let mut line = line.with_host_file(variable("SLURM_HOSTFILE")).with_files(text_of)?;
    if let Some(text) = printed_only(COMMAND, connection, &line) {
        print(&text);
        return Ok(0);
    }
    if line.first("mpi") == Some("list") {
        print(&steps::mpi_list(muster_pmix::available().is_ok()));
        return Ok(0);
    }
    if let Some(help) = steps::binding_help(|option| line.first(option).map(str::to_owned)) {
        print(help);
        return Ok(0);
    }
    let mut caller = caller(COMMAND, connection, words)?;
    carry_limits(&mut caller);
    // Nothing is allocated or started for a step that cannot be (SL-W-03).
    let mpi = line.first("mpi").map(str::to_owned).or_else(|| variable("SLURM_MPI_TYPE"));
    let mpi = mpi.map(|kind| steps::process_management(&kind)).transpose().map_err(failed)?;
    let client = connection.patient_client().map_err(failed)?;
    let interrupts = Interrupts::watch();
    let job = job_of(connection, &line)?;
    if let ([group], None) = (line.groups.as_mut_slice(), job) {
        // A job of one component has no others to choose from.
        group.options.retain(|given| given.option.name != "het-group");
    }
    let file = multi_prog::settle(&mut line)?;
    let run = Run { line: &line, file, caller, interrupts, now: Now::new(site::now), mpi };
    if line.gives("test-only") || variable("SLURM_TEST_ONLY").is_some() {
        return run.foresee(client);
    }
    match job {
        Some(job) => run.inside(client, job),
        None => run.outside(client),
    }
}

/// The job of the step: the named one, else the one in which `srun` itself runs.
fn job_of(connection: &ConnectionOptions, line: &CommandLine) -> Result<Option<JobId>, Problem> {
    let Some(text) = line.first("jobid") else { return Ok(site::surrounding_job()) };
    let id = IdExpression::parse(text).filter(|id| id.step.is_none());
    let id = id.ok_or_else(|| failed(format_args!("Invalid job id specified: {text}")))?;
    if let Some(job @ JobId { index: Some(_), .. }) = id.job.single() {
        return Ok(Some(job));
    }
    // A component has its own number; its job has the number of the first component.
    let found = Site::open(COMMAND.name(), connection)?.named(&[id])?;
    found.first().map(|view| Some(view.id)).ok_or_else(|| no_job(text))
}

fn no_job(text: &str) -> Problem {
    Problem::Failed(Failure {
        lines: vec![
            format!("{COMMAND}: error: Unable to confirm allocation for job {text}: Invalid job id specified"),
            format!("{COMMAND}: Check SLURM_JOB_ID environment variable. Expired or invalid job {text}"),
        ],
        code: 1,
    })
}

/// A command line that is being run.
struct Run<'a> {
    line: &'a CommandLine,
    /// The programs of its ranks, if a file lists them (SL-R-24).
    file: Option<ProgramFile>,
    caller: Caller,
    interrupts: Interrupts,
    now: Now,
    /// How its tasks find each other if they are an MPI program, if the line or a variable says it.
    mpi: Option<Option<ProcessManagement>>,
}

impl Run<'_> {
    /// Runs the step in an existing job.
    fn inside(&self, client: Client, job: JobId) -> Result<u8, Problem> {
        // Options of its own job are told about at its submission.
        for settings in components(&[], &[], self.line, &self.now)? {
            without_effect(COMMAND, &settings).iter().for_each(|warning| stderr_line!("{warning}"));
        }
        let mut client = client.with_patience(PATIENCE);
        let detail = self.running(&mut client, job)?;
        self.step(&mut client, &detail).map(ExitStatus::shell_code)
    }

    /// The job, once it runs.
    fn running(&self, client: &mut Client, job: JobId) -> Result<JobDetail, Problem> {
        let refused = |error: ClientError| match error.code() {
            Some(ErrorCode::NotFound) => no_job(&job.to_string()),
            _ if error.may_pass() => {
                refusals::is_known();
                let text = format_args!("Unable to confirm allocation for job {job}: {}", away(&error));
                Problem::Failed(Failure::error(COMMAND.name(), text))
            }
            _ => Problem::Failed(unreachable(COMMAND.name(), &error)),
        };
        let detail = client.job(job, Moment::Now).map_err(refused)?;
        if !matches!(detail.job.state, JobState::Held | JobState::Queued | JobState::Launching) {
            return Ok(detail);
        }
        if detail.job.state != JobState::Launching {
            self.say(format_args!("job {} queued and waiting for resources", detail.job.own_number()));
        }
        client.wait_for_start(job, None).map_err(refused)?;
        if detail.job.state != JobState::Launching {
            self.say(format_args!("job {} has been allocated resources", detail.job.own_number()));
        }
        client.job(job, Moment::Now).map_err(refused)
    }

    /// Prints when its own allocation would start (SL-C-10). Nothing is submitted, whether there is an allocation or
    /// not.
    fn foresee(&self, mut client: Client) -> Result<u8, Problem> {
        let settings = components(&[], &defaults(COMMAND, None, variable), self.line, &self.now)?;
        tell(COMMAND, self.line, &settings);
        let words = self.line.groups.iter().find(|group| !group.words.is_empty());
        let words = words.map(|group| group.words.clone()).unwrap_or_default();
        let (by, caller) = (Interactive::Srun, &self.caller);
        let wish = Wish { command: COMMAND, by, words, settings: &settings, caller, now: &self.now };
        let mut job = wish.job(&Rules::default())?;
        forecast::settle(COMMAND, &mut client, &mut job)?;
        forecast::tell(COMMAND, &mut client, job)
    }

    /// Runs the step in its own allocation, which ends with it (SL-C-22, SL-S-15).
    fn outside(&self, mut client: Client) -> Result<u8, Problem> {
        let defaults = defaults(COMMAND, None, variable);
        let settings = components(&[], &defaults, self.line, &self.now)?;
        tell(COMMAND, self.line, &settings);
        let wishes: Vec<GroupWish<'_>> = self.line.groups.iter().map(GroupWish::of).collect();
        let count = u32::try_from(settings.len()).unwrap_or(u32::MAX);
        // Each group has its own component here.
        let site = SchedulerParameters { repeat_het_groups: false, ..self.site_parameters(&mut client, count)? };
        let parts = steps::parts(&wishes, count, site).map_err(|error| planned(error.into()))?;
        let words = parts.first().map(|part| part.words.clone()).unwrap_or_default();
        let mut caller = self.caller.clone();
        forget_outer_job(&mut caller);
        let wish = Wish {
            command: COMMAND,
            by: Interactive::Srun,
            words,
            settings: &settings,
            caller: &caller,
            now: &self.now,
        };
        let allocation = allocate(&mut client, &wish, &self.interrupts)?;
        let mut client = client.with_patience(PATIENCE);
        let ended = self.step(&mut client, &allocation.detail);
        let status = *ended.as_ref().unwrap_or(&ExitStatus::Code(1));
        allocation.give_back(&mut client, status).map_err(failed)?;
        ended.map(ExitStatus::shell_code)
    }

    /// Runs the step to its end.
    fn step(&self, client: &mut Client, detail: &JobDetail) -> Result<ExitStatus, Problem> {
        let job = detail.job.id;
        let mut facts = allocation::facts(detail).ok_or_else(|| self.job_is_over(job))?;
        if facts.cluster.is_empty() {
            // The name of a batch job's cluster is known where it runs.
            let known = self.caller.environment.iter().find(|(name, _)| name == "SLURM_CLUSTER_NAME");
            facts.cluster = known.map(|(_, value)| value.clone()).unwrap_or_default();
        }
        let site = self.site_parameters(client, u32::try_from(facts.components.len()).unwrap_or(u32::MAX))?;
        let mut plan = self.plan(&facts, site)?;
        if self.line.verbosity() > 0 {
            let settings: Vec<Settings> = plan.parts.iter().map(|part| part.settings.clone()).collect();
            tell(COMMAND, self.line, &settings);
            steps::allocation_lines(&facts).iter().for_each(|line| stderr_line!("{line}"));
        }
        plan.warnings.iter().for_each(|warning| stderr_line!("{warning}"));
        let tasks = u32::try_from(plan.world.tasks.len()).unwrap_or(u32::MAX);
        let terminal = self.terminal(plan.leader());
        let components = plan.parts.iter().map(|part| part.part.component).collect::<BTreeSet<_>>();
        let settings: Vec<&Settings> = plan.parts.iter().map(|part| &part.settings).collect();
        let streams = Streams::of(&settings, tasks, components.len(), terminal);
        let streams = if is_null_device() { streams.without_standard_input() } else { streams };
        let programs = self.programs(&plan, tasks)?;
        self.copy_programs(client, detail, &mut plan)?;
        let programs = programs.or_else(|| steps::programs_by_node(&plan));
        let launcher = Launcher {
            directory: self.caller.directory.clone(),
            environment: self.caller.environment.clone(),
            umask: self.caller.umask,
            address: site::address(),
            process_management: self.process_management(client)?,
        };
        let mut spec = plan.spec(&facts, &launcher, &streams, programs.as_deref());
        if let Some(environment) = &mut spec.environment {
            lead_back(environment, &self.caller);
        }
        self.run_beside(&plan, "prolog");
        let StepAnswer { run, step, .. } = self.launch(client, job, &spec, plan.leader())?;
        // Errors from here on are not refusals.
        refusals::is_known();
        let address = StepAddress { job, run, step };
        // The reader of the output may go away: that is an error here, which ends the step but not this command.
        let previous = set_broken_pipe(libc::SIG_IGN);
        let attended = self.attend(client, detail, &facts, &plan, &streams, address);
        if attended.is_err() {
            // Nothing that was launched outlives the command. A step that cannot be reached ends with its job.
            let request = StepEndRequest { component: None, is_forced: true };
            let _ = client.another().with_patience(SHORT_PATIENCE).end_step(CommandId::new_now(), job, step, &request);
        }
        set_broken_pipe(previous);
        attended
    }

    /// The terminal of the step, with the size of this one. Without one here the step has none (SL-R-21).
    fn terminal(&self, leader: &Settings) -> Option<TerminalSize> {
        let size = terminal::size().filter(|_| leader.is_set("pty"));
        if size.is_none() && leader.is_set("pty") {
            stderr_line!("srun: error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device");
            stderr_line!("srun: error: Not using a pseudo-terminal, disregarding --pty option");
        }
        size
    }

    /// Passes on input, output and signals of the tasks until they end.
    fn attend(
        &self,
        client: &mut Client,
        detail: &JobDetail,
        facts: &JobFacts,
        plan: &StepPlan,
        streams: &Streams,
        address: StepAddress,
    ) -> Result<ExitStatus, Problem> {
        let StepAddress { job, run, step } = address;
        let number = step.0.saturating_sub(1);
        if self.line.verbosity() > 0 {
            steps::launch_lines(job.number, number, &plan.world).iter().for_each(|line| stderr_line!("{line}"));
        }
        let has_terminal = streams.of_tasks.terminal.is_some();
        let named = Facts {
            job: detail.job.own_number(),
            array: job.number,
            index: job.index,
            step: number.to_string(),
            node: plan.world.nodes.first().cloned().unwrap_or_default(),
            restarts: facts.restarts,
            user: facts.user.clone(),
            name: detail.job.name.clone(),
            ..Facts::default()
        };
        let tasks_now = Tasks::of(plan, format!("{}.{number}", detail.job.own_number()), address);
        tasks_now.obey(client, &self.interrupts, plan.leader());
        ahead::signal_ahead(client, detail, address);
        let raw = (has_terminal && std::io::stdin().is_terminal()).then(terminal::Raw::enter).flatten();
        self.feed(client, address, streams, &named)?;
        let mut shown = Shown::of(plan, streams, &named, tasks_now).map_err(failed)?;
        let reader_of = if has_terminal { OutputReader::at_terminal } else { OutputReader::of };
        let mut reader = reader_of(address);
        while reader.read(client, |frame| shown.take(frame)).map_err(failed)? {
            shown.flush().map_err(not_shown)?;
        }
        shown.finish().map_err(not_shown)?;
        drop(raw);
        // A command after this one finds the resources free, and the step listed as ended.
        let over = client.wait_for_step(job, run, step).map_err(failed)?;
        self.interrupts.end_the_command();
        self.run_beside(plan, "epilog");
        let mut ends = shown.ends();
        if ends.len() < plan.world.tasks.len() {
            // A task without output here need not report its end here: the log has it.
            let steps = client.steps(job, Moment::Now).map_err(failed)?.steps;
            let known = steps.iter().filter(|known| (known.run, known.step) == (run, step));
            shown.add_ends(known.flat_map(|known| &known.statuses));
            ends = shown.ends();
        }
        // The ends of tasks do not say why; a shell has its own status for a command that a signal ended.
        let asks = ends.iter().any(|end| end.status.shell_code() > 128);
        let known = if asks { known_of(client, address) } else { None };
        let name = format!("{}.{number}", detail.job.own_number());
        if let Some(known) = &known {
            tell_of_cancellation(client, known, &format!("STEP {name}"));
        }
        let out_of_memory = known.as_ref().map(nodes_out_of_memory).unwrap_or_default();
        out_of_memory.iter().for_each(|node| stderr_line!("{}", steps::out_of_memory_line(&name, node, &ends)));
        steps::end_lines(&ends, &out_of_memory).iter().for_each(|line| stderr_line!("{line}"));
        if let Some((part, why)) = over.aborted() {
            stderr_line!("{COMMAND}: error: {}: {why}", part.node);
        }
        let status = steps::exit_status(&ends);
        if ends.len() == plan.world.tasks.len() {
            // Each of them has a status, which does not say that its program never ran.
            over.not_started().for_each(|(part, why)| stderr_line!("{COMMAND}: error: {}: {why}", part.node));
            return Ok(status);
        }
        // Some were not started, or are lost: the log says why.
        if let Some(why) = over.why() {
            stderr_line!("{COMMAND}: error: StepId={}.{number}: {why}", detail.job.own_number());
        }
        Ok(steps::worst([status, over.exit_status.unwrap_or(ExitStatus::Code(1)), ExitStatus::Code(1)]))
    }

    /// Copies programs to the nodes that run them, if `--bcast` asks for it (SL-M-13).
    fn copy_programs(&self, client: &mut Client, detail: &JobDetail, plan: &mut StepPlan) -> Result<(), Problem> {
        let run = detail.runs.iter().rev().find(|run| run.ended.is_none());
        for planned in &mut plan.parts {
            let Some(given) = planned.settings.text("bcast") else { continue };
            let Some(program) = planned.part.words.first_mut() else { continue };
            let destination = broadcast::destination(given, &self.caller.directory, detail.job.id, program);
            let copy = Copy::new(COMMAND.name(), &self.find(program), &destination, true, true, self.caller.umask)?;
            let is_used =
                |node: &&RunNodeView| node.component == planned.part.component && planned.nodes.contains(&node.node);
            let nodes = run.iter().flat_map(|run| &run.nodes).filter(is_used);
            copy.send(client, detail.job.id, &nodes.cloned().collect::<Vec<_>>())?;
            *program = destination;
        }
        Ok(())
    }

    /// The path of a program on this host.
    fn find(&self, program: &str) -> String {
        if program.contains('/') {
            return program.to_owned();
        }
        let search = variable("PATH").unwrap_or_default();
        let paths = search.split(':').map(|folder| format!("{folder}/{program}"));
        paths.into_iter().find(|path| std::path::Path::new(path).is_file()).unwrap_or_else(|| program.to_owned())
    }

    /// Runs the program of `--prolog` or `--epilog` here, with the step's command as arguments.
    fn run_beside(&self, plan: &StepPlan, option: &str) {
        let leader = plan.leader();
        let Some(program) = leader.text(option).filter(|program| !matches!(*program, "" | "none")) else { return };
        let words = plan.parts.first().map(|part| part.part.words.clone()).unwrap_or_default();
        let mut beside = std::process::Command::new(program);
        beside.args(words);
        interrupts::leave_to(&mut beside);
        match beside.status() {
            Ok(status) if status.success() => {}
            Ok(status) => stderr_line!("{COMMAND}: error: {option} {program}: {status}"),
            Err(error) => stderr_line!("{COMMAND}: error: {option} {program}: {error}"),
        }
    }

    /// The site's settings for steps on several components (SL-R-06, SL-R-11); a job of one component needs none.
    fn site_parameters(&self, client: &mut Client, components: u32) -> Result<SchedulerParameters, Problem> {
        if components < 2 {
            return Ok(SchedulerParameters::default());
        }
        let info = client.info(Moment::Now).map_err(failed)?;
        Ok(site::parameters(&info))
    }

    /// How the tasks find each other if they are an MPI program; the site decides where nobody else does (SL-W-03).
    fn process_management(&self, client: &mut Client) -> Result<Option<ProcessManagement>, Problem> {
        let of_site = |client: &mut Client| {
            let info = client.info(Moment::Now).map_err(failed)?;
            site::default_management(&info).map_err(failed)
        };
        self.mpi.map_or_else(|| of_site(client), Ok)
    }

    fn plan(&self, facts: &JobFacts, site: SchedulerParameters) -> Result<StepPlan, Problem> {
        let several = facts.components.len() > 1;
        let number = facts.components.first().map_or(0, |leader| leader.number);
        // Variables about sizes are about the job that they belong to.
        let is_other = variable("SLURM_JOB_ID").is_some_and(|text| text != number.to_string());
        let own = |name: &str| variable(name).filter(|_| !is_other || !is_of_outer_job(name));
        // One for steps goes before that for jobs as well.
        let of_steps = |name: &str| if name == "SLURM_GRES" { own("SLURM_STEP_GRES") } else { None };
        let lookup = |name: &str| of_steps(name).or_else(|| own(name));
        let environment = |component: u32| defaults(COMMAND, several.then_some(component), lookup);
        steps::plan(facts, self.line, environment, site, &self.now).map_err(planned)
    }

    /// The command of each rank, if a file lists them (SL-R-24).
    fn programs(&self, plan: &StepPlan, tasks: u32) -> Result<Option<Vec<Vec<String>>>, Problem> {
        if !plan.leader().is_set("multi-prog") {
            return Ok(None);
        }
        let path = || plan.parts.first().and_then(|part| part.part.words.first()).map_or("", String::as_str);
        let programs = match &self.file {
            Some(file) => file.programs(tasks),
            // A variable can ask for a file when the command line has several groups.
            None => ProgramFile::read(path()).and_then(|file| file.programs(tasks)),
        };
        programs.map(Some)
    }

    /// Launches it, and waits for resources that other steps use (SL-R-08).
    fn launch(
        &self,
        client: &mut Client,
        job: JobId,
        spec: &StepSpec,
        leader: &Settings,
    ) -> Result<StepAnswer, Problem> {
        let [waiting, created] = steps::waiting_lines(job.number);
        let at_most = leader.text("immediate").map(|text| Duration::from_secs(text.parse().unwrap_or(0)));
        let begin = Instant::now();
        let mut waits = false;
        loop {
            let mut seconds = if waits { WAIT_SECONDS } else { QUIET_SECONDS };
            if let Some(left) = at_most.map(|most| most.saturating_sub(begin.elapsed()).as_secs_f64().ceil()) {
                seconds = seconds.min(left as u32);
            }
            let answer = client.launch_step(CommandId::new_now(), job, spec, seconds);
            match answer {
                Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::Busy => {
                    if at_most.is_some_and(|most| begin.elapsed() >= most) {
                        return Err(not_at_once(job));
                    }
                    if !std::mem::replace(&mut waits, true) && !self.is_quiet() {
                        stderr_line!("{waiting}");
                    }
                }
                Err(error) => return Err(self.not_launched(job, &error)),
                Ok(answer) => {
                    if waits && !self.is_quiet() {
                        stderr_line!("{created}");
                    }
                    return Ok(answer);
                }
            }
        }
    }

    fn not_launched(&self, job: JobId, error: &ClientError) -> Problem {
        match error.code() {
            Some(ErrorCode::Conflict) => self.job_is_over(job),
            Some(ErrorCode::PermissionDenied) => no_step(job, "Access/permission denied"),
            Some(ErrorCode::LimitReached) if is_about_gpus(error) => {
                no_step(job, "Invalid generic resource (gres) specification")
            }
            Some(ErrorCode::LimitReached) => no_step(job, "More processors requested than permitted"),
            _ if error.may_pass() => no_step(job, away(error)),
            Some(_) => no_step(job, error),
            None => Problem::Failed(unreachable(COMMAND.name(), error)),
        }
    }

    fn job_is_over(&self, job: JobId) -> Problem {
        no_step(job, "Job/step already completing or completed")
    }

    /// Passes input to the tasks, on threads that end with this process.
    fn feed(&self, client: &Client, address: StepAddress, streams: &Streams, named: &Facts) -> Result<(), Problem> {
        for (fed, parts) in streams.sources() {
            let source: Box<dyn std::io::Read + Send> = match fed {
                Fed::Nothing => continue,
                Fed::StandardInput => standard_input(),
                Fed::File(pattern) => {
                    let path = output::expand(pattern, named);
                    let why = |error| failed(format_args!("Could not open stdin file {path}: {}", os_text(&error)));
                    if std::fs::metadata(&path).map_err(why)?.file_type().is_fifo() {
                        // Opening blocks until somebody writes to it, but only this thread.
                        let client = client.another();
                        let feed = move |fifo| pass_on(client, address, parts, fifo);
                        thread::spawn(move || File::open(path).map(feed));
                        continue;
                    }
                    Box::new(File::open(&path).map_err(why)?)
                }
            };
            let client = client.another();
            thread::spawn(move || pass_on(client, address, parts, source));
        }
        Ok(())
    }

    fn is_quiet(&self) -> bool {
        self.line.gives("quiet")
    }

    fn say(&self, text: std::fmt::Arguments<'_>) {
        if !self.is_quiet() {
            stderr_line!("{COMMAND}: {text}");
        }
    }
}

/// Whether a request was refused for the GPUs that it asks for.
fn is_about_gpus(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused(body) if body.message.starts_with("groups.gpus"))
}

/// What the log knows about a step; without an answer there is nothing to print.
fn known_of(client: &mut Client, address: StepAddress) -> Option<StepDetail> {
    let page = client.steps(address.job, Moment::Now).ok()?;
    page.steps.into_iter().find(|known| (known.run, known.step) == (address.run, address.step))
}

/// Prints that a step was ended before its tasks ended by themselves, if it was: by its time limit, or by somebody who
/// ended it or its job (SL-C-30).
fn tell_of_cancellation(client: &mut Client, known: &StepDetail, what: &str) {
    let of = |cause| parts_ended_by(known, cause).next();
    // The end of a job can reach its tasks before their step hears of it: then they seem to have ended by themselves.
    let mut of_job = || known.nodes.first().filter(|_| is_ending(client, known.job));
    let (part, why) = match of(EndCause::Walltime) {
        Some(part) => (part, messages::EndCause::TimeLimit),
        None => match of(EndCause::Killed).or_else(&mut of_job) {
            Some(part) => (part, messages::EndCause::Cancelled),
            None => return,
        },
    };
    // A job may have ended without waiting for reports on steps from its nodes.
    let at = part.exit.as_ref().map(|exit| exit.ended).or(known.ended).unwrap_or_else(Timestamp::now);
    let zone = jiff::tz::TimeZone::system();
    stderr_line!("{}", end_note(what, &part.node, at, &zone, why).trim_end());
}

fn is_ending(client: &mut Client, job: JobId) -> bool {
    client.job(job, Moment::Now).is_ok_and(|detail| detail.job.stopping.is_some() || detail.job.outcome.is_some())
}

/// The nodes on which the kernel killed a process of the step for its memory, each once.
fn nodes_out_of_memory(known: &StepDetail) -> Vec<&str> {
    // Components can share a node.
    let nodes: BTreeSet<&str> = parts_ended_by(known, EndCause::OutOfMemory).map(|part| part.node.as_str()).collect();
    nodes.into_iter().collect()
}

fn parts_ended_by(known: &StepDetail, cause: EndCause) -> impl Iterator<Item = &StepNodeDetail> {
    let is_it = move |part: &&StepNodeDetail| part.exit.as_ref().is_some_and(|exit| exit.cause == cause);
    known.nodes.iter().filter(is_it)
}

/// Sets what happens when nobody reads this command's output any more; returns the previous setting.
fn set_broken_pipe(action: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: neither ignoring a signal nor its default action runs code of this program.
    unsafe { libc::signal(libc::SIGPIPE, action) }
}

/// The output of tasks cannot be shown. If nobody reads it, the status is that of a program ended by SIGPIPE.
fn not_shown(error: std::io::Error) -> Problem {
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return Problem::Failed(Failure { lines: Vec::new(), code: 128 + Signal::SIGPIPE as u8 });
    }
    failed(format_args!("Could not write the output of tasks: {error}"))
}

fn planned(error: PlanError) -> Problem {
    let chosen = ExitStatuses::from_variables(variable);
    Problem::Failed(Failure { lines: error.lines(), code: error.exit_status(chosen) })
}

fn no_step(job: JobId, why: impl std::fmt::Display) -> Problem {
    Problem::Failed(not_created(job, why))
}

fn not_created(job: JobId, why: impl std::fmt::Display) -> Failure {
    Failure::error(COMMAND.name(), format_args!("Unable to create step for job {}: {why}", job.number))
}

/// Its resources were not free in time (SL-E-11).
fn not_at_once(job: JobId) -> Problem {
    let chosen = ExitStatuses::from_variables(variable);
    let code = chosen.immediate.or(chosen.error).unwrap_or(1);
    Problem::Failed(Failure { code, ..not_created(job, "Requested nodes are busy") })
}
