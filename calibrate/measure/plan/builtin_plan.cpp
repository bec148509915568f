#include "calibrate/measure/plan/builtin_plan.h"

namespace tbdsim::measure {

double precision_value(const std::string& precision) {
  if (precision == "fp32") return 1;     // what the paper and most published tables used
  if (precision == "fp16") return 0.25;  // behaves as bf16 where both exist
  return 0.5;
}

std::vector<PlanPoint> builtin_plan() {
  std::vector<PlanPoint> points;
  add_gemms(points);
  add_convolutions(points);
  add_streams(points);
  add_images(points);
  add_recurrences(points);
  for (PlanPoint& point : points) point.where = "built-in plan";
  return points;
}

}  // namespace tbdsim::measure
