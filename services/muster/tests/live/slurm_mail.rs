//! Mail about jobs of Slurm's users, by a mail program of the site.

use crate::{slurm::Site, system::System};

/// A site whose mail program writes down how it is called.
fn site() -> Site {
    let folder = System::stopped();
    let (program, calls) = (folder.path("mailer"), folder.path("calls"));
    folder.write("mailer", &format!("#!/bin/sh\necho \"$1 <$2> $3\" >> {}\n", calls.display()));
    let mut executable = std::fs::metadata(&program).expect("it is there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut executable, 0o755);
    std::fs::set_permissions(&program, executable).expect("it is ours");
    Site::on(folder, &format!("[notifier.mail]\nprogram = \"{}\"\n", program.display()))
}

/// Waits until the mail program was called so often, and gives the calls, with what differs from run to run cut out.
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
    let submit = "sbatch --parsable -J bash -n1 --mail-type=ALL --mail-user=adam : -n1 --mail-type=ALL --wrap";
    let job = site.ok(&format!("{submit} 'sleep 1000'")).trim().to_owned();
    site.system.wait_until("it runs", || site.ok(&format!("squeue -h -j {job}+0 -o %T")) == "RUNNING\n");
    site.ok(&format!("scancel {job}"));
    site.is_over(&job);
    assert_eq!(
        calls(&site, 2),
        [
            format!("-s <Slurm Job_id={job} Name=bash Began, Queued time <T>> adam"),
            format!("-s <Slurm Job_id={job} Name=bash Ended, Run time <T>, CANCELLED, ExitCode 0> adam"),
        ]
    );
    let failing = site.ok("sbatch --parsable -W -J three --mail-type=FAIL --mail-user=adam --wrap 'exit 3' || true");
    let failed =
        format!("-s <Slurm Job_id={} Name=three Failed, Run time <T>, FAILED, ExitCode 3> adam", failing.trim());
    assert_eq!(calls(&site, 3)[2], failed);
    let array = site.ok("sbatch --parsable -W -a 1-2 -J two --mail-type=BEGIN,END --mail-user=adam --wrap true");
    let array = array.trim();
    let summary = format!("-s <Slurm Array Summary Job_id={array}_* ({array}) Name=two");
    // Two programs send them at the same time.
    let mut sent = calls(&site, 5).split_off(3);
    sent.sort_unstable();
    assert_eq!(sent, [format!("{summary} Began> adam"), format!("{summary} Ended, COMPLETED, ExitCode [0-0]> adam")]);
}
