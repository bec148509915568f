// The message of the one exception a call must throw.
#pragma once

#include <string>

namespace tbdsim::test {

// what() of an E; "(nothing thrown)" when there is none, so that a comparison with the message fails.
template <class E, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const E& thrown) {
    return thrown.what();
  }
  return "(nothing thrown)";
}

}  // namespace tbdsim::test
