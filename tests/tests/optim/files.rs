//! Files: what is saved is loaded bit by bit, and training goes on from it as if it had not stopped.

use gradpact::optim::{Adam, GradScaler, Optimizer, Parameter, Sgd, safetensors};
use gradpact::prelude::*;
use gradpact_tests::format::stored_bits;

use crate::damage::{build, entries};
use crate::support::{FLOATS, every_optimizer, of, parameter, send, values};

/// The format's word for each dtype, from its specification.
const WORDS: [(DType, &str); 12] = [
    (DType::Bool, "BOOL"),
    (DType::U8, "U8"),
    (DType::I8, "I8"),
    (DType::I16, "I16"),
    (DType::I32, "I32"),
    (DType::I64, "I64"),
    (DType::F8E4M3, "F8_E4M3"),
    (DType::F8E5M2, "F8_E5M2"),
    (DType::F16, "F16"),
    (DType::BF16, "BF16"),
    (DType::F32, "F32"),
    (DType::F64, "F64"),
];

/// Values that every dtype but `bool` and `u8` holds.
const SOME: [f64; 3] = [1.0, 0.0, -2.0];

/// The bytes that the format stores for these values.
fn stored(dtype: DType, values: &[f64]) -> Vec<u8> {
    let bytes = |&value: &f64| stored_bits(dtype, value).to_le_bytes()[..dtype.size_in_bytes()].to_vec();
    values.iter().flat_map(bytes).collect()
}

fn some(dtype: DType) -> &'static [f64] {
    if matches!(dtype, DType::Bool | DType::U8) { &[1.0, 0.0, 1.0] } else { &SOME }
}

#[test]
fn files_are_written_and_read_as_the_format_says_in_every_dtype() {
    for (dtype, word) in WORDS {
        let expected = vec![("w".to_owned(), word.to_owned(), vec![3], stored(dtype, some(dtype)))];
        let saved = safetensors::save(&[("w", &of(dtype, some(dtype)))]).unwrap();
        assert_eq!(entries(&saved), expected, "{dtype}");
        let mut loaded = DynTensor::zeros([3], dtype).unwrap();
        safetensors::load(&build(&expected), &mut [("w", &mut loaded)]).unwrap();
        assert_eq!((loaded.dtype(), values(&loaded)), (dtype, some(dtype).to_vec()));
    }
}

#[test]
fn every_bit_pattern_of_a_float_comes_back() {
    let odd = [f32::NAN, -0.0, f32::INFINITY, f32::from_bits(1), f32::MAX, 0.1];
    let saved = safetensors::save(&[("w", &Tensor::<f32>::from_vec(odd.to_vec(), [6]).unwrap())]).unwrap();
    let mut loaded = Tensor::<f32>::zeros([6]).unwrap();
    safetensors::load(&saved, &mut [("w", &mut loaded)]).unwrap();
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&loaded.to_vec().unwrap()), bits(&odd));
}

#[test]
fn the_same_contents_give_the_same_bytes_in_whatever_order_they_are_named() {
    let (a, b) = (of(DType::F32, &[1.0]), of(DType::F16, &[2.0]));
    let file = safetensors::save(&[("a", &a), ("b", &b)]).unwrap();
    assert_eq!(file, safetensors::save(&[("b", &b), ("a", &a)]).unwrap());
}

#[test]
fn a_view_is_saved_in_the_order_of_its_shape() {
    let turned =
        of(DType::I32, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).reshape([2, 3]).unwrap().transpose(0, 1).unwrap();
    let file = entries(&safetensors::save(&[("t", &turned)]).unwrap());
    assert_eq!(
        (file[0].2.clone(), file[0].3.clone()),
        (vec![3, 2], stored(DType::I32, &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]))
    );
}

#[test]
fn scalars_and_tensors_without_elements_are_saved_too() {
    let saved = safetensors::save(&[
        ("scalar", &DynTensor::scalar(7.0, DType::I64)),
        ("empty", &DynTensor::zeros([0, 3], DType::F16).unwrap()),
    ]);
    let (mut scalar, mut empty) =
        (DynTensor::scalar(0.0, DType::I64), DynTensor::zeros([0, 3], DType::F16).unwrap());
    safetensors::load(&saved.unwrap(), &mut [("empty", &mut empty), ("scalar", &mut scalar)]).unwrap();
    assert_eq!((scalar.item::<i64>().unwrap(), empty.shape().to_vec()), (7, vec![0, 3]));
}

#[test]
fn a_parameter_that_is_loaded_keeps_its_contract_and_hooks_and_data_stays_data() {
    let saved = safetensors::save(&[("w", &of(DType::F16, &[2.0])), ("n", &of(DType::I64, &[3.0]))]).unwrap();
    let mut w = Tensor::<f16, f32>::ones([1]).unwrap().requiring_grad().unwrap();
    w.as_dyn().register_hook(|grad| grad.mul_scalar(2.0).map(Some)).unwrap();
    let mut n = Tensor::<i64>::zeros([1]).unwrap();
    send(w.as_dyn(), &[1.0]);
    safetensors::load(&saved, &mut [("n", &mut n), ("w", &mut w)]).unwrap();
    assert_eq!((w.to_vec().unwrap(), n.to_vec().unwrap()), (vec![f16::from_f32(2.0)], vec![3]));
    assert!(w.requires_grad() && w.grad().is_none() && !n.requires_grad());
    send(w.as_dyn(), &[1e-8]);
    assert_eq!(w.grad().unwrap().to_vec().unwrap(), [2e-8]);
}

/// A gradient that depends on step and position, and is exact in every dtype used here.
fn gradient(step: usize, at: usize) -> [f64; 2] {
    [(step as f64 - 2.5) * 0.25, (at as f64 + 1.0) * 0.5 - step as f64 * 0.125]
}

/// Goes through steps of training.
fn train(
    optimizer: &mut dyn crate::support::Stepper,
    params: &mut [DynTensor],
    steps: core::ops::Range<usize>,
) {
    for step in steps {
        for (at, param) in params.iter().enumerate() {
            // The last one has no gradient at first.
            if at + 1 < params.len() || step > 1 {
                send(param, &gradient(step, at));
            }
        }
        let mut list: Vec<&mut dyn Parameter> =
            params.iter_mut().map(|param| -> &mut dyn Parameter { param }).collect();
        optimizer.step(&mut list).unwrap();
    }
}

fn model() -> Vec<DynTensor> {
    let mut params: Vec<_> = FLOATS
        .iter()
        .flat_map(|&d| [DType::F32, DType::F64].map(|g| parameter(d, g, &[1.0, -0.5])))
        .collect();
    params.push(of(DType::BF16, &[0.75, 1.5]).requiring_grad_in(GradDType::Any).unwrap());
    params.push(parameter(DType::F16, DType::F32, &[0.25, -1.0]));
    params
}

fn bits(params: &[DynTensor]) -> Vec<Vec<u64>> {
    params.iter().map(|param| values(param).iter().map(|value| value.to_bits()).collect()).collect()
}

#[test]
fn training_resumed_from_files_is_bit_by_bit_the_training_that_never_stopped() {
    for (stop, master) in [0, 1, 2, 5].into_iter().flat_map(|stop| [(stop, false), (stop, true)]) {
        for (nth, mut whole) in every_optimizer(master).into_iter().enumerate() {
            let mut params = model();
            train(&mut *whole, &mut params, 0..8);
            let expected = bits(&params);

            let (mut first, mut params) = (every_optimizer(master).remove(nth), model());
            train(&mut *first, &mut params, 0..stop);
            let names: Vec<String> = (0..params.len()).map(|at| format!("layer.{at}")).collect();
            let named: Vec<(&str, &dyn Parameter)> = names
                .iter()
                .zip(&params)
                .map(|(name, param)| -> (&str, &dyn Parameter) { (name, param) })
                .collect();
            let (weights, state) = (safetensors::save(&named).unwrap(), first.save());

            // Everything anew; the files say what it is.
            let (mut second, mut params) = (every_optimizer(!master).remove(nth), model());
            let mut named: Vec<(&str, &mut dyn Parameter)> = names
                .iter()
                .zip(&mut params)
                .map(|(name, param)| -> (&str, &mut dyn Parameter) { (name, param) })
                .collect();
            safetensors::load(&weights, &mut named).unwrap();
            second.load(&state).unwrap();
            assert_eq!(second.save(), state, "saved again it is the same");
            train(&mut *second, &mut params, stop..8);
            assert_eq!(bits(&params), expected, "{}, stopped after {stop}", second.name());
        }
    }
}

#[test]
fn hyper_parameters_come_from_the_file() {
    let rule = Adam::new(0.1).betas(0.7, 0.8).eps(1e-3).weight_decay(0.3);
    let mut saved = Optimizer::new(rule).unwrap();
    saved.set_lr(0.01).unwrap();
    let mut loaded = Optimizer::new(Adam::new(1.0)).unwrap();
    loaded.load_safetensors(&saved.to_safetensors().unwrap()).unwrap();
    assert_eq!((loaded.rule(), loaded.lr()), (saved.rule(), 0.01));
    let saved = Optimizer::new(Sgd::new(0.1).momentum(0.5).nesterov(true).weight_decay(0.2)).unwrap();
    let mut loaded = Optimizer::new(Sgd::new(1.0)).unwrap();
    loaded.load_safetensors(&saved.to_safetensors().unwrap()).unwrap();
    assert_eq!(loaded.rule(), saved.rule());
}

#[test]
fn a_scaler_goes_on_where_it_was_saved() {
    let round = |scaler: &mut GradScaler, finite: bool| {
        let mut param = parameter(DType::F32, DType::F32, &[0.0]);
        send(&param, &[if finite { 1.0 } else { f64::NAN }]);
        scaler.step(&mut Optimizer::new(Sgd::new(1.0)).unwrap(), &mut [&mut param]).unwrap();
        scaler.update().unwrap();
    };
    let mut saved = GradScaler::new(8.0).unwrap().growth_factor(3.0).unwrap().backoff_factor(0.25).unwrap();
    saved = saved.growth_interval(3).unwrap();
    round(&mut saved, true);
    round(&mut saved, true);
    let mut loaded = GradScaler::default();
    loaded.load_safetensors(&saved.to_safetensors().unwrap()).unwrap();
    assert_eq!(loaded.get_scale(), 8.0);
    round(&mut loaded, true);
    assert_eq!(loaded.get_scale(), 24.0, "the third good step in a row");
    round(&mut loaded, false);
    assert_eq!(loaded.get_scale(), 6.0);
}
