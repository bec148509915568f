"""The tables of docs/accuracy.md and of the README, from tests/validation/expected_errors.csv, the tables of runs,
docs/score_log.csv and `tbd-sim validate --unseen all`. Each function returns lines of Markdown."""
import csv
import datetime
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOG = ROOT / "docs" / "score_log.csv"
UNSEEN_LOG = ROOT / "docs" / "unseen_log.csv"
UNSEEN_COLUMNS = ["date", "changed", "table", "group", "configurations", "mean", "median", "bias", "coverage"]

# Measured by the maintainers on runs that nobody who works on the model has seen: see docs/accuracy.md.
HELD_OUT = {"one GPU": "8.7 %", "one GPU, mixed precision": "17.9 %", "several machines": "38 %"}
HELD_OUT_COVERAGE = "65 to 68 %"
# Endings of the groups of unseen rows that a line of the summary is about.
UNSEEN_GROUPS = {"one GPU": ("_single",), "one GPU, mixed precision": ("_mixed_single",), "several GPUs in a machine": ("_multi",),
                 "several machines": ("_machines",)}


def expected(section):
    with open(ROOT / "tests" / "validation" / "expected_errors.csv", newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["section"] == section and int(row["configurations"])]


def percent(ratio, sign=""):
    return f"{100 * float(ratio):{sign}.1f} %"


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]


def errors(section):
    rows = [[f"`{r['group']}`", r["configurations"], percent(r["mean"]), percent(r["median"]), percent(r["p90"]),
             percent(r["max"]), percent(r["bias"], "+"), percent(r["coverage"])] for r in expected(section)]
    return table(["group", "configurations", "mean", "median", "90th percentile", "largest", "bias", "within 80 % interval"], rows)


def mean(rows, column, weight=None):
    weights = [int(row[weight]) if weight else 1 for row in rows]
    return sum(float(row[column]) * w for row, w in zip(rows, weights)) / sum(weights)


def is_own(row):
    """Whether a group is of runs that this project measured (simulate/validation/runs/h100_sxm_pytorch.csv)."""
    return row["group"].startswith("own_")


def is_time(row):
    return not row["group"].startswith("memory_") and not is_own(row)


def unseen_means(name):
    """The last mean error over configurations of rows that nobody looked at, of a line of the summary; and how many they are."""
    rows = [row for row in unseen_entries()[-1][2] if row["group"].endswith(UNSEEN_GROUPS.get(name, ()))]
    return [str(sum(int(row["configurations"]) for row in rows)), percent(mean(rows, "mean", "configurations"))] if rows else ["", "-"]


def summary():
    """Development rows beside unseen and held-out ones."""
    rows = [row for row in expected("score") if is_time(row)]
    sorts = {
        "one GPU": [row for row in rows if not row["group"].endswith(("_multi", "_machines"))],
        "one GPU, mixed precision": [row for row in rows if row["group"] == "cnn_mixed_single"],
        "several GPUs in a machine": [row for row in rows if row["group"].endswith("_multi")],
        "several machines": [row for row in rows if row["group"].endswith("_machines")],
        "memory": [row for row in expected("score") if row["group"].startswith("memory_")],
        "first runs measured by this project, an H100": [row for row in expected("score") if is_own(row)],
    }
    lines = [[name, str(sum(int(row["configurations"]) for row in those)), percent(mean(those, "mean")), *unseen_means(name),
              HELD_OUT.get(name, "-")] for name, those in sorts.items()]
    last = unseen_entries()[-1][2]
    lines.append(["measurements within the 80 % interval", *(cell for of in (rows, last) for cell in
                  (str(sum(int(row["configurations"]) for row in of)), f"{100 * mean(of, 'coverage', 'configurations'):.0f} %")),
                  HELD_OUT_COVERAGE])
    return table(["", "configurations", "development rows", "configurations", "unseen rows", "held-out rows"], lines)


def unseen_entries():
    """Each time the rows that nobody looked at were computed: (date, what changed, rows of the log)."""
    entries = []
    with open(UNSEEN_LOG, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not entries or entries[-1][:2] != (row["date"], row["changed"]):
                entries.append((row["date"], row["changed"], []))
            entries[-1][2].append(row)
    return entries


def unseen():
    """The last errors of rows that nobody looked at, by table and group."""
    rows = [[f"`{r['table']}`", f"`{r['group']}`", r["configurations"], percent(r["mean"]), percent(r["median"]), percent(r["bias"], "+"),
             percent(r["coverage"])] for r in unseen_entries()[-1][2]]
    return table(["table", "group", "configurations", "mean", "median", "bias", "within 80 % interval"], rows)


def unseen_log():
    """Each time they were computed: means over configurations and what changed."""
    lines = []
    for date, changed, rows in unseen_entries():
        kinds = [[r for r in rows if r["group"].endswith(ending)] for ending in (("_single",), ("_multi",), ("_machines",))]
        lines.append([date, *(percent(mean(of, "mean", "configurations")) if of else "-" for of in kinds),
                      f"{100 * mean(rows, 'coverage', 'configurations'):.0f} %", changed])
    return table(["date", "one GPU", "several GPUs", "several machines", "within 80 % interval", "what changed"], lines)


def sources():
    """How many rows of each table set constants, were looked at, or are no fair target."""
    lines = []
    for path in sorted((ROOT / "simulate" / "validation" / "runs").glob("*.csv")):
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        count = {"fit": 0, "score": 0, "context": 0}
        for row in rows:
            count["context" if row["use"] == "context" else row["split"]] += 1
        lines.append([f"`{path.stem}`", str(len(rows)), *(str(count[split]) for split in count)])
    total = [str(sum(int(line[column]) for line in lines)) for column in range(1, 5)]
    return table(["table", "rows", "fit: set constants", "score: looked at", "context: no fair target"], [*lines, ["all", *total]])


def without_gpu(run):
    """Errors with each GPU treated as never measured; `run(arguments)` returns what tbd-sim prints."""
    rows = [r for r in csv.DictReader(run(["validate", "--unseen", "all", "--format", "csv"]).splitlines()) if r["section"] == "score"]
    cell = lambda text: percent(text) if text else "-"
    lines = [[f"`{r['gpu']}`", r["configurations"], cell(r["mean"]), cell(r["one_product_mean"]), cell(r["data_sheet_mean"])] for r in rows]
    lines.append(["mean over GPUs", "", percent(mean(rows, "mean")), "", percent(mean(rows, "data_sheet_mean"))])
    return table(["GPU", "configurations", "as measured", "one product known", "data sheet only"], lines)


# The bars of the paper's Figure 8: model, framework, batch.
FIGURE_8 = [("resnet50", "mxnet", 32), ("resnet50", "tensorflow", 32), ("resnet50", "cntk", 32), ("inception_v3", "mxnet", 32),
            ("inception_v3", "tensorflow", 32), ("inception_v3", "cntk", 32), ("seq2seq", "tensorflow", 128), ("seq2seq", "mxnet", 64),
            ("transformer", "tensorflow", 16), ("faster_rcnn", "tensorflow", 1), ("faster_rcnn", "mxnet", 1), ("deep_speech2", "mxnet", 4),
            ("deep_speech2", "mxnet", 6), ("wgan_gp", "tensorflow", 64), ("a3c", "mxnet", 128)]


def figure_8(run):
    """GPU memory by category on a P4000."""
    lines = []
    for model, framework, batch in FIGURE_8:
        printed = run(["--gpu", "p4000", "--batch", str(batch), "--model", model, "--framework", framework, "--format", "csv"])
        row = next(csv.DictReader(printed.splitlines()))
        memory = {key.removeprefix("memory_"): float(value) for key, value in row.items() if key.startswith("memory_")}
        categories = [memory[key] for key in ("weights", "weight_gradients", "feature_maps", "workspace", "dynamic")]
        lines.append([model, framework, str(batch), *(f"{size / 2**30:.2f}" for size in categories),
                      f"{100 * memory['feature_maps'] / memory['model']:.0f} %", f"{memory['total'] / 2**30:.2f}"])
    return table(["model", "framework", "batch", "weights", "gradients", "maps", "workspace", "dynamic", "maps, %", "total"], lines)


def rare_keys(run):
    """Keys that at most two framework files have, with value and source."""
    found = {}
    for path in sorted((ROOT / "simulate" / "frameworks").glob("*.yaml")):
        for row in csv.DictReader(run(["show", path.stem, "--format", "csv"]).splitlines()):
            found.setdefault(row["key"], []).append([f"`{row['key']}`", f"`{path.stem}`", row["value"], row["source"]])
    rare = [line for lines in found.values() if len(lines) <= 2 for line in lines]
    return table(["key", "framework", "value", "source"], sorted(rare))


def profiles():
    """How many blocks of each profile are of its own GPU, and how many parameters their records determine."""
    lines = []
    for path in sorted((ROOT / "calibrate" / "profiles").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        counts = [text.count(key) for key in ("- generation:", "measured_on: others", "at_bound:")]
        if counts[0]:
            determined = [float(line.split()[1]) for line in text.splitlines() if "effective_parameters:" in line]
            lines.append([f"`{path.stem}`", *counts, f"{sum(determined) / len(determined):.1f}" if determined else "-"])
    total = ["all", *(sum(line[column] for line in lines) for column in range(1, 4)), ""]
    return table(["profile", "blocks", "of other GPUs", "with a parameter at a physical bound", "parameters determined, mean"],
                 [[str(cell) for cell in line] for line in [*lines, total]])


def aggregates():
    rows = expected("score")
    return [str(len(rows)), str(sum(int(row["configurations"]) for row in rows)), f"{mean(rows, 'mean'):.4f}",
            f"{mean(rows, 'mean', 'configurations'):.4f}"]


def read_log():
    with open(LOG, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


def log_is_complete():
    return read_log()[-1][1:] == aggregates()


def append_to_log():
    with open(LOG, "a", encoding="utf-8") as file:
        file.write(",".join([datetime.date.today().isoformat(), *aggregates()]) + "\n")


def log():
    rows = [[date, groups, configurations, percent(groups_mean), percent(rows_mean)] for date, groups, configurations, groups_mean, rows_mean in read_log()]
    return table(["date", "groups", "configurations", "mean over groups", "mean over configurations"], rows)


def all_tables(run):
    return {"summary": summary, "score": lambda: errors("score"), "fit": lambda: errors("fit"), "context": lambda: errors("context"),
            "sources": sources, "without_gpu": lambda: without_gpu(run), "log": log, "unseen": unseen, "unseen_log": unseen_log, "profiles": profiles, "rare_keys": lambda: rare_keys(run), "figure_8": lambda: figure_8(run)}
