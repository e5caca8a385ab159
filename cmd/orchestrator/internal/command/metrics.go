package command

import (
	"context"
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
	}
	c.Flags().DurationVar(&since, "since", since, "the period of the recent counts, in whole minutes, at most 24h")
	complete(c, "since", nothing)
	check := func([]string) error {
		if since <= 0 {
			return usage("--since must be above zero")
		}
		return nil
	}
	return p.speaks(c, check, func(ctx context.Context, s *session, _ []string) error {
		minutes := int(math.Ceil(since.Minutes()))
		answer, err := s.Get(ctx, "/metrics", url.Values{"sinceMinutes": {strconv.Itoa(minutes)}})
		if err != nil {
			return err
		}
		return present(s, answer, s.showMetrics)
	})
}

func (s *session) showMetrics(m v1.Metrics) error {
	counts := show.NewTable(s.out, show.Column{Name: "STATE"}, show.Column{Name: "JOBS", Right: true})
	for _, state := range job.States() {
		counts.Row(styled(state), number(m.StatusCounts[state]))
	}
	span := strings.ToUpper(show.Plural(m.Recent.SinceMinutes, "minute"))
	recent := show.NewTable(s.out, show.Column{Name: "LAST " + span}, show.Column{Name: "COUNT", Right: true})
	for _, r := range []struct {
		name  string
		count int64
	}{
		{"submitted", m.Recent.Submitted},
		{"succeeded", m.Recent.Succeeded},
		{"failed attempts", m.Recent.FailedAttempts},
		{"dead", m.Recent.Dead},
		{"canceled", m.Recent.Canceled},
		{"requeued", m.Recent.Requeued},
		{"attempts ended, last minute", m.ProcessedLastMinute},
	} {
		recent.Row(show.Text(r.name), number(r.count))
	}
	types := show.NewTable(s.out,
		show.Column{Name: "TYPE"}, show.Column{Name: "FAILED ATTEMPTS", Right: true}, show.Column{Name: "AVERAGE", Right: true})
	for _, name := range namesOf(m) {
		average := ""
		if mean, known := m.AvgDurationSecondsByJobType[name]; known {
			average = show.Seconds(mean)
		}
		types.Row(show.Text(name), alarming(m.FailuresByJobType[name]), show.Text(average))
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
	var names []string
	for name := range m.FailuresByJobType {
		names = append(names, name)
	}
	for name := range m.AvgDurationSecondsByJobType {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
