// Package command has the commands that speak to the API: for submitting jobs
// and for looking after them. Each prints a table, or with --json what the API
// answered.
package command

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/client"
)

// Program is what the commands need of the program that they are part of.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv looks into the environment; empty for what is not set.
	Getenv func(name string) string
	Now    func() time.Time
	// Connect opens the way to the ledger for one command. The function that
	// it returns ends what it has opened.
	Connect func(context.Context, Target) (*client.Client, func(), error)
	// UntilSignal returns a context that ends when the program is told to
	// stop, with the reason as its cause.
	UntilSignal func(context.Context) (context.Context, func())
}

// Target says which ledger is meant.
type Target struct {
	// Server is the address of an API; empty for the one that environment and
	// configuration name.
	Server string
	// Direct goes to the database instead.
	Direct bool
	// Hasty is for what must not take long, nor say anything: nothing is
	// started for it.
	Hasty bool
}

// Exit codes beyond 0, 1 for a failure and 2 for a usage that is wrong.
const (
	// CodeFailed is returned when not everything was done.
	CodeFailed = 1
	// CodeFound is returned when everything was done, and the outcome is bad:
	// a job that did not complete, or an illness that the doctor found.
	CodeFound = 3
)

// Exit ends the program with a code. All has been said.
type Exit struct{ Code int }

func (Exit) Error() string { return "not everything went well" }

// UsageError is a command line that makes no sense.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Misused returns a UsageError.
func Misused(err error) error { return UsageError{err} }

func usage(text string) error { return UsageError{errors.New(text)} }

const (
	groupJobs       = "jobs"
	groupOperations = "operations"
)

// AddTo adds the commands.
func (p *Program) AddTo(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: groupJobs, Title: "Jobs:"},
		&cobra.Group{ID: groupOperations, Title: "Operations:"},
	)
	for _, c := range []*cobra.Command{
		p.submitCommand(), p.getCommand(), p.listCommand(), p.actCommand(cancel), p.actCommand(hold), p.actCommand(release),
		p.jobTypesCommand(),
	} {
		c.GroupID = groupJobs
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{
		p.inspectCommand(), p.logsCommand(), p.actCommand(requeue), p.deadLetterCommand(), p.queuesCommand(), p.workersCommand(), p.handlersCommand(),
		p.metricsCommand(), p.doctorCommand(),
	} {
		c.GroupID = groupOperations
		root.AddCommand(c)
	}
}
