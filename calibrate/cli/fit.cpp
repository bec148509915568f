#include "calibrate/cli/fit.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <ostream>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "calibrate/fit/profile_fit.h"
#include "calibrate/importers/importers.h"
#include "calibrate/samples/load_records.h"
#include "costmodel/power.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

// A profile to fit and the file that it is written to.
struct Target {
  std::filesystem::path file;
  ProfileFitOptions options;
  bool whole = false;  // one of all profiles of the catalogue
};

std::string only_gpu(const LoadedRecords& loaded) {
  if (loaded.gpus.size() == 1) return loaded.gpus.begin()->first;
  std::vector<std::string> names;
  for (const auto& [name, gpu] : loaded.gpus) names.push_back(name);
  throw UsageError("the records are of " + joined(names) +
                   "; expected --gpu, --architecture or --generic to say for which");
}

void require_architecture(const std::string& architecture, const LoadedRecords& loaded) {
  std::set<std::string> measured;
  for (const auto& [name, gpu] : loaded.gpus) measured.emplace(instructions_of(gpu));
  if (architecture.empty() || measured.contains(architecture)) return;
  const std::vector<std::string> names(measured.begin(), measured.end());
  throw UsageError("--architecture: no record is of a GPU of architecture " + in_quotes(architecture) +
                   "; expected one of " + joined(names) + did_you_mean(architecture, names));
}

ProfileFitOptions options_of(const FitCommand& command, const LoadedRecords& loaded) {
  require_architecture(command.architecture, loaded);
  ProfileFitOptions options;
  options.gpu = command.gpu;
  options.architecture = command.architecture;
  if (command.gpu.empty() && command.architecture.empty() && !command.generic) options.gpu = only_gpu(loaded);
  options.without_gpu = command.without || command.one_gemm;
  options.one_gemm = command.one_gemm;
  return options;
}

std::vector<Target> all_targets(const std::filesystem::path& folder, const LoadedRecords& loaded) {
  std::vector<Target> targets;
  std::set<std::string> architectures;
  const auto add = [&](const std::string& file, const ProfileFitOptions& options) {
    targets.push_back({folder / (file + ".yaml"), options, true});
  };
  for (const auto& [name, gpu] : loaded.gpus) {
    ProfileFitOptions options;
    options.gpu = name;
    options.refuse_thin = false;
    add(name, options);
    options.without_gpu = true;
    add("holdout/" + name, options);
    options.one_gemm = true;
    add("holdout/" + name + "_one_gemm", options);
    architectures.emplace(instructions_of(gpu));
  }
  for (const std::string& architecture : architectures) {
    ProfileFitOptions options;
    options.architecture = architecture;
    add(architecture, options);
  }
  add("generic", {});
  return targets;
}

void create_folder(const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw UsageError(folder.string() + ": cannot be created: " + failure.message());
}

// The published data sets: "owner/repository" -> its revision and licence.
struct Published {
  std::string revision;
  std::string licence;
};
std::vector<std::string> listed(std::string_view text) {
  std::istringstream all{std::string(text)};
  std::vector<std::string> parts;
  for (std::string part; std::getline(all >> std::ws, part, ',');) parts.push_back(part);
  return parts;
}

std::map<std::string, Published> published_sets() {
  std::map<std::string, Published> sets;
  for (const Importer& importer : importers()) {
    const std::vector<std::string> licences = listed(importer.licence);
    const std::vector<std::string> sources = listed(importer.from);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const std::string& from = sources[i];
      const std::size_t at = from.find('@');
      sets[from.substr(0, at)] = {
          at == std::string::npos ? "" : from.substr(at),
          licences.size() == sources.size() ? licences[i] : std::string(importer.licence)};
    }
  }
  return sets;
}

bool is_permissive(const std::string& licence) { return licence == "MIT" || licence == "Apache-2.0"; }

// The data sets that the numbers are fitted to: "..., sitar-lab/NeuSight@6945927d9afc (MIT)".
std::string source_of(const Profile& profile, const std::map<std::string, Published>& published) {
  std::set<std::string> sets;
  for (const auto& blocks : profile.families) {
    for (const ProfileBlock& block : blocks) {
      for (const auto& [from, count] : block.records) sets.insert(from.substr(from.find(", ") + 2));
    }
  }
  std::string text = "tbd-calibrate fit, to";
  for (const std::string& set : sets) {
    text += (text.ends_with("to") ? " " : ", ") + set;
    const auto found = published.find(set);
    if (found != published.end()) text += found->second.revision + " (" + found->second.licence + ")";
  }
  return text;
}

// "my_gpu.yaml: NVIDIA TITAN Xp, 13 blocks (...)".
std::string summary_of(const Profile& profile, const std::filesystem::path& file) {
  std::size_t blocks = 0;
  std::size_t unfinished = 0;
  std::size_t at_bounds = 0;
  for (const auto& family : profile.families) {
    for (const ProfileBlock& block : family) {
      ++blocks;
      unfinished += block.converged ? 0 : 1;
      at_bounds += block.at_bound.size();
    }
  }
  return fmt::format("{}: {}, {} blocks ({} stopped before they converged, {} parameters at a bound)\n",
                     file.string(), profile.title, blocks, unfinished, at_bounds);
}

// Puts the blocks of all families but those fitted into the profile: as its file has them, or, where there is
// none yet, as that of the architecture has. The file's title and board power stay where the fit is without
// the GPU.
void keep_other_families(const Target& target, const LoadedRecords& loaded, const Catalog& catalog,
                         Profile& profile) {
  const std::set<std::string>& fitted = target.options.families;
  if (fitted.empty()) return;
  std::filesystem::path file = target.file;
  const bool exists = std::filesystem::exists(file);
  if (!exists) {
    const auto gpu = loaded.gpus.find(target.options.gpu);
    if (gpu == loaded.gpus.end()) return;
    const std::string instructions(instructions_of(gpu->second));
    if (!catalog.contains(Kind::profile, instructions)) return;
    file = catalog.find(Kind::profile, instructions);
  }
  const Profile before = read_profile(file, catalog);
  for (std::size_t i = 0; i < kFamilyCount; ++i) {
    if (!fitted.contains(std::string(kFamilyNames[i]))) profile.families[i] = before.families[i];
  }
  if (!exists || !target.options.without_gpu) return;
  profile.title = before.title;  // other families were measured on the GPU
  profile.board_power = before.board_power;
}

// Gives families that no record is of the blocks of the architecture's profile, where all records are of one
// card: a profile of its products alone must not predict everything else by round efficiencies. Returns a
// line that says so.
std::string fill_families(const Target& target, const LoadedRecords& loaded, const Catalog& catalog,
                          Profile& profile) {
  const ProfileFitOptions& options = target.options;
  if (loaded.gpus.size() != 1 || !loaded.gpus.contains(options.gpu) || options.without_gpu) return {};
  const std::string instructions(instructions_of(loaded.gpus.at(options.gpu)));
  if (!options.families.empty() || !catalog.contains(Kind::profile, instructions)) return {};
  const Profile others = read_profile(catalog.find(Kind::profile, instructions), catalog);
  std::vector<std::string> filled;
  for (std::size_t i = 0; i < kFamilyCount; ++i) {
    if (!profile.families[i].empty() || others.families[i].empty()) continue;
    profile.families[i] = others.families[i];
    filled.emplace_back(kFamilyNames[i]);
  }
  if (filled.empty()) return {};
  return fmt::format("Without records, as profile {} has them: {}.\n", instructions, joined(filled));
}

void require_families(const std::vector<std::string>& families) {
  const std::vector<std::string> known(kFamilyNames.begin(), kFamilyNames.end());
  for (const std::string& family : families) {
    if (std::find(known.begin(), known.end(), family) != known.end()) continue;
    throw UsageError("--families: " + in_quotes(family) + " is unknown; expected some of " + joined(known) +
                     did_you_mean(family, known));
  }
}

void write_target(const Target& target, const LoadedRecords& loaded, const Catalog& catalog, FitMemo& memo,
                  const ProgramContext& context) {
  AtomicFile file(target.file);  // opened before the fit, which takes minutes: a bad path fails at once
  ProfileFitOptions options = target.options;
  options.memo = &memo;
  const std::string name = target.file.stem().string();
  options.progress = [&](std::string_view step) {
    stop_if_interrupted(context);
    if (context.show_progress) context.err << "\r\033[K" << name << ": " << step << std::flush;
  };
  const std::map<std::string, Published> published = published_sets();
  for (const auto& [set, from] : published) {
    if (!is_permissive(from.licence)) options.unlisted.insert(set);
  }
  Profile profile = fit_profile(loaded.records, loaded.gpus, options);
  const bool empty = std::all_of(profile.families.begin(), profile.families.end(),
                                 [](const auto& blocks) { return blocks.empty(); });
  if (empty && !std::filesystem::exists(target.file)) return;
  keep_other_families(target, loaded, catalog, profile);
  profile.sources["families"] = source_of(profile, published);
  const std::string summary = summary_of(profile, target.file);
  const std::string filled = target.whole ? "" : fill_families(target, loaded, catalog, profile);
  file.stream() << write_profile(profile);
  file.commit();
  if (context.show_progress) context.err << "\r\033[K";
  context.out << summary << filled;
}

void require_one_target(const FitCommand& command) {
  if (command.output.empty() == command.all.empty()) {
    throw UsageError("fit: expected --output FILE for one profile or --all FOLDER for those of every GPU");
  }
  const bool named[] = {!command.gpu.empty(), !command.architecture.empty(), command.generic,
                        !command.all.empty()};
  if (std::count(std::begin(named), std::end(named), true) > 1)
    throw UsageError("fit: expected one of --gpu, --architecture, --generic and --all");
}

std::vector<Target> targets_of(const FitCommand& command, const LoadedRecords& loaded) {
  if (!command.all.empty()) return all_targets(command.all, loaded);
  return {{command.output, options_of(command, loaded)}};
}

}  // namespace

void fit_command(const FitCommand& command, const ProgramContext& context) {
  require_one_target(command);
  require_families(command.families);
  const Catalog catalog = Catalog::from(context.data_dir);
  LoadedRecords loaded = load_records(command.files, catalog);
  if (!command.gpu.empty())
    loaded.gpus.try_emplace(command.gpu, read_gpu(catalog.find(Kind::gpu, command.gpu), catalog));
  if (context.catch_signals != nullptr) context.catch_signals();
  for (const std::string& note : loaded.notes) context.out << note << '\n';
  std::vector<Target> targets = targets_of(command, loaded);
  for (Target& target : targets) target.options.families = {command.families.begin(), command.families.end()};
  if (!command.all.empty()) create_folder(std::filesystem::path(command.all) / "holdout");
  FitMemo memo;
  for (const Target& target : targets) write_target(target, loaded, catalog, memo, context);
}

}  // namespace tbdsim
