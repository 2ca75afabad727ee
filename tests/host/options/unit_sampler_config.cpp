// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "host/options/sampler_config.hpp"
#include "host/util/errors.hpp"
#include "host/util/settings.hpp"

namespace lockstep {
namespace {

using Instrument = SamplerConfig::Instrument;
const Settings kNone = Settings::object();

RunOptions run_of(const std::string& sampler, Settings settings = kNone, bool paper = false) {
  RunOptions run;
  run.sampler = sampler;
  run.sampler_settings = std::move(settings);
  run.paper_settings = paper;
  return run;
}
SamplerConfig config(const std::string& sampler, Settings settings = kNone, int dim = 2,
                     Tails tails = Tails::gaussian) {
  return sampler_config(run_of(sampler, std::move(settings)), dim, tails);
}
std::string complaint(const std::string& sampler, Settings settings, int dim = 2,
                      Tails tails = Tails::gaussian) {
  try {
    config(sampler, settings, dim, tails);
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
  ADD_FAILURE() << sampler << " took " << settings;
  return "";
}
/// The complaint names what it is about.
void refused(const std::string& sampler, Settings settings, const std::string& part, int dim = 2,
             Tails tails = Tails::gaussian) {
  const std::string text = complaint(sampler, std::move(settings), dim, tails);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(SamplerConfig, ASettingIsNoSampler) {
  refused("darting", {}, "It is a setting, --set sampler.darting=.., of hmc");
  refused("hcm", {}, "hmc");
}

TEST(SamplerConfig, LevelsOfEnergyAscend) {
  refused("ee", {{"first_energy", 70}}, "at most last_energy, 63.2");
  refused("pt_rwm", {{"last_energy", 1}}, "at least first_energy, 2");
  refused("ee", {{"first_energy", 5}, {"last_energy", 4}}, "at most last_energy, 4");
  config("ee", {{"first_energy", 4}, {"last_energy", 4}});
}

TEST(SamplerConfig, DefaultsOfHmc) {
  const SamplerConfig c = config("hmc");
  EXPECT_EQ(c.name, "hmc");
  EXPECT_EQ(c.model.kind, ModelKind::plain);
  EXPECT_EQ(c.transition, find_transition("hmc"));
  EXPECT_EQ(c.instrument, Instrument::none);
  EXPECT_EQ(c.metric, "diagonal");
  EXPECT_FALSE(c.model.dense_metric);
  EXPECT_TRUE(c.adapt);
  EXPECT_EQ(c.step_size, 0);
  EXPECT_EQ(c.num_leapfrog, 0);
  EXPECT_EQ(c.trajectory_time, 0);
  EXPECT_EQ(c.target_acceptance, 0.9);
  EXPECT_TRUE(c.jitter);
}

TEST(SamplerConfig, HelpStatesTheDefaultsThatRun) {
  // "... (default 0.9 ...": the number must be the one in the effective settings.
  int compared = 0;
  for (const auto& info : sampler_registry()) {
    const Settings effective = config(info.name).effective;
    for (const auto& [key, text] : info.settings) {
      const auto at = text.find("(default ");
      if (at == std::string::npos || !effective.contains(key)) continue;
      char* end = nullptr;
      const char* begin = text.c_str() + at + 9;
      const double stated = std::strtod(begin, &end);
      // Of the random walk and the pseudo-extended sampler the target of acceptance is their own.
      if (end == begin || !effective[key].is_number() || key == "target_acceptance") continue;
      EXPECT_EQ(effective[key].get<double>(), stated) << info.name << ": " << text;
      ++compared;
    }
  }
  EXPECT_GE(compared, 10);
}

TEST(SamplerConfig, DefaultsOfThePseudoExtendedBridge) {
  const SamplerConfig c = config("pe");
  EXPECT_EQ(c.model.kind, ModelKind::pseudo_extended);
  EXPECT_EQ(c.model.pseudo_samples, 5);
  EXPECT_EQ(c.instrument, Instrument::bridge);
  EXPECT_TRUE(c.model.learned);
  EXPECT_EQ(c.model.low, 0);
  EXPECT_EQ(c.model.high, 1);
  EXPECT_TRUE(c.flatten);
  EXPECT_TRUE(c.spreads);
  EXPECT_EQ(c.model.g_exponent, -0.5);
  EXPECT_EQ(c.tilt, 3);
  EXPECT_EQ(c.base_inflation, 1.2);
  EXPECT_EQ(c.scale_u, 7);
  EXPECT_EQ(c.trajectory_time, 0.8);
  EXPECT_EQ(c.target_acceptance, 0.75);
  EXPECT_TRUE(std::isinf(c.model.box));
  EXPECT_TRUE(c.base_mean.empty());
  EXPECT_TRUE(c.base_sd.empty());
}

TEST(SamplerConfig, APathIsFlattenedUnlessItIsSaidNotTo) {
  EXPECT_FALSE(config("pe", {{"g_exponent", -0.5}}).spreads) << "g is as it was asked for";
  EXPECT_TRUE(config("pe", {{"g_exponent", -0.5}}).flatten);
  const Settings back = config("pe").effective;
  EXPECT_TRUE(config("pe", back).spreads) << "given back it is the same";
  EXPECT_TRUE(config("pe", back).flatten);
  refused("pe", {{"box", 20}, {"flatten", true}}, "box is given");
  refused("pe", {{"instrument", "tempered"}, {"flatten", true}}, "tempered");
  refused("pe", {{"beta", 0.5}, {"flatten", true}}, "beta");
  for (const Settings& settings :
       {Settings{{"flatten", false}}, Settings{{"box", 20}}, Settings{{"pseudo_samples", 1}}}) {
    const SamplerConfig c = config("pe", settings);
    EXPECT_FALSE(c.flatten);
    EXPECT_FALSE(c.spreads);
  }
  EXPECT_FALSE(config("pe", {{"instrument", "tempered"}}).flatten);
  EXPECT_FALSE(config("hmc").flatten);
}

TEST(SamplerConfig, DefaultsOfTempering) {
  const SamplerConfig c = config("pe", {{"instrument", "tempered"}});
  EXPECT_EQ(c.instrument, Instrument::tempered);
  EXPECT_TRUE(c.model.learned);
  EXPECT_EQ(c.model.low, 0.001);
  EXPECT_EQ(c.model.high, 1);
  EXPECT_EQ(c.model.g_exponent, 0);
  EXPECT_EQ(c.tilt, 0);
  EXPECT_EQ(c.scale_u, 1);
  EXPECT_EQ(c.trajectory_time, 0);  // ChEES
}

TEST(SamplerConfig, DefaultsOfAFixedInstrument) {
  const SamplerConfig c = config("pe", {{"instrument", "fixed"}}, 3);
  EXPECT_EQ(c.instrument, Instrument::fixed);
  EXPECT_FALSE(c.model.learned);
  EXPECT_EQ(c.model.fixed_beta, 0);  // q is the base itself
  EXPECT_EQ(c.base_mean, std::vector<double>(3, 0));
  EXPECT_EQ(c.base_sd, std::vector<double>(3, 1));
}

TEST(SamplerConfig, EveryTransitionIsASamplerAndASettingOfThePseudoExtended) {
  for (const TransitionInfo* t : transition_registry()) {
    const SamplerConfig plain = config(t->name), extended = config("pe", {{"transition", t->name}});
    EXPECT_EQ(plain.transition, t);
    EXPECT_EQ(plain.model.kind, ModelKind::plain);
    EXPECT_EQ(plain.target_acceptance, t->target_acceptance);
    EXPECT_EQ(extended.transition, t);
    EXPECT_EQ(extended.model.kind, ModelKind::pseudo_extended);
    EXPECT_EQ(extended.target_acceptance, t->name == "hmc" ? 0.75 : t->target_acceptance);
    EXPECT_EQ(extended.harmonic, t->harmonic_mean);
    if (t->trajectory) continue;
    for (const char* key : {"num_leapfrog", "trajectory_time", "jitter"}) {
      refused(t->name, {{key, 1}}, key);
      refused("pe", {{"transition", t->name}, {key, 1}}, key);
    }
  }
  refused("pe", {{"transition", "gibbs"}}, "hmc, rwm, mala");
  refused("hmc", {{"transition", "mala"}}, "transition");
}

TEST(SamplerConfig, DefaultsOfTheRandomWalk) {
  const SamplerConfig c = config("rwm");
  EXPECT_EQ(c.transition, find_transition("rwm"));
  EXPECT_EQ(c.model.kind, ModelKind::plain);
  EXPECT_EQ(c.target_acceptance, 0.3);
}

TEST(SamplerConfig, PaperSettings) {
  const SamplerConfig c = sampler_config(run_of("pe", kNone, true), 2, Tails::gaussian);
  EXPECT_EQ(c.model.pseudo_samples, 2);
  EXPECT_EQ(c.instrument, Instrument::tempered);
  EXPECT_EQ(c.target_acceptance, 0.8);
  EXPECT_EQ(c.model.g_exponent, 0);
  // Settings given by the user stand above the paper's.
  const SamplerConfig own = sampler_config(
      run_of("pe", {{"pseudo_samples", 7}, {"instrument", "bridge"}}, true), 2, Tails::gaussian);
  EXPECT_EQ(own.model.pseudo_samples, 7);
  EXPECT_EQ(own.instrument, Instrument::bridge);
  EXPECT_THROW(sampler_config(run_of("rwm", kNone, true), 2, Tails::gaussian), UserError);  // it has none
}

TEST(SamplerConfig, EverySettingArrives) {
  const SamplerConfig c = config("pe", {{"step_size", 0.3},
                                        {"num_leapfrog", 12},
                                        {"jitter", false},
                                        {"metric", "unit"},
                                        {"adapt", "none"},
                                        {"scout_particles", 64},
                                        {"pseudo_samples", 3},
                                        {"beta_min", 0.1},
                                        {"beta_max", 0.9},
                                        {"g_exponent", 0.5},
                                        {"tilt", 1},
                                        {"scale_u", 2},
                                        {"base_mean", {1, 2}},
                                        {"base_sd", Settings::array({3})},
                                        {"box", 20}});
  EXPECT_EQ(c.step_size, 0.3);
  EXPECT_EQ(c.num_leapfrog, 12);
  EXPECT_EQ(config("hmc", {{"trajectory_time", 2.5}}).trajectory_time, 2.5);
  EXPECT_FALSE(c.jitter);
  EXPECT_EQ(c.metric, "unit");
  EXPECT_FALSE(c.adapt);
  EXPECT_EQ(c.scout_particles, 64);
  EXPECT_EQ(c.model.pseudo_samples, 3);
  EXPECT_EQ(c.model.low, 0.1);
  EXPECT_EQ(c.model.high, 0.9);
  EXPECT_EQ(c.model.g_exponent, 0.5);
  EXPECT_EQ(c.tilt, 1);
  EXPECT_EQ(c.scale_u, 2);
  EXPECT_EQ(c.base_mean, (std::vector<double>{1, 2}));
  EXPECT_EQ(c.base_sd, (std::vector<double>{3, 3}));
  EXPECT_EQ(c.model.box, 20);
  const SamplerConfig adapts =
      config("pe", {{"target_acceptance", 0.6}, {"warmup_chains", 4}, {"base_inflation", 1.5}});
  EXPECT_EQ(adapts.target_acceptance, 0.6);
  EXPECT_EQ(adapts.warmup_chains, 4);
  EXPECT_EQ(adapts.base_inflation, 1.5);
  const SamplerConfig fixed = config("pe", {{"beta", 0.4}});
  EXPECT_FALSE(fixed.model.learned);
  EXPECT_EQ(fixed.model.fixed_beta, 0.4);
  EXPECT_TRUE(config("hmc", {{"metric", "dense"}}).model.dense_metric);
}

TEST(SamplerConfig, EffectiveSettingsAreWhatRuns) {
  const SamplerConfig c = config("pe", {{"pseudo_samples", 3}});
  EXPECT_EQ(c.effective.at("pseudo_samples"), 3);
  EXPECT_EQ(c.effective.at("instrument"), "bridge");
  EXPECT_EQ(c.effective.at("tilt"), 3);
  EXPECT_EQ(c.effective.at("trajectory_time"), 0.8);
  // Given back, they are the same configuration.
  Settings again = c.effective;
  std::erase_if(again.get_ref<Settings::object_t&>(), [](const auto& kv) {
    return !kv.second.is_string() && !kv.second.is_boolean() &&
           !(kv.second.is_number() && std::isfinite(kv.second.template get<double>()));
  });
  again.erase("beta");  // its mere presence fixes it
  const SamplerConfig same = config("pe", again);
  EXPECT_EQ(same.model.pseudo_samples, 3);
  EXPECT_EQ(same.scale_u, c.scale_u);
}

TEST(SamplerConfig, RegistryNamesEverySettingItsSamplersTake) {
  for (const auto& info : sampler_registry()) {
    EXPECT_FALSE(info.summary.empty() || info.formula.empty() || info.source.empty()) << info.name;
    const SamplerConfig c = config(info.name);
    for (const auto& [key, value] : c.effective.items()) {
      const auto named = std::any_of(info.settings.begin(), info.settings.end(),
                                     [&, k = key](const auto& s) { return s.first == k; });
      EXPECT_TRUE(named) << info.name << " takes " << key << ", which its registry entry does not say";
    }
  }
}

/// Two transitions beside HMC, one with a setting.
const Transitions& with_slices() {
  const auto named = [](const char* name) {
    TransitionInfo info;
    info.name = name;
    return info;
  };
  static const TransitionInfo other = named("other"), slice = [&] {
    TransitionInfo info = named("slice");
    info.counters = {"shrunk"};
    info.settings = {{"width", "length of the interval in steps", 6, 0.1, 100}};
    info.gates = {{0, 20, "raise sampler.width"}};
    return info;
  }();
  static const Transitions all = {find_transition("hmc"), &slice, &other};
  return all;
}
SamplerConfig with_slices(const std::string& sampler, Settings settings) {
  return sampler_config(run_of(sampler, std::move(settings)), 2, Tails::gaussian, with_slices());
}

TEST(SamplerConfig, TransitionsDeclareSettings) {
  EXPECT_EQ(with_slices("slice", kNone).settings, std::vector<double>{6});
  EXPECT_EQ(with_slices("slice", kNone).effective["width"], 6);
  const SamplerConfig given = with_slices("pe", {{"transition", "slice"}, {"width", 2}});
  EXPECT_EQ(given.settings, std::vector<double>{2});
  EXPECT_EQ(given.effective["width"], 2);
  EXPECT_TRUE(with_slices("hmc", kNone).settings.empty());
  EXPECT_FALSE(with_slices("hmc", kNone).effective.contains("width"));
  const auto refused_with = [](const std::string& sampler, Settings settings, const std::string& part) {
    try {
      with_slices(sampler, settings);
      ADD_FAILURE() << sampler << " took " << settings;
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  refused_with("slice", {{"width", 0.05}},
               "setting width of sampler slice is 0.05 (it must be a number from 0.1 to 100)");
  refused_with("slice", {{"width", "wide"}}, "it must be a number");
  refused_with("slice", {{"widht", 2}}, "Did you mean width?");
  refused_with("hmc", {{"width", 2}}, "setting width of sampler hmc has no effect (slice has it, not hmc)");
  refused_with("pe", {{"transition", "other"}, {"width", 2}}, "has no effect (slice has it, not other)");
}

TEST(SamplerConfig, WholeSettingsAreReadAlikeForSamplersAndMethods) {
  const TransitionSetting most = {"most", "of something", 10, 1, 20, true};
  const auto read = [&](Settings settings) {
    SettingsReader reader(std::move(settings), "method slice");
    return read_own_setting(reader, most);
  };
  EXPECT_EQ(read(kNone), 10);
  EXPECT_EQ(read({{"most", 12}}), 12);
  for (double bad : {2.5, 0.0, 21.0}) EXPECT_THROW(read({{"most", bad}}), UserError) << bad;
  try {
    read({{"most", 2.5}});
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()),
              "setting most of method slice is 2.5 (it must be a whole number). Correct it, or leave it out "
              "for its default.");
  }
}

TEST(SamplerConfig, HelpOfWhatATransitionDeclares) {
  const auto all = samplers_of(with_slices());
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[2].settings.back(),
            std::pair(std::string("width"),
                      std::string("length of the interval in steps, 0.1 to 100 (default 6)")));
  EXPECT_EQ(all[1].settings.back().second, "of transition slice: " + all[2].settings.back().second);
  EXPECT_EQ(all[2].gates,
            std::vector<std::string>{"shrunk: at most 20 of a transition (else raise sampler.width)"});
  // No name that every sampler has, which would be read twice.
  for (const TransitionInfo* t : transition_registry()) {
    TransitionInfo bare = *t;
    bare.settings.clear();
    for (const SamplerInfo& info : samplers_of({find_transition("hmc"), &bare}))
      for (const auto& [key, help] : info.settings)
        for (const TransitionSetting& s : t->settings) EXPECT_NE(s.name, key);
    EXPECT_LE(t->settings.size(), std::size_t(kMostSettings));
    for (const TransitionGate& gate : t->gates) EXPECT_LT(gate.counter, int(t->counters.size()));
  }
}

TEST(SamplerConfig, IdleSettingsOfANetwork) {
  for (const char* name : {"wormhole", "wormhole_metric"}) {
    refused(name, {{"separation", 2}}, "has no effect (there is one world");
    refused(name, {{"worlds", 2}, {"complete", 1}}, "has no effect (between two worlds");
    refused("pe", {{"transition", name}, {"separation", 2}}, "separation of sampler pe has no effect");
    EXPECT_EQ(config(name, {{"worlds", 2}, {"separation", 2}}).network_settings.size(), 2u);
  }
  EXPECT_TRUE(config("wormhole").network_settings.empty());
  refused("wormhole_metric", {{"metric", "dense"}}, "(wormhole_metric has its own");
  refused("wormhole", {{"epsilon", 0.1}}, "(wormhole_metric has it, not wormhole)");
  EXPECT_EQ(config("wormhole", {{"metric", "dense"}}).metric, "dense");
}

TEST(SamplerConfig, UnknownNames) {
  refused("hmcc", kNone, "hmc");
  refused("gibbs", kNone, "lockstep samplers");
  EXPECT_EQ(config("").name, "pe");
  refused("hmc", {{"stepsize", 0.1}}, "step_size");
  refused("hmc", {{"pseudo_samples", 2}}, "pseudo_samples");  // belongs to another sampler
  refused("pe", {{"instrument", "fixed"}, {"tilt", 1}}, "tilt");
  refused("pe", {{"instrument", "gaussian"}}, "instrument");
  for (const char* key : {"metric", "adapt"}) refused("hmc", {{key, "yes"}}, key);
  for (const char* key : {"num_leapfrog", "trajectory_time", "jitter"}) refused("rwm", {{key, 1}}, key);
}

TEST(SamplerConfig, ValuesOutOfRange) {
  for (double v : {0.0, -0.1}) refused("hmc", {{"step_size", v}}, "step_size");
  for (int v : {0, -1, 1025}) refused("hmc", {{"num_leapfrog", v}}, "num_leapfrog");
  refused("hmc", {{"num_leapfrog", 2.5}}, "num_leapfrog");
  refused("hmc", {{"trajectory_time", 0}}, "trajectory_time");
  for (double v : {0.0, 0.04, 1.0}) refused("hmc", {{"target_acceptance", v}}, "target_acceptance");
  refused("hmc", {{"jitter", 1}}, "jitter");
  refused("hmc", {{"scout_particles", 8}}, "scout_particles");
  refused("hmc", {{"warmup_chains", 0}}, "warmup_chains");
  for (int v : {0, 65}) refused("pe", {{"pseudo_samples", v}}, "pseudo_samples");
  for (double v : {-0.1, 1.1}) refused("pe", {{"beta", v}}, "beta");
  refused("pe", {{"beta_min", -1}}, "beta_min");
  refused("pe", {{"beta_max", 2}}, "beta_max");
  refused("pe", {{"beta_min", 0.5}, {"beta_max", 0.5}}, "beta_max");
  refused("pe", {{"g_exponent", -1}}, "g_exponent");
  refused("pe", {{"box", 0}}, "box");
  refused("pe", {{"scale_u", 0}}, "scale_u");
  refused("pe", {{"base_inflation", 0}}, "base_inflation");
  refused("pe", {{"instrument", "fixed"}, {"base_sd", Settings::array({0})}}, "base_sd");
  refused("pe", {{"instrument", "fixed"}, {"base_sd", {1, -1}}}, "base_sd");
  refused("pe", {{"instrument", "fixed"}, {"base_mean", {1, 2, 3}}}, "base_mean");
}

TEST(SamplerConfig, CombinationsThatCannotBe) {
  refused("hmc", {{"adapt", "none"}}, "step_size");
  EXPECT_FALSE(config("hmc", {{"adapt", "none"}, {"step_size", 0.1}, {"num_leapfrog", 5}}).adapt);
  refused("pe", {{"metric", "dense"}, {"box", 5}}, "metric");
  refused("hmc", {{"num_leapfrog", 5}, {"trajectory_time", 1}}, "Leave one of them out");
  for (const char* instrument : {"bridge", "tempered"})
    for (const char* key : {"beta_min", "beta_max", "g_exponent", "scale_u"})
      refused("pe", {{"instrument", instrument}, {"beta", 0.5}, {key, 0.5}}, key);
  // What others make idle.
  refused("hmc", {{"step_size", 0.1}, {"target_acceptance", 0.8}},
          "target_acceptance of sampler hmc has no effect");
  refused("pe", {{"step_size", 0.1}, {"acceptance_mean", "harmonic"}}, "(step_size is given)");
  refused("hmc", {{"adapt", "none"}, {"step_size", 0.1}, {"warmup_chains", 8}}, "(nothing adapts)");
  refused("pe", {{"base_sd", {1, 1}}, {"base_inflation", 1.5}}, "(base_sd is given)");
  refused("pe", {{"box", 5}, {"base_covariance", "full"}}, "base_covariance");
  EXPECT_THROW(sampler_config(run_of("hmc", {{"step_size", 0.1}}, true), 2, Tails::gaussian), UserError);
  RunOptions elsewhere = run_of("hmc", {{"scout_particles", 512}});
  elsewhere.init = "uniform:2";
  EXPECT_THROW(sampler_config(elsewhere, 2, Tails::gaussian), UserError);
  elsewhere.sampler = "pe";  // whose base the scout learns, wherever chains start
  EXPECT_EQ(sampler_config(elsewhere, 2, Tails::gaussian).scout_particles, 512);
}

TEST(Propriety, PureTemperingDownToZero) {
  // int z(beta) g(beta) d beta, z ~ beta^(-d/2) near zero, is finite where the exponent of g exceeds d/2 - 1.
  const Settings down = {{"instrument", "tempered"}, {"beta_min", 0}};
  const auto with = [&](Settings more) {
    Settings s = down;
    s.update(more);
    return s;
  };
  refused("pe", down, "improper", 2);
  refused("pe", down, "beta_min", 2);
  refused("pe", with({{"g_exponent", 0}}), "improper", 2);  // d/2 - 1 = 0 is not enough
  EXPECT_NO_THROW(config("pe", with({{"g_exponent", 0.1}}), 2));
  EXPECT_NO_THROW(config("pe", down, 1));  // beta^(-1/2) has an integral
  refused("pe", with({{"g_exponent", -0.5}}), "improper", 1);
  EXPECT_NO_THROW(config("pe", with({{"g_exponent", -0.4}}), 1));
  refused("pe", with({{"g_exponent", 3.9}}), "4", 10);
  EXPECT_NO_THROW(config("pe", with({{"g_exponent", 4.1}}), 10));
  EXPECT_NO_THROW(config("pe", with({{"box", 10}}), 10));
  EXPECT_NO_THROW(config("pe", with({{"beta_min", 1e-6}}), 10));
  EXPECT_NO_THROW(config("pe", {{"instrument", "bridge"}, {"beta_min", 0}}, 10));  // a proper base
}

TEST(Propriety, OneFixedTemperature) {
  refused("pe", {{"instrument", "tempered"}, {"beta", 0}}, "improper");
  EXPECT_NO_THROW(config("pe", {{"instrument", "tempered"}, {"beta", 0.1}}));
  EXPECT_NO_THROW(config("pe", {{"instrument", "tempered"}, {"beta", 0}, {"box", 3}}));
}

TEST(Propriety, HeavyTails) {
  refused("pe", {{"instrument", "tempered"}}, "heavy", 2, Tails::heavy);
  refused("pe", {{"instrument", "tempered"}, {"g_exponent", 50}}, "heavy", 2, Tails::heavy);
  EXPECT_NO_THROW(config("pe", {{"instrument", "tempered"}, {"box", 10}}, 2, Tails::heavy));
  EXPECT_NO_THROW(config("pe", kNone, 2, Tails::heavy));
  EXPECT_NO_THROW(config("hmc", kNone, 2, Tails::heavy));
}

}  // namespace
}  // namespace lockstep
