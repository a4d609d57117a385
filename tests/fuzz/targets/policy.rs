//! Policy files and the formulas in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_planner::policy_file;
use muster_schemas::policy::formula::Formula;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(policy) = policy_file::parse_bytes(bytes, "fuzz") {
        assert_eq!(policy_file::parse(&policy_file::print(&policy), "again"), Ok(policy));
    }
    if let Ok(formula) = Formula::parse(&String::from_utf8_lossy(bytes)) {
        assert_eq!(Formula::parse(&formula.to_string()), Ok(formula));
    }
});
