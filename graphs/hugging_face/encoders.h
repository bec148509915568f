// Encoders of words and images, and encoders with a decoder.
// Each function writes the parameters of its model from the keys of a config.json; throws SpecError where the
// model has no such form.
#pragma once

#include "graphs/hugging_face/config_values.h"

namespace tbdsim::hugging_face {

void bert(ConfigValues& v);
void roberta(ConfigValues& v);
void bert_classifier(ConfigValues& v);
void roberta_classifier(ConfigValues& v);
void vit(ConfigValues& v);
void t5(ConfigValues& v);

}  // namespace tbdsim::hugging_face
