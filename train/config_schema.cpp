#include "train/config_schema.h"

#include <algorithm>

#include "core/group.h"

namespace gyre {
namespace schema {
namespace {

using Integers = Range<std::int64_t>;
using Reals = Range<double>;

constexpr std::int64_t million = 1'000'000;
const Reals fraction{0, 1};
const Reals below_one{.low = 0, .high = 1, .open_high = true};

std::vector<std::string> model_choices() {
  const auto names = model_names();
  return {names.begin(), names.end()};
}

/// Groups that act on images; the others are refused by name.
std::vector<std::string> group_choices() {
  std::vector<std::string> names;
  for (const std::string_view name : Group::names()) {
    if (Group::get(name).has_image_action()) names.emplace_back(name);
  }
  return names;
}

void check_image_action(const std::string& name) {
  const auto names = Group::names();
  if (std::find(names.begin(), names.end(), name) == names.end()) return;
  require<ValueError>(Group::get(name).has_image_action(), "{} has no exact image action; legal are {}", name,
                      fmt::join(group_choices(), ", "));
}

void add_model(std::vector<ConfigField>& fields) {
  const auto first = static_cast<std::ptrdiff_t>(fields.size());
  using S = ModelConfig;
  Section(
      fields, "model", [](auto& c) -> auto& { return c.model; })
      .choice("name", &S::name, model_choices(), "family, or a named size that fills the keys not given here")
      .number("image_size", &S::image_size, Integers{1, 65536}, "side of the square input in pixels")
      .number("in_channels", &S::in_channels, Integers{1, 1024}, "colours of the input")
      .number("patch_size", &S::patch_size, Integers{1, 65536},
              "side of a patch in pixels; divides image_size")
      .number("width", &S::width, Integers{1, 65536},
              "channels of a token: those per group element times the order; swin doubles them from stage to "
              "stage")
      .number("depth", &S::depth, Integers{1, 8192}, "blocks; in swin the sum of depths")
      .list("depths", &S::depths, Integers{1, 1024}, "swin: blocks of each stage, such as [2, 2, 6, 2]")
      .number("heads", &S::heads, Integers{1, 1024},
              "attention heads, doubled as width is; width / heads is a multiple of the group order")
      .number("window", &S::window, Integers{0, 65536}, "swin: side of the attention windows in tokens")
      .flag("approximate", &S::approximate, "eq_swin: allow windows that break the symmetry")
      .number("mlp_ratio", &S::mlp_ratio, Reals{.low = 0, .high = 64, .open_low = true},
              "hidden width of the MLP / width")
      .number("classes", &S::classes, Integers{1, million}, "outputs")
      .choice("group", &S::group, group_choices(), "symmetry of eq_vit and eq_swin", check_image_action)
      .choice("pos_embed", &S::pos_embed, {"full", "quarter", "none"},
              "position table: every place, or shared by turned places; swin has none")
      .choice("pool", &S::pool, {"mean", "token"},
              "what the head reads: the mean of all tokens, or a class token")
      .number("drop_path", &S::drop_path, below_one,
              "rate at which the last block is skipped; rises linearly from 0")
      .number("dropout", &S::dropout, below_one, "rate; equivariant models drop whole orbits")
      .choice("backend", &S::backend, {"auto", "flash", "naive", "fused", "packed"},
              "how EQ-Linear is computed")
      .number("products", &S::products, Integers{0, 1024},
              "products of the flash form; 0: fewest (c4: 5 or 6)");
  // A named size fills only what the file leaves out.
  for (auto field = fields.begin() + first; field != fields.end(); ++field) {
    field->read = [read = std::move(field->read), name = field->name](Config& config, const YamlNode& node) {
      read(config, node);
      config.model.given.insert(name);
    };
  }
}

void add_data(std::vector<ConfigField>& fields) {
  using S = DataConfig;
  using Count = Range<int>;
  Section(
      fields, "data", [](auto& c) -> auto& { return c.data; })
      .choice("dataset", &S::dataset, {"fashion_mnist", "idx", "image_folder"}, "kind of data")
      .text("path", &S::path, "folder", "where it lies; empty: where Debian's dataset-fashion-mnist puts it")
      .number("classes", &S::classes, Count{0, 1'000'000}, "0: as many as the data has")
      .texts("select", &S::select, "list of names or numbers",
             "classes to keep, renumbered in this order; empty: all")
      .number("holdout", &S::holdout, Integers{0, 1'000 * million},
              "training images set aside to choose the best checkpoint")
      .number("image_size", &S::image_size, Count{0, 65536},
              "side that pictures are resized to; 0: the data's own")
      .number("pad_to", &S::pad_to, Count{0, 65536}, "side after padding with zeros; 0: none")
      .list("mean", &S::mean, Reals{-1e3, 1e3},
            "per channel, of values in [0, 1]; empty: the dataset's usual values (fashion_mnist its own, "
            "image_folder ImageNet's, idx 0.5)")
      .list("std", &S::std, Reals{.low = 0, .high = 1e3, .open_low = true},
            "per channel; empty: the dataset's usual values (fashion_mnist its own, image_folder ImageNet's, "
            "idx 0.5)")
      .number("workers", &S::workers, Count{0, 256}, "loader threads; 0: load on the training thread")
      .number("prefetch", &S::prefetch, Count{1, 1024}, "batches prepared ahead")
      .number("limit_train", &S::limit_train, Integers{0, 1'000 * million}, "first N training images; 0: all")
      .number("limit_test", &S::limit_test, Integers{0, 1'000 * million}, "first N test images; 0: all");
  using A = AugmentConfig;
  Section(
      fields, "data.augment", [](auto& c) -> auto& { return c.data.augment; })
      .number("crop_padding", &A::crop_padding, Count{0, 65536}, "shift by up to this many pixels each way")
      .flag("flip", &A::flip, "mirror left-right, half of the time")
      .flag("quarter_turns", &A::quarter_turns, "turn by 0, 90, 180 or 270 degrees");
}

void add_optimizer(std::vector<ConfigField>& fields) {
  using S = OptimizerConfig;
  Section(
      fields, "optimizer", [](auto& c) -> auto& { return c.optimizer; })
      .choice("name", &S::name, {"adamw", "sgd"}, "update rule")
      .number("learning_rate", &S::learning_rate, Reals{.low = 0, .high = 100, .open_low = true},
              "highest learning rate, reached after the warm-up")
      .number("weight_decay", &S::weight_decay, Reals{0, 100},
              "of matrices and filters; biases, norms, tokens and position tables have none")
      .number("beta1", &S::beta1, below_one, "adamw: decay of the gradient average")
      .number("beta2", &S::beta2, below_one, "adamw: decay of the squared-gradient average")
      .number("eps", &S::eps, Reals{.low = 0, .high = 1, .open_low = true}, "adamw: added to the denominator")
      .number("momentum", &S::momentum, below_one, "sgd: momentum")
      .flag("nesterov", &S::nesterov, "sgd: look ahead along the momentum");
}

void add_schedule(std::vector<ConfigField>& fields) {
  using S = ScheduleConfig;
  Section(
      fields, "schedule", [](auto& c) -> auto& { return c.schedule; })
      .choice("shape", &S::shape, {"cosine", "constant"}, "learning rate after the warm-up")
      .number("warmup", &S::warmup, fraction, "share of all updates in which the rate rises linearly")
      .number("warmup_start", &S::warmup_start, fraction,
              "rate of the first update, as a share of learning_rate")
      .number("final", &S::final, fraction, "cosine: rate of the last update, as a share of learning_rate");
}

void check_time_budget(const std::string& text) {
  if (!text.empty()) parse_duration(text);
}

void add_train(std::vector<ConfigField>& fields) {
  using S = TrainConfig;
  Section(
      fields, "train", [](auto& c) -> auto& { return c.train; })
      .number("epochs", &S::epochs, Integers{1, million},
              "passes over the training data; replaced by time_budget")
      .text("time_budget", &S::time_budget, "90s, 4m, 1h30m",
            "length of the run in place of epochs, at most 1000h; turned into updates once, at the start",
            check_time_budget)
      .number("updates", &S::updates, Integers{0, million * million},
              "length of the run; 0: from time_budget or epochs")
      .number("batch_size", &S::batch_size, Integers{1, 65536}, "samples per update")
      .number("accumulation", &S::accumulation, Integers{1, 65536},
              "parts that a batch is computed in, one after the other, to save memory")
      .number("label_smoothing", &S::label_smoothing, below_one, "probability spread evenly over all classes")
      .number("clip_norm", &S::clip_norm, Reals{0, 1e9}, "largest norm of the whole gradient; 0: no clipping")
      .number("ema_decay", &S::ema_decay, below_one, "decay of the averaged weights; 0: no averaging")
      .choice(
          "amp", &S::amp, {"off", "bf16", "fp16"},
          "type that products are computed in on CUDA; weights, norms, softmax and loss stay in f32; fp16 "
          "scales the loss")
      .number("seed", &S::seed, Range<std::uint64_t>{},
              "of initial weights, sample order, augmentation and dropout")
      .flag("deterministic", &S::deterministic,
            "on CUDA: true repeats bit for bit; false times product kernels at their first use and keeps the "
            "fastest, so that last digits may differ")
      .number("eval_every", &S::eval_every, Integers{1, million},
              "epochs between evaluations; the last one always counts")
      .number("bad_steps", &S::bad_steps, Integers{1, million},
              "non-finite losses in a row that stop the run")
      .number("log_every", &S::log_every, Integers{1, million}, "updates between lines of the log")
      .number("threads", &S::threads, Range<int>{0, 1024}, "of compute; 0: one per core");
}

void add_checkpoint(std::vector<ConfigField>& fields) {
  using S = CheckpointConfig;
  Section(
      fields, "checkpoint", [](auto& c) -> auto& { return c.checkpoint; })
      .number("every_minutes", &S::every_minutes, Reals{0, 1e6},
              "minutes between checkpoints within an epoch; 0: none")
      .number("every_epochs", &S::every_epochs, Integers{0, million},
              "epochs between checkpoints; 0: only the best and the last")
      .flag("keep_epochs", &S::keep_epochs, "keep every checkpoint, not only last and best");
}

void add_finetune(std::vector<ConfigField>& fields) {
  using S = FinetuneConfig;
  Section(
      fields, "finetune", [](auto& c) -> auto& { return c.finetune; })
      .text("checkpoint", &S::checkpoint, "checkpoint or run directory",
            "whose weights and model settings the run takes over, as gyre finetune sets it; empty: none")
      .choice("weights", &S::weights, {"ema", "raw"}, "of that checkpoint: averaged or raw")
      .choice("head", &S::head, {"auto", "keep", "new"},
              "classifier of that checkpoint; auto: new where the classes differ")
      .number("layer_decay", &S::layer_decay, Reals{.low = 0, .high = 1, .open_low = true},
              "learning rate of each block relative to the one behind it; the head has the full rate")
      .texts("freeze", &S::freeze, "list of patterns",
             "parameters that are not trained, such as [patch_embed, blocks.?.attn.*]");
}

}  // namespace

const std::string& scalar_text(const YamlNode& node) {
  require<ValueError>(node.kind == YamlNode::Kind::scalar, "expects one value, not {}", node.kind_name());
  return node.text;
}

std::string quote(std::string_view text) {
  static constexpr std::string_view words[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/'; };
  const auto plain = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
  };
  const bool word = std::any_of(std::begin(words), std::end(words), [&](std::string_view w) {
    return std::equal(w.begin(), w.end(), text.begin(), text.end(),
                      [](char a, char b) { return a == (b | 0x20); });
  });
  if (!text.empty() && letter(text.front()) && std::all_of(text.begin(), text.end(), plain) && !word) {
    return std::string(text);
  }
  return in_quotes(text);
}

std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace schema

const std::vector<ConfigField>& config_schema() {
  static const std::vector<ConfigField> fields = [] {
    std::vector<ConfigField> all;
    schema::add_model(all);
    schema::add_data(all);
    schema::add_optimizer(all);
    schema::add_schedule(all);
    schema::add_train(all);
    schema::add_checkpoint(all);
    schema::add_finetune(all);
    return all;
  }();
  return fields;
}

}  // namespace gyre
