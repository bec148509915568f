#include "calibrate/cli/fit_convergence.h"

#include <cmath>
#include <ostream>

#include <fmt/format.h>

#include "graphs/convergence.h"
#include "hwspecs/base/catalog.h"
#include "hwspecs/base/statistics.h"

namespace tbdsim {
namespace {

// A batch that lies beyond the others by less is as one among them.
constexpr double kFarOutside = 1.25;

struct SquareMean {
  double sum = 0;
  int count = 0;

  void add(double value) {
    sum += value * value;
    ++count;
  }
  [[nodiscard]] double root() const { return count > 0 ? std::sqrt(sum / count) : 0; }
};

}  // namespace

void convergence_command(const ConvergenceCommand& command, const ProgramContext& context) {
  const Catalog catalog = Catalog::from(context.data_dir);
  SquareMean outside;
  std::vector<double> errors;
  for (const std::string& name : command.files.empty() ? catalog.names(Kind::target) : command.files) {
    const Convergence target = read_convergence(catalog.find(Kind::target, name));
    if (!target.is_measured()) continue;
    const ConvergenceLaw law = fit_convergence_law(target.points);
    const std::vector<LeftOutBatch> left_out = left_out_batches(target.points, target.evaluation.every);
    SquareMean between, own;
    for (const LeftOutBatch& batch : left_out) {
      errors.push_back(std::abs(batch.ratio - 1));
      if (batch.outside >= kFarOutside) {
        outside.add(std::log(batch.ratio) / std::log(batch.outside));
      } else {
        between.add(std::log(batch.ratio));
      }
    }
    for (const ConvergencePoint& point : target.points)
      own.add(std::log(law.epochs_at(point.batch) / point.epochs));
    context.out << fmt::format(
        "{}\nlaw: {{minimum: {:.4g}, critical_batch: {:.4g}, exponent: {:.4g}, spread: {:.3f}}}\n",
        target.name, law.minimum, law.critical_batch, law.exponent,
        between.count > 0 ? between.root() : own.root());
    context.out << "#        batch   epochs    law  left out\n";
    for (const LeftOutBatch& batch : left_out)
      context.out << fmt::format("# {:12.6g} {:8.4g} {:+5.1f} % {:+7.1f} %{}\n", batch.batch, batch.epochs,
                                 100 * (law.epochs_at(batch.batch) / batch.epochs - 1),
                                 100 * (batch.ratio - 1),
                                 batch.outside >= kFarOutside ? ", beyond the others" : "");
  }
  if (errors.empty()) return;
  context.out << fmt::format(
      "# {} batches left out: median error {:.1f} %; beyond the others, ln of the error over ln of the "
      "factor: "
      "root mean square {:.2f}\n",
      errors.size(), 100 * median(errors), outside.root());
}

}  // namespace tbdsim
