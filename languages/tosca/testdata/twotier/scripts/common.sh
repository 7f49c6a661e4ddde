# Sourced by those that run.
say() { echo "$1=$2" >>"$CROFT_OUTPUTS"; }
