"""What is read from NVIDIA's own tools: names, clocks, counters."""

from __future__ import annotations

import ctypes
import subprocess
import time
import unittest
from pathlib import Path
from unittest import mock

import support  # first: it puts the programs under test on the import path

import counters
from errors import CannotRun
from gpu_names import catalogue_name
from plan import Configuration
from telemetry import Nvml, Sample, summarize

RESNET = Configuration("resnet50", 32, "fp32", "counters")
NCU_LOG = """==PROF== Connected to process 42 (python3.12)
==PROF== Disconnected from process 42
"ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum",\
"sm__sass_thread_inst_executed_op_fadd_pred_on.sum","sm__sass_thread_inst_executed_op_ffma_pred_on.sum",\
"sm__sass_thread_inst_executed_op_fmul_pred_on.sum"
"","","byte","byte","ns","inst","inst","inst"
"0","sgemm(float, int)","1,000","500","2000","10","1,000","20"
"1","relu","200","300","1000","5","0",""
"""


class Names(unittest.TestCase):
    def test_are_those_of_the_catalogue(self) -> None:
        names = {
            "NVIDIA H200": "h200",
            "NVIDIA H100 80GB HBM3": "h100_sxm",
            "NVIDIA A100-SXM4-80GB": "a100_sxm_80gb",
            "Tesla V100-SXM2-16GB": "v100_sxm2_16gb",
            "NVIDIA GeForce RTX 2080 Ti": "rtx2080ti",
            "NVIDIA TITAN Xp": "titanxp",
            "TITAN V": "titanv",
            "Quadro P4000": "p4000",
            "NVIDIA L40S": "l40s",
            "Tesla T4": "t4",
            "NVIDIA RTX A6000": "rtxa6000",
        }
        for driver_name, name in names.items():
            self.assertEqual(catalogue_name(driver_name), name)


class Clocks(unittest.TestCase):
    def test_are_medians_of_the_samples(self) -> None:
        samples = [
            Sample(1980, 3201, 400_000, 50, 0),
            Sample(1700, 3201, 600_000, 61, 4),
            Sample(1900, None, None, None, 1),
        ]
        seen = summarize(samples)
        self.assertEqual((seen.sm_mhz, seen.sm_mhz_min, seen.memory_mhz), (1900, 1700, 3201))
        self.assertEqual((seen.watts, seen.celsius_max, seen.throttle_reasons), (500.0, 61, 5))

    def test_are_unknown_without_samples(self) -> None:
        seen = summarize([])
        self.assertEqual((seen.samples, seen.sm_mhz, seen.watts, seen.throttle_reasons), (0, None, None, None))

    def test_a_refused_reading_is_none(self) -> None:
        library = mock.Mock(spec=["nvmlDeviceGetClockInfo", "nvmlDeviceGetPowerUsage"])
        library.nvmlDeviceGetClockInfo.return_value = 0
        library.nvmlDeviceGetPowerUsage.return_value = 3  # not supported
        nvml = Nvml(library, ctypes.c_void_p())
        self.assertEqual(nvml.sm_mhz(), 0)
        self.assertIsNone(nvml.milliwatts())
        self.assertIsNone(nvml.throttle_reasons())  # a library that has no such function

    def test_no_library_is_no_nvml(self) -> None:
        with mock.patch("telemetry.ctypes.CDLL", side_effect=OSError("no such file")):
            self.assertIsNone(Nvml.open(None))


class Counters(unittest.TestCase):
    def test_sum_over_the_kernels(self) -> None:
        seen = counters.parse(NCU_LOG)
        self.assertEqual(seen.kernels, 2)
        self.assertEqual(seen.fp32_flops, 15 + 20 + 2 * 1000)
        self.assertEqual(seen.dram_bytes, 2000)
        self.assertAlmostEqual(seen.kernel_seconds, 3e-6)

    def count(self, log: str, returncode: int) -> counters.Counters:
        def run(command: list[str], **_options: object) -> subprocess.CompletedProcess[str]:
            Path(command[command.index("--log-file") + 1]).write_text(log)
            return subprocess.CompletedProcess(command, returncode, "", "")

        with (
            mock.patch.object(counters, "find_ncu", return_value="ncu"),
            mock.patch("counters.subprocess.run", side_effect=run),
        ):
            return counters.count(RESNET, time.time() + 60)

    def test_are_read_from_the_log(self) -> None:
        self.assertEqual(self.count(NCU_LOG, 0).kernels, 2)

    def test_refused_counters_say_why(self) -> None:
        log = "==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - no permission to access the counters\n"
        with self.assertRaisesRegex(CannotRun, "no hardware counters: ncu says: .*ERR_NVGPUCTRPERM"):
            self.count(log, 1)
        with self.assertRaisesRegex(CannotRun, "no output"):
            self.count("", 0)

    def test_a_missing_tool_says_so(self) -> None:
        with (
            mock.patch("counters.shutil.which", return_value=None),
            mock.patch("counters.glob.glob", return_value=[]),
            mock.patch("counters.Path.exists", return_value=False),
            self.assertRaisesRegex(CannotRun, r"Nsight Compute \(ncu\) is not installed"),
        ):
            counters.find_ncu()


if __name__ == "__main__":
    unittest.main()
