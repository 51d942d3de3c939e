# A system as a command: the same two documents for every topic.
while IFS="$(printf '\t')" read -r topic text; do
    printf '%s Q0 d001 1 2.0 shell\n%s Q0 d002 2 1.0 shell\n' "$topic" "$topic"
done
