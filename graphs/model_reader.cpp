#include <algorithm>
#include <cmath>
#include <set>

#include "graphs/blocks.h"
#include "graphs/lowering_reader.h"
#include "graphs/model.h"
#include "hwspecs/base/catalog_reference.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/other_names.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostCounted = 1'000'000'000'000'000;
constexpr std::int64_t kMostBatches = 1'000'000;  // in an iteration
constexpr std::size_t kMostBuckets = 1'000;
constexpr std::int64_t kMostSamplesAtOnce = 1'000'000'000;
constexpr double kLeastSourceShare = 0.01;
constexpr std::string_view kUsualFramework = "pytorch";
constexpr double kMostUnits = 1'000'000'000;

Parameters read_parameters(const std::optional<SpecNode>& node) {
  Parameters parameters;
  if (!node) return parameters;
  node->map([&](SpecMap& m) {
    for (const auto& [name, mark, value] : m.all()) parameters[name] = value.tree();
  });
  return parameters;
}

ExpectedCounts read_expected(const SpecNode& node, const std::string& source_of_variant) {
  ExpectedCounts counts;
  node.map([&](SpecMap& m) {
    const auto count = [&](std::string_view key) {
      const auto value = m.find(key);
      return value ? std::optional(value->count(0, kMostCounted)) : std::nullopt;
    };
    counts.parameters = count("parameters");
    counts.forward_macs = count("forward_macs");
    counts.training_macs = count("training_macs");
    const auto source = m.find("source");
    counts.source = source ? source->text() : source_of_variant;
  });
  return counts;
}

Optimizer read_optimizer(const SpecNode& node) {
  std::vector<std::string_view> names;
  for (const Optimizer& optimizer : kOptimizers) names.push_back(optimizer.name);
  return kOptimizers[node.one_of(names)];
}

std::vector<std::int64_t> read_buckets(const SpecNode& node) {
  std::vector<std::int64_t> buckets;
  for (const SpecNode& item : node.list()) {
    buckets.push_back(item.count(1, kLargestDimension));
    if (buckets.size() > 1 && buckets[buckets.size() - 2] >= buckets.back())
      item.fail("is not above the one before it; expected ascending lengths");
  }
  if (buckets.empty()) node.fail("names no length; expected at least one");
  if (buckets.size() > kMostBuckets) node.fail("has more than 1000 lengths");
  return buckets;
}

ImageSides read_sides(const SpecNode& node) {
  const std::vector<SpecNode> sides = node.list();
  if (sides.size() != 2) node.fail("is no pair; expected the short side and the most of the long one");
  const std::int64_t shorter = sides[0].count(1, kLargestDimension);
  return {shorter, sides[1].count(shorter, kLargestDimension)};
}

std::vector<std::string> read_frameworks(const std::optional<SpecNode>& node) {
  if (!node) return {std::string(kUsualFramework)};
  std::vector<std::string> frameworks;
  for (const SpecNode& name : node->list()) frameworks.push_back(name.text());
  return frameworks;
}

// Parameters and sizes of the model, which a variant may override.
struct Overridable {
  const Parameters& parameters;
  const Parameters& sizes;

  [[nodiscard]] bool has_size(std::string_view name) const { return sizes.contains(std::string(name)); }
};

// Reads the keys of the lengths and image sizes of the variant's batches.
void read_batch_shapes(SpecMap& m, const Overridable& known, Variant& variant) {
  if (const auto buckets = m.find("buckets")) {
    variant.buckets = read_buckets(*buckets);
    if (!known.has_size(kLengthSize))
      buckets->fail("are lengths of a sequence; expected 'sequence_length' among the model's sizes");
  }
  if (const auto sides = m.find("image_sides")) {
    variant.image_sides = read_sides(*sides);
    if (!known.has_size(kHeightSize) || !known.has_size(kWidthSize))
      sides->fail("are sides of images; expected image_height and image_width among the model's sizes");
  }
  if (const auto share = m.find("source_share")) {
    variant.source_share = share->number(kLeastSourceShare, 1);
    if (!known.has_size(kSourceLengthSize))
      share->fail("is of a source's length; expected 'source_length' among the model's sizes");
  }
}

Parameters read_overrides(const SpecNode& node, const Overridable& known) {
  Parameters overrides;
  node.map([&](SpecMap& m) {
    for (const Parameters* of : {&known.parameters, &known.sizes}) {
      for (const auto& [key, unused] : *of) {
        if (const auto value = m.find(key)) overrides[key] = value->tree();
      }
    }
  });
  return overrides;
}

Variant read_variant(const std::string& name, const SpecNode& node, const Overridable& known) {
  Variant variant;
  variant.name = name;
  node.map([&](SpecMap& m) {
    variant.description = m.at("description").text();
    variant.source = m.at("source").text();
    variant.optimizer = read_optimizer(m.at("optimizer"));
    if (const auto mixed = m.find("mixed_optimizer")) variant.mixed_optimizer = read_optimizer(*mixed);
    if (const auto clip = m.find("clip")) variant.clip = static_cast<Clip>(clip->one_of(kClipNames));
    if (const auto average = m.find("average")) variant.average = average->flag();
    if (const auto decay = m.find("graph_decay")) variant.graph_decay = decay->flag();
    variant.frameworks = read_frameworks(m.find("frameworks"));
    variant.also_called = m.texts("also_called");
    if (const auto dataset = m.find("dataset")) variant.dataset = dataset->text();
    if (const auto batches = m.find("token_batches"))
      variant.token_batches = static_cast<TokenBatches>(batches->one_of(kTokenBatchesNames));
    read_batch_shapes(m, known, variant);
    if (const auto lowering = m.find("lowering")) {
      (void)override_lowering(*lowering, {});  // so that its errors are reported with this file
      variant.lowering = lowering->tree();
    }
    if (const auto expected = m.find("expected")) variant.expected = read_expected(*expected, variant.source);
    if (const auto parameters = m.find("parameters")) variant.parameters = read_overrides(*parameters, known);
  });
  return variant;
}

// A member of a family is the first variant in another size.
Variant read_member(const std::string& name, const SpecNode& node, const Overridable& known, Variant member) {
  member.name = name;
  member.expected = {};
  node.map([&](SpecMap& m) {
    member.source = m.at("source").text();
    member.description = m.at("description").text();
    member.also_called = m.texts("also_called");
    if (const auto expected = m.find("expected")) member.expected = read_expected(*expected, member.source);
    for (const auto& [key, value] : read_overrides(m.at("parameters"), known)) member.parameters[key] = value;
  });
  return member;
}

ThroughputUnit read_throughput(const SpecNode& node, bool has_length) {
  ThroughputUnit throughput;
  node.map([&](SpecMap& m) {
    throughput.unit = m.at("unit").text();
    const auto per_length = m.find("per_length");
    if (per_length) {
      if (!has_length)
        per_length->fail("is of a sequence; expected 'sequence_length' among the model's sizes");
      throughput.per_length = per_length->number(0.0, kMostUnits);
      throughput.per_sample = 0;
    }
    if (const auto per_sample = m.find("per_sample"))
      throughput.per_sample = per_sample->number(0.0, kMostUnits);
  });
  return throughput;
}

// The blocks of the base, with those of the file's own added or in their place.
SpecTree with_blocks(const SpecTree& base, const SpecTree& own) {
  SpecTree blocks = own;
  for (const SpecEntry& entry : base.entries) {
    const bool replaced = std::any_of(own.entries.begin(), own.entries.end(),
                                      [&](const SpecEntry& e) { return e.key == entry.key; });
    if (!replaced) blocks.entries.push_back(entry);
  }
  return blocks;
}

// Reads `parameters` and `sizes`, each over those that the base has.
void read_values(SpecMap& m, ModelFile& file) {
  for (auto& [name, value] : read_parameters(m.find("parameters"))) file.parameters[name] = value;
  for (auto& [name, value] : read_parameters(m.find("sizes"))) file.sizes[name] = value;
  for (const auto& [name, unused] : file.sizes) {
    if (file.parameters.contains(name))
      m.at("sizes").fail("names " + in_quotes(name) +
                         ", which is a parameter already; expected another name");
  }
}

std::vector<Variant> read_variants(const SpecNode& node, const Overridable& known) {
  std::vector<Variant> variants;
  node.map([&](SpecMap& m) {
    for (const auto& [name, mark, variant] : m.all()) variants.push_back(read_variant(name, variant, known));
  });
  if (variants.empty()) node.fail("names no variant; expected at least one");
  return variants;
}

// Reads the file's own keys over those of the file it is based on.
void read_model_keys(const SpecTree& tree, ModelFile& file) {
  SpecNode(tree).map([&](SpecMap& m) {
    const bool based = m.find("based_on").has_value();
    const auto key = [&](std::string_view name) { return based ? m.find(name) : std::optional(m.at(name)); };
    if (const auto title = key("title")) file.title = title->text();
    if (const auto sample = key("sample")) file.sample = sample->text();
    if (const auto batches = m.find("batches_per_iteration"))
      file.batches_per_iteration = batches->count(1, kMostBatches);
    if (const auto batch = m.find("largest_batch")) file.largest_batch = batch->count(1, kMostSamplesAtOnce);
    read_values(m, file);
    if (const auto throughput = m.find("throughput")) {
      file.throughput = read_throughput(*throughput, file.sizes.contains(std::string(kLengthSize)));
    } else if (file.throughput.unit.empty()) {
      file.throughput.unit = file.sample + "s";
    }
    if (const auto blocks = m.find("blocks")) file.blocks = with_blocks(file.blocks, blocks->tree());
    if (const auto graphs = key("graphs")) file.graphs = graphs->tree();
    if (const auto training = key("training")) file.training = training->tree();
    if (const auto variants = key("variants")) {
      file.variants = read_variants(*variants, {file.parameters, file.sizes});
      file.family.clear();
    }
    if (const auto family = m.find("family")) {
      family->map([&](SpecMap& members) {
        for (const auto& [name, mark, member] : members.all())
          file.family.push_back(
              read_member(name, member, {file.parameters, file.sizes}, file.variants.front()));
      });
    }
  });
}

// The file of `based_on`; none where the model stands on its own.
std::optional<std::filesystem::path> base_of(const SpecTree& tree, const std::filesystem::path& file,
                                             const std::filesystem::path& catalogue) {
  for (const SpecEntry& entry : tree.entries) {
    if (entry.key == "based_on")
      return base_named(SpecNode(entry.value, "based_on"), Kind::model, file, catalogue);
  }
  return std::nullopt;
}

ModelFile read_based(const std::filesystem::path& path, const SpecChanges& changes,
                     const std::filesystem::path& catalogue, int depth) {
  constexpr int kDeepest = 4;
  const SpecTree tree = read_spec_file(path, changes);
  ModelFile file;
  if (const auto base = base_of(tree, path, catalogue)) {
    if (depth == kDeepest)
      throw SpecError(tree.mark,
                      "is based on a model that is based on another, and so on; expected at most 4");
    file = read_based(*base, {}, catalogue, depth + 1);
  }
  file.path = path.string();
  file.name = path.stem().string();
  read_model_keys(tree, file);
  return file;
}

std::vector<std::string> names_of(const ModelFile& file) {
  std::vector<std::string> names;
  for (const Variant& variant : file.variants) names.push_back(variant.name);
  return names;
}

// Names of the frameworks that train any variant, each once.
std::vector<std::string> frameworks_of(const ModelFile& file) {
  std::vector<std::string> frameworks;
  for (const Variant& variant : file.variants) {
    for (const std::string& name : variant.frameworks) {
      if (std::find(frameworks.begin(), frameworks.end(), name) == frameworks.end())
        frameworks.push_back(name);
    }
  }
  return frameworks;
}

}  // namespace

ModelFile read_model_file(const std::filesystem::path& path, const SpecChanges& changes,
                          const std::filesystem::path& catalogue) {
  return read_based(path, changes_of(changes, "model", path.stem().string()), catalogue, 0);
}

ModelFile member_of_family(ModelFile file, const std::string& called) {
  const std::string plain = plain_name(called);
  const auto found = std::ranges::find_if(file.family, [&](const Variant& member) {
    return plain_name(member.name) == plain ||
           std::ranges::any_of(member.also_called,
                               [&](const std::string& other) { return plain_name(other) == plain; });
  });
  if (found == file.family.end()) return file;
  file.name = found->name;
  file.title = found->description;
  file.variants = {*found};
  file.family.clear();
  return file;
}

bool has_size(const ModelFile& file, const std::string& name) {
  return file.sizes.contains(name) || file.parameters.contains(name);
}

const Variant& find_variant(const ModelFile& file, const std::string& variant, const std::string& framework) {
  const auto holds = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const std::vector<std::string> names = names_of(file);
  if (variant.empty()) {
    for (const Variant& candidate : file.variants) {
      if (holds(candidate.frameworks, framework)) return candidate;
    }
    if (framework.empty() || file.variants.size() == 1) return file.variants.front();
    const std::vector<std::string> trained_by = frameworks_of(file);
    throw UsageError(file.name + " is trained by " +
                     (trained_by.empty() ? "no framework by default" : joined(trained_by)) + ", not by " +
                     in_quotes(framework) +
                     "; expected a --framework that trains it, or a --variant, one of " + joined(names));
  }
  for (const Variant& candidate : file.variants) {
    if (candidate.name == variant || holds(candidate.also_called, variant)) return candidate;
  }
  const auto is_called_so = [&](const std::string& name) { return plain_name(name) == plain_name(variant); };
  for (const Variant& candidate : file.variants) {
    if (is_called_so(candidate.name) ||
        std::any_of(candidate.also_called.begin(), candidate.also_called.end(), is_called_so))
      return candidate;
  }
  throw UsageError("unknown variant " + in_quotes(variant) + " of " + file.name + "; expected one of " +
                   joined(names) + did_you_mean(variant, names));
}

}  // namespace tbdsim
