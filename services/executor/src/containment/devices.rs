//! Keeping processes of a control group from device files, in both cgroup versions.
//!
//! Everything else stays allowed: a list of what a job may open would have to know all devices of the site.

use super::cgroup::Group;
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::fs::{FileTypeExt, MetadataExt},
    },
    path::Path,
};

/// The numbers of a character device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeviceNumber {
    major: u32,
    minor: u32,
}

impl DeviceNumber {
    /// Those of the character device at a path; `None` for anything else, and if nothing is there.
    pub fn of(path: &Path) -> Option<Self> {
        let known = fs::metadata(path).ok().filter(|known| known.file_type().is_char_device())?;
        Some(Self { major: libc::major(known.rdev()), minor: libc::minor(known.rdev()) })
    }

    /// Those that the device file of a GPU has whenever it is there; `None` for other files. The kernel gives these out
    /// once and for all.
    pub fn usual(path: &Path) -> Option<Self> {
        let minor_after = |before: &str| path.to_str()?.strip_prefix(before)?.parse().ok();
        let of = |major: u32, before: &str| Some(Self { major, minor: minor_after(before)? });
        of(195, "/dev/nvidia").or_else(|| of(226, "/dev/dri/renderD")).or_else(|| of(226, "/dev/dri/card"))
    }
}

/// Denies devices to a group of the v1 hierarchy, which begins with what its parent may open.
pub fn deny_v1(group: &Group, denied: &[DeviceNumber]) -> io::Result<()> {
    let deny = |device: &DeviceNumber| group.write("devices.deny", &format!("c {}:{} rwm", device.major, device.minor));
    denied.iter().try_for_each(deny)
}

/// Denies devices to a v2 group, by a program that the kernel asks whenever a process of the group opens or makes a
/// device file. It goes with the group.
pub fn deny_v2(group: &Group, denied: &[DeviceNumber]) -> io::Result<()> {
    let attached = || attach(&group.open()?, &load(&program(denied))?);
    attached()
        .map_err(|error| io::Error::new(error.kind(), format!("control group {}: {error}", group.path().display())))
}

/// An instruction for the kernel's virtual machine.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    code: u8,
    /// The register that it changes, and from the fifth bit on the one that it reads.
    registers: u8,
    offset: i16,
    constant: i32,
}

const fn instruction(code: u8, registers: u8, offset: i16, constant: i32) -> Instruction {
    Instruction { code, registers, offset, constant }
}

/// `rA = *(u32 *)(r1 + offset)`, `rA &= constant`, `rA = constant`, end with r0.
const LOAD_WORD: u8 = 0x61;
const AND: u8 = 0x57;
const SET: u8 = 0xb7;
const EXIT: u8 = 0x95;
/// Skip as many instructions as the offset says if `rA` is (not) the constant, of which only 32 bits count.
const SKIP_IF_EQUAL: u8 = 0x16;
const SKIP_UNLESS_EQUAL: u8 = 0x56;
/// In the low half of the first word that the kernel passes: a character device. Then follow major and minor.
const CHARACTER_DEVICE: i32 = 2;

/// A program that returns 0, which denies, for these devices and 1 for all else.
fn program(denied: &[DeviceNumber]) -> Vec<Instruction> {
    // A job that is denied so many that a jump is too far is denied none: no node has so many.
    let checks = denied.len().min(usize::from(i16::MAX.unsigned_abs()) / 2 - 2);
    let to_allow = |at: usize| (2 * (checks - at)) as i16;
    let mut program = vec![
        instruction(LOAD_WORD, 0x12, 0, 0),
        instruction(AND, 0x02, 0, 0xffff),
        instruction(LOAD_WORD, 0x13, 4, 0),
        instruction(LOAD_WORD, 0x14, 8, 0),
        instruction(SKIP_UNLESS_EQUAL, 0x02, to_allow(0), CHARACTER_DEVICE),
    ];
    for (at, device) in denied.iter().take(checks).enumerate() {
        program.push(instruction(SKIP_UNLESS_EQUAL, 0x03, 1, device.major as i32));
        // Over the remaining checks and the two instructions that allow.
        program.push(instruction(SKIP_IF_EQUAL, 0x04, to_allow(at + 1) + 2, device.minor as i32));
    }
    // The kernel refuses instructions that nothing leads to.
    let answers = if denied.is_empty() { &[1][..] } else { &[1, 0] };
    let end = |answer: &i32| [instruction(SET, 0x00, 0, *answer), instruction(EXIT, 0x00, 0, 0)];
    program.extend(answers.iter().flat_map(end));
    program
}

/// What `bpf(2)` takes to load a program.
#[repr(C)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log: [u32; 2],
    log_buffer: u64,
    kernel: u32,
    flags: u32,
}

/// What `bpf(2)` takes to attach a program to a control group.
#[repr(C)]
struct Attach {
    group: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

const LOAD: libc::c_int = 5;
const ATTACH: libc::c_int = 8;
const FOR_DEVICES: u32 = 15;
const AT_DEVICES: u32 = 6;
/// The programs of groups above apply as well.
const WITH_OTHERS: u32 = 2;

fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let request = Load {
        kind: FOR_DEVICES,
        count: u32::try_from(program.len()).map_err(io::Error::other)?,
        instructions: program.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        log: [0; 2],
        log_buffer: 0,
        kernel: 0,
        flags: 0,
    };
    let descriptor = bpf(LOAD, &request)?;
    // SAFETY: the kernel has just opened it for this process, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn attach(group: &OwnedFd, program: &OwnedFd) -> io::Result<()> {
    let number = |file: &OwnedFd| u32::try_from(file.as_raw_fd()).map_err(io::Error::other);
    let request = Attach { group: number(group)?, program: number(program)?, kind: AT_DEVICES, flags: WITH_OTHERS };
    bpf(ATTACH, &request).map(drop)
}

fn bpf<T>(command: libc::c_int, request: &T) -> io::Result<libc::c_int> {
    // SAFETY: the request is one of the command, of the size given, and what it points to outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(request), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { libc::c_int::try_from(result).map_err(io::Error::other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program answers, as the kernel runs it.
    fn allows(program: &[Instruction], kind: u32, major: u32, minor: u32) -> bool {
        let input = [kind | 2 << 16, major, minor];
        let (mut registers, mut at) = ([0_u64; 10], 0);
        loop {
            let Instruction { code, registers: which, offset, constant } = program[at];
            let register = usize::from(which & 0xf);
            let is_equal = registers[register] as u32 == constant as u32;
            at += 1;
            match code {
                LOAD_WORD => registers[register] = u64::from(input[offset as usize / 4]),
                AND => registers[register] &= constant as u64,
                SET => registers[register] = constant as u64,
                SKIP_IF_EQUAL if is_equal => at += offset as usize,
                SKIP_UNLESS_EQUAL if !is_equal => at += offset as usize,
                SKIP_IF_EQUAL | SKIP_UNLESS_EQUAL => {}
                EXIT => return registers[0] == 1,
                code => panic!("instruction {code:x}"),
            }
        }
    }

    #[test]
    fn only_the_devices_of_the_list_are_denied() {
        let device = |major, minor| DeviceNumber { major, minor };
        let program = program(&[device(195, 0), device(226, 128), device(195, 3)]);
        for (major, minor, expected) in [
            (195, 0, false),
            (195, 1, true),
            (195, 3, false),
            (195, 255, true),
            (226, 128, false),
            (226, 0, true),
            (1, 3, true),
            (0, 195, true),
        ] {
            assert_eq!(allows(&program, CHARACTER_DEVICE as u32, major, minor), expected, "{major}:{minor}");
            assert!(allows(&program, 1, major, minor), "a block device of the same numbers is another one");
        }
        assert!(allows(&super::program(&[]), CHARACTER_DEVICE as u32, 1, 3));
    }

    #[test]
    fn only_character_devices_have_numbers() {
        assert_eq!(DeviceNumber::of(Path::new("/dev/null")), Some(DeviceNumber { major: 1, minor: 3 }));
        let usual = |path: &str| DeviceNumber::usual(Path::new(path)).map(|number| (number.major, number.minor));
        assert_eq!(usual("/dev/nvidia3"), Some((195, 3)));
        assert_eq!(["/dev/dri/renderD129", "/dev/dri/card1"].map(usual), [Some((226, 129)), Some((226, 1))]);
        assert_eq!(["/dev/nvidiactl", "/tmp/nvidia3", "/dev/null"].map(usual), [None; 3]);
        assert_eq!([DeviceNumber::of(Path::new("/dev")), DeviceNumber::of(Path::new("/nowhere"))], [None, None]);
    }
}
