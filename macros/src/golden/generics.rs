// #[autograd_function(out = f16, grad = f32)]
struct Map<'a, T: Clone + 'a = u8, const N: usize = 2>(
    &'a [T; N],
)
where
    T: Copy,
    [T; { N + 1 }]: Sized;
#[automatically_derived]
impl<'a, T: Clone + 'a, const N: usize> ::gradpact::__private::Contract for Map<'a, T, N>
where
    T: Copy,
    [T; { N + 1 }]: Sized,
{
    type Outputs<__E: ::gradpact::__private::Engine> = ::gradpact::__private::Tensor<
        ::gradpact::__private::f16,
        ::gradpact::__private::f32,
        __E,
    >;
    type Received<__E: ::gradpact::__private::Engine> = Self::Outputs<__E>;
    type Backward = ::gradpact::__private::Written;
    fn record<__E: ::gradpact::__private::Graph>(
        self,
        __inputs: &::gradpact::__private::GivenInputs<'_, __E>,
    ) -> ::gradpact::__private::Result<::gradpact::__private::Outputs<__E>>
    where
        Self: ::gradpact::__private::Op<__E>,
    {
        ::gradpact::__private::apply_optional(self, __inputs)
    }
}
#[automatically_derived]
impl<
    'a,
    T: Clone + 'a,
    const N: usize,
    __E: ::gradpact::__private::Engine,
> ::gradpact::__private::Function<__E> for Map<'a, T, N>
where
    T: Copy,
    [T; { N + 1 }]: Sized,
    Self: ::gradpact::__private::Op<__E>,
{
    fn name(&self) -> &'static ::gradpact::__private::str {
        "Map"
    }
    fn forward(
        &self,
        __ctx: &mut ::gradpact::__private::Context<__E>,
        __inputs: &::gradpact::__private::Inputs<'_, __E>,
    ) -> ::gradpact::__private::Result<::gradpact::__private::Outputs<__E>> {
        <::gradpact::__private::Context<
            _,
        >>::set_output_grad_dtype(
            __ctx,
            &[
                ::gradpact::__private::GradDType::Exactly(
                    ::gradpact::__private::DType::F32,
                ),
            ],
        )?;
        ::gradpact::__private::forward(self, __ctx, __inputs)
    }
    fn backward(
        &self,
        __ctx: &::gradpact::__private::Context<__E>,
        __grads: ::gradpact::__private::Gradients<__E>,
    ) -> ::gradpact::__private::Result<::gradpact::__private::Gradients<__E>> {
        ::gradpact::__private::backward(self, __ctx, __grads)
    }
}
