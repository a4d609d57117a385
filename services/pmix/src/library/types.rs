//! Types and numbers of `pmix_common.h` and `pmix_server.h`, as in version 4.2 of the library. A test compares them
//! with the headers.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// `pmix_status_t`
pub type Status = c_int;
/// `pmix_nspace_t`
pub type Namespace = [c_char; 256];
/// `pmix_key_t`
pub type Key = [c_char; 512];

/// `PMIX_SUCCESS`
pub const STATUS_SUCCESS: Status = 0;
/// `PMIX_ERROR`
pub const STATUS_ERROR: Status = -1;
/// `PMIX_ERR_UNREACH`
pub const STATUS_UNREACH: Status = -25;
/// `PMIX_ERR_NOT_FOUND`
pub const STATUS_NOT_FOUND: Status = -46;
/// `PMIX_ERR_NOT_SUPPORTED`
pub const STATUS_NOT_SUPPORTED: Status = -47;
/// `PMIX_OPERATION_SUCCEEDED`: it is done, and nobody will be called back.
pub const STATUS_OPERATION_SUCCEEDED: Status = -157;

/// `PMIX_RANK_WILDCARD`: all ranks.
pub const RANK_ALL: u32 = u32::MAX - 1;
/// `PMIX_RANK_LOCAL_NODE`: all ranks on this node.
pub const RANK_LOCAL_NODE: u32 = u32::MAX - 2;
/// `PMIX_RANK_LOCAL_PEERS`: all ranks of the namespace on this node.
pub const RANK_LOCAL_PEERS: u32 = u32::MAX - 4;

/// `PMIX_BOOL`
pub const TYPE_BOOL: u16 = 1;
/// `PMIX_STRING`
pub const TYPE_STRING: u16 = 3;
/// `PMIX_UINT16`
pub const TYPE_UINT16: u16 = 13;
/// `PMIX_UINT32`
pub const TYPE_UINT32: u16 = 14;
/// `PMIX_STATUS`
pub const TYPE_STATUS: u16 = 20;
/// `PMIX_INFO`
pub const TYPE_INFO: u16 = 24;
/// `PMIX_DATA_ARRAY`
pub const TYPE_DATA_ARRAY: u16 = 39;
/// `PMIX_PROC_RANK`
pub const TYPE_RANK: u16 = 40;
/// `PMIX_REGEX`
pub const TYPE_REGEX: u16 = 49;

/// `pmix_proc_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Proc {
    pub namespace: Namespace,
    pub rank: u32,
}

/// `pmix_byte_object_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ByteObject {
    pub bytes: *mut c_char,
    pub size: usize,
}

/// `pmix_data_array_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DataArray {
    pub kind: u16,
    pub size: usize,
    pub array: *mut c_void,
}

/// The union in `pmix_value_t`. Members that this crate does not use are represented by their size.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Data {
    pub flag: bool,
    pub uint16: u16,
    pub uint32: u32,
    pub status: Status,
    pub string: *mut c_char,
    pub bytes: ByteObject,
    pub array: *mut DataArray,
    /// `pmix_envar_t`, the largest.
    pub largest: [*mut c_void; 3],
}

/// `pmix_value_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    pub kind: u16,
    pub data: Data,
}

/// `pmix_info_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Info {
    pub key: Key,
    pub flags: u32,
    pub value: Value,
}

/// `pmix_release_cbfunc_t`
pub type Release = unsafe extern "C" fn(*mut c_void);
/// `pmix_op_cbfunc_t`
pub type OperationCallback = unsafe extern "C" fn(Status, *mut c_void);
/// `pmix_modex_cbfunc_t`
pub type ModexCallback = unsafe extern "C" fn(Status, *const c_char, usize, *mut c_void, Option<Release>, *mut c_void);
/// `pmix_spawn_cbfunc_t`
pub type SpawnCallback = unsafe extern "C" fn(Status, *mut c_char, *mut c_void);
/// `pmix_dmodex_response_fn_t`
pub type ModexResponse = unsafe extern "C" fn(Status, *mut c_char, usize, *mut c_void);

/// `pmix_server_client_connected_fn_t`, `pmix_server_client_finalized_fn_t`
pub type ClientCall = unsafe extern "C" fn(*const Proc, *mut c_void, Option<OperationCallback>, *mut c_void) -> Status;
/// `pmix_server_client_connected2_fn_t`
pub type ConnectedCall =
    unsafe extern "C" fn(*const Proc, *mut c_void, *mut Info, usize, Option<OperationCallback>, *mut c_void) -> Status;
/// `pmix_server_abort_fn_t`
pub type AbortCall = unsafe extern "C" fn(
    *const Proc,
    *mut c_void,
    c_int,
    *const c_char,
    *mut Proc,
    usize,
    Option<OperationCallback>,
    *mut c_void,
) -> Status;
/// `pmix_server_fencenb_fn_t`
pub type FenceCall = unsafe extern "C" fn(
    *const Proc,
    usize,
    *const Info,
    usize,
    *mut c_char,
    usize,
    Option<ModexCallback>,
    *mut c_void,
) -> Status;
/// `pmix_server_dmodex_req_fn_t`
pub type DirectCall =
    unsafe extern "C" fn(*const Proc, *const Info, usize, Option<ModexCallback>, *mut c_void) -> Status;

/// `pmix_server_spawn_fn_t`. Nobody looks at what is to be started.
pub type SpawnCall = unsafe extern "C" fn(
    *const Proc,
    *const Info,
    usize,
    *const c_void,
    usize,
    Option<SpawnCallback>,
    *mut c_void,
) -> Status;

/// A function of the module that muster does not offer: null. The library then answers `PMIX_ERR_NOT_SUPPORTED`.
pub type Absent = *const c_void;

/// `pmix_server_module_t`
#[repr(C)]
pub struct ServerModule {
    pub client_connected: Option<ClientCall>,
    pub client_finalized: Option<ClientCall>,
    pub abort: Option<AbortCall>,
    pub fence_nb: Option<FenceCall>,
    pub direct_modex: Option<DirectCall>,
    /// From `publish` to `unpublish`.
    pub names: [Absent; 3],
    pub spawn: Option<SpawnCall>,
    /// From `connect` to `fabric`.
    pub absent: [Absent; 18],
    pub client_connected2: Option<ConnectedCall>,
    /// Later versions of the library have more functions at the end of the struct, and read these.
    pub later: [Absent; 32],
}

/// A name as the library has it; `None` if it is too long.
pub fn name_of(name: &CStr) -> Option<Namespace> {
    let mut field = [0; 256];
    fill(&mut field, name).then_some(field)
}

/// A key as the library has it; `None` if it is too long.
pub fn key_of(key: &str) -> Option<Key> {
    let mut field = [0; 512];
    fill(&mut field, &CString::new(key).ok()?).then_some(field)
}

/// Copies a text with its zero byte, if it fits.
fn fill(field: &mut [c_char], text: &CStr) -> bool {
    let bytes = text.to_bytes_with_nul();
    for (to, from) in field.iter_mut().zip(bytes) {
        *to = *from as c_char;
    }
    bytes.len() <= field.len()
}

/// Whether a field of the library holds this text.
pub fn is_text(field: &[c_char], text: &[u8]) -> bool {
    let zero = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    zero == text.len() && field.iter().zip(text).all(|(left, right)| *left as u8 == *right)
}

/// The length of a packed list, in bytes. It is a text, or `blob:`, `component=zlib:`, `size=N:`, each with a zero byte
/// after it, and N bytes.
///
/// # Safety
/// The pointer is that of such bytes.
pub unsafe fn length_of_map(map: *const c_char) -> usize {
    // SAFETY: in either form the bytes begin with a text.
    let first = unsafe { CStr::from_ptr(map) }.to_bytes_with_nul();
    if first != b"blob:\0" {
        return first.len();
    }
    let mut length = first.len();
    for _ in 0..2 {
        // SAFETY: two more texts follow in this form.
        let text = unsafe { CStr::from_ptr(map.add(length)) };
        length += text.to_bytes_with_nul().len();
        let size =
            text.to_str().ok().and_then(|text| text.strip_prefix("size=")?.strip_suffix(':')?.parse::<usize>().ok());
        length += size.unwrap_or(0);
    }
    length
}

/// Copies an array of texts, and frees it.
///
/// # Safety
/// The pointer is null, or that of an array of pointers to texts with a null pointer as its last; all are from malloc,
/// and nobody else has them.
pub unsafe fn take_texts(texts: *mut *mut c_char) -> Vec<String> {
    let mut taken = Vec::new();
    if texts.is_null() {
        return taken;
    }
    // SAFETY: as the caller says.
    unsafe {
        let mut next = texts;
        while !(*next).is_null() {
            taken.push(CStr::from_ptr(*next).to_string_lossy().into_owned());
            libc::free((*next).cast());
            next = next.add(1);
        }
        libc::free(texts.cast());
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{mem::offset_of, path::Path, process::Command};

    /// Where distributions have the headers.
    const INCLUDES: [&str; 4] = [
        "/usr/lib/x86_64-linux-gnu/pmix2/include",
        "/usr/lib/aarch64-linux-gnu/pmix2/include",
        "/usr/include",
        "/usr/local/include",
    ];

    /// Pairs of a C expression and what it is here.
    fn expected() -> Vec<(&'static str, i64)> {
        let sizes = [
            ("sizeof(pmix_proc_t)", size_of::<Proc>()),
            ("offsetof(pmix_proc_t, rank)", offset_of!(Proc, rank)),
            ("sizeof(pmix_byte_object_t)", size_of::<ByteObject>()),
            ("offsetof(pmix_byte_object_t, size)", offset_of!(ByteObject, size)),
            ("sizeof(pmix_data_array_t)", size_of::<DataArray>()),
            ("offsetof(pmix_data_array_t, size)", offset_of!(DataArray, size)),
            ("offsetof(pmix_data_array_t, array)", offset_of!(DataArray, array)),
            ("sizeof(pmix_value_t)", size_of::<Value>()),
            ("offsetof(pmix_value_t, data)", offset_of!(Value, data)),
            ("sizeof(pmix_info_t)", size_of::<Info>()),
            ("offsetof(pmix_info_t, flags)", offset_of!(Info, flags)),
            ("offsetof(pmix_info_t, value)", offset_of!(Info, value)),
            ("sizeof(pmix_status_t)", size_of::<Status>()),
            ("sizeof(bool)", size_of::<bool>()),
            ("offsetof(pmix_server_module_t, client_finalized)", offset_of!(ServerModule, client_finalized)),
            ("offsetof(pmix_server_module_t, abort)", offset_of!(ServerModule, abort)),
            ("offsetof(pmix_server_module_t, fence_nb)", offset_of!(ServerModule, fence_nb)),
            ("offsetof(pmix_server_module_t, direct_modex)", offset_of!(ServerModule, direct_modex)),
            ("offsetof(pmix_server_module_t, publish)", offset_of!(ServerModule, names)),
            ("offsetof(pmix_server_module_t, spawn)", offset_of!(ServerModule, spawn)),
            ("offsetof(pmix_server_module_t, connect)", offset_of!(ServerModule, absent)),
            ("offsetof(pmix_server_module_t, client_connected2)", offset_of!(ServerModule, client_connected2)),
            ("offsetof(pmix_server_module_t, client_connected2) + sizeof(void *)", offset_of!(ServerModule, later)),
            ("PMIX_RANK_WILDCARD", RANK_ALL as usize),
            ("PMIX_RANK_LOCAL_NODE", RANK_LOCAL_NODE as usize),
            ("PMIX_RANK_LOCAL_PEERS", RANK_LOCAL_PEERS as usize),
            ("PMIX_BOOL", TYPE_BOOL.into()),
            ("PMIX_STRING", TYPE_STRING.into()),
            ("PMIX_UINT16", TYPE_UINT16.into()),
            ("PMIX_UINT32", TYPE_UINT32.into()),
            ("PMIX_STATUS", TYPE_STATUS.into()),
            ("PMIX_INFO", TYPE_INFO.into()),
            ("PMIX_DATA_ARRAY", TYPE_DATA_ARRAY.into()),
            ("PMIX_PROC_RANK", TYPE_RANK.into()),
            ("PMIX_REGEX", TYPE_REGEX.into()),
        ];
        let statuses = [
            ("PMIX_SUCCESS", STATUS_SUCCESS),
            ("PMIX_ERROR", STATUS_ERROR),
            ("PMIX_ERR_UNREACH", STATUS_UNREACH),
            ("PMIX_ERR_NOT_FOUND", STATUS_NOT_FOUND),
            ("PMIX_ERR_NOT_SUPPORTED", STATUS_NOT_SUPPORTED),
            ("PMIX_OPERATION_SUCCEEDED", STATUS_OPERATION_SUCCEEDED),
        ];
        let sizes = sizes.into_iter().map(|(name, value)| (name, value as i64));
        sizes.chain(statuses.into_iter().map(|(name, value)| (name, value.into()))).collect()
    }

    /// SL-W-05
    #[test]
    fn declarations_are_those_of_the_headers() {
        let Some(include) = INCLUDES.iter().find(|folder| Path::new(folder).join("pmix_server.h").is_file()) else {
            return muster_surroundings::skipped(
                "no PMIx headers here (libpmix-dev), so its declarations are not compared",
            );
        };
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("sizes.c"), folder.path().join("sizes"));
        let lines: String =
            expected().iter().map(|(name, _)| format!("printf(\"%lld\\n\", (long long)({name}));\n")).collect();
        let text = format!(
            "#include <stddef.h>\n#include <stdio.h>\n#include <pmix_server.h>\nint main(void) {{\n{lines}}}\n"
        );
        std::fs::write(&source, text).unwrap();
        let Ok(status) = Command::new("cc").arg("-I").arg(include).arg(&source).arg("-o").arg(&program).status() else {
            return muster_surroundings::skipped("no C compiler, so the declarations of PMIx are not compared");
        };
        assert!(status.success());
        let output = Command::new(&program).output().unwrap().stdout;
        let values: Vec<i64> = String::from_utf8(output).unwrap().lines().map(|line| line.parse().unwrap()).collect();
        let found: Vec<_> = expected().iter().map(|(name, _)| *name).zip(values).collect();
        assert_eq!(found, expected());
    }

    #[test]
    fn a_map_has_the_length_of_its_form() {
        let text = b"pmix[n[1:1-2]]\0rest";
        let blob = b"blob:\0component=zlib:\0size=3:\0a\0brest";
        // SAFETY: both are in the forms that the library makes.
        let lengths = unsafe { (length_of_map(text.as_ptr().cast()), length_of_map(blob.as_ptr().cast())) };
        assert_eq!(lengths, (15, 33));
    }

    #[test]
    fn texts_that_do_not_fit_are_refused() {
        assert!(name_of(&CString::new("x".repeat(256)).unwrap()).is_none());
        let name = name_of(&CString::new("x".repeat(255)).unwrap()).unwrap();
        assert!(is_text(&name, "x".repeat(255).as_bytes()) && !is_text(&name, b"x"));
        assert!(key_of("a\0b").is_none() && key_of(&"k".repeat(512)).is_none());
    }
}
