//! AMD's GPUs, from what the driver shows under `/sys`.

use super::{GpuDevice, GpuKind};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The GPUs of this host in the order in which ROCm counts them, each with its fault if the driver does not say which
/// files it has; `sys` is `/sys`.
pub fn devices(sys: &Path) -> Vec<(GpuDevice, Option<String>)> {
    let nodes = sys.join("class/kfd/kfd/topology/nodes");
    let names = fs::read_dir(&nodes).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    let device = |number: u32| {
        let node = nodes.join(number.to_string());
        device(sys, &node).map(|device| (device, None)).or_else(|| silent(number, &node))
    };
    numbers.into_iter().filter_map(device).collect()
}

/// The GPU that a node of the topology is; others are processors.
fn device(sys: &Path, node: &Path) -> Option<GpuDevice> {
    let properties = fs::read_to_string(node.join("properties")).ok()?;
    let property = |name: &str| -> Option<u32> {
        properties.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    };
    property("simd_count").filter(|count| *count > 0)?;
    let render = format!("renderD{}", property("drm_render_minor").filter(|minor| *minor > 0)?);
    let model = fs::read_to_string(node.join("name")).ok().map(|name| name.trim().to_owned());
    let mut files = vec![PathBuf::from("/dev/dri").join(&render)];
    files.extend(card(&sys.join("class/drm").join(render)).map(|card| Path::new("/dev/dri").join(card)));
    Some(GpuDevice { model: model.filter(|model| !model.is_empty()), ..GpuDevice::of_files(GpuKind::Amd, files) })
}

/// The place of a node that has the number of a GPU and nothing more; a processor has none.
fn silent(number: u32, node: &Path) -> Option<(GpuDevice, Option<String>)> {
    let id = fs::read_to_string(node.join("gpu_id")).ok()?;
    id.trim().parse().ok().filter(|id: &u64| *id > 0)?;
    let file = PathBuf::from(format!("/dev/dri/of-node-{number}"));
    let why = "the driver does not say which device file it has".to_owned();
    Some((GpuDevice::of_files(GpuKind::Amd, vec![file]), Some(why)))
}

/// The other file of the same GPU, such as `card0`.
fn card(render: &Path) -> Option<String> {
    let names = fs::read_dir(render.join("device/drm")).ok()?.flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).find(|name| name.starts_with("card"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_found_among_the_nodes_of_the_topology() {
        let sys = tempfile::tempdir().expect("a folder");
        let node = |number: u32, name: &str, properties: &str| {
            let node = sys.path().join(format!("class/kfd/kfd/topology/nodes/{number}"));
            fs::create_dir_all(&node).expect("a folder");
            fs::write(node.join("name"), name).expect("written");
            fs::write(node.join("properties"), properties).expect("written");
        };
        assert_eq!(devices(sys.path()), [], "there is no driver");
        node(0, "", "cpu_cores_count 64\nsimd_count 0\ndrm_render_minor 0\n");
        node(10, "gfx90a\n", "cpu_cores_count 0\nsimd_count 440\ndrm_render_minor 129\n");
        node(2, "gfx90a\n", "cpu_cores_count 0\nsimd_count 440\ndrm_render_minor 128\n");
        node(3, "gfx90a\n", "rubbish");
        node(4, "gfx90a\n", "rubbish");
        fs::write(sys.path().join("class/kfd/kfd/topology/nodes/4/gpu_id"), "4711\n").expect("written");
        fs::write(sys.path().join("class/kfd/kfd/topology/nodes/0/gpu_id"), "0\n").expect("written");
        fs::create_dir_all(sys.path().join("class/drm/renderD128/device/drm/card1")).expect("a folder");
        let found = devices(sys.path());
        let shown: Vec<_> = found.iter().map(|(gpu, fault)| (gpu.to_string(), fault.is_none())).collect();
        let [first, silent, last] =
            ["amd:/dev/dri/renderD128,/dev/dri/card1", "amd:/dev/dri/of-node-4", "amd:/dev/dri/renderD129"];
        assert_eq!(shown, [(first.to_owned(), true), (silent.to_owned(), false), (last.to_owned(), true)]);
        assert_eq!(found[0].0.model.as_deref(), Some("gfx90a"));
    }
}
