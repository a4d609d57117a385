//! The file `config` of the presets (PBS-P-02, PBS-P-03, PBS-P-23).

mod kinds;
mod options;
mod reading;
mod settings;
mod shown;

pub use kinds::{BackfillMode, Enforced, Preset, QueueName, RestartAction, Variance};
pub use options::readers;
pub use reading::read;
pub use settings::PresetConfig;
pub use shown::options;
