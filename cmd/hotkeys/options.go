package main

import (
	"flag"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	maxK         = 1_000_000
	maxSlots     = 1 << 16
	defaultSlots = 10
	leastSpeed   = 1e-6
	highestSpeed = 1e9
)

// options are what the command line says.
type options struct {
	k      int
	format string
	seed   uint64
	quiet  bool

	field     int // 0: the whole line
	separator string
	all       bool
	pattern   *regexp.Regexp
	path      string
	monitor   bool

	window time.Duration // 0: all of the stream
	slots  int
	every  time.Duration // 0: to be chosen
	time   string        // where the time of a line is; "": that of its arrival
	layout string
	speed  float64 // of a replay; 0: as fast as it goes

	load, save string
	files      []string

	merge, version bool
	set            map[string]bool // flags given
}

// parse returns what the arguments say, flag.ErrHelp if they ask for help.
func parse(args []string) (*options, error) {
	o := &options{}
	if len(args) > 0 && args[0] == "merge" {
		o.merge, args = true, args[1:]
	}
	flags, pattern := o.flags()
	for len(args) > 0 { // flags may follow files, as elsewhere
		if args[0] == "--" {
			o.files = append(o.files, args[1:]...)
			break
		}
		n := min(argumentsOf(flags, args[0]), len(args))
		if err := flags.Parse(args[:n]); err != nil {
			return nil, err
		}
		o.files = append(o.files, flags.Args()...)
		args = args[n:]
	}
	o.set = map[string]bool{}
	flags.Visit(func(f *flag.Flag) { o.set[f.Name] = true })
	if o.set["re"] {
		var err error
		if o.pattern, err = regexp.Compile(*pattern); err != nil {
			return nil, fmt.Errorf("-re: %w", err)
		}
	}
	if o.version {
		return o, nil
	}
	return o, o.validate()
}

// argumentsOf returns how many arguments a flag takes, itself included; a file
// is one.
func argumentsOf(flags *flag.FlagSet, argument string) int {
	name, dashed := strings.CutPrefix(argument, "-")
	f := flags.Lookup(strings.TrimPrefix(name, "-"))
	if !dashed || f == nil { // a file, -name=value, or unknown
		return 1
	}
	if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
		return 1
	}
	return 2
}

// flags returns the flags of the command, which set o, and the text of -re.
func (o *options) flags() (*flag.FlagSet, *string) {
	f := flag.NewFlagSet("hotkeys", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.IntVar(&o.k, "k", 10, "")
	f.StringVar(&o.format, "o", "table", "")
	f.StringVar(&o.save, "save", "", "")
	if o.merge {
		return f, new(string)
	}
	pattern := f.String("re", "", "")
	f.BoolVar(&o.version, "version", false, "")
	f.Uint64Var(&o.seed, "seed", 0, "")
	f.BoolVar(&o.quiet, "q", false, "")
	f.IntVar(&o.field, "f", 0, "")
	f.StringVar(&o.separator, "d", "", "")
	f.BoolVar(&o.all, "all", false, "")
	f.StringVar(&o.path, "json", "", "")
	f.BoolVar(&o.monitor, "monitor", false, "")
	f.DurationVar(&o.window, "window", 0, "")
	f.IntVar(&o.slots, "slots", defaultSlots, "")
	f.DurationVar(&o.every, "every", 0, "")
	f.StringVar(&o.time, "time", "", "")
	f.StringVar(&o.layout, "layout", "", "")
	f.Float64Var(&o.speed, "speed", 0, "")
	f.StringVar(&o.load, "load", "", "")
	return f, pattern
}

// validate reports the first option that is wrong and fills in what depends on
// others.
func (o *options) validate() error {
	if o.k < 1 || o.k > maxK {
		return fmt.Errorf("-k %d: must be 1 to %d", o.k, maxK)
	}
	switch o.format {
	case "table", "json", "csv":
	default:
		return fmt.Errorf("-o %s: must be table, json or csv", o.format)
	}
	if o.set["save"] && o.save == "" {
		return fmt.Errorf("-save: no file name")
	}
	if o.merge {
		if len(o.files) == 0 {
			return fmt.Errorf("merge: no files of sketches")
		}
		return nil
	}
	if o.set["load"] && o.load == "" {
		return fmt.Errorf("-load: no file name")
	}
	if o.set["load"] && o.set["seed"] {
		return fmt.Errorf("-seed: a sketch that is loaded has its own")
	}
	for _, check := range []func() error{o.validateKeys, o.validateWindow, o.validateTime} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validateKeys checks the options that say what a line's keys are.
func (o *options) validateKeys() error {
	form := ""
	for _, name := range []string{"re", "json", "monitor"} {
		if !o.set[name] {
			continue
		}
		if form != "" {
			return fmt.Errorf("-%s and -%s exclude each other", form, name)
		}
		form = name
	}
	for _, name := range []string{"f", "d", "all"} {
		if o.set[name] && form != "" && (name != "all" || form != "re") {
			return fmt.Errorf("-%s and -%s exclude each other", name, form)
		}
	}
	if o.set["f"] && !isField(o.field) {
		return fmt.Errorf("-f %d: must be 1 to %d, or -1 to -%d", o.field, maxField, maxField)
	}
	if o.all && o.set["f"] {
		return fmt.Errorf("-all and -f exclude each other")
	}
	if o.set["d"] {
		if o.separator == "" {
			return fmt.Errorf("-d: must not be empty")
		}
		if !o.all && o.field == 0 && o.time == "" {
			return fmt.Errorf("-d needs -f or -all")
		}
		if s, err := strconv.Unquote(`"` + o.separator + `"`); err == nil {
			o.separator = s // "\t" and the like
		}
		if strings.Contains(o.separator, "\n") {
			return fmt.Errorf("-d %q: must not contain a line feed", o.separator)
		}
	}
	return nil
}

// validateWindow checks the options of a window.
func (o *options) validateWindow() error {
	if !o.set["window"] {
		for _, name := range []string{"slots", "every", "time"} {
			if o.set[name] {
				return fmt.Errorf("-%s needs -window", name)
			}
		}
		return nil
	}
	switch {
	case o.window <= 0:
		return fmt.Errorf("-window %v: must be positive", o.window)
	case o.slots < 1 || o.slots > maxSlots:
		return fmt.Errorf("-slots %d: must be 1 to %d", o.slots, maxSlots)
	case o.window%time.Duration(o.slots) != 0:
		return fmt.Errorf("-slots %d: must divide -window %v", o.slots, o.window)
	case o.every < 0 || o.set["every"] && o.every == 0:
		return fmt.Errorf("-every %v: must be positive", o.every)
	case o.save != "":
		return fmt.Errorf("-save: only a count of the whole stream can be saved, not a -window")
	case o.load != "":
		return fmt.Errorf("-load: only a count of the whole stream can go on from a file, not a -window")
	}
	return nil
}

// validateTime checks the options that say what a line's time is.
func (o *options) validateTime() error {
	if o.time == "" {
		for _, name := range []string{"time", "layout", "speed"} {
			if !o.set[name] {
				continue
			}
			if name == "time" {
				return fmt.Errorf("-time: must not be empty")
			}
			return fmt.Errorf("-%s needs -time", name)
		}
		return nil
	}
	if o.set["speed"] && !(o.speed >= leastSpeed && o.speed <= highestSpeed) {
		return fmt.Errorf("-speed %v: must be %v to %v", o.speed, leastSpeed, highestSpeed)
	}
	if o.set["layout"] && o.layout == "" {
		return fmt.Errorf("-layout: must not be empty")
	}
	if o.layout == "" {
		o.layout = "rfc3339"
		if o.monitor {
			o.layout = "unix"
		}
	}
	return nil
}

// slot returns the length of a slot of the window.
func (o *options) slot() time.Duration { return o.window / time.Duration(o.slots) }
