//! The print file of a program: what it writes to standard output and error (PBS-X-14).

use std::{
    fs::{self, File, OpenOptions},
    io::{self, PipeReader, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

/// Bytes of its last line that are kept.
const LAST_WORDS: usize = 400;

/// Where the output of a program goes. All clones write to the same file.
#[derive(Clone, Debug)]
pub struct Printer(Arc<Mutex<Sheet>>);

#[derive(Debug)]
struct Sheet {
    file: Option<Open>,
    most_bytes: u64,
    last: Vec<u8>,
    current: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Printer {
    /// Writes to the end of a file, or nowhere.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn new(path: Option<&Path>, most_bytes: u64) -> Result<Self, String> {
        let opened = path.map(Open::new).transpose();
        let file = opened.map_err(|error| {
            let path = path.unwrap_or(Path::new("")).display();
            format!("the print file {path} cannot be opened: {error}")
        })?;
        Ok(Self(Arc::new(Mutex::new(Sheet { file, most_bytes, last: Vec::new(), current: Vec::new() }))))
    }

    /// Two streams for a process. What it writes there is read to the end, so that it never waits.
    ///
    /// # Errors
    /// There are no more streams or threads.
    pub fn streams(&self) -> io::Result<(Stdio, Stdio)> {
        let (reader, writer) = io::pipe()?;
        let second = writer.try_clone()?;
        let printer = self.clone();
        thread::Builder::new().name("scheduler output".into()).spawn(move || printer.copy(reader))?;
        Ok((writer.into(), second.into()))
    }

    /// Adds a text of this program's own.
    pub fn add(&self, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.as_bytes());
    }

    /// The last line that was written, after a colon.
    pub fn last_words(&self) -> String {
        let sheet = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unfinished = sheet.current.trim_ascii();
        let line = if unfinished.is_empty() { sheet.last.trim_ascii() } else { unfinished };
        let text: String = String::from_utf8_lossy(line).chars().filter(|letter| !letter.is_control()).collect();
        if text.is_empty() { text } else { format!(": {text}") }
    }

    fn copy(&self, mut reader: PipeReader) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => {
                    let read = buffer.get(..count).unwrap_or_default();
                    self.0.lock().unwrap_or_else(PoisonError::into_inner).push(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

impl Sheet {
    fn push(&mut self, bytes: &[u8]) {
        if let Some(open) = &mut self.file {
            // A full disk must not end the program; its decisions are elsewhere.
            let _ = open.write(bytes, self.most_bytes);
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let room = LAST_WORDS.saturating_sub(self.current.len()).min(text.len());
            self.current.extend_from_slice(text.get(..room).unwrap_or_default());
            if line.len() > text.len() {
                let done = std::mem::take(&mut self.current);
                if !done.trim_ascii().is_empty() {
                    self.last = done;
                }
            }
        }
    }
}

impl Open {
    fn new(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o640)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        Ok(Self { path: path.to_owned(), bytes: about.len(), file })
    }

    /// Appends bytes. A full file is renamed to `NAME.1`, in place of an older one.
    fn write(&mut self, bytes: &[u8], most_bytes: u64) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.bytes >= most_bytes.max(1) {
                let mut old = self.path.clone().into_os_string();
                old.push(".1");
                fs::rename(&self.path, old)?;
                *self = Self::new(&self.path)?;
            }
            let room = usize::try_from(most_bytes.max(1).saturating_sub(self.bytes)).unwrap_or(usize::MAX);
            let (now, later) = rest.split_at(rest.len().min(room.max(1)));
            self.file.write_all(now)?;
            self.bytes = self.bytes.saturating_add(now.len() as u64);
            rest = later;
        }
        Ok(())
    }
}
