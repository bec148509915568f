"""The table of a step's kernels from a trace of PyTorch's profiler."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "calibrate/runs"))

import step_kernels  # noqa: E402


def operator(number, name, dims):
    return {"cat": "cpu_op", "name": name, "ts": 0, "args": {"External id": number, "Input Dims": dims, "Input type": ["float"]}}


def kernel(number, name, begin, duration):
    return {"cat": "kernel", "name": name, "ts": begin, "dur": duration, "args": {"External id": number}}


class StepKernels(unittest.TestCase):
    def test_launches_of_one_operator_and_shape_are_one_row_with_their_mean(self):
        events = [
            operator(1, "aten::mm", [[2, 3], [3, 4]]),
            operator(2, "aten::mm", [[2, 3], [3, 4]]),
            operator(3, "aten::mm", [[5, 3], [3, 4]]),
            kernel(3, "gemm", 30, 7.0),
            kernel(1, "gemm", 10, 4.0),
            kernel(2, "gemm", 20, 6.0),
            {"cat": "gpu_memset", "name": "Memset (Device)", "ts": 5, "dur": 1.0, "args": {}},
            {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1, "dur": 9.0, "args": {"External id": 1}},
        ]
        memset, small, large = step_kernels.rows_of_trace(events, steps=2)
        self.assertEqual((memset["operator"], memset["kernel"], memset["calls"]), ("", "Memset (Device)", 0.5))
        self.assertEqual((small["operator"], small["shapes"], small["calls"], small["time_us"]), ("aten::mm", "[[2,3],[3,4]]", 1.0, 5.0))
        self.assertEqual((large["shapes"], large["types"], large["calls"], large["time_us"]), ("[[5,3],[3,4]]", '["float"]', 0.5, 7.0))


if __name__ == "__main__":
    unittest.main()
