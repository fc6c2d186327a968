#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/variable.h"
#include "core/safetensors.h"

namespace gyre {

/// A trainable leaf of a module tree.
struct Parameter {
  Variable variable;
  bool decay =
      true;         ///< weight decay applies; false for 1-D tensors, biases, position tables and class tokens
  double rate = 1;  ///< times the learning rate: layer-wise decay
};

/// A node of the layer tree: owns its children and parameters; names join with dots
/// ("blocks.0.attn.qkv.weight").
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  virtual Variable forward(const Variable& x) = 0;
  /// forward(), seen by the ForwardObserver of the thread.
  Variable operator()(const Variable& x);
  /// One word for tables and messages: "Linear", "EqLinear".
  virtual std::string_view kind() const = 0;
  /// Shapes and settings in one line, for `gyre models NAME`.
  virtual std::string describe() const { return ""; }

  struct NamedParameter {
    std::string name;
    Parameter* parameter;
  };
  struct NamedModule {
    std::string name;  ///< "" for the root
    Module* module;
  };
  /// Depth first, own parameters before those of children, each in order of registration.
  std::vector<NamedParameter> parameters();
  std::vector<NamedModule> modules();
  std::int64_t parameter_count();

  /// Switches dropout and drop path; modules start in training mode.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const { return training_; }
  void zero_grad();
  /// Converts every parameter (f64 for verification).
  void to(DType dtype);
  /// Moves parameters and constants.
  void to(Device device);

  /// Data of all parameters by name: views, not copies.
  TensorMap state();
  /// Copies `state` in from any device, converting its type. Throws Error naming the first missing, unknown
  /// or misshapen tensor before anything is changed.
  void load_state(const TensorMap& state);

 protected:
  /// Creates a child in place and returns it; this module owns it. An empty name adds nothing to the names
  /// below it.
  template <std::derived_from<Module> M, class... Args>
  M& add(std::string name, Args&&... args) {
    auto child = std::make_unique<M>(std::forward<Args>(args)...);
    M& reference = *child;
    add_child(std::move(name), std::move(child));
    return reference;
  }
  /// The same for a child that a factory built.
  template <std::derived_from<Module> M>
  M& add(std::string name, std::unique_ptr<M> child) {
    M& reference = *child;
    add_child(std::move(name), std::move(child));
    return reference;
  }
  /// Registers a leaf; 1-D tensors never decay. An empty name gives it the name of the module itself.
  Parameter& add_parameter(std::string name, Tensor data, bool decay = true);
  /// A tensor that is neither trained nor saved, such as an index: to(Device) moves it as well. A member of
  /// this module, which may be undefined.
  void add_constant(Tensor& tensor) { constants_.push_back(&tensor); }
  /// Tells the ForwardObserver of the thread of a call that did not pass operator().
  void observe(const Variable& x, const Variable& y);

 private:
  void add_child(std::string name, std::unique_ptr<Module> child);

  std::vector<std::pair<std::string, std::unique_ptr<Module>>> children_;
  std::vector<std::pair<std::string, std::unique_ptr<Parameter>>> parameters_;
  std::vector<Tensor*> constants_;
  bool training_ = true;
};

/// While alive, is told of every call of a module on this thread, after it: what goes in and what comes out.
/// Children come before their parents. Scopes nest; the innermost counts.
class ForwardObserver {
 public:
  using Callback = std::function<void(Module& module, const Variable& x, const Variable& y)>;
  explicit ForwardObserver(Callback callback);
  ~ForwardObserver();
  ForwardObserver(const ForwardObserver&) = delete;
  ForwardObserver& operator=(const ForwardObserver&) = delete;

 private:
  friend class Module;
  Callback callback_;
  ForwardObserver* outer_;
};

}  // namespace gyre
