//! PBS's commands on a live system.

use crate::{
    slurm::Site,
    system::{Output, System},
};

const CONFIGURATION: &str = r#"
[cluster]
name = "alpha"
default_queue = "workq"

[[queues]]
name = "workq"

[[queues]]
name = "short"
"#;

/// A site with a queue `workq`, as new servers of PBS have it.
pub fn site() -> Site {
    Site::with(CONFIGURATION)
}

/// A script with directives runs with PBS's variables, in its owner's home folder unless it says otherwise, and its
/// output goes to files with PBS's names beside the place of submission.
#[test]
fn a_script_runs_with_its_variables_and_its_output_is_where_pbs_puts_it() {
    let site = site();
    let script = "#!/bin/sh\n#PBS -N first\n#PBS -l select=2:ncpus=2:mpiprocs=2,walltime=0:10:00 -l place=scatter\n\
                  env | grep ^PBS_\necho nodes: $(sort $PBS_NODEFILE | uniq -c)\necho bad >&2\nexit 3\n";
    site.system.write("job.sh", script);
    let Output { status, stdout, stderr } = site.run("qsub -W block=true -v COLOUR=red job.sh");
    assert_eq!((status, stdout.as_str()), (3, "1.alpha\n"), "{stderr}");
    let said = site.system.read("first.o1");
    for line in [
        "PBS_JOBID=1.alpha",
        "PBS_JOBNAME=first",
        "PBS_QUEUE=workq",
        "PBS_ENVIRONMENT=PBS_BATCH",
        "PBS_NUM_NODES=2",
        "PBS_NP=4",
        "nodes: 2 node1 2 node2",
    ] {
        assert!(said.lines().any(|known| known == line), "{line} is missing:\n{said}");
    }
    let directory = format!("PBS_O_WORKDIR={}", site.system.path("").display());
    assert!(said.contains(directory.trim_end_matches('/')), "{said}");
    assert_eq!(site.system.read("first.e1"), "bad\n");
}

/// `qstat` lists jobs in their states; those that are over only if it is asked for them.
#[test]
fn jobs_are_listed_held_released_and_deleted() {
    let site = site();
    assert_eq!(site.ok("echo sleep 60 | qsub -N sleeper -l ncpus=1"), "1.alpha\n");
    assert_eq!(site.ok("echo sleep 60 | qsub -h -q short -p 7"), "2.alpha\n");
    let state = |job: &str| {
        let full = site.ok(&format!("qstat -f {job}"));
        let line = full.lines().find_map(|line| line.trim().strip_prefix("job_state = "));
        line.unwrap_or_default().to_owned()
    };
    site.system.wait_until("the first runs", || state("1.alpha") == "R");
    assert_eq!(state("2"), "H");
    let listed = site.ok("qstat");
    let rows: Vec<Vec<&str>> = listed.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["1.alpha", "sleeper", "root"], "{listed}");
    assert_eq!((rows[0][4], rows[0][5], rows[1][4], rows[1][5]), ("R", "workq", "H", "short"), "{listed}");
    assert_eq!(site.ok("qselect -s H -q short -p .gt.6"), "2.alpha\n");
    site.ok("qalter -p 9 -N renamed -l walltime=0:05:00 2.alpha");
    let full = site.ok("qstat -f 2");
    for line in ["Job_Name = renamed", "Priority = 9", "Resource_List.walltime = 00:05:00"] {
        assert!(full.lines().any(|known| known.trim() == line), "{line}: {full}");
    }
    site.ok("qrls 2.alpha");
    site.system.wait_until("the second runs", || state("2") == "R");
    site.system.wait_until("it takes signals", || site.run("qsig -s STOP 2 && qsig -s CONT 2").status == 0);
    site.ok("qdel 1 2.alpha");
    site.system.wait_until("both are gone", || site.ok("qstat").is_empty());
    let (status, error) = site.fails("qstat 1");
    assert_eq!(
        (status, error.as_str()),
        (35, "qstat: 1.alpha Job has finished, use -x or -H to obtain historical job information\n")
    );
    assert!(site.ok("qstat -x 1").lines().count() == 3);
    let (status, error) = site.fails("qdel 77");
    assert_eq!((status, error.as_str()), (153, "qdel: Unknown Job Id 77.alpha\n"));
    let queues = site.ok("qstat -Q");
    assert!(queues.lines().any(|line| line.starts_with("workq ")) && queues.contains("short "), "{queues}");
    assert!(site.ok("qstat -B").lines().nth(2).is_some_and(|line| line.starts_with("alpha ")), "there is a server");
    assert!(site.ok("qstat -f -F json -x 1").contains("\"1.alpha\""));
}

/// Arrays have PBS's identifiers and variables, and a file for each task.
#[test]
fn arrays_run_with_their_index() {
    let site = site();
    assert_eq!(site.ok("echo 'echo $PBS_ARRAY_INDEX $PBS_JOBID' | qsub -N many -J 1-3 -W block=true"), "1[].alpha\n");
    for index in 1..=3 {
        assert_eq!(site.system.read(&format!("many.o1.{index}")), format!("{index} 1[{index}].alpha\n"));
    }
}

/// What is not understood is refused by name, and nothing is submitted.
#[test]
fn what_is_not_understood_is_refused_by_name() {
    let site = site();
    site.system.write("job.sh", "#PBS -l select=1:ncpus=many\ntrue\n");
    for (line, status, text) in [
        ("qsub job.sh", 2, "illegal -l value: `ncpus=many`"),
        ("qsub -q nope -- true", 1, "nope"),
        ("qsub -l bogus=1 -- true", 1, "bogus"),
        ("qsub nothere.sh", 1, "qsub: script file: nothere.sh: "),
        ("qsub --bogus", 2, "unrecognized option '--bogus'"),
        ("qsub -I", 1, "-I is not there yet"),
    ] {
        let (exit, error) = site.fails(line);
        assert!(error.contains(text), "{line}: {error}");
        assert_eq!(exit, status, "{line}: {error}");
    }
    assert_eq!(site.ok("qstat"), "");
}

/// A site that imitates TORQUE has its names, and a server's name of its own.
#[test]
fn a_site_can_imitate_torque() {
    let site =
        Site::on(System::stopped(), &format!("{CONFIGURATION}\n[pbs]\nflavour = \"torque\"\nserver = \"head.site\"\n"));
    assert_eq!(site.ok("echo 'cat $PBS_NODEFILE' | qsub -N t -l nodes=2:ppn=2 -W block=true"), "1.head.site\n");
    assert_eq!(site.system.read("t.o1").lines().count(), 4);
    let listed = site.ok("qstat");
    assert!(
        listed.starts_with("Job ID                    Name             User            Time Use S Queue\n"),
        "{listed}"
    );
    assert!(listed.contains(" C workq"), "jobs that are over are listed: {listed}");
    assert!(site.ok("qstat -x 1").contains("<Job_Id>1.head.site</Job_Id>"));
}

/// PBS-C-15: the policy files of a scheduler are checked without a system; all errors of all files are listed.
#[test]
fn policy_files_are_checked() {
    let site = Site::start();
    std::fs::create_dir(site.system.path("sched_priv")).expect("the folder is new");
    site.system.write("sched_priv/sched_config", "by_queue: maybe\nsort_by: sortest_job_first\n");
    site.system.write("sched_priv/holidays", "YEAR 1998\nweekday 0400 2460\n");
    let output = site.system.run(&["pbs", "check", "sched_priv"]);
    assert_eq!(output.status, 2, "{}{}", output.stdout, output.stderr);
    for line in ["sched_config:1: ", "sched_config:2: ", "holidays:2: ", "3 errors"] {
        assert!(output.stdout.contains(line), "{line}: {}", output.stdout);
    }
    assert!(output.stdout.contains("shortest_job_first"), "the nearest word is suggested: {}", output.stdout);
    site.system.write("sched_priv/sched_config", "by_queue: true\n");
    site.system.write("sched_priv/holidays", "YEAR 1998\nweekday 0400 1130\n");
    assert!(site.system.ok(&["pbs", "check", "sched_priv"]).contains("the policy can be put in force"));
}

/// PBS-X-01: a program is checked, and each mistake is told with its line.
#[test]
fn scheduling_programs_are_checked() {
    let site = Site::start();
    site.system.write("good.basl", "sched_main() { print(1); }\n");
    assert_eq!(site.system.ok(&["basl", "check", "good.basl"]), "good.basl: the program can be put in force\n");
    site.system.write("bad.basl", "Int n;\nsched_main() { m = 1; }\n");
    let output = site.system.run(&["basl", "check", "bad.basl"]);
    assert_eq!(output.status, 2, "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.starts_with("bad.basl:2: ") && output.stdout.contains("(token 'm')"), "{}", output.stdout);
}
