#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace gyre {

/// Images are u8 [channels, height, width] with 1 (grey) or 3 (RGB) channels; results are dense.

/// Luma of Rec. 601, rounded; a grey image stays itself.
Tensor to_grey(const Tensor& image);
/// Grey repeated three times; an RGB image stays itself.
Tensor to_rgb(const Tensor& image);
/// Pixel areas averaged where the image shrinks, bicubic where it grows.
Tensor resize_image(const Tensor& image, std::int64_t height, std::int64_t width);
/// The central square, scaled to side × side; the image itself if it has that shape.
Tensor fit_square(const Tensor& image, std::int64_t side);
/// The picture as a viewer shows it, given its EXIF orientation 1..8; any other value counts as 1.
Tensor apply_orientation(const Tensor& image, int orientation);

}  // namespace gyre
