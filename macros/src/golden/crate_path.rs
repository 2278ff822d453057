// #[autograd_function(out = f16, grad = f32, crate = facade::gradpact,)]
struct Renamed;
#[automatically_derived]
impl facade::gradpact::__private::Contract for Renamed {
    type Outputs<__E: facade::gradpact::__private::Engine> = facade::gradpact::__private::Tensor<
        facade::gradpact::__private::f16,
        facade::gradpact::__private::f32,
        __E,
    >;
    type Received<__E: facade::gradpact::__private::Engine> = Self::Outputs<__E>;
    type Backward = facade::gradpact::__private::Written;
    fn record<__E: facade::gradpact::__private::Graph>(
        self,
        __inputs: &facade::gradpact::__private::GivenInputs<'_, __E>,
    ) -> facade::gradpact::__private::Result<facade::gradpact::__private::Outputs<__E>>
    where
        Self: facade::gradpact::__private::Op<__E>,
    {
        facade::gradpact::__private::apply_optional(self, __inputs)
    }
}
#[automatically_derived]
impl<__E: facade::gradpact::__private::Engine> facade::gradpact::__private::Function<__E>
for Renamed
where
    Self: facade::gradpact::__private::Op<__E>,
{
    fn name(&self) -> &'static facade::gradpact::__private::str {
        "Renamed"
    }
    fn forward(
        &self,
        __ctx: &mut facade::gradpact::__private::Context<__E>,
        __inputs: &facade::gradpact::__private::Inputs<'_, __E>,
    ) -> facade::gradpact::__private::Result<facade::gradpact::__private::Outputs<__E>> {
        <facade::gradpact::__private::Context<
            _,
        >>::set_output_grad_dtype(
            __ctx,
            &[
                facade::gradpact::__private::GradDType::Exactly(
                    facade::gradpact::__private::DType::F32,
                ),
            ],
        )?;
        facade::gradpact::__private::forward(self, __ctx, __inputs)
    }
    fn backward(
        &self,
        __ctx: &facade::gradpact::__private::Context<__E>,
        __grads: facade::gradpact::__private::Gradients<__E>,
    ) -> facade::gradpact::__private::Result<
        facade::gradpact::__private::Gradients<__E>,
    > {
        facade::gradpact::__private::backward(self, __ctx, __grads)
    }
}
