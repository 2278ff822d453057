//! What became of every gradient's dtype: nothing is silent.
//!
//! [`record`] runs a closure and gives an [`Audit`]: a row for each gradient that was admitted to an edge, with the dtypes it
//! was declared, sent and delivered in and what the conversion did to its values; a line for each conversion that some
//! Function made; and where a gradient that ends in a wide dtype passed through a narrower one on the way. Nothing is
//! changed by looking on.
//!
//! # Examples
//! ```
//! use gradpact::prelude::*;
//! use gradpact::audit;
//!
//! /// Stored in f16; nobody said in which dtype its gradient arrives.
//! #[autograd_function(out = f16)]
//! struct Store;
//!
//! impl Op for Store {
//!     type Inputs = Tensor<f32>;
//!
//!     fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
//!         x.cast()
//!     }
//!
//!     fn backward(&self, _: &Context, grad: Value<f16>) -> Result<Value<f32>> {
//!         grad.cast()
//!     }
//! }
//!
//! let x = Tensor::<f32>::ones([2])?.requiring_grad()?;
//! let (result, audit) = audit::record(|| {
//!     let y = Store.apply(&x)?;
//!     y.backward_with(&Tensor::<f32>::from_vec(vec![0.5, 1e-10], [2])?, BackwardOptions::new())
//! });
//! result?;
//! assert_eq!(audit.received("Store", 0), [DType::F16]);
//! let error = audit.assert_lossless().unwrap_err().to_string();
//! assert!(error.contains("1 of 2 became zero"), "{error}");
//! # Ok::<(), Error>(())
//! ```

mod compare;
mod expect;
mod picture;
mod recorder;
#[cfg(feature = "report")]
mod records;
mod report;
mod round_trip;
mod row;
mod table;

pub use compare::{Comparison, Difference};
pub use picture::Picture;
pub use recorder::{Recorder, record};
pub use report::Format;
pub use round_trip::{Narrowing, RoundTrip};
pub use row::{Conversion, Happened, Outcome, Row, Stage};

pub use crate::dtype::Census;
pub use crate::observe::NodeInfo;

use row::Event;

/// What an observed stretch of a program did with gradients and values. Displayed as the text report.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// In the order in which they happened.
    events: Vec<Event>,
}

impl Audit {
    /// A row for each gradient that was admitted to an edge, or refused there, in order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.events.iter().filter_map(|event| match event {
            Event::Admission(row) => Some(&**row),
            Event::Conversion(_) => None,
        })
    }

    /// The conversions of whole tensors that Functions made, forward or backward, and that rounded a sum, in order.
    pub fn conversions(&self) -> impl Iterator<Item = &Conversion> {
        self.events.iter().filter_map(|event| match event {
            Event::Conversion(conversion) => Some(&**conversion),
            Event::Admission(_) => None,
        })
    }

    /// The rows of the gradients of one output of a Function.
    pub fn rows_of<'a>(&'a self, function: &'a str, output: usize) -> impl Iterator<Item = &'a Row> {
        self.rows().filter(move |row| row.receiver.function == function && row.output == output)
    }

    /// In which dtypes the gradients of one output of a Function were delivered, in order.
    pub fn received(&self, function: &str, output: usize) -> Vec<crate::DType> {
        self.rows_of(function, output).filter_map(Row::delivered).collect()
    }

    /// Whether nothing was observed.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}
