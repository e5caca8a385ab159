package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// The exit codes.
const (
	holds    = 0
	violated = 1
	unread   = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(arguments []string, out, problems io.Writer) int {
	flags := flag.NewFlagSet("checker", flag.ContinueOnError)
	flags.SetOutput(problems)
	asJSON := flags.Bool("json", false, "print the verdicts as JSON")
	flags.Usage = func() {
		fmt.Fprintln(problems, "usage: checker [-json] DIR\n\nDIR is the directory of a chaos run.")
		flags.PrintDefaults()
	}
	if err := flags.Parse(arguments); err != nil {
		return unread
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return unread
	}
	r, err := load(flags.Arg(0))
	if err == nil {
		err = r.replay()
	}
	if err != nil {
		fmt.Fprintln(problems, "checker:", err)
		return unread
	}
	verdicts := judge(r)
	if *asJSON {
		err = json.NewEncoder(out).Encode(verdicts)
	} else {
		err = errors.Join(show(out, verdicts), quote(out, flags.Arg(0), verdicts), summarize(out, r, verdicts))
	}
	if err != nil {
		fmt.Fprintln(problems, "checker:", err)
		return unread
	}
	if len(violatedBy(verdicts)) > 0 {
		return violated
	}
	return holds
}
