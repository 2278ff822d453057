//! Bad files: each an error that names the entry, after which everything is as before.
//!
//! Files are taken apart and put together here by the format's specification, not by the code under test.

use gradpact::optim::{Adam, AdamW, GradScaler, Optimizer, Sgd, safetensors};
use gradpact::prelude::*;
use serde_json::{Map, Value as Json, json};

use crate::support::{Stepper, of, parameter, says, send, values};

/// Name, dtype word, shape and bytes.
pub(crate) type Entry = (String, String, Vec<usize>, Vec<u8>);

/// The entries of a file, by name.
pub(crate) fn entries(file: &[u8]) -> Vec<Entry> {
    let (length, rest) = file.split_at(8);
    let (header, data) = rest.split_at(u64::from_le_bytes(length.try_into().unwrap()) as usize);
    let header: Map<String, Json> = serde_json::from_slice(header).unwrap();
    let number = |json: &Json| json.as_u64().unwrap() as usize;
    let entry = |(name, info): (String, Json)| {
        let range = number(&info["data_offsets"][0])..number(&info["data_offsets"][1]);
        let shape = info["shape"].as_array().unwrap().iter().map(number).collect();
        (name, info["dtype"].as_str().unwrap().to_owned(), shape, data[range].to_vec())
    };
    let mut entries: Vec<Entry> = header.into_iter().map(entry).collect();
    entries.sort();
    entries
}

/// A file with these entries.
pub(crate) fn build(entries: &[Entry]) -> Vec<u8> {
    let (mut header, mut data) = (Map::new(), Vec::new());
    for (name, dtype, shape, bytes) in entries {
        let offsets = [data.len(), data.len() + bytes.len()];
        header.insert(name.clone(), json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets }));
        data.extend(bytes);
    }
    let header = serde_json::to_vec(&header).unwrap();
    [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat()
}

/// A file with one entry changed, or without it.
fn changed(file: &[u8], name: &str, change: impl FnOnce(&mut Entry)) -> Vec<u8> {
    let mut entries = entries(file);
    change(entries.iter_mut().find(|entry| entry.0 == name).unwrap());
    entries.retain(|entry| !entry.0.is_empty());
    build(&entries)
}

fn without(file: &[u8], name: &str) -> Vec<u8> {
    changed(file, name, |entry| entry.0.clear())
}

fn f32s(values: &[f64]) -> DynTensor {
    parameter(DType::F32, DType::F32, values)
}

fn trained() -> Optimizer<Adam> {
    let mut optimizer = Optimizer::new(Adam::new(0.5)).unwrap().master_weights(true);
    let mut params = [parameter(DType::F16, DType::F32, &[1.0, 2.0]), f32s(&[3.0])];
    let [a, b] = &mut params;
    send(a, &[1.0, 1.0]);
    optimizer.step(&mut [a, b]).unwrap();
    optimizer
}

/// Loads into parameters, which must all stay as they are.
#[track_caller]
fn refused(file: &[u8], parts: &[&str]) {
    let (mut a, mut b) = (f32s(&[7.0, 8.0]), Tensor::<bool>::zeros([1]).unwrap());
    let before = a.clone();
    says(safetensors::load(file, &mut [("a", &mut a), ("b", &mut b)]), parts);
    assert_eq!((values(&a), b.to_vec().unwrap()), (vec![7.0, 8.0], vec![false]));
    send(&before, &[1.0, 1.0]);
    assert!(a.grad().is_some(), "it is still the same leaf");
}

fn good() -> Vec<u8> {
    safetensors::save(&[("a", &of(DType::F32, &[1.0, 2.0])), ("b", &of(DType::Bool, &[1.0]))]).unwrap()
}

#[test]
fn a_file_that_is_cut_off_anywhere_or_too_long_is_refused() {
    let (file, mut optimizer, mut scaler) = (good(), trained(), GradScaler::default());
    for length in 0..file.len() {
        refused(&file[..length], &["`load`", "a safetensors file"]);
    }
    refused(&[&file[..], &[0]].concat(), &["`load`", "a safetensors file"]);
    let before = optimizer.to_safetensors().unwrap();
    for length in (0..before.len()).step_by(7) {
        says(optimizer.load_safetensors(&before[..length]), &["`load_safetensors`", "a safetensors file"]);
    }
    assert_eq!(optimizer.to_safetensors().unwrap(), before);
    says(scaler.load_safetensors(&file[..20]), &["`load_safetensors`", "a safetensors file"]);
}

#[test]
fn a_header_that_lies_is_refused_and_asks_for_no_memory() {
    let file = good();
    for header in [
        json!({ "a": { "dtype": "F32", "shape": [usize::MAX, 2], "data_offsets": [0, 8] } }),
        json!({ "a": { "dtype": "F32", "shape": [2], "data_offsets": [8, 0] } }),
        json!({ "a": { "dtype": "F32", "shape": [2], "data_offsets": [0, u64::MAX] } }),
        json!({ "a": { "dtype": "F99", "shape": [2], "data_offsets": [0, 8] } }),
        json!(["a"]),
    ] {
        let header = serde_json::to_vec(&header).unwrap();
        let bytes = [&(header.len() as u64).to_le_bytes()[..], &header, &[0; 8]].concat();
        refused(&bytes, &["`load`", "a safetensors file"]);
    }
    refused(&[&u64::MAX.to_le_bytes()[..], &file[8..]].concat(), &["a safetensors file"]);
}

#[test]
fn a_missing_a_superfluous_and_a_misshapen_entry_are_named() {
    let file = good();
    refused(&without(&file, "a"), &["entry `a`", "expected f32 [2]", "no entry of this name"]);
    refused(&without(&file, "b"), &["entry `b`", "expected bool [1]", "no entry of this name"]);
    let more = [entries(&file), vec![("c".to_owned(), "U8".to_owned(), vec![1], vec![0])]].concat();
    refused(&build(&more), &["entry `c`", "no entry of this name", "got u8 [1]"]);
    refused(&changed(&file, "a", |a| a.0 = "A".to_owned()), &["entry `a`", "no entry of this name"]);
    refused(&changed(&file, "a", |a| a.2 = vec![2, 1]), &["entry `a`", "expected f32 [2]", "got f32 [2, 1]"]);
    refused(
        &changed(&file, "a", |a| a.1 = "I32".to_owned()),
        &["entry `a`", "expected f32 [2]", "got i32 [2]"],
    );
    refused(
        &changed(&file, "a", |a| a.1 = "U32".to_owned()),
        &["entry `a`", "expected f32 [2]", "got U32 [2]"],
    );
    refused(&changed(&file, "b", |b| b.3 = vec![2]), &["entry `b`", "expected bool [1]", "no such elements"]);
}

#[test]
fn names_given_twice_or_reserved_and_tensors_that_are_computed_are_refused() {
    let (mut a, mut b) = (f32s(&[1.0, 2.0]), f32s(&[1.0]));
    says(safetensors::save(&[("w", &a), ("w", &b)]), &["`save`", "entry `w`", "each name once"]);
    says(safetensors::save(&[("__metadata__", &a)]), &["entry `__metadata__`", "reserves"]);
    let file = safetensors::save(&[("a", &a)]).unwrap();
    says(
        safetensors::load(&file, &mut [("a", &mut a), ("a", &mut b)]),
        &["entry `a`", "no entry of this name"],
    );
    let mut computed = a.mul(&a).unwrap();
    says(
        safetensors::load(&file, &mut [("a", &mut computed)]),
        &["entry `a`", "a leaf", "output 0 of `Mul`"],
    );
}

#[test]
fn every_entry_of_an_optimizer_is_needed_and_no_other_is_taken() {
    let file = trained().to_safetensors().unwrap();
    let all = entries(&file);
    assert!(all.iter().any(|entry| entry.0 == "0.master") && all.len() > 12);
    for (name, ..) in &all {
        let mut optimizer = Optimizer::new(Adam::new(0.25)).unwrap();
        let outcome = optimizer.load_safetensors(&without(&file, name));
        match &**name {
            // Then it is a parameter that has made no step, and all the others are too many.
            "0.step" => says(outcome, &["entry `0.", "no entry of this name"]),
            _ => says(outcome, &[&format!("entry `{name}`")]),
        }
        assert_eq!(optimizer.lr(), 0.25, "nothing was loaded");
        let renamed = changed(&file, name, |entry| entry.0 = "surplus".to_owned());
        assert!(optimizer.load_safetensors(&renamed).is_err());
    }
    let more = [all, vec![("2.step".to_owned(), "I64".to_owned(), vec![], vec![0; 8])]].concat();
    says(Optimizer::new(Adam::new(0.25)).unwrap().load_safetensors(&build(&more)), &["entry `2.step`"]);
}

#[test]
fn entries_of_an_optimizer_in_another_dtype_or_shape_or_out_of_range_are_named() {
    let file = trained().to_safetensors().unwrap();
    let load = |file: Vec<u8>| Optimizer::new(Adam::new(0.25)).unwrap().load_safetensors(&file);
    let number = |number: f64| number.to_le_bytes().to_vec();
    let narrow = |entry: &mut Entry| (entry.1, entry.3) = ("F16".to_owned(), vec![0; 4]);
    says(load(changed(&file, "0.exp_avg", narrow)), &["`0.exp_avg`", "f32 or f64 [2]", "got f16 [2]"]);
    says(load(changed(&file, "0.master", narrow)), &["`0.master`", "f32 or f64 [2]", "got f16 [2]"]);
    let longer = |entry: &mut Entry| (entry.2, entry.3) = (vec![3], vec![0; 12]);
    says(
        load(changed(&file, "0.exp_avg_sq", longer)),
        &["`0.exp_avg_sq`", "expected f32 [2]", "got f32 [3]"],
    );
    says(load(changed(&file, "0.step", |e| e.3 = vec![0; 8])), &["`0.step`", "at least 1", "got 0"]);
    says(load(changed(&file, "parameters", |e| e.3 = vec![255; 8])), &["`parameters`", "got -1"]);
    let many = changed(&file, "parameters", |e| e.3 = i64::MAX.to_le_bytes().to_vec());
    says(load(many), &["entry `2.parameter`", "no entry of this name"]);
    says(load(changed(&file, "0.parameter", |e| e.2 = vec![2, 0])), &["`0.parameter`", "begins with 0"]);
    says(load(changed(&file, "Adam.lr", |e| e.3 = number(-1.0))), &["`Adam`", "lr", "got -1"]);
    says(load(changed(&file, "Adam.beta1", |e| e.3 = number(f64::NAN))), &["`Adam`", "beta1", "got NaN"]);
    says(load(changed(&file, "master_weights", |e| e.3 = vec![7])), &["`master_weights`", "bool []"]);
}

#[test]
fn the_state_of_another_optimizer_is_refused_by_name() {
    let file = trained().to_safetensors().unwrap();
    let mut others: [Box<dyn Stepper>; 2] = [
        Box::new(Optimizer::new(Sgd::new(0.1)).unwrap()),
        Box::new(Optimizer::new(AdamW::new(0.1)).unwrap()),
    ];
    for (other, name) in others.iter_mut().zip(["Sgd", "AdamW"]) {
        says(other.load(&file), &[&format!("the state of `{name}`"), "that of `Adam`"]);
    }
    let weights = good();
    says(others[0].load(&weights), &["`Sgd.lr`", "no state of an optimizer"]);
    says(GradScaler::default().load_safetensors(&file), &["entry `scale`", "no entry of this name"]);
}

#[test]
fn the_state_of_other_parameters_is_refused_when_loaded_or_in_the_first_step() {
    let file = trained().to_safetensors().unwrap();
    let mut optimizer = Optimizer::new(Adam::new(0.5)).unwrap();
    optimizer.load_safetensors(&file).unwrap();
    let (mut a, mut b) = (f32s(&[1.0, 2.0]), f32s(&[3.0]));
    says(optimizer.step(&mut [&mut a, &mut b]), &["parameter 0", "expected f16 [2]", "got f32 [2]"]);
    says(optimizer.step(&mut [&mut b]), &["expected 2 parameters", "got 1"]);

    let mut used = Optimizer::new(Adam::new(0.5)).unwrap();
    used.step(&mut [&mut a, &mut b]).unwrap();
    let before = used.to_safetensors().unwrap();
    says(used.load_safetensors(&file), &["`0.parameter`", "expected f32 [2], as in", "got f16 [2]"]);
    let mut used_with_one = Optimizer::new(Adam::new(0.5)).unwrap();
    used_with_one.step(&mut [&mut a]).unwrap();
    says(used_with_one.load_safetensors(&file), &["`parameters`", "expected 1 parameters", "got 2"]);
    assert_eq!(used.to_safetensors().unwrap(), before);
}

#[test]
fn bad_files_of_a_scaler_are_named_and_leave_it_as_it_was() {
    let file = GradScaler::new(8.0).unwrap().to_safetensors().unwrap();
    let mut scaler = GradScaler::new(4.0).unwrap();
    for (name, ..) in entries(&file) {
        says(scaler.load_safetensors(&without(&file, &name)), &[&format!("entry `{name}`")]);
    }
    let negative = changed(&file, "scale", |e| e.3 = (-1.0_f64).to_le_bytes().to_vec());
    says(scaler.load_safetensors(&negative), &["scale", "got -1"]);
    let single = changed(&file, "scale", |e| (e.1, e.3) = ("F32".to_owned(), vec![0; 4]));
    says(scaler.load_safetensors(&single), &["entry `scale`", "expected f64 []", "got f32 []"]);
    says(
        scaler.load_safetensors(&changed(&file, "growth_interval", |e| e.3 = vec![0; 8])),
        &["`growth_interval`"],
    );
    assert_eq!(scaler.get_scale(), 4.0);
}

#[test]
fn a_scaler_inside_a_round_is_not_saved() {
    let (mut param, mut scaler) = (f32s(&[1.0]), GradScaler::default());
    send(&param, &[1.0]);
    scaler.unscale(&mut [&mut param]).unwrap();
    says(scaler.to_safetensors(), &["`to_safetensors`", "before its `update`"]);
}
