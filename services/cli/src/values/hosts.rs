//! Lists of node names in options and settings.

pub use muster_schemas::hosts::compress as compress_hosts;
use muster_schemas::hosts::expand;

/// The names in a list such as `n[1-3],m[08-10]-ib`, in the order written: at least one.
pub fn parse_hosts(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Err("expected at least one name of a node".to_owned());
    }
    expand(text).map_err(|error| error.to_string())
}
