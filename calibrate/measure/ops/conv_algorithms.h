// cuDNN's three convolution passes behind one interface: find the algorithms, run one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/measure/device/dnn.h"
#include "calibrate/measure/device/session.h"

namespace tbdsim::measure {

struct ConvAlgorithm {
  std::string name;  // "IMPLICIT_PRECOMP_GEMM", with "+tensor" where cuDNN reports tensor cores
  int algorithm = 0;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  std::size_t workspace = 0;
  double found_s = 0;  // cuDNN's own timing
};

// Tensors and descriptors of one layer; x and w or their gradients are overwritten by the backward passes.
class Convolution {
 public:
  Convolution(Session& session, const PlanPoint& point);

  // The algorithms that cuDNN's search finds within a workspace, fastest first. An algorithm of another
  // precision than the point's (TF32 for fp32) is left out.
  [[nodiscard]] std::vector<ConvAlgorithm> find(const DeviceBuffer& workspace, std::size_t bytes);
  void set_math(cudnnMathType_t math);
  void run(const ConvAlgorithm& algorithm, const DeviceBuffer& workspace);

 private:
  void describe(const PlanPoint& point);

  Session& session_;
  std::string phase_;
  bool fp32_only_;
  TensorDesc x_desc_, y_desc_;
  FilterDesc w_desc_;
  ConvDesc conv_;
  DeviceBuffer x_, w_, y_;
};

}  // namespace tbdsim::measure
