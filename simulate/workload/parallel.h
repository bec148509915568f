// Work on every core.
#pragma once

#include <cstddef>
#include <functional>

namespace tbdsim {

// Calls work(0) to work(count - 1), several at a time, each of which may call it again. When all are done,
// rethrows the error of the lowest index.
void for_each_index(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace tbdsim
