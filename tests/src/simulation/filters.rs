//! What the world has to do with filters: which there are, who gets to make a call, and what it comes to.

use super::{
    Happening, SECOND, World,
    network::{Parcel, Party},
    operator_command,
    runner::{self, Attempt, Work},
};
use muster_schemas::{
    CommandId, Timestamp,
    command::{Command, CommandEnvelope},
    event::{Actor, TraceContext},
    filter::{ActivationOrdering, CallId, FilterForm, FilterKind, FilterSettings, FilterSpec, TemplateSpec},
    job::JobSpec,
};
use rand::Rng;

impl World {
    /// Two templates with filters, and cluster-wide ones, of all forms.
    pub(super) fn set_filters(&mut self) {
        let filter = |name: &str, form, revert_on_unknown| FilterSpec {
            name: name.into(),
            path: format!("/filters/{name}"),
            form,
            revert_on_unknown,
        };
        let settings = FilterSettings {
            submission: self.random.random_bool(0.5).then(|| filter("any", FilterForm::Exec, false)),
            activation: self.random.random_bool(0.3).then(|| filter("licences", FilterForm::Exec, false)),
            ordering: if self.random.random_bool(0.5) {
                ActivationOrdering::Strict
            } else {
                ActivationOrdering::Relaxed
            },
            retry_interval_seconds: self.random.random_range(1..5),
            default_hold_seconds: 60,
            ..FilterSettings::default()
        };
        let chain = [
            filter("first", FilterForm::Verbs, false),
            filter("second", FilterForm::Persistent, true),
            filter("third", FilterForm::Verbs, false),
        ];
        let template = |name: &str, activation_filters| TemplateSpec {
            name: name.into(),
            submission_filters: chain.to_vec(),
            activation_filters,
            ..TemplateSpec::default()
        };
        let commands = [
            Command::SetFilterSettings { settings: Box::new(settings) },
            Command::SetTemplate { template: Box::new(template("small", Vec::new())) },
            Command::SetTemplate { template: Box::new(template("licensed", chain.to_vec())) },
        ];
        for command in commands {
            let id = self.fresh_id();
            self.ask(Party::Operator, operator_command(command, id));
        }
        self.agenda.after(SECOND, Happening::OfferCalls);
    }

    /// Offers the calls that nobody has claimed, each to one runner or two.
    pub(super) fn offer_calls(&mut self) {
        if self.runners.is_empty() {
            return;
        }
        let unclaimed = self.truth.state().outstanding_calls().filter(|call| call.claimed.is_none());
        let attempts: Vec<Attempt> = unclaimed.map(|call| (call.id, call.attempt)).collect();
        for attempt in attempts {
            let runner = self.random.random_range(0..self.runners.len());
            self.send(Parcel::Offered { runner, attempt });
        }
    }

    pub(super) fn call_offered(&mut self, runner: usize, attempt: Attempt) {
        let id = self.fresh_id();
        if let Some(command) = self.runners[runner].offered(attempt, id) {
            self.runner_asks(runner, id, command);
        }
    }

    pub(super) fn call_ends(&mut self, runner: usize, attempt: Attempt) {
        let (call, _) = attempt;
        let work = match self.truth.spec(call.job) {
            Some(spec) if self.is_validation(call) => Work::Validation(Box::new(JobSpec::clone(spec))),
            _ => Work::Filter,
        };
        let now = Timestamp(self.agenda.now);
        let outcome = runner::outcome(&mut self.random, call, work, self.troubled, now);
        let has_others = self.runners.iter().filter(|runner| runner.is_up()).count() > 1;
        if let Some(command) = self.runners[runner].ends(attempt, outcome, has_others) {
            let id = self.fresh_id();
            self.runner_asks(runner, id, command);
        }
    }

    /// Whether a call is of the check behind the filters of its chain.
    fn is_validation(&self, call: CallId) -> bool {
        let filters = self.truth.chains().filters(call.job);
        call.kind == FilterKind::Submission && filters.is_none_or(|filters| call.position as usize >= filters)
    }

    fn runner_asks(&mut self, runner: usize, id: CommandId, command: Command) {
        let actor = Actor::Runner(runner::name(runner));
        self.ask(Party::Runner(runner), CommandEnvelope { id, actor, trace: TraceContext::default(), command });
    }

    pub(super) fn stop_runner(&mut self) {
        let runner = self.random.random_range(0..self.runners.len());
        self.report.kills_of_runners += u64::from(self.runners[runner].calls().next().is_some());
        self.runners[runner].stops();
        self.network.open.retain(|_, (party, _)| *party != Party::Runner(runner));
        self.count_kill();
        let back_after = self.random.random_range(SECOND / 10..40 * SECOND);
        self.agenda.after(back_after, Happening::RunnerReturns(runner));
    }

    /// Something was stopped: in the middle of what.
    pub(super) fn count_kill(&mut self) {
        self.report.crashes += 1;
        let phases: Vec<_> = self.truth.chains().phases().collect();
        let any = |wanted| u64::from(phases.contains(&wanted));
        self.report.kills_in_submission += any((FilterKind::Submission, false));
        self.report.kills_in_activation += any((FilterKind::Activation, false));
        self.report.kills_in_rollback += any((FilterKind::Submission, true)) | any((FilterKind::Activation, true));
    }
}
