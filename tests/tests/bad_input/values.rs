//! Values that are no ordinary numbers, and tensors with no elements.

use gradpact::{BackwardOptions, DType, DynTensor, GradDType, Shape};
use gradpact_tests::toy::{Toy, ToyArray, mul, tensor};

use crate::{Probe, leaf, values};

#[test]
fn nan_and_infinities_travel_to_the_leaf_as_what_its_gradient_dtype_makes_of_them() {
    for dtype in DType::FLOATS {
        let x = tensor(DType::F32, &[1.0; 3]).requiring_grad_in(GradDType::Exactly(dtype)).unwrap();
        let y = Probe::identity().on(&[&x]).unwrap();
        let seed = tensor(DType::F64, &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
        y.backward_with(&seed, BackwardOptions::new()).unwrap();
        let grad = values(&x.grad().unwrap());
        // The one format without infinities has its largest number in their place.
        let infinite = if dtype == DType::F8E4M3 { 448.0 } else { f64::INFINITY };
        assert!(grad[0].is_nan(), "{dtype}");
        assert_eq!(grad[1..], [infinite, -infinite], "{dtype}");
    }
}

#[test]
fn opposite_infinities_that_meet_are_nan_and_no_error() {
    let x = leaf(&[1.0]);
    let y = Probe::identity().on(&[&x]).unwrap();
    let (up, down) = (tensor(DType::F32, &[f64::INFINITY]), tensor(DType::F32, &[f64::NEG_INFINITY]));
    gradpact::backward(&[(&y, Some(&up)), (&y, Some(&down))], BackwardOptions::new()).unwrap();
    assert!(values(&x.grad().unwrap())[0].is_nan());
}

#[test]
fn tensors_without_elements_have_gradients_without_elements() {
    for shape in [Shape::from([0]), Shape::from([3, 0, 2])] {
        let empty = |dtype| DynTensor::<Toy>::from_array(ToyArray::new(dtype, shape.clone(), []));
        let x = empty(DType::F16).requiring_grad().unwrap();
        let y = mul(&x, &x).unwrap();
        y.backward_with(&empty(DType::F64), BackwardOptions::new()).unwrap();
        let grad = x.grad().unwrap();
        assert_eq!((grad.shape(), grad.dtype(), values(&grad)), (&shape, DType::F16, vec![]));
    }
}

#[test]
fn a_gradient_sum_that_overflows_its_dtype_is_infinite_only_if_the_exact_sum_is() {
    // 40000 + 40000 − 40000 passes the range of f16 on the way, but not at the end.
    let x = tensor(DType::F16, &[1.0]).requiring_grad().unwrap();
    let y = Probe::identity().on(&[&x]).unwrap();
    let (up, down) = (tensor(DType::F32, &[40000.0]), tensor(DType::F32, &[-40000.0]));
    let roots = [(&y, Some(&up)), (&y, Some(&up)), (&y, Some(&down))];
    gradpact::backward(&roots, BackwardOptions::new()).unwrap();
    assert_eq!(values(&x.grad().unwrap()), [40000.0]);
    x.zero_grad();
    gradpact::backward(&roots[..2], BackwardOptions::new()).unwrap();
    assert_eq!(values(&x.grad().unwrap()), [f64::INFINITY]);
}
