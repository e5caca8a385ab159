package command

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const schedulesPath = "/schedules"

func (p *Program) scheduleCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "schedule",
		Short: "Make jobs by the clock",
		Long: `Make jobs by the clock: show and set schedules, see their next runs, pause them, and
make jobs of past runs. A schedule belongs to a tenant.`,
	}
	c.AddCommand(p.scheduleListCommand(), p.scheduleGetCommand(), p.scheduleSetCommand(), p.scheduleDeleteCommand(),
		p.schedulePauseCommand(), p.scheduleResumeCommand(), p.scheduleRunCommand(), p.scheduleBackfillCommand(), p.scheduleNextCommand())
	return c
}

// scheduleTenant is the flag that says whose schedule it is.
type scheduleTenant struct{ tenant string }

func (f *scheduleTenant) register(c *cobra.Command) {
	c.Flags().StringVar(&f.tenant, "tenant", "", "whose schedule it is")
}

// path leads to a schedule, or to a part of it.
func (f *scheduleTenant) path(name string, part ...string) string {
	path := apiclient.Path(apiclient.Path(schedulesPath, name), part...)
	if f.tenant != "" {
		path += "?" + url.Values{"tenant": {f.tenant}}.Encode()
	}
	return path
}

func (p *Program) scheduleListCommand() *cobra.Command {
	pages := pageFlags{}
	only := filters{{"tenant", "tenant", "only schedules of the `tenant`"}}
	c := &cobra.Command{
		Use: "list", Short: "List the schedules, with their next and last runs",
		Args: NoArguments, PreRunE: pages.check,
	}
	only.register(c)
	pages.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, _ []string) error {
		table := s.scheduleTable()
		return list(ctx, s, schedulesPath, "schedules", only.query(c), pages, table, func(one v1.Schedule) { s.scheduleRow(table, one) })
	})
}

func (p *Program) scheduleGetCommand() *cobra.Command {
	of := scheduleTenant{}
	c := &cobra.Command{Use: "get NAME", Short: "See a schedule", Args: oneArgument}
	of.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		return s.showScheduleAnswer(s.Get(ctx, of.path(args[0]), nil))
	})
}

// timingFlags have a flag for each member of a schedule but its job. Only the server checks
// their values.
type timingFlags struct{ values map[string]*string }

// timingMembers are the flags of the members.
var timingMembers = []struct{ flag, member, usage string }{
	{"cron", "cron", "five `fields`, or six that begin with seconds, or @daily and the like"},
	{"zone", "zone", "the time `zone` of --cron, such as Europe/Berlin; by default UTC"},
	{"every", "every", "the `time` from one run to the next, such as 15m"},
	{"anchor", "anchor", "a `time` that --every counts from (RFC 3339)"},
	{"at", "at", "the `time` of the only run (RFC 3339)"},
	{"starts-at", "startsAt", "no run is before this `time` (RFC 3339)"},
	{"ends-at", "endsAt", "no run is after this `time` (RFC 3339)"},
	{"jitter", "jitter", "delay each job by its own part of this `time`"},
	{"overlap", "overlap", "`what` to do while the last job is open: allow, skip, queue or cancel_previous"},
	{"catch-up", "catchUp", "`which` missed runs make jobs: none, last or all"},
	{"catch-up-window", "catchUpWindow", "how far back --catch-up all goes, a `time`"},
}

// whenMembers is how many of them say when there are runs.
const whenMembers = 7

// register adds the flags that say when there are runs, and all if policies is set.
func (f *timingFlags) register(c *cobra.Command, policies bool) {
	f.values = make(map[string]*string)
	for i, m := range timingMembers {
		if i < whenMembers || policies {
			f.values[m.flag] = c.Flags().String(m.flag, "", m.usage)
		}
	}
	if policies {
		complete(c, "overlap", fixed(wordsOf(job.Overlaps())...))
		complete(c, "catch-up", fixed(wordsOf(job.CatchUps())...))
	}
}

func (f *timingFlags) members(c *cobra.Command) map[string]any {
	members := make(map[string]any)
	for _, m := range timingMembers {
		if c.Flags().Changed(m.flag) {
			members[m.member] = *f.values[m.flag]
		}
	}
	return members
}

func (p *Program) scheduleSetCommand() *cobra.Command {
	of, timing, submission := scheduleTenant{}, timingFlags{}, submissionFlags{}
	c := &cobra.Command{
		Use:   "set NAME TYPE",
		Short: "Set a schedule, which makes jobs of the type",
		Long: `Set a schedule, which makes jobs of the type. It replaces one of the same name as a
whole. Its next run stays what it is, unless the timing changes. A schedule of the
configuration can be changed only there. See its runs first: schedule next.`,
		Example: `  orchestrator schedule set morning-report REPORT --cron "30 6 * * MON-FRI" \
    --zone Europe/Berlin --overlap skip --payload '{"format": "pdf"}'
  orchestrator schedule set sync SYNC --every 15m --jitter 30s --catch-up none
  orchestrator schedule set launch SEND_EMAIL --at 2030-01-31T12:00:00Z`,
		Args: exactlyTwo,
	}
	of.register(c)
	timing.register(c, true)
	submission.register(c, "key", "run-at", "delay", "hold", "expires-at", "tenant")
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		made, err := submission.body(ctx, args[1], s.stdin)
		if err != nil {
			return err
		}
		body, err := json.Marshal(timing.members(c))
		if err != nil {
			return err
		}
		body = body[:len(body)-1]
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(append(append(body, `"job":`...), made...), '}')
		return s.showScheduleAnswer(s.Put(ctx, of.path(args[0]), body))
	})
}

// exactlyTwo requires two arguments.
func exactlyTwo(c *cobra.Command, args []string) error {
	if err := atLeastOne(c, args); err != nil {
		return err
	}
	if len(args) == 1 {
		return usage(missing(c, 1) + " is missing; usage: " + c.UseLine())
	}
	return atMost(2)(c, args)
}

func (p *Program) scheduleDeleteCommand() *cobra.Command {
	of := scheduleTenant{}
	c := &cobra.Command{
		Use: "delete NAME", Short: "Delete a schedule",
		Long: "Delete a schedule, and print it as it was. The jobs that it has made stay.", Args: oneArgument,
	}
	of.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		return s.showScheduleAnswer(s.Delete(ctx, of.path(args[0])))
	})
}

func (p *Program) schedulePauseCommand() *cobra.Command {
	of, reason := scheduleTenant{}, ""
	c := &cobra.Command{
		Use: "pause NAME", Short: "Pause a schedule",
		Long: `Pause a schedule: it makes no jobs until you resume it. Jobs that it has made go on. To
keep them from starting, too, pause their type.`,
		Example: `  orchestrator schedule pause morning-report --reason "month-end closing"`,
		Args:    oneArgument,
	}
	of.register(c)
	c.Flags().StringVar(&reason, "reason", "", "`why`, for people")
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		body, err := json.Marshal(v1.SchedulePauseSpec{Reason: reason})
		if err != nil {
			return err
		}
		return s.showScheduleAnswer(s.Post(ctx, of.path(args[0], "pause"), nil, body))
	})
}

func (p *Program) scheduleResumeCommand() *cobra.Command {
	of := scheduleTenant{}
	c := &cobra.Command{
		Use: "resume NAME", Short: "Resume a schedule",
		Long: "Resume a schedule. What it would have made during the pause is not made.", Args: oneArgument,
	}
	of.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		return s.showScheduleAnswer(s.Post(ctx, of.path(args[0], "resume"), nil, nil))
	})
}

func (p *Program) scheduleRunCommand() *cobra.Command {
	of := scheduleTenant{}
	c := &cobra.Command{
		Use: "run NAME", Short: "Make a job of a schedule now",
		Long: `Make a job of a schedule now, also while it is paused. The job belongs to no run of the
schedule, whose next run stays what it is.`,
		Args: oneArgument,
	}
	of.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		accepted, err := s.Post(ctx, of.path(args[0], "run"), nil, nil)
		if err != nil {
			return err
		}
		return present(s, accepted, (*session).showSubmitted)
	})
}

func (p *Program) scheduleBackfillCommand() *cobra.Command {
	of, from, to := scheduleTenant{}, "", ""
	c := &cobra.Command{
		Use: "backfill NAME", Short: "Make the jobs of past runs that have none",
		Long: `Make the jobs of past runs that have none, at most 10,000. Runs that have their job get
no second one, so you can repeat the command.`,
		Example: `  orchestrator schedule backfill morning-report --from 2026-02-01T00:00:00Z \
    --to 2026-02-07T23:59:59Z`,
		Args: oneArgument,
	}
	of.register(c)
	c.Flags().StringVar(&from, "from", "", "no run before this `time` (RFC 3339)")
	c.Flags().StringVar(&to, "to", "", "no run after this `time` (RFC 3339)")
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		members := make(map[string]string)
		for flag, value := range map[string]string{"from": from, "to": to} {
			if c.Flags().Changed(flag) {
				members[flag] = value
			}
		}
		body, err := json.Marshal(members)
		if err != nil {
			return err
		}
		answer, err := s.Post(ctx, of.path(args[0], "backfill"), nil, body)
		if err != nil {
			return err
		}
		return present(s, answer, (*session).showBackfilled)
	})
}

func (p *Program) scheduleNextCommand() *cobra.Command {
	of, timing := scheduleTenant{}, timingFlags{}
	count, after := 0, ""
	c := &cobra.Command{
		Use: "next [NAME]", Short: "See the next runs of a schedule, or of a timing that you try",
		Long: `See the next runs of a schedule, in UTC and in its time zone. Without a name, of the
timing that you give: it is checked, and nothing is stored.`,
		Example: `  orchestrator schedule next morning-report
  orchestrator schedule next --cron "30 2 * * *" --zone Europe/Berlin --limit 5`,
		Args: atMost(1),
	}
	of.register(c)
	timing.register(c, false)
	c.Flags().IntVar(&count, "limit", 10, "how many, from 1 to 100")
	c.Flags().StringVar(&after, "after", "", "after this `time` (RFC 3339); by default now")
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		members := timing.members(c)
		switch {
		case len(args) == 0 && len(members) == 0:
			return usage("name a schedule, or give a timing: --cron, --every or --at")
		case len(args) > 0 && len(members) > 0:
			return usage("leave out the name to try a timing")
		case len(args) > 0:
			query := url.Values{"limit": {strconv.Itoa(count)}}
			if after != "" {
				query.Set("after", after)
			}
			if of.tenant != "" {
				query.Set("tenant", of.tenant)
			}
			return s.showRuns(s.Get(ctx, apiclient.Path(schedulesPath, args[0], "next"), query))
		}
		members["limit"] = count
		if after != "" {
			members["after"] = after
		}
		body, err := json.Marshal(members)
		if err != nil {
			return err
		}
		return s.showRuns(s.Post(ctx, apiclient.Path(schedulesPath, "preview"), nil, body))
	})
}

// localTime is how a run is shown in its zone.
const localTime = "Mon 2006-01-02 15:04:05 -07:00"

// instant is how a run is shown in UTC.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
