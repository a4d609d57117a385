//! The options of `qsub`: their values, and which source wins.

use crate::support::{caller, now, refused, rules, settings_of, submission, submission_of, torque, words};
use muster_pbs::{
    getopt,
    resources::parse,
    script::prefix,
    submit::{self, Join, LETTERS, Reading, Settings},
};
use muster_schemas::time::Timestamp;
use proptest::prelude::*;

fn settings(line: &str) -> Settings {
    settings_of(line, "true\n", &rules()).unwrap_or_else(|refusal| panic!("{line}: {refusal}"))
}

#[test]
fn letters_may_be_glued_and_mixed_with_operands() {
    let read = submit::line(&words("-zVN name -l ncpus=2 job.sh -q batch")).unwrap();
    assert_eq!(read.operands, ["job.sh"]);
    assert!(read.has('z') && read.has('V'));
    assert_eq!((read.value('N'), read.value('q')), (Some("name"), Some("batch")));
    let read = submit::line(&words("-N x -- /bin/echo -n a")).unwrap();
    assert_eq!(read.rest.unwrap(), ["/bin/echo", "-n", "a"]);
    for (line, message) in [
        ("-Y", "invalid option -- 'Y'"),
        ("-N", "option requires an argument -- 'N'"),
        ("--verbose", "unrecognized option '--verbose'"),
        ("-:", "invalid option -- ':'"),
        ("a b", "one script can be given; -F has its arguments"),
        ("a -- b", "a script and a command exclude each other"),
        ("--", "a command is missing after --"),
    ] {
        let refusal = submit::line(&words(line)).unwrap_err();
        assert_eq!((refusal.to_string().as_str(), refusal.exit_status()), (message, 2), "{line}");
        assert!(refusal.is_about_usage());
    }
}

#[test]
fn every_letter_is_understood_or_refused_by_name() {
    let values = [
        ('a', "1200"),
        ('b', "5"),
        ('c', "n"),
        ('C', "#PBS"),
        ('d', "/tmp"),
        ('e', "err"),
        ('F', "a b"),
        ('j', "oe"),
        ('J', "0-3"),
        ('k', "oe"),
        ('K', "30"),
        ('l', "ncpus=1"),
        ('m', "abe"),
        ('M', "ann@example.org"),
        ('N', "name"),
        ('o', "out"),
        ('p', "5"),
        ('q', "batch"),
        ('r', "y"),
        ('R', "oe"),
        ('S', "/bin/sh"),
        ('t', "0-3"),
        ('u', "ann"),
        ('v', "A=1"),
        ('w', "/tmp"),
        ('W', "umask=022"),
        ('A', "acct"),
        ('P', "proj"),
    ];
    let refused_letters = ['D', 'L', 'T', 'X', 'x'];
    for letter in LETTERS.chars().filter(|letter| *letter != ':') {
        let takes_value = LETTERS.contains(&format!("{letter}:"));
        let value = values.iter().find(|(known, _)| *known == letter).map_or("x", |(_, value)| *value);
        let line = if takes_value { format!("-{letter} '{value}'") } else { format!("-{letter}") };
        match settings_of(&line, "true\n", &rules()) {
            Ok(_) => assert!(!refused_letters.contains(&letter), "{line}"),
            Err(refusal) => {
                assert!(refused_letters.contains(&letter), "{line}: {refusal}");
                assert!(refusal.to_string().starts_with(&format!("-{letter} is not supported: ")), "{refusal}");
                assert!(!refusal.to_string().contains("no such option"), "{refusal}");
            }
        }
    }
}

#[test]
fn the_command_line_wins_over_the_script_and_the_script_over_defaults() {
    let text = "#!/bin/sh\n#PBS -N script -q short -l select=2:ncpus=2,walltime=1:00\n#PBS -j oe\ntrue\n";
    let line = submit::line(&words("-N line -l walltime=2:00")).unwrap();
    let defaults = submit::variable(&words("-A site -N default -q long")).unwrap();
    let now = now();
    let reading = Reading { now: &now, flavour: rules().flavour, array_limit: 100 };
    let read = Settings::read(&defaults, Some(text), prefix(None, None), &line.options, &reading).unwrap();
    assert_eq!((read.name.as_deref(), read.queue.as_deref()), (Some("line"), Some("short")));
    assert_eq!((read.account.as_deref(), read.join), (Some("site"), Join::ToOutput));
    let resources: Vec<String> = read.resources.iter().map(|one| format!("{}={}", one.name, one.value)).collect();
    assert_eq!(resources, ["select=2:ncpus=2", "walltime=2:00"]);
    // A size on the line replaces another kind of size in the script.
    let read = settings_of("-l nodes=3:ppn=2", text, &rules()).unwrap();
    let names: Vec<&str> = read.resources.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["walltime", "nodes"]);
    // What belongs to the replaced size goes with it.
    let text = "#PBS -l ncpus=4,mem=2gb,walltime=1:00\n";
    let read = settings_of("-l select=2:ncpus=1", text, &rules()).unwrap();
    let names: Vec<&str> = read.resources.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["walltime", "select"]);
    let text = "#PBS -l select=2 -l place=pack\n";
    assert_eq!(settings_of("-l nodes=2", text, &rules()).unwrap().resources.len(), 1);
    let message = settings_of("", "#PBS -l nodes=1 -l select=1\n", &rules()).unwrap_err().to_string();
    assert_eq!(message, "-l nodes and -l select cannot be given together");
}

/// PBS-Q-08: what a job does not ask for is that of its queue, then that of the server; its size replaces another kind of size.
#[test]
fn requests_of_the_site_are_beneath_those_of_the_job() {
    let site = || ["nodes=1,nodect=1,walltime=3600,mem=1gb", "ncpus=2,walltime=600"].map(|text| parse(text).unwrap());
    let of = |line: &str| {
        let read = settings_of(line, "true\n", &rules()).unwrap().over(site().into()).unwrap();
        read.resources.iter().map(|one| format!("{}={}", one.name, one.value)).collect::<Vec<_>>().join(",")
    };
    assert_eq!(of(""), "mem=1gb,ncpus=2,walltime=600");
    assert_eq!(of("-l walltime=60,mem=2gb"), "ncpus=2,walltime=60,mem=2gb");
    assert_eq!(of("-l nodes=3"), "mem=1gb,walltime=600,nodes=3");
    assert_eq!(of("-l select=2"), "walltime=600,select=2");
}

#[test]
fn variables_have_default_options() {
    let lookup = |name: &str| match name {
        "PBS_QSUB_ARGS" => Some("-q 'night' -l walltime=5:00".to_owned()),
        "PBS_SHELL" => Some("/bin/zsh".to_owned()),
        _ => None,
    };
    let letters: String = submit::defaults(lookup).unwrap().iter().map(|given| given.letter).collect();
    assert_eq!(letters, "Sql");
    let message = submit::defaults(|name| (name == "PBS_QSUB_ARGS").then(|| "-Y".to_owned())).unwrap_err().to_string();
    assert_eq!(message, "PBS_QSUB_ARGS: invalid option -- 'Y'");
}

#[test]
fn values_are_read() {
    let read = settings(
        "-a 202703011200 -h -k oed -m abe -M ann,bob@x -p +7 -q batch@pbs1 -r n -S /bin/zsh@n1,/bin/ksh -W \
         depend=afterok:1,afterany:2,umask=027,block=true,stagein=a@h:b,c@h:d",
    );
    assert_eq!(read.begin, Some(Timestamp(1_803_898_800_000_000)));
    assert!(read.hold && read.keep.direct && read.keep.output && read.keep.error && read.block);
    let mail = read.mail.unwrap();
    assert!(mail.abort && mail.begin && mail.end && !mail.each_task);
    assert_eq!(read.mail_to, ["ann", "bob@x"]);
    assert_eq!((read.priority, read.rerunnable, read.umask), (Some(7), Some(false), Some(0o027)));
    assert_eq!((read.queue.as_deref(), read.server.as_deref()), (Some("batch"), Some("pbs1")));
    assert_eq!(read.shell.as_deref(), Some("/bin/ksh"));
    assert_eq!(read.dependencies.all_of.len(), 2);
    assert_eq!(read.stagein.len(), 2);
    assert_eq!(settings("-N=\"name\"").name.as_deref(), Some("name"), "PSI/J writes this");
    assert_eq!(settings("-W Job_Name=x,Priority=3").name.as_deref(), Some("x"));
}

#[test]
fn values_that_cannot_be_read_name_option_and_word() {
    for (line, message) in [
        ("-a tomorrow", "illegal -a value: `tomorrow`: expected [[[[CC]YY]MM]DD]hhmm[.SS]"),
        ("-j both", "illegal -j value: `both`: expected oe, eo or n"),
        ("-k x", "illegal -k value: `x`: expected n, or letters of oed"),
        ("-m x", "illegal -m value: `x`: expected n, or letters of abejf"),
        ("-M -oQ", "illegal -M value: `-oQ`: this is not an address"),
        ("-N 'a b'", "illegal -N value: `a b`: expected 1 to 236 printable characters without blanks"),
        ("-p 2000", "illegal -p value: `2000`: expected a number from -1024 to 1023"),
        ("-q a@b@c", "illegal -q value: `a@b@c`: expected queue, @server or queue@server"),
        ("-r maybe", "illegal -r value: `maybe`: expected y or n"),
        ("-S sh", "illegal -S value: `sh`: expected the absolute path of a shell without a host"),
        ("-c often", "illegal -c value: `often`: expected n, s, c, c=minutes, w, w=minutes, or TORQUE's words"),
        ("-W umask=999", "illegal -W umask value: `999`: expected an octal number up to 777"),
        ("-W block=perhaps", "illegal -W block value: `perhaps`: expected true or false"),
        ("-W Priority=x", "illegal -W Priority value: `x`: expected a number from -1024 to 1023"),
        ("-W nothing", "illegal -W value: `nothing`: expected keyword=value"),
        ("-W umask=", "illegal -W value: `umask`: it has no value"),
        ("-W nosuch=1", "-W nosuch is not supported: no attribute of this name is known"),
        ("-W sandbox=PRIVATE", "-W sandbox=PRIVATE is not supported: jobs start in the home folder"),
        (
            "-X",
            "-X is not supported: X11 is not forwarded; ssh -X into a node of the job is possible where the site allows it",
        ),
        ("-I -J 0-3", "an interactive job cannot be an array"),
        ("-J 0-3 -r n", "the tasks of an array are rerunnable: -r n cannot be given"),
        ("-u bob", "-u bob is not supported: jobs are submitted for their submitter only"),
        ("-W group_list=wheel", "illegal -W group_list value: `wheel`: user ann is not in this group"),
        ("-q @elsewhere", "-q @elsewhere is not supported: jobs are submitted to pbs1 only"),
    ] {
        assert_eq!(refused(line), message, "{line}");
    }
    let message = settings_of("", "#PBS -N a\n#PBS -Y\n", &rules()).unwrap_err().to_string();
    assert_eq!(message, "directive error in line 2: invalid option -- 'Y'");
    let message = settings_of("", "#PBS -N a b\n", &rules()).unwrap_err().to_string();
    assert_eq!(message, "directive error in line 1: `b` is not an option");
    assert!(settings_of("-P ann", "true\n", &torque()).is_err(), "TORQUE's -P is another user");
}

#[test]
fn what_has_no_effect_is_said() {
    for (line, what) in [
        ("-c c=10", "-c"),
        ("-R oe", "-R"),
        ("-b 5", "-b"),
        ("-W x=abc", "-W x"),
        ("-W run_count=3", "-W run_count"),
        ("-l vmem=1gb", "-l vmem"),
        ("-l nice=5", "-l nice"),
        ("-l software=matlab", "-l software"),
        ("-l select=1:vmem=1gb", "vmem"),
        ("-o elsewhere:out", "the host of -o"),
        ("-I -W block=true", "-W block=true"),
    ] {
        let warnings = submission(line).unwrap_or_else(|refusal| panic!("{line}: {refusal}")).warnings;
        let is_about = |warning: &String| warning.starts_with(&format!("warning: {what} has no effect here: "));
        assert!(warnings.iter().any(is_about), "{line}: {warnings:?}");
    }
    let told = submission("-l cput=1:00").unwrap().warnings;
    assert_eq!(told, ["warning: -l cput limits no job here: policies sort by it"]);
    let staged = submission("-W stagein=a@h:b").unwrap();
    assert_eq!(staged.warnings, [""; 0]);
    assert_eq!(submission("-c n -l walltime=1:00 -k oe -f").unwrap().warnings, [""; 0]);
    assert_eq!(submission_of("-v NOSUCH", "true\n", &rules()).unwrap().warnings.len(), 1);
    let _ = caller();
}

proptest! {
    #[test]
    fn no_command_line_makes_qsub_panic(line in prop::collection::vec("\\PC{0,20}", 0..6), letter in "[a-zA-Z]", value in "[ -~]{0,30}") {
        let _ = getopt::read(LETTERS, &line);
        let given = vec![format!("-{letter}"), value];
        if let Ok(read) = submit::line(&given) {
            let now = now();
            let reading = Reading { now: &now, flavour: rules().flavour, array_limit: 1_000 };
            if let Ok(settings) = Settings::read(&[], None, None, &read.options, &reading) {
                let program = submit::Program::Command(vec!["true".into()]);
                let _ = submit::lower(&settings, &program, &caller(), &rules(), &now);
            }
        }
    }
}
