#include "simulate/report/html/chart_json.h"

#include <array>
#include <charconv>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kMarkNames = {"line", "point", "bar", "span", "box"};

// The numbers with five significant digits: more than a chart shows, and a third of the text of all digits.
Json short_numbers(const std::vector<double>& numbers) {
  Json list = Json::array();
  for (const double number : numbers) {
    const std::string text = fmt::format("{:.5g}", number);
    double rounded = 0;
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    list.push_back(rounded);
  }
  return list;
}

// Distinct words and, for each word, its index among them: [["conv1", "conv2"], [0, 0, 1]].
Json word_list(const std::vector<std::string>& words) {
  Json distinct = Json::array();
  Json indices = Json::array();
  std::map<std::string_view, std::size_t> known;
  for (const std::string& word : words) {
    const auto [found, added] = known.emplace(word, known.size());
    if (added) distinct.push_back(word);
    indices.push_back(found->second);
  }
  return Json::array({distinct, indices});
}

Json json_of(const Series& series) {
  Json object{{"mark", kMarkNames[static_cast<std::size_t>(series.mark)]},
              {"name", series.name},
              {"colour", series.colour}};
  const auto add = [&](const char* key, const std::vector<double>& numbers) {
    if (!numbers.empty()) object[key] = short_numbers(numbers);
  };
  add("x", series.x);
  add("y", series.y);
  add("low", series.low);
  add("high", series.high);
  add("start", series.start);
  add("size", series.size);
  if (!series.categories.empty()) object["categories"] = word_list(series.categories);
  if (!series.hover.empty()) object["hover"] = word_list(series.hover);
  if (series.dashed) object["dashed"] = true;
  return object;
}

Json json_of(const Axis& axis) {
  Json object{{"title", axis.title}, {"log", axis.logarithmic}};
  if (axis.from) object["from"] = *axis.from;
  if (axis.to) object["to"] = *axis.to;
  return object;
}

Json json_of(const Chart& chart) {
  Json object{{"title", chart.title},     {"x", json_of(chart.x)},  {"y", json_of(chart.y)},
              {"stacked", chart.stacked}, {"square", chart.square}, {"series", Json::array()}};
  for (const Series& series : chart.series) object["series"].push_back(json_of(series));
  return object;
}

}  // namespace

Json charts_json(const std::vector<Section>& sections) {
  Json charts = Json::array();
  for (const Section& section : sections) {
    for (const View& view : section.views) {
      for (const Chart& chart : view.charts) charts.push_back(json_of(chart));
    }
  }
  return charts;
}

}  // namespace tbdsim
