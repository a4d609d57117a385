//! Which MPI library a program is linked with: from its file, and from what its processes have loaded.

use muster_schemas::steps::ProcessManagement;
use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

/// The most that is read of a list of a program: its segments, its dynamic section, its names, its loaded files.
const MAX_READ_BYTES: u64 = 1 << 20;
/// The head of an ELF file with 64 bits: magic, class, little endian.
const ELF: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
const HEAD_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
const ENTRY_BYTES: usize = 16;
const LOADED: u64 = 1;
const DYNAMIC: u64 = 2;
const NEEDED: u64 = 1;
const NAMES: u64 = 5;
const NAMES_LENGTH: u64 = 10;
/// The longest version in the name of a library, in bytes.
const MAX_VERSION_BYTES: usize = 20;
/// The first number that Open MPI has given its library and the common ABI of MPICH has not.
const FIRST_OF_OPEN_MPI: u32 = 20;

/// How the names of launchers of MPI libraries and of their daemons begin.
const LAUNCHERS: [&str; 7] = ["hydra", "mpiexec", "mpirun", "orted", "orterun", "prted", "prterun"];

/// Whether a program of this name starts MPI programs and is none itself.
pub fn is_launcher(name: &str) -> bool {
    LAUNCHERS.iter().any(|launcher| name.starts_with(launcher))
}

/// The library by which an MPI program finds its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Its file, for people.
    pub name: String,
    /// What it asks.
    pub asks: ProcessManagement,
}

impl Library {
    /// The library of this file name, if it is one of MPI.
    fn named(name: &str) -> Option<Self> {
        // People are shown the name, which may be anything.
        let (base, version) = name.split_once(".so")?;
        let is_version =
            version.len() <= MAX_VERSION_BYTES && version.bytes().all(|byte| b".0123456789".contains(&byte));
        if !is_version {
            return None;
        }
        let number = || version.trim_start_matches('.').split('.').next()?.parse::<u32>().ok();
        let asks = match base {
            "libmpi" if number().is_some_and(|number| number >= FIRST_OF_OPEN_MPI) => ProcessManagement::Pmix,
            "libmpi" | "libmpich" => ProcessManagement::Pmi,
            "libpmix" => ProcessManagement::Pmix,
            _ => return None,
        };
        Some(Self { name: name.to_owned(), asks })
    }

    /// The one that a program's file says it needs. Launchers, scripts, and files that cannot be read, have none.
    pub fn of_file(path: &Path) -> Option<Self> {
        if path.file_name().and_then(|name| name.to_str()).is_some_and(is_launcher) {
            return None;
        }
        needed(path).ok()?.iter().find_map(|name| Self::named(name))
    }

    /// The one that a process has loaded.
    pub fn of_process(process: i32) -> Option<Self> {
        let mut maps = Vec::new();
        File::open(format!("/proc/{process}/maps")).ok()?.take(MAX_READ_BYTES).read_to_end(&mut maps).ok()?;
        let maps = String::from_utf8_lossy(&maps);
        // Whoever updates a library replaces its file under running programs.
        let mut names =
            maps.lines().filter_map(|line| line.rsplit_once('/')).map(|(_, name)| name.trim_end_matches(" (deleted)"));
        names.find_map(Self::named)
    }
}

/// The names of the libraries that an ELF file needs; none of other files.
fn needed(path: &Path) -> io::Result<Vec<String>> {
    // A name that leads to a pipe does not hold up the launch.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(Vec::new());
    }
    let mut head = [0; HEAD_BYTES];
    file.read_exact_at(&mut head, 0)?;
    if !head.starts_with(&ELF) {
        return Ok(Vec::new());
    }
    let count = u64::from(u16::from_le_bytes([head[56], head[57]]));
    let segments = part(&file, word(&head, 32), count * SEGMENT_BYTES as u64)?;
    let segments: Vec<&[u8]> = segments.chunks_exact(SEGMENT_BYTES).collect();
    let kind = |segment: &[u8]| word(segment, 0) & u64::from(u32::MAX);
    let Some(dynamic) = segments.iter().find(|segment| kind(segment) == DYNAMIC) else { return Ok(Vec::new()) };
    let entries = part(&file, word(dynamic, 8), word(dynamic, 32))?;
    let entries = || entries.chunks_exact(ENTRY_BYTES).map(|entry| (word(entry, 0), word(entry, 8)));
    let value = |wanted| entries().find(|(tag, _)| *tag == wanted).map(|(_, value)| value);
    let (Some(address), Some(length)) = (value(NAMES), value(NAMES_LENGTH)) else { return Ok(Vec::new()) };
    // Addresses are those in memory: the segment says where in the file that is.
    let within = |segment: &&&[u8]| {
        let (start, length) = (word(segment, 16), word(segment, 32));
        kind(segment) == LOADED && address.checked_sub(start).is_some_and(|offset| offset < length)
    };
    let Some(segment) = segments.iter().find(within) else { return Ok(Vec::new()) };
    let offset = word(segment, 8).saturating_add(address - word(segment, 16));
    let names = part(&file, offset, length)?;
    let name = |at: u64| {
        let rest = names.get(usize::try_from(at).ok()?..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    };
    Ok(entries().filter(|(tag, _)| *tag == NEEDED).filter_map(|(_, at)| name(at)).collect())
}

/// A part of a file; nothing of one that is longer than such lists are.
fn part(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    if length > MAX_READ_BYTES {
        return Ok(Vec::new());
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// Eight bytes of a record that has them.
fn word(record: &[u8], at: usize) -> u64 {
    let bytes = record.get(at..).and_then(|rest| rest.first_chunk());
    u64::from_le_bytes(*bytes.unwrap_or(&[0; 8]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SL-W-03
    #[test]
    fn libraries_are_known_by_their_names() {
        let asks = |name| Library::named(name).map(|library| library.asks);
        for (name, expected) in [
            ("libmpi.so.40", Some(ProcessManagement::Pmix)),
            ("libmpi.so.40.30.4", Some(ProcessManagement::Pmix)),
            ("libpmix.so.2", Some(ProcessManagement::Pmix)),
            ("libmpi.so.12", Some(ProcessManagement::Pmi)),
            ("libmpich.so.12", Some(ProcessManagement::Pmi)),
            ("libmpi_cxx.so.40", None),
            ("libc.so.6", None),
            ("libmpi", None),
            ("libmpi.so.40\u{1b}[2J", None),
        ] {
            assert_eq!(asks(name), expected, "{name}");
        }
    }

    #[test]
    fn launchers_are_known_by_their_names() {
        for (name, expected) in
            [("hydra_pmi_proxy\n", true), ("mpirun.openmpi", true), ("prted", true), ("solver", false)]
        {
            assert_eq!(is_launcher(name), expected, "{name}");
        }
    }

    #[test]
    fn a_program_names_the_libraries_that_it_needs() {
        let own = std::env::current_exe().expect("this program");
        let names = needed(&own).expect("its file can be read");
        assert!(names.iter().any(|name| name == "libc.so.6"), "{names:?}");
        assert_eq!(Library::of_file(&own), None);
        assert_eq!(Library::of_process(std::process::id() as i32), None);
    }

    #[test]
    fn files_that_are_no_programs_need_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut head = [0; 400];
        File::open(std::env::current_exe().unwrap()).unwrap().read_exact(&mut head).unwrap();
        // Cut short, and with a number in its lists that is too large.
        let cut = (0..head.len()).map(|length| head[..length].to_vec());
        let wrong = (ELF.len()..head.len()).map(|at| {
            let mut bytes = head.to_vec();
            bytes[at] = 0xff;
            bytes
        });
        for bytes in cut.chain(wrong) {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(Library::of_file(&path), None);
        }
        assert_eq!(Library::of_file(folder.path()), None);
        assert_eq!(Library::of_file(&folder.path().join("nothing")), None);
    }
}
