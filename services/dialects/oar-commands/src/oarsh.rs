//! `oarsh` and `oarcp`: commands and files on the nodes of a job (OAR-X-04). What is started there is a step of the job: it
//! has the job's cores and ends with the job. Outside of a job nothing is reached.

use super::{
    ended::{Ended, Failure, print},
    interactive, jobs,
    lower::shell_words,
    site::Site,
};
use muster_cli::{
    connection::ConnectionOptions,
    stderr_line,
    step::attend::{Attendance, attend},
    terminal::size,
};
use muster_client::{Moment, StepAddress};
use muster_names::User;
use muster_oar::{
    dialect,
    text::{decimal, shown},
};
use muster_schemas::{
    CommandId, JobId,
    steps::{StepInput, StepOutput, StepSpec, StepStreams},
    views::RunNodeView,
};
use nix::unistd::Uid;
use std::{
    io::IsTerminal as _,
    path::Path,
    process::{Child, Command, Stdio},
};

/// How long a command waits for its node.
const WAIT_SECONDS: u32 = 60;
/// The exit status if nothing is started, as `ssh` has it.
const FAILED: u8 = 255;
/// The letters of options of `ssh` that take nothing and mean nothing here.
const IGNORED: &str = "46AaCfgKkMNqTtVvXxYy";
/// The letters of those that take a value.
const IGNORED_WITH_VALUE: &str = "bceiOoFpSw";

fn failed(text: impl std::fmt::Display) -> Failure {
    Failure { text: text.to_string(), status: FAILED }
}

/// A command line of `oarsh`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Line {
    user: Option<String>,
    has_no_input: bool,
    host: String,
    words: Vec<String>,
}

impl Line {
    /// Reads it. Options of `ssh` have no effect: no connection is made that they could be about.
    fn read(line: &[String]) -> Result<Self, Failure> {
        let mut read = Self::default();
        let mut words = line.iter();
        while let Some(word) = words.next() {
            let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
                return read.at_host(word, words.cloned().collect());
            };
            if letters == "-" {
                let host = words.next().ok_or_else(usage)?;
                return read.at_host(host, words.cloned().collect());
            }
            for (at, letter) in letters.char_indices() {
                let rest = &letters[at + letter.len_utf8()..];
                let mut value = || match rest {
                    "" => {
                        words.next().cloned().ok_or_else(|| failed(format_args!("the value of -{letter} is missing")))
                    }
                    glued => Ok(glued.to_owned()),
                };
                match letter {
                    'n' => read.has_no_input = true,
                    'l' => {
                        read.user = Some(value()?);
                        break;
                    }
                    letter if IGNORED_WITH_VALUE.contains(letter) => {
                        value()?;
                        break;
                    }
                    letter if IGNORED.contains(letter) => {}
                    letter => return Err(failed(format_args!("no option is called -{}", shown(&letter.to_string())))),
                }
            }
        }
        Err(usage())
    }

    fn at_host(mut self, host: &str, words: Vec<String>) -> Result<Self, Failure> {
        let (user, host) = host.rsplit_once('@').map_or((None, host), |(user, host)| (Some(user), host));
        self.user = user.map(str::to_owned).or(self.user);
        self.host = host.to_owned();
        self.words = words;
        // What launchers put between the name of the host and the command.
        if self.words.first().is_some_and(|word| word == "--") {
            self.words.remove(0);
        }
        Ok(self)
    }
}

fn usage() -> Failure {
    failed("usage: oarsh [-n] [-l USER] NODE [COMMAND ...]")
}

/// The job that this runs in, or that `OAR_JOB_ID` names.
fn own_job() -> Result<JobId, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let id = variable("OAR_JOB_ID").or_else(|| variable("OAR_JOBID")).ok_or_else(|| {
        failed("it reaches the nodes of a job: call it inside one, or as `OAR_JOB_ID=JOB oarsh NODE COMMAND`")
    })?;
    let number = decimal::<u64>(&id).filter(|number| *number > 0);
    let number = number.ok_or_else(|| failed(format_args!("OAR_JOB_ID: '{}' is no id of a job", shown(&id))))?;
    Ok(JobId::job(number))
}

/// Runs a command line of `oarsh`, and returns the status of the command there.
pub fn run(connection: &ConnectionOptions, line: &[String]) -> Ended {
    if matches!(line, [word] if word == "--help" || word == "-h") {
        print("usage: oarsh [-n] [-l USER] NODE [COMMAND ...]\n");
        return Ok(0);
    }
    let line = Line::read(line)?;
    let job = own_job()?;
    let mut site = Site::open(connection).map_err(|failure| failed(failure.text))?;
    let detail = site.client.job(job, Moment::Now).map_err(failed)?;
    if let Some(user) = line.user.as_ref().filter(|user| **user != detail.job.owner) {
        return Err(failed(format_args!("job {job} is not a job of user '{}'", shown(user))));
    }
    let nodes = detail.runs.iter().rev().find(|run| run.ended.is_none()).map(|run| run.nodes.as_slice());
    let nodes = nodes.filter(|nodes| !nodes.is_empty());
    let nodes = nodes.ok_or_else(|| failed(format_args!("job {job} does not run")))?;
    // Users may give names in full.
    let is_host = |node: &str| node == line.host || line.host.split('.').next() == Some(node);
    let node = nodes.iter().find(|node| is_host(&node.node));
    let node = node.ok_or_else(|| failed(format_args!("'{}' is no node of job {job}", shown(&line.host))))?;
    let spec = spec(&line, node, dialect::hosts(nodes, jobs::is_apart(&detail)));
    let answer = site.client.launch_step(CommandId::new_now(), job, &spec, WAIT_SECONDS).map_err(failed)?;
    let address = StepAddress { job, run: answer.run, step: answer.step };
    let status = attend(site.client.another(), address, &spec, &Attendance::by("oarsh"));
    status.map_err(failed)
}

/// The step: a line for the login shell, or that shell alone.
fn spec(line: &Line, node: &RunNodeView, hosts: Option<String>) -> StepSpec {
    let shell = User::numbered(Uid::effective().as_raw()).map(|user| user.shell).unwrap_or_default();
    let is_terminal = line.words.is_empty() && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut argv = shell_words(&shell);
    if !line.words.is_empty() {
        argv = vec!["/bin/sh".to_owned(), "-c".to_owned(), line.words.join(" ")];
    }
    let input = if line.has_no_input || is_terminal { StepInput::Nothing } else { StepInput::Task(0) };
    StepSpec {
        streams: StepStreams {
            stdin: input,
            stdout: if is_terminal { StepOutput::Discarded } else { StepOutput::Client },
            stderr: (!is_terminal).then_some(StepOutput::Client),
            append_output: false,
            terminal: is_terminal.then(|| size().unwrap_or_default()),
        },
        ..interactive::step(argv, node, hosts)
    }
}

/// One end of a copy.
#[derive(Debug, PartialEq, Eq)]
struct End {
    /// The node; `None` for this host.
    host: Option<String>,
    path: String,
}

impl End {
    /// Reads `[NODE:]PATH`. A colon behind a slash is part of a path.
    fn read(word: &str) -> Self {
        match word.split_once(':') {
            Some((host, path)) if !host.is_empty() && !host.contains('/') => {
                let path = if path.is_empty() { "." } else { path };
                Self { host: Some(host.to_owned()), path: path.to_owned() }
            }
            _ => Self { host: None, path: word.to_owned() },
        }
    }

    /// A process that runs a script there, with these words as its arguments.
    fn script(&self, script: &str, arguments: &[&str], connection: &ConnectionOptions) -> Result<Command, Failure> {
        let Some(host) = &self.host else {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script, "oarcp"]).args(arguments);
            return Ok(command);
        };
        let program =
            std::env::current_exe().map_err(|error| failed(format_args!("cannot tell where muster is: {error}")))?;
        let mut command = Command::new(program);
        for (name, value) in [("MUSTER_DATA", &connection.data), ("MUSTER_CA", &connection.ca)] {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        for (name, value) in [("MUSTER_SERVER", &connection.server), ("MUSTER_TOKEN", &connection.token)] {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        let words = [&["/bin/sh", "-c", script, "oarcp"], arguments].concat();
        let line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        command.args(["oar", "oarsh", "--", host, &line]);
        Ok(command)
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Sends a file, or with `-r` a folder, as an archive.
const SEND: &str = r#"if [ -d "$1" ] && [ "$2" != r ]; then echo "$1: is a directory; -r copies it" >&2; exit 1; fi
folder=$(dirname -- "$1"; echo .); folder=${folder%??}; name=$(basename -- "$1"; echo .); name=${name%??}
case $name in .|..|/) folder=$1; name=. ;; esac
[ -e "$1" ] || { echo "$1: does not exist" >&2; exit 1; }
exec tar -C "$folder" -cf - -- "./$name""#;
/// Receives one into a folder of its own, and moves it to its place as a whole. A folder that exists gets it inside.
const RECEIVE: &str = r#"to=$1; name=$2
if [ -d "$to" ]; then parent=$to; case $name in .|..|/) ;; *) to=$to/$name ;; esac; else parent=$(dirname -- "$to"; echo .); parent=${parent%??}; fi
new=$(mktemp -d -- "$parent/.oarcp.XXXXXX") || exit 1
trap 'rm -rf -- "$new"' EXIT; trap 'exit 1' HUP INT TERM
tar -C "$new" --no-same-owner -xpf - || exit 1
find "$new" -type f -perm /6000 -exec chmod ug-s -- {} + || exit 1
case $name in .|..|/) from=$new/. ;; *) from=$new/$name ;; esac
if [ -d "$from" ]; then mkdir -p -- "$to" && cp -a -- "$from/." "$to/"; else mv -f -- "$from" "$to"; fi"#;

/// Runs a command line of `oarcp`.
pub fn copy(connection: &ConnectionOptions, line: &[String]) -> Ended {
    let known = [
        ('r', "recursive", super::words::Takes::Nothing),
        ('p', "preserve", super::words::Takes::Nothing),
        ('q', "quiet", super::words::Takes::Nothing),
        ('B', "batch", super::words::Takes::Nothing),
        ('h', "help", super::words::Takes::Nothing),
    ];
    let words = super::words::read(line, &known)?;
    if words.has("help") {
        print("usage: oarcp [-r] [NODE:]PATH ... [NODE:]PATH\n");
        return Ok(0);
    }
    let [from @ .., to] = &words.operands[..] else { return Err(usage_of_copy()) };
    let ends: Vec<End> = from.iter().map(|word| End::read(word)).collect();
    let to = End::read(to);
    if ends.is_empty() {
        return Err(usage_of_copy());
    }
    own_job()?;
    let mut status = 0;
    for from in ends {
        let into = if words.operands.len() > 2 { format!("{}/", to.path) } else { to.path.clone() };
        if let Err(failure) =
            copy_one(connection, &from, &End { host: to.host.clone(), path: into }, words.has("recursive"))
        {
            stderr_line!("oarcp: {}", failure.text);
            status = 1;
        }
    }
    Ok(status)
}

fn usage_of_copy() -> Failure {
    Failure::new("usage: oarcp [-r] [NODE:]PATH ... [NODE:]PATH")
}

fn copy_one(connection: &ConnectionOptions, from: &End, to: &End, is_deep: bool) -> Result<(), Failure> {
    let name = Path::new(&from.path).file_name().map_or(".".into(), |name| name.to_string_lossy().into_owned());
    let mut sender = from.script(SEND, &[&from.path, if is_deep { "r" } else { "" }], connection)?;
    let mut sender = started(sender.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let archive = sender.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let mut receiver = to.script(RECEIVE, &[&to.path, &name], connection)?;
    let receiver = started(receiver.stdin(archive));
    // Without a reader the sender ends by itself.
    let received = receiver.and_then(ended);
    let sent = ended(sender);
    match (sent, received) {
        (Ok(true), Ok(true)) => Ok(()),
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
        _ => Err(failed(format_args!("{} was not copied", shown(&from.path)))),
    }
}

fn started(command: &mut Command) -> Result<Child, Failure> {
    command.spawn().map_err(|error| failed(format_args!("{}: {error}", command.get_program().display())))
}

fn ended(mut child: Child) -> Result<bool, Failure> {
    child.wait().map(|status| status.success()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Line, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Line::read(&words).map_err(|failure| failure.text)
    }

    /// OAR-X-04
    #[test]
    fn lines_are_those_of_ssh() {
        let line = read("-qt -o StrictHostKeyChecking=no -lann n2 ls -l /tmp").expect("it can be read");
        assert_eq!((line.user.as_deref(), line.host.as_str()), (Some("ann"), "n2"));
        assert_eq!(line.words, ["ls", "-l", "/tmp"]);
        let line = read("-n bob@n2 -- true").expect("it can be read");
        assert_eq!((line.user.as_deref(), line.has_no_input), (Some("bob"), true));
        assert_eq!(line.words, ["true"]);
        assert!(read("-Z n2").is_err() && read("-l").is_err() && read("").is_err());
        assert_eq!(End::read("n2:a/b"), End { host: Some("n2".into()), path: "a/b".into() });
        assert_eq!(End::read("n2:"), End { host: Some("n2".into()), path: ".".into() });
        assert_eq!(End::read("./a:b"), End { host: None, path: "./a:b".into() });
        assert_eq!(quoted("a'b"), r"'a'\''b'");
    }
}
