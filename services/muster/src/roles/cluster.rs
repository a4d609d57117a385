//! The cluster's configuration as roles of this process use it: emulated nodes, the first start, changes.

use crate::{cli::UpOptions, config::Loaded, exit::Failure, values::compress_hosts};
use anyhow::Context as _;
use muster_bus::{LedgerClient, SharedBus};
use muster_client::{Client, Endpoint, Moment};
use muster_ledger::storage::Storage;
use muster_schemas::{
    CommandId, Sequence,
    cluster::{ClusterChange, ClusterConfig},
    command::Command,
    event::{Actor, Owner, TraceContext},
    policy::Policy,
    resources::NodeSpec,
};
use std::path::Path;

/// The folder in the data folder with one spool for each node that an executor of this host serves.
pub const SPOOLS: &str = "spool";
/// The maximum number of emulated nodes; more would be of no use.
const MOST_NODES: usize = 1024;

/// The nodes that `muster up` emulates.
#[derive(Clone, Debug)]
pub struct Emulated {
    nodes: Vec<NodeSpec>,
    /// Whether the command line gives sizes, so that existing nodes change.
    sized: bool,
}

impl Emulated {
    /// The nodes that the command line asks for, else those of the configuration file, else those that this data folder
    /// had before, else one.
    pub fn plan(data_dir: &Path, loaded: &Loaded, options: &UpOptions) -> Result<Self, Failure> {
        let sized = options.cpus.is_some() || options.memory.is_some();
        let configured = loaded.configuration.cluster.to_config().map_err(Failure::usage)?.nodes;
        if options.nodes.is_none() && !configured.is_empty() {
            if configured.len() > MOST_NODES {
                let message =
                    format!("the file describes {} nodes; at most {MOST_NODES} are emulated", configured.len());
                return Err(Failure::usage(message));
            }
            return Ok(Self { nodes: configured, sized: false });
        }
        let count = options.nodes.map_or_else(|| spools_in(data_dir).max(1), |count| count as usize);
        let node = |number: usize| NodeSpec {
            name: format!("node{number}"),
            cores: options.cpus.unwrap_or_else(host_cpus),
            sockets: 1,
            memory_bytes: options.memory.unwrap_or_else(host_memory_bytes),
            gpus: Vec::new(),
            properties: Default::default(),
        };
        Ok(Self { nodes: (1..=count).map(node).collect(), sized })
    }

    /// The names of the nodes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }

    /// For people: the number and the names of the nodes.
    pub fn text(&self) -> String {
        let names: Vec<&str> = self.names().collect();
        let plural = if names.len() == 1 { "" } else { "s" };
        format!("{} node{plural} ({})", names.len(), compress_hosts(&names))
    }

    /// Adds nodes that the cluster lacks, and changes those to which the command line gives another size. Returns
    /// whether anything changed.
    pub fn add_missing(&self, cluster: &mut ClusterConfig) -> bool {
        let mut changed = false;
        for node in &self.nodes {
            match cluster.nodes.iter_mut().find(|known| known.name == node.name) {
                None => {
                    cluster.nodes.push(node.clone());
                    changed = true;
                }
                Some(known) if self.sized && (known.cores, known.memory_bytes) != (node.cores, node.memory_bytes) => {
                    known.cores = node.cores;
                    known.memory_bytes = node.memory_bytes;
                    changed = true;
                }
                Some(_) => {}
            }
        }
        changed
    }
}

fn host_cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

fn host_memory_bytes() -> u64 {
    const MEBIBYTE: u64 = 1 << 20;
    let bytes = nix::sys::sysinfo::sysinfo().map_or(1 << 30, |info| info.ram_total());
    (bytes / MEBIBYTE).max(1) * MEBIBYTE
}

/// How many of `node1`, `node2`, ... this data folder has had.
fn spools_in(data_dir: &Path) -> usize {
    (1..=MOST_NODES).take_while(|number| data_dir.join(SPOOLS).join(format!("node{number}")).is_dir()).count()
}

/// Whether the log in the data folder is missing or has only its first record. A log that cannot be read counts as
/// having more: the ledger reports why it cannot.
pub fn is_first_start(data_dir: &Path) -> bool {
    match Storage::open_read_only(data_dir).and_then(|storage| storage.log()?.head()) {
        Ok(head) => head.sequence <= Sequence(1),
        // A log is complete or missing; the folder around it may be left from a start that was killed.
        Err(_) => !data_dir.join("ledger/log").exists(),
    }
}

/// The user that runs the ledger may do everything: otherwise nobody could configure a cluster that root does not run.
pub fn with_own_user(mut change: ClusterChange) -> ClusterChange {
    let Owner { user, uid, .. } = own_user();
    if uid != 0 {
        change.settings.more_administrators.push(user);
    }
    change
}

fn own_user() -> Owner {
    let uid = nix::unistd::geteuid();
    let name = nix::unistd::User::from_uid(uid).ok().flatten().map(|user| user.name);
    Owner { user: name.unwrap_or_else(|| uid.to_string()), uid: uid.as_raw(), gid: nix::unistd::getegid().as_raw() }
}

/// Adds nodes to a cluster that has a history, through its gateway.
pub async fn configure_missing_nodes(socket: &Path, nodes: Emulated) -> anyhow::Result<()> {
    let mut client = Client::new(Endpoint::Unix(socket.to_owned()));
    let configured = tokio::task::spawn_blocking(move || {
        let known = client.config(Moment::Now)?;
        let mut wanted = known.clone();
        if nodes.add_missing(&mut wanted) {
            let changed = wanted.nodes.into_iter().filter(|node| !known.nodes.contains(node));
            let change = ClusterChange { nodes: changed.map(Into::into).collect(), ..ClusterChange::default() };
            client.configure(CommandId::new_now(), &change, true)?;
        }
        Ok::<(), muster_client::ClientError>(())
    });
    configured.await?.context("the nodes cannot be added to the cluster")
}

/// Puts the policy in force through the gateway, if another one is.
pub async fn set_policy(socket: &Path, policy: Policy) -> anyhow::Result<()> {
    let mut client = Client::new(Endpoint::Unix(socket.to_owned()));
    let set = tokio::task::spawn_blocking(move || {
        if client.policy(Moment::Now)? != policy {
            client.set_policy(CommandId::new_now(), &policy)?;
        }
        Ok::<(), muster_client::ClientError>(())
    });
    set.await?.context("the policy cannot be put in force")
}

/// Asks the ledger to apply the file. Everything that the file does not name stays.
pub async fn reconfigure(bus: &SharedBus, loaded: &Loaded) -> anyhow::Result<Sequence> {
    let wanted = loaded.configuration.cluster.to_change().map_err(anyhow::Error::msg)?;
    let command = Command::Configure { change: Box::new(with_own_user(wanted)), keep_unnamed: true };
    let ledger = LedgerClient::new(bus.clone());
    let answer = ledger.command(Actor::User(own_user()), TraceContext::default(), command).await?;
    answer.result?;
    Ok(answer.sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(nodes: Option<u32>, cpus: Option<u32>) -> UpOptions {
        UpOptions {
            nodes,
            cpus,
            memory: Some(1 << 30),
            policy: None,
            config: None,
            scheduling: None,
            log: crate::cli::LogOptions::default(),
        }
    }

    #[test]
    fn the_command_line_says_how_many_nodes_else_the_folder_does() {
        let dir = tempfile::tempdir().unwrap();
        let count =
            |nodes| Emulated::plan(dir.path(), &Loaded::default(), &options(nodes, None)).unwrap().names().count();
        assert_eq!(count(None), 1);
        assert_eq!(count(Some(4)), 4);
        for node in ["node1", "node2", "node3"] {
            std::fs::create_dir_all(dir.path().join(SPOOLS).join(node)).unwrap();
        }
        assert_eq!(count(None), 3);
    }

    #[test]
    fn known_nodes_change_only_when_asked_to() {
        let dir = tempfile::tempdir().unwrap();
        let nodes = Emulated::plan(dir.path(), &Loaded::default(), &options(Some(2), Some(4))).unwrap();
        let mut cluster = ClusterConfig::default();
        assert!(nodes.add_missing(&mut cluster));
        assert_eq!(cluster.nodes.len(), 2);
        assert!(!nodes.add_missing(&mut cluster));
        cluster.nodes[1].cores = 8;
        assert!(nodes.add_missing(&mut cluster));
        assert_eq!(cluster.nodes[1].cores, 4);
        assert_eq!(nodes.text(), "2 nodes (node[1-2])");
    }

    #[test]
    fn an_empty_folder_is_a_first_start() {
        let dir = tempfile::tempdir().unwrap();
        assert!(is_first_start(dir.path()));
    }

    /// A first start that is killed before there is a log leaves no log.
    #[test]
    fn a_start_is_the_first_until_there_is_a_log() {
        let folder = tempfile::tempdir().unwrap();
        assert!(is_first_start(folder.path()));
        std::fs::create_dir_all(folder.path().join("ledger/log.draft")).unwrap();
        assert!(is_first_start(folder.path()));
        std::fs::create_dir_all(folder.path().join("ledger/log")).unwrap();
        std::fs::write(folder.path().join("ledger/log/CURRENT"), "damaged").unwrap();
        assert!(!is_first_start(folder.path()));
    }
}
