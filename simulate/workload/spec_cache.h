// Reads every file once: GPUs, frameworks, profiles, models, data sets, and the training steps made of them.
// Several threads may use it at a time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/estimate.h"
#include "costmodel/profile/profile.h"
#include "hwspecs/base/catalog.h"
#include "hwspecs/gpu_spec.h"
#include "hwspecs/machine_spec.h"
#include "simulate/framework/framework_spec.h"
#include "simulate/workload/workload.h"

namespace tbdsim {

// "fp32" -> Precision; UsageError with "did you mean".
[[nodiscard]] const Precision& find_precision(const std::string& name);

// Changes that begin with the name of a file of their spec, or a kind of links, are of that alone:
// "link.pcie3.bandwidth=x2", "gpu.t4.price_per_hour=0.4 USD/h". Throws UsageError for an unknown spec.
[[nodiscard]] SpecChanges resolved(SpecChanges changes, const Catalog& catalog);

class SpecCache {
 public:
  explicit SpecCache(Catalog catalog) : catalog_(std::move(catalog)) {}
  // As `other`, which must outlive it, if its files said something else: what is not touched by the changes
  // is shared. Those of `other` come first. Throws UsageError where they name no spec that a prediction
  // reads.
  SpecCache(SpecCache& other, const SpecChanges& changes);

  [[nodiscard]] const Catalog& catalog() const { return catalog_; }
  [[nodiscard]] const SpecChanges& changes() const { return changes_; }

  // By name or path. Throw UsageError, SpecError or ModelError; references stay valid as long as the library.
  [[nodiscard]] const GpuSpec& gpu(const std::string& name);
  [[nodiscard]] const MachineSpec& machine(const std::string& name);
  [[nodiscard]] const Framework& framework(const std::string& name);
  // The framework that a table of runs means: of this family, with the longest of its `versions` that is part
  // of the text and of no longer number there; the family's own file where none is.
  [[nodiscard]] const Framework& framework_of_version(const std::string& family, const std::string& version);
  [[nodiscard]] const Profile& profile(const std::string& name);
  // The profile for a GPU: the one named; where none is named the GPU's own, else its architecture's, else
  // the generic one, else the roofline.
  [[nodiscard]] const Profile& profile_for(const std::string& gpu, const std::string& name);
  // That profile made ready for the GPU and what the framework calls.
  [[nodiscard]] const Calibration& calibration(const std::string& gpu, const std::string& profile,
                                               const std::string& framework);
  [[nodiscard]] const ModelFile& model(const std::string& name);
  [[nodiscard]] const Dataset& dataset(const std::string& name);
  // `variant` must be one of the model's; `dataset` may be empty.
  [[nodiscard]] const std::vector<LengthStep>& workload(const std::string& model, const Variant& variant,
                                                        const std::string& framework,
                                                        const Precision& precision,
                                                        const std::string& dataset = "",
                                                        const Sizes& sizes = {});
  // Of kernels that are the same at every batch. Step and calibration are this library's, and tell apart the
  // framework, GPU and precision that `factors` are of.
  [[nodiscard]] const std::vector<FixedCost>& fixed_costs(const TrainingStep& step,
                                                          const Calibration& calibration,
                                                          const KernelFactors& factors);

 private:
  // What is made once for each key; the lock is held to find it, not to make it.
  template <class T, class Key = std::string>
  struct Cache {
    struct Entry {
      std::once_flag made;
      std::unique_ptr<const T> value;
    };
    std::mutex lock;
    std::map<Key, Entry> entries;
  };
  template <class T, class Key, class Make>
  static const T& cached(Cache<T, Key>& cache, const Key& key, Make make);

  [[nodiscard]] bool changes(std::string_view spec) const;  // itself, not `other_`

  Catalog catalog_;
  SpecCache* other_ = nullptr;
  SpecChanges changes_;
  std::ptrdiff_t of_other_ = 0;  // changes that come first
  Cache<GpuSpec> gpus_;
  Cache<MachineSpec> machines_;
  Cache<Framework> frameworks_;
  Cache<Profile> profiles_;
  Cache<Calibration> calibrations_;
  Cache<ModelFile> models_;
  Cache<Dataset> datasets_;
  Cache<std::vector<LengthStep>> workloads_;
  Cache<std::vector<FixedCost>, std::pair<const TrainingStep*, const Calibration*>> fixed_costs_;
};

}  // namespace tbdsim
