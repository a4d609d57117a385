//! What orders jobs and what was used, as `sprio` and `sshare` tell it on a live system.

use crate::slurm::Site;

const CONFIGURATION: &str = r#"
[cluster]
name = "alpha"
default_queue = "debug"

[[queues]]
name = "debug"
default_walltime_seconds = 1800
default_job_priority = 5000
"#;

/// The policy that orders jobs is the one whose parts are shown, from the moment it is in force.
#[test]
fn the_parts_of_a_priority_are_those_of_the_policy_in_force() {
    let site = Site::with(CONFIGURATION);
    site.ok("sacctmgr -i add qos high priority=300");
    // It takes the whole cluster, so that others wait.
    site.ok("sbatch -N4 --exclusive --wrap 'sleep 600'");
    site.ok("sbatch -N4 --exclusive --wrap true");
    site.ok("sbatch -N4 --exclusive --nice=100 --wrap true");
    site.ok("sbatch -N4 --exclusive -q high --wrap true");
    site.ok("sbatch -H --wrap true");
    assert_eq!(
        site.ok("sprio -h -o '%i %r %Y %S %Q %N'"),
        "2 debug 5000 5000 0 0\n3 debug 4900 5000 0 100\n4 debug 5300 5000 300 0\n"
    );
    // What sprio tells is what squeue lists, and the first of them is the one that is planned first.
    assert_eq!(site.ok("squeue -h -t PD -S -p,i -o '%i %Q'"), "4 5300\n2 5000\n3 4900\n5 0\n");
    assert_eq!(site.ok("sprio -h -j3 -u root -o %i"), "3\n");
    assert_eq!(site.ok("sprio -j 77"), "Unable to find jobs matching user/id(s) specified\n");
    site.system.write(
        "sizes.toml",
        "version = 1\norder = [{ formula = \"100 * nodes + 0.001 * priority\", descending = true }, \"fcfs\"]\n",
    );
    site.system.ok(&["config", "apply", "--policy", "sizes.toml"]);
    let text = site.ok("sprio");
    let header: Vec<&str> = text.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(header, ["JOBID", "PARTITION", "PRIORITY", "SITE", "JOBSIZE", "QOS"]);
    assert_eq!(site.ok("sprio -h -j4 -o '%Y %J %S %Q'"), "405 400 5 0\n");
    assert_eq!(site.ok("sprio -w -h -o '%i %J'"), "Weights 100\n");
    let (status, told) = site.fails("sprio -o %Z");
    assert_eq!((status, told.as_str()), (1, "sprio: error: Invalid job format specification: Z\n"));
}

/// What a job used counts for its user and account.
#[test]
fn usage_is_that_of_the_books_and_shares_are_those_of_accounts() {
    let site = Site::with(CONFIGURATION);
    site.ok("sacctmgr -i add account bio,phy fairshare=3");
    site.ok("sacctmgr -i add user root account=bio,phy fairshare=5");
    site.ok("sbatch -W -A bio -n4 --wrap 'sleep 1.2'");
    let rows = site.ok("sshare -n -P -o account,user,rawshares,normshares,effectv,fairshare");
    assert_eq!(
        rows,
        "root|||0.000000|1.000000|\n root|root|1|0.142857|0.000000|1.000000\n \
         bio||3|0.428571|1.000000|\n  bio|root|5|1.000000|1.000000|0.333333\n \
         phy||3|0.428571|0.000000|\n  phy|root|5|1.000000|0.000000|1.000000\n"
    );
    let used: u64 = site.ok("sshare -n -P -U -A bio -o rawusage").trim().parse().expect("core seconds");
    assert!((4..400).contains(&used), "{used}");
    assert_eq!(site.ok("sshare -n -P -A phy -a -o account,user"), " phy|\n  phy|root\n");
    let data: serde_json::Value = serde_json::from_str(&site.ok("sshare --json -U -A phy")).expect("a document");
    let share = &data["shares"]["shares"][0];
    assert_eq!((&share["name"], &share["parent"]), (&"root".into(), &"phy".into()), "{data}");
    assert_eq!(share["fairshare"]["factor"]["number"], 1.0, "{data}");
    assert_eq!(site.ok("sshare -n -u nobody -P -o user | sort -u"), "\n");
    let (status, told) = site.fails("sshare -o nope");
    assert_eq!((status, told.as_str()), (1, "sshare: error: Invalid field requested: \"nope\"\n"));
}

/// Steps that run, jobs that ended, and what the cluster did meanwhile.
#[test]
fn what_steps_jobs_and_the_cluster_used_is_reported() {
    let site = Site::with(CONFIGURATION);
    site.ok("sacctmgr -i add account bio");
    site.ok("sacctmgr -i add user root account=bio");
    let script =
        "#!/bin/sh\n#SBATCH -N2 -n4 -A bio\nsrun --overlap -n4 sleep 300 &\nsrun --overlap -N1 -n1 sleep 300 &\nwait\n";
    site.system.write("job.sh", script);
    site.ok("sbatch job.sh");
    site.system.wait_until("both steps run", || site.ok("squeue -h -s -o %i").lines().count() == 2);
    assert_eq!(site.ok("sstat -nP -j 1 -o jobid"), "1.0\n");
    assert_eq!(site.ok("sstat -nP -a 1 -o ntasks,nodelist,avecpu | sort"), "1|node1|\n4|node[1-2]|\n");
    assert_eq!(site.ok("sstat -nP 1.batch -o jobid,ntasks,nodelist"), "1.batch|1|node1\n");
    assert_eq!(site.fails("sstat -n -j 9"), (0, "sstat: error: no steps running for job 9\n".to_owned()));
    let running = site.ok("seff 1");
    assert!(
        running.contains("\nState: RUNNING\nNodes: 2\nCores per node: 2\n") && running.contains("\nWARNING: "),
        "{running}"
    );
    site.ok("scancel 1");
    site.is_over("1");
    // It uses a core for a second at least, which reports show.
    let script = "sleep 1; i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; exit 3";
    site.run(&format!("sbatch -W --mem=100M --wrap '{script}'"));
    let ended = site.ok("seff 2");
    assert!(
        ended.starts_with("Job ID: 2\nCluster: alpha\nUser/Group: root/root\nState: FAILED (exit code 3)\nCores: 1\n")
    );
    assert!(ended.contains("% of 100.00 MB (100.00 MB/node)\n"), "{ended}");
    assert_eq!(site.fails("seff 77"), (2, "Job not found.\n".to_owned()));
    // Both jobs ran within the present hour and the one before.
    let span = "start=now-1hour end=now+1hour";
    let used: u64 =
        site.ok(&format!("sreport -nP -t sec cluster util {span} format=allocated")).trim().parse().expect("seconds");
    assert!(used >= 1, "{used}");
    let rows = site.ok(&format!("sreport -nP -t sec cluster userutilizationbyaccount {span} format=login,account"));
    assert_eq!(rows.lines().next(), Some("root|bio"), "{rows}");
    let sizes = site.ok(&format!("sreport -nP -t percent job sizesbyaccount {span} account=bio"));
    assert_eq!(sizes, "alpha|bio|100.00%|0.00%|0.00%|0.00%|0.00%|100.00%\n");
    assert!(site.fails("sreport cluster nope").1.starts_with("Not valid report nope"));
}

/// SL-C-38: an administrator gives nodes weights, and jobs get those of less weight first.
#[test]
fn jobs_get_nodes_of_less_weight_first() {
    let site = Site::with(CONFIGURATION);
    site.ok("scontrol update nodename=node[1-2] weight=50");
    site.ok("scontrol update nodename=node3 weight=7 features=big");
    assert_eq!(
        site.ok("sinfo -h -N -o '%n %w %f' | sort"),
        "node1 50 (null)\nnode2 50 (null)\nnode3 7 big\nnode4 1 (null)\n"
    );
    assert!(site.ok("scontrol show node node3").contains(" Weight=7 "));
    let nodes =
        |options: &str| site.ok(&format!("sbatch -W -o out {options} --wrap 'echo $SLURM_JOB_NODELIST' && cat out"));
    let list = |text: String| text.lines().last().unwrap_or_default().to_owned();
    assert_eq!(list(nodes("-n1")), "node4");
    assert_eq!(list(nodes("-N2")), "node[3-4]");
    assert_eq!(list(nodes("-N3")), "node[1,3-4]");
    assert_eq!(list(nodes("-n1 -w node2")), "node2");
    let (status, told) = site.fails("scontrol update nodename=node1 weight=heavy");
    assert_eq!((status, told.as_str()), (1, "Invalid input: heavy\nRequest aborted\n"));
    assert_eq!(site.ok("sinfo -h -n node1 -o %w"), "50\n");
}

/// An order by fair share: who has used less of an equal share goes first, and `sprio` and `sshare` tell why.
#[test]
fn jobs_are_ordered_by_what_their_accounts_have_used() {
    let site = Site::with(&format!("{CONFIGURATION}\n[accounts]\nusage_half_life_seconds = 86400\n"));
    site.ok("sacctmgr -i add account bio,phy");
    site.ok("sacctmgr -i add user root account=bio,phy");
    let policy = "version = 1\norder = [{ formula = \"1000 * fair_share + priority\", descending = true }]\n";
    site.system.write("fair.toml", policy);
    site.system.ok(&["config", "apply", "--policy", "fair.toml"]);
    site.ok("sbatch -W -A bio -N4 --exclusive --wrap 'sleep 1.5'");
    site.ok("sbatch -A phy -N4 --exclusive -J blocker --wrap 'while [ ! -e go ]; do sleep 0.1; done'");
    site.ok("sbatch -A bio -N4 --exclusive -J second --wrap 'echo $SLURM_JOB_NAME >> order'");
    site.ok("sbatch -A phy -N4 --exclusive -J first --wrap 'echo $SLURM_JOB_NAME >> order'");
    let factors = site.ok("sprio -h -o '%i %F %S %f'");
    let rows: Vec<&str> = factors.lines().collect();
    assert_eq!(rows.len(), 2, "{factors}");
    assert!(rows[0].starts_with("3 ") && rows[0].contains(" 5000 ") && rows[1].starts_with("4 "), "{factors}");
    let rank = site.ok("sshare -nP -U -A bio,phy -o account,fairshare");
    assert!(rank.contains("bio|0.333333") && !rank.contains("phy|0.333333"), "{rank}");
    assert!(
        site.ok("sshare -nP -A bio -o rawusage")
            .trim()
            .lines()
            .all(|used| used.parse::<u64>().is_ok_and(|used| used > 0))
    );
    site.system.write("go", "");
    for job in ["3", "4"] {
        site.is_over(job);
    }
    assert_eq!(site.system.read("order"), "first\nsecond\n");
    // What was used by an account and all below it is forgotten.
    let used = |account: &str| site.ok(&format!("sshare -nP -U -A {account} -o rawusage"));
    let modified = " Modified account associations...\n  C = alpha      A = bio of root\n";
    assert_eq!(site.ok("sacctmgr -i modify account bio set rawusage=0").trim_end(), modified.trim_end());
    assert_eq!(used("bio"), "0\n");
    assert_ne!(used("phy"), "0\n");
}
