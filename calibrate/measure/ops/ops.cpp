#include "calibrate/measure/ops/ops.h"

#include <map>
#include <string>

namespace tbdsim::measure {

std::vector<Record> those_that_work(const std::vector<std::function<Record()>>& attempts) {
  std::vector<Record> records;
  std::string refusal;
  for (const auto& attempt : attempts) {
    try {
      records.push_back(attempt());
    } catch (const PointError& error) {
      if (refusal.empty()) refusal = error.what();
      recover();
    }
  }
  if (records.empty()) throw PointError(refusal);
  return records;
}

Runner runner_of(const std::string& op) {
  static const std::map<std::string, Runner> kRunners{
      {"gemm", run_gemm},
      {"batched_gemm", run_batched_gemm},
      {"conv", run_conv},
      {"batch_norm", run_batch_norm},
      {"max_pool", run_pool},
      {"avg_pool", run_pool},
      {"softmax", run_softmax},
      {"lstm", run_rnn},
      {"gru", run_rnn},
      {"add", run_add},
      {"relu", run_relu},
      {"bias", run_bias},
      {"dropout", run_dropout},
      {"layer_norm", run_layer_norm},
      {"sgd_momentum", run_optimizer},
      {"adam", run_optimizer},
      {"launch", run_launch},
      {"l2_flush", run_flush},
      {"copy_h2d", run_host_copy},
      {"copy_d2h", run_host_copy},
      {"copy_d2d", run_device_copy},
      {"all_reduce", run_all_reduce},
  };
  const auto found = kRunners.find(op);
  return found == kRunners.end() ? nullptr : found->second;
}

}  // namespace tbdsim::measure
