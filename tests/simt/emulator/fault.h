#pragma once

#include <stdexcept>
#include <string>

namespace gyre::simt {

/// The rules of kernels that the emulator watches; those from `race` on by the checked build alone.
enum class Rule {
  divergent_barrier,     // the threads of a block wait at different barriers
  divergent_collective,  // the lanes of a warp wait at different collectives
  early_return,          // a thread ends while others wait for it
  outstanding_copy,      // a thread ends before its cp.async copies do
  misaligned,            // an address is no multiple of what the access needs
  out_of_bounds,         // neither shared memory of the block nor a registered buffer
  race,                  // two threads of a block, one of them writing, without a barrier in between
  race_across_blocks,    // two blocks, one of them writing
  uninitialised_shared,  // read before this block wrote it
  uninitialised_global,  // read before anyone wrote it
  unfinished_copy        // touched between the start of a cp.async copy and the wait for it
};

/// "race", "race across blocks", …
const char* name_of(Rule rule);

/// A kernel broke a rule; the text names kernel, block, thread and the two lines or the address.
class Fault : public std::runtime_error {
 public:
  Fault(Rule rule, const std::string& text) : std::runtime_error(text), rule_(rule) {}
  Rule rule() const { return rule_; }

 private:
  Rule rule_;
};

}  // namespace gyre::simt
