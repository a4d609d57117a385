//! A disk that is full for a while. This is the only test of its program: it limits what the whole process may write.

mod support;

use muster_schemas::{
    command::RefusalCode,
    ids::{CommandId, Sequence},
};
use nix::sys::{
    resource::{Resource, getrlimit, setrlimit},
    signal::{SigHandler, Signal, signal},
};
use std::{
    fs,
    time::{Duration, Instant},
};
use support::{Ledger, config, submission};

/// On a full disk, nothing is acknowledged that is not on disk (M-LOG-6).
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acknowledged_that_is_not_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    let mut acknowledged = ledger.submit(5).await;
    let head = ledger.head().await;

    // From here on no file can grow beyond the present size of the write-ahead log. SAFETY: ignoring a signal runs no
    // code of ours in a handler.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.unwrap();
    let (_, unlimited) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    let wal = support::files(&folder.path().join("ledger/log"), ".log").pop().unwrap();
    let bytes = fs::metadata(&wal).unwrap().len();
    setrlimit(Resource::RLIMIT_FSIZE, bytes + 100, unlimited).unwrap();

    let refused = CommandId::new_now();
    for id in [refused, CommandId::new_now(), refused] {
        let answer = ledger.send(id, submission(20)).await;
        let refusal = answer.result.expect_err("refused");
        assert_eq!(refusal.code, RefusalCode::StorageFailed, "{refusal}");
        assert!(refusal.message.contains("cannot be written"), "{refusal}");
    }
    assert_eq!(ledger.head().await, head, "nothing was accepted");

    setrlimit(Resource::RLIMIT_FSIZE, unlimited, unlimited).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let answer = loop {
        let answer = ledger.send(refused, submission(20)).await;
        if answer.result.is_ok() {
            break answer;
        }
        assert!(Instant::now() < deadline, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    acknowledged.extend(support::submitted(&answer));
    assert_eq!(answer.sequence, Sequence(head.0 + 20), "what was refused left nothing behind");
    let numbers: Vec<u64> = acknowledged.iter().map(|job| job.number).collect();
    assert!(numbers.iter().copied().eq(1..=25), "{numbers:?}");
    ledger.stop().await;

    let verified = muster_ledger::verify_folder(folder.path(), |_| {}).unwrap();
    assert_eq!(verified.fault, None);
}
