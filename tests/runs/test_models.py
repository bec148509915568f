"""The networks themselves, and the rehearsal on the CPU. Skipped where PyTorch is not installed."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import unittest

import support  # first: it puts the programs under test on the import path

from catalogue import BY_NAME, MODELS

HAS_TORCHVISION = support.HAS_TORCH and importlib.util.find_spec("torchvision") is not None

if support.HAS_TORCH:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    import precision
    import smoke
    from errors import CannotRun
    from workload import Options, Workload, no_phases

    META = torch.device("meta")


def on_paper(name: str, batch: int | None = None) -> Workload:
    """The workload at full size, with shapes and no numbers."""
    module = importlib.import_module(f"models.{BY_NAME[name].module}")
    return module.build(Options(META), batch or BY_NAME[name].batches[0])


def needs_torchvision(name: str) -> bool:
    return name == "faster_rcnn" and not HAS_TORCHVISION


@unittest.skipUnless(support.HAS_TORCH, support.NO_TORCH)
class Networks(unittest.TestCase):
    def test_parameters(self) -> None:
        for model in MODELS:
            if needs_torchvision(model.name):
                continue
            with self.subTest(model.name):
                modules = on_paper(model.name).modules
                self.assertEqual(sum(p.numel() for m in modules for p in m.parameters()), model.parameters)

    def test_deep_speech_2_lacks_only_the_batch_norms_inside_the_recurrence(self) -> None:
        # 181,043,613 with a scale and a shift for 2 x 1760 gate inputs in each of 2 x 5 layers
        self.assertEqual(BY_NAME["deep_speech2"].parameters, 181_043_613 - 10 * 2 * 2 * 1760)

    def test_seq2seq_has_one_bias_more_per_layer_than_tensorflow(self) -> None:
        self.assertEqual(BY_NAME["seq2seq"].parameters, 27_190_272 + 4 * 4 * 512)

    @unittest.skipUnless(HAS_TORCHVISION, "torchvision is not installed")
    def test_faster_rcnn_trains_what_the_mxnet_example_trains(self) -> None:
        (network,) = on_paper("faster_rcnn").modules
        self.assertEqual(sum(p.numel() for p in network.parameters() if p.requires_grad), 47_134_367)

    def test_multiply_adds_of_a_step(self) -> None:
        # 2 flops each. Forward and both gradients, without the gradient of the image.
        published = {"resnet50": 12.1495, "inception_v3": 17.1375}
        for name, gmac in published.items():
            with self.subTest(name):
                workload = on_paper(name, batch=2)
                with FlopCounterMode(display=False) as counter:
                    workload.step(no_phases)
                self.assertAlmostEqual(counter.get_total_flops() / 2 / 2e9, gmac, places=3)

    @unittest.skipUnless(HAS_TORCHVISION, "torchvision is not installed")
    def test_the_cnns_compute_what_torchvision_computes(self) -> None:
        from torchvision.models import inception_v3, resnet50

        from models.inception_v3 import InceptionV3
        from models.resnet import ResNet50

        pairs = ((ResNet50(), resnet50(), 64), (InceptionV3(), inception_v3(init_weights=False), 299))
        for own, theirs, size in pairs:
            with self.subTest(type(own).__name__), torch.no_grad():
                theirs.load_state_dict(dict(zip(theirs.state_dict(), own.state_dict().values(), strict=True)))
                image = torch.randn(1, 3, size, size)
                result = own.eval()(image)
                result = result[0] if isinstance(result, tuple) else result
                torch.testing.assert_close(result, theirs.eval()(image))

    def test_faster_rcnn_refuses_more_than_one_image(self) -> None:
        with self.assertRaisesRegex(CannotRun, "one image at a time"):
            on_paper("faster_rcnn", batch=2)


@unittest.skipUnless(support.HAS_TORCH, support.NO_TORCH)
class Precision(unittest.TestCase):
    def test_sets_tf32_on_and_off(self) -> None:
        for name, on in (("tf32", True), ("fp32", False), ("bf16", False)):
            precision.apply(name, torch.device("cpu"))
            self.assertEqual(torch.backends.cuda.matmul.allow_tf32, on)
            self.assertEqual(torch.backends.cudnn.allow_tf32, on)

    def test_observed_types_tell_what_autocast_did(self) -> None:
        layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4))

        def run() -> None:
            with Options(torch.device("cpu"), "bf16").autocast():
                layers(torch.randn(2, 4))

        types = precision.observed_types([layers], run)
        self.assertEqual(types["Linear"], ["bfloat16"])


@unittest.skipUnless(support.HAS_TORCH, support.NO_TORCH)
class Smoke(unittest.TestCase):
    def test_every_model_trains_a_step_on_the_cpu(self) -> None:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(smoke.smoke(MODELS), 0)
        for model in MODELS:
            expected = "skipped: needs torchvision" if needs_torchvision(model.name) else "one step trained"
            self.assertIn(f"{model.name}: {expected}", said.getvalue())

    def test_a_graph_without_a_gpu_cannot_run(self) -> None:
        from execution import prepare

        with self.assertRaisesRegex(CannotRun, "needs a GPU"):
            prepare(on_paper("a3c"), "cuda_graph", torch.device("cpu"))

    def test_several_networks_are_not_compiled(self) -> None:
        with self.assertRaisesRegex(CannotRun, "no single network"):
            on_paper("wgan_gp").compile()


if __name__ == "__main__":
    unittest.main()
