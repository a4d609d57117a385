//! The file `sched_config`: the options of the fifo policy (PBS-F-01 to PBS-F-04).

mod names;
mod reading;
mod settings;

pub use reading::read;
pub use settings::{
    Charge, FairShareModel, HolidaysStale, ModeOptions, ResourcesMax, SchedConfig, StartsBlocked, StrictOrder,
};
