"""Measured and predicted kernels of the same work are put into the same class."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "calibrate/runs"))

from kernel_classes import measured_class, predicted_class  # noqa: E402


def measured(operator, shapes, kernel="k"):
    return measured_class({"operator": operator, "shapes": json.dumps(shapes), "kernel": kernel})


def predicted(kernel, kind, phase="forward", shape=""):
    return predicted_class({"kernel": kernel, "kind": kind, "phase": phase, "shape": shape})


class KernelClasses(unittest.TestCase):
    def test_convolutions_by_groups_and_pass(self):
        images, dense, depthwise, grouped = [8, 32, 14, 14], [64, 32, 3, 3], [32, 1, 3, 3], [32, 8, 3, 3]
        back = "aten::convolution_backward"
        pairs = [
            (measured("aten::cudnn_convolution", [images, dense]), predicted("conv", "convolution", "forward", "8x32x14x14 64x3x3")),
            (
                measured(back, [images, images, depthwise], "x_dgrad_y"),
                predicted("conv", "convolution", "backward_data", "8x32x14x14 32x3x3 g32"),
            ),
            (
                measured(back, [images, images, grouped], "x_wgrad_y"),
                predicted("conv", "convolution", "backward_weights", "8x32x14x14 32x3x3/2 g4"),
            ),
            (measured(back, [images, images, dense], "xx::nchwToNhwcKernel"), predicted("nhwc_nchw", "transpose")),
        ]
        names = ["dense, forward", "depthwise, input gradient", "grouped, weight gradient", "layout"]
        for (one, other), name in zip(pairs, names, strict=True):
            self.assertEqual(one, "convolution, " + name)
            self.assertEqual(other, one)

    def test_other_operators(self):
        for operator, kernel, kind, phase, name in [
            ("aten::addmm", "matmul", "gemm", "forward", "product"),
            ("aten::_cudnn_attention_backward", "attention", "gemm", "backward_data", "attention"),
            ("aten::native_batch_norm", "batch_norm", "batch_norm", "forward", "batch norm"),
            ("aten::native_batch_norm", "batch_norm", "elementwise", "forward", "batch norm"),
            ("aten::_foreach_add_", "_foreach_add", "update", "update", "update"),
            ("aten::_log_softmax", "_log_softmax", "softmax", "forward", "softmax and loss"),
            ("aten::copy_", "cast", "elementwise", "forward", "copy and cast"),
            ("aten::copy_", "transpose", "transpose", "forward", "copy and cast"),
            ("aten::cat", "cat", "elementwise", "forward", "concatenation"),
            ("aten::cat", "stack", "elementwise", "backward_data", "concatenation"),
            ("aten::relu_", "relu", "elementwise", "forward", "element-wise"),
        ]:
            self.assertEqual(measured(operator, [[2, 3]]), name)
            self.assertEqual(predicted(kernel, kind, phase), name)


if __name__ == "__main__":
    unittest.main()
