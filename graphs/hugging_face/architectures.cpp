#include "graphs/hugging_face/architectures.h"

#include <array>

#include "graphs/hugging_face/encoders.h"
#include "graphs/hugging_face/open_decoders.h"
#include "graphs/hugging_face/plain_decoders.h"
#include "graphs/hugging_face/rotary_decoders.h"

namespace tbdsim {
namespace {

constexpr std::array<Architecture, 42> kArchitectures = {{
    {"LlamaForCausalLM", "llama", "3.2_1b", hugging_face::llama},
    {"MistralForCausalLM", "mistral", "7b", hugging_face::mistral},
    {"MixtralForCausalLM", "mixtral", "8x7b", hugging_face::mixtral},
    {"Qwen2ForCausalLM", "llama", "3.2_1b", hugging_face::qwen2},
    {"Qwen3ForCausalLM", "qwen3", "0.6b", hugging_face::qwen3},
    {"Qwen3MoeForCausalLM", "qwen3_moe", "30b_a3b", hugging_face::qwen3_moe},
    {"Qwen2MoeForCausalLM", "qwen3_moe", "30b_a3b", hugging_face::qwen2_moe},
    {"SeedOssForCausalLM", "llama", "3.2_1b", hugging_face::seed_oss},
    {"Ernie4_5ForCausalLM", "llama", "3.2_1b", hugging_face::ernie},
    {"DeepseekV2ForCausalLM", "deepseek", "v2_lite", hugging_face::deepseek},
    {"DeepseekV3ForCausalLM", "deepseek", "v2_lite", hugging_face::deepseek},
    {"GptOssForCausalLM", "gpt_oss", "20b", hugging_face::gpt_oss},
    {"GPTNeoXForCausalLM", "open_decoder", "pythia_70m", hugging_face::gpt_neox},
    {"GPTJForCausalLM", "open_decoder", "pythia_70m", hugging_face::gpt_j},
    {"PhiForCausalLM", "open_decoder", "pythia_70m", hugging_face::phi},
    {"Phi3ForCausalLM", "open_decoder", "pythia_70m", hugging_face::phi3},
    {"FalconForCausalLM", "open_decoder", "pythia_70m", hugging_face::falcon},
    {"Starcoder2ForCausalLM", "open_decoder", "pythia_70m", hugging_face::starcoder2},
    {"StableLmForCausalLM", "open_decoder", "pythia_70m", hugging_face::stablelm},
    {"Olmo2ForCausalLM", "open_decoder", "pythia_70m", hugging_face::olmo2},
    {"OlmoeForCausalLM", "open_decoder", "pythia_70m", hugging_face::olmoe},
    {"CohereForCausalLM", "open_decoder", "pythia_70m", hugging_face::cohere},
    {"GraniteForCausalLM", "open_decoder", "pythia_70m", hugging_face::granite},
    {"GlmForCausalLM", "open_decoder", "pythia_70m", hugging_face::glm},
    {"Glm4ForCausalLM", "open_decoder", "pythia_70m", hugging_face::glm4},
    {"GemmaForCausalLM", "open_decoder", "pythia_70m", hugging_face::gemma},
    {"Gemma2ForCausalLM", "open_decoder", "pythia_70m", hugging_face::gemma2},
    {"Gemma3ForCausalLM", "open_decoder", "pythia_70m", hugging_face::gemma3},
    {"GPT2LMHeadModel", "gpt2", "small", hugging_face::gpt2},
    {"GPTBigCodeForCausalLM", "gpt2", "small", hugging_face::gpt_bigcode},
    {"OPTForCausalLM", "opt", "125m", hugging_face::opt},
    {"BloomForCausalLM", "bloom", "560m", hugging_face::bloom},
    {"MptForCausalLM", "mpt", "125m", hugging_face::mpt},
    {"BertForMaskedLM", "bert_base", "bert_base_lm", hugging_face::bert},
    {"RobertaForMaskedLM", "bert_base", "bert_base_lm", hugging_face::roberta},
    {"XLMRobertaForMaskedLM", "bert_base", "bert_base_lm", hugging_face::roberta},
    {"CamembertForMaskedLM", "bert_base", "bert_base_lm", hugging_face::roberta},
    {"BertForPreTraining", "bert_base", "pretraining_128", hugging_face::bert},
    {"BertForQuestionAnswering", "bert_base", "squad", hugging_face::bert},
    {"ViTForImageClassification", "vit", "s_16", hugging_face::vit},
    {"T5ForConditionalGeneration", "t5", "small", hugging_face::t5},
    {"MT5ForConditionalGeneration", "t5", "small", hugging_face::t5},
}};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

}  // namespace tbdsim
