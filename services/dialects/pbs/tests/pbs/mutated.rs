//! Every parser of words that users and administrators write, over examples with mistakes: the same ones in each run.

use crate::support::{rules, submission_of, torque};
use muster_pbs::qmgr::{edit, script};
use muster_schemas::cluster::{ClusterConfig, QueueSpec};

/// Variants of each example.
const VARIANTS: u32 = 2_000;

/// Words that lead deep into the parsers.
const PIECES: &[&str] = &[
    ",",
    "=",
    ":",
    "+",
    "\"",
    "'",
    "\\",
    "0",
    "-1",
    "4294967296",
    "99999999999999999999",
    "mem=",
    "gb",
    "00:00:61",
    "select=",
    "nodes=",
    "place=scatter:excl",
    "ncpus",
    "#",
    ";",
    "+=",
    "-=",
    "@default",
    "server",
    "queue",
    "max_run = [u:PBS_GENERIC=2]",
    "\u{feff}",
    "ä",
    "\u{0}",
    "[",
    "]",
    "%",
    "unset ",
    "set ",
    "print ",
];

/// A generator of numbers without any surprise (Lehmer's, by Park and Miller).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0 * 48_271 % 2_147_483_647;
        usize::try_from(self.0).unwrap_or(0) % most.max(1)
    }
}

/// An example with one to four changes: pieces put in, taken out, doubled or cut off.
fn mutated(example: &str, numbers: &mut Numbers) -> String {
    let mut letters: Vec<char> = example.chars().collect();
    for _ in 0..=numbers.below(4) {
        let from = numbers.below(letters.len() + 1);
        let until = (from + numbers.below(12)).min(letters.len());
        match numbers.below(5) {
            0 => drop(letters.drain(from..until)),
            1 => {
                let double: Vec<char> = letters[from..until].to_vec();
                letters.splice(from..from, double);
            }
            2 => letters.truncate(from),
            3 => letters.extend_from_within(from..until),
            _ => drop(letters.splice(from..from, PIECES[numbers.below(PIECES.len())].chars())),
        }
    }
    letters.into_iter().collect()
}

fn each_variant(examples: &[&str], mut read: impl FnMut(&str)) {
    for (seed, example) in (1..).zip(examples) {
        read(example);
        let mut numbers = Numbers(seed);
        (0..VARIANTS).for_each(|_| read(&mutated(example, &mut numbers)));
    }
}

const REQUESTS: [&str; 8] = [
    "nodes=2:ppn=4:fast+1:big,walltime=1:00:00,mem=2gb",
    "select=2:ncpus=4:mem=8gb:mpiprocs=4+1:ncpus=1,place=scatter:excl",
    "ncpus=4,mem=500mb,cput=00:30:00,host=n1,arch=linux",
    "nodes=n1+n2:ppn=2,pmem=1gb,file=10gb",
    "select=1:ncpus=2:ngpus=1:vnode=n1,walltime=10:00",
    "walltime=\"1:00:00\",software='a,b',other=x",
    "procs=16,gpus=2,feature=\"fast\"",
    "place=pack:shared",
];

/// What a request of `-l` becomes is a job or a refusal that can be shown, for both members of the family.
#[test]
fn any_request_is_read_or_refused() {
    let mut accepted = 0;
    each_variant(&REQUESTS, |text| {
        // A directive takes any text but a line break.
        let line = text.replace(['\n', '\r'], " ");
        let script = format!("#!/bin/sh\n#PBS -l {line}\ntrue\n");
        for rules in [rules(), torque()] {
            match submission_of("", &script, &rules) {
                Ok(submission) => {
                    accepted += 1;
                    assert!(submission.spec.components.iter().all(|one| !one.alternatives.is_empty()), "{line}");
                }
                Err(refusal) => {
                    assert!(!refusal.to_string().chars().any(|letter| letter.is_control()), "{line}: {refusal}")
                }
            }
        }
    });
    assert!(accepted > 1_000, "only {accepted} were accepted: the others end too early");
}

/// A command of `qmgr` changes something or is refused with its place, and a configuration that was changed is one that the next
/// command can begin with.
#[test]
fn any_command_of_qmgr_is_carried_out_or_refused() {
    let server = include_str!("../../../../../docs/examples/pbs/server.qmgr");
    let more = "set queue batch max_run = [o:PBS_ALL=10], acl_users += ann@*, resources_max.mem = 4gb\n\
                set node n1 state = offline, comment = \"a disk\"\nunset server max_running\ndelete queue submit\n";
    let (mut carried_out, mut refused) = (0, 0);
    each_variant(&[server, more, "create node n9 np=4, resources_available.mem=8gb, properties=\"a,b\""], |text| {
        let batch = QueueSpec { name: "batch".into(), ..QueueSpec::default() };
        let mut config = ClusterConfig { queues: vec![batch], ..ClusterConfig::default() };
        for written in script(text) {
            match written.command {
                Err(wrong) => {
                    refused += 1;
                    assert!(written.line > 0 && wrong.column > 0 && !wrong.expected.is_empty(), "{text}");
                }
                Ok(command) => {
                    let names: Vec<String> = command.names.iter().filter_map(|name| name.name.clone()).collect();
                    match edit(&command, &names, &config) {
                        Ok(edit) => (config, carried_out) = (edit.config, carried_out + 1),
                        Err(wrong) => assert!(wrong.why.ends_with("nothing was changed"), "{text}: {wrong}"),
                    }
                }
            }
        }
    });
    assert!(carried_out > 10_000 && refused > 1_000, "{carried_out} were carried out, {refused} could not be read");
}
