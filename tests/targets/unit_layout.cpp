// SPDX-License-Identifier: Apache-2.0
// The order of the source tree: kernels <- targets <- host <- { bench, tests }, and of the rooms of host/.
// Each rule is a function from a tree of files to its complaints; planted trees show that each of them can
// complain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep::testing {
namespace {

using Tree = std::map<std::string, std::string>;  // path from the root -> text
using Complaints = std::vector<std::string>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string folder_of(const std::string& path) { return path.substr(0, path.find('/')); }
std::string ending_of(const std::string& path) { return std::filesystem::path(path).extension().string(); }
bool is_source(const std::string& path) {
  static const std::set<std::string> endings = {".hpp", ".cpp", ".cuh", ".cu"};
  return endings.count(ending_of(path)) > 0;
}

/// The source tree on disk, without what is built or generated.
Tree read_tree() {
  namespace fs = std::filesystem;
  const fs::path root = LOCKSTEP_SOURCE_DIR;
  Tree tree;
  auto add = [&](const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    tree[file.lexically_relative(root).generic_string()] = text.str();
  };
  for (const char* folder : {"kernels", "targets", "host", "bench", "tests", "scripts", "cmake"})
    if (fs::exists(root / folder))
      for (const auto& entry : fs::recursive_directory_iterator(root / folder))
        if (entry.is_regular_file() && entry.path().parent_path().filename() != "__pycache__")
          add(entry.path());
  for (const char* file : {"CMakeLists.txt", "lockstep.sh"}) add(root / file);
  return tree;
}

/// Names in #include "...", in order.
std::vector<std::string> includes(const std::string& text) {
  static const std::regex line("^[ \t]*#[ \t]*include[ \t]*\"([^\"]+)\"");
  std::vector<std::string> names;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string s; std::getline(lines, s);)
    if (std::regex_search(s, match, line)) names.push_back(match[1]);
  return names;
}

/// Quoted includes start at the root of the repository, and never point against the order of the folders.
Complaints against_the_order(const Tree& tree) {
  static const std::map<std::string, std::set<std::string>> allowed = {
      {"kernels", {"kernels"}},
      {"targets", {"kernels", "targets"}},
      {"host", {"kernels", "targets", "host"}},
      {"bench", {"kernels", "targets", "host", "bench"}},
      {"tests", {"kernels", "targets", "host", "tests"}}};
  Complaints bad;
  for (const auto& [path, text] : tree) {
    if (!allowed.count(folder_of(path)) || (!is_source(path) && ending_of(path) != ".in")) continue;
    for (const std::string& name : includes(text)) {
      if (name.find('/') == std::string::npos || !allowed.count(folder_of(name)))
        bad.push_back(path + " includes \"" + name + "\", which is no path from the root");
      else if (!allowed.at(folder_of(path)).count(folder_of(name)))
        bad.push_back(path + " includes " + name);
    }
  }
  return bad;
}

/// The rooms of host/, from the ground up; every file of it stands in one and includes nothing of a higher
/// one.
Complaints up_the_rooms(const Tree& tree) {
  static const std::vector<std::string> rooms = {"util",     "formats", "estimators", "options",
                                                 "engines",  "modes",   "runs",       "paths",
                                                 "commands", "studies", "cli"};
  const auto floor_of = [](const std::string& path) {
    const auto begin = std::string("host/").size(), end = path.find('/', begin);
    return std::find(rooms.begin(), rooms.end(),
                     path.substr(begin, end == std::string::npos ? 0 : end - begin));
  };
  Complaints bad;
  for (const auto& [path, text] : tree) {
    if (folder_of(path) != "host" || !is_source(path)) continue;
    if (floor_of(path) == rooms.end()) bad.push_back(path + " stands in no room");
    for (const std::string& name : includes(text))
      if (folder_of(name) == "host" && floor_of(name) > floor_of(path))
        bad.push_back(path + " includes " + name);
  }
  return bad;
}

/// Modules of host/ (a header with the source of its name) that include each other in a circle, or stand between two circles: what
/// remains when those that include none of the rest are taken away, again and again, and those that none of the rest includes.
Complaints in_circles(const Tree& tree) {
  const auto module_of = [](const std::string& path) { return path.substr(0, path.rfind('.')); };
  std::map<std::string, std::set<std::string>> included, includers;
  for (const auto& [path, text] : tree)
    if (folder_of(path) == "host" && is_source(path))
      for (const std::string& name : includes(text))
        if (const auto from = module_of(path), to = module_of(name);
            folder_of(name) == "host" && from != to) {
          included[from].insert(to);
          includers[to].insert(from);
        }
  for (auto* edges : {&included, &includers})
    for (std::size_t before = 0; before != edges->size();) {
      before = edges->size();
      for (auto& [module, others] : *edges)
        std::erase_if(others, [&](const std::string& other) { return !edges->contains(other); });
      std::erase_if(*edges, [](const auto& module) { return module.second.empty(); });
    }
  Complaints bad;
  for (const auto& [module, others] : included)
    if (includers.contains(module)) bad.push_back(module);
  return bad;
}

/// What is compiled for a GPU is decided in kernels/ alone.
Complaints cuda_macros_outside_kernels(const Tree& tree) {
  Complaints bad;
  for (const auto& [path, text] : tree)
    for (const char* macro : {"__CUDA"
                              "CC__",
                              "__CUDA"
                              "_ARCH__"})
      if (folder_of(path) != "kernels" && (is_source(path) || ending_of(path) == ".in") &&
          text.find(macro) != std::string::npos)
        bad.push_back(path + " mentions " + macro);
  return bad;
}

/// The licence stands in the first two lines (a script's first line is its interpreter).
Complaints without_licence(const Tree& tree) {
  static const std::set<std::string> endings = {".py", ".sh", ".cmake"};
  Complaints bad;
  for (const auto& [path, text] : tree) {
    if (!is_source(path) && !endings.count(ending_of(path)) && !path.ends_with("CMakeLists.txt")) continue;
    const auto at = text.find("SPDX-License-Identifier: Apache-2.0\n");
    if (at == std::string::npos || std::count(text.begin(), text.begin() + long(at), '\n') > 1)
      bad.push_back(path);
  }
  return bad;
}

/// Sources that no test exercises. Exercised: every file of tests/; what such a file includes, or names by
/// its path; the .cpp or .cu of an exercised header, that is, one whose first include it is; and the
/// generated files of an exercised header with the stem of their template (@...@ standing for any name).
Complaints not_exercised(const Tree& tree) {
  std::set<std::string> reached;
  std::vector<std::string> open;
  auto reach = [&](const std::string& path) {
    if (tree.count(path) && reached.insert(path).second) open.push_back(path);
  };
  std::map<std::string, std::vector<std::string>> implementations;  // header -> files that come with it
  for (const auto& [path, text] : tree) {
    const auto names = includes(text);
    if ((ending_of(path) == ".cpp" || ending_of(path) == ".cu") && !names.empty())
      implementations[names.front()].push_back(path);
    if (ending_of(path) == ".in") implementations[path.substr(0, path.size() - 3) + ".hpp"].push_back(path);
  }
  for (const auto& [path, text] : tree) {
    if (folder_of(path) != "tests" || !is_source(path)) continue;
    reach(path);
    for (const auto& [other, unused] : tree)
      if (folder_of(other) != "tests" && text.find(other) != std::string::npos) reach(other);
  }
  while (!open.empty()) {
    const std::string path = open.back();
    open.pop_back();
    for (const std::string& name : includes(tree.at(path))) {
      reach(name);
      if (name.find('@') == std::string::npos) continue;
      const std::regex pattern(std::regex_replace(name, std::regex("@[A-Z]+@"), "[a-z0-9_]+"));
      for (const auto& [other, unused] : tree)
        if (std::regex_match(other, pattern)) reach(other);
    }
    for (const std::string& other : implementations[path]) reach(other);
  }
  Complaints bad;
  for (const auto& [path, text] : tree)
    if (is_source(path) &&
        (folder_of(path) == "kernels" || folder_of(path) == "targets" || folder_of(path) == "host") &&
        !reached.count(path))
      bad.push_back(path);
  return bad;
}

TEST(Layout, IncludesFollowTheOrderOfTheFolders) { EXPECT_THAT(against_the_order(read_tree()), IsEmpty()); }
TEST(Layout, IncludesOfTheHostRunDownItsRooms) { EXPECT_THAT(up_the_rooms(read_tree()), IsEmpty()); }
TEST(Layout, NoIncludesOfTheHostRunInCircles) { EXPECT_THAT(in_circles(read_tree()), IsEmpty()); }
TEST(Layout, CudaMacrosStayInKernels) { EXPECT_THAT(cuda_macros_outside_kernels(read_tree()), IsEmpty()); }
TEST(Layout, EveryFileNamesItsLicence) { EXPECT_THAT(without_licence(read_tree()), IsEmpty()); }
TEST(Layout, EverySourceIsExercisedByATest) { EXPECT_THAT(not_exercised(read_tree()), IsEmpty()); }

TEST(Layout, TheTreeIsRead) {
  const Tree tree = read_tree();
  for (const char* path : {"kernels/lanes.hpp", "targets/gaussian.hpp", "targets/engine.in",
                           "tests/CMakeLists.txt", "tests/targets/unit_layout.cpp", "CMakeLists.txt"})
    ASSERT_TRUE(tree.count(path)) << path;
  EXPECT_THAT(includes(tree.at("targets/gaussian.hpp")), ElementsAre("targets/target.hpp"));
}

// --- planted trees ------------------------------------------------------------------------------------

TEST(LayoutRules, AnIncludeAgainstTheOrderIsFound) {
  const Tree good = {{"kernels/a.hpp", "#include \"kernels/b.hpp\"\n"},
                     {"targets/a.hpp", "#include \"kernels/b.hpp\"\n#include <vector>\n"},
                     {"host/a.cpp", "#include \"targets/a.hpp\"\n"},
                     {"bench/a.cpp", "#include \"host/a.hpp\"\n"},
                     {"tests/host/a.cpp", "#include \"host/a.hpp\"\n#include \"tests/support/a.hpp\"\n"}};
  EXPECT_THAT(against_the_order(good), IsEmpty());
  for (const auto& [path, name] : {std::pair{"kernels/c.hpp", "targets/a.hpp"},
                                   {"kernels/c.cuh", "host/a.hpp"},
                                   {"targets/c.hpp", "host/a.hpp"},
                                   {"targets/c.in", "tests/support/a.hpp"},
                                   {"host/c.cpp", "tests/support/a.hpp"},
                                   {"host/c.hpp", "bench/a.hpp"},
                                   {"bench/c.cpp", "tests/support/a.hpp"},
                                   {"tests/host/c.cpp", "bench/a.hpp"},
                                   {"host/c.cpp", "a.hpp"},
                                   {"host/c.cpp", "../host/a.hpp"}}) {
    Tree bad = good;
    bad[path] = "// text\n  #  include \"" + std::string(name) + "\"  // why\n";
    EXPECT_THAT(against_the_order(bad), ElementsAre(HasSubstr(name))) << path;
  }
}

TEST(LayoutRules, AnIncludeUpTheRoomsIsFound) {
  const Tree good = {{"host/util/a.hpp", "#include \"kernels/b.hpp\"\n"},
                     {"host/runs/a.cpp", "#include \"host/util/a.hpp\"\n#include \"host/runs/b.hpp\"\n"},
                     {"host/CMakeLists.txt", ""}};
  EXPECT_THAT(up_the_rooms(good), IsEmpty());
  for (const char* name : {"host/paths/a.hpp", "host/cli/a.hpp", "host/cellar/a.hpp"}) {
    Tree bad = good;
    bad["host/runs/c.hpp"] = "#include \"" + std::string(name) + "\"\n";
    EXPECT_THAT(up_the_rooms(bad), ElementsAre(HasSubstr(name))) << name;
  }
  for (const char* path : {"host/a.cpp", "host/cellar/a.cpp"}) {
    Tree bad = good;
    bad[path] = "";
    EXPECT_THAT(up_the_rooms(bad), ElementsAre(HasSubstr("stands in no room"))) << path;
  }
}

TEST(LayoutRules, ACircleOfIncludesIsFound) {
  Tree tree = {{"host/runs/a.hpp", ""},
               {"host/runs/a.cpp", "#include \"host/runs/a.hpp\"\n#include \"host/runs/b.hpp\"\n"},
               {"host/runs/b.hpp", "#include \"host/runs/c.hpp\"\n"},
               {"host/runs/c.cpp", "#include \"host/util/d.hpp\"\n"},
               {"host/cli/main.cpp", "#include \"host/runs/a.hpp\"\n"}};
  EXPECT_THAT(in_circles(tree), IsEmpty());
  tree["host/runs/c.cpp"] += "#include \"host/runs/a.hpp\"\n";
  EXPECT_THAT(in_circles(tree), ElementsAre("host/runs/a", "host/runs/b", "host/runs/c"));
}

TEST(LayoutRules, ACudaMacroOutsideKernelsIsFound) {
  const std::string compiler = std::string("#ifdef __CUDA") + "CC__\n",
                    device = std::string("#if __CUDA") + "_ARCH__\n";
  EXPECT_THAT(cuda_macros_outside_kernels({{"kernels/a.hpp", compiler + device}}), IsEmpty());
  EXPECT_THAT(
      cuda_macros_outside_kernels({{"targets/a.hpp", compiler}, {"host/a.cpp", device}, {"host/b.cpp", ""}}),
      ElementsAre(HasSubstr("host/a.cpp"), HasSubstr("targets/a.hpp")));
}

TEST(LayoutRules, AMissingLicenceIsFound) {
  const std::string line = "SPDX-License-Identifier: Apache-2.0\n";
  EXPECT_THAT(without_licence({{"kernels/a.hpp", "// " + line},
                               {"scripts/a.sh", "#!/bin/bash\n# " + line},
                               {"kernels/b.hpp", "#pragma once\n"},
                               {"bench/a.py", "\n\n# " + line},
                               {"host/CMakeLists.txt", ""},
                               {"tests/data.json", "{}"}}),
              ElementsAre("bench/a.py", "host/CMakeLists.txt", "kernels/b.hpp"));
}

TEST(LayoutRules, AnUnexercisedSourceIsFound) {
  Tree tree = {{"tests/host/unit_a.cpp", "#include \"host/a.hpp\"\n// runs host/cli/main.cpp\n"},
               {"host/a.hpp", "#include \"kernels/a.hpp\"\n"},
               {"host/a.cpp", "#include \"host/a.hpp\"\n#include \"targets/factory.hpp\"\n"},
               {"host/a_more.cpp", "#include \"host/a.hpp\"\n"},
               {"host/cli/main.cpp", ""},
               {"kernels/a.hpp", ""},
               {"targets/factory.hpp", ""},
               {"targets/factory.in", "#include \"targets/@NAME@.hpp\"\n"},
               {"targets/made.hpp", ""}};
  EXPECT_THAT(not_exercised(tree), IsEmpty());
  tree["kernels/b.hpp"] = "#include \"kernels/a.hpp\"\n";  // includes, but is not included
  tree["host/b.cpp"] = "#include \"host/b.hpp\"\n#include \"host/a.hpp\"\n";
  tree["host/b.hpp"] = "";
  EXPECT_THAT(not_exercised(tree), ElementsAre("host/b.cpp", "host/b.hpp", "kernels/b.hpp"));
  tree.erase("tests/host/unit_a.cpp");
  EXPECT_EQ(not_exercised(tree).size(), 10u);
}

}  // namespace
}  // namespace lockstep::testing
