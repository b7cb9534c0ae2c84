// SPDX-License-Identifier: Apache-2.0
//! The functions that the hook stands in front of and counts: those of the groups that its library
//! exports.

tare_interpose::symbols! { [tare_interpose::number] [] [bytes connections descriptors streams] }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_the_place_in_the_table() {
        for (place, symbol) in Symbol::ALL.iter().enumerate() {
            assert_eq!(*symbol as usize, place);
        }
    }
}
