//! Staging directives: one script for each component.

use super::submissions::{submit_script, submit_with};
use muster_schemas::job::{ComponentStaging, JobSpec};
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
    let scripts = scripts(SUBMITTED, &DIRECTIVE_WORDS, 2);
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

/// The scripts of this many components.
fn texts(text: &str, components: usize) -> Vec<String> {
    scripts(text, &DIRECTIVE_WORDS, components).into_iter().map(|script| script.text).collect()
}

/// A script with one part.
const ONE_PART: &str = "#!/bin/bash\n#SBATCH -n1\n#DW a\n\n# note\necho hi\n\n#DW late\n#SBATCH hetjob\n";

/// SL-B-03, SL-B-04: components of the command line without a part in the script have no comments in theirs.
#[test]
fn components_of_the_command_line_have_scripts_without_comments() {
    let alone = "#!/bin/bash\nexit 0\n";
    let leader = "#!/bin/bash\n#SBATCH -n1\n#DW a\n# note\necho hi\n#EXCLUDED DW late\n#SBATCH hetjob\n";
    assert_eq!(texts(ONE_PART, 3), [leader, alone, alone], "a line behind the first command begins no component");
    assert_eq!(texts(ONE_PART, 1), [ONE_PART], "the script of a job with one component stays as it is");
    let more = texts(SUBMITTED, 3);
    assert_eq!(more[..2], texts(SUBMITTED, 2));
    assert_eq!(more[2], alone);
    assert_eq!(texts("#!/bin/sh\n#DW a", 2), ["#!/bin/sh\n#DW a\n", "#!/bin/sh\nexit 0\n"], "without a command");
}

/// SL-B-03, SL-B-05, SL-B-08: even if an option of a component says what is staged.
#[test]
fn scripts_are_rebuilt_whatever_says_what_is_staged() {
    let words = rules(&DIRECTIVE_WORDS, true);
    let shown = |line: &str, text: &str| {
        let job = submit_with(Command::Sbatch, line, text, &words).unwrap();
        (0..job.components.len()).map(|offset| script_of(&job, offset).unwrap()).collect::<Vec<_>>()
    };
    let plain = "#!/bin/bash\n#SBATCH -n1\n\necho a\n";
    let rebuilt = ["#!/bin/bash\n#SBATCH -n1\necho a\n", "#!/bin/bash\nexit 0\n"];
    assert_eq!(shown("-n1 : --bb=#DW:two -n2", plain), rebuilt);
    assert_eq!(shown("--bb=#DW:one : -n2", plain), rebuilt);
    assert_eq!(shown("-n1 : -n2", plain), [plain, plain], "nothing is staged");
    assert_eq!(shown("--bb=#DW:one", plain), [plain], "one component");
    let filed = with_directives(plain, "#DW fromfile\n");
    let leader = "#!/bin/bash\n#DW fromfile\n#SBATCH -n1\necho a\n";
    assert_eq!(shown(": -n2", &filed), [leader, rebuilt[1]]);
    assert_eq!(shown("-n1 : -n1 : -n3", SUBMITTED), texts(SUBMITTED, 3));
    assert_eq!(shown("-n1", SUBMITTED), texts(SUBMITTED, 2), "more parts than groups");
}

/// SL-B-04: all comment lines are kept, directives after the first command are turned off.
#[test]
fn details_of_the_rebuild() {
    let text =
        "#!/bin/sh\n# note\n\n#DW a\n#SBATCH hetjob\n# other\n#SBATCH packjob\n#BB c\ndate\n\n#DW late\n#DWX no\n";
    let scripts = scripts(text, &DIRECTIVE_WORDS, 3);
    assert_eq!(
        scripts[0].text,
        "#!/bin/sh\n# note\n#DW a\n#SBATCH hetjob\n# other\n#SBATCH packjob\n#EXCLUDED BB c\ndate\n#EXCLUDED DW late\n#DWX no\n"
    );
    let blanks = texts("#!/bin/sh\n#DW a\n \t\n#SBATCH hetjob\n#DW b\n  \ndate\n\t\ntrue\n", 2);
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
    assert!(scripts(SUBMITTED, &[], 2).iter().all(|script| script.directives.is_empty()));
    let own = scripts("#!/bin/sh\n#STAGE in\n#DW no\ndate\n", &["STAGE"], 1);
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
    assert_eq!(job.types, []);
    &job.staging
}

/// EX-13, SL-B-01, SL-B-02: the job has the staging of each component, and the persistent buffers that it
/// makes and uses.
#[test]
fn a_job_says_what_is_staged_for_each_component() {
    let job = submit_with(Command::Sbatch, "", SUBMITTED, &rules(&DIRECTIVE_WORDS, true)).unwrap();
    let [first, second] = staged(&job) else { panic!("{:?}", job.staging) };
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

/// SL-B-08: `--bb` of a component applies if its part of the script has no directives.
#[test]
fn an_option_says_what_is_staged_where_the_script_does_not() {
    let words = rules(&DIRECTIVE_WORDS, true);
    let job = submit_with(Command::Sbatch, "-n1 : -n1 --bb=#DW:other", SUBMITTED, &words).unwrap();
    assert_eq!(staged(&job)[1].directives, ["#DW persistentdw name=alpha"]);
    let first_only = "#!/bin/sh\n#DW a\n#SBATCH hetjob\n#SBATCH -n1\ndate\n";
    let job = submit_with(Command::Sbatch, "-n1 : -n1 --bb=capacity=1G", first_only, &words).unwrap();
    let directives: Vec<String> = staged(&job).iter().map(|staged| staged.directives.join(",")).collect();
    assert_eq!(directives, ["#DW a", "capacity=1G"], "a section without directives leaves it to the option");
    assert_eq!(staged_script(&job, 0), script_of(&job, 0).unwrap());
    assert_eq!(staged_script(&job, 1), "#!/bin/sh\ncapacity=1G\nexit 0\n", "the program is told what the option says");
    let plain = "#!/bin/sh\ndate\n";
    let job = submit_with(Command::Sbatch, "-n1 : -n1 --bb=capacity=1G", plain, &words).unwrap();
    let [only] = staged(&job) else { panic!("{:?}", job.staging) };
    assert_eq!((only.component, &only.directives), (1, &vec!["capacity=1G".to_owned()]));
    assert_eq!(staged_script(&job, 1), "#!/bin/sh\ncapacity=1G\nexit 0\n");
    let none = submit_with(Command::Sbatch, "--bb=capacity=1G", plain, &Rules::default()).unwrap();
    assert_eq!(staged(&none), []);
    assert_eq!(Attributes(&none.attributes).component(0, component::BURST_BUFFER), Some("capacity=1G"));
}

/// The gateway is only asked for the words if a script may have directives.
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
    /// SL-B-03: every directive belongs to exactly one component; a directive of another component is turned off in the
    /// first one's script.
    #[test]
    fn every_directive_belongs_to_one_component(lines in proptest::collection::vec("#DW [a-z]{1,3}|#SBATCH hetjob|# x|", 0..12)) {
        let text = format!("#!/bin/sh\n{}\ndate\n", lines.join("\n"));
        let directives = lines.iter().filter(|line| line.starts_with("#DW")).count();
        let scripts = scripts(&text, &DIRECTIVE_WORDS, 4);
        prop_assert!(scripts.len() >= 4 && scripts[1..].iter().all(|script| script.text.ends_with("\nexit 0\n")));
        prop_assert_eq!(scripts.iter().map(|script| script.directives.len()).sum::<usize>(), directives);
        let active = scripts[0].text.lines().filter(|line| line.starts_with("#DW")).count();
        prop_assert_eq!(active, scripts[0].directives.len());
    }
}
