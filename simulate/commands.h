// What each command of tbd-sim does, given its options as text.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "hwspecs/base/sheet.h"
#include "simulate/library.h"

namespace tbdsim {

// As typed; empty where not given.
struct Options {
  std::string model;
  std::string framework;
  std::string variant;
  std::string gpu;
  std::string batch;
  std::string tokens;      // instead of the batch
  std::string seq_len;     // sizes of the model, its own where empty
  std::string image_size;  // "299" or "600x800"
  std::string rois;
  std::string dataset;             // instead of the variant's
  std::string precision = "fp32";  // kernels: a list, as --batch
  std::string profile;             // empty: what suits the GPU best
  std::string format;              // table unless said; predict: csv
  std::string output;              // a file instead of standard output
  std::string list_of;             // list: gpus, models, ...
  std::string scenarios;           // predict: the table to predict
  std::string runs;                // validate: the table of measured runs
  std::string by = "group";
  std::string from;           // kernels: only those whose time comes from there, "modelled,roofline"
  std::string view;           // kernels: summed by kernel, layer, phase or type
  std::string below_average;  // kernels: so many of those with the least use of the peak
  bool unique = false;        // kernels: each distinct one once
  bool plan = false;          // kernels: as a measuring plan
};

// Called for every row of a long table with the number of rows done; may throw to stop.
using Progress = std::function<void(std::size_t rows)>;

// Throw UsageError, SpecError or ModelError.
void predict_command(const Options& options, Library& library, std::ostream& out);
void list_command(const Options& options, Library& library, std::ostream& out);
void show_command(const Options& options, Library& library, std::ostream& out);
// Also for several batches and precisions: "4,16,64".
void kernels_command(const Options& options, Library& library, std::ostream& out);
// One iteration of one model on one framework as a trace in JSON.
void trace_command(const Options& options, Library& library, std::ostream& out);
// Copies the table with predicted, predicted_low, predicted_high and status appended; predictions are in the
// row's own unit.
void scenarios_command(const Options& options, Library& library, std::ostream& out, const Progress& progress);
void validate_command(const Options& options, Library& library, std::ostream& out, const Progress& progress);

}  // namespace tbdsim
