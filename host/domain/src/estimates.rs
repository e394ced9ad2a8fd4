//! What a product might cost, judged by comparable ones and their sales. Refuses to know where those come from.
//!
//! Each comparable counts by how alike it is and by how much it is bought; the estimate is the price in the middle of that weight, and the
//! interval reaches from a fifth of it to four fifths. Nothing is estimated from nothing. Start reading at [`estimate`].

use std::collections::BTreeSet;

/// What makes products alike.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Traits {
    pub category: Option<String>,
    pub sport: Option<String>,
    pub result_type: Option<String>,
    /// Of the name and the tags.
    pub words: BTreeSet<String>,
}

/// A product on sale, with what it costs and how often others ran it lately.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparable {
    pub traits: Traits,
    pub price_credits: i64,
    pub executions: i64,
}

/// What the price is to bring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Target {
    /// Comparables count by what they earn.
    #[default]
    Revenue,
    /// Comparables count by how often they are run.
    Volume,
}

/// What a likeness is made of, and what each part of it counts at most.
pub const FACTORS: [(&str, f64); 4] = [
    ("same_category", 3.0),
    ("same_sport", 3.0),
    ("shared_words", 4.0),
    ("same_result_type", 1.0),
];

const LOW: f64 = 0.2;
const MIDDLE: f64 = 0.5;
const HIGH: f64 = 0.8;
/// So many comparables that count alike make an estimate half sure, if they all cost the same.
const HALF_SURE: f64 = 3.0;

#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    pub price_credits: i64,
    pub low_credits: i64,
    pub high_credits: i64,
    /// From 0 to 1: rises with the comparables that count, falls with how far apart they are.
    pub confidence: f64,
    /// The share of each of [`FACTORS`] in the likeness that the estimate rests on; 1 together.
    pub factors: [f64; 4],
    /// Of each comparable: how alike it is, from 0 to 1, and its share of the weight; 1 together.
    pub likeness: Vec<f64>,
    pub shares: Vec<f64>,
}

/// `None` without a comparable that is alike in anything.
pub fn estimate(of: &Traits, comparables: &[Comparable], target: Target) -> Option<Estimate> {
    let parts: Vec<[f64; 4]> = comparables
        .iter()
        .map(|one| parts(of, &one.traits))
        .collect();
    let best: f64 = FACTORS.iter().map(|(_, most)| most).sum();
    let likeness: Vec<f64> = parts
        .iter()
        .map(|parts| parts.iter().sum::<f64>() / best)
        .collect();
    let sold: Vec<f64> = comparables.iter().map(|one| sold(one, target)).collect();
    let weights: Vec<f64> = likeness
        .iter()
        .zip(&sold)
        .map(|(alike, sold)| alike * sold)
        .collect();
    let total: f64 = weights.iter().sum();
    if total <= 0.0 {
        return None;
    }
    let shares: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
    let mut priced: Vec<(i64, f64)> = comparables
        .iter()
        .zip(&shares)
        .map(|(one, share)| (one.price_credits, *share))
        .collect();
    priced.sort_by_key(|(price, _)| *price);
    let [low, price, high] = [LOW, MIDDLE, HIGH].map(|part| quantile(&priced, part));
    let counting = 1.0 / shares.iter().map(|share| share * share).sum::<f64>();
    let spread = (high - low) as f64 / price.max(1) as f64;
    let mut factors = [0.0; 4];
    for (parts, sold) in parts.iter().zip(&sold) {
        for (factor, part) in factors.iter_mut().zip(parts) {
            *factor += part / best * sold / total;
        }
    }
    Some(Estimate {
        price_credits: price,
        low_credits: low,
        high_credits: high,
        confidence: counting / (counting + HALF_SURE) / (1.0 + spread),
        factors,
        likeness,
        shares,
    })
}

/// How alike two products are, by factor.
fn parts(a: &Traits, b: &Traits) -> [f64; 4] {
    let same = |a: &Option<String>, b: &Option<String>| f64::from(u8::from(a.is_some() && a == b));
    let shared = a.words.intersection(&b.words).count() as f64;
    let all = a.words.union(&b.words).count().max(1) as f64;
    let parts = [
        same(&a.category, &b.category),
        same(&a.sport, &b.sport),
        shared / all,
        same(&a.result_type, &b.result_type),
    ];
    let mut most = FACTORS.iter().map(|(_, most)| most);
    let of = parts.map(|part| part * most.next().unwrap_or(&0.0));
    // A number is like any other number: alone that is no likeness.
    match of[..3].iter().sum::<f64>() > 0.0 {
        true => of,
        false => [0.0; 4],
    }
}

/// What is bought ten times as often counts more, not ten times as much.
fn sold(one: &Comparable, target: Target) -> f64 {
    let sold = match target {
        Target::Volume => one.executions,
        Target::Revenue => one.executions * one.price_credits,
    };
    1.0 + (1.0 + sold.max(0) as f64).ln()
}

/// The price up to which so much of the weight lies. `priced` is sorted, and its shares are 1 together.
fn quantile(priced: &[(i64, f64)], part: f64) -> i64 {
    // Shares that should be a half together may be a little less.
    const ROUNDING: f64 = 1e-9;
    let mut sum = 0.0;
    let reached = priced.iter().find(|(_, share)| {
        sum += share;
        sum + ROUNDING >= part
    });
    reached.or(priced.last()).map_or(0, |(price, _)| *price)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traits(category: &str, words: &str) -> Traits {
        Traits {
            category: Some(category.into()),
            sport: Some("football".into()),
            result_type: Some("number".into()),
            words: words.split(' ').map(str::to_owned).collect(),
        }
    }

    fn one(category: &str, price_credits: i64, executions: i64) -> Comparable {
        Comparable {
            traits: traits(category, "goals per match"),
            price_credits,
            executions,
        }
    }

    /// Comparables that count alike: the price in the middle, an interval around it, and more of them are surer.
    #[test]
    fn the_middle_of_what_is_alike() {
        let of = traits("results", "goals per match");
        let five: Vec<_> = [5, 1, 4, 2, 3].map(|price| one("results", price, 0)).into();
        let estimated = estimate(&of, &five, Target::Volume).unwrap();
        let prices = (
            estimated.low_credits,
            estimated.price_credits,
            estimated.high_credits,
        );
        assert_eq!(prices, (1, 3, 4));
        assert!(estimated.likeness.iter().all(|alike| *alike == 1.0));
        assert!((estimated.shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!((estimated.factors.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let same: Vec<_> = vec![one("results", 3, 0); 5];
        let sure = estimate(&of, &same, Target::Volume).unwrap();
        assert!((sure.confidence - 0.625).abs() < 1e-9);
        assert!(sure.confidence > estimated.confidence);
        let fewer = estimate(&of, &same[..1], Target::Volume).unwrap();
        assert!((fewer.confidence - 0.25).abs() < 1e-9);
    }

    /// What is more alike, and what is bought more, pulls the estimate to its price.
    #[test]
    fn likeness_and_sales_pull() {
        let of = traits("results", "goals per match");
        let price = |comparables: &[Comparable], target| {
            estimate(&of, comparables, target).unwrap().price_credits
        };
        assert_eq!(
            price(&[one("results", 2, 0), one("other", 9, 0)], Target::Volume),
            2
        );
        assert_eq!(
            price(&[one("other", 2, 0), one("results", 9, 0)], Target::Volume),
            9
        );
        assert_eq!(
            price(
                &[one("results", 2, 0), one("results", 9, 500)],
                Target::Volume
            ),
            9
        );
        assert_eq!(
            price(
                &[one("results", 2, 500), one("results", 9, 0)],
                Target::Volume
            ),
            2
        );
        // 60 runs at 2 are fewer credits than 40 at 9.
        let both = [one("results", 2, 60), one("results", 9, 40)];
        assert_eq!(price(&both, Target::Volume), 2);
        assert_eq!(price(&both, Target::Revenue), 9);
    }

    #[test]
    fn nothing_is_estimated_from_nothing() {
        let of = traits("results", "goals per match");
        assert_eq!(estimate(&of, &[], Target::Revenue), None);
        let mut alien = one("other", 5, 5);
        alien.traits.sport = None;
        alien.traits.words = BTreeSet::from(["weather".to_owned()]);
        // Both are numbers.
        assert_eq!(estimate(&of, &[alien], Target::Revenue), None);
    }
}
