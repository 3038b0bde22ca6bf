#include <plait/apps/inspect/checks.hpp>

#include <plait/actors/error.hpp>
#include <plait/apps/inspect/sheet.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/model/chat/chat_template.hpp>
#include <plait/model/families/family.hpp>
#include <plait/model/text/model_tokenizer.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace plait::inspecting {
namespace {

/// Bytes that are read at a time, but a panel of rows at least.
constexpr std::int64_t portion = std::int64_t{1} << 22;

/// Values of a tensor that are infinite or no numbers, by the arithmetic that computes with it.
std::int64_t count_bad(tensor_source const& source, stored_tensor const& t, weight_format format)
{
    auto const row_bytes = static_cast<std::int64_t>(host::file_row_bytes(format, t.cols()));
    auto const each = std::max(portion / row_bytes / panel_rows, std::int64_t{1}) * panel_rows;
    std::vector<std::byte> file;
    std::vector<std::byte> panels(host::packed_bytes(weight_format::f32, std::min(each, t.rows()), t.cols()));
    auto const* values = reinterpret_cast<float const*>(panels.data());
    std::int64_t bad = 0;
    for (std::int64_t row = 0; row < t.rows(); row += each) {
        auto const rows = std::min(each, t.rows() - row);
        file.resize(static_cast<std::size_t>(rows * row_bytes));
        source.read(t, static_cast<std::uint64_t>(row * row_bytes), file);
        host::pack_rows(format, weight_format::f32, rows, t.cols(), file.data(), panels.data(), 0);
        // What fills up the last panel is zero.
        auto const count = host::packed_bytes(weight_format::f32, rows, t.cols()) / sizeof(float);
        bad += std::count_if(values, values + count, [](float x) { return !std::isfinite(x); });
    }
    return bad;
}

void check_values(model_files const& files, report& out)
{
    auto const& source = files.tensors();
    std::int64_t checked = 0, other = 0;
    for (auto const& t : source.tensors()) {
        auto const format = t.foreign_type.empty() ? computable(t.type) : std::nullopt;
        if (!format) {
            ++other;
            continue;
        }
        ++checked;
        auto const bad = count_bad(source, t, *format);
        if (bad > 0)
            out.findings.push_back("tensor " + std::string(t.name) + ": " + std::to_string(bad) + " of " +
                                   std::to_string(t.cols() * t.rows()) + " values are not finite");
    }
    auto line = "values: those of " + std::to_string(checked) + " tensors";
    if (other > 0) line += "; " + std::to_string(other) + " of types that nothing is computed with";
    out.checked.push_back(std::move(line));
    source.check_unchanged();
}

/// What `look` throws becomes a finding, what it returns a line.
template<class Look>
void note(report& out, std::string const& what, Look look)
{
    try {
        out.checked.push_back(what + ": " + look());
    } catch (error const& why) {
        if (why.condition() == errc::io) throw;
        out.checked.push_back(what);
        out.findings.push_back(what + ": " + why.what());
    }
}

} // namespace

report check_all(model_files const& files)
{
    report out;
    auto const entries = files.gguf() != nullptr ? files.gguf()->metadata().size() : files.hf()->config().keys().size();
    out.checked.push_back("header: " + std::to_string(entries) + " entries, " +
                          std::to_string(files.tensors().tensors().size()) + " tensors");
    std::optional<std::int64_t> vocabulary;
    note(out, "specification", [&] {
        auto const model = describe(files);
        vocabulary = model.spec.vocabulary;
        return model.spec.architecture + ", " + std::to_string(model.spec.layers.size()) +
               " layers, which the tensors agree with";
    });
    check_values(files, out);
    note(out, "tokenizer", [&] {
        tokenizer const text(read_tokenizer(files));
        // A model may have more embeddings than tokens, which pad its matrices, but not fewer.
        if (vocabulary && static_cast<std::int64_t>(text.size()) > *vocabulary)
            throw error(errc::bad_file,
                        std::to_string(text.size()) + " tokens, but the embedding has " + std::to_string(*vocabulary));
        return std::to_string(text.size()) + " tokens";
    });
    note(out, "chat template", [&]() -> std::string {
        auto const source = files.chat_template();
        if (source.empty()) return "none";
        (void)chat_template::parse(source);
        return std::to_string(source.size()) + " bytes";
    });
    return out;
}

} // namespace plait::inspecting
