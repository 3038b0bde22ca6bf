#include <plait/model/families/family.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/quote.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plait {
namespace {

[[noreturn]] void refuse(errc code, tensor_source const& file, std::string const& tensor, std::string const& what)
{
    throw error(code, file.source() + ": tensor " + quote(tensor) + ": " + what);
}

bool is_float(ggml_type type) noexcept
{
    return type == ggml_type::f32 || type == ggml_type::f16 || type == ggml_type::bf16;
}

std::string text(std::int64_t cols, std::int64_t rows)
{
    return "[" + std::to_string(cols) + (rows == 0 ? "" : ", " + std::to_string(rows)) + "]";
}

/// Collects the tensors that a model uses, row by row, and finds those that it does not.
class tensor_check {
public:
    explicit tensor_check(tensor_source const& file)
        : file_(file)
        , used_(file.tensors().size())
    {
    }

    /// A tensor whose values have been read already.
    void was_read(std::string const& name) { use(file_.tensor(name), 0, 0); }

    void expect_matrix(tensor_ref const& at, std::int64_t cols, std::int64_t rows)
    {
        if (at.empty()) return;
        auto const& found = find(at, cols, rows);
        if (at.transposed && !is_float(found.type))
            refuse(errc::unsupported, file_, at.name, "is quantised along its outputs");
        auto const have_rows = at.transposed ? found.cols() : found.rows();
        auto const have_cols = at.transposed ? found.rows() : found.cols();
        // Only of matrices stored the other way round can some lie one behind the other along their inputs.
        bool const one_of_many = at.transposed && at.run != 0;
        bool fits = one_of_many ? at.first_input + cols <= have_cols : have_cols == cols;
        fits = fits && at.stored(rows - 1) < have_rows;
        // A matrix that is all of its tensor has its shape; a part may be one of many, in any number of dimensions.
        if (at.run == 0) fits = fits && found.dims[2] == 1 && found.dims[3] == 1 && have_rows == rows;
        if (!fits) wrong_shape(at, found, cols, rows);
        use(found, one_of_many ? rows * cols : rows, one_of_many ? have_rows * have_cols : have_rows);
    }

    /// A vector that is used as it is: norms, biases and factors, which no writer quantises.
    /// It may be stored in rows of `cols`.
    void expect_vector(tensor_ref const& at, std::int64_t length, std::int64_t cols = 0)
    {
        if (at.empty()) return;
        auto const& found = find(at, length, 0);
        // A trailing dimension of 1 says nothing, and some writers add one. Experts have a row each of one tensor.
        auto const values = found.cols() * found.rows();
        bool fits = at.stored(length - 1) < values;
        if (at.run == 0) fits = fits && values == length && (found.cols() == length || found.cols() == cols);
        if (!fits) wrong_shape(at, found, length, 0);
        if (!is_float(found.type))
            refuse(errc::unsupported, file_, at.name,
                   "expected F32, F16 or BF16 values, found " + std::string(layout(found.type).name));
        use(found, length, values);
    }

    /// A norm, where `wanted`; `what` it is.
    void expect_norm(norm_spec const& norm, norm_tensors const& at, std::int64_t length, bool wanted,
                     std::string const& what, std::int64_t cols = 0)
    {
        if (norm.kind == norm_kind::none) wanted = false;
        if (at.weight.empty() && wanted) throw error(errc::bad_file, file_.source() + ": " + what + " is missing");
        if (at.weight.empty()) return;
        if (!wanted) refuse(errc::bad_file, file_, at.weight.name, what + ", which this norm placement does not have");
        expect_vector(at.weight, length, cols);
        expect_vector(at.bias, length, cols);
        agree(at.bias, norm.bias, at.weight);
    }

    /// The specification and the map say the same of a bias.
    void agree(tensor_ref const& bias, bool wanted, tensor_ref const& of) const
    {
        if (bias.empty() == wanted)
            refuse(errc::bad_file, file_, of.name, wanted ? "has no bias" : "has a bias that nothing adds");
    }

    void refuse_strays(std::size_t layers) const
    {
        for (std::size_t i = 0; i < used_.size(); ++i) {
            auto const& tensor = file_.tensors()[i];
            auto const name = std::string(tensor.name);
            if (!used_[i]) refuse_stray(name, layers);
            if (used_[i]->rows != used_[i]->of)
                refuse(errc::bad_file, file_, name,
                       "the model uses " + std::to_string(used_[i]->rows) + " of its " + std::to_string(used_[i]->of) +
                           (used_[i]->of == tensor.rows() ? " rows" : " values"));
        }
    }

private:
    /// Rows of a tensor that are parts of the model, or values of a vector, and how many it has.
    struct use_of {
        std::int64_t rows = 0;
        std::int64_t of = 0;
    };

    stored_tensor const& find(tensor_ref const& at, std::int64_t cols, std::int64_t rows) const
    {
        if (auto const* found = file_.find_tensor(at.name)) return *found;
        refuse(errc::bad_file, file_, at.name, "missing; its shape should be " + text(cols, rows));
    }

    [[noreturn]] void wrong_shape(tensor_ref const& at, stored_tensor const& found, std::int64_t cols,
                                  std::int64_t rows) const
    {
        std::string wanted = at.transposed ? text(rows, cols) : text(cols, rows);
        if (at.run != 0) wanted += " from row " + std::to_string(at.first) + " on";
        refuse(errc::bad_file, file_, at.name, "expected the shape " + wanted + ", found " + shape(found));
    }

    void use(stored_tensor const& found, std::int64_t rows, std::int64_t of)
    {
        auto& entry = used_[static_cast<std::size_t>(&found - file_.tensors().data())];
        if (!entry) entry = use_of{0, of};
        entry->rows += rows;
    }

    static std::optional<std::uint64_t> layer_of(std::string const& name)
    {
        // blk.7.attn_q.weight, model.layers.7.self_attn.q_proj.weight, transformer.h.7.attn.c_attn.weight
        for (std::string_view const before : {"blk.", "layers.", "h."}) {
            auto const at = name.find(before);
            if (at == name.npos) continue;
            std::uint64_t layer = 0;
            char const* const end = name.data() + name.size();
            auto const [after, failed] = std::from_chars(name.data() + at + before.size(), end, layer);
            if (failed == std::errc{} && after != end && *after == '.') return layer;
        }
        return std::nullopt;
    }

    [[noreturn]] void refuse_stray(std::string const& name, std::size_t layers) const
    {
        auto const holds = [&](std::string_view part) { return name.find(part) != name.npos; };
        auto const layer = layer_of(name);
        if (layer && *layer >= layers)
            refuse(errc::bad_file, file_, name, "the header declares only " + std::to_string(layers) + " layers");
        if (name.ends_with("bias")) refuse(errc::bad_file, file_, name, "a bias that this architecture does not have");
        if (holds("norm") || holds("ln_"))
            refuse(errc::bad_file, file_, name,
                   "a norm that this architecture does not have: the file would compute another model");
        if (holds("exps") || holds("shexp") || holds("expert"))
            refuse(errc::bad_file, file_, name, "experts that the header does not declare");
        refuse(errc::bad_file, file_, name, "this architecture has no such tensor");
    }

    tensor_source const& file_;
    std::vector<std::optional<use_of>> used_;
};

void expect_network(tensor_check& tensors, ffn_tensors const& at, std::int64_t width, std::int64_t hidden, bool bias)
{
    tensors.expect_matrix(at.gate, width, hidden);
    tensors.expect_matrix(at.up, width, hidden);
    tensors.expect_matrix(at.down, hidden, width);
    tensors.expect_vector(at.gate_bias, hidden);
    tensors.expect_vector(at.up_bias, hidden);
    tensors.expect_vector(at.down_bias, width);
    tensors.agree(at.up_bias, bias, at.up);
    tensors.agree(at.down_bias, bias, at.down);
    if (!at.gate.empty()) tensors.agree(at.gate_bias, bias, at.gate);
}

/// Norms where the placement has them, and nowhere else.
void expect_norms(tensor_check& tensors, layer_tensors const& at, layer_spec const& layer, std::int64_t width)
{
    bool const after = layer.placement == norm_placement::sandwich || layer.placement == norm_placement::output;
    bool const before = layer.placement != norm_placement::output;
    tensors.expect_norm(layer.norm, at.attention_norm, width, before, "a norm of the attention");
    tensors.expect_norm(layer.norm, at.ffn_norm, width, before && !layer.shared_norm,
                        "a norm of the feed-forward network");
    tensors.expect_norm(layer.norm, at.attention_output_norm, width, after, "a norm of the attention's output");
    tensors.expect_norm(layer.norm, at.ffn_output_norm, width, after, "a norm of the feed-forward network's output");
}

void expect_attention(tensor_check& tensors, layer_tensors const& at, attention_spec const& a, std::int64_t width)
{
    tensors.expect_matrix(at.query, width, a.query_width());
    tensors.expect_matrix(at.key, width, a.kv_width());
    tensors.expect_matrix(at.value, width, a.kv_width());
    tensors.expect_vector(at.query_bias, a.query_width());
    tensors.expect_vector(at.key_bias, a.kv_width());
    tensors.expect_vector(at.value_bias, a.kv_width());
    tensors.agree(at.query_bias, a.query_key_value_bias, at.query);
    tensors.agree(at.key_bias, a.query_key_value_bias, at.key);
    tensors.agree(at.value_bias, a.query_key_value_bias, at.value);
    if (a.query_key_norm != head_norm::none) {
        bool const each = a.query_key_norm == head_norm::head;
        tensors.expect_norm(a.norm, at.query_norm, each ? a.head_dim : a.query_width(), true, "a norm of the queries",
                            a.head_dim);
        tensors.expect_norm(a.norm, at.key_norm, each ? a.head_dim : a.kv_width(), true, "a norm of the keys",
                            a.head_dim);
    }
    if (a.sinks) tensors.expect_vector(at.sinks, a.heads);
    tensors.expect_matrix(at.attention_output, a.query_width(), width);
    tensors.expect_vector(at.attention_output_bias, width);
    tensors.agree(at.attention_output_bias, a.output_bias, at.attention_output);
}

void expect_feed_forward(tensor_check& tensors, layer_tensors const& at, ffn_spec const& ffn, std::int64_t width)
{
    auto const& experts = ffn.experts;
    if (experts.count == 0) {
        expect_network(tensors, at.ffn, width, ffn.hidden, ffn.bias);
        return;
    }
    tensors.expect_matrix(at.router, width, experts.count);
    tensors.expect_vector(at.router_bias, experts.count);
    tensors.agree(at.router_bias, experts.router_bias, at.router);
    tensors.expect_vector(at.selection_bias, experts.count);
    tensors.agree(at.selection_bias, experts.selection_bias, at.router);
    for (auto const& expert : at.experts)
        expect_network(tensors, expert, width, experts.hidden, experts.bias);
    if (experts.shared_hidden > 0) expect_network(tensors, at.ffn, width, experts.shared_hidden, ffn.bias);
}

} // namespace

void validate(tensor_source const& file, described_model const& model)
{
    model_spec const& spec = model.spec;
    tensor_map const& names = model.tensors;
    tensor_check tensors(file);
    tensors.expect_matrix(names.token_embedding, spec.width, spec.vocabulary);
    tensors.expect_matrix(names.position_embedding, spec.width, spec.learned_positions);
    tensors.expect_matrix(names.output, spec.width, spec.vocabulary);
    tensors.expect_norm(spec.final_norm, names.output_norm, spec.width, spec.final_norm.kind != norm_kind::none,
                        "the final norm");
    for (auto const& name : names.read)
        tensors.was_read(name);
    for (std::size_t i = 0; i < spec.layers.size(); ++i) {
        layer_spec const& layer = spec.layers[i];
        layer_tensors const& at = names.layers.at(i);
        expect_norms(tensors, at, layer, spec.width);
        expect_attention(tensors, at, layer.attention, spec.width);
        expect_feed_forward(tensors, at, layer.ffn, spec.width);
    }
    tensors.refuse_strays(spec.layers.size());
}

} // namespace plait
