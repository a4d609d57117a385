//! Staging directives: one script for each component.

use super::submissions::{submit_script, submit_with};
use muster_schemas::job::{ComponentStaging, JobSpec, JobType};
use muster_slurm::{
    attributes::{Attributes, component},
    burst_buffer::{DIRECTIVE_WORDS, may_have_directives, script_of, scripts, staged_script, staging, with_directives},
    options::Command,
    request::Rules,
};
use proptest::prelude::*;

const SUBMITTED: &str = "#!/bin/bash
#SBATCH --nodes=1 --constraint=haswell
#BB create_persistent name=alpha capacity=10 access=striped type=scratch
#DW persistentdw name=alpha

#SBATCH hetjob
#SBATCH --nodes=2 --constraint=knl
#DW persistentdw name=alpha
hostname
";

/// EX-13, SL-B-01, SL-B-03, SL-B-04.
#[test]
fn one_script_is_rebuilt_for_each_component() {
    let scripts = scripts(SUBMITTED, &DIRECTIVE_WORDS).unwrap();
    assert_eq!(
        scripts[0].text,
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
    assert_eq!(
        scripts[1].text,
        "#!/bin/bash\n#SBATCH --nodes=2 --constraint=knl\n#DW persistentdw name=alpha\nexit 0\n"
    );
    assert_eq!(scripts[1].directives, ["#DW persistentdw name=alpha"]);
    assert_eq!(scripts[0].directives.len(), 2);
}

/// The scripts of the components.
fn texts(text: &str) -> Vec<String> {
    scripts(text, &DIRECTIVE_WORDS).unwrap().into_iter().map(|script| script.text).collect()
}

/// SL-B-04: all comment lines are kept, directives behind the first command are switched off.
#[test]
fn details_of_the_rebuild() {
    let text =
        "#!/bin/sh\n# note\n\n#DW a\n#SBATCH hetjob\n# other\n#SBATCH packjob\n#BB c\ndate\n\n#DW late\n#DWX no\n";
    let scripts = scripts(text, &DIRECTIVE_WORDS).unwrap();
    assert_eq!(
        scripts[0].text,
        "#!/bin/sh\n# note\n#DW a\n#SBATCH hetjob\n# other\n#SBATCH packjob\n#EXCLUDED BB c\ndate\n#EXCLUDED DW late\n#DWX no\n"
    );
    let blanks = texts("#!/bin/sh\n#DW a\n \t\n#SBATCH hetjob\n#DW b\n  \ndate\n\t\ntrue\n");
    assert_eq!(
        blanks[0], "#!/bin/sh\n#DW a\n#SBATCH hetjob\n#EXCLUDED DW b\ndate\ntrue\n",
        "blanks are a blank line too"
    );
    assert_eq!(blanks[1], "#!/bin/sh\n#DW b\nexit 0\n");
    assert_eq!(scripts[1].text, "#!/bin/sh\n# other\nexit 0\n");
    assert_eq!(scripts[2].text, "#!/bin/sh\n#BB c\nexit 0\n");
}

/// SL-B-07: without a plugin the lines are comments; a site may have words of its own (SL-B-01).
#[test]
fn only_configured_words_mark_directives() {
    assert_eq!(scripts(SUBMITTED, &[]), None);
    assert_eq!(scripts("#!/bin/sh\ndate\n", &DIRECTIVE_WORDS), None);
    let own = scripts("#!/bin/sh\n#STAGE in\n#DW no\ndate\n", &["STAGE"]).unwrap();
    assert_eq!(own[0].directives, ["#STAGE in"]);
    assert!(submit_script("", SUBMITTED).unwrap().attributes.keys().all(|key| !key.contains("directive")));
}

/// SL-B-05, SL-B-06: the rebuilt scripts can be shown; the script that runs stays as it was submitted.
#[test]
fn the_script_of_each_component_can_be_shown() {
    let rules = Rules { directive_words: DIRECTIVE_WORDS.map(str::to_owned).to_vec(), ..Rules::default() };
    let job = submit_with(Command::Sbatch, "", SUBMITTED, &rules).unwrap();
    let attributes = Attributes(&job.attributes);
    assert_eq!(attributes.component(1, component::BURST_BUFFER), Some("#DW persistentdw name=alpha"));
    assert!(script_of(&job, 0).unwrap().contains("#EXCLUDED DW"));
    assert!(script_of(&job, 1).unwrap().ends_with("exit 0\n"));
    let muster_schemas::job::Program::Script { text, .. } = &job.components[0].launch.program else { panic!() };
    assert_eq!(text, SUBMITTED);
    let plain = submit_script("", SUBMITTED).unwrap();
    assert_eq!([script_of(&plain, 0), script_of(&plain, 1)], [Some(SUBMITTED.to_owned()), Some(SUBMITTED.to_owned())]);
    assert_eq!(script_of(&submit_with(Command::Salloc, "x", "", &rules).unwrap(), 0), None);
}

fn rules(words: &[&str], persistent_buffers: bool) -> Rules {
    Rules {
        directive_words: words.iter().map(|word| (*word).to_owned()).collect(),
        persistent_buffers,
        ..Rules::default()
    }
}

fn staged(job: &JobSpec) -> &[ComponentStaging] {
    match &job.types[..] {
        [] => &[],
        [JobType::Staged(components)] => components,
        other => panic!("{other:?}"),
    }
}

/// EX-13, SL-B-01, SL-B-02: the job says what is staged for each component, and which persistent buffers it makes and uses.
#[test]
fn a_job_says_what_is_staged_for_each_component() {
    let job = submit_with(Command::Sbatch, "", SUBMITTED, &rules(&DIRECTIVE_WORDS, true)).unwrap();
    let [first, second] = staged(&job) else { panic!("{:?}", job.types) };
    let alpha = || vec!["alpha".to_owned()];
    assert_eq!((first.component, &first.creates, &first.uses, first.directives.len()), (0, &alpha(), &alpha(), 2));
    assert_eq!((second.component, second.creates.len(), &second.uses), (1, 0, &alpha()));
    assert_eq!(staged_script(&job, 1), script_of(&job, 1).unwrap());
    // A script-driven plugin has lines of its own and no persistent buffers.
    let own = submit_with(Command::Sbatch, "", SUBMITTED, &rules(&["DW"], false)).unwrap();
    assert!(staged(&own).iter().all(|staged| staged.uses.is_empty() && staged.directives.len() == 1));
    // Without a plugin nothing is staged (SL-B-07).
    assert_eq!(staged(&submit_with(Command::Sbatch, "", SUBMITTED, &rules(&[], true)).unwrap()), []);
}

/// SL-B-02
#[test]
fn the_names_of_persistent_buffers_are_read_from_the_lines() {
    let lines = [
        "#BB create_persistent name=a capacity=10",
        "#BB create_persistent capacity=10 name=a",
        "#BB destroy_persistent name=b",
        "#DW persistentdw name=c",
        "#DW jobdw type=scratch name=d",
        "#BB create_persistent capacity=10",
    ];
    let staging = staging(3, lines.map(str::to_owned).to_vec(), true);
    assert_eq!((staging.component, staging.creates, staging.destroys), (3, vec!["a".to_owned()], vec!["b".to_owned()]));
    assert_eq!((staging.uses, staging.directives.len()), (vec!["c".to_owned()], 6));
}

/// SL-B-08: `--bb` of a component counts if its part of the script has no directives.
#[test]
fn an_option_says_what_is_staged_where_the_script_does_not() {
    let words = rules(&DIRECTIVE_WORDS, true);
    let job = submit_with(Command::Sbatch, "-n1 : -n1 --bb=#DW:other", SUBMITTED, &words).unwrap();
    assert_eq!(staged(&job)[1].directives, ["#DW persistentdw name=alpha"]);
    let first_only = "#!/bin/sh\n#DW a\n#SBATCH hetjob\n#SBATCH -n1\ndate\n";
    let job = submit_with(Command::Sbatch, "-n1 : -n1 --bb=capacity=1G", first_only, &words).unwrap();
    let directives: Vec<String> = staged(&job).iter().map(|staged| staged.directives.join(",")).collect();
    assert_eq!(directives, ["#DW a", "capacity=1G"], "a section without directives leaves it to the option");
    let plain = "#!/bin/sh\ndate\n";
    let job = submit_with(Command::Sbatch, "-n1 : -n1 --bb=capacity=1G", plain, &words).unwrap();
    let [only] = staged(&job) else { panic!("{:?}", job.types) };
    assert_eq!((only.component, &only.directives), (1, &vec!["capacity=1G".to_owned()]));
    assert_eq!(staged_script(&job, 1), "#!/bin/sh\ncapacity=1G\nexit 0\n");
    let none = submit_with(Command::Sbatch, "--bb=capacity=1G", plain, &Rules::default()).unwrap();
    assert_eq!(staged(&none), []);
    assert_eq!(Attributes(&none.attributes).component(0, component::BURST_BUFFER), Some("capacity=1G"));
}

/// The gateway is asked for the words only if a script may have some.
#[test]
fn most_scripts_cannot_have_directives() {
    for text in ["#!/bin/sh\n#SBATCH -n1\n# note\n#\ndate\n#DW late\n", "#!/bin/sh\n"] {
        assert!(!may_have_directives(text), "{text}");
    }
    assert!(may_have_directives(SUBMITTED) && may_have_directives("#!/bin/sh\n#STAGE in\n"));
}

/// SL-B-08: `--bbf`.
#[test]
fn the_lines_of_a_file_go_behind_the_first() {
    assert_eq!(with_directives("#!/bin/sh\ndate\n", "#DW a\n#DW b"), "#!/bin/sh\n#DW a\n#DW b\ndate\n");
    assert_eq!(with_directives("#!/bin/sh", "#DW a\n"), "#!/bin/sh\n#DW a\n");
    assert_eq!(with_directives("#!/bin/sh\n#SBATCH -n1\n", ""), "#!/bin/sh\n#SBATCH -n1\n", "an empty file has none");
}

proptest! {
    /// SL-B-03: every directive belongs to exactly one component, and is switched off in the first one's script if it is
    /// another's.
    #[test]
    fn every_directive_belongs_to_one_component(lines in proptest::collection::vec("#DW [a-z]{1,3}|#SBATCH hetjob|# x|", 0..12)) {
        let text = format!("#!/bin/sh\n{}\ndate\n", lines.join("\n"));
        let directives = lines.iter().filter(|line| line.starts_with("#DW")).count();
        let Some(scripts) = scripts(&text, &DIRECTIVE_WORDS) else {
            prop_assert_eq!(directives, 0);
            return Ok(());
        };
        prop_assert_eq!(scripts.iter().map(|script| script.directives.len()).sum::<usize>(), directives);
        let active = scripts[0].text.lines().filter(|line| line.starts_with("#DW")).count();
        prop_assert_eq!(active, scripts[0].directives.len());
    }
}
