// Kernels put between those of a training step, with all of its indices moved along.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "graphs/training_step.h"

namespace tbdsim {

// Collects kernels to insert, places them all in apply(), and maps old indices to new ones from then on.
class KernelInsertions {
 public:
  // `step` must outlive this.
  explicit KernelInsertions(const TrainingStep& step) : step_(step) {}

  // Inserts a kernel before kernel `at`; `copy_of`: the kernel of the step whose work it repeats. Returns the
  // insertion's number, for index_of_inserted().
  int before(int at, Kernel kernel, std::optional<int> copy_of = std::nullopt);

  // The step with all insertions made. Its tensors, updates, chains and duplicates refer to the new indices.
  [[nodiscard]] TrainingStep apply();

  // New indices, after apply(): of a kernel of the old step, and of an insertion.
  [[nodiscard]] int index_of(int kernel) const { return index_[static_cast<std::size_t>(kernel)]; }
  [[nodiscard]] int index_of_inserted(int number) const {
    return inserted_index_[static_cast<std::size_t>(number)];
  }

 private:
  struct Inserted {
    Kernel kernel;
    std::optional<int> copy_of;
  };

  void append_kernels(TrainingStep& made);
  void append_inserted(int number, TrainingStep& made);
  void move_tensors(TrainingStep& made) const;
  void move_chains(TrainingStep& made) const;

  const TrainingStep& step_;
  std::map<int, std::vector<int>> numbers_before_;  // insertions by the old kernel they come before
  std::vector<Inserted> inserted_;
  std::vector<int> index_;           // by old kernel; its end last
  std::vector<int> inserted_index_;  // by number
};

}  // namespace tbdsim
