#include "simulate/report/profile_table.h"

#include <fmt/format.h>

#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

double records_of(const ProfileBlock& block) {
  std::int64_t sum = 0;
  for (const auto& [origin, records] : block.records) sum += records;
  return static_cast<double>(sum);
}

std::vector<Cell> row_of(std::string_view family, const ProfileBlock& block) {
  return {text_cell(family),
          text_cell(block.generation),
          text_cell(name_of(block.math)),
          count_cell(records_of(block)),
          text_cell(block.own ? "this" : "others"),
          flag_cell(block.converged),
          number_cell(block.interval, fmt::format("{:.2f}", block.interval)),
          text_cell(joined(block.at_bound))};
}

}  // namespace

Table profile_table(const Profile& profile) {
  Table table;
  table.name = "blocks";
  table.preface = {"profile " + profile.name + ": " + calibration_text(profile), ""};
  table.columns = {{"family", "family"},           {"library", "library"},         {"precision", "precision"},
                   {"records", "records", true},   {"measured_on", "measured on"}, {"converged", "converged"},
                   {"interval", "interval", true}, {"at_bound", "at a bound"}};
  for (std::size_t f = 0; f < kFamilyCount; ++f) {
    for (const ProfileBlock& block : profile.families[f])
      table.rows.push_back(row_of(kFamilyNames[f], block));
  }
  table.notes = {
      "measured on: this GPU, or others; interval: 80 % of calls left out lie within so many standard",
      "deviations (1.28 of a normal distribution); at a bound: parameters the records do not determine."};
  return table;
}

}  // namespace tbdsim
