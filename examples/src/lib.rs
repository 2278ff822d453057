//! The crate's parts are beside this file.
