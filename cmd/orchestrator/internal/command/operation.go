package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	operationsPath = "/debug/operations"
	// typedAbove is the number of jobs above which it must be typed.
	typedAbove = 1000
	// operationEvery is how often to ask how far an operation is.
	operationEvery = time.Second
)

func (p *Program) operationCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "operation",
		Short: "Act on all jobs that match a filter",
		Long: `Act on all jobs that match a filter: requeue, cancel, hold or release them, or edit
their priority. The orchestrators do it in the background, at a rate.`,
	}
	c.AddCommand(p.operationStartCommand(), p.operationListCommand(), p.operationShowCommand(), p.operationStopCommand())
	return c
}

// operationFlags say what to do to which jobs. Only the server checks their values.
type operationFlags struct {
	states         []string
	all, onlyCount bool
	yes, noWait    bool
	priority, rate int
	reason         string
}

var operationFilters = slices.Concat(listFilters, findFilters)

func (f *operationFlags) register(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.states, "state", nil, "only jobs in the `state`: queued, scheduled, held, retrying, running or dead; repeatable")
	complete(c, "state", fixed("queued", "scheduled", "held", "retrying", "running", "dead"))
	operationFilters.register(c)
	c.Flags().BoolVar(&f.all, "all", false, "all jobs that the action applies to, without a filter")
	c.Flags().IntVar(&f.priority, "priority", 0, "the new priority, for edit; higher is more urgent")
	c.Flags().IntVar(&f.rate, "rate", job.DefaultRate, "how many jobs a second at most, up to 10000")
	c.Flags().StringVar(&f.reason, "reason", "", "`why`, for the audit log")
	c.Flags().BoolVar(&f.onlyCount, "dry-run", false, "say how many jobs there are, and act on none")
	c.Flags().BoolVar(&f.yes, "yes", false, "do not ask whether to start")
	c.Flags().BoolVar(&f.noWait, "no-wait", false, "do not wait until it has ended")
}

// dryRun is the request for a dry run; or to go on with one that has stopped, unless that is nil.
func (f *operationFlags) dryRun(c *cobra.Command, action string, seen *v1.OperationAnswer) ([]byte, error) {
	sent := f.request(c, action)
	sent["dryRun"] = true
	if seen != nil {
		sent["frozenAt"], sent["cursor"] = seen.FrozenAt, seen.NextCursor
	}
	return json.Marshal(sent)
}

// start is the request to act on the jobs of a dry run.
func (f *operationFlags) start(c *cobra.Command, action string, seen v1.OperationAnswer) ([]byte, error) {
	sent := f.request(c, action)
	sent["frozenAt"] = seen.FrozenAt
	return json.Marshal(sent)
}

func (f *operationFlags) request(c *cobra.Command, action string) map[string]any {
	filter := make(map[string]any)
	for name, values := range operationFilters.query(c) {
		filter[name] = values[0]
	}
	if len(f.states) > 0 {
		filter["state"] = f.states
	}
	sent := map[string]any{"action": action, "filter": filter, "all": f.all, "rate": f.rate}
	if f.reason != "" {
		sent["reason"] = f.reason
	}
	if c.Flags().Changed("priority") {
		sent["priority"] = f.priority
	}
	return sent
}

func (p *Program) operationStartCommand() *cobra.Command {
	flags := operationFlags{}
	c := &cobra.Command{
		Use:   "start ACTION",
		Short: "Requeue, cancel, hold, release or edit all jobs that match",
		Long: `Requeue, cancel, hold, release or edit all jobs that match the filters, in the
background. It says how many there are, and asks first. Jobs that are created or die
later are left. It waits until the operation has ended; Ctrl-C leaves it running.`,
		Example: `  orchestrator operation start requeue --error-code timeout --dry-run
  orchestrator operation start requeue --type SEND_EMAIL --rate 200
  orchestrator operation start edit --tenant acme --priority 10 --yes`,
		Args: oneArgument, ValidArgs: []string{"requeue", "cancel", "hold", "release", "edit"},
	}
	flags.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		return s.startOperation(ctx, c, args[0], &flags)
	})
}

func (s *session) startOperation(ctx context.Context, c *cobra.Command, action string, flags *operationFlags) error {
	answer, seen, err := s.dryRun(ctx, c, action, flags, nil)
	if err != nil {
		return err
	}
	if flags.onlyCount && seen.NextCursor != "" {
		if answer, err = s.countOn(ctx, c, action, flags, &seen); err != nil {
			return err
		}
	}
	if s.json && flags.onlyCount {
		return s.out.JSON(answer)
	}
	if !s.json {
		if err := s.showPreview(seen); err != nil {
			return err
		}
	}
	if flags.onlyCount || seen.Count == 0 && !seen.More {
		return nil
	}
	if !flags.yes {
		if err := s.confirm(action, seen); err != nil {
			return err
		}
	}
	body, err := flags.start(c, action, seen)
	if err != nil {
		return err
	}
	if answer, err = s.Post(ctx, operationsPath, nil, body); err != nil {
		return err
	}
	var started v1.OperationAnswer
	if err := answer.Into(&started); err != nil {
		return err
	}
	if flags.noWait {
		return present(s, answer, func(s *session, a v1.OperationAnswer) error { return s.showOperation(*a.Operation) })
	}
	return s.followOperation(ctx, *started.Operation)
}

// dryRun begins a dry run, or goes on with one.
func (s *session) dryRun(
	ctx context.Context, c *cobra.Command, action string, flags *operationFlags, before *v1.OperationAnswer,
) (answer apiclient.Answer, seen v1.OperationAnswer, err error) {
	body, err := flags.dryRun(c, action, before)
	if err != nil {
		return nil, seen, err
	}
	if answer, err = s.Post(ctx, operationsPath, nil, body); err != nil {
		return nil, seen, err
	}
	return answer, seen, answer.Into(&seen)
}

// countOn goes on with a dry run that has stopped because its time was over, until all jobs are
// counted. It returns what one dry run with all the time would have answered.
func (s *session) countOn(
	ctx context.Context, c *cobra.Command, action string, flags *operationFlags, seen *v1.OperationAnswer,
) (apiclient.Answer, error) {
	line := show.NewLine(s.notes)
	defer line.Clear()
	for seen.NextCursor != "" {
		line.Set("Counting: " + jobsOf(*seen))
		_, further, err := s.dryRun(ctx, c, action, flags, seen)
		if err != nil {
			line.Clear()
			s.notes.Print("Until then, " + jobsOf(*seen) + " were counted.\n")
			return nil, err
		}
		seen.Count += further.Count
		seen.More, seen.NextCursor = further.More, further.NextCursor
	}
	return json.Marshal(seen)
}

func (s *session) showPreview(seen v1.OperationAnswer) error {
	s.out.Print(jobsOf(seen) + "\n")
	if len(seen.Samples) > 0 {
		table := s.foundTable()
		for _, sample := range seen.Samples {
			s.foundRow(table, sample)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, warning := range seen.Warnings {
		s.notes.Print("Warning: " + show.Clean(warning) + ".\n")
	}
	return nil
}

// jobsOf is the number of jobs in words.
func jobsOf(seen v1.OperationAnswer) string {
	if seen.More {
		return show.Count(seen.Count) + "+ jobs"
	}
	return show.Plural(seen.Count, "job")
}

// confirm asks on the terminal. For many jobs, their number must be typed.
func (s *session) confirm(action string, seen v1.OperationAnswer) error {
	want, how := []string{"y", "yes"}, "y"
	if seen.Count > typedAbove {
		want, how = []string{strconv.Itoa(seen.Count), show.Count(seen.Count)}, "the number"
	}
	s.notes.Print(fmt.Sprintf("%s %s? Type %s to go on: ", strings.ToUpper(action[:1])+action[1:], jobsOf(seen), how))
	typed, err := bufio.NewReader(s.stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	if !slices.Contains(want, strings.TrimSpace(typed)) {
		return usage("nothing was started: --yes starts without asking")
	}
	return nil
}

// followOperation prints how far an operation is until it has ended.
func (s *session) followOperation(ctx context.Context, o v1.Operation) error {
	line := show.NewLine(s.notes)
	defer line.Clear()
	began := time.Now()
	for {
		answer, err := s.Get(ctx, apiclient.Path(operationsPath, o.OperationID.String()), nil)
		if err == nil {
			err = answer.Into(&o)
		}
		if err == nil && o.FinishedAt != nil {
			line.Clear()
			if err := present(s, answer, (*session).showOperation); err != nil {
				return err
			}
			if o.State != job.OperationFinished {
				return Exit{CodeFound}
			}
			return nil
		}
		if err == nil {
			progress := show.Progress{Noun: "job", Done: int(o.Found), Share: -1, Elapsed: time.Since(began)}
			if o.Expected > 0 && !o.More {
				progress.Share = float64(o.Found) / float64(o.Expected)
			}
			line.Set(progress.Within(line.Width()))
			select {
			case <-time.After(operationEvery):
				continue
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		line.Clear()
		s.notes.Print(fmt.Sprintf("The operation goes on without this command: orchestrator operation show %[1]s, or stop %[1]s.\n", o.OperationID))
		return err
	}
}

func (p *Program) operationListCommand() *cobra.Command {
	only := filters{{"tenant", "tenant", "only operations on jobs of the `tenant`"}}
	c := &cobra.Command{Use: "list", Short: "List operations, newest first", Args: NoArguments}
	only.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, _ []string) error {
		answer, err := s.Get(ctx, operationsPath, only.query(c))
		if err != nil {
			return err
		}
		return present(s, answer, func(s *session, found v1.OperationList) error { return s.showOperations(found.Operations...) })
	})
}

func (p *Program) operationShowCommand() *cobra.Command {
	c := &cobra.Command{Use: "show ID", Short: "See how far an operation is", Args: oneArgument}
	return p.speaks(c, presents(operationsPath, (*session).showOperation))
}

func (p *Program) operationStopCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop an operation",
		Long:  "Stop an operation. When the command returns, it acts on no more jobs. What it has done\nstays done.",
		Args:  oneArgument,
	}
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		answer, err := s.Post(ctx, apiclient.Path(operationsPath, args[0], "stop"), nil, nil)
		if err != nil {
			return err
		}
		return present(s, answer, (*session).showOperation)
	})
}

var operationStyles = map[job.OperationState]show.Style{
	job.OperationRunning: show.Busy, job.OperationStopped: show.Mind, job.OperationFinished: show.Good, job.OperationFailed: show.Bad,
}

func (s *session) showOperations(all ...v1.Operation) error {
	table := show.NewTable(s.out, "OPERATION ID", "ACTION", "STATE", "STARTED", "BY", "EXPECTED", "DONE", "SKIPPED", "REASON").CutLast()
	for _, o := range all {
		table.Row(o.OperationID, string(o.Action), show.Cell{Text: string(o.State), Style: operationStyles[o.State]}, s.ago(o.StartedAt), o.StartedBy,
			show.Right(upTo(int(o.Expected), o.More)), show.Right(show.Count(o.Done)), show.Right(show.Count(o.Found-o.Done)), o.Reason)
	}
	return table.Flush()
}

func (s *session) showOperation(o v1.Operation) error {
	if err := s.showOperations(o); err != nil {
		return err
	}
	for _, why := range slices.Sorted(maps.Keys(o.Skipped)) {
		s.out.Print(fmt.Sprintf("skipped: %s, %s\n", show.Plural(o.Skipped[why], "job"), show.Clean(why)))
	}
	if o.LastError != "" {
		s.out.Print("error: " + show.Clean(o.LastError) + "\n")
	}
	return nil
}
