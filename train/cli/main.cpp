#include "train/cli/command.h"

int main(int argc, char** argv) { return gyre::cli::run_program(argc, argv); }
