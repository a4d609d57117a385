//! Batch scripts and their option lines.

use super::submissions::{parse, settings_of, submit_script};
use muster_slurm::{
    getopt::Wrong,
    messages::{ExitStatuses, Refusal},
    options::Command,
    script::{Wanted, candidates, check, options, wanted, wrap},
};
use proptest::prelude::*;

fn lines(bytes: &[u8]) -> Vec<String> {
    let refusal = check(bytes).unwrap_err();
    assert_eq!(refusal.exit_status(ExitStatuses::default()), 1);
    refusal.lines(Command::Sbatch)
}

/// SL-C-06.
#[test]
fn what_is_no_script_is_refused() {
    assert_eq!(lines(b""), ["sbatch: error: Batch script is empty!"]);
    let told = lines(b"date\n");
    assert_eq!(told.len(), 3);
    assert!(told[0].starts_with("sbatch: error: This does not look like a batch script."));
    assert_eq!(
        lines(b"#!/bin/sh\r\ndate\r\n"),
        [
            "sbatch: error: Batch script contains DOS line breaks (\\r\\n)",
            "sbatch: error: instead of expected UNIX line breaks (\\n)."
        ]
    );
    assert_eq!(check(b" \n\t"), Err(Refusal::BlankScript));
    assert_eq!(check(b"#!/bin/sh\n\0"), Err(Refusal::NulInScript));
    assert_eq!(check(b"#!/bin/sh\n\xff"), Err(Refusal::ScriptNotText));
    assert_eq!(check(b"#!/bin/sh\ndate\n"), Ok("#!/bin/sh\ndate\n"));
    assert_eq!(
        Refusal::CannotOpenScript("nofile.sh".into()).lines(Command::Sbatch),
        ["sbatch: error: Unable to open file nofile.sh"]
    );
}

/// SL-C-06: where a script is looked for.
#[test]
fn a_script_is_looked_for_by_path_or_name() {
    let paths = |name: &str| candidates(name, "/home/ann", "/bin::/usr/bin/:rel");
    assert_eq!(paths("job.sh"), ["/home/ann/job.sh", "/bin/job.sh", "/usr/bin/job.sh"]);
    assert_eq!(paths("./job.sh"), ["/home/ann/./job.sh"]);
    assert_eq!(paths("sub/job.sh"), ["/home/ann/sub/job.sh"]);
    assert_eq!(paths("/x/job.sh"), ["/x/job.sh"]);
}

/// SL-C-06, SL-C-08: the script that a command line asks for.
#[test]
fn a_command_line_names_a_script_or_wraps_a_command() {
    let wants = |line: &str| wanted(&parse(Command::Sbatch, line));
    let file = Wanted::File { name: "job.sh".into(), args: vec!["a".into(), "-b".into()] };
    assert_eq!(wants("-n1 : job.sh a -b"), Ok(file));
    assert_eq!(wants("-n1"), Ok(Wanted::StandardInput));
    assert_eq!(wants("--wrap=date : -n1"), Ok(Wanted::Wrapped("date".into())));
    assert_eq!(wants("--wrap=date job.sh"), Err(Refusal::ArgumentsWithWrap));
}

/// SL-C-08: `--wrap`.
#[test]
fn a_wrapped_command_is_a_script() {
    let text = wrap("srun hostname");
    assert!(text.starts_with("#!/bin/sh\n") && text.ends_with("\nsrun hostname\n"));
    assert!(check(text.as_bytes()).is_ok());
    assert_eq!(options(&text).unwrap().sections, [vec![]]);
}

fn sections(text: &str) -> Vec<Vec<(&'static str, String)>> {
    let sections = options(text).unwrap().sections;
    sections
        .iter()
        .map(|section| section.iter().map(|given| (given.option.name, given.text().to_owned())).collect())
        .collect()
}

/// SL-C-07: only in column one, only before the first command.
#[test]
fn option_lines_count_before_the_first_command() {
    let text = "#!/bin/bash\n# a comment\n#SBATCH -n2\n #SBATCH -n3\n\n##SBATCH -n4\n#SBATCHED -n5\n#SBATCH --mem=1\ndate\n#SBATCH -n6\n";
    assert_eq!(sections(text), [[("ntasks", "2".to_owned()), ("mem", "1".to_owned())]]);
}

/// SL-C-07: quotes, escapes and comments; no variables.
#[test]
fn words_are_grouped_by_quotes() {
    let text = r##"#!/bin/sh
#SBATCH -J "a b" --comment='it''s "x"' # -n9
#SBATCH -D dir\ name -A "q\"z" -o out#1.$USER
"##;
    let expected = [
        ("job-name", "a b"),
        ("comment", "its \"x\""),
        ("chdir", "dir name"),
        ("account", "q\"z"),
        ("output", "out#1.$USER"),
    ];
    assert_eq!(sections(text), [expected.map(|(name, value)| (name, value.to_owned()))]);
}

/// SL-C-07: errors.
#[test]
fn wrong_option_lines_are_refused() {
    let refusal = |line: &str| options(&format!("#!/bin/sh\n{line}\n")).unwrap_err();
    let told = refusal("#SBATCH -n1 what");
    assert_eq!(told.lines(Command::Sbatch), ["sbatch: error: Invalid directive found in batch script: what"]);
    assert_eq!(refusal("#SBATCH -J \"x"), Refusal::UnmatchedQuote { line: 2, quote: '"' });
    assert_eq!(refusal("#SBATCH --bogus"), Refusal::Option(Wrong::UnknownOption("bogus".into())));
    let wrong = settings_of(Command::Sbatch, "", "#!/bin/sh\n#SBATCH --time=x\n", &[]);
    assert_eq!(wrong.unwrap_err(), Refusal::BadValue("time"));
}

/// SL-S-05: `hetjob` in any case, followed by options; `packjob` with a warning.
#[test]
fn a_line_with_hetjob_begins_the_next_component() {
    let text = "#!/bin/sh\n#SBATCH -n1\n#SBATCH HetJob -n2\n#SBATCH -c3\n#SBATCH packjob\n#SBATCH -n4\ndate\n";
    let read = options(text).unwrap();
    let names: Vec<Vec<&str>> =
        read.sections.iter().map(|section| section.iter().map(|given| given.text()).collect()).collect();
    assert_eq!(names, [vec!["1"], vec!["2", "3"], vec!["4"]]);
    assert_eq!(read.warnings.len(), 1);
    assert!(read.warnings[0].contains("packjob") && read.warnings[0].contains("deprecated"));
}

/// EX-02, SL-S-06: script form and command-line form give the same requests.
#[test]
fn script_and_command_line_describe_the_same_job() {
    let script = "#!/bin/bash\n#SBATCH --cpus-per-task=4 --mem-per-cpu=16g --ntasks=1\n#SBATCH hetjob\n#SBATCH --cpus-per-task=2 --mem-per-cpu=1g --ntasks=8\nsrun run.app\n";
    let plain = "#!/bin/bash\nsrun run.app\n";
    let line = "--cpus-per-task=4 --mem-per-cpu=16g --ntasks=1 : --cpus-per-task=2 --mem-per-cpu=1g --ntasks=8";
    let (by_script, by_line) = (submit_script("", script).unwrap(), submit_script(line, plain).unwrap());
    assert_eq!(by_script.components.len(), 2);
    for (left, right) in by_script.components.iter().zip(&by_line.components) {
        assert_eq!(left.alternatives, right.alternatives);
    }
    assert_eq!(by_script.attributes, by_line.attributes);
}

proptest! {
    #[test]
    fn any_bytes_are_a_script_or_refused(text in "(#!/bin/sh\n)?((#SBATCH|#BB|date)[ a-z\"'\\\\=:#-]{0,20}\n){0,6}|\\PC{0,40}") {
        let _ = check(text.as_bytes());
        if let Ok(read) = options(&text) {
            prop_assert!(!read.sections.is_empty());
        }
    }
}
