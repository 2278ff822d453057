//! The handwritten digits: 1,797 images of 8 × 8 pixels. Where they come from is told in `data/README.md`.

use std::io::Read;

use gradpact::prelude::*;

/// Images and labels, ready for a network that reads half precision.
pub(crate) struct Digits {
    /// `[images, 64]`, pixel values between 0 and 1.
    pub(crate) images: Tensor<f16, f32>,
    /// `[images]`.
    pub(crate) labels: Tensor<i64>,
}

/// Splits the data: every fifth image is kept for testing.
pub(crate) fn load() -> Result<(Digits, Digits), Box<dyn std::error::Error>> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(&include_bytes!("../data/digits.csv.gz")[..]).read_to_string(&mut text)?;
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (number, row) in reader.deserialize::<Vec<f32>>().enumerate() {
        if number % 5 == 0 { test.push(row?) } else { train.push(row?) }
    }
    Ok((digits(&train)?, digits(&test)?))
}

fn digits(rows: &[Vec<f32>]) -> Result<Digits> {
    let pixels = rows.iter().flat_map(|row| row[..64].iter().map(|pixel| pixel / 16.0)).collect();
    let labels = rows.iter().map(|row| row[64] as i64).collect();
    Ok(Digits {
        images: Tensor::<f32>::from_vec(pixels, [rows.len(), 64])?.cast()?,
        labels: Tensor::<i64>::from_vec(labels, [rows.len()])?,
    })
}
