#include "simulate/workload/change_scope.h"

#include <algorithm>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/link_spec.h"

namespace tbdsim {
namespace {

struct ChangedSpec {
  std::string_view name;
  Kind kind;
};
constexpr ChangedSpec kSpecs[] = {
    {"gpu", Kind::gpu},        {"link", Kind::link},           {"machine", Kind::machine},
    {"cpu", Kind::cpu},        {"framework", Kind::framework}, {"model", Kind::model},
    {"dataset", Kind::dataset}};

Kind kind_of(const SpecChange& change) {
  std::vector<std::string> known;
  for (const ChangedSpec& spec : kSpecs) {
    if (spec.name == change.spec) return spec.kind;
    known.emplace_back(spec.name);
  }
  throw UsageError(in_quotes(key_text(change)) + ": no spec is called " + in_quotes(change.spec) +
                   "; expected one of " + joined(known) + did_you_mean(change.spec, known));
}

// Throws where the path's first key resembles a link's name; any other is taken as a key of all links.
void refuse_misspelt_link(const SpecChange& change, const Catalog& catalog) {
  std::vector<std::string> known = catalog.names(Kind::link);
  known.insert(known.end(), kLinkKindNames.begin(), kLinkKindNames.end());
  const std::string hint = did_you_mean(change.path.front(), known);
  if (!hint.empty()) {
    throw UsageError(in_quotes(key_text(change)) + ": no link is called " + in_quotes(change.path.front()) +
                     hint);
  }
}

}  // namespace

SpecChanges scoped(SpecChanges changes, const Catalog& catalog) {
  for (SpecChange& change : changes) {
    const Kind kind = kind_of(change);
    if (change.path.size() < 2 || !change.only.empty()) continue;
    const std::string& first = change.path.front();
    const bool of_kind = kind == Kind::link && std::find(kLinkKindNames.begin(), kLinkKindNames.end(),
                                                         first) != kLinkKindNames.end();
    if (!of_kind && !catalog.contains(kind, first)) {
      if (kind == Kind::link) refuse_misspelt_link(change, catalog);
      continue;
    }
    change.only = first;
    change.path.erase(change.path.begin());
  }
  return changes;
}

}  // namespace tbdsim
