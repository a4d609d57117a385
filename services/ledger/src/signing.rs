//! The ledger's key, and what a checkpoint's signature covers.

use crate::{from_hex, hex, log::Hash};
use ed25519_dalek::{
    Signature, Signer as _, SigningKey, VerifyingKey,
    pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, spki::der::pem::LineEnding},
};
use muster_schemas::{
    event::{SignatureBytes, uuid_bytes::UuidBytes},
    ids::Sequence,
};
use rand::RngCore as _;
use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// Why the key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The operating system refused.
    #[error("the ledger's key {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's message.
        error: std::io::Error,
    },
    /// The file's contents are not a key.
    #[error("the ledger's key {path} is not an Ed25519 private key in PEM: {detail}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// A description of the fault.
        detail: String,
    },
    /// Others than its owner may read it.
    #[error("the ledger's key {path} can be read by others (mode {mode:03o}); make it 600, and consider it known")]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

/// Signs checkpoints.
pub struct Signer {
    key: SigningKey,
}

impl Signer {
    /// The key in a file; if there is none, a new one in a draft next to it until [`adopt`] puts it there: an Ed25519
    /// private key in PKCS 8 PEM, mode 0600. So a key is in its place only once its log has a first record.
    ///
    /// # Errors
    /// If the file cannot be read or created, is not a key, or is open to others.
    pub fn load_or_draft(path: &Path) -> Result<Self, KeyError> {
        match Self::load(path) {
            Err(KeyError::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
                Self::draft(&draft_of(path))
            }
            loaded => loaded,
        }
    }

    /// The key in a file.
    ///
    /// # Errors
    /// If the file cannot be read, is not a key, or is open to others.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let failed = |error| KeyError::Io { path: path.to_owned(), error };
        let mut file = crate::open_regular(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Open { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let key = SigningKey::from_pkcs8_pem(&text)
            .map_err(|error| KeyError::Malformed { path: path.to_owned(), detail: error.to_string() })?;
        Ok(Self { key })
    }

    fn draft(path: &Path) -> Result<Self, KeyError> {
        let failed = |error| KeyError::Io { path: path.to_owned(), error };
        let mut seed = [0; 32];
        rand::rng().fill_bytes(&mut seed);
        let key = SigningKey::from_bytes(&seed);
        let text = key
            .to_pkcs8_pem(LineEnding::LF)
            .map_err(|error| KeyError::Malformed { path: path.to_owned(), detail: error.to_string() })?;
        // Left by an interrupted first start.
        let _ = fs::remove_file(path);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        crate::sync_folder_of(path).map_err(failed)?;
        Ok(Self { key })
    }

    /// A key for another use, from which this one cannot be derived. `context` names that use, and only that one.
    pub(crate) fn derived_key(&self, context: &'static str) -> [u8; blake3::KEY_LEN] {
        blake3::derive_key(context, self.key.as_bytes())
    }

    /// The public half.
    pub fn public_key(&self) -> [u8; 32] {
        self.key.verifying_key().to_bytes()
    }

    /// The signature of a text.
    pub fn sign(&self, text: &[u8]) -> SignatureBytes {
        let bytes = self.key.sign(text).to_bytes();
        let (mut r, mut s) = ([0; 32], [0; 32]);
        r.copy_from_slice(&bytes[..32]);
        s.copy_from_slice(&bytes[32..]);
        SignatureBytes { r, s }
    }
}

/// Puts the draft of a key in its place, if its public half is this one and there is no key yet.
///
/// # Errors
/// If the file cannot be read or moved.
pub fn adopt(path: &Path, public_key: &[u8; 32]) -> Result<(), KeyError> {
    let failed = |error| KeyError::Io { path: path.to_owned(), error };
    let draft = draft_of(path);
    if path.try_exists().map_err(failed)? || !draft.try_exists().map_err(failed)? {
        return Ok(());
    }
    if Signer::load(&draft)?.public_key() == *public_key {
        fs::rename(&draft, path).map_err(failed)?;
        crate::sync_folder_of(path).map_err(failed)?;
    }
    Ok(())
}

fn draft_of(path: &Path) -> PathBuf {
    path.with_extension("key.new")
}

/// The 64 bytes of a signature as hexadecimal digits.
pub(crate) fn signature_hex(signature: &SignatureBytes) -> String {
    hex(&[signature.r, signature.s].concat())
}

/// A signature from hexadecimal digits.
pub(crate) fn signature_from_hex(text: &str) -> Option<SignatureBytes> {
    let bytes = from_hex(text)?;
    let (r, s) = bytes.split_first_chunk::<32>()?;
    Some(SignatureBytes { r: *r, s: s.try_into().ok()? })
}

/// Whether a signature of a text was made with the private half of a key.
pub fn is_signed(public_key: &[u8; 32], text: &[u8], signature: &SignatureBytes) -> bool {
    let signature = Signature::from_components(signature.r, signature.s);
    VerifyingKey::from_bytes(public_key).is_ok_and(|key| key.verify_strict(text, &signature).is_ok())
}

/// The text that a snapshot's signature covers: the digest of its bytes, and the last record in it; `docs/audit.md`
/// describes it.
pub fn snapshot_text(cluster: UuidBytes, of: Sequence, record_hash: &Hash, body_digest: &Hash) -> String {
    format!(
        "muster snapshot 1\ncluster {cluster}\nsequence {of}\nrecord {}\nbody {}\n",
        hex(record_hash),
        hex(body_digest)
    )
}

/// The text that a checkpoint's signature covers; `docs/audit.md` describes it.
pub fn checkpoint_text(cluster: UuidBytes, of: Sequence, record_hash: &Hash, state_digest: &Hash) -> String {
    format!(
        "muster checkpoint 1\ncluster {cluster}\nsequence {of}\nrecord {}\nstate {}\n",
        hex(record_hash),
        hex(state_digest)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_signs_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.key");
        let made = Signer::load_or_draft(&path).unwrap();
        assert!(!path.exists());
        adopt(&path, &[7; 32]).unwrap();
        assert!(!path.exists(), "the draft of another key is left where it is");
        adopt(&path, &made.public_key()).unwrap();
        let found = Signer::load_or_draft(&path).unwrap();
        assert_eq!(made.public_key(), found.public_key());
        let signature = made.sign(b"text");
        assert!(is_signed(&found.public_key(), b"text", &signature));
        assert!(!is_signed(&found.public_key(), b"test", &signature));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.key");
        adopt(&path, &Signer::load_or_draft(&path).unwrap().public_key()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Signer::load(&path), Err(KeyError::Open { mode: 0o644, .. })));
        fs::write(&path, "nonsense").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(Signer::load_or_draft(&path), Err(KeyError::Malformed { .. })));
    }
}
