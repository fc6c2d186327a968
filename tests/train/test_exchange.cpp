#include "train/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "models/exchange/layout.h"
#include "tests/data/support.h"
#include "tests/train/checkpoint_support.h"
#include "tests/train/support.h"

namespace gyre::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string golden(const std::string& name) {
  return fmt::format("{}/tests/golden/{}.safetensors", GYRE_SOURCE_DIR, name);
}

const std::vector<std::string> golden_vit = {
    "model.image_size=32", "model.in_channels=3", "model.patch_size=8", "model.width=64",
    "model.depth=2",       "model.heads=2",       "model.mlp_ratio=2",  "model.pool=token"};

class Exchange : public testing::Test {
 protected:
  ImportOptions import_of(const std::string& file) const {
    ImportOptions options;
    options.file = file;
    options.model = "vit";
    options.overrides = golden_vit;
    options.out = folder_.path() / "checkpoint";
    return options;
  }

  std::string import_error(const ImportOptions& options) const {
    try {
      import_checkpoint(options);
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      EXPECT_FALSE(std::filesystem::exists(options.out));
      return text;
    }
    return "no error";
  }

  TempFolder folder_;
};

TEST_F(Exchange, ImportMakesACheckpointThatComputesTheGoldenLogits) {
  const ImportResult result = import_checkpoint(import_of(golden("vit_token")));
  EXPECT_EQ(result.layout, "timm");
  EXPECT_EQ(result.classes, 10);
  EXPECT_EQ(result.parameters, 81226);
  EXPECT_THAT(result.notes, ElementsAre());
  const Checkpoint checkpoint = read_checkpoint(result.checkpoint);
  EXPECT_THAT(checkpoint.class_names, ElementsAre());
  EXPECT_EQ(checkpoint.preprocessing.channels, 3);
  EXPECT_EQ(checkpoint.preprocessing.size, 32);
  EXPECT_THAT(checkpoint.preprocessing.mean, ElementsAre(0.5, 0.5, 0.5));
  EXPECT_EQ(checkpoint.config.data.dataset, "image_folder");

  const TensorMap io = read_safetensors(golden("vit_token.io")).tensors;
  const auto model = load_model(checkpoint);
  model->eval();
  const Tensor logits = (*model)(Variable(io.at("images"))).data();
  EXPECT_LE(relative_difference(logits, io.at("logits")), 1e-5);
}

/// A file of other programs and what import has to be told of it.
struct Foreign {
  std::string name, model, layout, io;
  std::vector<std::string> sizes;
};

const std::vector<std::string> golden_swin = {
    "model.image_size=32", "model.in_channels=3", "model.patch_size=2", "model.width=16",
    "model.depths=[2, 2]", "model.heads=2",       "model.window=4"};

std::vector<std::string> with(std::vector<std::string> sizes, const std::vector<std::string>& more) {
  sizes.insert(sizes.end(), more.begin(), more.end());
  return sizes;
}

TEST_F(Exchange, ImportExportImportIsBitExact) {
  const auto eq_vit = with(golden_vit, {"model.width=32", "model.pos_embed=quarter"});
  const auto eq_swin = with(golden_swin, {"model.mlp_ratio=2"});
  const std::vector<Foreign> files = {{"vit_token", "vit", "timm", "vit_token.io", golden_vit},
                                      {"eq_vit", "eq_vit", "released", "eq_vit.io", eq_vit},
                                      {"swin", "swin", "timm", "swin.io", golden_swin},
                                      {"eq_swin", "eq_swin", "released", "eq_swin.io", eq_swin},
                                      {"eq_swin_planes", "eq_swin", "released", "eq_swin.io", eq_swin}};
  for (const auto& [name, family, layout, io, sizes] : files) {
    SCOPED_TRACE(name);
    ImportOptions options = import_of(golden(name));
    options.out = folder_.path() / name;
    options.model = family;
    options.overrides = sizes;
    const ImportResult first = import_checkpoint(options);
    EXPECT_EQ(first.layout, layout);
    const Checkpoint imported = read_checkpoint(first.checkpoint);
    const auto logits = [images = read_safetensors(golden(io)).tensors.at("images")](const Checkpoint& from) {
      const auto model = load_model(from);
      model->eval();
      return (*model)(Variable(images)).data();
    };
    const Tensor before = logits(imported);
    EXPECT_LE(relative_difference(before, read_safetensors(golden(io)).tensors.at("logits")), 1e-5);
    for (const std::string& form : {std::string("gyre"), layout}) {
      SCOPED_TRACE(form);
      ExportOptions out;
      out.checkpoint = first.checkpoint;
      out.file = folder_.path() / (name + form + ".safetensors");
      out.layout = form;
      const ExportResult written = export_checkpoint(out);
      if (form == "gyre") {  // the released layout stores norms of EQ-Swin untied
        EXPECT_EQ(written.parameters, first.parameters);
      }
      EXPECT_EQ(written.bytes, static_cast<std::int64_t>(std::filesystem::file_size(out.file)));
      // The file says what it holds.
      ImportOptions again;
      again.file = out.file;
      again.layout = form;
      const ImportResult second = import_checkpoint(again);
      EXPECT_EQ(second.checkpoint, folder_.path() / (name + form));
      EXPECT_EQ(second.parameters, first.parameters);
      EXPECT_THAT(second.notes, ElementsAre());
      const Checkpoint checkpoint = read_checkpoint(second.checkpoint);
      EXPECT_TRUE(same_bits(checkpoint.weights, imported.weights));
      EXPECT_EQ(checkpoint.preprocessing, imported.preprocessing);
      EXPECT_TRUE(same_bits({{"y", logits(checkpoint)}}, {{"y", before}}));
    }
  }
}

TEST_F(Exchange, AveragedOrRawWeightsAreWritten) {
  const Checkpoint checkpoint = small_checkpoint(3);
  write_checkpoint(folder_.path() / "c", checkpoint);
  ExportOptions options;
  options.checkpoint = folder_.path() / "c";
  options.file = folder_.path() / "w.safetensors";
  EXPECT_EQ(export_checkpoint(options).weights, "ema");
  const SafetensorsFile file = read_safetensors(options.file);
  EXPECT_TRUE(same_bits(file.tensors, checkpoint.ema));
  EXPECT_EQ(file.metadata.at("format"), "gyre");
  options.weights = "raw";
  export_checkpoint(options);
  EXPECT_TRUE(same_bits(read_safetensors(options.file).tensors, checkpoint.weights));

  // Class names and preprocessing come back.
  ImportOptions in;
  in.file = options.file;
  import_checkpoint(in);
  const Checkpoint back = read_checkpoint(folder_.path() / "w");
  EXPECT_EQ(back.class_names, checkpoint.class_names);
  EXPECT_EQ(back.preprocessing, checkpoint.preprocessing);
  EXPECT_EQ(config_to_yaml(back.config).find("optimizer: 0.3"), std::string::npos);

  options.layout = "released";
  EXPECT_THROW(export_checkpoint(options), ValueError);
  EXPECT_TRUE(same_bits(read_safetensors(options.file).tensors, checkpoint.weights));

  // Written out as an ordinary model, which the file tells.
  options.layout = "timm";
  options.file = folder_.path() / "dense.safetensors";
  export_checkpoint(options);
  in.file = options.file;
  EXPECT_EQ(import_checkpoint(in).model, "vit");
}

TEST_F(Exchange, PixelsAndClassesCanBeGiven) {
  ImportOptions options = import_of(golden("vit_token"));
  options.mean = {0.1, 0.2, 0.3};
  options.std = {0.4, 0.5, 1.0 / 3};
  folder_.write("names.txt", "zero\none\r\ntwo\n3\n4\n5\n6\n7\n8\nnine");
  options.classes = folder_.path() / "names.txt";
  import_checkpoint(options);
  const Checkpoint checkpoint = read_checkpoint(options.out);
  EXPECT_EQ(checkpoint.preprocessing.mean, options.mean);
  EXPECT_EQ(checkpoint.preprocessing.std, options.std);
  EXPECT_THAT(checkpoint.class_names,
              ElementsAre("zero", "one", "two", "3", "4", "5", "6", "7", "8", "nine"));
}

TEST_F(Exchange, NothingIsWrittenAfterAnError) {
  const auto error_with = [&](auto&& change) {
    ImportOptions options = import_of(golden("vit_token"));
    change(options);
    return import_error(options);
  };
  const std::string file = golden("vit_token");
  EXPECT_EQ(error_with([](auto& o) { o.file = "absent.safetensors"; }),
            "absent.safetensors: cannot open: No such file or directory");
  EXPECT_EQ(error_with([](auto& o) { o.overrides[3] = "model.width=48"; }),
            file + ": tensor \"blocks.0.attn.proj.bias\" has shape [64], expected [48]");
  EXPECT_EQ(error_with([](auto& o) { o.overrides[4] = "model.depth=3"; }),
            file + ": no tensor \"blocks.2.attn.proj.bias\", expected with shape [64] (vit in layout timm)");
  EXPECT_EQ(error_with([](auto& o) { o.overrides.push_back("model.classes=9"); }),
            file + ": tensor \"head.bias\" has shape [10], expected [9]");
  EXPECT_THAT(error_with([](auto& o) { o.model = "vti"; }), HasSubstr("did you mean \"vit\"?"));
  EXPECT_EQ(error_with([](auto& o) { o.model.clear(); }),
            file + ": the file does not say what model it holds; name it with --model");
  EXPECT_EQ(error_with([](auto& o) { o.layout = "released"; }),
            file + ": layout released holds equivariant models, and vit is ordinary");
  EXPECT_EQ(error_with([](auto& o) { o.mean = {0.5}; }), file + ": mean: 1 values, images have 3 channels");
  folder_.write("names.txt", "one\n");
  EXPECT_EQ(error_with([&](auto& o) { o.classes = folder_.path() / "names.txt"; }),
            (folder_.path() / "names.txt").string() + ": 1 class names, the model tells 10 classes apart");
}

TEST_F(Exchange, NothingIsReplacedByACheckpoint) {
  ImportOptions options = import_of(golden("vit_token"));
  folder_.write("checkpoint/precious.txt", "x");
  try {
    import_checkpoint(options);
    FAIL();
  } catch (const FileError& error) {
    EXPECT_EQ(error.what(), options.out.string() + ": exists already; choose another --out");
  }
  EXPECT_EQ(read_file(options.out / "precious.txt"), "x");
}

TEST_F(Exchange, NoMemoryIsTakenForAModelThatTheFileCannotFill) {
  ImportOptions options = import_of(golden("vit_token"));
  options.overrides = {};
  options.model = "vit_h";
  EXPECT_EQ(import_error(options), golden("vit_token") + ": 81226 values in all, vit_h has 630931210");
}

TEST_F(Exchange, NoMemoryIsTakenForWhatMetadataClaims) {
  const std::string form = R"({"channels":"1","fit":"central_square","mean":"0","native_size":"16384",)"
                           R"("size":"16384","std":"1"})";
  const auto path = folder_.path() / "claim.safetensors";
  for (const char* sizes :
       {"patch_size: 16384, width: 64", "patch_size: 1, width: 64, pos_embed: quarter",
        "patch_size: 128, width: 1048576, heads: 1", "patch_size: 16, width: 8192, depth: 1000, heads: 64"}) {
    write_safetensors(path, {{"head.weight", Tensor::ones({1, 1})}},
                      {{"model", fmt::format("model: {{name: eq_vit, image_size: 16384, {}}}", sizes)},
                       {"preprocessing", form},
                       {"class_names", "[]"}});
    ImportOptions options;
    options.file = path;
    options.out = folder_.path() / "checkpoint";
    EXPECT_THAT(import_error(options),
                testing::AnyOf(HasSubstr("1 values in all, eq_vit has "), HasSubstr("out of range")))
        << sizes;
  }
}

TEST_F(Exchange, MetadataThatCannotBeReadIsNamed) {
  const auto error_with = [&](Metadata metadata) {
    write_safetensors(folder_.path() / "m.safetensors", {{"a", Tensor::ones({1})}}, metadata);
    ImportOptions options;
    options.file = folder_.path() / "m.safetensors";
    return import_error(options).substr((folder_.path().string() + "/").size());
  };
  EXPECT_THAT(error_with({{"model", "model: {name: vit"}, {"preprocessing", "{}"}, {"class_names", "[]"}}),
              testing::StartsWith("m.safetensors: metadata:"));
  EXPECT_THAT(error_with({{"model", "model: {name: vit}"}, {"preprocessing", "{}"}, {"class_names", "[]"}}),
              HasSubstr("m.safetensors: metadata: preprocessing lacks "));
  EXPECT_THAT(error_with({{"model", "model: {name: vit}"}, {"preprocessing", "[["}, {"class_names", "[]"}}),
              HasSubstr("is not the JSON expected"));
}

}  // namespace
}  // namespace gyre::test
