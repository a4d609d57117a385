//! Staging and submission filters of jobs with several components, with real programs and Slurm's commands.

use crate::{slurm::Site, system::System};
use muster_client::{Client, Endpoint};
use muster_schemas::{
    CommandId,
    job::{Component, JobSpec, Launch, Program},
};
use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

/// Copies the files that each component's directives name, and records its calls. The first call for the second
/// component hangs; staging out waits for a file.
const STAGE: &str = r#"#!/bin/sh
set -e
burst=BURST/$MUSTER_JOB_ID.$MUSTER_COMPONENT_OFFSET
echo "$1 $MUSTER_COMPONENT_OFFSET of $MUSTER_COMPONENT_COUNT" >>BURST/calls
case $1 in
  stage_in)
    if [ $MUSTER_COMPONENT_OFFSET = 1 ] && mkdir BURST/hangs 2>/dev/null; then sleep 60; fi
    for file in $(sed -n 's/^#DW stage_in source=//p' "$2"); do cp "$file" "$burst"; done ;;
  stage_out)
    while [ ! -e BURST/go ]; do sleep 0.02; done
    for file in $(sed -n 's/^#DW stage_out destination=//p' "$2"); do cp "$burst.out" "$file"; done ;;
esac
"#;

/// Each component stages one file in and another out.
const JOB: &str = "#!/bin/sh
#SBATCH -n1
#DW stage_in source=DIR/in0
#DW stage_out destination=BURST/out0
#SBATCH hetjob
#SBATCH -n1
#DW stage_in source=DIR/in1
#DW stage_out destination=BURST/out1
for n in 0 1; do tr a-z A-Z <BURST/$SLURM_JOB_ID.$n >BURST/$SLURM_JOB_ID.$n.out; done
";

/// A system with this staging program; everybody may write to `burst`.
struct Staged {
    site: Site,
    options: Vec<String>,
}

impl Staged {
    fn new(program: &str) -> Self {
        Self::with(program, "")
    }

    /// The same, with more lines in the configuration.
    fn with(program: &str, more: &str) -> Self {
        let system = System::stopped();
        let open = |name: &str, mode| std::fs::set_permissions(system.path(name), Permissions::from_mode(mode));
        open("", 0o755).unwrap();
        std::fs::create_dir(system.path("burst")).unwrap();
        open("burst", 0o777).unwrap();
        let text = |text: &str| {
            let burst = system.path("burst").display().to_string();
            text.replace("BURST", &burst).replace("DIR", &system.path("").display().to_string())
        };
        system.write("stage", &text(program));
        open("stage", 0o755).unwrap();
        system.write("job.sh", &text(JOB));
        let program = system.path("stage").display().to_string();
        let node = |names: &str, feature: &str| {
            format!("[[nodes]]\nname = \"{names}\"\ncores = 4\nmemory = \"4G\"\nproperties = {{ {feature} = true }}\n")
        };
        let configuration = format!(
            "[filter_runner]\naccount = \"nobody\"\n[slurm]\nburst_buffer_directives = [\"BB\", \"DW\"]\n\
             [staging]\nprogram = \"{program}\"\nstage_in_timeout_seconds = 3600\n{}{}{more}",
            node("node[1-2]", "haswell"),
            node("node[3-4]", "knl")
        );
        system.write("site.toml", &configuration);
        let options = ["--config".to_owned(), system.path("site.toml").display().to_string()].to_vec();
        let mut staged = Self { site: Site { system }, options };
        staged.restart();
        staged.site.system.ok(&["install-commands", "bin"]);
        staged
    }

    fn restart(&mut self) {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        self.site.system.restart(&options);
    }

    fn burst(&self, name: &str) -> String {
        self.site.system.read(&format!("burst/{name}"))
    }

    fn wait_until_shows(&self, line: &str, text: &str) {
        self.site.system.wait_until(&format!("{line} shows {text}"), || self.site.ok(line) == text);
    }
}

/// SL-B-01, SL-B-05, SL-B-06, SL-B-08, HPC-F-85: files of both components are staged in before the job starts, although
/// the runner restarts in the middle, and out after its end.
#[test]
fn files_of_both_components_are_staged_in_and_out_although_the_runner_is_started_anew() {
    let mut staged = Staged::new(STAGE);
    staged.site.system.write("in0", "zero\n");
    staged.site.system.write("in1", "one\n");
    assert_eq!(staged.site.ok("sbatch job.sh"), "Submitted batch job 1\n");
    staged
        .site
        .system
        .wait_until("the second component is being staged in", || staged.burst("calls").contains(" 1 of"));
    let reasons = "1+0 PENDING BurstBufferStageIn\n1+1 PENDING BurstBufferStageIn\n";
    staged.wait_until_shows("squeue -h -j 1 -o '%i %T %r'", reasons);
    let dir = staged.site.system.path("").display().to_string();
    let shown = staged.site.ok("scontrol show job 2");
    let directives = format!("BurstBuffer=#DW stage_in source={dir}/in1 #DW stage_out destination=");
    assert!(shown.contains(&directives.replace("//", "/")) || shown.contains(&directives), "{shown}");
    staged.site.system.stop();
    staged.restart();
    staged.wait_until_shows("squeue -h -t all -j 1 -o '%i %T'", "1+0 STAGE_OUT\n1+1 STAGE_OUT\n");
    assert_eq!(staged.site.ok("sacct -n -P -X -j 1 -o JobID,State"), "1+0|COMPLETED\n1+1|COMPLETED\n");
    std::fs::write(staged.site.system.path("burst/go"), "").unwrap();
    staged.wait_until_shows("squeue -h -t all -j 1 -o '%i %T'", "1+0 COMPLETED\n1+1 COMPLETED\n");
    assert_eq!((staged.burst("out0"), staged.burst("out1")), ("ZERO\n".to_owned(), "ONE\n".to_owned()));
    let calls = ["stage_in 0", "stage_in 1", "stage_in 1", "stage_out 0", "stage_out 1"];
    assert_eq!(staged.burst("calls"), calls.map(|call| format!("{call} of 2\n")).concat());
    let story = staged.site.system.ok(&["job", "events", "1"]);
    assert!(story.contains("stage_in chain 1 passed") && story.contains("stage_out chain 2 passed"), "{story}");
}

/// The program's answer to a component that asks for too much.
const PICKY: &str = r#"#!/bin/sh
if [ "$1" = stage_in ] && [ ! -e BURST/enough ] && grep -q 'capacity=99' "$2"; then
  echo "message=no room" >"$MUSTER_RESULT_FILE"
  exit 4
fi
exit 0
"#;

/// EX-13 as specified, through the commands; SL-B-02, SL-B-03, SL-B-05 to B-08 (SL-B-06, SL-B-08).
#[test]
fn the_worked_example_of_burst_buffers() {
    let staged = Staged::new(PICKY);
    let site = &staged.site;
    // Earlier jobs, so that the numbers are those of the example.
    site.system.write("early.sh", "#!/bin/sh\n#DW persistentdw name=alpha\ntrue\n");
    assert_eq!(site.ok("sbatch --parsable early.sh"), "1\n");
    let early = site.ok("for n in $(seq 2 95); do sbatch --parsable -H --wrap true; done");
    assert_eq!(early.lines().last(), Some("95"));
    staged.wait_until_shows("squeue -h -j 1 -o '%T %r'", "PENDING BurstBufferResources\n");
    assert!(!site.ok("scontrol show burstbuffer").contains("Allocated Buffers"));
    site.system.write(
        "example.sh",
        "#!/bin/bash
#SBATCH --nodes=1 --constraint=haswell
#BB create_persistent name=alpha capacity=10 access=striped type=scratch
#DW persistentdw name=alpha

#SBATCH hetjob
#SBATCH --nodes=2 --constraint=knl
#DW persistentdw name=alpha
hostname
",
    );
    assert_eq!(site.ok("sbatch example.sh"), "Submitted batch job 96\n");
    assert_eq!(
        site.ok("scontrol write batch_script 96 -"),
        "#!/bin/bash
#SBATCH --nodes=1 --constraint=haswell
#BB create_persistent name=alpha capacity=10 access=striped type=scratch
#DW persistentdw name=alpha
#SBATCH hetjob
#SBATCH --nodes=2 --constraint=knl
#EXCLUDED DW persistentdw name=alpha
hostname
"
    );
    let second = "#!/bin/bash\n#SBATCH --nodes=2 --constraint=knl\n#DW persistentdw name=alpha\nexit 0\n";
    assert_eq!(site.ok("scontrol write batch_script 97 -"), second);
    assert_eq!(site.ok("scontrol write batch_script 96+1 -"), second);
    let shown = site.ok("scontrol show job 97");
    assert!(shown.lines().any(|line| line.trim() == "BurstBuffer=#DW persistentdw name=alpha"), "{shown}");
    site.is_over("96");
    site.is_over("1");
    let buffers = site.ok("scontrol show burstbuffer");
    assert!(buffers.starts_with("Name=datawarp ") && buffers.contains("\n    Name=alpha CreateTime="), "{buffers}");
    // SL-B-08: a failure to stage in holds the job until it is released; `--bb` and `--bbf` describe the staging.
    assert_eq!(site.ok("sbatch --parsable --bb='capacity=99' --wrap hostname"), "98\n");
    staged.wait_until_shows("squeue -h -j 98 -o '%T %r'", "PENDING BurstBufferOperation\n");
    assert!(site.system.ok(&["job", "show", "98"]).contains("no room"));
    std::fs::write(site.system.path("burst/enough"), "").unwrap();
    site.ok("scontrol release 98");
    site.is_over("98");
    site.system.write("lines", "#BB destroy_persistent name=alpha\n");
    assert_eq!(site.ok("sbatch --parsable --bbf=lines -H early.sh"), "99\n");
    assert!(
        site.ok("scontrol write batch_script 99 -").starts_with("#!/bin/sh\n#BB destroy_persistent name=alpha\n#DW")
    );
    site.ok("scancel 99");
    site.ok("sbatch -W --bbf=lines --wrap true");
    assert!(!site.ok("scontrol show burstbuffer").contains("alpha"));
    // SL-B-03: components without a part in the script.
    let third = site.ok("J=$(sbatch --parsable -H -n1 : -n1 : -n1 example.sh); scontrol write batch_script $J+2 -");
    assert_eq!(third, "#!/bin/bash\nexit 0\n");
    let script =
        "J=$(sbatch --parsable -H --bbf=lines : --bb='DW two' -n1 --wrap true); scontrol write batch_script $J";
    assert_eq!(site.ok(&format!("{script}+1 -")), "#!/bin/sh\nexit 0\n");
    assert!(site.ok(&format!("{script} -")).starts_with("#!/bin/sh\n#BB destroy_persistent name=alpha\n# Made"));
}

/// SL-B-07: without configured words the lines are comments.
#[test]
fn without_a_plugin_the_lines_are_comments() {
    let site = Site::start();
    site.system.write("job.sh", "#!/bin/sh\n#DW persistentdw name=alpha\n#SBATCH hetjob\n#DW x\ntrue\n");
    assert_eq!(site.ok("sbatch -W job.sh"), "Submitted batch job 1\n");
    let script = site.system.read("job.sh");
    assert_eq!(site.ok("scontrol write batch_script 2 -"), script);
    assert!(!site.ok("scontrol show job 1").contains("BurstBuffer="));
}

/// Refuses a component with more than two tasks, and records its input.
const JUDGE: &str = r#"#!/bin/sh
cores=$(grep -o 'MinCores="[0-9]*"' "$1" | tr -dc 0-9)
echo "${MUSTER_COMPONENT_OFFSET:-none} of ${MUSTER_COMPONENT_COUNT:-none}: $cores" >>BURST/calls
if [ "$cores" -gt 2 ]; then
  echo "message=too many tasks" >"$MUSTER_RESULT_FILE"
  exit 3
fi
if [ "$cores" = 2 ]; then
  sed -i 's/Priority="[A-Za-z0-9+]*"/Priority="Highest"/' "$1"
  exit 1
fi
exit 0
"#;

/// SL-S-12, SL-S-21: the filter is asked once for each component; its messages name the component, and a refused job
/// has no number. A job with one component is judged as before.
#[test]
fn a_submission_filter_judges_each_component_and_sbatch_tells_what_it_says() {
    let staged = Staged::new(JUDGE);
    let site = &staged.site;
    let judge = site.system.path("stage").display().to_string();
    site.system.ok(&["cluscfg", "setparams", &format!("SubmissionFilterProgram={judge}")]);
    let rejected = "sbatch: error: Batch job submission failed: Job rejected by a submission filter\n";
    let refused = |line: &str| site.run(line);
    let told = refused("sbatch -n1 : -n4 : -n1 --wrap true");
    assert_eq!((told.status, told.stdout.as_str()), (1, ""));
    assert_eq!(told.stderr, format!("sbatch: error: 1: too many tasks\n{rejected}"));
    let told = refused("sbatch -n4 --wrap true");
    assert_eq!((told.status, told.stderr), (1, format!("sbatch: error: too many tasks\n{rejected}")));
    let (status, told) = site.fails("salloc -n1 : -n4 true");
    assert_eq!((status, told.lines().next()), (1, Some("salloc: error: 1: too many tasks")));
    assert_eq!(site.ok("squeue -h -t all -o %i"), "");
    assert_eq!(site.ok("sacct -n -X -o JobID"), "");
    let job = site.ok("sbatch --parsable -H -n1 : -n2 --wrap true").trim().to_owned();
    site.ok(&format!("scontrol release {job}"));
    site.is_over(&job);
    let calls = staged.burst("calls");
    let expected = ["0 of 3: 1", "1 of 3: 4", "none of none: 4", "0 of 2: 1", "1 of 2: 4", "0 of 2: 1", "1 of 2: 2"];
    assert_eq!(calls.lines().collect::<Vec<_>>(), expected);
    let detail = site.system.json(&["job", "show", &job, "--json"]);
    let priority = |at: usize| detail["spec"]["components"][at]["priority"].as_i64();
    assert!(priority(1) > priority(0), "only the second component was changed: {detail}");
}

/// Routes by partition: components for `small` go to `big`, as a class, with their own memory, features, nodes and
/// tasks; in the first format that `MUSTER_COMPONENT_OFFSET` names, XML or JSON.
const ROUTES: &str = r#"#!/usr/bin/env python3
import json, os, re, sys
offset = os.environ.get("MUSTER_COMPONENT_OFFSET", "0")
job = json.load(open(sys.argv[1].replace("job.xml", "job.json")))
request = job["Request"]
with open("BURST/calls", "a") as calls:
    calls.write(offset + " " + " ".join(f"{name}={request[name]}" for name in sorted(request)) + "\n")
if request["Partition"] != "small":
    sys.exit(0)
if offset == "0":
    text = open(sys.argv[1]).read()
    text = re.sub("<Name>Partition</Name>\\s*<Value>small</Value>", "<Name>Partition</Name><Value>big</Value>", text)
    open(sys.argv[1], "w").write(text)
else:
    request.update(Partition="big", QOS="fat", Features="knl", MinMemoryNode="100M", NumNodes="2", NumTasks="2")
    del request["MinMemoryCPU"]
    json.dump(job, open("job.json", "w"))
sys.exit(1)
"#;

/// SL-S-21: a filter gets partition, QOS, memory, features, nodes and tasks of each component, and may change them, in
/// XML or JSON; its changes apply and are shown, and are checked as if the user had asked for them.
#[test]
fn a_submission_filter_routes_components_by_their_partition_and_changes_what_they_ask_for() {
    let queue = |name: &str, more: &str| format!("[[queues]]\nname = \"{name}\"\n{more}");
    let queues = [
        queue("small", "default_walltime_seconds = 600\nmax_walltime_seconds = 600\n"),
        queue("big", "default_walltime_seconds = 7200\n"),
    ];
    let staged = Staged::with(ROUTES, &queues.concat());
    let site = &staged.site;
    let judge = site.system.path("stage").display().to_string();
    site.system.ok(&["cluscfg", "setparams", &format!("SubmissionFilterProgram={judge}")]);
    // As long as a loaded machine takes to start an interpreter.
    site.system.ok(&["cluscfg", "setparams", "SubmissionFilterTimeout=60"]);
    site.ok("sacctmgr -i add qos fat");
    let components = "-p small -N1 -n2 -c2 --mem=300 : -p small --qos=normal -C haswell -n1 --mem-per-cpu=50";
    let job = site.ok(&format!("sbatch --parsable -H {components} : -p big -t 5 --wrap true")).trim().to_owned();
    let calls = staged.burst("calls");
    let told = [
        "0 CPUsPerTask=2 MinMemoryNode=300M NumNodes=1 NumTasks=2 Partition=small",
        "1 Features=haswell MinMemoryCPU=50M NumTasks=1 Partition=small QOS=normal",
        "2 Partition=big QOS=normal",
    ];
    assert_eq!(calls.lines().collect::<Vec<_>>(), told);
    let listed = site.ok(&format!("squeue -h -j {job} -o '%i %P %q %D %C %f %m %l'"));
    let expected = [
        format!("{job}+0 big normal 1 4 (null) 300M 2:00:00"),
        format!("{job}+1 big fat 2 2 knl 100M 2:00:00"),
        format!("{job}+2 big normal 1 1 (null) 0 5:00"),
    ];
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
    let shown = site.ok(&format!("scontrol -o show job {job}+1"));
    for pair in
        [" Partition=big ", " QOS=fat ", " NumNodes=2 ", " NumTasks=2 ", " Features=knl ", " MinMemoryNode=100M "]
    {
        assert!(shown.contains(pair), "{pair} is missing in {shown}");
    }
    site.ok(&format!("scontrol release {job}"));
    site.is_over(&job);
    let nodes = site.ok(&format!("sacct -X -n -P -j {job} -o NodeList,Partition,QOS"));
    assert_eq!(nodes.lines().nth(1), Some("node[3-4]|big|fat"));
    // Whatever dialect a user claims for a job, the filter gets its request, and its changes apply.
    let mut client = Client::new(Endpoint::Unix(site.system.path("data/muster.sock")));
    for dialect in [None, Some("slurm"), Some("hpcpack"), Some("unknown")] {
        let launch = Launch { program: Program::Tasks { argv: vec!["true".into()] }, ..Launch::default() };
        let spec = JobSpec {
            components: vec![Component { launch, queue: Some("small".into()), ..Component::default() }],
            working_directory: site.system.path("").display().to_string(),
            dialect: dialect.map(str::to_owned),
            ..JobSpec::default()
        };
        let job = client.submit(CommandId::new_now(), &[spec]).expect("accepted").jobs[0].number.to_string();
        site.is_over(&job);
        assert_eq!(site.ok(&format!("sacct -X -n -P -j {job} -o Partition")), "big\n", "{dialect:?}");
    }
    // A filter's change is refused if a user could not have asked for the result.
    let text = site.system.read("stage").replace("big", "nowhere");
    site.system.write("stage", &text);
    let (status, told) = site.fails("sbatch -p small --wrap true");
    assert!(status == 1 && told.contains("queue `nowhere` does not exist"), "{told}");
}
