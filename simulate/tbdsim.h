// The public interface in one include. Programs that use it are in docs/examples:
//
//   tbdsim::SpecCache specs(tbdsim::Catalog::from(data_dir));
//   const tbdsim::Prediction p = tbdsim::predict({.model = "resnet50", .framework = "tensorflow",
//                                                 .gpu = "titanxp", .batch = 64}, specs);
//   p.throughput();  // in the model's own unit per second: images, sentences, tokens, ...
#pragma once

#include "hwspecs/base/error.h"
#include "simulate/prediction/metrics.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/predict_all.h"
#include "simulate/workload/spec_cache.h"
