// Parameters and multiply-adds of an imported network, as `tbd-sim show` tells them.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "simulate/import/recognise.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim::test {

struct Counts {
  std::int64_t parameters = 0, forward_macs = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << counts.parameters << " parameters, " << counts.forward_macs << " MAC";
}

// Counts of the model file `path`.
[[nodiscard]] inline Counts counts_of_model(const std::string& path) {
  const CliResult shown = run({"show", path, "--format", "json"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  const auto totals = nlohmann::json::parse(shown.out).at("totals").at(0);
  return {totals.at("parameters").get<std::int64_t>(), totals.at("forward_macs").get<std::int64_t>()};
}

// Counts of the model that a file became.
[[nodiscard]] inline Counts counts_of(const ImportedFile& file) {
  const TempDir dir;
  return counts_of_model(dir.write("model.yaml", file.text).string());
}

}  // namespace tbdsim::test
