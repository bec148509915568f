#include "calibrate/measure/run/self_test.h"

#include <cmath>
#include <cstring>
#include <ostream>

#include "calibrate/measure/ops/ops.h"
#include "calibrate/measure/ops/timing.h"

namespace tbdsim::measure {
namespace {
using Values = std::vector<double>;

constexpr std::int64_t kElements = 10007;  // no multiple of a 16-byte pack: the tails are tested too
constexpr std::int64_t kRows = 300;
constexpr std::int64_t kCols = 517;

double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10U) & 0x1f;
  const double fraction = (bits & 0x3ffU) / 1024.0;
  const double size = exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return (bits & 0x8000U) != 0 ? -size : size;
}

double bf16_value(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16U;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

class Check {
 public:
  Check(Session& session, std::ostream& out) : session_(session), out_(out) {}

  // The numbers in device memory.
  [[nodiscard]] Values read(Type type, const DeviceBuffer& buffer, std::int64_t n) const;
  // Relative distance in the 2-norm against what the element type allows; NaN fails.
  void compare(const std::string& what, Type type, const Values& got, const Values& expected);
  void expect(const std::string& what, bool holds);
  [[nodiscard]] int failures() const { return failures_; }

 private:
  Session& session_;
  std::ostream& out_;
  int failures_ = 0;
};

Values Check::read(Type type, const DeviceBuffer& buffer, std::int64_t n) const {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(n) * bytes_of(type));
  check(cudaStreamSynchronize(session_.stream()), "cudaStreamSynchronize");
  check(cudaMemcpy(bytes.data(), buffer.get(), bytes.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  Values values;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    if (type == Type::f32) {
      float value = 0;
      std::memcpy(&value, bytes.data() + 4 * i, 4);
      values.push_back(value);
    } else {
      std::uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + 2 * i, 2);
      values.push_back(type == Type::f16 ? half_value(bits) : bf16_value(bits));
    }
  }
  return values;
}

void Check::compare(const std::string& what, Type type, const Values& got, const Values& expected) {
  double distance = 0;
  double size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    distance += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  // Rounding of one result: 2^-24, 2^-11, 2^-9; sums of a few hundred in fp32 stay well below 1e-4.
  const double allowed = type == Type::f32 ? 1e-4 : type == Type::f16 ? 1e-3 : 5e-3;
  const double relative = std::sqrt(distance / size);
  expect(what + " (" + std::to_string(relative) + ")", relative <= allowed);
}

void Check::expect(const std::string& what, bool holds) {
  out_ << (holds ? "ok      " : "FAILED  ") << what << '\n';
  if (!holds) ++failures_;
}

void test_elementwise(Session& s, Check& t, Type type, const std::string& name) {
  const DeviceBuffer a = s.random(type, kElements);
  const DeviceBuffer b = s.random(type, kElements);
  const DeviceBuffer out = s.random(type, kElements);  // not zeros: an element left out shows
  const Values x = t.read(type, a, kElements);
  const Values y = t.read(type, b, kElements);
  Values sum(x.size());
  Values relu(x.size());
  Values gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum[i] = x[i] + y[i];
    relu[i] = std::max(x[i], 0.0);
    gradient[i] = x[i] > 0 ? y[i] : 0;
  }
  check(launch_add(s.stream(), type, a.get(), b.get(), out.get(), kElements), "add");
  t.compare("add " + name, type, t.read(type, out, kElements), sum);
  check(launch_relu(s.stream(), type, a.get(), out.get(), kElements), "relu");
  t.compare("relu forward " + name, type, t.read(type, out, kElements), relu);
  check(launch_relu_backward(s.stream(), type, a.get(), b.get(), out.get(), kElements), "relu");
  t.compare("relu backward " + name, type, t.read(type, out, kElements), gradient);
}

void test_dropout(Session& s, Check& t, Type type, const std::string& name) {
  const DeviceBuffer in = s.random(type, kElements);
  const DeviceBuffer out = s.random(type, kElements);
  const DeviceBuffer again = s.random(type, kElements);
  const DeviceBuffer mask(static_cast<std::size_t>(kElements));
  check(launch_dropout(s.stream(), type, in.get(), out.get(), mask.as<unsigned char>(), kElements, 7),
        "dropout");
  check(launch_dropout_backward(s.stream(), type, in.get(), mask.as<unsigned char>(), again.get(), kElements),
        "dropout");
  const Values x = t.read(type, in, kElements);
  const Values y = t.read(type, out, kElements);
  Values expected(x.size());
  int kept = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    expected[i] = y[i] == 0 ? 0 : x[i] / 0.9;
    kept += y[i] != 0 ? 1 : 0;
  }
  t.compare("dropout forward " + name, type, y, expected);
  t.compare("dropout backward " + name, type, t.read(type, again, kElements), expected);
  // Kept with probability 0.9: 9006 of 10007 with a deviation of 30; five deviations are allowed.
  t.expect("dropout keeps nine tenths " + name, std::abs(kept - 0.9 * kElements) < 150);
}

struct Norm {
  Values y, dx, scale_gradient, shift_gradient;
};

Norm reference_norm(const Values& x, const Values& dy, const Values& scale, const Values& shift) {
  constexpr auto kWide = static_cast<std::size_t>(kCols);
  Norm norm{Values(x.size()), Values(x.size()), Values(kWide), Values(kWide)};
  for (std::size_t start = 0; start < x.size(); start += kWide) {
    double mean = 0;
    double var = 0;
    for (std::size_t i = 0; i < kWide; ++i) mean += x[start + i] / kCols;
    for (std::size_t i = 0; i < kWide; ++i) var += (x[start + i] - mean) * (x[start + i] - mean) / kCols;
    const double inv_std = 1 / std::sqrt(var + 1e-5);
    double mean_g = 0;
    double mean_gx = 0;
    for (std::size_t i = 0; i < kWide; ++i) {
      const double xhat = (x[start + i] - mean) * inv_std;
      norm.y[start + i] = xhat * scale[i] + shift[i];
      mean_g += dy[start + i] * scale[i] / kCols;
      mean_gx += dy[start + i] * scale[i] * xhat / kCols;
      norm.scale_gradient[i] += dy[start + i] * xhat;
      norm.shift_gradient[i] += dy[start + i];
    }
    for (std::size_t i = 0; i < kWide; ++i) {
      const double xhat = (x[start + i] - mean) * inv_std;
      norm.dx[start + i] = inv_std * (dy[start + i] * scale[i] - mean_g - xhat * mean_gx);
    }
  }
  return norm;
}

void test_rows(Session& s, Check& t, Type type, const std::string& name) {
  constexpr std::int64_t kAll = kRows * kCols;
  const DeviceBuffer x = s.random(type, kAll);
  const DeviceBuffer dy = s.random(type, kAll);
  const DeviceBuffer out = s.random(type, kAll);
  const DeviceBuffer bias = s.random(type, kCols);
  const DeviceBuffer scale = s.random(Type::f32, kCols);
  const DeviceBuffer shift = s.random(Type::f32, kCols);
  const DeviceBuffer stats = s.random(Type::f32, 2 * kRows);
  const DeviceBuffer sums = s.random(Type::f32, 2 * kCols);
  const Values in = t.read(type, x, kAll);
  const Values b = t.read(type, bias, kCols);
  Values shifted(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) shifted[i] = in[i] + b[i % static_cast<std::size_t>(kCols)];
  check(launch_bias(s.stream(), type, x.get(), bias.get(), out.get(), kRows, kCols), "bias");
  t.compare("bias forward " + name, type, t.read(type, out, kAll), shifted);
  const Norm norm = reference_norm(in, t.read(type, dy, kAll), t.read(Type::f32, scale, kCols),
                                   t.read(Type::f32, shift, kCols));
  check(launch_bias_backward(s.stream(), type, dy.get(), sums.as<float>(), kRows, kCols), "bias");
  t.compare("bias backward " + name, Type::f32, t.read(Type::f32, sums, kCols), norm.shift_gradient);
  check(launch_layer_norm(s.stream(), type, x.get(), scale.as<float>(), shift.as<float>(), out.get(),
                          stats.as<float>(), kRows, kCols),
        "layer norm");
  t.compare("layer norm forward " + name, type, t.read(type, out, kAll), norm.y);
  check(launch_layer_norm_backward(s.stream(), type, x.get(), dy.get(), scale.as<float>(), stats.as<float>(),
                                   out.get(), kRows, kCols),
        "layer norm");
  t.compare("layer norm backward data " + name, type, t.read(type, out, kAll), norm.dx);
  check(launch_layer_norm_weights(s.stream(), type, x.get(), dy.get(), stats.as<float>(), sums.as<float>(),
                                  kRows, kCols),
        "layer norm");
  Values gradients = norm.scale_gradient;
  gradients.insert(gradients.end(), norm.shift_gradient.begin(), norm.shift_gradient.end());
  t.compare("layer norm backward weights " + name, Type::f32, t.read(Type::f32, sums, 2 * kCols), gradients);
}

void test_optimizers(Session& s, Check& t) {
  const DeviceBuffer weights = s.random(Type::f32, kElements);
  const DeviceBuffer gradients = s.random(Type::f32, kElements);
  const DeviceBuffer first = s.random(Type::f32, kElements);
  const DeviceBuffer second = s.random(Type::f32, kElements);
  const Values w = t.read(Type::f32, weights, kElements);
  const Values g = t.read(Type::f32, gradients, kElements);
  Values momentum = t.read(Type::f32, first, kElements);
  Values squares = t.read(Type::f32, second, kElements);
  // The state is compared: it moves by its own size, the weights by a millionth.
  for (std::size_t i = 0; i < w.size(); ++i) momentum[i] = 0.9 * momentum[i] + g[i] + 1e-4 * w[i];
  check(launch_sgd_momentum(s.stream(), weights.as<float>(), gradients.as<float>(), first.as<float>(),
                            kElements),
        "sgd");
  t.compare("sgd with momentum", Type::f32, t.read(Type::f32, first, kElements), momentum);
  for (std::size_t i = 0; i < w.size(); ++i) {
    momentum[i] = 0.9 * momentum[i] + 0.1 * g[i];
    squares[i] = 0.999 * squares[i] + 0.001 * g[i] * g[i];
  }
  check(launch_adam(s.stream(), weights.as<float>(), gradients.as<float>(), first.as<float>(),
                    second.as<float>(), kElements),
        "adam");
  t.compare("adam, mean", Type::f32, t.read(Type::f32, first, kElements), momentum);
  t.compare("adam, mean of squares", Type::f32, t.read(Type::f32, second, kElements), squares);
}

void test_inputs(Session& s, Check& t) {
  constexpr std::int64_t kMany = 1 << 18;
  const Values x = t.read(Type::f32, s.random(Type::f32, kMany), kMany);
  double mean = 0;
  double square = 0;
  for (const double value : x) {
    mean += value / kMany;
    square += value * value / kMany;
  }
  // Standard errors of a mean and a variance over 2^18 normals: 0.002 and 0.003; five of them are allowed.
  t.expect("inputs have mean 0 (" + std::to_string(mean) + ")", std::abs(mean) < 0.01);
  t.expect("inputs have variance 1 (" + std::to_string(square) + ")", std::abs(square - 1) < 0.015);
}

void test_timing(Session& s, Check& t) {
  // A copy of 64 MB moves 128 MB: neither faster than 20 TB/s nor slower than 1 GB/s on any GPU.
  PlanPoint point{
      .op = "copy_d2d", .precision = "fp32", .cache = "cold", .shape = {.bytes = std::int64_t{1} << 26}};
  const Record record = run_device_copy(s, point).front();
  t.expect("times come from CUPTI" + (s.tracer.usable() ? "" : ": " + s.tracer.refusal()),
           record.timer == "cupti");
  t.expect("64 MB copied in " + std::to_string(record.time_s * 1e6) + " us",
           record.time_s > 6.4e-6 && record.time_s < 0.13);
  t.expect("events agree: " + std::to_string(record.event_time_s * 1e6) + " us",
           record.event_time_s > 0.95 * record.time_s && record.event_time_s < 2 * record.time_s + 50e-6);
}
}  // namespace

int self_test(Session& session, std::ostream& out) {
  Check t(session, out);
  test_inputs(session, t);
  test_optimizers(session, t);
  for (const auto& [type, name] : {std::pair{Type::f32, "fp32"}, {Type::f16, "fp16"}, {Type::bf16, "bf16"}}) {
    test_elementwise(session, t, type, name);
    test_dropout(session, t, type, name);
    test_rows(session, t, type, name);
  }
  test_timing(session, t);
  return t.failures();
}

}  // namespace tbdsim::measure
