// One operator of a captured step as its lowering sees it: arguments by their place in the operator's schema,
// outputs, the phase, and where its kernels go.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/captured/captured_step.h"
#include "graphs/layer.h"

namespace tbdsim {

struct OperatorEntry;

// The kernels to which the lowering of operators appends, and the tensors that it keeps beside the captured
// ones.
struct LoweredKernels {
  std::vector<Kernel>& kernels;
  // A tensor that the lowering keeps from a forward operator for its backward operator, where the captured
  // operator keeps none.
  struct Kept {
    Size bytes;
    int first = 0;  // kernel
    int last = 0;
  };
  std::map<int, Kept>& kept;  // by the storage of the forward operator's output
};

class OperatorSite {
 public:
  OperatorSite(const CapturedStep& captured, std::size_t number, const OperatorEntry& row,
               const LoweringContext& context, Phase part, const std::vector<int>& layer_of_storage,
               LoweredKernels& to)
      : step(captured),
        op(captured.operators[number]),
        entry(row),
        how(context),
        phase(part),
        number_(number),
        layer_of_storage_(layer_of_storage),
        to_(to) {}

  const CapturedStep& step;
  const CapturedOperator& op;
  const OperatorEntry& entry;  // its row in the table of operators
  const LoweringContext& how;
  const Phase phase;

  // An argument; null where it is None or missing. The others throw ModelError, naming the place, for an
  // argument of another kind.
  [[nodiscard]] const CapturedTensor* find_tensor(std::size_t argument) const;
  [[nodiscard]] const CapturedTensor& tensor(std::size_t argument) const;
  [[nodiscard]] std::vector<const CapturedTensor*> tensors(std::size_t argument) const;  // of a list
  [[nodiscard]] Size size(std::size_t argument) const;
  [[nodiscard]] std::int64_t whole(std::size_t argument) const;
  [[nodiscard]] std::vector<std::int64_t> wholes(std::size_t argument) const;  // of a list, or of one number
  [[nodiscard]] std::vector<Size> sizes(std::size_t argument) const;           // of a list
  [[nodiscard]] bool flag(std::size_t argument) const;
  [[nodiscard]] double number(std::size_t argument, double unless_given) const;
  [[nodiscard]] bool flag_of_list(std::size_t argument, std::size_t index) const;

  [[nodiscard]] const CapturedTensor* find_output(std::size_t index) const;
  [[nodiscard]] const CapturedTensor& output(std::size_t index) const;

  // All tensors among the arguments, each once; all outputs that are there, each once.
  [[nodiscard]] std::vector<const CapturedTensor*> all_tensors() const;
  [[nodiscard]] std::vector<const CapturedTensor*> all_outputs() const;

  // True for a tensor in the host's memory.
  [[nodiscard]] bool is_on_host(const CapturedTensor& tensor) const {
    return step.storages[static_cast<std::size_t>(tensor.storage)].role == StorageRole::host;
  }

  // A size that must not grow with the batch.
  [[nodiscard]] std::int64_t fixed(const Size& size) const;
  // a * b, of which at most one may grow with the batch.
  [[nodiscard]] Size product(const Size& a, const Size& b) const;

  // Appends the kernel to the step, as part of the operator's module; in an update, of the one whose
  // parameter, gradient or state the tensor is.
  void emit(Kernel kernel);
  void emit_for_parameter_of(const CapturedTensor& tensor, Kernel kernel);
  void emit_for_all(Kernel kernel);  // of no layer in particular
  // Bytes that stay allocated from the last kernel so far to the last one before release(). Both name the
  // storage of the forward operator's output.
  void keep(int storage, Size bytes);
  void release(int storage);

  [[noreturn]] void fail(std::size_t argument, const std::string& expected) const;
  [[noreturn]] void fail(const std::string& what) const;

 private:
  [[nodiscard]] const ArgumentValue* find(std::size_t argument) const;

  std::size_t number_;
  const std::vector<int>& layer_of_storage_;
  LoweredKernels& to_;
};

// Bytes that reading or writing a tensor moves: broadcast dimensions count once.
[[nodiscard]] inline Size bytes_of(const CapturedTensor& tensor) {
  return tensor.stored * bytes_of(tensor.dtype);
}
[[nodiscard]] Size bytes_of(const std::vector<const CapturedTensor*>& tensors);

// The arithmetic of a product of such numbers; that of fp32 is given: Precision::math of a matrix product,
// Precision::convolution_math() of a convolution or recurrent layer.
[[nodiscard]] MathType math_of(Dtype dtype, MathType of_fp32);

// A memory-bound kernel over so many elements. Its numbers are as wide as the bytes it moves say.
[[nodiscard]] Kernel bytes_kernel(KernelKind kind, Phase phase, std::string_view op, const Size& elements,
                                  std::int64_t flops_per_element, const Size& read, const Size& written,
                                  std::int64_t element_bytes);

}  // namespace tbdsim
