//! What a panic says first: the host tells its owner what a component printed before it ended, and after that where it was.
//!
//! Parquet's and Arrow's readers take on trust what can only be seen once a page is unpacked. A component has no way back from a panic, by which its
//! session ends.

use std::sync::Once;

const ADVICE: &str = "the connector broke off: a file may be damaged, or this is a mistake of its own. Write the file anew and try again; if that does not help, show what follows to whoever maintains the connector.";

/// From now on.
pub fn advise() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            eprintln!("{ADVICE}");
            tell(panic);
        }));
    });
}
