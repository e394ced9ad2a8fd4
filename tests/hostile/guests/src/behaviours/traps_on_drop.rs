//! Answers well, and traps when its session is dropped.

use crate::Behaviour;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {}

impl Drop for Guest {
    fn drop(&mut self) {
        super::trap()
    }
}
