// A captured step as a job: replicas of the whole step whose gradients are summed (DDP) or whose states are
// divided (ZeRO, FSDP). Its operators do not say which of them share a matrix, so that tensor, context,
// expert and pipeline parallelism are errors.
//
// The step's blocks are the modules with a number for a name that lie in no other such module (layers.7,
// layer1.0): FSDP gathers and divides them one by one. All are taken alike, with the mean of their time; what
// lies outside of them is gathered once.
#pragma once

#include "simulate/job/job_request.h"
#include "simulate/plan/search.h"
#include "simulate/prediction/prediction.h"

namespace tbdsim {

// The captured step for one sample on one GPU. Throws UsageError for keys of the request that mean nothing to
// a captured step.
[[nodiscard]] Scenario scenario_of_captured(const JobRequest& request, const std::string& gpu);

// From the prediction of that scenario, fills in shape, length of a sample, stack, arithmetic and pieces of
// the inputs.
void take_captured(PlanInputs& inputs, const Prediction& one_sample);

// Throws UsageError for a layout of a captured step that divides more than states.
void require_whole_replicas(const ParallelLayout& layout, const std::string& name);

// Layouts of a captured step: DDP and FSDP.
[[nodiscard]] SearchSpace space_of_captured();

}  // namespace tbdsim
