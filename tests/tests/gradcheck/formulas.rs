//! Wrong formulas are found in every dtype, right ones pass.

use gradpact::prelude::*;
use gradpact::testing::{Gradcheck, gradcheck};

use crate::support::{Custom, Found, of, only};

/// A backward formula of a and b and the gradient.
type Formula = fn(&DynTensor, &DynTensor, &DynTensor) -> Result<DynTensor>;

/// `a·b + a²`, matrices, stored in a dtype; with these formulas for both gradients.
fn polynomial(out: DType, grad: DType, [of_a, of_b]: [Formula; 2]) -> Custom {
    let forward = move |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.set_output_grad_dtype(&[GradDType::Exactly(grad)])?;
        let (a, b) = (inputs.get(0)?, inputs.get(1)?);
        ctx.save_for_backward((a, b));
        let (a, b) = (a.cast(DType::F64)?, b.cast(DType::F64)?);
        Ok(a.mul(&b)?.add(&a.mul(&a)?)?.cast(out)?.into())
    };
    Custom::new(forward, move |ctx, grads| {
        let saved = ctx.saved_tensors()?;
        // Computed in f64 and returned in the dtypes of the inputs, so that only the formulas matter.
        let (a, b) = (saved[0].cast(DType::F64)?, saved[1].cast(DType::F64)?);
        let grad = only(&grads).cast(DType::F64)?;
        Ok([of_a(&a, &b, &grad)?.cast(saved[0].dtype())?, of_b(&a, &b, &grad)?.cast(saved[1].dtype())?]
            .into())
    })
}

const OF_A: Formula = |a, b, grad| grad.mul(&b.add(&a.mul_scalar(2.0)?)?);
const OF_B: Formula = |a, _, grad| grad.mul(a);

/// What is wrong, and the formulas.
const WRONG: [(&str, [Formula; 2]); 6] = [
    ("a factor of 2", [OF_A, |a, b, grad| OF_B(a, b, grad)?.mul_scalar(2.0)]),
    ("a factor of ½", [|a, b, grad| OF_A(a, b, grad)?.mul_scalar(0.5), OF_B]),
    ("a sign", [OF_A, |a, b, grad| OF_B(a, b, grad)?.neg()]),
    ("a missing term", [|_, b, grad| grad.mul(b), OF_B]),
    ("the wrong input", [OF_A, |_, b, grad| grad.mul(b)]),
    ("a transposed gradient", [|a, b, grad| OF_A(a, b, &grad.transpose(0, 1)?), OF_B]),
];

/// Storage and gradient dtypes of a Function, and the dtype of its inputs.
const DTYPES: [(DType, DType, DType); 6] = [
    (DType::F64, DType::F64, DType::F64),
    (DType::F32, DType::F32, DType::F32),
    (DType::F16, DType::F32, DType::F32),
    (DType::F16, DType::F16, DType::F16),
    (DType::BF16, DType::F32, DType::F32),
    (DType::BF16, DType::BF16, DType::BF16),
];

/// The 8-bit outputs, which show little.
const EIGHT_BITS: [(DType, DType, DType); 2] =
    [(DType::F8E4M3, DType::F32, DType::F32), (DType::F8E5M2, DType::F32, DType::F32)];

fn inputs(dtype: DType) -> [DynTensor; 2] {
    [of(dtype, &[1.0, -1.5, 0.75, 1.25], [2, 2]), of(dtype, &[0.5, -1.0, 1.5, 0.25], [2, 2])]
}

#[test]
fn right_formulas_pass_in_every_dtype_at_many_points() {
    for (out, grad, dtype) in DTYPES.into_iter().chain(EIGHT_BITS) {
        for nth in 0..20 {
            let value = |offset: f64| (f64::from(nth) * 0.37 + offset).sin() * 1.5;
            let a = of(dtype, &[value(0.0), value(1.0), value(2.0), value(3.0)], [2, 2]);
            let b = of(dtype, &[value(4.0), value(5.0), value(6.0), value(7.0)], [2, 2]);
            // Of some points 8-bit outputs show too little; there is nothing wrong at any.
            let options = Gradcheck::new().seed(nth as u64).allow_unresolved();
            let report = options.check(polynomial(out, grad, [OF_A, OF_B]), (&a, &b)).found();
            assert!(report.passed(), "{out} {grad} {dtype}: {report}");
        }
    }
}

#[test]
fn wrong_formulas_are_found_in_every_dtype() {
    for (out, grad, dtype) in DTYPES {
        let [a, b] = inputs(dtype);
        gradcheck(polynomial(out, grad, [OF_A, OF_B]), (&a, &b)).unwrap();
        for (what, formulas) in WRONG {
            let report = Gradcheck::new().check(polynomial(out, grad, formulas), (&a, &b)).found();
            assert!(!report.mismatches().is_empty(), "{what} in {out} {grad} {dtype}: {report}");
            assert!(report.violations().is_empty(), "{what} in {out} {grad} {dtype}: {report}");
        }
    }
}

#[test]
fn wrong_formulas_of_8_bit_outputs_are_found_against_a_sharper_reference() {
    let exact = |x: &[&DynTensor]| x[0].mul(x[1])?.add(&x[0].mul(x[0])?);
    for (out, grad, dtype) in EIGHT_BITS {
        let [a, b] = inputs(dtype);
        let sharp = Gradcheck::new().against(exact);
        let right = sharp.check(polynomial(out, grad, [OF_A, OF_B]), (&a, &b)).found();
        assert!(right.passed(), "{out}: {right}");
        for (what, formulas) in WRONG {
            let report = sharp.check(polynomial(out, grad, formulas), (&a, &b)).found();
            assert!(!report.mismatches().is_empty(), "{what} in {out}: {report}");
        }
        // By their own values the grossest mistake is.
        let blunt = Gradcheck::new().allow_unresolved();
        let negated: Formula = |a, b, grad| OF_A(a, b, grad)?.neg();
        let report = blunt.check(polynomial(out, grad, [negated, OF_B]), (&a, &b)).found();
        assert!(!report.mismatches().is_empty(), "{out}: {report}");
    }
}

#[test]
fn small_errors_are_found_as_the_documentation_says() {
    let [a, b] = inputs(DType::F32);
    let in_f16: Formula = |a, b, grad| OF_A(a, b, grad)?.mul_scalar(1.05);
    let in_bf16: Formula = |a, b, grad| OF_A(a, b, grad)?.mul_scalar(1.2);
    for (out, formula) in [(DType::F16, in_f16), (DType::BF16, in_bf16)] {
        let report = Gradcheck::new().check(polynomial(out, DType::F32, [formula, OF_B]), (&a, &b)).found();
        assert!(!report.mismatches().is_empty(), "{out}: {report}");
    }
}

#[test]
fn wrong_formulas_are_found_by_random_combinations_too() {
    for (out, grad, dtype) in DTYPES {
        let [a, b] = inputs(dtype);
        let fast = Gradcheck::new().fast();
        let right = fast.check(polynomial(out, grad, [OF_A, OF_B]), (&a, &b)).found();
        assert!(right.passed(), "{out} {grad} {dtype}: {right}");
        for (what, formulas) in WRONG {
            let report = fast.check(polynomial(out, grad, formulas), (&a, &b)).found();
            assert!(!report.passed(), "{what} in {out} {grad} {dtype}: {report}");
        }
    }
}

#[test]
fn the_report_names_the_function_both_elements_and_all_numbers() {
    let [a, b] = inputs(DType::F64);
    let zero: Formula = |a, b, grad| {
        // Wrong for one element only: row 1, column 0.
        let mask = DynTensor::from_vec(vec![1.0, 1.0, 0.0, 1.0], [2, 2])?;
        OF_B(a, b, grad)?.mul(&mask)
    };
    let report = Gradcheck::new().check(polynomial(DType::F64, DType::F64, [OF_A, zero]), (&a, &b)).found();
    let [mismatch] = report.mismatches() else { panic!("{report}") };
    assert_eq!((mismatch.output, mismatch.input), (0, 1));
    assert_eq!((&mismatch.output_element, &mismatch.input_element), (&Some(vec![1, 0]), &Some(vec![1, 0])));
    assert_eq!(mismatch.analytic, 0.0);
    assert!((mismatch.numeric - 0.75).abs() < 1e-9, "the exact derivative is a[1, 0]");
    let text = report.to_string();
    for part in [
        "gradcheck of `Custom` failed",
        "1 of 32 derivatives are wrong",
        "d(output 0 [1, 0]) / d(input 1 [1, 0]): analytic 0.0, numeric 0.7",
        "difference 7.500e-1, tolerance",
        "output 0 (f64) by input 1 (f64): 16 compared, up to 1.5",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_failed_check_is_an_error_that_holds_the_report() {
    let double = Custom::double(DType::F32, None, |grad| grad.mul_scalar(3.0));
    let error = gradcheck(double, &of(DType::F32, &[1.0], [1])).unwrap_err();
    let report = error.downcast_ref::<gradpact::testing::GradcheckReport>().unwrap();
    assert_eq!(error.to_string(), report.to_string());
    assert_eq!(report.mismatches().len(), 1);
    assert!(!report.passed() && report.name() == "Custom");
}
