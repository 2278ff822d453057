//! What is run for each case, on whatever engine. What must come of it, the tests say.

pub mod api;
pub mod matrix;
pub mod nonleaf;
pub mod returns;
pub mod sums;
pub mod surroundings;

use gradpact::{DType, GradDType};

const F16: GradDType = GradDType::Exactly(DType::F16);
const F32: GradDType = GradDType::Exactly(DType::F32);
