"""What loaders.py times: samples of the sizes that the programs make."""

import io
import unittest

import support  # noqa: F401 - puts calibrate/runs on the path

try:
    import loaders
    from PIL import Image
except (ImportError, SystemExit):  # without PIL, numpy, torch or torchvision
    loaders = None


@unittest.skipIf(loaders is None, "PIL, numpy, torch or torchvision is missing")
class Samples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = loaders.jpeg()

    def test_the_image_has_the_mean_size_of_coco(self):
        self.assertEqual(Image.open(io.BytesIO(self.data)).size, (640, 480))
        self.assertAlmostEqual(len(self.data) / loaders.JPEG_BYTES, 1, delta=0.15)

    def test_images_have_the_sizes_of_the_networks(self):
        self.assertEqual(tuple(loaders.images_of_300(self.data)()[0].shape), (3, 300, 300))
        self.assertEqual(tuple(loaders.images_of_512(self.data)()[0].shape), (3, 512, 512))
        self.assertEqual(tuple(loaders.images_of_800(self.data)().shape), (3, 800, 1066))
        self.assertEqual(tuple(loaders.images_of_600(self.data)().shape), (3, 600, 800))
        self.assertEqual(tuple(loaders.images_of_32(self.data)().shape), (3, 32, 32))
        self.assertEqual(tuple(loaders.images_of_64(self.data)().shape), (3, 64, 64))

    def test_anchors_are_matched_by_their_overlap(self):
        one = loaders.torch.tensor([[0.0, 0.0, 2.0, 2.0], [5.0, 5.0, 6.0, 6.0]])
        other = loaders.torch.tensor([[1.0, 0.0, 3.0, 2.0]])  # shares 2 of 6
        self.assertEqual(loaders.overlaps(one, other).tolist(), [[loaders.torch.tensor(1 / 3).item()], [0.0]])

    def test_a_spectrogram_has_161_bins_each_10_ms(self):
        frames, bins = loaders.utterances(b"")().shape
        self.assertEqual(bins, 161)
        self.assertAlmostEqual(frames, 100 * loaders.SECONDS, delta=2)

    def test_a_symmetry_keeps_the_board(self):
        board, moves = loaders.positions(b"")()
        self.assertEqual((board.shape, moves.shape), ((19, 19, 17), (361,)))

    def test_text_comes_in_batches_of_its_lengths(self):
        words, *_, ends = loaders.questions(b"")()
        self.assertEqual((tuple(words.shape), tuple(ends.shape)), ((32, 384), (32,)))
        words, _, _, labels, _ = loaders.masked_words(b"")()
        self.assertEqual((tuple(words.shape), tuple(labels.shape)), ((32, 512), (32, 512)))
        self.assertLessEqual(int((labels[0] >= 0).sum()), 80)
        source, target = loaders.sentences(b"")()
        self.assertEqual((len(source), len(target)), (32, 32))
        self.assertGreater(source.shape[1], 30)

    def test_an_epoch_follows_the_other(self):
        draw = loaders.batches_of(list(range(64)), 32)
        self.assertEqual(sorted([*draw().tolist(), *draw().tolist()]), list(range(64)))
        self.assertEqual(len(draw()), 32)

    def test_times_are_of_a_sample(self):
        calls = []
        times = loaders.times_of(lambda: calls.append(1), 4, 0)
        self.assertEqual(len(times), 5)
        self.assertEqual(len(calls), 6)  # the first one warms up


if __name__ == "__main__":
    unittest.main()
