// `tbd-sim plan` and `sweep` of layouts as a user types them: what-ifs, sweeps, pages and hostile input.
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "simulate/job/job_prediction.h"
#include "simulate/serve/layout_report.h"
#include "simulate/sweep/sweep_spec.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> command(const std::string& name, std::vector<std::string> more) {
  std::vector<std::string> all = {name, "--gpu",     "h100_sxm", "--gpus", "16", "--global-batch",
                                  "32", "--seq-len", "4096"};
  if (name == "plan") all.insert(all.begin() + 1, "llama3_8b");
  if (name == "sweep") all.insert(all.end(), {"--model", "llama3_8b"});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Two cards at 0.5 USD an hour; their file has no rent.
TEST(PlanCommand, SaysTheCostOfACardWithoutARent) {
  const std::vector<std::string> command{"plan", "llama3_8b",      "--gpu", "rtx4090",     "--gpus",
                                         "2",    "--global-batch", "16",    "--lora-rank", "16"};
  EXPECT_THAT(test::run(command).out, HasSubstr("No rent of rtx4090 is known; --set gpu.price_per_hour="));
  std::vector<std::string> rented = command;
  rented.insert(rented.end(), {"--set", "gpu.price_per_hour=0.5 USD/h", "--format", "csv"});
  EXPECT_THAT(test::run(rented).out, HasSubstr("rent,,0.0002777777777777778,"));
}

TEST(PlanFeatures, ChangedHardwareBesideWhatItIs) {
  const test::CliResult result = test::run(command("plan", {"--set", "gpu.memory_bandwidth=+50%"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("with gpu.memory_bandwidth=+50%"), HasSubstr("tokens_per_second"),
                                HasSubstr("before: dp")));
}

TEST(PlanFeatures, SaysWhatHelpsMost) {
  const test::CliResult result = test::run(command("plan", {"--tp", "2", "--what-helps"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("gpu.memory_bandwidth"), HasSubstr("link.network.bandwidth")));
  EXPECT_THAT(result.out, Not(HasSubstr(" +0.1")));  // more of anything is never slower
}

TEST(PlanFeatures, OneOutputAtATime) {
  EXPECT_THAT(test::run(command("plan", {"--what-helps", "--set", "gpu.tdp=+5%"})).err,
              HasSubstr("several outputs are asked for"));
  EXPECT_THAT(test::run(command("plan", {"--set", "gpu.tdb=+5%"})).err, HasSubstr("tdp"));
}

TEST(PlanFeatures, JsonHasIntervalsAndAssumptions) {
  const test::CliResult best = test::run(command("plan", {"--format", "json"}));
  EXPECT_THAT(best.out,
              AllOf(HasSubstr("\"tokens_per_second_low\""), HasSubstr("\"machine\": \"dgx_h100: ")));
  const test::CliResult one = test::run(command("plan", {"--tp", "2", "--format", "json"}));
  EXPECT_THAT(one.out, AllOf(HasSubstr("\"tensor, exposed\""), HasSubstr("\"tokens_per_second_low\": ")));
}

TEST(PlanFeatures, SweepsLayouts) {
  const test::CliResult rows = test::run(command("sweep", {"--tp", "1,2,3", "--zero", "1"}));
  EXPECT_EQ(rows.exit_code, 0) << rows.err;
  EXPECT_THAT(rows.out, AllOf(HasSubstr("model,gpu,gpus,global_batch,seq_len,tp,zero,step_time,"),
                              HasSubstr("ranks do not divide 16 GPUs")));
  // The prediction of `plan` for the same layout.
  const std::string best =
      test::run(command("sweep", {"--tp", "1,2", "--zero", "1", "--best", "step_time", "--metrics", "mfu"}))
          .out;
  EXPECT_THAT(best, HasSubstr("ok\n"));
  EXPECT_EQ(std::count(best.begin(), best.end(), '\n'), 2);
  EXPECT_THAT(test::run(command("sweep", {"--tp", "many"})).err,
              HasSubstr("tp 'many'; expected a whole number"));
  EXPECT_THAT(test::run(command("sweep", {"--batch", "8"})).err, HasSubstr("'batch' is no key of a job"));
  EXPECT_THAT(test::run(command("sweep", {"--metrics", "throughput"})).err,
              HasSubstr("unknown metric of layouts 'throughput'"));
}

TEST(PlanFeatures, SweepsSearchWhereNoLayoutIsGiven) {
  SpecCache specs = test::source_specs();
  SweepOptions options;
  options.axes = {{"model", "llama3_8b"}, {"gpu", "h100_sxm"},    {"gpus", "16,32"},
                  {"seq_len", "4096"},    {"global_batch", "32"}, {"gpu.memory_bandwidth", "+0%,+50%"}};
  options.metrics = "step_time,layout_dp,cost_per_token";
  SweepRun run = sweep_run(options, RowFormat::csv, specs);
  std::vector<std::string> lines;
  run.take = [&](const std::vector<SweepRow>& rows, std::int64_t) {
    for (const SweepRow& row : rows) lines.push_back(row.line);
  };
  run_sweep(run, specs);
  ASSERT_EQ(lines.size(), 4u);
  for (const std::string& line : lines) EXPECT_TRUE(line.ends_with(",ok\n")) << line;
}

TEST(PlanFeatures, PagesShowStagesCommunicationAndMemory) {
  SpecCache specs = test::source_specs();
  JobRequest request = usual_job();
  request.layout = ParallelLayout{.tp = 2, .pp = 4, .zero = 1};
  const std::string report = layout_report(request, specs);
  for (const char* part : {"Stages over time", "Communication by dimension", "Memory by rank", "stage 3",
                           "\"tp\":2", "--pp 4", "tokens_per_second"})
    EXPECT_THAT(report, HasSubstr(part));
  request.layout.reset();
  EXPECT_THAT(layout_report(request, specs),
              AllOf(HasSubstr("Less memory costs time"), HasSubstr("The first is")));
}

TEST(PlanFeatures, ThePageBeginsWithAQueryThatIsAnswered) {
  SpecCache specs = test::source_specs();
  QueryParameters query;
  const auto start = nlohmann::json::parse(layout_controls())["start"];
  for (const auto& [key, value] : start.items()) {
    if (key != "network")
      query.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  EXPECT_THAT(layout_report(read_job_query(query), specs), HasSubstr("Stages over time"));
}

TEST(PlanFeatures, QueriesAreReadStrictly) {
  EXPECT_EQ(read_job_query({{"tp", "4"}, {"gpus", "8"}}).layout->tp, 4);
  EXPECT_THAT(test::message_of<UsageError>([] {
                (void)read_job_query({{"tp", "4"}, {"tp", "8"}});
              }),
              HasSubstr("'tp' is given twice"));
  EXPECT_THAT(test::message_of<UsageError>([] {
                (void)read_job_query({{"gpus", "10000000"}});
              }),
              HasSubstr("at most 131072 on this page"));
}

TEST(PlanFeatures, HostileInputsAreErrors) {
  const test::TempDir directory;
  for (const char* text :
       {"tp: [1, 2]\n", "tp: {a: 1}\n", "tp: 99999999999999999999\n", "tp: -1\n", "tp: 0\n", "tp: 1\ntp: 2\n",
        "zero: 4\n", "zero: 1.5\n", "tp: &a 1\n", "recompute:\n", "- tp\n", "", "expert_imbalance: nan\n",
        "lora_rank: 1e9\n", "stack: ../../etc/passwd\n"}) {
    const std::string file = directory.write("hostile.yaml", text).string();
    const test::CliResult result = test::run(command("plan", {"--layout", file}));
    EXPECT_EQ(result.exit_code, text[0] == '\0' ? result.exit_code : 2) << text << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("bug"))) << text;
  }
  const test::CliResult most = test::run({"plan", "llama3_8b", "--gpu", "h100_sxm", "--gpus", "10000000",
                                          "--global-batch", "10000000", "--dp", "10000000"});
  EXPECT_EQ(most.exit_code, 0) << most.err;
  const test::CliResult more = test::run(command("plan", {"--dp", "32"}));
  EXPECT_EQ(more.exit_code, 2);
  EXPECT_THAT(more.err, HasSubstr("32 ranks on 16 GPUs"));
}

}  // namespace
}  // namespace tbdsim
