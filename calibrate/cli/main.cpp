#include "calibrate/cli/cli.h"

int main(int argc, char** argv) {
  return tbdsim::run_program("tbd-calibrate", tbdsim::run_calibrate, argc, argv);
}
