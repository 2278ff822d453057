// #[autograd_function(out = f64, grad = none)]
struct Detach;
#[automatically_derived]
impl ::gradpact::__private::Contract for Detach {
    type Outputs<__E: ::gradpact::__private::Engine> = ::gradpact::__private::Tensor<
        ::gradpact::__private::f64,
        ::gradpact::__private::NoGrad,
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
impl<__E: ::gradpact::__private::Engine> ::gradpact::__private::Function<__E> for Detach
where
    Self: ::gradpact::__private::Op<__E>,
{
    fn name(&self) -> &'static ::gradpact::__private::str {
        "Detach"
    }
    fn forward(
        &self,
        __ctx: &mut ::gradpact::__private::Context<__E>,
        __inputs: &::gradpact::__private::Inputs<'_, __E>,
    ) -> ::gradpact::__private::Result<::gradpact::__private::Outputs<__E>> {
        <::gradpact::__private::Context<
            _,
        >>::set_output_grad_dtype(__ctx, &[::gradpact::__private::GradDType::Any])?;
        <::gradpact::__private::Context<_>>::mark_non_differentiable(__ctx, &[0]);
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
