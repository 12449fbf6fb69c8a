# Program of the main container of a pod. It runs a job and copies the job's output as records to its own standard
# output, the log of the container. It needs POSIX sh and date, dd, sleep, stat (or wc), tr, and od for binary output; it
# uses bash, env and setsid where they are.
# Variables begin with torc_, for an assignment to a variable of the environment would change that of the job.
#
# Arguments: folder, file of the termination message, folder of control groups, run time limit in centiseconds (0: none),
# centiseconds from SIGTERM to SIGKILL at the limit (0: SIGKILL at once), most centiseconds to wait for the reader at the
# end, 1 if the command begins when the members are known, rank, working folder (empty: that of the image), files in the
# folder for standard output and standard error (empty: not kept), number of outputs, for each its path and its path as
# JSON, number of pieces, pieces of the command, words of the shell (none: bash or sh).
torc_dir=$1 torc_message=$2 torc_groups=$3 torc_limit=$4 torc_headroom=$5 torc_patience=$6 torc_waits=$7 torc_rank=$8
torc_folder=$9
shift 9
torc_out=${1:+$torc_dir/$1} torc_err=${2:+$torc_dir/$2} torc_outputs=$3
: "${torc_out:=/dev/null}" "${torc_err:=/dev/null}"
shift 3
torc_window=4194304 torc_chunk=262144 torc_safe=131072
torc_name= torc_term= torc_error= torc_said= torc_exit= torc_signal=
torc_written=0 torc_fails=0 torc_rewind=0 torc_encoding=t torc_fresh=
torc_pos_o=0 torc_pos_e=0 torc_base_o=0 torc_base_e=0 torc_ack_o=0 torc_ack_e=0 torc_size_o=0 torc_size_e=0

# --- time and signals

# The clock that is never set, in centiseconds. The digits after the point may begin with 0, which would mean octal.
torc_clock() {
    read -r torc_up torc_x </proc/uptime
    torc_up=$((${torc_up%.*} * 100 + 1${torc_up#*.} - 100))
}

# Every process of the job gets a signal. As process 1 of its namespace this shell has no others but those of the job.
torc_kill() {
    if [ $$ = 1 ]; then
        kill -s "$1" -- -1 2>/dev/null
    else
        { read -r torc_x torc_y </proc/"$torc_job"/task/"$torc_job"/children; } 2>/dev/null
        # not "kill -s TERM -- -12": busybox refuses "--" after it has sent the signal, which would then be sent twice
        [ -z "$torc_x" ] || kill "-$1" "-$torc_x" 2>/dev/null || kill "-$1" "$torc_x" 2>/dev/null
    fi
}

# --- records: a header (stream, offset, length, encoding), the bytes, a line feed

# Container runtimes drop a carriage return in front of a line feed, so that it changes places with a rare byte (036). In
# bulk (encoding n) the line feed, too, changes places with a rare byte: a log costs by its lines more than by its bytes.
# The reader asks for the encoding x, which is safe for all bytes, where a record arrives with fewer bytes.
torc_bytes() {
    case $3 in
    x) dd bs="$1" count=1 <&"$2" 2>/dev/null | od -An -v -tx1 && printf . ;;
    n) dd bs="$1" count=1 <&"$2" 2>/dev/null | tr '\n\001\r\036' '\001\n\036\r' ;;
    *) dd bs="$1" count=1 <&"$2" 2>/dev/null | tr '\r\036' '\036\r' ;;
    esac
}

torc_seek() {
    eval "torc_x=\$((torc_pos_$1 - torc_base_$1))"
    if [ "$torc_x" -lt 0 ]; then
        eval "torc_pos_$1=\$torc_base_$1"
        torc_x=0
    fi
    if [ "$1" = o ] && [ -r "$torc_dir/o" ]; then exec 3<"$torc_dir/o"; fi
    if [ "$1" = e ] && [ -r "$torc_dir/e" ]; then exec 4<"$torc_dir/e"; fi
    if [ "$torc_x" -gt 0 ]; then dd bs=1 skip="$torc_x" count=0 <&"$2" >/dev/null 2>&1; fi
}

# Copy one record of stream $1 through descriptor $2; fails if there is nothing to copy, or the reader is behind.
torc_record() {
    eval "torc_p=\$torc_pos_$1 torc_a=\$torc_ack_$1 torc_len=\$((torc_size_$1 + torc_base_$1 - torc_pos_$1))"
    if [ "$torc_len" -lt 0 ]; then # the job has cut its file: what it writes now follows what was copied
        eval "torc_base_$1=\$torc_p torc_len=\$torc_size_$1"
        torc_seek "$1" "$2"
    fi
    [ "$torc_term" ] || [ "$torc_len" -le $((torc_a + torc_window - torc_p)) ] || torc_len=$((torc_a + torc_window - torc_p))
    [ "$torc_len" -le "$torc_chunk" ] || torc_len=$torc_chunk
    [ "$torc_len" -gt 0 ] || return 1
    torc_form=$torc_encoding
    if [ "$torc_form$torc_len" = "t$torc_chunk" ]; then torc_form=n; fi
    printf '@%s %s %s %s %s\n' "$torc_name" "$1" "$torc_p" "$torc_len" "$torc_form"
    torc_written=$((torc_written + torc_len))
    if torc_bytes "$torc_len" "$2" "$torc_form" || [ "$torc_fails" = 9 ]; then
        eval "torc_pos_$1=\$((torc_p + torc_len)) torc_fails=0"
        echo
    else # a signal for all processes ended it
        torc_fails=$((torc_fails + 1))
        echo
        torc_seek "$1" "$2"
    fi
    echo "$torc_pos_o $torc_base_o $torc_pos_e $torc_base_e $torc_written $torc_rewind" 1<>"$torc_dir/state"
}

torc_records() {
    torc_any=
    while :; do
        torc_more=
        ! torc_record o 3 || torc_more=1
        ! torc_record e 4 || torc_more=1
        [ "$torc_more" ] || break
        torc_any=1
        [ -z "$torc_stop" ] || break
        torc_listen
    done
}

# What the reader says: the number of its last request to repeat, what it has of each stream, the encoding.
torc_listen() {
    torc_x= torc_ao= torc_ae= torc_en=
    { read -r torc_x torc_ao torc_ae torc_en <"$torc_dir/pod/log"; } 2>/dev/null
    case $torc_x,$torc_ao,$torc_ae in ,* | *,,* | *, | *[!0-9,]*) return ;; esac
    [ "$torc_ao,$torc_ae" = "$torc_ack_o,$torc_ack_e" ] || torc_fresh=1
    torc_ack_o=$torc_ao torc_ack_e=$torc_ae
    case $torc_en in t | x) torc_encoding=$torc_en ;; esac
    if [ "$torc_x" != "$torc_rewind" ]; then
        torc_rewind=$torc_x torc_pos_o=$torc_ack_o torc_pos_e=$torc_ack_e torc_fresh=1
        torc_seek o 3
        torc_seek e 4
    fi
}

# A shell's test needs no process, but knows only whether a file is empty.
torc_sizes() {
    if [ ! -s "$torc_dir/o" ] && [ ! -s "$torc_dir/e" ]; then
        torc_size_o=0 torc_size_e=0
        return
    fi
    torc_x=$(stat -c %s "$torc_dir/o" "$torc_dir/e" 2>/dev/null) ||
        torc_x="$(wc -c <"$torc_dir/o") $(wc -c <"$torc_dir/e")"
    torc_size_o=${torc_x%%[!0-9]*} torc_size_e=${torc_x##*[!0-9]}
    : "${torc_size_o:=0}" "${torc_size_e:=0}"
}

# --- while the job runs: new output, and the limit of its run time

torc_rest() {
    sleep "$torc_poll" &
    torc_x=$!
    [ -z "$torc_stop" ] || return
    wait "$torc_x"
    case $? in 0 | 1??) ;; *) sleep 1 ;; esac # this sleep knows no fractions
}

torc_obey() {
    if [ -s "$torc_dir/pod/stop" ] && [ ! -e "$torc_dir/stopped" ]; then
        : >"$torc_dir/stopped"
        kill -s USR1 $$
    fi
}

torc_check_limit() {
    [ "$torc_limit" -gt 0 ] && [ ! -e "$torc_dir/kill" ] || return 0
    torc_clock
    if [ -e "$torc_dir/limit" ]; then
        [ $((torc_up - torc_limit_at)) -ge "$torc_headroom" ] || return 0
        : >"$torc_dir/kill"
    else
        [ $((torc_up - torc_start)) -ge "$torc_limit" ] || return 0
        torc_limit_at=$torc_up
        [ "$torc_headroom" -gt 0 ] || : >"$torc_dir/kill"
        : >"$torc_dir/limit"
    fi
    kill -s USR1 $$
}

torc_follow() {
    LC_ALL=C torc_poll=0.05 torc_stop=
    export LC_ALL
    trap 'torc_stop=1' USR1
    trap : TERM
    torc_seek o 3
    torc_seek e 4
    # A signal that arrives before this shell has taken its parent's traps off is lost: the file tells the same.
    while [ -z "$torc_stop" ] && [ ! -e "$torc_dir/over" ]; do
        torc_rest
        torc_listen
        torc_sizes
        torc_records
        torc_obey
        torc_check_limit
        kill -0 "$torc_job" 2>/dev/null || torc_stop=1 # a signal that comes while this process starts may be lost
        case $torc_any$torc_poll in
        1*) torc_poll=0.1 ;;
        0.05) torc_poll=0.1 ;;
        0.1) torc_poll=0.2 ;;
        0.2) torc_poll=0.4 ;;
        0.4) torc_poll=0.8 ;;
        *) torc_poll=1 ;;
        esac
    done
}

# --- at the end: what is left of the output

# The log of a small job needs no reader. A large one may be rotated away, and one with the byte 036 may have to be
# repeated. A pod that is being deleted no longer hears its reader (the kubelet leaves its volumes as they are).
torc_needs_reader() {
    [ -z "$torc_term" ] || return
    [ "$torc_written" -le "$torc_safe" ] || return 0
    [ -s "$torc_dir/o" ] && [ "$(tr -cd '\036' <"$torc_dir/o")" ] && return
    [ -s "$torc_dir/e" ] && [ "$(tr -cd '\036' <"$torc_dir/e")" ]
}

torc_drain() {
    LC_ALL=C torc_stop= torc_told= torc_sync=0
    export LC_ALL
    if [ -s "$torc_dir/state" ]; then
        read -r torc_pos_o torc_base_o torc_pos_e torc_base_e torc_written torc_rewind <"$torc_dir/state"
    fi
    torc_seek o 3
    torc_seek e 4
    torc_clock
    torc_since=$torc_up
    while :; do
        torc_fresh=
        torc_listen
        [ -z "$torc_fresh" ] || torc_told=
        torc_records
        torc_end_o=$((torc_size_o + torc_base_o)) torc_end_e=$((torc_size_e + torc_base_e))
        if [ "$torc_pos_o" -ge "$torc_end_o" ] && [ "$torc_pos_e" -ge "$torc_end_e" ]; then
            if [ "$torc_sync" = 0 ] && torc_needs_reader; then torc_sync=1; fi
            [ "$torc_told" ] || printf '@%s end %s %s %s\n' "$torc_name" "$torc_end_o" "$torc_end_e" "$torc_sync"
            torc_told=1
            [ "$torc_sync" = 1 ] && [ -z "$torc_term" ] || break
            [ "$torc_ack_o" -lt "$torc_end_o" ] || [ "$torc_ack_e" -lt "$torc_end_e" ] || break
        fi
        torc_clock
        [ -z "$torc_fresh" ] || torc_since=$torc_up
        [ -z "$torc_term" ] || torc_patience=0
        [ $((torc_up - torc_since)) -lt "$torc_patience" ] || break
        sleep 0.1 2>/dev/null || sleep 1
    done
}

# --- the termination message: one line of JSON, at most 4096 bytes

torc_number() { # $1: name, $2: value or nothing
    case $2 in '' | *[!0-9]*) ;; *) torc_json="$torc_json,\"$1\":$2" ;; esac
}

torc_field() { # the value of field $1 in file $2
    torc_value=
    { while read -r torc_x torc_y; do [ "$torc_x" != "$1" ] || torc_value=$torc_y; done <"$2"; } 2>/dev/null
}

torc_line() { # the first line of the first of these files that exists
    torc_value=
    for torc_x; do
        [ ! -r "$torc_x" ] || { read -r torc_value <"$torc_x"; } 2>/dev/null
        [ -z "$torc_value" ] || return
    done
}

torc_measure() {
    torc_line "$torc_groups/memory.peak" "$torc_groups/memory/memory.max_usage_in_bytes"
    torc_number peak_memory_bytes "$torc_value"
    torc_field oom_kill "$torc_groups/memory.events"
    [ "$torc_value" ] || torc_field oom_kill "$torc_groups/memory/memory.oom_control"
    torc_number oom_kills "$torc_value"
    torc_field usage_usec "$torc_groups/cpu.stat"
    torc_number cpu_us "$torc_value"
    if [ -z "$torc_value" ]; then
        torc_line "$torc_groups/cpuacct/cpuacct.usage" "$torc_groups/cpu,cpuacct/cpuacct.usage"
        torc_number cpu_ns "$torc_value"
    fi
}

# A file counts as written unless it is older than the mark: both may be of the same tick of the kernel's clock.
torc_examine() {
    torc_n=$torc_outputs torc_missing= torc_count=0 torc_all=true
    [ "$torc_n" -gt 0 ] || torc_all=false
    while [ "$torc_n" -gt 0 ]; do
        if [ ! -e "$1" ]; then
            torc_count=$((torc_count + 1)) torc_all=false
            [ $((${#torc_missing} + ${#2})) -gt 2400 ] || torc_missing="$torc_missing,$2"
        elif [ "$torc_dir/mark" -nt "$1" ]; then
            torc_all=false
        fi
        shift 2
        torc_n=$((torc_n - 1))
    done
    torc_json="$torc_json,\"outputs_written\":$torc_all,\"missing_count\":$torc_count,\"missing_outputs\":[${torc_missing#,}]"
}

torc_report() {
    torc_json="{\"torc\":1,\"epoch\":\"$torc_epoch\""
    torc_number exit_code "$torc_exit"
    torc_number signal "$torc_signal"
    torc_number before_ms $(((torc_start - torc_begin) * 10))
    torc_number duration_ms $(((torc_ended - torc_start) * 10))
    torc_number stdout_bytes $((torc_size_o + torc_base_o))
    torc_number stderr_bytes $((torc_size_e + torc_base_e))
    torc_measure
    torc_examine "$@"
    for torc_x in $torc_facts; do torc_json="$torc_json,\"$torc_x\":true"; done
    [ -z "$torc_error" ] || torc_json="$torc_json,\"error\":\"$torc_error\""
    printf '%s\n' "$torc_json}" >"$torc_message" # echo of some shells replaces backslashes
}

# --- the job

# It runs as a foreground child of a shell of its own, whose standard error then tells a signal from an exit code above
# 128. A shell starts background processes with SIGINT and SIGQUIT ignored; env or bash undo that.
torc_run() {
    shift $((2 * torc_outputs))
    torc_n=$1 torc_command=
    shift
    torc_pieces=$torc_n
    while [ "$torc_n" -gt 0 ]; do
        torc_command=$torc_command$1
        shift
        torc_n=$((torc_n - 1))
    done
    if [ "$torc_pieces" -gt 1 ]; then
        printf %s "$torc_command" >"$torc_dir/command" || return 242
    fi
    if [ $# = 0 ]; then
        if command -v bash >/dev/null; then set -- bash; else set -- sh; fi
    fi
    command -v "$1" >/dev/null || return 241
    ! command -v setsid >/dev/null || set -- setsid "$@"
    if [ "${BASH_VERSION:-}" ]; then
        trap - INT QUIT
    elif env --default-signal=INT,QUIT true 2>/dev/null; then
        set -- env --default-signal=INT,QUIT "$@"
    fi
    if [ "$torc_pieces" -gt 1 ]; then set -- "$@" "$torc_dir/command"; else set -- "$@" -c "$torc_command"; fi
    [ -z "$torc_term" ] || return 243
    echo begun >&2
    torc_script='(exec "$@" >>"$torc_out" 2>>"$torc_err")' # the shell's own words do not go into these files
    if [ "${BASH_VERSION:-}" ]; then # bash -c tells nothing of signals, bash FILE does
        printf 'torc_out=$1 torc_err=$2\nshift 2\ntrap : TERM\n%s\ntorc_x=$?\necho =$torc_x >&2\nexit $torc_x\n' "$torc_script" \
            >"$torc_dir/run" || return 242
        exec sh "$torc_dir/run" "$torc_out" "$torc_err" "$@"
    fi
    eval "$torc_script"
}

# What is known of the end: the shell's exit status, and what it said. A status of 128 + n without a word is an exit
# code, except where the shell itself was killed.
torc_judge() {
    while read -r torc_x; do
        case $torc_x in
        =*) torc_exit=${torc_x#=} ;;
        begun) torc_begun=1 ;;
        ?*) torc_said="$torc_said $torc_x" ;;
        esac
    done <"$torc_dir/said"
    torc_facts=
    [ -z "$torc_was_term" ] && [ ! -e "$torc_dir/stopped" ] || torc_facts="$torc_facts was_terminated"
    [ ! -e "$torc_dir/limit" ] || torc_facts="$torc_facts limit_reached"
    [ ! -e "$torc_dir/kill" ] || torc_facts="$torc_facts limit_forced"
    case $torc_begun$torc_exit in
    1?*) [ "$torc_exit" -le 128 ] || [ -z "$torc_said" ] || torc_signal=$((torc_exit - 128)) ;;
    241) torc_error=shell torc_exit=126 ;;
    242) torc_error=command torc_exit=126 ;;
    243) torc_signal=15 ;;
    *)
        torc_exit=$torc_code
        [ "$torc_exit" -le 128 ] || torc_signal=$((torc_exit - 128))
        ;;
    esac
    case $torc_said in *'core dumped'*) torc_facts="$torc_facts core_dumped" ;; esac
}

torc_finish() {
    [ -z "$torc_signal" ] || torc_exit=
    torc_sizes
    torc_report "$@"
    torc_drain
    # The log is removed with the container of a deleted pod: a reader has it by then.
    [ -z "$torc_term" ] || [ "$torc_written" = 0 ] || sleep 1
    exit "${torc_exit:-$((128 + torc_signal))}"
}

torc_on_limit() {
    torc_hit=1
    if [ -e "$torc_dir/kill" ]; then torc_kill KILL; elif [ -e "$torc_dir/limit" ] || [ -e "$torc_dir/stopped" ]; then torc_kill TERM; fi
}

trap 'torc_term=1 torc_hit=1' TERM
torc_epoch=$(date +%s.%N)
torc_epoch=${torc_epoch%.%N}
torc_clock
torc_begin=$torc_up torc_start=$torc_up torc_ended=$torc_up torc_facts= torc_begun=
{ read -r torc_name <"$torc_dir/pod/name"; } 2>/dev/null
printf '@%s start %s\n' "$torc_name" "$torc_epoch"
# The blocks of these files exist from now on, so that a full disk does not hide how the job ended.
printf '%200s\n' '' >"$torc_dir/said"
: >>"$torc_dir/o" >>"$torc_dir/e"

if [ "$torc_folder" ] && ! cd -- "$torc_folder" 2>/dev/null; then
    torc_error=folder torc_exit=126
    torc_finish "$@"
fi
while [ "$torc_waits" = 1 ] && [ -z "$torc_term" ]; do
    [ ! -s "$torc_dir/pod/stop" ] || torc_term=1
    torc_hosts=
    { read -r torc_hosts <"$torc_dir/pod/go"; } 2>/dev/null
    if [ "$torc_hosts" ]; then
        torc_x=$torc_hosts, torc_n=0
        while [ "$torc_x" ]; do torc_x=${torc_x#*,} torc_n=$((torc_n + 1)); done
        export TORC_MEMBER_RANK="$torc_rank" TORC_MEMBER_COUNT="$torc_n" TORC_MEMBER_HOSTS="$torc_hosts" \
            TORC_LEAD_HOST="${torc_hosts%%,*}"
        break
    fi
    sleep 0.2 2>/dev/null || sleep 1
done
: >"$torc_dir/mark"
torc_clock
torc_start=$torc_up torc_ended=$torc_up
[ ! -s "$torc_dir/pod/stop" ] || torc_term=1
if [ "$torc_term" ]; then
    torc_facts=was_terminated torc_signal=15
    torc_finish "$@"
fi

(
    trap 'torc_term=1' TERM
    torc_run "$@"
    torc_x=$?
    echo "=$torc_x" >&2
    exit "$torc_x"
) </dev/null >/dev/null 2<>"$torc_dir/said" &
torc_job=$!
trap 'torc_term=1 torc_hit=1; torc_kill TERM' TERM
trap torc_on_limit USR1
[ -z "$torc_term" ] || torc_kill TERM
torc_follow &
torc_copier=$!
while :; do
    torc_hit=
    wait "$torc_job"
    torc_code=$?
    [ "$torc_hit" ] || break
done
torc_was_term=$torc_term
torc_clock
torc_ended=$torc_up
: >"$torc_dir/over"
kill -s USR1 "$torc_copier" 2>/dev/null
while :; do
    torc_hit=
    wait "$torc_copier"
    [ "$torc_hit" ] || break
done
[ $$ != 1 ] || kill -s KILL -- -1 2>/dev/null
torc_judge
torc_finish "$@"
