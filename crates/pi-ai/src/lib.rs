//! stub

#[doc(hidden)]
pub mod testing;
