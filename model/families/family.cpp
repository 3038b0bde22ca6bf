#include <plait/model/families/family.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/families/llama.hpp>
#include <plait/model/text/quote.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plait {
namespace {

constexpr std::array known{
    family{"llama", describe_llama},
};

[[noreturn]] void refuse(errc code, gguf_file const& file, std::string const& tensor, std::string const& what)
{
    throw error(code, file.source() + ": tensor " + quote(tensor) + ": " + what);
}

/// Collects the tensors that a model uses, and finds those that it does not.
class tensor_check {
public:
    explicit tensor_check(gguf_file const& file)
        : file_(file)
        , used_(file.tensors().size())
    {
    }

    void expect(std::string const& name, std::int64_t cols, std::int64_t rows = 0)
    {
        if (name.empty()) return;
        std::string const wanted = "[" + std::to_string(cols) + (rows == 0 ? "" : ", " + std::to_string(rows)) + "]";
        stored_tensor const* found = file_.find_tensor(name);
        if (found == nullptr) refuse(errc::bad_file, file_, name, "missing; its shape should be " + wanted);
        // A trailing dimension of 1 says nothing, and some writers add one.
        bool const fits = found->cols() == cols && found->dims[1] == std::max<std::int64_t>(rows, 1) &&
                          found->dims[2] == 1 && found->dims[3] == 1;
        if (!fits) refuse(errc::bad_file, file_, name, "expected the shape " + wanted + ", found " + shape(*found));
        used_[static_cast<std::size_t>(found - file_.tensors().data())] = true;
    }

    /// A vector that is used as it is: norms and factors, which every writer keeps in F32.
    void expect_vector(std::string const& name, std::int64_t cols)
    {
        expect(name, cols);
        stored_tensor const* found = name.empty() ? nullptr : file_.find_tensor(name);
        if (found != nullptr && found->type != ggml_type::f32)
            refuse(errc::unsupported, file_, name,
                   "expected F32 values, found " + std::string(layout(found->type).name));
    }

    void refuse_strays(std::size_t layers) const
    {
        for (std::size_t i = 0; i < used_.size(); ++i)
            if (!used_[i]) refuse_stray(std::string(file_.tensors()[i].name), layers);
    }

private:
    static std::optional<std::uint64_t> layer_of(std::string const& name)
    {
        if (!name.starts_with("blk.")) return std::nullopt;
        std::uint64_t layer = 0;
        char const* const end = name.data() + name.size();
        auto const [after, failed] = std::from_chars(name.data() + 4, end, layer);
        if (failed != std::errc{} || after == end || *after != '.') return std::nullopt;
        return layer;
    }

    [[noreturn]] void refuse_stray(std::string const& name, std::size_t layers) const
    {
        auto const holds = [&](std::string_view part) { return name.find(part) != name.npos; };
        auto const layer = layer_of(name);
        if (layer && *layer >= layers)
            refuse(errc::bad_file, file_, name, "the header declares only " + std::to_string(layers) + " layers");
        if (name.ends_with(".bias"))
            refuse(errc::unsupported, file_, name, "biases are not computed for this architecture");
        if (holds("norm"))
            refuse(errc::bad_file, file_, name,
                   "a norm that this architecture does not have: the file would compute another model");
        if (holds("_exps") || holds("_shexp") || holds("ffn_gate_inp"))
            refuse(errc::unsupported, file_, name, "mixtures of experts are not computed");
        if (holds("attn_qkv"))
            refuse(errc::unsupported, file_, name, "a fused QKV matrix is not read for this architecture");
        refuse(errc::bad_file, file_, name, "this architecture has no such tensor");
    }

    gguf_file const& file_;
    std::vector<bool> used_;
};

} // namespace

std::span<family const> families() noexcept
{
    return known;
}

described_model describe(gguf_file const& file)
{
    std::string_view const architecture = file.string("general.architecture");
    for (family const& candidate : known) {
        if (candidate.architecture != architecture) continue;
        described_model model = candidate.describe(file);
        check(model.spec, errc::bad_file, file.source());
        validate(file, model);
        model.spec.fingerprint = file.fingerprint();
        return model;
    }
    std::string names;
    for (family const& candidate : known)
        names += (names.empty() ? "" : ", ") + std::string(candidate.architecture);
    throw error(errc::unsupported, file.source() + ": key 'general.architecture': the architecture " +
                                       quote(architecture) + " is not known; known: " + names);
}

void validate(gguf_file const& file, described_model const& model)
{
    model_spec const& spec = model.spec;
    tensor_map const& names = model.tensors;
    tensor_check tensors(file);
    tensors.expect(names.token_embedding, spec.width, spec.vocabulary);
    tensors.expect(names.output, spec.width, spec.vocabulary);
    tensors.expect_vector(names.output_norm, spec.width);
    if (!names.rope_factors.empty())
        tensors.expect_vector(names.rope_factors, spec.layers.at(0).attention.rope.dims / 2);
    for (std::size_t i = 0; i < spec.layers.size(); ++i) {
        layer_spec const& layer = spec.layers[i];
        layer_tensors const& at = names.layers.at(i);
        tensors.expect_vector(at.attention_norm, spec.width);
        tensors.expect(at.query, spec.width, layer.attention.query_width());
        tensors.expect(at.key, spec.width, layer.attention.kv_width());
        tensors.expect(at.value, spec.width, layer.attention.kv_width());
        tensors.expect(at.attention_output, layer.attention.query_width(), spec.width);
        tensors.expect_vector(at.ffn_norm, spec.width);
        tensors.expect(at.gate, spec.width, layer.ffn.hidden);
        tensors.expect(at.up, spec.width, layer.ffn.hidden);
        tensors.expect(at.down, layer.ffn.hidden, spec.width);
    }
    tensors.refuse_strays(spec.layers.size());
}

} // namespace plait
