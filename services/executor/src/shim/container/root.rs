//! The root folder of a container.
//!
//! Folders of the node are to be seen in places that the image does not have, and the image is not ours to change: it can
//! belong to somebody else, and others use it at the same time. So the root is a new folder in which everything of the
//! image's root is mounted; so are the image's folders on the way to such a place.

use crate::shim::files::plain;
use std::{
    collections::{BTreeSet, VecDeque},
    ffi::{OsStr, OsString},
    fs::{self, File},
    io,
    path::{Component, Path, PathBuf},
};

/// The most links on the way to a place in the image.
const MAX_LINKS: usize = 40;
/// The most entries of the image that are shown one by one.
const MAX_ENTRIES: usize = 4_096;

/// A file or folder of the node in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub source: PathBuf,
    /// Where it is, from the container's root.
    pub target: PathBuf,
    pub is_read_only: bool,
    /// Whether it is only seen if the image has something there.
    pub is_optional: bool,
}

impl Mount {
    /// In the same place as on the node.
    pub fn same(path: PathBuf, is_read_only: bool) -> Self {
        Self { source: path.clone(), target: path, is_read_only, is_optional: false }
    }
}

/// Fills the new folder `root` with the places to mount on; returns the mounts, in order.
///
/// # Errors
/// Why the image cannot be used, for people.
pub fn lay_out(image: &Path, is_read_only: bool, wanted: &[Mount], root: &Path) -> Result<Vec<Mount>, String> {
    let mut places = Vec::new();
    for mount in wanted {
        let at = resolve(image, &mount.target).map_err(|error| at_path(&mount.target, &error))?;
        if !mount.is_optional || image.join(&at).exists() {
            places.push((mount, at));
        }
    }
    let mut divided = BTreeSet::from([PathBuf::new()]);
    for (_, at) in places.iter().filter(|(_, at)| fs::symlink_metadata(image.join(at)).is_err()) {
        let above = at.ancestors().skip(1);
        divided.extend(above.filter(|folder| image.join(folder).exists()).map(Path::to_owned));
    }
    let taken: BTreeSet<&Path> = places.iter().map(|(_, at)| at.as_path()).collect();
    let (mut mounts, mut count) = (Vec::new(), 0);
    for folder in &divided {
        let entries = entries(&image.join(folder)).map_err(|error| at_path(&Path::new("/").join(folder), &error))?;
        count += entries.len();
        if count > MAX_ENTRIES {
            return Err(format!("its folders on the way to mounts have more than {MAX_ENTRIES} entries"));
        }
        for entry in entries {
            let at = folder.join(&entry);
            let shown = show(&image.join(&at), &root.join(&at)).map_err(|error| at_path(&at, &error))?;
            if shown && !divided.contains(&at) && !taken.contains(at.as_path()) {
                mounts.push(Mount { source: image.join(&at), target: at, is_read_only, is_optional: false });
            }
        }
    }
    for (mount, at) in places {
        // In a folder that is mounted as a whole the place is there.
        if fs::symlink_metadata(image.join(&at)).is_err() {
            make_place(&mount.source, &root.join(&at)).map_err(|error| at_path(&mount.target, &error))?;
        }
        mounts.push(Mount { target: at, ..mount.clone() });
    }
    mounts.iter_mut().for_each(|mount| mount.target = Path::new("/").join(&mount.target));
    Ok(mounts)
}

fn at_path(path: &Path, error: &io::Error) -> String {
    format!("`{}` in its root folder: {}", path.display(), plain(error))
}

/// The path in the image that a path within the container leads to, relative to the image's root. What does not exist
/// leads nowhere else.
fn resolve(image: &Path, path: &Path) -> io::Result<PathBuf> {
    let (mut at, mut links) = (PathBuf::new(), 0);
    let mut rest: VecDeque<OsString> = names(path).collect();
    while let Some(name) = rest.pop_front() {
        if name == OsStr::new("..") {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        match fs::read_link(image.join(&next)) {
            Ok(to) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(io::Error::other("too many links"));
                }
                if to.is_absolute() {
                    at = PathBuf::new();
                }
                for name in names(&to).collect::<Vec<_>>().into_iter().rev() {
                    rest.push_front(name);
                }
            }
            Err(_) => at = next,
        }
    }
    Ok(at)
}

fn names(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

/// The entries of a folder, or one too many.
fn entries(folder: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(folder)?.take(MAX_ENTRIES + 1).map(|entry| Ok(entry?.file_name())).collect()
}

/// Makes what stands for an entry of the image. Returns whether the entry is to be mounted there: a link is only copied.
fn show(entry: &Path, place: &Path) -> io::Result<bool> {
    if let Ok(to) = fs::read_link(entry) {
        std::os::unix::fs::symlink(to, place)?;
        return Ok(false);
    }
    make_place(entry, place)?;
    Ok(true)
}

/// A folder for a folder, an empty file for anything else; with the folders above.
fn make_place(source: &Path, place: &Path) -> io::Result<()> {
    if fs::metadata(source)?.is_dir() {
        return fs::create_dir_all(place);
    }
    place.parent().map_or(Ok(()), fs::create_dir_all)?;
    File::options().write(true).create_new(true).open(place).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// An image with `/usr/bin`, `/bin` as a link to it, `/home/ada`, `/etc/hosts`, and a new root for it.
    fn image() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (image, root) = (folder.path().join("image"), folder.path().join("root"));
        for path in ["usr/bin", "home/ada", "etc"] {
            fs::create_dir_all(image.join(path)).unwrap();
        }
        symlink("usr/bin", image.join("bin")).unwrap();
        symlink("/home", image.join("people")).unwrap();
        fs::write(image.join("etc/hosts"), "").unwrap();
        fs::write(image.join("init"), "").unwrap();
        fs::create_dir(&root).unwrap();
        (folder, image, root)
    }

    fn targets(mounts: &[Mount]) -> Vec<&str> {
        mounts.iter().map(|mount| mount.target.to_str().unwrap()).collect()
    }

    #[test]
    fn the_image_is_seen_as_it_is_with_new_places_in_it() {
        let (folder, image, root) = image();
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        let mount = |target: &str| Mount { target: target.into(), ..Mount::same(own.clone(), false) };
        let hosts = Mount { is_optional: true, ..Mount::same("/etc/hosts".into(), true) };
        let missing = Mount { is_optional: true, target: "/etc/nothing".into(), ..hosts.clone() };
        let wanted = [mount("/people/bob/work"), mount("/new/place"), hosts, missing];
        let mut mounts = lay_out(&image, true, &wanted, &root).unwrap();
        let own_ones = mounts.split_off(mounts.len() - 3);
        assert_eq!(targets(&own_ones), ["/home/bob/work", "/new/place", "/etc/hosts"]);
        mounts.sort_by(|one, other| one.target.cmp(&other.target));
        assert_eq!(targets(&mounts), ["/etc", "/home/ada", "/init", "/usr"]);
        assert!(mounts.iter().all(|mount| mount.is_read_only && mount.source.starts_with(&image)));
        assert_eq!(fs::read_link(root.join("bin")).unwrap(), Path::new("usr/bin"));
        for place in ["home/bob/work", "home/ada", "new/place", "usr"] {
            assert!(root.join(place).is_dir(), "{place}");
        }
        assert!(root.join("init").is_file());
        assert_eq!(fs::read_dir(image.join("home")).unwrap().count(), 1, "the image is left alone");
    }

    #[test]
    fn an_image_that_leads_in_circles_or_through_a_file_is_refused() {
        let (_folder, image, root) = image();
        symlink("loop", image.join("loop")).unwrap();
        let to = |target: &str| [Mount { target: target.into(), ..Mount::same("/tmp".into(), false) }];
        assert!(lay_out(&image, false, &to("/loop/x"), &root).unwrap_err().contains("too many links"));
        let why = lay_out(&image, false, &to("/init/x"), &root).unwrap_err();
        assert!(why.contains("/init"), "{why}");
        let other = root.with_extension("other");
        fs::create_dir(&other).unwrap();
        fs::create_dir(image.join("full")).unwrap();
        (0..MAX_ENTRIES).for_each(|at| symlink("x", image.join(format!("full/{at}"))).unwrap());
        let why = lay_out(&image, false, &to("/full/x"), &other).unwrap_err();
        assert!(why.contains("more than"), "{why}");
        assert_eq!(resolve(&image, Path::new("/people/../../../usr")).unwrap(), Path::new("usr"));
    }
}
