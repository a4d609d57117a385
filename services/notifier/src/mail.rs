//! Mail over SMTP.

use crate::{
    DeliveryError, account,
    command::{self, MailProgram},
    message,
};
use anyhow::{Context as _, ensure};
use lettre::{
    Address, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor,
    message::{Mailbox, header::ContentType},
    transport::smtp::{
        authentication::Credentials,
        client::{Certificate, Tls, TlsParameters},
    },
};
use muster_schemas::{address, notify::NotifyItem, subjects};
use serde::Deserialize;
use std::{path::PathBuf, time::Duration};

/// How mail is sent: to a server, or by a program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MailConfig {
    /// A program that sends mail, instead of a server: called as `PROGRAM -s SUBJECT -- ADDRESS` with the text on its
    /// standard input, like the usual mail programs (SL-C-15). Its limit is `timeout_seconds`.
    pub program: Option<String>,
    /// The unprivileged account that the program runs as. Only a notifier that is root can switch to it; any other runs
    /// the program as itself.
    pub account: String,
    /// Whether to put `--` before the address. A program may want exactly three words (SL-C-15).
    pub end_of_options: bool,
    /// The mail server's host name or address. Without it and without a program, each mail fails at once.
    pub host: String,
    /// Its port: 25 for relays, 587 for `starttls`, 465 for `tls`.
    pub port: u16,
    /// Whether and how the connection is encrypted.
    pub tls: MailTls,
    /// A PEM file with certificates of authorities to trust in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// The user name, if the server wants one.
    pub username: Option<String>,
    /// A file with the password; line ends at its end are ignored.
    pub password_file: Option<PathBuf>,
    /// The sender of mail.
    pub from: String,
    /// A server that does not answer for this long has failed, in seconds.
    pub timeout_seconds: u64,
}

impl Default for MailConfig {
    fn default() -> Self {
        Self {
            program: None,
            account: "nobody".into(),
            end_of_options: true,
            host: String::new(),
            port: 25,
            tls: MailTls::None,
            ca_file: None,
            username: None,
            password_file: None,
            from: "muster@localhost".into(),
            timeout_seconds: 30,
        }
    }
}

/// Whether and how the connection to a mail server is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailTls {
    /// It is not.
    #[default]
    None,
    /// It begins in the clear and must become encrypted before anything else is sent.
    Starttls,
    /// It is encrypted from the first byte.
    Tls,
}

/// Sends mail to one server, or by one program.
pub(crate) struct Mailer {
    program: Option<MailProgram>,
    supervisor: PathBuf,
    server: Option<AsyncSmtpTransport<Tokio1Executor>>,
    from: Mailbox,
}

impl Mailer {
    /// A mailer with these settings, whose program runs under this supervisor. It does not connect yet.
    pub(crate) fn new(config: &MailConfig, supervisor: PathBuf) -> anyhow::Result<Self> {
        let address: Address =
            config.from.parse().with_context(|| format!("`{}` is not a mail address to send from", config.from))?;
        let from = Mailbox::new(Some("muster".into()), address);
        let limit = Duration::from_secs(config.timeout_seconds.max(1));
        let mut mailer = Self { program: None, supervisor, server: None, from };
        if let Some(path) = config.program.clone() {
            ensure!(config.host.is_empty(), "mail has both a `program` and a `host`: give it one of them");
            let account = account::of_mail(&config.account).context("[notifier.mail] account")?;
            mailer.program = Some(MailProgram { path, account, end_of_options: config.end_of_options, limit });
            return Ok(mailer);
        }
        if config.host.is_empty() {
            return Ok(mailer);
        }
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&config.host)
            .port(config.port)
            .tls(tls(config)?)
            .timeout(Some(limit));
        if let Some(username) = &config.username {
            builder = builder.credentials(Credentials::new(username.clone(), password(config)?));
        }
        mailer.server = Some(builder.build());
        Ok(mailer)
    }

    /// Sends a notification; `Ok` means that the server or the program has accepted it.
    pub(crate) async fn send(&self, item: &NotifyItem, subject: &str, address: &str) -> Result<(), DeliveryError> {
        // The sender of the notification checked it, but an address must not come this far unchecked.
        if let Err(why) = address::check(address) {
            return Err(DeliveryError::Permanent(format!("`{address}` is not a mail address: it {why}")));
        }
        if let Some(program) = &self.program {
            return command::mail(&self.supervisor, &command::of_mail(program, item, subject, address)).await;
        }
        let Some(server) = &self.server else {
            return Err(DeliveryError::Permanent("neither a mail server nor a mail program is configured".into()));
        };
        let mail = self.compose(item, subject, address)?;
        match server.send(mail).await {
            Ok(_) => Ok(()),
            Err(error) if is_final(&error) => Err(DeliveryError::Permanent(with_sources(&error))),
            Err(error) => Err(DeliveryError::Temporary(with_sources(&error))),
        }
    }

    fn compose(&self, item: &NotifyItem, subject: &str, address: &str) -> Result<Message, DeliveryError> {
        // A login name belongs to the domain of the sender address.
        let domain = if address.contains('@') { String::new() } else { format!("@{}", self.from.email.domain()) };
        let to: Mailbox = format!("{address}{domain}")
            .parse()
            .map_err(|error| DeliveryError::Permanent(format!("`{address}` is not a mail address: {error}")))?;
        Message::builder()
            .from(self.from.clone())
            .to(to)
            .subject(subject)
            .message_id(Some(self.message_id(item)))
            .header(ContentType::TEXT_PLAIN)
            .body(message::body(item))
            .map_err(|error| DeliveryError::Permanent(format!("the mail cannot be composed: {error}")))
    }

    /// Derived from the event, so that a mail sent twice is recognised as the same.
    fn message_id(&self, item: &NotifyItem) -> String {
        let cluster = subjects::token(&item.cluster).replace('%', "=");
        format!("<muster.{cluster}.{}.{}.{}@{}>", item.job, item.of, item.notification, self.from.email.domain())
    }
}

fn tls(config: &MailConfig) -> anyhow::Result<Tls> {
    if config.tls == MailTls::None {
        ensure!(config.username.is_none(), "a mail password is never sent in the clear: set tls to starttls or tls");
        return Ok(Tls::None);
    }
    let mut builder = TlsParameters::builder(config.host.clone());
    if let Some(path) = &config.ca_file {
        let pem = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let certificate =
            Certificate::from_pem(&pem).with_context(|| format!("{} holds no PEM certificate", path.display()))?;
        builder = builder.add_root_certificate(certificate);
    }
    let parameters = builder.build().context("TLS for mail cannot be set up")?;
    Ok(match config.tls {
        MailTls::Starttls => Tls::Required(parameters),
        _ => Tls::Wrapper(parameters),
    })
}

fn password(config: &MailConfig) -> anyhow::Result<String> {
    let path = config.password_file.as_ref().context("a mail user name needs a password_file")?;
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Whether the server will never accept this mail. A refused login is a fault of the settings, which can be corrected
/// between attempts.
fn is_final(error: &lettre::transport::smtp::Error) -> bool {
    let about_login = error.status().is_some_and(|code| matches!(u16::from(code), 530 | 534 | 535 | 538));
    error.is_permanent() && !about_login
}

fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
