package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (p *Program) jobTypesCommand() *cobra.Command {
	schema := false
	c := &cobra.Command{
		Use:   "job-types [TYPE]",
		Short: "List the job types that plugins declare",
		Args:  atMost(1),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if schema && len(args) == 0 {
				return usage("--schema needs a job type")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of the type's payload")
	list, one := presents("/job-types", (*session).showTypes), presents("/job-types", (*session).showType)
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		switch {
		case len(args) == 0:
			return list(ctx, s, args)
		case !schema:
			return one(ctx, s, args)
		}
		answer, err := s.Get(ctx, apiclient.Path("/job-types", args[0], "schema"), nil)
		if err != nil {
			return err
		}
		return s.out.JSON(answer)
	})
}

func (s *session) showTypes(found v1.JobTypeList) error {
	table := show.NewTable(s.out, "TYPE", "PLUGIN", "VERSION", "ATTEMPTS", "TIMEOUT", "SCHEMA", "RETRY", "DESCRIPTION").CutLast()
	for _, t := range found.JobTypes {
		table.Row(t.JobType, t.Plugin, t.Version, t.MaxAttempts, show.Right(show.Seconds(t.TimeoutSeconds)),
			yesNo(t.HasSchema), policy(t.Retry), t.Description)
	}
	return table.Flush()
}

func (s *session) showType(t v1.JobType) error {
	fields := show.NewFields(s.out)
	fields.Add("TYPE", t.JobType)
	fields.Add("DESCRIPTION", t.Description)
	fields.Add("PLUGIN", t.Plugin)
	fields.Add("VERSION", t.Version)
	fields.Add("ATTEMPTS", strconv.Itoa(t.MaxAttempts))
	fields.Add("TIMEOUT", show.Seconds(t.TimeoutSeconds))
	if t.Concurrency > 0 {
		fields.Add("CONCURRENCY", strconv.Itoa(t.Concurrency)+" per process")
	}
	fields.Add("RETRY", policy(t.Retry))
	if t.Terms != nil {
		fields.Add("SHARES", declared(*t.Terms))
	}
	fields.Add("SCHEMA", yesNo(t.HasSchema))
	return fields.Flush()
}

// policy describes a retry policy in a few words.
func policy(r v1.Retry) string {
	var text string
	switch r.Backoff {
	case job.Exponential:
		text = fmt.Sprintf("exponential, %s × %s up to %s", exact(r.InitialDelaySeconds), decimal(r.Factor), exact(r.MaxDelaySeconds))
	case job.Fixed:
		text = "fixed, " + exact(r.InitialDelaySeconds)
	default:
		text = string(r.Backoff)
	}
	if r.Backoff != job.Immediate && (r.JitterMin != 1 || r.JitterMax != 1) {
		text += fmt.Sprintf(", jitter %s to %s", decimal(r.JitterMin), decimal(r.JitterMax))
	}
	if r.ImmediateAfterTimeout {
		text += ", immediate after a timeout"
	}
	return text
}

// declared describes terms with the places of the keys.
func declared(t v1.Terms) string {
	concurrencyKey, fairnessKey := "", ""
	if t.ConcurrencyKey != "" {
		concurrencyKey = t.KeyClass + ":… from " + t.ConcurrencyKey
	}
	if t.FairnessKey != "" {
		fairnessKey = "from " + t.FairnessKey
	}
	return terms(concurrencyKey, t.ConcurrencyLimit, t.OnConflict, fairnessKey)
}

// terms describes how jobs share in a few words. The keys are texts to show; empty for none.
func terms(concurrencyKey string, limit int, onConflict job.OnConflict, fairnessKey string) string {
	var parts []string
	if concurrencyKey != "" {
		parts = append(parts, "concurrency key "+concurrencyKey)
	}
	if limit > 0 {
		parts = append(parts, fmt.Sprintf("limit %d", limit))
	}
	if onConflict != "" {
		parts = append(parts, "on conflict "+string(onConflict))
	}
	if fairnessKey != "" {
		parts = append(parts, "fairness key "+fairnessKey)
	}
	return strings.Join(parts, ", ")
}

// exact formats a configured duration with all its digits.
func exact(s float64) string { return seconds(s).Round(time.Microsecond).String() }

func decimal(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
