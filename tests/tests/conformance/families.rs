//! Every member of the families of cases that are named by their parameters. The file has most of them, not all.

use gradpact::DType;
use serde_json::{Value, json};

use crate::num::{self, Num};
use crate::row::Row;
use crate::rules::{Way, convert};

const FLOATS: [&str; 6] = ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"];

const GRADIENTS: [f64; 7] = [0.1, 1e-10, 3e-8, 1.000_488_282_181_322_6, 70000.0, 500.0, -0.0];

/// The values of group 16, without infinities and NaN, which JSON has not.
const SPECIAL: [f64; 20] = [
    0.0, -0.0, 1.0, 0.1, -0.1, 1e-10, 3e-8, 1e-46, 1e-300, 448.0, 464.0, 465.0, 480.0, 61439.0, 61440.0,
    65519.0, 65520.0, 1e6, 3.5e38, 1e300,
];

/// Values as the cases write them, rounded to `dtype` as PyTorch does.
fn incoming(dtype: &str, values: &[f64]) -> Value {
    let num = convert(Way::PyTorch, &Num::exactly(DType::F64, values), num::dtype(dtype).unwrap());
    let bits: Vec<String> = num.bits.iter().map(|bits| format!("{bits:x}")).collect();
    json!({"incoming_dtype": dtype, "incoming": {"bits": bits}})
}

fn declarations() -> impl Iterator<Item = &'static str> {
    ["omitted", "None"].into_iter().chain(FLOATS)
}

/// All of them.
pub fn all() -> Vec<Row> {
    let mut rows = Vec::new();
    for out in FLOATS {
        for declared in declarations() {
            for dtype in FLOATS {
                for way in ["direct", "clone", "function"] {
                    let id = format!("1.{way}/{out}/{declared}/{dtype}");
                    rows.push(Row::unmeasured(id, incoming(dtype, &GRADIENTS)));
                }
            }
            rows.push(Row::unmeasured(format!("1.float_sum/{out}/{declared}"), json!({})));
        }
        for to in FLOATS {
            rows.push(Row::unmeasured(format!("16.cast/{out}->{to}"), incoming(out, &SPECIAL)));
        }
    }
    let few = ["omitted", "None", "float16", "float32", "float64"];
    for operation in crate::built_in::NAMES {
        rows.extend(few.map(|d| Row::unmeasured(format!("1.down/{operation}/{d}"), json!({}))));
    }
    for first in declarations() {
        for second in declarations() {
            for mode in ["direct", "y2.float().sum()*1e-10"] {
                rows.push(Row::unmeasured(format!("1.chain/{first}/{second}/{mode}"), json!({})));
            }
        }
    }
    rows.extend(declarations().flat_map(consumers));
    rows.extend(leaves());
    rows.extend(declarations().map(|d| Row::unmeasured(format!("9.nonleaf/{d}"), json!({}))));
    rows
}

/// Group 3: pairs and triples of gradients for outputs of every dtype, in every order.
fn consumers(declared: &'static str) -> Vec<Row> {
    let mut rows = Vec::new();
    for out in FLOATS {
        for a in FLOATS {
            for b in FLOATS {
                let sent = json!([[a, 1.0], [b, 2_f64.powi(-11)], [a, 2_f64.powi(-11)]]);
                let inputs =
                    json!({"consumers_in_forward_order": sent, "kept_alive": true, "create_graph": false});
                let declared = if declared == "omitted" { json!("omitted") } else { json!([declared]) };
                let json = json!({"inputs": inputs, "declared": declared, "out_dtype": out});
                rows.push(Row::unmeasured(format!("3.{a},{b},{a}/{declared}/{out}"), json));
            }
        }
    }
    rows
}

/// Group 7: leaves of every dtype that keep their gradient in every dtype.
fn leaves() -> Vec<Row> {
    let mut rows = Vec::new();
    for kept in ["default", "None"].into_iter().chain(FLOATS) {
        for dtype in FLOATS {
            for way in ["leaf.backward(g)", "(leaf*1).backward(g)", "F(f16,f32)(leaf).backward(g)"] {
                rows.push(Row::unmeasured(format!("7.effect/{dtype}/{kept}/{way}"), json!({})));
            }
            for second in FLOATS {
                rows.push(Row::unmeasured(format!("7.twice/{kept}/{dtype}+{second}"), json!({})));
            }
        }
    }
    rows
}
