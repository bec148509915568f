#include "simulate/layout/layout.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

// The divisor of `number` that is nearest to `wanted`, the smaller of two.
std::int64_t nearest_divisor(std::int64_t number, std::int64_t wanted) {
  std::int64_t best = 1;
  for (std::int64_t d = 1; d <= number / d; ++d) {
    if (number % d != 0) continue;
    for (const std::int64_t divisor : {d, number / d}) {
      const std::int64_t nearer = std::abs(divisor - wanted) - std::abs(best - wanted);
      if (nearer < 0 || (nearer == 0 && divisor < best)) best = divisor;
    }
  }
  return best;
}

// Says what is wrong with a layout; nothing for a legal one.
class Check {
 public:
  Check(const ParallelLayout& layout, const DecoderShape& shape, const Job& job)
      : l_(layout), s_(shape), j_(job) {}

  std::optional<std::string> problem(bool told) {
    told_ = told;
    if (!positive() || !ranks() || !heads() || !layers() || !batch() || !sequence() || !experts() ||
        !zero() || !recomputation())
      return text_;
    return std::nullopt;
  }

 private:
  template <class... Args>
  bool wrong(std::string_view format, const Args&... args) {
    text_ = told_ ? fmt::vformat(format, fmt::make_format_args(args...)) : "illegal";
    return false;
  }

  // nearest_divisor(), where it is going to be told.
  [[nodiscard]] std::int64_t nearest(std::int64_t number, std::int64_t wanted) const {
    return told_ ? nearest_divisor(number, wanted) : 0;
  }

  bool divides(std::string_view what, std::int64_t number, std::string_view by, std::int64_t divisor) {
    if (number % divisor == 0) return true;
    return wrong("{} {} {} cannot be divided by {} {}; the nearest that divides is {} {}", s_.name, number,
                 what, by, divisor, by, nearest(number, divisor));
  }

  bool positive() {
    const std::pair<std::string_view, std::int64_t> numbers[] = {{"dp", l_.dp},
                                                                 {"tp", l_.tp},
                                                                 {"pp", l_.pp},
                                                                 {"vp", l_.vp},
                                                                 {"cp", l_.cp},
                                                                 {"ep", l_.ep},
                                                                 {"etp", l_.etp},
                                                                 {"micro-batch", l_.micro_batch},
                                                                 {"GPUs", j_.gpus},
                                                                 {"global batch", j_.global_batch},
                                                                 {"sequence length", j_.sequence}};
    for (const auto& [name, number] : numbers) {
      if (number < 1 || number > kMostRanks)
        return wrong("{} {} is out of range; expected 1 to {}", name, number, kMostRanks);
    }
    return true;
  }

  bool ranks() {
    // Each factor is at most 1e7: the product fits in a double's whole numbers only after this check.
    const double ranks = static_cast<double>(l_.dp) * static_cast<double>(l_.tp) *
                         static_cast<double>(l_.pp) * static_cast<double>(l_.cp);
    if (ranks == static_cast<double>(j_.gpus)) return true;
    const double model = ranks / static_cast<double>(l_.dp);
    const bool fits = model <= static_cast<double>(j_.gpus) && j_.gpus % l_.model_ranks() == 0;
    const std::string as = fits ? fmt::format(", as dp {}", j_.gpus / l_.model_ranks()) : "";
    return wrong("dp {} x tp {} x pp {} x cp {} are {:.0f} ranks on {} GPUs; expected as many of both{}",
                 l_.dp, l_.tp, l_.pp, l_.cp, ranks, j_.gpus, as);
  }

  bool heads() {
    if (!divides("heads", s_.heads, "tp", l_.tp)) return false;
    if (s_.kv_heads % l_.tp != 0 && l_.tp % s_.kv_heads != 0)
      return divides("heads of keys and values", s_.kv_heads, "tp", l_.tp);
    if (s_.ffn > 0 && !divides("inner features", s_.ffn, "tp", l_.tp)) return false;
    return divides("features", s_.hidden, "tp", l_.tp);
  }

  bool layers() {
    const double chunks = static_cast<double>(l_.pp) * static_cast<double>(l_.vp);
    if (l_.vp > 1 && l_.pp == 1) return wrong("vp {} without a pipeline; expected pp above 1 or vp 1", l_.vp);
    // So many chunks as layers, embedding and logits together leave the first and the last without a layer.
    const auto pieces = static_cast<double>(s_.layers) + 2;
    if (chunks > static_cast<double>(s_.layers) && chunks != pieces)
      return wrong("pp {} x vp {} are more than the {} layers of {}; the nearest that divides is {}", l_.pp,
                   l_.vp, s_.layers, s_.name, s_.layers);
    const std::int64_t count = l_.pp * l_.vp;
    if (l_.uneven || s_.layers % count == 0 || ((s_.layers + 2) % count == 0 && count > 2)) return true;
    return wrong(
        "{} {} layers cannot be divided by pp {} x vp {} = {}; the nearest that divides is {}, or uneven "
        "true",
        s_.name, s_.layers, l_.pp, l_.vp, count, nearest(s_.layers, count));
  }

  bool batch() {
    constexpr std::int64_t kMostTokens = std::int64_t{1} << 26;  // of a pass: products of sizes fit 64 bits
    if (l_.micro_batch > kMostTokens / j_.sequence)
      return wrong("micro-batch {} x sequence length {} are more than {} tokens in one pass", l_.micro_batch,
                   j_.sequence, kMostTokens);
    const double together = static_cast<double>(l_.dp) * static_cast<double>(l_.micro_batch);
    if (together > static_cast<double>(j_.global_batch) || j_.global_batch % (l_.dp * l_.micro_batch) != 0)
      return wrong(
          "global batch {} cannot be divided by dp {} x micro-batch {} = {:.0f}; expected a multiple, as "
          "{:.0f}",
          j_.global_batch, l_.dp, l_.micro_batch, together,
          together * std::ceil(static_cast<double>(j_.global_batch) / together));
    const std::int64_t passes = micro_batches(l_, j_);
    if (l_.vp > 1 && passes % l_.pp != 0)
      return wrong(
          "vp {} needs micro-batches in multiples of pp {}, not {} (global batch {} / dp {} / "
          "micro-batch {}); the nearest that goes is a global batch of {}",
          l_.vp, l_.pp, passes, j_.global_batch, l_.dp, l_.micro_batch,
          (passes + l_.pp - 1) / l_.pp * l_.pp * l_.dp * l_.micro_batch);
    if (l_.vp > 1 && l_.order != PipelineOrder::one_f_one_b) return wrong("vp {} goes with 1f1b only", l_.vp);
    return true;
  }

  bool sequence() {
    const bool ring = l_.context == ContextExchange::ring;
    if (l_.cp > 1 && !ring) {
      if (!divides("heads", s_.heads, "tp x cp", l_.tp * l_.cp)) return false;
      if (!divides("heads of keys and values", s_.kv_heads, "tp x cp", l_.tp * l_.cp)) return false;
      if (j_.sequence % l_.cp != 0)
        return wrong("sequence length {} cannot be divided by cp {}; the nearest that divides is cp {}",
                     j_.sequence, l_.cp, nearest(j_.sequence, l_.cp));
    }
    if (l_.cp > 1 && ring && j_.sequence % (2 * l_.cp) != 0)
      return wrong(
          "sequence length {} cannot be divided into 2 x cp {} pieces; the nearest that divides is cp {}",
          j_.sequence, l_.cp, j_.sequence % 2 == 0 ? nearest(j_.sequence / 2, l_.cp) : 1);
    if (l_.sequence_parallel && (j_.sequence / l_.cp) % l_.tp != 0)
      return wrong("sequence length {} / cp {} cannot be divided by tp {}; the nearest that divides is tp {}",
                   j_.sequence, l_.cp, l_.tp, nearest(j_.sequence / l_.cp, l_.tp));
    if (l_.sequence_parallel && l_.tp == 1)
      return wrong("sequence parallel with tp {}; expected tp above 1", l_.tp);
    return true;
  }

  bool experts() {
    if (l_.ep == 1 && l_.etp == 1) return true;
    if (!s_.mixture())
      return wrong("{} {} but {} has no experts", l_.ep > 1 ? "ep" : "etp", l_.ep > 1 ? l_.ep : l_.etp,
                   s_.name);
    if (!divides("experts", s_.experts, "ep", l_.ep)) return false;
    if (!divides("inner features of an expert", s_.expert_ffn, "etp", l_.etp)) return false;
    const std::int64_t over = l_.dp * l_.cp * l_.tp;
    if (over % l_.ep != 0)
      return wrong("ep {} does not divide dp {} x cp {} x tp {} = {}; the nearest that divides is {}", l_.ep,
                   l_.dp, l_.cp, l_.tp, over, nearest(over, l_.ep));
    if (over / l_.ep % l_.etp == 0) return true;
    return wrong("etp {} does not divide dp {} x cp {} x tp {} / ep {} = {}; the nearest that divides is {}",
                 l_.etp, l_.dp, l_.cp, l_.tp, l_.ep, over / l_.ep, nearest(over / l_.ep, l_.etp));
  }

  bool zero() {
    if (l_.zero < 0 || l_.zero > 3) return wrong("ZeRO stage {} is out of range; expected 0 to 3", l_.zero);
    if (l_.shard == 0) return true;
    if (l_.shard > 0 && l_.replicas() % l_.shard == 0) return true;
    return wrong("shards over {} ranks do not divide dp {} x cp {} = {}; the nearest that divides is {}",
                 l_.shard, l_.dp, l_.cp, l_.replicas(), nearest(l_.replicas(), l_.shard));
  }

  bool recomputation() {
    if (l_.recompute_layers < 0 || l_.recompute_layers > s_.layers)
      return wrong("recompute_layers {} is out of range; {} has {} layers", l_.recompute_layers, s_.name,
                   s_.layers);
    const std::string_view chosen = kRecomputationNames[static_cast<std::size_t>(l_.recompute)];
    if (l_.recompute_layers > 0 && l_.recompute != Recomputation::full)
      return wrong("recompute_layers {} with recompute {}; expected full", l_.recompute_layers, chosen);
    if (l_.modules == kDefaultModules) return true;
    if (l_.recompute != Recomputation::selective)
      return wrong("recompute_modules {} with recompute {}; expected selective", to_text(l_.modules), chosen);
    if (l_.modules.has(RecomputeModule::mla_up_proj) && s_.kv_rank == 0)
      return wrong("recompute_modules mla_up_proj but {} has no low-rank keys and values", s_.name);
    if (l_.modules.meets({RecomputeModule::moe, RecomputeModule::moe_act}) && !s_.mixture())
      return wrong("recompute_modules {} but {} has no experts", to_text(l_.modules), s_.name);
    return true;
  }

  const ParallelLayout& l_;
  const DecoderShape& s_;
  const Job& j_;
  bool told_ = true;
  std::string text_;
};

}  // namespace

ParallelLayout legal_layout(ParallelLayout layout, const DecoderShape& shape, const Job& job) {
  if (layout.dp == 0) {
    const double model =
        static_cast<double>(layout.tp) * static_cast<double>(layout.pp) * static_cast<double>(layout.cp);
    if (model >= 1 && model <= static_cast<double>(job.gpus) && job.gpus % layout.model_ranks() == 0) {
      layout.dp = job.gpus / layout.model_ranks();
    } else {
      throw UsageError(fmt::format(
          "tp {} x pp {} x cp {} = {:.0f} ranks do not divide {} GPUs; the nearest that divides is {}",
          layout.tp, layout.pp, layout.cp, model, job.gpus,
          nearest_divisor(job.gpus, model > static_cast<double>(kMostRanks)
                                        ? kMostRanks
                                        : static_cast<std::int64_t>(model))));
    }
  }
  if (const auto problem = Check(layout, shape, job).problem(true)) throw UsageError(*problem);
  return layout;
}

bool is_legal(const ParallelLayout& layout, const DecoderShape& shape, const Job& job) {
  return !Check(layout, shape, job).problem(false);
}

std::int64_t layers_of_chunk(const ParallelLayout& layout, std::int64_t chunk, std::int64_t layers) {
  const std::int64_t chunks = layout.pp * layout.vp;
  if (layers % chunks == 0) return layers / chunks;
  if ((layers + 2) % chunks == 0 && chunks > 2 && !layout.uneven)
    return (layers + 2) / chunks - (chunk == 0 || chunk == chunks - 1 ? 1 : 0);
  return layers / chunks + (chunk < layers % chunks ? 1 : 0);
}

std::string to_text(const ParallelLayout& l) {
  std::string text = fmt::format("dp {}", l.dp);
  const std::pair<std::string_view, std::int64_t> numbers[] = {{"tp", l.tp}, {"pp", l.pp}, {"vp", l.vp},
                                                               {"cp", l.cp}, {"ep", l.ep}, {"etp", l.etp}};
  for (const auto& [name, number] : numbers) {
    if (number > 1) text += fmt::format(" {} {}", name, number);
  }
  if (l.cp > 1 && l.context == ContextExchange::all_to_all) text += " a2a";
  text += fmt::format(" mbs {}", l.micro_batch);
  if (l.zero > 0) text += fmt::format(" zero {}", l.zero);
  if (l.shard > 0) text += fmt::format(" over {}", l.shard);
  if (l.zero == 3 && !l.reshard) text += " kept";
  if (l.zero == 3 && l.prefetch != 1) text += fmt::format(" prefetch {}", l.prefetch);
  if (l.sequence_parallel) text += " sp";
  if (l.recompute != Recomputation::none)
    text += fmt::format(" {}", kRecomputationNames[static_cast<std::size_t>(l.recompute)]);
  if (l.recompute == Recomputation::selective && l.modules != kDefaultModules)
    text += fmt::format(" of {}", to_text(l.modules));
  if (l.recompute_layers > 0) text += fmt::format(" of {} layers", l.recompute_layers);
  if (l.order != PipelineOrder::one_f_one_b && l.pp > 1)
    text += fmt::format(" {}", kPipelineOrderNames[static_cast<std::size_t>(l.order)]);
  return text;
}

}  // namespace tbdsim
