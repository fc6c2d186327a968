#include <charconv>

#include "core/error.h"
#include "models/exchange/forms.h"

namespace gyre::exchange {

std::string merging_at_end(const std::string& name) {
  constexpr std::string_view front = "layers.";
  const std::size_t dot = name.find(".downsample.");
  if (!name.starts_with(front) || dot == std::string::npos) return name;
  int stage = 0;
  std::from_chars(name.data() + front.size(), name.data() + dot, stage);
  return fmt::format("{}{}{}", front, stage - 1, name.substr(dot));
}

Forms timm_forms(Model& model, bool merging_first) {
  require<ValueError>(!is_equivariant(model.config()),
                      "layout timm holds ordinary models, and {} is equivariant", model.config().name);
  Forms forms = own_forms(model);
  constexpr std::string_view head = "head.fc.";
  for (auto& [own, list] : forms) {
    if (!merging_first) list.front().name = merging_at_end(own);
    if (!own.starts_with(head)) continue;
    Form old = list.front();
    old.name = "head." + own.substr(head.size());
    list.push_back(std::move(old));
  }
  return forms;
}

}  // namespace gyre::exchange
