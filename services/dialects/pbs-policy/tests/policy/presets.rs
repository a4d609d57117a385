//! The file `config` of the presets.

use crate::support::{shown, sources};
use jiff::{civil::date, tz::TimeZone};
use muster_pbs_policy::{
    check::{Checked, check},
    preset::{BackfillMode, Enforced, Preset, PresetConfig, QueueName, RestartAction, Variance, readers},
    values::Decimal,
};

const REQUIRED: &str = "SUBMIT_QUEUE submit\nBATCH_QUEUES small,large\n";

fn checked(preset: Preset, config: &str) -> Checked {
    check(&sources(&[("config", config), ("holidays", "YEAR 2026\n")]), Some(preset))
}

fn config(preset: Preset, text: &str) -> PresetConfig {
    let checked = checked(preset, &format!("{REQUIRED}{text}"));
    checked.policy.and_then(|policy| policy.preset).unwrap_or_else(|| panic!("{:?}", shown(&checked.errors)))
}

fn errors(preset: Preset, text: &str) -> Vec<String> {
    shown(&checked(preset, &format!("{REQUIRED}{text}")).errors)
}

fn warnings(preset: Preset, text: &str) -> Vec<String> {
    let checked = checked(preset, &format!("{REQUIRED}{text}"));
    assert_eq!(shown(&checked.errors), Vec::<String>::new());
    shown(&checked.warnings)
}

fn queue(name: &str) -> QueueName {
    QueueName::parse(name).expect("a queue")
}

/// PBS-P-02, PBS-P-03: values of every kind.
#[test]
fn every_option_has_its_value() {
    let sgi = config(
        Preset::SgiOrigin,
        "SPECIAL_QUEUE special\nEXTERNAL_QUEUES a@Host1, b@host2,\nEXTERNAL_QUEUES c\nDEDICATED_QUEUES ded@host1\n\
         MAX_JOBS 16\nMIN_JOBS 1\nMAX_USER_RUN_JOBS 3\nMAX_DEDICATED_JOBS 2\nTARGET_LOAD_PCT 80%\n\
         TARGET_LOAD_VARIANCE -5%,+20%\nHIGH_SYSTIME 30%\nENFORCE_PRIME_TIME 01/01/2000@08:00:00 # from then on\n\
         PRIME_TIME_START 9:00:00\nPRIME_TIME_END 17:00:00\nPRIME_TIME_WALLT_LIMIT 0:30:00\n\
         PRIME_TIME_SMALL_NODE_LIMIT 8\nPRIME_TIME_SMALL_WALLT_LIMIT 0:05:00\nSMALL_JOB_MAX 8\n\
         WALLT_LIMIT_SMALL_JOB 2:00:00\nWALLT_LIMIT_LARGE_JOB 4:00:00\nNONPRIME_DRAIN_SYS Enabled\n\
         NP_DRAIN_BACKTIME 00:30:00\nNP_DRAIN_IDLETIME 00:05:00\nMAX_QUEUED_TIME 24:00:00\n\
         INTERACTIVE_LONG_WAIT 0:30:00\nSMALL_QUEUED_TIME 6:00:00\nSORT_BY_PAST_USAGE N\nDECAY_FACTOR 0.5\n\
         OA_DECAY_FACTOR 1\nENFORCE_ALLOCATION True\nSCHED_ACCT_DIR /usr/acct\nENFORCE_DEDICATED_TIME yes\n\
         DEDICATED_TIME_COMMAND /usr/sbin/outages\nDEDICATED_TIME_CACHE_SECS 300\nSYSTEM_NAME Cluster\n\
         AVOID_FRAGMENTATION disable\nSCHED_RESTART_ACTION RESUBMIT\nSORTED_JOB_DUMPFILE /tmp/jobs\nTEST_ONLY on\n\
         FAKE_MACHINE_MULT 16\nBACKFILL_MODE dynamic\nNODE_CPUS 4\nNODE_MEM 512mb\n",
    );
    assert_eq!(sgi.submit_queue, Some(queue("submit")));
    assert_eq!(sgi.batch_queues, [queue("small"), queue("large")]);
    assert_eq!(sgi.external_queues, ["a@host1", "b@host2", "c"].map(queue));
    assert_eq!((sgi.special_queue, sgi.dedicated_queues), (Some(queue("special")), vec![queue("ded@host1")]));
    assert_eq!((sgi.max_jobs, sgi.min_jobs, sgi.max_user_run_jobs, sgi.max_dedicated_jobs), (16, 1, 3, 2));
    assert_eq!((sgi.target_load_percent, sgi.high_system_time_percent), (80, 30));
    assert_eq!(sgi.target_load_variance, Variance { minus: 5, plus: 20 });
    assert_eq!(sgi.enforce_prime_time, Enforced::From(date(2000, 1, 1).at(8, 0, 0, 0)));
    assert_eq!((sgi.prime_time_start, sgi.prime_time_end), (9 * 3600, 17 * 3600));
    assert_eq!((sgi.prime_time_walltime_limit, sgi.prime_time_small_walltime_limit), (1800, 300));
    assert_eq!((sgi.prime_time_small_node_limit, sgi.small_job_max), (8, 8));
    assert_eq!((sgi.walltime_limit_small_job, sgi.walltime_limit_large_job), (7200, 14_400));
    assert!(sgi.nonprime_drain_system && !sgi.sort_by_past_usage && !sgi.avoid_fragmentation && sgi.test_only);
    assert_eq!((sgi.nonprime_drain_backtime, sgi.nonprime_drain_idletime), (1800, 300));
    assert_eq!((sgi.max_queued_time, sgi.interactive_long_wait, sgi.small_queued_time), (86_400, 1800, 21_600));
    assert_eq!(
        (sgi.decay_factor, sgi.over_allocation_decay_factor),
        (Decimal::from_millionths(500_000), Decimal::whole(1))
    );
    assert_eq!((sgi.enforce_allocation, sgi.enforce_dedicated_time), (Enforced::Always, Enforced::Always));
    assert_eq!(sgi.accounting_folder.as_deref(), Some("/usr/acct"));
    assert_eq!(sgi.dedicated_time_command.as_deref(), Some("/usr/sbin/outages"));
    assert_eq!((sgi.dedicated_time_cache_seconds, sgi.system_name.as_deref()), (300, Some("cluster")));
    assert_eq!((sgi.restart_action, sgi.backfill_mode), (RestartAction::Resubmit, BackfillMode::Dynamic));
    assert_eq!((sgi.sorted_job_dumpfile.as_deref(), sgi.fake_machine_multiplier), (Some("/tmp/jobs"), 16));
    assert_eq!((sgi.node_cpus, sgi.node_memory_kilobytes), (4, 512 * 1024));
    let t3e = config(
        Preset::CrayT3e,
        "CHALLENGE_QUEUE_NAME challenge\nBACKGROUND_QUEUE_NAME background\nUSAGE_WEIGHT 0\nNODES_WEIGHT 10\n\
         TIMEQ_WEIGHT 5\n",
    );
    assert_eq!(
        (t3e.challenge_queue.as_deref(), t3e.background_queue.as_deref()),
        (Some("challenge"), Some("background"))
    );
    assert_eq!((t3e.usage_weight, t3e.nodes_weight, t3e.queued_time_weight), (0, 10, 5));
    let multitask = checked(Preset::Multitask, "BATCH_QUEUES night\nINTERACTIVE_QUEUES day\n");
    let multitask = multitask.policy.and_then(|policy| policy.preset).expect("no errors");
    assert_eq!((multitask.batch_queues, multitask.interactive_queues), (vec![queue("night")], vec![queue("day")]));
}

/// PBS-P-03.
#[test]
fn options_that_are_left_out_have_their_defaults() {
    for preset in Preset::ALL {
        let config = config_of(preset);
        assert_eq!((config.max_jobs, config.min_jobs, config.max_user_run_jobs), (0, 0, 10));
        assert_eq!((config.target_load_percent, config.target_load_variance), (90, Variance { minus: 15, plus: 10 }));
        assert_eq!((config.enforce_prime_time, config.small_queued_time), (Enforced::Never, 43_200));
        assert_eq!(
            (config.decay_factor.to_string(), config.over_allocation_decay_factor.to_string()),
            ("0.75".into(), "0.95".into())
        );
        assert_eq!((config.usage_weight, config.nodes_weight, config.queued_time_weight), (10, 7, 1));
        assert!(config.sort_by_past_usage && config.avoid_fragmentation && !config.test_only);
        assert_eq!((config.restart_action, config.fake_machine_multiplier), (RestartAction::None, 1));
        assert_eq!((config.node_cpus, config.node_memory_kilobytes), (2, 262_144));
        let mode = if preset == Preset::IbmSp { BackfillMode::Dynamic } else { BackfillMode::Static };
        assert_eq!(config.backfill_mode, mode);
    }
}

fn config_of(preset: Preset) -> PresetConfig {
    match preset {
        Preset::Multitask => {
            let checked = checked(preset, "BATCH_QUEUES night\n");
            checked.policy.and_then(|policy| policy.preset).expect("no errors")
        }
        _ => config(preset, ""),
    }
}

/// PBS-P-03: who reads which option.
#[test]
fn every_option_has_its_readers() {
    use Preset::{CrayT3e, IbmSp, Multitask, SgiOrigin};
    for (names, expected) in [
        ("SUBMIT_QUEUE SPECIAL_QUEUE DEDICATED_QUEUES", vec![SgiOrigin, CrayT3e, IbmSp]),
        (
            "BATCH_QUEUES ENFORCE_PRIME_TIME PRIME_TIME_START PRIME_TIME_END PRIME_TIME_WALLT_LIMIT",
            Preset::ALL.to_vec(),
        ),
        ("EXTERNAL_QUEUES SMALL_QUEUED_TIME NODE_CPUS NODE_MEM SCHED_HOST SERVER_HOST", vec![SgiOrigin]),
        ("MANAGE_HPM_COUNTERS REVOKE_HPM_COUNTERS", vec![SgiOrigin]),
        ("CHALLENGE_QUEUE_NAME BACKGROUND_QUEUE_NAME USAGE_WEIGHT NODES_WEIGHT TIMEQ_WEIGHT", vec![CrayT3e]),
        ("INTERACTIVE_QUEUES", vec![Multitask]),
        ("MAX_JOBS MIN_JOBS MAX_USER_RUN_JOBS HIGH_SYSTIME", vec![SgiOrigin, CrayT3e, Multitask]),
        ("MAX_DEDICATED_JOBS SMALL_JOB_MAX WALLT_LIMIT_SMALL_JOB WALLT_LIMIT_LARGE_JOB", vec![SgiOrigin, CrayT3e]),
        (
            "NP_DRAIN_BACKTIME NP_DRAIN_IDLETIME SORT_BY_PAST_USAGE DECAY_FACTOR OA_DECAY_FACTOR",
            vec![SgiOrigin, CrayT3e],
        ),
        ("ENFORCE_ALLOCATION SCHED_ACCT_DIR AVOID_FRAGMENTATION SCHED_RESTART_ACTION", vec![SgiOrigin, CrayT3e]),
        ("TARGET_LOAD_PCT TARGET_LOAD_VARIANCE", vec![SgiOrigin, Multitask]),
        ("PRIME_TIME_SMALL_NODE_LIMIT PRIME_TIME_SMALL_WALLT_LIMIT", vec![SgiOrigin, CrayT3e, IbmSp]),
        ("NONPRIME_DRAIN_SYS MAX_QUEUED_TIME INTERACTIVE_LONG_WAIT", vec![SgiOrigin, CrayT3e, IbmSp]),
        ("ENFORCE_DEDICATED_TIME DEDICATED_TIME_COMMAND DEDICATED_TIME_CACHE_SECS", vec![SgiOrigin, CrayT3e, IbmSp]),
        ("SYSTEM_NAME", vec![SgiOrigin, CrayT3e, IbmSp]),
        ("SORTED_JOB_DUMPFILE TEST_ONLY FAKE_MACHINE_MULT", Preset::ALL.to_vec()),
        ("BACKFILL_MODE", vec![SgiOrigin, IbmSp]),
    ] {
        for name in names.split(' ') {
            let mut readers = readers(name).unwrap_or_else(|| panic!("{name}")).to_vec();
            readers.sort_unstable();
            assert_eq!(readers, expected, "{name}");
        }
    }
    assert_eq!(readers("BY_QUEUE"), None);
}

/// PBS-P-02, PBS-P-23: each kind of mistake.
#[test]
fn mistakes_are_errors_at_their_words() {
    for (text, expected) in [
        ("MAX_JOB 16", "no such option; is 'MAX_JOBS' meant? (token 'MAX_JOB')"),
        ("by_queue true", "no such option (token 'by_queue')"),
        ("MAX_JOBS", "expected an argument behind the name (token 'MAX_JOBS')"),
        ("MAX_JOBS # 16", "expected an argument behind the name (token 'MAX_JOBS')"),
        ("MAX_JOBS 16 17", "expected one argument only (token '17')"),
        ("MAX_JOBS many", "expected an integer from 0 to 4294967295 (token 'many')"),
        ("MAX_JOBS ???", "must be set (token 'MAX_JOBS')"),
        ("TEST_ONLY perhaps", "expected true or false (token 'perhaps')"),
        ("TEST_ONLY flase", "expected true or false; is 'false' meant? (token 'flase')"),
        ("DECAY_FACTOR 1.5", "expected a number from 0 to 1 (token '1.5')"),
        ("MAX_QUEUED_TIME a day", "expected one argument only (token 'day')"),
        ("MAX_QUEUED_TIME soon", "expected a time HH:MM:SS (token 'soon')"),
        ("PRIME_TIME_START 25:00:00", "expected a time of day HH:MM:SS, up to 24:00:00 (token '25:00:00')"),
        ("SCHED_ACCT_DIR acct", "expected an absolute path (token 'acct')"),
        ("SYSTEM_NAME -h", "expected the name of a host (token '-h')"),
        ("SPECIAL_QUEUE a,b", "expected one queue, or queue@host (token 'a,b')"),
        ("EXTERNAL_QUEUES a@", "expected queues or queue@host with commas between them (token 'a@')"),
        ("BATCH_QUEUES large", "the queue is in the list already (token 'large')"),
        (
            "ENFORCE_PRIME_TIME 02/30/2000@08:00:00",
            "expected a boolean, or MM/DD/YYYY@HH:MM:SS (token '02/30/2000@08:00:00')",
        ),
        ("NODE_MEM 0", "expected a size of 1kb or more, such as 256mb (token '0')"),
        ("TARGET_LOAD_VARIANCE 15%", "expected -m%,+n% with integers (token '15%')"),
        ("SCHED_RESTART_ACTION stop", "expected NONE, RESUBMIT or RERUN (token 'stop')"),
        ("BACKFILL_MODE easy", "expected none, static or dynamic (token 'easy')"),
        ("FAKE_MACHINE_MULT 0", "expected an integer from 1 to 4294967295 (token '0')"),
        (
            "ENFORCE_DEDICATED_TIME true",
            "needs DEDICATED_TIME_COMMAND, which is not set (token 'ENFORCE_DEDICATED_TIME')",
        ),
    ] {
        assert_eq!(errors(Preset::SgiOrigin, text), [format!("config:3: {expected}")], "{text}");
    }
    assert_eq!(errors(Preset::CrayT3e, "USAGE_WEIGHT 11"), ["config:3: expected an integer from 0 to 10 (token '11')"]);
}

/// PBS-P-02: required options.
#[test]
fn required_options_must_be_set() {
    let both = ["config:1: must be set (token 'SUBMIT_QUEUE')", "config:1: must be set (token 'BATCH_QUEUES')"];
    assert_eq!(shown(&checked(Preset::SgiOrigin, "").errors), both);
    assert_eq!(shown(&check(&sources(&[("holidays", "YEAR 2026\n")]), Some(Preset::IbmSp)).errors), both);
    assert_eq!(shown(&checked(Preset::Multitask, "").errors), both[1..]);
    assert_eq!(
        shown(&checked(Preset::CrayT3e, "SUBMIT_QUEUE ???\nBATCH_QUEUES a").errors),
        ["config:1: must be set (token 'SUBMIT_QUEUE')"]
    );
}

/// PBS-P-03, PBS-P-23: what an old file has and nobody reads.
#[test]
fn options_without_effect_are_warned_of() {
    for (preset, text, expected) in [
        (Preset::SgiOrigin, "SCHED_HOST h", "has no effect here (token 'SCHED_HOST')"),
        (Preset::SgiOrigin, "MANAGE_HPM_COUNTERS True", "has no effect here (token 'MANAGE_HPM_COUNTERS')"),
        (Preset::IbmSp, "MAX_JOBS 16", "has no effect: ibm_sp does not read it (token 'MAX_JOBS')"),
        (Preset::CrayT3e, "TARGET_LOAD_PCT ???", "has no effect: cray_t3e does not read it (token 'TARGET_LOAD_PCT')"),
        (Preset::SgiOrigin, "TEST_ONLY no\nTEST_ONLY no", "is set again: line 3 no longer counts (token 'TEST_ONLY')"),
    ] {
        let line = 2 + text.lines().count();
        assert_eq!(warnings(preset, text), [format!("config:{line}: {expected}")], "{text}");
    }
}

/// PBS-P-02: a rule that holds from a local time.
#[test]
fn a_rule_can_hold_from_a_date() {
    let zone = TimeZone::UTC;
    let enforced = Enforced::parse("01/01/2000@08:00:00").expect("a date");
    let holds = |time: &str| enforced.holds(time.parse().expect("a time"), &zone);
    assert!(!holds("2000-01-01T07:59:59Z") && holds("2000-01-01T08:00:00Z"));
    let now = "2000-01-01T07:59:59Z".parse().expect("a time");
    assert!(Enforced::Always.holds(now, &zone) && !Enforced::Never.holds(now, &zone));
}

/// PBS-P-23: presets whose sources are not public.
#[test]
fn reconstructions_are_called_so() {
    let reconstructed: Vec<&str> =
        Preset::ALL.into_iter().filter(|preset| preset.is_reconstruction()).map(Preset::name).collect();
    assert_eq!(reconstructed, ["ibm_sp", "multitask"]);
    assert_eq!(Preset::parse("SGI_Origin"), Some(Preset::SgiOrigin));
    assert_eq!(Preset::parse("fifo"), None);
}

/// A list has a limit.
#[test]
fn a_list_of_queues_has_a_limit() {
    let queues: Vec<String> = (0..255).map(|number| format!("q{number}")).collect();
    let errors = errors(Preset::SgiOrigin, &format!("BATCH_QUEUES {}", queues.join(",")));
    assert_eq!(errors, ["config:3: is more than the 256 queues of a list (token 'q254')"]);
}

/// PBS-P-02, PBS-P-03: what is shown of a file reads back as the same options.
#[test]
fn options_are_shown_in_the_form_of_the_file() {
    let text = "EXTERNAL_QUEUES a@h,b\nMAX_JOBS 3\nTARGET_LOAD_VARIANCE -5%,+20%\nENFORCE_PRIME_TIME 01/02/2000@08:00:00\n\
                PRIME_TIME_START 9:00:00\nDECAY_FACTOR 0.5\nSYSTEM_NAME h\nSCHED_RESTART_ACTION RERUN\n\
                BACKFILL_MODE none\nNODE_MEM 1gb\nTEST_ONLY true\nSCHED_ACCT_DIR /a\nSPECIAL_QUEUE s@h\n";
    for (preset, text) in [(Preset::SgiOrigin, text), (Preset::CrayT3e, "USAGE_WEIGHT 3\n"), (Preset::IbmSp, "")] {
        let config = config(preset, text);
        let options = muster_pbs_policy::preset::options(&config);
        let set = options.iter().filter(|(_, value)| value != "-");
        let again: String = set.map(|(name, value)| format!("{name} {value}\n")).collect();
        let read = checked(preset, &again);
        assert_eq!(shown(&read.warnings), Vec::<String>::new());
        assert_eq!(read.policy.and_then(|policy| policy.preset), Some(config), "{again}");
        assert!(options.iter().all(|(name, _)| readers(name).is_some_and(|readers| readers.contains(&preset))));
        assert!(options.len() > 20);
    }
}
