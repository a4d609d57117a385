//! `sstat`: running steps. Nodes report what a step used when its tasks there have ended, so what still runs is not in it.

use super::{
    Clock,
    cells::put,
    columns::{Field, FormatError, ListStyle},
    sacctmgr::{Listed, list},
    step::StepRecord,
};
use crate::{duration, hostlist};

/// The usual columns.
pub const USUAL: &str = "JobID,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,\
    MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,MinCPUTask,AveCPU,NTasks,AveCPUFreq,ReqCPUFreqMin,\
    ReqCPUFreqMax,ReqCPUFreqGov,ConsumedEnergy,MaxDiskRead,MaxDiskReadNode,MaxDiskReadTask,AveDiskRead,MaxDiskWrite,\
    MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite";
/// The columns of `-i`.
pub const PIDS: &str = "JobID,Nodelist,Pids";

macro_rules! field {
    ($name:literal, $width:literal) => {
        field!($name, $width, |_, _, _| {})
    };
    ($name:literal, $width:literal, $write:expr) => {
        Field::wide(&[$name], $width, $write)
    };
}

/// Writes what the tasks that have ended used, if there are any.
fn average(used: u64, row: &StepRecord, out: &mut String, write: impl FnOnce(u64, &mut String)) {
    if used > 0 {
        write(used / u64::from(row.tasks.max(1)), out);
    }
}

impl Listed for StepRecord {
    const FIELDS: &'static [Field<Self>] = &[
        field!("AveCPU", 10, |row, _, out| {
            average(row.usage.cpu_time_micros, row, out, |micros, out| {
                out.push_str(&duration::long(micros / 1_000_000))
            });
        }),
        field!("AveCPUFreq", 10),
        field!("AveDiskRead", 12),
        field!("AveDiskWrite", 12),
        field!("AvePages", 10),
        field!("AveRSS", 10, |row, _, out| {
            average(row.usage.peak_memory_bytes, row, out, |bytes, out| put(format_args!("{}K", bytes / 1024), out));
        }),
        field!("AveVMSize", 10),
        field!("ConsumedEnergy", 14),
        field!("ConsumedEnergyRaw", 17),
        field!("JobID", -12, |row, _, out| out.push_str(&row.shown_id())),
        field!("MaxDiskRead", 12),
        field!("MaxDiskReadNode", 15),
        field!("MaxDiskReadTask", 15),
        field!("MaxDiskWrite", 12),
        field!("MaxDiskWriteNode", 16),
        field!("MaxDiskWriteTask", 16),
        field!("MaxPages", 8),
        field!("MaxPagesNode", 12),
        field!("MaxPagesTask", 14),
        field!("MaxRSS", 10),
        field!("MaxRSSNode", 10),
        field!("MaxRSSTask", 10),
        field!("MaxVMSize", 10),
        field!("MaxVMSizeNode", 14),
        field!("MaxVMSizeTask", 14),
        field!("MinCPU", 10),
        field!("MinCPUNode", 10),
        field!("MinCPUTask", 10),
        field!("Nodelist", 20, |row, _, out| out.push_str(&hostlist::compress_sorted(&row.nodes))),
        field!("NTasks", 8, |row, _, out| put(row.tasks, out)),
        field!("Pids", 20),
        field!("ReqCPUFreq", 10),
        field!("ReqCPUFreqMin", 13),
        field!("ReqCPUFreqMax", 13),
        field!("ReqCPUFreqGov", 13),
        field!("TRESUsageInAve", 14),
        field!("TRESUsageInMax", 14),
        field!("TRESUsageInMaxNode", 18),
        field!("TRESUsageInMaxTask", 18),
        field!("TRESUsageInMin", 14),
        field!("TRESUsageInMinNode", 18),
        field!("TRESUsageInMinTask", 18),
        field!("TRESUsageInTot", 14),
        field!("TRESUsageOutAve", 15),
        field!("TRESUsageOutMax", 15),
        field!("TRESUsageOutMaxNode", 19),
        field!("TRESUsageOutMaxTask", 19),
        field!("TRESUsageOutMin", 15),
        field!("TRESUsageOutMinNode", 19),
        field!("TRESUsageOutMinTask", 19),
        field!("TRESUsageOutTot", 15),
    ];
    const USUAL: &'static str = USUAL;
}

/// The table of these steps; names of columns may be abbreviated.
///
/// # Errors
/// A column that does not exist.
pub fn sstat(
    steps: &[StepRecord],
    format: &str,
    style: &ListStyle,
    no_header: bool,
    clock: &Clock,
) -> Result<String, FormatError> {
    list(steps, format, style, no_header, clock)
}
