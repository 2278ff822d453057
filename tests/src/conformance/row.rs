//! One measured case, as the file has it.

use gradpact::{DType, GradDType};
use serde_json::Value;

use super::num::{self, Num};
use super::outcome::{Failed, Outcome};

/// A line of the file.
#[derive(Clone, Debug)]
pub struct Row {
    /// The stable name, which says what the case does.
    pub id: String,
    /// The number before the first dot.
    pub group: u64,
    /// Everything.
    pub json: Value,
}

impl Row {
    /// Every case of a file but the one that describes the environment.
    pub fn read_all(text: &str) -> Vec<Self> {
        let rows = text.lines().map(|line| {
            let json: Value = serde_json::from_str(line).unwrap();
            Self { id: json["id"].as_str().unwrap().to_owned(), group: json["group"].as_u64().unwrap(), json }
        });
        rows.filter(|row| row.group > 0).collect()
    }

    /// The parts of the id after the group's name: `OUT`, `DECLARED` and `INCOMING` of `1.direct/OUT/DECLARED/INCOMING`.
    pub fn parts(&self) -> Vec<&str> {
        self.id.split('/').skip(1).collect()
    }

    /// The id without its first part.
    pub fn rest(&self) -> &str {
        self.id.split_once('/').map_or("", |(_, rest)| rest)
    }

    /// What the case put in.
    pub fn incoming(&self) -> Num {
        Num::measured(self.json["incoming_dtype"].as_str().unwrap(), &self.json["incoming"]).unwrap()
    }

    /// What was declared: nothing, or an entry for each output.
    ///
    /// # Errors
    /// The name of a dtype that we do not have.
    pub fn declared(&self) -> Result<Option<Vec<GradDType>>, String> {
        let Some(entries) = self.json["declared"].as_array() else { return Ok(None) };
        entries.iter().map(|entry| grad_dtype(entry.as_str().unwrap())).collect::<Result<_, _>>().map(Some)
    }

    /// The dtypes of the outputs, where they are all ours.
    pub fn out_dtypes(&self) -> Option<Vec<DType>> {
        match &self.json["out_dtype"] {
            Value::String(name) => Some(vec![num::dtype(name)?]),
            Value::Array(names) => names.iter().map(|name| num::dtype(name.as_str()?)).collect(),
            _ => None,
        }
    }

    /// The fact of this name in words: what was read, or what an attempt led to, its error as `error`.
    pub fn told(&self, name: &str) -> Option<String> {
        let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        match self.json["extra"].get(name)? {
            Value::Object(attempt) => attempt.get("ok").map(words).or_else(|| Some("error".to_owned())),
            fact => Some(words(fact)),
        }
    }

    /// A case of which only the name, and what it puts in, is known.
    pub fn unmeasured(id: String, mut json: Value) -> Self {
        json["id"] = Value::String(id.clone());
        let group = id.split('.').next().unwrap().parse().unwrap();
        Self { id, group, json }
    }

    /// What PyTorch did, with the facts of `extra` under these names.
    pub fn measured(&self, extra: &[&str]) -> Outcome {
        let error = self.json.get("error");
        Outcome {
            received: received(&self.json["received_dtype"], &self.json["received"]),
            x_grad: self.json["x_grad_dtype"].as_str().and_then(|n| Num::measured(n, &self.json["x_grad"])),
            extra: extra.iter().map(|&name| ((*name).to_owned(), fact(&self.json["extra"][name]))).collect(),
            failed: error.map(|error| Failed::measured(error["phase"].as_str().unwrap())),
            ..Outcome::default()
        }
    }
}

/// One entry of a declaration.
///
/// # Errors
/// The name of a dtype that we do not have.
pub fn grad_dtype(name: &str) -> Result<GradDType, String> {
    match name {
        "None" => Ok(GradDType::Any),
        _ => num::dtype(name).map(GradDType::Exactly).ok_or_else(|| name.to_owned()),
    }
}

/// `omitted`, `None` or a dtype, as ids write what was declared for one output.
pub fn declaration(word: &str) -> Option<GradDType> {
    (word != "omitted").then(|| grad_dtype(word).unwrap())
}

fn received(dtypes: &Value, numbers: &Value) -> Vec<Vec<Option<Num>>> {
    let (Some(dtypes), Some(numbers)) = (dtypes.as_array(), numbers.as_array()) else { return Vec::new() };
    let calls = dtypes.iter().zip(numbers);
    let slots = |(dtypes, numbers): (&Value, &Value)| {
        let slots = dtypes.as_array().unwrap().iter().zip(numbers.as_array().unwrap());
        slots.map(|(dtype, n)| dtype.as_str().and_then(|dtype| Num::measured(dtype, n))).collect()
    };
    calls.map(slots).collect()
}

/// The tensors of one entry of `extra`.
fn fact(value: &Value) -> Vec<Option<Num>> {
    let one = |value: &Value| match value {
        Value::Bool(flag) => Some(Num { dtype: DType::Bool, bits: vec![u64::from(*flag)] }),
        value => value["dtype"].as_str().and_then(|dtype| Num::measured(dtype, value)),
    };
    match value {
        Value::Array(list) => list.iter().map(one).collect(),
        other => vec![one(other)],
    }
}
