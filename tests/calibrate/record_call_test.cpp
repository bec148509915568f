#include <gtest/gtest.h>

#include "calibrate/samples/call_of_record.h"

namespace tbdsim {
namespace {

Record record_of(std::string op, std::string phase, RecordShape shape, std::string precision = "fp32") {
  Record record;
  record.op = std::move(op);
  record.phase = std::move(phase);
  record.shape = shape;
  record.precision = std::move(precision);
  return record;
}

StreamCall stream(const Record& record) { return std::get<StreamCall>(call_of(record).value()); }

// Two sequences of 8 heads, 2 of them with keys: Q 2 * 8 * 100 * 64 numbers, O as many, K and V a quarter of
// that each.
TEST(RecordCall, Attention) {
  Record record = record_of("attention", "forward",
                            {.batch = 2,
                             .heads = 8,
                             .kv_heads = 2,
                             .queries = 100,
                             .keys = 100,
                             .head_dim = 64,
                             .value_dim = 64,
                             .window = 16},
                            "bf16");
  record.generation = "cudnn9";
  record.layout = "causal";
  const auto forward = std::get<AttentionCall>(call_of(record).value());
  EXPECT_EQ(forward.heads, 16);
  EXPECT_EQ(forward.queries_per_key, 4);
  EXPECT_EQ(forward.window, 16);
  EXPECT_TRUE(forward.causal);
  EXPECT_FALSE(forward.deterministic);
  EXPECT_EQ(forward.kernel, AttentionKernel::cudnn);
  constexpr double kQ = 2 * 8 * 100 * 64;
  EXPECT_EQ(forward.bytes, 2 * 2.5 * kQ + 4 * 1600);
  record.phase = "backward_data";
  record.layout = "causal ordered";
  const auto backward = std::get<AttentionCall>(call_of(record).value());
  EXPECT_EQ(backward.bytes, forward.bytes + 2 * kQ + 2 * 1.5 * kQ);
  EXPECT_TRUE(backward.deterministic);
  record.generation = "triton3";
  EXPECT_EQ(std::get<AttentionCall>(call_of(record).value()).kernel, AttentionKernel::flash2);
  record.generation = "flash3";
  EXPECT_EQ(std::get<AttentionCall>(call_of(record).value()).kernel, AttentionKernel::flash3);
}

// Weights' gradients of four experts, added to sums in fp32.
TEST(RecordCall, GroupedProductThatAdds) {
  Record record =
      record_of("grouped_gemm", "", {.batch = 4, .m = 8, .n = 16, .k = 32, .output_bytes = 4}, "bf16");
  record.layout = "NT+";
  const auto call = std::get<GemmCall>(call_of(record).value());
  EXPECT_TRUE(call.grouped);
  EXPECT_TRUE(call.reads_c);
  EXPECT_TRUE(call.transpose_b);
  EXPECT_EQ(call.element_bytes, 2);
  EXPECT_EQ(call.output_bytes, 4);
}

TEST(RecordCall, RecurrentLayers) {
  Record record =
      record_of("gru", "backward_data",
                {.batch = 32, .input_size = 9, .hidden = 512, .layers = 1, .directions = 1, .steps = 25});
  const auto call = std::get<RecurrentCall>(call_of(record).value());
  EXPECT_EQ(call.phase, Phase::backward_data);
  EXPECT_EQ(call.batch, 32);
  EXPECT_EQ(call.steps, 25);
  EXPECT_EQ(call.inputs, 9);
  EXPECT_EQ(call.hidden, 512);
  EXPECT_EQ(call.gates, 3);
  record.shape.directions = 2;
  EXPECT_FALSE(call_of(record)) << "the formula is for one layer in one direction";
}

// 100 numbers of 2 bytes and a mask of one byte each: read x, write y and the mask; backwards the reverse.
TEST(RecordCall, DropoutHasAMask) {
  const StreamCall forward = stream(record_of("dropout", "forward", {.elements = 100}, "fp16"));
  EXPECT_EQ(forward.read_bytes, 200);
  EXPECT_EQ(forward.written_bytes, 300);
  const StreamCall backward = stream(record_of("dropout", "backward_data", {.elements = 100}, "fp16"));
  EXPECT_EQ(backward.read_bytes, 300);
  EXPECT_EQ(backward.written_bytes, 200);
}

TEST(RecordCall, NormsKeepRowsAndColumns) {
  const StreamCall call = stream(record_of("layer_norm", "forward", {.rows = 10, .cols = 20}));
  EXPECT_EQ(call.kind, KernelKind::layer_norm);
  EXPECT_EQ(call.rows, 10);
  EXPECT_EQ(call.columns, 20);
  EXPECT_EQ(call.read_bytes, 800) << "the second reading is the formula's";
  EXPECT_EQ(call.written_bytes, 800);
}

// 2 x 3 images of 4 x 4 to 2 x 2: 384 bytes to 96; a maximum reads x, y and dy to go back.
TEST(RecordCall, Pooling) {
  const RecordShape shape{.batch = 2,
                          .channels = 3,
                          .height = 4,
                          .width = 4,
                          .filter_h = 2,
                          .filter_w = 2,
                          .stride_h = 2,
                          .stride_w = 2};
  EXPECT_EQ(stream(record_of("max_pool", "forward", shape)).read_bytes, 384);
  EXPECT_EQ(stream(record_of("max_pool", "forward", shape)).written_bytes, 96);
  EXPECT_EQ(stream(record_of("max_pool", "backward_data", shape)).read_bytes, 384 + 2 * 96);
  EXPECT_EQ(stream(record_of("avg_pool", "backward_data", shape)).read_bytes, 96);
}

TEST(RecordCall, WhatNoFormulaIsForIsLeftOut) {
  EXPECT_FALSE(call_of(record_of("launch", "", {})));
  EXPECT_FALSE(call_of(record_of("relu", "update", {.elements = 100})));
  EXPECT_FALSE(call_of(record_of("relu", "forward", {.elements = 100}, "int8")));
}

}  // namespace
}  // namespace tbdsim
