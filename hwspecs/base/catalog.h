// The catalogue, a directory of YAML files: one for each GPU, model, framework, ... whose stem is its name.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tbdsim {

enum class Kind { gpu, cpu, link, machine, model, suite, dataset, framework, change, profile, target };

struct KindInfo {
  Kind kind;
  std::string_view singular;
  std::string_view plural;  // as in `tbd-sim list gpus`
  std::string_view folder;  // below the data directory
};

inline constexpr std::array<KindInfo, 11> kKinds = {{
    {Kind::gpu, "GPU", "gpus", "hwspecs/gpus"},
    {Kind::cpu, "CPU", "cpus", "hwspecs/cpus"},
    {Kind::link, "link", "links", "hwspecs/links"},
    {Kind::machine, "machine", "machines", "hwspecs/machines"},
    {Kind::model, "model", "models", "graphs/models"},
    {Kind::suite, "suite", "suites", "graphs/suites"},
    {Kind::dataset, "data set", "datasets", "graphs/datasets"},
    {Kind::framework, "framework", "frameworks", "simulate/frameworks"},
    {Kind::change, "change", "changes", "simulate/presets"},
    {Kind::profile, "profile", "profiles", "calibrate/profiles"},
    {Kind::target, "target", "targets", "graphs/convergence"},
}};

[[nodiscard]] constexpr const KindInfo& info_of(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

// The argument is the user's own file, not a name of the catalogue: it has a '/' or ends in .yaml, .json or
// .json.gz.
[[nodiscard]] bool is_path(std::string_view name_or_path);

class Catalog {
 public:
  // The root of the data directories (the source tree, or <prefix>/share/tbd-sim). Throws UsageError when a
  // folder is missing there.
  [[nodiscard]] static Catalog from(const std::filesystem::path& data_dir);

  // The same catalogue, which finds only these files by path: for names from an untrusted source.
  [[nodiscard]] Catalog with_files_only(std::vector<std::string> files) const;

  // The file of a name (as name_of()), or the path itself where the argument is one. Throws UsageError with
  // "did you mean" for an unknown name.
  [[nodiscard]] std::filesystem::path find(Kind kind, std::string_view name_or_path) const;
  [[nodiscard]] std::vector<std::string> names(Kind kind) const;        // sorted
  [[nodiscard]] bool contains(Kind kind, std::string_view name) const;  // exactly so
  // The name of the file that is called so: by its name, its title or one of its `also_called`, in capitals
  // or not; none if there is no such file. Throws UsageError where several are called so.
  [[nodiscard]] std::optional<std::string> name_of(Kind kind, std::string_view called) const;
  // The file <folder>/holdout/<name>.yaml, fitted without the measurements of one GPU; none if there is no
  // such file.
  [[nodiscard]] std::optional<std::filesystem::path> unseen(Kind kind, std::string_view name) const;
  [[nodiscard]] std::filesystem::path folder(Kind kind) const { return data_dir_ / info_of(kind).folder; }
  [[nodiscard]] const std::filesystem::path& data_dir() const { return data_dir_; }

 private:
  explicit Catalog(std::filesystem::path data_dir) : data_dir_(std::move(data_dir)) {}

  std::filesystem::path data_dir_;
  std::optional<std::vector<std::string>> files_;  // the paths that are found; none: any
};

}  // namespace tbdsim
