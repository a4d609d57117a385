//! A program that plans: asked through its standard input, heard through its standard output.

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use std::{
    os::unix::process::ExitStatusExt as _,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
};

/// How long a program that closed its output has to end by itself, so that its end can be reported.
const END_WITHIN: Duration = Duration::from_secs(1);
/// The most bytes kept of its last line on standard error.
const LAST_WORDS_BYTES: usize = 400;

/// The running program. Dropping it kills it, with what it has started in its process group.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_words: Arc<Mutex<LastLine>>,
    errors: JoinHandle<()>,
}

impl Program {
    /// Starts it, without a shell.
    pub fn start(command: &[String]) -> Result<Self, String> {
        let Some((program, arguments)) = command.split_first() else { return Err("no command is configured".into()) };
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("`{program}` cannot be started: {error}"))?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(format!("`{program}` was started without its streams"));
        };
        let last_words = Arc::new(Mutex::new(LastLine::default()));
        let errors = tokio::spawn(listen(errors, last_words.clone()));
        Ok(Self { child, input, output: BufReader::new(output), last_words, errors })
    }

    /// Writes a line and reads the answer at the same time, because the program may answer before it has read
    /// everything.
    pub async fn exchange(&mut self, line: &[u8], max_bytes: usize) -> Result<Vec<u8>, String> {
        let Self { input, output, .. } = self;
        let write = async {
            input.write_all(line).await?;
            input.write_all(b"\n").await?;
            input.flush().await
        };
        // A program that ends while it is written to has given its reason on standard error; its answer does not count.
        let exchanged =
            tokio::try_join!(async { write.await.map_err(|_| Fault::Closed) }, read_line(output, max_bytes));
        match exchanged {
            Ok(((), answer)) => Ok(answer),
            Err(fault) => Err(self.why(fault).await),
        }
    }

    /// The next line that it writes.
    pub async fn next_line(&mut self, max_bytes: usize) -> Result<Vec<u8>, String> {
        match read_line(&mut self.output, max_bytes).await {
            Ok(line) => Ok(line),
            Err(fault) => Err(self.why(fault).await),
        }
    }

    /// What happened to it, for people.
    async fn why(&mut self, fault: Fault) -> String {
        match fault {
            Fault::TooMuch(limit) => format!("its answer has more than {limit} bytes"),
            Fault::Closed => match tokio::time::timeout(END_WITHIN, self.child.wait()).await {
                Ok(Ok(status)) => {
                    // A process that it has started can keep the stream open.
                    let _ = tokio::time::timeout(END_WITHIN, &mut self.errors).await;
                    format!("{}{}", end_text(status), self.said())
                }
                Ok(Err(error)) => format!("how it ended is not known: {error}"),
                Err(_) => format!("it closed its standard input or output and runs on{}", self.said()),
            },
        }
    }

    /// The last line of its standard error, after a colon.
    pub fn said(&self) -> String {
        let last = self.last_words.lock().unwrap_or_else(PoisonError::into_inner).text();
        if last.is_empty() { last } else { format!(": {last}") }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.errors.abort();
        // Once it was waited for, its number can belong to another process.
        if let Some(id) = self.child.id().and_then(|id| i32::try_from(id).ok()) {
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
        }
    }
}

/// Why there is no answer.
#[derive(Debug)]
enum Fault {
    /// One of its streams is closed.
    Closed,
    /// The answer is longer than this.
    TooMuch(usize),
}

fn end_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

/// A line without its end. If there is no line end within the limit, the rest is not read.
async fn read_line(output: &mut BufReader<ChildStdout>, max_bytes: usize) -> Result<Vec<u8>, Fault> {
    let mut line = Vec::new();
    loop {
        let read = output.fill_buf().await.map_err(|_| Fault::Closed)?;
        if read.is_empty() {
            return Err(Fault::Closed);
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(read.len());
        if line.len() + taken > max_bytes {
            return Err(Fault::TooMuch(max_bytes));
        }
        line.extend_from_slice(&read[..taken]);
        output.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(line);
        }
    }
}

/// Reads standard error, however much it is, so that the program never waits.
async fn listen(mut errors: ChildStderr, last_words: Arc<Mutex<LastLine>>) {
    let mut buffer = vec![0; 8192];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        last_words.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..count]);
    }
}

/// The last non-empty line of a text, cut to its beginning.
#[derive(Debug, Default)]
struct LastLine {
    last: Vec<u8>,
    current: Vec<u8>,
}

impl LastLine {
    fn push(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let room = LAST_WORDS_BYTES.saturating_sub(self.current.len());
            self.current.extend_from_slice(&text[..text.len().min(room)]);
            if line.len() > text.len() {
                let done = std::mem::take(&mut self.current);
                if !done.trim_ascii().is_empty() {
                    tracing::debug!(line = %String::from_utf8_lossy(&done), "external planner");
                    self.last = done;
                }
            }
        }
    }

    fn text(&self) -> String {
        let unfinished = self.current.trim_ascii();
        let line = if unfinished.is_empty() { self.last.trim_ascii() } else { unfinished };
        String::from_utf8_lossy(line).chars().filter(|character| !character.is_control()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_kept_however_it_comes() {
        let mut line = LastLine::default();
        assert_eq!(line.text(), "");
        line.push(b"Traceback:\n  File");
        line.push(b" x\nValue");
        line.push(b"Error: bad\n\n");
        assert_eq!(line.text(), "ValueError: bad");
        line.push(&[b'x'; 10_000]);
        assert_eq!(line.text().len(), LAST_WORDS_BYTES);
        line.push(b"\n\xff\x07end");
        assert_eq!(line.text(), "\u{fffd}end");
    }
}
