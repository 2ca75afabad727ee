// SPDX-License-Identifier: Apache-2.0
#include "host/cli/cli.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

#include "host/cli/cli_options.hpp"
#include "host/options/config.hpp"
#include "host/util/errors.hpp"
#include "host/util/settings.hpp"
#include "host/util/suggest.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool is_negative(const std::string& flag) { return flag.starts_with("--no-"); }

/// "--init-scale" -> "init_scale", "--no-pictures" -> "pictures"; the method of evidence is the sampler of
/// RunOptions.
std::string key_of(std::string flag) {
  flag.erase(0, is_negative(flag) ? 5 : 2);
  std::replace(flag.begin(), flag.end(), '-', '_');
  return flag == "method" ? "sampler" : flag;
}

/// The explanation of an option, with its default before the full stop.
std::string help_text(const OptionSpec& spec) {
  static const nlohmann::ordered_json defaults = run_option_values(RunOptions());
  const auto found = defaults.find(key_of(spec.flag));
  if (!spec.show_default || found == defaults.end()) return spec.text;
  const std::string value =
      found->is_string() ? found->get<std::string>() : fmt::format("{:g}", found->get<double>());
  return fmt::format("{} (default {}).", spec.text.substr(0, spec.text.size() - 1), value);
}

/// CLI11's help of the command in hand, without its double empty lines.
std::string help_of(const CLI::App& app) {
  std::string text = app.help();
  for (auto at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n")) text.erase(at, 1);
  return text.insert(text.find("Usage:"), "\n");
}

void add_options(CLI::App& command, const std::vector<OptionSpec>& specs) {
  for (const OptionSpec& spec : specs) {
    CLI::Option* option = nullptr;
    const std::string text = help_text(spec);
    if (spec.kind == OptionKind::toggle)
      option = command.add_flag(spec.flag, text);
    else
      option = command.add_option(spec.flag, text)->option_text(spec.value);
    if (spec.kind == OptionKind::optional) option->expected(0, 1);
    // Several values are taken in and refused later, in our words.
    option->group(spec.group)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  command.set_help_flag("-h,--help", "Show this help.")->group("Help");
}

/// What CLI11 could not place. `command` is the subcommand, or the program when there is none yet.
[[noreturn]] void refuse_extra(const CLI::App& command, const std::string& full_name,
                               const std::string& extra) {
  if (!extra.starts_with("-"))
    throw UserError(
        fmt::format("'{}' is one word too many for {} (nothing says what it is for; a target is named by "
                    "--target). See {} --help.",
                    extra, full_name, full_name));
  const std::string flag = extra.substr(0, extra.find('='));
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back(name);
  std::vector<std::string> near =
      nearest_names(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())), known);
  const auto swap = [&](const char* given, const char* meant) {  // the two names of one thing
    if (flag == given && std::find(known.begin(), known.end(), meant) != known.end()) near = {meant};
  };
  swap("--sampler", "method");
  swap("--method", "sampler");
  throw UserError(fmt::format("{} is no option of {} (it would have no effect). {}", flag, full_name,
                              near.empty() ? fmt::format("See {} --help.", full_name)
                                           : fmt::format("Did you mean --{}?", fmt::join(near, ", --"))));
}

/// The options of a parsed subcommand as key -> JSON value, named by their flags; `repeated` ones are left
/// out.
GivenOptions given_on_line(const CLI::App& command, const std::vector<OptionSpec>& specs) {
  GivenOptions given;
  for (const OptionSpec& spec : specs) {
    const CLI::Option& option = *command.get_option(spec.flag);
    if (option.count() == 0) continue;
    const std::vector<std::string>& values = option.results();
    for (const std::string& value : values)
      if (value.empty() ? spec.kind != OptionKind::optional : value.starts_with("--"))
        throw UserError(fmt::format("{} is followed by {} (it needs a value). Write {} {}.", spec.flag,
                                    value.empty() ? "nothing" : value, spec.flag, spec.value));
    if (spec.kind == OptionKind::repeated) continue;
    if (values.size() > 1 && spec.kind != OptionKind::toggle)
      throw UserError(fmt::format("{} is given {} times (only one value can count). Keep one.", spec.flag,
                                  values.size()));
    Settings value = values.back();
    // The value of a number or a toggle is checked later, with that of a file.
    if (spec.kind != OptionKind::text) value = parse_value(values.back());
    if (is_negative(spec.flag) && value.is_boolean()) value = !value.get<bool>();
    if (spec.kind == OptionKind::optional && values.back().empty()) value = true;
    given.set(key_of(spec.flag), value, spec.flag);
  }
  return given;
}

std::string word_after(const CLI::App& command, const std::string& positional) {
  const CLI::Option* option = command.get_option_no_throw(positional);
  return option && option->count() > 0 ? option->results().back() : std::string();
}

void read_run(const CLI::App& command, CommandLine& line) {
  const std::string& name = line.command;
  const bool samples = name == "sample" || name == "evidence";  // the others look at the target alone
  const std::vector<OptionSpec> specs = run_option_specs(name);
  GivenOptions on_line = given_on_line(command, specs);
  for (const std::string& text : command.get_option("--set")->results()) {
    const SetOption option = parse_set(text);
    const std::string table = option.scope + "_settings", what = option.scope + "." + option.key;
    if (!samples && option.scope == "sampler")
      throw UserError(fmt::format(
          "--set {} is for a sampler (lockstep {} takes none of its settings; sample and evidence do). "
          "Remove it, or give it to one of these.",
          what, name));
    if (name != "modes" && option.scope == "search")
      throw UserError(fmt::format(
          "--set {} is for a search by itself (lockstep {} searches as it always does). Remove it.", what,
          name));
    if (!on_line.values.contains(table)) on_line.set(table, Settings::object(), "--set");
    if (on_line.values[table].contains(option.key))
      throw UserError(fmt::format("--set {} is given twice (only one value can count). Keep one.", what));
    on_line.values[table][option.key] = option.value;
  }
  if (!line.name.empty()) {  // check NAME
    if (on_line.values.value("target", line.name) != line.name)
      throw UserError(
          fmt::format("lockstep check is given two targets, {} and --target {} (it checks one). Keep one.",
                      line.name, on_line.values["target"].get<std::string>()));
    on_line.set("target", line.name, "NAME");
  }
  GivenOptions given;
  // --out DIR --resume is enough to go on: the run wrote its options beside the checkpoint.
  if (on_line.values.value("resume", Settings()) == true && on_line.values.contains("out") &&
      !on_line.values.contains("config") && !on_line.values.contains("target")) {
    const std::string folder = on_line.values["out"];
    const fs::path begun = fs::path(folder) / "run.toml";
    if (!fs::exists(begun))
      throw UserError(
          fmt::format("{} holds no run to resume (there is no {}). Check the name, or leave out --resume and "
                      "begin one, with --target.",
                      folder, begun.string()));
    on_line.set("config", begun.string(), "--out");
  }
  if (on_line.values.contains("config")) {
    const std::string file = on_line.values["config"];
    on_line.values.erase("config");
    given = options_in(read_toml(file), "", true);
    const std::string meant = given.values.value("command", Settings(name)) == Settings(name)
                                  ? name
                                  : shown(given.values["command"]);
    if (meant != name && samples)
      throw UserError(
          fmt::format("{} is {} (the file repeats that command, and this is {}). Give another file or "
                      "command.",
                      given.name("command"), meant, name));
  }
  for (const auto& option : on_line.values.items()) line.run.said.push_back(option.key());
  on_line.set("command", name, "the command");
  given.override_with(on_line);
  apply_run_options(given, line.run);
  if (line.run.sampler.empty() && samples) line.run.sampler = name == "evidence" ? "auto" : "pe";
  check_together(line.run);
  if (name == "check") line.name = line.run.target;
}

void read_study(const CLI::App& command, CommandLine& line) {
  const GivenOptions given = given_on_line(command, study_option_specs());
  SettingsReader reader(given.values, "a study", given.names);
  StudyArgs& study = line.study;
  study.file = word_after(command, "FILE.toml");
  study.out = reader.get("out", "");
  study.data_dir = reader.get("data_dir", "");
  if (reader.has("replicates"))
    study.replicates = static_cast<int>(reader.integer("replicates", 1, 1, kMostReplicates));
  study.only = command.get_option("--only")->results();
  study.resume = reader.get("resume", false);
  study.force = reader.get("force", false);
  study.quiet = reader.get("quiet", false);
  study.threads = static_cast<int>(reader.integer("threads", 0, 0, kMostThreads));
  study.device = reader.one_of("device", study.device, {"auto", "cpu", "cuda"});
  reader.finish();
  if (study.file.empty())
    throw UserError(
        "lockstep study has no file (it says what to run). Write lockstep study FILE.toml --out DIR.");
  refuse_both(study.resume, study.force);
  if (study.out.empty())
    throw UserError("lockstep study has no --out (its tables and pictures go there). Add --out DIR.");
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CLI::App app(program_text().description, "lockstep");
  app.footer(program_text().footer);
  app.allow_extras();
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", "lockstep " LOCKSTEP_VERSION, "Show the version.")->group("Help");
  for (const CommandText& text : command_texts()) {
    CLI::App* command = app.add_subcommand(text.name, text.description);
    command->group("Commands")->footer(text.footer);
    if (*text.word) command->add_option(text.word, text.word_help);
    add_options(*command, option_specs(text.name));
  }
  app.set_help_flag("-h,--help", "Show this help; lockstep COMMAND --help shows that of a command.")
      ->group("Help");
  app.get_formatter()->column_width(27);
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Positionals", "Argument");

  const CLI::App* command = nullptr;
  const auto full_name = [&] {
    return command ? "lockstep " + command->get_name() : std::string("lockstep");
  };
  const auto find_command = [&] {
    command = app.get_subcommands().empty() ? nullptr : app.get_subcommands().front();
  };
  try {
    app.parse(argc, argv);
    find_command();
  } catch (const CLI::CallForHelp&) {
    throw HelpRequest{help_of(app)};
  } catch (const CLI::CallForVersion&) {
    throw HelpRequest{"lockstep " LOCKSTEP_VERSION "\n"};
  } catch (const CLI::ArgumentMismatch& error) {
    find_command();
    const std::string said = one_line(error.what());
    const std::string flag = said.substr(0, said.find(':'));
    const CLI::Option* option = command ? command->get_option_no_throw(flag) : nullptr;
    throw UserError(fmt::format("{} has no value (it needs one). Write {} {}.", flag, flag,
                                option ? option->get_option_text() : "VALUE"));
  } catch (const CLI::ParseError& error) {
    find_command();
    throw UserError(fmt::format("the command line cannot be read ({}). See {} --help.",
                                one_line(error.what()), full_name()));
  }

  const std::vector<std::string> words = app.remaining();
  if (!words.empty() && words[0].starts_with("-"))
    throw UserError(
        fmt::format("{} stands before the command (options belong to one). Write lockstep COMMAND [OPTIONS]; "
                    "see lockstep --help.",
                    words[0].substr(0, words[0].find('='))));
  if (!words.empty()) {
    std::vector<std::string> known;
    for (const CommandText& text : command_texts()) known.emplace_back(text.name);
    if (words[0] == "help") throw HelpRequest{help_of(app)};  // of the command that follows, if any
    throw UserError(fmt::format("'{}' is no command of lockstep (so there is nothing to do). {}", words[0],
                                near_or_known(words[0], known, "commands")));
  }
  if (!command) throw HelpRequest{help_of(app), 2};
  if (!command->remaining().empty()) refuse_extra(*command, full_name(), command->remaining().front());

  CommandLine line;
  line.command = command->get_name();
  line.name = word_after(*command, "NAME");
  if (line.command == "study") {
    read_study(*command, line);
  } else if (line.command == "devices") {
    line.measure = command->count("--measure") > 0;
  } else if (line.command != "targets" && line.command != "samplers") {
    read_run(*command, line);
  }
  return line;
}

}  // namespace lockstep
