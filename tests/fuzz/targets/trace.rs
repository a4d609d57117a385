//! Job traces in the Standard Workload Format, plain and compressed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_swf::Trace;

fuzz_target!(|bytes: &[u8]| {
    let _ = Trace::read(bytes, "fuzz", None);
});
