#pragma once

#include <cstdint>
#include <string_view>

#include "core/group.h"
#include "core/random.h"
#include "layers/module.h"

namespace gyre {

// Learned positions, added to tokens [B, L, width]; truncated normal 0.02, never decayed. The table takes the
// name of the module itself ("pos_embed").

/// One free vector per token, the class token's first. Parameter: [1, tokens, width].
class PositionTable : public Module {
 public:
  PositionTable(std::int64_t tokens, std::int64_t width, RandomStream& stream);

  Variable forward(const Variable& x) override;
  std::string_view kind() const override { return "PositionTable"; }
  std::string describe() const override;

 private:
  Parameter* table_;
};

enum class PositionKind { full, quarter };
/// "full" or "quarter"; throws ValueError for any other text.
PositionKind parse_position_kind(std::string_view name);

/// The equivariant tables of a grid × grid square. `full`: Q [grid, grid, C], P_t = t·Q, the general one.
/// `quarter`: one vector per orbit of cells, equal for all t, [cells, C] (the EQ-ViT paper's, arXiv
/// 2602.08047). A class token has its own entry, parameter "cls" [C].
class EqPositionTable : public Module {
 public:
  EqPositionTable(PositionKind kind, const Group& group, std::int64_t grid, std::int64_t channels,
                  bool class_token, RandomStream& stream);

  Variable forward(const Variable& x) override;
  std::string_view kind() const override { return "EqPositionTable"; }
  std::string describe() const override;

 private:
  PositionKind kind_;
  std::int64_t grid_;
  Parameter* table_;
  Parameter* cls_ = nullptr;
  Tensor index_;
};

}  // namespace gyre
