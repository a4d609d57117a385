//! Settings that administrators change, accounts, and refused commands.

use super::declare::public_events;
use crate::{
    accounts::{AccountChange, AccountSettings},
    refusal::RefusalCode,
};
use serde::Serialize;
use std::sync::Arc;

public_events! { ConfigData
    /// The actor changed filters, templates, staging, or how resources are given to jobs.
    "config" "changed" ConfigChanged about cluster {
        /// `filters`, `scheduling`, `staging`, or `template NAME`.
        what: String,
        /// The previous value; `null` if it is new.
        #[schema(value_type = Option<Object>)]
        old: Option<serde_json::Value>,
        /// The new value; `null` if it was removed.
        #[schema(value_type = Option<Object>)]
        new: Option<serde_json::Value>,
    }
    says |data, f| match (&data.old, &data.new) {
        (None, _) => write!(f, "{} was made", data.what),
        (_, None) => write!(f, "{} was removed", data.what),
        _ => write!(f, "{} was changed", data.what),
    };

    /// Accounts, users, associations or service classes changed.
    "accounts" "changed" AccountsChanged about cluster {
        /// The changes, in this order.
        changes: Arc<Vec<AccountChange>>,
    }
    says |data, f| match data.changes.as_slice() {
        [change] => write!(f, "{change}"),
        changes => write!(f, "{} accounts, users, associations and classes were changed", changes.len()),
    };

    /// The enforcement of accounts and classes changed.
    "accounts" "settings_changed" AccountsSettingsChanged about cluster {
        /// The settings from now on.
        settings: Arc<AccountSettings>,
    }
    says |_, f| f.write_str("the enforcement of accounts and classes was changed");

    /// The system, or the program that was called, refused a command of the actor; nothing else changed.
    "command" "refused" CommandRefused about command {
        /// The request, such as `submit`; the program and its verb if a program refused, such as `srun`.
        command: String,
        /// The kind of refusal.
        code: RefusalCode,
        /// Why.
        message: String,
        /// Number of earlier refusals of the same user that left no event, because there were too many in a short time.
        unrecorded: u64,
    }
    says |data, f| {
        write!(f, "{} was refused: {}", data.command, data.message)?;
        match data.unrecorded {
            0 => Ok(()),
            more => write!(f, " ({more} refusals before it left no record)"),
        }
    };
}

/// A change of configuration. All keys in a configuration are text, so it always has a JSON value.
pub(super) fn changed<T: Serialize>(what: &str, old: Option<&Arc<T>>, new: Option<&Arc<T>>) -> ConfigChanged {
    let value = |known: Option<&Arc<T>>| known.and_then(|known| serde_json::to_value(known).ok());
    ConfigChanged { what: what.to_owned(), old: value(old), new: value(new) }
}
