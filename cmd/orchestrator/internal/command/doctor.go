package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// doctorTime is how long a diagnosis may take.
const doctorTime = 2 * time.Minute

func (p *Program) doctorCommand() *cobra.Command {
	strict := false
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find problems, and say what to do about them",
		Long: `Find problems, and say what to do about them. It may take two minutes if there
are many jobs. The exit code is 3 if there is a problem.`,
		Args: NoArguments,
	}
	c.Flags().BoolVar(&strict, "strict", false, "also exit with 3 for a warning")
	return p.speaks(c, func(ctx context.Context, s *session, _ []string) error {
		answer, err := s.diagnose(ctx)
		if err != nil {
			return err
		}
		var found v1.Diagnosis
		if err := answer.Into(&found); err != nil {
			return err
		}
		err = present(s, answer, (*session).showDiagnosis)
		if err == nil && (found.Severity == job.Problem || strict && found.Severity == job.Warning) {
			return Exit{CodeFound}
		}
		return err
	})
}

// diagnose asks for the diagnosis and shows on a terminal that this takes a while.
func (s *session) diagnose(ctx context.Context) (apiclient.Answer, error) {
	line, began := show.NewLine(s.notes), time.Now()
	done, drawn := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(drawn)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			line.Set("looking for problems  " + show.Age(time.Since(began)))
			select {
			case <-ticker.C:
			case <-done:
				line.Clear()
				return
			}
		}
	}()
	answer, err := s.GetSlow(ctx, "/debug/doctor", nil, doctorTime)
	close(done)
	<-drawn
	return answer, err
}

func (s *session) showDiagnosis(found v1.Diagnosis) error {
	table := show.NewTable(s.out, "SEVERITY", "CHECK", "SUMMARY").WrapLast()
	for _, check := range found.Checks {
		table.Row(styled(check.Severity), check.Name, check.Summary)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, check := range found.Checks {
		if check.Severity == "ok" || len(check.Details) == 0 && check.Remedy == "" {
			continue
		}
		var text strings.Builder
		text.WriteString("\n" + s.out.Paint(styles[string(check.Severity)], show.Clean(check.Name)) + "\n")
		for _, detail := range check.Details {
			text.WriteString("  " + show.Clean(detail) + "\n")
		}
		if check.Remedy != "" {
			text.WriteString("  What to do: " + show.Clean(check.Remedy) + "\n")
		}
		s.out.Print(text.String())
	}
	return nil
}
