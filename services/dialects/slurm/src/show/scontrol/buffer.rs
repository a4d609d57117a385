//! `scontrol show burstbuffer`.

use super::moment;
use crate::show::{Clock, record::Person};
use muster_schemas::{filter::StagingSettings, views::BufferView};

/// The staging program and the existing persistent buffers (SL-B-02). Only the program knows their sizes. `kind` is how
/// the site handles directives.
pub fn buffers(
    kind: &str,
    staging: &StagingSettings,
    buffers: &[BufferView],
    person: impl Fn(&str) -> Person,
    clock: &Clock,
) -> String {
    let StagingSettings { program, stage_in_timeout_seconds, stage_out_timeout_seconds, .. } = staging;
    let Some(program) = program else { return String::new() };
    let mut text = format!(
        "Name={kind} DefaultPool=(null) Granularity=1 TotalSpace=0 FreeSpace=0 UsedSpace=0\n  Flags=\n  \
         StageInTimeout={stage_in_timeout_seconds} StageOutTimeout={stage_out_timeout_seconds} ValidateTimeout=0 \
         OtherTimeout=0\n  GetSysState={program}\n  GetSysStatus={program}\n"
    );
    if !buffers.is_empty() {
        text.push_str("  Allocated Buffers:\n");
    }
    for BufferView { name, owner, created, .. } in buffers {
        let (created, uid) = (moment(Some(*created), "None", clock), person(owner).uid);
        text.push_str(&format!(
            "    Name={name} CreateTime={created} Pool=(null) Size=0 State=allocated UserID={owner}({uid})\n"
        ));
    }
    text
}
