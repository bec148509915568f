// The Python module tbdsim._core: the command line of tbd-sim as a function. Everything that Python offers
// goes through it, so that names, units and errors are those of the program.
#include <atomic>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "hwspecs/base/program.h"
#include "simulate/cli/cli.h"

namespace nb = nanobind;

namespace {

std::atomic<bool> interrupted = false;
void (*python_handler)(int) = nullptr;  // of SIGINT, while the program catches it

void catch_interrupts() {
  python_handler = std::signal(SIGINT, [](int) { interrupted = true; });
}

// Exit code, standard output and standard error of `tbd-sim ARGUMENTS...`. Other Python threads run
// meanwhile.
std::tuple<int, std::string, std::string> run(const std::vector<std::string>& arguments,
                                              const std::string& data_dir) {
  std::ostringstream out, err;
  interrupted = false;
  int code = 0;
  {
    const nb::gil_scoped_release others_run;
    code = tbdsim::run_cli(arguments, {.out = out,
                                       .err = err,
                                       .data_dir = data_dir,
                                       .catch_signals = catch_interrupts,
                                       .interrupted = &interrupted});
  }
  if (python_handler != nullptr) std::signal(SIGINT, python_handler);
  python_handler = nullptr;
  return {code, out.str(), err.str()};
}

// Exit code of the program on the process's own standard output and error, which it writes as it goes.
int main_program(std::vector<std::string> arguments) {
  const nb::gil_scoped_release others_run;
  arguments.insert(arguments.begin(), "tbd-sim");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return tbdsim::run_program("tbd-sim", tbdsim::run_cli, static_cast<int>(argv.size()), argv.data());
}

}  // namespace

NB_MODULE(_core, module) {
  module.def("run", &run, nb::arg("arguments"), nb::arg("data_dir"),
             "Exit code, standard output and standard error of `tbd-sim ARGUMENTS...`.");
  module.def("main", &main_program, nb::arg("arguments"),
             "Exit code of `tbd-sim ARGUMENTS...`, which writes to the process's own streams.");
  module.attr("source_data_dir") = TBDSIM_SOURCE_DIR;
}
