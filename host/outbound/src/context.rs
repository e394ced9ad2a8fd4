//! For whose call something is done: what its lines in the log are found by.
//!
//! A task carries it. It costs a copy for each call and nothing while nobody asks.

use std::fmt;
use std::sync::Arc;

use crate::spans::Followed;

/// Bytes of a trace id in hexadecimal, and of a span's.
const TRACE_CHARS: usize = 32;
const SPAN_CHARS: usize = 16;

/// Somebody's trace, as the header `traceparent` of W3C Trace Context has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    id: [u8; TRACE_CHARS],
    /// The span that a call is made in; zeros in a trace that began here.
    span: [u8; SPAN_CHARS],
    is_sampled: bool,
}

impl Trace {
    /// `None`: it is no header of version 00, or one that the standard says to ignore.
    pub fn parse(header: &[u8]) -> Option<Trace> {
        const LENGTH: usize = 2 + 1 + TRACE_CHARS + 1 + SPAN_CHARS + 1 + 2;
        if header.len() != LENGTH || !header.starts_with(b"00-") {
            return None;
        }
        let (id, rest) = header[3..].split_first_chunk::<TRACE_CHARS>()?;
        let (span, rest) = rest[1..].split_first_chunk::<SPAN_CHARS>()?;
        let flags = rest[1..].first_chunk::<2>()?;
        let is_hex = |text: &[u8]| {
            text.iter()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte))
        };
        let is_zero = |text: &[u8]| text.iter().all(|byte| *byte == b'0');
        let dashes = [header[2], header[35], header[52]] == [b'-'; 3];
        let is_valid = dashes && is_hex(id) && is_hex(span) && is_hex(flags);
        (is_valid && !is_zero(id) && !is_zero(span)).then_some(Trace {
            id: *id,
            span: *span,
            // The lowest bit.
            is_sampled: matches!(
                flags[1],
                b'1' | b'3' | b'5' | b'7' | b'9' | b'b' | b'd' | b'f'
            ),
        })
    }

    /// A new one, of these bits.
    pub fn of(bits: u128) -> Trace {
        let mut id = [b'0'; TRACE_CHARS];
        for (place, digit) in id.iter_mut().rev().enumerate() {
            *digit = b"0123456789abcdef"[(bits >> (4 * place)) as usize & 0xf];
        }
        Trace {
            id,
            span: [b'0'; SPAN_CHARS],
            is_sampled: true,
        }
    }

    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// 16 hexadecimal digits.
    pub fn span(&self) -> &str {
        std::str::from_utf8(&self.span).unwrap_or_default()
    }

    /// 32 hexadecimal digits.
    pub fn id(&self) -> &str {
        // Checked when it was parsed.
        std::str::from_utf8(&self.id).unwrap_or_default()
    }
}

/// Somebody's call.
#[derive(Clone, Debug)]
pub struct Context {
    pub request_id: Arc<str>,
    /// The operation's id.
    pub operation: &'static str,
    pub trace: Option<Trace>,
    pub followed: Option<Arc<Followed>>,
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "request_id={}", self.request_id)
    }
}

tokio::task_local! {
    static CONTEXT: Context;
}

/// `work` that is done for this call.
pub fn within<F: Future>(context: Context, work: F) -> impl Future<Output = F::Output> {
    CONTEXT.scope(context, work)
}

/// `work` for the call that something is done for here, wherever it goes on: in a task of its own.
pub fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let context = look(Context::clone);
    async move {
        match context {
            Some(context) => within(context, work).await,
            None => work.await,
        }
    }
}

/// Looks at the call for which something is done here, if it is for one.
pub fn look<T>(at: impl FnOnce(&Context) -> T) -> Option<T> {
    CONTEXT.try_with(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_trace_is_known_by_its_id() {
        let trace = Trace::parse(HEADER.as_bytes()).unwrap();
        assert_eq!(trace.id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(trace.span(), "00f067aa0ba902b7");
        assert!(trace.is_sampled());
        let other = Trace::parse(HEADER.replace("-01", "-02").as_bytes()).unwrap();
        assert!(!other.is_sampled());
        let own = Trace::of(0x0123_4567_89ab_cdef_0000_0000_0000_0001);
        assert_eq!(own.id(), "0123456789abcdef0000000000000001");
    }

    /// What is no trace is none.
    #[test]
    fn what_the_standard_refuses_is_ignored() {
        for bad in [
            "",
            "00-",
            &HEADER.to_uppercase(),
            &HEADER.replacen("00", "ff", 1),
            &HEADER.replace('-', "_"),
            &HEADER.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &HEADER.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &format!("{HEADER}-more"),
        ] {
            assert_eq!(Trace::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
