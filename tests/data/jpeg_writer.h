#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <jpeglib.h>

namespace gyre::test {

struct JpegOptions {
  J_COLOR_SPACE stored = JCS_YCbCr;
  bool adobe = true;  // the marker by which ink counts upside down
  bool progressive = false;
  std::string exif = {};  // contents of APP1 after "Exif\0\0"; empty = none
};

/// Quality 100, no chroma subsampling; `pixels` are interleaved: 1 = grey, 3 = RGB, 4 = CMYK.
inline std::string write_jpeg(const std::vector<std::uint8_t>& pixels, int width, int height,
                              const JpegOptions& options = {}) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &out, &size);
  const int components = static_cast<int>(pixels.size()) / (width * height);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = components;
  info.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, options.stored);
  jpeg_set_quality(&info, 100, TRUE);
  for (int c = 0; c < info.num_components; ++c)
    info.comp_info[c].h_samp_factor = info.comp_info[c].v_samp_factor = 1;
  if (components == 4) info.write_Adobe_marker = options.adobe;
  if (options.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  if (!options.exif.empty()) {
    const std::string block = std::string("Exif\0\0", 6) + options.exif;
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(block.data()),
                      static_cast<unsigned>(block.size()));
  }
  while (info.next_scanline < info.image_height) {
    auto row = const_cast<JSAMPROW>(pixels.data()) + std::size_t{info.next_scanline} * width * components;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string bytes(reinterpret_cast<char*>(out), size);
  jpeg_destroy_compress(&info);
  std::free(out);
  return bytes;
}

}  // namespace gyre::test
