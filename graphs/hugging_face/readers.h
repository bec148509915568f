// One function an architecture: writes the parameters of its model from the keys of its config.json. Throws
// SpecError where the model has no such form.
#pragma once

#include "graphs/hugging_face/config_values.h"

namespace tbdsim::hugging_face {

void llama(ConfigValues& v);
void mistral(ConfigValues& v);
void mixtral(ConfigValues& v);
void qwen2(ConfigValues& v);
void qwen3(ConfigValues& v);
void qwen3_moe(ConfigValues& v);
void qwen2_moe(ConfigValues& v);
void seed_oss(ConfigValues& v);
void ernie(ConfigValues& v);
void deepseek(ConfigValues& v);
void gpt_oss(ConfigValues& v);
void gpt_neox(ConfigValues& v);
void gpt_j(ConfigValues& v);
void phi(ConfigValues& v);
void phi3(ConfigValues& v);
void falcon(ConfigValues& v);
void starcoder2(ConfigValues& v);
void stablelm(ConfigValues& v);
void olmo2(ConfigValues& v);
void olmoe(ConfigValues& v);
void cohere(ConfigValues& v);
void granite(ConfigValues& v);
void glm(ConfigValues& v);
void glm4(ConfigValues& v);
void gemma(ConfigValues& v);
void gemma2(ConfigValues& v);
void gemma3(ConfigValues& v);
void gpt2(ConfigValues& v);
void gpt_bigcode(ConfigValues& v);
void opt(ConfigValues& v);
void bloom(ConfigValues& v);
void mpt(ConfigValues& v);
void bert(ConfigValues& v);
void roberta(ConfigValues& v);
void vit(ConfigValues& v);
void t5(ConfigValues& v);

}  // namespace tbdsim::hugging_face
