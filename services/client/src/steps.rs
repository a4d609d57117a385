//! Steps of running jobs, the streams between their tasks and their client, and jobs that hold resources for a client.

use crate::{Client, ClientError, Moment, RETRY_PAUSE, connection::accepted};
use muster_schemas::{
    CommandId, JobId, RunId, StepId, codec,
    job::ExitStatus,
    resources::IndexSet,
    step_io::{Frame, MAX_WRITE_BYTES, OutputPage, OutputPart},
    steps::{StepSpec, TerminalSize},
    views::{
        CommandAnswer, ConcludeRequest, KeepRequest, StepAnswer, StepEndRequest, StepInputAnswer, StepSignalRequest,
        StepTerminalRequest, StepWalltimeRequest, StepsPage,
    },
};
use std::time::{Duration, Instant};

/// Pages of output smaller than this are small. [`PAGES_AT_ONCE`] of them are requested as fast as they come, then one
/// in each pause: each asks all nodes of the step, and costs a node as much as a short task does. So the pause grows
/// with the number of nodes.
const SMALL_PAGE_BYTES: usize = 64 << 10;
const PAGES_AT_ONCE: u32 = 4;
const PAUSE_PER_NODE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Which step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepAddress {
    /// The job.
    pub job: JobId,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepId,
}

impl StepAddress {
    fn path(&self, what: &str) -> String {
        format!("/v1/jobs/{}/steps/{}/{what}", self.job, self.step)
    }
}

impl Client {
    /// A client of the same gateway with its own connection: while one waits for output, the other sends input.
    pub fn another(&self) -> Self {
        Self { connection: None, endpoint: self.endpoint.clone(), ..*self }
    }

    /// Launches a step inside a running job. It waits up to this many seconds, at most 60, for cores that other steps
    /// use, and is then refused with [`muster_schemas::views::ErrorCode::Busy`]; to wait longer, ask again with another
    /// id.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn launch_step(
        &mut self,
        id: CommandId,
        job: JobId,
        spec: &StepSpec,
        wait_seconds: u32,
    ) -> Result<StepAnswer, ClientError> {
        let wait = wait_seconds.min(60);
        self.command(id, "POST", &format!("/v1/jobs/{job}/steps/launch?wait_seconds={wait}"), spec)
    }

    /// The steps of a job, including those that have ended.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn steps(&mut self, job: JobId, moment: Moment) -> Result<StepsPage, ClientError> {
        self.get(&moment.add_to(format!("/v1/jobs/{job}/steps")))
    }

    /// The steps of all running jobs.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn running_steps(&mut self, moment: Moment) -> Result<StepsPage, ClientError> {
        self.get(&moment.add_to("/v1/steps".to_owned()))
    }

    /// Sends a signal to the processes of a step.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn signal_step(
        &mut self,
        id: CommandId,
        job: JobId,
        step: StepId,
        request: &StepSignalRequest,
    ) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", &format!("/v1/jobs/{job}/steps/{step}/signal"), request)
    }

    /// Gives a running step another time limit.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn set_step_walltime(
        &mut self,
        id: CommandId,
        job: JobId,
        step: StepId,
        request: &StepWalltimeRequest,
    ) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", &format!("/v1/jobs/{job}/steps/{step}/walltime"), request)
    }

    /// Ends a step.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn end_step(
        &mut self,
        id: CommandId,
        job: JobId,
        step: StepId,
        request: &StepEndRequest,
    ) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", &format!("/v1/jobs/{job}/steps/{step}/end"), request)
    }

    /// Sends input to the tasks of a step, all of it, however long they take to read it. `offset` is how much was sent
    /// before; the new offset is returned. After `is_last` nothing may follow. With `groups` only the tasks of these
    /// groups of the step get it, and input sent to others does not count.
    ///
    /// # Errors
    /// The request was refused, or not answered and the gateway could not be reached again within this client's
    /// patience.
    pub fn say(
        &mut self,
        address: StepAddress,
        groups: Option<&IndexSet>,
        offset: u64,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<u64, ClientError> {
        let groups = groups.map(|groups| format!("&groups={groups}")).unwrap_or_default();
        let end = offset + bytes.len() as u64;
        let mut done = offset;
        let mut last_contact = Instant::now();
        loop {
            let left = &bytes[(done - offset) as usize..];
            let piece = &left[..left.len().min(MAX_WRITE_BYTES)];
            let ends = is_last && piece.len() == left.len();
            let query = format!("input?run={}&offset={done}&is_last={ends}&wait_seconds=10{groups}", address.run);
            let answer = self.ask("POST", &address.path(&query), piece, None).and_then(accepted);
            match answer.and_then(|body| crate::parse::<StepInputAnswer>(&body)) {
                Ok(StepInputAnswer { length }) => {
                    done = length.clamp(done, end);
                    last_contact = Instant::now();
                    if done == end {
                        return Ok(end);
                    }
                }
                Err(error) => self.wait_after(error, last_contact)?,
            }
        }
    }

    /// Reports the size of the terminal of a step.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn resize_terminal(&mut self, address: StepAddress, size: TerminalSize) -> Result<(), ClientError> {
        let request = StepTerminalRequest { run: address.run, size };
        let json = serde_json::to_vec(&request).map_err(|error| ClientError::Protocol(error.to_string()))?;
        self.ask("POST", &address.path("terminal"), &json, None).and_then(accepted).map(drop)
    }

    /// Ends a job that holds resources for this client.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn conclude_job(
        &mut self,
        id: CommandId,
        job: JobId,
        status: ExitStatus,
    ) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", &format!("/v1/jobs/{job}/conclude"), &ConcludeRequest { status })
    }

    /// Reports that this client lives. If it does not do so again within this many seconds, nor within as many again,
    /// the job is cancelled.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn keep_job(&mut self, id: CommandId, job: JobId, seconds: Option<u32>) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", &format!("/v1/jobs/{job}/keep"), &KeepRequest { seconds })
    }

    /// After an error that a retry may mend: waits, or gives up when the gateway was last reached too long ago.
    fn wait_after(&self, error: ClientError, last_contact: Instant) -> Result<(), ClientError> {
        if error.is_refusal() && !error.is_unavailable() || last_contact.elapsed() >= self.patience {
            return Err(error);
        }
        std::thread::sleep(RETRY_PAUSE);
        Ok(())
    }
}

/// Reads the output of a step's tasks, each byte once, even if services restart in between.
#[derive(Clone, Debug)]
pub struct OutputReader {
    address: StepAddress,
    id: u64,
    watches: bool,
    is_at_terminal: bool,
    /// The progress for each node; empty before the first answer.
    nodes: Vec<Progress>,
    /// When the next small page would be due, had none come sooner.
    due: Instant,
}

#[derive(Clone, Debug, Default)]
struct Progress {
    offset: u64,
    /// The start of a frame whose rest has not arrived.
    partial: Vec<u8>,
    is_over: bool,
}

impl OutputReader {
    /// The client of a step, for which output is kept until it has been read. There is one at a time.
    pub fn of(address: StepAddress) -> Self {
        let (id, _) = CommandId::new_now().0.as_u64_pair();
        let (_, random) = CommandId::new_now().0.as_u64_pair();
        Self { address, id: id ^ random, watches: false, is_at_terminal: false, nodes: Vec::new(), due: Instant::now() }
    }

    /// Like [`OutputReader::of`], for somebody who types at a terminal and waits for each letter: small pages do not
    /// wait.
    pub fn at_terminal(address: StepAddress) -> Self {
        Self { is_at_terminal: true, ..Self::of(address) }
    }

    /// An observer, who may miss what the client has already read.
    pub fn watching(address: StepAddress) -> Self {
        Self { watches: true, ..Self::of(address) }
    }

    /// Waits up to some seconds for output and passes on what has arrived. Returns whether there can be more.
    ///
    /// # Errors
    /// The request was refused, or not answered and the gateway could not be reached again within the client's
    /// patience.
    pub fn read(&mut self, client: &mut Client, mut take: impl FnMut(Frame<'_>)) -> Result<bool, ClientError> {
        let early = self.due.saturating_duration_since(Instant::now());
        std::thread::sleep(early.saturating_sub(self.pause() * PAGES_AT_ONCE));
        let path = self.path();
        let last_contact = Instant::now();
        let page = loop {
            match client.ask("GET", &path, &[], None).and_then(accepted) {
                Ok(body) => break body,
                Err(error) => client.wait_after(error, last_contact)?,
            }
        };
        let page: OutputPage =
            codec::decode(&page).map_err(|error| ClientError::Protocol(format!("output is damaged: {error}")))?;
        self.nodes.resize_with(page.nodes as usize, Progress::default);
        if page.parts.iter().map(|part| part.bytes.len()).sum::<usize>() < SMALL_PAGE_BYTES {
            self.due = self.due.max(Instant::now()) + self.pause();
        }
        for part in page.parts {
            self.take(part, &mut take)?;
        }
        Ok(self.nodes.iter().any(|node| !node.is_over))
    }

    fn pause(&self) -> Duration {
        if self.is_at_terminal {
            return Duration::ZERO;
        }
        let nodes = self.nodes.iter().filter(|node| !node.is_over).count();
        let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
        PAUSE_PER_NODE.saturating_mul(nodes).min(LONGEST_PAUSE)
    }

    fn path(&self) -> String {
        let offsets = self.nodes.iter().map(|node| match node.is_over {
            true => "-".to_owned(),
            false => node.offset.to_string(),
        });
        let offsets = offsets.collect::<Vec<_>>().join(",");
        let from = if offsets.is_empty() { String::new() } else { format!("&from={offsets}") };
        let StepAddress { run, .. } = self.address;
        self.address.path(&format!("output?run={run}&reader={}&watch={}{from}", self.id, self.watches))
    }

    fn take(&mut self, part: OutputPart, take: &mut impl FnMut(Frame<'_>)) -> Result<(), ClientError> {
        let Some(node) = self.nodes.get_mut(part.node as usize) else { return Ok(()) };
        if part.from != node.offset {
            // Output was dropped before this reader read it.
            node.partial.clear();
        }
        node.offset = part.from + part.bytes.len() as u64;
        node.is_over = part.is_last;
        let bytes = if node.partial.is_empty() { part.bytes } else { [&node.partial[..], &part.bytes].concat() };
        let mut done = 0;
        while let Some((frame, length)) =
            Frame::first_of(&bytes[done..]).map_err(|error| ClientError::Protocol(error.to_string()))?
        {
            take(frame);
            done += length;
        }
        node.partial = bytes[done..].to_vec();
        Ok(())
    }
}
