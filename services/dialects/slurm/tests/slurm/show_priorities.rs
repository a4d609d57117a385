//! `sprio` and `sshare`: command lines and tables.

use crate::support::{ago, assert_lines, clock, detailed, records, view};
use muster_schemas::{
    Sequence,
    accounts::{AccountSettings, AccountSpec, AssociationKey, AssociationSpec, UserSpec},
    fair_tree::{Factors, compare},
    policy::{OrderKey, Policy},
    usage::{UsageAmounts, UsageAnswer, UsageRow},
    views::AccountsPage,
};
use muster_slurm::{
    queries::{Request, Surroundings, sprio as line, sshare as shares_line},
    show::{
        columns::ListStyle,
        record::JobRecord,
        sprio::{Report, Rules, has_factors, sprio},
        sshare::{Running, Share, shares, sshare, used as counted, usual},
    },
};
use serde_json::json;

fn around<'a>() -> Surroundings<'a> {
    let now = ago(0).to_jiff().to_zoned(jiff::tz::TimeZone::UTC);
    let knows_user = &|user: &str| ["ann", "bob"].contains(&user);
    Surroundings { variable: &|_| None, user: "ann", knows_user, is_root: false, now }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn asked(text: &str) -> line::Sprio {
    match line::parse(&words(text), &around()) {
        Ok(Request::Run(command)) => command,
        other => panic!("{other:?}"),
    }
}

/// A waiting job of ann with nice 40, in class `high`.
fn nice() -> JobRecord {
    let job = view(json!({
        "id": "3", "owner": "ann", "priority": 460, "class_priority": 100, "class": "high", "submitted": ago(3600), "cores": 8,
        "walltime_seconds": 7200
    }));
    let spec = json!({ "components": [{}], "attributes": { "slurm.0.nice": "40" } });
    detailed(job, spec, json!([])).remove(0)
}

fn rules(order: Vec<OrderKey>) -> Rules {
    Rules {
        policy: Policy { order, ..Policy::default() },
        partitions: [("debug".to_owned(), 30)].into(),
        highest_class: 100,
        fair_factors: Factors::default(),
    }
}

fn formula(text: &str) -> OrderKey {
    OrderKey::Formula { text: text.to_owned(), descending: true }
}

#[test]
fn the_line_of_sprio_is_read_as_in_slurm() {
    let all = asked("-l -n -h -u ann,bob -p debug -o %i");
    assert!(all.is_long && all.is_normalized && all.no_header && !all.weights);
    assert_eq!((all.users.len(), all.partitions.len(), all.format.as_deref()), (2, 1, Some("%i")));
    for text in ["-j 3,4_1", "-j3,4_1", "--jobs=3,4_1"] {
        assert_eq!(asked(text).ids.len(), 2, "{text}");
    }
    assert!(asked("-j").ids.is_empty());
    for (text, told) in [("-u eve", "sprio: error: Invalid user: eve"), ("-jx", "sprio: error: Invalid job id: x")] {
        let refused = line::parse(&words(text), &around()).expect_err("a refusal");
        assert_eq!((refused.lines, refused.code), (vec![told.to_owned()], 1), "{text}");
    }
}

/// The default order: the job's own priority is that of its site, its service class and what its owner took off.
#[test]
fn a_priority_is_divided_into_its_factors() {
    let plain = records([view(json!({ "id": "2", "owner": "bob", "priority": 0 }))]).remove(0);
    let rules = rules(vec![OrderKey::QueuePriority, OrderKey::Priority, OrderKey::Fcfs]);
    let table = |report: &Report| sprio(vec![nice(), plain.clone()], &rules, report, &clock()).expect("a table");
    let usual = "          JOBID PARTITION   PRIORITY       SITE        QOS
              2 debug              1          0          0
              3 debug            560        500        100
";
    assert_lines(&table(&Report::default()), usual);
    let long = "          JOBID PARTITION     USER   PRIORITY       SITE        AGE      ASSOC  FAIRSHARE    JOBSIZE  PARTITION        QOS        NICE                 TRES
              2 debug          bob          1          0          0          0          0          0          0          0           0
              3 debug          ann        560        500          0          0          0          0          0        100          40
";
    assert_lines(&table(&Report { is_long: true, ..Report::default() }), long);
    let weights = "        Weights                               1        100\n";
    assert_lines(&table(&Report { weights: true, no_header: true, ..Report::default() }), weights);
    let own = Report { format: Some("%u|%Y|%y|%q|%N|%O|%o".to_owned()), no_header: true, ..Report::default() };
    assert_lines(
        &table(&own),
        "bob|1|0.00000000023283|0.0000000|0|normal|test\nann|560|0.00000013038516|1.0000000|40|high|test\n",
    );
    let bad = Report { format: Some("%Z".to_owned()), ..Report::default() };
    assert_eq!(sprio(vec![], &rules, &bad, &clock()).expect_err("no column").0, "Z");
}

/// What a formula adds up is what the jobs are ordered by: its parts are the factors.
#[test]
fn the_parts_of_a_formula_are_the_factors() {
    let multifactor = "1000 * min(wait / 7200, 1) + 200 * (procs / 16) - 0.5 * walltime / 3600 + 10 * queue_priority + \
                       2 * priority + 7";
    let rules = rules(vec![OrderKey::QueuePriority, formula(multifactor)]);
    let table = |report: &Report| sprio(vec![nice()], &rules, report, &clock()).expect("a table");
    // 500 of 1000 for an hour of two; 8 of 16 cores less an hour for two; twice 560 = 2 * (500 + 100 - 40).
    let lines = "          JOBID PARTITION   PRIORITY       SITE        AGE    JOBSIZE  PARTITION        QOS
              3 debug           2026       1007        500         99        300        200
";
    assert_lines(&table(&Report::default()), lines);
    let format = Some("%Y %a %A %N".to_owned());
    let normalized = Report { format, no_header: true, ..Report::default() };
    assert_lines(&table(&normalized), "2026 0.5000000 500 80\n");
    let ascending = OrderKey::Formula { text: "-3 * wait".to_owned(), descending: false };
    let own = rules_of_queue(ascending);
    let text = sprio(vec![nice()], &own, &Report { no_header: true, ..Report::default() }, &clock()).expect("a table");
    assert!(text.split_whitespace().nth(2) == Some("10800"), "the order of the queue counts: {text}");
}

fn rules_of_queue(order: OrderKey) -> Rules {
    let mut rules = rules(vec![OrderKey::Fcfs]);
    let queue = muster_schemas::policy::QueuePolicy { order: Some(vec![order]), backfill: None };
    rules.policy.queues.insert("debug".to_owned(), queue);
    rules
}

#[test]
fn only_jobs_that_could_start_have_factors() {
    let has = |members| has_factors(&records([view(members)])[0], ago(0));
    assert!(has(json!({})));
    assert!(!has(json!({ "holds": { "user": true } })), "held");
    assert!(!has(json!({ "begin": ago(-60) })), "later");
    assert!(!has(json!({ "state": "running", "started": ago(5), "run": 1, "runs": 1 })), "it runs");
}

fn page() -> AccountsPage {
    let account = |name: &str, parent: Option<&str>| AccountSpec {
        name: name.to_owned(),
        parent: parent.map(str::to_owned),
        ..AccountSpec::default()
    };
    let of = |account: &str, user: Option<&str>, shares: u32| AssociationSpec {
        of: AssociationKey { account: account.to_owned(), user: user.map(str::to_owned), queue: None },
        shares,
        ..AssociationSpec::default()
    };
    AccountsPage {
        accounts: vec![account("bio", None), account("phy", None), account("optics", Some("phy"))],
        users: vec![UserSpec { name: "ann".to_owned(), default_account: "bio".to_owned() }],
        associations: vec![
            of("bio", None, 30),
            of("bio", Some("ann"), 1),
            of("bio", Some("bob"), 3),
            of("phy", None, 10),
            of("optics", None, 1),
            of("optics", Some("cid"), 1),
        ],
        settings: AccountSettings::default(),
        classes: Vec::new(),
        used: Vec::new(),
        sequence: Sequence(1),
        time: ago(0),
    }
}

fn used(rows: &[(&str, &str, u128)]) -> UsageAnswer {
    let row = |(user, account, seconds): &(&str, &str, u128)| UsageRow {
        user: Some((*user).to_owned()),
        account: Some((*account).to_owned()),
        queue: Some("debug".to_owned()),
        amounts: UsageAmounts { used_core_micros: seconds * 1_000_000, ..UsageAmounts::default() },
        ..UsageRow::default()
    };
    UsageAnswer { rows: rows.iter().map(row).collect(), ..UsageAnswer::default() }
}

fn of_user<'s>(all: &'s [Share], name: &str) -> &'s Share {
    all.iter().find(|share| share.member.of.user.as_deref() == Some(name)).expect("a user")
}

#[test]
fn shares_and_usage_are_those_of_the_tree() {
    let used = used(&[("ann", "bio", 300), ("bob", "bio", 100), ("cid", "optics", 600), ("eve", "gone", 5)]);
    let running = [Running { account: "bio".into(), user: "ann".into(), partition: "debug".into(), minutes: 8 }];
    let all = shares(&page(), "alpha", &counted(&page(), Some(&used)), &running);
    let text = sshare(&all, &usual(false, false), &ListStyle::Columns, false, &clock()).expect("a table");
    let wanted = "\
Account                    User  RawShares  NormShares    RawUsage  EffectvUsage  FairShare
-------------------- ---------- ---------- ----------- ----------- ------------- ----------
root                                          0.000000        1000      1.000000
 root                      root          1    0.024390           0      0.000000   1.000000
 bio                                    30    0.731707         400      0.400000
  bio                       ann          1    0.250000         300      0.750000   0.500000
  bio                       bob          3    0.750000         100      0.250000   0.750000
 phy                                    10    0.243902         600      0.600000
  optics                                 1    1.000000         600      1.000000
   optics                   cid          1    1.000000         600      1.000000   0.250000
";
    assert_lines(&text, wanted);
    let row = |name: &str, format: &str| {
        let style = ListStyle::Separated { by: "|".to_owned(), ends: false };
        sshare(&[of_user(&all, name).clone()], format, &style, true, &clock()).expect("a table")
    };
    assert_eq!(row("bob", "user,normu,level,tresrun"), "bob|0.100000|3.000000|cpu=0\n");
    assert_eq!(row("ann", "A,level,TRESRunMins"), "  bio|0.333333|cpu=8\n");
    assert_eq!(row("root", "LevelFS"), "inf\n");
}

/// Users of accounts at the same level are ranked together, and equal ones get the same rank.
#[test]
fn equal_users_have_the_same_rank() {
    let mut page = page();
    page.associations.retain(|known| known.of.account != "optics");
    page.accounts.retain(|known| known.name != "optics");
    page.associations.iter_mut().for_each(|known| known.shares = 1);
    page.associations.push(AssociationSpec {
        of: AssociationKey { account: "phy".to_owned(), user: Some("cid".to_owned()), queue: None },
        shares: 1,
        ..AssociationSpec::default()
    });
    let factor = |used: &[(&str, &str, u128)], name: &str| {
        let used = counted(&page, Some(&self::used(used)));
        of_user(&shares(&page, "alpha", &used, &[]), name).member.factor.expect("a user")
    };
    for name in ["root", "ann", "bob", "cid"] {
        assert_eq!(factor(&[], name), 1.0, "nobody used anything: {name}");
    }
    let one_world = [("ann", "bio", 60), ("bob", "bio", 40), ("cid", "phy", 100)];
    assert_eq!(["root", "bob", "cid", "ann"].map(|name| factor(&one_world, name)), [1.0, 0.75, 0.5, 0.25]);
    let apart = [("ann", "bio", 50), ("bob", "bio", 50), ("cid", "phy", 200)];
    assert_eq!(["root", "ann", "bob", "cid"].map(|name| factor(&apart, name)), [1.0, 0.75, 0.75, 0.25]);
}

#[test]
fn the_line_of_sshare_is_read_as_in_slurm() {
    let asked = |text: &str| match shares_line::parse(&words(text), &around()) {
        Ok(Request::Run(command)) => command,
        other => panic!("{other:?}"),
    };
    assert_eq!(asked("").users, Some(["ann".to_owned()].into()), "the caller's own");
    assert_eq!(asked("-a").users, None);
    let command = asked("-u bob -A bio,phy -l -m -n -P -o user");
    assert_eq!(command.users, Some(["bob".to_owned()].into()));
    assert!(command.is_long && command.partitions && command.no_header && command.accounts.len() == 2);
    assert_eq!(command.style, ListStyle::Separated { by: "|".to_owned(), ends: false });
    assert!(
        usual(true, true).starts_with("Account,User,Partition,RawShares") && usual(true, false).contains("LevelFS")
    );
    let refused = shares_line::parse(&words("-u eve"), &around()).expect_err("a refusal");
    assert_eq!(refused.lines, ["sshare: error: Invalid user id: eve"]);
}

/// A job's part of fair share is its factor, which is that of the tree, times its weight.
#[test]
fn fair_share_is_a_factor_of_formulas() {
    let page = page();
    let used = counted(&page, Some(&used(&[("ann", "bio", 300), ("bob", "bio", 100), ("cid", "optics", 600)])));
    let members = compare(&page.accounts, &page.associations, |of| used.get(of).copied().unwrap_or(0) as f64);
    let mut rules = rules(vec![formula("1000 * fair_share + priority")]);
    rules.fair_factors = Factors::of(&members);
    let job = |id: &str, user: &str, account: &str| {
        records([view(json!({ "id": id, "owner": user, "account": account, "priority": 10 }))]).remove(0)
    };
    let jobs = vec![job("1", "ann", "bio"), job("2", "bob", "bio"), job("3", "cid", "optics"), job("4", "eve", "bio")];
    let report = Report { format: Some("%i %Y %F %f".to_owned()), no_header: true, ..Report::default() };
    let lines = "1 510 500 0.5000000\n2 760 750 0.7500000\n3 260 250 0.2500000\n4 10 0 0.0000000\n";
    assert_eq!(sprio(jobs.clone(), &rules, &report, &clock()).expect("a table"), lines);
    let usual = sprio(jobs, &rules, &Report::default(), &clock()).expect("a table");
    assert!(usual.starts_with("          JOBID PARTITION   PRIORITY       SITE  FAIRSHARE        QOS"), "{usual}");
}
