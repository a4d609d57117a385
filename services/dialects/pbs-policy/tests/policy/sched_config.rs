//! The file `sched_config`.

use crate::support::{SCHED_CONFIG, checked, errors_in, policy, shown, warnings_in};
use muster_pbs_policy::{
    mode::Mode,
    sched_config::{
        Charge, FairShareModel, HolidaysStale, ModeOptions, ResourcesMax, SchedConfig, StartsBlocked, StrictOrder,
    },
    sort::{SortBy, SortKey},
};
use muster_schemas::policy::LogClass;

const FILE: &str = "sched_config";

fn config(text: &str) -> SchedConfig {
    policy(&[(FILE, text)]).sched_config
}

fn errors(text: &str) -> Vec<String> {
    errors_in(FILE, text)
}

fn warnings(text: &str) -> Vec<String> {
    warnings_in(FILE, text)
}

/// W0: PBS-F-01, PBS-F-02, PBS-F-03, PBS-F-14.
#[test]
fn the_sample_is_accepted_with_one_warning() {
    let debug_level = SCHED_CONFIG.lines().position(|line| line.starts_with("debug_level")).expect("a line") + 1;
    let expected = format!("sched_config:{debug_level}: has no effect here (token 'debug_level')");
    assert_eq!(warnings(SCHED_CONFIG), [expected]);
    let config = config(SCHED_CONFIG);
    let keys = vec![SortKey::ShortestJobFirst, SortKey::SmallestMemoryFirst, SortKey::HighPriorityFirst];
    let both = ModeOptions { strict_fifo: true, sort_by: SortBy::MultiSort, keys, ..ModeOptions::default() };
    let prime = ModeOptions { by_queue: true, fair_share: true, help_starving_jobs: true, ..both.clone() };
    let non_prime = ModeOptions { by_queue: false, fair_share: false, help_starving_jobs: false, ..both };
    assert_eq!(config.modes.get(Mode::Prime), &prime);
    assert_eq!(config.modes.get(Mode::NonPrime), &non_prime);
    assert_eq!((config.max_starve_seconds, config.unknown_shares, config.sync_seconds), (86_400, 10, 3600));
}

/// PBS-F-02.
#[test]
fn options_that_are_left_out_have_their_defaults() {
    let config = config("");
    assert_eq!(config, SchedConfig::default());
    for mode in Mode::BOTH {
        let options = config.modes.get(mode);
        assert!(options.by_queue && options.sort_queues);
        assert!(!options.round_robin && !options.strict_fifo && !options.fair_share && !options.help_starving_jobs);
        assert!(!options.load_balancing && !options.load_balancing_rr);
        assert_eq!(options.sort_by, SortBy::Key(SortKey::ShortestJobFirst));
    }
    assert_eq!((config.log_filter.sum(), config.dedicated_prefix.as_str()), (256, "ded"));
    assert_eq!((config.max_starve_seconds, config.half_life_seconds, config.sync_seconds), (86_400, 86_400, 3600));
    assert_eq!((config.unknown_shares, config.load_settle_seconds, config.prestaged_jobs), (10, 0, 0));
}

/// PBS-F-02.
#[test]
fn without_a_file_the_shipped_policy_holds() {
    let checked = checked(&[("holidays", "YEAR 2026\n")]);
    assert_eq!(shown(&checked.warnings), ["sched_config: no such file: the policy that PBS ships is in force"]);
    let config = checked.policy.expect("no errors").sched_config;
    assert!(Mode::BOTH.iter().all(|mode| config.modes.get(*mode).help_starving_jobs));
    let mut default = SchedConfig::default();
    Mode::BOTH.iter().for_each(|mode| default.modes.get_mut(*mode).help_starving_jobs = true);
    assert_eq!(config, default);
}

/// PBS-F-01: separators, comments, case, quotes, long lines.
#[test]
fn lines_are_read_in_every_form() {
    for line in [
        "round_robin: true",
        "round_robin true",
        "round_robin\ttrue",
        "round_robin : \t true",
        "  ROUND_ROBIN:TRUE\tAll",
        "round_robin: \"yes\" all",
        "round_robin: on # with a comment",
        "round_robin::1",
        "round_robin: true \r",
        "\u{feff}round_robin: true",
    ] {
        let config = config(line);
        assert!(config.modes.prime.round_robin && config.modes.non_prime.round_robin, "{line}");
    }
    for line in ["", "   ", "# round_robin: true", "  * round_robin: true", "round_robin: true none", "#"] {
        assert_eq!(config(line), SchedConfig::default(), "{line}");
    }
    let long = format!("ignore_queue: {}  {}# {}", "q".repeat(200), " ".repeat(400), "x".repeat(1000));
    assert_eq!(config(&long).ignored_queues, ["q".repeat(200)]);
}

/// PBS-F-01, PBS-F-14: three spellings of non-prime time are accepted.
#[test]
fn a_line_holds_in_the_modes_of_its_last_word() {
    for word in ["non_prime", "non-prime", "nonprime", "NON_PRIME", "Non-Prime"] {
        let config = config(&format!("fair_share: true {word}"));
        assert!(!config.modes.prime.fair_share && config.modes.non_prime.fair_share, "{word}");
    }
    let config = config("fair_share: true prime");
    assert!(config.modes.prime.fair_share && !config.modes.non_prime.fair_share);
}

/// PBS-F-01: the last line wins per mode.
#[test]
fn a_line_that_overrides_another_one_is_warned_of() {
    assert_eq!(warnings("by_queue: true prime\nby_queue: false non_prime\n"), Vec::<String>::new());
    assert_eq!(
        warnings("by_queue: true\nby_queue: false prime\n"),
        ["sched_config:2: is set again for prime time: line 1 no longer counts (token 'by_queue')"]
    );
    assert_eq!(
        warnings("by_queue: true prime\nby_queue: false non_prime\nby_queue: true\n"),
        [
            "sched_config:3: is set again for prime time: line 1 no longer counts (token 'by_queue')",
            "sched_config:3: is set again for non-prime time: line 2 no longer counts (token 'by_queue')"
        ]
    );
    let config = config("by_queue: true\nby_queue: false prime\n");
    assert!(!config.modes.prime.by_queue && config.modes.non_prime.by_queue);
    assert_eq!(warnings("by_queue: true\nby_queue: false none\n"), Vec::<String>::new());
}

/// PBS-F-01: Z2 and the aliases of section 0.2.
#[test]
fn other_names_are_accepted() {
    assert_eq!(config("starve_max: 1:00:00").max_starve_seconds, 3600);
    assert_eq!(config("max_starve: 2:00:00\nstarve_max: 1:00:00").max_starve_seconds, 3600);
    assert_eq!(
        warnings("starve_max: 1:00:00\nmax_starve: 2:00:00"),
        ["sched_config:2: is set again: line 1 no longer counts (token 'max_starve')"]
    );
    assert!(config("strict_ordering: true").modes.prime.strict_fifo);
    assert_eq!(config("sort_by: cmp_job_walltime_asc").modes.prime.sort_by, SortBy::Key(SortKey::ShortWalltimeFirst));
}

/// PBS-F-02: values of every kind.
#[test]
fn every_option_has_its_value() {
    let config = config(
        "load_balancing: true prime\nload_balancing_rr: yes non_prime\nsort_queues: off\nhelp_starving_jobs: on\n\
         log_filter 388\ndedicated_prefix: Special\nhalf_life: 12:00:00\nunknown_shares: 0\nsync_time: 30:00\n\
         ignore_queue: A\nignore_queue: b\nmuster_strict_order: arrival\nmuster_resources_max: per_job\n\
         muster_starving_blocks: resources\nmuster_fair_share_model: tree\nmuster_fair_share_charge: ncpus*walltime\n\
         muster_holidays_stale: IGNORE\nmuster_load_settle: 5:00\nmuster_check_resources: mem,ncpus,scratch\n\
         muster_prestage: 3\n",
    );
    assert!(config.modes.prime.load_balancing && !config.modes.non_prime.load_balancing);
    assert!(!config.modes.prime.load_balancing_rr && config.modes.non_prime.load_balancing_rr);
    assert!(!config.modes.prime.sort_queues && config.modes.non_prime.help_starving_jobs);
    assert_eq!((config.dedicated_prefix.as_str(), config.half_life_seconds), ("Special", 43_200));
    assert_eq!((config.unknown_shares, config.sync_seconds, config.load_settle_seconds), (0, 1800, 300));
    assert_eq!(config.ignored_queues, ["A", "b"]);
    assert!(config.ignores("A") && !config.ignores("B"));
    assert_eq!((config.strict_order, config.resources_max), (StrictOrder::Arrival, ResourcesMax::PerJob));
    assert_eq!(config.starving_blocks, StartsBlocked::Resources);
    assert_eq!((config.fair_share_model, config.fair_share_charge), (FairShareModel::Tree, Charge::CpusTimesWalltime));
    assert_eq!(config.holidays_stale, HolidaysStale::Ignore);
    assert_eq!(config.checked_resources.as_deref(), Some(["mem", "ncpus", "scratch"].map(str::to_owned).as_slice()));
    assert_eq!(config.prestaged_jobs, 3);
}

/// PBS-F-12.
#[test]
fn the_log_filter_is_the_sum_of_hidden_classes() {
    let hidden = |sum: &str| {
        let filter = config(&format!("log_filter: {sum}")).log_filter;
        LogClass::ALL.into_iter().filter(|class| filter.hides(*class)).collect::<Vec<_>>()
    };
    assert_eq!(hidden("388"), [LogClass::Admin, LogClass::Debug, LogClass::Debug2]);
    assert_eq!(hidden("200"), [LogClass::Job, LogClass::Scheduler, LogClass::Debug]);
    assert_eq!(hidden("256"), [LogClass::Debug2]);
    assert_eq!(hidden("0"), []);
    assert_eq!(config("").log_filter.shown(), "debug2");
    assert_eq!(warnings("log_filter: 3328"), ["sched_config:1: 3072 of the sum belongs to no class (token '3328')"]);
}

/// PBS-F-03.
#[test]
fn names_of_other_releases_have_no_effect() {
    for line in [
        "backfill: true ALL",
        "backfill_prime: false",
        "preemptive_sched: true ALL",
        "preempt_prio: \"express_queue, normal_jobs\"",
        "node_sort_key: \"sort_priority HIGH\" ALL",
        "smp_cluster_dist: pack",
        "provision_policy: \"aggressive_provision\"",
        "primetime_prefix: p_",
        "debug_level: high_mess",
        "server_dyn_res: \"mem !/bin/get_mem\" and more",
    ] {
        let name = line.split(':').next().expect("a name");
        assert_eq!(warnings(line), [format!("sched_config:1: has no effect here (token '{name}')")], "{line}");
        assert_eq!(config(line), SchedConfig::default());
    }
    assert_eq!(
        warnings("resources: \"ncpus, mem, arch\""),
        ["sched_config:1: has no effect here; muster_check_resources does something similar (token 'resources')"]
    );
    assert_eq!(
        warnings("half_life: 12:00:00 prime"),
        ["sched_config:1: the option has one value for all times: the word has no effect (token 'prime')"]
    );
    assert_eq!(config("half_life: 12:00:00 prime").half_life_seconds, 43_200);
    assert_eq!(config("half_life: 12:00:00 none").half_life_seconds, 86_400);
}

/// PBS-F-04: each kind of error, and suggestions.
#[test]
fn errors_name_file_line_and_token() {
    for (text, expected) in [
        ("round_robin", "expected a value behind the name (token 'round_robin')"),
        ("round_robin: # no value", "expected a value behind the name (token 'round_robin')"),
        (": true", "expected a name in front of the colon (token ':')"),
        ("by_que: true", "no such option; is 'by_queue' meant? (token 'by_que')"),
        ("bananas: true", "no such option (token 'bananas')"),
        ("by_queue: maybe", "expected true or false (token 'maybe')"),
        ("by_queue: ture", "expected true or false; is 'true' meant? (token 'ture')"),
        ("by_queue: true sometimes", "expected prime, non_prime, all or none (token 'sometimes')"),
        ("by_queue: true prim", "expected prime, non_prime, all or none; is 'prime' meant? (token 'prim')"),
        ("by_queue: true prime time", "expected nothing behind 'prime' (token 'time')"),
        ("sort_by: sortest_job_first", "no such sort; is 'shortest_job_first' meant? (token 'sortest_job_first')"),
        ("key: sortest_job_first", "no such sort; is 'shortest_job_first' meant? (token 'sortest_job_first')"),
        ("key: multi_sort", "expected the name of a sort; multi_sort is for sort_by (token 'multi_sort')"),
        ("half_life: 0", "expected a time above zero, such as 24:00:00 (token '0')"),
        ("half_life: -5", "expected a time above zero, such as 24:00:00 (token '-5')"),
        ("max_starve: soon", "expected a time, such as 24:00:00 (token 'soon')"),
        ("log_filter: 0x100", "expected an integer from 0 to 4294967295 (token '0x100')"),
        ("unknown_shares: -1", "expected an integer from 0 to 4294967295 (token '-1')"),
        ("unknown_shares: 4294967296", "expected an integer from 0 to 4294967295 (token '4294967296')"),
        ("half_life: 1:00 sometimes", "expected prime, non_prime, all or none (token 'sometimes')"),
        ("dedicated_prefix: \"\"", "expected a prefix of 1 to 255 bytes"),
        ("dedicated_prefix: \"ded", "expected a quote at the end of the value (token 'ded')"),
        ("muster_strict_order: sortd", "expected sorted or arrival; is 'sorted' meant? (token 'sortd')"),
        (
            "muster_check_resources: mem,,ncpus",
            "expected names of resources with commas between them (token 'mem,,ncpus')",
        ),
    ] {
        assert_eq!(errors(&format!("\n# a comment\n{text}\n")), [format!("sched_config:3: {expected}")], "{text}");
    }
}

/// PBS-F-04: the place in the line is known, too.
#[test]
fn errors_know_the_column() {
    let checked = checked(&[(FILE, "  by_queue:\tmaybe  prime\nfair_share: \"äh\" sometimes\n")]);
    let places: Vec<(u32, u32)> = checked.errors.iter().map(|error| (error.line, error.column)).collect();
    assert_eq!(places, [(1, 13), (2, 14), (2, 18)]);
}

/// PBS-F-04: a message cannot control a terminal, and a long word is cut.
#[test]
fn messages_are_safe_to_print() {
    assert_eq!(errors("by_queue: \u{1b}[2Jx"), ["sched_config:1: expected true or false (token '\\u{1b}[2Jx')"]);
    let long = errors(&format!("by_queue: {}", "x".repeat(5000)));
    assert_eq!(long, [format!("sched_config:1: expected true or false (token '{}...')", "x".repeat(60))]);
    let hidden = errors("by_queue: tr\u{202e}eu\u{feff}");
    assert_eq!(hidden, ["sched_config:1: expected true or false (token 'tr\\u{202e}eu\\u{feff}')"]);
    let latin = check_bytes(b"# caf\xe9\nignore_queue: caf\xe9\n");
    assert_eq!(latin, ["sched_config:2: expected a value in UTF-8 (token 'caf\u{fffd}')"]);
}

fn check_bytes(bytes: &[u8]) -> Vec<String> {
    let source = muster_pbs_policy::lines::Source { name: FILE.to_owned(), bytes: bytes.to_vec() };
    shown(&muster_pbs_policy::check::check(&[source], None).errors)
}

/// PBS-S-04, PBS-S-05.
#[test]
fn keys_belong_to_the_modes_of_their_lines() {
    let config = config(
        "sort_by: multi_sort\nkey: shortest_job_first prime\nkey: high_priority_first\nkey: no_sort none\n\
         key: largest_memory_first non_prime\n",
    );
    let keys = |mode| config.modes.get(mode).order().keys().to_vec();
    assert_eq!(keys(Mode::Prime), [SortKey::ShortestJobFirst, SortKey::HighPriorityFirst]);
    assert_eq!(keys(Mode::NonPrime), [SortKey::HighPriorityFirst, SortKey::LargestMemoryFirst]);
}

/// PBS-S-04.
#[test]
fn keys_that_do_not_fit_the_sort_are_warned_of() {
    assert_eq!(
        warnings("sort_by: multi_sort\n"),
        ["sched_config:1: there is no key for prime and non-prime time: jobs are not sorted (token 'multi_sort')"]
    );
    assert_eq!(config("sort_by: multi_sort\n").modes.prime.order().keys(), []);
    assert_eq!(
        warnings("sort_by: multi_sort\nkey: shortest_job_first prime\n"),
        ["sched_config:1: there is no key for non-prime time: jobs are not sorted (token 'multi_sort')"]
    );
    assert_eq!(
        warnings("sort_by: no_sort\nkey: shortest_job_first\n"),
        ["sched_config:2: the key is not used in prime and non-prime time, because sort_by is not multi_sort (token \
          'shortest_job_first')"]
    );
    let unused = "sort_by: multi_sort prime\nsort_by: no_sort non_prime\nkey: shortest_job_first prime\n\
                  key: longest_job_first non_prime\n";
    assert_eq!(
        warnings(unused),
        ["sched_config:4: the key is not used in non-prime time, because sort_by is not multi_sort (token \
          'longest_job_first')"]
    );
    assert_eq!(config(unused).modes.non_prime.order().keys(), []);
    assert_eq!(warnings("sort_by: multi_sort prime\nkey: longest_job_first\n"), Vec::<String>::new());
    assert_eq!(
        warnings("sort_by: multi_sort\nkey: longest_job_first\nkey: no_sort\n"),
        ["sched_config:3: does not sort: the line has no effect (token 'no_sort')"]
    );
}

/// PBS-S-04: eleven keys in each mode.
#[test]
fn a_twelfth_key_is_an_error() {
    let keys = |count: usize, when: &str| format!("key: shortest_job_first {when}\n").repeat(count);
    assert_eq!(errors(&format!("sort_by: multi_sort\n{}", keys(11, "all"))), Vec::<String>::new());
    assert_eq!(errors(&format!("sort_by: multi_sort\n{}{}", keys(11, "prime"), keys(11, "non_prime"))), [""; 0]);
    assert_eq!(
        errors(&format!("sort_by: multi_sort\n{}{}", keys(11, "prime"), keys(1, "all"))),
        ["sched_config:13: is more than the 11 keys that are allowed in prime time (token 'shortest_job_first')"]
    );
}

/// PBS-Q-12.
#[test]
fn a_seventeenth_ignored_queue_is_an_error() {
    let lines = |count: usize| (1..=count).map(|number| format!("ignore_queue: q{number}\n")).collect::<String>();
    assert_eq!(config(&lines(16)).ignored_queues.len(), 16);
    assert_eq!(
        errors(&lines(17)),
        ["sched_config:17: is more than the 16 ignore_queue lines that are allowed (token 'q17')"]
    );
    assert_eq!(
        warnings("ignore_queue: a\nignore_queue: a\n"),
        ["sched_config:2: the queue is ignored already (token 'a')"]
    );
}

/// PBS-FS-10: usage would undo strict priority.
#[test]
fn strict_priority_with_fair_share_is_warned_of() {
    assert_eq!(
        warnings("fair_share: true prime\nsort_by: fair_share\n"),
        ["sched_config:2: fair_share is true in prime time, so usage decides before this sort (token 'fair_share')"]
    );
}

/// PBS-Q-04: the resources that are tested, unless the site names others.
#[test]
fn the_tested_resources_can_be_named() {
    assert_eq!(SchedConfig::CHECKED_RESOURCES, ["mem", "ncpus", "nodect"]);
    assert_eq!(config("").checked_resources, None);
    assert_eq!(config("muster_check_resources: mem").checked_resources, Some(vec!["mem".to_owned()]));
}

/// PBS-F-13.
#[test]
fn usage_is_collected_if_fair_share_is_on_in_either_mode() {
    for (text, expected) in
        [("fair_share: true prime", true), ("fair_share: true non_prime", true), ("fair_share: true none", false)]
    {
        assert_eq!(config(text).collects_usage(), expected, "{text}");
    }
}
