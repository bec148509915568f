#include "simulate/framework/sync_defaults.h"

#include <algorithm>
#include <string_view>

#include "graphs/model.h"
#include "hwspecs/base/spec_reader.h"
#include "simulate/framework/sync_method.h"

namespace tbdsim {
namespace {

constexpr std::string_view kSourcedKeys[] = {
    "within",       "within_of",         "across",      "bucket", "first_bucket", "bucket_across", "message",
    "interference", "copy_interference", "single_ring", "cycle",  "fp32_amp",     "cut_tables"};

void read_method(SpecMap& m, std::string_view key, std::string& name) {
  const auto node = m.find(key);
  if (!node) return;
  name = node->text();
  require_sync_method(*node);
}

void read_methods_of_programs(SpecMap& m, SyncDefaults& defaults) {
  const auto programs = m.find("within_of");
  if (!programs) return;
  programs->map([&](SpecMap& methods) {
    for (const SpecMap::NamedNode& program : methods.all()) {
      require_sync_method(program.node);
      defaults.within_of[program.name] = program.node.text();
    }
  });
}

// `bucket` is also the default of the other two.
void read_buckets(SpecMap& m, SyncDefaults& defaults) {
  if (const auto bucket = m.find("bucket"))
    defaults.bucket = defaults.first_bucket = defaults.bucket_across = bucket->quantity<Bytes>();
  if (const auto across = m.find("bucket_across")) defaults.bucket_across = across->quantity<Bytes>();
  if (const auto first = m.find("first_bucket")) defaults.first_bucket = first->quantity<Bytes>();
}

}  // namespace

SyncDefaults override_sync_defaults(const SpecNode& node, SyncDefaults defaults) {
  node.map([&](SpecMap& m) {
    read_method(m, "within", defaults.within);
    read_methods_of_programs(m, defaults);
    read_method(m, "across", defaults.across);
    read_buckets(m, defaults);
    if (const auto part = m.find("interference")) defaults.interference = part->number(0, 1);
    if (const auto one = m.find("single_ring")) defaults.single_ring = one->flag();
    if (const auto cut = m.find("cut_tables")) defaults.cut_tables = cut->flag();
    if (const auto part = m.find("copy_interference")) defaults.copy_interference = part->number(0, 1);
    if (const auto message = m.find("message")) defaults.message = message->quantity<Seconds>();
    if (const auto cycle = m.find("cycle")) defaults.cycle = cycle->quantity<Seconds>();
    if (const auto wide = m.find("fp32_amp")) defaults.fp32_amp = wide->flag();
    for (auto& [name, source] : read_sources(m, kSourcedKeys)) defaults.sources[name] = source;
  });
  return defaults;
}

const std::string& method_within(const SyncDefaults& defaults, const Variant& variant) {
  const auto trains = [&](const auto& program) {
    return variant.name == program.first || std::ranges::count(variant.also_called, program.first) > 0;
  };
  const auto program = std::ranges::find_if(defaults.within_of, trains);
  return program == defaults.within_of.end() ? defaults.within : program->second;
}

}  // namespace tbdsim
