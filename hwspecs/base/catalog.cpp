#include "hwspecs/base/catalog.h"

#include <algorithm>

#include "hwspecs/base/error.h"
#include "hwspecs/base/other_names.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace fs = std::filesystem;

bool is_path(std::string_view name_or_path) {
  return name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".yaml") ||
         name_or_path.ends_with(".json") || name_or_path.ends_with(".json.gz");
}

namespace {

// "; expected one of ..." of the names that begin so, as several do with "v100"; else "; did you mean 'a'?"
// of the nearest, else of the shortest that contains it, as of "torch"; "" where there is none.
std::string hint_for(std::string_view name, const std::vector<std::string>& known) {
  constexpr std::size_t kLeastPart = 4;  // letters of a name that tell it
  const std::string plain = plain_name(name);
  if (plain.empty()) return "";
  std::vector<std::string> longer, around;
  for (const std::string& other : known) {
    const std::size_t at = plain_name(other).find(plain);
    if (at == 0) longer.push_back(other);
    if (at != std::string::npos && plain.size() >= kLeastPart) around.push_back(other);
  }
  if (longer.size() > 1) {
    std::ranges::sort(longer);
    return "; expected one of " + joined(longer);
  }
  std::string near = did_you_mean(longer.empty() ? name : longer.front(), longer.empty() ? known : longer);
  if (!near.empty() || around.empty()) return near;
  const auto shortest = std::ranges::min_element(around, {}, &std::string::size);
  return "; did you mean '" + *shortest + "'?";
}

// Names of files and of sizes in them; not the titles, which have capitals or spaces.
std::vector<std::string> names_of_models(const Catalog& catalog) {
  std::vector<std::string> known;
  for (const std::string& name : catalog.names(Kind::model)) {
    for (std::string& other : other_names(catalog.folder(Kind::model) / (name + ".yaml"))) {
      const bool title =
          std::ranges::any_of(other, [](char c) { return c == ' ' || (c >= 'A' && c <= 'Z'); });
      if (!title) known.push_back(std::move(other));
    }
  }
  return known;
}

// For names of accelerators that are not NVIDIA's, what can be done; "" for others.
std::string hint_for_others(std::string_view gpu) {
  const std::string plain = plain_name(gpu);
  for (const char* name : {"tpu", "gaudi", "hpu", "trainium", "mi100", "mi2", "mi3", "rx", "ascend"}) {
    if (plain.starts_with(name))
      return "; the catalogue has NVIDIA's alone, another accelerator needs a file of its own "
             "(docs/extending.md, \"A GPU\")";
  }
  return "";
}

// A sentence that names the command that takes a list, where a list stands in place of one name; else empty.
std::string hint_for_several(Kind kind, std::string_view given) {
  const bool list = given == "all" || given.find(',') != std::string_view::npos;
  const bool swept =
      kind == Kind::model || kind == Kind::gpu || kind == Kind::framework || kind == Kind::machine;
  if (!list || !swept) return "";
  const KindInfo& info = info_of(kind);
  const std::string option(kind == Kind::gpu ? "gpu" : info.singular);
  return "; expected a name ('tbd-sim list " + std::string(info.plural) +
         "' names them), or several as 'tbd-sim sweep --" + option + " " + std::string(given) + "'";
}

}  // namespace

Catalog Catalog::from(const fs::path& data_dir) {
  for (const KindInfo& info : kKinds) {
    std::error_code ignored;
    if (!fs::is_directory(data_dir / info.folder, ignored)) {
      throw UsageError(data_dir.string() + ": no data directory of tbd-sim; expected a folder " +
                       std::string(info.folder) + " in it");
    }
  }
  return Catalog(data_dir);
}

std::vector<std::string> Catalog::names(Kind kind) const {
  std::vector<std::string> names;
  for (const fs::directory_entry& file : fs::directory_iterator(folder(kind))) {
    if (file.path().extension() == ".yaml") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool Catalog::contains(Kind kind, std::string_view name) const {
  if (name.empty() || is_path(name) || name.find('\0') != std::string_view::npos) return false;
  std::error_code ignored;
  return fs::is_regular_file(folder(kind) / (std::string(name) + ".yaml"), ignored);
}

std::optional<std::string> Catalog::name_of(Kind kind, std::string_view called) const {
  if (contains(kind, called)) return std::string(called);
  const std::string plain = plain_name(called);
  std::vector<std::string> found;
  for (std::string& name : names(kind)) {
    const std::vector<std::string> others = other_names(folder(kind) / (name + ".yaml"));
    if (std::any_of(others.begin(), others.end(),
                    [&](const std::string& other) { return plain_name(other) == plain; }))
      found.push_back(std::move(name));
  }
  if (found.size() > 1)
    throw UsageError("several " + std::string(info_of(kind).plural) + " are called " + in_quotes(called) +
                     "; expected one of " + joined(found));
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

std::optional<fs::path> Catalog::unseen(Kind kind, std::string_view name) const {
  const fs::path file = folder(kind) / "holdout" / (std::string(name) + ".yaml");
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) ? std::optional(file) : std::nullopt;
}

Catalog Catalog::with_files_only(std::vector<std::string> files) const {
  Catalog catalog = *this;
  catalog.files_ = std::move(files);
  return catalog;
}

fs::path Catalog::find(Kind kind, std::string_view name_or_path) const {
  const KindInfo& info = info_of(kind);
  if (is_path(name_or_path)) {
    if (!files_ || std::find(files_->begin(), files_->end(), name_or_path) != files_->end())
      return name_or_path;
    throw UsageError("unknown " + std::string(info.singular) + " " + in_quotes(name_or_path) +
                     "; expected a name ('tbd-sim list " + std::string(info.plural) +
                     "' names them): no file is read here that the command line does not name");
  }
  if (const auto name = name_of(kind, name_or_path)) return folder(kind) / (*name + ".yaml");
  if (const std::string several = hint_for_several(kind, name_or_path); !several.empty())
    throw UsageError(in_quotes(name_or_path) + " is not one " + std::string(info.singular) + several);
  std::string hint = kind == Kind::gpu ? hint_for_others(name_or_path) : "";
  if (hint.empty()) hint = hint_for(name_or_path, kind == Kind::model ? names_of_models(*this) : names(kind));
  throw UsageError("unknown " + std::string(info.singular) + " " + in_quotes(name_or_path) + hint +
                   " ('tbd-sim list " + std::string(info.plural) +
                   (files_ ? "' names them)" : "' names them; a path to a YAML file works too)"));
}

}  // namespace tbdsim
