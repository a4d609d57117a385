//! What the words of `-l` ask for.

use crate::support::{alternative, refused, request, rules, submission, submission_of};
use muster_pbs::{chunks::ChunkPlan, submit::Rules};
use muster_schemas::resources::{Count, Gpus, Level, LevelCount, Memory, NodeFilter, Per, Request, Sharing};

fn nodes(count: u32) -> Vec<LevelCount> {
    vec![LevelCount { level: Level::Node, count: Count::exactly(count) }]
}

fn plan(line: &str) -> String {
    submission(line).unwrap().spec.environment["MUSTER_PBS_CHUNKS"].clone()
}

#[test]
fn chunks_may_share_hosts_and_are_not_split() {
    let asked = request("-l select=3:ncpus=4:mem=8gb:mpiprocs=2:ngpus=1");
    assert_eq!((asked.path, asked.tasks, asked.cpus_per_task, asked.tasks_per_node), (vec![], Some(3), 4, None));
    assert_eq!(asked.memory, Some(Memory { bytes: 8 << 30, per: Per::Task }));
    assert_eq!(asked.gpus, Some(Gpus { count: 1, per: Per::Task, model: None }));
    assert_eq!(plan("-l select=3:ncpus=4:mpiprocs=2"), "3:4:2:1");
    let asked = request("");
    assert_eq!((asked.tasks, asked.cpus_per_task, asked.sharing), (Some(1), 1, Sharing::Shared));
    // dask-jobqueue writes sizes in capitals.
    assert_eq!(request("-l select=1:ncpus=1:mem=13MB").memory, Some(Memory { bytes: 13 << 20, per: Per::Node }));
}

#[test]
fn chunks_on_their_own_hosts_have_a_task_for_each_process() {
    let asked = request("-l select=2:ncpus=8:mem=8gb:mpiprocs=4 -l place=scatter:excl:group=switch");
    let group = LevelCount { level: Level::Group("switch".into()), count: Count::exactly(1) };
    assert_eq!(asked.path, [group].into_iter().chain(nodes(2)).collect::<Vec<_>>());
    assert_eq!((asked.tasks, asked.tasks_per_node, asked.cpus_per_task), (Some(8), Some(4), 2));
    assert_eq!(asked.memory, Some(Memory { bytes: 8 << 30, per: Per::Node }));
    assert_eq!(asked.sharing, Sharing::Exclusive);
    // Processes that do not divide the processors are not tasks of the model.
    let asked = request("-l select=2:ncpus=8:mpiprocs=3 -l place=scatter");
    assert_eq!((asked.tasks, asked.cpus_per_task), (Some(2), 8));
    let several = alternative("-l select=1:ncpus=1+2:ncpus=4 -l place=vscatter");
    assert!(several.scatter && several.requests.len() == 2);
    assert!(!alternative("-l select=1:ncpus=1+2:ncpus=4").scatter);
}

#[test]
fn packed_chunks_are_one_request_on_one_host() {
    let asked = request("-l select=2:ncpus=4:mem=2gb:mpiprocs=4+1:ncpus=2:mem=1gb:mpiprocs=2 -l place=pack");
    assert_eq!((asked.path, asked.tasks, asked.cpus_per_task), (nodes(1), Some(10), 1));
    assert_eq!(asked.memory, Some(Memory { bytes: 5 << 30, per: Per::Node }));
    let asked = request("-l select=2:ncpus=4+1:ncpus=3:mpiprocs=3 -l place=pack");
    assert_eq!((asked.tasks, asked.cpus_per_task), (Some(1), 11));
    assert_eq!(
        refused("-l select=1:host=a+1:host=b -l place=pack"),
        "place=pack puts all chunks on one host, and they name several"
    );
}

#[test]
fn a_chunk_chooses_its_hosts() {
    let asked = request("-l select=1:ncpus=1:host=n7:arch=linux:bigmem=true:old=false:level=3:model=x");
    assert_eq!(asked.nodes, ["n7"]);
    let filter = asked.filter.unwrap().to_string();
    assert_eq!(filter, "arch=linux&bigmem&!old&level>=3&model=x");
    assert!(refused("-l select=1:scratch=10gb").contains("of sizes, only mem is counted in a chunk"));
    assert!(refused("-l select=1:ncpus=0").contains("a chunk has at least one processor"));
    assert!(refused("-l select=1:mem=much").contains("expected a size such as 8gb"));
    assert!(refused("-l select=1 -l mem=1gb").contains("mem belongs into its chunks"));
}

/// PBS-Q-10: a job that asks for nodes gets whole nodes, unless it says how many processors it wants of each.
#[test]
fn nodes_are_given_whole() {
    let asked = request("-l nodes=3:fast");
    assert_eq!((asked.path.clone(), asked.tasks, asked.sharing), (nodes(3), Some(3), Sharing::WholeNodes));
    assert_eq!(asked.filter, Some(NodeFilter::Has("fast".into())));
    assert_eq!(request("-l nodes=n17").nodes, ["n17"]);
    assert_eq!(request("-l nodes=2#shared").sharing, Sharing::Shared);
    assert_eq!(request("-l nodes=2:ppn=4#excl").sharing, Sharing::Exclusive);
    let several = alternative("-l nodes=2:ppn=4:fast+3:gpus=1+n17");
    assert!(several.scatter, "each entry has nodes of its own");
    let [first, second, third] = &several.requests[..] else { panic!("{several:?}") };
    assert_eq!((first.tasks, first.tasks_per_node, first.sharing), (Some(8), Some(4), Sharing::Shared));
    assert_eq!(second.gpus, Some(Gpus { count: 1, per: Per::Node, model: None }));
    assert_eq!(third.nodes, ["n17"]);
    assert_eq!(plan("-l nodes=2:ppn=4+3"), "2:4:4:4+3:1:1:1");
    // Nodes by name that are asked for alike are one request.
    let named: Vec<String> = (0..1_500).map(|number| format!("n{number}:ppn=2")).collect();
    let asked = request(&format!("-l nodes={}", named.join("+")));
    assert_eq!((asked.path, asked.tasks, asked.nodes.len()), (nodes(1_500), Some(3_000), 1_500));
    assert_eq!(alternative("-l nodes=a:ppn=2+b:ppn=1+c:ppn=1").requests.len(), 2);
    // TORQUE shares the nodes of `nodes=1`; a site can say so.
    let shared = Rules { nodes_are_whole: false, ..rules() };
    let spec = submission_of("-l nodes=1", "true\n", &shared).unwrap().spec;
    assert_eq!(spec.components[0].alternatives[0].requests[0].sharing, Sharing::Shared);
}

#[test]
fn a_word_of_nodes_that_names_no_node_is_a_property() {
    let known = Rules { node_names: Some(["n17".to_owned()].into()), ..rules() };
    let of = |line: &str| -> Request {
        let spec = submission_of(line, "true\n", &known).unwrap().spec;
        spec.components[0].alternatives[0].requests[0].clone()
    };
    assert_eq!(of("-l nodes=n17:ppn=2").nodes, ["n17"]);
    assert_eq!(of("-l nodes=bigmem:ppn=2").filter, Some(NodeFilter::Has("bigmem".into())));
}

#[test]
fn requests_for_the_whole_job() {
    let asked = request("-l ncpus=4,mem=2gb,walltime=1:30:00,arch=linux,host=n3");
    assert_eq!((asked.tasks, asked.cpus_per_task), (Some(1), 4));
    assert_eq!(asked.memory, Some(Memory { bytes: 2 << 30, per: Per::Node }));
    assert_eq!(
        (asked.nodes.as_slice(), asked.filter.unwrap().to_string().as_str()),
        (&["n3".to_owned()][..], "arch=linux")
    );
    assert_eq!(alternative("-l walltime=1:30:00").walltime_seconds, Some(5_400));
    assert_eq!(request("-l nodes=2:ppn=2 -l mem=3gb").memory, Some(Memory { bytes: 3 << 29, per: Per::Node }));
    assert_eq!(request("-l nodes=2:ppn=2:mem=1gb").memory, Some(Memory { bytes: 1 << 30, per: Per::Node }));
    assert_eq!(request("-l nodes=2:ppn=2 -l pmem=1gb").memory, Some(Memory { bytes: 1 << 30, per: Per::Task }));
    let asked = request("-l procs=6 -l mem=6gb");
    assert_eq!(
        (asked.path, asked.tasks, asked.memory),
        (vec![], Some(6), Some(Memory { bytes: 1 << 30, per: Per::Task }))
    );
    assert_eq!(request("-l nodes=1:ppn=1 -l naccesspolicy=singlejob").sharing, Sharing::Exclusive);
    assert_eq!(request("-l ncpus=1 -n").sharing, Sharing::Exclusive);
    assert_eq!(request("-l nodes=1:ppn=1 -l feature='a|b'").filter.unwrap().to_string(), "a|b");
    assert_eq!(alternative("-l matlab=2").licences["matlab"], 2);
    let spec = submission("-l qos=high,advres=course").unwrap().spec;
    assert_eq!(spec.components[0].class.as_deref(), Some("high"));
    assert_eq!(spec.components[0].reservation.as_deref(), Some("course"));
    for (line, why) in [
        ("-l walltime=0", "at least one second"),
        ("-l walltime=long", "expected seconds"),
        ("-l walltime", "it has no value"),
        ("-l filesystems=home", "-l filesystems=home is not supported"),
        ("-l naccesspolicy=singleuser", "is not supported"),
        ("-l nodes=1 -l host=a", "cannot be given together"),
        (&format!("-l nodes={}", vec!["1"; 1_001].join("+")), "at most 1000 different entries"),
        ("-l nodes=1 -l place=pack", "-l place goes with -l select"),
        ("-l procs=0", "expected a number"),
        ("-l select=1000000:ncpus=1000000", "at most 10000000"),
        ("-l nodes=1000000:ppn=1000000", "at most 10000000"),
        ("-l select=1000000:mpiprocs=2", "at most 1000000 of each"),
    ] {
        let message = refused(line);
        assert!(message.contains(why), "{line}: {message}");
    }
    let kept = Rules { kept_resources: ["filesystems".to_owned()].into(), ..rules() };
    let spec = submission_of("-l filesystems=home", "true\n", &kept).unwrap().spec;
    assert_eq!(spec.attributes["pbs.Resource_List.filesystems"], "home");
}

#[test]
fn what_was_asked_for_is_kept_as_servers_show_it() {
    let spec = submission("-l select=2:ncpus=4:mem=1gb:mpiprocs=4,walltime=90").unwrap().spec;
    let of = |name: &str| spec.attributes.get(&format!("pbs.Resource_List.{name}")).map(String::as_str);
    let expected = [
        ("select", "2:ncpus=4:mem=1gb:mpiprocs=4"),
        ("ncpus", "8"),
        ("mem", "2gb"),
        ("mpiprocs", "8"),
        ("nodect", "2"),
        ("place", "free"),
        ("walltime", "00:01:30"),
    ];
    for (name, text) in expected {
        assert_eq!(of(name), Some(text), "{name}");
    }
}

#[test]
fn a_node_file_follows_the_plan() {
    let node = |name: &str, tasks: u32, cores: u64| muster_pbs::chunks::HostTasks {
        name: name.to_owned(),
        tasks,
        cores: Some(cores),
    };
    let lines = |plan: &str, nodes: &[muster_pbs::chunks::HostTasks]| ChunkPlan::parse(plan).unwrap().on_nodes(nodes);
    // Three chunks of two processes: two on the first node.
    assert_eq!(lines("3:4:2:1", &[node("a", 2, 8), node("b", 1, 4)]), [vec![2, 2], vec![2]]);
    // Two kinds that differ in processors: the cores tell which is where.
    assert_eq!(lines("1:2:1:1+1:8:4:1", &[node("a", 1, 8), node("b", 1, 2)]), [vec![4], vec![1]]);
    assert_eq!(lines("1:2:1:1+1:8:4:1", &[node("a", 2, 10)]), [vec![1, 4]]);
    assert_eq!(lines("2:4:4:4", &[node("a", 4, 4), node("b", 4, 4)]), [vec![4], vec![4]]);
    assert_eq!(lines("=2:4:3:1+1:1:1:1", &[node("a", 1, 9)]), [vec![3, 3, 1]]);
    for text in [
        "",
        "1:2:3",
        "0:1:1:1",
        "1:1:1:0",
        "x",
        "1:1:1:1+",
        "4000000000:1:4000000000:1",
        "=4000000000:1:0:1",
        "1:1:1:1/x",
    ] {
        assert_eq!(ChunkPlan::parse(text), None, "{text}");
    }
    let plan = ChunkPlan::parse("=2:4:3:1+1:1:1:1/8").unwrap();
    assert_eq!((plan.to_string().as_str(), plan.threads, plan.is_packed), ("=2:4:3:1+1:1:1:1/8", Some(8), true));
}
