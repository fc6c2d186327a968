#include "data/decode.h"

/// The static OpenCV core asks for it, although nothing here draws by OpenGL.
extern "C" void* glXGetProcAddressARB(const unsigned char*);
extern "C" void* glXGetProcAddressARB(const unsigned char*) { return nullptr; }

namespace gyre::detail {

bool reads_other_formats() { return false; }
Tensor decode_other(std::string_view) { return {}; }

}  // namespace gyre::detail
