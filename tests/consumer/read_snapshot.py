"""A memory snapshot of tbd-sim as others read it: Python's pickle and the rules that PyTorch's own snapshots follow;
with --viewer PyTorch's viewer (torch.cuda._memory_viz), where PyTorch is installed."""

import json
import os
import pickle
import subprocess
import sys
import tempfile


def check_rules(snapshot, says):
    """Blocks fill their segments, events alternate; sums are those of `tbd-sim memory`."""
    for segment in snapshot["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:  # without gaps
            assert block["address"] == at, (segment["address"], block["address"])
            assert block["size"] >= block["requested_size"]
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
    assert sum(segment["active_size"] for segment in snapshot["segments"]) == says["allocated"]
    assert sum(segment["total_size"] for segment in snapshot["segments"]) == says["reserved"]
    alive, now, most = {}, 0, 0
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            assert event["addr"] not in alive, event
            alive[event["addr"]] = event["size"]
            now += event["size"]
            most = max(most, now)
        elif event["action"] == "free_completed":
            assert alive.pop(event["addr"]) == event["size"]
            now -= event["size"]
    assert most == says["requested"], (most, says)


def check_viewer(viewer, snapshot, path, says):
    """PyTorch's viewer prints the same sums (what it calls allocated is without rounding) and makes its plots."""
    stats = viewer.segsum(snapshot)
    for key, name in (("total_reserved", "reserved"), ("total_allocated", "requested")):
        assert f"{key}: {viewer._format_size(says[name])}\n" in stats, (key, says[name], stats[-900:])
    for view in (viewer.memory, viewer.segments):
        sums = {}
        for line in view(snapshot, format_flamegraph=lambda lines: lines).splitlines():
            what = (line.split(";")[2 if view is viewer.segments else 1], ";<gaps> " in line)
            sums[what] = sums.get(what, 0) + int(line.rsplit(" ", 1)[1])
        assert sums["active_allocated", False] == says["requested"], sums
        assert sums["active_allocated", False] + sums.get(("active_allocated", True), 0) == says["allocated"], sums
        assert sum(sums.values()) == says["reserved"], sums
    assert "alloc" in viewer.trace(snapshot)
    for plot in ("trace_plot", "segment_plot"):
        subprocess.run([sys.executable, viewer.__file__, plot, path, "-o", path + ".html"], check=True)
        with open(path + ".html", encoding="utf-8") as page:
            assert "<html" in page.read().lower(), plot


def check(program, directory, model, framework, viewer):
    path = os.path.join(directory, f"{model}_{framework}.pickle")
    memory = [program, "memory", model, "--framework", framework, "--gpu", "titanxp", "--batch", "8"]
    subprocess.run([*memory, "--snapshot", "-o", path], check=True)
    answer = subprocess.run([*memory, "--format", "json"], check=True, capture_output=True).stdout
    says = json.loads(answer)["totals"][0]
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    if viewer:
        check_viewer(viewer, snapshot, path, says)
    else:
        check_rules(snapshot, says)
    print(f"{model} on {framework}: {len(snapshot['segments'])} segments, {says['allocated'] / 2**20:.0f} MiB of "
          f"{says['reserved'] / 2**20:.0f} MiB, {len(snapshot['device_traces'][0])} events")


def main():
    viewer = None
    if "--viewer" in sys.argv:
        try:
            from torch.cuda import _memory_viz as viewer
        except ImportError:
            print("PyTorch is not installed; its viewer is not run")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as directory:
        for model, framework in (("resnet50", "pytorch"), ("transformer", "pytorch")):
            check(sys.argv[1], directory, model, framework, viewer)


if __name__ == "__main__":
    main()
