// The families of kernels that are fitted: one row each.
#pragma once

#include "costmodel/gemm_time.h"

#define TBDSIM_FOR_EACH_FAMILY(X) X(GemmFamily)
