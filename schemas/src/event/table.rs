//! The table of events: one row for each kind, the only place that describes it.
//!
//! `event_table!(x)` passes the rows to the macro `x`. [`Event`](super::Event), its properties and the public form of
//! each event (`public.rs`) are generated from them. A row is:
//!
//! ```text
//! /// What has happened.
//! Variant {
//!     /// A field.
//!     field: Type,
//! }
//! is "kind" "verb",           names of the public event; the verb may be an expression in brackets
//! of [job, run],              the fields that identify its subject: `job`, `job, run`, `call` or none
//! plan Jobs,                  what it changes for planners: a `PlanEffect`
//! replay Left,                how a replay under another policy treats it: a `Replay`
//! concerns [Orders, Runs],    the parts of muster that act on it: each a `Concern`
//! public Job(Data { .. });    its public data by subject; a file below `public/` has the type
//! ```
//!
//! `of`, the verb and the public data can use the fields of the variant, as references. `names` maps node numbers to
//! names.
//!
//! A row's position is the number of its kind in the log, and fields are stored in the order of the row: new rows and
//! fields go to the end.

#[rustfmt::skip]
macro_rules! event_table {
    ($with:ident) => { $with! { [names]

    /// The first record of every log.
    ClusterInitialised {
        /// Identifies this log uniquely.
        cluster_id: UuidBytes,
        /// The public key that checkpoints are signed with (Ed25519, 32 bytes).
        public_key: [u8; 32],
    }
    is "cluster" "initialised", of [], plan Cluster, replay Happens, concerns [Names],
    public Cluster(ClusterInitialised { cluster_id: cluster_id.to_string(), public_key: hex(public_key) });

    /// The settings of the cluster changed.
    SettingsChanged {
        /// All settings, including unchanged ones.
        settings: Arc<ClusterSettings>,
    }
    is "cluster" "settings_changed", of [], plan Cluster, replay Happens, concerns [Names],
    public Cluster(ClusterSettingsChanged { settings: settings.clone() });

    /// A queue was added or changed.
    QueueSet {
        /// The queue from now on.
        queue: Arc<QueueSpec>,
    }
    is "queue" "set", of [], plan Cluster, replay Happens, concerns [Starts],
    public Cluster(QueueSet { queue: queue.clone() });

    /// An empty queue was removed.
    QueueRemoved {
        /// Its name.
        name: String,
    }
    is "queue" "removed", of [], plan Cluster, replay Happens, concerns [],
    public Cluster(QueueRemoved { queue: name.clone() });

    /// The number of a floating licence changed; 0 removes it.
    LicenceSet {
        /// Its name.
        name: String,
        /// The new total.
        total: u32,
    }
    is "licence" "set", of [], plan Cluster, replay Happens, concerns [Starts],
    public Cluster(LicenceSet { licence: name.clone(), total: *total });

    /// A node was added.
    NodeAdded {
        /// Its number.
        node: NodeId,
        /// Its specification.
        spec: Arc<NodeSpec>,
    }
    is "node" "added", of [], plan Cluster, replay Happens, concerns [Starts, Names],
    public Node(NodeAdded { node: spec.name.clone(), spec: spec.clone() });

    /// The specification of a node changed; its name stays.
    NodeChanged {
        /// Its number.
        node: NodeId,
        /// Its specification from now on.
        spec: Arc<NodeSpec>,
    }
    is "node" "changed", of [], plan Cluster, replay Happens, concerns [Starts],
    public Node(NodeChanged { node: spec.name.clone(), spec: spec.clone() });

    /// A node was removed; nothing was running on it.
    NodeRemoved {
        /// Its number.
        node: NodeId,
    }
    is "node" "removed", of [], plan Cluster, replay Happens, concerns [],
    public Node(NodeRemoved { node: name_of(names, *node) });

    /// A node's executor reported for the first time, or again after the node was lost.
    NodeUp {
        /// Its number.
        node: NodeId,
        /// Changes when the machine boots: runs of an earlier boot are gone.
        boot_id: String,
    }
    is "node" "up", of [], plan Cluster, replay Happens, concerns [Starts],
    public Node(NodeUp { node: name_of(names, *node), boot_id: boot_id.clone() });

    /// A node has not reported for too long, or its executor said that it cannot continue.
    NodeLost {
        /// Its number.
        node: NodeId,
        /// Why it is considered lost.
        reason: String,
    }
    is "node" "lost", of [], plan Cluster, replay Asked, concerns [],
    public Node(NodeLost { node: name_of(names, *node), reason: reason.clone() });

    /// A drained node takes jobs again.
    NodeResumed {
        /// Its number.
        node: NodeId,
    }
    is "node" "resumed", of [], plan Cluster, replay Happens, concerns [Starts],
    public Node(NodeResumed { node: name_of(names, *node) });

    /// A job was accepted.
    JobSubmitted {
        /// Its number; for an array, that of the whole array.
        job: JobId,
        /// Its owner.
        owner: Arc<Owner>,
        /// Its full specification, with defaults filled in. If the job has a description, it is provisional until
        /// [`Event::JobValidated`].
        spec: Arc<JobSpec>,
        /// Additional data of a job with a description, a template or its own tasks; `None` for other jobs.
        intake: Option<Arc<Intake>>,
    }
    is "job" "submitted", of [job], plan Jobs, replay Asked,
    concerns [Usage, Statistics, Starts, Outcomes, Descriptions],
    public Job(submitted(*job, &owner.user, spec, intake.as_deref()));

    /// Holds were added.
    JobHeld {
        /// The job, array or task.
        job: JobId,
        /// The added holds.
        holds: Holds,
        /// The reason, for people.
        reason: String,
    }
    is "job" "held", of [job], plan Jobs, replay Asked, concerns [Notices],
    public Job(held(*job, *holds, reason, None));

    /// Holds were removed.
    JobReleased {
        /// The job, array or task.
        job: JobId,
        /// The removed holds.
        holds: Holds,
    }
    is "job" "released", of [job], plan Jobs, replay Asked, concerns [Notices, Starts],
    public Job(released(*job, *holds, None));

    /// The job was changed (SL-C-36).
    JobModified {
        /// The job.
        job: JobId,
        /// The change.
        change: Arc<JobChange>,
    }
    is "job" "modified", of [job], plan Jobs, replay Asked, concerns [Orders, Usage, Starts],
    public Job(JobModified { job: *job, change: (&**change).into() });

    /// A gate that opens by time has opened: begin time or dependency delay.
    JobEligible {
        /// The job.
        job: JobId,
    }
    is "job" "eligible", of [job], plan Jobs, replay Left, concerns [Starts],
    public Job(JobEligible { job: *job });

    /// A job or array task got its resources. Its launch is ordered.
    RunAllocated {
        /// The job; for an array, the task, which this event creates.
        job: JobId,
        /// The run.
        run: RunId,
        /// The resources of the run.
        placement: Arc<Placement>,
    }
    is "job" "allocated", of [job, run], plan Never, replay Left, concerns [Orders, Usage, Statistics, Runs, Outcomes],
    public Run(JobAllocated { job: *job, run: *run, nodes: allocated(placement, names) });

    /// A part of a run (one component on one node) has started; others have not yet.
    RunPartStarted {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node.
        node: NodeId,
        /// The component's index in the job, from 0.
        component: u32,
    }
    is "run" "part_started", of [job, run], plan Never, replay Left, concerns [],
    public Run(RunPartStarted { job: *job, run: *run, node: name_of(names, *node), component: *component });

    /// The last part of a run has started: the job is running.
    RunStarted {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node that started last.
        node: NodeId,
        /// The component that started last there, from 0.
        component: u32,
    }
    is "job" "started", of [job, run], plan Jobs, replay Left, concerns [Notices, Usage, Runs],
    public Run(JobStarted { job: *job, run: *run, node: name_of(names, *node), component: *component });

    /// A run is being stopped: its nodes are ordered to end it.
    RunStopping {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Why.
        reason: StopReason,
        /// Seconds from SIGTERM to SIGKILL, if somebody named them; else they are those of the job or of the cluster.
        grace_seconds: Option<u32>,
    }
    is "job" "stopping", of [job, run], plan Never, replay Left, concerns [Orders, Cancels, Notices],
    public Run(JobStopping { job: *job, run: *run, reason: *reason, grace_seconds: *grace_seconds });

    /// A part of a run (one component on one node) has ended; others continue.
    RunPartEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node.
        node: NodeId,
        /// The component's index in the job, from 0.
        component: u32,
        /// How it ended.
        exit: NodeExit,
    }
    is "run" "part_ended", of [job, run], plan Never, replay Left, concerns [Runs],
    public Run(RunPartEnded {
        job: *job,
        run: *run,
        node: name_of(names, *node),
        component: *component,
        exit: exit.clone(),
    });

    /// The last part of a run has ended; its resources are free.
    RunEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The part that ended last, whose end no other event reports; `None` if its node was lost.
        last: Option<NodePart>,
        /// How the run ended.
        outcome: Outcome,
        /// Its usage on all nodes.
        usage: Usage,
    }
    is "run" "ended", of [job, run], plan Jobs, replay Left,
    concerns [Orders, Notices, Usage, Runs, Steps, Starts, Outcomes],
    public Run(RunEnded {
        job: *job,
        run: *run,
        node: last.as_ref().map(|part| name_of(names, part.node)),
        component: last.as_ref().map(|part| part.component),
        exit: last.as_ref().map(|part| part.exit.clone()),
        outcome: outcome.into(),
        usage: *usage,
    });

    /// The job is back in the queue after a run.
    JobRequeued {
        /// The job.
        job: JobId,
        /// Why.
        reason: StopReason,
    }
    is "job" "requeued", of [job], plan Jobs, replay Asked, concerns [Notices, Starts],
    public Job(JobRequeued { job: *job, reason: *reason });

    /// The job is over.
    JobFinished {
        /// The job or task; an array is over when its last task is.
        job: JobId,
        /// How it ended.
        outcome: Outcome,
    }
    is "job" "finished", of [job], plan Jobs, replay Asked, concerns [Orders, Notices, Usage, Statistics, Cancels],
    public Job(JobFinished { job: *job, outcome: outcome.into() });

    /// A suspension was requested; the nodes are ordered to stop the processes (SL-C-37).
    JobSuspended {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Whether other jobs may use its cores until it continues. It keeps everything else.
        lends_cores: bool,
        /// Whether it was waiting to continue because its cores were not free, so that its processes are stopped
        /// already.
        was_resuming: bool,
        /// The waiting job that gets its cores, if it makes way because of its class; it continues by itself.
        makes_way_for: Option<JobId>,
    }
    is "job" "suspended", of [job, run], plan Jobs, replay Left, concerns [Orders, Notices, Starts],
    public Run(JobSuspended {
        job: *job,
        run: *run,
        lends_cores: *lends_cores,
        was_resuming: *was_resuming,
        makes_way_for: *makes_way_for,
    });

    /// The job continues after a suspension. If its cores were lent, it got them back.
    JobResumed {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    is "job" "resumed", of [job, run], plan Jobs, replay Left, concerns [Orders, Notices],
    public Run(JobResumed { job: *job, run: *run });

    /// A signal was sent to the processes of a job.
    JobSignalled {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The signal's number.
        signal: u8,
    }
    is "job" "signalled", of [job, run], plan Never, replay Left, concerns [Orders],
    public Run(JobSignalled { job: *job, run: *run, signal: *signal });

    /// The last part of a step has ended.
    StepEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The status of the step: the first that is not 0, else 0.
        status: Option<ExitStatus>,
    }
    is "step" "ended", of [job, run], plan Never, replay Left, concerns [Steps],
    public Step(StepEnded { job: *job, run: *run, step: *step, exit_status: *status });

    /// A notification was delivered or given up.
    NotificationDone {
        /// The job.
        job: JobId,
        /// The event that it is about.
        of: Sequence,
        /// Which of the job's notifications, from 0.
        notification: u32,
        /// The occasion of the notification.
        occasion: Occasion,
        /// The result.
        result: DeliveryResult,
    }
    is "job" "notified", of [job], plan Never, replay Left, concerns [],
    public Job(notified(*job, *of, *notification, *occasion, result));

    /// The ledger's signature over the log up to a record and the state after it. The digest of a large state is
    /// computed in the background, so the signed record is earlier than the last one.
    Checkpoint {
        /// The record that was signed.
        of: Sequence,
        /// BLAKE3 digest of the state after that record.
        state_digest: [u8; 32],
        /// Ed25519 signature over the text described in `docs/audit.md`.
        signature: SignatureBytes,
    }
    is "log" "checkpoint", of [], plan Never, replay Left, concerns [],
    public Cluster(LogCheckpoint {
        state_digest: hex(state_digest),
        signature: hex(&signature.r) + &hex(&signature.s),
    });

    /// A start that the planner asked for was refused, because the state had changed. Kept for audit only.
    StartRefused {
        /// The job.
        job: JobId,
        /// Why.
        reason: String,
    }
    is "job" "start_refused", of [job], plan Never, replay Left, concerns [Outcomes],
    public Job(JobStartRefused { job: *job, reason: reason.clone() });

    /// A range of records was moved to an archive file.
    RangeArchived {
        /// The first of the range.
        first: Sequence,
        /// The last of the range.
        last: Sequence,
        /// BLAKE3 hash of the last record of the range.
        last_hash: [u8; 32],
        /// The file's name in the archive folder.
        file: String,
    }
    is "log" "archived", of [], plan Never, replay Left, concerns [],
    public Cluster(LogArchived {
        first: *first,
        last: *last,
        last_hash: hex(last_hash),
        file: file.clone(),
    });

    /// Tasks of an array ended without ever starting: cancelled, or impossible.
    TasksFinished {
        /// The array.
        job: JobId,
        /// The indices of the tasks.
        indices: IndexSet,
        /// How it ended.
        outcome: Outcome,
    }
    is "job" "tasks_finished", of [job], plan Jobs, replay Asked, concerns [Statistics, Cancels],
    public Job(JobTasksFinished { job: *job, indices: indices.clone(), outcome: outcome.into() });

    /// A node remembers run numbers that this log never assigned, so the log was restored. Numbers below `next` are
    /// skipped, because nodes never start a run that they remember.
    RunNumbersRaised {
        /// The lowest number for the next run.
        next: RunId,
    }
    is "cluster" "run_numbers_raised", of [], plan Never, replay Left, concerns [],
    public Cluster(ClusterRunNumbersRaised { next: *next });

    /// Planners follow this policy from now on.
    PolicySet {
        /// The complete policy.
        policy: Arc<Policy>,
    }
    is "policy" "set", of [], plan Rules, replay Happens, concerns [Starts],
    public Plan(PolicySet { policy: policy.clone() });

    /// An advance reservation was created or changed.
    ReservationSet {
        /// The reservation from now on.
        reservation: Arc<ReservationSpec>,
    }
    is "reservation" "set", of [], plan Gates, replay Happens, concerns [],
    public Plan(ReservationSet { reservation: reservation.clone() });

    /// The planner chose the nodes of a reservation that asks for a number of them.
    ReservationPlaced {
        /// Its name.
        name: String,
        /// The nodes.
        nodes: Vec<NodeId>,
    }
    is "reservation" "placed", of [], plan Cluster, replay Left, concerns [],
    public Plan(ReservationPlaced {
        reservation: name.clone(),
        nodes: nodes.iter().map(|node| name_of(names, *node)).collect(),
    });

    /// A reservation was removed, or is over.
    ReservationRemoved {
        /// Its name.
        name: String,
    }
    is "reservation" "removed", of [], plan Gates, replay Asked, concerns [Starts],
    public Plan(ReservationRemoved { reservation: name.clone() });

    /// The times in which a node serves no jobs changed.
    NodeClosuresSet {
        /// Its number.
        node: NodeId,
        /// All of them from now on, in order of time, without overlap.
        closures: Vec<NodeClosure>,
    }
    is "node" "closures_set", of [], plan Cluster, replay Happens, concerns [Starts],
    public Node(NodeClosuresSet { node: name_of(names, *node), closures: closures.clone() });

    /// The results of a plan besides its starts, which have earlier records, and the input of the plan.
    Planned {
        /// The results and the input.
        plan: Arc<PlanRecord>,
    }
    is "plan" "made", of [], plan Never, replay Left, concerns [Statistics, Outcomes],
    public Plan(planned(plan));

    /// A reservation has begun: its jobs may start.
    ReservationBegun {
        /// Its name.
        name: String,
    }
    is "reservation" "begun", of [], plan Gates, replay Left, concerns [Starts],
    public Plan(ReservationBegun { reservation: name.clone() });

    /// A job that is not yet in the queue was changed while it was being configured.
    JobConfigured {
        /// The job.
        job: JobId,
        /// Its full specification from now on.
        spec: Arc<JobSpec>,
        /// Additions to its specification from now on.
        intake: Arc<Intake>,
    }
    is "job" "configured", of [job], plan Jobs, replay Left, concerns [Usage, Descriptions],
    public Job(JobConfigured { job: *job, name: spec.name.clone() });

    /// A job that was being configured, or that failed before it reached the queue, will enter the queue.
    JobEntered {
        /// The job.
        job: JobId,
    }
    is "job" "entered", of [job], plan Jobs, replay Left, concerns [],
    public Job(JobEntered { job: *job });

    /// A job with a description passed all checks and is in the queue with this specification (HPC-T-09).
    JobValidated {
        /// The job.
        job: JobId,
        /// The input and the result of the check.
        validated: Arc<Validated>,
    }
    is "job" "validated", of [job], plan Jobs, replay Left, concerns [Usage, Descriptions],
    public Job(checked(*job, validated));

    /// A chain of filters started.
    FilterChainStarted {
        /// The job.
        job: JobId,
        /// The chain; it does not change until it is over.
        chain: Arc<ChainSpec>,
    }
    is "filter" "chain_started", of [job], plan Never, replay Left, concerns [],
    public Filter(chain_started(*job, chain, names));

    /// A call was handed to a runner.
    FilterInvoked {
        /// The call.
        call: CallId,
        /// Number of times that it has been handed out, including this one.
        attempt: u32,
        /// The runner's name.
        runner: String,
    }
    is "filter" "invoked", of [call], plan Never, replay Left, concerns [],
    public Filter(FilterInvoked {
        job: call.job,
        call: *call,
        invocation: call.to_string(),
        attempt: *attempt,
        runner: runner.clone(),
    });

    /// The runner does not have the program: the call goes to another one (HPC-F-91).
    FilterElsewhere {
        /// The call.
        call: CallId,
        /// The runner without the program.
        runner: String,
    }
    is "filter" "elsewhere", of [call], plan Never, replay Left, concerns [],
    public Filter(FilterElsewhere { job: call.job, call: *call, runner: runner.clone() });

    /// The verdict of a filter.
    FilterVerdict {
        /// The call.
        call: CallId,
        /// Its outcome.
        report: Arc<FilterReport>,
    }
    is "filter" "verdict", of [call], plan Never, replay Left, concerns [],
    public Filter(FilterVerdict { job: call.job, call: *call, result: FilterResult::public(call, report) });

    /// All filters of a chain have passed.
    FilterChainPassed {
        /// The job.
        job: JobId,
        /// The kind of filter.
        kind: FilterKind,
        /// The chain.
        chain: u64,
    }
    is "filter" "chain_passed", of [job], plan Jobs, replay Left, concerns [],
    public Filter(FilterChainPassed { job: *job, filter_kind: *kind, chain: *chain });

    /// A chain ended without passing. Filters that had passed are now called to revert.
    FilterChainFailed {
        /// The job.
        job: JobId,
        /// The kind of filter.
        kind: FilterKind,
        /// The chain.
        chain: u64,
        /// The meaning of the outcome.
        verdict: ChainVerdict,
        /// The index of the filter that ended it; one past the last if a check after the chain ended it, or if the job
        /// was cancelled or could not be started.
        position: u32,
        /// The reason, for people.
        message: String,
    }
    is "filter" "chain_failed", of [job], plan Jobs, replay Left, concerns [],
    public Filter(FilterChainFailed {
        job: *job,
        filter_kind: *kind,
        chain: *chain,
        verdict: *verdict,
        position: *position,
        // A staging program names files of the owner.
        message: if kind.is_staging() { String::new() } else { message.clone() },
    });

    /// A filter undid its work.
    FilterReverted {
        /// The call.
        call: CallId,
        /// Its outcome.
        report: Arc<FilterReport>,
    }
    is "filter" "reverted", of [call], plan Never, replay Left, concerns [],
    public Filter(FilterReverted { job: call.job, call: *call, result: FilterResult::public(call, report) });

    /// A filter did not undo its work. It is not asked again (HPC-F-54).
    FilterRevertFailed {
        /// The call.
        call: CallId,
        /// Its outcome.
        report: Arc<FilterReport>,
    }
    is "filter" "revert_failed", of [call], plan Never, replay Left, concerns [],
    public Filter(FilterRevertFailed { job: call.job, call: *call, result: FilterResult::public(call, report) });

    /// A filter cannot be asked to undo its work (HPC-F-56).
    FilterRevertSkipped {
        /// The call that is not made.
        call: CallId,
        /// Why.
        reason: String,
    }
    is "filter" "revert_skipped", of [call], plan Never, replay Left, concerns [],
    public Filter(FilterRevertSkipped { job: call.job, call: *call, reason: reason.clone() });

    /// All filters of a chain that had passed have been asked to undo their work.
    FilterRollbackCompleted {
        /// The job.
        job: JobId,
        /// The kind of filter.
        kind: FilterKind,
        /// The chain.
        chain: u64,
    }
    is "filter" "rollback_completed", of [job], plan Jobs, replay Left, concerns [],
    public Filter(FilterRollbackCompleted { job: *job, filter_kind: *kind, chain: *chain });

    /// A filter's answer came too late. It changes nothing (HPC-F-86).
    FilterLateResult {
        /// The call.
        call: CallId,
        /// The attempt that it answers.
        attempt: u32,
        /// The runner that gave it.
        runner: String,
        /// How that attempt ended.
        exit: FilterExit,
    }
    is "filter" "late_result", of [call], plan Never, replay Left, concerns [],
    public Filter(FilterLateResult {
        job: call.job,
        call: *call,
        attempt: *attempt,
        runner: runner.clone(),
        exit: exit.clone(),
    });

    /// Calls are waiting, and no runner is available (HPC-F-87).
    FilterRunnersMissing {
        /// Since when.
        since: Timestamp,
        /// Number of waiting calls.
        calls: u64,
    }
    is "filter" "no_runner", of [], plan Never, replay Left, concerns [],
    public Filter(FilterNoRunner { since: *since, calls: *calls });

    /// The job is held until a time. This replaces an earlier timed hold.
    JobHeldUntil {
        /// The job.
        job: JobId,
        /// When the hold ends.
        until: Timestamp,
        /// Who set the hold.
        by: HoldBy,
    }
    is "job" "held", of [job], plan Jobs, replay Left, concerns [],
    public Job(held_until(*job, *until, *by));

    /// A timed hold of the job has ended.
    JobHoldEnded {
        /// The job.
        job: JobId,
        /// Whether its time had come; otherwise it was cleared.
        is_over: bool,
    }
    is "job" "released", of [job], plan Jobs, replay Left, concerns [],
    public Job(JobReleased { was_timed: true, ..released(*job, Holds::default(), None) });

    /// A warning about a job, for people.
    JobWarned {
        /// The job.
        job: JobId,
        /// The warning.
        warning: Arc<JobWarning>,
    }
    is "job" "warning", of [job], plan Never, replay Left, concerns [],
    public Job(warned(*job, warning));

    /// A filter set a message to show on the job.
    JobMessage {
        /// The job.
        job: JobId,
        /// The text; at most 200 characters.
        text: String,
    }
    is "job" "message", of [job], plan Never, replay Left, concerns [],
    public Job(JobMessage { job: *job, text: text.clone() });

    /// An activation filter keeps jobs of this priority and below from starting (HPC-F-31).
    QueueBlocked {
        /// The job whose filter blocks them.
        job: JobId,
        /// Its priority.
        priority: i64,
    }
    is "queue" "blocked", of [job], plan Jobs, replay Left, concerns [],
    public Plan(QueueBlocked { job: *job, priority: *priority });

    /// A job no longer blocks others (HPC-F-32).
    QueueUnblocked {
        /// The job that blocked them.
        job: JobId,
    }
    is "queue" "unblocked", of [job], plan Jobs, replay Left, concerns [],
    public Plan(QueueUnblocked { job: *job });

    /// Resources are set aside for a waiting job (HPC-F-35). They replace any set aside for it before.
    ResourcesReserved {
        /// The job.
        job: JobId,
        /// The number that its run will have.
        run: RunId,
        /// All resources set aside.
        placement: Arc<Placement>,
    }
    is "resources" "reserved", of [job], plan Never, replay Left, concerns [],
    public Plan(ResourcesReserved { job: *job, run: *run, nodes: allocated(placement, names) });

    /// Resources are no longer set aside for a job.
    ResourcesReleased {
        /// The job.
        job: JobId,
        /// The number that its run would have had.
        run: RunId,
    }
    is "resources" "released", of [job], plan Jobs, replay Left, concerns [],
    public Plan(ResourcesReleased { job: *job, run: *run });

    /// A run starts ahead of a waiting job (HPC-B-12).
    RunBackfilled {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    is "job" "backfilled", of [job, run], plan Never, replay Left, concerns [Runs, Statistics],
    public Run(JobBackfilled { job: *job, run: *run });

    /// A run got more resources.
    RunGrown {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The added resources.
        added: Arc<Placement>,
    }
    is "job" "grown", of [job, run], plan Never, replay Left, concerns [Orders, Usage, Runs],
    public Run(JobGrown { job: *job, run: *run, nodes: allocated(added, names) });

    /// A run has to give up resources: no new tasks start on them, and they are given up when its tasks no longer use
    /// them.
    RunShrinking {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The resources to give up.
        removed: Arc<Placement>,
        /// Why.
        reason: ShrinkReason,
    }
    is "job" "shrinking", of [job, run], plan Never, replay Left, concerns [Orders, Runs],
    public Run(JobShrinking {
        job: *job,
        run: *run,
        reason: *reason,
        nodes: allocated(removed, names),
    });

    /// A run gave up resources: they are free.
    RunShrunk {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The resources that it gave up.
        removed: Arc<Placement>,
    }
    is "job" "shrunk", of [job, run], plan Jobs, replay Left, concerns [Orders, Usage, Runs, Starts],
    public Run(JobShrunk { job: *job, run: *run, nodes: allocated(removed, names) });

    /// A task of a run was started as a step.
    TaskStarted {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The instance of the task.
        instance: TaskInstance,
        /// Number of its cores on each node, in order of rank.
        cores: Vec<NodeTasks>,
    }
    is "task" "started", of [job, run], plan Never, replay Left, concerns [Orders],
    public Step(TaskStarted {
        job: *job,
        run: *run,
        step: *step,
        task: instance.task,
        instance: instance.instance,
        nodes: cores.iter().map(|part| StepNode { node: name_of(names, part.node), tasks: part.tasks }).collect(),
    });

    /// The cluster-wide filters, or how filters are called, changed.
    FilterSettingsSet {
        /// The previous value.
        old: Arc<FilterSettings>,
        /// All settings from now on.
        settings: Arc<FilterSettings>,
    }
    is "config" "changed", of [], plan Gates, replay Left, concerns [],
    public Config(changed("filters", Some(old), Some(settings)));

    /// The scheduling settings, for giving resources to jobs, changed.
    SchedulingSet {
        /// The previous value.
        old: Arc<SchedulingSettings>,
        /// All settings from now on.
        settings: Arc<SchedulingSettings>,
    }
    is "config" "changed", of [], plan Rules, replay Left, concerns [],
    public Config(changed("scheduling", Some(old), Some(settings)));

    /// A job template was created or changed.
    TemplateSet {
        /// The previous value; `None` if it is new.
        old: Option<Arc<TemplateSpec>>,
        /// The template from now on.
        template: Arc<TemplateSpec>,
    }
    is "config" "changed", of [], plan Gates, replay Left, concerns [],
    public Config(changed(&format!("template {}", template.name), old.as_ref(), Some(template)));

    /// A job template was removed.
    TemplateRemoved {
        /// The previous value.
        old: Arc<TemplateSpec>,
    }
    is "config" "changed", of [], plan Gates, replay Left, concerns [],
    public Config(changed(&format!("template {}", old.name), Some(old), None));

    /// A planner started.
    PlannerStarted {
        /// Number of planner starts so far, including this one.
        epoch: u64,
    }
    is "planner" "started", of [], plan Never, replay Left, concerns [],
    public Plan(PlannerStarted { epoch: *epoch });

    /// A checked job is in the queue.
    JobQueued {
        /// The job.
        job: JobId,
    }
    is "job" "queued", of [job], plan Jobs, replay Left, concerns [],
    public Job(JobQueued { job: *job });

    /// A running job did not get the resources offered to it (HPC-F-33).
    GrowthRejected {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    is "job" "grow_rejected", of [job, run], plan Jobs, replay Left, concerns [],
    public Run(JobGrowRejected { job: *job, run: *run });

    /// The runner of a call was silent for too long: the call is offered to all runners again (HPC-F-85).
    FilterOfferedAgain {
        /// The call.
        call: CallId,
        /// The number of the new attempt.
        attempt: u32,
    }
    is "filter" "offered_again", of [call], plan Never, replay Left, concerns [],
    public Filter(FilterOfferedAgain { job: call.job, call: *call, attempt: *attempt });

    /// The job will end as soon as a filter gives its outstanding answer (HPC-F-23, HPC-F-68).
    JobEndRequested {
        /// The job.
        job: JobId,
        /// How it will end.
        outcome: Outcome,
    }
    is "job" "end_requested", of [job], plan Jobs, replay Left, concerns [Cancels],
    public Job(JobEndRequested { job: *job, outcome: outcome.into() });

    /// A run of tasks is ending: only tasks that release nodes still start. When none is left, the run is stopped.
    TasksStopping {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Why.
        reason: StopReason,
        /// Whether running tasks may finish; otherwise they are stopped.
        is_graceful: bool,
    }
    is "job" "tasks_stopping", of [job, run], plan Jobs, replay Left, concerns [Orders, Cancels],
    public Run(JobTasksStopping {
        job: *job,
        run: *run,
        reason: *reason,
        is_graceful: *is_graceful,
    });

    /// A step was launched inside a run.
    StepLaunched {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The complete step, with its places filled in.
        spec: Arc<StepSpec>,
        /// Its share of each of its nodes, in the order of its places.
        shares: Vec<StepShare>,
    }
    is "step" "launched", of [job, run], plan Never, replay Left, concerns [Orders, Steps],
    public Step(StepLaunched {
        job: *job,
        run: *run,
        step: *step,
        name: spec.name.clone(),
        nodes: shares.iter().map(|share| step_part(share, names)).collect(),
        walltime_seconds: spec.walltime_seconds,
    });

    /// A signal was sent to the processes of a step.
    StepSignalled {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// Only on the nodes of this component, if one is given.
        component: Option<u32>,
        /// The signal's number.
        signal: u8,
    }
    is "step" "signalled", of [job, run], plan Never, replay Left, concerns [Orders],
    public Step(StepSignalled {
        job: *job,
        run: *run,
        step: *step,
        component: *component,
        signal: *signal,
    });

    /// A step, or the part of it in one component, is being ended.
    StepStopping {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// Only on the nodes of this component, if one is given.
        component: Option<u32>,
        /// Whether to skip the grace period.
        is_forced: bool,
    }
    is "step" "stopping", of [job, run], plan Never, replay Left, concerns [Orders, Steps],
    public Step(StepStopping {
        job: *job,
        run: *run,
        step: *step,
        component: *component,
        is_forced: *is_forced,
    });

    /// A part of a step (one component on one node) has ended.
    StepPartEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The node.
        node: NodeId,
        /// The component's index in the job, from 0.
        component: u32,
        /// How the part ended as a whole.
        exit: NodeExit,
        /// How each started task ended.
        statuses: Vec<TaskStatus>,
    }
    is "step" "part_ended", of [job, run], plan Never, replay Left, concerns [Steps],
    public Step(StepPartEnded {
        job: *job,
        run: *run,
        step: *step,
        node: name_of(names, *node),
        component: *component,
        exit: exit.clone(),
        statuses: statuses.clone(),
    });

    /// The client of a job must report from now on.
    JobKept {
        /// The job.
        job: JobId,
        /// Time for the next report, in seconds; `None` means that the client no longer has to report.
        seconds: Option<u32>,
        /// Whether the client missed its time. It gets the same time once more, because the report may have found no
        /// listener; then the job is cancelled.
        is_late: bool,
    }
    is "job" "kept", of [job], plan Never, replay Left, concerns [],
    public Job(JobKept { job: *job, seconds: *seconds, is_late: *is_late });

    /// Holds were added to one component of a job (SL-M-04).
    ComponentHeld {
        /// The job.
        job: JobId,
        /// The component's index in the job, from 0.
        component: u32,
        /// The added holds.
        holds: Holds,
        /// The reason, for people.
        reason: String,
    }
    is "job" "held", of [job], plan Jobs, replay Asked, concerns [Notices],
    public Job(held(*job, *holds, reason, Some(*component)));

    /// Holds of one component of a job were removed (SL-M-04).
    ComponentReleased {
        /// The job.
        job: JobId,
        /// The component's index in the job, from 0.
        component: u32,
        /// The removed holds.
        holds: Holds,
    }
    is "job" "released", of [job], plan Jobs, replay Asked, concerns [Notices, Starts],
    public Job(released(*job, *holds, Some(*component)));

    /// One component of a running job is being ended: its nodes are ordered to end it, and the others continue
    /// (SL-M-02).
    ComponentStopping {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The component's index in the job; never 0, because the job ends with its first component.
        component: u32,
        /// Why.
        reason: StopReason,
    }
    is "job" "component_stopping", of [job, run], plan Never, replay Left, concerns [Orders, Cancels],
    public Run(JobComponentStopping {
        job: *job,
        run: *run,
        component: *component,
        reason: *reason,
    });

    /// The last part of a component that was being ended has ended. The [`Event::RunShrunk`] that follows frees its
    /// resources.
    ComponentEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The component's index in the job, from 0.
        component: u32,
        /// How it ended.
        outcome: Outcome,
        /// Its usage on its nodes.
        usage: Usage,
    }
    is "job" "component_ended", of [job, run], plan Never, replay Left, concerns [],
    public Run(JobComponentEnded {
        job: *job,
        run: *run,
        component: *component,
        outcome: outcome.into(),
        usage: *usage,
    });

    /// The settings for staging the files of jobs changed.
    StagingSet {
        /// The previous value.
        old: Arc<StagingSettings>,
        /// All settings from now on.
        settings: Arc<StagingSettings>,
    }
    is "config" "changed", of [], plan Jobs, replay Left, concerns [],
    public Config(changed("staging", Some(old), Some(settings)));

    /// The planner made a backfill pass for jobs with several components. Its starts precede this record;
    /// [`Event::Planned`], with the other results of the pass, follows it.
    BackfillPassed {
        /// Its findings for jobs that did not start.
        pass: Arc<BackfillPass>,
    }
    is "plan" "backfilled", of [], plan Never, replay Left, concerns [Statistics],
    public Plan(passed(pass, names));

    /// Accounts, users, associations or service classes changed.
    AccountsChanged {
        /// The changes, in this order.
        changes: Arc<Vec<AccountChange>>,
    }
    is "accounts" "changed", of [], plan Rules, replay Happens, concerns [],
    public Config(AccountsChanged { changes: changes.clone() });

    /// The enforcement of accounts and classes changed.
    AccountSettingsChanged {
        /// All settings, including unchanged ones.
        settings: Arc<AccountSettings>,
    }
    is "accounts" "settings_changed", of [], plan Rules, replay Happens, concerns [],
    public Config(AccountsSettingsChanged { settings: settings.clone() });

    /// A job, or one of its components, moved to another service class.
    ClassChanged {
        /// The job.
        job: JobId,
        /// Only this component; `None` means all.
        component: Option<u32>,
        /// The class from now on.
        class: String,
    }
    is "job" "class_changed", of [job], plan Jobs, replay Asked, concerns [],
    public Job(JobClassChanged { job: *job, component: *component, class: class.clone() });

    /// A user's command about jobs was refused (SL-L-10), or the report of a node about a run of which it has no part
    /// (OAR-J-07); the actor is the user or the node. Nothing else changed.
    CommandRefused {
        /// The request, as one word.
        command: String,
        /// The kind of refusal.
        code: RefusalCode,
        /// Why, for people; at most 1,024 bytes.
        message: String,
        /// Number of earlier refusals of the same actor that were not recorded, because there were too many in a short
        /// time.
        unrecorded: u64,
    }
    is "command" "refused", of [], plan Never, replay Left, concerns [],
    public Config(CommandRefused {
        command: command.clone(),
        code: *code,
        message: message.clone(),
        unrecorded: *unrecorded,
    });

    /// A node takes no new jobs: the actor of the record, an operator, took it out of service (SL-C-38).
    NodeTakenOut {
        /// Its number.
        node: NodeId,
        /// The operator's reason.
        reason: String,
        /// Whether it is down: its runs are stopped, as if the node were lost. Otherwise its runs continue.
        is_down: bool,
    }
    is "node" (if *is_down { "down" } else { "drained" }), of [], plan Cluster, replay Happens, concerns [],
    public Node(taken_out(name_of(names, *node), reason, *is_down));

    /// The actor of the record sent a message to a running job (SL-C-33). It is appended to the standard error of the
    /// job's script.
    JobTold {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The message.
        text: String,
    }
    is "job" "told", of [job, run], plan Never, replay Left, concerns [Orders],
    public Job(JobTold { job: *job, run: *run });

    /// The numbering of jobs changed: the next job gets at least the number `first`, and an array takes a number for
    /// each task, in the order of their indices; the first is also the array's own (SL-C-18, SL-I-04). Before the first
    /// such event of a log, an array takes one number.
    JobNumbersSet {
        /// The lowest number for new jobs.
        first: u64,
    }
    is "cluster" "job_numbers_set", of [], plan Never, replay Happens, concerns [],
    public Cluster(ClusterJobNumbersSet { first: *first });

    /// A suspended job will continue as soon as its cores are free; no other job gets them meanwhile.
    /// [`Event::JobResumed`] follows when it does (SL-C-37).
    JobResuming {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    is "job" "resuming", of [job, run], plan Jobs, replay Left, concerns [Notices],
    public Run(JobResuming { job: *job, run: *run });

    /// The GPUs of a node that no job may start on changed. Jobs that have them keep them.
    NodeGpusChecked {
        /// Its number.
        node: NodeId,
        /// All that are out of service from now on, in order of their numbers.
        faults: Vec<GpuFault>,
    }
    is "node" "gpus_checked", of [], plan Cluster, replay Happens, concerns [Starts],
    public Node(NodeGpusChecked { node: name_of(names, *node), faults: faults.clone() });

    /// A user set a trigger: a program that runs when something happens.
    TriggerSet {
        /// Its number.
        trigger: u32,
        /// The user who has set it; the program runs as this user.
        owner: Arc<Owner>,
        /// What it watches, and what it runs.
        spec: Arc<TriggerSpec>,
    }
    is "trigger" "set", of [], plan Never, replay Left, concerns [],
    public Cluster(TriggerSet { trigger: *trigger, user: owner.user.clone(), on: spec.on.clone() });

    /// Triggers were cleared.
    TriggersCleared {
        /// Their numbers.
        triggers: Vec<u32>,
    }
    is "trigger" "cleared", of [], plan Never, replay Left, concerns [],
    public Cluster(TriggersCleared { triggers: triggers.clone() });

    /// A trigger fired: its program is run once. It is gone then, unless it watches nodes and is permanent.
    TriggerFired {
        /// Its number.
        trigger: u32,
        /// The user who has set it.
        owner: Arc<Owner>,
        /// The program and its words.
        program: Vec<String>,
        /// The last word that it gets: the number of the job, or a list of the nodes.
        argument: String,
        /// The job that it is about, if it is about one.
        job: Option<JobId>,
        /// The nodes that have turned.
        nodes: Vec<NodeId>,
    }
    is "trigger" "fired", of [], plan Never, replay Left, concerns [Notices],
    public Cluster(TriggerFired { trigger: *trigger, argument: argument.clone() });

    /// A user has another table of repeated jobs, whose jobs were submitted, or none. Jobs of an earlier one are not repeated
    /// any more.
    CrontabSet {
        /// The user's login name.
        user: String,
        /// Its text; empty if there is none.
        text: String,
        /// Its jobs.
        jobs: Vec<CronJob>,
    }
    is "crontab" "set", of [], plan Never, replay Left, concerns [],
    public Cluster(CrontabSet { user: user.clone(), jobs: jobs.iter().map(|job| job.job).collect() });

    /// A node copies files for a job: its run waits for them, or they are copied ahead, or the job is over (PBS-G-08).
    CopyingBegan {
        /// The job or task.
        job: JobId,
        /// The node.
        node: NodeId,
        /// To the node or from it.
        direction: CopyDirection,
        /// The run that waits for it; `None` if none does.
        run: Option<RunId>,
    }
    is "job" "copying", of [job], plan Jobs, replay Left, concerns [Orders],
    public Job(JobCopying { job: *job, node: name_of(names, *node), direction: *direction, run: *run });

    /// All files were copied. If a run waits for them, its launch is ordered.
    CopyingEnded {
        /// The job or task.
        job: JobId,
        /// The node.
        node: NodeId,
        /// To the node or from it.
        direction: CopyDirection,
        /// The size of what was copied, in bytes, if it is known.
        bytes: Option<u64>,
        /// How long it took, in milliseconds.
        milliseconds: u64,
    }
    is "job" "copied", of [job], plan Jobs, replay Left, concerns [Orders, Starts],
    public Job(JobCopied {
        job: *job,
        node: name_of(names, *node),
        direction: *direction,
        bytes: *bytes,
        milliseconds: *milliseconds,
    });

    /// Files of a job could not be copied. If they were for its start, it waits (PBS-G-03). Its owner gets a mail.
    CopyingFailed {
        /// The job or task.
        job: JobId,
        /// The node.
        node: NodeId,
        /// To the node or from it.
        direction: CopyDirection,
        /// The size of what was copied nevertheless, in bytes, if it is known.
        bytes: Option<u64>,
        /// How long it took, in milliseconds.
        milliseconds: u64,
        /// Why, for people. It is not public: it can name files of the owner.
        reason: String,
        /// The job does not start before this time; `None` if it is over.
        until: Option<Timestamp>,
    }
    is "job" "copying_failed", of [job], plan Jobs, replay Left, concerns [Notices],
    public Job(JobCopyingFailed {
        job: *job,
        node: name_of(names, *node),
        direction: *direction,
        bytes: *bytes,
        milliseconds: *milliseconds,
        until: *until,
    });

    /// Files of a policy have mistakes: the policy in force stays.
    PolicyRefused {
        /// The name of the policy that was refused.
        name: String,
        /// The files that it was made of.
        sources: Vec<PolicySource>,
        /// The mistakes in them, for people.
        mistakes: Vec<String>,
    }
    is "policy" "refused", of [], plan Never, replay Left, concerns [],
    public Plan(PolicyRefused { name: name.clone(), sources: sources.clone(), mistakes: mistakes.clone() });

    /// The load of a node was measured. Repeated at an interval if the site wants it.
    NodeLoadMeasured {
        /// The node.
        node: NodeId,
        /// The average number of processes that run or could run, over the last minute, in millionths.
        load_millionths: u64,
        /// The percentage of its time that the system itself took since the measurement before; `None` if it is not known.
        system_percent: Option<u32>,
        /// The processor time of its runs that counts for the shares of their owners; empty unless a policy charges it.
        used: Vec<PartUse>,
    }
    is "node" "load_measured", of [], plan Never, replay Happens, concerns [],
    public Node(NodeLoadMeasured {
        node: name_of(names, *node),
        load_millionths: *load_millionths,
        system_percent: *system_percent,
        used: used.clone(),
    });

    /// An operator asked for nodes to sleep or to wake (OAR-E-09). It is ordered as soon as nothing keeps them from it.
    PowerAsked {
        /// The change of power.
        way: PowerWay,
        /// The nodes.
        nodes: Vec<NodeId>,
    }
    is "power" "asked", of [], plan Never, replay Left, concerns [],
    public Cluster(PowerAsked { way: *way, nodes: nodes.iter().map(|node| name_of(names, *node)).collect() });

    /// Nodes are put to sleep or woken: a notifier runs the program of the order once.
    PowerOrdered {
        /// The order. Its number is that of the record.
        order: Arc<PowerOrder>,
    }
    is "power" "ordered", of [], plan Cluster, replay Left, concerns [Notices],
    public Cluster(PowerOrdered {
        way: order.way,
        nodes: order.nodes.iter().map(|node| name_of(names, *node)).collect(),
        until: order.until,
    });

    /// The program of an order has ended.
    PowerTold {
        /// The record of the order.
        order: Sequence,
        /// What the nodes do.
        way: PowerWay,
        /// Why it has failed, if it has.
        error: Option<String>,
    }
    is "power" "told", of [], plan Never, replay Left, concerns [],
    public Cluster(PowerTold { order: *order, way: *way, error: error.clone() });

    /// A node that was ordered to sleep does not report any more.
    NodeAsleep {
        /// Its number.
        node: NodeId,
    }
    is "node" "asleep", of [], plan Cluster, replay Left, concerns [],
    public Node(NodeAsleep { node: name_of(names, *node) });

    /// A node did not obey an order to sleep, and is drained; or one to wake, and is lost (OAR-E-06, OAR-E-08).
    NodePowerFailed {
        /// Its number.
        node: NodeId,
        /// What it was ordered to do.
        way: PowerWay,
        /// Why it has failed, for people.
        reason: String,
    }
    is "node" "power_failed", of [], plan Cluster, replay Left, concerns [],
    public Node(NodePowerFailed { node: name_of(names, *node), way: *way, reason: reason.clone() });

    /// All nodes of a run are awake: its launch is ordered (OAR-E-03).
    RunAwake {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    is "job" "awake", of [job, run], plan Never, replay Left, concerns [Orders],
    public Run(JobAwake { job: *job, run: *run });

    /// A cycle of a scheduling program is over.
    ProgramCycled {
        /// The cycle.
        cycle: Arc<ProgramCycle>,
    }
    is "planner" "cycled", of [], plan Never, replay Left, concerns [Notices],
    public Plan(PlannerCycled { cycle: cycle.clone() });

    /// The log was restored from a backup: what was recorded after `to` is lost, and the numbers of those records are
    /// given again, this one being the first.
    LogRestored {
        /// The last record of the backup.
        to: Sequence,
        /// The last record known to be lost, if any is known.
        lost_to: Option<Sequence>,
        /// Identifies the log uniquely from this record on.
        log_id: UuidBytes,
        /// The name of the backup.
        backup: String,
        /// The lowest number for the next run: nodes may remember runs whose records are lost, and never start a run that
        /// they remember.
        next_run: RunId,
    }
    is "log" "restored", of [], plan Never, replay Left, concerns [Names],
    public Cluster(LogRestored {
        to: *to,
        lost_to: *lost_to,
        log_id: log_id.to_string(),
        backup: backup.clone(),
        next_run: *next_run,
    });

    /// One of several ledgers leads from here on: the records up to the next of this kind are its own and carry its epoch.
    LedgerLeads {
        /// The epoch of its reign: one more than the highest before.
        epoch: u64,
        /// Its name.
        ledger: String,
        /// When the stream was created in which the ledgers order their records. Another time means another stream.
        stream_created: Timestamp,
    }
    is "ledger" "leads", of [], plan Never, replay Left, concerns [],
    public Cluster(LedgerLeads { epoch: *epoch, ledger: ledger.clone(), stream_created: *stream_created });

    /// The leading one of several ledgers was told to hand over: its reign ends with the round of this record.
    LedgerHandsOver {
        /// Its name.
        ledger: String,
        /// The name of the ledger that is to lead next; any other if it is `None`.
        to: Option<String>,
    }
    is "ledger" "hands_over", of [], plan Never, replay Left, concerns [],
    public Cluster(LedgerHandsOver { ledger: ledger.clone(), to: to.clone() });

    /// A running step got another time limit.
    StepWalltimeSet {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// How long it may run from its start, in seconds; `None` means as long as its job.
        walltime_seconds: Option<u64>,
    }
    is "step" "walltime_set", of [job, run], plan Never, replay Left, concerns [Orders, Steps],
    public Step(StepWalltimeSet { job: *job, run: *run, step: *step, walltime_seconds: *walltime_seconds });

    /// Something about the files of the policy in force is doubtful.
    PolicyWarned {
        /// The name of the policy.
        name: String,
        /// The warnings, for people.
        warnings: Vec<String>,
    }
    is "policy" "warned", of [], plan Never, replay Left, concerns [],
    public Plan(PolicyWarned { name: name.clone(), warnings: warnings.clone() });

    /// The first node of a run was told to send a signal, or its time ahead of the end of the walltime had come (OAR-S-30).
    JobSignalDelivered {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node.
        node: NodeId,
        /// The signal's number.
        signal: u8,
        /// Whether its time had come. Otherwise somebody had it sent.
        was_due: bool,
        /// How many processes were there to receive it.
        processes: u32,
    }
    is "job" "signal_delivered", of [job, run], plan Never, replay Left, concerns [],
    public Run(JobSignalDelivered {
        job: *job,
        run: *run,
        node: name_of(names, *node),
        signal: *signal,
        was_due: *was_due,
        processes: *processes,
    });

    } };
}
pub(crate) use event_table;
