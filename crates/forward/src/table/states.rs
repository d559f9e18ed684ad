//! What hops remember of a face or of a pending Interest.

use core::any::Any;

/// Which hop of a forwarder a state is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

impl Slot {
    /// Of no hop that remembers anything.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Of the hop for all names that was installed in this place.
    pub(crate) const fn installed(place: usize) -> Self {
        Self(2 * place as u32)
    }

    /// Of a driver's strategy.
    pub(crate) const fn own(place: usize) -> Self {
        Self(2 * place as u32 + 1)
    }
}

type State = (Slot, Box<dyn Any + Send>);

/// The states of one face or entry; of nothing, where no hop has one. They end with it.
#[derive(Debug, Default)]
#[expect(clippy::box_collection, reason = "every entry of a table pays for it")]
pub(crate) struct States(Option<Box<Vec<State>>>);

impl States {
    /// The state of a hop, made where it had none. A hop has one type of states for faces, and one for entries.
    pub(crate) fn get<T: Any + Send + Default>(&mut self, slot: Slot) -> &mut T {
        let states = self.0.get_or_insert_default();
        let known = states
            .iter()
            .position(|(other, state)| *other == slot && state.is::<T>());
        let place = known.unwrap_or_else(|| {
            states.push((slot, Box::<T>::default()));
            states.len() - 1
        });
        let state = states[place].1.downcast_mut();
        state.expect("it was looked for by its type")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hop_has_a_state_of_each_type() {
        let mut states = States::default();
        assert_eq!(size_of::<States>(), size_of::<usize>());
        *states.get::<u32>(Slot(1)) += 3;
        *states.get::<u32>(Slot(2)) += 5;
        states.get::<String>(Slot(1)).push('x');
        *states.get::<u32>(Slot(1)) += 4;
        assert_eq!([*states.get::<u32>(Slot(1)), *states.get(Slot(2))], [7, 5]);
        assert_eq!(states.get::<String>(Slot(1)), "x");
    }
}
