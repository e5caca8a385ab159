package command

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (p *Program) logsCommand() *cobra.Command {
	attempt := 0
	c := &cobra.Command{
		Use:   "logs ID",
		Short: "Show what a job's handler logged",
		Long: `Show what a job's handler logged, attempt by attempt, even while it runs. The last
200 lines or 32 KB of each attempt are kept.`,
		Args: oneArgument,
		PreRunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("attempt") && attempt < 1 {
				return usage("--attempt counts from 1")
			}
			return nil
		},
	}
	c.Flags().IntVar(&attempt, "attempt", 0, "only attempts of this `number`, counted from 1")
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		query := url.Values{}
		if attempt > 0 {
			query.Set("attempt", strconv.Itoa(attempt))
		}
		answer, err := s.Get(ctx, apiclient.Path("/debug/jobs", args[0], "logs"), query)
		if err != nil {
			return err
		}
		return present(s, answer, (*session).showLogs)
	})
}

// lineTime is to the millisecond, and all of one width.
const lineTime = "2006-01-02T15:04:05.000Z"

func (s *session) showLogs(logs v1.JobLogs) error {
	var text strings.Builder
	for i, attempt := range logs.Attempts {
		if i > 0 {
			text.WriteByte('\n')
		}
		head := "ATTEMPT " + strconv.Itoa(attempt.Number) + ", FENCE " + strconv.FormatInt(attempt.Fence, 10)
		text.WriteString(s.out.Paint(show.Head, head) + "\n")
		if attempt.Dropped > 0 {
			text.WriteString("(" + show.Plural(attempt.Dropped, "line") + " before these dropped)\n")
		}
		for _, line := range attempt.Lines {
			text.WriteString(s.logLine(line) + "\n")
		}
	}
	_, err := s.out.Write([]byte(text.String()))
	return err
}

// logLine formats one line, whatever the handler wrote.
func (s *session) logLine(line v1.LogLine) string {
	level := strings.ToUpper(show.Clean(string(line.Level)))
	text := line.Time.UTC().Format(lineTime) + "  " + s.out.Paint(styleOfLevel(line.Level), level) +
		strings.Repeat(" ", max(7-len(level), 2)) + show.Clean(line.Message)
	if len(line.Attributes) > 0 {
		text += "  " + show.Clean(compact(line.Attributes))
	}
	if line.Truncated {
		text += "  (truncated)"
	}
	return text
}

func styleOfLevel(level job.LogLevel) show.Style {
	switch level {
	case job.LogError:
		return show.Bad
	case job.LogWarn:
		return show.Mind
	default:
		return show.Plain
	}
}
