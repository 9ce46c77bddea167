//! What was used last, up to a limit: memory does not grow with the number of experiments.
//!
//! The writer's own values stand here as they are, to be changed in place; what threads share is in a [`super::cache::Cache`].

use std::collections::HashMap;

/// Values by id, those used least recently dropped first.
pub struct Recent<T> {
    most: usize,
    weight: usize,
    uses: u64,
    // By hash, as nothing here is seen in the map's order: the code of a B-tree is three times as long, for each type of value.
    values: HashMap<String, Used<T>>,
}

struct Used<T> {
    at: u64,
    weight: usize,
    value: T,
}

impl<T> Recent<T> {
    /// At most this many of weight 1, or as many others as weigh no more, whenever [`Recent::trim`] is called.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            weight: 0,
            uses: 0,
            values: HashMap::new(),
        }
    }

    /// Uses a value.
    pub fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        self.uses += 1;
        let used = self.values.get_mut(id)?;
        used.at = self.uses;
        Some(&mut used.value)
    }

    /// Sets a value of weight 1.
    pub fn insert(&mut self, id: &str, value: T) {
        self.insert_weighing(id, 1, value);
    }

    /// Sets a value.
    pub fn insert_weighing(&mut self, id: &str, weight: usize, value: T) {
        self.uses += 1;
        self.weight += weight;
        let used = Used {
            at: self.uses,
            weight,
            value,
        };
        // Nearly always there: then no id is copied.
        if let Some(place) = self.values.get_mut(id) {
            self.weight -= place.weight;
            *place = used;
        } else {
            self.values.insert(id.to_owned(), used);
        }
    }

    /// Drops a value.
    pub fn remove(&mut self, id: &str) {
        if let Some(used) = self.values.remove(id) {
            self.weight -= used.weight;
        }
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.values.clear();
        self.weight = 0;
    }

    /// How many there are.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Drops what was used least recently, if there is too much.
    pub fn trim(&mut self) {
        if self.weight <= self.most {
            return;
        }
        // Down to half the limit, so that a search through all of them is rare.
        let mut used: Vec<_> = self
            .values
            .values()
            .map(|used| (used.at, used.weight))
            .collect();
        used.sort_unstable_by(|one, two| two.cmp(one));
        let room = self.most.div_ceil(2);
        let (mut oldest, mut kept) = (u64::MAX, 0);
        for (at, weight) in used {
            // The newest stays in any case: whoever set it is about to use it.
            if kept > 0 && kept + weight > room {
                break;
            }
            (oldest, kept) = (at, kept + weight);
        }
        self.values.retain(|_, used| used.at >= oldest);
        self.weight = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_stays() {
        let mut recent = Recent::new(4);
        for id in ["a", "b", "c", "d"] {
            recent.insert(id, id.to_owned());
        }
        recent.trim();
        assert_eq!(recent.get_mut("a").unwrap(), "a");
        recent.insert("e", "e".into());
        recent.trim();
        let mut left: Vec<_> = recent.values.keys().map(String::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["a", "e"]);
    }

    #[test]
    fn what_is_replaced_or_removed_weighs_nothing() {
        let mut recent = Recent::new(4);
        for weight in [3, 2, 4] {
            recent.insert_weighing("a", weight, ());
        }
        assert_eq!(recent.weight, 4);
        recent.insert("b", ());
        recent.remove("a");
        assert_eq!(recent.weight, 1);
    }
}
