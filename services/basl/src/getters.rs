//! The predefined functions that look at one object (PBS-X-09).

use crate::types::{Basic, Kind};

/// Declares an enumeration of functions and a table with their kinds of objects and their results.
macro_rules! table {
    ($(#[$attribute:meta])* $list:ident of $name:ident { $($kind:ident { $($function:ident: $result:expr,)* })* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(clippy::enum_variant_names, reason = "they are named as the functions are")]
        pub(crate) enum $name { $($($function,)*)* }

        impl $name {
            /// All of them: name, function, kind of the object, result.
            pub(crate) const $list: &'static [(&'static str, Self, Kind, Basic)] =
                &[$($((stringify!($function), Self::$function, Kind::$kind, $result),)*)*];
        }
    };
}

table! {
    /// A function of an object.
    ALL of Getter {
        Server {
            ServerInetAddrGet: Basic::String,
            ServerDefQueGet: Basic::String,
            ServerStateGet: Basic::Int,
            ServerMaxRunJobsGet: Basic::Int,
            ServerMaxRunJobsPerUserGet: Basic::Int,
            ServerMaxRunJobsPerGroupGet: Basic::Int,
            ServerQueuesGet: Basic::Set(Kind::Que),
            ServerJobsGet: Basic::Set(Kind::Job),
            ServerNodesGet: Basic::Set(Kind::CNode),
            ServerNodesNumAvailGet: Basic::Int,
            ServerNodesNumAllocGet: Basic::Int,
            ServerNodesNumRsvdGet: Basic::Int,
            ServerNodesNumDownGet: Basic::Int,
        }
        Que {
            QueNameGet: Basic::String,
            QueTypeGet: Basic::Int,
            QueStateGet: Basic::Int,
            QuePriorityGet: Basic::Int,
            QueNumJobsGet: Basic::Int,
            QueMaxRunJobsGet: Basic::Int,
            QueMaxRunJobsPerUserGet: Basic::Int,
            QueMaxRunJobsPerGroupGet: Basic::Int,
            QueJobsGet: Basic::Set(Kind::Job),
        }
        Job {
            JobIdGet: Basic::String,
            JobNameGet: Basic::String,
            JobOwnerNameGet: Basic::String,
            JobEffectiveUserNameGet: Basic::String,
            JobEffectiveGroupNameGet: Basic::String,
            JobStateGet: Basic::Int,
            JobPriorityGet: Basic::Int,
            JobRerunFlagGet: Basic::Int,
            JobInteractiveFlagGet: Basic::Int,
            JobDateTimeCreatedGet: Basic::DateTime,
            JobEmailAddrGet: Basic::String,
            JobStageinFilesGet: Basic::String,
            JobStageoutFilesGet: Basic::String,
        }
        CNode {
            CNodeNameGet: Basic::String,
            CNodeOsGet: Basic::String,
            CNodeStateGet: Basic::Int,
            CNodeTypeGet: Basic::Int,
            CNodePropertiesGet: Basic::String,
            CNodeVendorGet: Basic::String,
            CNodeNumCpusGet: Basic::Int,
            CNodeIdletimeGet: Basic::Int,
            CNodeLoadAveGet: Basic::Float,
            CNodeCpuPercentIdleGet: Basic::Int,
            CNodeCpuPercentSysGet: Basic::Int,
            CNodeCpuPercentUserGet: Basic::Int,
            CNodeCpuPercentGuestGet: Basic::Int,
        }
    }
}

table! {
    /// A function of an object and a name: of a resource, or of what a configuration file maps.
    ALL of Named {
        Server {
            ServerIntResAvailGet: Basic::Int,
            ServerSizeResAvailGet: Basic::Size,
            ServerStringResAvailGet: Basic::String,
            ServerIntResAssignGet: Basic::Int,
            ServerSizeResAssignGet: Basic::Size,
            ServerStringResAssignGet: Basic::String,
        }
        Que {
            QueIntResAvailGet: Basic::Int,
            QueSizeResAvailGet: Basic::Size,
            QueStringResAvailGet: Basic::String,
            QueIntResAssignGet: Basic::Int,
            QueSizeResAssignGet: Basic::Size,
            QueStringResAssignGet: Basic::String,
        }
        Job {
            JobIntResReqGet: Basic::Int,
            JobSizeResReqGet: Basic::Size,
            JobStringResReqGet: Basic::String,
            JobIntResUseGet: Basic::Int,
            JobSizeResUseGet: Basic::Size,
            JobStringResUseGet: Basic::String,
        }
        CNode {
            CNodeMemTotalGet: Basic::Size,
            CNodeMemAvailGet: Basic::Size,
            CNodeNetworkBwGet: Basic::Int,
            CNodeDiskSpaceTotalGet: Basic::Size,
            CNodeDiskSpaceAvailGet: Basic::Size,
            CNodeDiskSpaceReservedGet: Basic::Size,
            CNodeDiskInBwGet: Basic::Int,
            CNodeDiskOutBwGet: Basic::Int,
            CNodeSwapSpaceTotalGet: Basic::Size,
            CNodeSwapSpaceAvailGet: Basic::Size,
            CNodeSwapInBwGet: Basic::Int,
            CNodeSwapOutBwGet: Basic::Int,
            CNodeTapeSpaceTotalGet: Basic::Size,
            CNodeTapeSpaceAvailGet: Basic::Size,
            CNodeTapeInBwGet: Basic::Int,
            CNodeTapeOutBwGet: Basic::Int,
            CNodeSrfsSpaceTotalGet: Basic::Size,
            CNodeSrfsSpaceAvailGet: Basic::Size,
            CNodeSrfsSpaceReservedGet: Basic::Size,
            CNodeSrfsInBwGet: Basic::Int,
            CNodeSrfsOutBwGet: Basic::Int,
        }
    }
}
