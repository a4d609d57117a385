//! OCI bundles: a folder with a root folder, and `config.json` that describes a container.
//!
//! The root folder of an image, its variables and its own mounts of folders count. Everything else comes from the task, or
//! stays with the node: hooks would be programs of somebody else, and the containment of the run is muster's.

use super::root::Mount;
use crate::shim::files::plain;
use serde_json::{Value, json};
use std::{
    ffi::{CStr, CString},
    fs::{self, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

const DESCRIPTION: &str = "config.json";
/// The longest description that is read, in bytes.
const MAX_DESCRIPTION_BYTES: u64 = 1 << 20;
/// The most mounts of an image's own.
const MAX_MOUNTS: usize = 1_000;
/// Mounts of an image in these are replaced by those of the node.
const OF_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Whether an image is an OCI bundle. An image with an absolute path exists.
///
/// # Errors
/// Why it cannot be looked at, for people.
pub fn is_there(image: &str) -> Result<bool, String> {
    if !image.starts_with('/') {
        return Ok(false);
    }
    match fs::metadata(image) {
        Ok(found) => Ok(found.is_dir() && Path::new(image).join(DESCRIPTION).exists()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err("it does not exist on this node".to_owned()),
        Err(error) => Err(plain(&error)),
    }
}

/// What counts of a bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// Its root folder, absolute.
    pub root: PathBuf,
    pub is_read_only: bool,
    variables: Vec<String>,
    mounts: Vec<Value>,
}

/// The process of a container.
pub struct Process<'a> {
    pub command: &'a [CString],
    /// Its variables, as `NAME=VALUE`.
    pub variables: &'a [&'a CStr],
    pub directory: &'a str,
    pub umask: u32,
    /// The numbers of its user and group on the node.
    pub outer: (u32, u32),
    /// The same within.
    pub inner: (u32, u32),
    pub has_terminal: bool,
    /// The root folder that was laid out for it.
    pub root: &'a Path,
    pub mounts: &'a [Mount],
}

impl Bundle {
    /// Reads the description of an image.
    ///
    /// # Errors
    /// Why it is no bundle, for people.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let failed = |why: String| format!("its `{DESCRIPTION}` {why}");
        let text =
            read(&folder.join(DESCRIPTION)).map_err(|error| failed(format!("cannot be read: {}", plain(&error))))?;
        if text.len() as u64 > MAX_DESCRIPTION_BYTES {
            return Err(failed(format!("is longer than {MAX_DESCRIPTION_BYTES} bytes")));
        }
        let described: Value = serde_json::from_slice(&text).map_err(|error| failed(format!("is no JSON: {error}")))?;
        let root = &described["root"];
        let root_folder = folder.join(root["path"].as_str().unwrap_or("rootfs"));
        match fs::metadata(&root_folder) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(failed(format!("names `{}`, which is no folder, as its root", root_folder.display()))),
            Err(error) => {
                return Err(failed(format!("names `{}` as its root: {}", root_folder.display(), plain(&error))));
            }
        }
        let variables = described["process"]["env"].as_array().into_iter().flatten();
        let mounts = described["mounts"].as_array().into_iter().flatten();
        let mounts: Vec<Value> = mounts.filter_map(|mount| own_mount(folder, mount)).collect();
        if mounts.len() > MAX_MOUNTS {
            return Err(failed(format!("has {} mounts, at most {MAX_MOUNTS} are allowed", mounts.len())));
        }
        Ok(Self {
            root: root_folder,
            is_read_only: root["readonly"].as_bool().unwrap_or(false),
            variables: variables.filter_map(|variable| Some(variable.as_str()?.to_owned())).collect(),
            mounts,
        })
    }

    /// The description of the container of a process.
    pub fn configuration(&self, process: &Process<'_>) -> Vec<u8> {
        let text = |text: &CStr| text.to_string_lossy().into_owned();
        let own: Vec<String> = process.variables.iter().map(|variable| text(variable)).collect();
        let name_of = |variable: &str| variable.split('=').next().unwrap_or_default().to_owned();
        let names: std::collections::BTreeSet<String> = own.iter().map(|variable| name_of(variable)).collect();
        let of_image = self.variables.iter().filter(|variable| !names.contains(&name_of(variable))).cloned();
        let variables: Vec<String> = of_image.chain(own.iter().cloned()).collect();
        let mounts = process.mounts.iter().map(|mount| {
            let options: &[&str] = if mount.is_read_only { &["rbind", "ro"] } else { &["rbind"] };
            json!({"destination": mount.target, "type": "bind", "source": mount.source, "options": options})
        });
        let none: &[&str] = &[];
        let map = |inner, outer| json!([{"containerID": inner, "hostID": outer, "size": 1}]);
        let ((uid, gid), (inner_uid, inner_gid)) = (process.outer, process.inner);
        let configuration = json!({
            "ociVersion": "1.0.2",
            "process": {
                "terminal": process.has_terminal,
                "user": {"uid": inner_uid, "gid": inner_gid, "umask": process.umask},
                "args": process.command.iter().map(|word| text(word)).collect::<Vec<_>>(),
                "env": variables,
                "cwd": process.directory,
                "noNewPrivileges": true,
                "capabilities": {
                    "bounding": none, "effective": none, "inheritable": none, "permitted": none, "ambient": none,
                },
            },
            "root": {"path": process.root, "readonly": false},
            "mounts": mounts.chain(self.mounts.iter().cloned()).collect::<Vec<_>>(),
            "annotations": {"run.oci.keep_original_groups": "1"},
            "linux": {
                "namespaces": [{"type": "user"}, {"type": "mount"}],
                "uidMappings": map(inner_uid, uid),
                "gidMappings": map(inner_gid, gid),
            },
        });
        configuration.to_string().into_bytes()
    }
}

/// A mount that is the image's own: a folder of the node, or one in memory.
fn own_mount(folder: &Path, mount: &Value) -> Option<Value> {
    let destination = mount["destination"].as_str()?;
    let of_kernel = OF_KERNEL.iter().any(|path| Path::new(destination).starts_with(path));
    let options = mount["options"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let is_bind = mount["type"] == "bind" || options.clone().any(|option| matches!(option, "bind" | "rbind"));
    let options: Vec<&str> = options.collect();
    match (of_kernel, is_bind) {
        (true, _) => None,
        (false, true) => {
            let source = folder.join(mount["source"].as_str()?);
            Some(json!({"destination": destination, "type": "bind", "source": source, "options": options}))
        }
        (false, false) if mount["type"] == "tmpfs" => {
            Some(json!({"destination": destination, "type": "tmpfs", "source": "tmpfs", "options": options}))
        }
        (false, false) => None,
    }
}

/// A file of a user, which can be a pipe or without end.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_DESCRIPTION_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(text: &str) -> (tempfile::TempDir, Result<Bundle, String>) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("rootfs")).unwrap();
        fs::write(folder.path().join(DESCRIPTION), text).unwrap();
        let read = Bundle::read(folder.path());
        (folder, read)
    }

    #[test]
    fn of_an_image_its_root_variables_and_own_mounts_count() {
        let (folder, read) = bundle(
            r#"{"root": {"path": "rootfs", "readonly": true}, "hooks": {"prestart": [{"path": "/bin/evil"}]},
                "process": {"args": ["sh"], "env": ["A=image", "B=image"], "cwd": "/x"},
                "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                           {"destination": "/dev/shm", "type": "tmpfs"},
                           {"destination": "/scratch", "type": "tmpfs", "options": ["size=1m"]},
                           {"destination": "/cgroup", "type": "cgroup", "source": "cgroup"},
                           {"destination": "/data", "type": "none", "source": "own", "options": ["rbind", "ro"]}]}"#,
        );
        let read = read.unwrap();
        assert_eq!((read.root.clone(), read.is_read_only), (folder.path().join("rootfs"), true));
        let configuration: Value = serde_json::from_slice(&read.configuration(&Process {
            command: &[c"prog".into(), c"--opt".into()],
            variables: &[c"A=task", c"C=task"],
            directory: "/work",
            umask: 0o27,
            outer: (1000, 100),
            inner: (0, 0),
            has_terminal: false,
            root: Path::new("/spool/root"),
            mounts: &[Mount::same("/work".into(), false), Mount::same("/script".into(), true)],
        }))
        .unwrap();
        let process = &configuration["process"];
        assert_eq!(process["args"], json!(["prog", "--opt"]));
        assert_eq!(process["env"], json!(["B=image", "A=task", "C=task"]));
        assert_eq!((&process["cwd"], &process["terminal"]), (&json!("/work"), &json!(false)));
        assert_eq!(configuration["root"]["path"], "/spool/root");
        let linux = &configuration["linux"];
        assert_eq!(linux["uidMappings"], json!([{"containerID": 0, "hostID": 1000, "size": 1}]));
        assert_eq!(linux["gidMappings"], json!([{"containerID": 0, "hostID": 100, "size": 1}]));
        let destinations: Vec<&Value> =
            configuration["mounts"].as_array().unwrap().iter().map(|mount| &mount["destination"]).collect();
        assert_eq!(destinations, ["/work", "/script", "/scratch", "/data"]);
        assert_eq!(configuration["mounts"][1]["options"], json!(["rbind", "ro"]));
        assert_eq!(configuration["mounts"][3]["source"], json!(folder.path().join("own")));
        assert_eq!(configuration.get("hooks"), None);
    }

    #[test]
    fn what_is_no_bundle_is_refused_with_the_reason() {
        let why = |text: &str| bundle(text).1.unwrap_err();
        assert!(why("no").starts_with("its `config.json` is no JSON"), "{}", why("no"));
        assert!(why(r#"{"root": {"path": "elsewhere"}}"#).contains("No such file"));
        assert!(why(r#"{"root": {"path": "config.json"}}"#).contains("is no folder"));
        assert!(why(&"x".repeat(MAX_DESCRIPTION_BYTES as usize + 1)).contains("is longer than"));
        let folder = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&folder.path().join(DESCRIPTION), nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(Bundle::read(folder.path()).unwrap_err().contains("no regular file"), "it does not wait for a writer");
        assert_eq!(is_there("name"), Ok(false));
        assert!(is_there("/no/such/image").unwrap_err().contains("does not exist"));
        assert_eq!(is_there(folder.path().to_str().unwrap()), Ok(true));
    }
}
