//! Random changes to everything that the history consists of. Each is found by verifying or at the start, or does no
//! harm: the records and the state are the same. M-LOG-9
//!
//! `MUSTER_TAMPERS` is the number of rounds (40), `MUSTER_SEED` the seed of the random numbers; the seed is printed.

mod support;

use muster_bus::LocalBus;
use muster_ledger::{Config, export, signing::Signer, storage::Storage, verify_folder, witness::Witness};
use muster_schemas::ids::Sequence;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process,
    time::{Duration, Instant},
};
use support::{Ledger, config, copy, files};

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn busy(folder: &Path) -> Config {
    Config { snapshot_every_records: 1000, checkpoint_every_records: 100, ..config(folder) }
}

/// A folder with snapshots and checkpoints, cleanly stopped and with everything in tables, and one whose ledger was
/// killed, with everything in the write-ahead log and its end signed.
async fn folders() -> [tempfile::TempDir; 2] {
    let [stopped, running, killed] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let ledger = Ledger::start(busy(stopped.path())).await;
    for _ in 0..11 {
        ledger.submit(100).await;
    }
    ledger.stop().await;
    let log = stopped.path().join("ledger/log");
    let families = rocksdb::DB::list_cf(&rocksdb::Options::default(), &log).unwrap();
    let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), &log, &families).unwrap();
    for family in &families {
        db.flush_cf(db.cf_handle(family).unwrap()).unwrap();
    }
    drop(db);

    let ledger = Ledger::start(config(running.path())).await;
    for _ in 0..30 {
        ledger.submit(3).await;
    }
    let head = ledger.head().await;
    let deadline = Instant::now() + Duration::from_secs(60);
    let witness = running.path().join("ledger/witness");
    while Witness::load(&witness).unwrap().is_none_or(|witness| witness.sequence < head) {
        assert!(Instant::now() < deadline, "the end is signed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    copy(running.path(), killed.path());
    ledger.stop().await;
    [stopped, killed]
}

/// The files worth changing, by kind, without empty ones and those that only say what happened.
fn targets(folder: &Path) -> Vec<PathBuf> {
    let mut targets = vec![folder.join("ledger.key"), folder.join("ledger/witness")];
    let snapshots = folder.join("ledger/snapshots");
    if snapshots.exists() {
        targets.extend(files(&snapshots, ".snapshot"));
    }
    let is_content = |name: &str| {
        name == "CURRENT"
            || name.starts_with("MANIFEST")
            || name.ends_with(".sst")
            || name.ends_with(".log") && name.len() > 4
    };
    let log = files(&folder.join("ledger/log"), "");
    targets.extend(
        log.into_iter().filter(|path| path.file_name().is_some_and(|name| is_content(&name.to_string_lossy()))),
    );
    targets.retain(|path| fs::metadata(path).is_ok_and(|file| file.len() > 0));
    targets.iter().map(|path| path.strip_prefix(folder).unwrap().to_owned()).collect()
}

/// Changes a file, never without effect; returns a description.
fn tamper(path: &Path, random: &mut StdRng) -> String {
    let whole = fs::read(path).unwrap();
    let mut bytes = whole.clone();
    let at = random.random_range(0..bytes.len());
    let what = match random.random_range(0..8) {
        0 => {
            fs::remove_file(path).unwrap();
            return "removed".into();
        }
        1 => {
            bytes.truncate(at);
            format!("cut to {at} of {}", whole.len())
        }
        2 => {
            let least = bytes.len().saturating_sub(300);
            let length = random.random_range(least..bytes.len());
            bytes.truncate(length);
            format!("cut to {length} of {}", whole.len())
        }
        3 => {
            let end = (at + random.random_range(1..64)).min(bytes.len());
            bytes[at..end].fill(0);
            format!("zeros from {at} to {end}")
        }
        4 => {
            let byte = random.random();
            bytes.insert(at, byte);
            format!("a byte inserted at {at}")
        }
        5 => {
            let tail: Vec<u8> = (0..random.random_range(1..100)).map(|_| random.random()).collect();
            bytes.extend(tail);
            "something behind it".into()
        }
        6 => {
            let to = random.random_range(0..bytes.len());
            bytes.swap(at, to);
            format!("bytes {at} and {to} exchanged")
        }
        _ => {
            bytes[at] ^= 1 << random.random_range(0..8);
            format!("a bit of byte {at}")
        }
    };
    fs::write(path, bytes).unwrap();
    what
}

/// The contents that must be the same if nothing was found: all stored records, and the resulting state.
#[derive(PartialEq, Eq)]
struct Contents {
    records: Vec<u8>,
    digest: [u8; 32],
}

fn contents(folder: &Path) -> Result<Contents, String> {
    let storage = Storage::open_read_only(folder).map_err(|error| error.to_string())?;
    let head = storage.log().and_then(|log| log.head()).map_err(|error| error.to_string())?;
    let mut records = Vec::new();
    let read = storage.read(Sequence(1), head.sequence, |stored| {
        records.extend_from_slice(stored.value);
        Ok(())
    });
    read.map_err(|error| error.to_string())?;
    let digest = storage.state_after(head.sequence).map_err(|error| error.to_string())?.state.digest();
    Ok(Contents { records, digest })
}

fn is_found(folder: &Path) -> bool {
    verify_folder(folder, |_| {}).map_or(true, |progress| progress.fault.is_some())
}

/// Whether a ledger starts on a folder. It is stopped again: RocksDB ends the program if it is still at work at exit.
async fn starts(folder: &Path) -> bool {
    match Ledger::try_start_on(LocalBus::new(), config(folder)).await {
        Ok(ledger) => {
            ledger.stop().await;
            true
        }
        Err(_) => false,
    }
}

fn rounds() -> u64 {
    from_environment("MUSTER_TAMPERS").unwrap_or(40)
}

fn seeded() -> StdRng {
    let seed = from_environment("MUSTER_SEED").unwrap_or_else(|| rand::rng().random());
    println!("MUSTER_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

#[derive(Default)]
struct Tally {
    found: u64,
    harmless: u64,
    by_kind: BTreeMap<String, (u64, u64)>,
}

impl Tally {
    fn count(&mut self, kind: &str, is_found: bool) {
        let of_kind = self.by_kind.entry(kind.to_owned()).or_default();
        if is_found {
            self.found += 1;
            of_kind.0 += 1;
        } else {
            self.harmless += 1;
            of_kind.1 += 1;
        }
    }

    fn tell(&self, what: &str) {
        println!("{what}: {} found, {} harmless, 0 missed", self.found, self.harmless);
        for (kind, (found, harmless)) in &self.by_kind {
            println!("  {kind}: {found} found, {harmless} harmless");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_to_a_data_folder_is_found_or_harmless() {
    let mut random = seeded();
    let folders = folders().await;
    let wholes = folders.each_ref().map(|folder| contents(folder.path()).unwrap());
    let mut tally = Tally::default();
    for round in 0..rounds() {
        let which = random.random_range(0..folders.len());
        let (folder, whole) = (folders[which].path(), &wholes[which]);
        let targets = targets(folder);
        let target = &targets[random.random_range(0..targets.len())];
        let tampered = tempfile::tempdir().unwrap();
        copy(folder, tampered.path());
        let what = tamper(&tampered.path().join(target), &mut random);
        let name = target.file_name().unwrap().to_string_lossy();
        let kind = name.rsplit_once('.').map_or_else(|| name.split('-').next().unwrap_or_default(), |(_, end)| end);
        if is_found(tampered.path()) {
            tally.count(kind, true);
            continue;
        }
        let is_same = contents(tampered.path()).is_ok_and(|found| found == *whole);
        assert!(is_same, "round {round}, missed: {}, {what}", target.display());
        // Verifying does not need the key.
        let is_key = target.ends_with("ledger.key");
        let signs = || Signer::load(&tampered.path().join("ledger.key")).is_ok();
        let is_refused = is_key && !starts(tampered.path()).await;
        assert!(!is_key || is_refused || signs(), "round {round}, missed: {}, {what}", target.display());
        tally.count(kind, is_refused);
    }
    tally.tell("data folders");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_to_a_bundle_is_found() {
    let mut random = seeded();
    let [_, killed] = folders().await;
    let bundle = killed.path().join("bundle");
    export(killed.path(), Sequence(1), Sequence(0), fs::File::create(&bundle).unwrap(), |_| {}).unwrap();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../ops/verify-bundle");
    let key = Storage::open_read_only(killed.path()).unwrap().identity().unwrap().public_key;
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let status = |bundle: &Path| {
        let mut command = process::Command::new("python3");
        let command = command.arg("-B").arg(&script).arg(bundle).args(["--public-key", &key]);
        command.output().expect("python3 runs").status
    };
    assert!(status(&bundle).success());
    let mut tally = Tally::default();
    let whole = fs::read_to_string(&bundle).unwrap();
    // Python's own hash is slow: a bundle takes a second.
    for round in 0..rounds().div_ceil(10) {
        let tampered = killed.path().join("tampered");
        fs::copy(&bundle, &tampered).unwrap();
        let what = tamper(&tampered, &mut random);
        // The digits of the trailer's own signature mean the same in upper case.
        let is_same = fs::read_to_string(&tampered).is_ok_and(|text| text.eq_ignore_ascii_case(&whole));
        let is_found = !status(&tampered).success();
        assert!(is_found || is_same, "round {round}, missed: {what}");
        tally.count("bundle", is_found);
    }
    tally.tell("bundles");
}
