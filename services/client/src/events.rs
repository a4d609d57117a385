use crate::{
    Endpoint,
    connection::{BodyStream, Connection},
    error::ClientError,
    query::Parameters,
};
use muster_schemas::{JobId, Sequence};
use std::time::Duration;

/// The gateway sends at least a comment this often; a connection that is silent twice as long is dead.
const SILENCE: Duration = Duration::from_secs(40);

/// An event of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEvent {
    /// Its sequence in the log.
    pub sequence: Sequence,
    /// Its type, such as `muster.job.started.v1`.
    pub kind: String,
    /// The CloudEvent.
    pub json: String,
}

/// Events as they happen. When the connection breaks, [`next`](Self::next) returns an error; calling it again
/// reconnects after the last event that was read: none is lost and none comes twice.
#[derive(Debug)]
pub struct EventStream {
    endpoint: Endpoint,
    job: Option<JobId>,
    kinds: Vec<String>,
    from: Option<Sequence>,
    body: Option<BodyStream>,
}

impl EventStream {
    pub(crate) fn open(
        endpoint: Endpoint,
        from: Option<Sequence>,
        job: Option<JobId>,
        kinds: &[String],
    ) -> Result<Self, ClientError> {
        let mut stream = Self { endpoint, job, kinds: kinds.to_vec(), from, body: None };
        stream.connect()?;
        Ok(stream)
    }

    fn connect(&mut self) -> Result<&mut BodyStream, ClientError> {
        let mut parameters = Parameters::default();
        parameters.optional("from", self.from);
        parameters.optional("job", self.job);
        parameters.list("kind", self.kinds.iter().cloned());
        let mut connection = Connection::open(&self.endpoint)?;
        connection.set_timeout(Some(SILENCE))?;
        connection.send("GET", &parameters.path("/v1/events"), &[], None, &self.endpoint)?;
        let mut body = connection.into_stream()?;
        body.set_timeout(Some(SILENCE))?;
        Ok(self.body.insert(body))
    }

    /// The next event. Waits while there is none.
    ///
    /// # Errors
    /// The connection broke, or the gateway refused. Calling it again reconnects.
    #[allow(clippy::should_implement_trait, reason = "an iterator would have to hide that errors are not the end")]
    pub fn next(&mut self) -> Result<ServerEvent, ClientError> {
        loop {
            if let Some(event) = self.next_until_caught_up()? {
                return Ok(event);
            }
        }
    }

    /// The next event, or once `None` when everything has been read that had happened by the time of the request.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn next_until_caught_up(&mut self) -> Result<Option<ServerEvent>, ClientError> {
        let result = self.read();
        if result.is_err() {
            self.body = None;
        }
        result
    }

    fn read(&mut self) -> Result<Option<ServerEvent>, ClientError> {
        loop {
            let body = match &mut self.body {
                Some(body) => body,
                None => self.connect()?,
            };
            match read_item(body)? {
                Item::Event(event) => {
                    self.from = Some(event.sequence.next());
                    return Ok(Some(event));
                }
                Item::Comment(text) if text == "caught up" => return Ok(None),
                Item::Comment(text) => {
                    // Where the stream begins: a connection that breaks before the first event then loses none.
                    let from = text.strip_prefix("from ").and_then(|sequence| sequence.parse().ok());
                    self.from = self.from.or(from.map(Sequence));
                }
            }
        }
    }
}

enum Item {
    Event(ServerEvent),
    Comment(String),
}

fn read_item(body: &mut BodyStream) -> Result<Item, ClientError> {
    let mut event = ServerEvent { sequence: Sequence(0), kind: String::new(), json: String::new() };
    while let Some(line) = body.read_line()? {
        let Some((field, value)) = line.split_once(':') else {
            if !event.json.is_empty() {
                return Ok(Item::Event(event));
            }
            continue;
        };
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => return Ok(Item::Comment(value.to_owned())),
            "id" => event.sequence = Sequence(value.parse().unwrap_or_default()),
            "event" => value.clone_into(&mut event.kind),
            "data" => event.json.push_str(value),
            _ => {}
        }
    }
    Err(ClientError::AnswerLost("the gateway closed the stream".to_owned()))
}
