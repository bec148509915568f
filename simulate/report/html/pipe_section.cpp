#include "simulate/report/html/pipe_section.h"

#include <array>

#include "simulate/prediction/pipe_utilization.h"
#include "simulate/report/prediction_label.h"

namespace tbdsim {
namespace {

struct Pipe {
  const char* name;
  double PipeUse::*share;
};
constexpr std::array<Pipe, 4> kPipes = {{{"FMA (fp32)", &PipeUse::fma},
                                         {"FP16", &PipeUse::fp16},
                                         {"tensor cores", &PipeUse::tensor},
                                         {"special functions", &PipeUse::special}}};

}  // namespace

Section pipe_section(const ReportData& data) {
  Chart chart{.title = "Pipes", .x = {.title = "of the pipe's peak, %", .from = 0, .to = kPercent}};
  int colour = 0;
  for (const Pipe& pipe : kPipes) {
    Series series{.mark = ChartMark::bar, .name = pipe.name, .colour = colour++};
    for (const Prediction& p : data.predictions) {
      const PipeUse use = pipe_use(p).value_or(PipeUse{});
      series.categories.push_back(label_among(data.predictions, p) + ", " + p.framework->name);
      series.x.push_back(kPercent * use.*pipe.share);
    }
    chart.series.push_back(std::move(series));
  }
  Section section{
      .title = "Pipes",
      .text = {"What each pipe of the multiprocessors executes over its peak while kernels run, weighted by "
               "their time, as the TBD suite's later page measures it with Nsight Compute. Instructions for "
               "conversions and copies are not counted."}};
  section.views.push_back({.name = "", .charts = {std::move(chart)}});
  return section;
}

}  // namespace tbdsim
