//! A wish from outside that a scheduling program be read again.

use std::sync::Arc;
use tokio::sync::Notify;

/// Has a scheduling program read again. Several wishes before that are one.
#[derive(Clone, Debug, Default)]
pub struct Reload(Arc<Notify>);

impl Reload {
    /// Asks for it.
    pub fn ask(&self) {
        self.0.notify_one();
    }

    pub(crate) async fn asked(&self) {
        self.0.notified().await;
    }
}
