//! Opening the database, and what can go wrong.

use super::{COMMANDS, FAMILIES, LogError, RECORDS, blocks};
use crate::{retention, room};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompressionType, DBRecoveryMode, LogLevel, Options,
};
use std::{ffi::OsString, path::Path};

const MIB: usize = 1 << 20;

/// Whether a folder is fresh: missing or empty. A folder with a part of a database is damaged.
pub(super) fn check_folder(folder: &Path) -> Result<bool, LogError> {
    let names: Vec<_> = match std::fs::read_dir(folder) {
        Ok(entries) => entries.filter_map(Result::ok).map(|entry| entry.file_name()).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(open_error(folder, error)),
    };
    if names.iter().any(|name| name == "CURRENT") {
        check_files(folder, &names)?;
        return known_families(folder).map(|()| false);
    }
    let is_database = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("MANIFEST") || name.ends_with(".sst") || (name.ends_with(".log") && name.len() > 4)
    };
    if names.iter().any(is_database) {
        return Err(LogError::Damaged { folder: folder.to_owned(), detail: "its file CURRENT is missing".into() });
    }
    Ok(true)
}

/// Whether RocksDB can read its manifest and its write-ahead log. It would read pipes and endless devices without end.
fn check_files(folder: &Path, names: &[OsString]) -> Result<(), LogError> {
    let is_read = |name: &&OsString| {
        let name = name.to_string_lossy();
        name.starts_with("MANIFEST") || (name.ends_with(".log") && name.len() > 4)
    };
    // Nobody opens others, such as `lost+found`.
    let is_opened = |name: &&OsString| {
        let text = name.to_string_lossy();
        is_read(name)
            || text == "CURRENT"
            || text == "IDENTITY"
            || text.starts_with("OPTIONS")
            || text.ends_with(".sst")
    };
    let is_file = |name: &OsString| std::fs::metadata(folder.join(name)).is_ok_and(|found| found.is_file());
    if let Some(name) = names.iter().filter(is_opened).find(|name| !is_file(name)) {
        let detail = format!("its file {} is not a regular file", name.display());
        return Err(LogError::Damaged { folder: folder.to_owned(), detail });
    }
    for name in names.iter().filter(is_read) {
        if blocks::is_damaged(&folder.join(name)).map_err(|error| open_error(folder, error))? {
            let detail = format!("its file {} has records of an unknown kind", name.display());
            return Err(LogError::Damaged { folder: folder.to_owned(), detail });
        }
    }
    Ok(())
}

/// Whether RocksDB gets what it needs to open a database.
pub(super) fn check_room(folder: &Path) -> Result<(), LogError> {
    room::for_database().map_err(|detail| LogError::NoRoom { folder: folder.to_owned(), detail })
}

fn known_families(folder: &Path) -> Result<(), LogError> {
    let names = DB::list_cf(&Options::default(), folder).map_err(|error| explain_open(folder, error))?;
    match names.iter().find(|name| *name != "default" && !FAMILIES.contains(&name.as_str())) {
        Some(name) => Err(LogError::Newer { folder: folder.to_owned(), found: format!("with `{name}`") }),
        None => Ok(()),
    }
}

pub(super) fn open_error(folder: &Path, error: std::io::Error) -> LogError {
    LogError::Storage { folder: folder.to_owned(), action: "opened", detail: error.to_string() }
}

pub(super) fn explain_open(folder: &Path, error: rocksdb::Error) -> LogError {
    let folder = folder.to_owned();
    let kind = error.kind();
    let detail = error.into_string();
    let missing = detail.contains("No such file") || detail.contains("does not exist");
    match kind {
        rocksdb::ErrorKind::IOError if detail.contains("lock") => LogError::InUse(folder),
        rocksdb::ErrorKind::IOError if !missing => LogError::Storage { folder, action: "opened", detail },
        _ => LogError::Damaged { folder, detail },
    }
}

/// Small by default: an idle ledger must not cost more memory than what it serves.
pub(super) fn database_options() -> Options {
    let mut options = Options::default();
    options.set_max_background_jobs(2);
    options.set_db_write_buffer_size(24 * MIB);
    options.set_max_total_wal_size(48 * MIB as u64);
    options.set_max_open_files(128);
    options.set_keep_log_file_num(2);
    options.set_log_level(LogLevel::Warn);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options.set_paranoid_checks(true);
    // A record may be cut short at the very end if the power failed while it was written; damage anywhere else must not
    // silently cut off what follows.
    options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    options.set_track_and_verify_wals_in_manifest(true);
    options
}

pub(super) fn families(retention: Option<retention::Commands>) -> Vec<ColumnFamilyDescriptor> {
    let cache = Cache::new_lru_cache(8 * MIB);
    let family = |name: &str| {
        let mut options = Options::default();
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_write_buffer_size(if name == RECORDS { 12 * MIB } else { 4 * MIB });
        options.set_max_write_buffer_number(2);
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&cache);
        blocks.set_cache_index_and_filter_blocks(true);
        if name == COMMANDS {
            blocks.set_bloom_filter(10.0, false);
            options.set_memtable_prefix_bloom_ratio(0.02);
            options.set_memtable_whole_key_filtering(true);
            if let Some(retention) = &retention {
                retention.install(&mut options);
            }
        }
        options.set_block_based_table_factory(&blocks);
        ColumnFamilyDescriptor::new(name, options)
    };
    let default = ColumnFamilyDescriptor::new("default", Options::default());
    FAMILIES.into_iter().map(family).chain([default]).collect()
}
