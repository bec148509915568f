// Decoders with layer norms, a plain feed-forward part and positions that are not rotary.
// Each function writes the parameters of its model from the keys of a config.json; throws SpecError where the
// model has no such form.
#pragma once

#include "graphs/hugging_face/config_values.h"

namespace tbdsim::hugging_face {

void gpt2(ConfigValues& v);
void gpt_bigcode(ConfigValues& v);
void opt(ConfigValues& v);
void bloom(ConfigValues& v);
void mpt(ConfigValues& v);

}  // namespace tbdsim::hugging_face
