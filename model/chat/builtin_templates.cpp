#include <plait/model/chat/builtin_templates.hpp>

namespace plait {
namespace {

// A first question stands alone; rounds count from 0.
constexpr std::string_view chatglm =
    "{%- if messages | length == 1 and messages[0].role == 'user' -%}{{ messages[0].content }}{%- else -%}"
    "{%- for m in messages -%}"
    "{%- if m.role == 'user' -%}{{ '[Round ' ~ (loop.index0 // 2) ~ ']\\n问：' ~ m.content ~ '\\n答：' }}"
    "{%- elif m.role == 'assistant' -%}{{ m.content ~ '\\n' }}"
    "{%- else -%}{{ raise_exception('ChatGLM-6B has messages of users and assistants only') }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}";

// Rounds count from 1, with empty lines between.
constexpr std::string_view chatglm2 =
    "{%- for m in messages -%}"
    "{%- if m.role == 'user' -%}{{ '[Round ' ~ (loop.index0 // 2 + 1) ~ ']\\n\\n问：' ~ m.content ~ '\\n\\n答：' }}"
    "{%- elif m.role == 'assistant' -%}{{ m.content ~ '\\n\\n' }}"
    "{%- else -%}{{ raise_exception('ChatGLM2 has messages of users and assistants only') }}{%- endif -%}"
    "{%- endfor -%}";

} // namespace

std::string_view builtin_template(model_spec const& spec) noexcept
{
    if (spec.architecture != "chatglm") return {};
    return spec.prefix ? chatglm : chatglm2;
}

} // namespace plait
