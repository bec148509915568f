// Execution traces of PyTorch as captured steps.
#include "simulate/import/execution_trace.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>

#include "graphs/captured/step_reader.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "simulate/import/traced_step.h"
#include "tests/import/files.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using test::import_file;
using testing::AllOf;
using testing::HasSubstr;

const std::string kAtFour = import_file("execution_trace_4.json");
const std::string kAtEight = import_file("execution_trace_8.json.gz");

CapturedStep step_of(const std::string& first, const std::string& second) {
  const test::TempDir dir;
  const ImportedFile file = traced_step(read_execution_trace(first), read_execution_trace(second));
  return read_step_file(dir.write(file.name + file.extension, file.text));
}

std::int64_t bytes_of_role(const CapturedStep& step, StorageRole role) {
  std::int64_t bytes = 0;
  for (const CapturedStorage& storage : step.storages) {
    if (storage.role == role) bytes += storage.bytes.fixed;
  }
  return bytes;
}

// conv 3 -> 8 of 3 x 3 without a bias, batch norm, ReLU, mean, 8 -> 10: 216 + 16 + 80 + 10 parameters.
TEST(ExecutionTrace, TwoBecomeAStep) {
  constexpr std::int64_t kParameterBytes = 4 * (3 * 8 * 9 + 2 * 8 + 8 * 10 + 10);
  const CapturedStep step = step_of(kAtFour, kAtEight);
  EXPECT_EQ(step.precision, CapturedPrecision::fp32);
  for (const StorageRole role : {StorageRole::parameter, StorageRole::gradient, StorageRole::state})
    EXPECT_EQ(bytes_of_role(step, role), kParameterBytes)
        << kStorageRoleNames[static_cast<std::size_t>(role)];
  const auto conv = std::ranges::find(step.operators, "aten.convolution.default", &CapturedOperator::name);
  ASSERT_NE(conv, step.operators.end());
  const CapturedTensor& output = step.tensors[static_cast<std::size_t>(conv->outputs[0])];
  EXPECT_EQ(output.shape[0], (Size{0, 1})) << "the batch";
  EXPECT_EQ(output.elements, (Size{0, 8 * 16 * 16}));
  const CapturedStorage& kept = step.storages[static_cast<std::size_t>(output.storage)];
  EXPECT_EQ(kept.role, StorageRole::activation);
  EXPECT_EQ(step.operators[static_cast<std::size_t>(kept.freed)].name,
            "aten.native_batch_norm_backward.default");
  for (const CapturedStorage& storage : step.storages) {
    if (storage.role != StorageRole::gradient) continue;
    const auto parameter = std::ranges::find_if(step.storages, [&](const CapturedStorage& other) {
      return other.role == StorageRole::parameter && other.name == storage.name;
    });
    ASSERT_NE(parameter, step.storages.end()) << storage.name;
    EXPECT_EQ(parameter->bytes, storage.bytes);
  }
}

TEST(ExecutionTrace, OperatorsAreTakenAsFarOutAsTheyAreKnown) {
  const ExecutionTrace trace = read_execution_trace(kAtFour);
  const auto count = [&](const std::string& name) {
    return std::ranges::count(trace.operators, name, &TracedOperator::name);
  };
  EXPECT_EQ(count("aten.convolution.default"), 1);
  EXPECT_EQ(count("aten.convolution_backward.default"), 1);
  EXPECT_EQ(count("aten.native_batch_norm.default"), 1) << "aten::batch_norm only calls it";
  for (const char* inner :
       {"aten.conv2d.default", "aten._convolution.default", "aten.mkldnn_convolution.default",
        "aten.batch_norm.default", "aten.clamp_min.default"})
    EXPECT_EQ(count(inner), 0) << inner;
  EXPECT_EQ(count(""), 5) << "gradients handed to parameters";
  EXPECT_EQ(count("aten.mul_.Tensor"), 5) << "momentum";
}

TEST(ExecutionTrace, PredictsTheConvolutionOfAnyBatch) {
  const test::TempDir dir;
  const test::CliResult imported = test::run({"import", kAtFour, kAtEight, "-o", dir.path().string()});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("operators at batches 4 and 8"));
  const test::CliResult kernels =
      test::run({"kernels", (dir.path() / "execution_trace_4.step.json").string(), "--framework", "pytorch",
                 "--gpu", "titanxp", "--batch", "32", "--format", "csv"});
  ASSERT_EQ(kernels.exit_code, 0) << kernels.err;
  EXPECT_THAT(kernels.out, HasSubstr("32x3x16x16 8x3x3"));
  const test::CliResult one = test::run({"import", kAtFour});
  EXPECT_EQ(one.exit_code, 2);
  EXPECT_THAT(one.err, HasSubstr("is one trace; expected two execution traces"));
  EXPECT_THAT(test::run({"import", kAtFour, kAtFour}).err, HasSubstr("expected traces of two batches"));
}

// A step of one product, as PyTorch wrote it before the inputs of a node had keys.
std::string old_trace(int batch,
                      const std::string& forward = "aten::mm(Tensor self, Tensor mat2) -> Tensor") {
  const std::string rows = std::to_string(batch);
  const auto node = [](int id, const std::string& name, int parent, const std::string& schema,
                       const std::string& values, const std::string& shapes, const std::string& types,
                       const std::string& outputs) {
    return R"({"name": ")" + name + R"(", "id": )" + std::to_string(id) + R"(, "parent": )" +
           std::to_string(parent) + R"(, "op_schema": ")" + schema + R"(", "inputs": [)" + values +
           R"(], "input_shapes": [)" + shapes + R"(], "input_types": [)" + types + "], " + outputs + "}";
  };
  const std::string nothing = R"("outputs": [], "output_shapes": [], "output_types": [])";
  const auto makes = [](const std::string& tensor, const std::string& shape) {
    return R"("outputs": [)" + tensor + R"(], "output_shapes": [)" + shape +
           "], \"output_types\": [\"Tensor(float)\"]";
  };
  const std::string two = "\"Tensor(float)\", \"Tensor(float)\"";
  const std::string x = "[1, 1, 0, 0, 4, \"cuda:0\"]", w = "[2, 2, 0, 0, 4, \"cuda:0\"]",
                    y = "[3, 3, 0, 0, 4, \"cuda:0\"]", dw = "[4, 4, 0, 0, 4, \"cuda:0\"]";
  return R"({"schema": "1.0.1", "nodes": [)" + node(1, "process", 1, "", "", "", "", nothing) + "," +
         node(2, "aten::mm", 1, forward, x + "," + w, "[" + rows + ", 8], [8, 4]", two,
              makes(y, "[" + rows + ", 4]")) +
         "," + node(3, "autograd::engine::evaluate_function: MmBackward0", 1, "", "", "", "", nothing) + "," +
         node(4, "aten::mm", 3, "aten::mm(Tensor self, Tensor mat2) -> Tensor", x + "," + y,
              "[8, " + rows + "], [" + rows + ", 4]", two, makes(dw, "[8, 4]")) +
         "," + node(5, "Optimizer.step#SGD.step", 1, "", "", "", "", nothing) + "," +
         node(6, "aten::add_", 5, "aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
              w + "," + dw, "[8, 4], [8, 4]", two, makes(w, "[8, 4]")) +
         "]}";
}

TEST(ExecutionTrace, OldOnesToo) {
  const test::TempDir dir;
  const CapturedStep step = step_of(dir.write("a.json", old_trace(2)), dir.write("b.json", old_trace(6)));
  ASSERT_EQ(step.operators.size(), 3U);
  EXPECT_EQ(step.operators[1].phase, StepPhase::backward);
  EXPECT_EQ(step.operators[2].name, "aten.add_.Tensor");
  EXPECT_EQ(bytes_of_role(step, StorageRole::parameter), 8 * 4 * 4);
  EXPECT_EQ(step.tensors[0].shape[0], (Size{0, 1}));
}

TEST(ExecutionTrace, SaysWhatIsWrong) {
  const test::TempDir dir;
  const auto refusal = [&](const std::string& first, const std::string& second) {
    return test::run(
               {"import", dir.write("first.json", first).string(), dir.write("second.json", second).string()})
        .err;
  };
  EXPECT_THAT(refusal(old_trace(2), old_trace(4, "aten::matmul2(Tensor self, Tensor mat2) -> Tensor")),
              AllOf(HasSubstr("first.json: node 2"), HasSubstr("another operator")));
  std::string other = old_trace(4);
  other.replace(other.find("evaluate_function"), 17, "something else  ,");
  EXPECT_THAT(refusal(other, old_trace(2)), HasSubstr("a training step, which has a backward pass"));
  std::string twice = old_trace(4);
  twice.replace(twice.find(R"("id": 3)"), 7, R"("id": 2)");
  EXPECT_THAT(refusal(twice, old_trace(2)), HasSubstr("nodes[2].id"));
  std::string untyped = old_trace(4);
  untyped.replace(untyped.find("Tensor(float)"), 13, "Tensor(quint)");
  EXPECT_THAT(refusal(untyped, old_trace(2)), HasSubstr("a tensor of a type that is known, not 'quint'"));
  EXPECT_THAT(refusal(old_trace(2), old_trace(5)), testing::IsEmpty()) << "1 + 3 = 4 is a batch, too";
}

// _scaled_dot_product_flash_attention_backward(grad_out, query, key, value, out, logsumexp, cum_seq_q,
// cum_seq_k, max_q, max_k, dropout_p, is_causal, ...)
TEST(ExecutionTrace, AttentionInOneKernelHasTheArgumentsOfAStepFile) {
  TracedOperator op;
  for (std::int64_t i = 0; i < 15; ++i) op.inputs.push_back({i});
  ASSERT_TRUE(rename_fused("_scaled_dot_product_flash_attention_backward", op));
  EXPECT_EQ(op.name, "tbdsim.scaled_dot_product_attention_backward");
  ASSERT_EQ(op.inputs.size(), 10U);
  EXPECT_EQ(std::get<std::int64_t>(op.inputs[4].value), 4) << "the output";
  EXPECT_TRUE(std::holds_alternative<std::monostate>(op.inputs[5].value)) << "no mask";
  EXPECT_EQ(std::get<std::int64_t>(op.inputs[6].value), 10) << "dropout";
  EXPECT_EQ(std::get<std::int64_t>(op.inputs[7].value), 11) << "causal";
  EXPECT_FALSE(rename_fused("mm", op));
}

}  // namespace
}  // namespace tbdsim
