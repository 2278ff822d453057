//! Every member of the families of cases that are named by their parameters. The file has most of them, not all.

use gradpact::DType;
use serde_json::{Value, json};

use crate::num::{self, Num};
use crate::row::Row;
use crate::rules::{Way, convert};

const FLOATS: [&str; 6] = ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"];

const INTEGERS: [&str; 6] = ["bool", "uint8", "int8", "int16", "int32", "int64"];

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
pub(crate) fn all() -> Vec<Row> {
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
    rows.extend(surroundings());
    rows
}

/// Groups 6, 8, 10, 11, 13 and 15: hooks, derivatives of derivatives, views, creation hooks, regions, checkpoints.
fn surroundings() -> Vec<Row> {
    let plain = |id: String| Row::unmeasured(id, json!({}));
    let mut rows = Vec::new();
    for declared in declarations() {
        for family in [
            "6.observe",
            "6.retain_grad_twice",
            "8.cast_is_differentiable",
            "11.node_creation_hook/registering_hooks",
        ] {
            rows.push(plain(format!("{family}/{declared}")));
        }
        for x in FLOATS {
            rows.push(plain(format!("8.double/{declared}/x_{x}")));
            for kind in ["use_reentrant=True", "use_reentrant=False"] {
                rows.push(plain(format!("15.checkpoint/{kind}/{x}/{declared}")));
            }
            rows.extend(regions(x, declared));
        }
    }
    for declared in ["None"].into_iter().chain(FLOATS) {
        for shares in ["input_as_is/leaf", "input_as_is/nonleaf", "returns_view_of_input", "returns_detach"] {
            rows.push(plain(format!("10.{shares}/{declared}")));
        }
        rows.push(plain(format!("10.then_view/y.view(2)/{declared}")));
        rows.push(plain(format!("15.aliasing/in_place_in_backward/{declared}")));
    }
    rows
}

/// Group 13: one region, in every style.
fn regions(region: &str, declared: &str) -> Vec<Row> {
    let cast = FLOATS.map(|dtype| format!("custom_fwd_bwd_cast_{dtype}"));
    let styles = ["plain".to_owned(), "custom_fwd_bwd".to_owned()].into_iter().chain(cast);
    let inputs = json!({"inputs": {"autocast": format!("cpu {region}, forward only")}});
    styles.map(|style| Row::unmeasured(format!("13.autocast/{style}/{declared}"), inputs.clone())).collect()
}

/// Group 3: pairs and triples of gradients for outputs of every dtype, in every order.
fn consumers(declared: &'static str) -> Vec<Row> {
    let mut rows = Vec::new();
    for out in FLOATS {
        for a in FLOATS {
            for b in FLOATS {
                // The last arrives first: to one, two halves of a unit are added that each alone rounds away.
                let half = half_a_unit(if FLOATS.contains(&declared) { declared } else { out });
                let sent = json!([[a, half], [b, half], [a, 1.0]]);
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

/// Half the distance from 1 to the next number; of wide dtypes something small.
fn half_a_unit(dtype: &str) -> f64 {
    2_f64.powi(match dtype {
        "float16" => -11,
        "bfloat16" => -8,
        "float8_e4m3fn" => -4,
        "float8_e5m2" => -3,
        _ => -20,
    })
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
            for assigned in FLOATS.into_iter().chain(INTEGERS).filter(|_| kept != "default") {
                let id = format!("7.setter/{dtype}/{kept}/{assigned}");
                rows.push(Row::unmeasured(id, json!({})));
            }
        }
    }
    rows
}
