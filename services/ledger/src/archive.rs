//! Archives: old ranges of the log as compressed bundles, in a separate folder.

use crate::{
    bundle::{self, BundleError, Header},
    log::{Hash, Identity, Log, LogError, Stored},
    signing::Signer,
};
use flate2::{Compression, bufread::GzDecoder, write::GzEncoder};
use muster_schemas::ids::Sequence;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

const EXTENSION: &str = "musteraudit.gz";

/// The archives of one log.
#[derive(Clone, Debug)]
pub struct Archives {
    folder: PathBuf,
}

/// One archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Archive {
    /// Its first record.
    pub first: Sequence,
    /// Its last record.
    pub last: Sequence,
    /// The file.
    pub path: PathBuf,
}

impl Archives {
    /// The archives in a folder, which need not exist.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All archives, in order.
    pub fn list(&self) -> Vec<Archive> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut archives: Vec<_> = entries.filter_map(Result::ok).filter_map(|entry| named(&entry.path())).collect();
        archives.sort();
        archives
    }

    /// The archive that holds a record.
    pub fn holding(&self, sequence: Sequence) -> Option<Archive> {
        self.list().into_iter().find(|archive| archive.first <= sequence && sequence <= archive.last)
    }

    /// Writes a range of the log to an archive, whole or not at all, and reads it back.
    ///
    /// # Errors
    /// If the range cannot be read or the file cannot be written.
    pub fn store(
        &self,
        log: &Log,
        identity: &Identity,
        first: Sequence,
        last: Sequence,
        signer: &Signer,
    ) -> Result<(Archive, Hash), BundleError> {
        // Not the folders above it: if the ledger's folder was removed, it is not made again.
        match fs::create_dir(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        let path = self.folder.join(format!("{:020}-{:020}.{EXTENSION}", first.0, last.0));
        let draft = path.with_extension("draft");
        let file = io::BufWriter::new(fs::File::create(&draft)?);
        let output = GzEncoder::new(file, Compression::fast());
        let output = write_range(output, log, identity, first, last, Some(signer))?;
        output.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        let hash = read(&draft, |_| Ok(()))?;
        fs::rename(&draft, &path)?;
        crate::sync_folder_of(&path)?;
        Ok((Archive { first, last, path }, hash))
    }
}

impl Archive {
    /// The file's name.
    pub fn file_name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Passes every record to `visit`, in order, and checks the archive on the way. Returns the hash of the last one.
    ///
    /// # Errors
    /// If the file cannot be read or was altered, or as `visit` fails.
    pub fn read(&self, visit: impl FnMut(&Stored<'_>) -> Result<(), BundleError>) -> Result<Hash, BundleError> {
        read(&self.path, visit)
    }

    /// The header of the archive.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn header(&self) -> Result<Header, BundleError> {
        Ok(open(&self.path)?.header().clone())
    }
}

fn open(path: &Path) -> Result<bundle::Reader<io::BufReader<GzDecoder<io::BufReader<fs::File>>>>, BundleError> {
    let file = io::BufReader::new(fs::File::open(path)?);
    bundle::Reader::new(io::BufReader::new(GzDecoder::new(file)))
}

fn read(path: &Path, mut visit: impl FnMut(&Stored<'_>) -> Result<(), BundleError>) -> Result<Hash, BundleError> {
    let mut reader = open(path)?;
    while let Some(stored) = reader.next()? {
        visit(&stored)?;
    }
    Ok(reader.hash())
}

fn named(path: &Path) -> Option<Archive> {
    let range = path.file_name()?.to_str()?.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    let (first, last) = range.split_once('-')?;
    let sequence = |text: &str| text.parse().ok().map(Sequence);
    Some(Archive { first: sequence(first)?, last: sequence(last)?, path: path.to_owned() })
}

/// Writes the records from `first` to `last` as a bundle.
///
/// # Errors
/// If one of them is missing or damaged, or the output fails.
pub fn write_range<W: io::Write>(
    output: W,
    log: &Log,
    identity: &Identity,
    first: Sequence,
    last: Sequence,
    signer: Option<&Signer>,
) -> Result<W, BundleError> {
    let previous = log.hash_of(Sequence(first.0.saturating_sub(1)))?;
    let mut writer = bundle::Writer::new(output, identity, first, last, &previous)?;
    let mut expected = first;
    let mut entries = log.entries(first);
    while expected <= last {
        let stored = entries.next()?.filter(|stored| stored.sequence == expected);
        let stored = stored.ok_or(LogError::DamagedRecord { sequence: expected, detail: "it is missing".into() })?;
        writer.push(&stored, |of| log.hash_of(of))?;
        expected = expected.next();
    }
    writer.finish(signer)
}
