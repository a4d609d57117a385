//! Jobs with a fixed start (OAR-G-11, OAR-G-14).
//!
//! Such a job does not wait for its begin time before it is planned. The first plan that looks at it promises it resources
//! from its begin time on, or refuses it, and then it ends. No later plan takes the promise back or moves it. If it starts
//! late, its walltime shrinks by the delay; once its time has passed, it ends without having run.

pub(crate) mod decide;
mod time;
pub(crate) mod validate;

pub use time::FixedTime;
