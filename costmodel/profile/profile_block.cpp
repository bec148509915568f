#include "costmodel/profile/profile_block.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "costmodel/call_fields.h"
#include "costmodel/families/families.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_writer.h"

namespace tbdsim {
namespace {

constexpr double kMost = 1e15;          // of a size
constexpr double kMostResidual = 20;    // ln(measured / formula)
constexpr double kLeastKriging = 1e-3;  // of standard deviations: rows at one place differ by something

// A family's table and functions without its type.
struct FamilyInfo {
  std::span<const Parameter> parameters;
  Call empty;
  Features (*features)(const Call&) = nullptr;
};

FamilyInfo info_of_family(std::string_view name) {
  FamilyInfo info;
  const bool known = for_each_family([&]<class Family>(FamilyTag<Family>) {
    if (name != Family::name) return false;
    using FamilyCall = typename Family::Call;
    info = {Family::parameters, FamilyCall{},
            [](const Call& call) { return Family::features(std::get<FamilyCall>(call)); }};
    return true;
  });
  if (!known) throw std::logic_error("no family " + std::string(name));
  return info;
}

struct CountFields {
  std::size_t& count;
  template <class T>
  void operator()(std::string_view, T&) const {
    ++count;
  }
};

struct SetFields {
  std::span<const double> numbers;
  std::size_t& next;
  void operator()(std::string_view, double& field) const { field = numbers[next++]; }
  void operator()(std::string_view, bool& field) const { field = numbers[next++] != 0; }
  void operator()(std::string_view, Phase& field) const { set(field, kPhaseNames.size()); }
  void operator()(std::string_view, KernelKind& field) const { set(field, kKernelKindCount); }

  template <class Enum>
  void set(Enum& field, std::size_t names) const {
    field =
        static_cast<Enum>(static_cast<int>(std::clamp(numbers[next++], 0.0, static_cast<double>(names - 1))));
  }
};

struct PrintFields {
  std::string& text;
  template <class T>
  void operator()(std::string_view, T& field) const {
    text += fmt::format("{:.10g} ", static_cast<double>(field));
  }
};

struct NameFields {
  std::string& text;
  template <class T>
  void operator()(std::string_view name, T&) const {
    text += std::string(name) + ' ';
  }
};

// Sizes of a call that a list of measured calls holds: all, or without those that few calls need.
enum class Columns { without_further, all };

template <class Visit>
void visit_columns(Call& call, Columns columns, Visit visit) {
  std::visit(
      [&](auto& c) {
        visit_fields(c, visit);
        if (columns == Columns::all) visit_further_fields(c, visit);
      },
      call);
}

std::size_t field_count(Call call, Columns columns) {
  std::size_t count = 0;
  visit_columns(call, columns, CountFields{count});
  return count;
}

std::string field_names(Call call, Columns columns) {
  std::string names;
  visit_columns(call, columns, NameFields{names});
  return names + "residual";
}

// The fewest columns that hold the calls.
Columns columns_for(const std::vector<Call>& calls, Call empty) {
  const auto further = [](Call call) {
    std::string text;
    std::visit([&](auto& c) { visit_further_fields(c, PrintFields{text}); }, call);
    return text;
  };
  const bool as_empty = std::all_of(calls.begin(), calls.end(),
                                    [&](const Call& call) { return further(call) == further(empty); });
  return as_empty ? Columns::without_further : Columns::all;
}

std::vector<double> numbers_of(const SpecNode& node, std::size_t expected) {
  const std::string text = node.text();
  std::vector<double> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    double number = 0;
    const auto [next, failure] = std::from_chars(at, end, number);
    if (failure != std::errc() || !(std::abs(number) < kMost)) node.fail("is not a row of numbers");
    numbers.push_back(number);
    at = next;
    while (at != end && *at == ' ') ++at;
  }
  if (numbers.size() != expected) {
    node.fail(fmt::format("holds {} numbers; expected {}", numbers.size(), expected));
  }
  return numbers;
}

void read_rows(const SpecNode& node, const FamilyInfo& info, Columns columns, ProfileBlock& block) {
  const std::size_t fields = field_count(info.empty, columns);
  std::vector<ResidualRow> rows;
  const std::vector<SpecNode> list = node.list();
  if (list.size() > kMostResidualRows) {
    node.fail(fmt::format("has {} rows; expected at most {}", list.size(), kMostResidualRows));
  }
  for (const SpecNode& row : list) {
    const std::vector<double> numbers = numbers_of(row, fields + 1);
    if (std::any_of(numbers.begin(), numbers.end() - 1, [](double n) { return n < 0; }))
      row.fail("has a negative size");
    Call call = info.empty;
    std::size_t next = 0;
    visit_columns(call, columns, SetFields{numbers, next});
    const Features at = info.features(call);
    if (!std::all_of(at.x.begin(), at.x.end(), [](double x) { return std::isfinite(x); })) {
      row.fail("has a size that no call has");
    }
    if (std::abs(numbers.back()) > kMostResidual) row.fail("has a residual beyond +-20");
    rows.push_back({at, numbers.back(), static_cast<int>(rows.size())});
    block.measured.push_back(call);
  }
  block.residuals = ResidualTable(std::move(rows));
}

Columns read_columns(SpecMap& m, const FamilyInfo& info) {
  const auto names = m.find("residual_columns");
  const std::string required = field_names(info.empty, Columns::without_further);
  if (!names || names->text() == required) return Columns::without_further;
  if (names->text() != field_names(info.empty, Columns::all))
    names->fail("is not '" + required + "'; was this written by another version?");
  return Columns::all;
}

void read_parameters(SpecMap& m, const FamilyInfo& info, ProfileBlock& block) {
  m.at("parameters").map([&](SpecMap& parameters) {
    for (const Parameter& parameter : info.parameters) {
      block.parameters.push_back(
          parameters.at(parameter.name).number(parameter.lower * 0.999, parameter.upper * 1.001));
    }
  });
  if (const auto bounds = m.find("at_bound")) {
    for (const SpecNode& name : bounds->list()) {
      const bool known = std::any_of(info.parameters.begin(), info.parameters.end(),
                                     [&](const Parameter& p) { return p.name == name.text(); });
      if (!known) name.fail("is not a parameter of this family");
      block.at_bound.push_back(name.text());
    }
  }
}

SpecTree list_of(const std::vector<std::string>& texts) {
  SpecTree list;
  list.kind = SpecTree::Kind::list;
  for (const std::string& text : texts) list.items.push_back(spec_scalar(text));
  return list;
}

SpecTree number(double value, int digits = 6) { return spec_scalar(fmt::format("{:.{}g}", value, digits)); }

}  // namespace

ProfileBlock read_profile_block(const SpecNode& node, std::string_view family) {
  const FamilyInfo info = info_of_family(family);
  ProfileBlock block;
  node.map([&](SpecMap& m) {
    block.generation = m.at("generation").text();
    block.math = static_cast<MathType>(m.at("precision").one_of(kMathTypeNames));
    block.own = m.at("measured_on").one_of({"this", "others"}) == 0;
    if (const auto capability = m.find("capability")) block.capability = capability->number(1, 100);
    read_parameters(m, info, block);
    if (const auto effective = m.find("effective_parameters"))
      block.effective_parameters = effective->number(0, static_cast<double>(info.parameters.size()));
    if (const auto clock = m.find("clock")) {
      block.clock = clock->number(0.01, 2);
    } else {
      block.clock = m.at("clock_of_expected").number(0.1, 10);
      block.clock_of_expected = true;
    }
    block.clock_sd = m.at("clock_sd").number(0, 2);
    block.bandwidth = m.at("bandwidth").number(0.01, 4);
    block.converged = m.at("converged").flag();
    block.iterations = static_cast<int>(m.at("iterations").count(0, 1'000'000));
    block.cost = m.at("cost").number(0, kMost);
    m.at("records").map([&](SpecMap& records) {
      for (const SpecMap::NamedNode& entry : records.all()) block.records[entry.name] = entry.node.count(1);
    });
    m.at("kriging").map([&](SpecMap& k) {
      block.kriging = {k.at("amplitude").number(kLeastKriging, 10), k.at("length").number(1e-3, 1e3),
                       k.at("nugget").number(kLeastKriging, 10), k.at("repeat").number(kLeastKriging, 10)};
    });
    block.interval = m.at("interval").number(0, 100);
    const Columns columns = read_columns(m, info);
    if (const auto rows = m.find("residuals")) read_rows(*rows, info, columns, block);
  });
  return block;
}

SpecTree write_profile_block(const ProfileBlock& block, std::string_view family) {
  const FamilyInfo info = info_of_family(family);
  SpecTree tree;
  tree.kind = SpecTree::Kind::map;
  add_entry(tree, "generation", spec_scalar(block.generation));
  add_entry(tree, "precision", spec_scalar(std::string(name_of(block.math))));
  add_entry(tree, "measured_on", spec_scalar(block.own ? "this" : "others"));
  if (block.capability > 0) add_entry(tree, "capability", number(block.capability, 3));
  SpecTree parameters;
  parameters.kind = SpecTree::Kind::map;
  for (std::size_t i = 0; i < info.parameters.size(); ++i) {
    add_entry(parameters, std::string(info.parameters[i].name), number(block.parameters[i]));
  }
  add_entry(tree, "parameters", parameters);
  if (!block.at_bound.empty()) add_entry(tree, "at_bound", list_of(block.at_bound));
  if (block.effective_parameters > 0)
    add_entry(tree, "effective_parameters", number(block.effective_parameters, 3));
  add_entry(tree, block.clock_of_expected ? "clock_of_expected" : "clock", number(block.clock));
  add_entry(tree, "clock_sd", number(block.clock_sd, 3));
  add_entry(tree, "bandwidth", number(block.bandwidth));
  add_entry(tree, "converged", spec_scalar(block.converged ? "true" : "false"));
  add_entry(tree, "iterations", spec_scalar(std::to_string(block.iterations)));
  add_entry(tree, "cost", number(block.cost));
  SpecTree records;
  records.kind = SpecTree::Kind::map;
  for (const auto& [from, count] : block.records)
    add_entry(records, from, spec_scalar(std::to_string(count)));
  add_entry(tree, "records", records);
  SpecTree kriging;
  kriging.kind = SpecTree::Kind::map;
  add_entry(kriging, "amplitude", number(block.kriging.amplitude, 4));
  add_entry(kriging, "length", number(block.kriging.length, 4));
  add_entry(kriging, "nugget", number(block.kriging.nugget, 4));
  add_entry(kriging, "repeat", number(block.kriging.repeat, 4));
  add_entry(tree, "kriging", kriging);
  add_entry(tree, "interval", number(block.interval, 4));
  if (block.measured.empty()) return tree;
  const Columns columns = columns_for(block.measured, info.empty);
  add_entry(tree, "residual_columns", spec_text(field_names(info.empty, columns)));
  std::vector<std::string> rows(block.measured.size());
  for (const ResidualRow& row : block.residuals.rows()) {
    std::string& text = rows[static_cast<std::size_t>(row.call)];
    Call call = block.measured[static_cast<std::size_t>(row.call)];
    visit_columns(call, columns, PrintFields{text});
    text += fmt::format("{:.4f}", row.residual);
  }
  add_entry(tree, "residuals", list_of(rows));
  return tree;
}

}  // namespace tbdsim
