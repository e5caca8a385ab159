package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

func (p *Program) queuesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "queues",
		Short: "Count waiting and running jobs by type",
		Args:  NoArguments,
	}
	return p.speaks(c, nil, func(ctx context.Context, s *session, _ []string) error {
		answer, err := s.Get(ctx, "/debug/queues", nil)
		if err != nil {
			return err
		}
		return present(s, answer, s.showQueues)
	})
}

func (s *session) showQueues(found v1.QueueList) error {
	table := show.NewTable(s.out,
		show.Column{Name: "TYPE"}, show.Column{Name: "QUEUED", Right: true}, show.Column{Name: "OLDEST", Right: true},
		show.Column{Name: "RUNNING", Right: true}, show.Column{Name: "RETRYING", Right: true},
		show.Column{Name: "SCHEDULED", Right: true}, show.Column{Name: "HELD", Right: true},
		show.Column{Name: "DEAD", Right: true}, show.Column{Name: "SERVED"})
	for _, q := range found.Queues {
		oldest := ""
		if q.Queued > 0 {
			oldest = show.Age(seconds(q.OldestQueuedSeconds))
		}
		served := show.Text("yes")
		if !q.Served {
			served = show.Cell{Text: "no", Style: show.Bad}
		}
		table.Row(show.Text(q.JobType), number(q.Queued), show.Text(oldest), number(q.Running), number(q.Retrying),
			number(q.Scheduled), number(q.Held), alarming(q.Dead), served)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(found.Unserved) > 0 {
		s.notes.Print("No live worker has a handler for " + show.Clean(strings.Join(found.Unserved, ", ")) + "\n")
	}
	return nil
}
