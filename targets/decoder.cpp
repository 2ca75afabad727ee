// SPDX-License-Identifier: Apache-2.0
#include "targets/decoder.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "targets/decompositions.hpp"

namespace lockstep {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::RowVectorXd;
using Tensors = std::map<std::string, DataArray>;

struct Asked {
  std::string weights, images;
  std::vector<Activation> hidden;  // of all hidden layers, or of each of the decoder's
  bool binary, drawn;
  double noise, threshold;
  int items;
  std::uint64_t seed;

  explicit Asked(TargetInput& in)
      : weights(in.text("weights", "")),
        images(in.text("images", "simulate:100")),
        binary(in.choice("likelihood", "bernoulli", {"bernoulli", "gaussian"}) == "bernoulli"),
        drawn(in.choice("binarise", "threshold", {"threshold", "draw"}) == "draw"),
        noise(in.number("noise_sd", 0.1, 1e-6, 1e6)),
        threshold(in.number("threshold", 0.5, 0, 1)),
        items(in.integer("items", 0, 0, 1 << 30)),
        seed(std::uint64_t(in.integer("seed", 1, 0, std::numeric_limits<int>::max()))) {
    std::istringstream list(in.text("activation", "tanh"));
    for (std::string name; std::getline(list, name, ',');) {
      if (name != "tanh" && name != "relu" && name != "sigmoid")
        in.fail(
            "target.activation has '" + name +
            "' (tanh, relu and sigmoid are known). Give one, or one for each hidden layer of the decoder, "
            "separated by commas");
      hidden.push_back(name == "tanh"   ? Activation::tanh
                       : name == "relu" ? Activation::relu
                                        : Activation::sigmoid);
    }
    if (hidden.empty())
      in.fail("target.activation is empty (hidden layers have one). Give tanh, relu or sigmoid");
  }
  Activation of_layer(std::size_t l) const { return hidden[std::min(l, hidden.size() - 1)]; }
};

std::string shape_text(const std::vector<int>& shape) {
  std::string s = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) s += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

struct Layer {
  Matrix w;  // [in][out]
  Vector b;
};

/// A stack of layers, found by their names: PREFIX_W0, PREFIX_b0, PREFIX_W2 .. with weights [in][out], or
/// PREFIX.0.weight, PREFIX.0.bias .. with weights [out][in], as PyTorch has them; numbers in order, gaps
/// allowed.
std::vector<Layer> read_stack(TargetInput& in, const Tensors& tensors, const std::string& prefix, int inputs,
                              std::set<std::string>& used) {
  std::map<int, std::pair<std::string, std::string>> names;  // number -> weight, bias
  std::map<int, bool> turned;
  for (const auto& [name, array] : tensors) {
    const bool torch = name.rfind(prefix + ".", 0) == 0 && name.ends_with(".weight");
    if (!torch && name.rfind(prefix + "_W", 0) != 0) continue;
    const std::string digits = torch ? name.substr(prefix.size() + 1, name.size() - prefix.size() - 8)
                                     : name.substr(prefix.size() + 2);
    int number = 0;
    const auto end = digits.data() + digits.size();
    if (digits.empty() || std::from_chars(digits.data(), end, number).ptr != end) continue;
    names[number] = {name, torch ? prefix + "." + digits + ".bias" : prefix + "_b" + digits};
    turned[number] = torch;
  }
  std::vector<Layer> stack;
  for (const auto& [number, pair] : names) {
    const auto& [weight, bias] = pair;
    const DataArray& w = tensors.at(weight);
    if (w.shape.size() != 2 || w.shape[0] < 1 || w.shape[1] < 1)
      in.fail(weight + " has shape " + shape_text(w.shape) +
              " (weights are matrices, and not empty). Give it two indices");
    used.insert({weight, bias});
    Layer layer;
    layer.w = Eigen::Map<const Matrix>(w.values.data(), w.shape[0], w.shape[1]);
    if (turned[number]) layer.w.transposeInPlace();
    if (layer.w.rows() != inputs)
      in.fail(weight + " has shape " + shape_text(w.shape) + " (" + std::to_string(inputs) +
              " numbers come in from the layer before). Check the order of the layers and whether it is "
              "transposed");
    const auto found = tensors.find(bias);
    if (found == tensors.end())
      in.fail("the weights have no " + bias + " (the bias of the layer of " + weight +
              "). Give it, of zeros for a layer without one");
    if (std::int64_t(found->second.values.size()) != layer.w.cols())
      in.fail(bias + " has shape " + shape_text(found->second.shape) + " (" + weight + " has " +
              std::to_string(layer.w.cols()) + " outputs). Give one number for each");
    layer.b = Eigen::Map<const Vector>(found->second.values.data(), layer.w.cols());
    const auto usable = [](const auto& m) { return m.allFinite() && m.cwiseAbs().maxCoeff() < 1e30; };
    if (!usable(layer.w) || !usable(layer.b))
      in.fail(
          weight +
          " or its bias holds a number that is not finite, or beyond 1e30 (every log density would be NaN). "
          "Train again, or give another file");
    inputs = int(layer.w.cols());
    stack.push_back(std::move(layer));
  }
  return stack;
}

Matrix through(const std::vector<Layer>& stack, Matrix h, const Asked& asked, bool last_is_hidden) {
  for (std::size_t l = 0; l < stack.size(); ++l) {
    h = (h * stack[l].w).rowwise() + stack[l].b;
    if (last_is_hidden || l + 1 < stack.size())
      h = h.unaryExpr([&](double y) { return activate(asked.of_layer(l), y); }).eval();
  }
  return h;
}

/// Images of 0 and 1 from what a file holds.
Matrix read_images(TargetInput& in, const Asked& asked, int pixels, Items& items) {
  const DataArray a = in.images(asked.images);
  if (a.shape.empty() || a.shape[0] == 0)
    in.fail("target.images has no image (there is nothing to estimate). Give another file");
  std::int64_t per = 1;
  for (std::size_t i = 1; i < a.shape.size(); ++i) per *= a.shape[i];
  if (per != pixels)
    in.fail("target.images has shape " + shape_text(a.shape) + " (the decoder gives " +
            std::to_string(pixels) + " pixels). Give images of that size");
  if (a.shape.size() == 3) {
    items.rows = a.shape[1];
    items.columns = a.shape[2];
  }
  const int count = asked.items > 0 ? std::min(asked.items, a.shape[0]) : a.shape[0];
  Matrix x = Eigen::Map<const Matrix>(a.values.data(), count, pixels);
  if (!x.allFinite())
    in.fail("target.images holds a number that is not finite (its evidence would be NaN). Repair the file");
  if (!asked.binary) return x;
  if (!(x.minCoeff() >= 0 && x.maxCoeff() <= 255))
    in.fail(
        "target.images holds numbers outside 0 to 255 (they are to be intensities, of 1 or of 255). "
        "Rescale them");
  if (x.maxCoeff() > 1) {
    if ((x.array() != x.array().round()).any())
      in.fail(
          "target.images holds fractions, and numbers above 1 (intensities are fractions up to 1, or whole "
          "up "
          "to 255). Rescale them");
    x /= 255;
  }
  ExactDraw draw(asked.seed, "binary");
  return x
      .unaryExpr([&](double v) { return (asked.drawn ? draw.uniform() : asked.threshold) < v ? 1.0 : 0.0; })
      .eval();
}

Matrix standard_normal(ExactDraw& draw, int rows, int columns) {
  Matrix z(rows, columns);
  for (double& v : z.reshaped<Eigen::RowMajor>()) v = draw.normal();
  return z;
}

/// A misspelt name would leave out a layer or a bias.
void refuse_unused(TargetInput& in, const Tensors& tensors, const std::set<std::string>& used) {
  for (const auto& [name, array] : tensors)
    if (!used.contains(name) && (name.starts_with("decoder") || name.starts_with("encoder")))
      in.fail(
          "the weights hold " + name +
          ", which belongs to no layer (it would have no effect). Rename or remove it; see: lockstep targets "
          "decoder");
}

/// log N(x; b, W'W + s^2 I): the evidence where the decoder is one linear layer with normal noise.
std::vector<double> linear_evidence(const Layer& layer, double noise, const Matrix& images) {
  const Eigen::MatrixXd covariance =
      layer.w.transpose() * layer.w +
      noise * noise * Eigen::MatrixXd::Identity(layer.b.size(), layer.b.size());
  const Eigen::LLT<Eigen::MatrixXd> llt(covariance);
  const double norm = -0.5 * double(layer.b.size()) * std::log(2 * kPi) -
                      Eigen::MatrixXd(llt.matrixL()).diagonal().array().log().sum();
  std::vector<double> log_z;
  for (Eigen::Index i = 0; i < images.rows(); ++i)
    log_z.push_back(norm - 0.5 * llt.matrixL().solve((images.row(i) - layer.b).transpose()).squaredNorm());
  return log_z;
}

/// Latent variables, by the shape of the decoder's first layer.
int latent_dim(TargetInput& in, const Tensors& tensors) {
  for (const char* first : {"decoder_W0", "decoder.0.weight"})
    if (const auto found = tensors.find(first); found != tensors.end() && found->second.shape.size() == 2)
      return found->second.shape[first[7] == '_' ? 0 : 1];
  in.fail(
      "the weights have no decoder_W0 or decoder.0.weight, as a matrix (the decoder's first layer). "
      "Rename them; see: lockstep targets decoder");
  return 0;  // fail has thrown
}

std::vector<Layer> read_decoder(TargetInput& in, const Tensors& tensors, const Asked& asked, int dim,
                                std::set<std::string>& used) {
  auto stack = read_stack(in, tensors, "decoder", dim, used);
  if (stack.size() > std::size_t(Decoder::kMostLayers))
    in.fail("the decoder has more than " + std::to_string(Decoder::kMostLayers) +
            " layers (as many are held). Give a shallower one");
  if (asked.hidden.size() > 1 && asked.hidden.size() + 1 != stack.size())
    in.fail("target.activation names " + std::to_string(asked.hidden.size()) +
            " activations (the decoder has " + std::to_string(stack.size() - 1) +
            " hidden layers). Give one for all, or one for each");
  return stack;
}

/// Images of latent variables that are drawn, and kept in `items`.
Matrix simulated_images(TargetInput& in, const Asked& asked, const std::vector<Layer>& stack, Items& items) {
  const std::string& from = asked.images;
  const int pixels = int(stack.back().b.size()), dim = int(stack.front().w.rows());
  int count = 0;
  const auto end = from.data() + from.size();
  if (std::from_chars(from.data() + 9, end, count).ptr != end || count < 1 || count > 1000000)
    in.fail("target.images is " + from +
            " (a number of images from 1 to 1000000 follows the colon). Give, for "
            "example, simulate:100");
  if (double(count) * pixels > 2e9)
    in.fail("target.images is " + from + " (that many images of " + std::to_string(pixels) +
            " pixels do not fit). Give fewer");
  ExactDraw draw(asked.seed, "images");
  Matrix z = standard_normal(draw, count, dim);
  Matrix images = through(stack, z, asked, false);
  for (double& y : images.reshaped<Eigen::RowMajor>())
    y = asked.binary ? (draw.uniform() < sigmoid(y) ? 1.0 : 0.0) : y + asked.noise * draw.normal();
  if (asked.items > 0 && asked.items < count) {
    z.conservativeResize(asked.items, Eigen::NoChange);
    images.conservativeResize(asked.items, Eigen::NoChange);
  }
  items.exact.assign(z.data(), z.data() + z.size());
  return images;
}

/// Means and standard deviations of the base: the encoder's, or the prior's where there is none.
void read_base(TargetInput& in, const Tensors& tensors, const Asked& asked, const Matrix& images,
               Items& items, std::set<std::string>& used) {
  const int count = int(images.rows()), pixels = int(images.cols()), dim = latent_dim(in, tensors);
  const auto encoder = read_stack(in, tensors, "encoder_h", pixels, used);
  const int width = encoder.empty() ? pixels : int(encoder.back().b.size());
  const auto mean = read_stack(in, tensors, "encoder_mean", width, used),
             log_sd = read_stack(in, tensors, "encoder_std", width, used);
  refuse_unused(in, tensors, used);
  if (mean.empty() != log_sd.empty() || (mean.empty() && !encoder.empty()))
    in.fail(
        "the encoder has encoder_mean or encoder_std alone, or neither (a base takes both). Give both, or no "
        "encoder");
  Matrix centre = Matrix::Zero(count, dim), sd = Matrix::Ones(count, dim);
  if (!mean.empty()) {
    items.base = "encoder";
    const Matrix h = through(encoder, images, asked, true);
    centre = through(mean, h, asked, false);
    sd = through(log_sd, h, asked, false).array().exp();
    if (centre.cols() != dim || sd.cols() != dim)
      in.fail("the encoder gives " + std::to_string(centre.cols()) + " means and " +
              std::to_string(sd.cols()) + " standard deviations (there are " + std::to_string(dim) +
              " latent variables). Check encoder_mean and encoder_std");
  }
  if (!centre.allFinite() || !sd.allFinite() || sd.minCoeff() < 1e-30)
    in.fail(
        "the encoder gives a mean or a standard deviation that is no use (not finite, or zero). Check its "
        "weights, or leave encoder_mean and encoder_std out");
  items.base_mean.assign(centre.data(), centre.data() + centre.size());
  items.base_sd.assign(sd.data(), sd.data() + sd.size());
}

}  // namespace

TargetInfo DecoderTarget::info() {
  return {
      .name = "decoder",
      .summary = "Posterior of a generative model's latent variables, image by image",
      .formula =
          "log N(z; 0, I) + sum_p x_p y_p - log(1 + exp y_p), y = decoder(z); normal noise: "
          "log N(x; y, noise_sd^2 I)",
      .settings =
          {{"weights",
            "folder of .npy files, .npz or .safetensors: decoder_W0 [in][out], decoder_b0, "
            "decoder_W2 .. in order, or decoder.0.weight [out][in], decoder.0.bias ..; for the "
            "bases of the paths optionally encoder_h_.., encoder_mean_.. and encoder_std_.. (the log "
            "of the standard deviation) (no default)"},
           {"images",
            "file (.npy, .npz, IDX, also .gz) of shape [image][pixel] or [image][row][column], "
            "of intensities up to 1 or whole ones up to 255, or simulate:N to draw N from the model (then "
            "an exact draw of each posterior is known; another N has other images) "
            "(default simulate:100)"},
           {"activation",
            "of hidden layers: tanh, relu or sigmoid, or one for each of the decoder's, separated by commas "
            "(the encoder takes them in the same order) (default tanh)"},
           {"likelihood", "bernoulli, or gaussian with noise_sd (default bernoulli)"},
           {"noise_sd", "of the gaussian likelihood (default 0.1)"},
           {"binarise", "of intensities: threshold, or draw (default threshold)"},
           {"threshold", "intensity above which a pixel is 1 (default 0.5)"},
           {"items", "how many of the images, from the first; 0: all (default 0)"},
           {"seed", "of simulated images and of drawn pixels (default 1)"}},
      .data = "",
      .truth =
          "one linear layer with normal noise: log p(x) of every image; simulated images: one exact "
          "draw of each posterior"};
}

Built<Decoder> DecoderTarget::build(TargetInput& in) {
  const Asked asked(in);
  if (asked.weights.empty())
    in.fail(
        "target decoder has no weights (they are the decoder). Give --set target.weights=FOLDER or FILE; "
        "see: "
        "lockstep targets decoder");
  const bool binary = asked.binary;
  const double noise = binary ? 0 : asked.noise;
  const std::string& from = asked.images;
  const Tensors tensors = in.tensors(asked.weights);
  const int dim = latent_dim(in, tensors);
  std::set<std::string> used;
  const auto stack = read_decoder(in, tensors, asked, dim, used);
  const int pixels = int(stack.back().b.size());

  Built<Decoder> built(dim);
  auto items = std::make_shared<Items>();
  Matrix images;
  if (from.rfind("simulate:", 0) == 0) {
    images = simulated_images(in, asked, stack, *items);
  } else {
    images = read_images(in, asked, pixels, *items);
  }
  const int count = items->count = int(images.rows());
  if (items->rows == 0) {  // square, if they can be
    const int side = int(std::lround(std::sqrt(double(pixels))));
    items->rows = side * side == pixels ? side : 1;
    items->columns = pixels / items->rows;
  }
  read_base(in, tensors, asked, images, *items, used);
  if (!binary && stack.size() == 1) items->log_z = linear_evidence(stack[0], noise, images);
  items->values.assign(images.data(), images.data() + images.size());
  if (count == 1 && !items->log_z.empty()) built.truth.log_z = items->log_z[0];

  Decoder& density = built.density;
  density.dim = dim;
  density.num_layers = int(stack.size());
  density.pixels = pixels;
  density.items = count;
  density.noise = noise;
  for (std::size_t l = 0; l < stack.size(); ++l) {
    const Layer& layer = stack[l];
    density.layers[l] = {int(layer.w.rows()), int(layer.w.cols()),
                         l + 1 < stack.size() ? asked.of_layer(l) : Activation::identity,
                         built.pool.add({layer.w.data(), layer.w.data() + layer.w.size()}),
                         built.pool.add({layer.b.data(), layer.b.data() + layer.b.size()})};
  }
  density.images = built.pool.add({images.data(), images.data() + images.size()});
  built.items = std::move(items);
  return built;
}

}  // namespace lockstep
