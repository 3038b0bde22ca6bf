#include <plait/model/model_overrides.hpp>

#include <plait/model/families/family.hpp>

#include <plait/tests/support/failure_of.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

using namespace plait;
using test::check_failure;

namespace {

model_spec spec_of(std::function<void(test::gguf_writer&)> const& change = {},
                   test::tiny_model_options const& options = {})
{
    auto model = test::tiny_model(options);
    if (change) change(model);
    test::temporary_file const file(model.bytes());
    return describe(open_model(file.path())).spec;
}

model_spec family_spec(char const* name)
{
    return describe(open_model(test::test_data(std::string("families/") + name))).spec;
}

/// Only the fingerprint and the context may differ: a header may state any context.
void check_alike(model_spec got, model_spec const& expected)
{
    CHECK(got.fingerprint != expected.fingerprint);
    got.fingerprint = expected.fingerprint;
    got.context = expected.context;
    CHECK(got == expected);
}

model_spec with(model_spec spec, model_overrides const& overrides)
{
    apply(overrides, spec);
    return spec;
}

} // namespace

TEST_CASE("no override changes nothing")
{
    auto const spec = spec_of();
    CHECK(with(spec, {}) == spec);
}

TEST_CASE("another base is what the same base in the header is")
{
    test::tiny_model_options options;
    options.rope_base = 250000;
    model_overrides overrides;
    overrides.rope_base = 250000;
    check_alike(with(spec_of(), overrides), spec_of({}, options));
    // Divided positions do not depend on the base.
    auto const linear = [](test::gguf_writer& file) { file.set("llama.rope.scaling.factor", 4.0f); };
    check_alike(with(spec_of(linear), overrides), spec_of(linear, options));
}

TEST_CASE("a scaling is what the same scaling in the header is")
{
    model_overrides overrides;
    overrides.rope_scaling = rope_stretch::linear;
    overrides.rope_factor = 4;
    auto spec = with(spec_of(), overrides);
    check_alike(spec, spec_of([](test::gguf_writer& file) {
                    file.set("llama.rope.scaling.type", "linear");
                    file.set("llama.rope.scaling.factor", 4.0f);
                }));
    CHECK(spec.context == 1024);

    overrides.rope_scaling = rope_stretch::yarn;
    overrides.original_context = 128;
    overrides.rope_base = 5000;
    spec = with(spec_of(), overrides);
    check_alike(spec, spec_of([](test::gguf_writer& file) {
                    file.set("llama.rope.freq_base", 5000.0f);
                    file.set("llama.rope.scaling.type", "yarn");
                    file.set("llama.rope.scaling.factor", 4.0f);
                    file.set("llama.rope.scaling.original_context_length", std::uint32_t{128});
                }));
    CHECK(spec.context == 512);
    overrides.original_context.reset();
    CHECK(with(spec_of(), overrides).context == 1024);
}

TEST_CASE("scaling can be taken away, whatever it was")
{
    model_overrides none;
    none.rope_scaling = rope_stretch::none;
    test::tiny_model_options options;
    options.rope_factors = std::vector<float>(8, 2.0f);
    CHECK(with(spec_of({}, options), none).layers == spec_of().layers);
    for (auto const* name : {"llama3", "llama_yarn", "llama_linear", "phi3"}) {
        CAPTURE(std::string(name));
        auto const spec = with(family_spec(name), none);
        auto const& rope = spec.layers.front().attention.rope;
        CHECK(rope.factors.empty());
        CHECK(rope.long_factors.empty());
        CHECK(rope.linear_scale == 1);
        CHECK(rope.magnitude == 1);
        CHECK(spec.context == family_spec(name).context);
    }
}

TEST_CASE("layers with a window that turn otherwise keep their rotation")
{
    model_overrides overrides;
    overrides.rope_base = 2e6;
    auto const before = family_spec("gemma3");
    auto const after = with(before, overrides);
    int changed = 0;
    for (std::size_t i = 0; i < before.layers.size(); ++i) {
        auto const& own = before.layers[i].attention;
        auto const& now = after.layers[i].attention.rope;
        if (own.window > 0) {
            CHECK(now == own.rope);
            continue;
        }
        CHECK(now.base == 2e6f);
        CHECK(now.linear_scale == own.rope.linear_scale);
        ++changed;
    }
    CHECK(changed > 0);
    // Where only those with a window turn, they are meant; the others turn no more than before.
    auto const cohere = with(family_spec("cohere2"), overrides);
    for (auto const& layer : cohere.layers)
        if (layer.attention.rope.style != rope_style::none) CHECK(layer.attention.rope.base == 2e6f);
}

TEST_CASE("the ramp of OpenAI's models stays unrounded")
{
    model_overrides overrides;
    overrides.rope_scaling = rope_stretch::yarn;
    auto const own = family_spec("gpt_oss");
    auto const config = json_config::open(test::test_data("families/gpt_oss/config.json")).object("rope_parameters");
    overrides.rope_factor = config.number("factor");
    overrides.original_context = config.integer("original_max_position_embeddings");
    CHECK(with(own, overrides).layers == own.layers);
}

TEST_CASE("overrides that make no sense are refused by name")
{
    auto const refused = [](model_spec const& spec, errc code, std::initializer_list<char const*> parts,
                            std::function<void(model_overrides&)> const& change) {
        model_overrides overrides;
        change(overrides);
        auto changed = spec;
        check_failure([&] { apply(overrides, changed); }, code, parts);
        CHECK(changed == spec);
    };
    auto const spec = spec_of();
    auto const invalid = errc::invalid_argument;
    for (double const base : {0.0, -5.0, 1.0, std::numeric_limits<double>::infinity(), std::nan("")})
        refused(spec, invalid, {"rope_base: "}, [&](auto& o) { o.rope_base = base; });
    for (double const factor : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")})
        refused(spec, invalid, {"rope_factor: "}, [&](auto& o) {
            o.rope_scaling = rope_stretch::linear;
            o.rope_factor = factor;
        });
    for (std::int64_t const context : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40})
        refused(spec, invalid, {"original_context: "}, [&](auto& o) {
            o.rope_scaling = rope_stretch::yarn;
            o.rope_factor = 2;
            o.original_context = context;
        });
    refused(spec, invalid, {"rope_factor: missing; yarn scaling needs one"},
            [](auto& o) { o.rope_scaling = rope_stretch::yarn; });
    refused(spec, invalid, {"rope_factor: belongs to linear or yarn"}, [](auto& o) { o.rope_factor = 2; });
    refused(spec, invalid, {"rope_factor: belongs to linear or yarn"}, [](auto& o) {
        o.rope_scaling = rope_stretch::none;
        o.rope_factor = 2;
    });
    refused(spec, invalid, {"original_context: belongs to yarn"}, [](auto& o) {
        o.rope_scaling = rope_stretch::linear;
        o.rope_factor = 2;
        o.original_context = 64;
    });
    refused(family_spec("gpt2"), errc::unsupported, {"rope_base: gpt2 rotates nothing"},
            [](auto& o) { o.rope_base = 5000; });
    refused(family_spec("gpt1"), errc::unsupported, {"rope_scaling: openai-gpt rotates nothing"},
            [](auto& o) { o.rope_scaling = rope_stretch::none; });
    refused(family_spec("llama_yarn"), errc::unsupported, {"rope_base: the model's scaling was made for its own base"},
            [](auto& o) { o.rope_base = 5000; });
}
