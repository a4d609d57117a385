//! The programs in Python that the book shows, as their readers would run them.

use super::{Content, blocks, chapters::free_address, page, repository};
use crate::{slurm::Site, system::System};
use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

/// The program of a page that has this text in it.
pub fn program(file: &str, mark: &str) -> String {
    let text = page(file);
    let programs = blocks(&text).into_iter().filter_map(|block| match block.content {
        Content::Text("python", text) if text.contains(mark) => Some(text),
        _ => None,
    });
    let programs: Vec<String> = programs.collect();
    let [program] = &programs[..] else { panic!("{file} has {} programs with `{mark}`", programs.len()) };
    program.clone()
}

/// The submission filter of the page for users of Slurm sends a job that needs much memory to the partition for such jobs.
#[test]
fn the_filter_of_the_page_for_users_of_slurm_works() {
    let configuration = "[cluster]\nname = \"alpha\"\ndefault_queue = \"debug\"\n[[queues]]\nname = \"debug\"\n\
                         [[queues]]\nname = \"fat\"\n[filter_runner]\naccount = \"nobody\"\n";
    let system = System::stopped();
    std::fs::set_permissions(system.path(""), Permissions::from_mode(0o755)).expect("its own folder");
    let site = Site::on(system, configuration);
    site.ok("sacctmgr -i add qos fat");
    let system = &site.system;
    system.write("filter.py", &program("docs/slurm.md", "MinMemoryNode"));
    std::fs::set_permissions(system.path("filter.py"), Permissions::from_mode(0o755)).expect("its own file");
    let set = format!("SubmissionFilterProgram={}", system.path("filter.py").display());
    system.ok(&["cluscfg", "setparams", &set]);
    site.ok("sbatch -H --mem=2G --wrap true");
    site.ok("sbatch -H --mem=100M --wrap true");
    assert_eq!(site.ok("squeue -h -S i -o '%i %P %q'"), "1 fat fat\n2 debug normal\n");
}

/// The reader of events on NATS, on a cluster of processes of their own, as the user that integrations have.
#[test]
fn the_reader_of_events_on_nats_works() {
    let python = std::env::var("MUSTER_PYTHON").expect("set MUSTER_PYTHON to a Python with nats-py, or run ops/test");
    let system = System::stopped();
    let (folder, address) = (system.path("local").display().to_string(), free_address());
    let (_, port) = address.rsplit_once(':').expect("an address has a port");
    let program = program("docs/integrate.md", "import nats");
    system.write("reader.py", &program.replace("nats://head:4222", &format!("nats://{address}")));
    let cluster = format!(
        "MUSTER_BINARY={} MUSTER_NATS_PORT={port} {}/ops/local-cluster",
        env!("CARGO_BIN_EXE_muster"),
        repository().display()
    );
    let output = system.shell(&format!(
        "trap '{cluster} stop {folder} >/dev/null' EXIT\n\
         {cluster} start {folder} 1 1\n\
         sed -i \"s/password=\\\"...\\\"/password=\\\"$(cat {folder}/etc/integration.password)\\\"/\" reader.py\n\
         timeout 120 {python} -u reader.py >events.out 2>events.err & reader=$!\n\
         muster --data {folder}/data submit --wait -- true\n\
         until grep -q muster.job.finished events.out || ! kill -0 $reader; do sleep 0.05; done\n\
         kill $reader"
    ));
    let events = system.read("events.out");
    assert_eq!(output.status, 0, "{output:?}\n{events}{}", system.read("events.err"));
    let kinds: Vec<&str> = events.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(
        (kinds.first(), kinds.last()),
        (Some(&"muster.job.submitted.v1"), Some(&"muster.job.finished.v1")),
        "{events}"
    );
}
