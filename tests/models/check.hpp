#pragma once

#include <plait/tests/models/model_atomics.hpp>

#include <doctest/doctest.h>

#include <array>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace plait::model {

/// Which executions of a scenario are looked at.
class search {
public:
    /// Every one.
    static search all() { return {rl::fair_full_search_scheduler_type, 0}; }
    /// Every one in which at most `count` threads are interrupted where they could go on.
    static search interrupted(unsigned count) { return {rl::fair_context_bound_scheduler_type, count}; }
    /// So many, chosen at random, the same in every run.
    static search at_random(unsigned count) { return {rl::random_scheduler_type, count}; }

    void set(rl::test_params& parameters) const
    {
        parameters.search_type = kind_;
        parameters.context_bound = count_;
        parameters.iteration_count = count_;
    }
    std::string text() const
    {
        if (kind_ == rl::random_scheduler_type) return " executions at random";
        return kind_ == rl::fair_full_search_scheduler_type ? " executions, which are all"
                                                            : " executions, all with so few interruptions";
    }

private:
    search(rl::scheduler_type_e kind, unsigned count)
        : kind_(kind)
        , count_(count)
    {
    }
    rl::scheduler_type_e kind_;
    unsigned count_;
};

/// Keeps the beginning of what is written to it, in one place: Relacy takes what is allocated meanwhile for a part of
/// the scenario.
class transcript : public std::streambuf {
public:
    transcript() { setp(text_.data(), text_.data() + text_.size()); }
    std::string text() const { return std::string(text_.data(), static_cast<char const*>(pptr())); }

private:
    int_type overflow(int_type c) override { return traits_type::not_eof(c); }

    std::array<char, std::size_t(1) << 15> text_;
};

/// What an execution was found to do wrong, with its steps; empty when none does.
template<class Scenario>
std::string find_error(search how, rl::iteration_t& executions)
{
    transcript steps;
    transcript progress;
    std::ostream steps_out(&steps);
    std::ostream progress_out(&progress);
    rl::test_params parameters;
    how.set(parameters);
    parameters.output_stream = &steps_out;
    parameters.progress_stream = &progress_out;
    rl::simulate<Scenario>(parameters);
    executions = parameters.stop_iteration;
    if (parameters.test_result == rl::test_result_success) return {};
    return std::string(rl::test_result_str(parameters.test_result)) + "\n" + steps.text();
}

/// The orders that are one step weaker.
inline std::vector<std::memory_order> weaker(std::memory_order order)
{
    switch (order) {
    case std::memory_order_acq_rel:
        return {std::memory_order_acquire, std::memory_order_release};
    case std::memory_order_acquire:
    case std::memory_order_release:
        return {std::memory_order_relaxed};
    default:
        return {};
    }
}

inline std::string_view name(std::memory_order order)
{
    switch (order) {
    case std::memory_order_acquire:
        return "acquire";
    case std::memory_order_release:
        return "release";
    case std::memory_order_acq_rel:
        return "acq_rel";
    default:
        return "relaxed";
    }
}

/// The scenarios hold as the protocol in `file` is written; and each memory order in it is needed: with a weaker one at
/// least one scenario fails.
template<class... Scenarios>
void check_protocol(std::string_view file, std::type_identity_t<std::array<search, sizeof...(Scenarios)>> const& how)
{
    std::size_t index = 0;
    auto holds = [&]<class Scenario>(Scenario*) {
        rl::iteration_t executions = 0;
        auto const error = find_error<Scenario>(how[index], executions);
        MESSAGE(file << ": scenario " << index << ": " << executions << how[index].text());
        CHECK_MESSAGE(error.empty(), error);
        ++index;
    };
    orders::note_all();
    (holds(static_cast<Scenarios*>(nullptr)), ...);

    std::size_t mutations = 0;
    for (auto const& site : orders::noted()) {
        if (!std::string_view(site.where.file_name()).ends_with(file)) continue;
        for (auto weak : weaker(site.order)) {
            auto mutated = site;
            mutated.order = weak;
            orders::weaken(mutated);
            bool found = false;
            index = 0;
            auto finds = [&]<class Scenario>(Scenario*) {
                rl::iteration_t executions = 0;
                if (!found) found = !find_error<Scenario>(how[index], executions).empty();
                ++index;
            };
            (finds(static_cast<Scenarios*>(nullptr)), ...);
            CHECK_MESSAGE(found, file << ":" << site.where.line() << ":" << site.where.column() << ": "
                                      << name(site.order) << " may be " << name(weak));
            ++mutations;
        }
    }
    // What was found to fail has left nothing behind that makes others fail.
    orders::as_written();
    index = 0;
    (holds(static_cast<Scenarios*>(nullptr)), ...);
    CHECK_MESSAGE(mutations > 0, file << ": no memory order was used");
}

} // namespace plait::model
