//! Command lines: the syntax of options, groups, help.

use super::submissions::{now, parse, words};
use muster_slurm::{
    messages::{ExitStatuses, Refusal},
    options::{
        ALIASES, Command, OPTIONS, OptionSpec, RELEASE, SiteOptions, find, help, parse as parse_words, usage, version,
    },
};
use proptest::{collection::vec, prelude::*, sample};

const COMMANDS: [Command; 3] = [Command::Sbatch, Command::Salloc, Command::Srun];

fn of(command: Command) -> Vec<&'static OptionSpec> {
    OPTIONS.iter().filter(|option| option.commands.contains(command)).collect()
}

fn shown(command: Command, line: &str) -> Vec<Vec<(&'static str, String)>> {
    let groups = parse(command, line).groups;
    groups
        .iter()
        .map(|group| group.options.iter().map(|given| (given.option.name, given.text().to_owned())).collect())
        .collect()
}

#[test]
fn the_table_is_sorted_and_no_name_or_letter_stands_twice() {
    assert!(OPTIONS.is_sorted_by_key(|option| option.name));
    for command in COMMANDS {
        let mut names: Vec<&str> = of(command).iter().map(|option| option.name).collect();
        let mut letters: Vec<char> = of(command).iter().filter_map(|option| option.short).collect();
        let (name_count, letter_count) = (names.len(), letters.len());
        names.dedup();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!((names.len(), letters.len()), (name_count, letter_count), "{command}");
    }
    for (alias, name) in ALIASES {
        assert!(
            OPTIONS.iter().any(|option| option.name == *name) && !OPTIONS.iter().any(|option| option.name == *alias)
        );
    }
}

/// SL-C-01: `--opt=v` and `--opt v`, glued short options, abbreviations.
#[test]
fn options_are_written_as_getopt_long_takes_them() {
    assert_eq!(
        shown(
            Command::Sbatch,
            "--nodes=2 --ntasks 4 -c8 -p debug -HQ -Jname --exclusive --exclusive=user -k job.sh -n9"
        ),
        [[
            ("nodes", "2"),
            ("ntasks", "4"),
            ("cpus-per-task", "8"),
            ("partition", "debug"),
            ("hold", ""),
            ("quiet", ""),
            ("job-name", "name"),
            ("exclusive", ""),
            ("exclusive", "user"),
            ("no-kill", ""),
        ]
        .map(|(name, value)| (name, value.to_owned()))]
    );
    assert_eq!(shown(Command::Sbatch, "--part p2 --dep=5 --job nm")[0].len(), 3);
    assert_eq!(parse(Command::Sbatch, "-- -n1 x").words(), ["-n1", "x"]);
    assert_eq!(
        shown(Command::Sbatch, "--workdir=/x --share")[0].iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["chdir", "oversubscribe"]
    );
    assert_eq!(
        shown(Command::Srun, "-I5 --pack-group=1 a")[0],
        [("immediate", "5".to_owned()), ("het-group", "1".to_owned())]
    );
}

/// SL-C-02.
#[test]
fn a_wrong_option_is_told_as_getopt_does() {
    let lines = |command: Command, line: &str| {
        let refusal = parse_words(command, &words(line)).unwrap_err();
        assert_eq!(refusal.exit_status(ExitStatuses::default()), 255);
        refusal.lines(command)
    };
    let hint = "Try \"sbatch --help\" for more information";
    assert_eq!(lines(Command::Sbatch, "--bogus x"), ["sbatch: unrecognized option '--bogus'", hint]);
    assert_eq!(lines(Command::Sbatch, "-HX x"), ["sbatch: invalid option -- 'X'", hint]);
    assert_eq!(lines(Command::Sbatch, "--nodes"), ["sbatch: option '--nodes' requires an argument", hint]);
    assert_eq!(lines(Command::Sbatch, "-N"), ["sbatch: option requires an argument -- 'N'", hint]);
    assert_eq!(lines(Command::Sbatch, "--hold=1"), ["sbatch: option '--hold' doesn't allow an argument", hint]);
    assert_eq!(
        lines(Command::Sbatch, "--ve"),
        ["sbatch: option '--ve' is ambiguous; possibilities: '--verbose' '--version'", hint]
    );
    assert_eq!(
        lines(Command::Srun, "--wrap=x"),
        ["srun: unrecognized option '--wrap'", "Try \"srun --help\" for more information"]
    );
}

/// SL-C-02: a bad value of an option.
#[test]
fn a_bad_value_is_told_with_its_option() {
    let wrong = [
        "--time=x",
        "--begin=yesterday",
        "--mem=1X",
        "--nodes=3-1",
        "--ntasks=0",
        "--cpus-per-task=-1",
        "--signal=NOPE",
        "--distribution=odd",
        "--open-mode=x",
        "--nice=x",
        "--priority=-1",
        "--deadline=25:00",
        "--gpus=x:y",
        "--mail-type=SOMETIMES",
        "--switches=x",
        "--exclusive=x",
        "--tmp=x",
        "--time-min=x",
        "--hint=x",
        "--profile=task,x",
    ];
    for text in wrong {
        let line = parse(Command::Sbatch, text);
        let given = &line.groups[0].options[0];
        let refusal = given.check(&now()).unwrap_err();
        assert_eq!(refusal, Refusal::BadValue(given.option.name));
        assert_eq!(
            refusal.lines(Command::Sbatch),
            [format!("sbatch: error: Invalid --{} specification", given.option.name)]
        );
        assert_eq!(refusal.exit_status(ExitStatuses::default()), 255);
    }
}

/// SL-S-01: groups separated by `:`, offsets in order. SL-S-25: an empty group is one too.
#[test]
fn a_colon_separates_groups() {
    for (command, last) in [(Command::Sbatch, "job.sh"), (Command::Salloc, "bash")] {
        let line = parse(command, &format!("-n1 : : -n3 {last}"));
        assert_eq!(line.groups.len(), 3);
        assert_eq!(line.groups.iter().map(|group| group.options.len()).collect::<Vec<_>>(), [1, 0, 1]);
        assert_eq!(line.words(), [last]);
    }
    assert_eq!(parse(Command::Sbatch, "--exclusive : --wrap date").groups.len(), 2);
}

/// SL-S-03: only a `:` that stands alone separates.
#[test]
fn a_colon_inside_a_word_separates_nothing() {
    assert_eq!(parse(Command::Sbatch, "--gres=gpu:2 -J a:b job.sh").groups.len(), 1);
    let line = parse(Command::Srun, "-n1 a : x:y -n2 : b c");
    let programs: Vec<String> = line.groups.iter().map(|group| group.words.join(" ")).collect();
    assert_eq!(programs, ["a", "x:y -n2", "b c"]);
    let line = parse(Command::Srun, "-n1 a :b c: -n2 : d");
    let programs: Vec<String> = line.groups.iter().map(|group| group.words.join(" ")).collect();
    assert_eq!(programs, ["a :b c: -n2", "d"], "nor does one at the beginning or the end of a word");
}

/// SL-S-04: options end at the script's name.
#[test]
fn a_script_keeps_its_own_arguments() {
    let line = parse(Command::Sbatch, "-n1 : new.sh : -n2");
    assert_eq!(line.groups.len(), 2);
    assert_eq!(line.words(), ["new.sh", ":", "-n2"]);
}

/// SL-O-09: options that Slurm knows and muster ignores are accepted.
#[test]
fn options_without_function_are_taken() {
    let line = "--slurmd-debug=3 --acctg-freq=task=30 --network=ib --cpu-bind=none --mpi=none --threads=2 --x11 prog";
    assert_eq!(shown(Command::Srun, line)[0].len(), 7);
}

/// SL-C-01: `--help` and `--usage`.
#[test]
fn help_begins_with_usage_and_has_every_option() {
    for command in COMMANDS {
        let text = help(command, SiteOptions::default());
        assert!(text.starts_with(&format!("Usage: {command}")));
        for heading in ["Constraint options:", "Consumable resources related options:"] {
            assert!(text.lines().any(|line| line == heading), "{command}: {heading}");
        }
        for option in of(command) {
            assert!(text.contains(&format!("--{}", option.name)), "{command} --{}", option.name);
        }
        let short = usage(command, SiteOptions::default());
        assert!(short.starts_with(&format!("Usage: {command}")) && short.len() < text.len());
        assert!(short.lines().all(|line| line.len() <= 110));
    }
}

/// SL-C-01: one line with both versions.
#[test]
fn the_version_has_three_numbers_and_musters_own() {
    let line = version(RELEASE, "0.1.0");
    let numbers = line.strip_prefix("slurm ").and_then(|rest| rest.strip_suffix(" (muster 0.1.0)\n")).unwrap();
    assert_eq!(numbers.split('.').filter(|number| number.parse::<u32>().is_ok()).count(), 3);
}

/// SL-E-11: the names of variables follow the command.
#[test]
fn each_option_knows_its_variables() {
    let names = |command: Command, name: &str| find(command, name).unwrap().variables_of(command).collect::<Vec<_>>();
    assert_eq!(names(Command::Sbatch, "account"), ["SBATCH_ACCOUNT"]);
    assert_eq!(names(Command::Salloc, "account"), ["SALLOC_ACCOUNT"]);
    assert_eq!(names(Command::Srun, "account"), ["SLURM_ACCOUNT"]);
    assert_eq!(names(Command::Srun, "output"), ["SRUN_OUTPUT", "SLURM_STDOUTMODE"]);
    assert_eq!(names(Command::Sbatch, "clusters"), ["SBATCH_CLUSTERS", "SLURM_CLUSTERS"]);
    assert!(names(Command::Sbatch, "ntasks").is_empty());
    assert_eq!(names(Command::Srun, "cpus-per-task"), ["SRUN_CPUS_PER_TASK", "SLURM_CPUS_PER_TASK"]);
}

proptest! {
    /// SL-C-01: an abbreviation that fits only one option means that option.
    #[test]
    fn a_unique_abbreviation_is_its_option(command in sample::select(COMMANDS.to_vec()), pick: sample::Index, length in 1usize..20) {
        let option = *pick.get(&of(command));
        let word = format!("--{}", &option.name[..length.min(option.name.len())]);
        let short = &word[2..];
        let names = of(command).into_iter().map(|option| (option.name, option.name)).chain(ALIASES.iter().copied());
        let fits = |written: &str| written.starts_with(short);
        let fitting: std::collections::BTreeSet<&str> = names
            .filter(|(written, name)| fits(written) && find(command, name).is_some())
            .map(|(_, name)| name)
            .collect();
        let short = ALIASES.iter().find(|(alias, _)| *alias == short).map_or(short, |(_, name)| name);
        let exact = find(command, short).is_some();
        let result = parse_words(command, &[word.as_str(), "1"]);
        match result {
            Ok(line) => {
                let found = line.groups[0].options[0].option.name;
                let expected = if exact { found == short } else { fitting.len() == 1 && fitting.contains(found) };
                prop_assert!(expected, "{} is not --{}", short, found);
            }
            Err(refusal) => {
                prop_assert!(!exact && fitting.len() > 1, "{refusal:?}");
            }
        }
    }

    #[test]
    fn any_words_are_a_command_line_or_refused(
        command in sample::select(COMMANDS.to_vec()),
        words in vec(prop_oneof!["-{0,3}[a-zA-Z]{0,6}(=\\PC{0,5})?", "\\PC{0,8}", Just(":".to_owned())], 0..8),
    ) {
        match parse_words(command, &words) {
            Ok(line) => {
                prop_assert!(!line.groups.is_empty());
                for given in line.groups.iter().flat_map(|group| &group.options) {
                    let _ = given.check(&now());
                }
            }
            Err(refusal) => prop_assert!(!refusal.lines(command).is_empty()),
        }
    }
}
