// For functions that go through arrays: compiled a second time for processors with vectors of four doubles,
// which the program finds out when it starts. Results are the same bits, for multiplications and additions
// stay apart.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define TBDSIM_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define TBDSIM_WIDE_VECTORS
#endif
