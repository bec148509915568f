#!/usr/bin/env python3
"""Which fitted constants of framework versions lower the error on rows that a fit did not see:

    calibrate/framework_fit/choose_constants.py build/release/calibrate/tbd-calibrate RUNS [VERSION...]

Each constant of a version that `tbd-calibrate fit-framework` can fit is taken out of the version's file, so that the value
of the file it is based on stands in (the family's, which is also the centre of the fit's prior), and fitted anew to the
rows of split `fit`: with each model, each GPU and each set of runs left out in turn. A line for each constant: value in
the file, the family's, fitted, and the left-out errors with the family's value and with the fitted one. A constant stays
where it lowers the mean of the left-out errors there are; one that no left-out row judges goes. Constants go one at a
time: take out the one that lowers least, and run it again.

    calibrate/framework_fit/choose_constants.py --check

fails where a file's sources call a constant fitted that the file does not have.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FRAMEWORKS = pathlib.Path("simulate") / "frameworks"
TIMES = ("kernel", "step", "update", "wait", "iteration", "gap")
FOLDS = ("of a model left out", "of a GPU left out", "of a set left out")
GPUS = "2"  # in a machine, as the fits of the catalogue


def constants_of(text):
    """Returns the names of the constants of a file whose sources say that they were fitted."""
    found = [key for key in re.findall(r'^ {4}(\w+): "fit:', text, re.M) if key in TIMES]
    source = re.search(r'^ {2}factors: "(.*?) fit:', text, re.M)
    if source:
        for name in (part.strip() for part in source.group(1).split(",")):
            capability = re.fullmatch(r"on (sm_\d+)", name)
            joint = re.fullmatch(r"(\w+) and (\w+) as one", name)
            if capability:
                found.append(f"factors.on.{capability[1]}")
            elif joint:
                found.append("factors." + "+".join(joint.groups()))
            else:
                found.append(f"factors.{name}")
    return found


def without(text, constant):
    """Returns the file's text without the constant; a factor's source stays, for the factors that are left."""
    if not constant.startswith("factors."):
        return re.sub(rf'^ {{2}}{constant}: .*\n|^ {{4}}{constant}: "fit:.*\n', "", text, flags=re.M)
    name = constant.removeprefix("factors.")
    keys = [name.removeprefix("on.")] if name.startswith("on.") else name.split("+")
    for key in keys:
        text = re.sub(rf"^ +{key}: [\d.]+\n", "", text, count=1, flags=re.M)
        text = re.sub(rf"^(factors: {{.*?)\b{key}: [\d.]+(, )?", r"\1", text, count=1, flags=re.M)
    text = re.sub(r"^  on:\n(?! {4}\w)", "", text, flags=re.M)
    if re.search(r"^factors:\n(?! )", text, re.M):
        text = re.sub(r"^factors:\n(?! )", "", text, flags=re.M)
        text = re.sub(r'^ {2}factors: ".*\n', "", text, flags=re.M)
    return text


def fit(program, data, runs, version, constant):
    """Returns (family's value, fitted value, remark, {fold: (family's error, fitted one's)})."""
    done = subprocess.run([program, "--data-dir", str(data), "fit-framework", runs, "--framework", version, "--constants", constant, "--gpus", GPUS],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{version} {constant}: {done.stderr.strip()}")
    line = next(line for line in done.stdout.splitlines() if line.startswith(constant))
    before, value, remark = re.fullmatch(re.escape(constant) + r"\s+(\S+(?: [num]?s)?)\s+(\S+(?: [num]?s)?)\s+\S+ %\s*(.*)", line).groups()
    folds = {}
    for fold in FOLDS:
        found = re.search(rf"^{fold}\s+\d+\s+([\d.]+) %\s+([\d.]+) %", done.stdout, re.M)
        if found:
            folds[fold] = (float(found[1]), float(found[2]))
    return before, value, remark, folds


def check():
    """Raises where a constant that is called fitted cannot be taken out of its file."""
    found = 0
    for path in sorted((ROOT / FRAMEWORKS).glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        for constant in constants_of(text):
            found += 1
            if without(text, constant) == text:
                raise RuntimeError(f"{path.name}: {constant} is called fitted, and is not there")
    if not found:
        raise RuntimeError("no file has a fitted constant")
    print(f"{found} fitted constants")


def main():
    if sys.argv[1:] == ["--check"]:
        return check()
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, runs, *versions = sys.argv[1:]
    names = versions or sorted(path.stem for path in (ROOT / FRAMEWORKS).glob("*.yaml"))
    print("version          constant                           family's  fitted    model out       GPU out         set out         verdict")
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder)
        for part in ("hwspecs", "graphs", "calibrate", "costmodel"):
            (data / part).symlink_to(ROOT / part)
        shutil.copytree(ROOT / "simulate", data / "simulate", symlinks=True)
        for name in names:
            file = data / FRAMEWORKS / f"{name}.yaml"
            text = file.read_text(encoding="utf-8")
            for constant in constants_of(text):
                changed = without(text, constant)
                if changed == text:
                    raise RuntimeError(f"{file.name}: {constant} is named as fitted, and not there")
                file.write_text(changed, encoding="utf-8")
                before, value, remark, folds = fit(program, data, runs, name, constant)
                file.write_text(text, encoding="utf-8")
                gain = sum(b - a for b, a in folds.values())
                verdict = "goes: no row left out" if not folds else "stays" if gain > 0 else "goes"
                cells = "  ".join(f"{folds[f][0]:4.1f} -> {folds[f][1]:4.1f} %" if f in folds else f"{'-':14}" for f in FOLDS)
                print(f"{name:16} {constant:34} {before:9} {value:9} {cells}  {verdict}{'; ' + remark if remark else ''}", flush=True)


if __name__ == "__main__":
    main()
