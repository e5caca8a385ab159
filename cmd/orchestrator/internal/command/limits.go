package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const limitsPath = "/debug/limits"

func (p *Program) limitsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "limits",
		Short: "Show and set how many jobs run and start",
		Long: `Show and set limits, which hold across all orchestrators. A limit is of a type, of a
tenant, of each concurrency key of a class (key), or of a fairness key (fairness).
The target * is for all that have no limit of their own.`,
	}
	c.AddCommand(p.limitsListCommand(), p.limitsSetCommand(), p.limitsDeleteCommand())
	return c
}

func (p *Program) limitsListCommand() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the limits, and how much of them is used", Args: NoArguments}
	return p.speaks(c, presents(limitsPath, func(s *session, found v1.LimitList) error { return s.showLimits(found.Limits) }))
}

// limitFlags have a flag for each member of a limit. Only the server checks their values.
type limitFlags struct {
	concurrency, burst, weight int
	rate, onConflict           string
	fair                       bool
}

func (f *limitFlags) register(c *cobra.Command) {
	c.Flags().IntVar(&f.concurrency, "concurrency", 0, "how many may run at once; 0 for none")
	c.Flags().StringVar(&f.rate, "rate", "", "how many may start in which `time`, such as 100/1m")
	c.Flags().IntVar(&f.burst, "burst", 0, "how many may start at once after a quiet time (default: as many as the rate has in a second)")
	c.Flags().StringVar(&f.onConflict, "on-conflict", "", "`what` happens when a key is full: queue, cancel_newcomer or cancel_oldest")
	c.Flags().IntVar(&f.weight, "weight", 1, "the share of a tenant or a fairness key, from 1 to 1000")
	c.Flags().BoolVar(&f.fair, "fair", false, "let tenants take turns in a type")
	complete(c, "on-conflict", fixed(wordsOf(job.OnConflicts())...))
}

// body is the limit as JSON; nil if no flag was given.
func (f *limitFlags) body(c *cobra.Command) ([]byte, error) {
	members := make(map[string]any)
	for flag, member := range map[string]struct {
		name  string
		value any
	}{
		"concurrency": {"concurrency", f.concurrency}, "rate": {"rate", f.rate}, "burst": {"burst", f.burst},
		"on-conflict": {"onConflict", f.onConflict}, "weight": {"weight", f.weight}, "fair": {"fair", f.fair},
	} {
		if c.Flags().Changed(flag) {
			members[member.name] = member.value
		}
	}
	if len(members) == 0 {
		return nil, nil
	}
	return json.Marshal(members)
}

func (p *Program) limitsSetCommand() *cobra.Command {
	flags := limitFlags{}
	c := &cobra.Command{
		Use:   "set SCOPE TARGET",
		Short: "Set a limit",
		Long: `Set a limit, which replaces that of the same scope and target as a whole. It is in
force on every orchestrator within a second, also for jobs that wait already. A
limit of the configuration can be changed only there.`,
		Example: `  orchestrator limits set type REPORT --concurrency 10 --rate 100/1m --burst 10
  orchestrator limits set key customer --concurrency 1
  orchestrator limits set tenant '*' --concurrency 50
  orchestrator limits set tenant premium --weight 3`,
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if err := scoped(c, args, job.LimitScopes(), ""); err != nil {
			return err
		}
		if body, err := flags.body(c); err != nil || body == nil {
			return usage("no limit: set --concurrency, --rate, --on-conflict, --weight or --fair")
		}
		return nil
	}
	flags.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		body, err := flags.body(c)
		if err != nil {
			return err
		}
		return s.showLimit(s.Put(ctx, apiclient.Path(limitsPath, args...), body))
	})
}

func (p *Program) limitsDeleteCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "delete SCOPE TARGET",
		Short: "Delete a limit",
		Long: `Delete a limit, and print it as it was. Jobs that wait for it go on, unless something
else limits them.`,
		Args: func(c *cobra.Command, args []string) error { return scoped(c, args, job.LimitScopes(), "") },
	}
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		return s.showLimit(s.Delete(ctx, apiclient.Path(limitsPath, args...)))
	})
}

// scoped requires a scope and a target. The lone scope, if any, takes no target.
func scoped[W ~string](c *cobra.Command, args []string, scopes []W, lone W) error {
	if err := atLeastOne(c, args); err != nil {
		return err
	}
	words := wordsOf(scopes)
	switch {
	case !slices.Contains(words, args[0]):
		return fmt.Errorf("%q is not one of %s; usage: %s", args[0], strings.Join(words, ", "), c.UseLine())
	case args[0] == string(lone):
		return atMost(1)(c, args)
	case len(args) == 1:
		return fmt.Errorf("%s is missing: which %s? usage: %s", missing(c, 1), args[0], c.UseLine())
	}
	return atMost(2)(c, args)
}

func wordsOf[W ~string](words []W) []string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return texts
}

// showLimit prints the answer about one limit.
func (s *session) showLimit(answer apiclient.Answer, err error) error {
	if err != nil {
		return err
	}
	return present(s, answer, func(s *session, limit v1.Limit) error { return s.showLimits([]v1.Limit{limit}) })
}

func (s *session) showLimits(limits []v1.Limit) error {
	table := show.NewTable(s.out, "SCOPE", "TARGET", "CONCURRENCY", "USED", "RATE", "BURST", "WEIGHT", "ON CONFLICT", "FAIR", "SET BY")
	number := func(n *int) show.Cell {
		if n == nil {
			return show.Right("")
		}
		return show.Right(strconv.Itoa(*n))
	}
	unlessZero := func(n int) show.Cell {
		if n == 0 {
			return show.Right("")
		}
		return show.Right(strconv.Itoa(n))
	}
	for _, l := range limits {
		fair, by := "", l.UpdatedBy
		if l.Fair {
			fair = "yes"
		}
		if l.Configured {
			by = "configuration"
		}
		table.Row(string(l.Scope), l.Name, number(l.Concurrency), number(l.Used), l.Rate, unlessZero(l.Burst), unlessZero(l.Weight),
			string(l.OnConflict), fair, by)
	}
	return table.Flush()
}
