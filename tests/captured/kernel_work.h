// Work of the kernels of a step, so that tests can derive it by hand.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "graphs/training_step.h"

namespace tbdsim::test {

// Kind, phase, operations, bytes read and written.
struct Work {
  std::string op;
  KernelKind kind;
  Phase phase;
  Size flops, read, written;
  friend bool operator==(const Work&, const Work&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Work& w) {
    return out << w.op << " " << name_of(w.kind) << " " << name_of(w.phase) << " flops " << w.flops.fixed
               << "+" << w.flops.per_sample << "b read " << w.read.fixed << "+" << w.read.per_sample
               << "b written " << w.written.fixed << "+" << w.written.per_sample << "b";
  }
};

inline std::vector<Work> works(const TrainingStep& step) {
  std::vector<Work> all;
  for (const Kernel& k : step.kernels)
    all.push_back({std::string(k.op), k.kind, k.phase, k.flops, k.read_bytes, k.written_bytes});
  return all;
}

inline Work work(std::string op, KernelKind kind, Phase phase, Size flops, Size read, Size written) {
  return {std::move(op), kind, phase, flops, read, written};
}

}  // namespace tbdsim::test
