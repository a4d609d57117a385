//! `printjob`: what the server keeps of a job.

use super::status::Status;
use jiff::tz::TimeZone;
use std::fmt::Write as _;

/// A rule between the parts.
const RULE: &str = "---------------------------------------------------\n";

/// The text of a job, with its attributes unless they are left out.
pub fn printed(job: &Status, zone: &TimeZone, has_attributes: bool) -> String {
    let mut text = format!("{RULE}Jobid:\t{}\n{RULE}", job.name);
    let get = |name: &str| job.get(name).unwrap_or_default();
    let substate: u32 = get("substate").parse().unwrap_or(0);
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "State:\t\t{}\nSubstate:\t0x{substate:x} ({substate})\nQueue:\t\t{}\nOwner:\t\t{}\n",
        get("job_state"),
        get("queue"),
        get("Job_Owner"),
    );
    if !has_attributes {
        return text;
    }
    text.push_str("--attributes--\n");
    for attribute in &job.attributes {
        let resource = attribute.resource.as_ref().map(|resource| format!(".{resource}")).unwrap_or_default();
        let value = super::cells::printable(&attribute.value.text(zone));
        let _ = writeln!(text, "{}{resource} = {value}", attribute.name);
    }
    text
}
