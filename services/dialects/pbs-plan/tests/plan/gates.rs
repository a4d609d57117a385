//! The gates of the presets.
