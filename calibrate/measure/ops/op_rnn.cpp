// cuDNN's fused LSTM and GRU through the v8 interface.
#include <array>

#include "calibrate/measure/device/dnn.h"
#include "calibrate/measure/ops/ops.h"
#include "calibrate/measure/ops/timing.h"

namespace tbdsim::measure {
namespace {
int narrow(std::int64_t size) { return static_cast<int>(size); }

RnnDataDesc sequence_desc(Type type, const RecordShape& s, std::int64_t vector,
                          const std::vector<int>& lengths) {
  RnnDataDesc desc;
  float padding = 0;
  check(cudnnSetRNNDataDescriptor(desc.get(), dnn_type(type), CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
                                  narrow(s.steps), narrow(s.batch), narrow(vector), lengths.data(), &padding),
        "cudnnSetRNNDataDescriptor");
  return desc;
}

TensorDesc state_desc(Type type, const RecordShape& s) {
  const std::array<int, 3> dims{narrow(s.layers * s.directions), narrow(s.batch), narrow(s.hidden)};
  const std::array<int, 3> strides{dims[1] * dims[2], dims[2], 1};
  TensorDesc desc;
  check(cudnnSetTensorNdDescriptor(desc.get(), dnn_type(type), 3, dims.data(), strides.data()),
        "cudnnSetTensorNdDescriptor");
  return desc;
}

// A layer stack with its data; one object per algorithm.
class Rnn {
 public:
  Rnn(Session& session, const PlanPoint& point, cudnnRNNAlgo_t algorithm);

  void forward();
  void backward_data();
  void backward_weights();
  [[nodiscard]] std::size_t workspace_bytes() const { return workspace_.bytes(); }

 private:
  void describe(const PlanPoint& point, cudnnRNNAlgo_t algorithm);

  Session& session_;
  Type type_;
  std::vector<int> lengths_;
  DropoutDesc dropout_;
  RnnDesc rnn_;
  RnnDataDesc x_desc_, y_desc_;
  TensorDesc state_desc_;
  DeviceBuffer device_lengths_, x_, y_, dx_, dy_, weights_, weight_gradients_, workspace_, reserve_;
};

Rnn::Rnn(Session& session, const PlanPoint& point, cudnnRNNAlgo_t algorithm)
    : session_(session), type_(type_of(point.precision)) {
  const RecordShape& s = point.shape;
  lengths_.assign(static_cast<std::size_t>(s.batch), narrow(s.steps));
  describe(point, algorithm);
  device_lengths_ = DeviceBuffer(lengths_.size() * sizeof(int));
  check(cudaMemcpy(device_lengths_.get(), lengths_.data(), device_lengths_.bytes(), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  const std::int64_t in = s.steps * s.batch * s.input_size;
  const std::int64_t out = s.steps * s.batch * s.hidden * s.directions;
  x_ = session.random(type_, in);
  dx_ = session.random(type_, in);
  y_ = session.random(type_, out);
  dy_ = session.random(type_, out);
  std::size_t weight_bytes = 0;
  check(cudnnGetRNNWeightSpaceSize(session.dnn(), rnn_.get(), &weight_bytes), "cudnnGetRNNWeightSpaceSize");
  constexpr float kWeightDeviation = 0.05F;  // small inputs, so that gates do not saturate
  const auto weights = static_cast<std::int64_t>(weight_bytes / bytes_of(type_));
  weights_ = session.random(type_, weights, kWeightDeviation);
  weight_gradients_ = session.random(type_, weights, kWeightDeviation);
  std::size_t workspace = 0;
  std::size_t reserve = 0;
  check(cudnnGetRNNTempSpaceSizes(session.dnn(), rnn_.get(), CUDNN_FWD_MODE_TRAINING, x_desc_.get(),
                                  &workspace, &reserve),
        "cudnnGetRNNTempSpaceSizes");
  workspace_ = DeviceBuffer(workspace);
  reserve_ = DeviceBuffer(reserve);
}

void Rnn::describe(const PlanPoint& point, cudnnRNNAlgo_t algorithm) {
  const RecordShape& s = point.shape;
  check(cudnnSetDropoutDescriptor(dropout_.get(), session_.dnn(), 0.0F, nullptr, 0, 0),
        "cudnnSetDropoutDescriptor");
  check(
      cudnnSetRNNDescriptor_v8(
          rnn_.get(), algorithm, point.op == "lstm" ? CUDNN_LSTM : CUDNN_GRU, CUDNN_RNN_DOUBLE_BIAS,
          s.directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, dnn_type(type_),
          CUDNN_DATA_FLOAT, dnn_math(point.precision), narrow(s.input_size), narrow(s.hidden),
          narrow(s.hidden), narrow(s.layers), dropout_.get(), CUDNN_RNN_PADDED_IO_DISABLED),
      "cudnnSetRNNDescriptor_v8");
  x_desc_ = sequence_desc(type_, s, s.input_size, lengths_);
  y_desc_ = sequence_desc(type_, s, s.hidden * s.directions, lengths_);
  state_desc_ = state_desc(type_, s);
}

void Rnn::forward() {
  check(cudnnRNNForward(session_.dnn(), rnn_.get(), CUDNN_FWD_MODE_TRAINING, device_lengths_.as<int>(),
                        x_desc_.get(), x_.get(), y_desc_.get(), y_.get(), state_desc_.get(), nullptr, nullptr,
                        state_desc_.get(), nullptr, nullptr, weights_.bytes(), weights_.get(),
                        workspace_.bytes(), workspace_.get(), reserve_.bytes(), reserve_.get()),
        "cudnnRNNForward");
}

void Rnn::backward_data() {
  check(cudnnRNNBackwardData_v8(session_.dnn(), rnn_.get(), device_lengths_.as<int>(), y_desc_.get(),
                                y_.get(), dy_.get(), x_desc_.get(), dx_.get(), state_desc_.get(), nullptr,
                                nullptr, nullptr, state_desc_.get(), nullptr, nullptr, nullptr,
                                weights_.bytes(), weights_.get(), workspace_.bytes(), workspace_.get(),
                                reserve_.bytes(), reserve_.get()),
        "cudnnRNNBackwardData_v8");
}

void Rnn::backward_weights() {
  check(cudnnRNNBackwardWeights_v8(
            session_.dnn(), rnn_.get(), CUDNN_WGRAD_MODE_ADD, device_lengths_.as<int>(), x_desc_.get(),
            x_.get(), state_desc_.get(), nullptr, y_desc_.get(), y_.get(), weight_gradients_.bytes(),
            weight_gradients_.get(), workspace_.bytes(), workspace_.get(), reserve_.bytes(), reserve_.get()),
        "cudnnRNNBackwardWeights_v8");
}

Record run_algorithm(Session& session, const PlanPoint& point, cudnnRNNAlgo_t algorithm, const char* name) {
  Rnn rnn(session, point, algorithm);
  Record record = record_of(point);
  record.algorithm = name;
  record.workspace_bytes = static_cast<std::int64_t>(rnn.workspace_bytes());
  // Each pass needs the reserve space as the passes before it left it.
  rnn.forward();
  if (point.phase == "forward") {
    time_call(session, record, [&] { rnn.forward(); });
    return record;
  }
  rnn.backward_data();
  if (point.phase == "backward_data") {
    time_call(session, record, [&] { rnn.backward_data(); });
  } else {
    time_call(session, record, [&] { rnn.backward_weights(); });
  }
  return record;
}
}  // namespace

std::vector<Record> run_rnn(Session& session, const PlanPoint& point) {
  // The persistent one refuses hidden sizes that do not fit on chip, and architectures without it.
  return those_that_work(
      {[&] { return run_algorithm(session, point, CUDNN_RNN_ALGO_STANDARD, "STANDARD"); },
       [&] { return run_algorithm(session, point, CUDNN_RNN_ALGO_PERSIST_STATIC, "PERSIST_STATIC"); }});
}

}  // namespace tbdsim::measure
