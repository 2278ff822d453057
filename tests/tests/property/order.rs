//! Sums do not depend on the order in which their terms were made.

use gradpact::{BackwardOptions, DType, GradDType, Result, backward};
use gradpact_tests::format::round;
use gradpact_tests::lab::{Lab, Run, seen};
use gradpact_tests::log::Seen;
use gradpact_tests::program::{
    Custom, Formula, Leaf, LeafGrad, Output, Pick, Program, Returned, Root, Seed, Step,
};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_assert;
use proptest::sample::select;

use crate::strategy::float;
use crate::{SMALL, Verdict, identical, same_values};

/// Consumers of one tensor: what each one's backward gives, in which dtype, and a shuffled order of them.
type Case = (GradDType, bool, Vec<(DType, f64)>, Vec<usize>);

super::on_every_engine! {
    a_small_gradient_is_the_exact_sum_rounded_once_in_whatever_order_consumers_were_made(31, 1000, case(small()))
        => exact_and_ordered;
    where_any_dtype_is_taken_the_sum_has_the_widest_that_arrived_in_whatever_order(32, 1000, case(Just(GradDType::Any)))
        => exact_and_ordered;
}

fn small() -> impl Strategy<Value = GradDType> + Clone {
    select(SMALL.to_vec()).prop_map(GradDType::Exactly)
}

fn case(grad_dtype: impl Strategy<Value = GradDType> + Clone) -> impl Strategy<Value = Case> {
    // Multiples of 1/64 up to 64: sums of a dozen are exact in `f32`, and round in every smaller dtype.
    let term = (float(), (-4096..=4096_i32).prop_map(|sixtyfourths| f64::from(sixtyfourths) / 64.0));
    (grad_dtype, any::<bool>(), vec(term, 2..12)).prop_flat_map(|(grad_dtype, middle, terms)| {
        let order: Vec<usize> = (0..terms.len()).collect();
        (Just(grad_dtype), Just(middle), Just(terms), Just(order).prop_shuffle())
    })
}

/// A tensor (a leaf, or one in the middle) that is used once for each term; the consumers' backward returns the term.
fn program(grad_dtype: GradDType, middle: bool, terms: impl Iterator<Item = (DType, f64)>) -> Program {
    let tracked = Some(LeafGrad::Declared(grad_dtype));
    let leaf = Leaf { dtype: DType::F32, values: vec![1.0], tracked };
    let mut steps = vec![];
    if middle {
        steps.push(Step::Redeclare(Pick(0), grad_dtype));
    }
    let mut roots = Vec::new();
    for (position, (dtype, term)) in terms.enumerate() {
        let output = Output {
            dtype: DType::F64,
            declared: GradDType::Exactly(DType::F64),
            differentiable: true,
            weights: [1.0; 3],
            converts_input: false,
        };
        steps.push(Step::Custom(Custom {
            inputs: vec![Some(Pick(position))],
            outputs: vec![output],
            declares: true,
            materializes: true,
            saves: false,
            formula: Formula::Values,
            returns: vec![Returned { dtype: Some(dtype), weights: [term; 3], through: None }],
            returns_too_many: false,
        }));
        let seed = Seed { dtype: DType::F32, values: vec![1.0], tracked: false };
        roots.push(Root { at: Pick(position), seed: Some(seed) });
    }
    Program { length: 1, leaves: vec![leaf], steps, roots }
}

fn gradient<E: Lab>(program: &Program) -> Result<Seen> {
    let run = Run::<E>::new(program)?;
    backward(&run.roots(), BackwardOptions::new())?;
    seen(run.variables[0].grad().as_ref())
}

fn exact_and_ordered<E: Lab>((grad_dtype, middle, terms, order): &Case) -> Verdict {
    let in_order = gradient::<E>(&program(*grad_dtype, *middle, terms.iter().copied()))?;
    let shuffled = order.iter().map(|&position| terms[position]);
    let shuffled = gradient::<E>(&program(*grad_dtype, *middle, shuffled))?;
    prop_assert!(identical(&in_order, &shuffled), "{in_order:?}, in another order {shuffled:?}");
    let admitted = |&(dtype, term): &(DType, f64)| match grad_dtype {
        GradDType::Exactly(wanted) => round(*wanted, round(dtype, term)),
        GradDType::Any => round(dtype, term),
    };
    let sum: f64 = terms.iter().map(admitted).sum();
    let Some((dtype, values)) = in_order else { return Err(gradpact::Error::custom("no gradient").into()) };
    prop_assert!(same_values(&values, &[round(dtype, sum) + 0.0]), "{values:?}, exact sum {sum} in {dtype}");
    if let GradDType::Exactly(wanted) = *grad_dtype {
        prop_assert!(dtype == wanted, "{dtype} for {wanted}");
    }
    Ok(())
}
