//! The streams of a step, requested from all its nodes at once. Nothing is kept here: the client reports its position,
//! so a gateway can restart in between.

use super::KnownStep;
use crate::{app::App, error::ApiError};
use futures::{
    FutureExt as _, StreamExt as _,
    future::BoxFuture,
    stream::{FuturesOrdered, FuturesUnordered},
};
use muster_bus::{BusError, Message};
use muster_schemas::{
    PartId, RunId, StepId,
    cluster::NodeCondition,
    resources::IndexSet,
    step_io::{IoAsk, IoReply, IoRequest, MAX_READ_BYTES, OutputPage, OutputPart},
    steps::{StepInput, StepPlace},
    subjects,
};
use std::time::Duration;
use tokio::time::Instant;

/// A node waits this much less than the request to it, so that its answer still arrives.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// The pause before asking again a node that does not answer or has no room for input.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The position of a reader.
#[derive(Clone, Debug)]
pub(crate) struct ReadFrom {
    /// Distinguishes readers.
    pub(crate) reader: u64,
    /// The offset for each node of the step; `None` for a node whose output is complete.
    pub(crate) offsets: Vec<Option<u64>>,
    /// Whether everything before the offsets can be dropped.
    pub(crate) acknowledges: bool,
    /// Maximum number of bytes from each node.
    pub(crate) max_bytes: u32,
}

/// The place of tasks of a step.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The step's group that they belong to.
    group: usize,
    component: u32,
    of_step: &'a StepPlace,
}

/// Input for tasks.
pub(crate) struct Said<'a> {
    /// How much input came before.
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
    /// Whether nothing follows.
    pub(crate) is_last: bool,
}

impl Said<'_> {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// The streams of one step.
pub(crate) struct Streams<'a> {
    pub(crate) app: &'a App,
    pub(crate) known: &'a KnownStep,
    pub(crate) run: RunId,
    pub(crate) step: StepId,
}

impl Streams<'_> {
    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let spec = &self.known.spec;
        let numbered = spec.groups_of_places().zip(spec.places());
        numbered.map(|(at, (group, place))| Place { group: at, component: group.component, of_step: place })
    }

    /// Output of any node, as soon as there is some.
    pub(crate) async fn read(&self, from: &ReadFrom, wait: Duration) -> Result<OutputPage, ApiError> {
        let places: Vec<Place> = self.places().collect();
        if from.offsets.len() != places.len() {
            let (given, has) = (from.offsets.len(), places.len());
            return Err(ApiError::invalid(format!("from: {given} offsets are given, the step has {has} nodes")));
        }
        let deadline = Instant::now() + wait;
        let asked = from.offsets.iter().enumerate().filter_map(|(at, offset)| Some((at, (*offset)?)));
        let mut waiting: FuturesUnordered<_> =
            asked.map(|(at, offset)| self.read_place(places[at], at as u32, offset, from, deadline)).collect();
        let mut parts = Vec::new();
        while let Some(part) = waiting.next().await {
            parts.extend(part);
            // Other places with output are included.
            while let Some(Some(more)) = waiting.next().now_or_never() {
                parts.extend(more);
            }
            if !parts.is_empty() {
                break;
            }
        }
        parts.sort_by_key(|part: &OutputPart| part.node);
        Ok(OutputPage { parts, nodes: places.len() as u32 })
    }

    /// Output of a place; `None` if none came in time.
    fn read_place<'b>(
        &'b self,
        place: Place<'b>,
        at: u32,
        offset: u64,
        from: &'b ReadFrom,
        deadline: Instant,
    ) -> BoxFuture<'b, Option<OutputPart>> {
        async move {
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                let ask = IoAsk::Read {
                    reader: from.reader,
                    from: offset,
                    acknowledged: from.acknowledges.then_some(offset),
                    max_bytes: from.max_bytes.min(MAX_READ_BYTES),
                    wait_millis: u32::try_from(left.as_millis()).unwrap_or(u32::MAX),
                };
                let part = |from, bytes, is_last| OutputPart { node: at, from, bytes, is_last };
                match self.ask(place, "read", ask, left + ANSWER_TIME).await {
                    Ok(IoReply::Output { from, bytes, is_last }) if !bytes.is_empty() || is_last => {
                        return Some(part(from, bytes, is_last));
                    }
                    Ok(IoReply::Unknown) if self.has_ended_at(place) => return Some(part(offset, Vec::new(), true)),
                    Err(_) if !self.is_up(place) => return Some(part(offset, Vec::new(), true)),
                    Ok(IoReply::Output { .. }) if left.is_zero() => return None,
                    _ if left.is_zero() => return None,
                    Ok(IoReply::Output { .. }) => {}
                    _ => tokio::time::sleep(RETRY_PAUSE.min(left)).await,
                }
            }
        }
        .boxed()
    }

    /// Sends input to every node with a task that reads it, of all groups or of some. Returns how much all of them have
    /// then.
    pub(crate) async fn write(
        &self,
        said: &Said<'_>,
        groups: Option<&IndexSet>,
        wait: Duration,
    ) -> Result<u64, ApiError> {
        let deadline = Instant::now() + wait;
        let is_meant = |group| groups.is_none_or(|groups| u32::try_from(group).is_ok_and(|at| groups.contains(at)));
        let fed = self.places().filter(|place| is_meant(place.group) && self.is_fed(place));
        let sent = fed.map(|place| self.write_place(place, said, deadline));
        let lengths: Vec<u64> = sent.collect::<FuturesOrdered<_>>().collect().await;
        Ok(lengths.into_iter().min().unwrap_or(said.end()).min(said.end()))
    }

    fn stdin(&self, place: &Place) -> &StepInput {
        self.known.spec.stdin_of(&self.known.spec.groups[place.group])
    }

    /// Whether a task reads input there.
    fn is_fed(&self, place: &Place) -> bool {
        let ranks = &place.of_step.ranks;
        match self.stdin(place) {
            StepInput::AllTasks => true,
            StepInput::Task(rank) => ranks.contains(*rank),
            StepInput::Nothing | StepInput::File(_) => self.known.spec.streams.terminal.is_some() && ranks.contains(0),
        }
    }

    /// How much input a place has; the wanted amount if no task is left to read it.
    async fn write_place(&self, place: Place<'_>, said: &Said<'_>, deadline: Instant) -> u64 {
        let end = said.end();
        let mut has = 0;
        loop {
            let ask = IoAsk::Write { offset: said.offset, bytes: said.bytes.to_vec(), is_last: said.is_last };
            match self.ask(place, "write", ask, ANSWER_TIME).await {
                Ok(IoReply::Input(length)) if length >= end || length < said.offset => return length,
                Ok(IoReply::Input(length)) => has = length,
                Ok(IoReply::Unknown) if self.has_ended_at(place) => return end,
                Err(_) if !self.is_up(place) => return end,
                _ => {}
            }
            if Instant::now() >= deadline {
                return has;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Reports the size of the client's terminal.
    pub(crate) async fn resize(&self, size: muster_schemas::steps::TerminalSize) -> Result<(), ApiError> {
        let first = self.places().find(|place| place.of_step.ranks.contains(0));
        let Some(place) = first else { return Ok(()) };
        match self.ask(place, "resize", IoAsk::Resize(size), ANSWER_TIME).await {
            Ok(_) => Ok(()),
            Err(error) => Err(ApiError::unavailable(format!("node {} does not answer: {error}", place.of_step.node))),
        }
    }

    async fn ask(&self, place: Place<'_>, verb: &str, ask: IoAsk, timeout: Duration) -> Result<IoReply, BusError> {
        let task = match self.stdin(&place) {
            StepInput::Task(rank) if verb == "write" => rank.to_string(),
            _ => "all".to_owned(),
        };
        let subject = subjects::step_io(self.known.job, self.step, &task, verb, &place.of_step.node);
        let part = self.part(place);
        let malformed = |source| BusError::Malformed { subject: subject.clone(), source };
        let message = Message::encode(&IoRequest { part, step: self.step, ask }).map_err(malformed)?;
        let reply = self.app.bus.request(&subject, message, timeout).await?;
        reply.decode().map_err(malformed)
    }

    /// The node's name for its part of the run, which may be over.
    fn part(&self, place: Place) -> PartId {
        self.app.reader.projection().read(|state| {
            let node = state.node_by_name(&place.of_step.node).map(|node| node.id);
            let part = node.and_then(|node| match state.run(self.run) {
                Some(run) => Some(state.part_id_at(run, node, place.component)),
                None => state.last_part_id(self.known.job, node, place.component).filter(|part| part.run() == self.run),
            });
            part.unwrap_or(PartId::new(self.run, 0))
        })
    }

    /// Whether the log says that nothing of the step is left at a place.
    fn has_ended_at(&self, place: Place) -> bool {
        self.app.reader.projection().read(|state| {
            let Some(launched) = state.step(self.run, self.step) else { return true };
            let node = state.node_by_name(&place.of_step.node).map(|node| node.id);
            let at = node.and_then(|node| launched.position(node, place.component));
            let step = state.run(self.run).and_then(|run| run.steps.get(&self.step));
            let part = at.zip(step).and_then(|(at, step)| step.parts.get(at));
            part.is_some_and(|part| part.exit.is_some())
        })
    }

    /// Whether a node that does not answer is expected back.
    fn is_up(&self, place: Place) -> bool {
        let name = &place.of_step.node;
        let condition = |state: &muster_domain::State| state.node_by_name(name).map(|node| node.condition.clone());
        self.app.reader.projection().read(condition) == Some(NodeCondition::Up)
    }
}
