//! Programs over several servers, byte by byte as their processes write and read.

use muster_pmi::{Effect, Layout, Server};
use proptest::{prelude::ProptestConfig, test_runner::FileFailurePersistence};
use std::collections::BTreeMap;

/// The servers of a program, and what its processes have been sent.
struct World {
    servers: Vec<Server>,
    node_of_rank: Vec<u32>,
    sent: BTreeMap<u32, String>,
    /// The contribution of each node to the fence that is being exchanged.
    contributions: BTreeMap<usize, Vec<u8>>,
    aborted: Option<(u32, Option<i32>, String)>,
    /// Who was refused more processes, in order.
    refused: Vec<u32>,
}

impl World {
    fn new(node_of_rank: &[u32]) -> Self {
        let nodes = node_of_rank.iter().max().map_or(0, |last| last + 1);
        let server = |node: u32| {
            let local = (0..).zip(node_of_rank).filter(|(_, at)| **at == node).map(|(rank, _)| rank);
            Server::new(Layout::new(node_of_rank.to_vec(), local.collect()), "7.0".into())
        };
        Self {
            servers: (0..nodes).map(server).collect(),
            node_of_rank: node_of_rank.to_vec(),
            sent: BTreeMap::new(),
            contributions: BTreeMap::new(),
            aborted: None,
            refused: Vec::new(),
        }
    }

    fn say(&mut self, rank: u32, text: &str) {
        self.say_bytes(rank, text.as_bytes());
    }

    fn say_bytes(&mut self, rank: u32, bytes: &[u8]) {
        let node = self.node_of_rank[rank as usize] as usize;
        let effects = self.servers[node].received(rank, bytes);
        self.take(node, effects);
    }

    fn say_two(&mut self, rank: u32, text: &str) {
        self.say(rank, &format!("{:6}{text}", text.len()));
    }

    fn end(&mut self, rank: u32) {
        let node = self.node_of_rank[rank as usize] as usize;
        let effects = self.servers[node].ended(rank).into_iter().collect();
        self.take(node, effects);
    }

    fn take(&mut self, node: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { rank, bytes } => {
                    self.sent.entry(rank).or_default().push_str(std::str::from_utf8(&bytes).unwrap());
                }
                Effect::Fence { contribution, .. } => drop(self.contributions.insert(node, contribution)),
                Effect::Abort { rank, status, why } => self.aborted = Some((rank, status, why)),
                Effect::NoSpawn { rank } => self.refused.push(rank),
            }
        }
        if self.contributions.len() == self.servers.len() {
            let all: Vec<Vec<u8>> = std::mem::take(&mut self.contributions).into_values().collect();
            for node in 0..self.servers.len() {
                let effects = self.servers[node].fenced(all.iter().map(Vec::as_slice)).unwrap();
                self.take(node, effects);
            }
        }
    }

    /// What a process has been sent since the last look.
    fn heard(&mut self, rank: u32) -> String {
        self.sent.remove(&rank).unwrap_or_default()
    }

    fn begin_all(&mut self) {
        for rank in 0..self.node_of_rank.len() as u32 {
            self.say(rank, "cmd=init pmi_version=1 pmi_subversion=1\n");
            assert_eq!(self.heard(rank), "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
        }
    }
}

/// SL-W-04
#[test]
fn processes_of_version_one_meet_in_a_fence_and_get_what_the_others_put() {
    let mut world = World::new(&[0, 0, 1, 1]);
    world.begin_all();
    world.say(0, "cmd=get_maxes\ncmd=get_appnum\ncmd=get_my_kvsname\ncmd=get_universe_size\n");
    assert_eq!(
        world.heard(0),
        "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0\ncmd=appnum appnum=0 rc=0\n\
         cmd=my_kvsname kvsname=7.0 rc=0\ncmd=universe_size size=4 rc=0\n"
    );
    world.say(0, "cmd=get kvsname=7.0 key=PMI_process_mapping\n");
    assert_eq!(world.heard(0), "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))\n");
    for rank in 0..4 {
        world.say(rank, &format!("cmd=put kvsname=7.0 key=address-{rank} value=port#{rank}$\n"));
        assert_eq!(world.heard(rank), "cmd=put_result rc=0 msg=success\n");
    }
    world.say(3, "cmd=get kvsname=7.0 key=address-0\n");
    assert_eq!(world.heard(3), "cmd=get_result rc=-1 msg=key_not_found value=unknown\n", "not before the fence");
    for rank in [2, 0, 3] {
        world.say(rank, "cmd=barrier_in\n");
        assert_eq!(world.heard(rank), "", "the last one is missing");
    }
    world.say(1, "cmd=barrier_in\n");
    for rank in 0..4 {
        assert_eq!(world.heard(rank), "cmd=barrier_out rc=0\n");
        world.say(rank, "cmd=get kvsname=7.0 key=address-3\n");
        assert_eq!(world.heard(rank), "cmd=get_result rc=0 msg=success value=port#3$\n");
        world.say(rank, "cmd=finalize\n");
        assert_eq!(world.heard(rank), "cmd=finalize_ack rc=0\n");
        world.end(rank);
    }
    assert_eq!(world.aborted, None);
}

/// SL-W-04
#[test]
fn processes_of_version_two_do_the_same() {
    let mut world = World::new(&[0, 1]);
    for rank in 0..2 {
        world.say(rank, "cmd=init pmi_version=2 pmi_subversion=0\n");
        assert_eq!(world.heard(rank), "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n");
        world.say_two(rank, &format!("cmd=fullinit;pmijobid=7.0;pmirank={rank};threaded=FALSE;"));
        let heard = world.heard(rank);
        assert!(heard.contains(&format!("rank={rank};size=2;")) && heard.ends_with("rc=0;"), "{heard}");
        world.say_two(rank, &format!("cmd=kvs-put;key=a{rank};value=v;;{rank};thrid=5;"));
        assert!(world.heard(rank).ends_with("cmd=kvs-put-response;thrid=5;rc=0;"));
        world.say_two(rank, "cmd=kvs-fence;");
    }
    for rank in 0..2 {
        assert!(world.heard(rank).ends_with("cmd=kvs-fence-response;rc=0;"));
        world.say_two(rank, "cmd=kvs-get;jobid=7.0;srcid=-1;key=a1;");
        assert!(world.heard(rank).ends_with("found=TRUE;value=v;;1;rc=0;"));
        world.say_two(rank, "cmd=info-getjobattr;key=PMI_process_mapping;");
        assert!(world.heard(rank).ends_with("found=TRUE;value=(vector,(0,2,1));rc=0;"));
        world.say_two(rank, "cmd=spawn;ncmds=1;");
        assert!(world.heard(rank).contains("rc=-1;"), "the program can read that there is no such thing");
        world.say_two(rank, "cmd=name-lookup;name=a;");
        assert!(world.heard(rank).contains("rc=-1;"));
        world.say_two(rank, "cmd=finalize;");
        world.end(rank);
    }
    assert_eq!((world.aborted, world.refused), (None, vec![0, 1]));
}

/// SL-W-04
#[test]
fn an_attribute_of_a_node_is_waited_for_and_stays_on_its_node() {
    let mut world = World::new(&[0, 0, 1]);
    for rank in 0..3 {
        world.say(rank, "cmd=init pmi_version=2 pmi_subversion=0\n");
        world.heard(rank);
        world.say_two(rank, "cmd=info-getnodeattr;key=shared;wait=TRUE;");
    }
    world.say_two(1, "cmd=info-putnodeattr;key=shared;value=segment;");
    let text = "cmd=info-getnodeattr-response;found=TRUE;value=segment;rc=0;";
    assert_eq!(world.heard(0), format!("{:>6}{text}", text.len()));
    assert_eq!(world.heard(2), "", "the process of another node waits on");
    world.say_two(0, "cmd=info-getnodeattr;key=other;wait=FALSE;");
    assert!(world.heard(0).contains("found=FALSE;"));
}

/// SL-W-06
#[test]
fn a_process_that_ends_without_finalizing_ends_the_program() {
    let mut world = World::new(&[0, 0]);
    world.begin_all();
    world.end(1);
    assert_eq!(world.aborted, Some((1, None, "it left without finalizing".into())));
}

/// SL-W-08
#[test]
fn nobody_waits_for_a_process_that_is_gone() {
    for ends_first in [false, true] {
        let mut world = World::new(&[0, 0]);
        world.say(0, "cmd=init pmi_version=1 pmi_subversion=1\n");
        if ends_first {
            world.end(1);
            assert_eq!(world.aborted, None, "it may be no parallel program");
        }
        world.say(0, "cmd=barrier_in\n");
        if !ends_first {
            world.end(1);
        }
        assert_eq!(world.aborted, Some((1, None, "it ended, and others wait for it".into())), "{ends_first}");
    }
}

#[test]
fn programs_without_this_interface_are_left_alone() {
    let mut world = World::new(&[0, 1]);
    world.end(0);
    world.end(1);
    assert_eq!((world.aborted, world.sent.len()), (None, 0));
}

/// SL-W-06
#[test]
fn an_abort_says_who_and_with_which_status() {
    let mut world = World::new(&[0, 0]);
    world.begin_all();
    world.say(1, "cmd=abort exitcode=3 message=none\n");
    assert_eq!(world.aborted, Some((1, Some(3), "it aborted the program: none".into())));
}

#[test]
fn whoever_sends_rubbish_or_no_end_is_cut_off() {
    let mut world = World::new(&[0]);
    world.say(0, "GET / HTTP/1.1\n");
    assert!(world.aborted.take().unwrap().2.starts_with("it sent `a message` without `cmd`"));
    let mut world = World::new(&[0]);
    world.say(0, &"x".repeat(muster_pmi::MAX_MESSAGE_BYTES + 1));
    assert_eq!(world.aborted.unwrap().2, "it sent a message without end to the process manager");
}

#[test]
fn what_a_node_can_put_is_limited() {
    let mut world = World::new(&[0]);
    world.begin_all();
    let value = "v".repeat(32 << 10);
    let refused = (0..2_000).find(|number| {
        world.say(0, &format!("cmd=put kvsname=7.0 key=k{number} value={value}\n"));
        world.heard(0).starts_with("cmd=put_result rc=-1")
    });
    assert_eq!(refused, Some(1_023), "of 32 MiB");
    world.say(0, "cmd=barrier_in\n");
    assert_eq!(world.heard(0), "cmd=barrier_out rc=0\n");
    world.say(0, "cmd=put kvsname=7.0 key=again value=1\n");
    assert_eq!(world.heard(0), "cmd=put_result rc=0 msg=success\n");
}

/// SL-W-08: an attribute of the node comes from nobody any more.
#[test]
fn nobody_waits_for_an_attribute_of_a_process_that_is_gone() {
    let mut world = World::new(&[0, 0]);
    world.say(0, "cmd=init pmi_version=2 pmi_subversion=0\n");
    world.say_two(0, "cmd=info-getnodeattr;key=shared;wait=TRUE;");
    world.end(1);
    assert_eq!(world.aborted, Some((1, None, "it ended, and others wait for it".into())));
}

/// SL-W-08
#[test]
fn a_process_that_closes_its_connection_comes_to_no_fence() {
    let mut world = World::new(&[0, 0]);
    world.begin_all();
    let effects = world.servers[0].closed(1).into_iter().collect();
    world.take(0, effects);
    assert!(world.aborted.take().unwrap().2.starts_with("it left without finalizing"));
    world.say(0, "cmd=finalize\n");
    assert_eq!(world.servers[0].closed(0), None, "one that is done may close it");
}

/// What is put is kept for the whole life of a program, so fences do not make room for more.
#[test]
fn fences_do_not_make_room_for_more() {
    let mut world = World::new(&[0]);
    world.begin_all();
    let value = "v".repeat(60 << 10);
    let mut number = 0;
    while world.aborted.is_none() && number < 10_000 {
        number += 1;
        world.say(0, &format!("cmd=put kvsname=7.0 key=k{number} value={value}\n"));
        if !world.heard(0).starts_with("cmd=put_result rc=0") {
            break;
        }
        world.say(0, "cmd=barrier_in\n");
        world.heard(0);
    }
    let kept = number * (value.len() + 128);
    assert!(kept > muster_pmi::MAX_KEPT_BYTES && kept < 2 * muster_pmi::MAX_KEPT_BYTES, "{kept}");
}

proptest::proptest! {
    #![proptest_config(ProptestConfig::with_failure_persistence(FileFailurePersistence::WithSource("regressions")))]

    /// A process may write its requests in any pieces.
    #[test]
    fn pieces_do_not_matter(cuts in proptest::collection::vec(1usize..9, 1..40)) {
        let whole = "cmd=init pmi_version=1 pmi_subversion=1\ncmd=put kvsname=s key=a value=1\ncmd=barrier_in\ncmd=get kvsname=s key=a\n";
        let mut world = World::new(&[0]);
        let mut rest = whole;
        for cut in cuts.iter().cycle() {
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            world.say(0, piece);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        proptest::prop_assert!(world.heard(0).ends_with("cmd=get_result rc=0 msg=success value=1\n"));
    }

    #[test]
    fn nothing_that_processes_send_is_a_panic(bytes in proptest::collection::vec(0u8.., 0..200), two: bool) {
        let mut world = World::new(&[0]);
        let version = if two { 2 } else { 1 };
        world.say(0, &format!("cmd=init pmi_version={version} pmi_subversion=0\n"));
        world.sent.clear();
        world.say_bytes(0, &bytes);
    }
}
