//! The entries of an archive, read without trust.

use crate::{ArchiveError, is_gzip};
use flate2::read::MultiGzDecoder;
use std::{
    fs::File,
    io::{self, BufReader, Read},
};
use tar::EntryType;

/// The longest name of an entry, in bytes.
const MAX_NAME_BYTES: u64 = 4_096;
/// The most bytes of additional facts about an entry.
const MAX_FACT_BYTES: u64 = 64 << 10;
/// The most folders above a file.
const MAX_DEPTH: usize = 64;

/// The most that an archive may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files together.
    pub bytes: u64,
    /// Files and folders.
    pub entries: u64,
}

impl Limits {
    /// This many bytes, in at most 100,000 files and folders.
    pub const fn of_bytes(bytes: u64) -> Self {
        Self { bytes, entries: 100_000 }
    }

    /// The bytes of the whole archive without compression: each entry has up to three heads of a name.
    fn stream(self) -> u64 {
        self.bytes.saturating_add(self.entries.saturating_mul(4 * MAX_NAME_BYTES))
    }
}

/// A file or folder in an archive.
pub(crate) struct Entry<'a> {
    /// The parts of its name; none is empty, `.` or `..`.
    pub(crate) parts: Vec<String>,
    pub(crate) is_folder: bool,
    /// Whether its owner may execute it.
    pub(crate) is_executable: bool,
    pub(crate) bytes: u64,
    pub(crate) content: &'a mut dyn Read,
}

/// The place of an entry inside the folder of the job, as parts of a path. `None` for one that leads out of it: an absolute
/// path, `..`, or a name that is none (OAR-K-11). The folder itself has no parts.
pub fn inside(path: &str) -> Option<Vec<&str>> {
    if path.is_empty() || path.starts_with('/') || path.contains(['\0', '\\']) {
        return None;
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (parts.len() <= MAX_DEPTH && !parts.contains(&"..")).then_some(parts)
}

/// A stream that ends with an error after this many bytes: a small archive can unpack to a huge one.
struct Limited<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left =
            self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other("it unpacks to too many bytes"))?;
        Ok(read)
    }
}

/// Calls `take` for each file and folder, in order.
///
/// # Errors
/// The archive is malformed, holds anything else or too much; or what `take` returns.
pub(crate) fn each(
    archive: &mut File,
    limits: Limits,
    mut take: impl FnMut(Entry<'_>) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let is_compressed = is_gzip(archive)?;
    let file = BufReader::new(&mut *archive);
    let plain: Box<dyn Read + '_> = if is_compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut tar = tar::Archive::new(Limited { inner: plain, left: limits.stream() });
    let broken = |error: io::Error| ArchiveError::Refused(format!("it cannot be read: {error}"));
    let (mut bytes, mut count) = (0_u64, 0_u64);
    let mut long_name = None;
    // The names of long files come in entries of their own, which the library would read whatever their size.
    for entry in tar.entries().map_err(broken)?.raw(true) {
        let mut entry = entry.map_err(broken)?;
        let kind = entry.header().entry_type();
        let size = entry.header().entry_size().map_err(broken)?;
        match kind {
            EntryType::GNULongName => {
                long_name = Some(text(&mut entry, size, MAX_NAME_BYTES)?.trim_end_matches('\0').to_owned());
                continue;
            }
            EntryType::XHeader => {
                long_name = fact(&text(&mut entry, size, MAX_FACT_BYTES)?, "path").or(long_name);
                continue;
            }
            EntryType::XGlobalHeader => continue,
            _ => {}
        }
        let name = match long_name.take() {
            Some(name) => name,
            None => String::from_utf8(entry.header().path_bytes().into_owned())
                .map_err(|_| ArchiveError::Refused("a name is not UTF-8".into()))?,
        };
        let shown = || name.chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect::<String>();
        let is_folder = match kind {
            EntryType::Regular | EntryType::Continuous => name.ends_with('/'),
            EntryType::Directory => true,
            EntryType::Symlink | EntryType::Link => {
                return ArchiveError::refused(format!("`{}` is a link", shown()));
            }
            _ => return ArchiveError::refused(format!("`{}` is neither a file nor a folder", shown())),
        };
        let Some(parts) = inside(&name) else {
            return ArchiveError::refused(format!("`{}` leads out of the folder", shown()));
        };
        count += 1;
        bytes = if is_folder { bytes } else { bytes.saturating_add(size) };
        if count > limits.entries || bytes > limits.bytes {
            let Limits { bytes, entries } = limits;
            return ArchiveError::refused(format!("it has more than {bytes} bytes, or more than {entries} files"));
        }
        if parts.is_empty() && !is_folder {
            return ArchiveError::refused(format!("`{}` is not the name of a file", shown()));
        }
        let is_executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
        let parts = parts.into_iter().map(str::to_owned).collect();
        take(Entry { parts, is_folder, is_executable, bytes: size, content: &mut entry })?;
    }
    Ok(())
}

/// The content of a small entry.
fn text(entry: &mut dyn Read, size: u64, most: u64) -> Result<String, ArchiveError> {
    if size > most {
        return ArchiveError::refused(format!("a name has more than {most} bytes"));
    }
    let mut bytes = Vec::new();
    entry.take(most).read_to_end(&mut bytes).map_err(|error| ArchiveError::Refused(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| ArchiveError::Refused("a name is not UTF-8".into()))
}

/// A fact of an extended head, whose lines are `LENGTH KEY=VALUE`.
fn fact(text: &str, key: &str) -> Option<String> {
    let mut rest = text;
    let mut found = None;
    while let Some((length, _)) = rest.split_once(' ') {
        let line = rest.get(..length.parse().ok()?)?;
        let (name, value) = line.get(length.len() + 1..)?.strip_suffix('\n')?.split_once('=')?;
        if name == key {
            found = Some(value.to_owned());
        }
        rest = &rest[line.len()..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// OAR-K-11: no name leads out of the folder.
        #[test]
        fn no_name_leads_out(path in "[./a\\\\]{0,12}") {
            if let Some(parts) = inside(&path) {
                proptest::prop_assert!(!path.starts_with('/'));
                proptest::prop_assert!(parts.iter().all(|part| !matches!(*part, "" | "." | "..")));
            }
        }

        #[test]
        fn no_head_makes_it_panic(text: String) {
            let _ = fact(&text, "path");
        }
    }

    #[test]
    fn long_names_are_read() {
        assert_eq!(fact("20 mtime=1700000000\n14 path=a/b/c\n", "path").as_deref(), Some("a/b/c"));
        assert_eq!(fact("99 path=a\n", "path"), None);
    }
}
