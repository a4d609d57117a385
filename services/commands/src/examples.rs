//! Examples of each command, for its help and its manual page.

use clap::Command;

/// A line that can be typed, and what it does.
pub type Example = (&'static str, &'static str);

/// The examples of each command, by its words after `muster`.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "",
        &[
            ("muster up --nodes 2", "a whole system here, with two emulated nodes"),
            ("muster submit -N 2 -t 1h job.sh", "submit a script"),
            ("muster jobs", "list what waits and runs"),
            ("muster logs -f 7", "follow what job 7 writes"),
            ("muster explain 7", "why job 7 waits"),
        ],
    ),
    ("up", &[("muster up --nodes 4 --cpus 8 --memory 16G", "four emulated nodes with eight CPUs each")]),
    ("serve", &[("muster serve ledger gateway planner", "the head of a cluster"), ("muster serve executor", "a node")]),
    (
        "submit",
        &[
            ("muster submit job.sh input.dat", "a script with an argument"),
            ("muster submit -N 2 -n 8 -t 1:30:00 --mem 4G job.sh", "two nodes, eight tasks, an hour and a half"),
            ("muster submit --array 0-99%10 -- ./step", "a hundred tasks, ten at a time"),
            ("muster submit --after ok:7 --name report report.sh", "when job 7 has ended well"),
            ("muster submit --container /images/lab -- ./solve", "in a container, of an OCI bundle"),
            (
                "muster submit --opens-domain=course -N 10 -t 2h -- sleep 7200",
                "hold ten nodes for the jobs of a course",
            ),
            ("muster submit --in-domain course -N 1 -t 20m job.sh", "on the nodes of the course"),
            ("muster submit --wait -- make test", "wait, and exit with the status of the command"),
        ],
    ),
    (
        "run",
        &[
            ("muster run -n 4 -- ./solve", "four tasks, inside the script of a job"),
            ("muster run -n 4 --gpus-per-task 1 -- ./solve", "the same, each with a GPU of its own"),
        ],
    ),
    (
        "step run",
        &[
            ("muster step run -n 4 --label 7 -- hostname", "four tasks in job 7, their ranks before each line"),
            (
                "muster step run -n 2 --bind-cores own --show-binding 7 -- true",
                "each task on a core of its own, and tells which",
            ),
            ("muster step run -n 1 --overlap --pty 7 -- top", "a terminal in job 7"),
        ],
    ),
    (
        "step",
        &[("muster step list 7", "the steps of job 7"), ("muster step run -n 4 7 -- hostname", "four tasks in job 7")],
    ),
    ("step list", &[("muster step list 7", "the steps of job 7")]),
    ("step attach", &[("muster step attach 7.1", "what step 1 of job 7 says")]),
    ("step signal", &[("muster step signal USR1 7.1", "SIGUSR1 to step 1 of job 7")]),
    (
        "agent",
        &[(
            "muster agent --server https://head.example.org:7457 --token-file token",
            "ask this gateway for jobs, and run them here",
        )],
    ),
    (
        "backup",
        &[
            ("muster backup /backup/muster --keep 30", "a backup of the ledger on this host; the last thirty are kept"),
            ("muster backup list /backup/muster", "what there is"),
        ],
    ),
    ("backup list", &[("muster backup list /backup/muster", "the oldest first")]),
    (
        "restore",
        &[
            ("muster restore /backup/muster --data /var/lib/muster", "the latest backup"),
            ("muster restore /backup/muster --backup 2026-11-26T17-02-11Z", "an earlier one"),
        ],
    ),
    ("agent token", &[("muster agent token home1", "a token for the agent of node home1")]),
    ("step end", &[("muster step end 7.1", "end step 1 of job 7")]),
    ("rsh", &[("muster rsh node2 hostname", "in a script of a job on node2 and others")]),
    ("status", &[("muster status", "the cluster in a few lines"), ("muster status 7", "one job")]),
    ("top", &[("muster top", "until Ctrl-C"), ("muster top --once", "for a script")]),
    (
        "jobs",
        &[
            ("muster jobs -u ada --state running,queued", "what a user runs and waits for"),
            ("muster jobs --all --sort -cpus --columns job,user,cpus,ended", "the largest first"),
            ("muster jobs --at -1h", "as it was an hour ago"),
        ],
    ),
    ("cancel", &[("muster cancel 7 8_3", "a job and a task"), ("muster cancel --matching -q debug", "all of a queue")]),
    (
        "logs",
        &[("muster logs 7", "what job 7 wrote"), ("muster logs -f --stderr 7_3", "errors of a task, as they come")],
    ),
    (
        "shell",
        &[("muster shell 7", "in a running job"), ("muster shell -N 1 -c 4 -t 1h", "in a separate job, for an hour")],
    ),
    ("job", &[("muster job show 7", "everything known about job 7"), ("muster job events 7", "what happened to it")]),
    (
        "job show",
        &[("muster job show 7", "everything known about job 7"), ("muster job show --json 7", "for programs")],
    ),
    ("job events", &[("muster job events 7", "what happened to job 7")]),
    ("job cancel", &[("muster job cancel 7", "job 7"), ("muster job cancel --matching -J sweep", "all of a name")]),
    ("job hold", &[("muster job hold --reason 'wrong input' 7", "with a reason for others")]),
    ("job release", &[("muster job release 7", "job 7 may start")]),
    ("job suspend", &[("muster job suspend 7", "its processes stop")]),
    ("job resume", &[("muster job resume 7", "they continue")]),
    ("job requeue", &[("muster job requeue --hold 7", "back into the queue, and held there")]),
    ("job signal", &[("muster job signal USR1 7", "SIGUSR1 to job 7")]),
    ("job shrink", &[("muster job shrink --nodes 2 7", "job 7 keeps its first two nodes")]),
    ("job modify", &[("muster job modify -t 2h --priority 5 7", "another walltime and priority")]),
    ("job wait", &[("muster job wait 7 8", "until both have ended")]),
    ("job new", &[("muster job new /numcores:4 /jobname:sweep", "a job that is submitted later")]),
    ("job add", &[("muster job add 7 /numcores:1 ./step 12", "a task of one core for job 7")]),
    (
        "job submit",
        &[
            ("muster job submit /numcores:2 /runtime:0:30 hostname", "a job with one task"),
            ("muster job submit /jobfile:job.xml", "what a file describes"),
            ("muster job submit /id:7", "what job new and job add have made"),
        ],
    ),
    ("job view", &[("muster job view 7", "the state of job 7"), ("muster job view 7 /history", "every event of it")]),
    ("job list", &[("muster job list /all", "the jobs of everybody")]),
    ("job listtasks", &[("muster job listtasks 7", "the tasks of job 7")]),
    ("job clone", &[("muster job clone 7", "a job like job 7, to be submitted later")]),
    ("job finish", &[("muster job finish 7", "job 7 ends, and counts as finished")]),
    (
        "nodes",
        &[
            ("muster nodes --summary", "a line for nodes that are alike"),
            ("muster nodes --state lost,drained", "nodes out of service"),
        ],
    ),
    (
        "node",
        &[
            ("muster node show node1", "everything known about a node"),
            ("muster node drain node1", "no new jobs there"),
        ],
    ),
    ("node show", &[("muster node show node1", "everything known about a node")]),
    ("node drain", &[("muster node drain --reason 'new disk' node[1-4]", "no new jobs there")]),
    ("node resume", &[("muster node resume node[1-4]", "they take jobs again")]),
    ("node sleep", &[("muster node sleep node[1-4]", "they sleep as soon as they have no job")]),
    ("node wake", &[("muster node wake node1", "it is woken, although no job needs it")]),
    (
        "node close",
        &[("muster node close --from +2h --until +4h --reason 'new switch' node[1-2]", "no jobs there for two hours")],
    ),
    ("node open", &[("muster node open node[1-2]", "they are not closed after all")]),
    ("queues", &[("muster queues", "queues and licences")]),
    (
        "reserve",
        &[
            ("muster reserve --start +2h --duration 1h --count 2 -A physics course", "two nodes for an account"),
            ("muster reserve --start now --duration 30m --nodes node1 -u ada test", "one node for a user, at once"),
        ],
    ),
    ("unreserve", &[("muster unreserve course", "give it up")]),
    ("reservations", &[("muster reservations", "those that are not over")]),
    ("filter", &[("muster filter list", "which filters there are")]),
    ("filter list", &[("muster filter list", "which filters there are, and how they did")]),
    ("filter test", &[("muster filter test /opt/site/quota job.xml", "what a program says about a job")]),
    ("explain", &[("muster explain 7", "why job 7 waits and what would start it")]),
    ("plan", &[("muster plan --svg plan.svg", "a chart of what runs and is foreseen")]),
    (
        "events",
        &[
            ("muster events --follow --kind job,node", "jobs and nodes, as it happens"),
            ("muster events --job 7 --json", "a job, for programs"),
        ],
    ),
    (
        "usage",
        &[
            ("muster usage --from '1 month ago' --by user,account", "by user and account"),
            ("muster usage --csv", "for a spreadsheet"),
        ],
    ),
    ("audit", &[("muster audit verify", "whether the history is whole"), ("muster audit export bundle", "for others")]),
    (
        "audit verify",
        &[
            ("muster audit verify", "the history of a running system"),
            ("muster audit verify --offline", "of a data folder"),
        ],
    ),
    ("audit export", &[("muster audit export --from 1 bundle.jsonl", "for a third party")]),
    ("replay", &[("muster replay --verify", "fold the log again and compare")]),
    (
        "simulate",
        &[
            ("muster simulate --policy easy trace.swf", "one policy"),
            ("muster simulate --compare fcfs easy conservative -- trace.swf", "several"),
        ],
    ),
    ("whatif", &[("muster whatif --policy conservative --from -7d", "the last week under another policy")]),
    (
        "config",
        &[("muster config show", "what is in force"), ("muster config check muster.toml", "before it is applied")],
    ),
    ("config show", &[("muster config show", "in the form that apply takes")]),
    ("config check", &[("muster config check muster.toml", "without changing anything")]),
    (
        "config apply",
        &[
            ("muster config apply --keep --dry-run new.toml", "what would change"),
            ("muster config apply --policy easy", "another policy"),
        ],
    ),
    (
        "config policies",
        &[("muster config policies", "the names"), ("muster config policies easy", "one, as a file to begin with")],
    ),
    ("config reference", &[("muster config reference", "every key with its range")]),
    (
        "quota",
        &[
            ("muster quota check /etc/muster/quotas.json", "the mistakes of a file, with their places"),
            ("muster quota load /etc/muster/quotas.json", "its rules are in force"),
        ],
    ),
    (
        "ledgers",
        &[
            ("muster ledgers", "which ledger leads, and how far the others have come"),
            ("muster ledgers hand-over", "let another one lead, before its host is stopped"),
        ],
    ),
    ("ledgers hand-over", &[("muster ledgers hand-over head2", "the ledger head2 leads next")]),
    ("quota load", &[("muster quota load /etc/muster/quotas.json", "the rules of a file, in place of all others")]),
    ("quota check", &[("muster quota check /etc/muster/quotas.json", "the mistakes of a file, with their places")]),
    ("quota show", &[("muster quota show", "the rules in force, and when each of them holds")]),
    ("quota clear", &[("muster quota clear", "no quotas any more")]),
    ("doctor", &[("muster doctor", "what is wrong here")]),
    (
        "jobtemplate",
        &[
            ("muster jobtemplate new Short", "a template"),
            (
                "muster jobtemplate set Short RunTime /default:10 /max:3600",
                "ten minutes if nothing is said, an hour at most",
            ),
        ],
    ),
    (
        "cluscfg",
        &[
            ("muster cluscfg listparams", "all settings"),
            ("muster cluscfg setparams SubmissionFilterTimeout=30", "change one"),
        ],
    ),
    ("basl", &[("muster basl check policy.basl", "tells every mistake of a scheduling program")]),
    (
        "oar",
        &[
            ("muster oar oarsub -l nodes=2,walltime=1 ./job.sh", "as oarsub does"),
            ("muster oar oarstat -f -j 12", "as oarstat does"),
            ("muster oar oarnodes -s", "the states of resources, as oarnodes does"),
            ("muster oar oarnodesetting -s Absent -h n7", "takes a node out of service, as oarnodesetting does"),
            ("muster oar import --nodes nodes.json --conf oar.conf", "writes a configuration from that of OAR"),
        ],
    ),
    (
        "pbs",
        &[
            ("muster pbs qsub job.sh", "as qsub does"),
            ("muster pbs qstat -a", "as qstat does"),
            ("muster pbs pbsnodes -o -C 'bad disk' node7", "takes a node out of service, as pbsnodes does"),
            ("muster pbs qmgr -c 'print server'", "the server and its queues, as qmgr does"),
            ("muster pbs check /var/spool/pbs/sched_priv", "checks the policy files of a scheduler"),
            ("muster pbs plan /var/spool/pbs/sched_priv --state state.json", "what one cycle would start"),
        ],
    ),
    ("slurm", &[("muster slurm sbatch job.sh", "as sbatch does"), ("muster slurm squeue --me", "as squeue does")]),
    ("install-commands", &[("muster install-commands /usr/local/bin", "sbatch, squeue, job and the others for all")]),
    ("completions", &[("muster completions bash", "for /etc/bash_completion.d/muster")]),
    ("man", &[("muster man /usr/local/share/man/man1", "the manual pages")]),
    ("version", &[("muster version", "which muster this is")]),
];

/// The examples of a command by its words after `muster`, such as `job show`; may be empty.
pub fn of(words: &str) -> &'static [Example] {
    EXAMPLES.iter().find(|(command, _)| *command == words).map_or(&[], |(_, examples)| examples)
}

/// The grammar with the examples below the help of each command.
pub fn added_to(command: Command) -> Command {
    added_below(command, "")
}

fn added_below(command: Command, words: &str) -> Command {
    let command = match of(words) {
        [] => command,
        examples => {
            let width = examples.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
            let lines: Vec<String> = examples.iter().map(|(line, what)| format!("  {line:width$}  {what}")).collect();
            command.after_help(format!("Examples:\n{}", lines.join("\n")))
        }
    };
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        let words = format!("{words} {name}");
        command.mut_subcommand(&name, |below| added_below(below, words.trim_start()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli::Cli, script::split_words};
    use clap::CommandFactory as _;

    #[test]
    fn every_example_can_be_typed_and_is_of_its_command() {
        for (command, examples) in EXAMPLES {
            for (line, what) in *examples {
                let words = split_words(line, 1).unwrap();
                // Inside a job the environment names the job.
                let mut words: Vec<String> = words.into_iter().map(|(_, word)| word).collect();
                if *command == "run" {
                    words.insert(2, "--job=1".to_owned());
                }
                let read = Cli::command().try_get_matches_from(words);
                assert!(read.is_ok(), "{line}: {}", read.unwrap_err());
                assert!(line.starts_with(format!("muster {command}").trim_end()), "{line}");
                assert!(!what.is_empty());
            }
        }
    }

    #[test]
    fn commands_have_examples_and_their_help_shows_them() {
        let mut command = added_to(Cli::command());
        let missing: Vec<&str> =
            command.get_subcommands().map(Command::get_name).filter(|name| of(name).is_empty()).collect();
        assert_eq!(missing, [""; 0]);
        let help = command.find_subcommand_mut("submit").unwrap().render_help().to_string();
        assert!(help.contains("Examples:\n  muster submit job.sh input.dat"), "{help}");
    }
}
