//! What a job takes over from the process that submits it.

use crate::stderr_line;
use crate::{connection::ConnectionOptions, exit::Failure};

/// What a job takes over from the process that submits it.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Its working directory.
    pub directory: String,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Its file mode creation mask.
    pub umask: u32,
    /// The variables by which `muster` finds this instance, so that it does inside the job too.
    pub instance: Vec<(&'static str, String)>,
}

impl Caller {
    /// This process, and the instance that it submits to. Variables that are not UTF-8 cannot be stored; they are left
    /// out with a warning.
    pub fn this_process(connection: &ConnectionOptions) -> Result<Self, Failure> {
        let directory = std::env::current_dir()
            .map_err(|error| Failure::failed(format!("cannot tell the working directory: {error}")))?
            .into_os_string()
            .into_string()
            .map_err(|_| Failure::failed("the name of the working directory is not UTF-8 text"))?;
        let mut environment = Vec::new();
        for (name, value) in std::env::vars_os() {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => environment.push((name, value)),
                (name, _) => {
                    let name = name.unwrap_or_else(|name| name.to_string_lossy().into_owned());
                    stderr_line!("muster: the variable {name} is not UTF-8 text; the job does not get it");
                }
            }
        }
        Ok(Self { directory, environment, umask: read_umask(), instance: connection.variables()? })
    }
}

/// The mask can only be read by setting it; nothing else runs in this process meanwhile.
pub fn read_umask() -> u32 {
    let mask = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    nix::sys::stat::umask(mask);
    mask.bits()
}
