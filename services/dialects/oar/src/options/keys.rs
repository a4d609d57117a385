//! Keys that open the nodes of a job (OAR-X-09).

use super::getopt::{Name, Words};
use crate::refusal::{Code, Refusal};
use std::fmt;

/// Where the key pair of a job comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// A new pair.
    Made,
    /// Files: the private key, and the public one if it is not beside it.
    Files {
        /// The file of the private key.
        private: String,
        /// The file of the public key.
        public: Option<String>,
    },
    /// The private key itself. It is never printed (OAR-X-10).
    Inline(String),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made => f.write_str("Made"),
            Self::Files { private, public } => write!(f, "Files({private:?}, {public:?})"),
            Self::Inline(_) => f.write_str("Inline(hidden)"),
        }
    }
}

/// The keys of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Where the pair comes from.
    pub source: Source,
    /// The file that the private key is written to; it may have `%jobid%`.
    pub export: Option<String>,
}

/// Reads the options about keys. `None` if there are none.
///
/// # Errors
/// More than one source of a pair, or a public key without a private one (-10).
pub fn read(words: &Words) -> Result<Option<Keys>, Refusal> {
    let owned = |name: Name| words.value(name).map(str::to_owned);
    let (import, private) = (owned(Name::ImportJobKey), owned(Name::SshPrivateKey));
    let (public, inline) = (owned(Name::SshPublicKey), owned(Name::ImportJobKeyInline));
    let export = owned(Name::ExportJobKey);
    let refused = |why: &str| Err(Refusal::new(Code::Keys, why));
    let source = match (import.or(private.clone()), inline, public) {
        (Some(_), Some(_), _) => return refused("a job key comes from a file or from the command line, not from both"),
        (None, _, Some(_)) => return refused("--ssh_public_key needs --ssh_private_key"),
        (Some(_), None, _) if words.has(Name::ImportJobKey) && private.is_some() => {
            return refused("a job key comes from -i or from --ssh_private_key, not from both");
        }
        (Some(private), None, public) => Source::Files { private, public },
        (None, Some(key), None) => Source::Inline(key),
        (None, None, None) if words.has(Name::UseJobKey) || export.is_some() => Source::Made,
        (None, None, None) => return Ok(None),
    };
    Ok(Some(Keys { source, export }))
}
