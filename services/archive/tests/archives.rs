//! Archives of friends and of enemies.

use muster_archive::{ArchiveError, Limits, changed, check, files_of, pack, sum_of, unpack};
use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};
use tar::{EntryType, Header};

const LIMITS: Limits = Limits { bytes: 1 << 20, entries: 100 };

/// An archive of entries: kind, name and content. Names are written as they are.
fn archive(folder: &Path, entries: &[(EntryType, &str, &[u8])]) -> File {
    let path = folder.join("hostile.tar");
    let mut file = File::create(&path).unwrap();
    for (kind, name, content) in entries {
        let mut header = Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o4755);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        file.write_all(header.as_bytes()).unwrap();
        file.write_all(content).unwrap();
        file.write_all(&vec![0; content.len().next_multiple_of(512) - content.len()]).unwrap();
    }
    file.write_all(&[0; 1024]).unwrap();
    File::open(path).unwrap()
}

fn refusal(entries: &[(EntryType, &str, &[u8])]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("in");
    fs::create_dir(&inner).unwrap();
    let error = unpack(&mut archive(folder.path(), entries), &inner, LIMITS).expect_err("it is hostile");
    assert!(matches!(error, ArchiveError::Refused(_)), "{error}");
    assert_eq!(fs::read_dir(&inner).unwrap().count(), 0, "nothing was written: {error}");
    error.to_string()
}

/// OAR-K-11: whatever would leave the folder, or is no file, is refused before anything is written.
#[test]
fn hostile_archives_are_refused_as_a_whole() {
    let good = (EntryType::Regular, "good", &b"first"[..]);
    for (kind, name, why) in [
        (EntryType::Regular, "../out", "leads out"),
        (EntryType::Regular, "a/../../out", "leads out"),
        (EntryType::Regular, "/etc/out", "leads out"),
        (EntryType::Regular, "a\\b", "leads out"),
        (EntryType::Symlink, "link", "is a link"),
        (EntryType::Link, "link", "is a link"),
        (EntryType::Char, "device", "neither a file nor a folder"),
        (EntryType::Fifo, "pipe", "neither a file nor a folder"),
        (EntryType::GNUSparse, "holes", "neither a file nor a folder"),
    ] {
        let said = refusal(&[good, (kind, name, b"")]);
        assert!(said.contains(why), "{name}: {said}");
    }
    let said =
        refusal(&[good, (EntryType::GNULongName, "././@LongLink", b"../../out"), (EntryType::Regular, "short", b"")]);
    assert!(said.contains("leads out"), "{said}");
    let said = refusal(&[good, (EntryType::XHeader, "pax", b"15 path=../out\n"), (EntryType::Regular, "short", b"")]);
    assert!(said.contains("leads out"), "{said}");
    let said =
        refusal(&[good, (EntryType::GNULongName, "././@LongLink", &[b'a'; 5000]), (EntryType::Regular, "x", b"")]);
    assert!(said.contains("more than 4096 bytes"), "{said}");
}

#[test]
fn archives_that_are_too_large_are_refused() {
    let large = vec![0; (1 << 20) + 1];
    assert!(refusal(&[(EntryType::Regular, "large", &large)]).contains("more than 1048576 bytes"));
    let names: Vec<String> = (0..101).map(|number| number.to_string()).collect();
    let many: Vec<_> = names.iter().map(|name| (EntryType::Regular, name.as_str(), &b""[..])).collect();
    assert!(refusal(&many).contains("more than 100 files"));
    // A bomb: a few kilobytes that unpack to much more.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb");
    let mut gzip = flate2::write::GzEncoder::new(File::create(&path).unwrap(), flate2::Compression::best());
    let mut header = Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_size(1 << 30);
    header.set_cksum();
    gzip.write_all(header.as_bytes()).unwrap();
    gzip.write_all(&vec![0; 64 << 20]).unwrap();
    gzip.finish().unwrap();
    let error = check(&mut File::open(path).unwrap(), LIMITS).expect_err("it is too large");
    assert!(error.to_string().contains("more than 1048576 bytes"), "{error}");
}

/// A stream that is damaged or cut short is refused, and does not make it panic.
#[test]
fn damaged_archives_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), vec![7; 3000]).unwrap();
    let path = folder.path().join("archive");
    pack(folder.path(), &[PathBuf::from("a")], File::create(&path).unwrap(), 1 << 20).unwrap();
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() - 20 {
        fs::write(&path, &whole[..length]).unwrap();
        // Nothing at all is an archive of nothing.
        assert!(length < 2 || check(&mut File::open(&path).unwrap(), LIMITS).is_err(), "{length} of {}", whole.len());
    }
}

/// OAR-K-07: what is new or changed is packed, and comes out as it went in.
#[test]
fn what_has_changed_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (job, home) = (folder.path().join("job"), folder.path().join("home"));
    fs::create_dir_all(job.join("sub")).unwrap();
    fs::create_dir(&home).unwrap();
    for (name, text) in [("same", "1"), ("changes", "2"), ("sub/same", "3")] {
        fs::write(job.join(name), text).unwrap();
    }
    let before = files_of(&job).unwrap();
    fs::write(job.join("changes"), "4").unwrap();
    let long = "n".repeat(150);
    fs::create_dir_all(job.join("sub").join(&long)).unwrap();
    fs::write(job.join("sub").join(&long).join("new"), "5").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", job.join("link")).unwrap();
    let files = changed(&before, &files_of(&job).unwrap());
    assert_eq!(files, [PathBuf::from("changes"), Path::new("sub").join(&long).join("new")]);
    let path = folder.path().join("archive");
    pack(&job, &files, File::create(&path).unwrap(), 1 << 20).unwrap();
    // A link of the owner's is replaced, and not followed.
    fs::write(folder.path().join("outside"), "untouched").unwrap();
    std::os::unix::fs::symlink(folder.path().join("outside"), home.join("changes")).unwrap();
    let mut archive = File::open(&path).unwrap();
    let (sum, bytes) = sum_of(&mut archive).unwrap();
    assert_eq!((sum.len(), bytes), (64, fs::metadata(&path).unwrap().len()));
    unpack(&mut archive, &home, LIMITS).unwrap();
    assert_eq!(fs::read_to_string(home.join("changes")).unwrap(), "4");
    assert!(!home.join("changes").is_symlink());
    assert_eq!(fs::read_to_string(home.join("sub").join(&long).join("new")).unwrap(), "5");
    assert_eq!(fs::read_to_string(folder.path().join("outside")).unwrap(), "untouched");
    assert!(!home.join("same").exists());
    // A folder that is a link leads out.
    fs::remove_dir_all(home.join("sub")).unwrap();
    std::os::unix::fs::symlink(folder.path(), home.join("sub")).unwrap();
    let error = unpack(&mut archive, &home, LIMITS).expect_err("it leads out");
    assert!(error.to_string().contains("or is a link"), "{error}");
    assert!(!folder.path().join(&long).exists());
    let error = pack(&job, &files, File::create(&path).unwrap(), 1).expect_err("it is too large");
    assert!(error.to_string().contains("more than 1 bytes"), "{error}");
}
