//! Accounts, associations and service classes.

use crate::{
    accounts::{Accounts, Counter},
    state::State,
};
use muster_schemas::{
    JobId, Timestamp,
    accounts::{AccountChange, AccountSettings, AssociationKey},
};
use std::sync::Arc;

impl State {
    pub(crate) fn accounts_changed(&mut self, changes: &[AccountChange]) {
        for change in changes {
            self.accounts.change(change);
            self.budgets_changed(change);
            self.use_forgotten(change);
        }
        self.recount_submitted();
    }

    /// Forgets what ended jobs used, if a change says so. What it is part of in accounts above stays.
    fn use_forgotten(&mut self, change: &AccountChange) {
        let forgotten = |key: &AssociationKey, of: &AssociationKey, accounts: &Accounts| match of.user {
            Some(_) => key == of,
            None => accounts.is_within(&key.account, &of.account),
        };
        match change {
            AccountChange::AssociationUse { of } => {
                let accounts = &self.accounts;
                self.fair_use.forget(|key| forgotten(key, of, accounts));
                self.spent
                    .forget(|counter| matches!(counter, Counter::Association(key) if forgotten(key, of, accounts)));
            }
            AccountChange::ClassUse { name } => {
                self.spent.forget(|counter| matches!(counter, Counter::Class(class) if class == name));
            }
            _ => {}
        }
    }

    pub(crate) fn account_settings_changed(&mut self, settings: &Arc<AccountSettings>, now: Timestamp) {
        self.forget_spent(now);
        self.accounts.settings = settings.clone();
        self.recount_submitted();
    }

    pub(crate) fn class_changed(&mut self, id: JobId, component: Option<u32>, class: &str) {
        let class = self.pools.text.share(class);
        self.set_apart(id);
        self.change_job(id, |job| {
            for (number, part) in job.components.iter_mut().enumerate() {
                if component.is_none_or(|only| only as usize == number) {
                    part.extras.get_or_insert_default().class = Some(class.clone());
                }
            }
            job.planner_reason = None;
        });
    }

    /// Recounts the jobs after a change of what they count for, or of whether they are counted; both affect what may
    /// run.
    fn recount_submitted(&mut self) {
        let mut index = std::mem::take(&mut self.index);
        index.count_submitted(self);
        self.index = index;
        self.note_freed();
    }
}
