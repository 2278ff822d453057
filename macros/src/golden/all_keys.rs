// #[autograd_function(once, materialize = false, policy = strict, grad = f32, out = f16, crate = facade)]
struct All;
#[automatically_derived]
impl facade::__private::Contract for All {
    type Outputs<__E: facade::__private::Engine> = facade::__private::Tensor<
        facade::__private::f16,
        facade::__private::f32,
        __E,
    >;
    type Received<__E: facade::__private::Engine> = facade::__private::Option<
        facade::__private::Tensor<facade::__private::f16, facade::__private::f32, __E>,
    >;
    type Backward = facade::__private::Written;
    fn record<__E: facade::__private::Graph>(
        self,
        __inputs: &facade::__private::GivenInputs<'_, __E>,
    ) -> facade::__private::Result<facade::__private::Outputs<__E>>
    where
        Self: facade::__private::Op<__E>,
    {
        facade::__private::apply_optional(self, __inputs)
    }
}
#[automatically_derived]
impl<__E: facade::__private::Engine> facade::__private::Function<__E> for All
where
    Self: facade::__private::Op<__E>,
{
    fn name(&self) -> &'static facade::__private::str {
        "All"
    }
    fn forward(
        &self,
        __ctx: &mut facade::__private::Context<__E>,
        __inputs: &facade::__private::Inputs<'_, __E>,
    ) -> facade::__private::Result<facade::__private::Outputs<__E>> {
        <facade::__private::Context<
            _,
        >>::set_output_grad_dtype(
            __ctx,
            &[facade::__private::GradDType::Exactly(facade::__private::DType::F32)],
        )?;
        <facade::__private::Context<
            _,
        >>::set_policy(__ctx, facade::__private::Policy::Strict);
        <facade::__private::Context<_>>::set_materialize_grads(__ctx, false);
        <facade::__private::Context<_>>::mark_once_differentiable(__ctx);
        facade::__private::forward(self, __ctx, __inputs)
    }
    fn backward(
        &self,
        __ctx: &facade::__private::Context<__E>,
        __grads: facade::__private::Gradients<__E>,
    ) -> facade::__private::Result<facade::__private::Gradients<__E>> {
        facade::__private::backward(self, __ctx, __grads)
    }
}
