#include "graphs/captured/tensor_access.h"

#include <algorithm>

namespace tbdsim {
namespace {

// True if the elements fill their memory without a gap and without a repetition.
bool is_dense(const CapturedTensor& tensor, const std::vector<std::size_t>& order) {
  double expected = 1;
  for (auto dimension = order.rbegin(); dimension != order.rend(); ++dimension) {
    if (tensor.strides[*dimension].at(2) != expected) return false;
    expected *= tensor.shape[*dimension].at(2);
  }
  return expected == tensor.elements.at(2);
}

}  // namespace

std::vector<std::size_t> order_of(const CapturedTensor& tensor) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] != fixed_size(1) && tensor.strides[i] != Size{}) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tensor.strides[a].at(2) > tensor.strides[b].at(2);
  });
  return order;
}

Access access_along(const CapturedTensor& a, const CapturedTensor& b) {
  if (a.shape.size() != b.shape.size()) return Access::elements;
  const std::vector<std::size_t> order_a = order_of(a), order_b = order_of(b);
  const bool dense = is_dense(a, order_a) && is_dense(b, order_b);
  if (dense && order_a == order_b) return Access::vectors;
  const bool repeats = a.stored != a.elements || b.stored != b.elements;
  if (repeats || order_a.empty() || order_b.empty()) return Access::elements;
  return order_a.back() == order_b.back() ? Access::elements : Access::across;
}

bool is_contiguous(const CapturedTensor& tensor) {
  const std::vector<std::size_t> order = order_of(tensor);
  return std::is_sorted(order.begin(), order.end()) && is_dense(tensor, order);
}

Access access_of_contiguous_copy(const CapturedTensor& tensor) {
  const std::vector<std::size_t> order = order_of(tensor);
  const bool across = !order.empty() && !std::is_sorted(order.begin(), order.end()) &&
                      order.back() != *std::max_element(order.begin(), order.end());
  return across ? Access::across : Access::elements;
}

}  // namespace tbdsim
