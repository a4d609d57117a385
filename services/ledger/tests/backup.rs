//! Backups of a running ledger, and what becomes of them.

mod support;

use muster_bus::{LocalBus, SharedBus};
use muster_ledger::{
    backup::{self, Listed, Made, Options},
    hex, verify_folder,
};
use muster_schemas::{
    event::{Event, Record},
    ids::{RunId, Sequence},
    public,
};
use std::{
    fs,
    io::{BufRead as _, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};
use support::{Ledger, config};

const PLAIN: Options = Options { with_key: false, verify: true, keep: None };
const WITH_KEY: Options = Options { with_key: true, ..PLAIN };

/// A data folder and a folder of backups.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn backups(&self) -> PathBuf {
        self.folder.path().join("backups")
    }

    fn other(&self) -> PathBuf {
        self.folder.path().join("other")
    }

    async fn backup(&self, options: Options) -> anyhow::Result<Made> {
        let (data, backups) = (self.data(), self.backups());
        tokio::task::spawn_blocking(move || backup::make(&data, &backups, options, &mut |_| {})).await.unwrap()
    }

    fn list(&self) -> Vec<Listed> {
        backup::list(&self.backups()).unwrap().whole
    }

    fn names(&self) -> Vec<String> {
        self.list().into_iter().map(|backup| backup.name).collect()
    }

    /// Restores a backup, the latest if none is named, to the other data folder.
    fn restore(&self, name: Option<&str>) -> anyhow::Result<()> {
        backup::restore(&self.backups(), name, &self.other(), &mut |_| {}).map(drop)
    }

    /// Why that is refused; the other data folder has no ledger then.
    fn refused(&self, name: Option<&str>) -> String {
        let error = format!("{:#}", self.restore(name).expect_err("refused"));
        assert!(!self.other().join("ledger").exists(), "{error}");
        error
    }
}

/// The public form of a record, as gateways give it.
fn source_of(records: &[Record], of: Sequence) -> String {
    let mut state = muster_domain::State::new();
    records.iter().for_each(|record| state.apply(record).unwrap());
    let record = records.iter().find(|record| record.sequence == of).expect("a record");
    let event: serde_json::Value = serde_json::from_str(&public::cloud_event(record, None, &state).json).unwrap();
    event["source"].as_str().expect("a source").to_owned()
}

/// What was acknowledged before the backup began is in it; its restore is recorded, and numbers given again are under
/// another source.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_running_ledger_is_restored() {
    let place = Place::new();
    let ledger = Ledger::start(config(&place.data())).await;
    ledger.submit(300).await;
    let acknowledged = ledger.head().await;
    let submissions = async {
        for _ in 0..40 {
            ledger.submit(5).await;
        }
    };
    let (made, ()) = tokio::join!(place.backup(WITH_KEY), submissions);
    let made = made.unwrap();
    let to = made.manifest.sequence;
    assert!(to >= acknowledged, "{to} is before {acknowledged}");
    assert_eq!(made.manifest.verified_from, Some(Sequence(1)));
    let before = ledger.records(Sequence(1)).await;
    ledger.stop().await;
    assert!(!place.data().join("ledger/backup").exists(), "nothing is left of it");

    place.restore(None).unwrap();
    let key = place.other().join("ledger.key");
    assert_eq!(fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
    let ledger = Ledger::start(config(&place.other())).await;
    let after = ledger.records(Sequence(1)).await;
    let (kept, new) = after.split_at(usize::try_from(to.0).unwrap());
    assert_eq!(kept, &before[..kept.len()]);
    let Some(Event::LogRestored { to: told, lost_to: None, log_id, backup, next_run }) =
        new.first().map(|record| &record.event)
    else {
        panic!("{new:?}");
    };
    assert_eq!((*told, backup, *next_run), (to, &made.name, RunId(1_000_000_000)));
    assert!(!place.other().join("ledger/restored").exists());
    let (old, again) = (source_of(&after, to), source_of(&after, to.next()));
    assert!(again.ends_with(&log_id.to_string()), "{again}");
    assert_eq!(old, source_of(&before, to), "records of the backup stay what they were");
    assert_ne!(old, again);
    ledger.stop().await;

    let ledger = Ledger::start(config(&place.other())).await;
    let restores = ledger.records(Sequence(1)).await;
    let restores = restores.iter().filter(|record| matches!(record.event, Event::LogRestored { .. })).count();
    assert_eq!(restores, 1, "it is recorded once");
    ledger.stop().await;
    assert_eq!(verify_folder(&place.other(), |_| {}).unwrap().fault, None);
}

/// A second backup copies what is new; the rest are other names of the same files.
#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_new_is_copied() {
    let place = Place::new();
    let ledger = Ledger::start(config(&place.data())).await;
    for _ in 0..20 {
        ledger.submit(100).await;
    }
    let first = place.backup(PLAIN).await.unwrap();
    assert!(first.copied_bytes > 0);
    ledger.submit(1).await;
    let second = place.backup(PLAIN).await.unwrap();
    assert!(second.copied_bytes < first.copied_bytes / 2, "{} of {}", second.copied_bytes, first.copied_bytes);
    let shared = second.manifest.files.iter().filter(|file| {
        let inode =
            |name: &str| fs::metadata(place.backups().join(name).join(&file.path)).map(|found| found.ino()).ok();
        inode(&first.name) == inode(&second.name)
    });
    assert!(shared.count() > 0);
    for name in [&first.name, &second.name] {
        assert_eq!(verify_folder(&place.backups().join(name), |_| {}).unwrap().fault, None);
    }

    // A damaged file of an earlier backup is not taken over.
    let table = second.manifest.files.iter().filter(|file| file.path.ends_with(".sst")).max_by_key(|file| file.bytes);
    let table = place.backups().join(&second.name).join(&table.expect("a table").path);
    flip(&table);
    let third = place.backup(PLAIN).await.unwrap();
    assert_eq!(verify_folder(&place.backups().join(&third.name), |_| {}).unwrap().fault, None);
    ledger.stop().await;
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    match bytes.get_mut(middle) {
        Some(byte) => *byte ^= 1,
        None => bytes.push(1),
    }
    fs::write(path, bytes).unwrap();
}

/// What is left of a backup that was killed is no backup, and the next one removes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_was_cut_off_is_none() {
    let place = Place::new();
    let ledger = Ledger::start(config(&place.data())).await;
    ledger.submit(5).await;
    let whole = place.backup(WITH_KEY).await.unwrap();
    let whole = place.backups().join(&whole.name);
    let cut = place.backups().join("2020-01-01T00-00-00Z.draft");
    support::copy(&whole, &cut);
    let unfinished = place.backups().join("2020-01-02T00-00-00Z");
    support::copy(&whole, &unfinished);
    fs::remove_file(unfinished.join("manifest.json")).unwrap();
    assert_eq!(place.list().len(), 1);
    assert!(place.refused(Some("2020-01-01T00-00-00Z.draft")).contains("there is no backup"));
    assert!(place.refused(Some("2020-01-02T00-00-00Z")).contains("there is no backup"));
    place.backup(PLAIN).await.unwrap();
    assert!(!cut.exists());
    assert_eq!(place.list().len(), 2);
    ledger.stop().await;
}

/// Of two at once, one is refused, by the folder of backups or by the ledger; whoever is killed leaves nothing behind.
#[tokio::test(flavor = "multi_thread")]
async fn one_backup_is_made_at_a_time() {
    let place = Place::new();
    let ledger = Ledger::start(config(&place.data())).await;
    ledger.submit(5).await;
    fs::create_dir_all(place.backups()).unwrap();
    let folder = fs::File::open(place.backups()).unwrap();
    folder.lock().unwrap();
    let error = format!("{:#}", place.backup(PLAIN).await.unwrap_err());
    assert!(error.contains("another backup or restore is at work"), "{error}");
    drop(folder);

    let socket = place.data().join("ledger/backup.sock");
    let held = tokio::task::spawn_blocking(move || {
        let mut connection = std::os::unix::net::UnixStream::connect(socket).unwrap();
        connection.write_all(b"point\n").unwrap();
        let mut answer = String::new();
        std::io::BufReader::new(&connection).read_line(&mut answer).unwrap();
        assert!(answer.contains("sequence"), "{answer}");
        connection
    });
    let held = held.await.unwrap();
    let point = place.data().join("ledger/backup");
    assert!(point.join("CURRENT").exists());
    let error = format!("{:#}", place.backup(PLAIN).await.unwrap_err());
    assert!(error.contains("another backup of this ledger is being made"), "{error}");
    assert_eq!(place.names(), Vec::<String>::new());
    drop(held);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while point.exists() {
        assert!(tokio::time::Instant::now() < deadline, "the ledger keeps what nobody wants");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    place.backup(PLAIN).await.unwrap();
    ledger.stop().await;

    let error = format!("{:#}", place.backup(PLAIN).await.unwrap_err());
    assert!(error.contains("no ledger runs on"), "{error}");
    assert_eq!(place.names().len(), 1);
}

/// A backup that cannot be written leaves nothing, and the earlier ones stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_cannot_be_written_leaves_the_others_good() {
    let place = Place::new();
    let ledger = Ledger::start(config(&place.data())).await;
    ledger.submit(50).await;
    let first = place.backup(WITH_KEY).await.unwrap();
    // A key that others can read is refused, at the end of the copying.
    let key = place.data().join("ledger.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let error = format!("{:#}", place.backup(WITH_KEY).await.unwrap_err());
    assert!(error.contains("there is no new backup, and earlier ones stay as they are"), "{error}");
    let entries = fs::read_dir(place.backups()).unwrap().count();
    assert_eq!((entries, place.names()), (1, vec![first.name]));
    place.restore(None).unwrap();
    ledger.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn older_backups_are_removed() {
    let place = Place::new();
    let ledger = Ledger::start(config(&place.data())).await;
    let mut made = Vec::new();
    for _ in 0..3 {
        ledger.submit(1).await;
        made.push(place.backup(PLAIN).await.unwrap().name);
    }
    let last = place.backup(Options { keep: Some(2), ..PLAIN }).await.unwrap();
    assert_eq!(last.removed, made[..2]);
    assert_eq!(place.names(), [made[2].clone(), last.name]);
    for backup in place.list() {
        assert_eq!(verify_folder(&place.backups().join(&backup.name), |_| {}).unwrap().fault, None);
    }
    ledger.stop().await;

    // Another cluster does not mix its backups with these.
    let stranger = Place::new();
    let ledger = Ledger::start(config(&stranger.data())).await;
    let (data, backups) = (stranger.data(), place.backups());
    let refused = tokio::task::spawn_blocking(move || backup::make(&data, &backups, PLAIN, &mut |_| {})).await.unwrap();
    assert!(format!("{:#}", refused.unwrap_err()).contains("backups of another cluster"));
    ledger.stop().await;
}

/// A restore is all or nothing: whatever is wrong with the backup, the key or the folder, nothing is changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_verifies_before_it_changes_anything() {
    let place = Place::new();
    let ledger = Ledger::start(config(&place.data())).await;
    ledger.submit(50).await;
    let plain = place.backup(PLAIN).await.unwrap();
    let keyed = place.backup(WITH_KEY).await.unwrap();
    ledger.stop().await;
    assert!(place.refused(Some("none")).contains("there is no backup `none`"));
    assert!(place.refused(Some(&plain.name)).contains("has no private key"));
    let stranger = tempfile::tempdir().unwrap();
    Ledger::start(config(stranger.path())).await.stop().await;
    fs::copy(stranger.path().join("ledger.key"), place.other().join("ledger.key")).unwrap();
    assert!(place.refused(Some(&keyed.name)).contains("is not the key of the log"));
    fs::remove_file(place.other().join("ledger.key")).unwrap();

    for file in &keyed.manifest.files {
        let path = place.backups().join(&keyed.name).join(&file.path);
        let whole = fs::read(&path).unwrap();
        flip(&path);
        let error = place.refused(Some(&keyed.name));
        assert!(error.contains(&file.path) || file.path == "ledger.key", "{error}");
        fs::write(&path, whole).unwrap();
    }
    // A manifest that is altered to fit does not help: the records are signed.
    let witness = place.backups().join(&keyed.name).join("ledger/witness");
    let manifest = place.backups().join(&keyed.name).join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let forged = fs::read_to_string(&witness).unwrap().replace("closed", "open");
    let (old, new) = (fs::read(&witness).unwrap(), forged.as_bytes());
    let entry = |bytes: &[u8]| format!("\"bytes\": {},\n      \"blake3\": \"{}\"", bytes.len(), blake3_of(bytes));
    assert!(text.contains(&entry(&old)), "{text}");
    fs::write(&manifest, text.replace(&entry(&old), &entry(new))).unwrap();
    fs::write(&witness, new).unwrap();
    assert!(place.refused(Some(&keyed.name)).contains("does not verify"));
    for outside in ["../x", "/etc/passwd", "ledger/../../x"] {
        fs::write(&manifest, text.replace("ledger/witness", outside)).unwrap();
        assert!(place.refused(Some(&keyed.name)).contains("a file that no backup has"));
        assert_eq!(place.names(), std::slice::from_ref(&plain.name), "the others can be used");
    }
    fs::write(&witness, old).unwrap();
    // Without a name the latest is meant, which a damaged one may be: no earlier one takes its place silently.
    assert!(place.refused(None).contains("not certain which one is the latest"));
    // The end that the manifest tells of is that of the log, or the next ledger would not start.
    let (hash, sequence) = (&keyed.manifest.hash, keyed.manifest.sequence);
    for (old, new) in
        [(hash.clone(), "0".repeat(64)), (format!("\"sequence\": {sequence}"), "\"sequence\": 7".to_owned())]
    {
        assert!(text.contains(&old), "{text}");
        fs::write(&manifest, text.replace(&old, &new)).unwrap();
        assert!(place.refused(Some(&keyed.name)).contains("says that its log ends at record"));
    }
    fs::write(&manifest, &text).unwrap();

    place.restore(Some(&keyed.name)).unwrap();
    let error = format!("{:#}", place.restore(Some(&keyed.name)).unwrap_err());
    assert!(error.contains("there is a ledger in"), "{error}");
    assert_eq!(verify_folder(&place.other(), |_| {}).unwrap().fault, None);
}

fn blake3_of(bytes: &[u8]) -> String {
    hex(blake3::hash(bytes).as_bytes())
}

/// The bus still has records of the lost history: the ledger says up to where, and continues without them.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_log_takes_the_place_of_a_longer_one_on_the_bus() {
    let place = Place::new();
    let bus: SharedBus = LocalBus::new();
    let ledger = Ledger::start_on(bus.clone(), config(&place.data())).await;
    ledger.submit(5).await;
    let made = place.backup(WITH_KEY).await.unwrap();
    ledger.submit(20).await;
    ledger.stop().await;
    let lost = bus.log_tail().await.unwrap().sequence().expect("a tail");

    place.restore(None).unwrap();
    let mark = fs::read(place.other().join("ledger/restored")).unwrap();
    let ledger = Ledger::start_on(bus.clone(), config(&place.other())).await;
    let first = made.manifest.sequence.next();
    let restored = |records: Vec<Record>| match records.first().map(|record| record.event.clone()) {
        Some(Event::LogRestored { lost_to, .. }) => lost_to,
        other => panic!("{other:?}"),
    };
    assert_eq!(restored(ledger.records(first).await), Some(lost));
    ledger.submit(3).await;
    let head = ledger.head().await;
    ledger.stop().await;

    // As if it had been killed before it removed the mark.
    fs::write(place.other().join("ledger/restored"), mark).unwrap();
    let ledger = Ledger::start_on(bus, config(&place.other())).await;
    let after = ledger.records(head).await;
    assert!(after.iter().all(|record| !matches!(record.event, Event::LogRestored { .. })), "{after:?}");
    ledger.stop().await;
}

/// A log that was put there by hand is not taken for the one that was restored.
#[tokio::test(flavor = "multi_thread")]
async fn a_mark_beside_another_log_is_refused() {
    let place = Place::new();
    let ledger = Ledger::start(config(&place.data())).await;
    ledger.submit(5).await;
    place.backup(WITH_KEY).await.unwrap();
    ledger.submit(5).await;
    ledger.stop().await;
    place.restore(None).unwrap();
    fs::copy(place.other().join("ledger/restored"), place.data().join("ledger/restored")).unwrap();
    let error = Ledger::try_start_on(LocalBus::new(), config(&place.data())).await.err().expect("refused");
    assert!(format!("{error:#}").contains("it is not the one that was restored"), "{error:#}");
}
