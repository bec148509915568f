// Decoders of the catalogue with rotary positions: Llama, Mistral, Mixtral, Qwen, GPT-OSS, DeepSeek.
// Each function writes the parameters of its model from the keys of a config.json; throws SpecError where the
// model has no such form.
#pragma once

#include "graphs/hugging_face/config_values.h"

namespace tbdsim::hugging_face {

void llama(ConfigValues& v);
void mistral(ConfigValues& v);
void qwen2(ConfigValues& v);
void seed_oss(ConfigValues& v);
void ernie(ConfigValues& v);
void qwen3(ConfigValues& v);
void mixtral(ConfigValues& v);
void qwen3_moe(ConfigValues& v);
void qwen2_moe(ConfigValues& v);
void gpt_oss(ConfigValues& v);
void deepseek(ConfigValues& v);
void glm4_moe(ConfigValues& v);
void dots1(ConfigValues& v);

}  // namespace tbdsim::hugging_face
