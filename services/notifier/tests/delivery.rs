//! Deliveries to a real mail server and by real commands, over the in-process bus.

use muster_bus::{LocalBus, Message, SharedBus, WorkQueue};
use muster_dialect::{Dialect, Dialects};
use muster_notifier::{CommandConfig, Config, MailConfig, MailTls, RetryConfig};
use muster_schemas::{
    JobId, RunId, Sequence, Timestamp,
    command::{Answer, Command, CommandEnvelope, Reply},
    event::{DeliveryResult, Owner},
    job::{ExitStatus, Occasion, Outcome, Sink},
    notify::NotifyItem,
    subjects,
};
use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Nothing here takes long; a test that waits this long has failed.
const DEADLINE: Duration = Duration::from_secs(30);

/// A mail server in a separate process.
struct SmtpServer {
    process: Child,
    lines: mpsc::UnboundedReceiver<serde_json::Value>,
    port: u16,
}

impl SmtpServer {
    async fn start(options: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smtp_server.py");
        let mut process = std::process::Command::new(python())
            .arg(script)
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the mail server for tests cannot be started; ops/test installs what it needs");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, mut lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let value: serde_json::Value = serde_json::from_str(&line).expect("the mail server speaks JSON");
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        let first = tokio::time::timeout(DEADLINE, lines.recv()).await.expect("it listens in time");
        let first = first.expect("the mail server has ended: is aiosmtpd installed? ops/test does that");
        let port = first["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
        Self { process, lines, port }
    }

    async fn line(&mut self) -> serde_json::Value {
        tokio::time::timeout(DEADLINE, self.lines.recv()).await.expect("in time").expect("the mail server runs")
    }

    fn mail_config(&self) -> MailConfig {
        MailConfig { host: "127.0.0.1".into(), port: self.port, timeout_seconds: 5, ..MailConfig::default() }
    }
}

impl Drop for SmtpServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The Python that has aiosmtpd.
fn python() -> PathBuf {
    if let Some(python) = std::env::var_os("MUSTER_PYTHON") {
        return python.into();
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.expect("set MUSTER_PYTHON to a Python with aiosmtpd, or run ops/test");
    let python = target.join("../python/bin/python");
    assert!(python.exists(), "{} is missing: set MUSTER_PYTHON, or run ops/test", python.display());
    python
}

/// A notifier on its own bus, and a ledger that accepts everything.
struct World {
    bus: SharedBus,
    done: mpsc::UnboundedReceiver<CommandEnvelope>,
    _shutdown: DropGuard,
}

impl World {
    async fn start(config: Config) -> Self {
        let bus: SharedBus = LocalBus::new();
        let mut requests = bus.serve(subjects::COMMAND_NOTIFIER).await.expect("served");
        let (sender, done) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(request) = requests.next().await {
                let envelope: CommandEnvelope = request.message.decode().expect("a command");
                let _ = sender.send(envelope);
                let answer = Answer { sequence: Sequence(1), result: Ok(Reply::Done) };
                request.reply(Message::encode(&answer).expect("encoded"));
            }
        });
        let shutdown = CancellationToken::new();
        let (ready, is_ready) = oneshot::channel();
        tokio::spawn(muster_notifier::serve(bus.clone(), config, DIALECTS, ready, shutdown.clone()));
        tokio::time::timeout(DEADLINE, is_ready).await.expect("in time").expect("the notifier starts");
        Self { bus, done, _shutdown: shutdown.drop_guard() }
    }

    async fn enqueue(&self, item: &NotifyItem) {
        let message = Message::encode(item).expect("encoded");
        self.bus.enqueue(&WorkQueue::NOTIFY, &item.key(), message).await.expect("enqueued");
    }

    /// The next result that the ledger receives.
    async fn result(&mut self) -> DeliveryResult {
        let envelope = tokio::time::timeout(DEADLINE, self.done.recv()).await.expect("in time").expect("told");
        match envelope.command {
            Command::NotificationDone { result, .. } => result,
            other => panic!("unexpected command {other:?}"),
        }
    }

    async fn given_up(&mut self) -> (u32, String) {
        match self.result().await {
            DeliveryResult::GivenUp { attempts, error } => (attempts, error),
            DeliveryResult::Delivered => panic!("it was delivered"),
        }
    }
}

fn quick_retry() -> RetryConfig {
    RetryConfig { first_pause_seconds: 0.05, longest_pause_seconds: 0.2, ..RetryConfig::default() }
}

fn mail_config(mail: MailConfig) -> Config {
    Config { mail, retry: quick_retry(), supervisor: supervisor(), ..Config::default() }
}

fn supervisor() -> PathBuf {
    let tests = std::env::current_exe().expect("known");
    let program = tests.ancestors().nth(2).expect("it is in deps").join("examples/muster-command-supervisor");
    assert!(program.exists(), "{} is missing: build the examples of muster-notifier", program.display());
    program
}

fn exec_config(command: CommandConfig, max_attempts: u64) -> Config {
    let retry = RetryConfig { max_attempts, ..quick_retry() };
    Config { command, retry, supervisor: supervisor(), ..Config::default() }
}

fn item(sink: Sink) -> NotifyItem {
    NotifyItem {
        job: JobId::job(12),
        of: Sequence(345),
        notification: 0,
        occasion: Occasion::Ended,
        sink,
        time: Timestamp::now(),
        event: "completed".into(),
        outcome: Some(Outcome::Completed),
        cluster: "muster".into(),
        name: "Simulation für Müller\nBcc: nobody@example.org".into(),
        owner: Owner { user: "root".into(), uid: 0, gid: 0 },
        queue: "default".into(),
        run: Some(RunId(9)),
        nodes: vec!["node1".into(), "node2".into()],
        submitted: Timestamp::now(),
        started: Some(Timestamp::now()),
        task_outcomes: None,
        output: None,
        dialect: None,
        is_tried_once: false,
        why: None,
        program: None,
    }
}

/// A dialect with its own subjects.
#[derive(Debug)]
struct Spoken;

impl Dialect for Spoken {
    fn name(&self) -> &'static str {
        "spoken"
    }

    fn mail_subject(&self, item: &NotifyItem) -> Option<String> {
        Some(format!("{} has gone", item.name))
    }
}

const DIALECTS: Dialects = Dialects::new(&[&Spoken], None);

fn mail_item() -> NotifyItem {
    item(Sink::Mail("user@example.org".into()))
}

/// A notification has one key, whatever happens on the way (M-NOT-2).
#[tokio::test]
async fn mail_arrives_with_a_stable_message_id_and_nothing_injected() {
    let mut server = SmtpServer::start(&[]).await;
    let mut world = World::start(mail_config(server.mail_config())).await;
    world.enqueue(&mail_item()).await;
    let mail = server.line().await;
    assert_eq!(mail["to"], serde_json::json!(["user@example.org"]));
    assert_eq!(mail["message_id"], "<muster.muster.12.345.0@localhost>");
    assert_eq!(mail["subject"], "[muster] job 12 (Simulation für Müller Bcc: nobody@example.org) completed");
    assert!(mail["body"].as_str().is_some_and(|body| body.contains("node1,node2")), "{mail}");
    assert_eq!(world.result().await, DeliveryResult::Delivered);
}

/// D27: information that people want about a finished job.
#[tokio::test]
async fn mail_at_the_end_has_run_time_exit_status_and_output_file() {
    let mut server = SmtpServer::start(&[]).await;
    let mut world = World::start(mail_config(server.mail_config())).await;
    let started = Timestamp::from_unix_seconds(1_000_000);
    let over = NotifyItem {
        event: "failed".into(),
        outcome: Some(Outcome::Failed(ExitStatus::Code(3))),
        started: Some(started),
        time: started.plus_seconds(3 * 3600 + 62),
        output: Some("/home/ada/muster-12.out".into()),
        ..mail_item()
    };
    world.enqueue(&over).await;
    let body = server.line().await["body"].as_str().unwrap_or_default().to_owned();
    for line in ["Run time   03:01:02", "Exit       exit status 3", "Output     /home/ada/muster-12.out"] {
        assert!(body.lines().any(|has| has == line), "{line}:\n{body}");
    }
    assert_eq!(world.result().await, DeliveryResult::Delivered);
    let begun = NotifyItem { of: Sequence(346), outcome: None, event: "started".into(), ..mail_item() };
    world.enqueue(&begun).await;
    let body = server.line().await["body"].as_str().unwrap_or_default().to_owned();
    assert!(!body.contains("Run time") && !body.contains("Exit"), "{body}");
}

#[tokio::test]
async fn a_login_name_is_of_the_domain_that_mail_comes_from() {
    let mut server = SmtpServer::start(&[]).await;
    let mail = MailConfig { from: "muster@site.example".into(), ..server.mail_config() };
    let mut world = World::start(mail_config(mail)).await;
    world.enqueue(&item(Sink::Mail("ada".into()))).await;
    assert_eq!(server.line().await["to"], serde_json::json!(["ada@site.example"]));
    assert_eq!(world.result().await, DeliveryResult::Delivered);
}

/// A folder with a mail program that anybody may run and that may write there.
struct MailProgram {
    folder: tempfile::TempDir,
}

impl MailProgram {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("its own file");
        };
        let program = folder.path().join("mail");
        std::fs::write(&program, format!("#!/bin/sh\ncd {} || exit\n{script}\n", folder.path().display()))
            .expect("written");
        mode(&program, 0o755);
        mode(folder.path(), 0o777);
        Self { folder }
    }

    fn config(&self) -> MailConfig {
        MailConfig { program: Some(self.folder.path().join("mail").display().to_string()), ..MailConfig::default() }
    }

    /// The contents of a file that it wrote, which is complete once the mail was delivered.
    fn wrote(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

/// SL-C-15, EX-22: `-s <subject> <user>`; F0: only the end of options before the address.
#[tokio::test]
async fn a_mail_program_is_called_with_the_subject_and_the_address() {
    let program = MailProgram::new("for word in \"$@\"; do echo \"<$word>\"; done >said; cat >>said");
    let begin = Timestamp::from_unix_seconds(1_000_000);
    let cancelled = NotifyItem {
        name: "bash".into(),
        outcome: Some(Outcome::Cancelled),
        started: Some(begin),
        time: begin.plus_seconds(8),
        dialect: Some("spoken".into()),
        ..item(Sink::Mail("adam".into()))
    };
    for (end_of_options, words) in [(true, "<-->\n"), (false, "")] {
        let mut world = World::start(mail_config(MailConfig { end_of_options, ..program.config() })).await;
        world.enqueue(&cancelled).await;
        assert_eq!(world.result().await, DeliveryResult::Delivered);
        let said = program.wrote("said");
        let subject = "bash has gone";
        assert!(said.starts_with(&format!("<-s>\n<{subject}>\n{words}<adam>\n")), "{said}");
        assert!(said.contains("node1,node2"), "{said}");
    }
}

/// F0: not as root, nor with its groups, its environment or its files.
#[tokio::test]
async fn a_mail_program_runs_as_an_unprivileged_account_with_nothing_of_the_notifier_s() {
    // An open file that no `exec` closes, as the process that started muster may have left.
    let leaked = std::fs::File::open("/dev/null").expect("there");
    nix::fcntl::fcntl(&leaked, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).expect("set");
    let program = MailProgram::new("{ id -u; id -G; ls /proc/self/fd | wc -l; env; } >said");
    let mut world = World::start(mail_config(program.config())).await;
    world.enqueue(&mail_item()).await;
    assert_eq!(world.result().await, DeliveryResult::Delivered);
    let said = program.wrote("said");
    let mut lines = said.lines();
    let own = nix::unistd::Uid::effective();
    if own.is_root() {
        let id =
            |option| std::process::Command::new("id").args([option, "nobody"]).output().expect("there is id").stdout;
        let expected = String::from_utf8([id("-u"), id("-G")].concat()).expect("numbers");
        assert!(said.starts_with(&expected) && !said.starts_with("0\n"), "{said}");
    } else {
        assert_eq!(lines.next(), Some(own.to_string().as_str()));
        muster_surroundings::skipped("only root can run mail programs as somebody else: the account was not checked");
    }
    // Its three streams, and the folder that `ls` reads.
    assert_eq!(said.lines().nth(2), Some("4"), "{said}");
    let unknown = |line: &&str| {
        line.split_once('=').is_some_and(|(name, _)| {
            !["PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "_", "SHLVL"].contains(&name)
                && !name.starts_with("MUSTER_")
        })
    };
    assert_eq!(said.lines().find(unknown), None, "{said}");
}

/// F0: whatever put it on the queue.
#[tokio::test]
async fn an_address_that_is_an_option_comes_to_no_mail_program() {
    let program = MailProgram::new("touch called");
    let mut world = World::start(mail_config(program.config())).await;
    let addresses = ["--exec=!id>/tmp/ran@x", "-oQ", "a b@x"].map(str::to_owned);
    for (count, address) in (0..).zip(addresses) {
        let item = NotifyItem { of: Sequence(345 + count), ..item(Sink::Mail(address)) };
        world.enqueue(&item).await;
        let (attempts, error) = world.given_up().await;
        assert!(attempts == 1 && error.contains("is not a mail address"), "{error}");
    }
    assert!(!program.folder.path().join("called").exists());
}

/// Mail programs pass the mail to another program and do not wait for it.
#[tokio::test]
async fn what_a_mail_program_leaves_running_may_go_on_until_the_limit() {
    let program = MailProgram::new("(while [ ! -e go ]; do sleep 0.01; done; echo sent >sent) >/dev/null 2>&1 &");
    let mut world = World::start(mail_config(program.config())).await;
    world.enqueue(&mail_item()).await;
    assert_eq!(world.result().await, DeliveryResult::Delivered);
    std::fs::write(program.folder.path().join("go"), "").expect("written");
    let waiting = async {
        while program.wrote("sent").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("it is sent");
}

#[tokio::test]
async fn a_server_that_says_not_now_is_tried_again() {
    let mut server = SmtpServer::start(&["--fail-first", "2"]).await;
    let mut world = World::start(mail_config(server.mail_config())).await;
    world.enqueue(&mail_item()).await;
    assert_eq!(server.line().await["refused"], 1);
    assert_eq!(server.line().await["refused"], 2);
    assert!(server.line().await["to"].is_array());
    assert_eq!(world.result().await, DeliveryResult::Delivered);
}

/// Delivery waits for a mail server that is down (M-NOT-1).
#[tokio::test]
async fn a_server_that_is_down_is_waited_for() {
    let port = {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        socket.local_addr().expect("bound").port()
    };
    let mail = MailConfig { host: "127.0.0.1".into(), port, ..MailConfig::default() };
    let mut world = World::start(mail_config(mail)).await;
    world.enqueue(&mail_item()).await;
    wait_for_metric("muster_notification_attempts_total{result=\"failed\",sink=\"mail\"}").await;
    let mut server = SmtpServer::start(&["--port", &port.to_string()]).await;
    assert!(server.line().await["to"].is_array());
    assert_eq!(world.result().await, DeliveryResult::Delivered);
}

/// Waits until a metric exists, whatever the order of its labels.
async fn wait_for_metric(wanted: &str) {
    let labels = |line: &str| {
        let mut parts: Vec<String> = line.split(['{', '}', ',']).map(str::to_owned).collect();
        parts.sort();
        parts
    };
    let wanted = labels(wanted);
    let found = || {
        let text = muster_telemetry::metrics::render_prometheus();
        text.lines().filter_map(|line| line.rsplit_once(' ')).any(|(series, _)| labels(series) == wanted)
    };
    let waiting = async {
        while !found() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("the metric appears");
}

#[tokio::test]
async fn a_mailbox_that_does_not_exist_is_given_up_at_once() {
    let server = SmtpServer::start(&["--refuse"]).await;
    let mut world = World::start(mail_config(server.mail_config())).await;
    world.enqueue(&mail_item()).await;
    let (attempts, error) = world.given_up().await;
    assert_eq!(attempts, 1);
    assert!(error.contains("no such mailbox"), "{error}");
}

#[tokio::test]
async fn an_address_that_is_none_is_given_up_at_once() {
    let server = SmtpServer::start(&[]).await;
    let mut world = World::start(mail_config(server.mail_config())).await;
    world.enqueue(&item(Sink::Mail("nobody at nowhere".into()))).await;
    let (attempts, error) = world.given_up().await;
    assert_eq!(attempts, 1);
    assert!(error.contains("not a mail address"), "{error}");
}

#[tokio::test]
async fn mail_goes_encrypted_and_with_a_password_where_the_server_wants_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = CertificateFiles::make(folder.path());
    let password_file = folder.path().join("password");
    std::fs::write(&password_file, "secret\n").expect("written");
    let mut server = SmtpServer::start(&[
        "--certificate",
        &files.certificate,
        "--key",
        &files.key,
        "--user",
        "muster",
        "--password",
        "secret",
    ])
    .await;
    let mail = MailConfig {
        host: "localhost".into(),
        tls: MailTls::Starttls,
        ca_file: Some(files.certificate.clone().into()),
        username: Some("muster".into()),
        password_file: Some(password_file),
        ..server.mail_config()
    };
    let mut world = World::start(mail_config(mail)).await;
    world.enqueue(&mail_item()).await;
    let mail = server.line().await;
    assert_eq!((&mail["encrypted"], &mail["user"]), (&true.into(), &"muster".into()));
    assert_eq!(world.result().await, DeliveryResult::Delivered);
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_gets_no_mail() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = CertificateFiles::make(folder.path());
    let server = SmtpServer::start(&["--certificate", &files.certificate, "--key", &files.key]).await;
    let mail = MailConfig { host: "localhost".into(), tls: MailTls::Starttls, ..server.mail_config() };
    let retry = RetryConfig { max_attempts: 2, ..quick_retry() };
    let mut world = World::start(Config { retry, ..mail_config(mail) }).await;
    world.enqueue(&mail_item()).await;
    let (attempts, error) = world.given_up().await;
    assert_eq!(attempts, 2);
    assert!(error.contains("certificate"), "{error}");
}

struct CertificateFiles {
    certificate: String,
    key: String,
}

impl CertificateFiles {
    fn make(folder: &Path) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("written");
            path.to_string_lossy().into_owned()
        };
        Self {
            certificate: write("certificate.pem", made.cert.pem()),
            key: write("key.pem", made.signing_key.serialize_pem()),
        }
    }
}

#[tokio::test]
async fn a_command_learns_what_happened() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("out");
    let mut world = World::start(exec_config(CommandConfig::default(), 1)).await;
    let command = format!(
        "echo \"$MUSTER_JOB_ID $MUSTER_EVENT $MUSTER_NODELIST $MUSTER_RUN_ID $MUSTER_NOTIFICATION_KEY\" > {}",
        file.display()
    );
    world.enqueue(&item(Sink::Exec(command))).await;
    assert_eq!(world.result().await, DeliveryResult::Delivered);
    assert_eq!(std::fs::read_to_string(file).expect("written"), "12 completed node1,node2 9 12/345/0\n");
}

#[tokio::test]
async fn a_command_that_fails_is_tried_again_and_given_up_with_what_it_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("attempts");
    let mut world = World::start(exec_config(CommandConfig::default(), 3)).await;
    let command = format!("echo attempt >> {}; echo broken pump >&2; exit 7", file.display());
    world.enqueue(&item(Sink::Exec(command))).await;
    let (attempts, error) = world.given_up().await;
    assert_eq!(attempts, 3);
    assert!(error.contains('7') && error.contains("broken pump"), "{error}");
    assert_eq!(std::fs::read_to_string(file).expect("written").lines().count(), 3);
}

/// The program of a trigger runs once, and one on nodes belongs to no job.
#[tokio::test]
async fn a_command_that_is_tried_once_is_given_up_when_it_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("attempts");
    let mut world = World::start(exec_config(CommandConfig::default(), 3)).await;
    let command = format!("echo \"attempt for <$MUSTER_JOB_ID>\" >> {}; exit 7", file.display());
    let of_trigger = NotifyItem { job: JobId::job(0), is_tried_once: true, ..item(Sink::Exec(command)) };
    world.enqueue(&of_trigger).await;
    assert_eq!(world.given_up().await.0, 1);
    assert_eq!(std::fs::read_to_string(file).expect("written"), "attempt for <>\n");
}

#[tokio::test]
async fn a_command_that_hangs_is_killed_with_what_it_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let pid_file = folder.path().join("pid");
    let config = exec_config(CommandConfig { time_limit_seconds: 1, ..CommandConfig::default() }, 1);
    let mut world = World::start(config).await;
    let command = format!("sleep 1000 & echo $! > {}; wait", pid_file.display());
    world.enqueue(&item(Sink::Exec(command))).await;
    let (_, error) = world.given_up().await;
    assert!(error.contains("killed after 1 s"), "{error}");
    let pid = std::fs::read_to_string(pid_file).expect("it ran");
    wait_until_gone(pid.trim()).await;
}

/// F18: not even in a session of its own, and after its parent has ended.
#[tokio::test]
async fn a_command_that_ends_leaves_nothing_running() {
    let folder = tempfile::tempdir().expect("a folder");
    let pid_file = folder.path().join("pid");
    let mut world = World::start(exec_config(CommandConfig::default(), 1)).await;
    let pid = pid_file.display();
    let command = format!(
        "(setsid sh -c 'echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 1000' &) & \
                           while [ ! -e {pid} ]; do sleep 0.01; done"
    );
    world.enqueue(&item(Sink::Exec(command))).await;
    assert_eq!(world.result().await, DeliveryResult::Delivered);
    let pid = std::fs::read_to_string(pid_file).expect("it ran");
    wait_until_gone(pid.trim()).await;
}

/// A killed notifier cannot end what it runs; the supervisor sees that it is gone.
#[tokio::test]
async fn a_command_ends_with_its_notifier() {
    let folder = tempfile::tempdir().expect("a folder");
    let pid_file = folder.path().join("pid");
    let config = exec_config(CommandConfig { time_limit_seconds: 1000, ..CommandConfig::default() }, 1);
    let world = World::start(config).await;
    world.enqueue(&item(Sink::Exec(format!("echo $$ >{}; setsid sleep 1000", pid_file.display())))).await;
    let read = || std::fs::read_to_string(&pid_file).unwrap_or_default();
    let started = async {
        while !read().ends_with('\n') {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, started).await.expect("it starts");
    drop(world);
    wait_until_gone(read().trim()).await;
}

async fn wait_until_gone(pid: &str) {
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_gone = || state().is_empty() || state().contains(") Z ");
    let waiting = async {
        while !is_gone() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("the process is gone");
}

#[tokio::test]
async fn output_without_end_is_bounded() {
    let command = CommandConfig { time_limit_seconds: 1, max_output_bytes: 64 };
    let mut world = World::start(exec_config(command, 1)).await;
    world.enqueue(&item(Sink::Exec("head -c 3000000 /dev/zero | tr '\\0' x; exit 1".into()))).await;
    let (_, error) = world.given_up().await;
    assert!(error.len() < 200, "{} bytes", error.len());
}

#[tokio::test]
async fn a_command_runs_as_the_owner() {
    if !nix::unistd::Uid::effective().is_root() {
        // Others' commands are then refused, which is visible.
        let mut world = World::start(exec_config(CommandConfig::default(), 5)).await;
        world.enqueue(&item(Sink::Exec("true".into()))).await;
        let (attempts, error) = world.given_up().await;
        assert!(attempts == 1 && error.contains("does not run as root"), "{error}");
        return muster_surroundings::skipped("only root runs commands as others");
    }
    let nobody = nix::unistd::User::from_name("nobody").expect("readable").expect("there");
    let mut world = World::start(exec_config(CommandConfig::default(), 1)).await;
    let owner = Owner { user: "nobody".into(), uid: nobody.uid.as_raw(), gid: nobody.gid.as_raw() };
    let command = "test \"$(id -un)\" = nobody && test \"$(id -G)\" = \"$(id -G nobody)\" && test \"$USER\" = nobody";
    world.enqueue(&NotifyItem { owner, ..item(Sink::Exec(command.into())) }).await;
    assert_eq!(world.result().await, DeliveryResult::Delivered);
}

#[tokio::test]
async fn an_item_that_cannot_be_read_does_not_stop_the_others() {
    let mut world = World::start(exec_config(CommandConfig::default(), 1)).await;
    let garbage = Message::new(&b"garbage"[..]);
    world.bus.enqueue(&WorkQueue::NOTIFY, "garbage", garbage).await.expect("enqueued");
    world.enqueue(&item(Sink::Exec("true".into()))).await;
    assert_eq!(world.result().await, DeliveryResult::Delivered);
}

#[tokio::test]
async fn a_ledger_that_is_away_learns_the_result_later_under_the_same_command() {
    let bus: SharedBus = LocalBus::new();
    let shutdown = CancellationToken::new();
    let (ready, is_ready) = oneshot::channel();
    tokio::spawn(muster_notifier::serve(
        bus.clone(),
        exec_config(CommandConfig::default(), 1),
        DIALECTS,
        ready,
        shutdown.clone(),
    ));
    is_ready.await.expect("started");
    let _stop = shutdown.drop_guard();
    let item = item(Sink::Exec("true".into()));
    let message = Message::encode(&item).expect("encoded");
    bus.enqueue(&WorkQueue::NOTIFY, &item.key(), message).await.expect("enqueued");
    wait_for_metric("muster_notification_attempts_total{result=\"delivered\",sink=\"exec\"}").await;
    let mut requests = bus.serve(subjects::COMMAND_NOTIFIER).await.expect("served");
    let request = tokio::time::timeout(DEADLINE, requests.next()).await.expect("in time").expect("a request");
    let envelope: CommandEnvelope = request.message.decode().expect("a command");
    let key = item.key();
    assert_eq!(envelope.id, muster_schemas::CommandId::derived(&[b"notification", key.as_bytes()]));
}

/// OAR-E-03, OAR-E-08: a program of the site gets its own words as they are and the names of nodes on its standard input. It
/// runs once, within its time, and never as root.
#[tokio::test]
async fn a_program_of_the_site_gets_names_on_its_standard_input() {
    use muster_schemas::energy::SiteProgram;
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    let file = folder.path().join("seen");
    let mut world = World::start(exec_config(CommandConfig::default(), 3)).await;
    let program = |script: &str, account: &str, of| {
        let script = script.replace("FILE", &file.display().to_string());
        let words = ["/bin/sh", "-c", &script, "$(id)", "a b;c"].map(str::to_owned).to_vec();
        let program = SiteProgram { words, input: "node1\nnode2\n".into(), limit_seconds: 1, until: Timestamp::MAX };
        let owner = Owner { user: account.into(), uid: u32::MAX, gid: u32::MAX };
        let (job, sink) = (JobId::job(0), Sink::Exec("exit 9".into()));
        NotifyItem { job, of: Sequence(of), owner, is_tried_once: true, program: Some(program), ..item(sink) }
    };
    world.enqueue(&program("echo \"$0|$1|$(id -u)\" > FILE; cat >> FILE", "nobody", 1)).await;
    assert_eq!(world.result().await, DeliveryResult::Delivered);
    let seen = std::fs::read_to_string(&file).expect("written");
    let uid =
        if nix::unistd::Uid::effective().is_root() { "65534".to_owned() } else { nix::unistd::getuid().to_string() };
    assert_eq!(seen, format!("$(id)|a b;c|{uid}\nnode1\nnode2\n"));
    world.enqueue(&program("echo no power >&2; exit 3", "nobody", 2)).await;
    let (attempts, error) = world.given_up().await;
    assert!(attempts == 1 && error.contains("no power"), "{error}");
    world.enqueue(&program("sleep 100", "nobody", 3)).await;
    assert!(world.given_up().await.1.contains("killed after 1 s"));
    if nix::unistd::Uid::effective().is_root() {
        world.enqueue(&program("true", "root", 4)).await;
        let (_, error) = world.given_up().await;
        assert!(error.contains("never run as root"), "{error}");
    }
}
