#include "train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/optimizer.h"
#include "train/terminal.h"

namespace gyre {
namespace {

constexpr const char* count_name = "updates";

}  // namespace

Optimizer::Optimizer(Module& module, double weight_decay, double clip_norm, std::vector<std::string> slots)
    : slot_names_(std::move(slots)), weight_decay_(weight_decay), clip_norm_(clip_norm) {
  for (const Module::NamedParameter& named : module.parameters()) {
    const Variable& variable = named.parameter->variable;
    if (!variable.requires_grad()) {
      ++frozen_tensors_;
      frozen_values_ += variable.data().numel();
      continue;
    }
    rates_.push_back(named.parameter->rate);
    Entry entry{named.name, named.parameter, {}};
    for (std::size_t i = 0; i < slot_names_.size(); ++i) {
      entry.slots.push_back(Tensor::zeros(variable.shape(), variable.dtype(), variable.device()));
    }
    entries_.push_back(std::move(entry));
  }
  std::sort(rates_.begin(), rates_.end());
  rates_.erase(std::unique(rates_.begin(), rates_.end()), rates_.end());
}

StepResult Optimizer::step(double learning_rate, double grad_scale) {
  std::vector<Tensor> gradients;
  for (const Entry& entry : entries_) {
    if (entry.parameter->variable.grad().defined()) gradients.push_back(entry.parameter->variable.grad());
  }
  const double norm = std::abs(grad_scale) * kernels::global_norm(gradients);
  if (!std::isfinite(norm)) return {norm, false};
  if (clip_norm_ > 0 && norm > clip_norm_) grad_scale *= clip_norm_ / norm;
  ++updates_;
  for (const double rate : rates_) {
    update_group(true, rate, learning_rate, grad_scale);
    update_group(false, rate, learning_rate, grad_scale);
  }
  return {norm, true};
}

void Optimizer::update_group(bool decay, double rate, double learning_rate, double grad_scale) {
  std::vector<Tensor> parameters, gradients;
  std::vector<std::vector<Tensor>> slots(slot_names_.size());
  for (const Entry& entry : entries_) {
    const Variable& variable = entry.parameter->variable;
    const bool member = entry.parameter->decay == decay && entry.parameter->rate == rate;
    if (!member || !variable.grad().defined()) continue;
    parameters.push_back(variable.data());
    gradients.push_back(variable.grad());
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i].push_back(entry.slots[i]);
  }
  if (parameters.empty()) return;
  Group group{parameters, gradients, {}, decay ? weight_decay_ : 0};
  for (auto& slot : slots) group.slots.emplace_back(slot);
  update(group, updates_, rate * learning_rate, grad_scale);
}

void Optimizer::zero_grad() {
  for (Entry& entry : entries_) entry.parameter->variable.zero_grad();
}

std::string Optimizer::describe() const {
  std::int64_t tensors[2] = {}, values[2] = {};
  for (const Entry& entry : entries_) {
    ++tensors[entry.parameter->decay];
    values[entry.parameter->decay] += entry.parameter->variable.data().numel();
  }
  const auto group = [&](bool decay) {
    return fmt::format("{} tensor{}, {} values", tensors[decay], tensors[decay] == 1 ? "" : "s",
                       with_commas(values[decay]));
  };
  std::string text = fmt::format("decay: {}; no decay: {}", group(true), group(false));
  if (frozen_tensors_ > 0)
    text += fmt::format("; frozen: {} tensor{}, {} values", frozen_tensors_, frozen_tensors_ == 1 ? "" : "s",
                        with_commas(frozen_values_));
  if (!rates_.empty() && rates_.front() != rates_.back())
    text += fmt::format("; layer decay down to {:.3g} of the learning rate", rates_.front());
  return text;
}

TensorMap Optimizer::state() const {
  TensorMap state;
  for (const Entry& entry : entries_) {
    for (std::size_t i = 0; i < slot_names_.size(); ++i)
      state[slot_names_[i] + "." + entry.name] = entry.slots[i];
  }
  state[count_name] = Tensor::from({updates_}, {1});
  return state;
}

void Optimizer::load_state(const TensorMap& given) {
  const TensorMap own = state();
  for (const auto& [name, tensor] : own) {
    const auto found = given.find(name);
    require(found != given.end(), "{} state: tensor {} is missing", this->name(), name);
    const Tensor& source = found->second;
    require(source.shape() == tensor.shape(), "{} state: tensor {} has shape {}, not {}", this->name(), name,
            source.shape().str(), tensor.shape().str());
    require(is_floating(source.dtype()) == is_floating(tensor.dtype()),
            "{} state: tensor {} has type {}, not {}", this->name(), name, source.dtype(), tensor.dtype());
  }
  for (const auto& [name, tensor] : given) {
    require(own.contains(name), "{} state: unknown tensor {}", this->name(), name);
  }
  const auto updates = static_cast<std::int64_t>(given.at(count_name).item());
  require(updates >= 0, "{} state: update count {} is negative", this->name(), updates);
  for (Entry& entry : entries_) {
    for (std::size_t i = 0; i < slot_names_.size(); ++i) {
      entry.slots[i].copy_(given.at(slot_names_[i] + "." + entry.name).to(entry.slots[i].device()));
    }
  }
  updates_ = updates;
}

AdamW::AdamW(Module& module, const OptimizerConfig& config, double clip_norm)
    : Optimizer(module, config.weight_decay, clip_norm, {"exp_avg", "exp_avg_sq"}),
      beta1_(config.beta1),
      beta2_(config.beta2),
      eps_(config.eps) {}

void AdamW::update(const Group& group, std::int64_t update, double learning_rate, double grad_scale) {
  kernels::AdamWStep step;
  step.lr = learning_rate;
  step.beta1 = beta1_;
  step.beta2 = beta2_;
  step.eps = eps_;
  step.weight_decay = group.weight_decay;
  step.step = update;
  step.grad_scale = grad_scale;
  kernels::adamw_step(group.parameters, group.gradients, group.slots[0], group.slots[1], step);
}

Sgd::Sgd(Module& module, const OptimizerConfig& config, double clip_norm)
    : Optimizer(module, config.weight_decay, clip_norm, {"momentum"}),
      momentum_(config.momentum),
      nesterov_(config.nesterov) {}

void Sgd::update(const Group& group, std::int64_t, double learning_rate, double grad_scale) {
  kernels::SgdStep step;
  step.lr = learning_rate;
  step.momentum = momentum_;
  step.nesterov = nesterov_;
  step.weight_decay = group.weight_decay;
  step.grad_scale = grad_scale;
  kernels::sgd_step(group.parameters, group.gradients, group.slots[0], step);
}

std::unique_ptr<Optimizer> make_optimizer(Module& module, const OptimizerConfig& config, double clip_norm) {
  if (config.name == "adamw") return std::make_unique<AdamW>(module, config, clip_norm);
  if (config.name == "sgd") return std::make_unique<Sgd>(module, config, clip_norm);
  throw ValueError(fmt::format("unknown optimizer '{}'; known: adamw, sgd", config.name));
}

}  // namespace gyre
