// A GPU that computes nothing: it stands in for the CUDA libraries, so that tbd-measure's whole run (order,
// timing loop, tracer, result file, interrupts, failures) is tested where there is no GPU. Calls take 20 us
// of an invented clock.
//
// Environment: FAKE_GPU_MEMORY (bytes, default 64e9), FAKE_GPU_CUPTI (refuse: as without permission; lose:
// drops records), FAKE_GPU_REFUSES (a function that returns "not supported"), FAKE_GPU_DIES_AFTER
// (synchronisations until the device no longer answers), FAKE_GPU_CALL_US (real microseconds a library call
// takes).
#pragma once

// Notes that a library call ran on the GPU; returns its status: 0, or `not_supported` when the test asks for
// that.
extern "C" int fake_gpu_call(const char* name, int not_supported);
// A handle that is not null.
extern "C" void* fake_gpu_handle();
