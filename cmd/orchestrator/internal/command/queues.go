package command

import (
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
	return p.speaks(c, presents("/debug/queues", (*session).showQueues))
}

func (s *session) showQueues(found v1.QueueList) error {
	table := show.NewTable(s.out, "TYPE", "QUEUED", "OLDEST", "RUNNING", "RETRYING", "SCHEDULED", "HELD", "DEAD", "SERVED")
	for _, q := range found.Queues {
		oldest := show.Right("")
		if q.Queued > 0 {
			oldest = show.Right(show.Age(seconds(q.OldestQueuedSeconds)))
		}
		served := show.Cell{Text: "yes"}
		switch {
		case !q.Served:
			served = show.Cell{Text: "no", Style: show.Bad}
		case q.Paused:
			served = show.Cell{Text: "paused", Style: show.Mind}
		}
		table.Row(q.JobType, q.Queued, oldest, q.Running, q.Retrying, q.Scheduled, q.Held, alarming(q.Dead), served)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(found.Unserved) > 0 {
		s.notes.Print("No live worker has a handler for " + show.Clean(strings.Join(found.Unserved, ", ")) + "\n")
	}
	return nil
}
