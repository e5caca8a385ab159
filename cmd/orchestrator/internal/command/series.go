package command

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

func (p *Program) seriesCommand() *cobra.Command {
	var window, jobType string
	c := &cobra.Command{
		Use:   "series",
		Short: "Show what happened to jobs over time, and how long they took",
		Args:  NoArguments,
		PreRunE: func(*cobra.Command, []string) error {
			if !slices.Contains(v1.SeriesWindows(), v1.SeriesWindow(window)) {
				return usage("--window must be 15m, 1h or 24h")
			}
			return nil
		},
	}
	c.Flags().StringVar(&window, "window", string(v1.Hour), "how far back: 15m, 1h or 24h")
	c.Flags().StringVar(&jobType, "type", "", "only jobs of this `type`")
	return p.speaks(c, func(ctx context.Context, s *session, _ []string) error {
		query := url.Values{"window": {window}}
		if jobType != "" {
			query.Set("jobType", jobType)
		}
		answer, err := s.Get(ctx, "/debug/series", query)
		if err != nil {
			return err
		}
		return present(s, answer, (*session).showSeries)
	})
}

// showSeries prints a row for each slot, the latest last.
func (s *session) showSeries(series v1.Series) error {
	table := show.NewTable(s.out, "FROM", "SUBMITTED", "SUCCEEDED", "RETRIED", "DEAD", "CANCELED", "OPEN", "WAIT P50/P95", "RUN P50/P95")
	for _, slot := range series.Slots {
		from := slot.Start.UTC().Format("15:04:05")
		if slot.Partial {
			from += " …"
		}
		table.Row(from, slot.Submitted, slot.Succeeded, alarming(slot.Retried), alarming(slot.Dead), slot.Canceled, slot.Open,
			show.Right(percentiles(slot.Wait)), show.Right(percentiles(slot.Run)))
	}
	return table.Flush()
}

// percentiles are the median and the 95th; empty for none.
func percentiles(l *v1.SeriesLatency) string {
	if l == nil {
		return ""
	}
	return strings.Join([]string{show.Seconds(l.P50), show.Seconds(l.P95)}, "/")
}
