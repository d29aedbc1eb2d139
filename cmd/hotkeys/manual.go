package main

const synopsis = "hotkeys [flag ...] [file ...] | hotkeys merge [flag ...] sketch ..."

// manual is what -h prints.
const manual = `NAME
    hotkeys - show the hot keys of a stream

SYNOPSIS
    hotkeys [flag ...] [file ...]
    hotkeys merge [-k n] [-o format] [-save sketch] sketch ...

DESCRIPTION
    hotkeys counts keys, which are lines or parts of lines, and shows those that
    occur most often. Memory does not grow with the number of distinct keys:
    it is that of a sketch, HeavyKeeper, which counts the hottest keys exactly
    from the moment it notices them, and knows how far off each count may be.

    Files are read in turn, standard input where there are none, or for -. What
    is in gzip format is unpacked, whatever its name. Flags may follow files;
    -- ends the flags. A bar shows the progress where standard error is a
    terminal and the input is regular files.

    "hotkeys merge" adds up sketches that -save has written, as if one hotkeys
    had read all input. (For a file of that name write ./merge.)

KEYS
    The key is the line, without its end, unless one of these is given:

    -f n         field n, the first being 1, the last -1
    -d sep       what separates fields: a string, in which \t and the like are
                 understood. Each occurrence ends a field. Without it fields are
                 what is between runs of blanks and tabs.
    -re regexp   what the group named key matches, or else the first group, or
                 the whole if there are no groups. The syntax is that of Go:
                 https://pkg.go.dev/regexp/syntax
    -all         all fields of the line, or with -re all matches, not just one
    -json path   a value of a line that is a JSON object: member names and array
                 indexes with dots between them, as in request.headers.0; \. is a
                 dot in a name. Of a string it is the text, of all else the JSON
                 as it stands. null is no key.
    -monitor     the keys of the commands that "redis-cli monitor" prints; each
                 one of commands that have several

    A line in which there is no key is not counted, and a message tells how many
    there were. An empty field is a key. Lines are read up to 262,144 bytes and
    keys up to 4,096, and what is longer is cut.

WINDOWS
    -window d    the hot keys of the last d, as in 90s, 30m or 24h, all along: as a
                 screen that is redrawn if standard output is a terminal (^Z
                 gives that back), and else as lines of time, rank, count, rate
                 and key. In the end it shows the last window.
    -slots n     parts of the window, which moves on by one of them at a time;
                 must divide d (default 10)
    -every d     how often to show the window (default: each slot; on a screen
                 each second, if slots are longer)
    -time where  take the time from the line and not from the clock, to replay
                 a log: the number of its first field, or with -re the name or
                 number of its group, or with -json its path
    -layout l    how it is written: rfc3339 (default), clf (of web servers, with
                 the brackets), syslog (without a year), unix, unixms, unixus or
                 unixns (seconds to nanoseconds since 1970; unix is the default
                 with -monitor), or a layout of Go: https://pkg.go.dev/time#Layout
                 A layout with blanks (separators, with -d) takes as many fields
                 from the first on. Times without a zone are taken for UTC.
    -speed x     replay x times as fast as it happened, at least 0.000001
                 (default: as fast as can be)

    Lines that are out of order count in their slot as long as the window has
    it. The latest time is the present, so a time that is wrongly far ahead
    makes all that follow too late; a message tells how many were.

OUTPUT
    -k n         show n keys (default 10)
    -o format    table (default), json or csv
                 table   COUNT, ERROR, SHARE of all keys or RATE/S in the window,
                         and KEY. The true count is at most ERROR away; 0: exact.
                         What is not printable is escaped as in Go, and so are
                         backslashes.
                 json    an object on a line: lines, total, exact, keys; of each key
                         rank, key, count, lower, upper (null: unknown), share; for
                         windows time, span_seconds, rate_per_second, slots. A key
                         that is not UTF-8 also has key_base64.
                 csv     the same in rows below a row of titles; keys are as they
                         are in the input, but escaped if it goes to a terminal
    -q           no bar of progress, no messages of what was not counted, or shown

SKETCHES
    -save file   write what was counted to a file, replacing it as a whole
    -load file   go on from what is in a file
    -seed n      choose the hash functions. Only sketches of one seed merge. No
                 seed, secret or not, helps against keys that somebody has chosen
                 to collide: they make others seem hot, or not. Where keys come
                 from strangers, do not block or bill by what hotkeys says.

    A sketch keeps the hottest 1000 keys, or n if -k n is more, and takes about
    half a megabyte; a message tells if a greater -k is asked of it later.
    Sketches of different -k above 1000 do not merge. A window cannot be saved.

    -h, -version print this, or the version, and exit

EXIT STATUS
    0            all went well
    1            a file could not be read, or output not written; other files
                 were counted and shown all the same
    2            the arguments make no sense; nothing was read
    128+n        signal n (129: hang-up, 130: interrupt, 131: quit, 143: terminate)
                 ended it early. What was known by then is shown, and saved. A
                 second one ends it at once, and so does the first while a sketch
                 is loaded or merged.

EXAMPLES
    The 20 most frequent lines:
        hotkeys -k 20 < access.log
    Paths, addresses, and pairs of status and path, of a web server's logs:
        hotkeys -f 7 access.log access.log.1.gz
        hotkeys -f 1 -o csv access.log > addresses.csv
        hotkeys -re '"\w+ (\S+ \S+" \d+)' access.log
    Words:
        tr A-Z a-z < book.txt | hotkeys -all -re "[a-z']+"
    The most active addresses of the last minute, live:
        tail -f access.log | hotkeys -f 1 -window 1m
    What they were on another day, hour by hour, and as it happened, a minute a second:
        hotkeys -f 1 -window 1h -every 1h -time 4 -layout clf access.log
        hotkeys -f 1 -window 10m -time 4 -layout clf -speed 60 access.log
    Hot keys of a Redis server:
        redis-cli monitor | hotkeys -monitor -window 10s
    Structured logs:
        kubectl logs -f service | hotkeys -json request.path -window 30s
    Many machines:
        hotkeys -f 7 -save $(hostname).hk access.log
        hotkeys merge -k 100 *.hk
`
