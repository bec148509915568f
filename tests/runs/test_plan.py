from __future__ import annotations

import unittest

import support  # first: it puts the programs under test on the import path

from catalogue import BY_NAME, MODELS, MODES, PRECISIONS
from plan import EXTRA_SECONDS, GMACS_PER_SECOND, Configuration, estimated_seconds, full_plan, iterations_for, select


class Plan(unittest.TestCase):
    def test_starts_with_every_model_at_its_reference_batch_in_fp32(self) -> None:
        first = full_plan()[: len(MODELS)]
        self.assertEqual(first, [Configuration(m.name, m.batches[0], "fp32", "eager") for m in MODELS])

    def test_then_the_other_precisions_of_the_reference_batches(self) -> None:
        second = full_plan()[len(MODELS) : 3 * len(MODELS)]
        self.assertEqual({c.precision for c in second}, {"tf32", "bf16"})
        self.assertTrue(all(c.batch == BY_NAME[c.model].batches[0] and c.mode == "eager" for c in second))

    def test_long_extras_come_last(self) -> None:
        modes = [c.mode for c in full_plan()]
        self.assertEqual(modes[-4:], ["compile"] * 4)
        self.assertEqual(modes[-7:-4], ["counters"] * 3)
        self.assertNotIn("compile", modes[:-4])

    def test_has_every_eager_configuration_once_and_graphs_of_two_models(self) -> None:
        plan = full_plan()
        self.assertEqual(len(plan), len(set(plan)))
        eager = sum(len(m.batches) * len(PRECISIONS) for m in MODELS)
        self.assertEqual(sum(c.mode == "eager" for c in plan), eager)
        self.assertEqual({c.model for c in plan if c.mode == "cuda_graph"}, {"resnet50", "transformer"})

    def test_every_model_once_takes_under_two_minutes(self) -> None:
        self.assertLess(sum(estimated_seconds(c) for c in full_plan()[: len(MODELS)]), 120)

    def test_every_precision_and_mode_has_an_estimate(self) -> None:
        self.assertEqual(set(EXTRA_SECONDS), set(MODES))
        self.assertEqual(set(GMACS_PER_SECOND), set(PRECISIONS))

    def test_keys_are_read_back(self) -> None:
        for configuration in full_plan():
            self.assertEqual(Configuration.parse(configuration.key), configuration)


class Selection(unittest.TestCase):
    def test_by_name(self) -> None:
        chosen = select(full_plan(), "resnet50", 32, "bf16", "eager")
        self.assertEqual(chosen, [Configuration("resnet50", 32, "bf16", "eager")])

    def test_keeps_the_order_of_the_plan(self) -> None:
        chosen = select(full_plan(), precision="fp32", mode="eager")
        self.assertEqual(chosen, [c for c in full_plan() if c.precision == "fp32" and c.mode == "eager"])

    def test_a_batch_outside_the_plan_is_measured(self) -> None:
        chosen = select(full_plan(), "resnet50", 48, mode="eager")
        self.assertEqual(chosen, [Configuration("resnet50", 48, p, "eager") for p in PRECISIONS])

    def test_a_pair_outside_the_plan_is_measured(self) -> None:
        chosen = select(full_plan(), "transformer", precision="tf32", mode="cuda_graph")
        self.assertEqual(chosen, [Configuration("transformer", 64, "tf32", "cuda_graph")])


class Iterations(unittest.TestCase):
    def test_fifty_when_they_fit_into_four_seconds(self) -> None:
        self.assertEqual(iterations_for(0.05), 50)
        self.assertEqual(iterations_for(0.08), 50)

    def test_a_second_of_short_ones(self) -> None:
        self.assertEqual(iterations_for(0.002), 500)

    def test_fewer_but_at_least_ten_long_ones(self) -> None:
        self.assertEqual(iterations_for(0.2), 20)  # four seconds
        self.assertEqual(iterations_for(3.0), 10)


if __name__ == "__main__":
    unittest.main()
