//! What getters give (PBS-X-09).

use super::{
    World,
    amounts::{Resources, Value, find},
    at,
};
use crate::{
    constants::number,
    getters::{Getter, Named},
    moment::Moment,
    size::Size,
    types::Kind,
    values::Reference,
};

impl World {
    /// The word of a getter; of no object, what stands for unset.
    #[inline]
    pub(crate) fn word(&self, getter: Getter, object: i64) -> i64 {
        use Getter as G;
        match getter {
            G::JobStateGet => self.job(object, -1, |job| job.state),
            G::JobPriorityGet => self.job(object, 0, |job| job.priority),
            G::JobRerunFlagGet => self.job(object, -1, |job| job.rerunnable),
            G::JobInteractiveFlagGet => self.job(object, 0, |job| job.interactive),
            G::JobDateTimeCreatedGet => self.job(object, Moment::UNSET.to_word(), |job| job.created),
            G::CNodeStateGet => self.node(object, number::CNODE_UNKNOWN, |node| node.state),
            G::CNodeTypeGet => self.node(object, number::CNODE_UNKNOWN, |node| match node.is_timeshared {
                true => number::CNODE_TIMESHARED,
                false => number::CNODE_CLUSTER,
            }),
            G::CNodeNumCpusGet => self.node(object, -1, |node| node.cpus),
            G::CNodeIdletimeGet => self.node(object, -1, |node| node.idle_seconds),
            G::CNodeLoadAveGet => self.node(object, (-1.0_f64).to_bits().cast_signed(), |node| node.load),
            G::CNodeCpuPercentIdleGet => self.node(object, -1, |node| node.cpu_percent[0]),
            G::CNodeCpuPercentSysGet => self.node(object, -1, |node| node.cpu_percent[1]),
            G::CNodeCpuPercentUserGet => self.node(object, -1, |node| node.cpu_percent[2]),
            G::CNodeCpuPercentGuestGet => self.node(object, -1, |node| node.cpu_percent[3]),
            G::QueTypeGet => self.queue(object, -1, |queue| queue.of_type),
            G::QueStateGet => self.queue(object, 0, |queue| queue.state),
            G::QuePriorityGet => self.queue(object, 0, |queue| queue.priority),
            G::QueNumJobsGet => self.queue(object, 0, |queue| length(&queue.jobs)),
            G::QueMaxRunJobsGet => self.queue(object, 0, |queue| queue.limits[0]),
            G::QueMaxRunJobsPerUserGet => self.queue(object, 0, |queue| queue.limits[1]),
            G::QueMaxRunJobsPerGroupGet => self.queue(object, 0, |queue| queue.limits[2]),
            G::ServerStateGet => self.server(object, -1, |_| number::SERVER_SCHED),
            G::ServerMaxRunJobsGet => self.server(object, 0, |server| server.limits[0]),
            G::ServerMaxRunJobsPerUserGet => self.server(object, 0, |server| server.limits[1]),
            G::ServerMaxRunJobsPerGroupGet => self.server(object, 0, |server| server.limits[2]),
            G::ServerNodesNumAvailGet => self.counts(object).available,
            G::ServerNodesNumAllocGet => self.counts(object).allocated,
            G::ServerNodesNumRsvdGet => self.counts(object).reserved,
            G::ServerNodesNumDownGet => self.counts(object).down,
            _ => 0,
        }
    }

    /// The string or set of a getter; of no object, `NULLSTR` or the empty set.
    pub(crate) fn reference(&self, getter: Getter, object: i64) -> Reference {
        use Getter as G;
        let found = match getter {
            G::ServerInetAddrGet => at(&self.servers, object).map(|server| &server.name),
            G::ServerDefQueGet => at(&self.servers, object).map(|server| &server.default_queue),
            G::ServerQueuesGet => at(&self.servers, object).map(|server| &server.queues),
            G::ServerJobsGet => at(&self.servers, object).map(|server| &server.jobs),
            G::ServerNodesGet => at(&self.servers, object).map(|server| &server.nodes),
            G::QueNameGet => at(&self.queues, object).map(|queue| &queue.name),
            G::QueJobsGet => at(&self.queues, object).map(|queue| &queue.jobs),
            G::CNodeNameGet => at(&self.nodes, object).map(|node| &node.name),
            G::CNodeOsGet => at(&self.nodes, object).map(|node| &node.os),
            G::CNodePropertiesGet => at(&self.nodes, object).map(|node| &node.properties),
            G::CNodeVendorGet => at(&self.nodes, object).map(|node| &node.vendor),
            _ => at(&self.jobs, object).filter(|job| !job.is_deleted).and_then(|job| match getter {
                G::JobIdGet => Some(&job.id),
                G::JobNameGet => Some(&job.name),
                G::JobOwnerNameGet => Some(&job.owner),
                G::JobEffectiveUserNameGet => Some(&job.user),
                G::JobEffectiveGroupNameGet => Some(&job.group),
                G::JobEmailAddrGet => Some(&job.mail),
                G::JobStageinFilesGet => Some(&job.stage_in),
                G::JobStageoutFilesGet => Some(&job.stage_out),
                _ => None,
            }),
        };
        found.cloned().unwrap_or_default()
    }

    /// What `print` shows of an object.
    pub(crate) fn shown(&self, kind: Kind, object: i64) -> Reference {
        match kind {
            Kind::Server => self.reference(Getter::ServerInetAddrGet, object),
            Kind::Que => self.reference(Getter::QueNameGet, object),
            Kind::Job => self.reference(Getter::JobIdGet, object),
            Kind::CNode => self.reference(Getter::CNodeNameGet, object),
        }
    }

    /// The word of a getter with a name.
    #[inline]
    pub(crate) fn named_word(&self, named: Named, object: i64, resource: Option<u32>, name: &str) -> i64 {
        use Named as N;
        let is_int = matches!(
            named,
            N::ServerIntResAvailGet
                | N::ServerIntResAssignGet
                | N::QueIntResAvailGet
                | N::QueIntResAssignGet
                | N::JobIntResReqGet
                | N::JobIntResUseGet
                | N::CNodeNetworkBwGet
                | N::CNodeDiskInBwGet
                | N::CNodeDiskOutBwGet
                | N::CNodeSwapInBwGet
                | N::CNodeSwapOutBwGet
                | N::CNodeTapeInBwGet
                | N::CNodeTapeOutBwGet
                | N::CNodeSrfsInBwGet
                | N::CNodeSrfsOutBwGet
        );
        let value = self.value(named, object, resource, name);
        if is_int {
            value.map_or(-1, |value| value.int)
        } else {
            value.map_or(Size::UNSET, |value| value.size).to_word()
        }
    }

    /// The string of a getter with a name.
    pub(crate) fn named_reference(&self, named: Named, object: i64, resource: Option<u32>, name: &str) -> Reference {
        self.value(named, object, resource, name).map(|value| value.text.clone()).unwrap_or_default()
    }

    fn value(&self, named: Named, object: i64, resource: Option<u32>, name: &str) -> Option<&Value> {
        use Named as N;
        let resources: &Resources = match named {
            N::JobIntResReqGet | N::JobSizeResReqGet | N::JobStringResReqGet => {
                &at(&self.jobs, object).filter(|job| !job.is_deleted)?.request
            }
            N::JobIntResUseGet | N::JobSizeResUseGet | N::JobStringResUseGet => {
                &at(&self.jobs, object).filter(|job| !job.is_deleted)?.used
            }
            N::ServerIntResAvailGet | N::ServerSizeResAvailGet | N::ServerStringResAvailGet => {
                &at(&self.servers, object)?.available
            }
            N::ServerIntResAssignGet | N::ServerSizeResAssignGet | N::ServerStringResAssignGet => {
                &at(&self.servers, object)?.assigned
            }
            N::QueIntResAvailGet | N::QueSizeResAvailGet | N::QueStringResAvailGet => {
                &at(&self.queues, object)?.available
            }
            N::QueIntResAssignGet | N::QueSizeResAssignGet | N::QueStringResAssignGet => {
                &at(&self.queues, object)?.assigned
            }
            _ => {
                let values = &at(&self.nodes, object)?.values;
                let is_it = |known: &&(Named, _, _)| known.0 == named;
                return values.iter().filter(is_it).find(|(_, of, _)| of.as_str() == name).map(|(_, _, value)| value);
            }
        };
        find(resources, resource?)
    }

    #[inline]
    fn job(&self, object: i64, unset: i64, get: impl FnOnce(&super::Job) -> i64) -> i64 {
        at(&self.jobs, object).filter(|job| !job.is_deleted).map_or(unset, get)
    }

    fn node(&self, object: i64, unset: i64, get: impl FnOnce(&super::Node) -> i64) -> i64 {
        at(&self.nodes, object).map_or(unset, get)
    }

    fn queue(&self, object: i64, unset: i64, get: impl FnOnce(&super::Queue) -> i64) -> i64 {
        at(&self.queues, object).map_or(unset, get)
    }

    fn server(&self, object: i64, unset: i64, get: impl FnOnce(&super::Server) -> i64) -> i64 {
        at(&self.servers, object).map_or(unset, get)
    }
}

fn length(set: &Reference) -> i64 {
    set.set().and_then(|set| i64::try_from(set.borrow().len()).ok()).unwrap_or(0)
}
