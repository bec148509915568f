// A model: layer graphs and the training program that runs them. A YAML file in graphs/models/ describes its
// variants with parameters, blocks and repeats; read_model_file() reads the file, build_model() builds one
// variant.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/layer_graph.h"
#include "graphs/optimizer.h"
#include "graphs/precision.h"
#include "hwspecs/base/spec_change.h"
#include "hwspecs/base/spec_tree.h"

namespace tbdsim {

// Extent of a run's backward pass: none; to the graph's inputs, for the graph that computed them; to the
// trained weights; or as a gradient penalty (Gulrajani et al., arXiv 1704.00028): to the inputs, then through
// that backward pass once more to the weights.
enum class Backward { none, inputs, weights, penalty };
inline constexpr std::array<std::string_view, 4> kBackwardNames = {"none", "inputs", "weights", "penalty"};

struct GraphRun {
  std::string graph;
  Backward backward = Backward::weights;
};

// One step of the training program, done `repeat` times in an iteration: its runs forward in order, then
// backward in reverse order, both for `batches` batches one after another, whose gradients are added up; then
// one update of the graphs whose weights got gradients. Most models have one
// pass of one run; WGAN-GP runs its critic's step five times for each generator step.
struct TrainingPass {
  std::vector<GraphRun> runs;
  bool update = true;
  std::int64_t repeat = 1;
  std::int64_t batches = 1;  // before an update
};

// The unit in which throughput is counted: `per_sample` units in each sample, or `per_length` for each unit
// of its length.
struct ThroughputUnit {
  std::string unit;  // "images", "tokens": of throughput in unit/s
  double per_sample = 1;
  double per_length = 0;
};

// Published counts of a variant, checked by a test: trained parameters, multiply-adds for one sample. Empty
// where the file does not give one.
struct ExpectedCounts {
  std::optional<std::int64_t> parameters;
  std::optional<std::int64_t> forward_macs;
  std::optional<std::int64_t> training_macs;
  std::string source;  // the variant's unless it has its own
};

// Number of samples in a batch that is given in tokens: as many as fit, or the largest such number that
// divides tensor2tensor's window (data_reader.py, hparams_to_batching_scheme, 1.2.7).
enum class TokenBatches { fitting, dividing };
inline constexpr std::array<std::string_view, 2> kTokenBatchesNames = {"fitting", "dividing"};

// Sides of images that keep their ratio, in pixels: the short side is scaled to `shorter`, the long one cut
// at `longest`.
struct ImageSides {
  std::int64_t shorter = 0;
  std::int64_t longest = 0;
};

struct Variant {
  std::string name;
  std::string description;
  std::string source;
  // Names of the frameworks that train this variant unless another is asked for; PyTorch's where the file has
  // no such key; none where the list is empty.
  std::vector<std::string> frameworks;
  std::vector<std::string> also_called;  // names of it in tables of measured runs
  Optimizer optimizer;
  std::optional<Optimizer> mixed_optimizer;  // under mixed precision, where it is another
  Clip clip = Clip::none;                    // as kernels of its own; not where it is part of the update
  bool average = false;      // a running average of all weights is kept, by operators of the program
  bool graph_decay = false;  // weight decay as a loss of the graph, not as part of the update
  std::string dataset;       // name of the data set it is trained on, or empty
  TokenBatches token_batches = TokenBatches::fitting;
  std::vector<std::int64_t> buckets;      // sequence lengths to which samples are padded; empty: one length
  double source_share = 1;                // of the target's length that a source is padded to
  std::optional<ImageSides> image_sides;  // where images come in many sizes, those of a batch in one
  SpecTree lowering;  // a map of the keys in which its code departs from the framework's, or nothing
  std::map<std::string, SpecTree> parameters;  // and sizes
  std::optional<ExpectedCounts> expected;
};

[[nodiscard]] inline const Optimizer& optimizer_of(const Variant& variant, const Precision& precision) {
  return precision.master_weights && variant.mixed_optimizer ? *variant.mixed_optimizer : variant.optimizer;
}

// The size that counts the steps of a sequence: data sets have lengths, variants have buckets of it.
inline constexpr std::string_view kLengthSize = "sequence_length";

// Images that are not square have these.
inline constexpr std::string_view kHeightSize = "image_height";
inline constexpr std::string_view kWidthSize = "image_width";

// A model with this size, too, pads sources to a share of that length, rounded down.
inline constexpr std::string_view kSourceLengthSize = "source_length";

// Values of sizes and parameters that replace the model's own: sequence_length -> 25.
using Sizes = std::map<std::string, std::int64_t>;

struct CapturedStep;

struct ModelFile {
  std::string path;    // of the file, as in the marks of what it does not have from another
  std::string name;    // its stem
  std::string title;   // "ResNet-50"
  std::string sample;  // what a batch counts, singular: "image"
  ThroughputUnit throughput;
  std::int64_t batches_per_iteration = 1;  // of the data set that an iteration reads
  std::int64_t largest_batch = 0;          // where its code takes no more samples at once; 0: any batch
  std::vector<Variant> variants;
  std::vector<Variant> family;  // further sizes, each a model of its own name; tests of all models skip them
  std::map<std::string, SpecTree> parameters;  // with the values variants override
  std::map<std::string, SpecTree> sizes;       // the same, seen by the inputs of graphs only
  SpecTree blocks, graphs, training;
  std::shared_ptr<const CapturedStep> captured;  // a step file's, instead of these; or none
};

struct Model {
  std::string name;
  std::string title;
  std::string sample;
  Variant variant;
  std::map<std::string, SpecTree> sizes;   // as built
  std::map<std::string, SpecTree> inputs;  // of each graph, before sizes are put in
  std::map<std::string, LayerGraph> graphs;
  std::set<std::string> blocks;  // of the file, used by the graphs
  std::vector<TrainingPass> training;
};

// Throws UsageError or SpecError. A file may be `based_on` another one of its folder, or of `catalogue`, the
// catalogue's folder of models: it then has that one's keys unless it gives its own.
[[nodiscard]] ModelFile read_model_file(const std::filesystem::path& file, const SpecChanges& changes = {},
                                        const std::filesystem::path& catalogue = {});

// The variant of that name or that is also called so; where the name is empty the one the framework trains,
// or, for no framework or of a single variant, the first. Capitals do not matter. Throws UsageError, with
// "did you mean" for a name.
[[nodiscard]] const Variant& find_variant(const ModelFile& file, const std::string& variant,
                                          const std::string& framework);

// The file with that member of its family as its only variant; unchanged where none is called so.
[[nodiscard]] ModelFile member_of_family(ModelFile file, const std::string& called);

// True if the model has a size or a parameter of that name.
[[nodiscard]] bool has_size(const ModelFile& file, const std::string& name);

// Expands parameters, blocks and repeats and connects the graphs. Throws UsageError for a size the model does
// not have, SpecError or ModelError.
[[nodiscard]] Model build_model(const ModelFile& file, const Variant& variant, const Sizes& sizes = {});

// Builds every variant, so that blocks which only some variants use are checked as well. Throws UsageError,
// SpecError or ModelError, also for a block, a parameter or a size that the file itself gives and no variant
// uses.
void require_whole(const ModelFile& file);

// The same model on inputs of other sizes (not parameters): faster than building it again.
[[nodiscard]] Model resized(const Model& model, const Sizes& sizes);

}  // namespace tbdsim
