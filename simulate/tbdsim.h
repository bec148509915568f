// The public interface in one include:
//
//   tbdsim::Library library(tbdsim::Catalog::from(data_dir));
//   const tbdsim::Prediction p = tbdsim::predict({.model = "resnet50", .framework = "tensorflow",
//                                                 .gpu = "titanxp", .batch = 64}, library);
//   p.throughput();  // samples per second
#pragma once

#include "hwspecs/base/error.h"
#include "simulate/prediction/metrics.h"
#include "simulate/prediction/predict_all.h"
#include "simulate/prediction/prediction.h"
