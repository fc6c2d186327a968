#include "data/fashion_mnist.h"

#include "data/idx.h"

namespace gyre {

std::shared_ptr<const Dataset> open_fashion_mnist(const std::filesystem::path& folder, std::string_view split,
                                                  int classes) {
  const std::filesystem::path where = folder.empty() ? "/usr/share/datasets/fashion-mnist" : folder;
  return std::make_shared<IdxDataset>(
      where, split, "fashion_mnist", classes,
      std::vector<std::string>{"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt",
                               "Sneaker", "Bag", "Ankle boot"});
}

}  // namespace gyre
