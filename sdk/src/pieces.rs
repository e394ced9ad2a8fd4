//! Messages with their length in front, out of a stream that comes in pieces of any size. For a [`Machine`](crate::Machine) over TCP.

/// Room that stays set aside for messages that arrive in pieces.
const KEPT_BYTES: usize = 256 << 10;

/// The beginning of a message whose end has not come yet.
#[derive(Default)]
pub struct Pieces {
    partial: Vec<u8>,
}

impl Pieces {
    /// Whether no message has begun.
    pub fn is_empty(&self) -> bool {
        self.partial.is_empty()
    }

    /// What has come, of which the first `skipped` bytes are of nobody's interest. `take` takes whole messages off the front of what is
    /// there and answers how many bytes they were; `whole` says of one that has begun how long it is, as soon as that can be told. What
    /// arrives whole is not copied.
    #[inline]
    pub fn feed<E>(
        &mut self,
        bytes: Vec<u8>,
        skipped: usize,
        take: impl FnOnce(&[u8]) -> Result<usize, E>,
        whole: impl FnOnce(&[u8]) -> Option<usize>,
    ) -> Result<(), E> {
        if self.partial.is_empty() {
            let used = skipped + take(&bytes[skipped..])?;
            if used == 0 {
                self.partial = bytes;
            } else if used < bytes.len() {
                self.partial.extend_from_slice(&bytes[used..]);
            }
        } else {
            self.partial.extend_from_slice(&bytes[skipped..]);
            let used = take(&self.partial)?;
            self.partial.drain(..used);
            if used > 0 {
                // A long message's room is not kept for short ones.
                self.partial.shrink_to(KEPT_BYTES);
            }
        }
        if let Some(whole) = whole(&self.partial) {
            // Room for the whole message at once: doubling would take three times as much.
            let missing = whole.saturating_sub(self.partial.len());
            self.partial.reserve_exact(missing);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of a byte of length and a text.
    fn messages(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut buffer, mut came) = (Pieces::default(), Vec::new());
        for piece in pieces {
            let take = |bytes: &[u8]| {
                let mut rest = bytes;
                while let Some((length, more)) = rest.split_first()
                    && let Some((message, more)) = more.split_at_checked(usize::from(*length))
                {
                    came.push(message.to_vec());
                    rest = more;
                }
                Ok::<_, ()>(bytes.len() - rest.len())
            };
            let whole = |begun: &[u8]| Some(1 + usize::from(*begun.first()?));
            buffer.feed(piece.to_vec(), 0, take, whole).unwrap();
        }
        assert!(buffer.is_empty());
        came
    }

    /// However a stream is cut, the same messages come out of it.
    #[test]
    fn cuts_do_not_matter() {
        let stream = b"\x03abc\x00\x05defgh\x01i";
        let whole = messages(&[stream]);
        assert_eq!(whole, [&b"abc"[..], b"", b"defgh", b"i"]);
        for at in 0..stream.len() {
            let (one, other) = stream.split_at(at);
            assert_eq!(messages(&[one, other]), whole, "{at}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(messages(&bytes), whole);
    }
}
