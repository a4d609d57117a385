//! Policy files of PBS's scheduler, what its programs print about outages, and allocations.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_pbs_policy::{
    allocations,
    check::{FILES, check},
    lines::Source,
    outages,
    preset::Preset,
};

fuzz_target!(|files: [Option<&[u8]>; 7]| {
    let present = FILES.iter().zip(files).filter_map(|(name, bytes)| Some((name, bytes?)));
    let sources: Vec<Source> =
        present.map(|(name, bytes)| Source { name: (*name).to_owned(), bytes: bytes.to_vec() }).collect();
    for preset in Preset::ALL.into_iter().map(Some).chain([None]) {
        let checked = check(&sources, preset);
        assert_eq!(checked.policy.is_some(), checked.errors.is_empty());
        for finding in checked.errors.iter().chain(&checked.warnings) {
            assert!(!finding.located().chars().any(char::is_control));
        }
    }
    for bytes in files.into_iter().flatten() {
        let _ = outages::read(&String::from_utf8_lossy(bytes));
        let _ = allocations::over(&[Source { name: allocations::ALLOCATED.into(), bytes: bytes.to_vec() }]);
    }
});
