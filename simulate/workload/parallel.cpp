#include "simulate/workload/parallel.h"

#include <atomic>
#include <exception>
#include <vector>

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace tbdsim {

void for_each_index(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next = 0;
  const auto call = [&](std::size_t) {
    const std::size_t i = next++;  // in order, so that a caller may put short work last
    try {
      work(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  // Isolated: a thread that waits for its own indices must not begin other work, which may need what it is
  // making.
  tbb::this_task_arena::isolate(
      [&] { tbb::parallel_for(std::size_t{0}, count, call, tbb::simple_partitioner()); });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace tbdsim
