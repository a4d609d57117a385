//! Changes to the data folder by an attacker without the key, or a clumsy administrator: the ledger and `audit verify`
//! notice. M-LOG-9

mod support;

use muster_bus::LocalBus;
use muster_domain::State;
use muster_ledger::{
    Config,
    signing::Signer,
    snapshots::{Snapshot, Snapshots},
    storage::Storage,
    verify::{Progress, Verification},
    verify_folder,
    witness::{End, Witness},
};
use muster_schemas::{
    codec,
    command::{Answer, Command, FaultKind, JobFilter, JobSelection, Query, QueryAnswer, Refusal, RefusalCode, Reply},
    event::{Actor, Event, Owner, Record},
    ids::{CommandId, JobId, Sequence},
    time::Timestamp,
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};
use support::{Ledger, config, copy, files};

/// Waits until a condition holds.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so().await {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn witness_of(folder: &Path) -> PathBuf {
    folder.join("ledger/witness")
}

/// Waits until the end of the log is signed.
async fn witnessed(ledger: &Ledger, folder: &Path) {
    let head = ledger.head().await;
    let is_signed = || Witness::load(&witness_of(folder)).unwrap().is_some_and(|witness| witness.sequence >= head);
    until("the end was signed", async || is_signed()).await;
}

/// The disk after everything was killed, with the end of the log signed.
async fn killed(to: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    for _ in 0..20 {
        ledger.submit(2).await;
    }
    witnessed(&ledger, folder.path()).await;
    copy(folder.path(), to);
    ledger.stop().await;
}

/// Rewrites records like somebody who knows the format and has no key: with a valid chain.
fn forge(folder: &Path, from: Sequence, change: impl Fn(&mut Record)) {
    let log = folder.join("ledger/log");
    let families = rocksdb::DB::list_cf(&rocksdb::Options::default(), &log).unwrap();
    let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), &log, &families).unwrap();
    let records = db.cf_handle("records").unwrap();
    let mut hash: Option<[u8; 32]> = None;
    let all: Vec<_> = db.iterator_cf(records, rocksdb::IteratorMode::Start).map(Result::unwrap).collect();
    for (key, value) in all {
        let mut record: Record = codec::decode(&value[32..]).unwrap();
        if record.sequence < from {
            continue;
        }
        change(&mut record);
        let mut forged = hash.map_or_else(|| value[..32].to_vec(), |hash| hash.to_vec());
        codec::encode_into(&record, &mut forged).unwrap();
        hash = Some(*blake3::hash(&forged).as_bytes());
        db.put_cf(records, key, forged).unwrap();
    }
    db.flush_cf(records).unwrap();
}

/// Puts another user's name on the actions of users.
fn of_mallory(record: &mut Record) {
    let mallory = || Owner { user: "mallory".into(), uid: 4711, gid: 4711 };
    if let Actor::User(_) = &*record.actor {
        record.actor = Arc::new(Actor::User(mallory()));
    }
    if let Event::JobSubmitted { owner, .. } = &mut record.event {
        *owner = Arc::new(mallory());
    }
}

/// Changes entries of an index like somebody who knows its form: those for which `change` returns another value.
fn change_index(folder: &Path, index: &str, change: impl Fn(&[u8], &[u8]) -> Option<Vec<u8>>) {
    let log = folder.join("ledger/log");
    let families = rocksdb::DB::list_cf(&rocksdb::Options::default(), &log).unwrap();
    let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), &log, &families).unwrap();
    let family = db.cf_handle(index).unwrap();
    let all: Vec<_> = db.iterator_cf(family, rocksdb::IteratorMode::Start).map(Result::unwrap).collect();
    let changed: Vec<_> = all.iter().filter_map(|(key, value)| Some((key, change(key, value)?))).collect();
    assert!(!changed.is_empty(), "no entry of {index} was changed");
    for (key, value) in changed {
        db.put_cf(family, key, value).unwrap();
    }
    db.flush_cf(family).unwrap();
}

/// The answer in an entry of `commands`.
fn answer(value: &[u8]) -> Answer {
    // A time and a fingerprint precede it.
    codec::decode(&value[24..]).unwrap()
}

/// The message of a failed verification; `None` if it passes.
fn objection(folder: &Path) -> Option<String> {
    match verify_folder(folder, |_| {}) {
        Ok(Progress { fault, .. }) => fault.map(|fault| fault.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

async fn refusal(config: Config) -> String {
    match Ledger::try_start_on(LocalBus::new(), config).await {
        Ok(_) => panic!("it starts"),
        Err(error) => format!("{error:#}"),
    }
}

/// Whether start and verification both object, in these words.
async fn both_object(folder: &Path, words: &str) {
    let found = objection(folder).unwrap_or_default();
    assert!(found.contains(words), "verify says: {found}");
    let found = refusal(config(folder)).await;
    assert!(found.contains(words) && found.contains("--accept-log-end"), "start says: {found}");
}

/// Without the key, and with a valid chain. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn history_behind_the_last_checkpoint_cannot_be_rewritten() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path()).await;
    assert_eq!(objection(folder.path()), None);
    forge(folder.path(), Sequence(20), of_mallory);
    both_object(folder.path(), "history was rewritten").await;
    let witness = fs::read(witness_of(folder.path())).unwrap();
    fs::remove_file(witness_of(folder.path())).unwrap();
    both_object(folder.path(), "its witness is missing").await;
    fs::write(witness_of(folder.path()), &witness[..witness.len() - 3]).unwrap();
    both_object(folder.path(), "its witness cannot be read").await;
    // A witness signed by the attacker's own key.
    let other = tempfile::tempdir().unwrap();
    let signer = Signer::load_or_draft(&other.path().join("key")).unwrap();
    let (cluster_id, head) = {
        let log = folder.path().join("ledger/log");
        let log = muster_ledger::log::Log::open_read_only(&log).unwrap();
        (log.identity().unwrap().unwrap().cluster_id, log.head().unwrap())
    };
    Witness::sign(cluster_id, head, End::Open, &signer).store(&witness_of(folder.path())).unwrap();
    both_object(folder.path(), "not signed by the key").await;

    let accepting = Config { accept_log_end: true, ..config(folder.path()) };
    Ledger::start(accepting).await.stop().await;
    let found = objection(folder.path()).unwrap_or_default();
    assert!(
        found.contains("the answer to its command"),
        "who accepts it has it signed, and the indexes still tell: {found}"
    );
}

/// The end of the write-ahead log is where a crash leaves half a record: if it is cut off there, the log opens without
/// complaint. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_lost_its_signed_end_is_told_with_the_remedy() {
    let whole = tempfile::tempdir().unwrap();
    killed(whole.path()).await;
    let wal = files(&whole.path().join("ledger/log"), ".log").pop().unwrap();
    let wal = wal.strip_prefix(whole.path()).unwrap();
    let length = fs::metadata(whole.path().join(wal)).unwrap().len();
    for tenths in [10, 50, 90, 99] {
        let folder = tempfile::tempdir().unwrap();
        copy(whole.path(), folder.path());
        let file = fs::File::options().write(true).open(folder.path().join(wal)).unwrap();
        file.set_len(length * tenths / 100).unwrap();
        both_object(folder.path(), "was durable once").await;
        assert!(objection(folder.path()).unwrap().contains("records are gone"));
    }
}

/// Opens the column families of the log like somebody who knows RocksDB.
fn in_the_log(folder: &Path, change: impl FnOnce(&rocksdb::DB)) {
    let log = folder.join("ledger/log");
    let families = rocksdb::DB::list_cf(&rocksdb::Options::default(), &log).unwrap();
    let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), &log, &families).unwrap();
    change(&db);
}

/// Adds a record after the last one, with a valid chain and another owner.
fn add_behind_the_end(folder: &Path) {
    in_the_log(folder, |db| {
        let records = db.cf_handle("records").unwrap();
        let (_, last) = db.iterator_cf(records, rocksdb::IteratorMode::End).next().unwrap().unwrap();
        let mut record: Record = codec::decode(&last[32..]).unwrap();
        record.sequence = record.sequence.next();
        of_mallory(&mut record);
        let mut added = blake3::hash(&last).as_bytes().to_vec();
        codec::encode_into(&record, &mut added).unwrap();
        db.put_cf(records, record.sequence.0.to_be_bytes(), added).unwrap();
    });
}

async fn stopped() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    ledger.submit(3).await;
    ledger.stop().await;
    folder
}

/// After a clean stop nothing follows the end. After a kill there can be records of the last moment, with their index
/// entries. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn a_record_behind_the_end_of_a_clean_stop_is_told() {
    let folder = stopped().await;
    assert_eq!(objection(folder.path()), None);
    add_behind_the_end(folder.path());
    both_object(folder.path(), "1 records were added after that").await;

    let folder = tempfile::tempdir().unwrap();
    killed(folder.path()).await;
    add_behind_the_end(folder.path());
    let found = objection(folder.path()).unwrap_or_default();
    assert!(found.contains("the index by job does not have it"), "{found}");
}

/// No reader of records skips a key that is not a sequence. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn a_record_under_a_key_that_is_no_sequence_is_told() {
    for key in [&[0; 8][..], &[0, 0, 1], &[0, 0, 0, 0, 0, 0, 0, 2, 0]] {
        let folder = stopped().await;
        in_the_log(folder.path(), |db| {
            let records = db.cf_handle("records").unwrap();
            let value = db.get_cf(records, 2_u64.to_be_bytes()).unwrap().unwrap();
            db.put_cf(records, key, value).unwrap();
        });
        let found = objection(folder.path()).unwrap_or_default();
        assert!(found.contains("a key that is not a sequence"), "{key:?}: {found}");
    }
}

/// The top of a file system has a folder that does not belong to the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_another_name_beside_the_files_is_nothing_to_a_log() {
    let folder = stopped().await;
    fs::create_dir(folder.path().join("ledger/log/lost+found")).unwrap();
    assert_eq!(objection(folder.path()), None);
    Ledger::start(config(folder.path())).await.stop().await;
}

/// Starting and verifying would read a pipe for ever. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_in_place_of_a_file_is_told() {
    for name in ["ledger/log/CURRENT", "ledger/witness", "ledger.key"] {
        let folder = stopped().await;
        let path = folder.path().join(name);
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg("--mode=600").arg(&path).status();
        assert!(made.expect("there is mkfifo").success());
        let said = refusal(config(folder.path())).await;
        assert!(said.contains("not a regular file"), "{name}: a start says: {said}");
        // Verifying needs no key.
        let found = objection(folder.path());
        assert_eq!(found.is_some_and(|found| found.contains("not a regular file")), name != "ledger.key", "{name}");
    }
}

/// Index entries under keys of a wrong length give an error. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn an_index_with_a_key_of_a_wrong_length_is_an_error() {
    let folder = stopped().await;
    in_the_log(folder.path(), |db| {
        let by_job = db.cf_handle("by_job").unwrap();
        let (key, value) = db.iterator_cf(by_job, rocksdb::IteratorMode::Start).next().unwrap().unwrap();
        db.put_cf(by_job, [&key[..], &[0]].concat(), &value).unwrap();
    });
    let log = muster_ledger::log::Log::open_read_only(&folder.path().join("ledger/log")).unwrap();
    let found = log.history(muster_schemas::JobId::job(1), Sequence(1), usize::MAX);
    assert!(found.as_ref().is_err_and(|error| error.to_string().contains("wrong length")), "{found:?}");
}

/// A checkpoint of a missing record is not believed: the next checkpoints are still made. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_tells_of_a_checkpoint_to_come_stops_none() {
    let folder = stopped().await;
    in_the_log(folder.path(), |db| {
        let checkpoints = db.cf_handle("checkpoints").unwrap();
        db.put_cf(checkpoints, [0xff; 8], 5_u64.to_be_bytes()).unwrap();
    });
    let found = objection(folder.path()).unwrap_or_default();
    assert!(found.contains("index of checkpoints"), "{found}");
    let log = muster_ledger::log::Log::open_read_only(&folder.path().join("ledger/log")).unwrap();
    let signed = log.last_signed().unwrap();
    assert!(signed > Sequence(0) && signed < log.head().unwrap().sequence, "{signed}");
}

/// A running ledger signs records that a verification has already passed. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_comes_after_its_record_was_verified_is_right() {
    let [folder, before] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let ledger = Ledger::start(config(folder.path())).await;
    ledger.submit(5).await;
    witnessed(&ledger, folder.path()).await;
    copy(folder.path(), before.path());
    // The clean stop signs the last record.
    ledger.stop().await;
    let before = Storage::open_read_only(before.path()).unwrap();
    let mut verification = Verification::begin(&before, Sequence(1)).unwrap();
    let found = verification.advance(&before, u64::MAX, |_| {}).unwrap();
    assert_eq!((found.fault, found.checkpoints), (None, 0));
    let after = Storage::open_read_only(folder.path()).unwrap();
    let found = verification.advance(&after, u64::MAX, |_| {}).unwrap();
    assert_eq!((found.fault, found.checkpoints), (None, 1));
}

/// A signed bundle says that the history holds, so nothing is signed that the verification rejects. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_verify_is_not_signed_by_an_export() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path()).await;
    let export = || muster_ledger::export(folder.path(), Sequence(1), Sequence(0), Vec::new(), |_| {});
    assert!(export().unwrap().signed);
    add_behind_the_end(folder.path());
    let refused = export().unwrap_err().to_string();
    assert!(refused.contains("nothing of it is signed"), "{refused}");
    fs::remove_file(folder.path().join("ledger.key")).unwrap();
    assert!(!export().unwrap().signed);
}

/// A snapshot that was good when the ledger checked it is checked again before anybody gets it. M-LOG-12
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_is_forged_under_a_running_ledger_is_not_given() {
    let folder = tempfile::tempdir().unwrap();
    with_snapshot(folder.path()).await;
    let forged = forged_snapshot(folder.path());
    let other = Signer::load_or_draft(&folder.path().join("other")).unwrap();
    let ledger = Ledger::start(busy(folder.path())).await;
    let snapshot = async || {
        let query = Query::Snapshot { at_or_before: Some(Sequence(1000)), offset: 0 };
        let QueryAnswer::Snapshot { part, .. } = ledger.client.query(&query).await.unwrap() else {
            panic!("no snapshot")
        };
        part
    };
    let truly = snapshot().await;
    assert!(State::from_snapshot_bytes(&truly).is_ok());
    store(folder.path(), &forged, &other);
    let given = snapshot().await;
    assert!(given.is_empty() || given == truly, "what was forged is given");
    ledger.stop().await;
}

/// Unsigned records are reported: how many, and since when. A ledger never leaves a minute of them. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn records_that_no_signature_covers_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    let early = fs::read(witness_of(folder.path())).unwrap();
    let before = ledger.head().await;
    ledger.submit(3).await;
    let after = ledger.head().await;
    let copied = tempfile::tempdir().unwrap();
    copy(folder.path(), copied.path());
    let first = ledger.records(before.next()).await.remove(0).time;
    ledger.stop().await;
    fs::write(witness_of(copied.path()), &early).unwrap();
    let early = Witness::load(&witness_of(copied.path())).unwrap().unwrap().sequence;
    let found = verify_folder(copied.path(), |_| {}).unwrap();
    assert_eq!((found.fault, found.verified), (None, after));
    assert_eq!(found.unsigned.records, after.0 - early.0);
    assert!(found.unsigned.since.is_some_and(|since| since <= first), "{:?}", found.unsigned);

    // Somebody else than a ledger has added the last record: the ledger writes the index with it.
    let added = tempfile::tempdir().unwrap();
    copy(copied.path(), added.path());
    edit_index(added.path(), "by_job", |db, family, key, _| db.delete_cf(family, key).unwrap());
    both_object(added.path(), "index by job does not have it").await;

    let rewritten = tempfile::tempdir().unwrap();
    copy(copied.path(), rewritten.path());
    let later = |time: Timestamp| time.plus_micros(100_000_000);
    forge(rewritten.path(), after, |record| record.time = later(record.time));
    let last = found.last;
    change_index(rewritten.path(), "commands", |_, value| {
        let (time, rest) = value.split_first_chunk().unwrap();
        let is_of_it = answer(value).sequence == last;
        is_of_it.then(|| [&later(Timestamp(i64::from_be_bytes(*time))).0.to_be_bytes()[..], rest].concat())
    });
    both_object(rewritten.path(), "no signature covers its last").await;
    let kind = verify_folder(rewritten.path(), |_| {}).unwrap().fault.map(|fault| fault.kind);
    assert_eq!(kind, Some(FaultKind::Unproven));

    Ledger::start(config(copied.path())).await.stop().await;
    let found = verify_folder(copied.path(), |_| {}).unwrap();
    assert_eq!((found.fault, found.unsigned.records), (None, 0));
}

fn busy(folder: &Path) -> Config {
    Config { snapshot_every_records: 1000, ..config(folder) }
}

/// A folder with a snapshot, after a clean stop.
async fn with_snapshot(folder: &Path) -> PathBuf {
    let ledger = Ledger::start(busy(folder)).await;
    for _ in 0..11 {
        ledger.submit(100).await;
    }
    ledger.stop().await;
    let found = files(&folder.join("ledger/snapshots"), ".snapshot");
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

/// A snapshot of a state in which all jobs belong to somebody else.
fn forged_snapshot(folder: &Path) -> Snapshot {
    let storage = Storage::open_read_only(folder).unwrap();
    let record_hash = storage.log().unwrap().hash_of(Sequence(1000)).unwrap();
    let mut state = State::default();
    let read = storage.read(Sequence(1), Sequence(1000), |stored| {
        let mut record = stored.record()?;
        of_mallory(&mut record);
        state.apply(&record).unwrap();
        Ok(())
    });
    read.unwrap();
    let truly = storage.state_after(Sequence(1000)).unwrap().state;
    assert_ne!(state.digest(), truly.digest());
    Snapshot { sequence: Sequence(1000), record_hash, body: state.to_snapshot_bytes().unwrap() }
}

fn store(folder: &Path, snapshot: &Snapshot, signer: &Signer) {
    let cluster_id = Storage::open_read_only(folder).unwrap().identity().unwrap().cluster_id;
    Snapshots::new(&folder.join("ledger/snapshots")).store(snapshot, cluster_id, signer).unwrap();
}

fn state_digest(folder: &Path) -> [u8; 32] {
    let storage = Storage::open_read_only(folder).unwrap();
    let head = storage.log().unwrap().head().unwrap();
    storage.state_after(head.sequence).unwrap().state.digest()
}

/// A forged state is not believed: it is skipped, and the snapshot is made again. The same for a signed one that cannot
/// be read. M-LOG-12
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_the_ledger_did_not_sign_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = with_snapshot(folder.path()).await;
    let (whole, digest) = (fs::read(&path).unwrap(), state_digest(folder.path()));
    let forged = forged_snapshot(folder.path());
    let key = Signer::load(&folder.path().join("ledger.key")).unwrap();
    let other = Signer::load_or_draft(&folder.path().join("other")).unwrap();
    let rubbish = Snapshot { body: b"rubbish".to_vec(), ..forged_snapshot(folder.path()) };
    for (snapshot, signer) in [(&forged, &other), (&rubbish, &key)] {
        store(folder.path(), snapshot, signer);
        assert_ne!(fs::read(&path).unwrap(), whole);
        assert_eq!(state_digest(folder.path()), digest);
        let ledger = Ledger::start(busy(folder.path())).await;
        until("a good snapshot was made", async || fs::read(&path).unwrap() == whole).await;
        let asked = async || {
            let query = Query::Snapshot { at_or_before: None, offset: 0 };
            let QueryAnswer::Snapshot { sequence, part, total_bytes } = ledger.client.query(&query).await.unwrap()
            else {
                panic!("no snapshot");
            };
            (sequence, part, total_bytes)
        };
        // The ledger knows it a moment after it is in its place.
        until("the snapshot is known", async || asked().await.0 == Sequence(1000)).await;
        let (_, part, total_bytes) = asked().await;
        assert_eq!(part.len() as u64, total_bytes);
        assert!(State::from_snapshot_bytes(&part).is_ok());
        ledger.stop().await;
        assert_eq!(objection(folder.path()), None);
    }
}

/// Somebody with the key can sign a state that does not follow from the records: the verification of a running ledger
/// finds it. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn a_running_ledger_with_another_state_than_its_log_is_told() {
    let folder = tempfile::tempdir().unwrap();
    with_snapshot(folder.path()).await;
    let verified = async |folder: &Path| {
        let ledger = Ledger::start(config(folder)).await;
        let query = Query::Verify { from: Sequence(1), max_records: u64::MAX };
        let QueryAnswer::Verified { fault, complete, .. } = ledger.client.query(&query).await.unwrap() else {
            panic!("not verified");
        };
        assert!(complete);
        ledger.stop().await;
        fault
    };
    assert_eq!(verified(folder.path()).await, None);
    let key = Signer::load(&folder.path().join("ledger.key")).unwrap();
    store(folder.path(), &forged_snapshot(folder.path()), &key);
    let fault = verified(folder.path()).await;
    assert!(fault.as_ref().is_some_and(|fault| fault.contains("state in memory")), "{fault:?}");
}

/// One after changes, and none while nothing happens.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_is_made_after_a_time_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(Config { checkpoint_every_seconds: 1, ..config(folder.path()) }).await;
    let count = async || {
        let records = ledger.records(Sequence(1)).await;
        records.iter().filter(|record| matches!(record.event, Event::Checkpoint { .. })).count()
    };
    for round in 1..=3 {
        let head = ledger.head().await;
        ledger.submit(1).await;
        until("a checkpoint was made", async || {
            let records = ledger.records(head.next()).await;
            records.iter().any(|record| matches!(record.event, Event::Checkpoint { of, .. } if of > head))
        })
        .await;
        assert!(count().await <= round + 1, "only what happened is signed");
    }
    ledger.stop().await;
    assert_eq!(objection(folder.path()), None);
}

/// Acknowledged commands must be where a restart finds them. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_whose_folder_is_taken_away_stops_to_answer() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    ledger.submit(1).await;
    fs::rename(folder.path().join("ledger"), folder.path().join("elsewhere")).unwrap();
    let error = tokio::time::timeout(Duration::from_secs(60), ledger.ended()).await.expect("it ends").unwrap_err();
    assert!(error.to_string().contains("was removed"), "{error}");
    assert!(!folder.path().join("ledger").exists(), "it is not made again");
    let error = refusal(config(folder.path())).await;
    assert!(error.contains("the log was lost") && error.contains("--new-log"), "{error}");
    assert!(!folder.path().join("ledger").exists(), "nothing was changed");
    fs::rename(folder.path().join("elsewhere"), folder.path().join("ledger")).unwrap();
    Ledger::start(config(folder.path())).await.stop().await;
}

/// Records that are written to a removed file are gone after a crash. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_whose_newest_file_is_taken_away_stops_to_answer() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    ledger.submit(1).await;
    // The ledger has seen its files by now.
    let witness = folder.path().join("ledger/witness");
    let before = fs::read(&witness).ok();
    ledger.submit(2).await;
    until("the end was signed", async || fs::read(&witness).ok() != before).await;
    let files = fs::read_dir(folder.path().join("ledger/log")).unwrap().map(|entry| entry.unwrap().path());
    let logs: Vec<_> = files.filter(|path| path.extension().is_some_and(|of| of == "log")).collect();
    assert!(!logs.is_empty());
    logs.iter().for_each(|path| fs::remove_file(path).unwrap());
    let error = tokio::time::timeout(Duration::from_secs(60), ledger.ended()).await.expect("it ends").unwrap_err();
    assert!(error.to_string().contains("was removed"), "{error}");
}

/// It would be another cluster. M-LOG-8
#[tokio::test(flavor = "multi_thread")]
async fn a_new_log_beside_what_is_left_of_an_old_one_has_to_be_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    Ledger::start(config(folder.path())).await.stop().await;
    fs::remove_dir_all(folder.path().join("ledger")).unwrap();
    let error = refusal(config(folder.path())).await;
    assert!(error.contains("ledger.key of an earlier one"), "{error}");
    fs::remove_file(folder.path().join("ledger.key")).unwrap();
    let trace = folder.path().join("accounting.books");
    fs::write(&trace, "books").unwrap();
    let config = Config { traces: vec![trace], ..config(folder.path()) };
    let error = refusal(config.clone()).await;
    assert!(error.contains("accounting.books of an earlier one"), "{error}");
    Ledger::start(Config { new_log: true, ..config.clone() }).await.stop().await;
    Ledger::start(config).await.stop().await;
}

/// An interrupted first start leaves nothing that disturbs the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_start_can_be_interrupted_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    Ledger::start(config(folder.path())).await.stop().await;
    // After the first record, before the key was put in its place.
    fs::rename(folder.path().join("ledger.key"), folder.path().join("ledger.key.new")).unwrap();
    Ledger::start(config(folder.path())).await.stop().await;
    assert!(folder.path().join("ledger.key").exists());

    // An older program was stopped before the first record: it left a witness, a draft of the key, and a log
    // without records.
    let other = tempfile::tempdir().unwrap();
    let empty = Storage::open(other.path(), muster_ledger::retention::Commands::seconds(0)).unwrap();
    let signer = Signer::load_or_draft(&other.path().join("ledger.key")).unwrap();
    let head = muster_ledger::log::Head { sequence: Sequence(1), ..muster_ledger::log::Head::EMPTY };
    empty.bear_witness(muster_schemas::event::uuid_bytes::UuidBytes([1; 16]), head, End::Open, &signer).unwrap();
    drop(empty);
    Ledger::start(config(other.path())).await.stop().await;
    assert_eq!(objection(other.path()), None);
}

/// A small history with a recorded refusal, a command that changed nothing, and a checkpoint at its end.
async fn with_indexes(folder: &Path) {
    let ledger = Ledger::start(config(folder)).await;
    ledger.submit(3).await;
    let unknown = Command::Cancel { jobs: JobSelection::Ids(vec![JobId::job(99)]) };
    ledger.send(CommandId::new_now(), unknown).await.result.unwrap_err();
    let jobs = JobSelection::Ids(vec![JobId::job(2)]);
    ledger.send(CommandId::new_now(), Command::Cancel { jobs }).await.result.unwrap();
    // It leaves no record, and its answer is remembered.
    let jobs = JobSelection::Matching(JobFilter { name: Some("nobody's".into()), ..JobFilter::default() });
    ledger.send(CommandId::new_now(), Command::Cancel { jobs }).await.result.unwrap();
    ledger.submit(1).await;
    ledger.stop().await;
}

/// Valid index entries that contradict the records: for each kind, one that was altered, one that is missing and one
/// too many. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_lies_is_told() {
    let whole = tempfile::tempdir().unwrap();
    with_indexes(whole.path()).await;
    assert_eq!(objection(whole.path()), None);
    let again = |value: &[u8], change: &dyn Fn(&mut Answer)| {
        let mut answer = answer(value);
        let before = answer.clone();
        change(&mut answer);
        let mut forged = value[..24].to_vec();
        codec::encode_into(&answer, &mut forged).unwrap();
        (answer != before).then_some(forged)
    };
    type Change<'a> = Box<dyn Fn(&Path) + 'a>;
    let answers = |change: Box<dyn Fn(&mut Answer)>| -> Change<'_> {
        Box::new(move |folder| change_index(folder, "commands", |_, value| again(value, &*change)))
    };
    let edit = |index: &'static str, edit: fn(&rocksdb::DB, &rocksdb::ColumnFamily, &[u8], &[u8])| -> Change<'_> {
        Box::new(move |folder| edit_index(folder, index, edit))
    };
    let forgeries: Vec<(&str, Change<'_>)> = vec![
        ("a record of a job is hidden", edit("by_job", |db, family, key, _| db.delete_cf(family, key).unwrap())),
        (
            "a record is put under another job",
            edit("by_job", |db, family, key, value| {
                let mut forged = key.to_vec();
                forged[7] ^= 0x40;
                db.put_cf(family, forged, value).unwrap();
            }),
        ),
        (
            "a record that has not been yet",
            edit("by_job", |db, family, key, value| {
                let mut forged = key.to_vec();
                forged[16] = 1;
                db.put_cf(family, forged, value).unwrap();
            }),
        ),
        (
            "a record is said to have all of a job",
            Box::new(|folder| change_index(folder, "by_job", |_, value| value.is_empty().then(|| vec![1]))),
        ),
        (
            "what has all of a job is not said to",
            // The last one, as older programs did not mark any.
            Box::new(|folder| {
                change_index(folder, "by_job", |key, value| (key[7] == 4 && !value.is_empty()).then(Vec::new));
            }),
        ),
        (
            "another number is told who submits again",
            answers(Box::new(|answer| {
                if let Ok(Reply::Submitted(jobs)) = &mut answer.result {
                    jobs[0] = JobId::job(77);
                }
            })),
        ),
        (
            "what was done is refused",
            answers(Box::new(|answer| {
                if matches!(answer.result, Ok(Reply::Submitted(_))) {
                    answer.result = Err(Refusal::new(RefusalCode::Conflict, "no"));
                }
            })),
        ),
        (
            "what was refused is done",
            answers(Box::new(|answer| {
                if answer.result.is_err() {
                    answer.result = Ok(Reply::Done);
                }
            })),
        ),
        (
            "what changed nothing made a job",
            answers(Box::new(|answer| {
                if matches!(&answer.result, Ok(Reply::Jobs(jobs)) if jobs.is_empty()) {
                    answer.result = Ok(Reply::Submitted(vec![JobId::job(77)]));
                }
            })),
        ),
        ("an answer is forgotten", edit("commands", |db, family, key, _| db.delete_cf(family, key).unwrap())),
        (
            "an answer to a command that never was",
            edit("commands", |db, family, key, value| {
                let mut forged = key.to_vec();
                forged[0] ^= 0x40;
                db.put_cf(family, forged, value).unwrap();
            }),
        ),
        (
            "a checkpoint of another record",
            edit("checkpoints", |db, family, key, value| {
                let mut forged = key.to_vec();
                forged[7] = 1;
                db.put_cf(family, forged, value).unwrap();
            }),
        ),
    ];
    for (what, forge) in forgeries {
        let folder = tempfile::tempdir().unwrap();
        copy(whole.path(), folder.path());
        forge(folder.path());
        let fault = verify_folder(folder.path(), |_| {}).unwrap().fault;
        let is_told = fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Invalid);
        assert!(is_told, "{what}: {fault:?}");
    }
}

/// Changes the last entry of an index that is the answer to a submission, or else its last entry.
fn edit_index(folder: &Path, index: &str, edit: fn(&rocksdb::DB, &rocksdb::ColumnFamily, &[u8], &[u8])) {
    let log = folder.join("ledger/log");
    let families = rocksdb::DB::list_cf(&rocksdb::Options::default(), &log).unwrap();
    let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), &log, &families).unwrap();
    let family = db.cf_handle(index).unwrap();
    let all: Vec<_> = db.iterator_cf(family, rocksdb::IteratorMode::Start).map(Result::unwrap).collect();
    let makes = |value: &[u8]| index == "commands" && matches!(answer(value).result, Ok(Reply::Submitted(_)));
    let chosen = all.iter().rfind(|(_, value)| makes(value)).or(all.last());
    let (key, value) = chosen.expect("it has entries");
    edit(&db, family, key, value);
    db.flush_cf(family).unwrap();
}

/// While a log is being created its folder has another name, so whatever a killed first start leaves there is not a
/// log: not half a database, not a missing one, and not a log that was finished before its witness and its key.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_first_start_leaves_of_a_log_is_made_again() {
    let whole = tempfile::tempdir().unwrap();
    Ledger::start(config(whole.path())).await.stop().await;
    let log = whole.path().join("ledger/log");
    let mut names: Vec<_> = fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    // CURRENT comes last: without it RocksDB does not open the database.
    names.sort_by_key(|name| name == "CURRENT");
    for count in 0..=names.len() {
        let folder = tempfile::tempdir().unwrap();
        let draft = folder.path().join("ledger/log.new");
        fs::create_dir_all(&draft).unwrap();
        for name in &names[..count] {
            fs::copy(log.join(name), draft.join(name)).unwrap();
        }
        fs::write(folder.path().join("ledger.key.new"), "half a k").unwrap();
        Ledger::start(config(folder.path())).await.stop().await;
        assert!(!draft.exists() && folder.path().join("ledger.key").exists(), "{count} of {names:?}");
        assert_eq!(objection(folder.path()), None);
        // A draft beside an existing log does no harm, and beside a key it does not count as a log.
        fs::create_dir(&draft).unwrap();
        Ledger::start(config(folder.path())).await.stop().await;
        fs::remove_dir_all(folder.path().join("ledger/log")).unwrap();
        let error = refusal(config(folder.path())).await;
        assert!(error.contains("the log was lost"), "{error}");
    }
}

/// The creation of the log, copied from outside at as many moments as possible: each copy starts again.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_start_copied_at_any_moment_starts_again() {
    let folder = tempfile::tempdir().unwrap();
    let copies = tempfile::tempdir().unwrap();
    let start = tokio::spawn(Ledger::start(config(folder.path())));
    let mut count = 0;
    while !start.is_finished() && count < 12 {
        let target = copies.path().join(count.to_string());
        // A file that disappears while it is copied spoils a copy; a kill does not do that.
        let copied = std::process::Command::new("cp").arg("-a").arg(folder.path()).arg(&target).output().unwrap();
        if copied.status.success() {
            count += 1;
        } else {
            fs::remove_dir_all(&target).unwrap();
        }
        tokio::task::yield_now().await;
    }
    start.await.unwrap().stop().await;
    for number in 0..count {
        let copied = copies.path().join(number.to_string());
        if !copied.join("ledger/log").exists() {
            Ledger::start(config(&copied)).await.stop().await;
            assert_eq!(objection(&copied), None, "copy {number}");
        }
    }
}
