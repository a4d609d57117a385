//! Commands of users, and mail programs: a supervisor runs them within bounds.

use crate::{
    DeliveryError,
    account::{self, Account},
    message,
    supervisor::{ARGUMENT, Order, Report},
};
use muster_schemas::{energy::SiteProgram, notify::NotifyItem};
use serde::Deserialize;
use std::{
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
    time::timeout,
};

/// How commands are run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandConfig {
    /// The limit for a command, in seconds; after it the command is killed and has failed.
    pub time_limit_seconds: u64,
    /// The most output of a failed command that is kept for the error; the rest is dropped.
    pub max_output_bytes: usize,
}

impl Default for CommandConfig {
    fn default() -> Self {
        Self { time_limit_seconds: 60, max_output_bytes: 2048 }
    }
}

/// The search path of commands.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How long the processes that an ended command left may keep its output open.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(1);
/// A supervisor that has not reported this long after the limit of its command never will.
const REPORT_PATIENCE: Duration = Duration::from_secs(10);

/// The most output of a mail program that is kept for the error.
const MAX_MAIL_OUTPUT_BYTES: usize = 2048;

/// The order to run a command of the job's owner, as the owner.
pub(crate) fn of_owner(config: &CommandConfig, item: &NotifyItem, command: &str) -> Result<Order, DeliveryError> {
    let account = account::of_owner(&item.owner)?;
    Ok(Order {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), command.into()],
        environment: environment(item, &account),
        input: String::new(),
        account: account.change,
        limit_seconds: config.time_limit_seconds.max(1),
        lingers: false,
    })
}

/// The order to run a program of the site with its own words, without a shell. It never runs as root: if the notifier is
/// root, it runs as the item's owner.
pub(crate) fn of_site(item: &NotifyItem, program: &SiteProgram) -> Result<Order, DeliveryError> {
    let unusable = |error: anyhow::Error| DeliveryError::Permanent(error.to_string());
    let account = account::of_site(&item.owner.user).map_err(unusable)?;
    let (path, words) =
        program.words.split_first().ok_or_else(|| DeliveryError::Permanent("no program is named".into()))?;
    Ok(Order {
        program: path.clone(),
        arguments: words.to_vec(),
        environment: environment(item, &account),
        input: program.input.clone(),
        account: account.change,
        limit_seconds: u64::from(program.limit_seconds.max(1)),
        lingers: false,
    })
}

/// The order to send a mail with a program of the site. Many such programs leave a second one running, which sends it.
pub(crate) fn of_mail(program: &MailProgram, item: &NotifyItem, subject: &str, address: &str) -> Order {
    let mut arguments = vec!["-s".into(), subject.to_owned()];
    arguments.extend(program.end_of_options.then(|| "--".into()));
    arguments.push(address.into());
    Order {
        program: program.path.clone(),
        arguments,
        environment: environment(item, &program.account),
        input: message::body(item),
        account: program.account.change.clone(),
        limit_seconds: program.limit.as_secs(),
        lingers: true,
    }
}

/// A program of the site that sends mail.
pub(crate) struct MailProgram {
    pub path: String,
    /// The user that it runs as.
    pub account: Account,
    /// Whether to put `--` before the address.
    pub end_of_options: bool,
    pub limit: Duration,
}

/// Has a mail program send a mail.
pub(crate) async fn mail(supervisor: &Path, order: &Order) -> Result<(), DeliveryError> {
    run(supervisor, order, MAX_MAIL_OUTPUT_BYTES).await
}

/// Has a supervisor carry out an order; `Ok` means that the program exited with 0. Dropping the future kills
/// everything.
pub(crate) async fn run(supervisor: &Path, order: &Order, max_output_bytes: usize) -> Result<(), DeliveryError> {
    let no_supervisor = |error: std::io::Error| DeliveryError::Temporary(format!("no supervisor of commands: {error}"));
    // Nothing here may need code between fork and exec: that would copy the page tables of the notifier.
    let mut child = Command::new(supervisor)
        .arg(ARGUMENT)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(no_supervisor)?;
    let (Some(mut lifeline), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(no_supervisor(std::io::ErrorKind::NotConnected.into()));
    };
    let output = tokio::spawn(read(stderr, max_output_bytes));
    let mut line = serde_json::to_vec(order).map_err(|error| no_supervisor(error.into()))?;
    line.push(b'\n');
    lifeline.write_all(&line).await.map_err(no_supervisor)?;
    let mut report = String::new();
    let patience = Duration::from_secs(order.limit_seconds).saturating_add(REPORT_PATIENCE);
    let heard = timeout(patience, BufReader::new(stdout).read_line(&mut report)).await;
    let Ok(report) = serde_json::from_str(&report) else {
        let why = if heard.is_err() { "it does not report" } else { "it was killed" };
        return Err(no_supervisor(std::io::Error::other(why)));
    };
    tokio::spawn(async move {
        // Whatever may keep running does so while this end of the lifeline is open.
        let _ = child.wait().await;
        drop(lifeline);
    });
    let status = match report {
        Report::Ended(status) => ExitStatus::from_raw(status),
        Report::TimedOut => return Err(DeliveryError::Temporary(format!("killed after {} s", order.limit_seconds))),
        Report::NotStarted(why) => {
            return Err(DeliveryError::Temporary(format!("`{}` cannot be started: {why}", order.program)));
        }
    };
    if status.success() {
        return Ok(());
    }
    let written = timeout(OUTPUT_PATIENCE, output).await.ok().and_then(Result::ok).unwrap_or_default();
    let written = String::from_utf8_lossy(&written);
    Err(DeliveryError::Temporary(format!("{status}: {}", written.trim()).trim_end_matches(": ").to_owned()))
}

/// The first bytes of the output; the rest is read and dropped, so that the command does not block.
async fn read(mut source: impl AsyncRead + Unpin, limit: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = [0; 1024];
    while let Ok(count @ 1..) = source.read(&mut chunk).await {
        kept.extend_from_slice(&chunk[..count.min(limit.saturating_sub(kept.len()))]);
    }
    kept
}

fn environment(item: &NotifyItem, account: &Account) -> Vec<(String, String)> {
    [
        ("PATH", PATH.to_owned()),
        ("HOME", account.home.clone()),
        ("USER", account.name.clone()),
        ("LOGNAME", account.name.clone()),
        ("SHELL", "/bin/sh".to_owned()),
        ("MUSTER_CLUSTER", item.cluster.clone()),
        ("MUSTER_EVENT", item.event.clone()),
        ("MUSTER_EVENT_TIME", item.time.to_string()),
        ("MUSTER_JOB_ID", if item.job.number == 0 { String::new() } else { item.job.to_string() }),
        ("MUSTER_JOB_NAME", item.name.clone()),
        ("MUSTER_NODELIST", item.nodes.join(",")),
        ("MUSTER_NOTIFICATION_KEY", item.key()),
        ("MUSTER_QUEUE", item.queue.clone()),
        ("MUSTER_REASON", item.why.clone().unwrap_or_default()),
        ("MUSTER_RUN_ID", item.run.map(|run| run.to_string()).unwrap_or_default()),
    ]
    .into_iter()
    .filter(|(_, value)| !value.contains('\0'))
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}
