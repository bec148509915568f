// The table that Keras's model.summary() or torchinfo prints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tbdsim {

struct SummaryRow {
  int line = 0;                                 // of its beginning
  std::string name;                             // of the layer; torchinfo: empty unless it was asked for
  std::string type;                             // "Conv2D"; where Keras cut it, its beginning and "~"
  std::vector<std::int64_t> input{}, output{};  // without the batch; input: torchinfo's, where it is shown
  std::int64_t parameters = 0;
  std::vector<std::int64_t> kernel{};  // torchinfo's, where it is shown
  std::vector<std::string> from{};     // Keras's column 'Connected to', cut names with "~"
  int depth = 0;  // torchinfo's: 0 for the whole model; Keras's: models around the layer but the whole one
};

struct SummaryTable {
  std::string title;
  bool has_inputs = false, has_kernels = false, has_connections = false;  // columns
  std::vector<SummaryRow> rows{};
};

// True for a line that begins the table of either tool.
[[nodiscard]] bool is_keras_header(std::string_view line);
[[nodiscard]] bool is_torchinfo_header(std::string_view line);

// Throw SpecError, with the line, for a text that is no such table.
[[nodiscard]] SummaryTable read_keras_summary(const std::string& text, const std::string& file);
[[nodiscard]] SummaryTable read_torchinfo_summary(const std::string& text, const std::string& file);

}  // namespace tbdsim
