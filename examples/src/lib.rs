//! The examples are the files beside `src`; nothing is shared between them.
