//! Does what it should, at once.

use crate::Behaviour;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {}
