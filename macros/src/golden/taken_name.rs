// #[autograd_function(out = f16, grad = none)]
struct Named<__E>
where
    __E: Into<__E_>,
{
    field: __E,
}
#[automatically_derived]
impl<__E> ::gradpact::__private::Contract for Named<__E>
where
    __E: Into<__E_>,
{
    type Outputs<__E__: ::gradpact::__private::Engine> = ::gradpact::__private::Tensor<
        ::gradpact::__private::f16,
        ::gradpact::__private::NoGrad,
        __E__,
    >;
    type Received<__E__: ::gradpact::__private::Engine> = Self::Outputs<__E__>;
    type Backward = ::gradpact::__private::Written;
    fn record<__E__: ::gradpact::__private::Graph>(
        self,
        __inputs: &::gradpact::__private::GivenInputs<'_, __E__>,
    ) -> ::gradpact::__private::Result<::gradpact::__private::Outputs<__E__>>
    where
        Self: ::gradpact::__private::Op<__E__>,
    {
        ::gradpact::__private::apply_optional(self, __inputs)
    }
}
#[automatically_derived]
impl<__E, __E__: ::gradpact::__private::Engine> ::gradpact::__private::Function<__E__>
for Named<__E>
where
    __E: Into<__E_>,
    Self: ::gradpact::__private::Op<__E__>,
{
    fn name(&self) -> &'static ::gradpact::__private::str {
        "Named"
    }
    fn forward(
        &self,
        __ctx: &mut ::gradpact::__private::Context<__E__>,
        __inputs: &::gradpact::__private::Inputs<'_, __E__>,
    ) -> ::gradpact::__private::Result<::gradpact::__private::Outputs<__E__>> {
        <::gradpact::__private::Context<
            _,
        >>::set_output_grad_dtype(__ctx, &[::gradpact::__private::GradDType::Any])?;
        <::gradpact::__private::Context<_>>::mark_non_differentiable(__ctx, &[0]);
        ::gradpact::__private::forward(self, __ctx, __inputs)
    }
    fn backward(
        &self,
        __ctx: &::gradpact::__private::Context<__E__>,
        __grads: ::gradpact::__private::Gradients<__E__>,
    ) -> ::gradpact::__private::Result<::gradpact::__private::Gradients<__E__>> {
        ::gradpact::__private::backward(self, __ctx, __grads)
    }
}
