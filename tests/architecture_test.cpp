// The house rules that a program can check: which folder may include which, which library stays behind which
// files, and a few things that may stand in a few places only. The rules themselves are the tables below.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace {
namespace fs = std::filesystem;

// The rooms, and which other rooms the files of each may include; its own and hwspecs/base always.
const std::map<std::string, std::vector<std::string>> kArrows = {
    {"hwspecs/base", {}},
    {"hwspecs", {}},
    {"graphs", {}},
    {"graphs/rewrites", {"graphs"}},
    {"graphs/captured", {"graphs"}},
    {"graphs/hugging_face", {"graphs", "graphs/captured"}},
    {"costmodel", {"hwspecs", "graphs"}},
    {"calibrate/records", {}},
    {"calibrate/importers", {"calibrate/records"}},
    {"calibrate/samples", {"hwspecs", "graphs", "costmodel", "calibrate/records", "calibrate/importers"}},
    {"calibrate/fit", {"hwspecs", "graphs", "costmodel", "calibrate/records", "calibrate/samples"}},
    {"calibrate/framework_fit", {"simulate/framework", "simulate/prediction", "simulate/validation"}},
    {"calibrate/cli",
     {"hwspecs", "graphs", "costmodel", "calibrate/records", "calibrate/importers", "calibrate/samples",
      "calibrate/fit", "calibrate/framework_fit", "simulate/workload", "simulate/import"}},
    {"calibrate/measure/statistics", {}},
    {"calibrate/measure/plan", {"calibrate/measure/statistics", "calibrate/records"}},
    {"calibrate/measure/kernels", {}},
    {"calibrate/measure/device",
     {"calibrate/measure/statistics", "calibrate/measure/plan", "calibrate/measure/kernels",
      "calibrate/records"}},
    {"calibrate/measure/ops",
     {"calibrate/measure/statistics", "calibrate/measure/plan", "calibrate/measure/kernels",
      "calibrate/measure/device", "calibrate/records"}},
    {"calibrate/measure/run",
     {"calibrate/measure/statistics", "calibrate/measure/plan", "calibrate/measure/device",
      "calibrate/measure/ops", "calibrate/records"}},
    {"simulate/import", {"hwspecs", "graphs", "graphs/captured"}},
    {"simulate/framework", {"hwspecs", "graphs", "graphs/rewrites", "costmodel"}},
    {"simulate/timeline", {"hwspecs", "graphs", "graphs/rewrites", "costmodel", "simulate/framework"}},
    {"simulate/memory", {"hwspecs", "graphs", "graphs/rewrites", "costmodel", "simulate/framework"}},
    {"simulate/workload",
     {"hwspecs", "graphs", "graphs/captured", "graphs/hugging_face", "graphs/rewrites", "costmodel",
      "simulate/framework", "simulate/memory"}},
    {"simulate/communication", {"hwspecs", "graphs", "costmodel", "simulate/framework", "simulate/timeline"}},
    {"simulate/schedule", {}},
    {"simulate/layout", {"simulate/schedule", "graphs"}},
    {"simulate/plan",
     {"hwspecs", "graphs", "costmodel", "simulate/communication", "simulate/schedule", "simulate/layout"}},
    {"simulate/prediction",
     {"hwspecs", "graphs", "graphs/rewrites", "costmodel", "simulate/framework", "simulate/timeline",
      "simulate/memory", "simulate/workload", "simulate/communication"}},
    {"simulate/job",
     {"hwspecs", "graphs", "graphs/captured", "costmodel", "simulate/workload", "simulate/layout",
      "simulate/plan", "simulate/prediction"}},
    {"simulate/analysis",
     {"hwspecs", "graphs", "graphs/rewrites", "costmodel", "simulate/framework", "simulate/timeline",
      "simulate/memory", "simulate/workload", "simulate/communication", "simulate/prediction"}},
    {"simulate/sweep",
     {"hwspecs", "graphs", "costmodel", "simulate/framework", "simulate/workload", "simulate/communication",
      "simulate/prediction", "simulate/plan", "simulate/job"}},
    {"simulate/validation",
     {"hwspecs", "graphs", "costmodel", "simulate/framework", "simulate/workload", "simulate/prediction",
      "simulate/analysis", "simulate/plan", "simulate/job"}},
    {"simulate/compare",
     {"hwspecs", "graphs", "costmodel", "simulate/timeline", "simulate/memory", "simulate/prediction",
      "simulate/import"}},
    {"simulate/report",
     {"hwspecs", "graphs", "graphs/rewrites", "costmodel", "simulate/framework", "simulate/timeline",
      "simulate/memory", "simulate/workload", "simulate/communication", "simulate/prediction",
      "simulate/analysis", "simulate/sweep", "simulate/validation", "simulate/schedule", "simulate/layout",
      "simulate/plan", "simulate/job", "simulate/import", "simulate/compare"}},
    {"simulate/serve",
     {"hwspecs", "graphs", "costmodel", "simulate/workload", "simulate/prediction", "simulate/analysis",
      "simulate/layout", "simulate/plan", "simulate/job", "simulate/report", "simulate/import"}},
    {"simulate/cli",
     {"hwspecs", "graphs", "costmodel", "simulate/framework", "simulate/workload", "simulate/communication",
      "simulate/prediction", "simulate/analysis", "simulate/sweep", "simulate/validation", "simulate/report",
      "simulate/serve", "simulate/layout", "simulate/plan", "simulate/job", "simulate/import",
      "simulate/compare"}},
    {"simulate",
     {"simulate/workload", "simulate/prediction", "simulate/analysis", "simulate/sweep",
      "simulate/validation"}},
};

// A library and the only files that may include it (as regular expressions over the path).
struct Fence {
  const char* include;
  const char* allowed_in;
};
constexpr Fence kFences[] = {
    {"yaml-cpp/", "hwspecs/base/spec_(parser|writer)\\.cpp"},
    {"boost/graph/", "graphs/.*\\.cpp"},
    {"boost/(beast|asio)", "simulate/serve/http_server\\.cpp"},
    {"boost/math/", "simulate/communication/sync_timeline\\.cpp"},
    {"boost/", "(graphs/.*|simulate/communication/sync_timeline|simulate/serve/http_server)\\.cpp"},
    {"nlohmann/",
     "((hwspecs/base/table|graphs/captured/json_node|simulate/.*)\\.cpp|simulate/report/html/"
     "chart_json\\.h)"},
    {"CLI/",
     "(calibrate/cli/cli\\.cpp|simulate/cli/(cli\\.cpp|commands/(.*\\.cpp|command\\.h|options\\.h)))"},
    {"fmt/", ".*\\.cpp"},
    {"tbb/",
     "(calibrate/fit/cross_validation|calibrate/cli/fit|simulate/workload/parallel|simulate/prediction/"
     "predict_all|simulate/sweep/run)\\.cpp"},
    {"mpi\\.h", "simulate/sweep/mpi_session_mpi\\.cpp"},
    {"ceres/", "calibrate/.*\\.cpp"},
    {"Eigen/", "(calibrate/.*|costmodel/residuals/kriging_system)\\.cpp"},
    {"cu(da|dnn|blas|pti|rand)", "calibrate/measure/.*"},
    {"nccl", "calibrate/measure/.*"},
    {"zlib", "(graphs/captured/gzip|simulate/import/unpacked_file)\\.cpp"},
    {"expat", "simulate/import/xml_tree\\.cpp"},
};

// State that a function keeps from call to call, but for constants: callers own such state and pass it.
constexpr const char* kHiddenState =
    "thread_local|^ +static (?!constexpr)[^(]*( =|\\{)|^ +static (?!constexpr)[\\w:<>, ]+ \\w+;";

// Powers of ten and two that convert units, however they are spelt: hwspecs/base/quantity.h names them.
// Limits of counts and tolerances may have them, in a constant that is named so.
constexpr const char* kUnitFactors =
    "^(?!.*\\bk(Most|Largest|Longest|Rounding|Tolerance)\\w*( =|\\()).*"
    "\\b(1e-?9|1e-?12|1'?000'?000'?000|1'?048'?576|1'?073'?741'?824|1'?024(\\.0)? ?\\*)(?![\\w.])";

// Text that may stand in a few files only.
constexpr Fence kWords[] = {
    {kUnitFactors, "(hwspecs/base/quantity.*|calibrate/measure/.*)"},
    {"\\b(std::)?(quick_|_)?[eE]xit\\(",
     "(.*/main\\.cpp|(simulate|calibrate)/cli/cli\\.cpp|calibrate/measure/.*)"},
    {"std::(cerr|cout)", "(hwspecs/base/program\\.cpp|calibrate/measure/.*)"},
    {"getenv|std::chrono",
     "(simulate/cli/(main\\.cpp|progress_line\\..*)|hwspecs/base/program\\.cpp|simulate/serve/"
     "http_server\\.cpp|calibrate/measure/.*)"},
    {"mt19937|random_device", "calibrate/.*"},
    {kHiddenState, "(calibrate|hwspecs|graphs)/.*"},
    {"unordered_(map|set)", "calibrate/measure/.*"},
    // The cache of files: what resolves names, what overlays it point by point or request by request, and the
    // commands, which own it, submissions, some of which are jobs. Others get a Resolver.
    {"\\bSpecCache\\b",
     "(simulate/(workload|sweep|serve|cli)/.*|simulate/prediction/(resolve|cluster_machine)\\..*|simulate/"
     "job/resolve_job\\..*|simulate/validation/(submitted_run|tta_submissions)\\..*|"
     "calibrate/cli/fit_(framework|intervals)\\.cpp)"},
};

// Many .cpp files of one sort that one header declares: (path, header).
constexpr std::pair<const char*, const char*> kSharedHeaders[] = {
    {"graphs/layers/.*", "graphs/layers/layer_types.h"},
    {"graphs/captured/operators/.*", "graphs/captured/operators/operators.h"},
    {"calibrate/importers/.*", "calibrate/importers/importers.h"},
    {"calibrate/measure/ops/op_.*", "calibrate/measure/ops/ops.h"},
    {"calibrate/measure/plan/builtin_.*", "calibrate/measure/plan/builtin_plan.h"},
    {"simulate/import/smi_xml\\.cpp", "simulate/import/gpu_facts.h"},
    {"simulate/import/(topology_matrix|lspci_tree|hwloc_xml)\\.cpp", "simulate/import/machine_facts.h"},
    {"simulate/import/(onnx_model|(onnx|paleo|prototxt)_network)\\.cpp", "simulate/import/network_files.h"},
    {"simulate/import/(chrome_trace|kernel_table)\\.cpp", "simulate/import/measured_run.h"},
    {"simulate/cli/commands/.*", "simulate/cli/commands/command.h"},
    {"simulate/report/html/.*_(sections|figures)\\.cpp", "simulate/report/html/report_sections.h"},
};

struct Source {
  std::string path;  // from the root, with '/'
  std::vector<std::string> lines;
};

std::vector<Source> read_sources() {
  std::vector<Source> all;
  for (const char* top : {"hwspecs", "graphs", "costmodel", "calibrate", "simulate"}) {
    for (const auto& file : fs::recursive_directory_iterator(fs::path(TBDSIM_SOURCE_DIR) / top)) {
      const std::string extension = file.path().extension().string();
      if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
      Source source{fs::relative(file.path(), TBDSIM_SOURCE_DIR).generic_string(), {}};
      std::ifstream in(file.path());
      for (std::string line; std::getline(in, line);) source.lines.push_back(line);
      all.push_back(std::move(source));
    }
  }
  return all;
}

const std::vector<Source>& sources() {
  static const std::vector<Source> all = read_sources();
  return all;
}

// The longest folder of kArrows that a path lies in; "" for others.
std::string folder_of(const std::string& path) {
  std::string best;
  for (const auto& [folder, unused] : kArrows) {
    if (path.starts_with(folder + "/") && folder.size() > best.size()) best = folder;
  }
  return best;
}

std::vector<std::string> matches(const Source& source, const std::string& pattern) {
  const std::regex expression(pattern);
  std::vector<std::string> found;
  std::smatch match;
  for (const std::string& line : source.lines) {
    if (std::regex_search(line, match, expression)) found.push_back(match.size() > 1 ? match[1].str() : line);
  }
  return found;
}

std::string without_comment(const std::string& line) { return line.substr(0, line.find("//")); }

TEST(Architecture, EveryFolderIsCovered) {
  ASSERT_GT(sources().size(), 60u);
  for (const Source& source : sources()) EXPECT_NE(folder_of(source.path), "") << source.path;
}

TEST(Architecture, IncludesFollowTheArrows) {
  for (const Source& source : sources()) {
    const std::string room = folder_of(source.path);
    const auto& allowed = kArrows.at(room);
    for (const std::string& include : matches(source, "^#include \"([^\"]+)\"")) {
      const std::string other = folder_of(include);
      if (other == room || other == "hwspecs/base") continue;
      EXPECT_TRUE(std::find(allowed.begin(), allowed.end(), other) != allowed.end())
          << source.path << " includes " << include;
    }
  }
}

// Results are plain values: how they are shown as tables stands in simulate/report.
TEST(Architecture, HeadersOfResultsHaveNoTables) {
  for (const Source& source : sources()) {
    if (!std::regex_match(source.path, std::regex("simulate/(analysis|sweep|validation)/.*\\.h"))) continue;
    EXPECT_TRUE(matches(source, "^#include \"(hwspecs/base/table\\.h)\"").empty()) << source.path;
  }
}

// No two rooms include each other, over whatever detour: the table above has no cycle.
TEST(Architecture, RoomsHaveAnOrder) {
  std::map<std::string, int> state;  // 1: being visited, 2: done
  const std::function<void(const std::string&)> visit = [&](const std::string& room) {
    if (state[room] == 2) return;
    ASSERT_NE(state[room], 1) << room << " includes itself over other rooms";
    state[room] = 1;
    for (const std::string& other : kArrows.at(room)) visit(other);
    state[room] = 2;
  };
  for (const auto& [room, unused] : kArrows) visit(room);
}

TEST(Architecture, LibrariesStayBehindTheirFences) {
  for (const Source& source : sources()) {
    for (const Fence& fence : kFences) {
      if (std::regex_match(source.path, std::regex(fence.allowed_in))) continue;
      EXPECT_TRUE(matches(source, std::string("^#include [<\"](") + fence.include + ")").empty())
          << source.path << " includes " << fence.include << ", which only " << fence.allowed_in << " may";
    }
  }
}

TEST(Architecture, WordsStayInTheirPlaces) {
  for (const Source& source : sources()) {
    for (const Fence& fence : kWords) {
      if (std::regex_match(source.path, std::regex(fence.allowed_in))) continue;
      const std::regex word(fence.include);
      for (const std::string& line : source.lines) {
        EXPECT_FALSE(std::regex_search(without_comment(line), word))
            << source.path << ": " << line << "\nonly " << fence.allowed_in << " may have " << fence.include;
      }
    }
  }
}

// The header that declares what a .cpp defines: the one of its own name, of its name without the last words
// (pass_expansion_chains.cpp: pass_expansion.h), or one of kSharedHeaders; "" if there is none.
std::string header_of(const std::string& path) {
  const auto exists = [](const std::string& file) {
    return std::any_of(sources().begin(), sources().end(), [&](const Source& s) { return s.path == file; });
  };
  std::size_t end = path.rfind('.');
  while (end != std::string::npos && end > path.rfind('/')) {
    const std::string header = path.substr(0, end) + ".h";
    if (exists(header)) return header;
    end = path.rfind('_', end - 1);
  }
  for (const auto& [cpp, header] : kSharedHeaders) {
    if (std::regex_match(path, std::regex(cpp))) return header;
  }
  return "";
}

TEST(Architecture, EveryCppIncludesTheHeaderThatDeclaresIt) {
  for (const Source& source : sources()) {
    if (!source.path.ends_with(".cpp") || source.path.ends_with("/main.cpp")) continue;
    const std::vector<std::string> includes = matches(source, "^#include \"([^\"]+)\"");
    EXPECT_TRUE(std::find(includes.begin(), includes.end(), header_of(source.path)) != includes.end())
        << source.path << " includes no header of its name";
  }
}

TEST(Architecture, FilesStaySmall) {
  constexpr std::size_t kMostLines = 450;
  for (const Source& source : sources()) EXPECT_LE(source.lines.size(), kMostLines) << source.path;
}

// Tests that the checks above see what they look for.
TEST(Architecture, TheChecksCanFail) {
  const Source wrong{"graphs/x.cpp",
                     {"#include \"simulate/cli/cli.h\"", "#include <yaml-cpp/yaml.h>", "double x = 1e9;"}};
  EXPECT_EQ(matches(wrong, "^#include \"([^\"]+)\""), std::vector<std::string>{"simulate/cli/cli.h"});
  EXPECT_EQ(folder_of("simulate/cli/cli.h"), "simulate/cli");
  EXPECT_EQ(folder_of("hwspecs/base/csv.h"), "hwspecs/base");
  EXPECT_EQ(header_of("graphs/pass_expansion_chains.cpp"), "graphs/pass_expansion.h");
  EXPECT_EQ(header_of("graphs/layers/relu.cpp"), "graphs/layers/layer_types.h");
  EXPECT_EQ(header_of("hwspecs/base/spec.cpp"), "");
  EXPECT_FALSE(matches(wrong, std::string("^#include [<\"](") + kFences[0].include + ")").empty());
  EXPECT_TRUE(std::regex_search(wrong.lines[2], std::regex(kWords[0].include)));
  for (const char* line : {"double x = 1'000'000'000;", "x * 1e-9", "1048576 * x", "x / (1024 * 1024)"})
    EXPECT_TRUE(std::regex_search(line, std::regex(kUnitFactors))) << line;
  for (const char* line : {"constexpr std::int64_t kMostWords = 1'000'000'000;", "x = 1'024;", "x = 1.4e9;"})
    EXPECT_FALSE(std::regex_search(line, std::regex(kUnitFactors))) << line;
  for (const char* line : {"  static int count = 0;", "  static Cache cache;",
                           "  static const std::map<int, int> k{", "  static thread_local Cache cache(3);"})
    EXPECT_TRUE(std::regex_search(line, std::regex(kHiddenState))) << line;
  for (const char* line : {"  static constexpr int kCount = 3;", "  static double of(int x) { return x; }"})
    EXPECT_FALSE(std::regex_search(line, std::regex(kHiddenState))) << line;
}

}  // namespace
