//! How much of the component's memory is given out.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Both run over, and their difference is right nevertheless: it has less than 32 bits.
static GIVEN: AtomicUsize = AtomicUsize::new(0);
static READ: AtomicUsize = AtomicUsize::new(0);

pub struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

// SAFETY: everything is done by the system's allocator; only sizes are counted.
#[allow(unsafe_code, reason = "there is no other way to see what is allocated")]
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        GIVEN.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        GIVEN.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        GIVEN.fetch_add(size.wrapping_sub(layout.size()), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        GIVEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Bytes that a file was read for: the host puts them where this allocator says, and the C library takes them back without asking it.
pub fn read(bytes: usize) {
    READ.fetch_add(bytes, Ordering::Relaxed);
}

pub fn held() -> usize {
    let held = GIVEN
        .load(Ordering::Relaxed)
        .wrapping_sub(READ.load(Ordering::Relaxed));
    usize::try_from(held as isize).unwrap_or(0)
}
