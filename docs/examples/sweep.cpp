// Predicts every combination of two GPUs and five batches and prints a CSV row for each.
#include <cstdio>

#include <simulate/sweep/sweep_spec.h>
#include <simulate/tbdsim.h>

int main() {
  tbdsim::SpecCache specs(tbdsim::Catalog::from(TBDSIM_DATA_DIR));
  tbdsim::SweepOptions options;
  options.axes = {
      {"model", "resnet50"}, {"framework", "mxnet"}, {"gpu", "titanxp,p4000"}, {"batch", "4:64:x2"}};
  options.metrics = "throughput,memory_total";

  tbdsim::SweepRun run = tbdsim::sweep_run(options, tbdsim::RowFormat::csv, specs);
  std::fputs(tbdsim::header_line(run.sweep, run.format).c_str(), stdout);
  run.take = [](const std::vector<tbdsim::SweepRow>& rows, std::int64_t /*first*/) {
    for (const tbdsim::SweepRow& row : rows) std::fputs(row.line.c_str(), stdout);
  };
  tbdsim::run_sweep(run, specs);
}
