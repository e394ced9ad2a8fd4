//! Values for the periods that have none. Knows places in a list, and no times.

/// The values, and between them what lies on a straight line; where there is a season, on one through what they are without it, so that a Sunday which is
/// missing is one of the Sundays and not like its neighbours.
pub fn filled(places: &[Option<f64>], season: Option<usize>) -> Vec<f64> {
    let straight = lines(places);
    let Some(season) = season.filter(|_| places.contains(&None)) else {
        return straight;
    };
    let pattern = pattern(places, &straight, season);
    let above = |place: usize| pattern[place % season];
    let levels: Vec<Option<f64>> = (0..places.len())
        .map(|place| Some(places[place]? - above(place)?))
        .collect();
    let levels = lines(&levels);
    let fill = |place: usize| match (places[place], above(place)) {
        (Some(value), _) => value,
        (None, Some(above)) => levels[place] + above,
        // Of a part of the season that never has a value nothing else is known.
        (None, None) => straight[place],
    };
    (0..places.len()).map(fill).collect()
}

/// The values, and straight lines between them. Before the first and behind the last it is as they are.
fn lines(places: &[Option<f64>]) -> Vec<f64> {
    let known: Vec<(usize, f64)> = places
        .iter()
        .enumerate()
        .filter_map(|(place, value)| Some((place, (*value)?)))
        .collect();
    let fill = |place: usize| {
        let next = known.partition_point(|(at, _)| *at < place);
        let before = next.checked_sub(1).and_then(|before| known.get(before));
        match (before, known.get(next)) {
            (Some((from, first)), Some((to, second))) => {
                let part = (place - from) as f64 / (to - from) as f64;
                first * (1.0 - part) + second * part
            }
            (Some((_, value)), None) | (None, Some((_, value))) => *value,
            (None, None) => 0.0,
        }
    };
    (0..places.len())
        .map(|place| places[place].unwrap_or_else(|| fill(place)))
        .collect()
}

/// How far each part of a season is above the mean of the season around it, where values say so.
fn pattern(places: &[Option<f64>], straight: &[f64], season: usize) -> Vec<Option<f64>> {
    let half = season / 2;
    let mut sums = vec![(0.0, 0_u32); season];
    for (first, around) in straight.windows(2 * half + 1).enumerate() {
        let place = first + half;
        let Some(value) = places[place] else {
            continue;
        };
        // Of an even number of parts the one half a season away is there twice, and counts half each time.
        let twice = match season % 2 {
            0 => (around[0] + around[season]) / 2.0,
            _ => 0.0,
        };
        let mean = (around.iter().sum::<f64>() - twice) / season as f64;
        let (sum, count) = &mut sums[place % season];
        *sum += value - mean;
        *count += 1;
    }
    sums.into_iter()
        .map(|(sum, count)| (count > 0).then(|| sum / f64::from(count)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a rising line with a season of `pattern` the missing values are what they would have been.
    fn assert_filled(pattern: &[f64], missing: &[usize]) {
        let truth = |place: usize| place as f64 + pattern[place % pattern.len()];
        let length = pattern.len() * 4;
        let places: Vec<Option<f64>> = (0..length)
            .map(|place| (!missing.contains(&place)).then(|| truth(place)))
            .collect();
        let filled = filled(&places, Some(pattern.len()));
        for (place, value) in filled.iter().enumerate() {
            let tolerance = if missing.contains(&place) { 4.0 } else { 0.0 };
            let distance = (value - truth(place)).abs();
            assert!(distance <= tolerance, "{place}: {filled:?}");
        }
    }

    /// What is missing of a season is filled by its place in it, at the ends too.
    #[test]
    fn gaps_are_filled_by_their_place_in_the_season() {
        assert_filled(&[100.0, 100.0, 100.0, 100.0, 100.0, 10.0, 0.0], &[5, 13]);
        assert_filled(&[100.0, 100.0, 100.0, 100.0, 100.0, 10.0, 0.0], &[26]);
        assert_filled(&[50.0, -20.0, 0.0, 30.0], &[2, 13]);
    }

    #[test]
    fn without_a_season_gaps_are_straight_lines() {
        let places = [Some(1.0), None, None, Some(4.0), Some(0.1)];
        assert_eq!(filled(&places, None), [1.0, 2.0, 3.0, 4.0, 0.1]);
        // A part of the season that is never there.
        let weekdays = [Some(1.0), None, Some(1.0), None, Some(1.0), None, Some(1.0)];
        assert_eq!(filled(&weekdays, Some(2)), [1.0; 7]);
        assert_eq!(filled(&[None, None], Some(2)), [0.0; 2]);
        assert!(filled(&[], None).is_empty());
    }

    /// The difference of two large numbers may be none.
    #[test]
    fn gaps_between_large_numbers_have_numbers() {
        let places = [Some(1.7e308), None, Some(-1.7e308)];
        assert!(filled(&places, None)[1].is_finite());
    }
}
