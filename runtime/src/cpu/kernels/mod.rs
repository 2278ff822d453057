//! Arithmetic on arrays. No autograd here.
