package command

import (
	"context"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (p *Program) metricsCommand() *cobra.Command {
	since := 5 * time.Minute
	c := &cobra.Command{
		Use:   "metrics",
		Short: "Count jobs, attempts and failures",
		Args:  NoArguments,
		PreRunE: func(*cobra.Command, []string) error {
			if since <= 0 {
				return usage("--since must be above zero")
			}
			return nil
		},
	}
	c.Flags().DurationVar(&since, "since", since, "the period of the recent counts, in whole minutes, at most 24h")
	return p.speaks(c, func(ctx context.Context, s *session, _ []string) error {
		minutes := int(math.Ceil(since.Minutes()))
		answer, err := s.Get(ctx, "/metrics", url.Values{"sinceMinutes": {strconv.Itoa(minutes)}})
		if err != nil {
			return err
		}
		return present(s, answer, (*session).showMetrics)
	})
}

func (s *session) showMetrics(m v1.Metrics) error {
	counts := show.NewTable(s.out, "STATE", "JOBS")
	for _, state := range job.States() {
		counts.Row(styled(state), m.StatusCounts[state])
	}
	span := strings.ToUpper(show.Plural(m.Recent.SinceMinutes, "minute"))
	recent := show.NewTable(s.out, "LAST "+span, "COUNT")
	recent.Row("submitted", m.Recent.Submitted)
	recent.Row("succeeded", m.Recent.Succeeded)
	recent.Row("failed attempts", m.Recent.FailedAttempts)
	recent.Row("dead", m.Recent.Dead)
	recent.Row("canceled", m.Recent.Canceled)
	recent.Row("requeued", m.Recent.Requeued)
	recent.Row("attempts ended, last minute", m.ProcessedLastMinute)
	types := show.NewTable(s.out, "TYPE", "FAILED ATTEMPTS", "AVERAGE")
	for _, name := range namesOf(m) {
		average := show.Right("")
		if mean, known := m.AvgDurationSecondsByJobType[name]; known {
			average.Text = show.Seconds(mean)
		}
		types.Row(name, alarming(m.FailuresByJobType[name]), average)
	}
	for i, table := range []*show.Table{counts, recent, types} {
		if i > 0 {
			s.out.Print("\n")
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func namesOf(m v1.Metrics) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(m.FailuresByJobType)), maps.Keys(m.AvgDurationSecondsByJobType))
	slices.Sort(names)
	return slices.Compact(names)
}
