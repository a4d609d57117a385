//! Files that are copied for jobs of PBS: real files, a copy command of the site, and mail.

use crate::{
    slurm::Site,
    system::{Output, System},
};
use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
};

/// The copy command of these tests: `fs` is this host, and a copy waits as long as there is a file `wait`.
const COPIER: &str = r#"#!/bin/sh
folder=$(dirname "$0")
echo "$*" >> "$folder/copied"
while [ -e "$folder/wait" ]; do sleep 0.05; done
exec cp -rp -- "${1#fs:}" "${2#fs:}"
"#;

/// A site with that copy command, and a mail program that keeps what it is told.
fn site(retry_seconds: u32) -> Site {
    let folder = System::stopped();
    let (copier, mailer, mails) = (folder.path("copier"), folder.path("mailer"), folder.path("mails"));
    folder.write("copier", COPIER);
    folder.write("mailer", &format!("#!/bin/sh\n(echo \"$2 -> $4\"; cat) >> {}\n", mails.display()));
    folder.write("mails", "");
    for (path, mode) in [(folder.path(""), 0o755), (copier.clone(), 0o755), (mailer.clone(), 0o755), (mails, 0o666)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    }
    let configuration = format!(
        "[cluster]\nname = \"alpha\"\ndefault_queue = \"workq\"\n[[queues]]\nname = \"workq\"\n\
         [executor]\ncopy_command = [\"{}\"]\n[staging]\ncopy_retry_seconds = {retry_seconds}\n\
         [notifier.mail]\nprogram = \"{}\"\n",
        copier.display(),
        mailer.display()
    );
    Site::on(folder, &configuration)
}

fn shown(site: &Site, job: &str, name: &str) -> String {
    let full = site.ok(&format!("qstat -x -f {job}"));
    let line = full.lines().find_map(|line| line.trim().strip_prefix(&format!("{name} = ")).map(str::to_owned));
    line.unwrap_or_default()
}

fn wait_for(site: &Site, job: &str, name: &str, value: &str) {
    site.system.wait_until(&format!("{name} of {job} is {value}"), || shown(site, job, name) == value);
}

/// PBS-G-01, PBS-G-08
#[test]
fn files_come_before_the_job_and_go_after_its_end() {
    let site = site(1_800);
    let folder = site.system.path("").display().to_string();
    let folder = folder.trim_end_matches('/');
    site.system.write("source", "hello\n");
    site.system.write("wait", "");
    let lists = format!("stagein={folder}/in@fs:{folder}/source,stageout={folder}/out@fs:{folder}/result");
    site.system.write("job.sh", &format!("tr a-z A-Z < {folder}/in > {folder}/out\n"));
    assert_eq!(site.ok(&format!("qsub -W {lists} job.sh")), "1.alpha\n");
    // It counts as running and holds its node.
    wait_for(&site, "1", "substate", "15");
    assert_eq!(shown(&site, "1", "job_state"), "R");
    site.system.wait_until("the copy command is called", || site.system.read("copied").contains("source"));
    assert_eq!(site.system.read("copied"), format!("fs:{folder}/source {folder}/in\n"));
    assert!(!site.system.path("in").exists() && !site.system.path("out").exists(), "the job has not begun");
    assert!(site.ok("pbsnodes node1").contains("jobs = 1.alpha"), "its node is its own");
    fs::remove_file(site.system.path("wait")).expect("it is there");
    site.system.wait_until("the result is copied", || site.system.path("result").exists());
    wait_for(&site, "1", "job_state", "F");
    assert_eq!(site.system.read("result"), "HELLO\n");
    site.system.wait_until("the end of the copying is told", || {
        site.ok("tracejob 1").contains("the files of job 1 were copied from node node1, 6 bytes")
    });
    let trace = site.ok("tracejob 1");
    for line in ["files of job 1 are copied to node node1", "the files of job 1 were copied to node node1, 6 bytes"] {
        assert!(trace.contains(line), "{line}:\n{trace}");
    }
    assert_eq!(site.system.read("mails"), "", "all went well");
}

/// W16; PBS-G-03, PBS-G-04
#[test]
fn a_job_whose_files_cannot_be_copied_waits_and_tries_again() {
    let site = site(10);
    let folder = site.system.path("").display().to_string();
    let folder = folder.trim_end_matches('/');
    // No host: the file is copied on the node itself.
    let list = format!("stagein={folder}/in@{folder}/missing");
    assert_eq!(site.ok(&format!("qsub -m n -W {list} -- cp {folder}/in {folder}/out")), "1.alpha\n");
    wait_for(&site, "1", "substate", "37");
    assert_eq!(shown(&site, "1", "job_state"), "W");
    assert!(!shown(&site, "1", "Execution_Time").is_empty());
    assert!(!site.ok("pbsnodes node1").contains("jobs ="), "its node is free");
    site.system.wait_until("the owner is told", || site.system.read("mails").contains("Reason"));
    let mail = site.system.read("mails");
    let owner = site.ok("id -un");
    assert!(mail.starts_with(&format!("PBS JOB 1 -> {}", owner.trim())), "{mail}");
    assert!(mail.contains(&format!("{folder}/missing could not be copied to {folder}/in: ")), "{mail}");
    assert!(mail.contains("No such file or directory"), "{mail}");
    // The owner reads the reason in the comment and in the trace as well.
    let full = site.ok("qstat -f -w 1");
    assert!(full.contains("comment = Not Running: ") && full.contains("could not be copied to"), "{full}");
    let traced = site.ok("tracejob 1");
    assert!(traced.contains("could not be copied to node") && traced.contains("No such file or directory"), "{traced}");
    site.system.write("missing", "late\n");
    site.system.wait_until("the next attempt succeeds", || site.system.read("out") == "late\n");
    wait_for(&site, "1", "job_state", "F");
}

/// PBS-G-03: results stay where they are.
#[test]
fn results_that_cannot_be_copied_are_told_by_mail_and_stay() {
    let site = site(1_800);
    let folder = site.system.path("").display().to_string();
    let folder = folder.trim_end_matches('/');
    let list = format!("stageout={folder}/out@fs:{folder}/no/such/folder");
    site.ok(&format!("qsub -m n -W {list} -- cp /etc/hostname {folder}/out"));
    site.system.wait_until("the owner is told", || site.system.read("mails").contains("Reason"));
    assert!(site.system.read("mails").contains("no/such/folder"), "{}", site.system.read("mails"));
    assert!(site.system.path("out").exists());
    assert_eq!(shown(&site, "1", "Exit_status"), "0", "the job has succeeded all the same");
}

/// PBS-G-02, PBS-G-05, PBS-G-06
#[test]
fn files_are_copied_ahead_on_request() {
    let site = site(1_800);
    let folder = site.system.path("").display().to_string();
    let folder = folder.trim_end_matches('/');
    site.system.write("source", "hello\n");
    site.ok("qstop workq");
    let list = format!("stagein={folder}/in@fs:{folder}/source");
    site.ok(&format!("qsub -W {list} -- sh -c 'hostname > {folder}/out; echo $MUSTER_NODELIST >> {folder}/out'"));
    site.ok("qsub -- true");
    assert_eq!(shown(&site, "1", "substate"), "11");
    let (status, error) = site.fails("pbs_stagein 2");
    assert!(status != 0 && error.contains("no files to copy"), "{error}");
    site.system.write("wait", "");
    site.ok("pbs_stagein -H node3 1");
    wait_for(&site, "1", "substate", "14");
    assert_eq!(shown(&site, "1", "job_state"), "Q");
    fs::remove_file(site.system.path("wait")).expect("it is there");
    wait_for(&site, "1", "substate", "16");
    assert_eq!((site.system.read("in").as_str(), shown(&site, "1", "job_state")), ("hello\n", "Q".to_owned()));
    assert!(site.fails("pbs_stagein 1").1.contains("copied already"));
    site.ok("qstart workq");
    site.system.wait_until("it runs", || site.system.path("out").exists());
    wait_for(&site, "1", "job_state", "F");
    assert!(site.system.read("out").ends_with("node3\n"), "it runs where its files are: {}", site.system.read("out"));
    assert_eq!(site.system.read("copied").lines().count(), 1, "they are copied once");
}

/// PBS-G-07: of the jobs that wait only for room, the policy has the files of the first ones copied ahead; they hold no nodes.
#[test]
fn the_policy_has_files_copied_ahead() {
    let site = site(1_800);
    let folder = site.system.path("").display().to_string();
    let folder = folder.trim_end_matches('/');
    fs::create_dir(site.system.path("sched_priv")).expect("there is room");
    site.system.write("sched_priv/sched_config", "sort_by: no_sort\nmuster_prestage: 1\n");
    site.system.ok(&["pbs", "load", &site.system.path("sched_priv").display().to_string()]);
    site.system.write("source", "hello\n");
    site.ok("qsub -l select=4:ncpus=4 -- sleep 600");
    wait_for(&site, "1", "job_state", "R");
    for number in 2..=3 {
        site.ok(&format!(
            "qsub -l ncpus=4 -W stagein={folder}/in{number}@fs:{folder}/source -- cp in{number} out{number}"
        ));
    }
    wait_for(&site, "2", "substate", "16");
    assert_eq!(shown(&site, "2", "job_state"), "Q");
    assert_eq!(site.system.read("in2"), "hello\n");
    assert_eq!((shown(&site, "3", "substate").as_str(), site.system.path("in3").exists()), ("11", false));
    site.ok("qdel 1");
    wait_for(&site, "2", "job_state", "F");
    wait_for(&site, "3", "job_state", "F");
    assert_eq!(site.system.read("copied").lines().count(), 2, "each is copied once");
}

/// F0: copies run as the owner of the job, never as root with the words of a user.
#[test]
fn copies_are_made_by_the_owner() {
    if !nix::unistd::Uid::effective().is_root() {
        return muster_surroundings::skipped("only root can copy as somebody else");
    }
    let system = System::start_for_others();
    fs::set_permissions(system.path(""), Permissions::from_mode(0o755)).expect("it is ours");
    let open = system.path("open");
    fs::create_dir(&open).expect("the folder is new");
    fs::set_permissions(&open, Permissions::from_mode(0o777)).expect("it is ours");
    system.write("secret", "root's\n");
    fs::set_permissions(system.path("secret"), Permissions::from_mode(0o600)).expect("it is ours");
    system.write("public", "everybody's\n");
    let submit = |source: &str| {
        let list = format!("stagein={}/in@{}", open.display(), system.path(source).display());
        let Output { status, stdout, stderr } = system.run_as_nobody(&["pbs", "qsub", "-W", &list, "--", "true"]);
        assert_eq!(status, 0, "{stderr}");
        stdout.split('.').next().unwrap_or_default().trim().to_owned()
    };
    let job = submit("public");
    system.wait_until("the file is there", || open.join("in").exists());
    system.wait_for_state(&job, "finished");
    let nobody = nix::unistd::User::from_name("nobody").ok().flatten().expect("every host has it");
    assert_eq!(fs::metadata(open.join("in")).expect("it is there").uid(), nobody.uid.as_raw());
    let job = submit("secret");
    system.wait_until("it cannot be read", || {
        let shown = system.run(&["pbs", "qstat", "-f", &job]);
        shown.stdout.contains("substate = 37")
    });
    assert_eq!(system.read("open/in"), "everybody's\n");
}
