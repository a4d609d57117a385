//! Faults of the data folder, and the ledger's reaction: a clear message, and no damage.

mod support;

use muster_bus::LocalBus;
use muster_ledger::{retention, storage::Storage, verify_folder};
use muster_schemas::{event::Record, ids::Sequence};
use std::{collections::BTreeSet, fs, io::Write as _, path::Path};
use support::{Ledger, config, copy, files};

/// A data folder with some jobs in it, after a clean stop.
async fn used_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    for _ in 0..10 {
        ledger.submit(5).await;
    }
    ledger.stop().await;
    folder
}

/// The same, with everything in sorted tables.
async fn compacted_folder() -> tempfile::TempDir {
    let folder = used_folder().await;
    let log = folder.path().join("ledger/log");
    let families = rocksdb::DB::list_cf(&rocksdb::Options::default(), &log).unwrap();
    let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), &log, &families).unwrap();
    for family in &families {
        db.flush_cf(db.cf_handle(family).unwrap()).unwrap();
    }
    drop(db);
    folder
}

async fn refusal(folder: &Path) -> String {
    match Ledger::try_start_on(LocalBus::new(), config(folder)).await {
        Ok(_) => panic!("it starts"),
        Err(error) => format!("{error:#}"),
    }
}

/// Two ledgers never write one folder (M-LOG-7).
#[tokio::test(flavor = "multi_thread")]
async fn two_ledgers_on_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = Ledger::start(config(folder.path())).await;
    let error = refusal(folder.path()).await;
    assert!(error.contains("in use by another ledger"), "{error}");
    first.submit(1).await;
    first.stop().await;
    Ledger::start(config(folder.path())).await.stop().await;
}

/// A wrong key is refused (M-LOG-10).
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_key_and_another_one() {
    let folder = used_folder().await;
    let key = folder.path().join("ledger.key");
    let right = folder.path().join("right.key");
    fs::rename(&key, &right).unwrap();
    let error = refusal(folder.path()).await;
    assert!(error.contains("is missing: put it back"), "{error}");
    assert!(!key.exists(), "nothing is put in its place");
    let other = tempfile::tempdir().unwrap();
    Ledger::start(config(other.path())).await.stop().await;
    fs::copy(other.path().join("ledger.key"), &key).unwrap();
    let error = refusal(folder.path()).await;
    assert!(error.contains("is not the key of the log"), "{error}");
    fs::rename(&right, &key).unwrap();
    Ledger::start(config(folder.path())).await.stop().await;
}

/// A missing file is found and reported, and nothing is changed (M-LOG-8).
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_file() {
    let folder = compacted_folder().await;
    let log = folder.path().join("ledger/log");
    let mut missing = files(&log, ".sst");
    missing.truncate(1);
    missing.extend(files(&log, "CURRENT"));
    missing.extend(
        fs::read_dir(&log)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("MANIFEST"))),
    );
    assert_eq!(missing.len(), 3, "{missing:?}");
    for file in missing {
        let broken = tempfile::tempdir().unwrap();
        copy(folder.path(), broken.path());
        fs::remove_file(broken.path().join(file.strip_prefix(folder.path()).unwrap())).unwrap();
        let error = refusal(broken.path()).await;
        assert!(error.contains("damaged"), "{}: {error}", file.display());
        assert!(error.contains("restore the folder from a backup"), "{}: {error}", file.display());
    }
}

/// Without the write-ahead log RocksDB would silently open an older, shorter log.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_write_ahead_log() {
    let folder = used_folder().await;
    for file in files(&folder.path().join("ledger/log"), ".log") {
        fs::remove_file(file).unwrap();
    }
    let error = refusal(folder.path()).await;
    assert!(error.contains("damaged") || error.contains("log was lost") || error.contains("are gone"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_folder_that_was_taken_away() {
    let folder = used_folder().await;
    fs::remove_dir_all(folder.path().join("ledger/log")).unwrap();
    let error = refusal(folder.path()).await;
    assert!(error.contains("the log was lost"), "{error}");
    assert!(!folder.path().join("ledger/log").exists(), "nothing is put in its place");
}

/// Damaged contents are found and reported (M-LOG-9).
#[tokio::test(flavor = "multi_thread")]
async fn damaged_contents() {
    let folder = compacted_folder().await;
    let log = folder.path().join("ledger/log");
    let mut damaged = files(&log, ".sst");
    damaged.extend(
        fs::read_dir(&log)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("MANIFEST"))),
    );
    let (records, digest) = contents(folder.path()).unwrap();
    let mut found = 0;
    for file in &damaged {
        let broken = tempfile::tempdir().unwrap();
        copy(folder.path(), broken.path());
        let path = broken.path().join(file.strip_prefix(folder.path()).unwrap());
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle.saturating_sub(20)..middle].fill(0xa5);
        fs::write(&path, bytes).unwrap();
        let told = match verify_folder(broken.path(), |_| {}) {
            Ok(progress) => progress.fault.map(|fault| fault.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(told) = told {
            assert!(told.contains("damaged"), "{}: {told}", file.display());
            found += 1;
        } else {
            assert_eq!(contents(broken.path()).unwrap(), (records.clone(), digest), "{} is served", file.display());
        }
        match Ledger::try_start_on(LocalBus::new(), config(broken.path())).await {
            Err(error) => assert!(format!("{error:#}").contains("damaged"), "{}: {error:#}", file.display()),
            Ok(ledger) => {
                let served = ledger.records(Sequence(1)).await;
                assert!(served.len() >= records.len() && served.iter().zip(&records).all(|(one, other)| one == other));
                ledger.stop().await;
            }
        }
    }
    assert!(found + 1 >= damaged.len(), "{found} of {} damaged files were told", damaged.len());
}

/// All records, and the digest of the resulting state.
fn contents(folder: &Path) -> anyhow::Result<(Vec<Record>, [u8; 32])> {
    let storage = Storage::open_read_only(folder)?;
    let log = storage.log()?;
    let records = log.page(Sequence(1), usize::MAX)?.records;
    Ok((records, storage.state_after(log.head()?.sequence)?.state.digest()))
}

/// Lookups by command id are rare: damage there is found by a verification. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn damage_in_each_index_is_told_by_verifying() {
    let folder = compacted_folder().await;
    let log = folder.path().join("ledger/log");
    let options = rocksdb::Options::default();
    let families = rocksdb::DB::list_cf(&options, &log).unwrap();
    let db = rocksdb::DB::open_cf_for_read_only(&options, &log, &families, false).unwrap();
    let tables = db.live_files().unwrap();
    drop(db);
    let indexes: BTreeSet<_> = tables.iter().map(|table| table.column_family_name.clone()).collect();
    assert!(["by_job", "commands", "checkpoints"].iter().all(|name| indexes.contains(*name)), "{indexes:?}");
    for table in tables {
        let broken = tempfile::tempdir().unwrap();
        copy(folder.path(), broken.path());
        let path = broken.path().join("ledger/log").join(table.name.trim_start_matches('/'));
        let mut bytes = fs::read(&path).unwrap();
        // The first block of data.
        bytes[5] ^= 0x10;
        fs::write(&path, bytes).unwrap();
        let told = match verify_folder(broken.path(), |_| {}) {
            Ok(progress) => progress.fault.map(|fault| fault.to_string()),
            Err(error) => Some(error.to_string()),
        };
        assert!(told.as_ref().is_some_and(|told| told.contains("damaged")), "{}: {told:?}", table.column_family_name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_in_the_middle_of_the_write_ahead_log() {
    let folder = used_folder().await;
    let path = files(&folder.path().join("ledger/log"), ".log").pop().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() / 3;
    bytes[at..at + 8].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let error = refusal(folder.path()).await;
    assert!(error.contains("damaged"), "{error}");
}

/// A write-ahead log whose end a crash cut off: whole records are there, and nothing else (M-LOG-5).
#[tokio::test(flavor = "multi_thread")]
async fn a_write_torn_at_any_byte() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    let before = ledger.head().await;
    let witness = fs::read(folder.path().join("ledger/witness")).unwrap();
    let killed = tempfile::tempdir().unwrap();
    let wal = files(&folder.path().join("ledger/log"), ".log").pop().unwrap();
    let durable_bytes = fs::metadata(&wal).unwrap().len();
    ledger.submit(1).await;
    copy(folder.path(), killed.path());
    ledger.stop().await;
    // As if the machine had died before the end was signed again.
    fs::write(killed.path().join("ledger/witness"), witness).unwrap();

    let name = wal.strip_prefix(folder.path()).unwrap();
    let whole = fs::read(killed.path().join(name)).unwrap();
    let after = Sequence(before.0 + 1);
    for length in (durable_bytes..=whole.len() as u64).rev().step_by(37) {
        let torn = tempfile::tempdir().unwrap();
        copy(killed.path(), torn.path());
        fs::File::options().write(true).open(torn.path().join(name)).unwrap().set_len(length).unwrap();
        let storage = Storage::open(torn.path(), retention::Commands::seconds(0)).unwrap();
        let head = storage.log().unwrap().head().unwrap();
        let expected = if length == whole.len() as u64 { after } else { before };
        assert_eq!(head.sequence, expected, "cut to {length} of {}", whole.len());
        let state = storage.state_after(head.sequence).unwrap();
        assert_eq!((state.state.sequence(), state.hash), (head.sequence, head.hash));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_layout() {
    let folder = used_folder().await;
    let log = folder.path().join("ledger/log");
    let families = rocksdb::DB::list_cf(&rocksdb::Options::default(), &log).unwrap();
    let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), &log, &families).unwrap();
    db.put_cf(db.cf_handle("meta").unwrap(), b"format", 99_u32.to_be_bytes()).unwrap();
    drop(db);
    let error = refusal(folder.path()).await;
    assert!(error.contains("newer muster") && error.contains("99"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_cannot_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::File::create(&file).unwrap().write_all(b"in the way").unwrap();
    let error = refusal(&file).await;
    assert!(error.contains("cannot be opened"), "{error}");
}

/// An altered record is found (M-AUD-1).
#[tokio::test(flavor = "multi_thread")]
async fn an_altered_record() {
    let folder = used_folder().await;
    assert_eq!(verify_folder(folder.path(), |_| {}).unwrap().fault, None);
    let log = folder.path().join("ledger/log");
    let families = rocksdb::DB::list_cf(&rocksdb::Options::default(), &log).unwrap();
    let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), &log, &families).unwrap();
    let records = db.cf_handle("records").unwrap();
    let key = 20_u64.to_be_bytes();
    let value = db.get_cf(records, key).unwrap().unwrap();

    // An altered record that is well-formed in itself: its neighbour's payload after its own link.
    let neighbour = db.get_cf(records, 21_u64.to_be_bytes()).unwrap().unwrap();
    let mut record: muster_schemas::event::Record = muster_schemas::codec::decode(&neighbour[32..]).unwrap();
    record.sequence = Sequence(20);
    let mut altered = value[..32].to_vec();
    muster_schemas::codec::encode_into(&record, &mut altered).unwrap();
    assert_ne!(altered, value);
    for (value, fault) in [(Some(altered), "record 2"), (Some(value[..40].to_vec()), "record 20"), (None, "record 20")]
    {
        match value {
            Some(value) => db.put_cf(records, key, value).unwrap(),
            None => db.delete_cf(records, key).unwrap(),
        }
        db.flush_cf(records).unwrap();
        let found = verify_folder(folder.path(), |_| {}).unwrap();
        assert!(found.fault.as_ref().is_some_and(|found| found.detail.contains(fault)), "{found:?}");
    }
}

/// Submissions are not readable for everybody on the host, but a socket beside them is.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_can_look_into_the_log() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    Ledger::start(config(&data)).await.stop().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data.join("ledger")), 0o700);
    assert_eq!(mode(&data.join("ledger.key")), 0o600);
    assert_ne!(mode(&data) & 0o005, 0);
}
