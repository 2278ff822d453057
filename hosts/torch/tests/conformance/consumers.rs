//! libtorch's own operations between a Function and the loss, as the cases write them.

use gradpact::{DynTensor, Result};
use gradpact_torch::Torch;
use tch::{Device, Kind, Tensor};

use crate::subject::{cloned, taken};

/// What comes of `y`.
type Consumer = fn(&Tensor) -> Tensor;

fn filled(value: f64) -> Tensor {
    Tensor::full([2], value, (Kind::Float, Device::Cpu))
}

/// The operation of `1.down/NAME/…`.
fn consumer(name: &str) -> Option<Consumer> {
    Some(match name {
        "y.float().sum()" | "y.to(float32).sum()" => |y| y.to_kind(Kind::Float).sum(None),
        "y.double().sum()" => |y| y.to_kind(Kind::Double).sum(None),
        "y.sum(dtype=float32)" => |y| y.sum(Kind::Float),
        "y.clone().sum(dtype=float32)" => |y| cloned(y).sum(Kind::Float),
        "y.sum()" => |y| y.sum(None),
        "y.mean(dtype=float32)" => |y| y.mean(Kind::Float),
        "y.cumsum(dtype=float32).sum()" => |y| y.cumsum(0, Kind::Float).sum(None),
        "y.prod(dtype=float32)" => |y| y.prod(Kind::Float),
        "(y + zeros_f32).sum()" => |y| (y + filled(0.0)).sum(None),
        "(y - zeros_f32).sum()" => |y| (y - filled(0.0)).sum(None),
        "(y * ones_f32).sum()" => |y| (y * filled(1.0)).sum(None),
        "(y / ones_f32).sum()" => |y| (y / filled(1.0)).sum(None),
        "(y ** ones_f32).sum()" => |y| y.pow(&filled(1.0)).sum(None),
        "(y + f32_scalar_tensor).sum()" => |y| (y + Tensor::from(0.0_f32)).sum(None),
        "torch.maximum(y, zeros_f32).sum()" => |y| y.maximum(&filled(0.0)).sum(None),
        "torch.where(c, y, zeros_f32).sum()" => {
            |y| y.where_self(&filled(1.0).to_kind(Kind::Bool), &filled(0.0)).sum(None)
        }
        "torch.cat([y, zeros_f32]).sum()" => |y| Tensor::cat(&[y, &filled(0.0)], 0).sum(None),
        "zeros_f32.add_(y).sum()" => |y| filled(0.0).g_add_(y).sum(None),
        "zeros_f32.copy_(y).sum()" => |y| {
            let mut copy = filled(0.0);
            copy.copy_(y);
            copy.sum(None)
        },
        "softmax(y, dtype=float32)[0]" => |y| y.softmax(0, Kind::Float).get(0),
        "mse_loss(y, zeros_f32)" => |y| y.mse_loss(&filled(0.0), tch::Reduction::Mean),
        "vector_norm(y, dtype=float32)" => |y| y.linalg_norm(2.0, None::<i64>, false, Kind::Float),
        "(y @ ones_f16).float()" => |y| y.matmul(&filled(1.0).to_kind(Kind::Half)).to_kind(Kind::Float),
        _ => return None,
    })
}

/// The operation, on tensors of gradpact.
pub(crate) fn operation(
    name: &str,
) -> Option<impl Fn(&DynTensor<Torch>) -> Result<DynTensor<Torch>> + use<>> {
    let consumer = consumer(name)?;
    Some(move |y: &DynTensor<Torch>| Ok(taken(consumer(y.array()))))
}
