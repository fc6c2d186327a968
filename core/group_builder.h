#pragma once

#include <string_view>

#include "core/group.h"

namespace gyre {

/// Fills the tables of one group (docs/math.md sections 1 and 3).
class GroupBuilder {
 public:
  /// `name` is one of Group::names().
  static Group build(std::string_view name);

 private:
  static void set_cyclic(Group& group, int order);
  static void set_d4(Group& group);
  static void set_forms(Group& group);
};

}  // namespace gyre
