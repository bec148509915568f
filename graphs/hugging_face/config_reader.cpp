#include "graphs/hugging_face/config_reader.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "graphs/captured/json_node.h"
#include "graphs/hugging_face/architectures.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::uintmax_t kMostFileBytes = 1 << 20;
constexpr std::size_t kDeepest = 32;
constexpr std::size_t kMostValues = 1'000'000;  // label names of an image classifier are many
constexpr std::size_t kLongestName = 200;

std::string read_small_file(const std::filesystem::path& path) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed || size > kMostFileBytes) return {};
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The architecture whose `key` is the node's text. Throws SpecError that names the others, and what records
// any network of transformers.
const Architecture& architecture_by(std::string_view Architecture::*key, const JsonNode& node,
                                    const std::string& expected) {
  const std::string name = node.text(kLongestName);
  std::vector<std::string> known;
  for (const Architecture& architecture : architectures()) {
    if (architecture.*key == name) return architecture;
    if (std::ranges::find(known, architecture.*key) == known.end()) known.emplace_back(architecture.*key);
  }
  node.fail(expected + did_you_mean(name, known) + "; known are " + joined(known) +
            "; 'python -m tbdsim.hugging_face CONFIG -o my.step.json.gz' captures any other of transformers");
}

const Architecture& architecture_of(const JsonNode& root) {
  if (root.is_map() && root.has("architectures") && !root.at("architectures").is_null()) {
    const JsonNode names = root.at("architectures");
    names.require_list(1, "a list of one architecture");
    if (names.size() != 1) names.fail("a list of one architecture");
    return architecture_by(&Architecture::name, names[0], "a known architecture");
  }
  if (!root.is_map() || !root.has("model_type")) root.fail("a map with a key architectures or model_type");
  return architecture_by(&Architecture::model_type, root.at("model_type"), "a known type of model");
}

SpecTree scalar_of(const std::string& text) {
  return {.kind = SpecTree::Kind::scalar, .text = text, .items = {}, .entries = {}, .mark = {}};
}

}  // namespace

bool is_config_file(const std::filesystem::path& path) {
  if (path.extension() != ".json") return false;
  const std::string text = read_small_file(path);
  return text.find("\"architectures\"") != std::string::npos ||
         text.find("\"model_type\"") != std::string::npos;
}

HuggingFaceConfig read_config_file(const std::filesystem::path& path) {
  const std::string text = read_small_file(path);
  if (text.empty())
    throw UsageError(path.string() + ": cannot be read; expected a config.json of at most 1 MiB");
  const JsonDocument document(path.string(), text, kDeepest, kMostValues);
  const JsonNode root = document.root();
  const Architecture& architecture = architecture_of(root);
  ConfigValues values(root);
  architecture.read(values);
  return {path.string(), std::string(architecture.name), std::string(architecture.model),
          std::string(architecture.variant), values.parameters()};
}

ModelFile model_of_config(const HuggingFaceConfig& config, ModelFile base) {
  ModelFile file = member_of_family(std::move(base), config.variant);
  Variant variant = find_variant(file, config.variant, "");
  variant.name = "config";
  variant.description = config.architecture + " of a config.json";
  variant.source = config.path;
  variant.also_called.clear();
  variant.expected = {};
  for (const auto& [name, value] : config.parameters) variant.parameters[name] = scalar_of(value);
  const std::filesystem::path path(config.path);
  const std::filesystem::path folder = path.parent_path().filename();
  file.name = path.stem() == "config" && !folder.empty() ? folder.string() : path.stem().string();
  file.title = config.architecture;
  file.path = config.path;
  file.variants = {std::move(variant)};
  file.family.clear();
  return file;
}

}  // namespace tbdsim
