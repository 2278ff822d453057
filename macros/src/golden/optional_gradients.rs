// #[autograd_function(out = (f16, i64, T, bf16), grad = (f32, none, any, none), materialize = false)]
struct TopK<T: Element>(T);
#[automatically_derived]
impl<T: Element> ::gradpact::__private::Contract for TopK<T> {
    type Outputs<__E: ::gradpact::__private::Engine> = (
        ::gradpact::__private::Tensor<
            ::gradpact::__private::f16,
            ::gradpact::__private::f32,
            __E,
        >,
        ::gradpact::__private::Tensor<
            ::gradpact::__private::i64,
            ::gradpact::__private::i64,
            __E,
        >,
        ::gradpact::__private::Tensor<T, ::gradpact::__private::AnyGrad, __E>,
        ::gradpact::__private::Tensor<
            ::gradpact::__private::bf16,
            ::gradpact::__private::NoGrad,
            __E,
        >,
    );
    type Received<__E: ::gradpact::__private::Engine> = (
        ::gradpact::__private::Option<
            ::gradpact::__private::Tensor<
                ::gradpact::__private::f16,
                ::gradpact::__private::f32,
                __E,
            >,
        >,
        ::gradpact::__private::Tensor<
            ::gradpact::__private::i64,
            ::gradpact::__private::i64,
            __E,
        >,
        ::gradpact::__private::Option<
            ::gradpact::__private::Tensor<T, ::gradpact::__private::AnyGrad, __E>,
        >,
        ::gradpact::__private::Tensor<
            ::gradpact::__private::bf16,
            ::gradpact::__private::NoGrad,
            __E,
        >,
    );
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
impl<T: Element, __E: ::gradpact::__private::Engine> ::gradpact::__private::Function<__E>
for TopK<T>
where
    Self: ::gradpact::__private::Op<__E>,
{
    fn name(&self) -> &'static ::gradpact::__private::str {
        "TopK"
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
                ::gradpact::__private::GradDType::Any,
                ::gradpact::__private::GradDType::Any,
                ::gradpact::__private::GradDType::Any,
            ],
        )?;
        <::gradpact::__private::Context<_>>::mark_non_differentiable(__ctx, &[3]);
        <::gradpact::__private::Context<_>>::set_materialize_grads(__ctx, false);
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
