//! Options of the commands.

use muster_hpcpack::{
    codes::Code,
    description::{
        JobDescription, TaskDescription,
        values::{TaskType, UnitType},
    },
    options::{JobCommand, OptionError, Takes, Verb, job, others},
    size::Size,
};

fn command(line: &str) -> JobCommand {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let verb = Verb::named(verb).expect(verb);
    let arguments: Vec<&str> = rest.split_whitespace().collect();
    job(verb, &arguments).unwrap_or_else(|errors| panic!("{line}: {errors:?}"))
}

fn errors(line: &str) -> Vec<OptionError> {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let arguments: Vec<&str> = rest.split_whitespace().collect();
    job(Verb::named(verb).expect(verb), &arguments).err().unwrap_or_else(|| panic!("{line} was taken"))
}

fn texts(line: &str) -> Vec<String> {
    errors(line).iter().map(ToString::to_string).collect()
}

/// The description that the edits make of an empty one.
fn edited(line: &str) -> JobDescription {
    let mut description = JobDescription::default();
    command(line).edits.iter().try_for_each(|edit| edit.apply(&mut description)).expect("edits");
    description
}

/// HPC-C-01
#[test]
fn options_are_written_both_ways_and_ignore_case() {
    for line in ["new /JobName:x /Exclusive", "new --jobname=x --exclusive", "new /jobname:x --EXCLUSIVE=true"] {
        let attributes = edited(line).attributes;
        assert_eq!((attributes.name.as_deref(), attributes.is_exclusive), (Some("x"), Some(true)), "{line}");
    }
    assert_eq!(edited("new /exclusive:false").attributes.is_exclusive, Some(false));
    assert_eq!(edited("new --jobname=a=b").attributes.name.as_deref(), Some("a=b"));
    assert_eq!(Verb::named("LISTTASKS"), Some(Verb::ListTasks));
    assert_eq!(Verb::named("frobnicate"), None);
    assert!(Verb::ALL.iter().all(|verb| Verb::named(&verb.to_string()) == Some(*verb)));
}

/// HPC-C-01
#[test]
fn an_unknown_option_is_an_error() {
    assert_eq!(
        texts("new /jobnam:x --priorty=4 -x"),
        [
            "unknown option `/jobnam:x`; nearest known is /jobname; put a path after `--`",
            "unknown option `--priorty=4`; nearest known is /priority; put a path after `--`",
            "unknown option `-x`; put a path after `--`",
        ]
    );
    assert!(errors("view 5 /priority:4").iter().all(|error| error.exit_code() == 2));
}

/// HPC-C-02
#[test]
fn wrong_usage_and_refusals_have_different_exit_codes() {
    let codes = |line: &str| errors(line).iter().map(OptionError::exit_code).collect::<Vec<_>>();
    for usage in [
        "new /colour:red",
        "new /numcores",
        "new /numcores:",
        "new word",
        "view",
        "view x",
        "view 1 2",
        "cancel 1 /force /graceful",
        "submit",
        "submit /id:1 /jobfile:x",
        "submit /id:1 run",
        "submit /name:x",
        "submit /jobfile:x run",
        "submit /id:x",
        "submit /id:1 /priority:4",
        "view 1 /history /xml",
        "add 1",
        "add",
        "new /jobname:a /jobname:b",
        "new /help:x",
        "new /exclusive:maybe",
        "new /jobname",
        "modify /priority:4",
    ] {
        assert!(codes(usage).contains(&2), "{usage}");
    }
    for refused in [
        "new /priority:High",
        "new /runtime:0",
        "new /numcores:0",
        "new /numcores:4-2",
        "new /orderby:x",
        "submit /parametric:9-1 run",
        "submit /env:novalue run",
        "new /corespernode:x",
        "new /jobenv:=1",
    ] {
        assert_eq!(codes(refused), [1], "{refused}");
    }
    let priority = &errors("new /priority:High")[0];
    assert!(matches!(priority, OptionError::Refused { refusal, .. } if refusal.code == Code::PriorityNotValid));
    assert!(priority.to_string().starts_with("/priority: [PriorityNotValid]"), "{priority}");
}

fn size(line: &str) -> (UnitType, u32, u32) {
    let mut job = edited(line);
    job.tasks = vec![TaskDescription::default(); 3];
    let size = Size::of(&job.attributes, &job.tasks).expect("a size");
    (size.unit, size.min, size.max)
}

/// HPC-C-05
#[test]
fn sizes_set_the_unit_and_one_number_sets_both_bounds() {
    assert_eq!(size("new /numcores:2-4"), (UnitType::Core, 2, 4));
    assert_eq!(size("new /numcores:2"), (UnitType::Core, 2, 2));
    assert_eq!(size("new /numprocessors:5"), (UnitType::Core, 5, 5));
    assert_eq!(size("new --numsockets=1-8"), (UnitType::Socket, 1, 8));
    assert_eq!(size("new /numnodes:3"), (UnitType::Node, 3, 3));
    assert_eq!(size("new /numcores:*"), (UnitType::Core, 1, 3));
    assert_eq!(size("new /numcores:2-*"), (UnitType::Core, 2, 3));
    assert_eq!(size("new /numcores:*-9"), (UnitType::Core, 1, 9));
    assert_eq!(texts("new /numcores:2 /numnodes:3"), ["/numcores and /numnodes cannot be given together"]);
    for wrong in ["0", "-3", "2-", "x", "4-2", "1.5", "2-3-4", "99999999999"] {
        assert_eq!(errors(&format!("new /numcores:{wrong}"))[0].exit_code(), 1, "{wrong}");
    }
}

/// HPC-C-05
#[test]
fn a_size_replaces_the_one_before() {
    let mut job = crate::support::job("MinCores='4' MaxCores='8' AutoCalculateMin='true'");
    for edit in command("modify 7 /numcores:*").edits {
        edit.apply(&mut job).expect("an edit");
    }
    assert_eq!((job.attributes.min_cores, job.attributes.max_cores), (None, None));
    assert_eq!((job.attributes.auto_calculate_min, job.attributes.auto_calculate_max), (Some(true), Some(true)));
}

/// HPC-C-01
#[test]
fn every_option_of_a_job_sets_its_attribute() {
    let job = edited(
        "new /askednodes:n1,n2 /corespernode:2-8 /memorypernode:1024 /customproperties:Team=red;Site=west \
         /jobenv:A=1;B= /emailaddress:a@b /estimatedprocessmemory:64 /faildependenttasks /failontaskfailure \
         /notifyoncompletion /notifyonstart /preemptable:false /rununtilcanceled:false /singlenode /jobtemplate:Big \
         /license:x:2 /nodegroup:a,b /nodegroupop:union /orderby:-memory /parentjobids:1,2 /priority:Normal+5 \
         /projectname:p /runtime:1:30 /taskexecutionfailureretrylimit:2 /validexitcodes:0..3 /addexcludednodes:n9",
    );
    let expected = crate::support::read(
        "<Job RequestedNodes='n1,n2' MinCoresPerNode='2' MaxCoresPerNode='8' MinMemory='1024' EmailAddress='a@b'
            EstimatedProcessMemory='64' FailDependentTasks='1' FailOnTaskFailure='1' NotifyOnCompletion='1'
            NotifyOnStart='1' Preemptable='0' RunUntilCanceled='0' SingleNode='1' JobTemplate='Big'
            SoftwareLicense='x:2' NodeGroups='a,b' NodeGroupOp='Union' OrderBy='-memory' ParentJobIds='1,2'
            Priority='2005' Project='p' RunTime='1:30' TaskExecutionFailureRetryLimit='2' JobValidExitCodes='0..3'
            ExcludedNodes='n9'>
          <CustomProperties><Term><Name>Team</Name><Value>red</Value></Term><Term><Name>Site</Name><Value>west</Value>
          </Term></CustomProperties>
          <EnvironmentVariables><Variable><Name>A</Name><Value>1</Value></Variable>
          <Variable><Name>B</Name><Value></Value></Variable></EnvironmentVariables></Job>",
    );
    assert_eq!(job, expected);
}

/// HPC-C-01
#[test]
fn modifying_clears_and_changes_what_is_there() {
    let mut job = crate::support::job("Project='p' ExcludedNodes='n1,n2' RunTime='5'");
    let line = "modify 7 /projectname: /addexcludednodes:n2,n3 /removeexcludednodes:n1 /runtime:Infinite";
    let command = command(line);
    assert_eq!(command.ids, [7]);
    command.edits.iter().try_for_each(|edit| edit.apply(&mut job)).expect("edits");
    assert_eq!(job, crate::support::job("ExcludedNodes='n2,n3' RunTime='Infinite'"));
    let clear = self::command("modify 7 /clearexcludednodes").edits;
    clear.iter().try_for_each(|edit| edit.apply(&mut job)).expect("edits");
    assert_eq!(job.attributes.excluded_nodes, None);
}

/// HPC-C-03
#[test]
fn a_job_is_submitted_by_options_and_a_command() {
    let arguments = ["/numcores:2-4", "/workdir:/tmp/a b", "/env:A=1", "/bin/echo", "/x:y", "it's", "--flag"];
    let command = job(Verb::Submit, &arguments).expect("a command");
    let task = command.task.expect("a task");
    assert_eq!(task.attributes.command_line.as_deref(), Some("/bin/echo /x:y 'it'\\''s' --flag"));
    assert_eq!((task.attributes.min_cores, task.attributes.max_cores), (Some(2), Some(4)));
    assert_eq!(task.attributes.work_directory.as_deref(), Some("/tmp/a b"));
    assert_eq!(task.environment["A"], "1");
    let line = job(Verb::Submit, &["cat < in | sort"]).expect("a command").task.expect("a task");
    assert_eq!(line.attributes.command_line.as_deref(), Some("cat < in | sort"), "one word is a line as it stands");
    let dashes = job(Verb::Submit, &["--nowait", "--", "/single"]).expect("a command");
    assert!(dashes.is_set("nowait") && dashes.task.is_some());
    let by_id = self::command("submit /id:17 /nowait:false");
    assert_eq!((by_id.other("id"), by_id.is_set("nowait"), &by_id.task), (Some("17"), false, &None));
    let by_file = self::command("submit /jobfile:job.xml /priority:Highest /holduntil:");
    assert_eq!(
        (by_file.other("jobfile"), by_file.other("holduntil"), by_file.edits.len()),
        (Some("job.xml"), Some(""), 1)
    );
}

/// HPC-C-04
#[test]
fn a_task_is_added_to_a_job() {
    let line = "add 12 /name:t /parametric:1-99:7 /depend:a,b /exclusive /runtime:5 /numnodes:1 /rerunnable \
                /stdin:i /stdout:o* /stderr:e /requirednodes:n1 /validexitcodes:0,3 run * /now";
    let command = command(line);
    let task = command.task.expect("a task").attributes;
    assert_eq!((command.ids, command.edits.len()), (vec![12], 0));
    assert_eq!(task.task_type, Some(TaskType::ParametricSweep));
    assert_eq!((task.start_value, task.end_value, task.increment_value), (Some(1), Some(99), Some(7)));
    assert_eq!((task.min_nodes, task.is_exclusive, task.is_rerunnable), (Some(1), Some(true), Some(true)));
    assert_eq!(task.command_line.as_deref(), Some("run '*' /now"));
    let service = self::command("add 12 /type:service run").task.expect("a task");
    assert_eq!(service.attributes.task_type, Some(TaskType::Service));
    let sweep = self::command("submit /parametric:50 run").task.expect("a task").attributes;
    assert_eq!((sweep.start_value, sweep.end_value), (Some(1), Some(50)));
    assert_eq!(self::command("add 12 /taskfile:t.xml").task, None);
}

/// HPC-C-06
#[test]
fn jobs_are_canceled_and_finished_by_id() {
    let cancel = command("cancel 3 4 /force /message:enough");
    assert_eq!(
        (cancel.ids.as_slice(), cancel.is_set("force"), cancel.other("message")),
        (&[3, 4][..], true, Some("enough"))
    );
    assert!(command("finish 3 /graceful").is_set("graceful"));
    assert_eq!(command("requeue 5").ids, [5]);
    assert_eq!(command("clone 5").ids, [5]);
}

/// HPC-J-27
#[test]
fn messages_over_their_limits_are_refused() {
    for (verb, option, most) in
        [("cancel 1", "message", 128), ("finish 1", "message", 128), ("modify 1", "progressmsg", 80)]
    {
        let exactly = "x".repeat(most);
        assert_eq!(command(&format!("{verb} /{option}:{exactly}")).other(option), Some(exactly.as_str()));
        let refused = errors(&format!("{verb} /{option}:{exactly}x"));
        assert!(matches!(&refused[..], [OptionError::Refused { refusal, .. }] if refusal.code == Code::ValueTooLong));
    }
    assert_eq!(command("modify 1 /progress:100").other("progress"), Some("100"));
    assert_eq!(errors("modify 1 /progress:101")[0].exit_code(), 1);
}

/// HPC-C-07
#[test]
fn jobs_are_viewed_and_listed() {
    assert!(command("view 3 /history").is_set("history"));
    assert!(command("view /xml 3").is_set("xml"));
    let list = command("list /state:Queued,Running /user:ann /all");
    assert_eq!(
        (list.other("state"), list.other("user"), list.is_set("all")),
        (Some("Queued,Running"), Some("ann"), true)
    );
    assert_eq!(command("listtasks 3 /format:list").other("format"), Some("list"));
    assert!(command("new /?").is_set("help") && command("cancel --help").is_set("help"));
}

/// HPC-C-01
#[test]
fn other_commands_have_options_and_words() {
    let known = [("detailed", Takes::Truth), ("scheduler", Takes::Value)];
    let command = others(&["BigJob", "/DETAILED", "--", "/x"], &known).expect("options");
    assert_eq!(command.options.get("detailed").map(String::as_str), Some("true"));
    assert_eq!(command.words, ["BigJob", "/x"]);
    assert_eq!(others(&["/details"], &known).map_err(|errors| errors.len()), Err(1));
}
