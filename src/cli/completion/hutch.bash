# bash completion for hutch. Verbs, options and profiles are asked of the command itself, so that
# this file has no list of its own to keep up.

_hutch_options()
{
    "$1" "${@:2}" --help 2>/dev/null | command grep -oE -- '--[a-z][a-z-]*' | sort -u
}

# The words that an option's value can be; empty: files.
_hutch_values()
{
    case $2 in
        --language) echo "python javascript bash" ;;
        --policy) "$1" policy list 2>/dev/null | command awk '{ print $1 }' ;;
        --network) echo "none" ;;
        --on-flood) echo "drop kill" ;;
        --require | --allow-missing)
            "$1" run "$2" "?" 2>&1 | command sed -n 's/.*there are //p'
            [ "$2" = --allow-missing ] || echo "all"
            ;;
    esac
}

# True for an option that is shown with a value behind it.
_hutch_takes_value()
{
    "$1" "${@:3}" --help 2>/dev/null | command grep -qE -- "(^|[ ,])$2 [A-Z][^ ]*|(^|[ ,])$2 [a-z]+\|"
}

_hutch()
{
    local hutch=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local verb=("${COMP_WORDS[1]}") first=2 i
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ] || [ "$COMP_CWORD:${verb[0]}" = 2:help ]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$hutch" help 2>/dev/null |
            command sed -n 's/^  hutch \([a-z]*\).*/\1/p')" -- "$cur")
        return
    fi
    case ${verb[0]} in
        plan)
            if [ "$COMP_CWORD" = 2 ]; then
                mapfile -t COMPREPLY < <(compgen -W "run exec" -- "$cur")
                return
            fi
            verb+=("${COMP_WORDS[2]}")
            first=3
            ;;
        policy)
            local words="list show count check"
            [ "$COMP_CWORD" = 2 ] || words=$(_hutch_values "$hutch" --policy)
            mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
            [ "$COMP_CWORD" = 2 ] || mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur")
            return
            ;;
    esac
    # Behind "--" stands the program's own command line.
    for ((i = first; i < COMP_CWORD; i++)); do
        if [ "${COMP_WORDS[i]}" = -- ]; then
            [ "$((i + 1))" = "$COMP_CWORD" ] &&
                mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u)
            return
        fi
    done
    # "--name=VALUE" comes as three words.
    if [ "$cur" = "=" ]; then
        cur=""
    elif [ "$prev" = "=" ]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [[ $prev == --* ]]; then
        local values
        values=$(_hutch_values "$hutch" "$prev")
        if [ -n "$values" ]; then
            mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur")
            return
        fi
        # A value of its own kind: files at most.
        _hutch_takes_value "$hutch" "$prev" "${verb[@]}" && return
    fi
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_hutch_options "$hutch" "${verb[@]}")" -- "$cur")
    fi
}

complete -o default -o bashdefault -F _hutch hutch
