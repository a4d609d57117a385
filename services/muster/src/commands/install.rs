//! `muster install-commands`: links by which the programs are the commands of their dialects.

use crate::exit::{CommandResult, Failure};
use muster_hpcpack_commands as hpcpack;
use muster_slurm_commands as slurm;
use nix::unistd::{AccessFlags, access};
use std::{
    io::ErrorKind,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// The program for the commands of Slurm alone, which start faster so. Without it this program does the same.
const SLURM_PROGRAM: &str = "muster-slurm";

/// Makes a link for each command in a folder. What is there already and is no link to muster stays as it is.
pub fn install(dir: &Path) -> CommandResult {
    let program =
        std::env::current_exe().map_err(|error| Failure::failed(format!("cannot tell where muster is: {error}")))?;
    let of_slurm = Some(program.with_file_name(SLURM_PROGRAM))
        .filter(|path| path.is_file() && access(path.as_path(), AccessFlags::X_OK).is_ok());
    let programs = [program.clone(), of_slurm.unwrap_or(program)];
    let [of_hpcpack, of_slurm] = &programs;
    std::fs::create_dir_all(dir).map_err(|error| Failure::failed(format!("{}: {error}", dir.display())))?;
    let links: Vec<(PathBuf, &PathBuf)> = (hpcpack::TOOLS.iter().map(|name| (dir.join(name), of_hpcpack)))
        .chain(slurm::TOOLS.iter().map(|name| (dir.join(name), of_slurm)))
        .collect();
    if let Some((first, _)) = links.iter().find(|(path, _)| is_foreign(path, &programs)) {
        let message = format!("{} is there and is no link to muster; nothing was changed", first.display());
        return Err(Failure::failed(message));
    }
    for (path, program) in links {
        let old = std::fs::remove_file(&path);
        if let Err(error) = old
            && error.kind() != ErrorKind::NotFound
        {
            return Err(Failure::failed(format!("{}: {error}", path.display())));
        }
        symlink(program, &path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        println!("{}", path.display());
    }
    Ok(0)
}

/// Whether something is there that an earlier call did not make.
fn is_foreign(path: &Path, programs: &[PathBuf]) -> bool {
    match std::fs::read_link(path) {
        Ok(target) => {
            let name = target.file_name().unwrap_or_default();
            // As by an earlier version: `muster-1.0`.
            let is_of_muster = name.as_encoded_bytes().starts_with(b"muster");
            !is_of_muster && !programs.iter().any(|program| program.file_name() == Some(name))
        }
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}
