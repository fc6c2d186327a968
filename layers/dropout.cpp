#include "layers/dropout.h"

#include "autograd/ops/elementwise.h"
#include "autograd/ops/shape.h"
#include "core/parallel.h"
#include "kernels/types.h"
#include "layers/stochastic.h"

namespace gyre {

namespace {

double checked_rate(double rate, std::string_view what) {
  require<ValueError>(rate >= 0 && rate < 1, "{} rate {:g} is not in [0, 1)", what, rate);
  return rate;
}

/// [rows, per_row] of 0 or 1/(1-rate), of the type and on the device of x; row i depends on its sample alone.
Tensor draw_mask(std::string_view layer, Purpose purpose, std::uint64_t site, double rate, std::int64_t rows,
                 std::int64_t per_row, const Variable& x) {
  const StochasticScope& scope = StochasticScope::current(layer, rows);
  Tensor mask = Tensor::empty({rows, per_row}, kernels::wide_type(x.dtype()));
  dispatch_floating(mask.dtype(), layer, [&](auto zero) {
    using T = decltype(zero);
    T* values = mask.mutable_data<T>();
    const T kept = static_cast<T>(1 / (1 - rate));
    parallel_for(0, rows, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, per_row)),
                 [&](std::int64_t first, std::int64_t last) {
                   for (std::int64_t i = first; i < last; ++i) {
                     RandomStream stream = scope.stream(purpose, site, i);
                     for (std::int64_t j = 0; j < per_row; ++j)
                       values[i * per_row + j] = stream.uniform() < rate ? T{0} : kept;
                   }
                 });
  });
  return mask.to(x.dtype()).to(x.device());
}

}  // namespace

Dropout::Dropout(double rate, int order, std::uint64_t site)
    : rate_(checked_rate(rate, "dropout")), order_(order), site_(site) {}

Variable Dropout::forward(const Variable& x) {
  if (!training() || rate_ == 0) return x;
  const std::int64_t width = x.size(-1);
  require<ShapeError>(width % order_ == 0, "Dropout: {} channels are not whole orbits of {}", width, order_);
  const std::int64_t orbits = x.data().numel() / order_;
  const Tensor mask = draw_mask("Dropout", Purpose::dropout, site_, rate_, x.size(0),
                                x.size(0) == 0 ? 0 : orbits / x.size(0), x);
  const Variable grouped = reshape(x, {orbits, order_});
  return reshape(mul(grouped, Variable(mask.reshape({orbits, 1}))), x.shape());
}

std::string Dropout::describe() const { return fmt::format("rate {:g}", rate_); }

DropPath::DropPath(double rate, std::uint64_t site) : rate_(checked_rate(rate, "drop path")), site_(site) {}

Variable DropPath::forward(const Variable& x) {
  if (!training() || rate_ == 0) return x;
  Shape shape = Shape::filled(x.rank(), 1);
  shape[0] = x.size(0);
  const Tensor mask = draw_mask("DropPath", Purpose::drop_path, site_, rate_, x.size(0), 1, x).reshape(shape);
  return mul(x, Variable(mask));
}

std::string DropPath::describe() const { return fmt::format("rate {:g}", rate_); }

}  // namespace gyre
