//! Pages of an endpoint: which rows are asked for, and what is known about the rest.
//!
//! One row more than the page holds is fetched, so `has_more` is knowledge and not a guess.

/// An offset beyond this is a mistake, and costs the source a scan of everything before it.
pub const START_MAX: u64 = 1_000_000_000;
/// No page is longer, whatever an endpoint's `max_limit` says.
pub const LIMIT_MAX: u32 = 10_000;
pub const DEFAULT_LIMIT: u32 = 100;
pub const DEFAULT_MAX_LIMIT: u32 = 1_000;

/// A page that was asked for and is within its endpoint's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub start: u64,
    pub limit: u32,
}

/// What one page says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paged {
    pub returned: u32,
    pub has_more: bool,
    pub next_start: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    #[error("start must be between 0 and {START_MAX}")]
    Start,
    #[error("limit must be between 1 and {0}")]
    Limit(u32),
}

impl Page {
    pub fn new(start: u64, limit: u32, limit_max: u32) -> Result<Page, PageError> {
        if start > START_MAX {
            return Err(PageError::Start);
        }
        if limit == 0 || limit > limit_max.min(LIMIT_MAX) {
            return Err(PageError::Limit(limit_max.min(LIMIT_MAX)));
        }
        Ok(Page { start, limit })
    }

    /// How many rows to ask the source for.
    pub fn fetch(self) -> u32 {
        self.limit + 1
    }

    /// What `fetched` rows mean.
    pub fn paged(self, fetched: usize) -> Paged {
        let has_more = fetched > self.limit as usize;
        let returned = if has_more { self.limit } else { fetched as u32 };
        Paged {
            returned,
            has_more,
            next_start: has_more.then_some(self.start + u64::from(returned)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Following `next_start` reads every row once and stops at the last.
        #[test]
        fn following_next_start_reads_every_row_once(total in 0u64..500, limit in 1u32..50) {
            let mut start = 0;
            let mut read = 0;
            loop {
                let page = Page::new(start, limit, 1_000).unwrap();
                let fetched = total.saturating_sub(start).min(u64::from(page.fetch()));
                let paged = page.paged(fetched as usize);
                prop_assert!(paged.returned <= limit);
                read += u64::from(paged.returned);
                match paged.next_start {
                    Some(next) => { prop_assert!(paged.has_more && next > start); start = next; }
                    None => { prop_assert!(!paged.has_more); break; }
                }
            }
            prop_assert_eq!(read, total);
        }
    }

    #[test]
    fn a_page_outside_the_bounds_is_refused() {
        assert_eq!(Page::new(0, 0, 1_000), Err(PageError::Limit(1_000)));
        assert_eq!(Page::new(0, 1_001, 1_000), Err(PageError::Limit(1_000)));
        assert_eq!(
            Page::new(0, 20_000, 50_000),
            Err(PageError::Limit(LIMIT_MAX))
        );
        assert_eq!(Page::new(START_MAX + 1, 1, 1_000), Err(PageError::Start));
    }
}
