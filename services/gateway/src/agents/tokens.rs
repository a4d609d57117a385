//! The tokens of agents.

use anyhow::{Context as _, bail};
use muster_schemas::agent::is_sum;
use std::{
    collections::HashMap,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

/// How often the file is looked at.
const LIFETIME: Duration = Duration::from_secs(1);

/// The file of agents: on each line the hash of a token and the name of its node; `#` begins a comment.
#[derive(Debug)]
pub(crate) struct AgentTokens {
    file: PathBuf,
    read: Mutex<Read>,
}

#[derive(Debug)]
struct Read {
    looked: Instant,
    modified: Option<SystemTime>,
    nodes: HashMap<blake3::Hash, Arc<str>>,
}

impl AgentTokens {
    pub(crate) fn open(file: &Path) -> anyhow::Result<Self> {
        let (modified, nodes) = read(file)?;
        Ok(Self { file: file.to_path_buf(), read: Mutex::new(Read { looked: Instant::now(), modified, nodes }) })
    }

    /// The node that a token is for. The lookup is by hash, so that its duration reveals nothing about the token.
    pub(crate) fn node(&self, token: &str) -> Option<Arc<str>> {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if known.looked.elapsed() >= LIFETIME {
            known.looked = Instant::now();
            let modified = std::fs::metadata(&self.file).and_then(|facts| facts.modified()).ok();
            if modified != known.modified {
                match read(&self.file) {
                    Ok(now) => (known.modified, known.nodes) = now,
                    // It may just be being written. It is read again when it has changed once more.
                    Err(error) => {
                        tracing::error!(error = format!("{error:#}"), "the tokens of agents stay as they are");
                        known.modified = modified;
                    }
                }
            }
        }
        known.nodes.get(&blake3::hash(token.as_bytes())).cloned()
    }
}

type Nodes = HashMap<blake3::Hash, Arc<str>>;

fn read(file: &Path) -> anyhow::Result<(Option<SystemTime>, Nodes)> {
    let facts = std::fs::metadata(file).with_context(|| format!("agents file {}", file.display()))?;
    // It holds no secret, but whoever writes to it lets agents in.
    if facts.mode() & 0o022 != 0 {
        bail!("agents file {} can be written by others: its mode must be 0644 or less", file.display());
    }
    let own = nix::unistd::geteuid().as_raw();
    if facts.uid() != own && facts.uid() != 0 {
        bail!("agents file {} belongs to user {}, not to {own} or root", file.display(), facts.uid());
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("agents file {}", file.display()))?;
    let mut nodes = Nodes::new();
    for (line, text) in (1..).zip(text.lines()) {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [sum, node] if is_sum(sum) => {
                let hash = blake3::Hash::from_hex(sum).context("a hash")?;
                nodes.insert(hash, node.into());
            }
            _ => bail!("{}:{line}: a line is the hash of a token and the name of a node", file.display()),
        }
    }
    Ok((facts.modified().ok(), nodes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn file(folder: &Path, text: &str, mode: u32) -> PathBuf {
        let file = folder.join("agents");
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    /// OAR-K-11: a token is for one node, and the file has only its hash.
    #[test]
    fn tokens_speak_for_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let sum = blake3::hash(b"the token").to_hex();
        let tokens = AgentTokens::open(&file(folder.path(), &format!("# ours\n{sum} far1\n"), 0o644)).unwrap();
        assert_eq!(tokens.node("the token").as_deref(), Some("far1"));
        assert_eq!((tokens.node("another"), tokens.node(&sum), tokens.node("")), (None, None, None));
    }

    #[test]
    fn files_that_cannot_be_trusted_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error =
            |text: &str, mode| format!("{:#}", AgentTokens::open(&file(folder.path(), text, mode)).unwrap_err());
        assert!(error("", 0o666).contains("written by others"));
        assert!(error("\nsecret far1\n", 0o600).contains("agents:2: a line is"));
    }
}
