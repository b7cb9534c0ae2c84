// SPDX-License-Identifier: Apache-2.0
macro_rules! number {
    ([] $(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        /// A function of the table; as a number its place there.
        #[allow(non_camel_case_types, reason = "the names are libc's")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Symbol {
            $($name),*
        }

        impl Symbol {
            /// All functions, in the table's order.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name)),*
                }
            }
        }
    };
}

symbols!([number]);

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
