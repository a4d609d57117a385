//! Traces that events belong to.

use serde::{Deserialize, Serialize};

/// W3C trace context: which trace and span caused this. All zero means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The parent span.
    pub span_id: [u8; 8],
    /// W3C flags; bit 0 means sampled.
    pub flags: u8,
}

impl TraceContext {
    /// Whether there is a context.
    pub fn is_some(&self) -> bool {
        self.trace_id != [0; 16]
    }

    /// The W3C `traceparent` header, if there is a context.
    pub fn to_traceparent(&self) -> Option<String> {
        use std::fmt::Write as _;
        if !self.is_some() {
            return None;
        }
        let mut text = String::with_capacity(55);
        text.push_str("00-");
        for byte in self.trace_id {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('-');
        for byte in self.span_id {
            let _ = write!(text, "{byte:02x}");
        }
        let _ = write!(text, "-{:02x}", self.flags);
        Some(text)
    }

    /// Reads a W3C `traceparent` header; `None` for anything else.
    pub fn from_traceparent(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if version.len() != 2 || version == "ff" || flags.len() != 2 {
            return None;
        }
        let mut context = Self { flags: u8::from_str_radix(flags, 16).ok()?, ..Self::default() };
        from_hex(trace, &mut context.trace_id)?;
        from_hex(span, &mut context.span_id)?;
        context.is_some().then_some(context)
    }
}

fn from_hex(text: &str, bytes: &mut [u8]) -> Option<()> {
    if text.len() != bytes.len() * 2 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(())
}
