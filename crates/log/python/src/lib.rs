// SPDX-License-Identifier: Apache-2.0
//! `tare.log` for Python: the same channels and spans as in Rust. What needs no speed stands in
//! python/tare/log.py.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyImportError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use tare_log::{Codec, Handler, Options, Policy};

#[pymodule(name = "tare_log")]
mod extension {
    #[pymodule_export]
    use super::{Channel, Span};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::refuse_subinterpreters(module.py())
    }
}

/// Classes are there once for the process, and objects of one interpreter are not another's.
fn refuse_subinterpreters(_attached: Python<'_>) -> PyResult<()> {
    const MAIN: i64 = 0;
    // SAFETY: asks for the interpreter of this thread, which is attached to it.
    let interpreter = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if interpreter == MAIN {
        return Ok(());
    }
    Err(PyImportError::new_err("it works in the main interpreter, not in subinterpreters"))
}

/// A stream of events with a name. It stays open until close() is called.
#[pyclass(frozen, module = "tare.log")]
struct Channel(tare_log::Channel);

#[pymethods]
impl Channel {
    #[new]
    #[pyo3(signature = (name, /, *, handler=None, policy=None, codec=None, a=0, b=0))]
    fn new(
        python: Python<'_>,
        name: &str,
        handler: Option<&str>,
        policy: Option<&str>,
        codec: Option<&str>,
        a: u32,
        b: u32,
    ) -> PyResult<Self> {
        if (handler, policy, codec, a, b) == (None, None, None, 0, 0) {
            return Ok(Self(python.detach(|| tare_log::Channel::open(name))));
        }
        let handler = named(Handler::ALL, handler, "handler")?;
        let policy = named(Policy::ALL, policy, "policy")?;
        let codec = codec.map(|codec| named(Codec::ALL, Some(codec), "codec")).transpose()?;
        let options = Options { handler, policy, codec, a, b };
        Ok(Self(python.detach(|| tare_log::Channel::open_with(name, options))))
    }

    /// Logs a number of 64 bits now.
    #[pyo3(signature = (number, /))]
    fn log(&self, python: Python<'_>, number: i64) {
        log(python, self.0, |channel| channel.log(number));
    }

    /// Logs bytes now, of which the first 4096 are kept.
    #[pyo3(signature = (data, /))]
    fn bytes(&self, python: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(bytes) = data.cast::<PyBytes>() {
            let bytes = bytes.as_bytes();
            log(python, self.0, |channel| channel.bytes(bytes));
        } else {
            let bytes = PyBuffer::<u8>::get(data)?.to_vec(python)?;
            log(python, self.0, |channel| channel.bytes(&bytes));
        }
        Ok(())
    }

    /// Discards the channel's events until it is opened again.
    fn close(&self, python: Python<'_>) {
        python.detach(|| self.0.close());
    }
}

/// What begins and ends: two channels, NAME> and NAME<. A context manager, and a decorator.
#[pyclass(frozen, module = "tare.log")]
struct Span {
    span: tare_log::Span,
    number: i64,
}

#[pymethods]
impl Span {
    #[new]
    #[pyo3(signature = (name, /, *, policy=None))]
    fn new(python: Python<'_>, name: &str, policy: Option<&str>) -> PyResult<Self> {
        let options = match policy {
            None => None,
            Some(_) => {
                let policy = named(Policy::ALL, policy, "policy")?;
                Some(Options { policy, ..Options::default() })
            }
        };
        let span = python.detach(|| match options {
            None => tare_log::Span::open(name),
            Some(options) => tare_log::Span::open_with(name, options),
        });
        Ok(Self { span, number: 0 })
    }

    /// The same span with this number at its beginning and its end.
    #[pyo3(signature = (number, /))]
    fn numbered(&self, number: i64) -> Self {
        Self { span: self.span, number }
    }

    fn __enter__(&self, python: Python<'_>) {
        log(python, self.span.channels()[0], |begin| begin.log(self.number));
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, python: Python<'_>, _raised: &Bound<'_, PyTuple>) {
        log(python, self.span.channels()[1], |end| end.log(self.number));
    }

    #[pyo3(signature = (function, /))]
    fn __call__<'python>(
        slf: Bound<'python, Self>,
        function: Bound<'python, PyAny>,
    ) -> PyResult<Bound<'python, PyAny>> {
        slf.py().import("tare.log")?.getattr("_around")?.call1((slf, function))
    }
}

/// Logs, and lets other threads of Python run while this one may have to wait.
#[inline]
fn log(
    python: Python<'_>,
    channel: tare_log::Channel,
    event: impl Send + FnOnce(tare_log::Channel),
) {
    if channel.may_wait() { python.detach(|| event(channel)) } else { event(channel) }
}

fn named<T: Copy + Default>(all: &[(&str, T)], name: Option<&str>, what: &str) -> PyResult<T> {
    let Some(name) = name else { return Ok(T::default()) };
    all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|(known, _)| *known).collect();
        PyValueError::new_err(format!("no {what} {name:?}: it is one of {}", known.join(", ")))
    })
}
