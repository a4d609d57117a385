//! The identity of a caller: from the kernel on the Unix socket, from a token over TCP.

use crate::{
    budgets::{Account, Budgets},
    error::ApiError,
};
use anyhow::{Context as _, bail};
use muster_schemas::{event::Owner, job_token::JobToken, views::ErrorCode};
use nix::unistd::{Uid, User};
use std::{
    collections::HashMap,
    net::IpAddr,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

/// How long a looked-up name stays valid.
const NAME_LIFETIME: Duration = Duration::from_secs(60);
/// The most names that are remembered.
const MAX_NAMES: usize = 10_000;
/// How often the tokens file is checked for changes.
const TOKENS_LIFETIME: Duration = Duration::from_secs(1);
/// The least length of a token; a shorter one could be guessed.
const MIN_TOKEN_BYTES: usize = 16;

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    /// A process of this host.
    Process { uid: u32, gid: u32 },
    /// A caller who has to show a token.
    Remote { address: IpAddr },
    /// The kernel does not identify the caller.
    Unknown,
}

impl From<Peer> for Account {
    fn from(peer: Peer) -> Self {
        match peer {
            Peer::Process { uid, .. } => Self::User(uid),
            Peer::Remote { address } => Self::of_address(address),
            Peer::Unknown => Self::Unknown,
        }
    }
}

/// Identifies callers.
#[derive(Debug)]
pub(crate) struct Callers {
    names: Names,
    tokens: Option<Tokens>,
    budgets: Budgets,
}

impl Callers {
    pub(crate) fn new(tokens_file: Option<&Path>, budgets: Budgets) -> anyhow::Result<Self> {
        let tokens = tokens_file.map(Tokens::open).transpose()?;
        Ok(Self { names: Names::default(), tokens, budgets })
    }

    /// The user behind a connection.
    pub(crate) async fn identify(&self, peer: Peer, authorization: Option<&str>) -> Result<Arc<Owner>, ApiError> {
        match peer {
            Peer::Process { uid, gid } => self.names.owner(uid, gid).await,
            Peer::Remote { .. } => self.by_token(peer, authorization).await,
            Peer::Unknown => Err(unknown("the kernel does not say who calls")),
        }
    }

    /// The token of a job, if a caller over TCP shows one.
    pub(crate) fn job_token(&self, peer: Peer, authorization: Option<&str>) -> Option<JobToken> {
        let token = authorization.and_then(bearer).filter(|_| matches!(peer, Peer::Remote { .. }))?;
        token.parse().ok()
    }

    /// The error for a wrong token: callers who try out tokens get ever slower answers.
    pub(crate) async fn refuse(&self, peer: Peer, why: &str) -> ApiError {
        tokio::time::sleep(self.budgets.guess_penalty(peer.into())).await;
        unknown(why)
    }

    async fn by_token(&self, peer: Peer, authorization: Option<&str>) -> Result<Arc<Owner>, ApiError> {
        let token = authorization.and_then(bearer);
        let token = token.ok_or_else(|| unknown("a token is needed: `Authorization: Bearer TOKEN`"))?;
        let user = self.tokens.as_ref().and_then(|tokens| tokens.user(token));
        let Some(user) = user else {
            return Err(self.refuse(peer, "the token is not known").await);
        };
        let looked_up = tokio::task::spawn_blocking(move || (User::from_name(&user), user)).await;
        match looked_up {
            Ok((Ok(Some(found)), user)) => {
                Ok(Arc::new(Owner { user, uid: found.uid.as_raw(), gid: found.gid.as_raw() }))
            }
            Ok((Ok(None), user)) => Err(unknown(format!("the token's user `{user}` does not exist on this host"))),
            Ok((Err(error), user)) => Err(unknown(format!("the token's user `{user}` cannot be looked up: {error}"))),
            Err(_) => Err(ApiError::unavailable("the gateway is stopping")),
        }
    }
}

/// The text after `Bearer`.
pub(crate) fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn unknown(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::Unauthenticated, message)
}

/// Login names of user numbers, looked up at most once a minute: a directory service can be slow.
#[derive(Debug, Default)]
struct Names {
    known: Mutex<KnownNames>,
}

/// By user and group number, with the time of the lookup.
type KnownNames = HashMap<(u32, u32), (Instant, Arc<Owner>)>;

impl Names {
    async fn owner(&self, uid: u32, gid: u32) -> Result<Arc<Owner>, ApiError> {
        if let Some((since, owner)) = self.lock().get(&(uid, gid))
            && since.elapsed() < NAME_LIFETIME
        {
            return Ok(owner.clone());
        }
        let found = tokio::task::spawn_blocking(move || User::from_uid(Uid::from_raw(uid))).await;
        let name = match found {
            Ok(Ok(Some(user))) => user.name,
            Ok(Ok(None)) => return Err(unknown(format!("user number {uid} has no login name on this host"))),
            Ok(Err(error)) => return Err(unknown(format!("user number {uid} cannot be looked up: {error}"))),
            Err(_) => return Err(ApiError::unavailable("the gateway is stopping")),
        };
        let owner = Arc::new(Owner { user: name, uid, gid });
        let mut known = self.lock();
        if known.len() >= MAX_NAMES {
            known.clear();
        }
        known.insert((uid, gid), (Instant::now(), owner.clone()));
        Ok(owner)
    }

    fn lock(&self) -> MutexGuard<'_, KnownNames> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tokens file: on each line a token and the login name of its user, `#` begins a comment.
#[derive(Debug)]
struct Tokens {
    file: PathBuf,
    read: Mutex<TokensRead>,
}

#[derive(Debug)]
struct TokensRead {
    looked: Instant,
    modified: Option<SystemTime>,
    /// By hash, so that the duration of a lookup reveals nothing about a token.
    users: HashMap<blake3::Hash, String>,
}

impl Tokens {
    fn open(file: &Path) -> anyhow::Result<Self> {
        let (modified, users) = read_tokens(file)?;
        let read = TokensRead { looked: Instant::now(), modified, users };
        Ok(Self { file: file.to_path_buf(), read: Mutex::new(read) })
    }

    fn user(&self, token: &str) -> Option<String> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.looked.elapsed() >= TOKENS_LIFETIME {
            read.looked = Instant::now();
            let modified = std::fs::metadata(&self.file).and_then(|metadata| metadata.modified()).ok();
            if modified != read.modified {
                match read_tokens(&self.file) {
                    Ok((modified, users)) => (read.modified, read.users) = (modified, users),
                    // A file that cannot be trusted any more admits nobody.
                    Err(error) => {
                        tracing::error!(error = format!("{error:#}"), "no token is accepted");
                        (read.modified, read.users) = (modified, HashMap::new());
                    }
                }
            }
        }
        read.users.get(&blake3::hash(token.as_bytes())).cloned()
    }
}

fn read_tokens(file: &Path) -> anyhow::Result<(Option<SystemTime>, HashMap<blake3::Hash, String>)> {
    let metadata = std::fs::metadata(file).with_context(|| format!("tokens file {}", file.display()))?;
    if metadata.permissions().mode() & 0o077 != 0 {
        bail!("tokens file {} can be read by others: its mode must be 0600", file.display());
    }
    let own = nix::unistd::geteuid().as_raw();
    if metadata.uid() != own && metadata.uid() != 0 {
        bail!("tokens file {} belongs to user {}, not to {own} or root", file.display(), metadata.uid());
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("tokens file {}", file.display()))?;
    let mut users = HashMap::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let place = || format!("{}:{line}", file.display());
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            [token, user] if token.len() >= MIN_TOKEN_BYTES => {
                users.insert(blake3::hash(token.as_bytes()), user.to_owned())
            }
            [_, _] => bail!("{}: a token has at least {MIN_TOKEN_BYTES} characters", place()),
            _ => bail!("{}: a line is a token and a login name", place()),
        };
    }
    Ok((metadata.modified().ok(), users))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, text: &str, mode: u32) -> PathBuf {
        let file = folder.join("tokens");
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn tokens_speak_for_users() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "# ours\n0123456789abcdef ada\n", 0o600);
        let tokens = Tokens::open(&path).unwrap();
        assert_eq!(tokens.user("0123456789abcdef").as_deref(), Some("ada"));
        assert_eq!(tokens.user("0123456789abcdeg"), None);
        assert_eq!(tokens.user(""), None);
    }

    #[test]
    fn files_that_cannot_be_trusted_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error =
            |text: &str, mode: u32| format!("{:#}", Tokens::open(&file(folder.path(), text, mode)).unwrap_err());
        assert!(error("0123456789abcdef ada\n", 0o644).contains("0600"));
        assert!(error("short ada\n", 0o600).contains("tokens:1: a token has at least"));
        assert!(error("\n0123456789abcdef\n", 0o600).contains("tokens:2: a line is"));
    }

    #[tokio::test]
    async fn processes_are_known_by_their_user_number() {
        let callers = Callers::new(None, Budgets::new(&crate::Config::default())).unwrap();
        let owner = callers.identify(Peer::Process { uid: 0, gid: 0 }, None).await.unwrap();
        assert_eq!((owner.user.as_str(), owner.uid), ("root", 0));
        let error = callers.identify(Peer::Process { uid: 4_000_000_000, gid: 0 }, None).await.unwrap_err();
        assert_eq!(error.0.code, ErrorCode::Unauthenticated);
        let remote = Peer::Remote { address: [127, 0, 0, 1].into() };
        let error = callers.identify(remote, None).await.unwrap_err();
        assert_eq!(error.0.code, ErrorCode::Unauthenticated);
    }
}
