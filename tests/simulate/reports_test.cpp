// Outputs: JSON by its schema, CSV that parses back, tables that fit a screen.
#include <algorithm>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "simulate/prediction/metrics.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/catalog_tables.h"
#include "tests/simulate/runs_fixture.h"
#include "tests/simulate/toy_world.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using Arguments = std::vector<std::string>;
using nlohmann::json;
using testing::UnorderedElementsAreArray;

const Arguments kPrediction = {"--gpu", "titanxp", "--batch", "64"};
const Arguments kOneModel = {"--gpu", "titanxp", "--batch", "64", "--model", "resnet50"};

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string output(const Arguments& arguments) {
  const test::CliResult result = test::run(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

json json_of(const Arguments& arguments) {
  return json::parse(output(with(arguments, {"--format", "json"})));
}

std::vector<std::string> keys(const json& object) {
  std::vector<std::string> names;
  for (const auto& [key, unused] : object.items()) names.push_back(key);
  return names;
}

// Every command with its arguments, less the tables of runs.
std::vector<Arguments> commands() {
  std::vector<Arguments> all{kPrediction,
                             {"show", "resnet50", "--variant", "v1.5"},
                             with({"kernels"}, kOneModel),
                             with({"kernels", "--by", "kernel"}, kOneModel),
                             with({"kernels", "--by", "layer"}, kOneModel),
                             with({"kernels", "--below-average", "3"}, kOneModel)};
  for (const Listing& listing : listings()) all.push_back({"list", std::string(listing.name)});
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  for (const KindInfo& info : kKinds) {  // one of each kind
    if (info.kind != Kind::model) all.push_back({"show", catalog.names(info.kind).front()});
  }
  return all;
}

TEST(Json, PredictionsAsDocumented) {
  const json document = json_of(kPrediction);
  EXPECT_THAT(keys(document), testing::UnorderedElementsAre("schema_version", "predictions"));
  EXPECT_EQ(document["schema_version"], kSchemaVersion);
  ASSERT_GE(document["predictions"].size(), 4u);
  for (const json& p : document["predictions"]) {
    auto names = keys(p);
    std::erase_if(names, [](const std::string& key) { return key == "dataset" || key == "lengths"; });
    EXPECT_THAT(names, testing::UnorderedElementsAre("model", "variant", "framework", "gpu", "precision",
                                                     "batch", "sample", "profile", "calibrated", "fits",
                                                     "bound", "metrics", "memory", "gpu_memory"));
    EXPECT_TRUE(p["batch"].is_number_integer() && p["fits"].is_boolean() && p["calibrated"].is_boolean());
    EXPECT_THAT(keys(p["memory"]),
                testing::UnorderedElementsAre("weights", "weight_gradients", "feature_maps", "workspace",
                                              "dynamic", "model", "context", "total"));
    EXPECT_THAT(keys(p["gpu_memory"]), testing::UnorderedElementsAre("usable", "nominal"));
    EXPECT_LT(p["gpu_memory"]["usable"]["value"], p["gpu_memory"]["nominal"]["value"]);
    EXPECT_THAT(keys(p["metrics"]["throughput"]),
                testing::UnorderedElementsAre("value", "unit", "low", "high"));
  }
}

// Each row of the table of metrics is there once, with the value and unit it has in the program.
TEST(Json, EveryMetricIsThereOnce) {
  const json p = json_of(with(kPrediction, {"--model", "resnet50", "--framework", "cntk"}))["predictions"][0];
  SpecCache specs = test::source_specs();
  const Prediction prediction =
      predict({.model = "resnet50", .framework = "cntk", .gpu = "titanxp", .batch = 64}, specs);
  std::size_t found = 0;
  for (const Metric& metric : metrics()) {
    if (metric.group == MetricGroup::target) continue;  // of predictions with a target
    const std::string name(metric.name);
    const bool category = metric.group == MetricGroup::memory && name.starts_with("memory_");
    const json& value = category ? p["memory"][name.substr(7)] : p["metrics"][name];
    ASSERT_TRUE(value.is_object()) << name;
    const auto number = metric.value(prediction);
    EXPECT_EQ(value["value"], number ? json(*number) : json()) << name;
    EXPECT_EQ(value["unit"], unit_of(metric, prediction)) << name;
    ++found;
  }
  EXPECT_EQ(p["memory"].size() + p["metrics"].size(), found);
}

// The five categories of the paper are the model's memory, and with the context the total.
TEST(Json, CategoriesSumToTheTotal) {
  const json document = json_of(kPrediction);
  ASSERT_FALSE(document["predictions"].empty());
  for (const json& p : document["predictions"]) {
    const auto bytes = [&](const char* key) { return p["memory"][key]["value"].get<double>(); };
    EXPECT_EQ(bytes("weights") + bytes("weight_gradients") + bytes("feature_maps") + bytes("workspace") +
                  bytes("dynamic"),
              bytes("model"));
    EXPECT_EQ(bytes("model") + bytes("context"), bytes("total"));
  }
}

TEST(Json, EveryCommandHasASchemaVersion) {
  for (const Arguments& command : commands()) {
    const json document = json_of(command);
    EXPECT_EQ(document["schema_version"], kSchemaVersion) << command[0];
    EXPECT_LE(document.size(), 4u) << command[0];  // the version, one list, perhaps totals and reasons
  }
  EXPECT_TRUE(json_of({"list", "gpus"})["gpus"].is_array());
  EXPECT_EQ(json_of({"show", "resnet50", "--variant", "v1.5"})["totals"][0]["parameters"], 25557032);
  EXPECT_EQ(json_of({"show", "resnet50", "--variant", "v1.5"})["layers"].size(), 175u);
}

TEST(Json, GroupsOfAValidation) {
  const test::TempDir directory;
  const auto runs = directory.write("runs.csv", test::table({test::run_row()}));
  const json document = json_of({"validate", "--runs", runs.string()});
  EXPECT_EQ(document["schema_version"], kSchemaVersion);
  ASSERT_EQ(document["groups"].size(), 1u);
  EXPECT_THAT(keys(document["groups"][0]),
              testing::UnorderedElementsAre("section", "group", "rows", "covered_rows", "configurations",
                                            "mean", "median", "p90", "max", "bias", "coverage", "noise"));
  EXPECT_TRUE(document["groups"][0]["noise"].is_null());  // no repeats
}

// A table in Latin-1 (0xE9 is its e acute) is refused with its line: JSON could not hold it.
TEST(Json, TextThatIsNotUtf8) {
  const test::TempDir directory;
  const auto runs = directory.write("runs.csv", test::table({test::run_row({{"group", "caf\xe9"}})}));
  const test::CliResult result = test::run({"validate", "--runs", runs.string(), "--format", "json"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              testing::HasSubstr("runs.csv:2:1: bytes that are not UTF-8; expected text in UTF-8"));
}

// CSV and JSON carry the same keys and as many rows.
TEST(Csv, ParsesBackWithTheKeysOfTheJson) {
  for (const Arguments& command : commands()) {
    if (command == kPrediction) continue;  // nested in JSON, flat in CSV
    const json document = json_of(command);
    const auto rows = test::rows_of(output(with(command, {"--format", "csv"})));
    const auto list =
        std::find_if(document.begin(), document.end(), [](const json& value) { return value.is_array(); });
    ASSERT_NE(list, document.end());
    ASSERT_EQ(rows.size(), list->size()) << command[0] << " " << command[1];
    std::vector<std::string> columns;
    for (const auto& [column, unused] : rows.at(0)) columns.push_back(column);
    EXPECT_THAT(columns, UnorderedElementsAreArray(keys((*list)[0]))) << command[0];
  }
}

TEST(Csv, PredictionsHoldEveryMetric) {
  const auto rows = test::rows_of(output(with(kPrediction, {"--format", "csv"})));
  const json predictions = json_of(kPrediction)["predictions"];
  ASSERT_EQ(rows.size(), predictions.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const Metric& metric : metrics())
      EXPECT_EQ(rows[i].contains(std::string(metric.name)), metric.group != MetricGroup::target)
          << metric.name;
    EXPECT_EQ(std::stod(rows[i].at("throughput")),
              predictions[i]["metrics"]["throughput"]["value"].get<double>());
    EXPECT_EQ(rows[i].at("framework"), predictions[i]["framework"].get<std::string>());
    EXPECT_EQ(rows[i].at("throughput_unit"),
              predictions[i]["metrics"]["throughput"]["unit"].get<std::string>());
  }
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

TEST(Tables, FitTheScreen) {
  for (const Arguments& command : commands()) {
    EXPECT_LE(widest_line(test::run_on_terminal(command).out), kScreenWidth)
        << command[0] << " " << command[1];
  }
}

// Columns are set straight: no tabs, no blanks at the ends of lines.
TEST(Tables, AreTidy) {
  for (const Arguments& command : commands()) {
    const std::string text = output(command);
    EXPECT_EQ(text.find('\t'), std::string::npos) << command[0];
    EXPECT_EQ(text.find(" \n"), std::string::npos) << command[0];
    EXPECT_EQ(text.back(), '\n') << command[0];
  }
}

TEST(Tables, PredictionNamesItsAssumptions) {
  const std::string text = output(kPrediction);
  EXPECT_THAT(text, testing::AllOf(testing::HasSubstr("NVIDIA TITAN Xp, batch 64, fp32"),
                                   testing::HasSubstr("kernel times: cublas8, cudnn6 measured on this GPU; "),
                                   testing::HasSubstr("images/s")));
}

// For one model a line for each framework names the constants that are estimates; for many models none does.
TEST(Tables, SayWhatIsAnEstimate) {
  const test::ToyWorld world;
  const Scenario slow = world.slow_scenario(10, world.dataset_decoded_in("1 us"));
  const Arguments one{"--gpu",     slow.gpu,     "--batch",   "10",         "--model",     slow.model,
                      "--profile", slow.profile, "--dataset", slow.dataset, "--framework", slow.framework};
  EXPECT_THAT(output(one), testing::HasSubstr("\nEstimates, on slow: update, decode_time of decoded.\n"));
  EXPECT_THAT(output(kPrediction), testing::Not(testing::HasSubstr("Estimates, on")));
}

TEST(Table, Counts) {
  EXPECT_EQ(count_cell(25557032).text, "25,557,032");
  EXPECT_EQ(count_cell(999).text, "999");
  EXPECT_EQ(count_cell(1000).text, "1,000");
  EXPECT_EQ(count_cell(-1000).text, "-1,000");
  EXPECT_EQ(count_cell(-100).text, "-100");
  EXPECT_EQ(count_cell(0).text, "0");
}

// "a" has a value for programs only, "b" is a number to the right, "c" nothing at all.
TEST(Table, ThreeFormats) {
  Table table;
  table.name = "things";
  table.preface = {"Above"};
  table.columns = {{"a", ""}, {"b", "B", true}, {"c", "C"}};
  table.rows = {{text_cell("x, y"), number_cell(0.1, "10 %"), {"-", std::monostate{}}},
                {text_cell("z"), flag_cell(true), text_cell("w")}};
  table.totals = {{"sum", number_cell(2, "two")}};
  table.notes = {"Below"};
  const auto written = [&](Format format) {
    std::ostringstream out;
    write_tables(out, std::span(&table, 1), format);
    return out.str();
  };
  EXPECT_EQ(written(Format::table), "Above\n   B  C\n10 %  -\n yes  w\n\nsum  two\n\nBelow\n");
  EXPECT_EQ(written(Format::csv), "a,b,c\n\"x, y\",0.1,\nz,true,w\n");
  EXPECT_EQ(json::parse(written(Format::json)), json::parse(R"({"schema_version": 2,
      "things": [{"a": "x, y", "b": 0.1, "c": null}, {"a": "z", "b": true, "c": "w"}], "totals": [{"sum": 2.0}]})"));
}

// A whole number has no fraction, whatever it counts; 2^53 is the largest that a double holds exactly.
TEST(Table, WholeNumbersInJson) {
  Table table;
  table.name = "things";
  table.columns = {{"n", "n"}};
  for (const double value : {265.0, -3.0, 0.5, 9007199254740992.0, 1e300})
    table.rows.push_back({number_cell(value, "")});
  std::ostringstream out;
  write_tables(out, std::span(&table, 1), Format::json);
  std::vector<std::string> numbers;
  const json document_1 = json::parse(out.str());
  for (const json& row : document_1["things"]) numbers.push_back(row["n"].dump());
  EXPECT_THAT(numbers, testing::ElementsAre("265", "-3", "0.5", "9007199254740992", "1e+300"));
}

// Programs read ratios and shares from 0 to 1; people per cent.
TEST(Table, PerCentIsForPeople) {
  EXPECT_EQ(percent_cell(0.1234).text, "12.3 %");
  EXPECT_EQ(signed_percent_cell(0.1234, 0).text, "+12 %");
  EXPECT_EQ(bare_percent_cell(0.1234, 2).text, "12.34");
  EXPECT_EQ(std::get<double>(signed_bare_percent_cell(-0.1234).value), -0.1234);
}

// Every ratio of every command lies between 0 and 1: none is in per cent.
TEST(Json, RatiosAreFromZeroToOne) {
  const json scaling = json_of({"scaling", "resnet50", "--framework", "mxnet", "--gpu", "titanxp", "--batch",
                                "32", "--machines", "1,2", "--network", "ethernet_10g"});
  ASSERT_EQ(scaling["points"].size(), 8u);
  for (const json& point : scaling["points"]) {
    for (const char* key :
         {"efficiency", "exposed_share", "exchange_share", "gpu_utilization", "fp32_utilization"}) {
      const double ratio = point.at(key);
      EXPECT_GE(ratio, 0) << key;
      EXPECT_LE(ratio, 1) << key;
    }
  }
  const json predicted = json_of(kPrediction);
  ASSERT_FALSE(predicted["predictions"].empty());
  for (const json& p : predicted["predictions"]) {
    for (const auto& [name, metric] : p["metrics"].items()) {
      EXPECT_NE(metric["unit"], "%") << name;
      if (metric["unit"] != "1" || metric["value"].is_null()) continue;
      EXPECT_LE(metric["value"].get<double>(), 1) << name;
    }
  }
  const json groups = json_of(with({"kernels", "--by", "kernel"}, kOneModel));
  ASSERT_FALSE(groups["kernels"].empty());
  for (const json& group : groups["kernels"]) {
    if (group["fp32_utilization"].is_null()) continue;
    EXPECT_LE(group["fp32_utilization"].get<double>(), 1);
  }
}

// The profile of a TITAN Xp holds what was measured on it, of cuBLAS 8 and cuDNN 6, and blocks of other GPUs.
TEST(Show, TheBlocksOfAProfile) {
  const json blocks = json_of({"show", "profile", "titanxp"})["blocks"];
  std::set<std::string> own;
  for (const json& block : blocks) {
    EXPECT_GT(block["records"].get<int>(), 0);
    EXPECT_GT(block["determined"].get<double>(), 0);
    EXPECT_LE(block["determined"].get<double>(), block["parameters"].get<double>());
    if (block["measured_on"] == "this") own.insert(block["library"].get<std::string>());
  }
  EXPECT_THAT(own, testing::ElementsAre("cublas8", "cudnn6"));
  std::size_t listed = 0;
  const json document_4 = json_of({"list", "profiles"});
  for (const json& profile : document_4["profiles"]) {
    if (profile["name"] == "titanxp") listed = profile["blocks"].get<std::size_t>();
  }
  EXPECT_EQ(listed, blocks.size());
}

TEST(Show, ANameOfAKind) {
  EXPECT_EQ(json_of({"show", "gpu", "titanxp"}), json_of({"show", "titanxp"}));
  EXPECT_EQ(json_of({"show", "model", "alexnet"}), json_of({"show", "alexnet"}));
  EXPECT_THAT(test::run({"show", "profil", "titanxp"}).err, testing::HasSubstr("profile"));
}

// `show` finds a file by its name alone. Profiles are named after the cards and architectures they are for:
// of a name that two have, `show` shows the card.
TEST(Catalogue, NamesAreUniqueOverAllKinds) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  std::set<std::string> names;
  for (const KindInfo& info : kKinds) {
    if (info.kind == Kind::profile) continue;
    for (const std::string& name : catalog.names(info.kind)) EXPECT_TRUE(names.insert(name).second) << name;
  }
}

// Every key of a file is shown with its source: of dgx1_v100's eight GPUs the number and where it comes from.
TEST(Show, AFileWithItsSources) {
  const json keys = json_of({"show", "dgx1_v100"})["keys"];
  const auto gpus =
      std::find_if(keys.begin(), keys.end(), [](const json& key) { return key["key"] == "gpus"; });
  ASSERT_NE(gpus, keys.end());
  EXPECT_EQ((*gpus)["value"], "8");
  EXPECT_EQ((*gpus)["source"], "NVIDIA DGX-1 system architecture whitepaper");
}

}  // namespace
}  // namespace tbdsim
