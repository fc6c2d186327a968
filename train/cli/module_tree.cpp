#include "train/cli/module_tree.h"

#include <set>

#include "train/terminal.h"

namespace gyre::cli {
namespace {

struct Node {
  std::string name;  ///< below the parent
  std::string text;
  std::vector<Node> children;

  bool operator==(const Node&) const = default;
  /// All but the own name agrees.
  bool same_text(const Node& other) const { return text == other.text && children == other.children; }
};

/// Names and shapes of what `module` holds itself: its parameters come before those of its children.
std::string own_shapes(Module& module) {
  std::set<const Parameter*> below;
  for (const Module::NamedModule& node : module.modules()) {
    if (node.module == &module) continue;
    for (const auto& [name, parameter] : node.module->parameters()) below.insert(parameter);
  }
  std::string text;
  for (const auto& [name, parameter] : module.parameters()) {
    if (below.contains(parameter)) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", name.empty() ? "" : name + " ",
                        parameter->variable.shape());
  }
  return text;
}

std::string text_of(Module& module) {
  const std::int64_t count = module.parameter_count();
  return fmt::format("{:<18}{:>12}  {:<50}  {}", module.kind(), count > 0 ? with_commas(count) : "",
                     module.describe(), own_shapes(module));
}

/// The node `modules[i]` with what follows it and begins with its name; `i` moves behind them.
Node read_node(const std::vector<Module::NamedModule>& modules, std::size_t& i, const std::string& parent) {
  const std::string prefix = modules[i].name + ".";
  Node node{modules[i].name.substr(parent.size()), text_of(*modules[i].module), {}};
  ++i;
  while (i < modules.size() && modules[i].name.starts_with(prefix))
    node.children.push_back(read_node(modules, i, prefix));
  return node;
}

void print(const std::vector<Node>& nodes, int depth, std::string& out) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < nodes.size() && nodes[last + 1].same_text(nodes[i]) && !nodes[i].children.empty())
      ++last;
    std::string label = nodes[i].name;
    if (last > i) label += " … " + nodes[last].name.substr(nodes[last].name.rfind('.') + 1);
    // fmt counts the dots as one column.
    std::string line = fmt::format("{:{}}{:<{}}{}", "", 2 * depth, label, 28 - 2 * depth, nodes[i].text);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
    print(nodes[i].children, depth + 1, out);
    i = last;
  }
}

}  // namespace

std::string module_tree(Module& root) {
  const std::vector<Module::NamedModule> modules = root.modules();
  std::vector<Node> nodes;
  for (std::size_t i = 1; i < modules.size();) nodes.push_back(read_node(modules, i, ""));
  std::string out;
  print(nodes, 1, out);
  return out;
}

}  // namespace gyre::cli
