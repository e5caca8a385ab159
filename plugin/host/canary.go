package host

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/trial"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// A trial is looked at looksPerPeriod times in each period. It lasts longestTrial
// periods at most, if the version failed or was slow too seldom to show what that
// means. Meanwhile the version gets largerShare of the attempts. So does one of which
// few attempts have ended after the first quarter of the period: failures on trial are
// not charged, but those of a bad version that was promoted are.
const (
	looksPerPeriod = 10
	longestTrial   = 10
	largerShare    = 0.5
)

// progress is how far a trial has come.
type progress struct{ took, period time.Duration }

func (t progress) late() bool { return t.took >= t.period/4 }
func (t progress) over() bool { return t.took >= t.period }
func (t progress) last() bool { return t.took >= longestTrial*t.period }

func (t progress) odds() float64 {
	if t.over() {
		return trial.Final
	}
	return trial.Early
}

// try gives the candidate its share of the attempts for a period, and longer while it
// looks worse but that may be chance. It returns what speaks against the candidate.
func (c *conductor) try(ctx context.Context, g *generation, period time.Duration) error {
	if err := c.step(ctx, eventTry); err != nil {
		return err
	}
	version := c.beginTrial(g)
	defer c.endTrial(g)
	c.log.Info("plugin version on trial", "plugin_version", version.Version, "digest", version.Digest, "period", period)
	looks := time.NewTicker(max(period/looksPerPeriod, time.Millisecond))
	defer looks.Stop()
	begun := time.Now()
	for {
		select {
		case <-looks.C:
		case <-g.news:
		case <-ctx.Done():
			return c.whyStopped(ctx)
		}
		now := progress{time.Since(begun), period}
		unsure, err := c.verdict(g, now)
		if err != nil || now.over() && !unsure {
			return err
		}
	}
}

func (c *conductor) beginTrial(g *generation) job.PluginVersion {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.share, c.due = c.config.Canary.Share, 1
	g.trial, c.current.trial = trial.Tally{}, trial.Tally{}
	c.current.durations.BeginTrial()
	return g.version()
}

func (c *conductor) endTrial(g *generation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.share, c.due = 0, 0
	g.result = c.compareLocked(g, false)
}

// provenBy is how many successes a candidate needs before the death of a process may
// be the fault of a job, as on any version.
const provenBy = 3

// excuses reports whether a death of a candidate does not speak against it: the first
// one after it has proved that it can do its work. The fleet is locked.
func (f *fleet) excuses(g *generation) bool {
	if f.deploy.state != stateCanary || g.excused || g.trial.Ended-g.trial.Failed < provenBy {
		return false
	}
	g.excused = true
	return true
}

// verdict returns what speaks against the candidate, and whether it is too early to
// tell. If it is, or if little is known late in the trial, the candidate gets more to
// do.
func (c *conductor) verdict(g *generation, now progress) (unsure bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.fault != nil {
		return false, g.fault
	}
	both := c.compareLocked(g, now.last())
	if trial.Worse(both.candidate, both.serving, now.odds()) {
		return false, fmt.Errorf("it fails more often: %s", both.failures())
	}
	unsure = trial.Unsure(both.candidate, both.serving)
	if unsure && now.last() {
		return false, fmt.Errorf("it could not show that it fails no more often: %s", both.failures())
	}
	for _, p := range both.paces {
		switch {
		case p.Slower(now.odds()):
			return false, fmt.Errorf("it is slower: %s", describePace(p))
		case now.last() && p.Doubtful():
			return false, fmt.Errorf("it could not show that it is no slower: %s", describePace(p))
		}
		unsure = unsure || p.Unsure() && !now.last()
	}
	c.share = c.config.Canary.Share
	if unsure || now.late() && trial.Few(g.trial) {
		c.share = max(c.share, largerShare)
	}
	return unsure, nil
}

// comparison is what is known of a candidate and of the serving version beside it.
type comparison struct {
	candidate, serving trial.Tally
	paces              []trial.Pace
}

func (c comparison) failures() string {
	return fmt.Sprintf("of its attempts %s, of those of the version that serves %s", c.candidate, c.serving)
}

func describePace(p trial.Pace) string {
	slow, of := p.Counts()
	if p.Median == 0 {
		return fmt.Sprintf("at %s %d of its %d attempts take far longer than the %s that are usual, and none has succeeded", p.JobType, slow, of, rounded(p.Usual))
	}
	return fmt.Sprintf("at %s %d of its %d attempts took far longer than usual, with a median of %s; the median of the version that serves is %s",
		p.JobType, slow, of, rounded(p.Median), rounded(p.Usual))
}

// rounded is a duration of about three digits.
func rounded(d time.Duration) time.Duration {
	digits := time.Duration(1)
	for d/digits >= 1000 {
		digits *= 10
	}
	return d.Round(digits)
}

// compareLocked compares the candidate with the serving version. With all, it includes
// the candidate's attempts that began while their process was new.
func (f *fleet) compareLocked(g *generation, all bool) comparison {
	c := comparison{candidate: g.trial, serving: f.current.trial}
	if c.serving.Ended == 0 {
		c.serving = f.current.lifetime
	}
	if slowdown := g.config.Canary.MaxSlowdown; slowdown > 0 {
		now := time.Now()
		c.paces = trial.Paces(
			trial.Work{Durations: &g.durations, Running: g.runningNow(now, all)},
			trial.Work{Durations: &f.current.durations, Running: f.current.runningNow(now, true)}, slowdown)
	}
	return c
}

// runningNow describes the attempts in the generation's processes. The fleet is locked.
func (g *generation) runningNow(now time.Time, all bool) []trial.Running {
	var running []trial.Running
	for _, i := range g.live {
		running = append(running, i.running(now, all)...)
	}
	return running
}

// summary is the comparison as operators see it.
func (c comparison) summary() job.Trial {
	summary := job.Trial{
		Ended: c.candidate.Ended, Failed: c.candidate.Failed,
		ServingEnded: c.serving.Ended, ServingFailed: c.serving.Failed,
	}
	worst := 0.0
	for _, p := range c.paces {
		if p.Ratio() > worst {
			worst = p.Ratio()
			summary.Slowest = &job.Pace{JobType: p.JobType, Median: p.Median, ServingMedian: p.Usual}
		}
	}
	return summary
}
