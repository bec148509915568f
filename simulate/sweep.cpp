#include "simulate/sweep.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"
#include "simulate/scenario_keys.h"

namespace tbdsim {
namespace {

SpecChange change_of(const SweepAxis& axis, const std::string& value) {
  return parse_change(axis.key() + "=" + value);
}

bool changes_gpu(const SweepAxis& axis) {
  return axis.key().starts_with("gpu.") || axis.key().starts_with("link.");
}

const SweepAxis* axis_of(const Sweep& sweep, std::string_view key) {
  const auto found = std::find_if(sweep.axes.begin(), sweep.axes.end(),
                                  [&](const SweepAxis& axis) { return axis.key() == key; });
  return found == sweep.axes.end() ? nullptr : &*found;
}

void require_axes(const Sweep& sweep) {
  for (const char* key : {"model", "framework", "gpu"}) {
    if (axis_of(sweep, key) == nullptr)
      throw UsageError(fmt::format("a sweep needs a {0}; expected --{0} with one or several", key));
  }
  const bool batch = axis_of(sweep, "batch") != nullptr;
  if (batch == (axis_of(sweep, "tokens") != nullptr)) {
    throw UsageError(batch ? "batch and tokens are both given; expected one of them"
                           : "a sweep needs a batch; expected --batch with one or several, as 8,16 or 1:200");
  }
  for (const SweepAxis& axis : sweep.axes) {
    const auto twice = std::count_if(sweep.axes.begin(), sweep.axes.end(),
                                     [&](const SweepAxis& other) { return other.key() == axis.key(); });
    if (twice > 1)
      throw UsageError(axis.key() + " is given twice; expected one axis with all its values, as 8,16,32");
  }
}

// A name that is wrong at every point is wrong as such.
void check_axis(const Sweep& sweep, const SweepAxis& axis, Library& library) {
  if (const ScenarioKey* key = find_scenario_key(axis.key())) {
    if (key->check == nullptr) {
      Scenario any;
      for (const double i : {0.0, axis.size() - 1}) key->set(any, axis.value(static_cast<std::int64_t>(i)));
      return;
    }
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(axis.size()); ++i)
      key->check(library, axis.value(i));
    return;
  }
  if (axis.key().find('.') == std::string::npos)
    throw UsageError("unknown axis " + in_quotes(axis.key()) +
                     did_you_mean(axis.key(), scenario_key_names()) + "; expected one of " +
                     joined(scenario_key_names()) + ", or a key of a spec as gpu.sm_count");
  for (const double i : {0.0, axis.size() - 1}) {
    Library changed(library, {change_of(axis, axis.value(static_cast<std::int64_t>(i)))});
    for (const char* key : {"gpu", "framework", "model", "dataset"}) {
      if (const SweepAxis* names = axis_of(sweep, key))
        find_scenario_key(key)->check(changed, names->value(0));
    }
  }
}

}  // namespace

void check(const Sweep& sweep, Library& library) {
  require_axes(sweep);
  double points = 1;
  for (const SweepAxis& axis : sweep.axes) points *= axis.size();
  if (points > static_cast<double>(kMostPoints)) {
    throw UsageError(
        fmt::format("the axes make {:.0f} points; expected at most {}: fewer values, or larger steps", points,
                    kMostPoints));
  }
  for (const SweepAxis& axis : sweep.axes) check_axis(sweep, axis, library);
}

std::int64_t points_of(const Sweep& sweep) {
  std::int64_t points = 1;
  for (const SweepAxis& axis : sweep.axes) points *= static_cast<std::int64_t>(axis.size());
  return points;
}

// The libraries and cards made lately are kept: axes that vary fast come back to the same ones.
struct PointPredictor::State {
  static constexpr std::size_t kMostCards = 4'096;
  static constexpr std::size_t kMostLibraries = 16;

  const Sweep& sweep;
  Library& library;
  std::vector<std::string> values{};  // of the axes, at the point
  std::map<std::int64_t, std::unique_ptr<Library>> libraries{};
  std::map<std::int64_t, std::shared_ptr<const GpuSpec>> cards{};
  std::map<std::string, SpecTree> files{};  // of cards
  std::int64_t predicted = -1;              // number of the point without its changes of the GPU
  std::optional<Prediction> prediction{};
  std::shared_ptr<const GpuSpec> card{};  // of the prediction

  // The number of the point if all axes but those were at their first value.
  template <class Which>
  [[nodiscard]] std::int64_t part_of(std::int64_t point, Which which) const {
    std::int64_t part = 0, stride = 1;
    for (std::size_t a = sweep.axes.size(); a-- > 0;) {
      const auto size = static_cast<std::int64_t>(sweep.axes[a].size());
      if (which(sweep.axes[a])) part += point % size * stride;
      point /= size;
      stride *= size;
    }
    return part;
  }

  [[nodiscard]] Scenario scenario() const {
    Scenario scenario;
    for (std::size_t a = 0; a < values.size(); ++a) {
      if (const ScenarioKey* key = find_scenario_key(sweep.axes[a].key())) key->set(scenario, values[a]);
    }
    return scenario;
  }

  template <class Which>
  [[nodiscard]] SpecChanges changes(Which which) const {
    SpecChanges all;
    for (std::size_t a = 0; a < values.size(); ++a) {
      const SweepAxis& axis = sweep.axes[a];
      if (find_scenario_key(axis.key()) == nullptr && which(axis)) all.push_back(change_of(axis, values[a]));
    }
    return all;
  }

  // As changed by all axes but those of the GPU.
  Library& library_at(std::int64_t point) {
    const auto other = [](const SweepAxis& axis) {
      return find_scenario_key(axis.key()) == nullptr && !changes_gpu(axis);
    };
    const SpecChanges made = changes(other);
    if (made.empty()) return library;
    if (libraries.size() > kMostLibraries) {
      predicted = -1;  // it refers to one of them
      libraries.clear();
    }
    auto& changed = libraries[part_of(point, other)];
    if (!changed) changed = std::make_unique<Library>(library, made);
    return *changed;
  }

  GpuSpec read_card(const std::string& name, const SpecChanges& made) {
    const bool links = std::any_of(made.begin(), made.end(), [](const SpecChange& change) {
      return change.spec == "link" || change.path[0] == "bus" || change.path[0] == "nvlink";
    });
    if (links) return Library(library, made).gpu(name);
    const auto file = files.find(name);
    const SpecTree& tree =
        file != files.end()
            ? file->second
            : files.emplace(name, read_spec_file(library.catalog().find(Kind::gpu, name))).first->second;
    return changed_gpu(tree, library.gpu(name), made);
  }

  std::shared_ptr<const GpuSpec> card_at(std::int64_t point, const std::string& name,
                                         const SpecChanges& made) {
    if (cards.size() > kMostCards) cards.clear();
    auto& changed =
        cards[part_of(point, [](const SweepAxis& axis) { return axis.key() == "gpu" || changes_gpu(axis); })];
    if (!changed) changed = std::make_shared<const GpuSpec>(read_card(name, made));
    return changed;
  }

  const Prediction& predict_at(std::int64_t point) {
    const Scenario wanted = scenario();
    Library& changed = library_at(point);
    const SpecChanges of_gpu = changes(changes_gpu);
    const std::int64_t base = part_of(point, [](const SweepAxis& axis) { return !changes_gpu(axis); });
    std::shared_ptr<const GpuSpec> new_card;
    if (!of_gpu.empty()) {
      new_card = card_at(point, wanted.gpu, of_gpu);
      if (!differ_in_rates_only(*new_card, library.gpu(wanted.gpu))) {
        throw UsageError(
            "another architecture, or arithmetic of another type, is another card; expected a file of its "
            "own");
      }
    }
    if (base != predicted || !prediction) {
      predicted = -1;
      prediction = predict(wanted, changed);
      predicted = base;
    }
    if (new_card) {
      predicted = -1;  // unless the next line ends well
      prediction = with_rates(*std::move(prediction), *new_card);
      predicted = base;
      card = new_card;
    }
    return *prediction;
  }
};

PointPredictor::PointPredictor(const Sweep& sweep, Library& library)
    : state_(std::make_unique<State>(State{sweep, library})) {}
PointPredictor::~PointPredictor() = default;
PointPredictor::PointPredictor(PointPredictor&&) noexcept = default;

SweepPoint PointPredictor::at(std::int64_t point) {
  State& s = *state_;
  SweepPoint result;
  s.values.resize(s.sweep.axes.size());
  std::int64_t rest = point;
  for (std::size_t a = s.values.size(); a-- > 0;) {
    const auto size = static_cast<std::int64_t>(s.sweep.axes[a].size());
    s.values[a] = s.sweep.axes[a].value(rest % size);
    rest /= size;
  }
  result.values = s.values;
  const std::size_t shown = s.sweep.metrics.size();
  result.metrics.resize(shown + s.sweep.judged.size());
  try {
    const Prediction& p = s.predict_at(point);
    for (std::size_t m = 0; m < result.metrics.size(); ++m)
      result.metrics[m] = (m < shown ? s.sweep.metrics[m] : s.sweep.judged[m - shown])->value(p);
    result.status = p.fits ? "ok" : "out of memory";
  } catch (const Error& wrong) {
    result.status = wrong.what();
  }
  return result;
}

}  // namespace tbdsim
