//! The runner: calls in, answers out.

use crate::{
    RunnerConfig,
    account::{self, Account},
    call::{Answer, Call, FileAfter},
    contract,
    error::SetupError,
    pool::Pool,
    protocol::{DOCUMENT_JSON, NewFile, Order, Outcome, Reply},
    scratch::Scratch,
};
use muster_schemas::filter::{FilterForm, FilterSpec};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Why a call was not made, or its result is unknown. The cause is this machine or the call, not the filter: another
/// runner may make it (HPC-F-85).
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The call contradicts itself; no runner can make it.
    #[error("call {invocation_id} cannot be made: {why}")]
    BadCall {
        /// Which call.
        invocation_id: String,
        /// The contradiction.
        why: String,
    },
    /// This machine lacks something: processes, space, a folder.
    #[error("filter `{filter}` cannot be called on this machine: {why}")]
    Machine {
        /// Which filter.
        filter: String,
        /// The thing that it lacks.
        why: String,
    },
    /// The process that supervises the call could not start, or ended during it; everything the filter started has
    /// ended.
    #[error("filter `{filter}`: its supervisor is gone: {why}")]
    Supervisor {
        /// Which filter.
        filter: String,
        /// What the system says.
        why: std::io::Error,
    },
}

/// Runs filters, as many at the same time as it has slots. It does not interpret results.
#[derive(Debug)]
pub struct Runner {
    config: RunnerConfig,
    account: Option<Account>,
    trusted: Vec<u32>,
    scratch: Scratch,
    slots: Pool,
    persistent: Mutex<BTreeMap<String, Arc<Pool>>>,
}

impl Runner {
    /// A runner on this machine. It does not start a process yet.
    ///
    /// # Errors
    /// If it is root and the account to switch to cannot be used (HPC-F-70), if an administrator does not exist here,
    /// or if the scratch folder cannot be made.
    pub fn new(config: RunnerConfig) -> Result<Self, SetupError> {
        let scratch = Scratch::make(&config.scratch)
            .map_err(|why| SetupError::Scratch { folder: config.scratch.clone(), why })?;
        Ok(Self {
            account: account::to_switch_to(&config.account)?,
            trusted: account::trusted(&config.administrators)?,
            scratch,
            slots: Pool::new(config.supervisor.clone(), config.slots),
            persistent: Mutex::default(),
            config,
        })
    }

    /// The account of filters, as text for the log and for people.
    pub fn account(&self) -> String {
        match &self.account {
            Some(account) => format!("filters run as `{}` (user number {})", self.config.account, account.uid),
            None => format!(
                "filters run as this runner itself (user number {}): only root can switch to `{}`",
                nix::unistd::Uid::effective(),
                self.config.account
            ),
        }
    }

    /// Makes a call and waits until all that it started is gone. Dropping the future ends the call: its processes get
    /// SIGTERM at once and SIGKILL 2 s later (HPC-F-23).
    ///
    /// # Errors
    /// If this machine could not make the call. A missing or failing filter is not an error but an answer.
    pub async fn run(&self, call: &Call) -> Result<Answer, RunError> {
        if let Some(why) = contract::flaw(call) {
            return Err(RunError::BadCall { invocation_id: call.invocation_id.clone(), why });
        }
        let order = self.order(call);
        let filter = || call.filter.name.clone();
        let reply = match call.filter.form {
            FilterForm::Exec | FilterForm::Verbs => self.slots.make(&order).await,
            FilterForm::Persistent => self.persistent(&call.filter.name).make(&order).await,
        };
        match reply.map_err(|why| RunError::Supervisor { filter: filter(), why })? {
            Reply::Done(outcome) => Ok(answer(call, *outcome)),
            Reply::Failed(why) => Err(RunError::Machine { filter: filter(), why }),
        }
    }

    /// Ends the processes of a persistent filter that is no longer defined, after telling them to unload. Those in the
    /// middle of a call end after it. If the filter is called again later, it starts again (HPC-F-67).
    pub fn retire(&self, name: &str) {
        self.persistent.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Ends the processes of all other persistent filters, as [`Runner::retire`] does.
    pub fn keep_persistent(&self, defined: &[FilterSpec]) {
        let is_defined = |name: &str| defined.iter().any(|filter| filter.name == name);
        self.persistent.lock().unwrap_or_else(PoisonError::into_inner).retain(|name, _| is_defined(name));
    }

    fn persistent(&self, name: &str) -> Arc<Pool> {
        let mut pools = self.persistent.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Pool::new(self.config.supervisor.clone(), self.config.persistent_processes));
        pools.entry(name.to_owned()).or_insert_with(new).clone()
    }

    fn order(&self, call: &Call) -> Order {
        let folder = self.scratch.next();
        let start = contract::start(&self.config, call, &folder);
        let document = NewFile { name: contract::document_name(call).into(), contents: call.document.clone() };
        let json = call.document_json.clone().map(|contents| NewFile { name: DOCUMENT_JSON.into(), contents });
        Order {
            program: call.filter.path.clone(),
            arguments: start.arguments,
            environment: start.environment,
            folder,
            files: std::iter::once(document).chain(json).collect(),
            time_limit_seconds: call.time_limit_seconds,
            account: self.account.clone(),
            trusted: self.trusted.clone(),
            lines: start.lines,
        }
    }
}

fn answer(call: &Call, outcome: Outcome) -> Answer {
    let mut files = outcome.files.into_iter();
    Answer {
        result: outcome.result,
        document: files.next().unwrap_or(FileAfter::Unchanged),
        document_json: files.next().filter(|_| call.document_json.is_some()),
        result_lines: outcome.result_lines,
        stdout: outcome.stdout,
        stderr: outcome.stderr,
        duration: Duration::from_micros(outcome.duration_micros),
        program_hash: outcome.program_hash,
        surplus: outcome.surplus,
    }
}
