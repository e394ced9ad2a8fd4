//! What whoever sits at a terminal sees of work that takes longer than a moment: one line that is gone when the work is done. A script, whose
//! standard error is no terminal, sees nothing of it.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// Between two looks of the line while nothing is counted.
const TICK: Duration = Duration::from_millis(100);
const BUSY: &str = "{spinner} {msg}, {elapsed}";
const BYTES: &str = "{spinner} {msg} {bytes}, {bytes_per_sec}";
const BYTES_OF: &str = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}";
const THINGS: &str = "{msg} {wide_bar} {pos} of {len}, {elapsed}";

/// Work whose length nobody knows, until the bar is dropped.
pub fn busy(what: impl Into<String>) -> ProgressBar {
    let bar = styled(ProgressBar::new_spinner(), BUSY, what);
    bar.enable_steady_tick(TICK);
    bar
}

/// Bytes that are read or written, of `total` where that is known.
pub fn bytes(what: impl Into<String>, total: Option<u64>) -> ProgressBar {
    match total {
        Some(total) => styled(ProgressBar::new(total), BYTES_OF, what),
        None => styled(ProgressBar::new_spinner(), BYTES, what),
    }
}

/// Things that are done one after the other; how many there are is told when it is known.
pub fn things(what: impl Into<String>) -> ProgressBar {
    styled(ProgressBar::new(0), THINGS, what)
}

fn styled(bar: ProgressBar, template: &str, what: impl Into<String>) -> ProgressBar {
    let bar = bar
        .with_finish(ProgressFinish::AndClear)
        .with_message(what.into());
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_read() {
        for template in [BUSY, BYTES, BYTES_OF, THINGS] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
