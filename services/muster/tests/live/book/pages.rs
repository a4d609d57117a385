//! The pages for users of other systems, and those on single subjects.

use super::chapters::{Chapter, started};
use crate::{
    containers::{self, make_image, runtimes},
    gpus::make_device,
    mpi::{RING, built},
    system::System,
};
use std::{collections::BTreeSet, fmt::Write as _, fs, os::unix::fs::PermissionsExt as _, path::Path};

/// All jobs of a system with this many have ended, and well.
fn all_complete(system: &System, jobs: u32) {
    for job in (1..=jobs).map(|job| job.to_string()) {
        system.wait_for_state(&job, "finished");
        let shown = system.json(&["job", "show", &job, "--json"]);
        assert_eq!(shown["job"]["outcome"]["outcome"], "completed", "{shown}");
    }
}

/// A system with this configuration.
fn configured(mut system: System, configuration: &str, options: &[&str]) -> System {
    system.write("site.toml", configuration);
    let config = system.path("site.toml").display().to_string();
    system.restart(&[options, &["--config", &config]].concat());
    system
}

#[test]
fn the_page_on_mpi_is_true() {
    let system = System::stopped();
    if !built(&system, "mpicc.mpich", RING, "ring.mpich") || !built(&system, "mpicc.openmpi", RING, "ring.openmpi") {
        return;
    }
    let gpus: Vec<String> = (0..4).map(|gpu| system.path(&format!("gpu{gpu}")).display().to_string()).collect();
    (0..).zip(&gpus).for_each(|(number, file)| make_device(number, file));
    let files = gpus.iter().map(|file| format!("\"nvidia:{file}\"")).collect::<Vec<_>>().join(", ");
    let configuration = format!(
        "[cluster]\nname = \"alpha\"\ndefault_queue = \"default\"\n[[queues]]\nname = \"default\"\n\
         [[nodes]]\nname = \"node[1-4]\"\ncores = 4\nsockets = 2\nmemory = \"4G\"\n\
         gpus = [\"a100\", \"a100\", \"a100\", \"a100\"]\n[executor]\ngpus = [{files}]\n"
    );
    let chapter = Chapter::new("docs/mpi.md", configured(system, &configuration, &[]))
        .with("--mpi=pmix -N 2 -n 4 ./hello", "--mpi=pmix -N 2 -n 4 ./hello.openmpi")
        // Open MPI starts nothing as root unless it is told to.
        .with("mpirun ./solver", "mpirun.openmpi --allow-run-as-root ./solver.openmpi")
        .with("mpirun --map-by", "mpirun.openmpi --allow-run-as-root --map-by")
        .with("mpirun --bind-to", "mpirun.openmpi --allow-run-as-root --bind-to")
        .with("none ./hybrid", "none ./hybrid.openmpi")
        .with_links()
        .checking_jobs(is_one_world);
    for name in ["hello", "solver", "hybrid", "first", "second"] {
        for (suffix, library) in [("", "mpich"), (".openmpi", "openmpi")] {
            let lines = format!("[ -z \"$MUSTER_GPUS\" ] || echo \"GPUs $MUSTER_GPUS\"\nexec ./ring.{library}");
            chapter.script(&format!("{name}{suffix}"), &lines);
        }
    }
    let launcher = "mpirun.openmpi --allow-run-as-root ./solver.openmpi";
    chapter.system.write(
        "mpi.xml",
        &format!(
            "<Job MinCores='4' MaxCores='4'><Tasks><Task MinCores='4' MaxCores='4' StdOutFilePath='solver.out'\n  \
             CommandLine='{launcher} input.dat'/></Tasks></Job>\n"
        ),
    );
    chapter.follow();
    // The command for HPC Pack's job does not wait.
    chapter.system.wait_until("all jobs have ended", || {
        chapter.system.json(&["jobs", "--json"])["jobs"].as_array().is_some_and(Vec::is_empty)
    });
    is_world("docs/mpi.md, mpi.xml", 4, &chapter.system.read("solver.out"));
}

/// There is a process of each rank.
fn is_world(place: &str, size: u32, said: &str) {
    let ranks: BTreeSet<&str> = said.lines().filter_map(|line| line.split(" on ").next()).collect();
    for rank in 0..size {
        let wanted = format!("rank {rank} of {size}");
        assert!(ranks.contains(wanted.as_str()), "{place}: there is no {wanted}:\n{said}");
    }
}

/// The processes that a script starts are one world, and have the GPUs that it asks for.
fn is_one_world(place: &str, script: &str, said: &str) {
    let size = match script {
        _ if script.contains("./solver") => 8,
        _ if script.contains("./hybrid") => 4,
        _ => 1,
    };
    is_world(place, size, said);
    let mut gpus: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("GPUs ")).collect();
    gpus.sort_unstable();
    let expected: &[&str] = match script {
        _ if script.contains("--gpus-per-task") => &["0", "0", "1", "1", "2", "2", "3", "3"],
        _ if script.contains("./second") => &["0,1", "2,3"],
        _ if script.contains("ngpus=4") => &["0,1,2,3"; 8],
        _ => &[],
    };
    assert_eq!(gpus, expected, "{place}:\n{said}");
}

#[test]
fn the_page_on_containers_is_true() {
    for runtime in runtimes() {
        // A folder that is not one that all containers see.
        let containers::Site { system, image } = containers::Site::start_in(Path::new("/var/tmp"), runtime);
        make_image(&system.path("lab"));
        let caller =
            format!("export MUSTER_SERVER={} MUSTER_TOKEN={}; unset MUSTER_DATA", system.server(), System::TOKEN);
        let chapter = Chapter::new("docs/containers.md", system).with("/images/lab", image).with_links().after(&caller);
        // The word is nowhere but in the image.
        for name in ["solver", "job.sh"] {
            chapter.script(name, "read word </etc/motd; [ \"$word\" = within ]");
        }
        fs::set_permissions(chapter.system.path(""), fs::Permissions::from_mode(0o777)).expect("its own folder");
        chapter.follow();
        all_complete(&chapter.system, 4);
    }
}

#[test]
fn the_page_on_energy_is_true() {
    let energy = "[energy]\nwatts_busy = 320\nwatts_idle = 180\nwatts_asleep = 10\nwatts_waking = 220\n";
    let system = configured(System::stopped(), energy, &["--nodes", "2", "--cpus", "2", "--memory", "2G"]);
    let cluster = format!("{energy}[[nodes]]\nname = \"n[1-4]\"\ncores = 4\nmemory = \"4G\"\n");
    system.write("muster.toml", &cluster);
    system.write("trace.swf", &trace(30, 8));
    all_complete(&system, system.submit(&["--", "true"]).parse().expect("a number"));
    let chapter = Chapter::new("docs/energy.md", system).folder("/opt/site", "site").every_line();
    for name in ["site/sleep", "site/wake"] {
        chapter.program(name);
    }
    chapter.follow();
}

/// A trace of this many jobs with up to this many processors.
fn trace(jobs: u32, processors: u32) -> String {
    let mut trace = String::from("; Version: 2.2\n");
    for job in 1..=jobs {
        let (submitted, size) = (job * 900, 1 + job % processors);
        let _ = writeln!(trace, "{job} {submitted} -1 600 {size} -1 -1 {size} 1200 -1 1 1 1 -1 1 1 -1 -1");
    }
    trace
}

#[test]
fn the_page_on_agents_is_true() {
    let mut system = System::stopped();
    system.write("agents", "");
    let node = "[[nodes]]\nname = \"home1\"\ncores = 4\nmemory = \"8G\"\nproperties = { pull = true }\n";
    let agents = system.path("agents").display().to_string();
    let queue = "[cluster]\nname = \"alpha\"\n[[queues]]\nname = \"default\"\n";
    let options = system.configure_for_others(1, &format!("agents_file = \"{agents}\"\n{queue}{node}"));
    system.restart(&options.iter().map(String::as_str).collect::<Vec<_>>());
    let server = system.server();
    let chapter = Chapter::new("docs/agents.md", system)
        .with("https://head.example.org:7457", server)
        .with("> home1.token", "> home1.token 2> said; tail -n 1 said >> agents; cat said")
        .with("muster agent --server", "./agent --server")
        .folder("~/results", "results")
        .with_links()
        .every_line();
    // An agent does not end by itself. The gateway looks at the file of agents once a second, and a person is slower.
    chapter.script(
        "agent",
        "again='until muster agent --period 1 --folder of-agent \"$@\"; do sleep 0.1; done'\n\
         timeout 200 sh -c \"$again\" sh \"$@\" >agent.out 2>agent.log &\necho $! >agent.pid\n\
         timeout 60 sh -c 'until grep -q ready agent.out; do sleep 0.02; done'\ncat agent.out agent.log",
    );
    fs::create_dir(chapter.system.path("input")).expect("a folder");
    chapter.system.write("input/in.dat", "6 7\n");
    chapter.script("input/solve", "read a b <\"$1\"; echo $((a * b))");
    chapter.follow();
    all_complete(&chapter.system, 1);
    assert_eq!(chapter.system.read("results/out.dat"), "42\n", "{}", chapter.system.read("agent.log"));
    assert_eq!(chapter.system.shell("kill $(cat agent.pid)").status, 0);
}

#[test]
fn the_page_on_quotas_is_true() {
    let system = started(2);
    fs::create_dir(system.path("etc")).expect("a folder");
    let rules = r#"{"quotas": {"*,*,*,/": [8, -1, -1], "*,*,*,ann": [12, 2, -1], "*,bio,*,*": [-1, 1, -1]}}"#;
    system.write("etc/quotas.json", rules);
    for _ in 1..=2 {
        system.submit(&["--hold", "--account", "bio", "--time", "1h", "--", "sleep", "600"]);
    }
    let release = "muster job release 1 2; until muster jobs | grep -q running; do sleep 0.02; done";
    Chapter::new("docs/quotas.md", system)
        .folder("/etc/muster", "etc")
        // Its jobs are there before the rules.
        .with("muster quota show", format!("{release}; muster quota show"))
        .with("explain 12", "explain 2")
        .every_line()
        .follow();
}

#[test]
fn the_page_on_planning_domains_is_true() {
    let chapter = Chapter::new("docs/planning-domains.md", started(10)).every_line();
    chapter.program("job.sh");
    chapter.follow();
    chapter.system.wait_for_state("2", "finished");
    let shown = chapter.system.json(&["job", "show", "2", "--json"]);
    assert_eq!(shown["job"]["outcome"]["outcome"], "completed", "it runs inside: {shown}");
}

#[test]
fn the_page_for_users_of_pbs_is_true() {
    let queues = ["workq", "short", "long"].map(|name| format!("[[queues]]\nname = \"{name}\"\n")).concat();
    let configuration = format!("[cluster]\nname = \"alpha\"\ndefault_queue = \"workq\"\n{queues}");
    let size = ["--nodes", "4", "--cpus", "4", "--memory", "16G"];
    let repository = super::repository().display().to_string();
    let chapter = Chapter::new("docs/pbs.md", configured(System::stopped(), &configuration, &size))
        .with("qstat 123", "qstat 1")
        .with("qstat -f 124", "qstat -f 2")
        .with("qstat -f 125", "qstat -f 3")
        .with("docs/examples", format!("{repository}/docs/examples"))
        .with_links()
        .every_line();
    chapter.script("job.sh", "sleep 600");
    chapter.follow();
}

#[test]
fn the_page_on_policy_files_of_pbs_is_true() {
    let repository = super::repository().display().to_string();
    let chapter = Chapter::new("docs/pbs-policy.md", System::stopped())
        .folder("/var/spool/pbs/sched_priv", "sched_priv")
        .with("docs/examples", format!("{repository}/docs/examples"))
        .every_line();
    let mistaken = "round_robin: false ALL\n\nby_queue: maybe\n\nsort_by: sortest_job_first\n";
    chapter.system.write("sched_priv/sched_config", mistaken);
    chapter.system.write("sched_priv/resource_group", "physics 10 root 10\nann 11 grpX 5\n");
    chapter.follow();
}

#[test]
fn the_page_for_users_of_oar_is_true() {
    let nodes = "[[nodes]]\nname = \"node[1-4]\"\ncores = 16\nsockets = 2\nmemory = \"64G\"\n\
                 properties = { switch = \"s1\", mem = 256 }\n";
    let queue = "[cluster]\nname = \"alpha\"\ndefault_queue = \"default\"\n[[queues]]\nname = \"default\"\n";
    let system = System::stopped_in(Path::new("/var/tmp"));
    let chapter = Chapter::new("docs/oar.md", configured(system, &format!("{queue}{nodes}"), &[]))
        .folder("/etc/oar", "etc")
        // A job that no operator deletes, with cores on two nodes.
        .with("OAR_JOB_ID=12", "OAR_JOB_ID=1")
        .with("oarprint host", "OAR_JOB_ID=1 oarprint host")
        .with("node1:/tmp/out", "node3:/tmp/out")
        // The archive has the log of the site; this one is shorter.
        .with("UniLu-Gaia-2014-1.swf.gz", "gaia.swf")
        .with_links()
        .every_line()
        .without(&[("oarsh node2 hostname", "it works inside a job only; the same follows from outside")]);
    let system = &chapter.system;
    chapter.script("job.sh", "sleep 600");
    system.write(
        "gaia.toml",
        "[[queues]]\nname = \"1\"\n[[nodes]]\nname = \"gaia[1-4]\"\ncores = 12\nmemory = \"24G\"\n",
    );
    system.write("gaia.swf", &trace(700, 48));
    system.write("rule_2", "die ('no') if ( $user eq \"root\" or $user eq \"oar\" );\n");
    system.write("rule_40", "# The rule of\n# our site\nif ($project eq '') { die 'no project' }\n");
    let settings = "\n".repeat(11);
    system.write("etc/oar.conf", &format!("{settings}DEAD_SWITCH_TIME=\"600\"\n"));
    let begun = "PATH=links:$PATH; oarsub -p \"host in ('node2', 'node3')\" -l nodes=2/core=2 'sleep 600' && \
                 until oarstat -s -j 1 | grep Running; do sleep 0.02; done && \
                 OAR_JOB_ID=1 oarsh node3 'mkdir -p /tmp/out && touch /tmp/out/made'";
    let output = system.shell(begun);
    assert_eq!(output.status, 0, "{output:?}\n{}", system.log());
    chapter.follow();
    assert!(system.path("results").exists());
}
