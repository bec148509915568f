#include "simulate/import/summary_layers.h"

#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

std::string name_of(const SummaryRow& row) { return row.name.empty() ? row.type : row.name; }

}  // namespace

std::string sides_text(const std::vector<std::int64_t>& sides) {
  std::string text;
  for (const std::int64_t side : sides) text += (text.empty() ? "" : " x ") + std::to_string(side);
  return text.empty() ? "no sides" : text;
}

SummaryLayers::SummaryLayers(SummaryTable table, const std::string& file)
    : table_(std::move(table)), builder_(file, table_.title.empty() ? "imported network" : table_.title) {}

void SummaryLayers::fail(const SummaryRow& row, const std::string& what) const {
  fail_at(builder_.file(), row.line, in_quotes(name_of(row)) + ": " + what);
}

void SummaryLayers::require_image(const SummaryRow& row, const NetworkTensor& from) const {
  if (from.shape.size() != 3 || row.output.size() != 3)
    fail(row, fmt::format("makes {} of {}; expected images", sides_text(row.output), sides_text(from.shape)));
}

NetworkTensor SummaryLayers::conv(const SummaryRow& row, const NetworkTensor& from,
                                  const SummaryConvolution& shape, const WindowSide& tall,
                                  const WindowSide& wide) {
  const std::int64_t filters = row.output[0];
  LayerKeys keys = {{"filters", spec_number(filters)}, {"bias", spec_scalar(shape.bias ? "true" : "false")}};
  if (shape.groups != 1) keys.emplace_back("groups", spec_number(shape.groups));
  return builder_.add_window("conv2d", name_of(row), from, tall, wide, filters, std::move(keys));
}

NetworkTensor SummaryLayers::dense(const SummaryRow& row, const NetworkTensor& from) {
  if (row.output.empty()) fail(row, "no shape of its output; expected one");
  const std::int64_t outputs = row.output.back(), inputs = product_of(from.shape);
  const std::int64_t weights = inputs * outputs;
  if (row.output.size() != 1 || (row.parameters != weights && row.parameters != weights + outputs))
    fail(row, fmt::format("{} parameters for {} inputs and {} outputs; expected {} or, with a bias, {}",
                          row.parameters, inputs, sides_text(row.output), weights, weights + outputs));
  LayerKeys keys = {{"outputs", spec_number(outputs)}};
  if (row.parameters == weights) keys.emplace_back("bias", spec_scalar("false"));
  return builder_.add("fully_connected", name_of(row), {from}, {outputs}, std::move(keys));
}

NetworkTensor SummaryLayers::batch_norm(const SummaryRow& row, const NetworkTensor& from) {
  return builder_.add("batch_norm", name_of(row), {from}, from.shape);
}

NetworkTensor SummaryLayers::relu(const SummaryRow& row, const NetworkTensor& from) {
  return builder_.add("relu", name_of(row), {from}, from.shape);
}

NetworkTensor SummaryLayers::dropout(const SummaryRow& row, const NetworkTensor& from) {
  return builder_.add("dropout", name_of(row), {from}, from.shape, {{"keep", spec_scalar("0.5")}});
}

NetworkTensor SummaryLayers::whole_mean(const SummaryRow& row, const NetworkTensor& from) {
  if (from.shape.size() != 3)
    fail(row, "a mean over an input of " + sides_text(from.shape) + "; expected an image");
  return builder_.add("global_avg_pool", name_of(row), {from}, {from.shape[0], 1, 1});
}

NetworkTensor SummaryLayers::flat(const SummaryRow& row, const NetworkTensor& from) {
  return from.shape.size() == 1 ? from : builder_.add_reshape(name_of(row), from, {product_of(from.shape)});
}

NetworkTensor SummaryLayers::unsupported(const SummaryRow& row, const NetworkTensor& from) {
  builder_.note_unsupported(row.type);
  return {.layer = from.layer, .shape = row.output.empty() ? from.shape : row.output};
}

}  // namespace tbdsim
