package command

import (
	"strconv"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (p *Program) workersCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "workers",
		Short: "List the orchestrators, with their roles and jobs",
		Args:  NoArguments,
	}
	return p.speaks(c, presents("/debug/workers", (*session).showWorkers))
}

func (s *session) showWorkers(found v1.WorkerList) error {
	table := show.NewTable(s.out, "WORKER", "PID", "ROLES", "CONDITION", "UP FOR", "HEARTBEAT", "RUNNING", "SUCCEEDED", "DEAD", "CANCELED")
	for _, w := range found.Workers {
		upTo := s.now()
		if w.StoppedAt != nil {
			upTo = *w.StoppedAt
		}
		table.Row(w.WorkerID, show.Right(strconv.Itoa(w.PID)), rolesText(w.Roles), styled(w.Condition), upTo.Sub(w.StartedAt),
			show.Right(s.ago(w.LastHeartbeat)), w.Jobs["running"], w.Jobs["succeeded"], alarming(w.Jobs["dead"]), w.Jobs["canceled"])
	}
	return table.Flush()
}

// rolesText is "all" if there are no others.
func rolesText(roles job.Roles) string {
	if len(roles) == len(job.AllRoles()) {
		return "all"
	}
	return roles.String()
}

// alarming formats a number that should be zero.
func alarming(n int64) show.Cell {
	cell := show.Right(show.Count(n))
	if n > 0 {
		cell.Style = show.Bad
	}
	return cell
}
