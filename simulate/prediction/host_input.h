// The samples of the iterations: decoded by the cores of a machine and read from its storage, both of which
// its GPUs share, and copied over each GPU's bus (simulate/prediction/loader.h has the equations).
#pragma once

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Threads that decode for one GPU, a share of the machine's.
[[nodiscard]] double decoding_threads(const Prediction& prediction);

// Sets `read`, `input_copy`, `input` and how both are ordered, of every iteration.
void share_host(Prediction& prediction);

}  // namespace tbdsim
