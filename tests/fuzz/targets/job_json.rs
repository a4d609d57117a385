//! Bodies of HTTP requests.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_schemas::{
    cluster::ClusterConfig,
    command::{JobFilter, JobSelection},
    event::JobChange,
    job::JobSpec,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(job) = serde_json::from_slice::<JobSpec>(bytes) {
        let again = serde_json::to_vec(&job).expect("a job that was read can be written");
        assert_eq!(serde_json::from_slice::<JobSpec>(&again).expect("and read again"), job);
    }
    let _ = serde_json::from_slice::<JobChange>(bytes);
    let _ = serde_json::from_slice::<JobSelection>(bytes);
    let _ = serde_json::from_slice::<JobFilter>(bytes);
    let _ = serde_json::from_slice::<ClusterConfig>(bytes);
});
