//! Random choices that a seed repeats.

/// A generator of the SplitMix64 family.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    /// Begins a sequence that depends on all of `seeds`.
    pub(crate) fn new(seeds: &[u64]) -> Self {
        let mut chance = Self(0x5EED);
        for seed in seeds {
            chance.0 = chance.next() ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        chance
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `count`, which is not 0.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % count).unwrap_or(0)
    }

    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() {
            return None;
        }
        from.get(self.below(from.len()))
    }

    /// An index, each as likely as its weight says.
    pub(crate) fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (at, weight) in weights.iter().enumerate() {
            if left < *weight {
                return at;
            }
            left -= weight;
        }
        0
    }

    /// Lower-case hexadecimal digits.
    pub(crate) fn hex(&mut self, digits: usize) -> String {
        let mut text = String::new();
        while text.len() < digits {
            text += &format!("{:016x}", self.next());
        }
        text.truncate(digits);
        text
    }

    /// A UUID of version 4.
    pub(crate) fn uuid(&mut self) -> String {
        let (a, b, c, d) = (self.hex(8), self.hex(4), self.hex(3), self.hex(3));
        format!("{a}-{b}-4{c}-8{d}-{}", self.hex(12))
    }

    /// A UUID of version 7, which begins with its date.
    pub(crate) fn uuid_of(&mut self, at_ms: i64) -> String {
        let date = format!("{at_ms:012x}");
        let (first, second) = date.split_at(8);
        let (a, b) = (self.hex(3), self.hex(3));
        format!("{first}-{second}-7{a}-8{b}-{}", self.hex(12))
    }
}

#[cfg(test)]
mod tests {
    use super::Chance;

    #[test]
    fn a_seed_repeats_its_choices_and_another_one_does_not() {
        let draw = |seeds: &[u64]| {
            let mut chance = Chance::new(seeds);
            (chance.uuid(), chance.below(1000), chance.hex(5))
        };
        assert_eq!(draw(&[1, 2]), draw(&[1, 2]));
        assert_ne!(draw(&[1, 2]), draw(&[2, 1]));
    }

    #[test]
    fn nothing_is_drawn_that_has_no_weight() {
        let mut chance = Chance::new(&[7]);
        for _ in 0..200 {
            assert_eq!(chance.weighted(&[0, 3, 0]), 1);
        }
    }
}
