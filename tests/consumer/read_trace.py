"""A trace of tbd-sim as others read it: Holistic Trace Analysis (PyPI: HolisticTraceAnalysis), which is made for
traces of PyTorch's profiler, must find every kernel, its launch, and as much time of kernels and idle time as
tbd-sim says. Exit code 77 where it is not installed."""

import json
import os
import subprocess
import sys
import tempfile

try:
    from hta.trace_analysis import TraceAnalysis
except ImportError:
    print("HolisticTraceAnalysis is not installed; the trace is not read")
    sys.exit(77)


def check(program, directory, model, framework):
    path = os.path.join(directory, f"{model}_{framework}.json")
    subprocess.run([program, "trace", model, "--framework", framework, "--gpu", "titanxp", "--batch", "16",
                    "-o", path], check=True)
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    kernels = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    busy = sum(event["dur"] for event in kernels)
    span = kernels[-1]["ts"] + kernels[-1]["dur"] - kernels[0]["ts"]

    analysis = TraceAnalysis(trace_files={0: path})
    found = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    launches = analysis.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0]
    rounding = 2 * len(kernels) + 2  # it cuts times to whole microseconds
    print(f"{model} on {framework}: {len(kernels)} kernels, busy {busy:.0f} us of {span:.0f} us; read: "
          f"{found['compute_time(us)']:.0f} us busy, {found['idle_time(us)']:.0f} us idle")
    assert len(kernels) > 100
    assert abs(found["compute_time(us)"] - busy) <= rounding
    assert abs(found["idle_time(us)"] - (span - busy)) <= rounding
    assert set(launches["correlation"]) >= {event["args"]["correlation"] for event in kernels}


def main():
    with tempfile.TemporaryDirectory() as directory:
        check(sys.argv[1], directory, "resnet50", "mxnet")
        check(sys.argv[1], directory, "faster_rcnn", "tensorflow")


if __name__ == "__main__":
    main()
