#include "costmodel/profile/generation.h"

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

TEST(GenerationOf, LibraryAndMajorVersion) {
  EXPECT_EQ(generation_of("cudnn6").library, "cudnn");
  EXPECT_EQ(generation_of("cudnn6").version, 6);
  EXPECT_EQ(generation_of("cublas12").version, 12);
}

TEST(GenerationOf, ANameWithoutAVersion) {
  EXPECT_EQ(generation_of("own").library, "own");
  EXPECT_EQ(generation_of("own").version, 0);
}

}  // namespace
}  // namespace tbdsim
