// Releases of frameworks as people write them, and the file of the catalogue that each is predicted by.
#include "simulate/framework/release.h"

#include <gmock/gmock.h>

#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;
using testing::Optional;
using testing::Pair;

Release of_framework(int major, std::optional<int> minor, std::optional<int> cudnn = {}) {
  return {ReleaseOf::framework, major, minor, cudnn};
}

TEST(ReleaseIn, Frameworks) {
  EXPECT_EQ(release_in("1.12.1+cu113"), of_framework(1, 12));
  EXPECT_EQ(release_in("torch 1.5+cu101, cuDNN 7.6"), of_framework(1, 5, 7));
  EXPECT_EQ(release_in("MLPerf v1.0, PyTorch 1.9.0"), of_framework(1, 9));
  EXPECT_EQ(release_in("2.4 tf_cnn_benchmarks, synthetic data"), of_framework(2, 4));
  EXPECT_EQ(release_in("TF2.4"), of_framework(2, 4));
  EXPECT_EQ(release_in("pytorch-v2.x"), of_framework(2, {}));
  EXPECT_EQ(release_in("1_11"), of_framework(1, 11));
  EXPECT_EQ(release_in("2.1.0, cuDNN 8902"), of_framework(2, 1, 8));
  EXPECT_EQ(release_in("2.6, cudnn 90100"), of_framework(2, 6, 9));
}

TEST(ReleaseIn, Containers) {
  EXPECT_EQ(release_in("NGC 22.06-py3"), (Release{ReleaseOf::container, 22, 6}));
  EXPECT_EQ(release_in("dgx1_ngc19.05_tensorflow"), (Release{ReleaseOf::container, 19, 5}));
  EXPECT_EQ(release_in("MXNet NVIDIA Release 21.05, cuDNN 8.2.0.51"),
            (Release{ReleaseOf::container, 21, 5, 8}));
  EXPECT_EQ(release_in("NGC container, torch 2.1.0a0+32f93b1"),
            (Release{ReleaseOf::framework_in_container, 2, 1}));
}

TEST(ReleaseIn, NoRelease) {
  for (const char* text : {"", "2019", "CUDA10.2 cuDNN7605", "commit 0a03417", "Sockeye 1.12.3", "NGC tf2",
                           "tf_cnn_benchmarks", "torch", "1234.5", "release 2.3", "CUDA 11, TF32"})
    EXPECT_EQ(release_in(text), std::nullopt) << text;
}

TEST(FamilyAndRelease, AsTyped) {
  EXPECT_THAT(family_and_release("PyTorch 1.12"), Optional(Pair("PyTorch", "1.12")));
  EXPECT_THAT(family_and_release("torch==1.9.0+cu111"), Optional(Pair("torch", "1.9.0+cu111")));
  EXPECT_THAT(family_and_release("pytorch_2_0"), Optional(Pair("pytorch", "2_0")));
  EXPECT_THAT(family_and_release("tf2"), Optional(Pair("tf", "2")));
  EXPECT_THAT(family_and_release("PyTorch NGC 22.10"), Optional(Pair("PyTorch", "NGC 22.10")));
  for (const char* name :
       {"pytorch", "1.12", "pytorch_1_11_typo", "pytorch 1e9", "pytorch 99999", "tf32", "pytorch 1.1rc"})
    EXPECT_EQ(family_and_release(name), std::nullopt) << name;
}

// Nothing said of cuDNN: the latest that is not later. With cuDNN 7: the latest of its files.
TEST(NearestRelease, OfTheSameCudnnFirst) {
  Framework old, middle, late, container;
  old.versions = {"1.3"};
  old.libraries = {{"cudnn", 7}};
  middle.versions = {"MLPerf", "1.8"};
  middle.libraries = {{"cudnn", 8}};
  late.versions = {"2.0", "2.1"};
  container.versions = {"NGC container, torch 1.9", "NGC 21.03"};
  const std::vector<const Framework*> files{&old, &middle, &late, &container};
  const auto nearest = [&](const char* text) { return nearest_release(release_in(text).value(), files); };
  EXPECT_EQ(nearest("1.9.1"), 1u);
  EXPECT_EQ(nearest("1.9.1, cuDNN 7.6"), 0u);
  EXPECT_EQ(nearest("0.4"), 0u);
  EXPECT_EQ(nearest("2.7"), 2u);
  EXPECT_EQ(nearest("NGC 20.01"), 3u);
  EXPECT_EQ(nearest("NGC container, torch 1.13"), 3u);
  EXPECT_EQ(nearest_release({ReleaseOf::container, 22, 6}, std::span(files).first(3)), std::nullopt);
}

TEST(TypedReleases, AreNamesOfFrameworks) {
  SpecCache specs = test::source_specs();
  const auto file = [&](const char* name) { return specs.framework(name)->name; };
  EXPECT_EQ(file("PyTorch 1.12"), "pytorch_1_12");
  EXPECT_EQ(file("pytorch 1.9"), "pytorch_1_8");
  EXPECT_EQ(file("torch 2.6"), "pytorch");
  EXPECT_EQ(file("TF 1.15"), "tensorflow_2");
  EXPECT_EQ(file("tensorflow 2.9"), "tensorflow_2_4");
  EXPECT_EQ(file("MXNet 1.9"), "mxnet_1_6");
  EXPECT_EQ(file("PyTorch NGC 21.03"), "pytorch_ngc_1_9");
  EXPECT_THAT(
      test::run({"--model", "resnet50", "--gpu", "t4", "--batch", "8", "--framework", "torch 1.11"}).out,
      HasSubstr("pytorch_1_12"));
  EXPECT_THAT(test::run({"--model", "resnet50", "--gpu", "t4", "--batch", "8", "--framework", "jax 0.4"}).err,
              HasSubstr("unknown framework 'jax 0.4'"));
}

}  // namespace
}  // namespace tbdsim
