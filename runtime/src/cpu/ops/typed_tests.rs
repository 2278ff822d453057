//! That the typed twins of operations tell in their types the dtypes that the dynamic ones have.

use crate::cpu::Generator;
use crate::{AnyGrad, DynTensor, Element, Result, Tensor, Untracked, Value, bf16, f16};

/// The types of these results are what this test is about: each line is checked by the compiler, then at run time.
fn check<D: Element, G: crate::typed::GradType>(tensor: Result<Tensor<D, G>>) -> Tensor<D, G> {
    let tensor = tensor.unwrap();
    Tensor::<D, G>::from_dyn(DynTensor::clone(tensor.as_dyn())).unwrap()
}

fn wide() -> Tensor<f16, f32> {
    let tensor = Tensor::<f16>::from_slice(&[f16::from_f32(0.5); 4], [2, 2]).unwrap();
    tensor.requiring_grad_in::<f32>().unwrap()
}

#[test]
fn unary_results_keep_the_gradient_dtype_of_their_input() {
    let x = wide();
    check::<f16, f32>(x.exp());
    check::<f16, f32>(x.relu());
    check::<f16, f32>(x.softmax(-1));
    check::<f16, f32>(x.transpose(0, 1));
    check::<f16, f32>(x.reshape([4]));
    check::<f16, f32>(x.narrow(0, 0, 1));
    check::<f16, f32>(x.clamp(0.0, None));
    check::<f16, f32>(x.mean());
    check::<f16, f32>(x.max());
    check::<f16, f32>(x.layer_norm(2, None, None, 1e-5));
    check::<f32, f32>(x.sum_in::<f32>());
    check::<f32, f32>(x.mean_axes_in::<f32>(&[0], true));
    let classes = Tensor::<i64>::from_slice(&[0, 1], [2]).unwrap();
    check::<f16, f32>(x.cross_entropy(&classes));
    check::<f16, f32>(x.index_select(0, &classes));
    check::<f16, f32>(x.embedding(&classes));
}

#[test]
fn binary_results_carry_the_widest_gradient_dtype() {
    let (x, plain) = (wide(), Tensor::<f16>::ones([2, 2]).unwrap().requiring_grad().unwrap());
    check::<f16, f32>(x.add(&plain));
    check::<f16, f32>(plain.sub(&x));
    check::<f16, f32>(x.matmul(&plain));
    check::<f32, f32>(plain.matmul_in::<f32, _>(&plain));
    check::<f16, f16>(plain.mul(&plain));
    check::<f16, f32>(x.maximum(&plain));
    check::<f16, f32>(x.mse(&plain));
    check::<f16, f32>(x.gt(&plain).unwrap().where_cond(&x, &plain));
    let any = DynTensor::from(plain).with_grad_dtype(crate::GradDType::Any).unwrap();
    let any: Tensor<f16, AnyGrad> = any.typed().unwrap();
    check::<f16, AnyGrad>(x.div(&any));
    check::<f16, f32>(Tensor::cat(&[&x, &x], 0));
}

#[test]
fn values_stay_values() {
    let x: Value<f32> = Value::ones([2]).unwrap();
    let step: Value<f32> = x.gt(&Value::zeros([2]).unwrap()).unwrap().cast().unwrap();
    check::<f32, Untracked>(x.mul(&step));
    let noise: Tensor<bf16> = Tensor::randn([3], &mut Generator::new(1)).unwrap();
    check::<bf16, bf16>(noise.silu());
    assert_eq!(Tensor::<i32>::arange(0.0, 3.0, 1.0).unwrap().to_vec().unwrap(), [0, 1, 2]);
}
