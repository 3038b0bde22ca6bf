#include <plait/model/text/sentencepiece_model.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/tokenizer.hpp>
#include <plait/tests/support/paths.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <string>

using namespace plait;

namespace {

std::string file(std::string const& name)
{
    std::ifstream in(test::test_data("tokenizer/kinds/" + name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

sentencepiece_model small_model()
{
    return sentencepiece_model::parse(file("spm_llama/tokenizer.model"), "test.model");
}

std::string refusal(std::string_view bytes, errc code = errc::bad_file)
{
    try {
        sentencepiece_model::parse(bytes, "test.model");
    } catch (error const& e) {
        CHECK(e.condition() == code);
        CHECK(std::string(e.what()).starts_with("test.model"));
        return e.what();
    }
    FAIL("accepted");
    return {};
}

std::string refusal(sentencepiece_model const& m, errc code = errc::bad_file)
{
    try {
        tokenizer const t(describe(m, "test.model"));
    } catch (error const& e) {
        CHECK(e.condition() == code);
        return e.what();
    }
    FAIL("accepted");
    return {};
}

bool mentions(std::string const& text, std::string_view part)
{
    return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a model file is read field by field")
{
    auto const m = small_model();
    CHECK(m.pieces.size() == 700);
    CHECK(m.how == sentencepiece_model::algorithm::bpe);
    CHECK(m.byte_fallback);
    CHECK(m.add_prefix);
    CHECK(!m.remove_extra_spaces);
    CHECK(m.charsmap.empty());
    CHECK(m.unknown == 0);
    CHECK(m.padding == -1);
    CHECK(m.pieces[1].text == "<s>");
    CHECK(m.pieces[1].type == token_type::control);
    CHECK(m.pieces[3].type == token_type::byte);
    auto const other = sentencepiece_model::parse(file("spm_t5/spiece.model"), "test.model");
    CHECK(other.how == sentencepiece_model::algorithm::unigram);
    CHECK(!other.charsmap.empty());
    CHECK(other.begin == -1);
}

TEST_CASE("bytes that are no model are refused")
{
    CHECK(mentions(refusal(""), "no pieces"));
    CHECK(mentions(refusal("\x0A"), "ends inside a number"));
    CHECK(mentions(refusal("\x0A\x05"), "goes beyond its end"));
    CHECK(mentions(refusal(std::string(11, '\xFF')), "more than 64 bits"));
    CHECK(mentions(refusal(std::string("\x02\x00", 2)), "field number 0"));
    CHECK(mentions(refusal("\x0B"), "wire type 3"));
    CHECK(mentions(refusal("\x08\x01"), "field 1 has wire type 0"));
    CHECK(mentions(refusal("\x0A\x02\x18\x09"), "pieces[0]: unknown type 9"));
    CHECK(mentions(refusal("\x0A\x03\x0A\x01\xFF"), "pieces[0]: not UTF-8"));
    CHECK(mentions(refusal("\x0A\x04\x15\x01\x02\x03"), "pieces[0]: ends inside a number"));
    CHECK(mentions(refusal("\x12\x02\x18\x03", errc::unsupported), "trainer_spec.model_type: 3"));
    CHECK(mentions(refusal("\x2A\x03\x12\x01x", errc::unsupported), "denormalizer_spec"));
    auto const whole = file("spm_llama/tokenizer.model");
    for (std::size_t size = 0; size < 600; ++size)
        CHECK_NOTHROW([&] {
            try {
                sentencepiece_model::parse(whole.substr(0, size), "test.model");
            } catch (error const&) {
            }
        }());
}

TEST_CASE("a model whose parts contradict each other is refused")
{
    auto m = small_model();
    m.begin = 700;
    CHECK(mentions(refusal(m), "trainer_spec.bos_id: 700"));
    m = small_model();
    m.unknown = 1 << 20;
    CHECK(mentions(refusal(m), "unk_id"));
    m = small_model();
    m.pieces[300].score = std::numeric_limits<float>::quiet_NaN();
    CHECK(mentions(refusal(m), "pieces[300]: not a finite number"));
    m.pieces[300].score = -std::numeric_limits<float>::infinity();
    CHECK(mentions(refusal(m), "pieces[300]"));
    m = small_model();
    m.pieces[301].text = m.pieces[300].text;
    CHECK(mentions(refusal(m), "pieces[301]: the same text as"));
    m = small_model();
    for (auto const* name : {"<0x100>", "<0x-1>", "<0xG0>", "0x41", "<0x4>"}) {
        m.pieces[3].text = name;
        CHECK(mentions(refusal(m), "pieces[3]: a byte token"));
    }
    m = small_model();
    m.pieces[300].text = std::string(5000, 'x');
    CHECK(mentions(refusal(m, errc::unsupported), "pieces[300]: a piece of 5000 bytes"));
    m.pieces[300].type = token_type::user_defined;
    CHECK(mentions(refusal(m, errc::unsupported), "5000 bytes"));
    m = small_model();
    m.charsmap = "abc";
    CHECK(mentions(refusal(m), "precompiled_charsmap"));
}

TEST_CASE("a GGUF file with the same pieces encodes the same way")
{
    auto const m = small_model();
    vocabulary v;
    v.model = "llama";
    for (auto const& p : m.pieces) {
        v.tokens.push_back(p.text);
        v.types.push_back(static_cast<std::int32_t>(p.type));
        v.scores.push_back(p.score);
    }
    tokenizer const model(describe(m, "test.model"));
    tokenizer const gguf(v);
    for (std::string const text :
         {"Hello world", "  two  spaces ", "", "\n", "Zwölf 你好 😀", "aaaaaaaaaaaa", "</s>"}) {
        CAPTURE(text);
        CHECK(gguf.encode(text) == model.encode(text));
        CHECK(gguf.decode(gguf.encode(text)) == text);
    }
    CHECK(gguf.adds_bos());
    CHECK(gguf.bos() == 1);
    CHECK(gguf.eos() == 2);
    v.add_space_prefix = false;
    tokenizer const bare(v);
    CHECK(bare.encode("Hello").size() != gguf.encode("Hello").size());
    CHECK(bare.decode(bare.encode("Hello")) == "Hello");

    auto const t5 = sentencepiece_model::parse(file("spm_t5/spiece.model"), "test.model");
    vocabulary u;
    u.model = "t5";
    u.charsmap = t5.charsmap;
    u.add_space_prefix = true;
    u.remove_extra_spaces = true;
    for (auto const& p : t5.pieces) {
        u.tokens.push_back(p.text);
        u.types.push_back(static_cast<std::int32_t>(p.type));
        u.scores.push_back(p.score);
    }
    tokenizer const from_model(describe(t5, "test.model"));
    tokenizer const from_gguf(u);
    for (std::string const text : {"Hello world", "  two  spaces ", "", "\n", "Zwölf ﬁ ½ … 你", "the dog"}) {
        CAPTURE(text);
        CHECK(from_gguf.encode(text) == from_model.encode(text));
    }
    CHECK(from_gguf.adds_eos());
    u.scores.pop_back();
    CHECK_THROWS_AS(tokenizer{u}, error);
    u.scores.clear();
    CHECK_THROWS_AS(tokenizer{u}, error);
    v.scores[400] = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS_AS(tokenizer{v}, error);
}

TEST_CASE("the work grows with the text, not with its square")
{
    tokenizer const bpe(describe(small_model(), "test.model"));
    tokenizer const unigram(describe(sentencepiece_model::parse(file("spm_t5/spiece.model"), "t"), "t"));
    std::size_t const n = 1 << 16;
    std::string mixed, words;
    for (std::uint32_t i = 0; mixed.size() < 4 * n; i = i * 1664525 + 1013904223)
        mixed += static_cast<char>('a' + (i >> 24) % 26);
    while (words.size() < 4 * n)
        words += "the quick brown fox ";
    for (auto const* t : {&bpe, &unigram}) {
        for (auto const& text : {std::string(4 * n, 'a'), mixed, words, std::string(4 * n, ' ')}) {
            auto const once = t->encoding_steps(std::string_view(text).substr(0, n));
            auto const four_times = t->encoding_steps(text);
            CHECK((once > 0 || text.front() == ' ')); // one of the models leaves repeated spaces out
            CHECK(four_times <= 5 * once + 1000);
            CHECK(four_times < 40 * text.size());
        }
    }
}
