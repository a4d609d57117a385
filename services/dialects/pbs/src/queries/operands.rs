//! What commands are about: jobs, queues and servers.

use crate::{
    job_id::PbsJobId,
    refusal::{Refusal, shown},
};

/// The most operands of a command.
const MOST: usize = 100_000;

/// A queue at a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    /// The queue; `None` for all, or for the default one.
    pub queue: Option<String>,
    /// The server; `None` for the default one.
    pub server: Option<String>,
}

impl Destination {
    /// Reads `queue`, `@server` or `queue@server`.
    ///
    /// # Errors
    /// A text that is none of these.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let (queue, server) = text.split_once('@').map_or((text, None), |(queue, server)| (queue, Some(server)));
        let is_name = |name: &str| {
            let fits = |c: char| !c.is_whitespace() && !c.is_control() && c != '@';
            !name.is_empty() && name.len() <= 255 && name.chars().all(fits)
        };
        let is_bad = (queue.is_empty() && server.is_none()) || (!queue.is_empty() && !is_name(queue));
        if is_bad || server.is_some_and(|server| !is_name(server)) {
            return Err(Refusal::value("destination", text, "expected queue, @server or queue@server"));
        }
        let queue = Some(queue.to_owned()).filter(|queue| !queue.is_empty());
        Ok(Self { queue, server: server.map(str::to_owned) })
    }
}

/// A job or a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A job.
    Job(PbsJobId),
    /// A queue or server.
    Destination(Destination),
}

/// Reads operands that are jobs or destinations. A word that begins with a digit is a job.
///
/// # Errors
/// A word that is neither.
pub fn operands(words: &[String]) -> Result<Vec<Operand>, Refusal> {
    refuse_too_many(words)?;
    let one = |word: &String| match PbsJobId::is_meant(word) {
        true => word.parse().map(Operand::Job),
        false => Destination::parse(word).map(Operand::Destination),
    };
    words.iter().map(one).collect()
}

/// Reads operands that are jobs, at least one.
///
/// # Errors
/// No word, or one that is not an identifier.
pub fn ids(words: &[String]) -> Result<Vec<PbsJobId>, Refusal> {
    refuse_too_many(words)?;
    if words.is_empty() {
        return Err(Refusal::Operands("a job identifier is missing".to_owned()));
    }
    let illegal = |word: &String| Refusal::Operands(format!("illegally formed job identifier: {}", shown(word)));
    words.iter().map(|word| word.parse().map_err(|_: Refusal| illegal(word))).collect()
}

fn refuse_too_many(words: &[String]) -> Result<(), Refusal> {
    match words.len() > MOST {
        true => Err(Refusal::Operands(format!("at most {MOST} operands are taken"))),
        false => Ok(()),
    }
}
