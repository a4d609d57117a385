//! Mail about jobs of Slurm's users, sent by a mail program of the site.

use crate::{slurm::Site, system::System};

/// A site whose mail program records how it is called and as which user.
fn site() -> Site {
    let folder = System::stopped();
    let (program, calls) = (folder.path("mailer"), folder.path("calls"));
    // The call comes last, so its text is complete when it is seen.
    let script = format!("cat >>{0}.said; echo \"$(id -u) $1 <$2> $3 $4\" >>{0}", calls.display());
    folder.write("mailer", &format!("#!/bin/sh\n{script}\n"));
    folder.write("calls", "");
    folder.write("calls.said", "");
    // An unprivileged account runs the one and writes the other.
    for (path, mode) in
        [(folder.path(""), 0o755), (program.clone(), 0o755), (calls, 0o666), (folder.path("calls.said"), 0o666)]
    {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("it is ours");
    }
    Site::on(folder, &format!("[notifier.mail]\nprogram = \"{}\"\n", program.display()))
}

/// The user id that mail programs run as: `nobody`, or the user of the test if that is not root.
fn mail_user() -> u32 {
    let own = nix::unistd::Uid::effective();
    let nobody = || nix::unistd::User::from_name("nobody").ok().flatten().expect("every host has it").uid;
    if own.is_root() { nobody().as_raw() } else { own.as_raw() }
}

/// Waits until the mail program was called this often, and returns the calls, without what differs from run to run.
fn calls(site: &Site, count: usize) -> Vec<String> {
    let read = || std::fs::read_to_string(site.system.path("calls")).unwrap_or_default();
    site.system.wait_until(&format!("{count} mails are sent"), || read().lines().count() >= count);
    read().lines().map(without_time).collect()
}

/// `Run time 00:00:08` is `Run time <T>`.
fn without_time(line: &str) -> String {
    match line.split_once(" time ") {
        Some((before, after)) => format!("{before} time <T>{}", after.get(8..).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// SL-C-15, SL-M-06, EX-22
#[test]
fn mail_of_a_job_with_components_is_one_at_its_start_and_one_at_its_end() {
    let site = site();
    let user = mail_user();
    let submit = "sbatch --parsable -J bash -n1 --mail-type=ALL --mail-user=adam : -n1 --mail-type=ALL --wrap";
    let job = site.ok(&format!("{submit} 'sleep 1000'")).trim().to_owned();
    site.system.wait_until("it runs", || site.ok(&format!("squeue -h -j {job}+0 -o %T")) == "RUNNING\n");
    site.ok(&format!("scancel {job}"));
    site.is_over(&job);
    assert_eq!(
        calls(&site, 2),
        [
            format!("{user} -s <Slurm Job_id={job} Name=bash Began, Queued time <T>> -- adam"),
            format!("{user} -s <Slurm Job_id={job} Name=bash Ended, Run time <T>, CANCELLED, ExitCode 0> -- adam"),
        ]
    );
    let failing = site.ok("sbatch --parsable -W -J three --mail-type=FAIL --mail-user=adam --wrap 'exit 3' || true");
    let failing = failing.trim();
    let failed =
        format!("{user} -s <Slurm Job_id={failing} Name=three Failed, Run time <T>, FAILED, ExitCode 3> -- adam");
    assert_eq!(calls(&site, 3)[2], failed);
    let array = site.ok("sbatch --parsable -W -a 1-2 -J two --mail-type=BEGIN,END --mail-user=adam --wrap true");
    let array = array.trim();
    let summary = format!("{user} -s <Slurm Array Summary Job_id={array}_* ({array}) Name=two");
    // Two programs send them at the same time.
    let mut sent = calls(&site, 5).split_off(3);
    sent.sort_unstable();
    assert_eq!(
        sent,
        [format!("{summary} Began> -- adam"), format!("{summary} Ended, COMPLETED, ExitCode [0-0]> -- adam")]
    );
}

/// F0: a mail program takes an address literally, and the submitter chooses it; so everything that is no address is
/// refused, by every way in.
#[test]
fn what_is_no_address_is_refused_and_no_mail_program_sees_it() {
    let site = site();
    let exploit = "--exec=!id>/tmp/ran@x;cp /etc/shadow /tmp/s";
    for address in [exploit, "-oQ", "a b", "|id@x"] {
        let own = site.system.run(&["submit", &format!("--mail={address}"), "--", "true"]);
        assert!(own.status == 1 && own.stderr.contains("notifications.sink.mail: the address"), "{own:?}");
        let slurm = site.run(&format!("sbatch --mail-type=ALL '--mail-user={address}' --wrap true"));
        assert!(slurm.status == 1 && slurm.stderr.contains("notifications.sink.mail: the address"), "{slurm:?}");
    }
    let job = site.system.submit(&["--mail", "ada@example.org", "--", "true"]);
    site.system.wait_for_state(&job, "finished");
    let sent = calls(&site, 2);
    let user = mail_user();
    assert!(sent.iter().all(|call| call.starts_with(&format!("{user} -s <[muster] job {job}"))), "{sent:?}");
    assert!(sent.iter().all(|call| call.ends_with("> -- ada@example.org")), "{sent:?}");
}

/// D27
#[test]
fn mail_at_the_end_says_how_long_it_ran_how_it_ended_and_where_its_output_is() {
    let site = site();
    let options =
        ["--mail", "ada", "--notify-on", "ended", "--name", "a/b", "-o", "%x-%j.out", "--", "sh", "-c", "exit 3"];
    let job = site.system.submit(&options);
    calls(&site, 1);
    let said = site.system.read("calls.said");
    let folder = site.system.path("").canonicalize().expect("it is there");
    let output = format!("Output     {}/a_b-{job}.out", folder.display());
    assert!(said.lines().any(|line| line.starts_with("Run time   00:00:")), "{said}");
    assert!(said.lines().any(|line| line == "Exit       exit status 3"), "{said}");
    assert!(said.lines().any(|line| line == output), "{output}:\n{said}");
}

/// Programs of triggers run once, with what Slurm gives them: the number of the job, or the nodes.
#[test]
fn a_trigger_runs_its_program_when_a_job_ends_or_a_node_goes_down() {
    let site = Site::start();
    site.system.write("tell.sh", "#!/bin/sh\necho \"$(id -un) $*\" >> $(dirname $0)/told\nexit 1\n");
    site.ok("chmod +x tell.sh");
    let program = site.system.path("tell.sh").display().to_string();
    let told = || if site.system.path("told").exists() { site.system.read("told") } else { String::new() };
    let job = site.ok("sbatch --parsable -H --wrap true").trim().to_owned();
    site.ok(&format!("strigger --set -j {job} --fini -p '{program} with two'"));
    site.ok(&format!("strigger --set --node --down -p {program}"));
    let user = site.ok("id -un").trim().to_owned();
    let listed = site.ok("strigger --get -N");
    let words: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    let first = ["1", "job", &job, "fini", "0", &user, &program, "with", "two"];
    assert_eq!(words, [&first[..], &["2", "node", "*", "down", "0", &user, &program]]);
    assert_eq!(site.fails(&format!("strigger --set -j {job} --fini -p /nowhere")).0, 1);
    assert_eq!(told(), "");
    site.ok(&format!("scontrol release {job}"));
    site.system.wait_until("the end is told", || told() == format!("{user} with two {job}\n"));
    site.ok("scontrol update nodename=node[3-4] state=down reason=smoke");
    site.system.wait_until("the nodes are told", || told().ends_with(&format!("\n{user} node[3-4]\n")));
    assert_eq!(
        (told().lines().count(), site.ok("strigger --get").as_str()),
        (2, ""),
        "each runs once, even if it fails"
    );
    site.ok(&format!("strigger --set --node=node1 --drained --flags=PERM -p {program}"));
    assert_eq!(site.ok("strigger -v --clear --id=3 2>&1"), "strigger: trigger 3 cleared\n");
    let (status, why) = site.fails("strigger --clear --id=3");
    assert_eq!((status, why.as_str()), (1, "slurm_clear_trigger: no such trigger is set\n"));
    assert_eq!(site.ok("strigger -Q --clear --id=3"), "");
}
