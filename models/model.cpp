#include "models/model.h"

#include <algorithm>

#include "layers/eq_linear.h"

namespace gyre {

void Model::set_backend(kernels::EqBackend backend) {
  for (const auto& [name, module] : modules())
    if (auto* layer = dynamic_cast<EqProduct*>(module)) layer->set_backend(backend);
  config_.backend = kernels::name_of(backend);
}

Device Model::device() { return parameters().front().parameter->variable.device(); }

std::vector<std::string> Model::kernel_names(std::int64_t batch, std::optional<DType> products) {
  const DType dtype = products.value_or(parameters().front().parameter->variable.dtype());
  std::vector<std::string> names;
  for (const auto& [name, module] : modules()) {
    const auto* layer = dynamic_cast<EqProduct*>(module);
    if (!layer) continue;
    std::string kernel = layer->kernel_name(dtype, batch * tokens_of(config_), device());
    if (std::find(names.begin(), names.end(), kernel) == names.end()) names.push_back(std::move(kernel));
  }
  return names;
}

}  // namespace gyre
