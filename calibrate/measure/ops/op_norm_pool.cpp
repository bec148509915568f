// cuDNN batch normalisation (training), pooling and softmax.
#include "calibrate/measure/device/dnn.h"
#include "calibrate/measure/ops/ops.h"
#include "calibrate/measure/ops/timing.h"

namespace tbdsim::measure {
namespace {
constexpr float kOne = 1;
constexpr float kZero = 0;

std::int64_t image_elements(const RecordShape& s) { return s.batch * s.channels * s.height * s.width; }

struct NormState {
  DeviceBuffer scale, shift, running_mean, running_var, mean, inv_std, scale_gradient, shift_gradient;
};

NormState norm_state(Session& session, std::int64_t channels) {
  const auto vector = [&] { return session.random(Type::f32, channels); };
  return {vector(), vector(), vector(), vector(), vector(), vector(), vector(), vector()};
}

// One mode of cuDNN; the persistent one keeps its data on chip and is refused where it does not fit.
Record run_norm(Session& session, const PlanPoint& point, cudnnBatchNormMode_t mode, const char* name) {
  const RecordShape& s = point.shape;
  const Type type = type_of(point.precision);
  const TensorDesc desc = tensor_desc(type, dnn_format(point.layout), s.batch, s.channels, s.height, s.width);
  const TensorDesc params;
  check(cudnnDeriveBNTensorDescriptor(params.get(), desc.get(), mode), "cudnnDeriveBNTensorDescriptor");
  const DeviceBuffer x = session.random(type, image_elements(s));
  const DeviceBuffer y = session.random(type, image_elements(s));
  const DeviceBuffer dx(x.bytes());
  const NormState state = norm_state(session, s.channels);
  cudnnHandle_t dnn = session.dnn();
  constexpr double kAverage = 0.1;
  constexpr double kEpsilon = 1e-5;
  const auto forward = [&] {
    check(cudnnBatchNormalizationForwardTraining(dnn, mode, &kOne, &kZero, desc.get(), x.get(), desc.get(),
                                                 y.get(), params.get(), state.scale.get(), state.shift.get(),
                                                 kAverage, state.running_mean.get(), state.running_var.get(),
                                                 kEpsilon, state.mean.get(), state.inv_std.get()),
          "cudnnBatchNormalizationForwardTraining");
  };
  const auto backward = [&] {
    check(cudnnBatchNormalizationBackward(
              dnn, mode, &kOne, &kZero, &kOne, &kZero, desc.get(), x.get(), desc.get(), y.get(), desc.get(),
              dx.get(), params.get(), state.scale.get(), state.scale_gradient.get(),
              state.shift_gradient.get(), kEpsilon, state.mean.get(), state.inv_std.get()),
          "cudnnBatchNormalizationBackward");
  };
  forward();  // saves the statistics backward needs; y then serves as the incoming gradient
  Record record = record_of(point);
  record.algorithm = name;
  if (point.phase == "forward") {
    time_call(session, record, forward);
  } else {
    time_call(session, record, backward);
  }
  return record;
}
}  // namespace

std::vector<Record> run_batch_norm(Session& session, const PlanPoint& point) {
  return those_that_work(
      {[&] { return run_norm(session, point, CUDNN_BATCHNORM_SPATIAL, "spatial"); },
       [&] { return run_norm(session, point, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, "spatial_persistent"); }});
}

std::vector<Record> run_pool(Session& session, const PlanPoint& point) {
  const RecordShape& s = point.shape;
  const Type type = type_of(point.precision);
  const cudnnTensorFormat_t format = dnn_format(point.layout);
  const PoolDesc pool;
  const bool max = point.op == "max_pool";
  check(cudnnSetPooling2dDescriptor(
            pool.get(), max ? CUDNN_POOLING_MAX : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
            CUDNN_NOT_PROPAGATE_NAN, static_cast<int>(s.filter_h), static_cast<int>(s.filter_w),
            static_cast<int>(s.pad_h), static_cast<int>(s.pad_w), static_cast<int>(s.stride_h),
            static_cast<int>(s.stride_w)),
        "cudnnSetPooling2dDescriptor");
  const std::int64_t out_h = output_height(s);
  const std::int64_t out_w = output_width(s);
  const TensorDesc in = tensor_desc(type, format, s.batch, s.channels, s.height, s.width);
  const TensorDesc out = tensor_desc(type, format, s.batch, s.channels, out_h, out_w);
  const DeviceBuffer x = session.random(type, image_elements(s));
  const DeviceBuffer y = session.random(type, s.batch * s.channels * out_h * out_w);
  const DeviceBuffer dy = session.random(type, s.batch * s.channels * out_h * out_w);
  const DeviceBuffer dx(x.bytes());
  cudnnHandle_t dnn = session.dnn();
  const auto forward = [&] {
    check(cudnnPoolingForward(dnn, pool.get(), &kOne, in.get(), x.get(), &kZero, out.get(), y.get()),
          "cudnnPoolingForward");
  };
  const auto backward = [&] {
    check(cudnnPoolingBackward(dnn, pool.get(), &kOne, out.get(), y.get(), out.get(), dy.get(), in.get(),
                               x.get(), &kZero, in.get(), dx.get()),
          "cudnnPoolingBackward");
  };
  forward();  // the maxima backward looks for
  Record record = record_of(point);
  record.algorithm = max ? "max" : "average_exclude_padding";
  if (point.phase == "forward") {
    time_call(session, record, forward);
  } else {
    time_call(session, record, backward);
  }
  return {record};
}

std::vector<Record> run_softmax(Session& session, const PlanPoint& point) {
  const RecordShape& s = point.shape;
  const Type type = type_of(point.precision);
  const TensorDesc desc = tensor_desc(type, CUDNN_TENSOR_NCHW, s.rows, s.cols, 1, 1);
  const DeviceBuffer x = session.random(type, s.rows * s.cols);
  const DeviceBuffer y = session.random(type, s.rows * s.cols);
  const DeviceBuffer dx = session.random(type, s.rows * s.cols);
  cudnnHandle_t dnn = session.dnn();
  const auto forward = [&] {
    check(cudnnSoftmaxForward(dnn, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &kOne, desc.get(),
                              x.get(), &kZero, desc.get(), y.get()),
          "cudnnSoftmaxForward");
  };
  const auto backward = [&] {
    check(cudnnSoftmaxBackward(dnn, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &kOne, desc.get(),
                               y.get(), desc.get(), x.get(), &kZero, desc.get(), dx.get()),
          "cudnnSoftmaxBackward");
  };
  forward();
  Record record = record_of(point);
  record.algorithm = "accurate";
  if (point.phase == "forward") {
    time_call(session, record, forward);
  } else {
    time_call(session, record, backward);
  }
  return {record};
}

}  // namespace tbdsim::measure
