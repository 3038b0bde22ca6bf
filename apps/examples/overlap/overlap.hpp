#pragma once

#include <plait/engine/engine.hpp>

#include <filesystem>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

/// What overlap is worth, on devices that are not there: an engine on simulated ones, in virtual time, with a policy's
/// steps in one lane and in two.
namespace overlap {

/// An operation of device 0 in the longest step.
struct bar {
    std::string stream;
    std::string name;
    plait::duration begin{}, end{}; ///< from the step's begin
};

/// The longest step of a run.
struct step {
    std::vector<bar> bars;
    plait::duration length{};
};

enum class scene {
    split_prompt, ///< one prompt; with overlap in two halves, one of which computes while the other's sums travel
    decode_beside_prefill ///< sequences that decode and a prompt; with overlap on two streams
};

/// Runs a scene on two or three simulated devices, as the model's heads divide. The tokens are not computed.
/// What ran is recorded in `record`, which is empty before, or null.
step run(std::filesystem::path const& model, scene which, bool overlapped, std::shared_ptr<plait::trace> record = {});

/// One below the other, on one scale of time, for as long as the first `layers` layers take without overlap. As SVG.
void draw(std::ostream& to, std::string const& title, step const& off, step const& on, int layers);

} // namespace overlap
