// Families of transformers: sizes of each that have names of their own, and what Hugging Face's config.json
// makes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graphs/training_step.h"
#include "hwspecs/base/catalog.h"
#include "hwspecs/base/error.h"
#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;

std::int64_t trained_parameters(const Model& model) {
  std::int64_t sum = 0;
  for (const auto& [name, graph] : model.graphs) {
    for (const GraphLayer& layer : graph.layers) {
      for (const ParameterTensor& tensor : layer.parameters) sum += tensor.trained ? tensor.elements : 0;
    }
  }
  return sum;
}

constexpr const char* kFamilies[] = {
    "bert_base", "bert_large", "bloom", "deepseek", "decoder", "gpt2", "gpt3", "gpt_oss",   "llama",
    "mistral",   "mixtral",    "mpt",   "opt",      "qwen3",   "t5",   "vit",  "qwen3_moe", "open_decoder"};

ModelFile file_of(const std::string& name) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  return read_model_file(catalog.find(Kind::model, name), {}, catalog.folder(Kind::model));
}

// Every size that says how many parameters it has, from the class of transformers that its source names.
TEST(DecoderModels, HaveTheParametersOfTheirSources) {
  int sizes = 0;
  for (const char* family : kFamilies) {
    const ModelFile file = file_of(family);
    for (const std::vector<Variant>* of : {&file.variants, &file.family}) {
      for (const Variant& variant : *of) {
        if (!variant.expected || !variant.expected->parameters) continue;
        SCOPED_TRACE(std::string(family) + " " + variant.name);
        EXPECT_EQ(trained_parameters(build_model(file, variant)), *variant.expected->parameters);
        ++sizes;
      }
    }
  }
  EXPECT_GE(sizes, 95);
}

}  // namespace
}  // namespace tbdsim
