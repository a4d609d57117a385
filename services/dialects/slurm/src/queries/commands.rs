//! The commands of `scontrol` and `sacctmgr` in their help texts (SL-C-01).

/// The commands of `scontrol`, each with what it does.
const SCONTROL: [(&str, &str); 25] = [
    ("completing", "show the jobs that are completing"),
    ("create SPECIFICATION", "make a reservation or a partition"),
    ("delete ENTITY=NAME", "remove a reservation or a partition"),
    ("details", "show more of what follows"),
    ("exit", "leave the shell"),
    ("help", "show this text"),
    ("hold JOBS", "keep jobs from starting; JobName=NAME means those with that name"),
    ("notify JOB TEXT", "send a message to a job"),
    ("oneliner", "show each record of what follows on one line"),
    ("ping", "tell whether the controller answers"),
    ("quiet", "show only errors"),
    ("quit", "leave the shell"),
    ("release JOBS", "let jobs start again"),
    ("requeue [Incomplete] JOBS", "put jobs back into the queue"),
    ("requeuehold [Incomplete|State=SpecialExit] JOBS", "put jobs back and hold them there"),
    ("resume JOBS", "let suspended jobs continue"),
    ("show ENTITY [NAME]", "show jobs, nodes, partitions, steps, reservations, licenses, config ..."),
    ("suspend JOBS", "stop running jobs; others may use their CPUs"),
    ("top JOBS", "move jobs before the others of their owner"),
    ("uhold JOBS", "keep jobs from starting until their owner releases them"),
    ("update SPECIFICATION", "change a job, node, partition or reservation"),
    ("version", "show the version"),
    ("wait_job JOB", "wait until the nodes of a job are ready"),
    ("write batch_script JOB [FILE]", "write the script of a job"),
    ("!!", "repeat the last command"),
];

/// The commands of `sacctmgr`, each with what it does.
const SACCTMGR: [(&str, &str); 9] = [
    ("add ENTITY NAMES SPECIFICATION", "make accounts, users or QOS"),
    ("delete ENTITY where CONDITIONS", "remove them"),
    ("exit", "leave the shell"),
    ("help", "show this text"),
    ("list ENTITY [CONDITIONS]", "as show"),
    ("modify ENTITY where CONDITIONS set CHANGES", "change them"),
    (
        "show ENTITY [CONDITIONS]",
        "show account, association, cluster, config, event, qos, runaway, stats, transaction, tres, user",
    ),
    ("version", "show the version"),
    ("!!", "repeat the last command"),
];

/// The part of the help text about commands; empty for programs without any.
pub(super) fn help(program: &str) -> String {
    let known: &[(&str, &str)] = match program {
        "scontrol" => &SCONTROL,
        "sacctmgr" => &SACCTMGR,
        _ => return String::new(),
    };
    let lines = known.iter().map(|(command, meaning)| format!("  {command}\n        {meaning}\n"));
    format!("\nValid <COMMAND> values are:\n{}", lines.collect::<String>())
}
