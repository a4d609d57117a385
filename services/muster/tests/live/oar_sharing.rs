//! Jobs of OAR that hold the same resources at the same time, and reservations, on a live system.

use crate::{slurm::Site, system::System};
use std::path::Path;

const CONFIGURATION: &str = r#"
[cluster]
name = "alpha"
default_queue = "default"

[[queues]]
name = "default"
"#;

fn site() -> Site {
    Site::on(System::stopped_in(Path::new("/var/tmp")), CONFIGURATION)
}

fn state(site: &Site, job: u64) -> String {
    let said = site.ok(&format!("oarstat -s -j {job}"));
    said.trim().rsplit(": ").next().unwrap_or_default().to_owned()
}

fn wait_for(site: &Site, job: u64, wanted: &str) {
    site.system.wait_until(&format!("job {job} is {wanted}"), || state(site, job) == wanted);
}

/// The value of a line of `oarstat -f`.
fn shown(site: &Site, job: u64, what: &str) -> String {
    let full = site.ok(&format!("oarstat -f -j {job}"));
    let line = full.lines().find_map(|line| line.trim().strip_prefix(&format!("{what} = ")).map(str::to_owned));
    line.unwrap_or_else(|| panic!("no {what}:\n{full}"))
}

/// OAR-T-40, OAR-G-05, W12: jobs with equal keys run at the same time on the same cores of the same nodes; those of other
/// forms, and those without a key, wait until the last of them has ended.
#[test]
fn jobs_with_equal_keys_run_on_the_same_cores() {
    let site = site();
    site.ok("oarsub -l nodes=1 'sleep 600'");
    for name in ["a", "b"] {
        let command = "grep Cpus_allowed_list /proc/self/status; sleep 600";
        site.ok(&format!("oarsub -n {name} -t timesharing=user,* -l nodes=2 '{command}'"));
    }
    for job in [1, 2, 3] {
        wait_for(&site, job, "Running");
    }
    assert_eq!(shown(&site, 2, "assigned_hostnames"), "node2+node3");
    let resources = shown(&site, 2, "assigned_resources");
    assert_eq!(shown(&site, 3, "assigned_resources"), resources);
    assert_eq!(shown(&site, 3, "types"), "timesharing=user,*");
    let allowed = |name: &str, job: u64| site.system.read(&format!("OAR.{name}.{job}.stdout"));
    site.system.wait_until("both say where they run", || !allowed("a", 2).is_empty() && !allowed("b", 3).is_empty());
    assert_eq!(allowed("a", 2), allowed("b", 3));

    site.ok("oarsub -n a -t timesharing=*,name -l nodes=3 'sleep 600'");
    site.ok("oarsub -l nodes=2,walltime=3 'sleep 600'");
    site.ok("oarsub -l core=2,walltime=0:30 'sleep 600'");
    wait_for(&site, 6, "Running");
    assert_eq!(shown(&site, 6, "assigned_hostnames"), "node4");
    assert_eq!((state(&site, 4).as_str(), state(&site, 5).as_str()), ("Waiting", "Waiting"));

    site.ok("oardel 2 6");
    wait_for(&site, 2, "Error");
    assert_eq!((state(&site, 3).as_str(), state(&site, 4).as_str()), ("Running", "Waiting"), "one of them is there");
    site.ok("oardel 3");
    wait_for(&site, 4, "Running");
    site.ok("oarsub -n a -t timesharing=*,name -l core=12,walltime=0:30 'sleep 600'");
    wait_for(&site, 7, "Running");
    assert_eq!(shown(&site, 7, "assigned_resources"), shown(&site, 4, "assigned_resources"));
    let (status, error) = site.fails("oarsub -t timesharing=*,* -t allowed=w true");
    assert_eq!(status, 8);
    assert!(error.contains("a job has one of timesharing, placeholder and allowed"), "{error}");
}

/// OAR-T-80: only jobs that hold the label run on resources that a placeholder holds; a restart of the system changes
/// nothing about that.
#[test]
fn only_holders_of_the_label_run_on_a_placeholder() {
    let mut site = site();
    site.ok("oarsub -t noop -t placeholder=maintenance -l nodes=4");
    wait_for(&site, 1, "Running");
    site.ok("oarsub 'sleep 600'");
    site.ok("oarsub -t allowed=other 'sleep 600'");
    site.ok("oarsub -t allowed=maintenance -l nodes=3 'sleep 600'");
    wait_for(&site, 4, "Running");
    let held = shown(&site, 4, "assigned_hostnames");
    let is_left = |node: &&str| !held.split('+').any(|other| other == *node);
    let left: Vec<&str> = ["node1", "node2", "node3", "node4"].into_iter().filter(is_left).collect();
    assert_eq!(left.len(), 1, "{held}");
    let config = site.system.path("site.toml").display().to_string();
    site.system.stop();
    site.system.restart(&["--nodes", "4", "--cpus", "4", "--memory", "4G", "--config", &config]);
    site.ok("oarsub -t allow=maintenance -l core=4,walltime=1 'sleep 600'");
    wait_for(&site, 5, "Running");
    assert_eq!(shown(&site, 5, "assigned_hostnames"), left[0], "guests do not overlap each other");
    assert_eq!((state(&site, 2).as_str(), state(&site, 3).as_str()), ("Waiting", "Waiting"));
    site.ok("oardel 1");
    wait_for(&site, 1, "Terminated");
    assert_eq!(state(&site, 2), "Waiting", "the guests are still there");
    site.ok("oardel 5");
    wait_for(&site, 2, "Running");
    wait_for(&site, 3, "Running");
}

/// A time so many seconds from now, as `-r` takes it.
fn in_seconds(site: &Site, seconds: u32) -> (String, i64) {
    let said = site.ok(&format!("date -d '+{seconds} seconds' '+%F %T %s'"));
    let (date, epoch) = said.trim().rsplit_once(' ').expect("three words");
    (date.to_owned(), epoch.parse().expect("seconds"))
}

/// OAR-G-11, OAR-G-12, OAR-G-13, OAR-G-15: the client says whether the start is promised and exits accordingly; a promised
/// reservation starts then, on whole nodes that nobody is planned into, and what has no room is told when it could run.
#[test]
fn reservations_are_promised_or_refused_and_kept() {
    let site = site();
    let (start, epoch) = in_seconds(&site, 30);
    let said = site.ok(&format!("oarsub -r '{start}' -l nodes=4,walltime=0:0:40 'date +%s; sleep 600'"));
    assert_eq!(said, "OAR_JOB_ID=1\nReservation mode: waiting validation...\nReservation valid --> OK\n");
    assert_eq!(state(&site, 1), "Waiting");
    site.ok("oarsub -l nodes=1,walltime=1 'sleep 600'");
    site.ok("oarsub -l nodes=1,walltime=0:0:3 true");
    wait_for(&site, 3, "Terminated");
    assert_eq!(state(&site, 2), "Waiting", "it would be in the way of the reservation");

    let refused = site.run(&format!("oarsub -r '{start}' -l core=1,walltime=0:0:10 true"));
    assert_eq!((refused.status, refused.stdout.lines().last()), (10, Some("Reservation not valid --> KO")));
    assert!(refused.stderr.contains("no room at ") && refused.stderr.contains("it could start at "), "{refused:?}");
    wait_for(&site, 4, "Error");
    let later = in_seconds(&site, 7200).0;
    site.ok(&format!("oarsub -r '{later}' -l core=1,walltime=0:0:10 true"));
    let (status, error) = site.fails(&format!("oarsub -r '{later}' -l core=1,walltime=0:0:10 true"));
    assert_eq!(status, 8);
    assert!(error.contains("at most 2 reservations of a user may wait"), "{error}");
    assert_eq!(site.fails("oarsub -r '2020-01-01 00:00:00' true").0, 7);

    wait_for(&site, 1, "Running");
    let began = || site.system.read("OAR.1.stdout").trim().parse::<i64>();
    site.system.wait_until("it says when it runs", || began().is_ok());
    assert!((epoch..epoch + 20).contains(&began().expect("seconds")), "{:?} {epoch}", began());
    assert_eq!(state(&site, 2), "Waiting");
    assert!(shown(&site, 1, "message").contains("J=R"), "{}", shown(&site, 1, "message"));
    site.ok("oardel 1");
    wait_for(&site, 2, "Running");
}

/// OAR-G-13, OAR-G-14, OAR-G-15: a reservation whose nodes are partly gone at its start waits as long as the site says, then starts on those
/// that are there, and ends when it was to end.
#[test]
fn a_reservation_starts_on_the_nodes_that_are_there() {
    let configuration = CONFIGURATION
        .replace("[cluster]\n", "[cluster]\nreserved_nodes_wait_seconds = 3\nunlimited_fixed_starts = [\"root\"]\n");
    let site = Site::on(System::stopped_in(Path::new("/var/tmp")), &configuration);
    let (start, epoch) = in_seconds(&site, 8);
    let command = "date +%s; sort -u $OAR_NODEFILE; sleep 600";
    site.ok(&format!("oarsub -r '{start}' -l nodes=4,walltime=0:10 '{command}'"));
    site.ok("oarnodesetting -s Suspected -h node2");
    wait_for(&site, 1, "Running");
    let said = || site.system.read("OAR.1.stdout");
    site.system.wait_until("it says where it runs", || said().lines().count() == 4);
    let text = said();
    let (began, nodes) = text.split_once('\n').expect("two lines or more");
    assert_eq!(nodes, "node1\nnode3\nnode4\n");
    assert!(began.parse::<i64>().is_ok_and(|began| began >= epoch + 3), "it has waited: {began} {epoch}");
    let json: serde_json::Value = serde_json::from_str(&site.ok("oarstat -J -j 1")).expect("JSON");
    let walltime = json["1"]["walltime"].as_i64().expect("it has one");
    assert!(walltime <= 597, "its end stays what it was: {walltime}");
    let record = site.system.ok(&["job", "events", "1", "--json"]);
    assert!(record.contains("missing_nodes"), "{record}");
    let later = in_seconds(&site, 7200).0;
    for _ in 0..3 {
        site.ok(&format!("oarsub -r '{later}' -l core=1,walltime=0:0:10 true"));
    }
}
