"""The models that are trained and the models that are simulated have the same parameters."""

from __future__ import annotations

import json
import os
import subprocess
import unittest

import support  # noqa: F401  first: it puts the programs under test on the import path

from catalogue import MODELS

PROGRAM = os.environ.get("TBDSIM_PROGRAM", "")


@unittest.skipUnless(PROGRAM, "TBDSIM_PROGRAM does not name tbd-sim")
class Parameters(unittest.TestCase):
    def test_agree_with_the_simulator_where_it_has_the_model(self) -> None:
        listed = json.loads(subprocess.check_output([PROGRAM, "list", "models", "--format", "json"]))
        simulated = {row["name"] for row in listed["models"]}
        compared = 0
        for model in MODELS:
            if model.name not in simulated:
                continue
            command = [PROGRAM, "show", model.name, "--framework", "pytorch", "--format", "json"]
            totals = json.loads(subprocess.check_output(command))["totals"][0]
            with self.subTest(model.name):
                self.assertEqual(totals["parameters"] + totals["frozen_parameters"], model.parameters)
            compared += 1
        self.assertGreaterEqual(compared, 1)

    def test_rows_of_measured_runs_find_their_variant(self) -> None:
        resnet = next(model for model in MODELS if model.name == "resnet50")
        command = [PROGRAM, "show", "resnet50", "--variant", resnet.variant, "--format", "json"]
        totals = json.loads(subprocess.check_output(command))["totals"][0]
        self.assertEqual(totals["parameters"], resnet.parameters)


if __name__ == "__main__":
    unittest.main()
