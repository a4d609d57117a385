//! Prints the output of tasks on standard output and standard error of this process.

use muster_schemas::{
    job::ExitStatus,
    step_io::{Content, Frame},
};
use std::{
    collections::BTreeMap,
    io::{self, Write as _},
};

/// A longer line is split.
const MAX_LINE_BYTES: usize = 1 << 20;

/// How output is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it arrives: it comes from one task, or somebody waits for each character.
    AsItComes,
    /// Lines once they are complete or their task has ended, so that tasks that write in blocks do not cut each other's
    /// lines. No byte is added.
    WholeLines,
    /// Complete lines, each after the rank of its task, padded to this many columns.
    Labelled(usize),
}

impl Form {
    /// The form for this label width, if labels are wanted, and for this many tasks, at once or line by line.
    pub fn of(label_width: Option<usize>, tasks: u32, at_once: bool) -> Self {
        match label_width {
            Some(width) => Self::Labelled(width),
            None if tasks > 1 && !at_once => Self::WholeLines,
            None => Self::AsItComes,
        }
    }
}

/// Collects the output of tasks.
pub struct Lines {
    form: Form,
    /// Incomplete lines, by rank and whether they are errors.
    partial: BTreeMap<(u32, bool), Vec<u8>>,
    output: Vec<u8>,
    errors: Vec<u8>,
    /// Where output and errors go.
    sinks: [Sink; 2],
    highest: u8,
    ended: u32,
}

/// A destination of output.
pub type Sink = Box<dyn io::Write>;

impl Lines {
    /// Writes to the standard streams of this process.
    pub fn new(form: Form) -> Self {
        Self::into(form, Box::new(io::stdout()), Box::new(io::stderr()))
    }

    /// As [`Self::new`], with other destinations.
    pub fn into(form: Form, output: Sink, errors: Sink) -> Self {
        Self {
            form,
            partial: BTreeMap::new(),
            output: Vec::new(),
            errors: Vec::new(),
            sinks: [output, errors],
            highest: 0,
            ended: 0,
        }
    }

    /// The highest status of any task so far.
    pub fn highest_status(&self) -> u8 {
        self.highest
    }

    /// The number of tasks that have reported their end.
    pub fn ended_tasks(&self) -> u32 {
        self.ended
    }

    /// Takes a frame.
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
        match self.form {
            Form::AsItComes => self.sink(is_error).extend_from_slice(bytes),
            Form::WholeLines => self.add_whole_lines(rank, is_error, bytes),
            Form::Labelled(width) => self.add_labelled(rank, width, is_error, bytes),
        }
    }

    fn add_whole_lines(&mut self, rank: u32, is_error: bool, bytes: &[u8]) {
        let mut partial = self.partial.remove(&(rank, is_error)).unwrap_or_default();
        let ended = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let (whole, rest) = bytes.split_at(ended);
        if !whole.is_empty() {
            self.sink(is_error).append(&mut partial);
            self.sink(is_error).extend_from_slice(whole);
        }
        partial.extend_from_slice(rest);
        if partial.len() >= MAX_LINE_BYTES {
            self.sink(is_error).append(&mut partial);
        }
        if !partial.is_empty() {
            self.partial.insert((rank, is_error), partial);
        }
    }

    fn add_labelled(&mut self, rank: u32, width: usize, is_error: bool, bytes: &[u8]) {
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

    /// Ends a line that its task left unfinished, if a label can follow.
    fn end(&mut self, rank: u32) {
        for is_error in [false, true] {
            let Some(mut line) = self.partial.remove(&(rank, is_error)) else { continue };
            match self.form {
                Form::Labelled(width) => {
                    line.push(b'\n');
                    self.label(rank, width, is_error, &line);
                }
                _ => self.sink(is_error).append(&mut line),
            }
        }
    }

    /// Writes what has been collected.
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

    /// Writes everything that is left: output of tasks whose end nobody saw.
    pub fn finish(&mut self) -> io::Result<()> {
        let ranks: Vec<u32> = self.partial.keys().map(|(rank, _)| *rank).collect();
        ranks.into_iter().for_each(|rank| self.end(rank));
        self.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(form: Form) -> String {
        let mut lines = Lines::new(form);
        for (rank, text) in [(3, "a\nb"), (10, "x\n"), (3, "c\nd")] {
            lines.take(Frame { rank, content: Content::Output(text.as_bytes()) });
        }
        lines.take(Frame { rank: 3, content: Content::Ended(ExitStatus::Code(2)) });
        assert_eq!(lines.highest_status(), 2);
        String::from_utf8(lines.output).unwrap_or_default()
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_for_ever() {
        let mut lines = Lines::new(Form::Labelled(1));
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
        assert_eq!(shown(Form::of(Some(2), 11, true)), " 3: a\n10: x\n 3: bc\n 3: d\n");
        assert_eq!(shown(Form::of(None, 11, true)), "a\nbx\nc\nd");
    }

    #[test]
    fn tasks_do_not_cut_lines_of_each_other() {
        assert_eq!(shown(Form::of(None, 11, false)), "a\nx\nbc\nd");
        let mut lines = Lines::new(Form::WholeLines);
        let piece = vec![b'x'; MAX_LINE_BYTES - 1];
        lines.take(Frame { rank: 0, content: Content::Output(&piece) });
        assert!(lines.output.is_empty(), "its end may come");
        lines.take(Frame { rank: 0, content: Content::Output(b"xx") });
        assert_eq!(lines.output.len(), MAX_LINE_BYTES + 1, "nothing is kept for ever, and no byte added");
        assert_eq!(Form::of(None, 1, false), Form::AsItComes, "one task cuts nobody's lines");
    }
}
