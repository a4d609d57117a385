//! Orders prepared to compute the keys of many jobs.

use super::{
    OrderKey,
    formula::{Formula, FormulaError, Variable, Variables},
};

/// The keys of an order. The least key comes first, whatever the order prefers.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledOrder {
    keys: Vec<Key>,
    attributes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Key {
    QueuePriority,
    Priority,
    Fcfs,
    Spt,
    Saf,
    F1,
    Wfp3,
    Unicep,
    Formula { formula: Formula, descending: bool },
    Share,
    UseShare,
}

impl CompiledOrder {
    /// Reads the formulas of an order. The error is that of the first formula that cannot be read.
    pub fn compile(order: &[OrderKey]) -> Result<Self, FormulaError> {
        let mut attributes = Vec::new();
        let mut compile = |key: &OrderKey| {
            Ok(match key {
                OrderKey::QueuePriority => Key::QueuePriority,
                OrderKey::Priority => Key::Priority,
                OrderKey::Fcfs => Key::Fcfs,
                OrderKey::Spt => Key::Spt,
                OrderKey::Saf => Key::Saf,
                OrderKey::F1 => Key::F1,
                OrderKey::Wfp3 => Key::Wfp3,
                OrderKey::Unicep => Key::Unicep,
                OrderKey::Share => Key::Share,
                OrderKey::UseShare => Key::UseShare,
                OrderKey::Formula { text, descending } => {
                    Key::Formula { formula: Formula::parse(text)?.renumbered(&mut attributes), descending: *descending }
                }
            })
        };
        let keys = order.iter().map(&mut compile).collect::<Result<_, FormulaError>>()?;
        Ok(Self { keys, attributes })
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it has none, so that arrival alone decides.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The attributes that its formulas use; [`Variable::Attribute`] is an index into them.
    pub fn attributes(&self) -> &[String] {
        &self.attributes
    }

    /// Whether a key changes while a job waits, so that jobs may change places.
    pub fn depends_on_time(&self) -> bool {
        self.keys.iter().any(|key| match key {
            Key::Wfp3 | Key::Unicep | Key::UseShare => true,
            Key::Formula { formula, .. } => formula.depends_on_time(),
            _ => false,
        })
    }

    /// Whether a key depends on the parts of the machine that users have.
    pub fn uses_shares(&self) -> bool {
        self.keys.contains(&Key::Share)
    }

    /// Whether a key depends on what accounts and users used and asked for in a window of time.
    pub fn uses_window(&self) -> bool {
        self.keys.contains(&Key::UseShare)
    }

    /// Whether a key depends on what accounts and users have used.
    pub fn uses_fair_share(&self) -> bool {
        self.keys.iter().any(|key| match key {
            Key::Formula { formula, .. } => formula.variables().any(|variable| variable == Variable::FairShare),
            _ => false,
        })
    }

    /// Whether, among jobs of the same queue priority, the one of higher priority always comes first.
    pub fn is_by_priority(&self) -> bool {
        let first = self.keys.iter().find(|key| **key != Key::QueuePriority);
        first == Some(&Key::Priority)
    }

    /// Whether a job comes after another one because of the priorities alone: that of the queue and its own. It does
    /// not if another key decides first or the priorities are equal.
    pub fn stands_behind(&self, job: (i64, i64), other: (i64, i64)) -> bool {
        for key in &self.keys {
            let (priority, others) = match key {
                Key::QueuePriority => (job.0, other.0),
                Key::Priority => (job.1, other.1),
                _ => return false,
            };
            if priority != others {
                return priority < others;
            }
        }
        false
    }

    /// Key number `n` (from 0, below [`CompiledOrder::len`]) of a job, to be compared with [`f64::total_cmp`]. A
    /// missing value is a NaN, which comes last; there is no `-0`.
    pub fn key(&self, n: usize, variables: &impl Variables) -> f64 {
        let of = |variable| variables.value(variable);
        let value = match &self.keys[n] {
            Key::QueuePriority => -of(Variable::QueuePriority),
            Key::Priority => -of(Variable::Priority),
            Key::Fcfs => of(Variable::Submit),
            Key::Spt => of(Variable::Walltime),
            Key::Saf => of(Variable::Walltime) * of(Variable::Procs),
            Key::F1 => f1(of(Variable::Walltime), of(Variable::Procs), of(Variable::Age0)),
            Key::Wfp3 => wfp3(of(Variable::Wait), of(Variable::Walltime), of(Variable::Procs)),
            Key::Unicep => unicep(of(Variable::Wait), of(Variable::Walltime), of(Variable::Procs)),
            Key::Share => of(Variable::ShareRank),
            Key::UseShare => of(Variable::UseShare),
            Key::Formula { formula, descending: false } => formula.evaluate(variables),
            Key::Formula { formula, descending: true } => -formula.evaluate(variables),
        };
        // The sign of a NaN depends on the machine, and a negative one would come first.
        if value.is_nan() { f64::NAN } else { value + 0.0 }
    }
}

fn f1(walltime: f64, procs: f64, age0: f64) -> f64 {
    libm::log10(walltime) * procs + 870.0 * libm::log10(age0)
}

fn wfp3(wait: f64, walltime: f64, procs: f64) -> f64 {
    let ratio = wait / walltime;
    -(ratio * ratio * ratio) * procs
}

fn unicep(wait: f64, walltime: f64, procs: f64) -> f64 {
    let procs = if procs > 2.0 { procs } else { 2.0 };
    -wait / (libm::log2(procs) * walltime)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walltime, processors, wait and age.
    struct Job(f64, f64, f64, f64);

    impl Variables for Job {
        fn value(&self, variable: Variable) -> f64 {
            match variable {
                Variable::Walltime => self.0,
                Variable::Procs => self.1,
                Variable::Wait => self.2,
                Variable::Age0 => self.3,
                Variable::Submit => 1000.0,
                Variable::Priority => 0.0,
                Variable::QueuePriority => 7.0,
                Variable::Attribute(index) => 10.0 * index as f64,
                _ => f64::NAN,
            }
        }
    }

    fn formula(text: &str, descending: bool) -> OrderKey {
        OrderKey::Formula { text: text.into(), descending }
    }

    fn keys(order: &[OrderKey], job: &Job) -> Vec<f64> {
        let order = CompiledOrder::compile(order).unwrap();
        (0..order.len()).map(|n| order.key(n, job)).collect()
    }

    #[test]
    fn named_orders_have_the_keys_that_the_book_says() {
        let order = [
            OrderKey::QueuePriority,
            OrderKey::Priority,
            OrderKey::Fcfs,
            OrderKey::Spt,
            OrderKey::Saf,
            OrderKey::F1,
            OrderKey::Wfp3,
            OrderKey::Unicep,
        ];
        let job = Job(100.0, 8.0, 50.0, 1000.0);
        let expected = [-7.0, 0.0, 1000.0, 100.0, 800.0, 16.0 + 2610.0, -1.0, -50.0 / 300.0];
        assert_eq!(keys(&order, &job), expected);
        assert_eq!(keys(&order[1..2], &job)[0].to_bits(), 0.0_f64.to_bits(), "no -0, which would stand before 0");
    }

    #[test]
    fn unicep_counts_at_least_two_processors() {
        assert_eq!(keys(&[OrderKey::Unicep], &Job(100.0, 1.0, 50.0, 1.0)), [-0.5]);
    }

    #[test]
    fn jobs_without_a_walltime_stand_behind_those_with_one() {
        let order = [OrderKey::Spt, OrderKey::Saf, OrderKey::F1, OrderKey::Wfp3, OrderKey::Unicep];
        let (with, without) = (Job(1e6, 4.0, 50.0, 1000.0), Job(f64::INFINITY, 4.0, 50.0, 1000.0));
        for (with, without) in keys(&order, &with).iter().zip(keys(&order, &without)) {
            assert!(with.total_cmp(&without).is_lt(), "{with} {without}");
        }
    }

    #[test]
    fn a_missing_value_stands_last_in_either_direction() {
        let order = [formula("gpus", false), formula("gpus", true), formula("-gpus", false), formula("0/0", true)];
        for key in keys(&order, &Job(1.0, 1.0, 1.0, 1.0)) {
            assert!(key.total_cmp(&f64::INFINITY).is_gt(), "{key}");
        }
    }

    #[test]
    fn formulas_of_an_order_share_the_numbering_of_attributes() {
        let order = [formula("user", false), formula("group + user", true), formula("group", false)];
        assert_eq!(CompiledOrder::compile(&order).unwrap().attributes(), ["user", "group"]);
        assert_eq!(keys(&order, &Job(1.0, 1.0, 1.0, 1.0)), [0.0, -10.0, 10.0]);
    }

    #[test]
    fn an_order_depends_on_time_if_one_key_does() {
        let depends = |order: &[OrderKey]| CompiledOrder::compile(order).unwrap().depends_on_time();
        assert!(!depends(&[OrderKey::QueuePriority, OrderKey::Fcfs, OrderKey::F1, formula("submit", false)]));
        assert!(depends(&[OrderKey::Spt, OrderKey::Wfp3]));
        assert!(depends(&[OrderKey::Unicep]));
        assert!(depends(&[OrderKey::Spt, formula("-wait", false)]));
    }

    #[test]
    fn an_order_with_a_wrong_formula_is_refused() {
        let error = CompiledOrder::compile(&[OrderKey::Spt, formula("1 +", false)]).unwrap_err();
        assert_eq!(error.column, 4);
    }
}
