// `tbd-sim serve` answers with the numbers of the command line; a query can read only files of the catalogue.
#include "simulate/serve/live_report.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "simulate/analysis/whatif.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/whatif_tables.h"
#include "simulate/serve/spec_pool.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const Scenario kUsual{.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 32};

class LiveReport : public testing::Test {
 protected:
  json ask(const QueryParameters& parameters) {
    return json::parse(live_report(read_query(parameters, kUsual), specs_));
  }
  std::string refusal(const QueryParameters& parameters) {
    try {
      (void)ask(parameters);
    } catch (const Error& wrong) {
      return wrong.what();
    }
    return "(answered)";
  }

  SpecCache specs_{Catalog::from(TBDSIM_SOURCE_DIR).with_files_only({})};
};

const json& tile(const json& answer, const std::string& name) {
  for (const json& one : answer["tiles"]) {
    if (one["name"] == name) return one;
  }
  throw std::runtime_error("no tile " + name);
}

TEST_F(LiveReport, SaysWhatWhatifSays) {
  const json answer =
      ask({{"batch", "16"}, {"set", "gpu.memory_bandwidth=800 GB/s"}, {"set", "gpu.sm_count=45"}});
  EXPECT_EQ(answer["command"],
            "tbd-sim whatif resnet50 --framework mxnet --gpu titanxp --batch 16 "
            "--set 'gpu.memory_bandwidth=800 GB/s' --set 'gpu.sm_count=45'");
  const std::string table =
      test::run({"whatif", "resnet50", "--framework", "mxnet", "--gpu", "titanxp", "--batch", "16", "--set",
                 "gpu.memory_bandwidth=800 GB/s", "--set", "gpu.sm_count=45"})
          .out;
  for (const char* name : {"throughput", "iteration_time", "memory_total"}) {
    EXPECT_THAT(table, HasSubstr("  " + tile(answer, name)["text"].get<std::string>() + "  ")) << name;
    EXPECT_THAT(table, HasSubstr(tile(answer, name)["change"].get<std::string>())) << name;
  }
}

TEST_F(LiveReport, WithoutChangesItIsThePrediction) {
  const json answer = ask({});
  SpecCache specs = test::source_specs();
  const Prediction p = predict(kUsual, specs);
  const Table table = before_and_after_table(p, p, {});
  EXPECT_EQ(tile(answer, "throughput")["text"], table.rows.at(0).at(4).text);
  EXPECT_EQ(tile(answer, "throughput")["change"], "");
  EXPECT_THAT(tile(answer, "memory_total")["note"].get<std::string>(), HasSubstr("fits into 11.91 GiB"));
}

TEST_F(LiveReport, SeveralGpusAreThoseOfScaling) {
  const json answer = ask({{"gpus", "4"}, {"machines", "2"}, {"network", "25 Gbit/s"}});
  SpecCache specs = test::source_specs();
  Scenario scenario = kUsual;
  scenario.cluster = {.gpus = 4, .machines = 2, .network = "25 Gbit/s"};
  const Prediction p = predict(scenario, specs);
  const Table table = before_and_after_table(p, p, {});
  EXPECT_EQ(tile(answer, "throughput")["text"], table.rows.at(0).at(4).text);
  EXPECT_EQ(answer["command"],
            "tbd-sim scaling resnet50 --framework mxnet --gpu titanxp --batch 32 --gpus 4 "
            "--machines 2 --network '25 Gbit/s'");
}

TEST_F(LiveReport, ACommandIsSaidWhereThereIsOne) {
  EXPECT_EQ(ask({})["command"], "tbd-sim --model resnet50 --framework mxnet --gpu titanxp --batch 32");
  EXPECT_EQ(ask({{"precision", "fp16"}, {"gpus", "2"}})["command"],
            "tbd-sim scaling resnet50 --framework mxnet --gpu titanxp --batch 32 --precision fp16 --gpus 2 "
            "--machines 1");
  EXPECT_EQ(ask({{"gpus", "2"}, {"set", "gpu.sm_count=40"}})["command"], "");
}

TEST_F(LiveReport, ABatchThatDoesNotFitSaysSo) {
  const json answer = ask({{"batch", "4096"}});
  EXPECT_TRUE(tile(answer, "memory_total")["wrong"]);
  EXPECT_THAT(tile(answer, "memory_total")["note"].get<std::string>(), HasSubstr("does not fit"));
}

TEST_F(LiveReport, EveryKernelOnlyWhereAskedFor) {
  const auto sections = [&](const QueryParameters& parameters) {
    return ask(parameters)["html"].get<std::string>();
  };
  EXPECT_THAT(sections({}), testing::Not(HasSubstr("<h2>Kernels</h2>")));
  EXPECT_THAT(sections({{"kernels", "1"}}), HasSubstr("<h2>Kernels</h2>"));
}

TEST_F(LiveReport, SaysWhatIsWrong) {
  EXPECT_EQ(refusal({{"gpu", "titanpx"}}),
            "unknown GPU 'titanpx'; did you mean 'titanxp'? ('tbd-sim list gpus' names them)");
  EXPECT_THAT(refusal({{"batch", "0"}}), HasSubstr("batch: '0' is no whole number from 1 to 1000000000"));
  EXPECT_THAT(refusal({{"batch", "1e99"}}), HasSubstr("batch: '1e99'"));
  EXPECT_THAT(refusal({{"precision", "fp3"}}), HasSubstr("unknown precision 'fp3'"));
  EXPECT_THAT(refusal({{"gpus", "17"}}), HasSubstr("gpus: '17' is no whole number from 1 to 16"));
  EXPECT_EQ(refusal({{"kernels", "yes"}}), "kernels: 'yes'; expected 0 or 1");
  EXPECT_THAT(refusal({{"batsh", "1"}}), HasSubstr("unknown parameter 'batsh'; did you mean 'batch'?"));
  EXPECT_THAT(refusal({{"batch", "1"}, {"batch", "2"}}), HasSubstr("'batch' is given twice"));
  EXPECT_THAT(refusal({{"set", "gpu.sm_count=-3"}}), HasSubstr("sm_count"));
  EXPECT_THAT(refusal(QueryParameters(17, {"set", "gpu.sm_count=30"})),
              HasSubstr("17 changes; expected up to 16"));
}

// Names that are paths, wherever they may come in.
TEST_F(LiveReport, ReadsNoFileOfTheAsker) {
  const test::TempDir directory;
  const std::string file = directory.write("secret.yaml", "password: hunter2\n").string();
  for (const std::string& name :
       {file, std::string("../../etc/passwd"), std::string("/etc/passwd"), std::string("titanxp.yaml"),
        std::string("1/../../etc/passwd"), std::string("1.yaml"), std::string("titanxp.yaml\0", 13)}) {
    for (const QueryParameters& parameters : std::vector<QueryParameters>{
             {{"model", name}},
             {{"framework", name}},
             {{"gpu", name}},
             {{"variant", name}},
             {{"precision", name}},
             {{"machines", "2"}, {"network", name}},
             {{"set", "gpu.bus=" + name}},
             {{"set", "gpu.nvlink.link=" + name}},
             {{"gpu", "v100_sxm2_16gb"}, {"set", "gpu.nvlink={link: " + name + ", count: 4}"}}}) {
      const std::string said = refusal(parameters);
      EXPECT_NE(said, "(answered)") << name;
      EXPECT_THAT(said, testing::Not(HasSubstr("hunter2")));
      EXPECT_THAT(said, testing::Not(HasSubstr("password")));
      EXPECT_THAT(said, testing::Not(HasSubstr("cannot be read"))) << "it was looked for";
    }
  }
}

TEST_F(LiveReport, ChangesHardwareOnly) {
  for (const char* change : {"framework.lowering.layout=nchw", "model.parameters.layers=1000000", "batch=64",
                             "dataset.samples=1", "machine.gpus=8"})
    EXPECT_NE(refusal({{"set", change}}), "(answered)") << change;
}

TEST(SpecPool, StaysSmall) {
  SpecPool pool(Catalog::from(TBDSIM_SOURCE_DIR), {});
  Scenario scenario = kUsual;
  const auto first = pool.specs_for(scenario);
  EXPECT_EQ(pool.specs_for(scenario), first);
  for (int i = 0; i < 100; ++i) {
    scenario.variant = std::to_string(i);
    (void)pool.specs_for(scenario);
  }
  EXPECT_NE(pool.specs_for(kUsual), first);
}

TEST(ServeCommand, SaysWhatIsWrong) {
  EXPECT_EQ(test::run({"serve", "--port", "99999"}).exit_code, 2);
  EXPECT_THAT(test::run({"serve", "--model", "all"}).err, HasSubstr("one model on one framework"));
}

}  // namespace
}  // namespace tbdsim
