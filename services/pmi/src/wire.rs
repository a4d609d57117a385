//! What processes ask for and what they are answered, in either version.

/// A request of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Its first words, with the version that it speaks.
    Begin {
        version: u32,
    },
    /// Its second words in version 2: it has joined.
    Join,
    /// How long keys and values can be.
    Maxima,
    /// Which of several programs that were started together it belongs to.
    ApplicationNumber,
    /// The name of the space that keys are in.
    SpaceName,
    /// How many processes there are room for.
    UniverseSize,
    Put {
        key: String,
        value: String,
    },
    Get {
        key: String,
    },
    Fence,
    PutNodeAttribute {
        key: String,
        value: String,
    },
    /// `waits` until somebody on this node has put it.
    GetNodeAttribute {
        key: String,
        waits: bool,
    },
    GetJobAttribute {
        key: String,
    },
    Abort {
        status: i32,
        message: String,
    },
    Finalize,
    /// More processes, which this server does not start, by the name of its answer.
    Spawn {
        answer: &'static str,
    },
    /// Something else that this server does not do, by the name of its answer.
    Other {
        answer: &'static str,
    },
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// For a question: the value, if there is one.
    Value(Option<String>),
    /// Why not.
    Refused(&'static str),
}

/// A message that cannot be understood: what it is instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub String);

/// The words of a message: `name=value`, in order.
#[derive(Debug)]
pub(crate) struct Words(Vec<(String, String)>);

impl Words {
    pub fn new(words: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(words.into_iter().collect())
    }

    /// The value of a word.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a word that must be there.
    pub fn needed(&self, name: &str) -> Result<String, Malformed> {
        let missing = || Malformed(format!("`{}` without `{name}`", self.get("cmd").unwrap_or("a message")));
        self.get(name).map(str::to_owned).ok_or_else(missing)
    }
}

/// The text of a message.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    let malformed = || Malformed("bytes that are no text".to_owned());
    str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or_else(malformed)
}
