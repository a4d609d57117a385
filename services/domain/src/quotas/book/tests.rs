use super::*;
use crate::quotas::Marks;
use muster_schemas::quota::{QuotaAmount, QuotaPeriod, QuotaSpan, WEEK_SECONDS};
use proptest::prelude::*;

const ALWAYS: Timestamp = Timestamp(i64::MIN);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(seconds)
}

/// A rule `queue,account,kind,user` with limits on cores, jobs and core-seconds; negative for none.
fn rule(text: &str, limits: [i64; 3]) -> QuotaRule {
    let fields: Vec<String> = text.split(',').map(str::to_owned).collect();
    let [queue, account, kind, user] = fields.try_into().unwrap();
    let [cores, jobs, core_seconds] = limits.map(|limit| u64::try_from(limit).ok().map(QuotaAmount::Fixed));
    QuotaRule { queue, account, kind, user, cores, jobs, core_seconds }
}

fn book(rules: Vec<QuotaRule>) -> Book<u32> {
    let sets = vec![QuotaSet { name: String::new(), rules }];
    Book::new(Arc::new(QuotaTable { sets, ..QuotaTable::default() }), 16)
}

fn part(user: &str, account: &str, cores: u64, walltime_seconds: u64) -> Part {
    let account = (!account.is_empty()).then(|| account.into());
    let subject = Subject { queue: "default".into(), account, user: user.into(), marks: None };
    Part { subject, jobs: 1, cores, walltime_seconds }
}

fn marked(part: Part, marks: Marks) -> Part {
    Part { subject: Subject { marks: Some(Arc::new(marks)), ..part.subject }, ..part }
}

/// Holds a job at its first start, and tells that.
fn place(book: &mut Book<u32>, name: u32, part: &Part) -> i64 {
    let start = book.first_start(std::slice::from_ref(part), at(0)).unwrap();
    let end = start.plus_seconds(part.walltime_seconds.try_into().unwrap());
    book.hold(name, std::slice::from_ref(part), start, end);
    start.unix_seconds()
}

/// OAR-Q-01, OAR-Q-05: W4 without the nodes.
#[test]
fn jobs_start_as_soon_as_all_limits_hold() {
    let mut book =
        book(vec![rule("*,*,*,/", [8, -1, -1]), rule("*,bio,*,*", [-1, 1, -1]), rule("*,*,*,ann", [12, 2, -1])]);
    let (ann, bob) = (part("ann", "", 8, 100), part("bob", "bio", 4, 50));
    let starts = [(1, &ann), (2, &ann), (3, &bob), (4, &bob)].map(|(name, part)| place(&mut book, name, part));
    assert_eq!(starts, [0, 100, 0, 50]);
    let breach = book.breach(&[bob], at(0)).unwrap();
    assert_eq!(breach.to_string(), "quota `*,bio,*,*`: 1 job");
    let breach = book.breach(&[ann], at(99)).unwrap();
    assert_eq!((breach.to_string(), breach.would_be), ("quota `*,*,*,ann`: 12 cores".to_owned(), 16));
}

/// OAR-Q-05: hours count the whole walltime of what runs together; equal is allowed.
#[test]
fn hours_are_those_of_whole_walltimes() {
    let mut book = book(vec![rule("*,*,*,/", [-1, -1, 7200])]);
    assert_eq!(place(&mut book, 1, &part("ann", "", 2, 3600)), 0);
    assert_eq!(place(&mut book, 2, &part("ann", "", 1, 60)), 3600);
    assert_eq!(place(&mut book, 3, &part("bob", "", 1, 60)), 0);
    let never = book.first_start(&[part("ann", "", 2, 3601)], at(0)).unwrap_err();
    assert_eq!(never.to_string(), "quota `*,*,*,/`: 2 core-hours");
    assert!(book.first_start(&[part("ann", "", 1, u64::MAX)], at(0)).is_err(), "no walltime is endless");
}

/// OAR-Q-03, OAR-Q-04: a rule counts all jobs that match it, also those that another rule holds back.
#[test]
fn a_rule_counts_all_jobs_that_match_it() {
    let mut book = book(vec![rule("*,*,*,*", [8, -1, -1]), rule("*,*,*,ann", [12, -1, -1])]);
    assert_eq!(place(&mut book, 1, &part("ann", "", 12, 100)), 0);
    assert_eq!(place(&mut book, 2, &part("bob", "", 1, 10)), 100);
}

/// OAR-Q-06: jobs with others inside are neither held back nor counted; those that make way count among themselves.
#[test]
fn jobs_with_others_inside_and_jobs_that_make_way_are_not_counted() {
    let mut book = book(vec![rule("*,*,*,*", [8, -1, -1])]);
    let outer = marked(part("ann", "", 16, 100), Marks { is_uncounted: true, ..Marks::default() });
    let apart = |cores| marked(part("ann", "", cores, 100), Marks { is_apart: true, ..Marks::default() });
    assert_eq!(place(&mut book, 1, &outer), 0);
    assert_eq!(place(&mut book, 2, &apart(8)), 0);
    assert_eq!(place(&mut book, 3, &part("bob", "", 4, 50)), 0);
    assert_eq!(place(&mut book, 4, &apart(1)), 100, "it sees all");
}

/// OAR-Q-09: it is counted, but not held back.
#[test]
fn what_may_exceed_quotas_counts_for_others() {
    let mut book = book(vec![rule("*,*,*,*", [8, -1, -1])]);
    let free = marked(part("ann", "", 12, 100), Marks { is_unlimited: true, ..Marks::default() });
    assert_eq!(place(&mut book, 1, &free), 0);
    assert_eq!(place(&mut book, 2, &part("bob", "", 1, 10)), 100);
}

/// OAR-Q-02: a limit that is a part of all cores follows their number.
#[test]
fn a_part_of_all_cores_follows_the_cluster() {
    let cores = Some(QuotaAmount::BillionthsOfCores(500_000_000));
    let mut book = book(vec![QuotaRule { cores, ..rule("*,*,*,*", [-1, -1, -1]) }]);
    let fits = |book: &Book<u32>, cores| book.breach(&[part("ann", "", cores, 10)], at(0)).is_none();
    assert_eq!([fits(&book, 8), fits(&book, 9)], [true, false]);
    book.set_cores(32);
    assert!(fits(&book, 16));
}

/// Monday 08:00 to 19:00 allows 4 cores, other times 16; the second Monday allows none.
fn weekly() -> Book<u32> {
    let period = |begin, end, set| QuotaPeriod { begin, end, set };
    let set = |name: &str, cores| QuotaSet { name: name.into(), rules: vec![rule("*,*,*,*", [cores, -1, -1])] };
    let table = QuotaTable {
        sets: vec![set("night", 16), set("day", 4), set("closed", 0)],
        week: vec![period(0, 8 * 3600, 0), period(8 * 3600, 19 * 3600, 1), period(19 * 3600, WEEK_SECONDS, 0)],
        spans: vec![QuotaSpan { begin: at(11 * 86_400), end: at(12 * 86_400), set: 2 }],
        ..QuotaTable::default()
    };
    Book::new(Arc::new(table), 16)
}

/// OAR-Q-10: 1970-01-05 was a Monday.
#[test]
fn a_job_across_periods_fits_the_rules_of_each() {
    let book = weekly();
    let monday = 4 * 86_400;
    let first = |cores, walltime, from| book.first_start(&[part("ann", "", cores, walltime)], at(from));
    assert_eq!(first(16, 3600, monday), Ok(at(monday)));
    assert_eq!(
        first(16, 3600, monday + 7 * 3600),
        Ok(at(monday + 7 * 3600)),
        "until the second in which the day begins"
    );
    assert_eq!(first(16, 3601, monday + 7 * 3600), Ok(at(monday + 19 * 3600)), "it would run into the day");
    assert_eq!(first(4, 3600 * 20, monday), Ok(at(monday)), "it fits both");
    assert_eq!(first(1, 3600, 11 * 86_400 + 5), Ok(at(12 * 86_400)), "a single span goes first");
    let never = first(5, 8 * 86_400, monday).unwrap_err();
    assert_eq!(never.to_string(), "quota `*,*,*,*` of `day`: 4 cores");
    assert_eq!(first(17, 10, monday).unwrap_err().to_string(), "quota `*,*,*,*` of `night`: 16 cores");
    assert_eq!(first(4, u64::MAX, 20 * 86_400), Ok(at(20 * 86_400)), "for ever within the least");
}

#[test]
fn the_limits_of_a_job_are_told() {
    let mut book = book(vec![rule("*,*,*,/", [8, 2, -1])]);
    place(&mut book, 1, &part("ann", "", 3, 100));
    let views = book.applying(&[part("ann", "", 2, 10)], at(0));
    let told: Vec<_> = views.iter().map(|view| (view.text.as_str(), view.used, view.wanted, view.most)).collect();
    assert_eq!(told, [("quota `*,*,*,/`: 8 cores", 3, 2, 8), ("quota `*,*,*,/`: 2 jobs", 1, 1, 2)]);
}

/// A place of a job: `[start, end)`, with its user, account and cores.
type Placed = (i64, i64, usize, usize, u64);

const USERS: [&str; 2] = ["ann", "bob"];
const ACCOUNTS: [&str; 2] = ["bio", "chem"];

/// Whether all limits hold at each second, by the words of the requirement alone: for each job there, over those that its rule
/// counts.
fn holds(rules: &[([&str; 2], i64, i64, i64)], placed: &[Placed], candidate: Placed) -> bool {
    let rule_of = |job: &Placed| {
        let (user, account) = (USERS[job.2], ACCOUNTS[job.3]);
        let accounts = [account, "/", "*"];
        let of = accounts.into_iter().find(|word| rules.iter().any(|(fields, ..)| fields[0] == *word))?;
        let users = [user, "/", "*"];
        users.into_iter().find_map(|word| rules.iter().find(|(fields, ..)| *fields == [of, word]))
    };
    let Some((fields, cores, jobs, seconds)) = rule_of(&candidate) else { return true };
    let matches = |field: &str, own: &str, other: &str| field == "*" || field == "/" && own == other || field == other;
    (candidate.0..candidate.1).all(|second| {
        let counted = placed.iter().chain([&candidate]).filter(|job| {
            job.0 <= second
                && second < job.1
                && matches(fields[0], ACCOUNTS[candidate.3], ACCOUNTS[job.3])
                && matches(fields[1], USERS[candidate.2], USERS[job.2])
        });
        let sums = counted
            .fold((0, 0, 0), |sums, job| (sums.0 + job.4 as i64, sums.1 + 1, sums.2 + job.4 as i64 * (job.1 - job.0)));
        let within = |limit: i64, sum: i64| limit < 0 || sum <= limit;
        within(*cores, sums.0) && within(*jobs, sums.1) && within(*seconds, sums.2)
    })
}

proptest! {
    /// OAR-Q-05: the book finds the very first second at which the requirement holds, whatever is held already.
    #[test]
    fn the_first_start_is_the_first_second_at_which_all_limits_hold(
        limits in prop::collection::vec((0_usize..6, -1_i64..6, -1_i64..4, -1_i64..40), 1..5),
        jobs in prop::collection::vec((0_i64..12, 1_i64..8, 0_usize..2, 0_usize..2, 1_u64..4), 1..8),
    ) {
        const FIELDS: [[&str; 2]; 6] = [["*", "*"], ["*", "/"], ["/", "*"], ["bio", "*"], ["bio", "ann"], ["*", "ann"]];
        let mut plain: Vec<([&str; 2], i64, i64, i64)> = Vec::new();
        for (fields, cores, count, seconds) in limits {
            if plain.iter().all(|(known, ..)| *known != FIELDS[fields]) {
                plain.push((FIELDS[fields], cores, count, seconds));
            }
        }
        let rules = plain.iter().map(|([account, user], cores, count, seconds)| {
            rule(&format!("*,{account},*,{user}"), [*cores, *count, *seconds])
        });
        let mut book = book(rules.collect());
        let mut placed: Vec<Placed> = Vec::new();
        for (name, (from, length, user, account, cores)) in (0_u32..).zip(jobs) {
            let part = part(USERS[user], ACCOUNTS[account], cores, length.unsigned_abs());
            let at_second = |start: i64| (start, start + length, user, account, cores);
            let expected = (from..200).find(|start| holds(&plain, &placed, at_second(*start)));
            let found = book.first_start(std::slice::from_ref(&part), at(from)).ok().map(Timestamp::unix_seconds);
            prop_assert_eq!(found, expected, "{:?} {:?}", plain, placed);
            prop_assert_eq!(book.breach(std::slice::from_ref(&part), at(from)).is_none(), expected == Some(from));
            if let Some(start) = expected {
                book.hold(name, &[part], at(start), at(start + length));
                placed.push(at_second(start));
            }
        }
        // A holding that is released leaves no trace.
        for name in 0..10 {
            book.release(name);
        }
        prop_assert!(book.counters.is_empty());
        book.hold(1, &[part("ann", "bio", 1, 1)], ALWAYS, at(1));
    }
}
