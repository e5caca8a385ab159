package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

const erasuresPath = "/erasures"

func (p *Program) retentionCommand() *cobra.Command {
	c := &cobra.Command{Use: "retention", Short: "Show what becomes of ended jobs"}
	c.AddCommand(p.retentionPlanCommand())
	return c
}

func (p *Program) retentionPlanCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what retention deletes now, and what it keeps and why",
		Long: `Show what retention deletes now, and what it keeps and why, by the configuration of
the orchestrator that answers. It changes nothing. The numbers are estimates if the
ledger is large.`,
		Args: NoArguments,
	}
	return p.speaks(c, presents("/retention/plan", (*session).showPlan))
}

// fates are what a plan says in words.
var fates = map[string]show.Cell{
	"delete": {Text: "delete now", Style: show.Bad}, "blank": {Text: "blank now, keep the key", Style: show.Mind},
	"key": {Text: "only the key is left"}, "young": {Text: "keep until its time is over"}, "keep": {Text: "keep for ever"},
	"needed": {Text: "keep while others need it"}, "open": {Text: "keep until it has ended", Style: show.Faint},
}

func (s *session) showPlan(plan v1.RetentionPlan) error {
	policies := show.NewTable(s.out, "KEEP", "SUCCEEDED", "CANCELED", "DEAD", "KEYS")
	for _, p := range plan.Policies {
		name := p.JobType
		if name == "" {
			name = "all other types"
		}
		policies.Row(name, brief(p.Succeeded), brief(p.Canceled), brief(p.Dead), brief(p.Keys))
	}
	if err := policies.Flush(); err != nil {
		return err
	}
	if len(plan.Groups) == 0 {
		return nil
	}
	if plan.SampledShare < 1 {
		s.notes.Print(fmt.Sprintf("These are estimates: %s of the ledger was read.\n", percent(plan.SampledShare)))
	}
	s.out.Print("\n")
	table := show.NewTable(s.out, "TYPE", "STATE", "JOBS", "SIZE", "OLDEST ENDED", "FATE")
	for _, g := range plan.Groups {
		oldest := ""
		if g.Oldest != nil {
			oldest = s.ago(*g.Oldest)
		}
		table.Row(g.JobType, styled(g.State), show.Right(show.Count(g.Jobs)), show.Right(show.Bytes(g.Bytes)), show.Right(oldest), fates[string(g.Fate)])
	}
	return table.Flush()
}

// brief leaves out the zeros at the end of a duration.
func brief(duration string) string {
	for _, zero := range []string{"m0s", "h0m"} {
		if rest, found := strings.CutSuffix(duration, zero); found {
			duration = rest + zero[:1]
		}
	}
	return duration
}

func percent(share float64) string { return fmt.Sprintf("%.2g %%", 100*share) }

func (p *Program) eraseCommand() *cobra.Command {
	var tenant, reason string
	c := &cobra.Command{
		Use:   "erase [ID…]",
		Short: "Blank what ended jobs contain, and keep the record",
		Long: `Blank what ended jobs contain: payloads, results, progress, tags, errors and logs.
The record stays: states, times, outcomes and keys. It cannot be undone.
With --tenant, all ended jobs of a tenant are blanked in the background; erasures
shows how far that is. Each ID is tried, even if others fail.`,
		Example: `  orchestrator erase 019c79a0-0000-7000-8000-000000000001 --reason "ticket 4711"
  orchestrator erase --tenant acme --reason "contract ended"`,
	}
	c.Args = func(_ *cobra.Command, args []string) error {
		switch {
		case tenant != "" && len(args) > 0:
			return usage("--tenant erases all jobs of the tenant: leave out the ids")
		case tenant == "" && len(args) == 0:
			return usage("name the jobs, or a tenant with --tenant")
		}
		return nil
	}
	c.Flags().StringVar(&tenant, "tenant", "", "erase all ended jobs of this `tenant`")
	c.Flags().StringVar(&reason, "reason", "", "`why`, for the audit log")
	return p.speaks(c, func(ctx context.Context, s *session, ids []string) error {
		if tenant != "" {
			body, err := json.Marshal(v1.ErasureSpec{Tenant: tenant, Reason: reason})
			if err != nil {
				return err
			}
			answer, err := s.Post(ctx, erasuresPath, nil, body)
			if err != nil {
				return err
			}
			return present(s, answer, func(s *session, e v1.Erasure) error { return s.showErasures(v1.ErasureList{Erasures: []v1.Erasure{e}}) })
		}
		body, err := json.Marshal(v1.EraseSpec{Reason: reason})
		if err != nil {
			return err
		}
		return s.act("erase", ids, func(id string) (apiclient.Answer, error) {
			return s.Post(ctx, apiclient.Path("/jobs", id, "erase"), nil, body)
		})
	})
}

func (p *Program) erasuresCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "erasures [ID]",
		Short: "Show how far the erasures of tenants are",
		Args:  atMost(1),
	}
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		if len(args) == 0 {
			return presents(erasuresPath, (*session).showErasures)(ctx, s, nil)
		}
		return presents(erasuresPath, func(s *session, e v1.Erasure) error {
			return s.showErasures(v1.ErasureList{Erasures: []v1.Erasure{e}})
		})(ctx, s, args)
	})
}

func (s *session) showErasures(found v1.ErasureList) error {
	table := show.NewTable(s.out, "ERASURE ID", "TENANT", "ASKED", "BY", "ERASED", "LEFT OPEN", "STATE", "REASON").CutLast()
	for _, e := range found.Erasures {
		state := show.Cell{Text: "erasing", Style: show.Busy}
		if e.FinishedAt != nil {
			state = show.Cell{Text: "finished", Style: show.Good}
		}
		table.Row(e.ErasureID, e.Tenant, s.ago(e.AskedAt), e.AskedBy, show.Right(show.Count(e.Erased)), show.Right(show.Count(e.Open)), state, e.Reason)
	}
	return table.Flush()
}
