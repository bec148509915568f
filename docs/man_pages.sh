#!/usr/bin/env bash
# man_pages.sh TBD_SIM FOLDER: manual pages from the program's own help, with help2man: FOLDER/tbd-sim.1, and
# FOLDER/tbd-sim-COMMAND.1 for each of its commands.
set -euo pipefail
[[ $# == 2 ]] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
program=$1 folder=$2
page() {  # page NAME SUMMARY HELP-OPTION; help2man takes the name from the usage line, which is the program's
  help2man --no-info --name "$2" --help-option "$3" "$program" |
    sed "s/^\.TH TBD-SIM /.TH ${1^^} /; s/^tbd-sim \\\\- /$1 \\\\- /" >"$folder/$1.1"
}
mkdir -p "$folder"
page tbd-sim "predicts the training of neural networks on GPUs" --help
"$program" --help | sed -n '/^Subcommands:/,/^$/s/^  //p' | while read -r command summary; do
  page "tbd-sim-$command" "$summary" "$command --help"
done
