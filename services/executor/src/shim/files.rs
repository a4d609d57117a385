//! The files that tasks read and write.

use crate::output;
use muster_schemas::{node::LaunchOrder, steps::StepStreams};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, Flock, FlockArg, OFlag, fcntl},
};
use std::{
    collections::HashMap,
    ffi::CStr,
    fs::{File, OpenOptions},
    io,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    rc::Rc,
};

/// Marks an output file with the run that emptied it.
const EMPTIED_BY: &CStr = c"user.muster.run";

/// The file mode creation mask of processes whose order has none.
const DEFAULT_UMASK: u32 = 0o022;

/// The file mode creation mask of the processes of an order.
pub fn umask_of(order: &LaunchOrder) -> u32 {
    order.umask.unwrap_or(DEFAULT_UMASK) & 0o777
}

/// The files of tasks; a file that several tasks write to is opened once.
pub struct Files<'a> {
    order: &'a LaunchOrder,
    /// Whether output files keep their content.
    keeps: bool,
    open: HashMap<String, Rc<File>>,
    /// The input of tasks that read nothing.
    no_input: Option<Rc<File>>,
}

impl<'a> Files<'a> {
    /// No files open yet.
    pub fn of(order: &'a LaunchOrder) -> Self {
        let keeps = order.launch.append_output || order.step.0 != 0 && order.launch.stdout.is_none();
        Self { order, keeps, open: HashMap::new(), no_input: None }
    }

    /// As above, for a step with its own places.
    pub fn of_step(order: &'a LaunchOrder, streams: &StepStreams) -> Self {
        Self { order, keeps: streams.append_output, open: HashMap::new(), no_input: None }
    }

    /// Standard output and standard error of a task.
    pub fn outputs(&mut self, rank: u32) -> Result<(Rc<File>, Rc<File>), String> {
        let launch = &self.order.launch;
        let pattern = launch.stdout.as_deref().unwrap_or(output::default_pattern(self.order.job));
        let stdout = self.output_to(pattern, rank)?;
        let stderr = match &launch.stderr {
            Some(pattern) => self.output_to(pattern, rank)?,
            None => stdout.clone(),
        };
        Ok((stdout, stderr))
    }

    /// The output file of a task that a pattern names.
    pub fn output_to(&mut self, pattern: &str, rank: u32) -> Result<Rc<File>, String> {
        let path = self.expand(pattern, rank);
        if let Some(file) = self.open.get(&path) {
            return Ok(file.clone());
        }
        let failed = |error: io::Error| format!("the output file `{path}` cannot be opened: {}", plain(&error));
        let file =
            open_without_waiting(OpenOptions::new().append(true).create(true).mode(0o666), &path).map_err(failed)?;
        self.empty(&file).map_err(failed)?;
        let file = Rc::new(file);
        self.open.insert(path, file.clone());
        Ok(file)
    }

    /// Standard input of a task.
    pub fn input(&mut self, rank: u32) -> Result<Rc<File>, String> {
        self.input_from(self.order.launch.stdin.as_deref().unwrap_or("/dev/null"), rank)
    }

    /// The input file of a task that a pattern names.
    pub fn input_from(&mut self, pattern: &str, rank: u32) -> Result<Rc<File>, String> {
        let path = self.expand(pattern, rank);
        if let Some(file) = self.no_input.as_ref().filter(|_| path == "/dev/null") {
            return Ok(file.clone());
        }
        let file = open_without_waiting(OpenOptions::new().read(true), &path)
            .map_err(|error| format!("the input file `{path}` cannot be opened: {}", plain(&error)))?;
        let file = Rc::new(file);
        if path == "/dev/null" {
            self.no_input = Some(file.clone());
        }
        Ok(file)
    }

    fn expand(&self, pattern: &str, rank: u32) -> String {
        output::expand(pattern, self.order, &self.order.nodes[self.order.node_index as usize].name, rank)
    }

    /// Empties a file that the run has just opened. If several nodes write to the same file, only the first to open it
    /// does: it marks the file. If files cannot be marked, the run's first node does.
    fn empty(&self, file: &File) -> io::Result<()> {
        if self.keeps || !file.metadata()?.is_file() {
            return Ok(());
        }
        if self.order.nodes.iter().filter(|node| node.tasks > 0).count() > 1 {
            let lock = Flock::lock(file.try_clone()?, FlockArg::LockExclusive).map_err(|(_, errno)| errno)?;
            let mark = format!("{}.{}", self.order.part.run(), self.order.step);
            match has_mark(&lock, &mark) {
                Some(true) => return Ok(()),
                Some(false) => set_mark(&lock, &mark),
                None if self.order.node_index > 0 => return Ok(()),
                None => {}
            }
        }
        file.set_len(0)
    }
}

/// Whether the file has the mark; `None` if it cannot have one.
fn has_mark(file: &File, mark: &str) -> Option<bool> {
    let mut value = [0u8; 64];
    // SAFETY: the name ends with NUL, and the buffer has the length given.
    let length =
        unsafe { libc::fgetxattr(file.as_raw_fd(), EMPTIED_BY.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    match usize::try_from(length) {
        Ok(length) => Some(&value[..length] == mark.as_bytes()),
        Err(_) => (Errno::last() != Errno::ENOTSUP).then_some(false),
    }
}

fn set_mark(file: &File, mark: &str) {
    // SAFETY: the name ends with NUL, and the value has the length given. If it fails, another node empties the file
    // again.
    unsafe { libc::fsetxattr(file.as_raw_fd(), EMPTIED_BY.as_ptr(), mark.as_ptr().cast(), mark.len(), 0) };
}

/// Opens a file that may be a pipe without a reader, which is an error rather than a wait. Reads and writes do wait.
fn open_without_waiting(options: &mut OpenOptions, path: &str) -> io::Result<File> {
    let file = options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
    fcntl(&file, FcntlArg::F_SETFL(flags - OFlag::O_NONBLOCK))?;
    Ok(file)
}

/// The system's message, without the number.
pub fn plain(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), |code| Errno::from_raw(code).desc().to_owned())
}
