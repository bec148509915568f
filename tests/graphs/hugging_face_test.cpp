// Networks that a config.json of Hugging Face becomes, and what is wrong with one.
#include <fstream>

#include <gmock/gmock.h>

#include "graphs/hugging_face/config_reader.h"
#include "hwspecs/base/catalog.h"
#include "hwspecs/base/error.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

HuggingFaceConfig read(const std::string& json) {
  const test::TempDir directory;
  return read_config_file(directory.write("config.json", json));
}

std::int64_t parameters_of(const std::string& json) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  const HuggingFaceConfig config = read(json);
  const ModelFile file = model_of_config(
      config, read_model_file(catalog.find(Kind::model, config.model), {}, catalog.folder(Kind::model)));
  const Model model = build_model(file, file.variants.front());
  std::int64_t sum = 0;
  for (const auto& [name, graph] : model.graphs) {
    for (const GraphLayer& layer : graph.layers) {
      for (const ParameterTensor& tensor : layer.parameters) sum += tensor.elements;
    }
  }
  return sum;
}

// Counts are those of the classes of transformers 5.24 on the device meta.
TEST(HuggingFaceConfig, HasTheParametersOfItsClass) {
  EXPECT_EQ(
      parameters_of(R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_attention_heads": 32,
      "num_key_value_heads": 8, "intermediate_size": 14336, "num_hidden_layers": 32, "vocab_size": 128256,
      "rope_parameters": {"rope_type": "default"}, "max_position_embeddings": 8192})"),
      8'030'261'248);
  EXPECT_EQ(
      parameters_of(R"({"architectures": ["Qwen2ForCausalLM"], "hidden_size": 4096, "num_attention_heads": 32,
      "num_key_value_heads": 32, "intermediate_size": 22016, "num_hidden_layers": 32, "vocab_size": 151936})"),
      12'049'846'272);
  EXPECT_EQ(
      parameters_of(R"({"architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_head": 12, "n_layer": 12,
      "n_positions": 1024, "vocab_size": 50257, "n_inner": null, "attn_pdrop": 0.1})"),
      124'439'808);
  EXPECT_EQ(
      parameters_of(R"({"architectures": ["ViTForImageClassification"], "hidden_size": 768, "image_size": 224,
      "num_attention_heads": 12, "num_hidden_layers": 12, "intermediate_size": 3072, "patch_size": 16})"),
      85'800'194);
  EXPECT_EQ(parameters_of(R"({"architectures": ["T5ForConditionalGeneration"], "d_model": 512, "d_ff": 2048,
      "d_kv": 64, "num_heads": 8, "num_layers": 6, "vocab_size": 32128})"),
            60'506'624);
}

// One line a config: parameters of the class, counted as above, a tab, keys of a published or typical
// config.json.
TEST(HuggingFaceConfig, HasTheParametersOfItsClassInEveryForm) {
  std::ifstream lines(std::string(TBDSIM_SOURCE_DIR) + "/tests/graphs/hugging_face_configs.tsv");
  std::string parameters;
  std::string config;
  int configs = 0;
  while (std::getline(lines, parameters, '\t') && std::getline(lines, config)) {
    EXPECT_EQ(parameters_of(config), std::stoll(parameters)) << config;
    ++configs;
  }
  EXPECT_GE(configs, 38);
}

TEST(HuggingFaceConfig, TurnsTheShareOfAHeadThatItSays) {
  const auto phi = [](const std::string& keys) {
    return read(R"({"architectures": ["PhiForCausalLM"], "hidden_size": 2560, "num_attention_heads": 32,
        "num_hidden_layers": 2, "intermediate_size": 10240, "vocab_size": 51200)" +
                keys + "}")
        .parameters.at("rotated");
  };
  EXPECT_EQ(phi(""), "40");
  EXPECT_EQ(phi(R"(, "partial_rotary_factor": 0.4)"), "32");
  EXPECT_EQ(phi(R"(, "rope_parameters": {"partial_rotary_factor": 0.4})"), "32");
  EXPECT_THAT([&] { (void)phi(R"(, "partial_rotary_factor": 1.5)"); },
              ThrowsMessage<SpecError>(HasSubstr("partial_rotary_factor")));
  EXPECT_THAT([&] { (void)phi(R"(, "rope_parameters": 3)"); }, ThrowsMessage<SpecError>(HasSubstr("a map")));
}

TEST(HuggingFaceConfig, NamesTheNearestOfAnUnknownArchitecture) {
  EXPECT_THAT([] { (void)read(R"({"architectures": ["LLamaForCausalLM"]})"); },
              ThrowsMessage<SpecError>(
                  AllOf(HasSubstr("architectures[0]"), HasSubstr("did you mean 'LlamaForCausalLM'"))));
  EXPECT_THAT([] { (void)read(R"({"architectures": []})"); },
              ThrowsMessage<SpecError>(HasSubstr("a list of one architecture")));
  EXPECT_THAT([] { (void)read(R"({"architectures": "LlamaForCausalLM"})"); },
              ThrowsMessage<SpecError>(HasSubstr("a list of one architecture")));
}

// Configuration objects that were never part of a model name no architecture, or null.
TEST(HuggingFaceConfig, IsTheFirstClassOfItsTypeWhereItNamesNoArchitecture) {
  const std::string sizes = R"("hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 1024,
      "num_hidden_layers": 2, "vocab_size": 32000)";
  EXPECT_EQ(read(R"({"model_type": "llama", )" + sizes + "}").architecture, "LlamaForCausalLM");
  EXPECT_EQ(read(R"({"architectures": null, "model_type": "llama", )" + sizes + "}").architecture,
            "LlamaForCausalLM");
  EXPECT_THAT([] { (void)read(R"({"model_type": "lama"})"); },
              ThrowsMessage<SpecError>(AllOf(HasSubstr("model_type"), HasSubstr("did you mean 'llama'"),
                                             HasSubstr("python -m tbdsim.hugging_face"))));
  EXPECT_THAT([] { (void)read(R"({"architectures": null})"); },
              ThrowsMessage<SpecError>(HasSubstr("a key architectures or model_type")));
}

// Groups of layers with windows: 12 layers are two groups of six without a rest, which needed one before.
TEST(HuggingFaceConfig, HasGroupsOfWindowsWithAndWithoutARest) {
  const auto stack = [](int layers) {
    return read(R"({"architectures": ["Gemma3ForCausalLM"], "hidden_size": 640, "num_attention_heads": 4,
        "head_dim": 256, "intermediate_size": 2048, "vocab_size": 1024, "sliding_window": 512,
        "num_hidden_layers": )" +
                std::to_string(layers) + "}")
        .parameters;
  };
  EXPECT_EQ(stack(12).at("stack"), "groups");
  EXPECT_EQ(stack(12).at("last_group"), "1");
  EXPECT_EQ(stack(14).at("stack"), "groups_and_rest");
  EXPECT_EQ(stack(14).at("last_rest"), "1");
  EXPECT_THAT([&] { (void)stack(5); }, ThrowsMessage<SpecError>(HasSubstr("6 or more")));
}

TEST(HuggingFaceConfig, RejectsSizesThatDoNotFit) {
  const auto llama = [](const std::string& keys) {
    return [keys] { (void)read(R"({"architectures": ["LlamaForCausalLM"], )" + keys + "}"); };
  };
  EXPECT_THAT(llama(R"("hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 5)"),
              ThrowsMessage<SpecError>(HasSubstr("divides the 32 heads")));
  EXPECT_THAT(llama(R"("hidden_size": 4096, "num_attention_heads": 30)"),
              ThrowsMessage<SpecError>(HasSubstr("heads that divide the width of 4096")));
  EXPECT_THAT(llama(R"("hidden_size": -1)"), ThrowsMessage<SpecError>(HasSubstr("hidden_size")));
  EXPECT_THAT(llama(R"("hidden_size": 1e99)"), ThrowsMessage<SpecError>(HasSubstr("hidden_size")));
  EXPECT_THAT(llama(R"("num_attention_heads": 32)"),
              ThrowsMessage<SpecError>(HasSubstr("a key hidden_size")));
}

TEST(HuggingFaceConfig, RejectsWhatTheFamilyDoesNotHave) {
  EXPECT_THAT(
      [] {
        (void)read(R"({"architectures": ["OPTForCausalLM"], "hidden_size": 1024, "num_attention_heads": 16,
        "num_hidden_layers": 24, "ffn_dim": 4096, "vocab_size": 50272, "max_position_embeddings": 2048,
        "do_layer_norm_before": false})");
      },
      ThrowsMessage<SpecError>(HasSubstr("do_layer_norm_before")));
}

TEST(HuggingFaceConfig, IsToldFromAStepFile) {
  const test::TempDir directory;
  EXPECT_TRUE(is_config_file(directory.write("config.json", R"({"architectures": []})")));
  EXPECT_TRUE(is_config_file(directory.write("own.json", R"({"model_type": "llama"})")));
  EXPECT_FALSE(is_config_file(directory.write("mine.step.json", R"({"format": "tbdsim step"})")));
  EXPECT_FALSE(is_config_file(directory.write("model.yaml", "title: \"architectures\"")));
}

}  // namespace
}  // namespace tbdsim
