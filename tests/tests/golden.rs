//! Files of earlier versions of muster are still readable: log, snapshot, bundle, a node's spool, and the
//! books of accounting.
//!
//! `tests/golden/N` has the files of the N-th shape of stored types. After a change of a stored shape, add another:
//!
//! ```text
//! cargo nextest run -p muster-tests --test golden --run-ignored only
//! ```

use anyhow::Context as _;
use muster_accounting::Books;
use muster_bus::{LedgerClient, LocalBus};
use muster_domain::State;
use muster_executor::{
    ContainmentMode, RunKey,
    cleaning::Cleaning,
    containment::Hierarchies,
    identity::Identity,
    journal::Journal,
    runtimes::RuntimeChoice,
    spool::{End, Spool, SpooledOrder},
};
use muster_ledger::{
    bundle::Reader,
    hex,
    limits::NoLimits,
    retention,
    signing::Signer,
    snapshots::Snapshot,
    storage::{Layout, Storage},
    verify_folder,
};
use muster_schemas::{
    JobId, PartId, RunId, Sequence, StepId, Timestamp, codec,
    command::{Query, QueryAnswer},
    event::{EndCause, Event, NodeExit, Owner, TraceContext},
    job::{ExitStatus, Launch, Program, Usage},
    node::{LaunchOrder, OrderNode},
    resources::IndexSet,
    steps::{StepProgram, StepTasks, TaskStatus},
};
use muster_tests::{
    copy_folder,
    simulation::{Options, run_and_keep},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The simulated history: jobs with several components, filters, tasks, faults.
const SEED: u64 = 7;
const OPTIONS: Options = Options {
    nodes: 3,
    users: 2,
    troubled_seconds: 6,
    runners: 1,
    components: true,
    hostile_script: false,
    mechanisms: false,
};
/// The length of a window of the books.
const WINDOW_SECONDS: u64 = 86_400;
const CLUSTER: &str = "cluster of the golden spool";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// Applies the whole log, event by event, to an empty state and to new books; returns them with the kinds of events.
fn fold(storage: &Storage) -> anyhow::Result<(State, Books, BTreeSet<String>)> {
    let (mut state, mut books, mut kinds) = (State::new(), Books::new(WINDOW_SECONDS), BTreeSet::new());
    let log = storage.log()?;
    let mut entries = log.entries(Sequence(1));
    while let Some(stored) = entries.next()? {
        let record = stored.record()?;
        state.apply(&record)?;
        books.apply(&record);
        let (kind, verb) = record.event.kind_verb();
        kinds.insert(format!("{kind}.{verb}"));
    }
    Ok((state, books, kinds))
}

fn step_order() -> SpooledOrder {
    let ranks = IndexSet::first_n(2);
    let program = StepProgram { ranks: ranks.clone(), argv: vec!["true".into()] };
    SpooledOrder {
        boot_id: "boot".into(),
        order: LaunchOrder {
            job: JobId::job(3),
            part: PartId::new(RunId(5), 1),
            step: StepId(2),
            name: "golden".into(),
            owner: Owner { user: "ada".into(), uid: 1000, gid: 1000 },
            account: Some("physics".into()),
            queue: "default".into(),
            launch: Launch { program: Program::Tasks { argv: vec!["true".into()] }, ..Launch::default() },
            environment: BTreeMap::from([("LANG".into(), "C".into())]),
            working_directory: "/".into(),
            umask: Some(0o27),
            nodes: vec![OrderNode { name: "n1".into(), tasks: 2, component: 1, facts: None }].into(),
            node_index: 0,
            first_rank: 0,
            total_tasks: 2,
            cpus_per_task: 1,
            cores: ranks.clone(),
            gpus: IndexSet::new(),
            memory_bytes: 1 << 30,
            walltime_seconds: Some(60),
            checkpoint: None,
            kill_grace_seconds: 10,
            trace: TraceContext::default(),
            access: None,
            group: None,
            dialect: Some("slurm".into()),
        },
        identity: Identity {
            user: "ada".into(),
            uid: 1000,
            gid: 1000,
            groups: vec![1000],
            home: "/home/ada".into(),
            shell: "/bin/sh".into(),
        },
        hierarchies: Hierarchies::detect(ContainmentMode::Process, "golden").expect("processes can always be followed"),
        cpus: vec![0, 1],
        open_files: 1024,
        tasks: Some(StepTasks { ranks, programs: vec![program], ends_on_failure: true, ..StepTasks::default() }),
        pmix_program: None,
        gpus: Vec::new(),
        container_runtime: RuntimeChoice::Auto,
        site: None,
        cleaning: Cleaning::default(),
    }
}

fn step_end() -> End {
    let exit = NodeExit {
        status: Some(ExitStatus::Code(4)),
        cause: EndCause::Itself,
        usage: Usage { cpu_time_micros: 5, peak_memory_bytes: 6, system_time_micros: 0 },
        started: Some(Timestamp(1_000_000)),
        ended: Timestamp(2_000_000),
    };
    End { exit, statuses: vec![TaskStatus { ranks: IndexSet::first_n(2), status: ExitStatus::Code(4) }] }
}

/// Makes a spool as it is when a step has ended and the ledger has not been told.
fn make_spool(root: &Path) -> anyhow::Result<()> {
    let mut spool = Spool::open(root)?;
    spool.bind_to_cluster(CLUSTER)?;
    let order = step_order();
    Journal::open(root)?.record(&[order.key()])?;
    spool.create(&order)?;
    let claim = spool.run(order.key()).claim(order.key())?.context("nobody has claimed it")?;
    claim.started(Timestamp(1_000_000))?;
    claim.ended(&step_end())?;
    Ok(())
}

/// A ledger signs the contents of its folder.
async fn sign(data_dir: &Path) -> anyhow::Result<()> {
    let bus = LocalBus::new();
    let config = muster_ledger::Config {
        data_dir: data_dir.to_owned(),
        accept_log_end: true,
        checkpoint_every_seconds: 1,
        ..muster_ledger::Config::default()
    };
    let (ready, is_ready) = oneshot::channel();
    let shutdown = CancellationToken::new();
    let ledger = tokio::spawn(muster_ledger::serve(bus.clone(), config, Arc::new(NoLimits), ready, shutdown.clone()));
    is_ready.await?;
    let client = LedgerClient::new(bus);
    let is_checkpoint = |event: &Event| matches!(event, Event::Checkpoint { .. });
    tokio::time::timeout(Duration::from_secs(60), async {
        let mut from = Sequence(1);
        loop {
            let answer = client.query(&Query::Replay { from, max_bytes: 1 << 20 }).await?;
            let QueryAnswer::Records(page) = answer else { anyhow::bail!("no records") };
            if page.records.iter().any(|record| is_checkpoint(&record.event)) {
                return Ok(());
            }
            match page.records.last() {
                Some(last) => from = last.sequence.next(),
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    })
    .await??;
    shutdown.cancel();
    ledger.await?
}

/// Files that RocksDB writes for people, or recreates.
fn is_needless(name: &str) -> bool {
    name.starts_with("LOG") || name.starts_with("OPTIONS") || name == "LOCK"
}

/// Keeps what a repository can store and a test has to read, and no more. The journal of launches is padded with zeros
/// after its last entry.
fn make_small(folder: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind, name) = (entry.path(), entry.file_type()?, entry.file_name().to_string_lossy().into_owned());
        if kind.is_dir() {
            make_small(&path)?;
        } else if !kind.is_file() || is_needless(&name) {
            fs::remove_file(path)?;
        } else if name.starts_with("launched.") {
            let bytes = fs::read(&path)?;
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            fs::write(path, &bytes[..end.next_multiple_of(16)])?;
        }
    }
    Ok(())
}

/// Adds a folder with the files that today's stored types leave on disk. Run by hand after a change of a stored shape.
#[test]
#[ignore = "it adds a folder to the repository"]
fn add_a_golden_folder() -> anyhow::Result<()> {
    let number = (1..).find(|number| !golden().join(number.to_string()).exists()).context("too many")?;
    let folder = golden().join(number.to_string());
    let data = folder.join("data");
    run_and_keep(SEED, OPTIONS, &data).map_err(|failure| anyhow::anyhow!("{}", failure.what))?;
    tokio::runtime::Runtime::new()?.block_on(sign(&data))?;
    let (last, digest, books, kinds) = {
        let storage = Storage::open_as_is(&data, retention::Commands::seconds(0))?;
        let (state, books, kinds) = fold(&storage)?;
        let record_hash = storage.log()?.hash_of(state.sequence())?;
        let snapshot = Snapshot { sequence: state.sequence(), record_hash, body: state.to_snapshot_bytes()? };
        let signer = Signer::load(&Layout::new(&data).key())?;
        storage.snapshots().store(&snapshot, storage.identity()?.cluster_id, &signer)?;
        (state.sequence(), state.digest(), books, kinds)
    };
    fs::write(folder.join("books"), codec::encode(&books)?)?;
    let bundle = fs::File::create(folder.join("bundle"))?;
    muster_ledger::export(&data, Sequence(1), Sequence(0), bundle, |_| {})?;
    make_spool(&folder.join("spool"))?;
    let expected = json!({ "last": last.0, "digest": hex(&digest), "kinds": kinds });
    fs::write(folder.join("expected.json"), serde_json::to_string_pretty(&expected)? + "\n")?;
    make_small(&folder)
}

fn check_log(data: &Path, expected: &Value) -> anyhow::Result<()> {
    let storage = Storage::open_as_is(data, retention::Commands::seconds(0))?;
    let (state, books, kinds) = fold(&storage)?;
    assert_eq!(json!(state.sequence().0), expected["last"]);
    assert_eq!(json!(hex(&state.digest())), expected["digest"], "the fold of the log is another one");
    assert_eq!(json!(kinds), expected["kinds"]);
    let snapshot = storage.snapshots().read(state.sequence(), &storage.identity()?)?;
    let kept = State::from_snapshot_bytes(&snapshot.body)?;
    assert_eq!(hex(&kept.digest()), hex(&state.digest()), "the snapshot is of another state");
    let kept: Books = codec::decode(&fs::read(data.with_file_name("books"))?)?;
    assert_eq!(codec::encode(&kept)?, codec::encode(&books)?, "the books are others");
    drop(storage);
    let verified = verify_folder(data, |_| {})?;
    assert!(verified.fault.is_none() && verified.is_complete() && verified.checkpoints > 0, "{verified:?}");
    Ok(())
}

fn check_bundle(bundle: &Path, expected: &Value) -> anyhow::Result<()> {
    let mut reader = Reader::new(std::io::BufReader::new(fs::File::open(bundle)?))?;
    let mut state = State::new();
    while let Some(stored) = reader.next()? {
        state.apply(&stored.record()?)?;
    }
    assert_eq!(json!(hex(&state.digest())), expected["digest"], "the bundle has another history");
    Ok(())
}

fn check_spool(root: &Path) -> anyhow::Result<()> {
    let spool = Spool::open(root)?;
    assert!(!spool.bind_to_cluster(CLUSTER)?, "it is of the same cluster");
    let wanted = step_order();
    let key: RunKey = wanted.key();
    assert_eq!(spool.keys()?, [key]);
    assert!(Journal::open(root)?.contains(key));
    let log = spool.run(key).log()?.context("the run has no log")?;
    let found = log.order.context("the order is not whole")?;
    assert_eq!((&found.order, &found.tasks, &found.identity), (&wanted.order, &wanted.tasks, &wanted.identity));
    assert_eq!((log.claimed, log.started, log.end), (true, Some(Timestamp(1_000_000)), Some(step_end())));
    Ok(())
}

/// Files of every earlier shape of stored types are readable, and mean the same.
#[test]
fn what_earlier_musters_left_is_read() -> anyhow::Result<()> {
    let mut folders = 0;
    for entry in fs::read_dir(golden())? {
        let (folder, copy) = (entry?.path(), tempfile::tempdir()?);
        copy_folder(&folder, copy.path())?;
        let of = || format!("{}", folder.display());
        let expected: Value = serde_json::from_slice(&fs::read(copy.path().join("expected.json"))?)?;
        check_log(&copy.path().join("data"), &expected).with_context(of)?;
        check_bundle(&copy.path().join("bundle"), &expected).with_context(of)?;
        check_spool(&copy.path().join("spool")).with_context(of)?;
        folders += 1;
    }
    assert!(folders > 0, "there is no golden folder");
    Ok(())
}
