// SPDX-License-Identifier: Apache-2.0
// Settings and data of target boltzmann: what each does, every mistake, and the systems in shared data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "host/formats/data.hpp"
#include "host/options/target_input.hpp"
#include "targets/boltzmann_exact.hpp"
#include "tests/support/boltzmann.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/subject.hpp"

namespace lockstep::testing {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(BoltzmannInput, SettingsChooseTheSystemAndTheDiagonal) {
  MemoryInput in;
  EXPECT_EQ(BoltzmannTarget::build(in).density.units, 28);
  in.numbers = {{"units", 12}, {"seed", 4}};
  const Built<Boltzmann> four = BoltzmannTarget::build(in);
  in.numbers["seed"] = 5;
  EXPECT_NE(BoltzmannTarget::build(in).truth.log_z, four.truth.log_z);
  // Given as data, the random system is the same system.
  MemoryInput data = machine_input(random_boltzmann_machine(12, 4));
  EXPECT_EQ(BoltzmannTarget::build(data).truth.log_z, four.truth.log_z);
  data.arrays["weights"] = data.arrays["W"];  // as a folder names them
  data.arrays["biases"] = data.arrays["b"];
  data.arrays.erase("W");
  data.arrays.erase("b");
  EXPECT_EQ(BoltzmannTarget::build(data).truth.log_z, four.truth.log_z);
  // Any D gives the same machine: log Z - tr(D) / 2 - (r / 2) log 2 pi is one number.
  auto machine_log_z = [](const Built<Boltzmann>& b) {
    const MatrixXd q = factor_of(b.density, 12);
    return b.truth.log_z - 0.5 * q.squaredNorm() - 0.5 * b.density.dim * std::log(2 * kPi);
  };
  const double expected = machine_log_z(four);
  data.choices["diagonal"] = "trivial";
  const Built<Boltzmann> trivial = BoltzmannTarget::build(data);
  EXPECT_EQ(trivial.density.dim, 11);
  EXPECT_NEAR(machine_log_z(trivial), expected, 1e-11);
  data.choices.clear();
  data.arrays["D_sdp"] = data_array(VectorXd::Constant(12, 7).eval());
  const Built<Boltzmann> given = BoltzmannTarget::build(data);  // the default where there is a D
  EXPECT_EQ(given.density.dim, 12);
  EXPECT_NEAR(machine_log_z(given), expected, 1e-11);
  data.choices["diagonal"] = "sdp";
  EXPECT_EQ(BoltzmannTarget::build(data).density.dim, four.density.dim);
}

TEST(BoltzmannInput, SmallMachinesAndThoseWithoutCouplingsAreRelaxedToo) {
  // One unit, D = 2: a mixture of N(-sqrt 2, 1) and N(sqrt 2, 1).
  MemoryInput in;
  in.arrays["W"] = {{0}, {1, 1}};
  in.arrays["b"] = {{0.4}, {1}};
  in.arrays["D"] = {{2}, {1}};
  const Built<Boltzmann> one = BoltzmannTarget::build(in);
  EXPECT_NEAR(one.truth.mean[0], std::sqrt(2.0) * std::tanh(0.4), 1e-13);
  EXPECT_NEAR(one.truth.log_z, std::log(std::cosh(0.4)) + 1 + 0.5 * std::log(2 * kPi), 1e-13);
  in.arrays["W"] = {{0, 0, 0, 0}, {2, 2}};
  in.arrays["b"] = {{0.4, -1}, {2}};
  in.arrays["D"] = {{2, 3}, {2}};
  const Built<Boltzmann> two = BoltzmannTarget::build(in);
  EXPECT_NEAR(two.truth.log_z, std::log(std::cosh(0.4) * std::cosh(1.0)) + 2.5 + std::log(2 * kPi), 1e-13);
}

std::string complaint(const MemoryInput& in) { return build_complaint<BoltzmannTarget>(in); }

TEST(BoltzmannInput, EveryMistakeIsNamed) {
  const BoltzmannMachine machine = three_units();
  const MemoryInput good = machine_input(machine);
  auto with = [&](const std::string& name, DataArray array) {
    MemoryInput in = good;
    in.arrays[name] = std::move(array);
    return in;
  };
  auto couplings = [&](int i, int j, double v) {
    MatrixXd w = machine.w;
    w(i, j) = v;
    return with("W", data_array(w));
  };
  EXPECT_THAT(complaint(with("W", {{0, 1, 1, 0, 2, 3}, {2, 3}})), HasSubstr("W has shape [2][3]"));
  EXPECT_THAT(complaint(with("W", {{0, 1, 1, 0}, {4}})), HasSubstr("W has shape [4]"));
  EXPECT_THAT(complaint(with("W", {{}, {0, 0}})), HasSubstr("W has shape [0][0]"));
  EXPECT_THAT(complaint(couplings(1, 0, 1.2 + 1e-9)),
              AllOf(HasSubstr("W is not symmetric: 1.2 in row 1, column 2 and 1.2 in row 2, column 1")));
  EXPECT_THAT(complaint(couplings(2, 0, 5)), HasSubstr("-0.7 in row 1, column 3 and 5 in row 3, column 1"));
  EXPECT_THAT(complaint(couplings(1, 1, 0.5)), HasSubstr("W has 0.5 in row 2, column 2"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(complaint(couplings(1, 0, nan)), HasSubstr("W has an entry that is no finite number"));
  EXPECT_THAT(complaint(with("b", {{0, nan, 0}, {3}})), HasSubstr("b has an entry that is no finite number"));
  EXPECT_THAT(complaint(with("b", {{0, 0}, {2}})), HasSubstr("b has shape [2] (there are 3 units)"));
  EXPECT_THAT(complaint(with("b", {{0, 0, 0}, {1, 3}})), HasSubstr("b has shape [1][3]"));
  EXPECT_THAT(complaint(with("D", {{2, 2}, {2}})), HasSubstr("D has shape [2]"));
  EXPECT_THAT(complaint(with("D", {{2, nan, 2}, {3}})), HasSubstr("D has an entry"));
  const VectorXd trivial = trivial_relaxation_diagonal(machine.w);
  EXPECT_THAT(complaint(with("D", data_array((trivial.array() - 0.125).matrix().eval()))),
              HasSubstr("W + D has the eigenvalue -0.125"));
  EXPECT_THAT(complaint(with("D", data_array((trivial.array() - 1e-6).matrix().eval()))),
              HasSubstr("W + D has the eigenvalue -1e-06"));
  EXPECT_THAT(complaint(with("D", {{-9, -9, -9}, {3}})), HasSubstr("W + D has the eigenvalue"));
  EXPECT_THAT(complaint(with("W", {std::vector<double>(9, 0.0), {3, 3}})), HasSubstr("W + D is zero"));
  MemoryInput in = good;
  in.choices["diagonal"] = "given";
  EXPECT_THAT(complaint(in), HasSubstr("the data have no D"));
  in = good;
  in.numbers["units"] = 28;
  EXPECT_THAT(complaint(in), HasSubstr("target.units differs from the 3 units of the data"));
  in = good;
  in.numbers["seed"] = 3;
  EXPECT_THAT(complaint(in), HasSubstr("target.seed is given beside data"));
  in = {};
  in.numbers["units"] = 1;
  EXPECT_THROW(BoltzmannTarget::build(in), UserError);
  // And within the tolerances all is well.
  BoltzmannTarget::build(in = couplings(1, 0, 1.2 + 1e-11));
  BoltzmannTarget::build(in = with("D", data_array((trivial.array() - 1e-9).matrix().eval())));
  BoltzmannTarget::build(in = good);
}

// --- shared data (boltzmann-28: three systems with exact answers computed apart) -------------------------

/// A file of numbers, read as the host reads a folder's.
MatrixXd table(const std::filesystem::path& folder, const std::string& name) {
  const DataReader data(load_data(folder), "test");
  return name == "D_sdp" || name == "biases" || name == "E_s" || name == "log_Z_boltzmann"
             ? MatrixXd(data.vector(name))
             : data.matrix(name);
}

class SharedSystems : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const char* root = std::getenv("LOCKSTEP_DATA");
    if (root == nullptr) GTEST_SKIP() << "LOCKSTEP_DATA is not set: the shared systems are not compared";
    folder_ = std::filesystem::path(root) / "boltzmann-28" / ("sys" + std::to_string(GetParam()));
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << folder_ << " does not exist";
    std::ifstream truth(folder_ / "truth.csv");
    for (std::string line; std::getline(truth, line);)
      if (const auto comma = line.find(','); comma != std::string::npos)
        truth_[line.substr(0, comma)] = std::atof(line.c_str() + comma + 1);
  }
  std::filesystem::path folder_;
  std::map<std::string, double> truth_;
};

TEST_P(SharedSystems, AreReproducedFromFolderAndSeed) {
  RunOptions run;
  run.target = "boltzmann";
  run.data = folder_;
  const auto given = build_target(run);
  EXPECT_EQ(given->dim(), 25);
  EXPECT_NEAR(given->truth().log_z, truth_.at("log_Z"), 1e-9);
  run.target_settings["diagonal"] = "sdp";
  EXPECT_NEAR(build_target(run)->truth().log_z, truth_.at("log_Z"), 1e-6);
  run.data.clear();
  run.target_settings["seed"] = GetParam();
  EXPECT_NEAR(build_target(run)->truth().log_z, truth_.at("log_Z"), 1e-6);
}

TEST_P(SharedSystems, HaveTheMomentsThatEnumerationFinds) {
  const BoltzmannEnumeration found(table(folder_, "weights"), table(folder_, "biases"));
  EXPECT_NEAR(found.log_z(), truth_.at("log_Z_B"), 1e-11);
  EXPECT_LT((found.mean() - table(folder_, "E_s")).cwiseAbs().maxCoeff(), 1e-11);
  EXPECT_LT((found.second() - table(folder_, "E_ss")).cwiseAbs().maxCoeff(), 1e-11);
}

TEST_P(SharedSystems, HaveTheDiagonalThatTheBarrierFinds) {
  const RelaxationDiagonal found = smallest_relaxation_diagonal(table(folder_, "weights"));
  EXPECT_LE(found.gap, 1e-6);
  EXPECT_NEAR(found.lambda_max, truth_.at("lambda_max"), 1e-6);
  EXPECT_LT((found.d - table(folder_, "D_sdp")).cwiseAbs().maxCoeff(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Boltzmann28, SharedSystems, ::testing::Values(101, 102, 103),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace lockstep::testing
