#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/model/files/json_config.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/golden.hpp>
#include <plait/tests/support/model_probe.hpp>
#include <plait/tests/support/nmse.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/temporary_folder.hpp>

// Tiny models of every family beside what transformers says of them in double precision
// (tests/data/families/README.md).

using namespace plait;
using namespace plait::test;
namespace fs = std::filesystem;

namespace {

/// Some folders are of families that plait does not have: those with latent attention.
bool is_known(fs::path const& folder)
{
    auto const config = json_config::open(folder / "config.json");
    auto const name = config.strings("architectures").front();
    return std::ranges::any_of(known_families(), [&](family const* known) {
        return std::ranges::find(known->hf_architectures, name) != known->hf_architectures.end();
    });
}

std::vector<fs::path> folders()
{
    std::vector<fs::path> out;
    for (auto const& entry : fs::directory_iterator(test_data("families")))
        if (entry.is_directory() && is_known(entry.path())) out.push_back(entry.path());
    std::ranges::sort(out);
    return out;
}

/// What a folder holds beside its weights.
struct reference {
    explicit reference(fs::path const& folder)
        : golden(folder / "logits.golden")
        , facts(json_config::open(folder / "facts.json"))
        , tokens(golden.values<std::int32_t>("tokens"))
        , logits(golden.values<float>("logits"))
        , bound(std::min(1e-8, 10 * facts.number("f32_nmse")))
        , bound_of_a_row(std::min(1e-8, 10 * facts.number("f32_nmse_worst")))
    {
    }
    golden_file golden;
    json_config facts;
    std::vector<std::int32_t> tokens;
    std::vector<float> logits;
    double bound, bound_of_a_row;
};

double worst_row(std::vector<float> const& logits, std::vector<float> const& expected, std::size_t rows)
{
    auto const width = expected.size() / rows;
    double worst = 0;
    for (std::size_t row = 0; row < rows; ++row)
        worst = std::max(worst, nmse({logits.data() + row * width, width}, {expected.data() + row * width, width}));
    return worst;
}

constexpr std::int64_t positions = 128;

bool has_long_factors(fs::path const& model)
{
    auto const spec = describe(open_model(model)).spec;
    return !spec.layers.front().attention.rope.long_factors.empty();
}

/// The ways in which a model lies in its folder: as transformers 5 writes it, with the config of older versions, and as
/// a GGUF file.
struct forms_of {
    explicit forms_of(fs::path const& folder)
    {
        all.push_back(folder);
        if (fs::exists(folder / "config.published.json")) {
            fs::copy(folder / "config.published.json", older.path() / "config.json");
            fs::create_symlink(folder / "model.safetensors", older.path() / "model.safetensors");
            all.push_back(older.path());
        }
        if (fs::exists(folder / "model.gguf")) all.push_back(folder / "model.gguf");
    }
    temporary_folder older;
    std::vector<fs::path> all;
};

/// A rule of a model and the same without it.
struct twin {
    std::string rule;
    std::function<void(model_spec&)> spec = [](model_spec&) {};
    std::function<void(tensor_map&)> tensors = [](tensor_map&) {};
};

std::function<void(model_spec&)> in_layers(std::function<void(layer_spec&)> change)
{
    return [change](model_spec& spec) {
        for (auto& layer : spec.layers)
            change(layer);
    };
}

std::function<void(tensor_map&)> in_tensors(std::function<void(layer_tensors&)> change)
{
    return [change](tensor_map& tensors) {
        for (auto& layer : tensors.layers)
            change(layer);
    };
}

/// A twin for each rule that `model` has.
std::vector<twin> twins_of(described_model const& model)
{
    std::vector<twin> out;
    auto const& spec = model.spec;
    auto const any = [&](auto holds) { return std::ranges::any_of(spec.layers, holds); };
    auto const add = [&](std::string rule, std::function<void(layer_spec&)> change) {
        out.push_back({std::move(rule), in_layers(std::move(change))});
    };
    auto const without = [&](std::string rule, std::function<void(layer_tensors&)> change) {
        twin t;
        t.rule = std::move(rule);
        t.tensors = in_tensors(std::move(change));
        out.push_back(std::move(t));
    };
    if (spec.layers.front().parallel) {
        add("parallel sublayers", [](layer_spec& l) { l.parallel = l.shared_norm = false; });
    } else {
        for (auto const placement : {norm_placement::pre, norm_placement::post_add, norm_placement::sandwich,
                                     norm_placement::output, norm_placement::input}) {
            auto const own = spec.layers.front();
            if (placement == own.placement) continue;
            bool const after = placement == norm_placement::sandwich || placement == norm_placement::output;
            if (after && (own.attention.output_bias || own.ffn.bias)) continue; // no model has both
            add("norm placement, not " + std::string(name(placement)),
                [placement](layer_spec& l) { l.placement = placement; });
        }
    }
    add("norm kind",
        [](layer_spec& l) { l.norm.kind = l.norm.kind == norm_kind::rms ? norm_kind::layer : norm_kind::rms; });
    add("activation", [](layer_spec& l) {
        auto& a = l.ffn.activation;
        a = a == activation_kind::gelu_tanh || a == activation_kind::gelu_erf ? activation_kind::silu
                                                                              : activation_kind::gelu_tanh;
    });
    add("scale of scores", [](layer_spec& l) { l.attention.scale *= 1.1f; });
    auto const rotated = [](layer_spec const& l) { return l.attention.rope.style != rope_style::none; };
    if (any(rotated)) {
        add("rotation of pairs or halves", [rotated](layer_spec& l) {
            auto& rope = l.attention.rope;
            if (rotated(l)) rope.style = rope.style == rope_style::pairs ? rope_style::halves : rope_style::pairs;
        });
        add("rotation's base", [](layer_spec& l) { l.attention.rope.base *= 2; });
    }
    if (any([](layer_spec const& l) {
            return l.attention.rope.dims != 0 && l.attention.rope.dims < l.attention.head_dim;
        }) &&
        spec.layers.front().attention.rope.factors.empty())
        add("rotation of a part of the head", [rotated](layer_spec& l) {
            if (rotated(l)) l.attention.rope.dims = l.attention.head_dim;
        });
    if (any([&](layer_spec const& l) { return !rotated(l); }) && any(rotated)) {
        auto const rope = std::ranges::find_if(spec.layers, rotated)->attention.rope;
        add("layers without rotation", [rope](layer_spec& l) { l.attention.rope = rope; });
    }
    if (any([](layer_spec const& l) { return l.attention.rope.linear_scale != 1; }))
        add("linear scaling", [](layer_spec& l) { l.attention.rope.linear_scale = 1; });
    if (any([](layer_spec const& l) { return !l.attention.rope.factors.empty(); }))
        add("frequency factors", [](layer_spec& l) {
            l.attention.rope.factors.clear();
            for (auto& f : l.attention.rope.long_factors)
                f = 1;
        });
    if (any([](layer_spec const& l) { return l.attention.rope.magnitude != 1; }))
        add("rotation's magnitude", [](layer_spec& l) { l.attention.rope.magnitude = 1; });
    if (any([](layer_spec const& l) { return l.attention.window != 0; })) {
        add("window", [](layer_spec& l) { l.attention.window = 0; });
        add("window, one wider", [](layer_spec& l) { l.attention.window += l.attention.window != 0 ? 1 : 0; });
    }
    if (any([](layer_spec const& l) { return l.attention.soft_cap != 0; }))
        add("soft cap of scores", [](layer_spec& l) { l.attention.soft_cap = 0; });
    if (any([](layer_spec const& l) { return l.attention.query_key_norm != head_norm::none; }))
        add("norm of queries and keys", [](layer_spec& l) { l.attention.query_key_norm = head_norm::none; });
    if (any([](layer_spec const& l) { return l.attention.query_key_norm == head_norm::head; }))
        without("weights of the norm of queries and keys", [](layer_tensors& t) { t.query_norm = t.key_norm = {}; });
    if (any([](layer_spec const& l) { return l.output_scale != 1; }))
        add("scale of what is added", [](layer_spec& l) { l.output_scale = 1; });
    if (any([](layer_spec const& l) { return l.attention.query_key_value_bias; })) {
        without("QKV bias", [](layer_tensors& t) { t.query_bias = t.key_bias = t.value_bias = {}; });
    }
    if (any([](layer_spec const& l) { return l.attention.output_bias; }))
        without("bias of the attention's output", [](layer_tensors& t) { t.attention_output_bias = {}; });
    if (any([](layer_spec const& l) { return l.attention.sinks; }))
        without("sinks", [](layer_tensors& t) { t.sinks = {}; });
    if (any([](layer_spec const& l) { return l.ffn.activation == activation_kind::swiglu_clamped; })) {
        add("clamp of the gate", [](layer_spec& l) { l.ffn.limit *= 1000; });
        add("steepness of the gate", [](layer_spec& l) { l.ffn.alpha = 1; });
    }
    if (any([](layer_spec const& l) { return l.ffn.bias; })) {
        without("bias of the first product", [](layer_tensors& t) { t.ffn.gate_bias = t.ffn.up_bias = {}; });
        without("bias of the second product", [](layer_tensors& t) { t.ffn.down_bias = {}; });
    }
    if (any([](layer_spec const& l) { return l.norm.bias; }))
        without("bias of the norms", [](layer_tensors& t) { t.attention_norm.bias = t.ffn_norm.bias = {}; });
    if (model.tensors.layers.front().attention_norm.weight.plus != 0)
        without("1 + w", [](layer_tensors& t) { t.attention_norm.weight.plus = t.ffn_norm.weight.plus = 0; });
    auto const whole = [&](std::string rule, std::function<void(model_spec&)> change) {
        out.push_back({std::move(rule), std::move(change)});
    };
    if (spec.embedding_scale != 1) whole("scale of the embedding", [](model_spec& s) { s.embedding_scale = 1; });
    if (spec.logit_scale != 1) whole("scale of the logits", [](model_spec& s) { s.logit_scale = 1; });
    if (spec.logit_cap != 0) whole("cap of the logits", [](model_spec& s) { s.logit_cap = 0; });
    if (spec.learned_positions != 0) {
        twin t{"learned positions"};
        t.tensors = [](tensor_map& tensors) { tensors.position_embedding = {}; };
        out.push_back(std::move(t));
    }
    if (spec.final_norm.kind == norm_kind::none)
        whole("no norm at the end", [](model_spec& s) { s.final_norm.kind = norm_kind::layer; });
    auto const mixed = [](layer_spec const& l) { return l.ffn.experts.count > 0; };
    auto const any_experts = [&](auto holds) {
        return std::ranges::any_of(model.tensors.layers,
                                   [&](layer_tensors const& t) { return std::ranges::any_of(t.experts, holds); });
    };
    if (any(mixed)) {
        add("scoring of experts", [](layer_spec& l) {
            auto& scoring = l.ffn.experts.scoring;
            scoring = scoring == routing::sigmoid ? routing::softmax : routing::sigmoid;
        });
        add("experts of a token", [](layer_spec& l) { l.ffn.experts.used -= l.ffn.experts.count > 0 ? 1 : 0; });
        if (any([](layer_spec const& l) { return l.ffn.experts.scoring == routing::softmax_of_chosen; }))
            add("softmax of the chosen alone", [](layer_spec& l) { l.ffn.experts.scoring = routing::softmax; });
        if (any([](layer_spec const& l) { return l.ffn.experts.shared_hidden > 0; }))
            add("expert of every token", [](layer_spec& l) { l.ffn.experts.shared_hidden = 0; });
        without("order of the experts", [](layer_tensors& t) { std::ranges::reverse(t.experts); });
        if (any_experts([](ffn_tensors const& e) { return e.gate.step == 2; }))
            without("features of gate and up that take turns", [](layer_tensors& t) {
                for (auto& e : t.experts) {
                    e.up = e.gate.rows(32, 32); // one behind the other
                    e.gate = e.gate.rows(0, 32);
                }
            });
        if (any([](layer_spec const& l) { return l.ffn.experts.normalised; }))
            add("normalised weights of experts", [](layer_spec& l) { l.ffn.experts.normalised = false; });
        if (any([](layer_spec const& l) { return l.ffn.experts.scale != 1; }))
            add("scale of the experts' weights", [](layer_spec& l) { l.ffn.experts.scale = 1; });
        if (any([](layer_spec const& l) { return l.ffn.experts.selection_bias; }))
            without("selection bias", [](layer_tensors& t) { t.selection_bias = {}; });
        if (any([](layer_spec const& l) { return l.ffn.experts.router_bias; }))
            without("router bias", [](layer_tensors& t) { t.router_bias = {}; });
        if (any([](layer_spec const& l) { return l.ffn.experts.bias; }))
            without("bias of the experts", [](layer_tensors& t) {
                for (auto& e : t.experts)
                    e.gate_bias = e.up_bias = e.down_bias = {};
            });
    }
    return out;
}

} // namespace

CO_TEST_CASE("every family agrees with transformers in double precision, whatever the format and the instruction set")
{
    for (auto const& folder : folders()) {
        CAPTURE(folder.filename().string());
        reference const expected(folder);
        forms_of const forms(folder);
        for (auto const& form : forms.all) {
            CAPTURE(form.string());
            for (auto const set : {host::isa::scalar, host::best_isa()}) {
                CAPTURE(host::name(set));
                auto how = exactly(form, positions);
                how.set = set;
                how.stretched_positions = has_long_factors(form);
                auto const whole = co_await logits_of(rt, how, expected.tokens);
                CHECK(nmse(whole, expected.logits) <= expected.bound);
                CHECK(worst_row(whole, expected.logits, expected.tokens.size()) <= expected.bound_of_a_row);
                auto const steps = co_await logits_of(rt, how, expected.tokens, 1);
                CHECK(steps == whole);
            }
        }
    }
}

CO_TEST_CASE("a sequence that keeps to the short context has the short rotation")
{
    auto const folder = test_data("families/phi3");
    reference const expected(folder);
    auto const tokens = expected.golden.values<std::int32_t>("short/tokens");
    auto const logits = expected.golden.values<float>("short/logits");
    for (auto const& form : forms_of(folder).all) {
        CAPTURE(form.string());
        auto const got = co_await logits_of(rt, exactly(form, positions), tokens);
        CHECK(nmse(got, logits) <= 10 * expected.facts.number("short_f32_nmse"));
    }
}

CO_TEST_CASE("each rule of each family matters: without it the logits are a hundred bounds away")
{
    for (auto const& folder : folders()) {
        CAPTURE(folder.filename().string());
        reference const expected(folder);
        auto const model = describe(open_model(folder));
        for (auto const& changed : twins_of(model)) {
            CAPTURE(changed.rule);
            auto how = exactly(folder, positions);
            how.stretched_positions = has_long_factors(folder);
            how.change = changed.spec;
            how.other_tensors = changed.tensors;
            auto const got = co_await logits_of(rt, how, expected.tokens);
            CHECK_FALSE(nmse(got, expected.logits) <= 100 * expected.bound);
        }
    }
}

namespace {

task<std::vector<float>> logits_of_ranks(runtime& rt, model_probe::options how, std::vector<std::int32_t> tokens)
{
    auto probes = make_probes(rt, 2, how.spread.tensor);
    co_await load_probes(probes, how);
    std::vector<std::vector<probe_chunk>> passes(1);
    passes.front().emplace_back(0, 0, std::move(tokens));
    std::vector<stream_role> const one_lane(1, stream_role::compute);
    auto logits = co_await run_probes(probes, std::move(passes), one_lane);
    co_await stop_probes(probes);
    co_return std::move(logits.front());
}

} // namespace

CO_TEST_CASE("two ranks give each family's logits, with sums of two parts the bits of one device")
{
    for (auto const& folder : folders()) {
        CAPTURE(folder.filename().string());
        auto files = open_model(folder);
        auto const model = describe(files);
        parallelism const two{.tensor = 2};
        if (model.spec.layers.front().attention.query_key_norm == head_norm::all_heads) {
            CHECK_THROWS_AS(check(two, files.tensors(), model), error);
            continue;
        }
        reference const expected(folder);
        auto how = exactly(folder, positions);
        how.stretched_positions = has_long_factors(folder);
        how.spread = {1, 1, 2};
        auto const alone = co_await logits_of_ranks(rt, how, expected.tokens);
        CHECK(nmse(alone, expected.logits) <= expected.bound);
        how.spread.tensor = 2;
        auto const together = co_await logits_of_ranks(rt, how, expected.tokens);
        CHECK(together == alone);
    }
}
