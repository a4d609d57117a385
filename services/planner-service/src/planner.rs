//! The loop of the planner: follow the log, plan when something happened that can change the plan or when time makes a
//! plan worthwhile, commit, and look at the result.

use crate::{
    Config, Reload,
    cycle_log::CycleLog,
    cycle_time,
    external::{self, External, Proposal},
    predictor::{Foreseen, Predictor},
    script::{self, Action, Asked, Code, Done, FromScript, IN_ORDER, Refusal, Script, Trigger, picture},
    standby::Standby,
};
use futures::FutureExt as _;
use muster_bus::{BusError, Feed, LedgerClient, SharedBus, load_snapshot};
use muster_domain::State;
use muster_planner::{PassLimit, projection::Projection};
use muster_schemas::{
    JobId, NodeId, Sequence, Timestamp,
    cluster::{ClusterChange, ClusterSettingsChange},
    command::{Answer, Command, Query, QueryAnswer, RefusedStart, Reply},
    event::{Actor, Event, PlanEffect, Record, TraceContext, WaitingJob},
    external_planner::RefusedJob,
    job::{JobSpec, WaitReason},
    plan::{PlanCycle, ProposedPlan, UserUsage},
};
use muster_telemetry::{
    metrics::{self, Counter, Gauge},
    trace,
};
use std::{
    collections::BTreeSet,
    sync::LazyLock,
    time::{Duration, Instant},
};

static LEADS: LazyLock<Gauge<i64>> =
    LazyLock::new(|| metrics::gauge("muster_planner_leads", "1 while this planner leads, 0 while it stands by."));
static STARTS: LazyLock<Counter<u64>> =
    LazyLock::new(|| metrics::counter("muster_planner_starts_total", "Starts asked of the ledger."));
static REFUSED: LazyLock<Counter<u64>> =
    LazyLock::new(|| metrics::counter("muster_planner_refused_starts_total", "Starts that the ledger refused."));
static WAITING: LazyLock<Gauge<i64>> = LazyLock::new(|| {
    metrics::gauge("muster_planner_waiting_jobs", "Jobs that wait with open gates; an array counts as one.")
});

/// The pause after the ledger refused a whole plan or did not answer.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);
/// The least pause between two plans that only say why jobs wait: if jobs arrive one after the other, each would
/// otherwise be a separate commit, and the next job waits for the disk.
const BETWEEN_REASONS: Duration = Duration::from_millis(20);
/// How often to look at the clock at least, because clocks jump.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// The planner.
pub(crate) struct Planner<'c> {
    config: &'c Config,
    ledger: LedgerClient,
    feed: Feed,
    projection: Projection,
    external: &'c mut Option<External>,
    script: &'c mut Option<Script>,
    reload: &'c Reload,
    predictor: Option<Predictor>,
    /// Jobs whose files are copied ahead once the plan is committed.
    staged_ahead: Vec<JobId>,
    /// Jobs whose start was refused, until something happens that can change the plan.
    left_out: BTreeSet<JobId>,
    /// Refused starts of the external planner that it has not been told about.
    refused: Vec<RefusedJob>,
    is_plan_due: bool,
    /// When the next plan is worthwhile even if nothing happens.
    wake: Option<Timestamp>,
    /// That moment, if it is only the end of a rest: the plan made then is the one that was put off.
    rest: Option<Timestamp>,
    /// When a plan last only said why jobs wait.
    told_reasons: Option<Instant>,
    /// The number of this planner's start, once the ledger has counted it, and the number of its passes (HPC-F-89).
    epoch: Option<u64>,
    passes: u64,
    standby: Standby,
    /// Why the next cycle begins, and how many jobs the last one started (PBS-C-11).
    triggers: Vec<Trigger>,
    started: usize,
    /// When the hours of the policy in force change next, which is a reason for a cycle of the scheduling program (PBS-T-08).
    border: Option<Timestamp>,
    /// When what users have used was last published (PBS-FS-09).
    published: Option<Timestamp>,
    /// When the half-life of it began that was last published (PBS-FS-08).
    half_life_began: Option<Timestamp>,
}

impl<'c> Planner<'c> {
    /// Waits for the ledger and begins with its newest snapshot.
    pub async fn open(
        bus: SharedBus,
        config: &'c Config,
        external: &'c mut Option<External>,
        script: &'c mut Option<Script>,
        reload: &'c Reload,
    ) -> Result<Self, BusError> {
        let ledger = LedgerClient::new(bus.clone());
        let state = load_snapshot(&ledger, None).await?;
        Ok(Self {
            config,
            feed: Feed::open(bus, state.sequence().next()).await?,
            ledger,
            projection: Projection::of(state),
            // An external planner predicts for itself.
            predictor: (config.predict && external.is_none() && script.is_none())
                .then(|| Predictor::new(config.tolerance())),
            external,
            script,
            reload,
            staged_ahead: Vec::new(),
            left_out: BTreeSet::new(),
            refused: Vec::new(),
            is_plan_due: true,
            wake: None,
            rest: None,
            told_reasons: None,
            epoch: None,
            passes: 0,
            standby: Standby::leading(config.takeover_patience()),
            triggers: Vec::new(),
            started: 0,
            border: None,
            published: None,
            half_life_began: None,
        })
    }

    /// Plans until the bus fails.
    pub async fn run(&mut self) -> Result<(), BusError> {
        if let Ok(QueryAnswer::Head { last, .. }) = self.ledger.query(&Query::Head).await {
            self.follow_to(last).await?;
        }
        loop {
            while let Some(commit) = self.feed.next().now_or_never() {
                self.apply(&commit?.records)?;
            }
            self.note_wake(Timestamp::now());
            if self.is_plan_due && self.is_its_turn() {
                self.cycle().await?;
            } else {
                self.predict();
                let sleep = self.sleep();
                tokio::select! {
                    commit = self.feed.next() => self.apply(&commit?.records)?,
                    () = self.reload.asked() => self.reload().await?,
                    foreseen = foreseen(&mut self.predictor) => self.note_foreseen(foreseen).await?,
                    () = tokio::time::sleep(sleep) => self.is_plan_due |= self.can_ask_again(),
                }
            }
        }
    }

    /// A plan is due if its moment has come.
    fn note_wake(&mut self, now: Timestamp) {
        let Some(wake) = self.wake.take_if(|wake| *wake <= now) else { return };
        self.is_plan_due = true;
        if self.rest.take() != Some(wake) {
            self.note_reason(Trigger::Time);
        }
    }

    /// Whether a plan that is due is this planner's to make: it leads, or the one that leads makes none.
    fn is_its_turn(&mut self) -> bool {
        if self.standby.is_leading() {
            return true;
        }
        if !self.standby.is_overdue(Instant::now()) {
            return false;
        }
        if !self.would_act() {
            self.standby.note_nothing_due();
            return false;
        }
        tracing::warn!("the planner that leads makes no plan although one is due: this one takes over");
        self.standby.take_over();
        (self.epoch, self.passes) = (None, 0);
        true
    }

    /// Whether a plan made now would do anything. About another program it is only known that it needs jobs to start.
    fn would_act(&mut self) -> bool {
        if self.external.is_some() || self.script.is_some() {
            self.is_plan_due = false;
            return self.state().eligible_jobs() > 0;
        }
        let now = Timestamp::now().max(self.state().time());
        acts(&self.plan(now))
    }

    /// How long there is nothing to do unless something happens.
    fn sleep(&self) -> Duration {
        let until_wake = self.wake.map(|wake| {
            let micros = wake.micros_since(Timestamp::now());
            Duration::from_micros(u64::try_from(micros).unwrap_or(0))
        });
        let resting = self.external.as_ref().and_then(External::resting_until);
        let until_rested = resting.map(|until| until.saturating_duration_since(tokio::time::Instant::now()));
        let prediction = self.predictor.as_ref().and_then(Predictor::begins_at);
        let until_prediction = prediction.map(|begin| begin.saturating_duration_since(tokio::time::Instant::now()));
        let until_overdue = self.standby.overdue_at().map(|at| at.saturating_duration_since(Instant::now()));
        let soonest = [until_wake, until_rested, until_prediction, until_overdue].into_iter().flatten().min();
        soonest.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
    }

    /// Starts predictions, if it is time for them.
    fn predict(&mut self) {
        if let Some(predictor) = self.predictor.as_mut().filter(|_| self.standby.is_leading()) {
            predictor.begin(&self.projection, Timestamp::now().max(self.projection.state().time()));
        }
    }

    async fn note_foreseen(&mut self, foreseen: Option<Foreseen>) -> Result<(), BusError> {
        let Some((predictor, foreseen)) = self.predictor.as_mut().zip(foreseen) else { return Ok(()) };
        match predictor.news(foreseen, self.projection.state()).filter(|_| self.standby.is_leading()) {
            Some(plan) => self.commit_and_follow(plan).await,
            None => Ok(()),
        }
    }

    /// Whether an external planner that failed has rested.
    fn can_ask_again(&self) -> bool {
        let external = self.external.as_ref();
        external.is_some_and(|external| external.trouble().is_some() && external.resting_until().is_none())
    }

    async fn follow_to(&mut self, sequence: Sequence) -> Result<(), BusError> {
        while self.state().sequence() < sequence {
            let commit = self.feed.next().await?;
            self.apply(&commit.records)?;
        }
        Ok(())
    }

    /// An error is one after which the state cannot be trusted.
    fn apply(&mut self, records: &[Record]) -> Result<(), BusError> {
        for record in records {
            let eligible = self.state().eligible_jobs();
            let was_idle = self.state().settings().is_idle;
            let can_change_plan = self.projection.apply(record).map_err(|violation| {
                tracing::error!(%violation, "the planner stops: what the ledger says cannot be true");
                BusError::Unusable(violation.to_string())
            })?;
            self.note_other_planners(record);
            if can_change_plan {
                self.left_out.clear();
                if let Some(predictor) = &mut self.predictor {
                    predictor.note_change();
                }
                let is_new = self.state().eligible_jobs() > eligible;
                let is_trigger = self.note_triggers(record, is_new);
                self.is_plan_due |= is_trigger || self.script.is_none();
            }
            if was_idle && !self.projection.state().settings().is_idle {
                match self.script.as_mut() {
                    Some(script) => {
                        script.switch_on();
                        self.is_plan_due = true;
                    }
                    None => self.note_reason(Trigger::Cmd),
                }
            }
        }
        Ok(())
    }

    /// The planner that started last leads. What this one has not heard of yet when it starts itself was before it.
    fn note_other_planners(&mut self, record: &Record) {
        if let Event::PlannerStarted { epoch } = record.event {
            if self.epoch.is_some_and(|own| epoch > own) {
                tracing::info!("planner {epoch} has started: this one stands by");
                self.standby.give_way();
                LEADS.record(0, &[]);
            }
        } else if *record.actor == Actor::Planner {
            self.standby.note_sign();
        }
    }

    /// Notes the reasons for a cycle in what happened, if there is one: jobs that became startable, the end of jobs and runs, and
    /// what others change of nodes, queues and reservations. What a scheduling program does itself is one only if a job can start
    /// because of it or is no more: or a program that changes something in each cycle would never rest. A job that starts is none.
    fn note_triggers(&mut self, record: &Record, is_new: bool) -> bool {
        let is_own = *record.actor == Actor::Planner;
        let is_end = match record.event {
            Event::JobFinished { .. } | Event::TasksFinished { .. } | Event::RunEnded { .. } => true,
            Event::JobSuspended { .. } | Event::RunShrunk { .. } => !is_own,
            _ => !is_own && !matches!(record.event.plan_effect(), PlanEffect::Never | PlanEffect::Jobs),
        };
        for trigger in [is_new.then_some(Trigger::New), is_end.then_some(Trigger::Term)].into_iter().flatten() {
            match self.script.as_mut() {
                Some(script) => script.note(trigger),
                None => self.note_reason(trigger),
            }
        }
        is_new || is_end
    }

    /// Notes why the next cycle begins.
    fn note_reason(&mut self, trigger: Trigger) {
        if !self.triggers.contains(&trigger) {
            self.triggers.push(trigger);
        }
    }

    /// The reasons of a cycle whose plan was not committed are those of the next one: no reason is lost (PBS-C-06).
    fn note_again(&mut self, cycle: Option<&PlanCycle>) {
        let Some(cycle) = cycle else { return };
        let again = IN_ORDER.into_iter().filter(|trigger| cycle.reasons.iter().any(|reason| reason == trigger.name()));
        again.for_each(|trigger| self.note_reason(trigger));
    }

    /// The cycle that makes a plan now, for the log (PBS-C-11): only planning by turns has cycles. Something may have changed that
    /// is no reason for one, such as the request of a job; then it is one only if a job starts.
    fn cycle_of(&mut self, plan: &ProposedPlan, now: Timestamp, took: Duration) -> Option<Box<PlanCycle>> {
        let mut noted = std::mem::take(&mut self.triggers);
        let policy = self.projection.state().policy().clone();
        // While scheduling is off there are none (PBS-C-03).
        policy.turns.as_ref().filter(|_| !self.state().settings().is_idle)?;
        let hour = script::hour(self.state(), now);
        let sync_seconds = policy.turns.as_ref().and_then(|turns| turns.usage.as_ref()).map(|rule| rule.sync_seconds);
        let usage = sync_seconds.filter(|seconds| *seconds > 0).and_then(|seconds| self.publish(seconds, now));
        let half_life_began = self.state().half_life_began(now).filter(|at| self.half_life_began != Some(*at));
        self.half_life_began = half_life_began.or(self.half_life_began);
        if self.passes == 0 {
            noted = vec![Trigger::First];
        } else if noted.is_empty() {
            if plan.starts.is_empty() && usage.is_none() && half_life_began.is_none() {
                return None;
            }
            noted.push(Trigger::Time);
        }
        if self.is_plan_due {
            // The rest of a cycle that reached the most starts of a plan has the same reasons.
            self.triggers.clone_from(&noted);
        }
        self.started = plan.starts.len();
        let reasons = IN_ORDER.into_iter().filter(|trigger| noted.contains(trigger));
        Some(Box::new(PlanCycle {
            reasons: reasons.map(|trigger| trigger.name().to_owned()).collect(),
            is_prime: hour.is_prime,
            is_dedicated: hour.is_dedicated,
            policy: policy.name.clone(),
            milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            usage,
            half_life_began,
            ..PlanCycle::default()
        }))
    }

    /// Has what users have used published if it is time for that, and comes back when it is time again. The ledger says what it is.
    fn publish(&mut self, seconds: u64, now: Timestamp) -> Option<Vec<UserUsage>> {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let is_due = self.published.is_none_or(|last| last.plus_seconds(seconds) <= now);
        let last = if is_due { now } else { self.published.unwrap_or(now) };
        self.published = Some(last);
        let next = last.plus_seconds(seconds);
        self.wake = Some(self.wake.map_or(next, |wake| wake.min(next)));
        is_due.then(Vec::new)
    }

    fn state(&self) -> &State {
        self.projection.state()
    }

    /// One plan, from the present state to the answer of the ledger. The next plan sees the result.
    async fn cycle(&mut self) -> Result<(), BusError> {
        self.is_plan_due = false;
        (self.wake, self.rest) = (None, None);
        let Some(epoch) = self.hello().await else { return Ok(()) };
        WAITING.record(i64::try_from(self.projection.waiting()).unwrap_or(i64::MAX), &[]);
        let now = Timestamp::now().max(self.state().time());
        if self.script.is_some() {
            return self.scripted_cycle(now, epoch).await;
        }
        let plan = match self.external {
            None => {
                let began = Instant::now();
                let plan = self.plan(now);
                ProposedPlan { cycle: self.cycle_of(&plan, now, began.elapsed()), ..plan }
            }
            Some(_) => self.ask(now).await,
        };
        self.passes += 1;
        let plan = ProposedPlan { pass: self.passes, epoch, ..plan };
        let is_cycle = plan.cycle.is_some();
        let has_made_way = self.state().made_way().next().is_some();
        if !says_nothing(&plan) || has_made_way {
            // An external planner might not repeat what was held back, and runs that made way continue with a plan.
            let is_due = acts(&plan) || has_made_way || self.external.is_some();
            if is_due { self.commit_and_follow(plan).await? } else { self.commit_reasons(plan).await? }
        }
        if is_cycle && std::mem::take(&mut self.started) == 1 {
            // Another one follows a cycle that started one job (PBS-C-02).
            self.note_reason(Trigger::Recyc);
            self.is_plan_due = true;
        }
        self.stage_ahead().await
    }

    /// Commits a plan that only says why jobs wait, unless another has just done so: then it is made again a little
    /// later.
    async fn commit_reasons(&mut self, plan: ProposedPlan) -> Result<(), BusError> {
        let rest = self.told_reasons.map_or(Duration::ZERO, |told| BETWEEN_REASONS.saturating_sub(told.elapsed()));
        if rest.is_zero() {
            self.commit_and_follow(plan).await?;
            self.told_reasons = Some(Instant::now());
        } else {
            self.note_again(plan.cycle.as_deref());
            let due = Timestamp::now().plus_micros(i64::try_from(rest.as_micros()).unwrap_or(i64::MAX));
            if self.wake.is_none_or(|wake| due < wake) {
                (self.wake, self.rest) = (Some(due), Some(due));
            }
        }
        Ok(())
    }

    /// Has the ledger count this planner, once. `None` if it does not now: then the next plan asks again.
    async fn hello(&mut self) -> Option<u64> {
        if self.epoch.is_none() {
            let answer = self.ledger.command(Actor::Planner, TraceContext::default(), Command::PlannerHello).await;
            match answer.map(|answer| answer.result) {
                Ok(Ok(Reply::Epoch(epoch))) => {
                    self.epoch = Some(epoch);
                    LEADS.record(1, &[]);
                }
                other => {
                    tracing::warn!("the ledger did not count this planner: {other:?}");
                    self.is_plan_due = true;
                    tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        }
        self.epoch
    }

    /// Asks the ledger for what a plan says, and waits for the result.
    async fn commit_and_follow(&mut self, plan: ProposedPlan) -> Result<(), BusError> {
        let cycle = plan.cycle.clone();
        match self.commit(plan).await {
            Ok(sequence) => self.follow_to(sequence).await,
            Err(error) => {
                tracing::warn!("the plan was not committed: {error:#}");
                self.note_again(cycle.as_deref());
                (self.is_plan_due, self.started) = (true, 0);
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                Ok(())
            }
        }
    }

    /// A plan by the policy in force.
    fn plan(&mut self, now: Timestamp) -> ProposedPlan {
        let began = Instant::now();
        let limit = self.config.pass_limit();
        let has_time = || began.elapsed() < limit;
        let planned = self.projection.plan_within(now, &self.left_out, PassLimit::While(&has_time));
        cycle_time::note(began.elapsed());
        // One that came to its time limit and started and promised nothing would only do the same again.
        let goes_on = !planned.plan.starts.is_empty() || !planned.plan.slots.is_empty();
        self.is_plan_due = planned.is_cut_short && (planned.plan.cut_after.is_none() || goes_on);
        if let Some(looks) = planned.plan.cut_after {
            tracing::warn!(looks, ?limit, "the pass came to its time limit: jobs that it did not come to wait");
        }
        self.wake = planned.next_wake;
        if self.state().policy().turns.is_some() {
            let seconds = script::iteration_seconds(self.state(), self.config.schedule_iteration_seconds);
            let latest = now.plus_seconds(seconds.into());
            self.wake = Some(self.wake.map_or(latest, |wake| wake.min(latest)));
        }
        self.staged_ahead = planned.staged_ahead;
        planned.plan
    }

    /// Has files copied ahead of the starts of jobs (PBS-G-07). What the ledger refuses is copied when the job starts.
    async fn stage_ahead(&mut self) -> Result<(), BusError> {
        for job in std::mem::take(&mut self.staged_ahead) {
            let command = Command::CopyAhead { job, node: None };
            match self.ledger.command(Actor::Planner, TraceContext::default(), command).await {
                Ok(Answer { sequence, result: Ok(_) }) => self.follow_to(sequence).await?,
                Ok(Answer { result: Err(refusal), .. }) => {
                    tracing::debug!(%job, %refusal, "its files stay where they are")
                }
                Err(error) => tracing::warn!(%job, %error, "its files were not copied ahead"),
            }
        }
        Ok(())
    }

    /// A plan of the external planner; if it does not work, the configured substitute.
    async fn ask(&mut self, now: Timestamp) -> ProposedPlan {
        let Some(external) = self.external else { return ProposedPlan::default() };
        if external.resting_until().is_none() {
            let refused = std::mem::take(&mut self.refused);
            let cycle = external::cycle(self.projection.state(), now, self.config.max_waiting, refused);
            if let Ok(answer) = external.plan(&cycle).await {
                self.wake = answer.wake;
                let Proposal { plan, refused, is_cut_short } =
                    external::propose(self.projection.state(), &cycle, answer);
                self.is_plan_due = is_cut_short;
                self.refused = refused;
                return plan;
            }
        }
        if self.config.fallback {
            return self.plan(now);
        }
        let what = self.external.as_ref().and_then(External::trouble).unwrap_or_default().to_owned();
        let reason = WaitReason::PlannerFailed(what);
        let waiting = external::waiting_in_order(self.state());
        let told = waiting.iter().take(self.config.max_waiting);
        let told = told.map(|job| WaitingJob { job: job.id, reason: reason.clone() });
        let reasons = told.filter(|waiting| external::is_news(self.state(), waiting)).collect();
        ProposedPlan { seen: self.state().sequence(), at: now, reasons, external: true, ..ProposedPlan::default() }
    }

    /// A cycle of the scheduling program, if one is due. Each of its starts is a plan and each of its other actions a
    /// command, which the ledger judges before the program hears of it. While scheduling is off there is none (PBS-C-03).
    async fn scripted_cycle(&mut self, now: Timestamp, epoch: u64) -> Result<(), BusError> {
        let border = self.border.take();
        if self.state().settings().is_idle {
            return Ok(());
        }
        let shown = picture(self.projection.state(), &self.config.server_name, now);
        let iteration_seconds = script::iteration_seconds(self.state(), self.config.schedule_iteration_seconds);
        let Some(script) = self.script.as_mut() else { return Ok(()) };
        script.resume(self.projection.state().program_cycle());
        if border.is_some_and(|border| border <= now) {
            script.note(Trigger::Time);
        }
        let policy = script.policy().to_owned();
        let began = Instant::now();
        let hour = script::hour(self.projection.state(), now);
        let zone = script::zone(self.projection.state(), self.config.scheduler_time_zone.as_deref());
        let mut events = script.begin(hour, shown, iteration_seconds, zone);
        let mut done = None;
        while let Some(event) = events.recv().await {
            match event {
                FromScript::Asked(asked) => {
                    let answer = self.scripted_action(&asked, epoch).await?;
                    // The program may have been ended since.
                    let _ = asked.answer.send(answer);
                }
                FromScript::Done { report, sources, due } => done = Some((report, sources, due)),
            }
        }
        let Some((report, sources, due)) = done else {
            return Err(BusError::Unusable("the thread of the scheduling program ended".into()));
        };
        // A due time of the past means at once.
        let wake = due.map(|due| Timestamp(due.saturating_mul(1_000_000)));
        self.is_plan_due |= wake.is_some_and(|wake| wake <= now);
        self.border = self.state().policy().turns.as_ref().and_then(|turns| turns.next_change(now));
        self.wake = wake.into_iter().chain(self.border).min();
        let Some(report) = report else { return Ok(()) };
        script::log(&report);
        self.passes += 1;
        let reasons = script::reasons(self.projection.state(), self.config.max_waiting, &report);
        let plan = ProposedPlan { pass: self.passes, epoch, ..external::waits(self.projection.state(), now, reasons) };
        if !says_nothing(&plan) || self.state().made_way().next().is_some() {
            self.commit_and_follow(plan).await?;
        }
        let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let cycle = Box::new(script::note(&report, hour, &policy, sources, milliseconds));
        self.told("the cycle was not recorded", Command::NoteCycle { cycle }).await?;
        if report.gave_up {
            let settings = ClusterSettingsChange { is_idle: Some(true), ..ClusterSettingsChange::default() };
            let change = Box::new(ClusterChange { settings, ..ClusterChange::default() });
            self.told("scheduling was not switched off", Command::Configure { change, keep_unnamed: true }).await?;
        }
        Ok(())
    }

    /// Sends a command whose refusal nobody waits for, and follows the log to its result.
    async fn told(&mut self, what: &str, command: Command) -> Result<(), BusError> {
        match self.ledger.command(Actor::Planner, TraceContext::default(), command).await {
            Ok(Answer { sequence, result: Ok(_) }) => self.follow_to(sequence).await?,
            Ok(Answer { result: Err(refusal), .. }) => tracing::warn!("{what}: {refusal}"),
            Err(error) => tracing::warn!("{what}: {error}"),
        }
        Ok(())
    }

    /// Asks the ledger for an action of the scheduling program.
    async fn scripted_action(&mut self, asked: &Asked, epoch: u64) -> Result<Result<Done, Refusal>, BusError> {
        match &asked.action {
            Action::Run { job, place } | Action::AsyRun { job, place } => {
                self.scripted_start(job, place.as_deref(), &asked.avoid, epoch).await
            }
            action => self.scripted_command(action).await,
        }
    }

    /// An action other than a start. What it was about is its answer, as it is then.
    async fn scripted_command(&mut self, action: &Action) -> Result<Result<Done, Refusal>, BusError> {
        let spec = match self.specification(action).await {
            Ok(spec) => spec,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let now = Timestamp::now().max(self.state().time());
        let command = match script::command_of(self.projection.state(), action, spec.as_deref(), now) {
            Ok(command) => command,
            Err(refusal) => return Ok(Err(refusal)),
        };
        match self.ledger.command(Actor::Planner, TraceContext::default(), command).await {
            Ok(Answer { sequence, result: Ok(_) }) => {
                self.follow_to(sequence).await?;
                let seen = script::seen(self.projection.state(), action);
                Ok(Ok(Done { seen, ..Done::default() }))
            }
            Ok(Answer { result: Err(refused), .. }) => Ok(Err(script::refusal_of(&refused))),
            Err(error) => Ok(Err(Refusal::new(Code::Internal, error.to_string()))),
        }
    }

    /// The specification of a job whose request is altered: what is not named stays, and the state does not keep all of it.
    async fn specification(&mut self, action: &Action) -> Result<Option<Box<JobSpec>>, Refusal> {
        let Action::Alter { job, changes } = action else { return Ok(None) };
        if changes.iter().all(|change| change.resource.is_none()) {
            return Ok(None);
        }
        let job = script::id_of(self.projection.state(), job)?;
        match self.ledger.query(&Query::JobSpec { job }).await {
            Ok(QueryAnswer::JobSpec(spec)) => Ok(Some(spec)),
            Ok(_) => Err(Refusal::new(Code::UnknownJob, format!("there is no job {job}"))),
            Err(error) => Err(Refusal::new(Code::Internal, error.to_string())),
        }
    }

    /// Asks the ledger for one start of the scheduling program. The names of the nodes are its answer.
    async fn scripted_start(
        &mut self,
        job: &str,
        place: Option<&str>,
        avoid: &[String],
        epoch: u64,
    ) -> Result<Result<Done, Refusal>, BusError> {
        let now = Timestamp::now().max(self.state().time());
        let hosts: Vec<String> = place.into_iter().flat_map(script::hosts_of).map(str::to_owned).collect();
        let plan = script::start_of(self.projection.state(), job, &hosts)
            .and_then(|start| external::one_start(self.projection.state(), now, &start, avoid));
        let plan = match plan {
            Ok(plan) => plan,
            Err(text) => return Ok(Err(Refusal::new(Code::NoResources, text))),
        };
        self.passes += 1;
        let plan = ProposedPlan { pass: self.passes, epoch, ..plan };
        let nodes: BTreeSet<NodeId> =
            plan.starts.iter().flat_map(|start| start.placement.shares()).map(|share| share.node).collect();
        STARTS.add(1, &[]);
        let spans = self.start_spans(&plan);
        let command = Command::CommitPlan { plan: Box::new(plan) };
        let answer = self.ledger.command(Actor::Planner, TraceContext::default(), command).await;
        drop(spans);
        let (sequence, reply) = match answer {
            Ok(Answer { sequence, result: Ok(reply) }) => (sequence, reply),
            Ok(Answer { result: Err(error), .. }) => return Ok(Err(Refusal::new(Code::Internal, error.to_string()))),
            Err(error) => return Ok(Err(Refusal::new(Code::Internal, error.to_string()))),
        };
        self.follow_to(sequence).await?;
        if let Reply::Planned(refused) = reply
            && let Some(refused) = refused.into_iter().next()
        {
            REFUSED.add(1, &[]);
            return Ok(Err(Refusal::new(Code::NoResources, refused.reason)));
        }
        let name = |node: &NodeId| self.state().node_name(*node).into_owned();
        let is_full = |node: &&NodeId| self.state().node(**node).is_none_or(|node| node.free_cores.is_empty());
        let full = nodes.iter().filter(is_full).map(name).collect();
        Ok(Ok(Done { nodes: nodes.iter().map(name).collect(), full, ..Done::default() }))
    }

    /// Has the scheduling program read its files again. Mistakes are on record, and the old program continues
    /// (PBS-C-14).
    async fn reload(&mut self) -> Result<(), BusError> {
        let Some(script) = self.script.as_ref() else { return Ok(()) };
        let name = script.policy().to_owned();
        let Ok(result) = script.reload().await else {
            return Err(BusError::Unusable("the thread of the scheduling program ended".into()));
        };
        match result {
            Ok(()) => tracing::info!("the scheduling program {name} was read again"),
            Err(mistakes) => {
                tracing::error!("the scheduling program {name} has mistakes, and the old one continues: {mistakes:?}");
                let command = Command::RefusePolicy { name, sources: Vec::new(), mistakes };
                self.told("the mistakes were not recorded", command).await?;
            }
        }
        Ok(())
    }

    async fn commit(&mut self, plan: ProposedPlan) -> anyhow::Result<Sequence> {
        let spans = self.start_spans(&plan);
        STARTS.add(plan.starts.len() as u64, &[]);
        let log = CycleLog::of(self.state().policy(), &plan);
        let command = Command::CommitPlan { plan: Box::new(plan) };
        let Answer { sequence, result } = self.ledger.command(Actor::Planner, TraceContext::default(), command).await?;
        drop(spans);
        if let Reply::Planned(refused) = result? {
            log.into_iter().for_each(|log| log.tell(&refused));
            self.note_refused(refused);
        }
        Ok(sequence)
    }

    fn note_refused(&mut self, refused: Vec<RefusedStart>) {
        REFUSED.add(refused.len() as u64, &[]);
        self.started = self.started.saturating_sub(refused.len());
        for RefusedStart { job, reason } in refused {
            tracing::debug!(%job, reason, "start refused");
            // A task that has never started is not in the order itself; its array is.
            self.left_out.extend([job, job.whole()]);
            if self.external.is_some() {
                self.refused.push(RefusedJob { job, reason });
            }
        }
    }

    /// The planner's part in the trace of each job that starts: from the plan to the ledger's answer.
    fn start_spans(&self, plan: &ProposedPlan) -> Vec<tracing::Span> {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return Vec::new();
        }
        let job_of = |id: JobId| self.state().job(id).or_else(|| self.state().job(id.whole()));
        let span = |id: JobId| Some(trace::in_trace(tracing::debug_span!("plan", job = %id), job_of(id)?.trace));
        plan.starts.iter().filter_map(|start| span(start.job)).collect()
    }
}

/// Whether the ledger already knows everything in a plan.
fn says_nothing(plan: &ProposedPlan) -> bool {
    let publishes = plan.cycle.as_ref().is_some_and(|cycle| cycle.usage.is_some() || cycle.half_life_began.is_some());
    plan.reasons.is_empty() && plan.promised.is_none() && plan.lifted.is_none() && !publishes && !acts(plan)
}

/// Whether a plan does more than say why jobs wait.
fn acts(plan: &ProposedPlan) -> bool {
    !plan.starts.is_empty()
        || !plan.slots.is_empty()
        || !plan.predictions.is_empty()
        || !plan.reservations.is_empty()
        || !plan.growths.is_empty()
        || !plan.shrinks.is_empty()
        || !plan.preemptions.is_empty()
        || !plan.reserved.is_empty()
        || plan.backfill_pass.is_some()
}

/// The predictions, once they are made; waits for ever if nothing predicts.
async fn foreseen(predictor: &mut Option<Predictor>) -> Option<Foreseen> {
    match predictor {
        Some(predictor) => predictor.foreseen().await,
        None => std::future::pending().await,
    }
}
