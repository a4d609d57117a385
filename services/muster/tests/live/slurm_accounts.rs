//! Accounts, QOS and their limits on a live system, as a former Slurm site sets them up and its users meet them.

use crate::{
    slurm::Site,
    system::{Output, System},
};

const CONFIGURATION: &str = r#"
[cluster]
name = "alpha"
default_queue = "debug"

[[queues]]
name = "debug"
default_walltime_seconds = 1800

[accounts]
enforce = ["associations", "limits", "classes"]
"#;

const POLICY: &str = "Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)";

/// A user `root` in account `test`.
fn site() -> Site {
    let site = Site::with(CONFIGURATION);
    site.ok("sacctmgr -i add account test description=things organization=physics");
    site.ok("sacctmgr -i add user root account=test");
    site
}

/// The same on three nodes, with a user `nobody` in that account who is at work too.
fn site_with_nobody() -> Site {
    let mut system = System::stopped();
    let options = system.configure_for_others(3, CONFIGURATION);
    system.restart(&options.iter().map(String::as_str).collect::<Vec<_>>());
    system.ok(&["install-commands", "bin"]);
    let site = Site { system };
    site.ok("sacctmgr -i add account test");
    site.ok("sacctmgr -i add user root account=test");
    site.ok("sacctmgr -i add user nobody account=test");
    site
}

/// Runs words of `nobody`.
fn as_nobody(site: &Site, line: &str) -> Output {
    let words: Vec<&str> = std::iter::once("slurm").chain(line.split_whitespace()).collect();
    site.system.run_as_nobody(&words)
}

fn says(site: &Site, line: &str, status: i32, stdout: &str, stderr: &str) {
    let output = site.run(line);
    let told = (output.status, output.stdout.as_str(), output.stderr.as_str());
    assert_eq!(told, (status, stdout, stderr), "{line}");
}

/// SL-L-07, SL-C-35: users without an association submit nothing; accounts, users and QOS are created, queried, shown
/// and deleted as in Slurm.
#[test]
fn accounts_users_and_qos_are_made_shown_changed_and_deleted() {
    let site = Site::with(CONFIGURATION);
    let account =
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n";
    says(&site, "sbatch --wrap true", 1, "", account);
    let config = site.ok("scontrol show config");
    assert!(
        config.lines().any(|line| {
            line.starts_with("AccountingStorageEnforce ") && line.ends_with("= associations,limits,qos")
        })
    );
    let added = " Adding Account(s)\n  test\n Settings\n  Description     = Account Name\n  \
                 Organization    = Parent/Account Name\n Associations\n  A = test       C = alpha     \n";
    let question = "Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): \n";
    says(&site, "echo n | sacctmgr add account test", 0, &format!("{added}{question} Changes Discarded\n"), "");
    says(&site, "sacctmgr -nP show account test", 0, "", "");
    says(&site, "echo y | sacctmgr add account test", 0, &format!("{added}{question}"), "");
    says(&site, "sacctmgr -i add account test", 1, " Nothing new added.\n", "");
    let added = " Adding User(s)\n  root\n Associations =\n  U = root      A = test       C = alpha     \n \
                 Non Default Settings\n  MaxJobs       = 3\n  MaxWall       = 02:00:00\n";
    says(&site, "sacctmgr -i add user root account=test maxjobs=3 maxwall=120", 0, added, "");
    let no_account = " This account 'nope' doesn't exist.\n        Contact your admin to add this account.\n";
    says(&site, "sacctmgr -i add user ada account=nope", 1, "", no_account);
    let added = " Adding QOS(s)\n  high\n Settings\n  Description    = high\n  \
                 MaxJobsPerUser           = 1\n  Priority                 = 100\n";
    says(&site, "sacctmgr -i add qos high priority=100 maxjobspu=1", 0, added, "");
    says(&site, "sacctmgr -nP show qos format=name,prio,maxjobsperuser", 0, "normal|0|\nhigh|100|1\n", "");
    let modified = " Modified account associations...\n  C = alpha      A = test of root\n";
    says(&site, "sacctmgr -i modify account test set qos=normal,high grptres=cpu=8", 0, modified, "");
    let shown = "alpha|test||1|||cpu=8|high,normal\nalpha|test|root|1|3|02:00:00||high,normal\n";
    let format = "format=cluster,account,user,share,maxj,maxw,grptres,qos";
    says(&site, &format!("sacctmgr -nP show assoc account=test {format}"), 0, shown, "");
    says(&site, "sacctmgr -i modify user root set", 1, "", " You didn't give me anything to set\n");
    let modified = " Modified user associations...\n  C = alpha      A = test                 U = root     \n";
    says(&site, "sacctmgr -i modify user where name=root set maxjobs=-1", 0, modified, "");
    says(&site, "sacctmgr -nP show assoc user=root account=test format=maxjobs", 0, "\n", "");
    let qos = "sbatch: error: Batch job submission failed: Invalid qos specification\n";
    says(&site, "sbatch -q nope --wrap true", 1, "", qos);
    says(&site, "sbatch -A nope : -n1 --wrap true", 1, "", account);
    says(&site, "sbatch -H -q high --wrap true", 0, "Submitted batch job 1\n", "");
    let (status, error) = site.fails("sacctmgr -i delete user root");
    assert_eq!(status, 1);
    assert!(error.starts_with(" Error with request: Job(s) active, cancel job(s) before remove\n"), "{error}");
    site.ok("scancel 1");
    says(&site, "sacctmgr -i delete user root", 0, " Deleting users...\n  root\n", "");
    says(&site, "sacctmgr -i delete account test", 0, " Deleting accounts...\n  test\n", "");
    says(&site, "sacctmgr -i delete qos high", 0, " Deleting QOS(s)...\n  high\n", "");
    says(&site, "sacctmgr -i delete qos high", 1, " Nothing deleted\n", "");
    let header = "Cluster|Account|User\nalpha|root|\nalpha|root|root\n";
    says(&site, "sacctmgr -P list associations format=cluster,account,user", 0, header, "");
}

/// SL-L-03, SL-L-04, SL-L-10: three components are three jobs; a refusal changes nothing and records who and why.
#[test]
fn a_submission_beyond_what_may_be_submitted_is_refused_and_recorded() {
    let site = site();
    site.ok("sacctmgr -i modify user root set maxsubmitjobs=2");
    let three = "sbatch -H -n1 : -n1 : -n1 --wrap true";
    let refused = format!("sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: {POLICY}\n");
    says(&site, three, 1, "", &refused);
    says(&site, "squeue -h", 0, "", "");
    says(&site, "sbatch -H -n1 : -n1 --wrap true", 0, "Submitted batch job 1\n", "");
    says(&site, "sbatch --wrap true", 1, "", &refused);
    let events = site.system.ok(&["events", "--json"]);
    let refusals: Vec<&str> = events.lines().filter(|line| line.contains("muster.command.refused")).collect();
    assert_eq!(refusals.len(), 2, "{events}");
    assert!(refusals[0].contains("2 jobs of each user in association test/root"), "{}", refusals[0]);
    assert!(refusals[0].contains("limit_reached") && refusals[0].contains("root"), "{}", refusals[0]);
}

/// EX-15, SL-L-05: a job of three components with MaxJobs=2 never runs, others do; with two components it runs.
#[test]
fn a_job_of_more_components_than_may_run_waits_for_ever() {
    let site = site();
    site.ok("sacctmgr -i modify user root set maxjobs=2");
    says(&site, "sbatch -n1 : -n1 : -n1 --wrap 'sleep 60'", 0, "Submitted batch job 1\n", "");
    says(&site, "sbatch --wrap 'sleep 60'", 0, "Submitted batch job 4\n", "");
    let shown = |job: &str, format: &str| site.ok(&format!("squeue -h -j {job} -o '{format}'"));
    site.system.wait_until("the plain job runs", || shown("4", "%t") == "R\n");
    let waits = || shown("1", "%t %r").lines().any(|line| line == "PD AssocMaxJobsLimit");
    site.system.wait_until("the other waits for its limit", waits);
    site.ok("scancel 4");
    site.is_over("4");
    assert!(shown("1", "%t").lines().all(|state| state == "PD"));
    site.ok("scancel 1");
    says(&site, "sbatch -n1 : -n1 --wrap 'sleep 60'", 0, "Submitted batch job 5\n", "");
    says(&site, "sbatch --wrap 'sleep 60'", 0, "Submitted batch job 7\n", "");
    site.system.wait_until("both components run", || shown("5", "%t") == "R\nR\n");
    site.system.wait_until("the plain job waits", || shown("7", "%t %R") == "PD (AssocMaxJobsLimit)\n");
}

/// SL-C-39, SL-C-36: the limits of a QOS, its priority, and a job that moves to another.
#[test]
fn a_qos_limits_its_jobs_and_gives_them_priority() {
    let site = site();
    site.ok("sacctmgr -i add qos high priority=100 maxjobspu=1");
    site.ok("sacctmgr -i modify qos high set grptres=cpu=3");
    says(&site, "sbatch -q high --wrap 'sleep 60'", 0, "Submitted batch job 1\n", "");
    says(&site, "sbatch -q high --wrap 'sleep 60'", 0, "Submitted batch job 2\n", "");
    says(&site, "sbatch --wrap 'sleep 60'", 0, "Submitted batch job 3\n", "");
    let shown = |job: &str, format: &str| site.ok(&format!("squeue -h -j {job} -o '{format}'"));
    site.system.wait_until("the plain job runs", || shown("3", "%t %q") == "R normal\n");
    site.system.wait_until("the second waits", || shown("2", "%t %r %q") == "PD QOSMaxJobsPerUserLimit high\n");
    let listed = site.ok("squeue -h -q high -o %i");
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    assert_eq!(listed, ["1", "2"]);
    assert!(site.ok("scontrol show job 2").contains(" Account=test QOS=high\n"));
    let (status, error) = site.fails("scontrol update jobid=2 qos=nope");
    assert_eq!((status, error.as_str()), (1, "Invalid qos specification for job 2\n"));
    site.ok("scontrol update jobid=2 qos=normal");
    site.system.wait_until("it runs now", || shown("2", "%t %q") == "R normal\n");
    let Output { stdout, .. } = site.run("sacct -X -n -P -j 1,2 -o jobid,account,qos");
    assert_eq!(stdout, "1|test|high\n2|test|normal\n");
    let explained = "sbatch -q high -n4 -N1 --wrap true";
    says(&site, explained, 0, "Submitted batch job 4\n", "");
    site.system.wait_until("it waits", || site.system.ok(&["explain", "4"]).contains("3 cores of all in class high"));
}

/// SL-L-07: the QOS that `sacctmgr` shows for an association are those that its user may use, from its own list or that
/// of an account above it; `qos+=` adds to that list. Operators may use every QOS.
#[test]
fn a_user_may_use_the_qos_that_are_shown_and_no_others() {
    let system = System::stopped();
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let address = address.expect("a free port");
    system.write("tokens", "a-token-for-nobody-only nobody\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(system.path("tokens"), mode).expect("its own file");
    let tokens = system.path("tokens").display().to_string();
    let gateway = format!("[gateway]\nlisten = \"{address}\"\ntokens_file = \"{tokens}\"\n");
    let site = Site::on(system, &format!("{CONFIGURATION}{gateway}"));
    let as_nobody =
        |line: &str| site.run(&format!("MUSTER_SERVER=http://{address} MUSTER_TOKEN=a-token-for-nobody-only {line}"));
    let invalid = "sbatch: error: Batch job submission failed: Invalid qos specification\n";
    let refused = |line: &str| {
        let Output { status, stderr, .. } = as_nobody(line);
        assert_eq!((status, stderr.as_str()), (1, invalid), "{line}");
    };
    let class_of = |line: &str| {
        let Output { status, stdout, stderr } = as_nobody(&format!("sbatch --parsable -H {line} --wrap true"));
        assert_eq!(status, 0, "{line}: {stderr}");
        site.ok(&format!("squeue -h -o %q -j {stdout}"))
    };
    let shows = |list: &str| {
        assert_eq!(site.ok("sacctmgr -nP show assoc user=nobody format=qos"), format!("{list}\n"));
    };
    site.ok("sacctmgr -i add account physics");
    site.ok("sacctmgr -i add account optics parent=physics");
    site.ok("sacctmgr -i add user nobody account=optics");
    site.ok("sacctmgr -i add qos long");
    shows("normal");
    refused("sbatch -q long --wrap true");
    assert_eq!([class_of(""), class_of("-q normal")], ["normal\n", "normal\n"]);
    let job = site.ok("squeue -h -o %i | head -n1");
    let Output { status, stderr, .. } = as_nobody(&format!("scontrol update qos=long jobid={job}"));
    assert_eq!((status, stderr), (1, format!("Invalid qos specification for job {job}")));
    site.ok("sacctmgr -i modify user nobody set qos+=long");
    shows("long,normal");
    assert_eq!([class_of("-q long"), class_of("-q normal"), class_of("")], ["long\n", "normal\n", "normal\n"]);
    site.ok("sacctmgr -i modify user nobody set defaultqos=long");
    assert_eq!(class_of(""), "long\n");
    site.ok("sacctmgr -i modify user nobody set qos-=normal");
    shows("long");
    refused("sbatch -q normal --wrap true");
    // Without a list of its own it has that of the parent account; a user with only one QOS uses that.
    site.ok("sacctmgr -i modify user nobody set defaultqos=-1 qos=''");
    shows("normal");
    site.ok("sacctmgr -i modify account physics set qos=long");
    shows("long");
    refused("sbatch -q normal --wrap true");
    assert_eq!(class_of(""), "long\n");
    // A QOS that the user may not use cannot be the default.
    assert_eq!(site.run("sacctmgr -i modify user nobody set defaultqos=normal").status, 1);
    // Operators may use every QOS.
    site.ok("sacctmgr -i add user root account=optics");
    site.ok("sbatch -H -q normal --wrap true");
}

/// A job whose QOS preempts that of a running one starts in its place. The other waits again, or is cancelled if its QOS
/// says so.
#[test]
fn a_qos_preempts_another() {
    let site = site();
    site.system.write("order.toml", "version = 1\norder = [\"priority\"]\n");
    site.system.ok(&["config", "apply", "--policy", "order.toml"]);
    site.ok("sacctmgr -i add qos low");
    site.ok("sacctmgr -i add qos gone preemptmode=cancel gracetime=3600");
    site.ok("sacctmgr -i add qos high priority=100 preempt=low,gone");
    says(
        &site,
        "sacctmgr -nP show qos high,gone format=name,preempt,preemptmode,gracetime",
        0,
        "gone||cancel|01:00:00\nhigh|gone,low|cluster|00:00:00\n",
        "",
    );
    let config = site.ok("scontrol show config");
    assert!(config.lines().any(|line| line.starts_with("PreemptType ") && line.ends_with("= preempt/qos")), "{config}");
    let shown = |job: &str| site.ok(&format!("squeue -h -j {job} -o %t"));
    for (qos, number, ended) in [("low", 1, None), ("gone", 3, Some("PREEMPTED"))] {
        let (victim, gains) = (number.to_string(), (number + 1).to_string());
        site.ok(&format!("sbatch -q {qos} --requeue -N4 --exclusive --wrap 'sleep 60'"));
        site.system.wait_until("the job runs", || shown(&victim) == "R\n");
        site.ok("sbatch -q high -N4 --exclusive --wrap 'sleep 60'");
        site.system.wait_until("the other runs in its place", || shown(&gains) == "R\n");
        match ended {
            None => assert_eq!(shown(&victim), "PD\n"),
            Some(state) => {
                let states = site.ok(&format!("sacct -X -n -P -j {victim} -o state"));
                assert_eq!(states, format!("{state}\n"));
            }
        }
        site.ok(&format!("scancel {gains}"));
        if ended.is_none() {
            site.system.wait_until("it runs again", || shown(&victim) == "R\n");
            site.ok(&format!("scancel {victim}"));
            site.is_over(&victim);
        }
    }
}

/// SL-C-38: a job of a partition with a higher `PriorityTier` starts in the place of a running one whose partition lets its
/// jobs make way, until the partition no longer does.
#[test]
fn a_partition_preempts_another() {
    let site = site();
    site.ok("scontrol create partition=low prioritytier=1 preemptmode=requeue gracetime=2");
    site.ok("scontrol create partition=high prioritytier=9 maxtime=60");
    let shown = site.ok("scontrol -o show partition low");
    assert!(
        shown.contains(" PriorityTier=1 ")
            && shown.contains(" PreemptMode=REQUEUE ")
            && shown.contains(" GraceTime=2 ")
    );
    let config = site.ok("scontrol show config");
    let has = |key: &str, value: &str| {
        config.lines().any(|line| line.starts_with(key) && line.ends_with(&format!("= {value}")))
    };
    assert!(has("PreemptType ", "preempt/partition_prio") && has("PreemptMode ", "REQUEUE"), "{config}");
    let state = |job: &str| site.ok(&format!("squeue -h -j {job} -o %t"));
    let victim = site.ok("sbatch --parsable -p low --requeue -N4 --exclusive --wrap 'sleep 600'").trim().to_owned();
    site.system.wait_until("the job runs", || state(&victim) == "R\n");
    let gains = site.ok("sbatch --parsable -p high -N4 --exclusive --wrap 'sleep 600'").trim().to_owned();
    site.system.wait_until("the other runs in its place", || state(&gains) == "R\n");
    assert_eq!(state(&victim), "PD\n");
    site.ok(&format!("scancel {gains}"));
    site.system.wait_until("it runs again", || state(&victim) == "R\n");
    site.ok("scontrol update partition=low preemptmode=off");
    assert!(site.ok("scontrol -o show partition low").contains(" PreemptMode=OFF "));
    let waits = site.ok("sbatch --parsable -p high -N4 --exclusive --wrap 'sleep 600'").trim().to_owned();
    let reason = || site.ok(&format!("squeue -h -j {waits} -o %r"));
    site.system.wait_until("it was planned", || reason() == "Resources\n");
    assert_eq!(state(&victim), "R\n", "it stays");
    // Other ways to make room.
    site.ok(&format!("scancel {victim} {waits}"));
    site.is_over(&waits);
    let submit = |partition: &str| {
        let line = format!("sbatch --parsable -p {partition} -N1 -n4 -w node1 --mem=100 --wrap 'sleep 600'");
        site.ok(&line).trim().to_owned()
    };
    for (mode, during, afterwards) in [("suspend", "S\n", "R\n"), ("cancel", "", "")] {
        site.ok(&format!("scontrol update partition=low preemptmode={mode}"));
        let victim = submit("low");
        site.system.wait_until("the job runs", || state(&victim) == "R\n");
        let gains = submit("high");
        let has_its_place = || state(&gains) == "R\n" && state(&victim) == during;
        site.system.wait_until("the other runs in its place", has_its_place);
        site.ok(&format!("scancel {gains}"));
        site.is_over(&gains);
        site.system.wait_until("it continues or is gone", || state(&victim) == afterwards);
        if afterwards.is_empty() {
            assert_eq!(site.ok(&format!("sacct -X -n -P -j {victim} -o state")), "PREEMPTED\n");
        } else {
            site.ok(&format!("scancel {victim}"));
            site.is_over(&victim);
        }
    }
    // A value that is taken back is gone, and the rest of the partition stays as it was.
    site.ok("scontrol update partition=high maxtime=UNLIMITED maxnodes=4 qos=");
    let (_, told) = site.fails("scontrol update partition=high qos=nosuch");
    assert!(told.contains("Invalid qos specification"), "{told}");
    let shown = site.ok("scontrol -o show partition high");
    assert!(
        shown.contains(" MaxTime=UNLIMITED ") && shown.contains(" MaxNodes=4 ") && shown.contains(" PriorityTier=9 ")
    );
}

/// A running job of a QOS with `PreemptMode=suspend` stops while the other has its cores, and continues by itself.
#[test]
fn a_qos_suspends_another() {
    let site = site();
    site.ok("sacctmgr -i add qos low preemptmode=suspend");
    site.ok("sacctmgr -i add qos high priority=100 preempt=low");
    says(&site, "sacctmgr -nP show qos low format=name,preemptmode", 0, "low|suspend\n", "");
    let shown = |job: &str| site.ok(&format!("squeue -h -j {job} -o %t"));
    let submit = |qos: &str, script: &str| {
        let line = format!("sbatch --parsable -q {qos} -N1 -n4 -w node1 --mem=100 --wrap '{script}'");
        site.ok(&line).trim().to_owned()
    };
    let low = submit("low", "while :; do date +%N > beat; sleep 0.05; done");
    site.system.wait_until("the job runs", || shown(&low) == "R\n");
    site.system.wait_until("its script runs", || site.system.path("beat").exists());
    let high = submit("high", "while [ ! -e go ]; do sleep 0.05; done");
    site.system.wait_until("the other runs in its place", || shown(&high) == "R\n" && shown(&low) == "S\n");
    let told = || site.system.ok(&["job", "events", &low]);
    assert!(told().contains(&format!("was suspended to make way for job {high}")), "{}", told());
    let late = submit("normal", "sleep 60");
    let beat = || std::fs::read(site.system.path("beat")).unwrap_or_default();
    site.system.write("go", "");
    site.is_over(&high);
    site.system.wait_until("it continues", || shown(&low) == "R\n");
    let before = beat();
    site.system.wait_until("its script continues", || beat() != before);
    assert_eq!(shown(&late), "PD\n", "nobody else got its cores");
    site.ok(&format!("scancel {low}"));
    site.system.wait_until("the cores are free", || shown(&late) == "R\n");
}

/// What jobs may use over time is counted in minutes, and so is what is shown.
#[test]
fn minutes_of_an_account_are_used_up() {
    let site = site();
    site.ok("sacctmgr -i modify account test set grptresmins=cpu=90 grpwall=10:00:00");
    says(
        &site,
        "sacctmgr -nP show assoc account=test format=user,grptresmins,grpwall",
        0,
        "|cpu=90|10:00:00\nroot||\n",
        "",
    );
    says(&site, "sshare -n -P -A test -a -o account,user,grptresmins | head -n 1", 0, " test||cpu=90\n", "");
    says(&site, "sbatch -t 60 --wrap 'sleep 60'", 0, "Submitted batch job 1\n", "");
    says(&site, "sbatch -t 60 --wrap 'sleep 60'", 0, "Submitted batch job 2\n", "");
    let shown = |job: &str, format: &str| site.ok(&format!("squeue -h -j {job} -o '{format}'"));
    site.system.wait_until("the first runs", || shown("1", "%t") == "R\n");
    site.system.wait_until("the second waits", || shown("2", "%t %r") == "PD AssocGrpCPUMinutesLimit\n");
    site.ok("scancel 1");
    site.system.wait_until("the rest of its minutes is free again", || shown("2", "%t") == "R\n");
    // The time of jobs counts however many cores they have.
    site.ok("sacctmgr -i modify account test set grptresmins=cpu=9000 grpwall=01:30:00");
    says(&site, "sbatch -t 60 --wrap 'sleep 60'", 0, "Submitted batch job 3\n", "");
    site.system.wait_until("the third waits", || shown("3", "%t %r") == "PD AssocGrpWallLimit\n");
    site.ok("sacctmgr -i modify account test set grpwall=10:00:00");
    site.system.wait_until("there is time for it", || shown("3", "%t") == "R\n");
    let bad = " Unknown option: grptresmins=mem=5\n Use keyword 'where' to modify condition";
    let (status, error) = site.fails("sacctmgr -i modify account test set grptresmins=mem=5");
    assert_eq!(status, 1, "{error}");
    assert_ne!(error, bad, "the key is known, the value is not");
}

/// `GrpTRESRunMins` limits the minutes that running jobs still have.
#[test]
fn minutes_that_are_left_to_running_jobs_are_limited() {
    let site = site();
    site.ok("sacctmgr -i modify account test set grptresrunmins=cpu=90");
    says(&site, "sacctmgr -nP show assoc account=test format=user,grptresrunmins", 0, "|cpu=90\nroot|\n", "");
    says(&site, "sbatch -t 60 --wrap 'sleep 60'", 0, "Submitted batch job 1\n", "");
    says(&site, "sbatch -t 60 --wrap 'sleep 60'", 0, "Submitted batch job 2\n", "");
    let shown = |job: &str, format: &str| site.ok(&format!("squeue -h -j {job} -o '{format}'"));
    site.system.wait_until("the first runs", || shown("1", "%t") == "R\n");
    site.system.wait_until("the second waits", || shown("2", "%t %r") == "PD AssocGrpCPURunMinutesLimit\n");
    site.ok("scontrol update jobid=2 timelimit=20");
    site.system.wait_until("what it asks for now fits in", || shown("2", "%t") == "R\n");
}

/// A coordinator is made, shown and taken away, and manages the account and those below it.
#[test]
fn coordinators_are_made_shown_and_taken_away() {
    let site = site();
    let added = " Adding Coordinator User(s)\n  root\n To Account(s) and all sub-accounts\n  test\n";
    says(&site, "sacctmgr -i add coordinator account=test names=root", 0, added, "");
    says(&site, "sacctmgr -nP show account test withcoord format=account,coord", 0, "test|root\n", "");
    says(&site, "sacctmgr -nP show user root withcoord format=user,coord", 0, "root|test\n", "");
    let none = " You specified a non-existant user 'ann'.\n";
    says(&site, "sacctmgr -i add coordinator account=test names=ann", 1, "", none);
    let removed = " Removing Coordinators with user name\n  root\n From all accounts\n Removed Coordinators (sub \
                   accounts not listed)...\n  U = root      A = test      \n";
    says(&site, "sacctmgr -i delete coordinator names=root", 0, removed, "");
    says(&site, "sacctmgr -nP show account test format=coord", 0, "\n", "");
}

/// SL-L-02, SL-L-07: the level of a user says what it may do, and coordinators control the jobs and users of their accounts.
/// Nobody raises his own level.
#[test]
fn operators_and_coordinators_do_what_their_level_allows() {
    const DONE: (bool, bool) = (true, false);
    const DENIED: (bool, bool) = (false, true);
    let site = site_with_nobody();
    site.ok("sacctmgr -i add user ann account=test");
    let tries = |line: &str| {
        let Output { status, stderr, .. } = as_nobody(&site, line);
        (status == 0, stderr.contains("Access/permission denied"))
    };
    let level = |user: &str| site.ok(&format!("sacctmgr -nP show user {user} format=adminlevel"));
    let drain = "scontrol update nodename=node1 state=drain reason=disk";
    let rise = "sacctmgr -i modify user nobody set adminlevel=admin";
    let give = "sacctmgr -i modify user ann set adminlevel=operator";
    assert_eq!([tries(drain), tries(rise), tries(give)], [DENIED; 3], "no level");
    for (given, shown, drains, gives) in [
        ("operator", "Operator\n", DONE, DENIED),
        ("admin", "Administrator\n", DONE, DONE),
        ("none", "None\n", DENIED, DENIED),
    ] {
        site.ok(&format!("sacctmgr -i modify user nobody set adminlevel={given}"));
        assert_eq!(level("nobody"), shown);
        assert_eq!([tries(drain), tries(give)], [drains, gives], "{given}");
        assert_eq!(level("ann"), if gives == DONE { "Operator\n" } else { "None\n" });
        if given != "admin" {
            assert_eq!((tries(rise), level("nobody")), (DENIED, shown.to_owned()), "{given}");
        }
        if drains == DONE {
            site.ok("scontrol update nodename=node1 state=resume");
        }
        if gives == DONE {
            site.ok("sacctmgr -i modify user ann set adminlevel=none");
        }
    }
    let submit = || site.ok("sbatch --parsable -H --wrap true").trim().to_owned();
    let limits = |most: u32| tries(&format!("sacctmgr -i modify user ann set maxjobs={most}"));
    let first = submit();
    let cancel = format!("scancel {first}");
    assert_eq!([tries(&cancel), limits(2)], [DENIED; 2], "not his account");
    site.ok("sacctmgr -i add coordinator account=test names=nobody");
    assert_eq!([tries(&cancel), limits(3)], [DONE; 2], "his account");
    site.is_over(&first);
    assert_eq!(site.ok("sacctmgr -nP show assoc user=ann format=maxjobs"), "3\n");
    assert_eq!([tries(drain), tries(give)], [DENIED; 2], "it is about the account");
    site.ok("sacctmgr -i delete coordinator names=nobody");
    assert_eq!([tries(&format!("scancel {}", submit())), limits(4)], [DENIED; 2], "no longer his account");
}

/// SL-C-38, SL-L-07: what a partition says of jobs when it was made while the system runs: their nodes, who submits them, and
/// the QOS whose limits they are under. Operators may exceed the first two.
#[test]
fn partitions_refuse_jobs_by_size_user_and_qos() {
    let site = site_with_nobody();
    site.ok("scontrol create partition=fast minnodes=2 maxnodes=2");
    let theirs = |options: &str| as_nobody(&site, &format!("sbatch -H {options} --wrap true"));
    let refused = |options: &str, text: &str| {
        let Output { status, stderr, .. } = theirs(options);
        assert_eq!(status, 1, "{options}");
        assert!(
            stderr.ends_with(&format!("sbatch: error: Batch job submission failed: {text}\n")),
            "{options}: {stderr}"
        );
    };
    let taken = |options: &str| {
        let Output { status, stderr, .. } = theirs(options);
        assert_eq!((status, stderr.as_str()), (0, ""), "{options}");
    };
    for nodes in [1, 3] {
        refused(&format!("-p fast -N{nodes}"), "Node count specification invalid");
        site.ok(&format!("sbatch -H -p fast -N{nodes} --wrap true"));
    }
    taken("-p fast -N2");
    site.ok("scontrol update partition=fast rootonly=yes");
    refused("-p fast -N2", "Access/permission denied");
    site.ok("sbatch -H -p fast -N2 --wrap true");
    site.ok("scontrol update partition=fast rootonly=no");
    taken("-p fast -N2");
    site.ok("sacctmgr -i add qos one maxsubmitpu=1");
    site.ok("scontrol create partition=single qos=one");
    taken("-p single");
    refused("-p single", POLICY.trim_start_matches("Batch job submission failed: "));
    taken("");
    site.ok("scontrol update partition=single qos=");
    taken("-p single");
}
