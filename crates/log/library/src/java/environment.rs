// SPDX-License-Identifier: Apache-2.0
//! The few functions of JNI that are needed, by their places in the table that every JVM hands
//! to native methods (Java Native Interface Specification, chapter 4).

use core::ffi::{CStr, c_char, c_void};
use core::marker::PhantomData;
use core::mem::{MaybeUninit, transmute, transmute_copy};
use core::slice;

pub type Object = *mut c_void;
pub type Class = Object;
pub type Array = Object;
type Method = *mut c_void;

const FIND_CLASS: usize = 6;
const EXCEPTION_CLEAR: usize = 17;
const GET_METHOD_ID: usize = 33;
const CALL_VOID_METHOD_A: usize = 63;
const GET_ARRAY_LENGTH: usize = 171;
const GET_BYTE_ARRAY_REGION: usize = 200;
const EXCEPTION_CHECK: usize = 228;
const FUNCTIONS: usize = 229;

/// What a native method is given first; valid until it returns.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Environment<'call>(*const *const [*const c_void; FUNCTIONS], PhantomData<&'call ()>);

impl Environment<'_> {
    /// The function at `place`.
    ///
    /// # Safety
    /// `F` is the type that the specification gives for it, after the environment.
    unsafe fn function<F: Copy>(self, place: usize) -> F {
        const { assert!(size_of::<F>() == size_of::<*const c_void>()) };
        // SAFETY: the JVM's word for the table, the caller's for the type.
        unsafe { transmute_copy(&(**self.0)[place]) }
    }

    /// Copies what `array` has from `from` on, as much as there is room for; says how much.
    pub fn copy(self, array: Array, from: usize, out: &mut [u8]) -> usize {
        // SAFETY: bytes that are initialised may be taken for such that need not be.
        let out = unsafe { transmute::<&mut [u8], &mut [MaybeUninit<u8>]>(out) };
        let length = i32::try_from(out.len()).unwrap_or(i32::MAX);
        self.copy_range(array, i32::try_from(from).unwrap_or(i32::MAX), length, out).len()
    }

    /// As `copy`, `length` bytes at most.
    pub fn copy_range(
        self,
        array: Array,
        from: i32,
        length: i32,
        out: &mut [MaybeUninit<u8>],
    ) -> &[u8] {
        if array.is_null() || from < 0 {
            return &[];
        }
        type Length = unsafe extern "C" fn(Environment<'_>, Array) -> i32;
        type Region = unsafe extern "C" fn(Environment<'_>, Array, i32, i32, *mut u8);
        // SAFETY: an array of bytes, and a range inside of it and of `out`.
        unsafe {
            let there = self.function::<Length>(GET_ARRAY_LENGTH)(self, array) - from;
            let room = i32::try_from(out.len()).unwrap_or(i32::MAX);
            let length = length.min(there).min(room).max(0);
            let region = self.function::<Region>(GET_BYTE_ARRAY_REGION);
            region(self, array, from, length, out.as_mut_ptr().cast());
            slice::from_raw_parts(out.as_ptr().cast(), length as usize)
        }
    }

    /// Calls a method of `object` that returns nothing; whether it is there and threw nothing.
    pub fn call(
        self,
        object: Object,
        class: &CStr,
        name: &CStr,
        signature: &CStr,
        arguments: &[Object],
    ) -> bool {
        type Find = unsafe extern "C" fn(Environment<'_>, *const c_char) -> Class;
        type Get =
            unsafe extern "C" fn(Environment<'_>, Class, *const c_char, *const c_char) -> Method;
        type Call = unsafe extern "C" fn(Environment<'_>, Object, Method, *const Object);
        type Check = unsafe extern "C" fn(Environment<'_>) -> u8;
        type Clear = unsafe extern "C" fn(Environment<'_>);
        // SAFETY: strings that end with 0; a method of the object's class; a `jvalue` is as
        // wide as an object. After an exception nothing is called but what clears it.
        unsafe {
            let class = self.function::<Find>(FIND_CLASS)(self, class.as_ptr());
            if !class.is_null() {
                let get = self.function::<Get>(GET_METHOD_ID);
                let method = get(self, class, name.as_ptr(), signature.as_ptr());
                if !method.is_null() {
                    let call = self.function::<Call>(CALL_VOID_METHOD_A);
                    call(self, object, method, arguments.as_ptr());
                    if self.function::<Check>(EXCEPTION_CHECK)(self) == 0 {
                        return true;
                    }
                }
            }
            self.function::<Clear>(EXCEPTION_CLEAR)(self);
        }
        false
    }
}
