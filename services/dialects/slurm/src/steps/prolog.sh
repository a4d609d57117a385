# Runs a task between its prolog and its epilog.
# Arguments: the prolog, the epilog, the number of variables, these as NAME=value, the command.
muster_prolog=$1 muster_epilog=$2 muster_count=$3
shift 3

muster_says() { printf 'error: %s\n' "$1" >&2; }

# Why a program cannot be run; empty if it can.
muster_hindrance() {
  if [ ! -e "$1" ]; then echo 'No such file or directory'
  elif [ -d "$1" ] || [ ! -x "$1" ]; then echo 'Permission denied'
  fi
}

# A name without a slash is not searched for.
muster_path() { case $1 in */*) printf '%s' "$1" ;; *) printf './%s' "$1" ;; esac; }

muster_is_name() { case $1 in '' | [0-9]* | *[!A-Za-z0-9_]*) return 1 ;; esac; }

# Applies a line of the prolog's output. No part of it is ever run as a command.
muster_take() {
  muster_rest=${1#* }
  muster_rest=${muster_rest#"${muster_rest%%[![:space:]]*}"}
  case $1 in
    'print '*) printf '%s\n' "$muster_rest" ;;
    'export '*=*)
      muster_name=${muster_rest%%=*}
      muster_name=${muster_name%"${muster_name##*[![:space:]]}"}
      if muster_is_name "$muster_name"; then command export "$muster_name=${muster_rest#*=}" 2>/dev/null; fi ;;
    'unset '*)
      muster_name=${muster_rest%"${muster_rest##*[![:space:]]}"}
      if muster_is_name "$muster_name"; then command unset -v "$muster_name" 2>/dev/null; fi ;;
  esac
}

muster_prepare() {
  muster_prolog=$(muster_path "$muster_prolog")
  muster_why=$(muster_hindrance "$muster_prolog")
  if [ -n "$muster_why" ]; then
    muster_says "user task_prolog can not be executed ($muster_prolog) $muster_why"
    muster_says '--task-prolog failed status=1'
    exit 1
  fi
  muster_said=$(export SLURM_SCRIPT_CONTEXT=prolog_task; exec "$muster_prolog" </dev/null 2>/dev/null)
  muster_status=$?
  while IFS= read -r muster_line; do muster_take "$muster_line"; done <<MUSTER_END_OF_PROLOG
$muster_said
MUSTER_END_OF_PROLOG
  if [ "$muster_status" -ne 0 ]; then
    muster_says "--task-prolog failed status=$muster_status"
    exit "$muster_status"
  fi
}

# Becomes the command, which follows the variables that a shell does not pass on.
muster_become() {
  eval "muster_command=\${$((muster_count + 1))}"
  muster_found=$muster_command
  case $muster_command in
    */*) ;;
    *)
      set -f
      IFS=:
      for muster_folder in $PATH; do
        if [ -f "${muster_folder:-.}/$muster_command" ] && [ -x "${muster_folder:-.}/$muster_command" ]; then
          muster_found=${muster_folder:-.}/$muster_command
          break
        fi
      done
      unset IFS
      set +f ;;
  esac
  muster_why=$(muster_hindrance "$muster_found")
  if [ -n "$muster_why" ]; then
    muster_says "execve(): $muster_command: $muster_why"
    case $muster_why in No*) exit 2 ;; *) exit 13 ;; esac
  fi
  if [ "$muster_count" -gt 0 ]; then exec /usr/bin/env -- "$@"; fi
  exec "$@"
}

if [ -z "$muster_epilog" ]; then
  muster_prepare
  muster_become "$@"
fi

# Signals for the task reach this shell too, which must outlive it. A subshell has none of these traps.
for muster_signal in 1 2 3 5 6 10 12 13 14 15 16 24 25 26 27 29 30 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 \
  50 51 52 53 54 55 56 57 58 59 60 61 62 63 64; do
  trap : "$muster_signal"
done
# A shell prints that a signal ended a process that it waited for.
exec 9>&2 2>/dev/null
(
  exec 2>&9 9>&-
  SLURM_TASK_PID=$(exec /bin/sh -c 'echo "$PPID"')
  export SLURM_TASK_PID
  if [ -n "$muster_prolog" ]; then muster_prepare; fi
  muster_become "$@"
)
muster_status=$?
muster_epilog=$(muster_path "$muster_epilog")
if [ -z "$(muster_hindrance "$muster_epilog")" ]; then
  (
    export SLURM_SCRIPT_CONTEXT=epilog_task
    exec </dev/null >/dev/null 9>&-
    if command -v timeout; then exec timeout -s KILL 5 "$muster_epilog"; fi
    exec "$muster_epilog"
  )
fi
muster_signal=$((muster_status - 128))
case $muster_signal in
  # These end no process.
  -* | 0 | 17 | 18 | 19 | 20 | 21 | 22 | 23 | 28) exit "$muster_status" ;;
  9) ;;
  *) trap - "$muster_signal" ;;
esac
ulimit -c 0
kill "-$muster_signal" "$$"
exit "$muster_status"
