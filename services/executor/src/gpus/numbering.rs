//! Which number each GPU of a node has. Jobs hold GPUs by number, so a number must not come to mean another GPU.

use super::{Found, GpuDevice, NO_ANSWER};
use std::collections::{BTreeMap, BTreeSet};

/// The GPUs of a driver by their minor numbers: those that answer, and places for those that do not. `silent` has a
/// reason for each of these that the driver has counted; `known` are the minor numbers that it shows under `/proc`, and
/// `files` those of device files.
pub fn with_places(
    mut answering: BTreeMap<u32, GpuDevice>,
    silent: Vec<String>,
    known: &BTreeSet<u32>,
    files: &BTreeSet<u32>,
    place: impl Fn(u32) -> GpuDevice,
) -> Vec<(GpuDevice, Option<String>)> {
    let mut holes: BTreeMap<u32, String> = BTreeMap::new();
    for why in silent {
        let is_free = |minor: &u32| !answering.contains_key(minor) && !holes.contains_key(minor);
        let minor = known.iter().chain(files).copied().find(is_free).or_else(|| (0..).find(is_free));
        holes.extend(minor.map(|minor| (minor, why)));
    }
    for minor in known.intersection(files).filter(|minor| !answering.contains_key(minor)) {
        holes.entry(*minor).or_insert_with(|| NO_ANSWER.to_owned());
    }
    let minors: BTreeSet<u32> = answering.keys().chain(holes.keys()).copied().collect();
    let device = |minor| (answering.remove(&minor).unwrap_or_else(|| place(minor)), holes.remove(&minor));
    minors.into_iter().map(device).collect()
}

/// What the numbers of the node mean from now on: what was found, unless runs here know other GPUs by these numbers.
/// Then the earlier ones stay, and those that differ are out of service.
pub fn settled(found: Found, earlier: Vec<GpuDevice>, has_runs: bool) -> Found {
    if found.is_silent() && !earlier.is_empty() {
        let faults = (0..).zip(&earlier).map(|(gpu, _)| (gpu, NO_ANSWER.to_owned())).collect();
        return Found { devices: earlier, faults };
    }
    let is_same = |(at, old): (usize, &GpuDevice)| found.devices.get(at).is_some_and(|new| new.is_same(old));
    if !has_runs || earlier.iter().enumerate().all(is_same) {
        return found;
    }
    let Found { devices, mut faults } = found;
    let is_known = |new: &&GpuDevice| earlier.iter().any(|old| old.is_same(new));
    let unknown: Vec<GpuDevice> = devices.iter().skip(earlier.len()).filter(|new| !is_known(new)).cloned().collect();
    faults.retain(|gpu, _| (*gpu as usize) < earlier.len());
    let mut settled = Vec::with_capacity(earlier.len() + unknown.len());
    for (gpu, old) in (0..).zip(&earlier) {
        let new = devices.get(settled.len());
        let same = new.filter(|new| new.is_same(old)).cloned();
        if same.is_none() {
            let new = new.map_or_else(|| "nothing".to_owned(), GpuDevice::to_string);
            let why = format!(
                "jobs here know it as {old}, and {new} was found in its place: restart the executor once no job is here"
            );
            faults.insert(gpu, why);
        }
        settled.push(same.unwrap_or_else(|| old.clone()));
    }
    for (gpu, new) in (0..).zip(settled.iter().chain(&unknown)).skip(earlier.len()) {
        faults.insert(gpu, format!("{new} was found while jobs are here: restart the executor once there is none"));
    }
    settled.extend(unknown);
    Found { devices: settled, faults }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(number: u32) -> GpuDevice {
        format!("nvidia:/dev/nvidia{number}").parse().expect("a GPU")
    }

    fn found(numbers: &[u32]) -> Found {
        numbers.iter().map(|number| (gpu(*number), None)).collect()
    }

    fn faulty(found: &Found) -> Vec<u32> {
        found.faults.keys().copied().collect()
    }

    #[test]
    fn a_gpu_that_does_not_answer_keeps_its_place() {
        let placed = |answering: &[u32], silent: usize, known: &[u32], files: &[u32]| -> Vec<(u32, bool)> {
            let answering = answering.iter().map(|minor| (*minor, gpu(*minor))).collect();
            let [known, files] = [known, files].map(|minors| minors.iter().copied().collect());
            let placed = with_places(answering, vec!["lost".to_owned(); silent], &known, &files, gpu);
            placed.into_iter().map(|(gpu, fault)| (gpu.number().expect("a number"), fault.is_none())).collect()
        };
        assert_eq!(placed(&[0, 2], 1, &[0, 1, 2], &[]), [(0, true), (1, false), (2, true)], "the driver shows it");
        assert_eq!(placed(&[0, 2], 0, &[0, 1, 2], &[1]), [(0, true), (1, false), (2, true)], "it is not counted");
        assert_eq!(placed(&[0, 2], 0, &[0, 1, 2], &[0, 2]), [(0, true), (2, true)], "it is not of this host's part");
        assert_eq!(placed(&[1, 2], 1, &[], &[0, 1, 2]), [(0, false), (1, true), (2, true)], "it has a file");
        assert_eq!(placed(&[0, 1], 2, &[], &[]), [(0, true), (1, true), (2, false), (3, false)], "the last ones");
        assert_eq!(placed(&[], 0, &[0], &[0]), [(0, false)], "no library answers");
    }

    #[test]
    fn numbers_keep_their_meaning_while_there_are_runs() {
        let earlier = || vec![gpu(0), gpu(1), gpu(2)];
        let settle = |numbers: &[u32], has_runs| settled(found(numbers), earlier(), has_runs);
        assert_eq!(settle(&[1, 2], false), found(&[1, 2]), "there are no runs");
        assert_eq!(settle(&[0, 1, 2, 3], true), found(&[0, 1, 2, 3]), "one more");
        let kept = settle(&[1, 2], true);
        assert_eq!((kept.devices.clone(), faulty(&kept)), (earlier(), vec![0, 1, 2]));
        let why = "jobs here know it as nvidia:/dev/nvidia0, and nvidia:/dev/nvidia1 was found in its place: restart the \
                   executor once no job is here";
        assert_eq!(kept.faults[&0], why);
        let kept = settle(&[0, 1], true);
        assert_eq!((kept.devices.clone(), faulty(&kept)), (earlier(), vec![2]), "the others are well");
        let kept = settle(&[0, 1, 3, 4], true);
        assert_eq!((kept.devices.len(), faulty(&kept)), (4, vec![2, 3]), "jobs are kept from the new one too");
    }

    #[test]
    fn a_driver_that_says_nothing_leaves_the_numbers_as_they_were() {
        let kept = settled(Found::silent(), vec![gpu(0), gpu(1)], false);
        assert_eq!((kept.devices.len(), faulty(&kept)), (2, vec![0, 1]));
        let none = settled(Found::silent(), Vec::new(), false);
        assert!(none.devices.is_empty() && none.is_silent() && none.faults[&7] == NO_ANSWER);
    }
}
