//! The same operations and Functions compiled for the embedded engine alone. The traits for every engine are not in scope here, so
//! each method is the engine's own.

use gradpact::Cpu;
use gradpact::prelude::*;
use gradpact_tests::generic::operations::Operation;

macro_rules! own {
    ($($name:ident: |$x:ident, $y:ident| $operation:expr;)*) => {
        #[allow(unused_variables, reason = "not every operation has two operands")]
        pub(crate) fn operations() -> Vec<Operation<Cpu>> {
            vec![$(Operation {
                name: stringify!($name),
                dynamic: |$x, $y| $operation,
                typed: |$x, $y| $operation,
            }),*]
        }
    };
}
gradpact_tests::for_each_operation!(own);

gradpact_tests::functions!([] Cpu);
