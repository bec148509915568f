// Runs one point on the GPU: one function per library call, found by the op's name.
#pragma once

#include <functional>
#include <vector>

#include "calibrate/measure/device/session.h"
#include "calibrate/measure/plan/plan.h"
#include "calibrate/records/record.h"

namespace tbdsim::measure {

// The records of a point, one per algorithm, with the result columns filled in; gpu, generation, versions and
// source are added by the caller. Throws PointError when the point cannot be measured here.
using Runner = std::vector<Record> (*)(Session& session, const PlanPoint& point);

// The records of the attempts that work, in order; the first refusal is thrown on when none does.
[[nodiscard]] std::vector<Record> those_that_work(const std::vector<std::function<Record()>>& attempts);

// Null for an op without a runner: a bug, op_table.cpp and ops.cpp list the same ops.
[[nodiscard]] Runner runner_of(const std::string& op);

[[nodiscard]] std::vector<Record> run_gemm(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_batched_gemm(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_conv(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_batch_norm(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_pool(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_softmax(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_rnn(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_add(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_relu(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_bias(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_dropout(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_layer_norm(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_optimizer(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_launch(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_flush(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_host_copy(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_device_copy(Session& session, const PlanPoint& point);
[[nodiscard]] std::vector<Record> run_all_reduce(Session& session, const PlanPoint& point);

}  // namespace tbdsim::measure
