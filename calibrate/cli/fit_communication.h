// `tbd-calibrate fit-communication`: measured all-reduces -> the `collective` of a link's file.
#pragma once

#include <string>
#include <vector>

#include "calibrate/cli/cli.h"

namespace tbdsim {

struct CommunicationCommand {
  std::vector<std::string> files;
  std::string machine;            // of the catalogue, or a path
  std::vector<std::string> only;  // "column=value"
};

// Throws UsageError or SpecError.
void communication_command(const CommunicationCommand& command, const ProgramContext& context);

}  // namespace tbdsim
