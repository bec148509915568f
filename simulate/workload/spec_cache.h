// Reads every file once: GPUs, frameworks, profiles, models, data sets, and the training steps made of them.
// Thread-safe. Objects that it returns may outlive it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/estimate.h"
#include "costmodel/profile/profile.h"
#include "graphs/convergence.h"
#include "hwspecs/base/catalog.h"
#include "hwspecs/gpu_spec.h"
#include "hwspecs/machine_spec.h"
#include "simulate/framework/framework_spec.h"
#include "simulate/workload/workload.h"

namespace tbdsim {

// A spec with the name or path by which it was looked up.
template <class Spec>
struct Named {
  std::string name;
  std::shared_ptr<const Spec> spec;
};

class SpecCache {
 public:
  explicit SpecCache(Catalog catalog) : catalog_(std::move(catalog)) {}
  // Overlay of `other`, which must outlive it, with changed fields: objects that the changes do not affect
  // are shared. Changes of `other` are applied first. Throws UsageError for a change of a spec that no
  // prediction reads.
  SpecCache(SpecCache& other, const SpecChanges& changes);

  // Shares everything with `other` but training steps, which it makes and keeps itself.
  struct OwnSteps {};
  SpecCache(SpecCache& other, OwnSteps) : SpecCache(other, SpecChanges{}) { own_steps_ = true; }

  [[nodiscard]] const Catalog& catalog() const { return catalog_; }
  [[nodiscard]] const SpecChanges& changes() const { return changes_; }

  // By name or path. Throw UsageError, SpecError or ModelError.
  [[nodiscard]] std::shared_ptr<const GpuSpec> gpu(const std::string& name);
  [[nodiscard]] std::shared_ptr<const MachineSpec> machine(const std::string& name);
  // A framework is also named by its family and a release, as "PyTorch 1.12" (framework_of_version()).
  [[nodiscard]] std::shared_ptr<const Framework> framework(const std::string& name);
  // The framework of this family that a version in a table of runs names: the one with the longest text of
  // `versions` that is part of it, as a whole number; else that of the nearest release (release.h), else the
  // family's own file.
  [[nodiscard]] std::shared_ptr<const Framework> framework_of_version(const std::string& family,
                                                                      const std::string& version);
  [[nodiscard]] std::shared_ptr<const Profile> profile(const std::string& name);
  // The profile named; without a name the first there is of the GPU's own, that of another board of its chip
  // (same_chip.h), its architecture's, the generic one and the roofline.
  [[nodiscard]] std::shared_ptr<const Profile> profile_for(const Named<GpuSpec>& gpu,
                                                           const std::string& name);
  // profile_for(gpu, profile) made ready for the GPU and the libraries that the framework calls. It owns
  // the profile, the GPU and the measured board that it refers to. GPU and framework are this cache's.
  [[nodiscard]] std::shared_ptr<const Calibration> calibration(const Named<GpuSpec>& gpu,
                                                               const std::string& profile,
                                                               const Named<Framework>& framework);
  [[nodiscard]] std::shared_ptr<const ModelFile> model(const std::string& name);
  [[nodiscard]] std::shared_ptr<const Dataset> dataset(const std::string& name);
  // The convergence of a model of this name to a target of its own (Convergence::is_called), to the usual
  // one, or to that of a file.
  [[nodiscard]] std::shared_ptr<const Convergence> convergence(const std::string& model,
                                                               const std::string& target);
  // `variant` is one of the model's, the framework this cache's; `dataset` may be empty.
  [[nodiscard]] std::shared_ptr<const std::vector<LengthStep>> workload(
      const std::string& model, const Variant& variant, const Named<Framework>& framework,
      const Precision& precision, const std::string& dataset = "", const Sizes& sizes = {},
      const TrainingChoices& choices = {});
  // Costs of the kernels that are the same at every batch. Step and calibration are of this cache, and imply
  // the framework, GPU and precision of the factors.
  [[nodiscard]] std::shared_ptr<const std::vector<FixedCost>> fixed_costs(const TrainingStep& step,
                                                                          const Calibration& calibration,
                                                                          const KernelFactors& factors);

 private:
  // The file for a name like "PyTorch 1.12"; empty for names of files and for others.
  [[nodiscard]] std::string name_of_release(const std::string& name);

  // Values made once for each key; the lock is held to find an entry, not to make its value.
  template <class T, class Key = std::string>
  struct Cache {
    struct Entry {
      std::once_flag made;
      std::shared_ptr<const T> value;
    };
    std::mutex lock;
    std::map<Key, Entry> entries;
  };
  template <class T, class Key, class Make>
  static std::shared_ptr<const T> cached(Cache<T, Key>& cache, const Key& key, Make make);

  struct OwnedCalibration {
    std::shared_ptr<const Profile> profile;
    std::shared_ptr<const GpuSpec> gpu, measured;
    Calibration calibration;  // refers to all three
  };

  // The measured board of the same chip as the GPU's of the catalogue that is nearest to it; empty: none.
  [[nodiscard]] std::string measured_board(const std::string& gpu_name);
  // The card of the catalogue; null where there is none or its file has an error.
  [[nodiscard]] std::shared_ptr<const GpuSpec> readable_gpu(const std::string& name);
  // As the catalogue has it, without changes.
  [[nodiscard]] std::shared_ptr<const GpuSpec> unchanged_gpu(const std::string& name) {
    return other_ == nullptr ? gpu(name) : other_->unchanged_gpu(name);
  }

  [[nodiscard]] ModelFile config_of(const std::string& name) const;  // of a config.json of Hugging Face
  [[nodiscard]] ModelFile step_of(const std::string& name) const;    // of a step file
  [[nodiscard]] bool changes(std::string_view spec) const;           // itself, not `other_`

  Catalog catalog_;
  SpecCache* other_ = nullptr;
  SpecChanges changes_;
  bool own_steps_ = false;
  std::ptrdiff_t of_other_ = 0;  // number of changes_ that are of other_
  Cache<GpuSpec> gpus_;
  Cache<MachineSpec> machines_;
  Cache<Framework> frameworks_;
  Cache<Profile> profiles_;
  Cache<OwnedCalibration> calibrations_;
  Cache<ModelFile> models_;
  Cache<Dataset> datasets_;
  Cache<Convergence> convergences_;
  Cache<std::vector<LengthStep>> workloads_;
  Cache<std::vector<FixedCost>, std::pair<const TrainingStep*, const Calibration*>> fixed_costs_;
};

}  // namespace tbdsim
