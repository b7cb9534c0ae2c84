// SPDX-License-Identifier: Apache-2.0
/// Numbers functions, for a library that counts by function: a callback of
/// [`symbols!`](crate::symbols).
#[macro_export]
macro_rules! number {
    ([] $(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        /// A function of the table; as a number its place among those of the library.
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
