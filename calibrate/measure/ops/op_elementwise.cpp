// The program's own kernels: element-wise, bias, dropout, layer normalisation, optimizer updates, cache
// flush.
#include "calibrate/measure/ops/ops.h"
#include "calibrate/measure/ops/timing.h"

namespace tbdsim::measure {
namespace {
std::vector<Record> timed(Session& session, const PlanPoint& point, const char* what,
                          const std::function<cudaError_t()>& launch) {
  Record record = record_of(point);
  record.algorithm = "own";
  time_call(session, record, [&] { check(launch(), what); });
  return {record};
}
}  // namespace

std::vector<Record> run_add(Session& session, const PlanPoint& point) {
  const Type type = type_of(point.precision);
  const std::int64_t n = point.shape.elements;
  const DeviceBuffer a = session.random(type, n);
  const DeviceBuffer b = session.random(type, n);
  const DeviceBuffer c(a.bytes());
  return timed(session, point, "add",
               [&] { return launch_add(session.stream(), type, a.get(), b.get(), c.get(), n); });
}

std::vector<Record> run_relu(Session& session, const PlanPoint& point) {
  const Type type = type_of(point.precision);
  const std::int64_t n = point.shape.elements;
  const DeviceBuffer x = session.random(type, n);
  const DeviceBuffer dy = session.random(type, n);
  const DeviceBuffer out(x.bytes());
  return timed(session, point, "relu", [&] {
    if (point.phase == "forward") return launch_relu(session.stream(), type, x.get(), out.get(), n);
    return launch_relu_backward(session.stream(), type, x.get(), dy.get(), out.get(), n);
  });
}

std::vector<Record> run_dropout(Session& session, const PlanPoint& point) {
  const Type type = type_of(point.precision);
  const std::int64_t n = point.shape.elements;
  const DeviceBuffer x = session.random(type, n);
  const DeviceBuffer y(x.bytes());
  const DeviceBuffer mask(static_cast<std::size_t>(n));
  auto* const bytes = mask.as<unsigned char>();
  constexpr std::uint64_t kSeed = 1;
  check(launch_dropout(session.stream(), type, x.get(), y.get(), bytes, n, kSeed),
        "dropout");  // the mask for backward
  return timed(session, point, "dropout", [&] {
    if (point.phase == "forward")
      return launch_dropout(session.stream(), type, x.get(), y.get(), bytes, n, kSeed);
    return launch_dropout_backward(session.stream(), type, x.get(), bytes, y.get(), n);
  });
}

std::vector<Record> run_bias(Session& session, const PlanPoint& point) {
  const Type type = type_of(point.precision);
  const RecordShape& s = point.shape;
  const DeviceBuffer x = session.random(type, s.rows * s.cols);
  const DeviceBuffer y(x.bytes());
  const DeviceBuffer bias = session.random(type, s.cols);
  const DeviceBuffer sums(static_cast<std::size_t>(s.cols) * sizeof(float));
  return timed(session, point, "bias", [&] {
    if (point.phase == "forward") {
      return launch_bias(session.stream(), type, x.get(), bias.get(), y.get(), s.rows, s.cols);
    }
    return launch_bias_backward(session.stream(), type, x.get(), sums.as<float>(), s.rows, s.cols);
  });
}

std::vector<Record> run_layer_norm(Session& session, const PlanPoint& point) {
  const Type type = type_of(point.precision);
  const RecordShape& s = point.shape;
  const DeviceBuffer x = session.random(type, s.rows * s.cols);
  const DeviceBuffer dy = session.random(type, s.rows * s.cols);
  const DeviceBuffer out(x.bytes());
  const DeviceBuffer scale = session.random(Type::f32, s.cols);
  const DeviceBuffer shift = session.random(Type::f32, s.cols);
  const DeviceBuffer stats(static_cast<std::size_t>(2 * s.rows) * sizeof(float));
  const DeviceBuffer sums(static_cast<std::size_t>(2 * s.cols) * sizeof(float));
  const auto forward = [&] {
    return launch_layer_norm(session.stream(), type, x.get(), scale.as<float>(), shift.as<float>(), out.get(),
                             stats.as<float>(), s.rows, s.cols);
  };
  check(forward(), "layer_norm");  // the statistics for backward
  return timed(session, point, "layer_norm", [&] {
    if (point.phase == "forward") return forward();
    if (point.phase == "backward_data") {
      return launch_layer_norm_backward(session.stream(), type, x.get(), dy.get(), scale.as<float>(),
                                        stats.as<float>(), out.get(), s.rows, s.cols);
    }
    return launch_layer_norm_weights(session.stream(), type, x.get(), dy.get(), stats.as<float>(),
                                     sums.as<float>(), s.rows, s.cols);
  });
}

std::vector<Record> run_optimizer(Session& session, const PlanPoint& point) {
  const std::int64_t n = point.shape.elements;
  const DeviceBuffer weights = session.random(Type::f32, n);
  const DeviceBuffer gradients = session.random(Type::f32, n);
  const DeviceBuffer first = session.random(Type::f32, n);
  const DeviceBuffer second(weights.bytes());
  check(cudaMemsetAsync(second.get(), 0, second.bytes(), session.stream()),
        "cudaMemsetAsync");  // a mean of squares
  return timed(session, point, "optimizer", [&] {
    if (point.op == "adam") {
      return launch_adam(session.stream(), weights.as<float>(), gradients.as<float>(), first.as<float>(),
                         second.as<float>(), n);
    }
    return launch_sgd_momentum(session.stream(), weights.as<float>(), gradients.as<float>(),
                               first.as<float>(), n);
  });
}

std::vector<Record> run_flush(Session& session, const PlanPoint& point) {
  Record record = record_of(point);
  record.algorithm = "write_4x_l2";
  time_call(session, record, [&] { session.flush(); });
  return {record};
}

}  // namespace tbdsim::measure
