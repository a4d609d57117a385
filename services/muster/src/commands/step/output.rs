//! What tasks say, on standard output and standard error of this process.

use muster_schemas::{
    job::ExitStatus,
    step_io::{Content, Frame},
};
use std::{
    collections::BTreeMap,
    io::{self, Write as _},
};

/// A line that grows longer than this is shown as several.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Collects what tasks say. With labels only whole lines are shown.
pub struct Lines {
    label_width: Option<usize>,
    /// Lines whose end has not come, by rank and whether they are errors.
    partial: BTreeMap<(u32, bool), Vec<u8>>,
    output: Vec<u8>,
    errors: Vec<u8>,
    /// Where output and errors go.
    sinks: [Sink; 2],
    highest: u8,
    ended: u32,
}

/// Where what tasks say goes.
pub type Sink = Box<dyn io::Write>;

impl Lines {
    /// With the width of the ranks in front of lines, if they are wanted. All goes to this process's own streams.
    pub fn new(label_width: Option<usize>) -> Self {
        Self::into(label_width, Box::new(io::stdout()), Box::new(io::stderr()))
    }

    /// As above, to somewhere else.
    pub fn into(label_width: Option<usize>, output: Sink, errors: Sink) -> Self {
        Self {
            label_width,
            partial: BTreeMap::new(),
            output: Vec::new(),
            errors: Vec::new(),
            sinks: [output, errors],
            highest: 0,
            ended: 0,
        }
    }

    /// The highest status of a task so far.
    pub fn highest_status(&self) -> u8 {
        self.highest
    }

    /// How many tasks have told how they ended.
    pub fn ended_tasks(&self) -> u32 {
        self.ended
    }

    /// Takes what has come.
    pub fn take(&mut self, frame: Frame<'_>) {
        match frame.content {
            Content::Output(bytes) => self.add(frame.rank, false, bytes),
            Content::Error(bytes) => self.add(frame.rank, true, bytes),
            Content::Ended(status) => {
                self.ended += 1;
                self.highest = self.highest.max(ExitStatus::shell_code(status));
                self.end(frame.rank);
            }
        }
    }

    fn sink(&mut self, is_error: bool) -> &mut Vec<u8> {
        if is_error { &mut self.errors } else { &mut self.output }
    }

    fn add(&mut self, rank: u32, is_error: bool, bytes: &[u8]) {
        let Some(width) = self.label_width else { return self.sink(is_error).extend_from_slice(bytes) };
        let mut line = self.partial.remove(&(rank, is_error)).unwrap_or_default();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if line.len() >= MAX_LINE_BYTES && !piece.ends_with(b"\n") {
                line.push(b'\n');
            }
            if line.ends_with(b"\n") {
                self.label(rank, width, is_error, &line);
                line.clear();
            }
        }
        if !line.is_empty() {
            self.partial.insert((rank, is_error), line);
        }
    }

    fn label(&mut self, rank: u32, width: usize, is_error: bool, line: &[u8]) {
        let sink = self.sink(is_error);
        // Writing to memory cannot fail.
        let _ = write!(sink, "{rank:>width$}: ");
        sink.extend_from_slice(line);
    }

    /// A line that its task did not end is ended here.
    fn end(&mut self, rank: u32) {
        for is_error in [false, true] {
            if let (Some(mut line), Some(width)) = (self.partial.remove(&(rank, is_error)), self.label_width) {
                line.push(b'\n');
                self.label(rank, width, is_error, &line);
            }
        }
    }

    /// Shows what there is.
    pub fn flush(&mut self) -> io::Result<()> {
        for (text, sink) in [&mut self.output, &mut self.errors].into_iter().zip(&mut self.sinks) {
            if !text.is_empty() {
                sink.write_all(text)?;
                sink.flush()?;
                text.clear();
            }
        }
        Ok(())
    }

    /// Shows all that is left: of tasks whose end nobody saw.
    pub fn finish(&mut self) -> io::Result<()> {
        let ranks: Vec<u32> = self.partial.keys().map(|(rank, _)| *rank).collect();
        ranks.into_iter().for_each(|rank| self.end(rank));
        self.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(label_width: Option<usize>) -> String {
        let mut lines = Lines::new(label_width);
        for (rank, text) in [(3, "a\nb"), (10, "x\n"), (3, "c\nd")] {
            lines.take(Frame { rank, content: Content::Output(text.as_bytes()) });
        }
        lines.take(Frame { rank: 3, content: Content::Ended(ExitStatus::Code(2)) });
        assert_eq!(lines.highest_status(), 2);
        String::from_utf8(lines.output).unwrap_or_default()
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_for_ever() {
        let mut lines = Lines::new(Some(1));
        let piece = vec![b'x'; 64 << 10];
        (0..40).for_each(|_| lines.take(Frame { rank: 0, content: Content::Output(&piece) }));
        assert!(lines.partial.values().all(|line| line.len() < MAX_LINE_BYTES));
        lines.take(Frame { rank: 0, content: Content::Ended(ExitStatus::Code(0)) });
        let shown: Vec<&[u8]> = lines.output.split(|byte| *byte == b'\n').collect();
        assert_eq!(
            shown.iter().map(|line| line.len()).collect::<Vec<_>>(),
            [3 + MAX_LINE_BYTES, 3 + MAX_LINE_BYTES, 3 + (8 * (64 << 10)), 0]
        );
    }

    /// SL-R-14
    #[test]
    fn lines_are_labelled_whole_with_ranks_of_one_width() {
        assert_eq!(shown(Some(2)), " 3: a\n10: x\n 3: bc\n 3: d\n");
        assert_eq!(shown(None), "a\nbx\nc\nd");
    }
}
