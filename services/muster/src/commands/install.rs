//! `muster install-commands`: links by which the program is the commands of its dialects.

use super::{hpcpack, slurm};
use crate::exit::{CommandResult, Failure};
use std::{
    io::ErrorKind,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// Makes a link for each command in a folder. What is there already and is no link to muster stays as it is.
pub fn install(dir: &Path) -> CommandResult {
    let program =
        std::env::current_exe().map_err(|error| Failure::failed(format!("cannot tell where muster is: {error}")))?;
    std::fs::create_dir_all(dir).map_err(|error| Failure::failed(format!("{}: {error}", dir.display())))?;
    let tools = || hpcpack::TOOLS.into_iter().chain(slurm::TOOLS);
    let taken: Vec<PathBuf> = tools().map(|name| dir.join(name)).filter(|path| is_foreign(path, &program)).collect();
    if let [first, ..] = taken.as_slice() {
        let message = format!("{} is there and is no link to muster; nothing was changed", first.display());
        return Err(Failure::failed(message));
    }
    for name in tools() {
        let path = dir.join(name);
        let old = std::fs::remove_file(&path);
        if let Err(error) = old
            && error.kind() != ErrorKind::NotFound
        {
            return Err(Failure::failed(format!("{}: {error}", path.display())));
        }
        symlink(&program, &path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        println!("{}", path.display());
    }
    Ok(0)
}

/// Whether something is there that an earlier call did not make.
fn is_foreign(path: &Path, program: &Path) -> bool {
    match std::fs::read_link(path) {
        Ok(target) => target != program && target.file_name() != program.file_name(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}
