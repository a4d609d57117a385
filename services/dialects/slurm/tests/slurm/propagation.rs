//! Which options apply to which component, and which source wins.

use super::submissions::{now, settings, settings_of};
use muster_slurm::{
    messages::Refusal,
    options::{Argument, Command, OPTIONS, OptionSpec, find},
    request::{Settings, Source, listing},
};
use proptest::{prelude::*, sample};

/// The options of SL-O-01.
const CARRIED: &str = "account acctg-freq begin cluster-constraint clusters comment deadline delay-boot dependency \
    distribution error exclude export export-file get-user-env gid hold ignore-pbs immediate input job-name mcs-label mem \
    nice no-kill no-requeue output parsable priority profile propagate qos quiet reboot requeue reservation signal test-only \
    time time-min uid verbose wait-all-nodes wckey chdir";
const CARRIED_BY_SRUN: &str = "epilog kill-on-bad-exit label msg-timeout no-allocate open-mode prolog pty quit-on-interrupt \
    slurmd-debug task-epilog task-prolog unbuffered";
/// The options of SL-O-02.
const RESET: &str = "partition constraint nodes ntasks cpus-per-task mem-per-cpu mem-per-gpu ntasks-per-node \
    ntasks-per-core ntasks-per-socket ntasks-per-gpu nodelist nodefile gres gpus gpus-per-node gpus-per-socket \
    gpus-per-task licenses exclusive oversubscribe overcommit contiguous mincpus tmp switches core-spec thread-spec \
    threads-per-core hint spread-job use-min-nodes mail-type mail-user bb network cpu-freq";

/// The option of a command, written with a valid value.
fn written(option: &OptionSpec) -> String {
    let values = ["1", "noon", "block", "append", "END", "yes", "USR1", "user", "multithread", "task", "none"];
    let value = values.iter().find(|value| option.kind().is_none_or(|kind| kind.accepts(value, &now())));
    match option.argument {
        Argument::Flag => format!("--{}", option.name),
        _ => format!("--{}={}", option.name, value.unwrap()),
    }
}

/// In which of three groups an option applies that is given in the first.
fn holds(command: Command, option: &OptionSpec) -> [bool; 3] {
    let all = settings_of(command, &format!("{} : : x", written(option)), "", &[]).unwrap();
    [0, 1, 2].map(|offset| all[offset].is_set(option.name))
}

/// The commands that have options with these names, with the options.
fn named(names: &str) -> Vec<(Command, &'static OptionSpec)> {
    let commands = [Command::Sbatch, Command::Salloc, Command::Srun];
    let each = names.split_whitespace().flat_map(|name| {
        let of: Vec<_> = commands.iter().filter_map(|command| Some((*command, find(*command, name)?))).collect();
        assert!(!of.is_empty(), "{name}");
        of
    });
    each.collect()
}

/// SL-O-01, SL-O-04: these are carried.
#[test]
fn every_listed_option_is_carried() {
    for (command, option) in named(CARRIED) {
        assert_eq!(holds(command, option), [true; 3], "{command} --{}", option.name);
    }
    for (_, option) in named(CARRIED_BY_SRUN).into_iter().filter(|(command, _)| *command == Command::Srun) {
        assert_eq!(holds(Command::Srun, option), [true; 3], "srun --{}", option.name);
    }
    assert_eq!(holds(Command::Sbatch, find(Command::Sbatch, "wait").unwrap()), [true; 3]);
}

/// SL-O-02: these are not.
#[test]
fn every_other_option_returns_to_its_default() {
    for (command, option) in named(RESET) {
        assert_eq!(holds(command, option), [true, false, false], "{command} --{}", option.name);
    }
}

/// SL-O-02: nor is any option that no list names.
#[test]
fn no_option_is_carried_that_the_lists_do_not_name() {
    let names: Vec<&str> = [CARRIED, CARRIED_BY_SRUN, "wait"].into_iter().flat_map(str::split_whitespace).collect();
    let others: Vec<&str> = OPTIONS
        .iter()
        .filter(|option| option.carried && !names.contains(&option.name))
        .map(|option| option.name)
        .collect();
    assert_eq!(others, [""; 0]);
}

/// SL-O-08: `--workdir` is the old name of `--chdir`; both are carried.
#[test]
fn workdir_is_chdir_and_is_carried() {
    assert_eq!(
        texts(&settings("--workdir=/x : -n1 : -D /y : -n1"), "chdir"),
        [Some("/x"), Some("/x"), Some("/y"), Some("/y")]
    );
}

fn texts<'a>(settings: &'a [Settings], name: &str) -> Vec<Option<&'a str>> {
    settings.iter().map(|settings| settings.text(name)).collect()
}

/// SL-O-03.
#[test]
fn a_carried_value_can_be_replaced() {
    let all = settings("-A x : -n1 : -A y : -n1");
    assert_eq!(texts(&all, "account"), [Some("x"), Some("x"), Some("y"), Some("y")]);
}

/// EX-18, as far as options go.
#[test]
fn the_worked_example_of_propagation() {
    let line = "-H -A abc --comment=cmt -J nm -t 17 --mem=100 -p p2 -C gamma -n2 -c2 --nice=7 -x nid00002 -o oo.%j \
                -m cyclic --mail-type=ALL -L ansys --no-requeue : -n1 --wrap date";
    let all = settings(line);
    let second = &all[1];
    for (name, value) in [
        ("account", "abc"),
        ("comment", "cmt"),
        ("job-name", "nm"),
        ("time", "17"),
        ("mem", "100"),
        ("nice", "7"),
        ("exclude", "nid00002"),
        ("output", "oo.%j"),
        ("distribution", "cyclic"),
        ("no-requeue", ""),
        ("hold", ""),
        ("ntasks", "1"),
    ] {
        assert_eq!(second.text(name), Some(value), "{name}");
    }
    for name in ["partition", "constraint", "cpus-per-task", "licenses", "mail-type"] {
        assert!(all[0].is_set(name) && !second.is_set(name), "{name}");
    }
}

/// SL-S-08: defaults from the environment apply to every component.
#[test]
fn the_environment_applies_to_every_component() {
    let variables = [("SBATCH_ACCOUNT", "abc"), ("SBATCH_PARTITION", "p2")];
    let all = settings_of(Command::Sbatch, "-n1 : -n2", "", &variables).unwrap();
    assert_eq!(texts(&all, "account"), [Some("abc"); 2]);
    assert_eq!(texts(&all, "partition"), [Some("p2"); 2]);
}

/// SL-E-12: the command line wins over the environment, and the environment over the script.
#[test]
fn a_later_source_wins() {
    let script = "#!/bin/sh\n#SBATCH -A s -p s -q s\n";
    let variables = [("SBATCH_ACCOUNT", "e"), ("SBATCH_PARTITION", "e")];
    let all = settings_of(Command::Sbatch, "-A c", script, &variables).unwrap();
    let names = ["account", "partition", "qos"];
    assert_eq!(names.map(|name| all[0].text(name)), [Some("c"), Some("e"), Some("s")]);
    assert_eq!(
        names.map(|name| all[0].source(name)),
        [Some(Source::CommandLine), Some(Source::Environment), Some(Source::Script)]
    );
}

/// SL-S-07: the section and the group in the same place belong together; the longer form gives the
/// number of components.
#[test]
fn script_sections_and_groups_are_joined_by_place() {
    let script = "#!/bin/sh\n#SBATCH -A s0 -n1\n#SBATCH hetjob\n#SBATCH -A s1 -n2\n";
    let all = settings_of(Command::Sbatch, "-c3 : -c4 : -c5", script, &[]).unwrap();
    assert_eq!(texts(&all, "ntasks"), [Some("1"), Some("2"), None]);
    assert_eq!(texts(&all, "cpus-per-task"), [Some("3"), Some("4"), Some("5")]);
    assert_eq!(texts(&all, "account"), [Some("s0"), Some("s1"), Some("s1")]);
    let all = settings_of(Command::Sbatch, "-c3", script, &[]).unwrap();
    assert_eq!(all.len(), 2);
}

/// SL-O-01 over SL-S-08: an option of the command line is not replaced by a default in a later component.
#[test]
fn a_default_does_not_replace_what_was_asked_for() {
    let all = settings_of(Command::Sbatch, "-A x : -n1", "", &[("SBATCH_ACCOUNT", "abc")]).unwrap();
    assert_eq!(texts(&all, "account"), [Some("x"); 2]);
    let all = settings_of(Command::Sbatch, "--mem=5 : -n1", "", &[("SBATCH_MEM_PER_CPU", "7")]).unwrap();
    assert_eq!(texts(&all, "mem"), [Some("5"); 2]);
    assert_eq!(texts(&all, "mem-per-cpu"), [None; 2]);
}

/// SL-O-06.
#[test]
fn memory_for_each_cpu_drops_a_carried_memory_for_each_node() {
    let all = settings("--mem=100 : -n1 : --mem-per-cpu=5 : -n1");
    assert_eq!(texts(&all, "mem"), [Some("100"), Some("100"), None, None]);
    assert_eq!(texts(&all, "mem-per-cpu"), [None, None, Some("5"), None]);
    let clash = settings_of(Command::Sbatch, "--mem=1 --mem-per-cpu=2", "", &[]);
    assert_eq!(clash.unwrap_err(), Refusal::MemoryOptionsClash);
}

/// SL-C-02: cores and threads left to the system exclude each other; the command line wins over variables.
#[test]
fn cores_and_threads_for_the_system_exclude_each_other() {
    let said = |line: &str, script: &str, variables: &[(&str, &str)]| {
        settings_of(Command::Sbatch, line, script, variables).map_err(|refusal| refusal.lines(Command::Sbatch))
    };
    let told = |line: &str, variables: &[(&str, &str)]| said(line, "", variables);
    let clash = ["sbatch: fatal: -S/--core-spec and --thred-spec options are mutually exclusive"];
    assert_eq!(told("-S1 --thread-spec=1", &[]).unwrap_err(), clash);
    assert_eq!(said("--thread-spec=1", "#!/bin/sh\n#SBATCH -S1\n", &[]).unwrap_err(), clash);
    let variables = [("SBATCH_CORE_SPEC", "1"), ("SBATCH_THREAD_SPEC", "1")];
    let lines = told("", &variables).unwrap_err();
    assert!(
        lines[0].starts_with("sbatch: fatal: Both --core-spec and --thread-spec set using environment"),
        "{lines:?}"
    );
    let all = told("-S2", &variables).unwrap();
    assert_eq!([texts(&all, "core-spec"), texts(&all, "thread-spec")], [[Some("2")], [None]]);
}

/// SL-O-07: the groups of a script follow the same rules.
#[test]
fn sections_of_a_script_carry_options_too() {
    let script = "#!/bin/bash\n#SBATCH -J foo --cpus-per-task=2 --mem-per-cpu=16 --ntasks=1 -t 5\n#SBATCH hetjob\n\
                  #SBATCH --cpus-per-task=1 --mem-per-cpu=10 --ntasks=4 --ntasks-per-node=2\nsleep 60\n";
    let all = settings_of(Command::Sbatch, "", script, &[]).unwrap();
    assert_eq!(texts(&all, "job-name"), [Some("foo"); 2]);
    assert_eq!(texts(&all, "time"), [Some("5"); 2]);
    assert_eq!(texts(&all, "cpus-per-task"), [Some("2"), Some("1")]);
    let groups = settings_of(Command::Srun, "-l -n2 : -n1 prog", "", &[]).unwrap();
    assert_eq!(texts(&groups, "label"), [Some(""); 2]);
}

/// SL-C-08: `-v` lists the options that are set.
#[test]
fn verbose_lists_the_options() {
    let all = settings("-v -p p2 -t 17 --mem=2g -H");
    assert_eq!(
        listing(Command::Sbatch, &all[0], 1),
        [
            "sbatch: defined options",
            "sbatch: -------------------- --------------------",
            "sbatch: hold                : set",
            "sbatch: mem                 : 2G",
            "sbatch: partition           : p2",
            "sbatch: time                : 00:17:00",
            "sbatch: verbose             : 1",
            "sbatch: -------------------- --------------------",
            "sbatch: end of defined options",
        ]
    );
    let debug: Vec<String> = listing(Command::Sbatch, &settings("-n2")[0], 3).split_off(6);
    assert_eq!(debug, ["sbatch: debug:  ntasks is from the command line"]);
    for command in [Command::Salloc, Command::Srun] {
        let line = format!("{command}: debug:  ntasks is from the command line");
        assert!(listing(command, &settings("-n2")[0], 3).contains(&line), "{command}");
    }
    let by_variable = listing(Command::Sbatch, &settings("-n2")[0], 4);
    assert!(by_variable.contains(&"sbatch: verbose             : 4".to_owned()), "{by_variable:?}");
}

proptest! {
    /// SL-O-01, SL-O-02: for every option, alone in the first of three groups.
    #[test]
    fn an_option_is_carried_exactly_if_the_table_says_so(pick: sample::Index) {
        let options: Vec<&OptionSpec> =
            OPTIONS.iter().filter(|option| option.commands.contains(Command::Sbatch)).collect();
        let option = *pick.get(&options);
        prop_assert_eq!(holds(Command::Sbatch, option), [true, option.carried, option.carried]);
    }
}
