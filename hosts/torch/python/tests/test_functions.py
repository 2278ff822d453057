"""The module's Functions against the same Functions in Python: values, dtypes and gradients, bit for bit."""

import gc
import threading
import unittest

import torch
from torch.autograd.graph import node_creation_hook, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

import gradpact_torch
from gradpact_torch import testing
from reference import DECLARATIONS, DTYPES, Python, Rust, Sends, bits

F16, F32, F64 = torch.float16, torch.float32, torch.float64


def leaf(*shape, dtype=F16, grad_dtype=F32, seed=0):
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    tensor = values.to(dtype).requires_grad_()
    tensor.grad_dtype = grad_dtype
    return tensor


class TestCase(unittest.TestCase):
    def assert_same(self, graph):
        """`graph` builds and runs something with the Functions that it is given, and returns tensors."""
        rust, python = [[bits(tensor) for tensor in graph(side)] for side in (Rust, Python)]
        self.assertEqual(rust, python)


class Values(TestCase):
    def test_silu(self):
        def graph(f):
            x = leaf(1000)
            y = f.silu(x)
            self.assertEqual(y.dtype, F16)
            Sends.apply(y, torch.full((1000,), 1e-10)).backward()
            self.assertEqual(x.grad.dtype, F32)
            self.assertGreater(x.grad.abs().max(), 1e-11)
            return y, x.grad

        self.assert_same(graph)

    def test_linear(self):
        def graph(f):
            x, w = leaf(32, 17), leaf(17, 9, dtype=F32, seed=1)
            received = f.Received()
            y = f.linear(x, w, received)
            grad = torch.randn(32, 9, generator=torch.Generator().manual_seed(2)) * 1e-6
            y.backward(grad)
            return y, x.grad, w.grad, *received.take()

        self.assert_same(graph)

    def test_widen_does_not_flush_and_float_does(self):
        for f in Rust, Python:
            grads = []
            for conversion in f.widen, torch.Tensor.float:
                x = leaf(3)
                (conversion(f.silu(x)).sum() * 1e-10).backward()
                grads.append(x.grad)
            self.assertGreater(grads[0].abs().min(), 0)
            self.assertEqual(grads[1].tolist(), [0, 0, 0])
        self.assert_same(lambda f: [f.widen(f.silu(leaf(3)))])

    def test_narrow(self):
        def graph(f):
            x = leaf(3, dtype=F32)
            y = f.narrow(x)
            self.assertEqual((y.dtype, y.grad_fn.next_functions[0][0].variable is x), (F16, True))
            Sends.apply(f.silu(y), torch.full((3,), 1e-10)).backward()
            self.assertGreater(x.grad.abs().min(), 0)
            return y, x.grad

        self.assert_same(graph)

    def test_two_uses_are_summed_in_the_declared_dtype(self):
        def graph(f):
            x = leaf(4)
            received = f.Received()
            y = f.scale(x, leaf(4, seed=3), F32, received)
            first = Sends.apply(y, torch.full((4,), 2.0**-11))
            second = Sends.apply(y, torch.full((4,), 1.0, dtype=F16))
            (first + second).backward()
            grads = received.take()
            self.assertEqual(grads[0][0].item(), 1 + 2.0**-11)
            return x.grad, *grads

        self.assert_same(graph)

    def test_chains(self):
        for first in DECLARATIONS:
            for second in DECLARATIONS:

                def graph(f):
                    x, w = leaf(4), leaf(4, seed=1)
                    received = f.Received()
                    y = f.scale(f.scale(x, w, first, received), w, second, received)
                    Sends.apply(y, torch.tensor([0.1, 1e-10, 70000, -0.0])).backward()
                    return x.grad, w.grad, *received.take()

                with self.subTest(first=first, second=second):
                    self.assert_same(graph)

    def test_mixed_consumers(self):
        consumers = [
            lambda y: (y.float() * 1e-5).sum(),
            lambda y: y.sum(dtype=F32) * 1e-10,
            lambda y: (y + torch.zeros(4)).sum() * 1e-10,
            lambda y: y[1:].clone().sum().float(),
            lambda y: Sends.apply(y, torch.full((4,), 0.1, dtype=F64)),
            lambda y: (y.view(2, 2) @ y.view(2, 2)).sum().float(),
        ]
        for declaration in DECLARATIONS:

            def graph(f):
                x = leaf(4)
                received = f.Received()
                y = f.scale(x, leaf(4, seed=1), declaration, received)
                sum(consumer(y) for consumer in consumers).backward()
                return x.grad, *received.take()

            with self.subTest(declaration=declaration):
                self.assert_same(graph)

    def test_a_network_of_both_kinds(self):
        def graph(f):
            x, w1, w2 = leaf(8, 16), leaf(16, 12, dtype=F32, seed=1), leaf(12, 4, dtype=F32, seed=2)
            hidden = f.silu(f.linear(x, w1)) if f is Rust else Python.silu(Rust.linear(x, w1))
            logits = Rust.widen(Python.linear(hidden, w2))
            loss = torch.nn.functional.cross_entropy(logits, torch.arange(8) % 4)
            loss.backward()
            return loss, x.grad, w1.grad, w2.grad

        self.assert_same(graph)

    def test_several_outputs(self):
        def graph(f):
            x = leaf(3, dtype=F32)
            received = f.Received()
            once, twice = f.split(x, received)
            self.assertEqual((once.output_nr, twice.output_nr), (0, 1))
            grads = torch.full((3,), 1e-9), torch.full((3,), 1e-9, dtype=F64)
            torch.autograd.backward([once, twice], grads)
            return once, twice, x.grad, *received.take()

        self.assert_same(graph)

    def test_an_unused_output_gets_zeros_in_the_declared_dtype_and_in_pytorch_in_its_own(self):
        for f, dtype in (Rust, F64), (Python, F16):
            x = leaf(3, dtype=F32)
            received = f.Received()
            once, _ = f.split(x, received)
            once.backward(torch.ones(3))
            used, unused = received.take()
            self.assertEqual((used.dtype, unused.dtype), (F32, dtype))
            self.assertEqual(unused.tolist(), [0, 0, 0])
            self.assertEqual(x.grad.tolist(), [1, 1, 1])


class Graphs(TestCase):
    def test_the_node_is_in_pytorchs_graph(self):
        x = leaf(3)
        y = gradpact_torch.silu(x)
        self.assertEqual(y.grad_fn.name(), "SiluBackward")
        self.assertEqual((y * 2).grad_fn.next_functions[0][0].name(), "SiluBackward")
        self.assertEqual(y.grad_fn.next_functions[0][0].variable is x, True)

    def test_no_grad(self):
        x = leaf(3)
        with torch.no_grad():
            self.assertFalse(gradpact_torch.silu(x).requires_grad)
        self.assertFalse(gradpact_torch.silu(x.detach()).requires_grad)
        with torch.inference_mode():
            self.assertTrue(gradpact_torch.silu(x).is_inference())

    def test_create_graph(self):
        def graph(f):
            x = leaf(5)
            v = torch.full((5,), 0.1, requires_grad=True)
            y = f.silu(x)
            (gx,) = torch.autograd.grad(y, x, v, create_graph=True)
            self.assertTrue(gx.requires_grad)
            ggx, ggv = torch.autograd.grad(gx.sum(), (x, v))
            return gx, ggx, ggv

        self.assert_same(graph)

    def test_three_derivatives(self):
        def graph(f):
            x = torch.tensor([2.0], dtype=F64, requires_grad=True)
            y = f.scale(f.scale(x, x, "undeclared", f.Received()), x, "any", f.Received())
            derivatives = []
            for _ in range(3):
                (y,) = torch.autograd.grad(y, x, create_graph=True)
                derivatives.append(y)
            self.assertEqual([d.item() for d in derivatives], [12, 12, 6])
            return derivatives

        self.assert_same(graph)

    def test_grad_with_respect_to_an_output(self):
        for declaration in DECLARATIONS:

            def graph(f):
                y = f.scale(leaf(3), None, declaration, f.Received())
                return torch.autograd.grad(Sends.apply(y, torch.full((3,), 0.1)), y)

            self.assert_same(graph)

    def test_hooks_see_the_declared_dtype(self):
        def graph(f):
            x = leaf(3)
            seen = []
            y = f.silu(x)
            y.register_hook(lambda grad: seen.append(grad.clone()))
            y.grad_fn.register_prehook(lambda grads: seen.append(grads[0].clone()))
            y.grad_fn.register_hook(lambda grads, _: seen.append(grads[0].clone()))
            y.retain_grad()
            y.backward(torch.full((3,), 1e-10))
            self.assertEqual([grad.dtype for grad in seen], [F32] * 3)
            return y.grad, *seen

        self.assert_same(graph)

    def test_a_second_backward_needs_retain_graph(self):
        y = gradpact_torch.silu(leaf(3))
        y.backward(torch.ones(3), retain_graph=True)
        y.backward(torch.ones(3))
        with self.assertRaisesRegex(RuntimeError, "Silu"):
            y.backward(torch.ones(3))

    def test_a_saved_input_changed_in_place(self):
        x = leaf(3)
        w = leaf(3, seed=1).detach().clone()
        y = testing.scale(x, w, "float16", "float32", gradpact_torch.Received())
        w.mul_(2)
        with self.assertRaisesRegex(RuntimeError, "inplace operation"):
            y.backward(torch.ones(3))

    def test_hooks_on_saved_tensors_and_on_new_nodes(self):
        packed, nodes = [], []

        def pack(tensor):
            packed.append(tensor.shape)
            return tensor.clone()

        x = leaf(3)
        with saved_tensors_hooks(pack, lambda tensor: tensor), node_creation_hook(nodes.append):
            y = gradpact_torch.silu(x)
        self.assertEqual(packed, [(3,)])
        self.assertEqual(nodes[-1].name(), "SiluBackward")
        y.backward(torch.ones(3))

    def test_exceptions_of_hooks_on_saved_tensors(self):
        class Mine(Exception):
            pass

        def raises(_):
            raise Mine("from a hook in Python")

        x = leaf(3)
        with self.assertRaisesRegex(Mine, "from a hook"), saved_tensors_hooks(raises, lambda tensor: tensor):
            gradpact_torch.silu(x)
        with self.assertRaisesRegex(Mine, "from a hook"), node_creation_hook(raises):
            gradpact_torch.silu(x)
        with saved_tensors_hooks(lambda tensor: tensor, raises):
            y = gradpact_torch.silu(x)
        with self.assertRaisesRegex(Mine, "from a hook"):
            (y * 2).sum().backward()
        with self.assertRaisesRegex(Mine, "from a hook"):
            testing.backward(gradpact_torch.widen(y).sum())

    def test_checkpoint(self):
        def graph(f):
            x, w = leaf(3, 4), leaf(4, 5, dtype=F32, seed=1)
            received = f.Received()

            def block(x):
                return f.widen(f.silu(f.linear(x, w, received)))

            y = checkpoint(block, x, use_reentrant=False)
            (y.sum() * 1e-10).backward()
            return y, x.grad, w.grad, *received.take()

        self.assert_same(graph)

    def test_threads(self):
        expected = self.one_graph()
        problems = []

        def work():
            try:
                for _ in range(50):
                    self.assertEqual(self.one_graph(), expected)
                    self.assertIn("Fails", self.failing_graph())
            except BaseException as problem:
                problems.append(problem)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
            self.assertFalse(thread.is_alive())
        self.assertEqual(problems, [])

    @staticmethod
    def one_graph():
        x, w = leaf(8, 16), leaf(16, 4, dtype=F32, seed=1)
        y = gradpact_torch.widen(Python.silu(gradpact_torch.linear(x, w)))
        (gradpact_torch.silu(y.half()).sum(dtype=F32) * 1e-3).backward()
        return bits(x.grad), bits(w.grad)

    @staticmethod
    def failing_graph():
        y = testing.fail(leaf(3), "backward", "error")
        try:
            y.sum().backward()
        except RuntimeError as error:
            return str(error)
        return "no error"

    def test_nothing_is_kept(self):
        def kilobytes():
            gc.collect()
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

        def run(graphs):
            for _ in range(graphs):
                self.one_graph()
                self.failing_graph()

        run(300)
        before = kilobytes()
        run(2000)
        self.assertLess(kilobytes() - before, 2000)


class Errors(TestCase):
    def test_in_forward(self):
        for how, text in ("error", "an error of the forward"), ("panic", "a panic of the forward"):
            with self.assertRaisesRegex(RuntimeError, f"forward of `Fails`.*{text}"):
                testing.fail(leaf(3), "forward", how)

    def test_in_backward(self):
        cases = ("error", "an error of the backward"), ("panic", "a panic of the backward"), ("shape", r"\[1, 3\]")
        for how, text in cases:
            y = testing.fail(leaf(3), "backward", how)
            with self.assertRaisesRegex(RuntimeError, f"(?s)Fails.*{text}"):
                (y * 2).sum().backward()

    def test_inputs(self):
        x, w = leaf(3, 4), leaf(4, 2, dtype=F32)
        with self.assertRaisesRegex(RuntimeError, "Silu.*f16.*f32"):
            gradpact_torch.silu(w)
        with self.assertRaisesRegex(RuntimeError, "Linear"):
            gradpact_torch.linear(x, w.t())
        with self.assertRaisesRegex(RuntimeError, "sparse"):
            gradpact_torch.silu(x.detach().to_sparse())
        with self.assertRaisesRegex(TypeError, "torch.Tensor"):
            gradpact_torch.silu([1.0])
        with self.assertRaisesRegex(RuntimeError, "complex|Complex"):
            gradpact_torch.silu(torch.zeros(3, dtype=torch.complex64))

    def test_an_exception_in_another_nodes_backward_passes_through(self):
        class Mine(Exception):
            pass

        def raises(_):
            raise Mine("from a hook in Python")

        for below in True, False:
            x = leaf(3)
            x = x * 1
            if below:
                x.register_hook(raises)
            y = gradpact_torch.silu(x)
            if not below:
                y.register_hook(raises)
            with self.assertRaisesRegex(Mine, "from a hook in Python"):
                gradpact_torch.widen(y).sum().backward()

    def test_backward_run_from_rust(self):
        def raises(_):
            raise ValueError("from a hook in Python")

        x = leaf(3)
        testing.backward(gradpact_torch.widen(Python.silu(x)).sum())
        self.assertEqual(x.grad.dtype, F32)
        y = gradpact_torch.silu(x)
        y.register_hook(raises)
        with self.assertRaisesRegex(ValueError, "from a hook in Python"):
            testing.backward(y.sum())
        with self.assertRaisesRegex(RuntimeError, "an error of the backward"):
            testing.backward(testing.fail(x, "backward", "error").sum())
        with self.assertRaisesRegex(BaseException, "a panic of the backward"):
            testing.backward(testing.fail(x, "backward", "panic").sum())

    def test_a_backward_that_python_runs_inside_a_backward(self):
        class Inner(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                with torch.enable_grad():
                    inner = x.detach().requires_grad_()
                    gradpact_torch.silu(inner).backward(grad)
                return inner.grad

        x = leaf(3)
        gradpact_torch.silu(Inner.apply(x)).sum().backward()
        self.assertTrue(x.grad.isfinite().all())


class Dtypes(TestCase):
    def test_the_input_as_it_is_is_a_view_in_both(self):
        def graph(f):
            x = leaf(3)
            y = f.scale(x, None, F32, f.Received())
            self.assertEqual((y is x, y.data_ptr()), (False, x.data_ptr()))
            with self.assertRaisesRegex(RuntimeError, "is a view and is being modified inplace"):
                y.mul_(2)
            return [y]

        self.assert_same(graph)

    def test_leaves_keep_what_they_say(self):
        for grad_dtype in [None, *DTYPES]:

            def graph(f):
                x = leaf(3, grad_dtype=grad_dtype)
                f.scale(x, None, F64, f.Received()).backward(torch.full((3,), 0.1, dtype=F64))
                return [x.grad]

            self.assert_same(graph)


if __name__ == "__main__":
    unittest.main()
