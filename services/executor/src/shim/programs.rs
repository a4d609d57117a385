//! Programs that a launch starts, their folder, and the variables of a dialect.

use super::{
    execution::{ProgramPath, c_string},
    files::plain,
    login::after_login,
};
use crate::spool::{DIALECT_NODE_FILE, DIALECT_PROPERTY_FILE, RunFolder, SpooledOrder};
use muster_dialect::{Dialect, Host};
use muster_schemas::time::Timestamp;
use nix::unistd::fchdir;
use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io,
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Variables that the dialect adds to a launch.
pub(super) fn added_by(
    dialect: Option<&dyn Dialect>,
    spooled: &SpooledOrder,
    folder: &RunFolder,
) -> BTreeMap<String, String> {
    let Some(dialect) = dialect else { return BTreeMap::new() };
    let order = &spooled.order;
    let login = |line: &str, seconds| after_login(&spooled.identity, line, seconds);
    let mut added = dialect.variables(order, &Host { now: Timestamp::now(), login: &login });
    if let Some(remark) = added.remark {
        super::log(format_args!("job {}: {remark}", order.job));
    }
    if let Some((variable, _)) = dialect.node_file(order) {
        let path = folder.file(DIALECT_NODE_FILE).to_string_lossy().into_owned();
        let names = dialect.node_file_aliases().iter().copied().chain([variable]);
        added.set.extend(names.map(|name| (name.to_owned(), path.clone())));
    }
    if let Some(variable) = dialect.property_file_variable() {
        let file = folder.of_launch(order.part).file(DIALECT_PROPERTY_FILE);
        if file.exists() {
            added.set.insert(variable.to_owned(), file.to_string_lossy().into_owned());
        }
    }
    added.set
}

/// Relative paths of the order start here.
pub(super) fn enter_directory(path: &str) -> Result<File, String> {
    let failed = |error: io::Error| format!("the working directory `{path}` cannot be entered: {}", plain(&error));
    let directory =
        OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(path).map_err(failed)?;
    fchdir(&directory).map_err(|errno| failed(errno.into()))?;
    Ok(directory)
}

pub(super) fn script_program(path: &Path, args: &[String]) -> Result<ProgramPath, String> {
    let path = c_string(path.as_os_str().as_bytes())?;
    let argv = std::iter::once(Ok(path.clone())).chain(args.iter().map(|arg| c_string(arg.as_bytes())));
    Ok(ProgramPath::new(path.clone(), argv.collect::<Result<_, _>>()?))
}

pub(super) fn command_program(argv: &[String], search: &str) -> Result<ProgramPath, String> {
    let name = argv.first().ok_or("the command is empty")?;
    let path = find_command(name, search)?;
    let argv = argv.iter().map(|arg| c_string(arg.as_bytes())).collect::<Result<_, _>>()?;
    Ok(ProgramPath::new(c_string(path.as_os_str().as_bytes())?, argv))
}

/// A command that is looked up where the task runs.
pub(super) fn command_elsewhere(argv: &[String]) -> Result<ProgramPath, String> {
    let argv = argv.iter().map(|arg| c_string(arg.as_bytes())).collect::<Result<_, _>>()?;
    Ok(ProgramPath::new(c_string(b"")?, argv))
}

/// The file of a command, searched for as a shell would.
fn find_command(name: &str, search: &str) -> Result<PathBuf, String> {
    if name.contains('/') {
        return Ok(name.into());
    }
    let folders = search.split(':').map(|folder| Path::new(if folder.is_empty() { "." } else { folder }));
    let executable =
        |path: &PathBuf| path.is_file() && nix::unistd::eaccess(path, nix::unistd::AccessFlags::X_OK).is_ok();
    folders
        .map(|folder| folder.join(name))
        .find(executable)
        .ok_or_else(|| format!("command `{name}` not found in PATH ({search})"))
}
