//! muster.
