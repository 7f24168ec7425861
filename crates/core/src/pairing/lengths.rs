//! Sessions of which is not known until when they went on.

use std::collections::{BTreeMap, BTreeSet};

use super::{Candidate, Pairs, Seeker};

/// The candidates as they are if each went on for as long as it may have; `None` if that
/// is known of all of them.
///
/// One that has lost its beginning as well may be of any process that fits it.
pub(super) fn longest(seekers: &[Seeker], candidates: &[Candidate]) -> Option<Vec<Candidate>> {
    if candidates.iter().all(|one| one.perhaps_until_ms.is_none()) {
        return None;
    }
    let longest = candidates.iter().cloned().map(|mut one| {
        if one.perhaps_until_ms.is_some() && one.born_at_ms.is_none() {
            let all = seekers.iter().map(|seeker| seeker.pid);
            one.doubtful_owners.extend(all);
        }
        one.last_record_at_ms = one.last_record_at_ms.max(one.perhaps_until_ms);
        one
    });
    Some(longest.collect())
}

/// What is settled both ways. Whoever is not the same in both stays open, with all that
/// it may be in either.
pub(super) fn agreed(mut one: Pairs, other: Pairs) -> Pairs {
    let mut fits: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for pairs in [&one, &other] {
        for (seeker, candidates) in &pairs.open {
            fits.entry(*seeker).or_default().extend(candidates);
        }
        for (seeker, current, _) in &pairs.pairs {
            let left = pairs.superseded.iter().filter(|(_, to)| to == current);
            let its = fits.entry(*seeker).or_default();
            its.extend(left.map(|(left, _)| *left));
            its.insert(*current);
        }
    }
    let is_same = |seeker: usize, candidate: usize| {
        let mut others = other.pairs.iter();
        others.any(|(its, current, _)| (*its, *current) == (seeker, candidate))
    };
    one.pairs
        .retain(|(seeker, candidate, _)| is_same(*seeker, *candidate));
    let is_paired = |candidate: usize| one.pairs.iter().any(|(_, its, _)| *its == candidate);
    one.superseded
        .retain(|left| is_paired(left.1) && other.superseded.contains(left));
    let settled = one.pairs.iter().map(|(_, current, _)| *current);
    let settled: BTreeSet<usize> = settled
        .chain(one.superseded.iter().map(|(left, _)| *left))
        .collect();
    for (seeker, _, _) in &one.pairs {
        fits.remove(seeker);
    }
    let open = fits.into_iter();
    one.open = open
        .map(|(seeker, fits)| (seeker, (&fits - &settled).into_iter().collect()))
        .collect();
    one
}
