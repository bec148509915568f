#include "simulate/report/profile_table.h"

#include <set>
#include <vector>

#include <fmt/format.h>

#include "costmodel/families/families.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

double records_of(const ProfileBlock& block) {
  std::int64_t sum = 0;
  for (const auto& [origin, records] : block.records) sum += records;
  return static_cast<double>(sum);
}

// "p100_pcie, titanxp": the GPUs that the block's records are of.
std::string gpus_of(const ProfileBlock& block) {
  std::set<std::string> gpus;
  for (const auto& [origin, records] : block.records) gpus.insert(origin.substr(0, origin.find(',')));
  return joined(std::vector<std::string>(gpus.begin(), gpus.end()));
}

// "unaligned (wide loads are never slower)".
std::string bounds_of(std::string_view family, const ProfileBlock& block) {
  std::vector<std::string> bounds;
  for (const std::string& name : block.at_bound) {
    std::string_view why;
    for_each_family([&]<class Family>(FamilyTag<Family>) {
      if (Family::name != family) return false;
      for (const Parameter& parameter : Family::parameters) {
        if (parameter.name == name) why = parameter.limit;
      }
      return true;
    });
    bounds.push_back(why.empty() ? name : fmt::format("{} ({})", name, why));
  }
  return joined(bounds);
}

std::vector<Cell> row_of(std::string_view family, const ProfileBlock& block) {
  return {text_cell(family),
          text_cell(block.generation),
          text_cell(name_of(block.math)),
          count_cell(records_of(block)),
          text_cell(block.own ? "this" : gpus_of(block)),
          number_cell(block.effective_parameters, fmt::format("{:.1f}", block.effective_parameters)),
          count_cell(static_cast<double>(block.parameters.size())),
          number_cell(block.interval, fmt::format("{:.2f}", block.interval)),
          text_cell(bounds_of(family, block))};
}

}  // namespace

Table profile_table(const Profile& profile) {
  Table table;
  table.name = "blocks";
  table.preface = {"profile " + profile.name + ": " + calibration_text(profile), ""};
  table.columns = {
      {"family", "family"},         {"library", "library"},         {"precision", "precision"},
      {"records", "records", true}, {"measured_on", "measured on"}, {"determined", "determined", true},
      {"parameters", "of", true},   {"interval", "interval", true}, {"at_bound", "at a bound, and why"}};
  for (std::size_t f = 0; f < kFamilyCount; ++f) {
    for (const ProfileBlock& block : profile.families[f])
      table.rows.push_back(row_of(kFamilyNames[f], block));
  }
  table.notes = {
      "measured on: this GPU, or the named others; determined: how many of the parameters the records tell,",
      "the rest being what generations and other GPUs have in common; interval: 80 % of calls left out lie",
      "within so many standard deviations (1.28 of a normal distribution)."};
  return table;
}

}  // namespace tbdsim
