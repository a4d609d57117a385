//! Signals by name and number.

use super::number;

/// A signal before the time limit (SL-C-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalAhead {
    /// Its number.
    pub signal: u8,
    /// The time before the end.
    pub seconds_before_end: u32,
    /// Whether the batch script gets it (`B:`); otherwise only steps do.
    pub batch_script: bool,
}

impl SignalAhead {
    /// Reads `[R|B:]SIGNAL[@SECONDS]`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (flags, rest) = text.split_once(':').unwrap_or(("", text));
        if !flags.bytes().all(|flag| matches!(flag.to_ascii_uppercase(), b'B' | b'R')) {
            return None;
        }
        let (signal, seconds) = rest.split_once('@').unwrap_or((rest, "60"));
        let seconds_before_end = number(seconds).filter(|seconds| *seconds <= 0xffff)?;
        Some(Self {
            signal: signal_number(signal)?,
            seconds_before_end,
            batch_script: flags.to_ascii_uppercase().contains('B'),
        })
    }
}

const SIGNALS: [(&str, u8); 22] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("URG", 23),
    ("XCPU", 24),
    ("WINCH", 28),
];

/// The name of a signal, without `SIG`; `None` for numbers without a name here.
pub fn signal_name(number: u8) -> Option<&'static str> {
    SIGNALS.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
}

/// The number of a signal, given as a number from 1 to 64 or as a name in any case, with or without `SIG`.
pub fn signal_number(text: &str) -> Option<u8> {
    if let Some(number) = number(text) {
        return u8::try_from(number).ok().filter(|number| (1..=64).contains(number));
    }
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}
