#include "calibrate/cli/fit_communication.h"

#include <ostream>

#include <fmt/format.h>

#include "calibrate/fit/collective_fit.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

std::map<std::string, std::string> pairs_of(const std::vector<std::string>& only) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : only) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw UsageError("--only " + in_quotes(text) + ": expected a column and a value, as gpu=v100");
    pairs[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return pairs;
}

void write(const CommunicationFit& fit, std::ostream& out) {
  const CollectiveCost& cost = fit.cost;
  const bool protocols = cost.simple_step > Seconds(0);
  out << fmt::format("collective: {{launch: {}, step: {}, efficiency: {:.3f}, {}: {}{}}}\n",
                     to_text(cost.launch), to_text(cost.step), cost.efficiency,
                     protocols ? "simple_step" : "root", to_text(protocols ? cost.simple_step : cost.root),
                     cost.in_switch > 0 ? fmt::format(", in_switch: {:.3f}", cost.in_switch) : "");
  out << fmt::format("# {} rows, mean error {:.1f} %\n# GPUs  error  fitted without them\n", fit.rows,
                     100 * fit.error);
  for (const auto& [gpus, error] : fit.errors) {
    const auto held_out = fit.held_out.find(gpus);
    out << fmt::format("# {:4}  {:3.1f} %  {}\n", gpus, 100 * error,
                       held_out == fit.held_out.end() ? "" : fmt::format("{:.1f} %", 100 * held_out->second));
  }
}

}  // namespace

void communication_command(const CommunicationCommand& command, const ProgramContext& context) {
  if (command.files.empty()) throw UsageError("fit-communication: expected tables of measured all-reduces");
  if (command.machine.empty())
    throw UsageError("fit-communication: expected --machine NAME ('tbd-sim list machines'), or a path");
  const Catalog catalog = Catalog::from(context.data_dir);
  const MachineSpec machine = read_machine(catalog.find(Kind::machine, command.machine), catalog);
  const GpuSpec gpu = read_gpu(catalog.find(Kind::gpu, machine.gpu), catalog);
  std::vector<MeasuredCollective> measured;
  for (const std::string& file : command.files) {
    std::ifstream in = open_input(file);
    for (const MeasuredCollective& row : read_collectives(in, file, pairs_of(command.only)))
      measured.push_back(row);
  }
  write(fit_communication(machine, gpu, measured), context.out);
}

}  // namespace tbdsim
