//! Habits of people and programs that come from Slurm, on a live system.

use crate::{slurm::Site, slurm_steps::reference, system::System};
use nix::pty::openpty;
use std::io::Write as _;

/// SL-C-12, SL-E-09: a counted feature concerns some of the nodes: the number of nodes stays as requested, in order.
#[test]
fn counted_features_leave_the_number_of_nodes_as_it_is_asked_for() {
    let site = reference();
    let show = "sh -c 'echo $SLURM_JOB_NUM_NODES $SLURM_JOB_NODELIST $SLURM_NTASKS; srun -l hostname -s | wc -l'";
    for (asked, nodes, with_feature) in [
        ("-N4 -C 'gamma*2'", 4, "gamma"),
        ("-N12 -C 'knl*2'", 12, "knl"),
        ("-N7 -C 'knl*2&gamma*1'", 7, "knl"),
        ("-N3 -n3 -C 'gamma*2'", 3, "gamma"),
    ] {
        let said = site.ok(&format!("salloc -Q {asked} {show}"));
        let mut words = said.split_whitespace();
        assert_eq!(words.next(), Some(nodes.to_string().as_str()), "{asked}: {said}");
        let list = words.next().unwrap_or_default().to_owned();
        assert_eq!(words.next_back(), Some(nodes.to_string().as_str()), "{asked}: {said}");
        let names = site.ok(&format!("scontrol show hostnames {list}"));
        let mut sorted: Vec<&str> = names.lines().collect();
        sorted.sort_unstable();
        assert_eq!(names.lines().collect::<Vec<_>>(), sorted, "{asked}");
        let of_kind = site.ok(&format!("sinfo -h -N -n {list} -o '%N %f' | sort -u | grep -c {with_feature}"));
        assert!(of_kind.trim().parse::<u32>().is_ok_and(|count| count >= 2), "{asked}: {of_kind}");
    }
    let (status, told) = site.fails("sbatch -N13 -C 'gamma*2' --wrap true");
    assert!(status == 1 && told.contains("Requested node configuration is not available"), "{told}");
}

/// SL-P-01: a new cluster backfills, and says so; with `fcfs` all jobs wait for the first.
#[test]
fn a_new_cluster_backfills() {
    let site = Site::start();
    assert!(site.ok("scontrol show config").lines().any(|line| line.ends_with("= sched/backfill")));
    site.ok("sbatch -N2 --exclusive -t 60 --wrap 'sleep 1000'");
    site.ok("sbatch -N4 --exclusive -t 60 --wrap true");
    site.ok("sbatch -N1 -t 1 --wrap 'sleep 1000'");
    let states = || site.ok("squeue -h -S i -o '%i %t'");
    site.system.wait_until("the short job goes around", || states() == "1 R\n2 PD\n3 R\n");
    // A job without a known end may only run ahead on nodes that the first job does not need: all are needed here.
    site.ok("sbatch -N1 --wrap true");
    site.ok("scancel 3");
    site.ok("sbatch -N1 -t 1 --wrap 'sleep 1000'");
    site.system.wait_until("the short one goes around", || states() == "1 R\n2 PD\n4 PD\n5 R\n");
    site.system.ok(&["config", "apply", "--policy", "fcfs"]);
    assert!(site.ok("scontrol show config").lines().any(|line| line.ends_with("= sched/builtin")));
    site.ok("scancel 5");
    site.ok("sbatch -N1 -t 1 --wrap true");
    let waits = || site.ok("squeue -h -j 6 -o '%t %r'");
    site.system.wait_until("it waits behind the first", || waits() == "PD Priority\n");
}

/// SL-C-09, SL-C-33: lines of every cheat sheet, and a script that chooses how its number is printed.
#[test]
fn cheat_sheets_and_wrappers_work_as_they_are() {
    let site = Site::start();
    site.system.write("job.sh", "#!/bin/sh\n#SBATCH --parsable -H\ntrue\n");
    assert_eq!(site.ok("sbatch job.sh"), "1\n");
    // The planner may look at the job again between two calls.
    let job = |line: &str| -> Vec<String> {
        let shown = site.ok(&format!("scontrol {line}"));
        shown.split_whitespace().filter(|word| !word.starts_with("LastSchedEval=")).map(str::to_owned).collect()
    };
    let shown = job("show job 1");
    assert!(shown.contains(&"JobId=1".to_owned()), "{shown:?}");
    for line in ["show jobid=1", "show jobid 1", "show JobId=1", "show jobs 1"] {
        assert_eq!(job(line), shown, "{line}");
    }
    assert!(site.ok("scontrol show jobid -dd 1").starts_with("JobId=1 "));
    assert_eq!(site.ok("scontrol show partitions"), site.ok("scontrol show partition"));
    assert_eq!(site.ok("scontrol show reservations"), "No reservations in the system\n");
    assert!(site.ok("scontrol show node node1,").starts_with("NodeName=node1 "));
    // 0 means held, and no other job has it.
    assert_eq!(site.ok("squeue -h -j 1 -o %Q"), "0\n");
    site.ok("sbatch --nice=200 -d afterany:1 --wrap true");
    site.ok("sbatch -d afterany:1 --wrap true");
    assert_eq!(site.ok("squeue -h -j 2,3 -o %Q"), "1\n1\n");
    let shown = site.ok("scontrol show job 2");
    assert!(shown.contains(" Priority=1 ") || shown.contains("Priority=1 "), "{shown}");
}

/// SL-A-06: a step that meets its own limit is reported as such; one ended by its job's limit is cancelled.
#[test]
fn a_step_that_meets_its_own_time_limit_is_told_as_such() {
    let site = Site::with("[[queues]]\nname = \"short\"\ndefault_walltime_seconds = 4\n");
    site.system.write("own.sh", "#!/bin/sh\nsrun -t 0:01 sleep 1000\nexit 0\n");
    site.ok("sbatch -p short -t 10 -W own.sh");
    assert_eq!(site.ok("sacct -n -P -j 1 -o JobID,State | grep -v batch"), "1|COMPLETED\n1.0|TIMEOUT\n");
    site.system.write("job.sh", "#!/bin/sh\nsrun sleep 1000\n");
    site.ok("sbatch -p short job.sh");
    site.is_over("2");
    assert_eq!(site.ok("sacct -n -P -j 2 -o JobID,State"), "2|TIMEOUT\n2.batch|CANCELLED\n2.0|CANCELLED\n");
}

/// SL-C-38: a job without a time limit has the time of its reservation.
#[test]
fn a_job_without_a_time_limit_starts_in_a_reservation() {
    let site = Site::start();
    site.ok("scontrol create reservation reservationname=r1 starttime=now duration=10 nodes=node2 users=$(id -un)");
    let Some(host) = site.ok("srun --reservation=r1 sh -c 'echo $SLURMD_NODENAME'").lines().next().map(str::to_owned)
    else {
        panic!("it says nothing");
    };
    assert_eq!(host, "node2");
    site.ok("sbatch --reservation=r1 --wrap 'sleep 1000'");
    site.system.wait_until("it runs", || site.ok("squeue -h -o '%t %N'") == "R node2\n");
    let limit = site.ok("squeue -h -o %l");
    assert!(limit.starts_with("9:"), "{limit}");
}

/// SL-R-20: a step in the background of a shell reads nothing from its terminal, and keeps running.
#[test]
fn a_step_in_the_background_of_an_interactive_shell_goes_on() {
    let site = Site::start();
    let terminal = openpty(None, None).expect("a terminal");
    let stream = || terminal.slave.try_clone().expect("a stream");
    let mut command = site.command("exec setsid -c bash --norc -i");
    let mut shell = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().expect("there is a shell");
    drop((command, terminal.slave));
    let mut master = std::fs::File::from(terminal.master);
    let mut reader = master.try_clone().expect("a stream");
    // Somebody has to read the shell's output.
    let said = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    master.write_all(b"{ srun -n1 sh -c 'echo T1; sleep 1; echo T2' >said; touch over; } &\r").expect("it reads");
    site.system.wait_until("the command in the background is over", || site.system.path("over").exists());
    assert_eq!(site.system.read("said"), "T1\nT2\n");
    master.write_all(b"exit\r").expect("it reads");
    shell.wait().expect("it ends");
    drop(master);
    let _ = said.join();
}

/// SL-E-03: the steps of an overcommitted allocation also have more tasks than CPUs.
#[test]
fn steps_of_an_overcommitted_allocation_have_its_tasks() {
    let site = Site::start();
    let said =
        site.ok("salloc -Q -n10 -O -N1 sh -c 'echo $SLURM_TASKS_PER_NODE $SLURM_OVERCOMMIT; srun hostname | wc -l'");
    assert_eq!(said, "10 1\n10\n");
    let said = site.ok("salloc -Q -n5 -O -N2 sh -c 'echo $SLURM_TASKS_PER_NODE; srun hostname | wc -l'");
    assert_eq!(said, "3,2\n5\n");
}

/// SL-C-16: scripts of other schedulers, with warnings about what they cannot get.
#[test]
fn scripts_for_pbs_and_lsf_run_as_they_ask() {
    let site = Site::start();
    let script =
        "#!/bin/sh\n#PBS -N mine\n#PBS -l nodes=2:ppn=1,walltime=00:07:00\n#PBS -k oe\necho $SLURM_JOB_NAME >name\n";
    site.system.write("job.pbs", script);
    let said = site.run("sbatch -W --parsable -o out job.pbs");
    let warning = "sbatch: warning: #PBS -k oe has no meaning here and is ignored\n";
    assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("1\n", warning));
    assert_eq!(site.system.read("name"), "mine\n");
    assert_eq!(site.ok("sacct -n -P -X -j 1 -o NNodes,Timelimit"), "2|00:07:00\n");
    for ignored in ["sbatch --ignore-pbs", "SBATCH_IGNORE_PBS=1 sbatch"] {
        site.ok(&format!("rm name; {ignored} -W -o out job.pbs"));
        assert_eq!(site.system.read("name"), "job.pbs\n", "{ignored}");
    }
    site.system.write("job.lsf", "#!/bin/sh\n#BSUB -J theirs -n 2\n#BSUB -W 0:03\ntrue\n");
    site.ok("sbatch -W job.lsf");
    assert_eq!(site.ok("sacct -n -P -X -j 4 -o JobName,ReqCPUS,Timelimit"), "theirs|2|00:03:00\n");
    site.system.write("wrong.lsf", "#!/bin/sh\n#BSUB -R span[ptile=4]\ntrue\n");
    let (status, told) = site.fails("sbatch wrong.lsf");
    assert_eq!(status, 1, "{told}");
    assert!(told.contains("sbatch: invalid option -- 'R'\n"), "{told}");
}

/// SL-E-14: scripts from the time of the old names get them where they ask, in all three places.
#[test]
fn the_old_names_of_variables_are_there_for_who_asks() {
    let site = reference();
    let show = "echo $SLURM_PACK_SIZE $SLURM_JOB_ID_PACK_GROUP_1";
    let all = format!("{show}\nsrun -n1 sh -c '{show}'\n");
    site.system.write("job", &format!("#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n1\n{all}"));
    site.ok("sbatch -W -o plain job");
    assert_eq!(site.system.read("plain"), "\n\n");
    site.ok("MUSTER_SLURM_PACK_NAMES=1 sbatch -W -o script job");
    assert_eq!(site.system.read("script"), "2 4\n2 4\n");
    site.system.write("shell", &all);
    assert_eq!(site.ok("MUSTER_SLURM_PACK_NAMES=1 salloc -Q -n1 : -n1 sh shell"), "2 6\n2 6\n");
}

/// SL-C-38: partitions and features of nodes change while the system runs.
#[test]
fn partitions_are_made_changed_and_deleted_while_the_system_runs() {
    let site = Site::start();
    site.ok("scontrol create partition=fast nodes=node[1-2] maxtime=10 defaulttime=5 state=up");
    let shown = site.ok("scontrol -o show partition fast");
    for pair in [" MaxTime=00:10:00 ", " DefaultTime=00:05:00 ", " Nodes=node[1-2] ", " State=UP "] {
        assert!(shown.contains(pair), "{pair}: {shown}");
    }
    site.ok("sbatch -W -p fast -N2 --wrap true");
    assert_eq!(site.ok("sacct -n -P -X -j 1 -o Partition,Timelimit,State"), "fast|00:05:00|COMPLETED\n");
    site.ok("scontrol update partitionname=fast maxtime=20 nodes+=node3");
    assert!(site.ok("scontrol -o show partition fast").contains(" MaxTime=00:20:00 "));
    site.ok("sbatch -W -p fast -N3 -t 11 --wrap true");
    assert_eq!(site.fails("scontrol create partition=fast").0, 1);
    let (status, told) = site.fails("scontrol update partitionname=fast hidden=yes");
    assert!(status == 1 && told.contains("Hidden=yes"), "{told}");
    site.ok("scontrol delete partition=fast");
    assert_eq!(site.fails("scontrol show partition fast"), (1, "Partition fast not found\n".to_owned()));
    assert_eq!(site.fails("scontrol delete partition=fast").0, 1);
    site.ok("scontrol update nodename=node4 features=quick");
    assert_eq!(site.ok("srun -C quick sh -c 'echo $SLURMD_NODENAME'"), "node4\n");
}

/// SL-C-37, SL-C-39: a job that is put back as a special exit says so until it is released; a signal is named.
#[test]
fn special_exits_and_signals_are_told() {
    let site = Site::start();
    site.ok("sbatch -J odd --wrap 'sleep 1000'");
    site.system.wait_until("it runs", || site.ok("squeue -h -o %t") == "R\n");
    site.ok("scontrol requeuehold State=SpecialExit 1");
    site.system.wait_until("it is back", || site.ok("squeue -h -o '%t %T'") == "SE SPECIAL_EXIT\n");
    assert_eq!(site.ok("squeue -h -t PD -o %i"), "1\n");
    assert!(site.ok("scontrol show job 1").contains("JobState=SPECIAL_EXIT "));
    site.ok("scontrol release 1");
    site.system.wait_until("it waits for its time", || site.ok("squeue -h -o '%t %r'") == "PD BeginTime\n");
    site.ok("scontrol hold jobname=odd");
    assert_eq!(site.ok("squeue -h -o %r | cut -c1-7"), "JobHeld\n");
    site.ok("sbatch -W --wrap 'kill -9 $$'; true");
    assert!(site.ok("scontrol show job 2").contains(" Reason=RaisedSignal:9(Killed) "));
}

/// SL-C-33, SL-L-02: `scontrol` and `sacctmgr` without a command are shells, and tell what monitors ask for.
#[test]
fn shells_and_what_monitors_ask_for() {
    let site = Site::start();
    let said = site.ok("printf 'show partition\\n!!\\n\\nexit\\nshow nodes\\n' | scontrol -o");
    assert_eq!(said.lines().filter(|line| line.starts_with("PartitionName=")).count(), 2, "{said}");
    assert_eq!(site.run("printf 'show foo\\nping\\n' | scontrol").status, 1);
    site.ok("printf 'add account test\\nadd user ann account=test maxsubmitjobs=7\\n' | sacctmgr -i");
    let listed = site.ok("sacctmgr -n -P show user ann withassoc format=user,account,maxsubmitjobsperuser");
    assert_eq!(listed, "ann|test|7\n");
    assert_eq!(site.ok("sacctmgr -n -P -s list user ann format=user,account"), "ann|test\n");
    assert!(site.ok("sacctmgr -n -P show transaction format=action").contains("Add Users\n"));
    assert!(site.ok("sacctmgr -n -P show tres").contains("gres|gpu|1001\n"));
    assert!(site.ok("sacctmgr show runaway").contains("No runaway jobs found on cluster"));
    assert!(site.ok("sacctmgr show config").contains("AccountingStorageType  = accounting_storage/muster\n"));
    assert!(site.ok("scontrol show assoc_mgr").contains("UserName=ann DefAccount=test"));
    assert!(site.ok("scontrol show daemons").starts_with("slurmctld"));
    assert!(site.ok("scontrol show config").contains("TopologyPlugin          = topology/flat\n"));
    assert!(site.ok("sbin/slurmctld -V").starts_with("slurm 26.11.0 "));
    let statistics = site.ok("sacctmgr show stats");
    assert!(statistics.contains("\nData since ") && statistics.contains("in microseconds\n"), "{statistics}");
    let verbose = site.ok("scontrol -v show node");
    let first = verbose.lines().next().unwrap_or_default();
    assert!(first.starts_with("last_update_time=20") && first.ends_with(", records=4"), "{first}");
    let verbose = site.ok("sinfo -v");
    assert!(verbose.starts_with("----") && verbose.contains("\nverbose     = 1\n"), "{verbose}");
    site.ok("scontrol update nodename=node3 state=drain reason=disk");
    let events = |period: &str| site.run(&format!("sacctmgr -n -P show event {period} format=nodename,reason"));
    for period in ["", "start=2020-02-02", "end=now+1hour"] {
        assert_eq!(events(period).stdout, "node3|disk\n", "{period}");
    }
    assert_eq!(events("end=2020-02-02").stdout, "");
    assert_ne!(events("st=foo").status, 0);
}

/// SL-C-01, SL-C-35: a site says which Slurm it stands for.
#[test]
fn a_site_chooses_the_version_that_is_shown() {
    let chosen = "[slurm]\nversion = \"25.05.3\"\naccounting_storage_type = \"accounting_storage/slurmdbd\"\n";
    let site = Site::with(chosen);
    let config = site.ok("scontrol show config");
    assert!(config.contains("SLURM_VERSION           = 25.05.3\n"), "{config}");
    assert!(config.contains("AccountingStorageType   = accounting_storage/slurmdbd\n"), "{config}");
    for command in ["squeue", "sbatch", "sbin/slurmctld"] {
        assert!(site.ok(&format!("{command} -V")).starts_with("slurm 25.05.3 (muster "), "{command}");
    }
    site.ok("OWN=word sbatch -W --wrap true");
    let script = site.ok("sacct -B -j 1");
    assert!(script.starts_with("Batch Script for 1\n---") && script.contains("\ntrue\n"), "{script}");
    let environment = site.ok("sacct --env-vars -j 1");
    assert!(
        environment.starts_with("Environment used for 1 ") && environment.contains("\nOWN=word\n"),
        "{environment}"
    );
    let data = site.ok("sacct -X --json -j 1");
    assert!(data.contains("\"release\": \"25.05.3\"") && data.contains("\"major\": \"25\""), "{data}");
    assert!(site.ok("squeue --yaml -t all").contains("user_name: \""));
}

/// SL-E-03, SL-E-05, SL-R-12: variables of jobs and tasks, and a node for each task from a file.
#[test]
fn scripts_and_tasks_have_the_variables_of_a_first_day() {
    let site = Site::start();
    site.system.write(
        "job.sh",
        "#!/bin/sh\n#SBATCH -c2\numask 022\necho $SRUN_CPUS_PER_TASK $SLURM_UMASK >batch\n\
        srun sh -c 'echo $SLURM_DISTRIBUTION $SRUN_CPUS_PER_TASK $SLURM_UMASK $SLURM_CLUSTER_NAME' >task\n\
        srun sh -c 'echo $SLURM_LAUNCH_NODE_IPADDR $SLURM_SRUN_COMM_HOST' >address\n",
    );
    site.ok("umask 027; sbatch -W job.sh");
    assert_eq!(
        (site.system.read("batch").as_str(), site.system.read("task").as_str()),
        ("2 0027\n", "block 2 0027 muster\n")
    );
    let address = site.system.read("address");
    let words: Vec<&str> = address.split_whitespace().collect();
    assert!(matches!(words[..], [one, other] if one == other && one.contains('.')), "{address}");
    site.system.write("hosts", "node2\nnode1\nnode2\n");
    let places =
        site.ok("SLURM_HOSTFILE=hosts salloc -Q -N2 -n4 -w node[1-2] srun -l sh -c 'echo $SLURMD_NODENAME' | sort");
    assert_eq!(places, "0: node2\n1: node1\n2: node2\n");
    let told = site.run("salloc -Q -N2 -n2 srun -v true").stderr;
    assert!(told.contains("srun: jobid ") && told.contains(": nodes(2):`node[1-2]', cpu counts: "), "{told}");
}

/// SL-C-12, SL-C-36: disk for temporary files, nodes in a row, and few switches.
#[test]
fn a_job_gets_disk_neighbours_and_few_switches_and_is_told_what_it_waits_for() {
    let mut system = System::stopped();
    let node = |number: u32, switch: &str, disk: u32| {
        format!(
            "[[nodes]]\nname = \"n{number}\"\ncores = 2\nmemory = \"1000M\"\n\
             properties = {{ switch = \"{switch}\", tmp_disk_mb = {disk} }}\n"
        )
    };
    let nodes = [node(1, "s1", 100), node(2, "s1", 100), node(3, "s2", 5000), node(4, "s2", 5000)];
    let head = "[cluster]\ndefault_queue = \"debug\"\n[[queues]]\nname = \"debug\"\n\
                [slurm]\nscheduler_parameters = \"max_switch_wait=3600\"\n";
    system.write("cluster.toml", &format!("{head}{}", nodes.join("")));
    system.restart(&["--config", "cluster.toml"]);
    system.ok(&["install-commands", "bin"]);
    let site = Site { system };
    assert!(site.ok("scontrol show node n3").contains("TmpDisk=5000 "));
    assert_eq!(site.ok("sinfo -h -N -o '%N %d'"), "n1 100\nn2 100\nn3 5000\nn4 5000\n");
    let switches = "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=s2 Level=0 LinkSpeed=1 Nodes=n[3-4]\n";
    assert_eq!(site.ok("scontrol show topology"), switches);
    let nodes_of = |job: &str| site.ok(&format!("squeue -h -j {job} -o %N")).trim().to_owned();
    let submit = |options: &str| site.ok(&format!("sbatch --parsable {options} --wrap 'sleep 1000'")).trim().to_owned();
    let disk = submit("--tmp=2G -n1 --exclusive");
    site.system.wait_for_state(&disk, "running");
    assert_eq!(nodes_of(&disk), "n3");
    assert!(site.ok(&format!("scontrol show job {disk}")).contains("MinTmpDiskNode=2G"));
    let (status, told) = site.fails("sbatch --tmp=1T --wrap true");
    assert_eq!((status, told.contains("Requested node configuration is not available")), (1, true), "{told}");
    let middle = submit("-N1 --exclusive -w n2");
    site.system.wait_for_state(&middle, "running");
    // Two nodes are free, on two switches and not in a row.
    let few = submit("-N2 --switches=1@30:00");
    let row = submit("-N2 --contiguous");
    let is_told = || site.system.ok(&["explain", &few]).contains("closer together");
    site.system.wait_until("the wait is explained", is_told);
    let shown = || site.ok(&format!("scontrol show job {few}"));
    assert!(shown().contains("Switches=1@00:30:00"), "{}", shown());
    site.system.wait_until("the reason is told", || shown().contains("JobState=PENDING Reason=Resources"));
    assert!(site.ok(&format!("scontrol show job {row}")).contains("Contiguous=1"));
    site.ok(&format!("scancel {few} {middle}"));
    site.system.wait_for_state(&row, "running");
    assert_eq!(nodes_of(&row), "n[1-2]");
    let any = submit("-N2 --switches=1");
    site.ok(&format!("scancel {row}"));
    site.system.wait_for_state(&any, "running");
    assert_eq!(nodes_of(&any), "n[1-2]");
    let later = submit("-H -N2 --switches=1");
    site.ok(&format!("scontrol update jobid={later} switches=1@0"));
    assert!(site.ok(&format!("scontrol show job {later}")).contains("Switches=1@00:00:00"));
    site.ok("scancel -u $(id -un)");
}
