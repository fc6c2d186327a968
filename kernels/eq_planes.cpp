#include "kernels/eq_planes.h"

namespace gyre::kernels {

EqPlanes::EqPlanes() : state_(std::make_unique<State>()) {}
EqPlanes::~EqPlanes() = default;
LayerCopies& EqPlanes::copies() const { return state_->copies; }
int EqPlanes::rebuilds() const { return state_->rebuilds; }

void EqPlanes::clear() {
  const std::scoped_lock lock(state_->mutex);
  state_->fused = {};
  state_->packed = {};
  state_->naive = {};
  state_->copies.clear();
}

std::shared_ptr<const EqPlanes::State::DenseEqLayer> dense_eq_layer(const Group& group, const Tensor& w,
                                                                    const Tensor& b, EqPlanes::State& state) {
  const std::scoped_lock lock(state.mutex);
  auto& naive = state.naive;
  const bool stale = !naive.source.is(w) || naive.group != &group;
  if (!stale && (!b.defined() || naive.bias_source.is(b))) return naive.dense;
  auto layer = std::make_shared<EqPlanes::State::DenseEqLayer>();
  layer->matrix = stale ? expand_eq_weight(group, w) : naive.dense->matrix;
  if (b.defined())
    layer->bias =
        b.unsqueeze(1).expand({b.size(0), group.order()}).contiguous().reshape({b.size(0) * group.order()});
  state.rebuilds += stale;
  naive.source = Source::of(w);
  naive.group = &group;
  naive.bias_source = b.defined() ? Source::of(b) : Source();
  naive.dense = std::move(layer);
  return naive.dense;
}

}  // namespace gyre::kernels
