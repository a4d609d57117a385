use super::*;
use proptest::prelude::*;

/// A job whose values are all different, with the attributes 1, 2, 3...
struct Example;

impl Variables for Example {
    fn value(&self, variable: Variable) -> f64 {
        match variable {
            Variable::Submit => 1_000_000.0,
            Variable::Age0 => 500.0,
            Variable::Wait => 120.0,
            Variable::Walltime => 3600.0,
            Variable::Procs => 8.0,
            Variable::Nodes => 2.0,
            Variable::MemoryBytes => 1e9,
            Variable::Gpus => 0.0,
            Variable::Priority => -5.0,
            Variable::QueuePriority => 10.0,
            Variable::FairShare | Variable::ShareRank | Variable::UseShare => 0.25,
            Variable::Attribute(2) => f64::NAN,
            Variable::Attribute(index) => (index + 1) as f64,
        }
    }
}

fn value(text: &str) -> f64 {
    Formula::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).evaluate(&Example)
}

#[test]
fn formulas_have_the_value_that_arithmetic_says() {
    for (text, expected) in [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("10 - 4 - 3", 3.0),
        ("100 / 10 / 2", 5.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("-2 ^ 2", -4.0),
        ("2 ^ -2", 0.25),
        ("(-2) ^ 2", 4.0),
        ("-wait * 2", -240.0),
        ("17 % 5", 2.0),
        ("1.5e3 + 0.25", 1500.25),
        ("cores == procs", 1.0),
        ("walltime > 3600", 0.0),
        ("walltime >= 3600 and not gpus", 1.0),
        ("not walltime < 3600", 1.0),
        ("gpus or nodes == 3 or priority < 0", 1.0),
        ("gpus and 1 or 1", 1.0),
        ("if(gpus > 0, 1, if(nodes == 2, 2, 3))", 2.0),
        ("min(5, 3, 4)", 3.0),
        ("max(5, nodes)", 5.0),
        ("abs(priority) + sqrt(16) + floor(1.9) + ceil(1.1)", 12.0),
        ("log2(8) + log10(1000) + ln(exp(1))", 7.0),
        ("pow(2, 10)", 1024.0),
        ("submit + age0 + memory_bytes + queue_priority", 1_001_000_510.0),
        ("user + group", 3.0),
        ("group + user", 3.0),
        ("attribute(\"a b\") * 10 + attribute(\"slurm.nice\")", 12.0),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn what_cannot_be_computed_is_missing_and_conditions_with_it_do_not_hold() {
    for text in ["0 / 0", "wait / gpus", "log2(gpus)", "ln(priority)", "sqrt(priority)", "5 % gpus"] {
        assert!(value(text).is_nan(), "{text}");
    }
    let third = "0 * user + 0 * group + queue";
    assert!(value(third).is_nan());
    assert!(value(&format!("min(1, {third})")).is_nan());
    assert!(value(&format!("max({third}, 1)")).is_nan());
    assert_eq!(value(&format!("if({third}, 1, 2)")), 2.0);
    assert_eq!(value(&format!("({third}) == 1 or ({third}) < 1")), 0.0);
    assert_eq!(value(&format!("({third}) != 1")), 1.0);
    assert_eq!(value(&format!("not ({third})")), 1.0);
}

#[test]
fn only_the_wait_makes_a_formula_depend_on_time() {
    assert!(Formula::parse("1 + if(gpus, wait, 0)").unwrap().depends_on_time());
    assert!(!Formula::parse("submit + age0 * walltime").unwrap().depends_on_time());
}

#[test]
fn attributes_are_listed_once_in_the_order_of_their_first_use() {
    let formula = Formula::parse("queue + attribute(\"x\") * queue - attribute(\"user\") - user").unwrap();
    assert_eq!(formula.attributes(), ["queue", "x", "user"]);
    assert_eq!(formula.to_string(), "queue + attribute(\"x\") * queue - user - user");
}

#[test]
fn errors_name_the_column_the_token_and_what_was_expected() {
    for (text, expected) in [
        ("", "column 1: expected a number, a name or `(`, found the end"),
        ("wait +", "column 7: expected a number, a name or `(`, found the end"),
        (
            "waltime * 2",
            "column 1: expected a variable or a function, found `waltime`; nearest known name is `walltime`",
        ),
        ("2 * procz", "column 5: expected a variable or a function, found `procz`; nearest known name is `procs`"),
        ("nonsense_beyond_help", "column 1: expected a variable or a function, found `nonsense_beyond_help`"),
        ("wait wait", "column 6: expected an operator or the end, found `wait`"),
        ("10m", "column 3: expected an operator or the end, found `m`"),
        ("(wait", "column 6: expected an operator or `)`, found the end"),
        ("wait)", "column 5: expected an operator or the end, found `)`"),
        ("log2 wait", "column 6: expected `(` after `log2`, found `wait`"),
        ("log2(1, 2)", "column 7: expected an operator or the `)` of `log2`, found `,`"),
        ("if(1, 2)", "column 8: expected an operator or `,`: `if` takes 3 values, found `)`"),
        ("pow(1)", "column 6: expected an operator or `,`: `pow` takes 2 values, found `)`"),
        ("min(1)", "column 6: expected an operator or `,`: `min` takes two or more values, found `)`"),
        ("1 < 2 < 3", "column 7: expected an operator or the end, found `<`"),
        ("1 = 2", "column 3: expected an operator or the end, found `=`"),
        ("1 + not 2", "column 5: expected a number, a name or `(`, found `not`"),
        ("wait && 1", "column 6: expected an operator or the end, found `&`"),
        ("1e999", "column 1: expected a number up to about 1.8e308, found `1e999`"),
        ("attribute(user)", "column 11: expected the name of an attribute in \"\", 1 to 256 bytes, found `user`"),
        ("attribute(\"x", "column 11: expected the name of an attribute in \"\", 1 to 256 bytes, found `\"x`"),
        ("äöü + wait", "column 1: expected a variable or a function, found `äöü`"),
        ("wait + \u{7}", "column 8: expected a number, a name or `(`, found `\\u{7}`"),
        ("\"ä\" + ", "column 1: expected a number, a name or `(`, found `\"ä\"`"),
    ] {
        assert_eq!(Formula::parse(text).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn deep_or_endless_formulas_are_refused_without_harm() {
    for (text, expected) in [
        ("(".repeat(1_000_000), "nested at most 32 deep"),
        ("-".repeat(1_000_000), "nested at most 32 deep"),
        ("not ".repeat(1_000_000), "nested at most 32 deep"),
        ("abs(".repeat(1_000_000), "nested at most 32 deep"),
        ("2^".repeat(1_000_000), "nested at most 32 deep"),
        ("1+".repeat(1_000_000), "at most 1000 values and operators"),
        (format!("max({})", "1,".repeat(1_000_000)), "at most 1000 values and operators"),
    ] {
        let error = Formula::parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(Formula::parse(&format!("{}1{}", "(".repeat(32), ")".repeat(32))).is_ok());
    assert_eq!(value(&format!("max({}1)", "1,".repeat(400))), 1.0);
}

/// Text of a formula with more brackets than it needs, never refused.
fn formula_text() -> impl Strategy<Value = String> {
    const NAMES: &[&str] =
        &["submit", "age0", "wait", "walltime", "procs", "cores", "nodes", "gpus", "user", "attribute(\"a.b\")"];
    let leaf = prop_oneof![
        (0.0..1e12).prop_map(|number: f64| format!("{number:?}")),
        any::<u32>().prop_map(|number| number.to_string()),
        proptest::sample::select(NAMES).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 60, 3, |inner| {
        const OPERATORS: &[&str] = &["or", "and", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "^"];
        const FUNCTIONS: &[&str] = &["abs", "sqrt", "log2", "log10", "ln", "exp", "floor", "ceil"];
        prop_oneof![
            4 => (inner.clone(), proptest::sample::select(OPERATORS), inner.clone())
                .prop_map(|(left, operator, right)| format!("({left}) {operator} ({right})")),
            1 => inner.clone().prop_map(|x| format!("-({x})")),
            1 => inner.clone().prop_map(|x| format!("not ({x})")),
            1 => (proptest::sample::select(FUNCTIONS), inner.clone()).prop_map(|(name, x)| format!("{name}({x})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(x, y)| format!("pow({x}, {y})")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(x, y, z)| format!("if({x}, {y}, {z})")),
            1 => (proptest::sample::select(&["min", "max"][..]), proptest::collection::vec(inner, 2..5))
                .prop_map(|(name, all)| format!("{name}({})", all.join(", "))),
        ]
    })
}

/// Tokens in no order; some happen to be formulas.
fn token_soup() -> impl Strategy<Value = String> {
    let tokens = [
        "(",
        ")",
        ",",
        "+",
        "-",
        "*",
        "/",
        "%",
        "^",
        "<",
        "<=",
        "==",
        "!=",
        "and",
        "or",
        "not",
        "if",
        "min",
        "pow",
        "log2",
        "wait",
        "user",
        "1",
        "2.5",
        "1e3",
        "attribute",
        "\"x\"",
        "\"",
        "=",
        "ä",
    ];
    proptest::collection::vec(proptest::sample::select(tokens.to_vec()), 0..12).prop_map(|tokens| tokens.join(" "))
}

fn prints_as_itself(text: &str) -> Result<(), TestCaseError> {
    let Ok(formula) = Formula::parse(text) else { return Ok(()) };
    let printed = formula.to_string();
    let again = Formula::parse(&printed).map_err(|error| TestCaseError::fail(format!("{printed}: {error}")))?;
    prop_assert_eq!(&again, &formula, "{}", printed);
    prop_assert_eq!(again.to_string(), printed);
    Ok(())
}

proptest! {
    #[test]
    fn a_printed_formula_reads_as_the_same_formula(text in formula_text()) {
        prop_assert!(Formula::parse(&text).is_ok(), "{}", text);
        prints_as_itself(&text)?;
    }

    #[test]
    fn tokens_in_any_order_are_read_or_refused_in_place(text in token_soup()) {
        prints_as_itself(&text)?;
        if let Err(error) = Formula::parse(&text) {
            let rest: String = text.chars().skip(error.column - 1).collect();
            prop_assert!(rest.starts_with(&error.token), "{}: {}", text, error);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        prints_as_itself(&text)?;
    }

    #[test]
    fn every_formula_has_a_value_for_every_job(text in formula_text(), numbers in proptest::collection::vec(any::<f64>(), 12)) {
        struct Any(Vec<f64>);
        impl Variables for Any {
            fn value(&self, variable: Variable) -> f64 {
                match variable {
                    Variable::Submit => self.0[0],
                    Variable::Age0 => self.0[1],
                    Variable::Wait => self.0[2],
                    Variable::Walltime => self.0[3],
                    Variable::Procs => self.0[4],
                    Variable::Nodes => self.0[5],
                    Variable::MemoryBytes => self.0[6],
                    Variable::Gpus => self.0[7],
                    Variable::Priority => self.0[8],
                    Variable::QueuePriority => self.0[9],
                    Variable::FairShare | Variable::ShareRank | Variable::UseShare => self.0[10],
                    Variable::Attribute(_) => self.0[11],
                }
            }
        }
        let formula = Formula::parse(&text).unwrap();
        let variables = Any(numbers);
        let value = formula.evaluate(&variables);
        let again = Formula::parse(&formula.to_string()).unwrap().evaluate(&variables);
        prop_assert!(value.to_bits() == again.to_bits() || (value.is_nan() && again.is_nan()));
    }
}
