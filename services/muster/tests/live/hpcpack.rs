//! The HPC Pack dialect on a live system, through the commands that people type.

use crate::system::{Output, System};

pub fn submitted(told: &str) -> String {
    let id = told.rsplit("ID: ").next().unwrap_or_default();
    id.trim().trim_end_matches('.').to_owned()
}

pub fn submit(system: &System, arguments: &[&str]) -> String {
    submitted(&system.ok(&[&["job", "submit"], arguments].concat()))
}

/// The value of a line of `job view`.
pub fn shown(system: &System, job: &str, field: &str) -> String {
    let told = system.ok(&["job", "view", job]);
    let line = told.lines().find_map(|line| line.strip_prefix(field));
    line.unwrap_or_default().trim().to_owned()
}

/// HPC-C-01, HPC-C-02, HPC-C-05
#[test]
fn wrong_usage_is_told_and_nothing_is_submitted() {
    let system = System::start(1);
    for (arguments, expected) in [
        (&["job", "submit", "/numcoers:2", "hostname"][..], "nearest known is /numcores"),
        (&["job", "submit", "/numcores:2", "/numnodes:1", "hostname"], "cannot be given together"),
        (&["job", "view"], "needs a job id"),
        (&["cluscfg", "setparam"], "usage: cluscfg"),
        (&["cluscfg", "setparams", "BackfillLookAhead"], "expected Name=value"),
        (&["cluscfg", "setparams", "BackfillLookAhead=5", "Foo=1"], "Foo=1: no such setting"),
        (&["jobtemplate", "list", "/kind:x"], "has no option /kind"),
    ] {
        let Output { status, stderr, .. } = system.run(arguments);
        assert_eq!((status, stderr.contains(expected)), (2, true), "{arguments:?}: {stderr}");
    }
    assert_eq!(system.run(&["job", "submit", "/priority:High", "hostname"]).status, 1);
    assert!(system.ok(&["job", "list", "/all"]).contains("0 matching jobs"));
    assert!(!system.ok(&["cluscfg", "listparams"]).lines().any(|line| line.starts_with("BackfillLookAhead  5")));
}

/// HPC-C-02, HPC-C-08, HPC-F-71
#[test]
fn each_way_to_fail_has_an_exit_code_of_its_own() {
    let system = System::start_for_others();
    let job = submit(&system, &["/holduntil:60", "true"]);
    for arguments in [
        &["cluscfg", "setparams", "BackfillLookAhead=5"][..],
        &["jobtemplate", "new", "Theirs"],
        &["job", "cancel", &job, "/force"],
        &["job", "modify", &job, "/priority:Lowest"],
    ] {
        let Output { status, stderr, .. } = system.run_as_nobody(arguments);
        assert_eq!(status, 3, "{arguments:?}: {stderr}");
    }
    assert_eq!(shown(&system, &job, "State"), "Queued");
    assert_eq!(system.run_as_nobody(&["job", "view", &job]).status, 0);
    for (arguments, expected) in [
        (&["cluscfg", "setparams", "BackfillLookAhead=5"][..], 0),
        (&["cluscfg", "setparams", "DefaultHoldDuration=59"], 1),
        (&["job", "submit", "/jobtemplate:Nosuch", "true"], 1),
        (&["job", "modify", &job, "/holduntil:2001-01-01T00:00:00Z"], 1),
        (&["cluscfg", "setparams", "Foo=1"], 2),
        (&["job", "submit", "/numcores:2", "/numnodes:1", "true"], 2),
        (&["job", "cancel"], 2),
        (&["job", "view", "99"], 4),
        (&["jobtemplate", "view", "Nosuch"], 4),
        (&["--data", "/nonexistent", "job", "list"], 5),
    ] {
        let Output { status, stderr, .. } = system.run(arguments);
        assert_eq!(status, expected, "{arguments:?}: {stderr}");
    }
}

/// HPC-C-01
#[test]
fn the_commands_work_through_links() {
    let system = System::start(1);
    let told = system.ok(&["install-commands", "bin"]);
    assert!(
        ["bin/job", "bin/jobtemplate", "bin/cluscfg"].iter().all(|link| told.lines().any(|line| line == *link)),
        "{told}"
    );
    let run = |name: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(system.path("bin").join(name));
        command.args(arguments).env("MUSTER_DATA", system.path("data")).env_remove("MUSTER_SERVER");
        command.current_dir(system.path(""));
        let output = command.output().expect("the link can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let job = submitted(&run("job", &["submit", "/jobname:linked", "true"]));
    assert!(run("job", &["view", &job]).contains("linked"));
    assert!(run("jobtemplate", &["list"]).contains("Default"));
    assert!(run("cluscfg", &["listparams"]).contains("BackfillLookAhead"));
    std::fs::remove_file(system.path("bin/job")).unwrap();
    std::os::unix::fs::symlink("/opt/muster/muster-0.9", system.path("bin/job")).unwrap();
    system.ok(&["install-commands", "bin"]);
    assert!(run("job", &["view", &job]).contains("linked"), "links to another version are replaced");
    std::fs::remove_file(system.path("bin/job")).unwrap();
    system.write("bin/job", "something else");
    assert_eq!(system.run(&["install-commands", "bin"]).status, 1);
    assert_eq!(system.read("bin/job"), "something else");
}

/// HPC-C-03, HPC-J-02, HPC-J-22
#[test]
fn a_submitted_job_is_in_the_queue_and_its_tasks_run() {
    let system = System::start(1);
    let xml = "<Job Name='sweep' MaxCores='2'><Tasks>\
               <Task Type='ParametricSweep' StartValue='1' EndValue='3' CommandLine='echo ran * > out.***'/></Tasks></Job>";
    system.write("job.xml", xml);
    let job = submit(&system, &["/jobfile:job.xml"]);
    system.wait_until("the job has finished", || shown(&system, &job, "State") == "Finished");
    for value in 1..=3 {
        assert_eq!(system.read(&format!("out.{value:03}")), format!("ran {value}\n"));
    }
    assert!(system.ok(&["job", "listtasks", &job]).contains("3 Finished"));
    let history = system.ok(&["job", "view", &job, "/history"]);
    let wanted = ["job.submitted", "job.validated", "job.queued", "job.started", "job.finished"];
    let mut rest = history.as_str();
    for name in wanted {
        let at = rest.find(name).unwrap_or_else(|| panic!("{name} is not in order in\n{history}"));
        rest = &rest[at + name.len()..];
    }
}

/// HPC-C-04
#[test]
fn a_job_can_be_made_step_by_step() {
    let system = System::start(1);
    let job = submitted(&system.ok(&["job", "new", "/jobname:steps", "/numcores:1"]));
    assert_eq!(shown(&system, &job, "State"), "Configuring");
    system.ok(&["job", "add", &job, "/name:first", "sh", "-c", "echo one > first"]);
    system.ok(&["job", "add", &job, "/depend:first", "sh", "-c", "cat first > second"]);
    system.ok(&["job", "modify", &job, "/priority:Highest"]);
    system.ok(&["job", "submit", &format!("/id:{job}")]);
    system.wait_until("the job has finished", || shown(&system, &job, "State") == "Finished");
    assert_eq!(system.read("second"), "one\n");
    assert_eq!(shown(&system, &job, "Priority"), "Highest");
}

/// HPC-C-04
#[test]
fn tasks_that_are_added_at_the_same_time_are_all_in_the_job() {
    let system = System::start(1);
    let job = submitted(&system.ok(&["job", "new", "/numcores:1"]));
    let names: Vec<String> = (1..=8).map(|number| format!("t{number}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let (system, job) = (&system, &job);
            scope.spawn(move || system.ok(&["job", "add", job, &format!("/name:{name}"), "touch", name]));
        }
    });
    system.ok(&["job", "submit", &format!("/id:{job}")]);
    system.wait_until("the job has finished", || shown(&system, &job, "State") == "Finished");
    let missing: Vec<&String> = names.iter().filter(|name| !system.path(name).exists()).collect();
    assert!(missing.is_empty(), "these tasks were lost: {missing:?}");
}

/// HPC-J-18
#[test]
fn unknown_nodes_and_groups_are_named() {
    let system = System::start(1);
    let excluding = "<Job ExcludedNodes='nosuch'><Tasks><Task CommandLine='true'/></Tasks></Job>";
    system.write("excluding.xml", excluding);
    for (option, told) in [
        ("/requestednodes:nosuch", "[NodeNotFound] there is no node `nosuch`"),
        ("/jobfile:excluding.xml", "[NodeNotFound] there is no node `nosuch`"),
        ("/nodegroup:nosuch", "[NodeGroupNotFound] there is no node group `nosuch`"),
    ] {
        let Output { status, stdout, stderr } = match option.starts_with("/jobfile") {
            true => system.run(&["job", "submit", option]),
            false => system.run(&["job", "submit", option, "true"]),
        };
        assert!(status == 1 && stderr.contains(told), "{option}: {stderr}");
        let job = submitted(&stdout);
        assert_eq!(shown(&system, &job, "State"), "Failed");
    }
    let queued = submit(&system, &["/holduntil:60", "true"]);
    let Output { status, stderr, .. } = system.run(&["job", "modify", &queued, "/requestednodes:nosuch"]);
    assert!(status == 1 && stderr.contains("[NodeNotFound] there is no node `nosuch`"), "{stderr}");
}

/// HPC-C-05, HPC-J-13
#[test]
fn a_queued_job_can_be_given_another_size_and_unit() {
    let system = System::start(1);
    let job = submit(&system, &["/holduntil:60", "/numcores:1-2", "true"]);
    for (option, size) in [("/numcores:2-3", "2-3 cores"), ("/numnodes:1", "1 node"), ("/numsockets:1", "1 socket")] {
        system.ok(&["job", "modify", &job, option]);
        assert_eq!(shown(&system, &job, "Resource Request"), size, "{option}");
    }
    let xml = system.ok(&["job", "view", &job, "/xml"]);
    assert!(xml.contains("UnitType=\"Socket\"") && xml.contains("MinSockets=\"1\""), "{xml}");
    system.ok(&["job", "modify", &job, "/holduntil:0"]);
    system.wait_until("it has finished", || shown(&system, &job, "State") == "Finished");
}

/// HPC-J-04, HPC-J-23, HPC-T-05, HPC-T-08
#[test]
fn a_job_that_breaks_rules_fails_and_stays_readable() {
    let system = System::start(1);
    system.ok(&["jobtemplate", "new", "Short"]);
    system.ok(&["jobtemplate", "set", "Short", "RunTime", "/max:60"]);
    system.ok(&["jobtemplate", "set", "Short", "MaxCores", "/max:2"]);
    let breaking = system.run(&["job", "submit", "/jobtemplate:Short", "/numcores:3", "true"]);
    assert_eq!(breaking.status, 1, "{}", breaking.stderr);
    for part in ["[TemplateValueTooLarge] template 'Short': RunTime = none", "MaxCores = 3, allowed at most 2"] {
        assert!(breaking.stderr.contains(part), "{part} in {}", breaking.stderr);
    }
    let job = submitted(&breaking.stdout);
    assert_eq!(shown(&system, &job, "State"), "Failed");
    assert_eq!(shown(&system, &job, "Error Code"), "TemplateValueTooLarge");
    let unknown = system.run(&["job", "submit", "/jobtemplate:Nosuch", "true"]);
    assert!(unknown.status == 1 && unknown.stderr.contains("[TemplateNotFound]"), "{}", unknown.stderr);
    system.write(
        "mixed.xml",
        "<Job><Tasks><Task Type='Service' CommandLine='a'/><Task Name='b' CommandLine='b'/></Tasks></Job>",
    );
    let mixed = system.run(&["job", "submit", "/jobfile:mixed.xml"]);
    assert!(mixed.status == 1 && mixed.stderr.contains("[TaskNotValid]"), "{}", mixed.stderr);
    assert_eq!(system.run(&["jobtemplate", "delete", "Default"]).status, 1);
    submit(&system, &["/jobtemplate:Short", "/runtime:1", "true"]);
}

/// HPC-T-10: muster's own commands do not know templates, but cannot take a job out of its limits either.
#[test]
fn no_command_leads_a_job_out_of_the_limits_of_its_template() {
    let system = System::start(1);
    system.ok(&["jobtemplate", "new", "Short"]);
    system.ok(&["jobtemplate", "set", "Short", "RunTime", "/max:600"]);
    system.ok(&["jobtemplate", "set", "Short", "MaxCores", "/max:2"]);
    system.ok(&["jobtemplate", "set", "Short", "Project", "/allowed:wing,wheel"]);
    let job = submit(
        &system,
        &["/jobtemplate:Short", "/holduntil:60", "/runtime:5", "/numcores:1-2", "/projectname:wing", "true"],
    );
    for (change, told) in [
        (&["--time", "11m"][..], "[TemplateValueTooLarge] template 'Short': RunTime = 11, allowed at most 10"),
        (&["--set-account", "tail"], "[TemplateValueInvalid] template 'Short': Project = tail, allowed wing, wheel"),
        (&["/numcores:1-3"], "MaxCores = 3, allowed at most 2"),
    ] {
        let Output { status, stderr, .. } = system.run(&[&["job", "modify", &job], change].concat());
        assert!(status == 1 && stderr.contains(told), "{change:?}: {stderr}");
    }
    system.ok(&["job", "modify", &job, "--time", "10m", "--set-account", "wheel"]);
    let shown = ["Run Time", "Resource Request", "Project"].map(|field| self::shown(&system, &job, field));
    assert_eq!(shown, ["10", "1-2 cores", "wheel"]);
}

/// HPC-T-10: an administrator may give a waiting or running job any priority, its owner one within the limits.
#[test]
fn administrators_alone_may_set_a_priority_outside_the_limits_of_the_template() {
    let system = System::start_for_others();
    system.ok(&["jobtemplate", "new", "Low"]);
    system.ok(&["jobtemplate", "set", "Low", "Priority", "/max:2000"]);
    let high = system.run(&["job", "submit", "/jobtemplate:Low", "/priority:Highest", "true"]);
    assert!(high.status == 1 && high.stderr.contains("[TemplateValueTooLarge]"), "{}", high.stderr);
    let places = ["/workdir:/", "/stdout:/dev/null", "/stderr:/dev/null"];
    let submission = [&["job", "submit", "/jobtemplate:Low"], &places[..], &["sleep", "600"]].concat();
    let Output { status, stdout, stderr } = system.run_as_nobody(&submission);
    assert_eq!(status, 0, "{stderr}");
    let job = submitted(&stdout);
    system.wait_until("it runs", || shown(&system, &job, "State") == "Running");
    let Output { status, stderr, .. } = system.run_as_nobody(&["job", "modify", &job, "/priority:Normal+1"]);
    assert!(status == 1 && stderr.contains("[TemplateValueTooLarge]"), "{stderr}");
    let Output { status, stderr, .. } = system.run_as_nobody(&["job", "modify", &job, "/priority:Lowest"]);
    assert_eq!((status, shown(&system, &job, "Priority").as_str()), (0, "Lowest"), "{stderr}");
    system.ok(&["job", "modify", &job, "/priority:Highest"]);
    assert_eq!(shown(&system, &job, "Priority"), "Highest");
    assert_eq!(system.run(&["job", "modify", &job, "/priority:4001"]).status, 1);
    system.ok(&["job", "cancel", &job, "/force"]);
}

/// HPC-J-47
#[test]
fn a_file_that_cannot_be_read_is_told_with_its_place_and_no_job_is_made() {
    let system = System::start(1);
    system.write("bad.xml", "<Job>\n  <Tasks>\n</Job>");
    let Output { status, stderr, .. } = system.run(&["job", "submit", "/jobfile:bad.xml"]);
    assert_eq!(status, 1);
    assert!(stderr.starts_with("bad.xml:3:") && stderr.contains("[JobXmlNotValid]"), "{stderr}");
    assert!(system.ok(&["job", "list", "/all"]).contains("0 matching jobs"));
}

/// HPC-J-48, HPC-J-26, HPC-H-07, HPC-H-08
#[test]
fn a_held_job_can_be_changed_exported_and_let_go() {
    let system = System::start(1);
    let job = submit(&system, &["/jobname:held", "/holduntil:60", "/numcores:1-2", "true"]);
    assert_eq!(shown(&system, &job, "Pending Reason"), "HeldByUser");
    system.ok(&["job", "modify", &job, "/priority:Lowest+7", "/runtime:5"]);
    assert_eq!((shown(&system, &job, "Priority"), shown(&system, &job, "Run Time")), ("Lowest+7".into(), "5".into()));
    let late = system.run(&["job", "modify", &job, "/holduntil:2001-01-01T00:00:00Z"]);
    assert!(late.status == 1 && late.stderr.contains("HoldUntilNotValid"), "{}", late.stderr);
    let xml = system.ok(&["job", "view", &job, "/xml"]);
    system.write("again.xml", &xml);
    let again = submit(&system, &["/jobfile:again.xml"]);
    for field in ["Job Name", "Priority", "Run Time", "Resource Request", "Job Template"] {
        assert_eq!(shown(&system, &again, field), shown(&system, &job, field), "{field}");
    }
    for held in [&job, &again] {
        system.ok(&["job", "modify", held, "/holduntil:0"]);
        system.wait_until("it has finished", || shown(&system, held, "State") == "Finished");
    }
}

/// HPC-C-06
#[test]
fn jobs_are_canceled_and_finished_with_a_message() {
    let system = System::start(1);
    let canceled = submit(&system, &["sleep", "600"]);
    let finished = submit(&system, &["sleep", "600"]);
    for job in [&canceled, &finished] {
        system.wait_until("it runs", || shown(&system, job, "State") == "Running");
    }
    system.ok(&["job", "cancel", &canceled, "/force", "/message:enough"]);
    system.ok(&["job", "finish", &finished]);
    system.wait_until("it is canceled", || shown(&system, &canceled, "State") == "Canceled");
    system.wait_until("it is finished", || shown(&system, &finished, "State") == "Finished");
    assert_eq!(shown(&system, &canceled, "Message"), "enough");
}

/// Submits a job that reports when it runs and, if it gets the time, that it has cleaned up.
fn submit_cleaning(system: &System, name: &str) -> String {
    let text =
        format!("trap 'echo cleaned > {name}.cleaned; exit 0' TERM; echo > {name}.runs; while :; do sleep 0.01; done");
    let job = system.submit(&["--", "sh", "-c", &text]);
    system.wait_until("it runs", || system.path(&format!("{name}.runs")).exists());
    job
}

/// HPC-C-06
#[test]
fn a_job_that_is_ended_has_time_to_clean_up_unless_it_is_forced() {
    let system = System::start(1);
    for (name, arguments, state, is_cleaned) in [
        ("canceled", &["job", "cancel"][..], "Canceled", true),
        ("finished", &["job", "finish"], "Finished", true),
        ("killed", &["job", "cancel", "/force"], "Canceled", false),
    ] {
        let job = submit_cleaning(&system, name);
        system.ok(&[arguments, &[&job]].concat());
        system.wait_until("it has ended", || shown(&system, &job, "State") == state);
        assert_eq!(system.read(&format!("{name}.cleaned")) == "cleaned\n", is_cleaned, "{name}");
    }
}

/// HPC-C-06
#[test]
fn a_job_that_is_ended_gracefully_ends_the_tasks_that_run_and_begins_no_more() {
    let system = System::start(1);
    let line = "echo > runs; until [ -e go ]; do sleep 0.01; done; echo * >> done";
    let tasks = format!("<Task Type='ParametricSweep' StartValue='1' EndValue='3' CommandLine='{line}'/>");
    system.write("sweep.xml", &format!("<Job MinCores='1' MaxCores='1'><Tasks>{tasks}</Tasks></Job>"));
    let job = submit(&system, &["/jobfile:sweep.xml"]);
    system.wait_until("it runs", || system.path("runs").exists());
    system.ok(&["job", "cancel", &job, "/graceful"]);
    system.wait_until("it is ending", || shown(&system, &job, "State") == "Finishing");
    system.write("go", "");
    system.wait_until("it has ended", || shown(&system, &job, "State") == "Canceled");
    assert_eq!(system.read("done"), "1\n");
    let plain = submit_cleaning(&system, "plain");
    let refused = system.run(&["job", "cancel", &plain, "/graceful"]);
    assert_eq!((refused.status, shown(&system, &plain, "State").as_str()), (1, "Running"), "{}", refused.stderr);
    system.ok(&["job", "cancel", &plain, "/force"]);
}

/// HPC-C-05, HPC-J-13: a task that could use more than its job's maximum gets more once the maximum is raised.
#[test]
fn a_task_uses_what_its_job_was_given_later() {
    let system = System::start(1);
    let task = "<Task MinCores='1' MaxCores='4' CommandLine='true'/>";
    system.write("job.xml", &format!("<Job MinCores='1' MaxCores='2'><Tasks>{task}</Tasks></Job>"));
    let job = submit(&system, &["/jobfile:job.xml", "/holduntil:60"]);
    system.ok(&["job", "modify", &job, "/numcores:4"]);
    assert!(system.ok(&["job", "listtasks", &job]).contains("1-4"));
    system.ok(&["job", "modify", &job, "/holduntil:0"]);
    system.wait_until("it has finished", || shown(&system, &job, "State") == "Finished");
    let events = system.ok(&["job", "events", &job, "--json"]);
    let started = events.lines().find(|line| line.contains("muster.task.started")).unwrap_or_default();
    assert!(started.contains("\"tasks\":4") || started.contains("\"cores\":4"), "{started}");
}

/// HPC-C-08, HPC-C-09, HPC-H-02
#[test]
fn settings_are_set_all_or_none() {
    let system = System::start(1);
    let bad = system.run(&["cluscfg", "setparams", "defaultholdduration=59", "BackfillLookAhead=5"]);
    assert!(bad.status == 1 && bad.stderr.contains("60..604800"), "{}", bad.stderr);
    let value = |name: &str| {
        let told = system.ok(&["cluscfg", "listparams"]);
        let line = told.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        line.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!((value("DefaultHoldDuration"), value("BackfillLookAhead")), ("900".into(), "1000".into()));
    system.ok(&["cluscfg", "setparams", "defaultHoldDuration=60", "BackfillLookAhead=5", "SchedulingMode=balanced"]);
    assert_eq!((value("DefaultHoldDuration"), value("BackfillLookAhead")), ("60".into(), "5".into()));
    assert_eq!(value("SchedulingMode"), "Balanced");
    assert_eq!(system.run(&["cluscfg", "setparams", "SubmissionFilterProgram=relative"]).status, 1);
}

/// HPC-F-72: programs live on the hosts of runners, so one that is missing here is taken, with a warning.
#[test]
fn a_filter_program_that_is_not_on_this_host_is_taken_with_a_warning() {
    let system = System::start(1);
    let (missing, there) = (system.path("missing").display().to_string(), system.path("there").display().to_string());
    system.write("there", "#!/bin/sh\n");
    let set = |name: &str, program: &str| {
        let said = system.run(&["cluscfg", "setparams", &format!("{name}={program}")]);
        assert_eq!(said.status, 0, "{}", said.stderr);
        said.stderr
    };
    let warning = format!("{missing} does not exist on this host; it has to be there for the filter-runners");
    for name in ["SubmissionFilterProgram", "ActivationFilterProgram"] {
        let said = set(name, &missing);
        assert!(said.starts_with("muster: warning: ") && said.contains(&warning), "{said}");
        assert!(system.ok(&["cluscfg", "listparams"]).contains(&missing));
        assert_eq!(set(name, &missing), "", "who leaves it as it is has been told");
        assert_eq!(set(name, &there), "");
    }
}

/// HPC-T-01, HPC-T-02
#[test]
fn a_template_goes_out_as_xml_and_comes_in_again() {
    let system = System::start(1);
    system.ok(&["jobtemplate", "new", "T", "/description:for tests"]);
    system.ok(&["jobtemplate", "set", "T", "Priority", "/default:BelowNormal", "/max:2000"]);
    system.ok(&["jobtemplate", "allow", "T", "/group:staff", "/only"]);
    system.ok(&["jobtemplate", "add-filter", "T", "quota", "/kind:activation", "/path:/opt/quota", "/revertonunknown"]);
    let first = system.ok(&["jobtemplate", "export", "T"]);
    system.ok(&["jobtemplate", "export", "T", "t.xml"]);
    system.ok(&["jobtemplate", "delete", "T"]);
    assert_eq!(system.run(&["jobtemplate", "view", "T"]).status, 4);
    system.ok(&["jobtemplate", "import", "t.xml"]);
    assert_eq!(system.ok(&["jobtemplate", "export", "T"]), first);
    let shown = system.ok(&["jobtemplate", "view", "T"]);
    assert!(shown.contains("allow group staff") && shown.contains("quota") && shown.contains("BelowNormal"), "{shown}");
    assert!(system.ok(&["jobtemplate", "list"]).contains("Default"));
}

/// HPC-J-11
#[test]
fn a_job_whose_run_time_is_over_is_canceled_with_its_code() {
    let system = System::start(1);
    system.write("short.xml", "<Job RuntimeSeconds='1'><Tasks><Task CommandLine='sleep 600'/></Tasks></Job>");
    let job = submit(&system, &["/jobfile:short.xml"]);
    system.wait_until("its run time is over", || shown(&system, &job, "State") == "Canceled");
    assert_eq!(shown(&system, &job, "Error Message"), "[RunTimeExpired] the run time of 1 s is over");
    assert!(system.ok(&["job", "view", &job, "/xml"]).contains("State=\"Canceled\""));
    let changed = system.run(&["job", "modify", &job, "/priority:Highest"]);
    assert!(changed.status == 1 && changed.stderr.contains("is Canceled"), "{}", changed.stderr);
}

/// HPC-J-25
#[test]
fn a_job_whose_parent_failed_stays_in_the_queue_and_says_so() {
    let system = System::start(1);
    let parent = submit(&system, &["/holduntil:60", "false"]);
    let child = submit(&system, &[&format!("/parentjobids:{parent}"), "true"]);
    system.wait_until("it is looked at", || shown(&system, &child, "Pending Reason") == "ParentJobsNotFinished");
    system.ok(&["job", "modify", &parent, "/holduntil:0"]);
    let reason = "ParentJobsCanceledOrFailed";
    system.wait_until("its parent has failed", || shown(&system, &child, "Pending Reason") == reason);
    assert_eq!((shown(&system, &parent, "State"), shown(&system, &child, "State")), ("Failed".into(), "Queued".into()));
}
