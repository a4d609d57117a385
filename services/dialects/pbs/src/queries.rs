//! The command lines of the commands about jobs that are there, as typed requests.

mod alter;
mod listed;
mod operands;
mod order;
mod pbsdsh;
mod pbsnodes;
mod qmgr;
mod qstat;
mod select;
mod simple;
mod switches;
mod tracejob;

pub use alter::{Alteration, alteration, change};
pub use listed::{is_listed, is_selected};
pub use operands::{Destination, Operand, ids, operands};
pub use order::{Place, exchanged, is_by_priority};
pub use pbsdsh::{SpreadOver, SpreadRequest, pbsdsh};
pub use pbsnodes::{NodesAction, NodesFormat, NodesRequest, is_in_state, pbsnodes};
pub use qmgr::{ManagerRequest, qmgr};
pub use qstat::{Format, Mode, StatRequest, qstat};
pub use select::{Comparison, SelectRequest, qselect};
pub use simple::{
    Deletion, HoldLetters, Message, Order, Signal, pbs_stagein, printjob, qdel, qhold, qmove, qmsg, qorder, qrerun,
    qrls, qrun, qsig, run_nodes,
};
pub use switches::{Switch, switched};
pub use tracejob::{TraceRequest, tracejob};
