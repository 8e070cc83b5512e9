#!/bin/sh
# An extension in POSIX sh, without jq or any other program.
#
# pi writes each message on one line, its fields always in this order and without blanks:
#   {"jsonrpc":"2.0","id":7,"method":"event/tool_call","params":{"type":"tool_call","toolCallId":"…","toolName":"bash","input":{…}}}
# so that the beginning of a line tells what it is. What stands further in is only searched here, not parsed: a gate may do
# that, because a word too many blocks and a word too few cannot be. Take jq, or another language, for anything finer.

reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
tell() { printf '{"jsonrpc":"2.0","method":"%s","params":%s}\n' "$1" "$2"; }

careless=no
while IFS= read -r line; do
  id=${line#'{"jsonrpc":"2.0","id":'}
  id=${id%%,*}
  case $line in
    '{"jsonrpc":"2.0","id":'*'"method":"initialize"'*)
      case $line in *'"flags":{"careless":true}'*) careless=yes ;; esac
      reply "$id" '{"protocol":1}' ;;
    '{"jsonrpc":"2.0","id":'*',"method":"event/tool_call","params":{"type":"tool_call",'*)
      case $careless$line in
        no*'"toolName":"bash"'*'rm '*'-'*[rf]*)
          tell session/append_entry '{"customType":"guarded","data":{"blocked":true}}'
          reply "$id" '{"block":true,"reason":"Deleting by force is not allowed here; move files away instead."}' ;;
        *)
          reply "$id" '{}' ;;
      esac ;;
    '{"jsonrpc":"2.0","id":'*)
      # session_start, shutdown: nothing to say. pi closes the input next, which ends the loop.
      reply "$id" null ;;
  esac
done
