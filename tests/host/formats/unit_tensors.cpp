// SPDX-License-Identifier: Apache-2.0
#include "host/formats/tensors.hpp"

#include <gtest/gtest.h>
#include <zip.h>
#include <zlib.h>

#include <fstream>

#include "host/util/errors.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Arrays = std::map<std::string, NumericArray>;
using Bytes = std::vector<std::uint8_t>;

/// Bytes as a .npy file.
std::string npy(const std::string& numbers) {
  std::string header =
      "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(numbers.size()) + ",), }";
  header.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" + numbers;
}

std::string safetensors(const std::string& name, const std::string& numbers) {
  const std::string size = std::to_string(numbers.size());
  const std::string header =
      "{\"" + name + R"(":{"dtype":"U8","shape":[)" + size + R"(],"data_offsets":[0,)" + size + "]}}";
  return std::string{static_cast<char>(header.size())} + std::string(7, '\0') + header + numbers;
}

std::string idx(const std::string& numbers) {
  const std::string start("\x00\x00\x08\x01\x00\x00\x00", 7);
  return start + static_cast<char>(numbers.size()) + numbers;
}

class TensorFiles : public testing::FolderTest {
 protected:
  fs::path put(const std::string& name, const std::string& bytes) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  fs::path put_npz(const std::string& name, const std::map<std::string, std::string>& arrays) {
    const fs::path path = folder_ / name;
    zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
    std::map<std::string, std::string> members;  // they must live until the archive is closed
    for (const auto& [key, numbers] : arrays) members[key + ".npy"] = npy(numbers);
    for (const auto& [key, bytes] : members)
      EXPECT_GE(
          zip_file_add(archive, key.c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0), 0),
          0);
    EXPECT_EQ(zip_close(archive), 0);
    return path;
  }
  fs::path put_gz(const std::string& name, const std::string& bytes) {
    const gzFile file = gzopen((folder_ / name).c_str(), "wb");
    EXPECT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    EXPECT_EQ(gzclose(file), Z_OK);
    return folder_ / name;
  }

  static Bytes bytes(const NumericArray& array) { return std::get<Bytes>(array.values); }

  template <class Action>
  static void refuses(Action load, const std::string& part) {
    try {
      load();
    } catch (const UserError& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      EXPECT_NE(text.find(part), std::string::npos) << text << "\nwanted: " << part;
      EXPECT_TRUE(text.ends_with(".") && text.find("). ") != std::string::npos) << text;
      return;
    }
    ADD_FAILURE() << "nothing was thrown: " << part;
  }
  static void refuses_tensors(const fs::path& path, const std::string& part) {
    refuses([&] { load_tensors(path); }, path.string() + " " + part);
  }
  static void refuses_images(const fs::path& path, const std::string& part) {
    refuses([&] { load_images(path); }, path.string() + " " + part);
  }
};

TEST_F(TensorFiles, TensorsComeFromAFolder) {
  put("net/W0.npy", npy("ab"));
  put("net/b0.npy", npy("c"));
  put("net/README.md", "two arrays");
  put("net/b1.npy.bak", "no array");
  put("net/deeper/W1.npy", npy("d"));
  fs::create_directories(folder_ / "net" / "folder.npy");
  const Arrays arrays = load_tensors(folder_ / "net");
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(bytes(arrays.at("W0")), (Bytes{'a', 'b'}));
  EXPECT_EQ(bytes(arrays.at("b0")), Bytes{'c'});
}

TEST_F(TensorFiles, TensorsComeFromAFile) {
  Arrays arrays = load_tensors(put_npz("net.npz", {{"W0", "ab"}, {"b0", "c"}}));
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(bytes(arrays.at("W0")), (Bytes{'a', 'b'}));
  EXPECT_EQ(bytes(arrays.at("b0")), Bytes{'c'});
  arrays = load_tensors(put("net.safetensors", safetensors("layer.0", "de")));
  ASSERT_EQ(arrays.size(), 1u);
  EXPECT_EQ(bytes(arrays.at("layer.0")), (Bytes{'d', 'e'}));
}

TEST_F(TensorFiles, OtherTensorsAreRefused) {
  refuses_tensors(folder_ / "absent.npz", "does not exist");
  fs::create_directories(folder_ / "empty");
  put("texts/a.txt", "x");
  for (const char* name : {"empty", "texts"})
    refuses_tensors(folder_ / name,
                    "is a folder without .npy files (a folder stands for the arrays in it). Give a folder of "
                    "them, or a .npz or .safetensors file.");
  refuses_tensors(
      put("net.npy", npy("a")),
      "has the unknown ending \".npy\" (the ending tells the format). Give a .npz or .safetensors "
      "file, or a folder of .npy files.");
  refuses_tensors(put("net.pt", "x"), "has the unknown ending \".pt\"");
  refuses_tensors(put("net", "x"), "has the unknown ending \"\"");
  put("bad/W.npy", "x");
  refuses([&] { load_tensors(folder_ / "bad"); }, "W.npy is no NumPy array");
  refuses_tensors(put("bad.npz", "x"), "cannot be opened");
  refuses_tensors(put("bad.safetensors", "x"), "is damaged");
}

TEST_F(TensorFiles, ImagesComeFromNumPy) {
  EXPECT_EQ(bytes(load_images(put("a.npy", npy("ab")))), (Bytes{'a', 'b'}));
  EXPECT_EQ(bytes(load_images(put_npz("one.npz", {{"other", "a"}}))), Bytes{'a'});
  EXPECT_EQ(bytes(load_images(put_npz("x.npz", {{"a", "a"}, {"x", "b"}, {"y", "c"}}))), Bytes{'b'});
  EXPECT_EQ(bytes(load_images(put_npz("images.npz", {{"images", "a"}, {"x", "b"}}))), Bytes{'a'});
  EXPECT_EQ(bytes(load_images(put("idx.npy", npy("a")))), Bytes{'a'});  // the ending goes before the name
}

TEST_F(TensorFiles, ImagesComeFromIdx) {
  const std::string ab = idx("ab");
  for (const char* name :
       {"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte", "a.idx", "images", "images.bin"})
    EXPECT_EQ(bytes(load_images(put(name, ab))), (Bytes{'a', 'b'})) << name;
  for (const char* name : {"t10k-images-idx3-ubyte.gz", "images.gz", "images.packed"})
    EXPECT_EQ(bytes(load_images(put_gz(name, ab))), (Bytes{'a', 'b'})) << name;
  EXPECT_EQ(bytes(load_images(put("unpacked.gz", ab))), (Bytes{'a', 'b'}));
}

TEST_F(TensorFiles, OtherImagesAreRefused) {
  refuses_images(folder_ / "absent.npy", "does not exist");
  const std::string formats =
      "is in no known format (images must be one array). Give a .npy, .npz or IDX file; IDX, as of MNIST, "
      "may "
      "be packed as .gz.";
  for (const char* name : {"a.png", "a.csv", "a"}) refuses_images(put(name, "text"), formats);
  refuses_images(put("empty", ""), formats);
  refuses_images(put("a.safetensors", safetensors("x", "a")), formats);
  fs::create_directories(folder_ / "idx.gz");
  refuses_images(folder_ / "idx.gz", formats);
  refuses_images(put_npz("two.npz", {{"a", "a"}, {"b", "b"}}),
                 "holds 2 arrays, none of them named images or x (one must be chosen)");
  refuses_images(put("images.idx", "text"), "is no IDX file");
  refuses_images(put_gz("a.npy.gz", npy("a")), "is no IDX file");
  refuses_images(put("b.gz", "text"), "is no IDX file");
  refuses_images(put("bad.npy", "text"), "is no NumPy array");
}

}  // namespace
}  // namespace lockstep
