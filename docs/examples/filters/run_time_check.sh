#!/bin/sh
# Submission filter: refuses jobs without a run time, or with the run time `Infinite`. Only jobs that say how long they
# run can be backfilled.
#
#     run_time_check.sh JOBXML
#
# Exit code 0 lets the job pass, 2 fails it; the message is shown on the job.

tr '\n\r\t' '   ' < "$1" | awk '
{ text = text $0 }
END {
    sub(/^\357\273\277/, "", text)
    # Declarations and comments may stand in front of the job.
    while (match(text, /^ *<[?!]/)) {
        end = text ~ /^ *<!--/ ? "-->" : ">"
        if (!index(text, end)) exit 2
        text = substr(text, index(text, end) + length(end))
    }
    if (!match(text, /^ *<([A-Za-z0-9_.-]+:)?Job[ >\/]/)) exit 2
    text = substr(text, RLENGTH)
    attribute = "^ *[A-Za-z0-9_:.-]+ *= *(\"[^\"]*\"|\047[^\047]*\047)"
    while (match(text, attribute)) {
        name = value = substr(text, 1, RLENGTH)
        text = substr(text, RLENGTH + 1)
        sub(/ *=.*/, "", name)
        sub(/^[^=]*= *./, "", value)
        gsub(/ /, "", name)
        sub(/.$/, "", value)
        if (tolower(name) ~ /^runtime(seconds)?$/) {
            if (value ~ /[0-9]/) limited = 1
            if (tolower(value) ~ /infinite/) infinite = 1
        }
    }
    exit (limited && !infinite) ? 0 : 2
}' && exit 0

echo "message=give the job a run time, for example /runtime:2:30 for two hours and a half; Infinite is not allowed" \
    > "$MUSTER_RESULT_FILE"
exit 2
