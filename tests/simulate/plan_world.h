// Decoders and GPUs that tests of layouts share.
#pragma once

#include <memory>

#include <gmock/gmock.h>

#include "simulate/layout/layout_reader.h"
#include "simulate/plan/step_time.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim::test {

inline DecoderShape llama3_8b() {
  DecoderShape s;
  s.name = "llama3_8b";
  s.layers = 32;
  s.hidden = 4096;
  s.heads = 32;
  s.kv_heads = 8;
  s.ffn = 14336;
  s.vocabulary = 128256;
  s.gated = s.rms_norm = s.rotary = true;
  s.bias = false;
  return completed(s);
}

inline DecoderShape mixtral_8x7b() {
  DecoderShape s = llama3_8b();
  s.name = "mixtral";
  s.vocabulary = 32000;
  s.ffn = 0;
  s.experts = 8;
  s.experts_per_token = 2;
  s.expert_ffn = 14336;
  return completed(s);
}

// Predictions on eight H100, and on more, of sequences of 4,096 tokens.
class PlanTest : public testing::Test {
 protected:
  PlanInputs inputs(const DecoderShape& shape, std::int64_t gpus, std::int64_t batch) {
    gpu_ = specs_.gpu("h100_sxm");
    calibration_ =
        specs_.calibration({"h100_sxm", gpu_}, "", {"pytorch_ngc_2_8", specs_.framework("pytorch_ngc_2_8")});
    PlanInputs in;
    in.shape = shape;
    in.job = {.gpus = gpus, .global_batch = batch, .sequence = 4096};
    in.stack = stack_named("megatron");
    in.calibration = calibration_.get();
    in.fabric = fabric_of(*specs_.machine("dgx_h100"), *gpu_, gpus);
    return in;
  }
  static LayoutPrediction predict(const PlanInputs& in, const ParallelLayout& layout) {
    PieceTable table(in);
    return predict_layout(legal_layout(layout, in.shape, in.job), table, FlopsPerSecond(989e12));
  }

  SpecCache specs_{Catalog::from(TBDSIM_SOURCE_DIR)};
  std::shared_ptr<const GpuSpec> gpu_;
  std::shared_ptr<const Calibration> calibration_;
};

}  // namespace tbdsim::test
