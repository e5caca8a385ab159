package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/capacity"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (p *program) capacityCommand() *cobra.Command {
	var payload, keep string
	need := capacity.Need{}
	asJSON := false
	c := &cobra.Command{
		Use:   "capacity",
		Short: "Estimate what a rate of jobs takes: disk, WAL, processors, connections",
		Long: `Estimate what a rate of jobs takes: disk, WAL, processors, connections. It computes
with figures that were measured, and names the page that has each. It asks no server
and no database. Your machines differ: measure with orchestrator bench.`,
		Args: command.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			var err error
			if need.Payload, err = capacity.ParseBytes(payload); err != nil {
				return usageError{fmt.Errorf("--payload: %w", err)}
			}
			if need.Keep, err = capacity.ParseKept(keep); err != nil {
				return usageError{fmt.Errorf("--keep: %w", err)}
			}
			if err := need.Validate(); err != nil {
				return usageError{err}
			}
			return p.showCapacity(need, keep, asJSON)
		},
	}
	c.Flags().Float64Var(&need.Rate, "rate", 100, "jobs a second, on average")
	c.Flags().StringVar(&payload, "payload", "500B", "bytes of a job's payload and result together, such as 2kB (`size`)")
	c.Flags().StringVar(&keep, "keep", "30d", "how long ended jobs are kept, such as 12h or 30d (`time`)")
	c.Flags().IntVar(&need.Orchestrators, "orchestrators", 1, "how many orchestrators share the work")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *program) showCapacity(need capacity.Need, keep string, asJSON bool) error {
	e := capacity.Plan(need)
	if asJSON {
		return json.NewEncoder(p.stdout).Encode(struct {
			capacity.Estimate
			Remarks []string          `json:"remarks"`
			Figures []capacity.Figure `json:"figures"`
		}{e, append([]string{}, e.Remarks(need)...), capacity.Figures})
	}
	screen := show.NewScreen(p.stdout, show.Never, p.getenv)
	table := show.NewTable(screen, "WHAT", "ESTIMATE", "WHY").WrapLast()
	table.Row("jobs kept", show.Count(e.Jobs), fmt.Sprintf("%g a second for %s; set retention to %s", need.Rate, keep, job.ShortDuration(need.Keep)))
	table.Row("ledger", show.Bytes(e.Ledger), show.Bytes(e.JobBytes)+" a job, with its indexes")
	table.Row("disk", show.Bytes(e.Disk), "the ledger, a fifth for vacuum, and 4 GB of WAL; a standby needs the same")
	table.Row("WAL", show.Bytes(int64(e.WAL))+"/s", fmt.Sprintf("%s a job and its deletion; up to %s/s with whole pages after checkpoints",
		show.Bytes(int64(e.WAL/need.Rate)), show.Bytes(int64(e.MostWAL))))
	table.Row("PostgreSQL", cores(e.DatabaseCores), "the first if clients submit in batches, the second if each call has one job")
	table.Row("orchestrators", cores(e.ProgramCores), "together, with handlers that do nothing: add what yours do")
	table.Row("connections", show.Count(e.Connections), fmt.Sprintf("of max_connections, %d by default", capacity.MaxConnections))
	if err := table.Flush(); err != nil {
		return err
	}
	for _, remark := range e.Remarks(need) {
		screen.Print("\n" + show.Wrap(remark, screen.Width()) + "\n")
	}
	screen.Print("\n")
	figures := show.NewTable(screen, "FIGURE", "VALUE", "FROM")
	for _, f := range capacity.Figures {
		figures.Row(f.Name, f.Value, f.Source)
	}
	return figures.Flush()
}

func cores(r capacity.Range) string { return fmt.Sprintf("%.2g – %.2g cores", r.Batches, r.Single) }
