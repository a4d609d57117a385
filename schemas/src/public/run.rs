//! Runs: the times in which jobs have resources.

use super::{
    allocation::AllocatedNode,
    declare::public_events,
    words::{Amount, Exit, Whole, part, stop_text},
};
use crate::{
    event::{NodeExit, ShrinkReason, StopReason},
    ids::{JobId, RunId},
    job::Usage,
    views::OutcomeView,
};
use std::collections::BTreeSet;

public_events! { RunData
    /// A job, or a task of an array, got its resources; its launch is ordered.
    "job" "allocated" JobAllocated about job {
        /// The job or task.
        job: JobId,
        /// The run.
        run: RunId,
        /// Its share of each node.
        nodes: Vec<AllocatedNode>,
    }
    says |data, f| {
        write!(f, "job {} was given ", data.job)?;
        let mut seen = BTreeSet::new();
        let nodes: Vec<&String> =
            data.nodes.iter().map(|share| &share.node).filter(|node| seen.insert(*node)).collect();
        for (at, node) in nodes.iter().take(8).enumerate() {
            write!(f, "{}{node}", if at == 0 { "" } else { ", " })?;
        }
        match nodes.len().saturating_sub(8) {
            0 => write!(f, " (run {})", data.run),
            more => write!(f, " and {more} more (run {})", data.run),
        }
    };

    /// A part of a run (one component on one node) has started; others have not yet.
    "run" "part_started" RunPartStarted about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node's name.
        node: String,
        /// The component, from 0.
        component: u32,
    }
    says |data, f| write!(f, "{} started on {}", part(data.job, data.component), data.node);

    /// The processes of a job have started on all its nodes: it runs.
    "job" "started" JobStarted about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Name of the node that started last.
        node: String,
        /// The component that started last there, from 0.
        component: u32,
    }
    says |data, f| write!(f, "job {} runs (run {}, {})", data.job, data.run, data.node);

    /// A job is being stopped.
    "job" "stopping" JobStopping about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Why.
        reason: StopReason,
        /// Seconds from SIGTERM to SIGKILL, if somebody named them.
        grace_seconds: Option<u32>,
    }
    says |data, f| write!(f, "job {} is being stopped: {}", data.job, stop_text(data.reason));

    /// A part of a run (one component on one node) has ended; others continue.
    "run" "part_ended" RunPartEnded about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node's name.
        node: String,
        /// The component, from 0.
        component: u32,
        /// How it ended.
        exit: NodeExit,
    }
    says |data, f| {
        write!(f, "{} ended on {}: {}", part(data.job, data.component), data.node, Exit(&data.exit))
    };

    /// A run has ended on its last node; its resources are free.
    "run" "ended" RunEnded about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Name of the node where it ended last; `null` if that node was lost.
        node: Option<String>,
        /// The component that ended last there, from 0.
        component: Option<u32>,
        /// How it ended there.
        exit: Option<NodeExit>,
        /// How the run ended.
        #[serde(flatten)]
        outcome: OutcomeView,
        /// Its usage on all nodes.
        usage: Usage,
    }
    says |data, f| write!(f, "run {} of job {} ended: {}", data.run, data.job, data.outcome);

    /// A job was suspended.
    "job" "suspended" JobSuspended about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Whether other jobs may use its cores until it continues. It keeps everything else.
        lends_cores: bool,
        /// Whether it was waiting to continue because its cores were not free.
        was_resuming: bool,
        /// The waiting job that gets its cores, if it makes way because of its class; it continues by itself.
        makes_way_for: Option<JobId>,
    }
    says |data, f| {
        let lent = if data.lends_cores { ", and others can have its cores" } else { "" };
        match data.makes_way_for {
            Some(other) => write!(f, "job {} was suspended to make way for job {other}", data.job),
            None => write!(f, "job {} was suspended{lent}", data.job),
        }
    };

    /// A suspended job will continue as soon as its cores are free.
    "job" "resuming" JobResuming about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    says |data, f| write!(f, "job {} waits for its cores and then continues", data.job);

    /// A suspended job continues.
    "job" "resumed" JobResumed about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    says |data, f| write!(f, "job {} continues", data.job);

    /// A signal was sent to the processes of a job.
    "job" "signalled" JobSignalled about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The signal's number.
        signal: u8,
    }
    says |data, f| write!(f, "job {} was sent signal {}", data.job, data.signal);

    /// The first node of a run has sent its processes a signal, which was asked for or due some time before its end.
    "job" "signal_delivered" JobSignalDelivered about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The name of the node.
        node: String,
        /// The signal's number.
        signal: u8,
        /// Whether its time had come. Otherwise somebody had it sent.
        was_due: bool,
        /// How many processes were there to receive it.
        processes: u32,
    }
    says |data, f| {
        let (job, signal, node) = (data.job, data.signal, &data.node);
        write!(f, "signal {signal} has reached {} processes of job {job} on node {node}", data.processes)
    };

    /// A run starts ahead of a waiting job.
    "job" "backfilled" JobBackfilled about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    says |data, f| write!(f, "job {} started ahead of a waiting job", data.job);

    /// A running job got more resources.
    "job" "grown" JobGrown about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The added resources.
        nodes: Vec<AllocatedNode>,
    }
    says |data, f| write!(f, "job {} got {} more", data.job, Amount(&data.nodes));

    /// A running job did not get the resources offered to it.
    "job" "grow_rejected" JobGrowRejected about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    says |data, f| write!(f, "job {} did not get the resources it was offered", data.job);

    /// The tasks of a running job are ending: only tasks that release nodes still start.
    "job" "tasks_stopping" JobTasksStopping about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Why.
        reason: StopReason,
        /// Whether running tasks may finish; otherwise they are stopped.
        is_graceful: bool,
    }
    says |data, f| {
        let how = if data.is_graceful { "may finish; no new ones start" } else { "are stopped" };
        write!(f, "the tasks of job {} {how}: {}", data.job, stop_text(data.reason))
    };

    /// A running job has to give up resources when its tasks there have ended.
    "job" "shrinking" JobShrinking about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Why.
        reason: ShrinkReason,
        /// The resources that it has to give up.
        nodes: Vec<AllocatedNode>,
    }
    says |data, f| write!(f, "job {} has to give up {}", data.job, Amount(&data.nodes));

    /// A running job gave up resources.
    "job" "shrunk" JobShrunk about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The resources that it gave up.
        nodes: Vec<AllocatedNode>,
    }
    says |data, f| write!(f, "job {} gave up {}", data.job, Amount(&data.nodes));

    /// One component of a running job is being ended; the others continue.
    "job" "component_stopping" JobComponentStopping about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The component's index in the job, from 0.
        component: u32,
        /// Why.
        reason: StopReason,
    }
    says |data, f| {
        let what = Whole(data.job, Some(data.component));
        write!(f, "{what} is being ended: {}", stop_text(data.reason))
    };

    /// One component of a running job has ended; the others continue. The next `shrunk` event lists what it gives up.
    "job" "component_ended" JobComponentEnded about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The component's index in the job, from 0.
        component: u32,
        /// How it ended.
        #[serde(flatten)]
        outcome: OutcomeView,
        /// Its usage on its nodes.
        usage: Usage,
    }
    says |data, f| {
        write!(f, "{} has ended: {}", Whole(data.job, Some(data.component)), data.outcome)
    };

    /// All nodes of a run are awake: its launch is ordered.
    "job" "awake" JobAwake about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    says |data, f| write!(f, "the nodes of job {} are awake", data.job);
}
