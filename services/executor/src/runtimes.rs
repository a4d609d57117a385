//! The programs that start containers on a node, and which of them a node uses.

use serde::{Deserialize, Serialize};
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// The usual folders of programs, where runtimes are looked for: never where a user's `PATH` leads.
pub const FOLDERS: [&str; 6] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// A kind of runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `crun`, for OCI bundles.
    Crun,
    /// `runc`, for OCI bundles.
    Runc,
    /// Apptainer, and Singularity, from which it comes.
    Apptainer,
    /// `podman`.
    Podman,
}

impl Kind {
    /// For OCI bundles, the best first.
    pub const OF_BUNDLES: [(&str, Self); 2] = [("crun", Self::Crun), ("runc", Self::Runc)];
    /// For all other images, the best first.
    pub const OF_IMAGES: [(&str, Self); 3] =
        [("apptainer", Self::Apptainer), ("singularity", Self::Apptainer), ("podman", Self::Podman)];

    /// By the name of a program.
    pub fn named(program: &Path) -> Option<Self> {
        let name = program.file_name()?.to_str()?;
        Self::OF_BUNDLES.iter().chain(&Self::OF_IMAGES).find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Whether it takes OCI bundles; the others take all other images.
    pub fn takes_bundles(self) -> bool {
        Self::OF_BUNDLES.iter().any(|(_, kind)| *kind == self)
    }
}

/// A runtime that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Its kind.
    pub kind: Kind,
    /// Its program.
    pub program: PathBuf,
}

/// Which runtime a node uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RuntimeChoice {
    /// The best that is there for an image.
    #[default]
    Auto,
    /// None: containers are not started.
    Off,
    /// This program, whose name says its kind.
    Program(PathBuf),
}

impl RuntimeChoice {
    /// The runtime for an image that is an OCI bundle, or that is not.
    ///
    /// # Errors
    /// Why there is none, for people.
    pub fn find(&self, is_bundle: bool) -> Result<Runtime, String> {
        match self {
            Self::Off => Err("containers are switched off on this node (`container_runtime` is `none`)".to_owned()),
            Self::Auto => found_in(&FOLDERS.map(Path::new), is_bundle),
            Self::Program(program) => {
                let name = program.display();
                if !program.is_file() {
                    return Err(format!("the container runtime of this node, `{name}`, does not exist"));
                }
                match Kind::named(program) {
                    Some(kind) if kind.takes_bundles() == is_bundle => Ok(Runtime { kind, program: program.clone() }),
                    _ if is_bundle => Err(format!(
                        "it is an OCI bundle, which `{name}`, the container runtime of this node, does not take"
                    )),
                    _ => Err(format!(
                        "it is no OCI bundle (a folder with `config.json`), and `{name}`, the container runtime of this node, takes nothing else"
                    )),
                }
            }
        }
    }
}

fn found_in(folders: &[&Path], is_bundle: bool) -> Result<Runtime, String> {
    let kinds: &[(&str, Kind)] = if is_bundle { &Kind::OF_BUNDLES } else { &Kind::OF_IMAGES };
    let programs = kinds.iter().flat_map(|(name, kind)| folders.iter().map(move |folder| (folder.join(name), *kind)));
    let found = programs.into_iter().find(|(program, _)| program.is_file());
    found.map(|(program, kind)| Runtime { kind, program }).ok_or_else(|| {
        let names: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect();
        let places: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        format!("this node has no container runtime for it: looked for {} in {}", names.join(", "), places.join(", "))
    })
}

impl TryFrom<String> for RuntimeChoice {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::Off),
            _ if text.starts_with('/') && Kind::named(Path::new(&text)).is_some() => Ok(Self::Program(text.into())),
            _ => Err(format!(
                "`container_runtime` is `{text}`, not `auto`, `none` or the absolute path of a program with the name apptainer, \
                 singularity, podman, crun or runc"
            )),
        }
    }
}

/// The choice as a configuration has it.
pub mod as_text {
    use super::RuntimeChoice;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    /// Writes it.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(choice: &RuntimeChoice, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(choice)
    }

    /// Reads it.
    ///
    /// # Errors
    /// What it must be.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RuntimeChoice, D::Error> {
        RuntimeChoice::try_from(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl fmt::Display for RuntimeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("none"),
            Self::Program(program) => write!(f, "{}", program.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_runtime_that_suits_the_image_is_used() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folders = [first.path(), second.path()];
        let named = |is_bundle| found_in(&folders, is_bundle).map(|found| found.program);
        let why = named(true).unwrap_err();
        assert!(why.starts_with("this node has no container runtime for it: looked for crun, runc in /"), "{why}");
        assert!(named(false).unwrap_err().contains("looked for apptainer, singularity, podman in /"));
        for program in [first.path().join("runc"), second.path().join("podman"), second.path().join("singularity")] {
            std::fs::write(program, "").unwrap();
        }
        assert_eq!(named(true), Ok(first.path().join("runc")));
        assert_eq!(named(false), Ok(second.path().join("singularity")));
        std::fs::write(second.path().join("crun"), "").unwrap();
        assert_eq!(named(true), Ok(second.path().join("crun")), "the better one, wherever it is");
    }

    #[test]
    fn a_site_names_a_runtime_or_none() {
        let choice = |text: &str| RuntimeChoice::try_from(text.to_owned());
        assert_eq!(choice("auto"), Ok(RuntimeChoice::Auto));
        assert!(choice("none").unwrap().find(true).unwrap_err().contains("switched off"));
        for wrong in ["crun", "/usr/bin/docker", "/", "no"] {
            assert!(choice(wrong).unwrap_err().contains("absolute path"), "{wrong}");
        }
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("runc");
        let named = choice(program.to_str().unwrap()).unwrap();
        assert!(named.find(true).unwrap_err().contains("does not exist"));
        std::fs::write(&program, "").unwrap();
        assert_eq!(named.find(true), Ok(Runtime { kind: Kind::Runc, program }));
        assert!(named.find(false).unwrap_err().contains("takes nothing else"));
        assert_eq!(choice(&named.to_string()), Ok(named));
    }
}
