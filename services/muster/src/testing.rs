//! For tests: files in the repository that are made from the code.

/// Fails if the file does not hold this text. With `MUSTER_BLESS=1` in the environment the file is written instead.
pub fn assert_file_is(path: &str, text: &str) {
    if std::env::var_os("MUSTER_BLESS").is_some() {
        let folder = std::path::Path::new(path).parent().expect("a file is in a folder");
        std::fs::create_dir_all(folder).expect("the folder can be made");
        std::fs::write(path, text).expect("the file can be written");
        return;
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == text, "{path} is not what the code says; MUSTER_BLESS=1 writes it again");
}
