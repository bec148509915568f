// The common part of recurrent layers: from a sequence {steps, features} to {steps, hidden}, either step by
// step (CellStep) or, where the framework and the cell allow it, in one library call. Keys:
//
//   hidden       units
//   feed (0)     features of a further input of every step: what the step before put out, or made of it
//   biases (2)   2: input and state have weights and a bias each (cuDNN, MXNet, PyTorch); 1: one matrix over
//                [x, h] and one bias (TensorFlow)
//   reverse      from the last step to the first; costs the same
//   alone (true) false: the framework calls the library for it together with the other direction or further
//                layers, which one persistent kernel does not compute
//   recurrence   cells or fused, whatever the framework does: a decoder that waits for its attention is cells
//
// Further inputs of the shape {hidden} are states before the first step.
#pragma once

#include <optional>

#include "graphs/layers/cell_step.h"
#include "graphs/recurrent_call.h"

namespace tbdsim {

class SpecMap;

class RecurrentLayer : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override;
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override;
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override;
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override;
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override;
  [[nodiscard]] std::int64_t output_pieces(const LayerContext& site, const Lowering& lowering) const override;

 protected:
  struct Cell {
    std::string_view op;  // of the library call
    std::int64_t gates = 0;
    std::int64_t states = 0;  // carried from step to step
    std::int64_t kept = 0;    // vectors of `hidden` that the library keeps of every step, besides the output
  };
  struct Kept {  // of a step for the backward pass
    std::int64_t width = 0;
    bool inputs = false;
    bool output = false;
  };

  RecurrentLayer(const Cell& cell, SpecMap& keys);

  [[nodiscard]] std::int64_t hidden() const { return hidden_; }
  [[nodiscard]] std::int64_t fed() const { return fed_; }
  [[nodiscard]] std::int64_t biases() const { return biases_; }
  [[nodiscard]] std::int64_t width(
      std::span<const Shape> inputs) const;  // of a step's input, with what is fed
  // The first `sequences` inputs are sequences of the same length, the others states.
  void require_sequences(std::span<const Shape> inputs, std::size_t sequences) const;

  [[nodiscard]] virtual bool fits_library() const { return fed_ == 0; }
  virtual void step_forward(const LayerContext& site, CellStep& step) const = 0;
  virtual void step_backward(const LayerContext& site, CellStep& step) const = 0;
  [[nodiscard]] virtual Kept kept_by_step(const LayerContext& site, const Lowering& lowering) const = 0;

 private:
  [[nodiscard]] bool fused(const Lowering& lowering) const;
  [[nodiscard]] Kernel library_call(const LayerContext& site, const LoweringContext& how, Phase phase) const;

  Cell cell_;
  std::int64_t hidden_;
  std::int64_t fed_ = 0;
  std::int64_t biases_ = 2;
  bool alone_ = true;
  std::optional<Recurrence> recurrence_;
};

}  // namespace tbdsim
