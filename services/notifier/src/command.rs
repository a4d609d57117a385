//! Commands: run by the shell as the job's owner, within bounds.

use crate::{DeliveryError, message};
use muster_schemas::{event::Owner, notify::NotifyItem};
use nix::{
    sys::signal::{Signal, killpg},
    unistd::{Gid, Pid, Uid, User, getgrouplist, setgroups},
};
use serde::Deserialize;
use std::{ffi::CString, path::Path, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
};

/// How commands are run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandConfig {
    /// A command that takes longer is killed and has failed, in seconds.
    pub time_limit_seconds: u64,
    /// So much of what a failed command wrote is kept for the error; the rest is dropped.
    pub max_output_bytes: usize,
}

impl Default for CommandConfig {
    fn default() -> Self {
        Self { time_limit_seconds: 60, max_output_bytes: 2048 }
    }
}

/// The search path of commands.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How long a command that has ended may keep its output open by processes that it left.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(1);

/// So much of what a mail program wrote is kept for the error.
const MAX_MAIL_OUTPUT_BYTES: usize = 2048;

/// Runs the command as the job's owner.
pub(crate) async fn run(config: &CommandConfig, item: &NotifyItem, command: &str) -> Result<(), DeliveryError> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]);
    become_owner(&mut shell, &item.owner)?;
    let limit = Duration::from_secs(config.time_limit_seconds.max(1));
    complete(shell, item, String::new(), limit, config.max_output_bytes).await
}

/// Has a program of the site send a mail. It runs as the notifier does, as the site has chosen it.
pub(crate) async fn mail(
    program: &Path,
    item: &NotifyItem,
    address: &str,
    limit: Duration,
) -> Result<(), DeliveryError> {
    let mut command = Command::new(program);
    command.arg("-s").arg(message::subject(item)).arg(address);
    complete(command, item, message::body(item), limit, MAX_MAIL_OUTPUT_BYTES).await
}

/// Runs a command to its end; `Ok` means that it exited with 0. Processes that it leaves in its process group are killed.
async fn complete(
    mut command: Command,
    item: &NotifyItem,
    input: String,
    limit: Duration,
    max_output_bytes: usize,
) -> Result<(), DeliveryError> {
    let mut child = prepare(&mut command, item)
        .spawn()
        .map_err(|error| DeliveryError::Temporary(format!("the command cannot be started: {error}")))?;
    let group = Group(child.id());
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read it all need not.
        tokio::spawn(async move { drop(stdin.write_all(input.as_bytes()).await) });
    }
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let most_of_each = max_output_bytes / 2;
    let output = tokio::spawn(async move {
        let (mut out, err) = tokio::join!(read(stdout, most_of_each), read(stderr, most_of_each));
        out.extend(err);
        out
    });
    let ended = within(&mut child, limit).await;
    drop(group);
    let _ = child.wait().await;
    let status = match ended {
        None => return Err(DeliveryError::Temporary(format!("killed after {} s", limit.as_secs()))),
        Some(status) => status.map_err(|error| DeliveryError::Temporary(error.to_string()))?,
    };
    if status.success() {
        return Ok(());
    }
    let written = tokio::time::timeout(OUTPUT_PATIENCE, output).await.ok().and_then(Result::ok).unwrap_or_default();
    let written = String::from_utf8_lossy(&written);
    Err(DeliveryError::Temporary(format!("{status}: {}", written.trim()).trim_end_matches(": ").to_owned()))
}

async fn within(child: &mut Child, limit: Duration) -> Option<std::io::Result<std::process::ExitStatus>> {
    tokio::time::timeout(limit, child.wait()).await.ok()
}

/// The first bytes of what is written; the rest is read and dropped, so that the command does not wait for us.
async fn read(source: Option<impl AsyncRead + Unpin>, limit: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = [0; 1024];
    let Some(mut source) = source else { return kept };
    while let Ok(count @ 1..) = source.read(&mut chunk).await {
        kept.extend_from_slice(&chunk[..count.min(limit.saturating_sub(kept.len()))]);
    }
    kept
}

/// The process group of a command. Dropping it kills what is left of it.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0.and_then(|leader| i32::try_from(leader).ok()) {
            // It fails if nothing is left, which is the usual case.
            let _ = killpg(Pid::from_raw(leader), Signal::SIGKILL);
        }
    }
}

fn prepare<'c>(command: &'c mut Command, item: &NotifyItem) -> &'c mut Command {
    command
        .current_dir("/")
        .env_clear()
        .envs(environment(item))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
}

fn environment(item: &NotifyItem) -> Vec<(&'static str, String)> {
    let user = User::from_uid(Uid::from_raw(item.owner.uid)).ok().flatten();
    let home = user.map_or_else(|| "/".to_owned(), |user| user.dir.to_string_lossy().into_owned());
    vec![
        ("PATH", PATH.to_owned()),
        ("HOME", home),
        ("USER", item.owner.user.clone()),
        ("LOGNAME", item.owner.user.clone()),
        ("SHELL", "/bin/sh".to_owned()),
        ("MUSTER_CLUSTER", item.cluster.clone()),
        ("MUSTER_EVENT", item.event.clone()),
        ("MUSTER_EVENT_TIME", item.time.to_string()),
        ("MUSTER_JOB_ID", item.job.to_string()),
        ("MUSTER_JOB_NAME", item.name.clone()),
        ("MUSTER_NODELIST", item.nodes.join(",")),
        ("MUSTER_NOTIFICATION_KEY", item.key()),
        ("MUSTER_QUEUE", item.queue.clone()),
        ("MUSTER_RUN_ID", item.run.map(|run| run.to_string()).unwrap_or_default()),
    ]
    .into_iter()
    .filter(|(_, value)| !value.contains('\0'))
    .collect()
}

/// Has the command run as the owner, with the owner's groups. Only root can do that for somebody else.
fn become_owner(command: &mut Command, owner: &Owner) -> Result<(), DeliveryError> {
    let own = Uid::effective();
    if own.as_raw() == owner.uid {
        return Ok(());
    }
    if !own.is_root() {
        let reason = format!("the notifier does not run as root and cannot run commands as {}", owner.user);
        return Err(DeliveryError::Permanent(reason));
    }
    let name = CString::new(owner.user.as_str())
        .map_err(|_| DeliveryError::Permanent("the owner's name holds a NUL byte".into()))?;
    let group = Gid::from_raw(owner.gid);
    let groups = getgrouplist(&name, group).unwrap_or_else(|_| vec![group]);
    let (uid, gid) = (owner.uid, owner.gid);
    // SAFETY: between fork and exec only system calls are made; nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            setgroups(&groups)?;
            nix::unistd::setgid(Gid::from_raw(gid))?;
            nix::unistd::setuid(Uid::from_raw(uid))?;
            Ok(())
        });
    }
    Ok(())
}
