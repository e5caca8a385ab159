// Package command contains the commands that call the API, to submit and to manage
// jobs. Each prints a table, or with --json the API's answer.
package command

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
)

// Program is what the commands need from the program they belong to.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv returns a variable of the environment; empty if it is not set.
	Getenv func(name string) string
	Now    func() time.Time
	// Connect returns a client for one command, and a function that closes it.
	Connect func(context.Context, Target) (*apiclient.Client, func(), error)
	// ServePages serves the web UI of several cells until a signal. If the target is one server,
	// it returns false at once.
	ServePages func(ctx context.Context, of Target, address string) (served bool, err error)
	// UntilSignal returns a context that ends at a signal, with the reason as its
	// cause.
	UntilSignal func(context.Context) (context.Context, func())
}

// Target says which jobs to work on.
type Target struct {
	// Servers are URLs of APIs, each perhaps after the number of its cell and =; none for
	// those that the environment or the configuration names.
	Servers []string
	// Cells is a file that names servers; empty for none.
	Cells string
	// Direct uses the database instead of a server.
	Direct bool
	// Hasty is for completions: they must be quick and silent, and start nothing.
	Hasty bool
}

// Exit codes, in addition to 0 for success and 2 for wrong usage.
const (
	// CodeFailed means that something was not done.
	CodeFailed = 1
	// CodeFound means that everything was done and the outcome is bad: a job did not
	// complete, or the doctor found a problem.
	CodeFound = 3
)

// Exit ends the program with a code. The command has printed everything already.
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
		p.submitCommand(), p.getCommand(), p.listCommand(), p.treeCommand(), p.actCommand(cancel), p.actCommand(hold), p.actCommand(release),
		p.editCommand(), p.workflowCommand(), p.jobTypesCommand(), p.eventsCommand(),
	} {
		c.GroupID = groupJobs
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{
		p.inspectCommand(), p.findCommand(), p.logsCommand(), p.actCommand(requeue), p.resubmitCommand(), p.deadLetterCommand(), p.operationCommand(), p.queuesCommand(), p.workersCommand(), p.pluginsCommand(), p.configCommand(),
		p.scheduleCommand(), p.pausesCommand(), p.pauseCommand(), p.resumeCommand(), p.drainCommand(), p.limitsCommand(),
		p.retentionCommand(), p.eraseCommand(), p.erasuresCommand(),
		p.auditCommand(), p.metricsCommand(), p.seriesCommand(), p.doctorCommand(), p.uiCommand(),
	} {
		c.GroupID = groupOperations
		root.AddCommand(c)
	}
}
