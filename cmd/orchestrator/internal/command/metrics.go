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

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/client"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

func (p *Program) metricsCommand() *cobra.Command {
	since := 5 * time.Minute
	c := &cobra.Command{
		Use:   "metrics",
		Short: "Count jobs, attempts and failures",
		Args:  NoArguments,
	}
	c.Flags().DurationVar(&since, "since", since, "how far the recent counts look back, in whole minutes, at most 24h")
	complete(c, "since", nothing)
	check := func([]string) error {
		if since <= 0 {
			return usage("--since is above zero")
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

// states are all of them, in the order a job may pass through them.
var states = []string{"created", "queued", "running", "retry", "succeeded", "dead", "canceled"}

// recently are the counts of what has happened, and how they are called.
var recently = []struct{ member, name string }{
	{"submitted", "submitted"},
	{"succeeded", "succeeded"},
	{"failedAttempts", "failed attempts"},
	{"dead", "dead"},
	{"canceled", "canceled"},
	{"requeued", "requeued"},
}

func (s *session) showMetrics(m client.Metrics) error {
	counts := show.NewTable(s.out, show.Column{Name: "STATE"}, show.Column{Name: "JOBS", Right: true})
	for _, state := range states {
		counts.Row(styled(state), number(m.StatusCounts[state]))
	}
	span := strings.ToUpper(show.Plural(m.Recent["sinceMinutes"], "minute"))
	recent := show.NewTable(s.out, show.Column{Name: "LAST " + span}, show.Column{Name: "COUNT", Right: true})
	for _, r := range recently {
		recent.Row(show.Text(r.name), number(m.Recent[r.member]))
	}
	recent.Row(show.Text("attempts ended, last minute"), number(m.LastMinute))
	types := show.NewTable(s.out,
		show.Column{Name: "TYPE"}, show.Column{Name: "FAILED ATTEMPTS", Right: true}, show.Column{Name: "AVERAGE", Right: true})
	for _, name := range namesOf(m) {
		average := ""
		if mean, known := m.AverageSeconds[name]; known {
			average = show.Seconds(mean)
		}
		types.Row(show.Text(name), alarming(m.FailuresByType[name]), show.Text(average))
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

func namesOf(m client.Metrics) []string {
	var names []string
	for name := range m.FailuresByType {
		names = append(names, name)
	}
	for name := range m.AverageSeconds {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
