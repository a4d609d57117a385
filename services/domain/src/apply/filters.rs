//! Chains of filters, templates, and holds until a time.

use crate::state::State;
use muster_schemas::event::{Event, Record};

impl State {
    pub(super) fn filters_changed(&mut self, record: &Record) {
        match &record.event {
            Event::FilterSettingsSet { settings, .. } => self.filters.settings = settings.clone(),
            Event::TemplateSet { template, .. } => {
                self.filters.template_revisions = self.filters.template_revisions.max(template.revision);
                self.filters.templates.insert(template.name.to_lowercase(), template.clone());
            }
            Event::TemplateRemoved { old } => {
                self.filters.templates.remove(&old.name.to_lowercase());
            }
            Event::PlannerStarted { epoch } => self.filters.planner_epoch = *epoch,
            _ => {}
        }
    }
}
