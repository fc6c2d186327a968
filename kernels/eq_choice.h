#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/group.h"

namespace gyre::kernels {

/// Ways to compute EQ-Linear in f32, first choice first. `fused`: transform, products and inverse in one pass
/// over the rows; `packed`: library products on planes; `naive`: one product with the expanded matrix.
enum class EqImplementation { fused, packed, naive };
/// "fused", "packed" or "naive".
std::string_view name_of(EqImplementation implementation);

/// Forward, or dX and dW together.
enum class EqDirection { forward, backward };
std::string_view name_of(EqDirection direction);

/// What the choice depends on.
struct EqShape {
  const Group& group;
  EqDirection direction = EqDirection::forward;
  std::int64_t rows = 0, channels_in = 0, channels_out = 0;
  int threads = 1;
};

/// The fixed rule, from measurements on AVX-512 and AVX2 machines; `flash_only` leaves `naive` out.
EqImplementation fixed_eq_choice(const EqShape& shape, bool flash_only);

/// Choices measured on this machine (`gyre tune`), in cells that reach from half to twice a power of four in
/// rows and in both channel counts. Immutable while in use.
class EqTable {
 public:
  struct Choice {
    EqImplementation any = EqImplementation::fused, flash = EqImplementation::fused;
  };

  /// `id` tells tables apart; `threads`: what it was measured with; for other counts it holds nothing.
  EqTable(std::string id, int threads) : id_(std::move(id)), threads_(threads) {}
  const std::string& id() const { return id_; }
  std::size_t size() const { return cells_.size(); }
  /// Sets the choice for the cell of `shape`.
  void set(const EqShape& shape, Choice choice);
  /// Null where nothing was measured.
  const Choice* find(const EqShape& shape) const;

 private:
  std::string id_;
  int threads_;
  std::unordered_map<std::uint64_t, Choice> cells_;
};

/// From now on `table` decides where it holds something, the fixed rule elsewhere; null: the rule alone. To
/// be called before layers run, since a run must keep its kernels.
void use_eq_table(std::shared_ptr<const EqTable> table);
/// Id of the table in use; empty: the rule alone.
std::string eq_table_id();

/// What the table says for this shape, else the fixed rule.
EqImplementation eq_choice(const EqShape& shape, bool flash_only);

}  // namespace gyre::kernels
