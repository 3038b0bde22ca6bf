#pragma once

#include <plait/apps/inspect/options.hpp>
#include <plait/model/files/model_files.hpp>
#include <plait/model/text/tokenizer.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait::inspecting {

/// All of a file, or of standard input for "-". Throws error(errc::not_found), error(errc::io), and
/// error(errc::invalid_argument) for more than 1 GiB.
std::string read_input(std::string const& from);

/// "1 2 3"
std::string write_ids(std::span<std::int32_t const> ids);

/// Whole numbers with spaces, line feeds, commas or brackets between them. Throws error(errc::invalid_argument) naming
/// what is none.
std::vector<std::int32_t> read_ids(std::string_view text);

/// The chat template of a model: its file's, or the one that plait has for models whose authors wrote theirs in code.
/// Empty where there is none.
std::string template_of(model_files const& files);

/// The prompt that a template makes of messages. Throws error(errc::unsupported) where the model has no template and
/// none is given, and as chat_template::parse and render.
std::string render_messages(model_files const& files, settings const& how, std::string messages);

} // namespace plait::inspecting
