// Decoders that graphs/models/open_decoder.yaml has the forms of: Pythia, GPT-J, Falcon, Phi, Gemma, OLMo 2,
// ...
// Each function writes the parameters of its model from the keys of a config.json; throws SpecError where the
// model has no such form.
#pragma once

#include "graphs/hugging_face/config_values.h"

namespace tbdsim::hugging_face {

void gpt_neox(ConfigValues& v);
void gpt_j(ConfigValues& v);
void phi(ConfigValues& v);
void phi3(ConfigValues& v);
void falcon(ConfigValues& v);
void starcoder2(ConfigValues& v);
void stablelm(ConfigValues& v);
void olmo2(ConfigValues& v);
void olmo3(ConfigValues& v);
void olmoe(ConfigValues& v);
void cohere(ConfigValues& v);
void granite(ConfigValues& v);
void granite_moe(ConfigValues& v);
void helium(ConfigValues& v);
void phi_moe(ConfigValues& v);
void glm(ConfigValues& v);
void glm4(ConfigValues& v);
void gemma(ConfigValues& v);
void gemma2(ConfigValues& v);
void gemma3(ConfigValues& v);

}  // namespace tbdsim::hugging_face
