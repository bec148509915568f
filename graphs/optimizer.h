// Optimizers: the state, arithmetic and memory traffic of each for one parameter. State and arithmetic are
// fp32.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tbdsim {

struct Optimizer {
  std::string_view name;
  std::int64_t
      state_words;     // words of optimizer state for each parameter, of 4 B, or as the precision has it
  std::int64_t flops;  // for each parameter
  std::string_view rule;
  // 4 B words for each parameter read and written in addition to one pass over gradient, parameter and state.
  std::int64_t further_reads = 0;
  std::int64_t further_writes = 0;
  // 0: the framework's own kernels. 1: a fused kernel of the program over all tensors, which sets gradients
  // to None afterwards (apex). More: that many element-wise operators of the program for each tensor, after
  // its gradient is clipped by its norm.
  std::int64_t own_operators = 0;
  std::int64_t word_bytes = 0;  // of a word of state, whatever the precision; 0: as the precision has it
  // Has a form that reads and writes only the rows of a table that got a gradient.
  bool sparse_form = false;
  // Matrices of a network's layers are updated by their momentum made orthogonal (orthogonal_update.h), other
  // parameters by AdamW.
  bool orthogonal = false;
  // True where a table has one word of state for each row instead of one for each parameter.
  bool row_state = false;
};

// Bytes of optimizer state for each parameter where a word has `word_bytes` unless the optimizer says
// otherwise.
[[nodiscard]] constexpr std::int64_t state_bytes(const Optimizer& optimizer, std::int64_t word_bytes) {
  return optimizer.state_words * (optimizer.word_bytes > 0 ? optimizer.word_bytes : word_bytes);
}

// "none" is for benchmarks that time forward and backward only.
inline constexpr std::array<Optimizer, 17> kOptimizers = {{
    {"none", 0, 0, "no update", 0, 0, 0, 0, true},
    {"sgd", 0, 2, "w -= lr g", 0, 0, 0, 0, true},
    {"momentum", 1, 4, "v = mu v + g; w -= lr v"},
    {"momentum_decay", 1, 6, "v = mu v + g + decay w; w -= lr v"},
    {"nesterov", 1, 6, "v = mu v + g; w -= lr (g + mu v)"},
    {"adam", 2, 11, "m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w -= lr m / (sqrt v + eps)"},
    // NVIDIA DeepLearningExamples BERT: optimization.py BertAdam (clip_grad_norm_ of each parameter; m.mul_,
    // add_; v.mul_, addcmul_; sqrt, + eps, m /; decay w, +=; lr *, negated, w.add_: 17 words read, 12
    // written), and apex FusedAdam under mixed precision.
    {"bert_adam", 2, 15, "adam with decay, twelve operators for each parameter", 13, 9, 12},
    // Dettmers et al., arXiv 2110.02861: states of a byte and a scale for each block of 2048, which is left
    // out.
    {"adam_8bit", 2, 21, "adam with states of one byte, in one kernel over all parameters", 0, 0, 1, 1},
    // Chen et al., arXiv 2302.06675.
    {"lion", 1, 9, "u = sign(b1 m + (1-b1) g); m = b2 m + (1-b2) g; w -= lr (u + lambda w)"},
    {"fused_adam", 2, 11, "adam in one kernel over all parameters", 0, 0, 1},
    // You et al., arXiv 1904.00962, as NVIDIA apex FusedLAMB runs it: norm of all gradients; norm of the
    // parameters; the update u, written over the gradient; its norm; the step. Adam's work and for g's norm
    // and scaling 3, decay 2, norms of w and u 4.
    {"lamb", 2, 20, "u = adam + decay w; w -= lr |w| / |u| u", 5, 1, 1},
    // Loshchilov and Hutter, arXiv 1711.05101, as torch.optim.AdamW.
    {"adamw", 2, 13, "adam; w -= lr decay w beforehand"},
    // Hinton's running mean of squares, with momentum, as torch.optim.RMSprop.
    {"rmsprop", 2, 10, "s = a s + (1-a) g^2; v = mu v + g / (sqrt s + eps); w -= lr v"},
    // Duchi, Hazan and Singer, JMLR 12 (2011), as torch.optim.Adagrad and HugeCTR's AdaGrad.
    {"adagrad", 1, 6, "s += g^2; w -= lr g / (sqrt s + eps)", 0, 0, 0, 0, true},
    // FBGEMM's EXACT_ROWWISE_ADAGRAD (pytorch/FBGEMM, fbgemm_gpu/codegen/genscript/optimizers.py): rows of
    // tables by the sum of their gradients' mean squares, other parameters by Adagrad.
    {"rowwise_adagrad", 1, 6, "adagrad; s of a table's row += mean of its g^2", 0, 0, 0, 0, true, false,
     true},
    // Shazeer and Stern, arXiv 1804.04235, without momentum: a word for each row and each column of a matrix,
    // which is left out. As one kernel it would read the gradient twice more, for both sums and the update's
    // norm.
    {"adafactor", 0, 10, "r, c = means of g^2 by rows, columns; u = g / sqrt(r c); w -= lr u / max(1, rms u)",
     2, 0},
    // Jordan et al., 2024; Liu et al., arXiv 2502.16982.
    {"muon", 1, 5, "m = mu m + g; w -= lr orthogonal(g + mu m), in five steps of Newton-Schulz", 0, 0, 0, 0,
     false, true},
}};

// Gradient clipping before an update. norm: all gradients are scaled so that their norm, or the norm of each,
// is below a bound; value: every element is kept between bounds.
enum class Clip { none, norm, value };
inline constexpr std::array<std::string_view, 3> kClipNames = {"none", "norm", "value"};

}  // namespace tbdsim
