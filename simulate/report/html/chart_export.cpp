#include "simulate/report/html/chart_export.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"

namespace tbdsim {
namespace {
namespace fs = std::filesystem;

constexpr const char* kBrowsers[] = {"chromium", "chromium-browser", "google-chrome"};
constexpr const char* kSeconds = "180";             // after which a browser that hangs is ended
constexpr int kNotFound = 127;                      // timeout's exit status for a missing program
constexpr std::uintmax_t kMostBytes = 400'000'000;  // of all pictures

// A directory of its own for the browser, gone afterwards.
class Workplace {
 public:
  Workplace() {
    std::string name = (fs::temp_directory_path() / "tbd-sim-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw UsageError(name + ": cannot be made");
    path = name;
  }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  fs::path path;
};

// Exit status of a program whose output goes to a file.
int run_program(std::vector<std::string> arguments, const fs::path& output) {
  std::vector<char*> texts;
  for (std::string& argument : arguments) texts.push_back(argument.data());
  texts.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, texts[0], &actions, nullptr, texts.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return kNotFound;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// As a file URL has it.
std::string url_of(const fs::path& file) {
  std::string url = "file://";
  for (const char c : fs::absolute(file).string()) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("/._-~").find(c) != std::string_view::npos;
    url += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return url;
}

// The page's text after its script has put the pictures into it.
std::string exported(const fs::path& file, const std::string& format) {
  const Workplace workplace;
  const fs::path output = workplace.path / "page";
  for (const char* browser : kBrowsers) {
    std::vector<std::string> arguments{"timeout",
                                       kSeconds,
                                       browser,
                                       "--headless=new",
                                       "--disable-gpu",
                                       "--hide-scrollbars",
                                       "--window-size=1280,900",
                                       "--virtual-time-budget=600000",
                                       "--dump-dom",
                                       "--user-data-dir=" + (workplace.path / "profile").string()};
    if (geteuid() == 0) arguments.emplace_back("--no-sandbox");  // which it refuses to root
    arguments.push_back(url_of(file) + "#export-" + format);
    const int status = run_program(std::move(arguments), output);
    if (status == kNotFound) continue;
    if (status != 0)
      throw UsageError(fmt::format("{} failed with status {} on {}", browser, status, file.string()));
    return read_file(output, kMostBytes);
  }
  throw UsageError("pictures need Chromium, which is not installed; expected it as chromium on the PATH");
}

// "FP32 utilization, %" -> "fp32_utilization".
std::string file_part(const std::string& title) {
  std::string part;
  for (const char c : title) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      part += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!part.empty() && part.back() != '_') {
      part += '_';
    }
  }
  constexpr std::size_t kLongest = 40;
  return part.substr(0, std::min(kLongest, part.find_last_not_of('_') + 1));
}

std::vector<std::string> names_of(const Page& page) {
  std::vector<std::string> names;
  for (const Section& section : page.sections) {
    for (const View& view : section.views) {
      for (const Chart& chart : view.charts) {
        names.push_back(
            fmt::format("{:02}_{}_{}", names.size() + 1, file_part(section.title), file_part(chart.title)));
      }
    }
  }
  return names;
}

}  // namespace

void write_chart_pictures(const Page& page, const fs::path& file, const std::string& format,
                          const fs::path& directory) {
  const std::string text = exported(file, format);
  const std::string begin = "id=\"exported\">";
  const std::size_t at = text.find(begin);
  const std::vector<std::string> names = names_of(page);
  if (at == std::string::npos) throw UsageError("Chromium drew no charts of " + file.string());
  std::istringstream lines(text.substr(at + begin.size()));
  std::error_code failure;
  fs::create_directories(directory, failure);
  for (const std::string& name : names) {
    std::string line;
    std::getline(lines, line);
    const std::string picture = from_base64(line);
    if (picture.empty()) throw UsageError("Chromium drew no chart " + name);
    AtomicFile to(directory / (name + "." + format));
    to.stream() << picture;
    to.commit();
  }
}

}  // namespace tbdsim
