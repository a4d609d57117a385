//! GPUs with device files that stand for them: steps share them out, jobs can open only their own, and one whose file
//! is gone is out of service.

use crate::{
    slurm::Site,
    slurm_steps::sorted,
    system::{Output, System},
};
use muster_surroundings::skipped;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use std::fs;

/// The first number for devices of one's own.
const EXPERIMENTAL: u64 = 60;

/// Two nodes with four GPUs each, whose device files are in the system's folder: devices without a driver if this user
/// may make some, else plain files.
fn site() -> Site {
    site_with("")
}

/// The same with more settings of the executor.
fn site_with(executor: &str) -> Site {
    let mut system = System::stopped();
    let files: Vec<String> = (0..4).map(|gpu| system.path(&format!("gpu{gpu}")).display().to_string()).collect();
    for (gpu, file) in (0..).zip(&files) {
        make_device(gpu, file);
    }
    let gpus: Vec<String> = files.iter().map(|file| format!("\"nvidia:{file}\"")).collect();
    let gpus = gpus.join(", ");
    let configuration = format!(
        "[cluster]\nname = \"alpha\"\ndefault_queue = \"debug\"\n[[queues]]\nname = \"debug\"\n\
         [[nodes]]\nname = \"node[1-2]\"\ncores = 4\nmemory = \"4G\"\ngpus = [\"a100\", \"a100\", \"v100\", \"v100\"]\n\
         [executor]\ngpus = [{gpus}]\ngpu_check_seconds = 1\n{executor}"
    );
    system.write("gpus.toml", &configuration);
    system.restart(&["--config", "gpus.toml"]);
    system.ok(&["install-commands", "bin"]);
    Site { system }
}

pub fn make_device(gpu: u64, file: &str) {
    let all = Mode::from_bits_truncate(0o666);
    if mknod(file, SFlag::S_IFCHR, all, makedev(EXPERIMENTAL, gpu)).is_ok() {
        fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o666)).expect("its own file");
    } else {
        fs::write(file, "").expect("a file");
    }
}

/// Whether jobs are kept from the GPUs of others here.
fn keeps_apart(site: &Site) -> bool {
    site.system.log().contains("; GPUs: cgroup ")
}

#[test]
fn steps_of_srun_share_out_the_gpus_of_their_job() {
    let site = site();
    let other = site.ok("sbatch --parsable -w node1 --gres=gpu:1 --wrap 'sleep 600'");
    site.system.wait_until("the other job has the first GPU", || {
        site.ok(&format!("squeue -h -o %T -j {}", other.trim())) == "RUNNING\n"
    });
    site.system.write(
        "job.sh",
        "#!/bin/sh\n#SBATCH -w node1 -n3 --gres=gpu:3 -o out\n\
         await() { until [ -e $1 ]; do sleep 0.02; done; }\n\
         echo \"job $SLURM_JOB_GPUS of $SLURM_GPUS_ON_NODE, sees $CUDA_VISIBLE_DEVICES\"\n\
         srun -n1 sh -c 'echo \"all: $SLURM_STEP_GPUS of $SLURM_GPUS_ON_NODE\"'\n\
         srun -n1 --gres=none sh -c 'echo \"none: sees .$CUDA_VISIBLE_DEVICES.\"'\n\
         srun -n1 --exact --gres=gpu:2 sh -c 'echo \"first: $SLURM_STEP_GPUS, sees $CUDA_VISIBLE_DEVICES\"; touch begun;\
         until [ -e go ]; do sleep 0.02; done' &\n\
         await begun\n\
         srun -n1 --exact --gpus=1 sh -c 'echo \"second: $SLURM_STEP_GPUS, sees $CUDA_VISIBLE_DEVICES\"'\n\
         srun -n1 --exact --gres=gpu:2 sh -c 'echo \"third: $SLURM_STEP_GPUS\"' 2> waits &\n\
         until grep -qs 'Requested nodes are busy' waits; do sleep 0.02; done\n\
         echo third waits\ntouch go\nwait\n\
         srun -n3 --gpus-per-task=1 sh -c 'echo \"task $SLURM_PROCID: $CUDA_VISIBLE_DEVICES, $SLURM_GPUS_PER_TASK each\"' | sort\n\
         srun -n3 --gpu-bind=map_gpu:2,0 sh -c 'echo \"mapped $SLURM_PROCID: $CUDA_VISIBLE_DEVICES\"' | sort\n\
         srun -n3 --ntasks-per-gpu=2 sh -c 'echo \"shared $SLURM_PROCID: $CUDA_VISIBLE_DEVICES of $SLURM_STEP_GPUS\"' | sort\n\
         srun -n1 --gres=gpu:v100:2 sh -c 'echo \"v100: $SLURM_STEP_GPUS\"'\n\
         srun -n1 --gres=gpu:4 true 2>&1\n\
         srun -n1 --gres=gpu:a100:2 true 2>&1\n\
         srun -n1 --gpu-bind=nearest true 2>&1\n",
    );
    assert_eq!(site.ok("sbatch --parsable -W job.sh || true"), "2\n");
    // The job has GPUs 1, 2 and 3 of the node. If it can open no others, programs count these from 0.
    let seen = |gpus: [u32; 3]| gpus.map(|gpu| if keeps_apart(&site) { gpu - 1 } else { gpu });
    let [one, two, three] = seen([1, 2, 3]);
    let gres = "srun: error: Unable to create step for job 2: Invalid generic resource (gres) specification";
    let expected = format!(
        "job 1,2,3 of 3, sees {one},{two},{three}\nall: 1,2,3 of 3\nnone: sees ..\nfirst: 1,2, sees {one},{two}\n\
         second: 3, sees {three}\nthird waits\nthird: 1,2\n\
         task 0: {one}, 1 each\ntask 1: {two}, 1 each\ntask 2: {three}, 1 each\n\
         mapped 0: {three}\nmapped 1: {one}\nmapped 2: {three}\n\
         shared 0: {one} of 1,2\nshared 1: {one} of 1,2\nshared 2: {two} of 1,2\nv100: 2,3\n{gres}\n{gres}\n\
         srun: error: Invalid --gpu-bind argument: nearest\n"
    );
    assert_eq!(site.system.read("out"), expected);
    let listed = site.ok("sacct -nP -j 2 -o JobID,AllocTRES");
    let gpus: Vec<(&str, &str)> = listed
        .lines()
        .filter_map(|line| line.split_once('|'))
        .map(|(id, tres)| (id, tres.split_once("gres/gpu=").map_or("0", |(_, count)| count)))
        .collect();
    let steps = ["3", "0", "2", "1", "2", "3", "3", "2", "2"];
    let ids: Vec<String> = (0..steps.len()).map(|step| format!("2.{step}")).collect();
    let expected: Vec<(&str, &str)> =
        [("2", "3"), ("2.batch", "3")].into_iter().chain(ids.iter().map(String::as_str).zip(steps)).collect();
    assert_eq!(gpus, expected);
}

/// The other options: an allocation by GPUs for each task, a step of its own, and what the batch script is told.
#[test]
fn options_about_gpus_reach_the_steps_of_a_job() {
    let site = site();
    site.system.write(
        "job.sh",
        "#!/bin/sh\n#SBATCH -n2 --gpus-per-task=2 --gpu-bind=none -o out\n\
         echo \"$SLURM_GPUS_PER_TASK $SLURM_GPU_BIND $SLURM_GPUS_ON_NODE\"\n\
         srun sh -c 'echo \"$SLURM_PROCID: $SLURM_STEP_GPUS $MUSTER_GPUS\"' | sort\n\
         srun --gpu-bind=per_task:2 sh -c 'echo \"$SLURM_PROCID: $MUSTER_GPUS\"' | sort\n\
         srun -n1 sh -c 'echo \"$SLURM_PROCID: $SLURM_STEP_GPUS\"'\n",
    );
    site.run("sbatch -W job.sh");
    assert_eq!(site.system.read("out"), "2 none 4\n0: 0,1,2,3 0,1,2,3\n1: 0,1,2,3 0,1,2,3\n0: 0,1\n1: 2,3\n0: 0,1\n");
    let say = "sh -c 'echo $SLURM_PROCID on $SLURM_NODEID: $MUSTER_GPUS of $SLURM_STEP_GPUS, $SLURM_GPUS_PER_NODE'";
    let shown = site.ok(&format!("srun -N2 -n2 --gpus-per-node=2 {say}"));
    assert_eq!(sorted(&shown), ["0 on 0: 0,1 of 0,1, 2", "1 on 1: 0,1 of 0,1, 2"]);
    let shown = site.ok("srun -n4 --ntasks-per-gpu=2 sh -c 'echo $SLURM_PROCID: $MUSTER_GPUS $SLURM_NTASKS_PER_GPU'");
    assert_eq!(sorted(&shown), ["0: 0 2", "1: 0 2", "2: 1 2", "3: 1 2"]);
    site.ok("sbatch -W -N1 --exclusive -o whole --wrap 'echo $SLURM_JOB_GPUS'");
    assert_eq!(site.system.read("whole"), "0,1,2,3\n", "who has a node alone has all of its GPUs");
}

/// A job has GPUs of several types, and its steps share them out by type.
#[test]
fn a_job_has_gpus_of_several_types() {
    let site = site();
    assert_eq!(site.ok("srun --gres=gpu:a100:1,gpu:v100:2 sh -c 'echo $MUSTER_GPUS'"), "0,2,3\n");
    site.system.write(
        "job.sh",
        "#!/bin/sh\n#SBATCH -N2 -n2 --gres=gpu:a100:2,gpu:v100:1\n\
         srun -N1 -n1 --exact --gres=gpu:a100:1,gpu:v100:1 sh -c 'echo $MUSTER_GPUS' > out\n\
         squeue -h -j $SLURM_JOB_ID -o %b > shown\n",
    );
    site.ok("sbatch -W job.sh");
    assert_eq!(site.system.read("out"), "0,2\n");
    assert_eq!(site.system.read("shown"), "gres/gpu:a100:2,gres/gpu:v100:1\n");
    let anywhere = site.ok("srun -N2 -n2 --gpus=a100:3,v100:1 sh -c 'echo $SLURM_NODEID: $MUSTER_GPUS'");
    assert_eq!(sorted(&anywhere), ["0: 0,1,2", "1: 0"]);
    assert_eq!(site.ok("sacct -n -P -X -j 2 -o ReqTRES").matches("gres/gpu=6").count(), 1);
    assert_eq!(site.fails("srun --gpus=a100:5,v100:1 true").0, 1);
}

/// Options about GPUs say together how many nodes and tasks there are. If they contradict each other, nothing starts.
#[test]
fn options_about_gpus_have_to_agree() {
    let site = site();
    let by_node = site.ok("srun --gpus=4 --gpus-per-node=2 sh -c 'echo $SLURM_NODEID: $MUSTER_GPUS'");
    assert_eq!(sorted(&by_node), ["0: 0,1", "1: 0,1"]);
    let by_task = site.ok("srun -w node1 --gpus=4 --gpus-per-task=2 sh -c 'echo $SLURM_PROCID: $MUSTER_GPUS'");
    assert_eq!(sorted(&by_task), ["0: 0,1", "1: 2,3"]);
    let gres = "Invalid generic resource (gres) specification\n";
    for line in ["-n3 --gpus=4 --gpus-per-task=2", "-N2 --gpus=3 --gpus-per-node=2", "--gpus=1 --gpus-per-node=2"] {
        let told = format!("sbatch: error: Batch job submission failed: {gres}");
        assert_eq!(site.fails(&format!("sbatch {line} --wrap 'touch started'")), (1, told), "{line}");
    }
    let (status, told) = site.fails("srun --gpus=1,v100:1 touch started");
    assert_eq!(status, 1);
    assert!(told.ends_with("Invalid GRES specification (with and without type identification)\n"), "{told}");
    let apart = "is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU\n";
    let told = site.fails("srun --ntasks-per-gpu=1 --gpus-per-task=1 touch started").1;
    assert_eq!(told, format!("srun: fatal: --gpus-per-task {apart}"));
    site.system
        .write("job.sh", "#!/bin/sh\n#SBATCH -n2 --gpus=2\nsrun -n3 --gpus=2 --gpus-per-task=1 touch started 2> out\n");
    site.run("sbatch -W job.sh");
    assert!(
        site.system.read("out").ends_with(&format!("Unable to create step for job 3: {gres}")),
        "{}",
        site.system.read("out")
    );
    assert!(!site.system.path("started").exists());
}

#[test]
fn steps_of_muster_share_out_the_gpus_of_their_job() {
    let Site { system } = site();
    let job = system.submit(&["--gpus", "3", "-N", "1", "-n", "4", "--", "sleep", "600"]);
    system.wait_for_state(&job, "running");
    let say = ["--", "sh", "-c", "echo $MUSTER_TASK_RANK: $MUSTER_GPUS"];
    let step = |options: &[&str]| system.run(&[&["step", "run"][..], options, &[&job], &say].concat());
    let said = |options: &[&str]| {
        let Output { status, stdout, stderr } = step(options);
        assert_eq!(status, 0, "{stderr}");
        sorted(&stdout).join(" ")
    };
    assert_eq!(said(&["-n", "1"]), "0: 0,1,2");
    assert_eq!(said(&["-n", "3", "--gpus-per-task", "1"]), "0: 0 1: 1 2: 2");
    assert_eq!(said(&["-n", "1", "--gpus", "0"]), "0:");
    let mut holder = system.spawn(&["step", "run", "-n", "1", "--gpus", "2", &job, "--", "sleep", "600"]);
    system.wait_until("a step has two GPUs", || {
        system.json(&["step", "list", &job, "--json"])["steps"][3]["nodes"][0]["gpus"] == "0-1"
    });
    assert_eq!(said(&["-n", "1", "--gpus", "1"]), "0: 2");
    let Output { status, stderr, .. } = step(&["-n", "1", "--gpus", "2", "--now"]);
    assert!(status != 0 && stderr.contains("has 1 that are free of other steps"), "{stderr}");
    let Output { status, stderr, .. } = step(&["-n", "1", "--gpus", "4"]);
    assert!(status != 0 && stderr.contains("groups.gpus: 4 GPUs are wanted"), "{stderr}");
    system.ok(&["cancel", &job]);
    system.write(
        "job.sh",
        "#!/bin/sh\n#MUSTER -N 1 -n 4 --gpus 3 -o out\n\
         muster run -n 2 sh -c 'echo all $MUSTER_GPUS'\n\
         muster run -n 3 --gpus-per-task 1 sh -c 'echo own $MUSTER_GPUS' | sort\n\
         muster run -n 1 --gpus 2 sh -c 'touch begun; until [ -e go ]; do sleep 0.02; done; echo first $MUSTER_GPUS' &\n\
         until [ -e begun ]; do sleep 0.02; done\n\
         muster run -n 1 --gpus 1 sh -c 'echo second $MUSTER_GPUS; touch go'\nwait\n",
    );
    system.ok(&["submit", "--wait", "job.sh"]);
    let out = system.read("out");
    let (ordered, apart) = out.split_at(out.find("own 2\n").map_or(0, |at| at + "own 2\n".len()));
    assert_eq!(ordered, "all 0,1,2\nall 0,1,2\nown 0\nown 1\nown 2\n", "{out}");
    assert_eq!(sorted(apart), ["first 0,1", "second 2"], "{out}");
    holder.wait().expect("it ends with its job");
}

#[test]
fn a_gpu_without_its_file_is_out_of_service_until_it_is_back() {
    let site = site();
    let gres = || site.ok("sinfo -h -N -o '%N %G %E'");
    let well = "node1 gpu:a100:2,gpu:v100:2 none\nnode2 gpu:a100:2,gpu:v100:2 none\n";
    assert_eq!(gres(), well);
    let running = site.ok("sbatch --parsable --gres=gpu:4 -w node1 --wrap 'sleep 600'");
    let running = running.trim();
    site.system.wait_for_state(running, "running");
    let tres = |node: &str, key: &str| {
        let shown = site.ok(&format!("scontrol show node {node}"));
        let line = shown.lines().find_map(|line| line.trim().strip_prefix(key).map(str::to_owned));
        line.expect("every node has it").contains(",gres/gpu=4")
    };
    assert_eq!([tres("node1", "CfgTRES="), tres("node1", "AllocTRES=")], [true, true]);
    assert_eq!([tres("node2", "CfgTRES="), tres("node2", "AllocTRES=")], [true, false]);
    assert!(site.ok(&format!("scontrol -d show job {running}")).contains("JOB_GRES=gpu:4\n"));
    assert_eq!(site.ok(&format!("squeue -h -j {running} -o %b")), "gres/gpu:4\n");
    fs::rename(site.system.path("gpu2"), site.system.path("away")).expect("its own file");
    let why = "gres/gpu count reported lower than configured (3 < 4)";
    let lower = |node: &str| format!("{node} gpu:a100:2,gpu:v100:1 {why}\n");
    site.system.wait_until("both nodes say it", || gres() == lower("node1") + &lower("node2"));
    assert_eq!(site.system.state(running), "running", "who has it keeps it");
    let shown = site.ok("scontrol show node node2");
    assert!(shown.contains("GresDrain=gpu:v100:1\n") && shown.contains(&format!("Reason={why} [")), "{shown}");
    let view = site.system.json(&["node", "show", "node2", "--json"]);
    assert_eq!(view["gpu_faults"][0]["gpu"], 2);
    for list in [&["node", "show", "node2"][..], &["nodes"]] {
        let text = site.system.ok(list);
        assert!(text.contains("GPU 2: ") && text.contains("gpu2 does not exist"), "{text}");
    }
    let three = site.ok("sbatch --parsable -W --gres=gpu:3 -w node2 -o three --wrap 'echo $SLURM_JOB_GPUS'");
    assert_eq!((site.system.read("three").as_str(), three.is_empty()), ("0,1,3\n", false));
    let waits = site.ok("sbatch --parsable --gres=gpu:4 --wrap true");
    let waits = waits.trim();
    site.system.wait_until("the planner says why it waits", || {
        site.ok(&format!("squeue -h -o %r -j {waits}")).contains("Resources")
    });
    fs::rename(site.system.path("away"), site.system.path("gpu2")).expect("its own file");
    site.is_over(waits);
    assert_eq!(gres(), well);
    assert!(site.system.log().contains("a GPU is out of service"), "{}", site.system.log());
}

/// OAR-X-11: the files of GPUs belong to the group of the job that has them.
#[test]
fn a_job_can_open_only_the_files_of_its_own_gpus() {
    for (containment, by) in
        [("auto", "; GPUs: cgroup "), ("cgroup2", "; GPUs: cgroup 2"), ("cgroup1", "; GPUs: cgroup 1")]
    {
        let mut system = System::stopped();
        system.write("try.toml", &format!("[executor]\ncontainment = \"{containment}\"\n"));
        if !starts(&mut system) {
            skipped(&format!("this host has no containment {containment}"));
            continue;
        }
        drop(system);
        opens_only_its_own(&site_with(&format!("containment = \"{containment}\"\n")), by);
    }
}

/// Whether a system with the configuration `try.toml` comes up.
fn starts(system: &mut System) -> bool {
    system.launch("up", &["--nodes", "1", "--config", "try.toml"]);
    system.await_ready().starts_with("muster is ready: ")
}

fn opens_only_its_own(site: &Site, by: &str) {
    if !site.system.log().contains(by) {
        return skipped(&format!("this host cannot keep jobs from device files{by}"));
    }
    if !std::os::unix::fs::FileTypeExt::is_char_device(
        &fs::metadata(site.system.path("gpu0")).expect("it is there").file_type(),
    ) {
        return skipped("this user cannot make devices");
    }
    // A device without a driver answers only those who may open it.
    let opened = |job: &str| {
        site.ok(&format!(
            "{job} sh -c 'for gpu in 0 1 2 3; do true < gpu$gpu; done 2>&1; true < /dev/null && echo open'"
        ))
    };
    let answers = |text: &str| {
        let open = |line: &str| line.contains("No such device") || line == "open";
        text.lines()
            .map(|line| {
                if open(line) {
                    "yes"
                } else if line.contains("not permitted") {
                    "no"
                } else {
                    line
                }
                .to_owned()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(answers(&opened("srun -n1 --gres=gpu:2")), ["yes", "yes", "no", "no", "yes"]);
    assert_eq!(answers(&opened("srun -n1")), ["no", "no", "no", "no", "yes"], "a job without any");
    assert_eq!(answers(&opened("srun -n1 --gpus=v100:1")), ["no", "no", "yes", "no", "yes"]);
    assert_eq!(answers(&opened("srun -n1 --gres=gpu:4")), ["yes"; 5]);
}

/// A node says how many GPUs it really has, and nobody waits for its executor to find out.
#[test]
fn a_node_with_fewer_gpus_than_configured_gives_only_those_that_are_there() {
    let site = site();
    let configuration = site.system.read("gpus.toml");
    let (before, after) = configuration.split_once("gpus = [\"nvidia").expect("the section of the executor");
    let first = after.split_once(',').expect("several").0;
    let mut system = site.system;
    system.stop();
    system.write("gpus.toml", &format!("{before}gpus = [\"nvidia{first}]\ngpu_check_seconds = 1\n"));
    system.restart(&["--config", "gpus.toml"]);
    let site = Site { system };
    site.system.wait_until("the node says it", || site.ok("sinfo -h -N -n node1 -o %G") == "gpu:a100:1\n");
    let view = site.system.json(&["node", "show", "node1", "--json"]);
    assert_eq!(view["gpu_faults"][2]["why"], "it is not there, the node has 1 of 4");
    assert_eq!(site.ok("srun -w node1 --gres=gpu:1 printenv SLURM_STEP_GPUS"), "0\n");
}
