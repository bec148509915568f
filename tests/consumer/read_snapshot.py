"""A memory snapshot of tbd-sim as others read it: Python's pickle, the rules that PyTorch's own snapshots follow,
and PyTorch's viewer (torch.cuda._memory_viz) where PyTorch is installed."""

import os
import pickle
import subprocess
import sys
import tempfile


def check(program, directory, model, framework):
    path = os.path.join(directory, f"{model}_{framework}.pickle")
    subprocess.run([program, "memory", model, "--framework", framework, "--gpu", "titanxp", "--batch", "8",
                    "--snapshot", "-o", path], check=True)
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    for segment in snapshot["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:  # without gaps
            assert block["address"] == at, (segment["address"], block["address"])
            assert block["size"] >= block["requested_size"]
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
    active = sum(segment["active_size"] for segment in snapshot["segments"])
    alive, most = {}, 0
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            assert event["addr"] not in alive, event
            alive[event["addr"]] = event["size"]
            most = max(most, sum(alive.values()) if len(alive) % 16 == 0 else 0)
        elif event["action"] == "free_completed":
            assert alive.pop(event["addr"]) == event["size"]
    print(f"{model} on {framework}: {len(snapshot['segments'])} segments, {active / 2**20:.0f} MiB active, "
          f"{len(snapshot['device_traces'][0])} events, {most / 2**20:.0f} MiB at the most")
    assert 0.98 * most <= active
    try:
        from torch.cuda import _memory_viz
    except ImportError:
        print("PyTorch is not installed; its viewer is not run")
        return
    assert _memory_viz.segsum(snapshot)
    assert "<html" in _memory_viz.trace_plot(snapshot).lower()


def main():
    with tempfile.TemporaryDirectory() as directory:
        for model, framework in (("resnet50", "pytorch"), ("transformer", "pytorch")):
            check(sys.argv[1], directory, model, framework)


if __name__ == "__main__":
    main()
