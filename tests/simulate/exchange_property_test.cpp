// A faster link, or fewer bytes on it, never makes an iteration longer: every model, under frameworks that
// exchange differently, on cards of each generation of the bus.
#include <algorithm>

#include <gtest/gtest.h>

#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"
#include "simulate/prediction/resolve.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kFrameworks[] = {"tensorflow", "tensorflow_1_12", "tensorflow_ngc", "mxnet", "sockeye",
                                       "cntk",       "pytorch"};
constexpr const char* kGpus[] = {"k80", "v100_sxm2_16gb", "a100_sxm_40gb", "rtx3090", "h100_pcie"};
constexpr std::int64_t kBatch = 4;

// Slowest first.
const Words kNetworks{"ethernet_1g",   "ethernet_10g",    "ethernet_25g",    "ethernet_40g",
                      "ethernet_100g", "infiniband_100g", "infiniband_200g", "infiniband_400g"};
const std::vector<Words> kInside{{"pcie3", "pcie4", "pcie5"},
                                 {"pcie3_host", "pcie4_host", "pcie5_host"},
                                 {"pcie3_1root", "pcie4_1root", "pcie5_1root"},
                                 {"pcie3_host", "pcie3"},
                                 {"pcie4_host", "pcie4"},
                                 {"pcie5_host", "pcie5"},
                                 {"pcie3_host_1root", "pcie3_host"},
                                 {"pcie4_host_1root", "pcie4_host"}};
const std::vector<Words> kWithNvLink{{"pcie3", "nvlink"}, {"pcie3_host", "nvlink_pairs_host"}};

// Each time is at most `rounding` longer than any before it.
void expect_no_longer(const std::vector<Seconds>& times, double rounding = 1e-5) {
  Seconds shortest = times.front();
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_LE(times[i].si(), shortest.si() * (1 + rounding)) << "step " << i;
    shortest = std::min(shortest, times[i]);
  }
}

class Exchange : public testing::Test {
 protected:
  // Calls `check` with a prediction on one GPU for every model, framework that trains it and GPU.
  template <class Check>
  void for_every_pair(Check check) {
    for (const std::string& model : specs_.catalog().names(Kind::model)) {
      for (const char* framework : kFrameworks) {
        if (!trains(framework, model)) continue;
        for (const char* gpu : kGpus) {
          SCOPED_TRACE(model + " " + framework + " " + gpu);
          check(predict({.model = model, .framework = framework, .gpu = gpu, .batch = batch_of(model)},
                        specs_));
        }
      }
    }
  }

  Seconds time_on(const Prediction& one, const Cluster& cluster) { return on(one, cluster).iteration_time(); }

  void expect_order(const Prediction& one, const Words& words, int gpus) {
    SCOPED_TRACE(words.front() + " to " + words.back() + ", " + std::to_string(gpus) + " GPUs");
    std::vector<Seconds> times;
    for (const std::string& word : words) times.push_back(time_on(one, {.gpus = gpus, .network = word}));
    expect_no_longer(times);
  }

 private:
  Prediction on(const Prediction& one, const Cluster& cluster) {
    return with_cluster(one, cluster, resolve_sync(cluster, *one.gpu, *one.framework, *one.variant, specs_));
  }
  bool trains(const std::string& framework, const std::string& model) {
    const std::string& family = specs_.framework(framework)->family;
    const auto& variants = specs_.model(model)->variants;
    return std::any_of(variants.begin(), variants.end(), [&](const Variant& variant) {
      if (variant.frameworks.empty()) return family == "pytorch" && variants.size() == 1;
      return std::find(variant.frameworks.begin(), variant.frameworks.end(), family) !=
             variant.frameworks.end();
    });
  }
  std::int64_t batch_of(const std::string& model) {
    const std::int64_t largest = specs_.model(model)->largest_batch;
    return largest > 0 ? std::min(largest, kBatch) : kBatch;
  }

  SpecCache specs_ = test::source_specs();
};

TEST_F(Exchange, FasterSlotsAndWiresAreNoSlower) {
  for_every_pair([&](const Prediction& one) {
    for (const int gpus : {2, 4, 8}) {
      for (const Words& words : kInside) expect_order(one, words, gpus);
      if (!one.gpu->nvlink) continue;
      for (const Words& words : kWithNvLink) expect_order(one, words, gpus);
    }
  });
}

TEST_F(Exchange, FasterNetworksAreNoSlower) {
  for_every_pair([&](const Prediction& one) {
    for (const int gpus : {1, 8}) {
      for (const int machines : {2, 8}) {
        SCOPED_TRACE(std::to_string(machines) + " machines of " + std::to_string(gpus));
        std::vector<Seconds> times;
        for (const std::string& network : kNetworks)
          times.push_back(time_on(one, {.gpus = gpus, .machines = machines, .network = network}));
        expect_no_longer(times);
      }
    }
  });
}

TEST_F(Exchange, FewerBytesAreNoSlower) {
  for_every_pair([&](const Prediction& one) {
    for (const char* network : {"ethernet_10g", "infiniband_100g"}) {
      for (const int gpus : {1, 8}) {
        SCOPED_TRACE(std::string(network) + ", 4 machines of " + std::to_string(gpus));
        std::vector<Seconds> times{time_on(one, {.gpus = gpus, .machines = 4, .network = network})};
        for (const double part : {1.0, 0.5, 0.1, 0.01}) {
          times.push_back(time_on(
              one,
              {.gpus = gpus, .machines = 4, .network = network, .gradient_bytes = 2, .compression = part}));
        }
        expect_no_longer(times);
      }
    }
  });
}

}  // namespace
}  // namespace tbdsim
