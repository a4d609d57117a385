//! The server of the processes of a program on one node.

use crate::{
    Layout, MAX_KEPT_BYTES, MAX_MESSAGE_BYTES, MAX_PUT_BYTES,
    pairs::{self, BadPairs, Pairs},
    version_one,
    version_two::{self, Asked, Member},
    wire::{Malformed, Outcome, Request},
};
use std::collections::BTreeMap;

/// An action for the processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send this to a process.
    Send {
        /// Its rank.
        rank: u32,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// All processes of this node are in a fence: exchange this with the other servers, and call [`Server::fenced`]
    /// with what all of them contributed.
    Fence {
        /// The number of the fence, from 0; the same on all nodes.
        number: u32,
        /// What this node contributes.
        contribution: Vec<u8>,
    },
    /// The program is over: a process asked for its end, or can no longer come to a fence.
    Abort {
        /// The process that is the reason.
        rank: u32,
        /// The exit status that it asked for, if it did.
        status: Option<i32>,
        /// Why, for people.
        why: String,
    },
    /// A process has asked for more processes (`MPI_Comm_spawn`), and is refused them.
    NoSpawn {
        /// Its rank.
        rank: u32,
    },
}

/// The server of a node.
#[derive(Debug)]
pub struct Server {
    layout: Layout,
    /// The name of the program's space of keys.
    space: String,
    clients: BTreeMap<u32, Client>,
    /// What everybody can get.
    shared: Pairs,
    /// The pairs put since the last fence.
    put: Pairs,
    put_bytes: usize,
    node_attributes: Pairs,
    /// What all pairs take in memory.
    kept_bytes: usize,
    /// The number of the next fence.
    next_fence: u32,
    /// Whether that fence is being exchanged.
    is_exchanging: bool,
    /// How many processes wait in it: with many of them, looking at all whenever one comes would be most of the work.
    in_fence: usize,
    /// Whether a process has ended.
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Client {
    stage: Stage,
    speaks_two: bool,
    /// Bytes of a message that is not complete.
    received: Vec<u8>,
    /// The request that has no answer yet: a fence, or an attribute of the node.
    waits: Option<Asked>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// It may be no parallel program at all.
    #[default]
    Silent,
    Joined,
    Finalized,
    Ended,
}

/// What keeping a pair costs besides its bytes.
const PAIR_BYTES: usize = 128;
const TOO_MUCH: &str = "the processes of this program have put too much";
const NO_SPAWN: &str = "this server starts no further processes; use a launcher of the MPI library";
const NO_NAMES: &str = "this server connects no programs and has no names; use a launcher of the MPI library";

impl Server {
    /// A server for the local processes of a program. `space` names the program: letters, digits, `_` and `.`.
    pub fn new(layout: Layout, space: String) -> Self {
        let clients = layout.local().iter().map(|rank| (*rank, Client::default())).collect();
        let shared = layout.process_mapping().map(|mapping| ("PMI_process_mapping".to_owned(), mapping));
        Self {
            layout,
            space,
            clients,
            shared: shared.into_iter().collect(),
            put: Pairs::new(),
            put_bytes: 0,
            node_attributes: Pairs::new(),
            kept_bytes: 0,
            next_fence: 0,
            is_exchanging: false,
            in_fence: 0,
            has_ended: false,
        }
    }

    /// Takes in bytes of a process. A process that sends what cannot be understood ends the program: nobody could
    /// wait for it with sense.
    pub fn received(&mut self, rank: u32, bytes: &[u8]) -> Vec<Effect> {
        let Some(client) = self.clients.get_mut(&rank) else { return Vec::new() };
        client.received.extend_from_slice(bytes);
        let mut effects = Vec::new();
        loop {
            match self.next_request(rank) {
                Ok(Some(asked)) => self.serve(rank, asked, &mut effects),
                Ok(None) => return effects,
                Err(Malformed(what)) => {
                    let why = format!("it sent {what} to the process manager");
                    effects.push(Effect::Abort { rank, status: None, why });
                    return effects;
                }
            }
        }
    }

    /// A process has ended.
    pub fn ended(&mut self, rank: u32) -> Option<Effect> {
        let client = self.clients.get_mut(&rank)?;
        let before = std::mem::replace(&mut client.stage, Stage::Ended);
        client.received.clear();
        self.in_fence -= usize::from(client.is_in_fence());
        client.waits = None;
        self.has_ended = true;
        if before == Stage::Joined {
            return Some(gone(rank, "it left without finalizing"));
        }
        self.impossible_wait()
    }

    /// A process has closed its connection, and may live on. One that has joined can come to no fence any more.
    pub fn closed(&mut self, rank: u32) -> Option<Effect> {
        let client = self.clients.get_mut(&rank).filter(|client| client.stage == Stage::Joined)?;
        client.stage = Stage::Finalized;
        Some(gone(rank, "it left without finalizing"))
    }

    /// A fence is over: `contributions` are those of all nodes.
    ///
    /// # Errors
    /// A contribution is not what a server made, or all of them are more than is kept.
    pub fn fenced<'a>(&mut self, contributions: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Effect>, BadPairs> {
        for contribution in contributions {
            let pairs = pairs::from_bytes(contribution)?;
            self.kept_bytes += pairs.iter().map(|(key, value)| kept(key, value)).sum::<usize>();
            if self.kept_bytes > MAX_KEPT_BYTES {
                return Err(BadPairs);
            }
            self.shared.extend(pairs);
        }
        self.next_fence += 1;
        self.is_exchanging = false;
        self.in_fence = 0;
        let mut effects = Vec::new();
        for rank in self.layout.local().to_vec() {
            let waits = self.clients.get_mut(&rank).and_then(|client| client.waits.take_if(|asked| is_fence(asked)));
            if let Some(asked) = waits {
                self.answer(rank, &asked, &Outcome::Done, &mut effects);
            }
        }
        Ok(effects)
    }

    fn next_request(&mut self, rank: u32) -> Result<Option<Asked>, Malformed> {
        let Some(client) = self.clients.get_mut(&rank) else { return Ok(None) };
        let first = if client.speaks_two {
            version_two::first(&client.received)?
        } else {
            version_one::first(&client.received)?.map(|(request, length)| (Asked { request, thread: None }, length))
        };
        match first {
            Some((asked, length)) => {
                client.received.drain(..length);
                Ok(Some(asked))
            }
            None if client.received.len() > MAX_MESSAGE_BYTES => Err(Malformed("a message without end".to_owned())),
            None => Ok(None),
        }
    }

    fn serve(&mut self, rank: u32, asked: Asked, effects: &mut Vec<Effect>) {
        let outcome = match &asked.request {
            Request::Begin { version } => {
                self.begin(rank, *version);
                Outcome::Done
            }
            Request::Join | Request::Maxima | Request::ApplicationNumber => Outcome::Done,
            Request::SpaceName => Outcome::Value(Some(self.space.clone())),
            Request::UniverseSize => Outcome::Value(Some(self.layout.size().to_string())),
            Request::Put { key, value } => self.put(key, value),
            Request::Get { key } => Outcome::Value(self.put.get(key).or_else(|| self.shared.get(key)).cloned()),
            Request::GetJobAttribute { key } => Outcome::Value(self.job_attribute(key)),
            Request::PutNodeAttribute { key, value } => {
                let (key, value) = (key.clone(), value.clone());
                return self.put_node_attribute(rank, &asked, key, value, effects);
            }
            Request::GetNodeAttribute { key, waits } => {
                let value = self.node_attributes.get(key).cloned();
                if value.is_none() && *waits {
                    self.wait(rank, asked, effects);
                    effects.extend(self.impossible_wait());
                    return;
                }
                Outcome::Value(value)
            }
            Request::Fence => {
                self.wait(rank, asked, effects);
                effects.extend(self.begin_fence());
                return;
            }
            Request::Abort { status, message } => {
                let message = message.trim().replace(char::is_control, " ");
                let colon = if message.is_empty() { "" } else { ": " };
                let why = format!("it aborted the program{colon}{message}");
                effects.push(Effect::Abort { rank, status: Some(*status), why });
                return;
            }
            Request::Finalize => {
                self.set_stage(rank, Stage::Finalized);
                Outcome::Done
            }
            Request::Spawn { .. } => {
                effects.push(Effect::NoSpawn { rank });
                Outcome::Refused(NO_SPAWN)
            }
            Request::Other { .. } => Outcome::Refused(NO_NAMES),
        };
        self.answer(rank, &asked, &outcome, effects);
    }

    fn begin(&mut self, rank: u32, version: u32) {
        if let Some(client) = self.clients.get_mut(&rank) {
            client.speaks_two = version == 2;
            client.stage = Stage::Joined;
        }
    }

    fn set_stage(&mut self, rank: u32, stage: Stage) {
        if let Some(client) = self.clients.get_mut(&rank) {
            client.stage = stage;
        }
    }

    /// Only one request of a process can wait.
    fn wait(&mut self, rank: u32, asked: Asked, effects: &mut Vec<Effect>) {
        match self.clients.get_mut(&rank) {
            Some(client) if client.waits.is_none() => {
                self.in_fence += usize::from(is_fence(&asked));
                client.waits = Some(asked);
            }
            _ => self.answer(rank, &asked, &Outcome::Refused("another request of this process waits"), effects),
        }
    }

    fn put(&mut self, key: &str, value: &str) -> Outcome {
        let (put_bytes, kept_bytes) = (self.put_bytes + key.len() + value.len(), self.kept_bytes + kept(key, value));
        if put_bytes > MAX_PUT_BYTES || kept_bytes > MAX_KEPT_BYTES {
            return Outcome::Refused(TOO_MUCH);
        }
        self.put_bytes = put_bytes;
        self.put.insert(key.to_owned(), value.to_owned());
        Outcome::Done
    }

    fn job_attribute(&self, key: &str) -> Option<String> {
        match key {
            "universeSize" => Some(self.layout.size().to_string()),
            "hasNameServ" => Some("FALSE".to_owned()),
            "PMI_process_mapping" => self.shared.get(key).cloned(),
            _ => None,
        }
    }

    fn put_node_attribute(&mut self, rank: u32, asked: &Asked, key: String, value: String, effects: &mut Vec<Effect>) {
        let kept_bytes = self.kept_bytes + kept(&key, &value);
        if kept_bytes > MAX_KEPT_BYTES {
            return self.answer(rank, asked, &Outcome::Refused(TOO_MUCH), effects);
        }
        self.kept_bytes = kept_bytes;
        self.answer(rank, asked, &Outcome::Done, effects);
        for waiting in self.layout.local().to_vec() {
            let wants = |asked: &mut Asked| matches!(&asked.request, Request::GetNodeAttribute { key: wanted, .. } if *wanted == key);
            let waits = self.clients.get_mut(&waiting).and_then(|client| client.waits.take_if(wants));
            if let Some(asked) = waits {
                self.answer(waiting, &asked, &Outcome::Value(Some(value.clone())), effects);
            }
        }
        self.node_attributes.insert(key, value);
    }

    /// The exchange of a fence that all processes have come to, or the reason why that cannot be.
    fn begin_fence(&mut self) -> Option<Effect> {
        if let Some(impossible) = self.impossible_wait() {
            return Some(impossible);
        }
        if self.is_exchanging || self.in_fence < self.clients.len() {
            return None;
        }
        self.is_exchanging = true;
        self.put_bytes = 0;
        let contribution = pairs::to_bytes(&std::mem::take(&mut self.put));
        Some(Effect::Fence { number: self.next_fence, contribution })
    }

    /// Somebody waits for a process that is no more.
    fn impossible_wait(&self) -> Option<Effect> {
        if !self.has_ended {
            return None;
        }
        self.clients.values().find(|client| client.waits.is_some())?;
        let (rank, _) = self.clients.iter().find(|(_, client)| client.stage == Stage::Ended)?;
        Some(gone(*rank, "it ended, and others wait for it"))
    }

    fn answer(&self, rank: u32, asked: &Asked, outcome: &Outcome, effects: &mut Vec<Effect>) {
        let Some(client) = self.clients.get(&rank) else { return };
        let bytes = match (client.speaks_two, &asked.request) {
            (true, Request::Begin { .. }) => version_two::welcome(),
            (true, _) => version_two::answer(asked, outcome, &Member { rank, size: self.layout.size() }),
            (false, request) => version_one::answer(request, outcome),
        };
        if !bytes.is_empty() {
            effects.push(Effect::Send { rank, bytes });
        }
    }
}

impl Client {
    fn is_in_fence(&self) -> bool {
        self.waits.as_ref().is_some_and(is_fence)
    }
}

/// What a pair takes in memory, in bytes.
fn kept(key: &str, value: &str) -> usize {
    key.len() + value.len() + PAIR_BYTES
}

fn is_fence(asked: &Asked) -> bool {
    asked.request == Request::Fence
}

fn gone(rank: u32, why: &str) -> Effect {
    Effect::Abort { rank, status: None, why: why.to_owned() }
}
