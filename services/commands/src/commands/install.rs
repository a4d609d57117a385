//! `muster install-commands`: links under which this program acts as the commands of the dialects.

use crate::exit::{CommandResult, Failure};
use muster_cli::stderr_line;
use muster_hpcpack_commands as hpcpack;
use muster_oar_commands as oar;
use muster_pbs_commands as pbs;
use muster_slurm_commands as slurm;
use std::{
    io::ErrorKind,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// Makes a link for each command in a folder. Existing files that are not links to muster stay as they are.
pub fn install(dir: &Path) -> CommandResult {
    let program =
        std::env::current_exe().map_err(|error| Failure::failed(format!("cannot tell where muster is: {error}")))?;
    let mut links: Vec<PathBuf> =
        hpcpack::TOOLS.iter().chain(&slurm::TOOLS).chain(&oar::TOOLS).map(|name| dir.join(name)).collect();
    // Other systems come with commands of PBS's names.
    let of_pbs = pbs::TOOLS.iter().map(|name| dir.join(name));
    let (foreign, own): (Vec<PathBuf>, Vec<PathBuf>) = of_pbs.partition(|path| is_foreign(path, &program));
    foreign
        .iter()
        .for_each(|path| stderr_line!("muster: {} is there and is no link to muster; it stays", path.display()));
    links.extend(own);
    links.extend(controller_beside(dir).filter(|path| !is_foreign(path, &program)));
    if let Some(first) = links.iter().find(|path| is_foreign(path, &program)) {
        let message = format!("{} is there and is no link to muster; nothing was changed", first.display());
        return Err(Failure::failed(message));
    }
    for path in links {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| Failure::failed(format!("{}: {error}", folder.display())))?;
        }
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

/// Programs that come with Slurm look for its controller in the folder `sbin` beside `bin`, to ask for its version.
fn controller_beside(dir: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(dir).ok()?;
    let prefix = whole.parent().filter(|_| whole.file_name().is_some_and(|name| name == "bin"))?;
    Some(prefix.join("sbin").join(slurm::CONTROLLER))
}

/// Whether the path exists and was not made by an earlier call.
fn is_foreign(path: &Path, program: &Path) -> bool {
    match std::fs::read_link(path) {
        Ok(target) => {
            let name = target.file_name().unwrap_or_default();
            // An earlier version may have another name, such as `muster-1.0`.
            let is_of_muster = name.as_encoded_bytes().starts_with(b"muster");
            !is_of_muster && program.file_name() != Some(name)
        }
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}
