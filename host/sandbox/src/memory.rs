//! Memory on a company's account: the linear memory of its guests, and what the host holds for it meanwhile of results and responses. One
//! share of the company's and one of the host's pay for both, so that no way of holding memory goes round the other.

use std::{fmt, sync::Arc};

use crate::{
    fault::{Blame, Fault, FaultKind, MEMORY_EXHAUSTED},
    tenants::Tenant,
};

/// What one request, response or stream may hold without being counted. What most need: counting it would cost more than it is worth.
const UNCOUNTED_BYTES: usize = 64 << 10;
/// What grows is counted in such steps.
const STEP_BYTES: usize = 256 << 10;

/// The shares that memory is taken from.
#[derive(Clone)]
pub(crate) struct MemoryAccount {
    pub company: Arc<Tenant>,
    pub company_max: usize,
    /// All companies of this host.
    pub host: Arc<Tenant>,
    pub host_max: usize,
}

/// Whose bound a growth of memory met: a trap that follows is for want of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryRefused {
    Session,
    Company,
    Host,
}

impl MemoryAccount {
    pub fn take(&self, bytes: usize) -> Result<(), MemoryRefused> {
        if !self.company.take_memory(bytes, self.company_max) {
            return Err(MemoryRefused::Company);
        }
        if !self.host.take_memory(bytes, self.host_max) {
            self.company.give_memory(bytes);
            return Err(MemoryRefused::Host);
        }
        Ok(())
    }

    pub fn give(&self, bytes: usize) {
        self.company.give_memory(bytes);
        self.host.give_memory(bytes);
    }
}

impl MemoryRefused {
    /// As an answer.
    pub fn fault(self) -> Fault {
        let busy = |what: &str| Fault::exhausted(MEMORY_EXHAUSTED, what);
        match self {
            MemoryRefused::Session => Fault::new(
                Blame::Connector,
                FaultKind::OutOfMemory,
                "the connector ran out of its memory",
            ),
            MemoryRefused::Company => busy(
                "the connectors of this company use all the memory that one company may have: try again shortly",
            )
            .stopped(),
            MemoryRefused::Host => {
                busy("the connectors of this host use all their memory: try again shortly")
            }
        }
    }
}

/// What the host holds for a company beside its guests. Dropping it gives it back.
pub(crate) struct HeldMemory {
    account: MemoryAccount,
    bytes: usize,
}

impl HeldMemory {
    pub fn new(account: MemoryAccount) -> HeldMemory {
        HeldMemory { account, bytes: 0 }
    }

    /// Counts `bytes` in all, as long as there is room for them.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), MemoryRefused> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let bytes = bytes.div_ceil(STEP_BYTES).saturating_mul(STEP_BYTES);
        self.account.take(bytes - self.bytes)?;
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.account.give(self.bytes);
    }
}

impl fmt::Debug for HeldMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes)
    }
}

/// Counts `bytes` in all in `held`, which is made when they are many.
#[inline]
pub(crate) fn hold(
    held: &mut Option<HeldMemory>,
    account: &MemoryAccount,
    bytes: usize,
) -> Result<(), MemoryRefused> {
    if bytes <= UNCOUNTED_BYTES {
        return Ok(());
    }
    held.get_or_insert_with(|| HeldMemory::new(account.clone()))
        .grow_to(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenants::Tenants;

    const MIB: usize = 1 << 20;

    /// What is held is on the company's account and the host's until it is let go; whoever is refused has taken nothing.
    #[test]
    fn held_memory_is_on_two_accounts() {
        let (tenants, host) = (Tenants::default(), Tenants::default().of("host"));
        let account = |company| MemoryAccount {
            company: tenants.of(company),
            company_max: 2 * MIB,
            host: host.clone(),
            host_max: 3 * MIB,
        };
        let (one, other) = (account("one"), account("other"));
        let (mut first, mut second) = (None, None);
        hold(&mut first, &one, UNCOUNTED_BYTES).unwrap();
        assert!(first.is_none());
        hold(&mut first, &one, 2 * MIB).unwrap();
        assert_eq!(
            hold(&mut first, &one, 2 * MIB + 1),
            Err(MemoryRefused::Company)
        );
        assert_eq!((one.company.memory(), host.memory()), (2 * MIB, 2 * MIB));
        hold(&mut second, &other, MIB - 1).unwrap();
        assert_eq!(hold(&mut second, &other, MIB + 1), Err(MemoryRefused::Host));
        assert_eq!((other.company.memory(), host.memory()), (MIB, 3 * MIB));
        drop(first);
        hold(&mut second, &other, 2 * MIB).unwrap();
        drop(second);
        assert_eq!((other.company.memory(), host.memory()), (0, 0));
    }
}
