#include "graphs/hugging_face/architectures.h"

#include <array>

#include "graphs/hugging_face/encoders.h"
#include "graphs/hugging_face/open_decoders.h"
#include "graphs/hugging_face/plain_decoders.h"
#include "graphs/hugging_face/rotary_decoders.h"

namespace tbdsim {
namespace {

constexpr std::array<Architecture, 56> kArchitectures = {{
    {"LlamaForCausalLM", "llama", "llama", "3.2_1b", hugging_face::llama},
    {"MistralForCausalLM", "mistral", "mistral", "7b", hugging_face::mistral},
    {"MixtralForCausalLM", "mixtral", "mixtral", "8x7b", hugging_face::mixtral},
    {"Qwen2ForCausalLM", "qwen2", "llama", "3.2_1b", hugging_face::qwen2},
    {"Qwen3ForCausalLM", "qwen3", "qwen3", "0.6b", hugging_face::qwen3},
    {"Qwen3MoeForCausalLM", "qwen3_moe", "qwen3_moe", "30b_a3b", hugging_face::qwen3_moe},
    {"Qwen2MoeForCausalLM", "qwen2_moe", "qwen3_moe", "30b_a3b", hugging_face::qwen2_moe},
    {"SeedOssForCausalLM", "seed_oss", "llama", "3.2_1b", hugging_face::seed_oss},
    {"Ernie4_5ForCausalLM", "ernie4_5", "llama", "3.2_1b", hugging_face::ernie},
    {"DeepseekV2ForCausalLM", "deepseek_v2", "deepseek", "v2_lite", hugging_face::deepseek},
    {"DeepseekV3ForCausalLM", "deepseek_v3", "deepseek", "v2_lite", hugging_face::deepseek},
    {"Glm4MoeForCausalLM", "glm4_moe", "deepseek", "v2_lite", hugging_face::glm4_moe},
    {"Dots1ForCausalLM", "dots1", "deepseek", "v2_lite", hugging_face::dots1},
    {"GptOssForCausalLM", "gpt_oss", "gpt_oss", "20b", hugging_face::gpt_oss},
    {"GPTNeoXForCausalLM", "gpt_neox", "open_decoder", "pythia_70m", hugging_face::gpt_neox},
    {"GPTJForCausalLM", "gptj", "open_decoder", "pythia_70m", hugging_face::gpt_j},
    {"PhiForCausalLM", "phi", "open_decoder", "pythia_70m", hugging_face::phi},
    {"Phi3ForCausalLM", "phi3", "open_decoder", "pythia_70m", hugging_face::phi3},
    {"FalconForCausalLM", "falcon", "open_decoder", "pythia_70m", hugging_face::falcon},
    {"Starcoder2ForCausalLM", "starcoder2", "open_decoder", "pythia_70m", hugging_face::starcoder2},
    {"StableLmForCausalLM", "stablelm", "open_decoder", "pythia_70m", hugging_face::stablelm},
    {"Olmo2ForCausalLM", "olmo2", "open_decoder", "pythia_70m", hugging_face::olmo2},
    {"Olmo3ForCausalLM", "olmo3", "open_decoder", "pythia_70m", hugging_face::olmo3},
    {"OlmoeForCausalLM", "olmoe", "open_decoder", "pythia_70m", hugging_face::olmoe},
    {"CohereForCausalLM", "cohere", "open_decoder", "pythia_70m", hugging_face::cohere},
    {"GraniteForCausalLM", "granite", "open_decoder", "pythia_70m", hugging_face::granite},
    {"GraniteMoeForCausalLM", "granitemoe", "open_decoder", "pythia_70m", hugging_face::granite_moe},
    {"HeliumForCausalLM", "helium", "open_decoder", "pythia_70m", hugging_face::helium},
    {"PhimoeForCausalLM", "phimoe", "open_decoder", "pythia_70m", hugging_face::phi_moe},
    {"GlmForCausalLM", "glm", "open_decoder", "pythia_70m", hugging_face::glm},
    {"Glm4ForCausalLM", "glm4", "open_decoder", "pythia_70m", hugging_face::glm4},
    {"GemmaForCausalLM", "gemma", "open_decoder", "pythia_70m", hugging_face::gemma},
    {"Gemma2ForCausalLM", "gemma2", "open_decoder", "pythia_70m", hugging_face::gemma2},
    {"Gemma3ForCausalLM", "gemma3_text", "open_decoder", "pythia_70m", hugging_face::gemma3},
    {"GPT2LMHeadModel", "gpt2", "gpt2", "small", hugging_face::gpt2},
    {"GPTBigCodeForCausalLM", "gpt_bigcode", "gpt2", "small", hugging_face::gpt_bigcode},
    {"OPTForCausalLM", "opt", "opt", "125m", hugging_face::opt},
    {"BloomForCausalLM", "bloom", "bloom", "560m", hugging_face::bloom},
    {"MptForCausalLM", "mpt", "mpt", "125m", hugging_face::mpt},
    {"BertForMaskedLM", "bert", "bert_base", "bert_base_lm", hugging_face::bert},
    {"RobertaForMaskedLM", "roberta", "bert_base", "bert_base_lm", hugging_face::roberta},
    {"XLMRobertaForMaskedLM", "xlm-roberta", "bert_base", "bert_base_lm", hugging_face::roberta},
    {"CamembertForMaskedLM", "camembert", "bert_base", "bert_base_lm", hugging_face::roberta},
    {"BertForPreTraining", "bert", "bert_base", "pretraining_128", hugging_face::bert},
    {"BertForQuestionAnswering", "bert", "bert_base", "squad", hugging_face::bert},
    {"RobertaForQuestionAnswering", "roberta", "bert_base", "squad", hugging_face::roberta},
    {"XLMRobertaForQuestionAnswering", "xlm-roberta", "bert_base", "squad", hugging_face::roberta},
    {"BertForSequenceClassification", "bert", "bert_base", "bert_base_glue", hugging_face::bert_classifier},
    {"BertForTokenClassification", "bert", "bert_base", "bert_base_tagger", hugging_face::bert_classifier},
    {"RobertaForSequenceClassification", "roberta", "bert_base", "bert_base_glue",
     hugging_face::roberta_classifier},
    {"RobertaForTokenClassification", "roberta", "bert_base", "bert_base_tagger",
     hugging_face::roberta_classifier},
    {"XLMRobertaForSequenceClassification", "xlm-roberta", "bert_base", "bert_base_glue",
     hugging_face::roberta_classifier},
    {"XLMRobertaForTokenClassification", "xlm-roberta", "bert_base", "bert_base_tagger",
     hugging_face::roberta_classifier},
    {"ViTForImageClassification", "vit", "vit", "s_16", hugging_face::vit},
    {"T5ForConditionalGeneration", "t5", "t5", "small", hugging_face::t5},
    {"MT5ForConditionalGeneration", "mt5", "t5", "small", hugging_face::t5},
}};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

}  // namespace tbdsim
