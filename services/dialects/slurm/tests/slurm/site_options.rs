//! Options that a site adds (SL-S-22).

use super::submissions::{caller, now, words};
use muster_schemas::job::JobSpec;
use muster_slurm::{
    environment::{ComponentFacts, JobFacts},
    filtered::told,
    messages::Refusal,
    options::{Command, SiteOptions, help, parse, parse_with},
    request::{Program, Rules, ScriptSource, Settings, Submission, components, listing, lower},
    script,
    select::SchedulerParameters,
    steps::{Launcher, Streams, plan},
};
use std::collections::BTreeMap;

const TEXT: &str = "#!/bin/sh\n#SBATCH --scratch=1G\n#SBATCH hetjob\n#SBATCH --scratch 2G --debug-tools\n\
                    #SBATCH hetjob\n#SBATCH -n1\n";

fn site() -> SiteOptions {
    SiteOptions::of(&["scratch=SIZE scratch space that tasks may use", "debug-tools load the debugging tools"]).unwrap()
}

fn settings(line: &str, text: &str) -> Result<Vec<Settings>, Refusal> {
    let sections = script::options_with(text, site())?.sections;
    components(&sections, &[], &parse_with(Command::Sbatch, site(), &words(line))?, &now())
}

fn submitted(line: &str, text: &str) -> JobSpec {
    let settings = settings(line, text).unwrap();
    let program = Program::Batch { text: text.to_owned(), args: Vec::new(), source: ScriptSource::StandardInput };
    let (caller, rules) = (caller(), Rules::default());
    lower(&Submission { components: &settings, program, caller: &caller, rules: &rules, now: &now() }).unwrap()
}

fn of_site(variables: &BTreeMap<String, String>) -> Vec<String> {
    let own = variables.iter().filter(|(name, _)| name.starts_with("SITE_OPTION_"));
    own.map(|(name, value)| format!("{name}={value}")).collect()
}

/// SL-S-22: each component has its own, and the variables say which; the filters are told those of theirs.
#[test]
fn an_option_of_the_site_belongs_to_its_component() {
    let job = submitted("", TEXT);
    let variables = [
        "SITE_OPTION_DEBUG_TOOLS_HET_GROUP_1=1",
        "SITE_OPTION_SCRATCH=1G",
        "SITE_OPTION_SCRATCH_HET_GROUP_0=1G",
        "SITE_OPTION_SCRATCH_HET_GROUP_1=2G",
    ];
    assert_eq!(of_site(&job.environment), variables);
    let told: Vec<Vec<String>> = (0..3u32)
        .map(|offset| {
            let component = &job.components[offset as usize];
            let terms = told(component, &component.alternatives, &job.attributes, offset);
            let own = terms.into_iter().filter(|(name, _)| name.starts_with("SiteOption."));
            own.map(|(name, value)| format!("{name}={value}")).collect()
        })
        .collect();
    let second = vec!["SiteOption.debug-tools=yes".to_owned(), "SiteOption.scratch=2G".to_owned()];
    assert_eq!(told, [vec!["SiteOption.scratch=1G".to_owned()], second, Vec::new()]);
    // The command line goes before the script, and the names may be abbreviated.
    let job = submitted("--scr=9G --export=NONE", "#!/bin/sh\n#SBATCH --scratch=1G\n");
    assert_eq!(of_site(&job.environment), ["SITE_OPTION_SCRATCH=9G"]);
}

/// SL-S-22: the tasks of a step see the value of their component, unless `srun` itself is given one.
#[test]
fn tasks_see_the_option_of_their_component() {
    let component = |number| ComponentFacts {
        number,
        nodes: vec![format!("n{number}")],
        cpus: vec![1],
        tasks: vec![1],
        ..ComponentFacts::default()
    };
    let seen = |job: &JobFacts, line: &str| {
        let line = parse_with(Command::Srun, site(), &words(line)).unwrap();
        let step = plan(job, &line, |_| Vec::new(), SchedulerParameters::default(), &now()).unwrap();
        let launcher =
            Launcher { environment: submitted("", TEXT).environment.into_iter().collect(), ..Launcher::default() };
        let settings: Vec<&Settings> = step.parts.iter().map(|part| &part.settings).collect();
        let streams = Streams::of(&settings, 1, step.parts.len(), None);
        let spec = step.spec(job, &launcher, &streams, None);
        let common = spec.environment.unwrap_or_default();
        let of_group = spec.groups.into_iter().map(|group| {
            let own = common.clone().into_iter().chain(group.environment).collect();
            of_site(&own).into_iter().filter(|text| !text.contains("_HET_GROUP_")).collect::<Vec<_>>()
        });
        of_group.collect::<Vec<_>>()
    };
    let job = JobFacts { components: [1, 2, 3].map(component).to_vec(), ..JobFacts::default() };
    let of_first = vec!["SITE_OPTION_SCRATCH=1G".to_owned()];
    let of_second = vec!["SITE_OPTION_DEBUG_TOOLS=1".to_owned(), "SITE_OPTION_SCRATCH=2G".to_owned()];
    assert_eq!(seen(&job, "--het-group=0-2 a"), [of_first.clone(), of_second, Vec::new()]);
    let of_step = vec!["SITE_OPTION_SCRATCH=7".to_owned()];
    assert_eq!(seen(&job, "--scratch=7 --het-group=0 a : --het-group=2 a"), [of_step.clone(), Vec::new()]);
    let plain = JobFacts { components: vec![component(1)], ..JobFacts::default() };
    assert_eq!(seen(&plain, "a"), [of_first]);
    assert_eq!(seen(&plain, "--scratch=7 a"), [of_step]);
}

/// SL-S-22: they are in the help text, and their values are bounded. Without the site they are unknown.
#[test]
fn options_of_the_site_are_checked_and_shown() {
    for command in [Command::Sbatch, Command::Salloc, Command::Srun] {
        let text = help(command, site());
        let line = format!("  {:<34} scratch space that tasks may use", "    --scratch=SIZE");
        assert!(text.contains(&format!("\nOptions of this site:\n{line}\n")), "{text}");
        assert!(!help(command, SiteOptions::default()).contains("Options of this site"));
    }
    let lines = listing(Command::Sbatch, &settings("--debug-tools", "#!/bin/sh\n").unwrap()[0], 1);
    assert!(lines.contains(&"sbatch: debug-tools         : set".to_owned()), "{lines:?}");
    let unknown = parse(Command::Sbatch, &["--scratch=1"]).unwrap_err();
    assert!(unknown.is_unknown_option(), "{unknown:?}");
    let long = format!("--scratch={}", "x".repeat(1_025));
    for wrong in ["--scratch=", "--scratch=a\u{7}b", &long] {
        let refused = settings(wrong, "#!/bin/sh\n").unwrap_err();
        assert_eq!(refused.lines(Command::Sbatch), ["sbatch: error: Invalid --scratch specification"]);
    }
    assert!(settings("--debug-tools=1", "#!/bin/sh\n").is_err() && settings("--scratch", "#!/bin/sh\n").is_err());
}

/// SL-S-22: a site cannot take over an option of Slurm, nor a beginning by which users may name one.
#[test]
fn what_is_no_option_of_a_site_is_refused() {
    let many: Vec<String> = (0..65).map(|number| format!("option-{number} help")).collect();
    assert!(SiteOptions::check(&many).is_err() && SiteOptions::check(&many[..64]).is_ok());
    for (wrong, why) in [
        ("mem=SIZE memory", "an option of Slurm has this name, or begins with it"),
        ("part help", "an option of Slurm has this name, or begins with it"),
        ("workdir help", "an option of Slurm has this name, or begins with it"),
        ("Scratch help", "a name is 2 to 32 of"),
        ("x help", "a name is 2 to 32 of"),
        ("-x help", "a name is 2 to 32 of"),
        ("LD_PRELOAD help", "a name is 2 to 32 of"),
        ("a;b help", "a name is 2 to 32 of"),
        (" help", "a name is 2 to 32 of"),
        ("scratch", "after a blank comes the help text"),
        ("scratch\nhelp", "a name is 2 to 32 of"),
        ("scratch-het-group-1 help", "`het-group` can be no part"),
        ("scratch a\nb", "after a blank comes the help text"),
        ("scratch= help", "after `=` comes the name of the value"),
    ] {
        let refused = SiteOptions::check(&[wrong]).unwrap_err();
        assert!(refused.contains(why), "{wrong}: {refused}");
    }
    let twice = SiteOptions::check(&["scratch help", "scratch=SIZE help"]).unwrap_err();
    assert_eq!(twice, "`scratch` is described twice");
}
