//! The command lines of commands about jobs that are there.

use crate::support::{detail, now, rules, sources, submission, view, words};
use muster_pbs::{
    flavour::Flavour::{self, PbsPro, Torque},
    queries::{
        self, Destination, Format, Mode, Operand, Signal, StatRequest, Switch, pbsdsh, qdel, qhold, qmove, qmsg,
        qorder, qrerun, qrun, qselect, qsig, run_nodes, switched,
    },
    show::{Units, of_detail},
    submit::{Present, Reading},
};
use muster_schemas::{
    JobId,
    job::{Holds, JobSpec, Notification, Occasion, Sink},
    resources::Relation,
};
use proptest::prelude::*;

fn stat(line: &str, flavour: Flavour) -> StatRequest {
    queries::qstat(&words(line), flavour).unwrap_or_else(|wrong| panic!("{line}: {wrong}"))
}

fn pro(line: &str) -> StatRequest {
    stat(line, Flavour::PbsPro)
}

#[test]
fn qstat_has_a_mode_a_form_and_operands() {
    assert_eq!(pro(""), StatRequest::default());
    assert_eq!(pro("-f -F json -x 1.pbs1 2[].pbs1").format, Format::Json);
    assert!(pro("-f -F json -x 1.pbs1").history);
    assert_eq!(pro("-fx -F dsv -D ';'").format, Format::Dsv(";".into()));
    assert_eq!(pro("-f -F dsv").format, Format::Dsv("|".into()));
    assert_eq!((pro("-Q").mode, pro("-Q").format), (Mode::Queues, Format::List));
    assert_eq!((pro("-q").mode, pro("-q").format), (Mode::Queues, Format::Alternate));
    assert_eq!((pro("-Bf").mode, pro("-Bf").format), (Mode::Servers, Format::Full));
    assert_eq!(
        (pro("-a").format, pro("-r").states.as_str(), pro("-i").states.as_str()),
        (Format::Alternate, "RSB", "EHQTW")
    );
    let read = pro("-u ann,bob@host -n1sw");
    assert_eq!((read.users.as_slice(), read.nodes, read.one_line), (&["ann".to_owned(), "bob".into()][..], true, true));
    assert!(read.comments && read.wide && read.format == Format::Alternate);
    assert_eq!(pro("-aG").units, Units::Gigabytes);
    assert_eq!(pro("-W 'a u ann'").users, ["ann"]);
    let destination = Destination { queue: Some("batch".into()), server: Some("pbs1".into()) };
    assert_eq!(pro("batch@pbs1").operands, [Operand::Destination(destination)]);
    assert!(matches!(&pro("12").operands[..], [Operand::Job(id)] if id.single() == Some(JobId::job(12))));
    assert_eq!(stat("-x", Flavour::Torque).format, Format::Xml);
    assert!(stat("-c -t", Flavour::Torque).without_complete);
    assert!(pro("--version").version);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    for line in ["-a -r", "-G -M", "-B -Q", "-Q -a", "-q -f", "-1", "-F json", "-f -F json -w", "-f -D x"] {
        assert!(queries::qstat(&words(line), Flavour::PbsPro).is_err(), "{line}");
    }
    let message = |line: &str| queries::qstat(&words(line), Flavour::PbsPro).unwrap_err().to_string();
    assert_eq!(message("-a -i"), "conflicting options.");
    assert_eq!(message("-f -F yaml"), "illegal -F value: `yaml`: expected default, dsv or json");
    assert_eq!(message("-Z"), "invalid option -- 'Z'");
    assert_eq!(message("-W k"), "invalid option -- 'k'");
    assert_eq!(message("-u ,"), "illegal -u value: `,`: expected the names of users");
}

#[test]
fn commands_about_jobs_have_jobs() {
    let deletion = qdel(&words("-W force -x 1 2[3]")).unwrap();
    assert!(deletion.force && deletion.history && deletion.jobs.len() == 2);
    assert_eq!(qdel(&words("-W 30 1")).unwrap().delay_seconds, Some(30));
    assert!(qdel(&words("all")).unwrap().all);
    assert_eq!(qdel(&words("x")).unwrap_err().to_string(), "illegally formed job identifier: x");
    assert_eq!(qdel(&[]).unwrap_err().to_string(), "a job identifier is missing");
    let held = qhold(&words("-h uo 1")).unwrap();
    assert_eq!(held.holds, Holds { user: true, operator: true, system: false });
    assert!(
        qhold(&words("1")).unwrap().holds.user && qhold(&words("-h x 1")).is_err() && qhold(&words("-h '' 1")).is_err()
    );
    for (line, signal) in [
        ("1", Signal::Number(15)),
        ("-s SIGKILL 1", Signal::Number(9)),
        ("-s USR1 1", Signal::Number(10)),
        ("-s 0 1", Signal::Number(0)),
        ("-s suspend 1", Signal::Suspend),
        ("-s resume 1", Signal::Resume),
    ] {
        assert_eq!(qsig(&words(line)).unwrap().0, signal, "{line}");
    }
    assert!(qsig(&words("-s NOSUCH 1")).is_err() && qsig(&words("-s 65 1")).is_err());
    assert!(qrerun(&words("-W force 1")).unwrap().0 && !qrerun(&words("1")).unwrap().0);
    assert_eq!(qmove(&words("long@pbs1 1 2")).unwrap().1.len(), 2);
    assert!(qmove(&[]).is_err() && qmove(&words("long")).is_err() && qmove(&words("a@b@c 1")).is_err());
    assert!(qorder(&words("1 2")).is_ok() && qorder(&words("1")).is_err() && qorder(&words("1 2 3")).is_err());
    let message = qmsg(&words("-O 'hello there' 1")).unwrap();
    assert!(message.to_output && !message.to_error && message.text == "hello there");
    assert!(qmsg(&words("hello 1")).unwrap().to_error && qmsg(&words("hello")).is_err());
    assert_eq!(qrun(&words("-H n1 1")).unwrap().1.as_deref(), Some("n1"));
}

#[test]
fn qselect_compares() {
    let request = qselect(
        &words("-s QR -u ann -q batch -p .gt.5 -r y -N x -l 'walltime.ge.600,mem<=1gb,ncpus=4' -a .lt.1200"),
        &now(),
    );
    let request = request.unwrap();
    assert_eq!((request.states.as_str(), request.priority), ("QR", Some((Relation::Greater, 5))));
    let relations: Vec<(&str, Relation, &str)> =
        request.resources.iter().map(|one| (one.name.as_str(), one.relation, one.value.as_str())).collect();
    let expected = [
        ("walltime", Relation::GreaterOrEqual, "600"),
        ("mem", Relation::LessOrEqual, "1gb"),
        ("ncpus", Relation::Equal, "4"),
    ];
    assert_eq!(relations, expected);
    assert_eq!(request.begin.map(|(relation, _)| relation), Some(Relation::Less));
    let times = qselect(&words("-t q.gt.202611200800 -t s.le.202611201200 -tc202611200000"), &now()).unwrap().times;
    let times: Vec<(&str, Relation)> = times.iter().map(|(name, relation, _)| (*name, *relation)).collect();
    assert_eq!(times, [("qtime", Relation::Greater), ("stime", Relation::LessOrEqual), ("ctime", Relation::Equal)]);
    for line in ["-t 202611200800", "-t x.gt.202611200800", "-t q.gt.soon", "-t ''"] {
        assert!(qselect(&words(line), &now()).is_err(), "{line}");
    }
    for line in ["-s Y", "-p x", "-l mem", "-l =1", "-r x", "-h z", "-a soon", "word", "-q a@b@c"] {
        assert!(qselect(&words(line), &now()).is_err(), "{line}");
    }
}

#[test]
fn qalter_takes_what_changes_a_job() {
    let now = now();
    let reading = Reading { now: &now, flavour: Flavour::PbsPro, array_limit: 100 };
    let read = queries::alteration(&words("-l walltime=1:00 -N new -h uo 1 2"), &reading).unwrap();
    assert_eq!((read.letters.as_slice(), read.holds.as_deref()), (&['l', 'N', 'h'][..], Some("uo")));
    assert_eq!((read.settings.name.as_deref(), read.jobs.len()), (Some("new"), 2));
    for line in ["-l walltime=1:00", "-V 1", "-h x 1", "-N", "-l =1 1"] {
        assert!(queries::alteration(&words(line), &reading).is_err(), "{line}");
    }
}

proptest! {
    #[test]
    fn no_command_line_makes_queries_panic(words in prop::collection::vec("(-[a-zA-Z1]{1,3}|[0-9]{1,3}|\\PC{0,8})", 0..6)) {
        let now = now();
        let reading = Reading { now: &now, flavour: Flavour::PbsPro, array_limit: 100 };
        let _ = (queries::qstat(&words, Flavour::PbsPro), queries::qstat(&words, Flavour::Torque), qdel(&words));
        let _ = (qhold(&words), qsig(&words), qrerun(&words), qmove(&words), qorder(&words), qmsg(&words), qrun(&words));
        let _ = (qselect(&words, &now), queries::alteration(&words, &reading));
    }
}

#[test]
fn qalter_changes_what_it_names_and_keeps_the_rest() {
    let now = now();
    let reading = Reading { now: &now, flavour: Flavour::PbsPro, array_limit: 100 };
    let change = |job: &str, line: &str| {
        let spec = submission(job).unwrap().spec;
        let read = queries::alteration(&words(&format!("{line} 1")), &reading)?;
        let present =
            Present { spec: &spec, owner: "ann", directory: "/tmp/now", is_folder: |path| path == "/tmp/now/logs" };
        queries::change(&read, &present, &rules()).map(|changed| changed.change)
    };
    let job = "-l select=2:ncpus=4:mem=1gb:note=a,walltime=1:00:00 -l place=scatter";
    let walltime = change(job, "-l walltime=2:00:00").unwrap();
    assert_eq!((walltime.walltime_seconds, walltime.alternatives), (Some(7_200), None));
    assert_eq!(
        walltime.attributes.into_iter().collect::<Vec<_>>(),
        [("pbs.Resource_List.walltime".to_owned(), "02:00:00".to_owned())]
    );
    let sized = change(job, "-l select=3:ncpus=1 -N new -p 5 -r n -W depend=afterok:9").unwrap();
    let way = &sized.alternatives.as_ref().unwrap()[0];
    assert_eq!((way.walltime_seconds, way.requests[0].tasks), (Some(3_600), Some(3)), "the walltime stays");
    assert_eq!(
        (sized.name.as_deref(), sized.priority, sized.requeue_on_node_lost),
        (Some("new"), Some(5), Some(false))
    );
    assert_eq!(sized.dependencies.unwrap().all_of.len(), 1);
    assert_eq!(sized.attributes["pbs.Resource_List.mem"], "", "what the new size lacks is taken away");
    let way = change("-l ncpus=2,mem=1gb", "-l mem=4gb").unwrap().alternatives.unwrap().remove(0);
    assert_eq!((way.requests[0].cpus_per_task, way.requests[0].memory.unwrap().bytes), (2, 4 << 30));
    // The project is the account, also beside another one.
    assert_eq!(change("-A phys", "-P ice").unwrap().account.as_deref(), Some("ice"));
    assert_eq!(change("-A phys", "-A chem").unwrap().account.as_deref(), Some("chem"));
    let of_project = change("-P ice", "-A chem").unwrap();
    assert_eq!((of_project.account, &*of_project.attributes["pbs.Account_Name"]), (None, "chem"));
    for (line, message) in [
        ("-S /bin/sh", "-S is not supported: the shell cannot be changed after submission"),
        ("-W Shell_Path_List=/bin/sh", "-S is not supported: the shell cannot be changed after submission"),
        ("-v A=1", "-v is not supported: variables cannot be changed after submission"),
        ("-u bob", "-u is not supported: the user cannot be changed after submission"),
        ("-W group_list=staff", "-W group_list is not supported: it cannot be changed after submission"),
        ("-W umask=022", "-W umask is not supported: it cannot be changed after submission"),
        ("-l ncpus=x", "illegal -l value: `ncpus=x`: expected a number up to 1000000"),
    ] {
        assert_eq!(change("", line).unwrap_err().to_string(), message, "{line}");
    }
}

/// PBS-C-09: mails and output files of a job that is there; what is not named stays as it was submitted.
#[test]
fn qalter_changes_mails_and_output_files() {
    let now = now();
    let reading = Reading { now: &now, flavour: Flavour::PbsPro, array_limit: 100 };
    let alter = |spec: &JobSpec, line: &str| {
        let read = queries::alteration(&words(&format!("{line} 1")), &reading)?;
        let present = Present { spec, owner: "ann", directory: "/tmp/now", is_folder: |path| path == "/tmp/now/logs" };
        queries::change(&read, &present, &rules())
    };
    let of = |job: &str, line: &str| alter(&submission(job).unwrap().spec, line).unwrap().change;
    let files = |job: &str, line: &str| {
        let output = of(job, line).output.unwrap();
        (output.stdout.unwrap_or_default(), output.stderr)
    };
    let here = |name: &str| format!("/data/run 1/{name}");
    for (job, line, stdout, stderr) in [
        ("", "-o out", "/tmp/now/out".to_owned(), Some(here("%x.e%A"))),
        ("-e err", "-W Output_Path=/x/o", "/x/o".to_owned(), Some(here("err"))),
        ("-o out", "-j oe", here("out"), None),
        ("-j oe", "-j n", here("%x.o%A"), Some(here("%x.e%A"))),
        ("-o a -e b", "-j eo", here("b"), None),
        ("", "-k oe", "/home/ann/%x.o%A".to_owned(), Some("/home/ann/%x.e%A".to_owned())),
        ("-J 0-3", "-o logs", "/tmp/now/logs/%x.o%A.%a".to_owned(), Some(here("%x.e%A.%a"))),
        ("", "-o login1:/x/$PBS_JOBID", "/x/%A.pbs1".to_owned(), Some(here("%x.e%A"))),
    ] {
        let (out, err) = files(job, line);
        assert_eq!((out, err), (stdout, stderr), "qsub {job}; qalter {line}");
    }
    // A second change begins where the first one ended.
    let mut spec = submission("-e err").unwrap().spec;
    let first = alter(&spec, "-o 'it is'").unwrap().change;
    spec.attributes.extend(first.attributes);
    let output = alter(&spec, "-k e").unwrap().change.output.unwrap();
    assert_eq!(
        (output.stdout.as_deref(), output.stderr.as_deref()),
        (Some("/tmp/now/it is"), Some("/home/ann/%x.e%A"))
    );
    let elsewhere = alter(&spec, "-o far.example.org:/x/out").unwrap();
    assert!(elsewhere.warnings[0].contains("the host of -o has no effect"), "{:?}", elsewhere.warnings);
    let mails = |job: &str, line: &str| {
        let mails = of(job, line).mails.unwrap();
        let one = |mail: &Notification| match &mail.sink {
            Sink::Mail(address) => (address.clone(), mail.on.clone()),
            Sink::Exec(_) => panic!("no program"),
        };
        mails.iter().map(one).collect::<Vec<_>>()
    };
    let ends = || vec![Occasion::Ended];
    assert_eq!(mails("", "-m e"), [("ann".to_owned(), ends())]);
    assert_eq!(mails("-m e", "-M bob,eve"), [("bob".to_owned(), ends()), ("eve".to_owned(), ends())]);
    assert_eq!(mails("-m ab -M bob", "-m e"), [("bob".to_owned(), ends())]);
    assert_eq!(mails("-m abe", "-W Mail_Points=n"), []);
    assert_eq!(of("-m e", "-m n").attributes["pbs.Mail_Points"], "n");
    assert_eq!((of("-m e", "-N x").mails, of("-m e", "-N x").output), (None, None), "they stay");
    assert!(alter(&submission("-I").unwrap().spec, "-o x").unwrap_err().to_string().contains("interactive"));
    let other = JobSpec { dialect: Some("slurm".into()), ..submission("").unwrap().spec };
    assert!(alter(&other, "-j oe").unwrap_err().to_string().contains("other commands"));
}

#[test]
fn requests_mean_jobs() {
    let listed = |line: &str, members: serde_json::Value, flavour: Flavour| {
        queries::is_listed(&view(members), &stat(line, flavour), flavour)
    };
    let over = serde_json::json!({ "state": "finished" });
    let task = serde_json::json!({ "id": "7_3" });
    for (line, members, pro, torque) in [
        ("", serde_json::json!({}), true, true),
        ("", over.clone(), false, true),
        ("-u bob", serde_json::json!({}), false, false),
        ("-u bob,ann", serde_json::json!({}), true, true),
        ("-r", serde_json::json!({}), false, false),
        ("-i", serde_json::json!({}), true, true),
        ("long", serde_json::json!({}), false, false),
        ("batch", serde_json::json!({}), true, true),
        ("@pbs1", serde_json::json!({}), true, true),
        ("", task.clone(), false, false),
        ("-t", task.clone(), true, true),
        ("7[3]", task.clone(), true, true),
        ("-t 7[]", task.clone(), true, true),
        ("8", serde_json::json!({}), false, false),
        ("7", over.clone(), true, true),
    ] {
        let both = (listed(line, members.clone(), PbsPro), listed(line, members.clone(), Torque));
        assert_eq!(both, (pro, torque), "{line} {members}");
    }
    assert!(listed("-x", over.clone(), PbsPro) && !listed("-c", over, Torque) && !listed("-J", task, PbsPro));
    let job = of_detail(
        &detail(view(serde_json::json!({ "priority": 7 })), "-l select=2:ncpus=2:mem=1gb,walltime=1:00:00"),
        &sources(PbsPro),
    );
    let selected = |line: &str| queries::is_selected(&job, &qselect(&words(line), &now()).unwrap());
    for line in [
        "",
        "-s Q",
        "-u ann",
        "-q batch",
        "-p .ge.7",
        "-l 'ncpus=4,mem<=2gb,walltime.gt.1800'",
        "-r y",
        "-N test",
        "-h n",
        "-t q.gt.202611200000",
        "-t q.le.202612010000",
    ] {
        assert!(selected(line), "{line}");
    }
    for line in [
        "-s R",
        "-u bob",
        "-q long",
        "-p .gt.7",
        "-l ncpus.lt.4",
        "-l 'mem>2gb'",
        "-l nosuch=1",
        "-r n",
        "-N x",
        "-h u",
        "-J",
        "-a .gt.1200",
        "-A x",
        "-t q.lt.202611200000",
        "-t s.gt.202611200000",
    ] {
        assert!(!selected(line), "{line}");
    }
}

#[test]
fn the_switches_of_queues_are_set_one_by_one() {
    let destination = |queue: Option<&str>, server: Option<&str>| Destination {
        queue: queue.map(str::to_owned),
        server: server.map(str::to_owned),
    };
    let read = switched(&words("workq @pbs1 a@b@c -- -x")).unwrap();
    assert_eq!(read[0], Ok(destination(Some("workq"), None)));
    assert_eq!(read[1], Ok(destination(None, Some("pbs1"))));
    assert_eq!(read[2], Err("illegally formed destination: a@b@c".to_owned()));
    assert_eq!(read[3], Ok(destination(Some("-x"), None)));
    assert_eq!(switched(&[]).unwrap_err().to_string(), "the name of a queue is missing");
    assert_eq!(switched(&words("-q workq")).unwrap_err().to_string(), "invalid option -- 'q'");
    let all = ["qenable", "qdisable", "qstart", "qstop", "qdel"].map(Switch::of);
    let [on, off] = [true, false].map(|is_on| (Switch::Enabled(is_on), Switch::Started(is_on)));
    assert_eq!(all, [Some(on.0), Some(off.0), Some(on.1), Some(off.1), None]);
}

#[test]
fn programs_are_spread_over_the_lines_of_a_node_file() {
    let lines = ["n1", "n1", "n2", "n3"];
    let over = |line: &str| {
        let request = pbsdsh(&words(line)).map_err(|refusal| refusal.to_string())?;
        let places = request.on.of(&lines).map_err(|refusal| refusal.to_string())?;
        Ok::<_, String>((places.into_iter().map(|(at, _)| at).collect::<Vec<_>>(), request.words.join(" ")))
    };
    for (line, places, program) in [
        ("hostname -f", vec![0, 1, 2, 3], "hostname -f"),
        ("-v -- -odd word", vec![0, 1, 2, 3], "-odd word"),
        ("-u hostname", vec![0, 2, 3], "hostname"),
        ("-c 2 -s echo -n x", vec![0, 1], "echo -n x"),
        ("-n2 true", vec![2], "true"),
        ("-vs -n 3 true", vec![3], "true"),
        ("-h n1 true", vec![0], "true"),
    ] {
        assert_eq!(over(line), Ok((places, program.to_owned())), "{line}");
    }
    for line in [
        "",
        "-v",
        "-n 4 true",
        "-c 0 true",
        "-n x true",
        "-n 1 -c 1 true",
        "-u -h n1 true",
        "-h n9 true",
        "-Z true",
        "-n",
    ] {
        assert!(over(line).is_err(), "{line}");
    }
}

#[test]
fn the_nodes_of_a_run_are_named_in_two_forms() {
    for (location, names) in [
        ("n1", vec!["n1"]),
        ("n1+n2", vec!["n1", "n2"]),
        ("(n1:ncpus=2:mem=1gb)+(n2:ncpus=1)+(n1:ncpus=1)", vec!["n1", "n2"]),
        ("n1/0+n1/1+n2/0*2", vec!["n1", "n2"]),
    ] {
        assert_eq!(run_nodes(location).unwrap(), names, "{location}");
    }
    for wrong in ["+", "n1+", "(:ncpus=1)"] {
        assert!(run_nodes(wrong).is_err(), "{wrong}");
    }
}
