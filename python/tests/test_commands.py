"""The commands as functions: the same figures as the command line's, errors that say what is wrong."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tbdsim
from tbdsim import command_line

pytest.importorskip("tbdsim._core", reason="the module is not built: pip install .")

SCENARIO = {"gpu": "titanxp", "batch": 32, "framework": "mxnet"}


def test_predict_is_what_the_command_line_says():
    (row,) = tbdsim.predict("resnet50", **SCENARIO)
    out = command_line.run("--model", "resnet50", "--gpu", "titanxp", "--batch", "32", "--framework", "mxnet", "--format", "json")
    metrics = json.loads(out)["predictions"][0]["metrics"]
    assert row.throughput == metrics["throughput"]["value"]
    assert row.throughput_low < row.throughput < row.throughput_high
    assert row["iteration_time"] == pytest.approx(row.batch / row.throughput)
    assert row.fits is True
    assert row.memory_total == pytest.approx(row.memory_model + row.memory_context)
    assert row.memory_total < row.gpu_memory_usable < row.gpu_memory_nominal


def test_the_version_is_that_of_the_project():
    project = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text()
    assert tbdsim.__version__ == "unknown" or f'version = "{tbdsim.__version__}"' in project


def test_frameworks_are_named_by_release():
    (row,) = tbdsim.predict("resnet50", gpu="titanxp", batch=8, framework="PyTorch 1.11")
    assert row.framework == "pytorch_1_12"


def test_predict_makes_a_row_for_each_gpu_and_batch():
    table = tbdsim.predict("resnet50", gpu=["t4", "p4000"], batch=[8, 16])
    assert [(row.gpu, row.batch) for row in table] == [("t4", 8), ("t4", 16), ("p4000", 8), ("p4000", 16)]
    assert table.units["throughput"] == "images/s"
    assert table.units["memory_total"] == "B"


def test_memory_adds_up():
    table = tbdsim.memory("resnet50", **SCENARIO)
    assert sum(row.bytes for row in table) == pytest.approx(table.totals.model)
    assert table.totals.model + table.totals.context == pytest.approx(table.totals.total)


def test_max_batch_fits_and_the_next_does_not():
    (row,) = tbdsim.max_batch("resnet50", gpu="p4000")
    at_most, beyond = tbdsim.predict("resnet50", gpu="p4000", batch=[row.largest_batch, row.largest_batch + 1])
    assert at_most.fits and not beyond.fits


def test_sweep_whatif_scaling_kernels_and_lists():
    rows = tbdsim.sweep("resnet50", gpu=["t4", "l4"], framework="pytorch", batch="8:32:x2", metrics=["throughput"])
    assert len(rows) == 6 and {row.status for row in rows} == {"ok"}
    change = tbdsim.whatif("resnet50", set=["gpu.memory_bandwidth=+50%"], **SCENARIO)
    assert change[0].name == "throughput" and change[0].after > change[0].before
    points = tbdsim.scaling("resnet50", gpu="p4000", batch=32, framework="mxnet", gpus=[1, 2])
    assert points[1].throughput > points[0].throughput
    kernels = tbdsim.kernels("resnet50", **SCENARIO)
    assert all(kernel.time > 0 for kernel in kernels)
    (run,) = tbdsim.tta("resnet50", gpu="v100_sxm2_16gb", batch=64)
    assert run.time_low < run.time_to_target < run.time_high and run.cost_to_target > 0
    assert "titanxp" in {row.name for row in tbdsim.list_of("gpus")}
    assert tbdsim.show("resnet50").totals.parameters == sum(row.parameters for row in tbdsim.show("resnet50"))


def test_errors_are_those_of_the_program():
    with pytest.raises(tbdsim.TbdSimError, match="did you mean 'titanxp'"):
        tbdsim.predict("resnet50", gpu="titanxpp", batch=32)
    with pytest.raises(tbdsim.TbdSimError, match="no_such_option|no-such-option"):
        tbdsim.predict("resnet50", no_such_option=1, **SCENARIO)


def test_to_pandas():
    pandas = pytest.importorskip("pandas")
    frame = tbdsim.predict("resnet50", gpu="t4", batch=[8, 16]).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["batch"]) == [8, 16]


def test_a_captured_step_stands_where_a_model_does():
    captured = Path(__file__).parents[2] / "tests/captured/timm.resnet50.224.fp16.nchw.timm_benchmark.step.json.gz"
    step = tbdsim.load(captured)
    (from_step,) = tbdsim.predict(step, gpu="rtx3090", batch=64)
    (from_file,) = tbdsim.predict(captured, gpu="rtx3090", batch=64)
    assert from_step == from_file and from_step.throughput > 0
    (largest,) = tbdsim.max_batch(step, gpu="rtx3090")
    assert largest.largest_batch > 64
    assert tbdsim.show(step).totals.parameters == 25_557_032


def test_to_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = tbdsim.predict("resnet50", gpu="t4", batch=[8, 16])
    table.to_parquet(tmp_path / "x.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "x.parquet"), table.to_pandas())


def test_files_of_other_tools(tmp_path):
    files = Path(__file__).parents[2] / "tests/import/files"
    said = tbdsim.import_files(files / "devicequery_quadro_rtx5000.txt", output=tmp_path, set=["tdp=230W"])
    assert "deviceQuery of CUDA's samples" in said
    (row,) = tbdsim.predict("resnet50", gpu=str(tmp_path / "quadro_rtx_5000.yaml"), batch=8)
    assert row.throughput > 0
    rows = tbdsim.compare(files / "trace.json", "resnet50", batch=32, framework="pytorch_1_8", on="a100_sxm_40gb")
    assert rows.totals.measured_kernels == 6 and rows.totals.gpu_elsewhere == "a100_sxm_40gb"
    assert any(row.part == "data" and row.there for row in tbdsim.doctor())


def test_every_command_is_a_function():
    """But the one that serves a shell, for which there is the program itself."""
    told = command_line.run("--help").partition("Subcommands:")[2].partition("Examples:")[0]
    commands = {line.split()[0] for line in told.splitlines() if line.startswith("  ") and line[2].isalpha()} - {"completion"}
    assert len(commands) >= 18
    names = {"import": "import_files", "list": "list_of", "predict": "predict_runs"}
    assert {names.get(command, command.replace("-", "_")) for command in commands} <= set(tbdsim.__all__)


def test_without_a_model_the_suite_is_predicted():
    rows = tbdsim.predict(gpu="titanxp", batch=8)
    assert {"resnet50", "seq2seq"} < {row.model for row in rows} and {"mxnet", "tensorflow"} < {row.framework for row in rows}
    assert [row.model for row in tbdsim.predict(["resnet50", "vgg16"], gpu="t4", batch=8)] == ["resnet50", "vgg16"]


def test_runs_of_a_table_are_predicted(tmp_path):
    columns = "gpu,framework,precision,model,variant,batch_per_gpu,gpus,machines,metric,unit"
    (tmp_path / "runs.csv").write_text(f"{columns}\nt4,pytorch,fp32,resnet50,,16,1,1,throughput,images/s\n")
    (run,) = tbdsim.predict_runs(tmp_path / "runs.csv")
    (row,) = tbdsim.predict("resnet50", gpu="t4", batch=16)
    assert run.status == "ok" and float(run.predicted) == pytest.approx(row.throughput, rel=1e-4)


def test_the_program_itself():
    def program(*arguments):
        return subprocess.run([sys.executable, "-m", "tbdsim", *arguments], capture_output=True, text=True, timeout=60)

    done = program("list", "suites")
    assert done.returncode == 0 and "tbd" in done.stdout
    failed = program("--no-such-option")
    assert failed.returncode == 2 and "unknown argument" in failed.stderr


def test_serve_says_where_until_it_is_interrupted():
    command = [sys.executable, "-m", "tbdsim", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as serving:
        try:
            said = serving.stdout.readline()
            assert "http://127.0.0.1:" in said or "Plotly" in said  # the charts' library, where it is not there
        finally:
            serving.send_signal(signal.SIGINT)
    with pytest.raises(tbdsim.TbdSimError, match="standard error"):
        tbdsim.serve(port="none")


def test_pages_traces_and_observations(tmp_path):
    trace = tbdsim.trace(tmp_path / "trace.json", "resnet50", **SCENARIO)
    assert json.loads(trace.read_text())["traceEvents"]
    rows = tbdsim.observations("dawnbench")
    verdicts = {row.number: row.verdict for row in rows}  # a row for each piece of evidence
    assert len(verdicts) == 6 and list(verdicts.values()).count("holds") >= 5
    try:
        page = tbdsim.report(tmp_path / "report.html", "resnet50", gpu="titanxp", framework="mxnet")
    except tbdsim.TbdSimError as error:
        assert "plotly" in str(error)  # the charts' library is not there
    else:
        assert page.read_text().startswith("<!DOCTYPE html>")


def test_sweep_to_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    tbdsim.sweep("resnet50", gpu=["t4", "l4"], batch=[8, 16]).to_parquet(tmp_path / "x.parquet")
    assert list(pandas.read_parquet(tmp_path / "x.parquet")["batch"]) == [8, 16, 8, 16]


def test_the_loader_and_the_host_are_flags():
    (made_up,) = tbdsim.predict("resnet50", gpu="a100_sxm_40gb", batch=128, precision="amp", input="synthetic")
    (read,) = tbdsim.predict("resnet50", gpu="a100_sxm_40gb", batch=128, precision="amp", input="real", input_workers=64,
                             host_storage="100MB/s")
    assert read.throughput == pytest.approx(100e6 / 115.4e3) and read.throughput < made_up.throughput


def test_layouts_of_a_cluster():
    table = tbdsim.plan("llama3_8b", gpu="h100_sxm", gpus=16, global_batch=64, seq_len=4096)
    steps = [row.step_time for row in table if row.list == "best"]
    assert steps == sorted(steps) and steps[0] > 0
    assert table[0].tokens_per_second_low < table[0].tokens_per_second < table[0].tokens_per_second_high
    parts = tbdsim.plan("llama3_8b", gpu="h100_sxm", gpus=16, global_batch=64, seq_len=4096, tp=2, sequence_parallel=True)
    assert any(row.part == "tensor, exposed" for row in parts)
