//! The filters of the simulated world: which ones exist, who may make a call, and how it ends.

use super::{
    Happening, SECOND, World,
    aims::Step,
    chains::Phase,
    network::{Parcel, Party},
    operator_command, runner,
};
use muster_domain::filters::OutstandingCall;
use muster_schemas::{
    CommandId, Timestamp,
    command::{Answer, CallOutcome, Command, CommandEnvelope},
    event::{Actor, TraceContext},
    filter::{ActivationOrdering, FilterForm, FilterSettings, FilterSpec, TemplateSpec},
    filter_order::FilterOrder,
};
use rand::Rng;
use std::sync::Arc;

/// The approximate time of an answer.
const ANSWER_MICROS: i64 = 30_000;

impl World {
    /// Sets two templates with filters, and cluster-wide filters of all forms.
    pub(super) fn set_filters(&mut self) {
        let filter = |name: &str, form, revert_on_unknown| FilterSpec {
            name: name.into(),
            path: format!("/filters/{name}"),
            form,
            revert_on_unknown,
        };
        let settings = FilterSettings {
            submission: self.random.random_bool(0.5).then(|| filter("any", FilterForm::Exec, false)),
            activation: self.random.random_bool(0.7).then(|| filter("licences", FilterForm::Exec, false)),
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
            Command::SetParameters { filters: Some(Box::new(settings)), scheduling: None },
            Command::SetTemplate { template: Box::new(template("small", Vec::new())) },
            Command::SetTemplate { template: Box::new(template("licensed", chain.to_vec())) },
        ];
        for command in commands {
            let id = self.fresh_id();
            self.ask(Party::Operator, operator_command(command, id));
        }
        self.agenda.after(SECOND, Happening::OfferCalls);
        for phase in [Phase::Submission, Phase::Activation, Phase::Rollback] {
            self.agenda.after(2 * SECOND, Happening::TakeAim(phase));
        }
    }

    /// Puts calls from the ledger into the queue until a runner takes them.
    pub(super) fn enqueue_calls(&mut self, calls: Vec<(String, FilterOrder)>) {
        for (key, order) in calls {
            let order = Arc::new(order);
            self.queue.insert(key, Arc::clone(&order));
            self.offer(order);
        }
    }

    /// Offers queued calls again that nobody has taken.
    pub(super) fn offer_calls(&mut self) {
        let orders: Vec<_> = self.queue.values().map(Arc::clone).collect();
        orders.into_iter().for_each(|order| self.offer(order));
    }

    fn offer(&mut self, order: Arc<FilterOrder>) {
        if !self.runners.is_empty() {
            let runner = self.random.random_range(0..self.runners.len());
            self.send(Parcel::Offered { runner, order });
        }
    }

    pub(super) fn call_offered(&mut self, runner: usize, order: Arc<FilterOrder>) {
        let id = self.fresh_id();
        let call = order.call;
        if let Some(command) = self.runners[runner].offered(order, id) {
            self.runner_asks(runner, id, command);
            self.call_reaches(Step::Claimed, call, runner, ANSWER_MICROS);
        }
    }

    pub(super) fn claim_answered(&mut self, runner: usize, id: CommandId, answer: &Answer) {
        let Some(claim) = self.runners[runner].answered(id, answer) else { return };
        let taken = (claim.order.call, claim.order.attempt);
        let still_waits = |call: &OutstandingCall| (call.id, call.attempt) == taken && call.claimed.is_none();
        if claim.is_mine || !self.truth.state().outstanding_calls().any(still_waits) {
            self.queue.retain(|_, order| (order.call, order.attempt) != taken);
        }
        if claim.is_mine {
            // Some calls last longer than anybody waits for them.
            let longest = if self.troubled && self.random.random_range(0..30) == 0 { 40 } else { 4 };
            let micros = self.random.random_range(SECOND / 100..longest * SECOND);
            self.call_reaches(Step::Made, claim.order.call, runner, micros);
            self.agenda.after(micros, Happening::CallEnds { runner, order: claim.order });
        }
    }

    pub(super) fn call_ends(&mut self, runner: usize, order: &FilterOrder) {
        let outcome = runner::outcome(&mut self.random, order, self.troubled, Timestamp(self.agenda.now));
        let exit = match &outcome {
            CallOutcome::Called(report) => Some(report.exit.clone()),
            _ => None,
        };
        let has_others = self.runners.iter().filter(|runner| runner.is_up()).count() > 1;
        if let Some(command) = self.runners[runner].ends(order, outcome, has_others) {
            let id = self.fresh_id();
            self.runner_asks(runner, id, command);
            exit.into_iter().for_each(|exit| self.truth.called(order.call, exit));
            self.call_reaches(Step::Reported, order.call, runner, ANSWER_MICROS);
        }
    }

    fn runner_asks(&mut self, runner: usize, id: CommandId, command: Command) {
        let actor = Actor::Runner(runner::name(runner));
        self.ask(Party::Runner(runner), CommandEnvelope { id, actor, trace: TraceContext::default(), command });
    }
}
