package command

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

func (p *Program) workersCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "workers",
		Short: "List the orchestrators that run jobs, or ran them",
		Args:  NoArguments,
	}
	return p.speaks(c, nil, func(ctx context.Context, s *session, _ []string) error {
		answer, err := s.Get(ctx, "/debug/workers", nil)
		if err != nil {
			return err
		}
		return present(s, answer, s.showWorkers)
	})
}

func (s *session) showWorkers(found v1.WorkerList) error {
	table := show.NewTable(s.out,
		show.Column{Name: "WORKER"}, show.Column{Name: "PID", Right: true},
		show.Column{Name: "CONDITION"}, show.Column{Name: "UP FOR", Right: true}, show.Column{Name: "HEARTBEAT", Right: true},
		show.Column{Name: "RUNNING", Right: true}, show.Column{Name: "SUCCEEDED", Right: true},
		show.Column{Name: "DEAD", Right: true}, show.Column{Name: "CANCELED", Right: true})
	for _, w := range found.Workers {
		upTo := s.now()
		if w.StoppedAt != nil {
			upTo = *w.StoppedAt
		}
		table.Row(show.Text(w.WorkerID), show.Text(strconv.Itoa(w.PID)),
			styled(w.Condition), show.Text(show.Age(upTo.Sub(w.StartedAt))), show.Text(s.ago(w.LastHeartbeat)+" ago"),
			number(w.Jobs["running"]), number(w.Jobs["succeeded"]), alarming(w.Jobs["dead"]), number(w.Jobs["canceled"]))
	}
	return table.Flush()
}

func number(n int64) show.Cell { return show.Text(show.Count(n)) }

// alarming formats a number that should be zero.
func alarming(n int64) show.Cell {
	cell := number(n)
	if n > 0 {
		cell.Style = show.Bad
	}
	return cell
}
