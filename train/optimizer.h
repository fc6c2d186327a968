#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/safetensors.h"
#include "layers/module.h"
#include "train/config.h"

namespace gyre {

/// What one call of Optimizer::step did.
struct StepResult {
  double grad_norm = 0;  ///< before clipping, after grad_scale
  bool stepped = true;   ///< false: the norm was not finite and nothing changed
};

/// Updates the parameters of a module from their gradients, each with its share of the learning rate
/// (Parameter::rate); owns the moments. Parameters that require no gradient have none and stay.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update. The gradients count as multiplied by `grad_scale` (1 / accumulated micro-batches), then are
  /// clipped to the norm `clip_norm` (0: not). Parameters without a gradient stay as they are.
  StepResult step(double learning_rate, double grad_scale = 1);
  void zero_grad();

  virtual std::string_view name() const = 0;
  /// Updates done.
  std::int64_t updates() const { return updates_; }
  /// "decay: 12 tensors, 148,224 values; no decay: 30 tensors, 6,144 values", then what is frozen and the
  /// smallest share of the learning rate, if any.
  std::string describe() const;

  /// Moments as "<slot>.<parameter>" and the update count as "updates" (i64 [1]): views, not copies.
  TensorMap state() const;
  /// Copies `state` in from any device. Throws Error naming the first missing, unknown or misshapen tensor
  /// before anything is changed.
  void load_state(const TensorMap& state);

 protected:
  Optimizer(Module& module, double weight_decay, double clip_norm, std::vector<std::string> slots);

  /// The parameters of one decay group that have gradients; the spans run in parallel.
  struct Group {
    std::span<Tensor> parameters;
    std::span<const Tensor> gradients;
    std::vector<std::span<Tensor>> slots;  ///< in the order given to the constructor
    double weight_decay;
  };
  /// One update of `group`, number `update` (1-based).
  virtual void update(const Group& group, std::int64_t update, double learning_rate, double grad_scale) = 0;

 private:
  struct Entry {
    std::string name;
    Parameter* parameter;
    std::vector<Tensor> slots;
  };
  void update_group(bool decay, double rate, double learning_rate, double grad_scale);

  std::vector<Entry> entries_;
  std::vector<double> rates_;  ///< distinct Parameter::rate, ascending
  std::int64_t frozen_tensors_ = 0, frozen_values_ = 0;
  std::vector<std::string> slot_names_;
  double weight_decay_;
  double clip_norm_;
  std::int64_t updates_ = 0;
};

/// Adam with decoupled weight decay (Loshchilov & Hutter, arXiv 1711.05101); slots exp_avg and exp_avg_sq.
class AdamW : public Optimizer {
 public:
  AdamW(Module& module, const OptimizerConfig& config, double clip_norm);
  std::string_view name() const override { return "adamw"; }

 private:
  void update(const Group& group, std::int64_t update, double learning_rate, double grad_scale) override;
  double beta1_, beta2_, eps_;
};

/// Gradient descent with momentum (Nesterov's on request) and L2 decay; slot momentum.
class Sgd : public Optimizer {
 public:
  Sgd(Module& module, const OptimizerConfig& config, double clip_norm);
  std::string_view name() const override { return "sgd"; }

 private:
  void update(const Group& group, std::int64_t update, double learning_rate, double grad_scale) override;
  double momentum_;
  bool nesterov_;
};

/// By `config.name`; throws ValueError for an unknown one. `module` must outlive the optimiser.
std::unique_ptr<Optimizer> make_optimizer(Module& module, const OptimizerConfig& config, double clip_norm);

}  // namespace gyre
