//! Verifying, exporting and archiving a log, also with the verifier that shares no code with muster.

mod support;

use muster_ledger::{Config, export, log::Log, signing::Signer, storage::Storage, verify_folder, witness::Witness};
use muster_schemas::{
    command::{Command, JobSelection, Query, QueryAnswer},
    event::Event,
    ids::{CommandId, JobId, Sequence},
};
use serde_json::Value;
use sha2::Digest as _;
use std::{
    fs,
    path::{Path, PathBuf},
    process,
    time::{Duration, Instant},
};
use support::{Ledger, config};

/// Snapshots, checkpoints and archives as often as possible.
fn busy(folder: &Path) -> Config {
    Config { snapshot_every_records: 1000, checkpoint_every_records: 100, ..config(folder) }
}

/// Waits until a condition holds.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so().await {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Bytes that this process has read so far.
fn bytes_read() -> u64 {
    let io = fs::read_to_string("/proc/self/io").expect("counts of this process");
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("bytes read").parse().expect("a number")
}

fn last_signed(folder: &Path) -> Sequence {
    let storage = Storage::open_read_only(folder).expect("open");
    storage.log().expect("log").last_signed().expect("read")
}

/// The verdict of `ops/verify-bundle`: whether the bundle holds, and the output.
fn verify_bundle(bundle: &Path) -> (bool, String) {
    let (status, text) = verdict(bundle, &[]);
    (status == 0, text)
}

/// The status of `ops/verify-bundle` with these options, and its output.
fn verdict(bundle: &Path, options: &[&str]) -> (i32, String) {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../ops/verify-bundle");
    let mut command = process::Command::new("python3");
    let output = command.arg("-B").arg(script).arg(bundle).args(options).output().expect("python3 runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().expect("it ends by itself"), text)
}

/// The lines of a bundle with valid chain and checksum, and without signatures: what somebody can write who knows the
/// format and has no key.
fn unsigned_bundle(header: &str, records: &[Value]) -> String {
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let bytes_of = |text: &str| -> Vec<u8> {
        let pairs = text.as_bytes().chunks(2);
        pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    };
    let mut header: Value = serde_json::from_str(header).unwrap();
    let first = header["first"].as_u64().unwrap();
    header["last"] = (first + records.len() as u64 - 1).into();
    let mut hash = bytes_of(header["previous_hash"].as_str().unwrap());
    let mut text = format!("{header}\n");
    for (number, record) in records.iter().enumerate() {
        let mut record = record.clone();
        record["sequence"] = (first + number as u64).into();
        hash.extend(bytes_of(record["payload"].as_str().unwrap()));
        hash = blake3::hash(&hash).as_bytes().to_vec();
        record["hash"] = digits(&hash).into();
        text += &format!("{record}\n");
    }
    let sha256 = digits(&sha2::Sha256::digest(text.as_bytes()));
    text + &format!("{{\"records\":{},\"sha256\":\"{sha256}\"}}\n", records.len())
}

/// Four bundles forged without the key, each with a valid chain and checksum. M-LOG-9
#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_is_not_signed_proves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    ledger.submit(10).await;
    ledger.stop().await;
    let ledger = Ledger::start(config(folder.path())).await;
    ledger.submit(10).await;
    ledger.stop().await;
    let bundle = folder.path().join("bundle");
    export_to(folder.path(), &bundle, 1, 0);
    let whole = fs::read_to_string(&bundle).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let header = lines[0];
    let records: Vec<Value> =
        lines[1..lines.len() - 1].iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let key = serde_json::from_str::<Value>(header).unwrap()["public_key"].as_str().unwrap().to_owned();
    let with_key = ["--public-key", &key];
    assert_eq!(verdict(&bundle, &with_key).0, 0);

    let is_checkpoint = |record: &&Value| record.get("checkpoint").is_some();
    let altered = |mut record: Value| {
        record["record"]["actor"] = "mallory".into();
        record
    };
    let at = records.iter().position(|record| !is_checkpoint(&record)).unwrap() + 3;
    let decoded: Vec<Value> = records
        .iter()
        .enumerate()
        .map(|(n, record)| if n == at { altered(record.clone()) } else { record.clone() })
        .collect();
    let cut = &records[..records.len() * 9 / 10];
    let without: Vec<Value> = records
        .iter()
        .enumerate()
        .filter(|(n, record)| *n != at && !is_checkpoint(record))
        .map(|(_, record)| record.clone())
        .collect();
    let mut replaced = vec![records[0].clone()];
    replaced.extend(records.iter().filter(|record| !is_checkpoint(record)).skip(1).map(|_| records[at].clone()));
    for (what, records) in [
        ("a decoded record altered", &decoded[..]),
        ("the end cut off", cut),
        ("a record and all checkpoints taken out", &without),
        ("every record but the first replaced", &replaced),
    ] {
        let forged = folder.path().join("forged");
        fs::write(&forged, unsigned_bundle(header, records)).unwrap();
        for options in [&with_key[..], &[]] {
            let (status, text) = verdict(&forged, options);
            assert!(status == 3 && text.starts_with("NOT PROVEN"), "{what}: {status} {text}");
            assert!(text.contains("decoded records are not proven"), "{what}: {text}");
        }
        let allowed = ["--public-key", &key, "--allow-unsigned"];
        let (status, text) = verdict(&forged, &allowed);
        let has_signature = records.iter().any(|record| is_checkpoint(&record));
        assert_eq!(status, if has_signature { 0 } else { 3 }, "{what}: {text}");
        assert!(!text.contains("VALID:"), "{what}: {text}");
        let tail = format!(" to {}\n", records.len());
        assert!(text.contains("no signature covers the records ") && text.contains(&tail), "{what}: {text}");
    }
}

fn export_to(folder: &Path, bundle: &Path, first: u64, last: u64) -> muster_ledger::export::Exported {
    let output = fs::File::create(bundle).expect("file");
    export(folder, Sequence(first), Sequence(last), output, |_| {}).expect("exported")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_with_checkpoints_verifies_at_rest_and_while_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(busy(folder.path())).await;
    for _ in 0..30 {
        ledger.submit(50).await;
    }
    until("a checkpoint was made", async || last_signed(folder.path()) > Sequence(1000)).await;
    let growing = verify_folder(folder.path(), |_| {}).unwrap();
    assert_eq!(growing.fault, None);
    assert!(growing.checkpoints >= 1, "{growing:?}");

    let (mut from, mut checkpoints, mut calls) = (Sequence(1), 0, 0);
    loop {
        let query = Query::Verify { from, max_records: 400 };
        let QueryAnswer::Verified { to, complete, checkpoints: more, fault, .. } =
            ledger.client.query(&query).await.unwrap()
        else {
            panic!("not verified");
        };
        assert_eq!(fault, None);
        (from, checkpoints, calls) = (to.next(), checkpoints + more, calls + 1);
        if complete {
            break;
        }
    }
    assert!(calls > 3 && checkpoints >= 1, "{calls} calls, {checkpoints} checkpoints");
    ledger.submit(1).await;
    ledger.stop().await;

    let stopped = verify_folder(folder.path(), |_| {}).unwrap();
    assert_eq!((stopped.fault.clone(), stopped.verified), (None, stopped.last));
    assert!(stopped.checkpoints > checkpoints, "a clean stop signs the state: {stopped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_are_used_and_a_torn_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(busy(folder.path())).await;
    let snapshot_at = async |sequence: u64| {
        let query = Query::Snapshot { at_or_before: Some(Sequence(sequence)), offset: 0 };
        match ledger.client.query(&query).await.unwrap() {
            QueryAnswer::Snapshot { sequence, total_bytes, part } => (sequence, total_bytes, part.len() as u64),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(snapshot_at(u64::MAX).await, (Sequence(0), 0, 0));
    for round in 1..=2 {
        for _ in 0..11 {
            ledger.submit(100).await;
        }
        until("a snapshot was made", async || snapshot_at(u64::MAX).await.0 == Sequence(1000 * round)).await;
    }
    let (sequence, total, part) = snapshot_at(1999).await;
    assert_eq!((sequence, total), (Sequence(1000), part));
    ledger.stop().await;

    let state =
        |sequence: u64| Storage::open_read_only(folder.path()).unwrap().state_after(Sequence(sequence)).unwrap();
    let whole = state(2100);
    let snapshots = support::files(&folder.path().join("ledger/snapshots"), ".snapshot");
    assert_eq!(snapshots.len(), 2, "{snapshots:?}");
    let bytes = fs::read(&snapshots[1]).unwrap();
    fs::write(&snapshots[1], &bytes[..bytes.len() / 2]).unwrap();
    let without = state(2100);
    assert_eq!((&whole.state, whole.hash), (&without.state, without.hash));
    fs::write(&snapshots[1], fs::read(&snapshots[0]).unwrap()).unwrap();
    fs::remove_file(&snapshots[0]).unwrap();
    assert_eq!(state(2100).state, whole.state, "a snapshot under another's name is not used");
    Ledger::start(busy(folder.path())).await.stop().await;
}

/// A bundle is verified without muster, and every change in it is found (M-AUD-3).
#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_is_verified_without_muster_and_every_change_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    ledger.submit(10).await;
    ledger.stop().await;
    Ledger::start(config(folder.path())).await.stop().await;
    let bundle = folder.path().join("bundle");
    let exported = export_to(folder.path(), &bundle, 1, 0);
    assert!(exported.signed);
    let (valid, text) = verify_bundle(&bundle);
    assert!(valid, "{text}");
    assert!(text.contains("signed checkpoints") && text.contains("signed by the cluster's key"), "{text}");

    let part = folder.path().join("part");
    export_to(folder.path(), &part, 3, exported.last.0);
    let (valid, text) = verify_bundle(&part);
    assert!(valid, "{text}");

    let whole = fs::read_to_string(&bundle).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let payload_at = whole.find("\"payload\":\"").unwrap() + 60;
    let mut altered_payload = whole.clone().into_bytes();
    altered_payload[payload_at] = if altered_payload[payload_at] == b'0' { b'1' } else { b'0' };
    let without = |line: usize| [&lines[..line], &lines[line + 1..]].concat().join("\n") + "\n";
    let changes: Vec<(&str, Vec<u8>)> = vec![
        ("an altered payload", altered_payload),
        (
            "an altered decoded record",
            whole.replacen("\"submitted\"", "\"Submitted\"", 1).replacen("root", "toor", 1).into(),
        ),
        ("a record removed", without(5).into()),
        ("the last record removed", without(lines.len() - 2).into()),
        ("cut short", whole.as_bytes()[..whole.len() * 2 / 3].to_vec()),
        ("without its trailer", without(lines.len() - 1).into()),
        ("something behind it", (whole.clone() + "{}\n").into()),
        ("empty", Vec::new()),
    ];
    for (what, bytes) in changes {
        let altered = folder.path().join("altered");
        fs::write(&altered, bytes).unwrap();
        let (valid, text) = verify_bundle(&altered);
        assert!(!valid && text.contains("NOT VALID"), "{what}: {text}");
    }
}

/// A forged checkpoint is found, by muster and by the independent verifier (M-AUD-2).
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_checkpoint_is_found_by_both() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    ledger.submit(3).await;
    ledger.stop().await;
    // Signed by another cluster's key: as if somebody without the key had rewritten the log.
    let log = folder.path().join("ledger/log");
    let families = rocksdb::DB::list_cf(&rocksdb::Options::default(), &log).unwrap();
    let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), &log, &families).unwrap();
    let records = db.cf_handle("records").unwrap();
    let (key, value) = db.iterator_cf(records, rocksdb::IteratorMode::End).next().unwrap().unwrap();
    let mut record: muster_schemas::event::Record = muster_schemas::codec::decode(&value[32..]).unwrap();
    let Event::Checkpoint { signature, .. } = &mut record.event else { panic!("{record:?}") };
    signature.s[0] ^= 1;
    let mut forged = value[..32].to_vec();
    muster_schemas::codec::encode_into(&record, &mut forged).unwrap();
    db.put_cf(records, key, forged).unwrap();
    drop(db);
    // By somebody who can have the end signed.
    let forged = Log::open_read_only(&log).unwrap();
    let (cluster_id, head) = (forged.identity().unwrap().unwrap().cluster_id, forged.head().unwrap());
    let key = Signer::load(&folder.path().join("ledger.key")).unwrap();
    Witness::sign(cluster_id, head, muster_ledger::witness::End::Open, &key)
        .store(&folder.path().join("ledger/witness"))
        .unwrap();

    let found = verify_folder(folder.path(), |_| {}).unwrap();
    assert!(found.fault.as_ref().is_some_and(|fault| fault.detail.contains("not the cluster's")), "{found:?}");
    let bundle = folder.path().join("bundle");
    let refused = export(folder.path(), Sequence(1), Sequence(0), Vec::new(), |_| {}).unwrap_err();
    assert!(refused.to_string().contains("nothing of it is signed"), "{refused}");
    // Without the key the records are exported as they are.
    fs::remove_file(folder.path().join("ledger.key")).unwrap();
    export_to(folder.path(), &bundle, 1, 0);
    let (valid, text) = verify_bundle(&bundle);
    assert!(!valid && text.contains("not the cluster's"), "{text}");
}

/// Archived ranges can still be read and verified (M-LOG-13).
#[tokio::test(flavor = "multi_thread")]
async fn archived_records_are_read_on_and_still_verify() {
    let folder = tempfile::tempdir().unwrap();
    // Finished jobs are forgotten after a second, and their records are no longer needed.
    let forgetful = || {
        let mut config = Config { archive_after_days: Some(0), ..busy(folder.path()) };
        let cluster = config.cluster.as_mut().expect("a cluster");
        cluster.settings.finished_job_retention_seconds = Some(0);
        config
    };
    let ledger = Ledger::start(forgetful()).await;
    until("records were archived", async || {
        let jobs = JobSelection::Ids(ledger.submit(10).await);
        ledger.send(CommandId::new_now(), Command::Cancel { jobs }).await.result.expect("cancelled");
        match ledger.client.query(&Query::Head).await.unwrap() {
            QueryAnswer::Head { first, .. } => first > Sequence(1000),
            other => panic!("{other:?}"),
        }
    })
    .await;
    let records = ledger.records(Sequence(1)).await;
    assert!(records.iter().map(|record| record.sequence.0).eq(1..=records.len() as u64), "contiguous from 1");
    assert!(records.iter().any(|record| matches!(record.event, Event::RangeArchived { .. })));
    let history = Query::JobHistory { job: JobId::job(1), from: Sequence(0) };
    assert!(ledger.client.query(&history).await.is_ok(), "what has left the log does not disturb");
    // The causes of archived records are found without reading an archive for each of them.
    let archives = support::files(&folder.path().join("ledger/archive"), ".musteraudit.gz");
    let archive_bytes: u64 = archives.iter().map(|archive| fs::metadata(archive).unwrap().len()).sum();
    let before = bytes_read();
    let of: Vec<Sequence> = (1..=500).map(Sequence).collect();
    match ledger.client.query(&Query::Causes { of }).await.unwrap() {
        QueryAnswer::Causes(causes) => assert_eq!(causes.len(), 500),
        other => panic!("{other:?}"),
    }
    let read = bytes_read() - before;
    assert!(read < 20 * archive_bytes, "{read} bytes read of archives of {archive_bytes} bytes");
    ledger.stop().await;

    let verified = verify_folder(folder.path(), |_| {}).unwrap();
    assert_eq!(verified.fault, None);
    let archives = support::files(&folder.path().join("ledger/archive"), ".musteraudit.gz");
    assert!(!archives.is_empty());
    let (valid, text) = verify_bundle(&archives[0]);
    assert!(valid, "{text}");
    let bundle = folder.path().join("bundle");
    assert_eq!(export_to(folder.path(), &bundle, 1, 0).first, Sequence(1));
    let (valid, text) = verify_bundle(&bundle);
    assert!(valid, "{text}");

    // Without the archive the ledger still runs, and tells where the requested records went.
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(folder.path().join("ledger/archive"), &elsewhere).unwrap();
    let ledger = Ledger::start(forgetful()).await;
    let error = ledger.client.query(&Query::Replay { from: Sequence(1), max_bytes: 1 }).await.unwrap_err();
    assert!(error.to_string().contains("moved to an archive"), "{error}");
    ledger.stop().await;
}

/// A file that is no bundle is reported as invalid, and not by a Python error.
#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_of_another_form_is_not_valid_and_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(busy(folder.path())).await;
    ledger.submit(3).await;
    ledger.stop().await;
    let bundle = folder.path().join("bundle");
    export_to(folder.path(), &bundle, 1, 0);
    let text = fs::read_to_string(&bundle).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let altered = folder.path().join("altered");
    let is_told = |line: usize| {
        let (status, told) = verdict(&altered, &[]);
        assert!(status == 1 && told.starts_with(&format!("NOT VALID: line {line}: ")), "{status}: {told}");
    };
    for (line, field, value) in [
        (1, "cluster_id", Value::from(7)),
        (1, "public_key", Value::from(7)),
        (2, "record", Value::from(vec![1])),
        (2, "payload", Value::from(vec![1])),
        (3, "record", Value::from("x")),
    ] {
        let mut lines = lines.clone();
        lines[line - 1][field] = value;
        fs::write(&altered, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        is_told(line);
    }
    for odd in ["7", "[]", "null"] {
        fs::write(&altered, format!("{odd}\n")).unwrap();
        is_told(1);
    }
    // Compressed, as archives are, and damaged where the data begin: an invalid kind of block.
    fs::write(&altered, b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xff\xff\xff\xff").unwrap();
    is_told(1);
}
