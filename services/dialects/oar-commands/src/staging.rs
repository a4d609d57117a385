//! Files that are sent with a job (OAR-K-07, OAR-K-08).

use super::ended::Failure;
use muster_archive::{ArchiveError, files_of, pack, sum_of};
use muster_client::Client;
use muster_oar::{options::submission::StageIn, text::shown};
use muster_schemas::{agent::PIECE_BYTES, job::StageIn as Archive};
use std::{fs::File, io, os::unix::fs::FileExt as _, path::Path};

/// The exit status for files that cannot be read.
const BAD_FILE: u8 = 12;
/// More than any gateway takes by default.
const MAX_BYTES: u64 = 1 << 40;

/// Sends the files unless the gateway has them, and returns what the job names them by.
pub fn send(client: &mut Client, wanted: &StageIn) -> Result<Archive, Failure> {
    let name = wanted.md5.as_ref().map(|sum| format!("md5:{sum}"));
    if let Some(name) = &name
        && let Some(known) = client.archive(name)?.archive
    {
        return Ok(known);
    }
    let unreadable =
        |error: ArchiveError| Failure { text: format!("{}: {error}", shown(&wanted.path)), status: BAD_FILE };
    let mut file = open(Path::new(&wanted.path)).map_err(unreadable)?;
    let (sum, bytes) = sum_of(&mut file).map_err(|error| unreadable(error.into()))?;
    let mut known = client.archive(&sum)?;
    let mut piece = vec![0; PIECE_BYTES];
    // An archive that is there is sent no more; a name of it may be new.
    while known.archive.is_none() || name.is_some() {
        let offset = known.bytes.min(bytes);
        let read = file.read_at(&mut piece, offset).map_err(|error| unreadable(error.into()))?;
        if read == 0 && known.archive.is_none() {
            return Err(unreadable(io::Error::other("it became shorter").into()));
        }
        known = client.send_archive((&sum, bytes), name.as_deref(), offset, &piece[..read])?;
        if known.archive.is_some() {
            break;
        }
    }
    known.archive.ok_or_else(|| Failure::new("the gateway does not keep the files"))
}

/// The archive: the file itself, or one of what is in the folder. Links in a folder are left out.
fn open(path: &Path) -> Result<File, ArchiveError> {
    if !path.is_dir() {
        return Ok(File::open(path)?);
    }
    let files: Vec<_> = files_of(path)?.into_keys().collect();
    let archive = tempfile::tempfile()?;
    pack(path, &files, archive.try_clone()?, MAX_BYTES)?;
    Ok(archive)
}
