package host

import (
	"context"
	"fmt"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/trial"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// A trial is checked looksPerPeriod times in each period. While failures or slow
// attempts are too few to judge the version, the trial is extended, up to longestTrial
// periods, and the version gets largerShare of the attempts. The version also gets
// largerShare if only few of its attempts have ended after the first quarter of the
// period: it is better to find failures during the trial, when they are not charged to
// jobs, than after a promotion.
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
// looks worse but chance may be the reason. It returns why the candidate failed its
// trial; nil if it passed. A candidate also passes if nothing else is left to serve.
func (c *conductor) try(ctx context.Context, g *generation, period time.Duration) error {
	version, err := c.beginTrial(g)
	if err != nil {
		return c.orWhyStopped(ctx, err)
	}
	defer c.endTrial(g)
	c.log.Info("plugin version on trial", "plugin_version", version.Version, "digest", version.SHA256, "period", period)
	g.happened(job.PluginTrialBegan, nil)
	looks := time.NewTicker(max(period/looksPerPeriod, time.Millisecond))
	defer looks.Stop()
	begun := time.Now()
	for {
		select {
		case <-looks.C:
		case <-g.news:
		case <-c.current.news:
		case <-ctx.Done():
			return c.whyStopped(ctx)
		}
		if c.isAlone(g) {
			c.recordVerdict(g, nil)
			return nil
		}
		now := progress{time.Since(begun), period}
		unsure, err := c.verdict(g, now)
		if err != nil || now.over() && !unsure {
			c.recordVerdict(g, err)
			return err
		}
	}
}

// isAlone reports whether only the candidate can serve: no process of the serving version is
// up, and none can be launched, because it was a script that has been replaced. Going back to
// that version would leave the plugin without a process.
func (c *conductor) isAlone(g *generation) bool {
	if c.current.hasProcess() || !g.hasProcess() {
		return false
	}
	_, err := c.current.binary.ToExecute("")
	if err != nil {
		c.log.Warn("the serving version is gone; the version on trial takes over", "error", err)
	}
	return err != nil
}

// beginTrial gives the candidate its share in the same step as the state changes.
func (c *conductor) beginTrial(g *generation) (v1.PluginVersion, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.deploy.fire(eventTry); err != nil {
		return v1.PluginVersion{}, err
	}
	c.share, c.due = c.config.Canary.Share, 1
	g.trial, c.current.trial = trial.Tally{}, trial.Tally{}
	c.current.durations.BeginTrial()
	return g.version(), nil
}

func (c *conductor) endTrial(g *generation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.share, c.due = 0, 0
	g.result = c.compareLocked(g, false)
}

// provenBy is how many attempts must succeed on a candidate before the death of one of
// its processes may be blamed on a job, as on any other version.
const provenBy = 3

// excuses reports whether to excuse a candidate for a death: only for the first one,
// and only after provenBy successes. Attempts of the trial may still run when it has
// been passed and the candidate is about to take over. The fleet is locked.
func (f *fleet) excuses(g *generation) bool {
	onTrial := f.deploy.state == stateCanary || f.deploy.state == statePromoting
	if !onTrial || g.excused || g.trial.Ended-g.trial.Failed < provenBy {
		return false
	}
	g.excused = true
	return true
}

// verdict returns why the candidate fails its trial, or whether it is too early to say.
// If it is, or if little is known late in the trial, the candidate gets a larger share.
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
		return false, fmt.Errorf("it may fail more often, and the trial was too short to be sure: %s", both.failures())
	}
	for _, p := range both.paces {
		switch {
		case p.Slower(now.odds()):
			return false, fmt.Errorf("it is slower: %s", describePace(p))
		case now.last() && p.Doubtful():
			return false, fmt.Errorf("it may be slower, and the trial was too short to be sure: %s", describePace(p))
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
	return fmt.Sprintf("%s; on the serving version, %s", c.candidate, c.serving)
}

func describePace(p trial.Pace) string {
	slow, of := p.Counts()
	if p.Median == 0 {
		return fmt.Sprintf("%d of its %d attempts at %s take far longer than the usual %s, and none has succeeded", slow, of, p.JobType, rounded(p.Usual))
	}
	return fmt.Sprintf("%d of its %d attempts at %s took far longer than usual; its median is %s, and that of the serving version %s",
		slow, of, p.JobType, rounded(p.Median), rounded(p.Usual))
}

// rounded returns a duration of about three digits.
func rounded(d time.Duration) time.Duration {
	digits := time.Duration(1)
	for d/digits >= 1000 {
		digits *= 10
	}
	return d.Round(digits)
}

// compareLocked compares the candidate with the serving version. If all is set, it
// includes the candidate's attempts that began while their process was new.
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
func (c comparison) summary() v1.PluginTrial {
	summary := v1.PluginTrial{
		Ended: c.candidate.Ended, Failed: c.candidate.Failed,
		ServingEnded: c.serving.Ended, ServingFailed: c.serving.Failed,
	}
	worst := 0.0
	for _, p := range c.paces {
		if p.Ratio() > worst {
			worst = p.Ratio()
			summary.Slowest = &v1.PluginPace{JobType: p.JobType, MedianSeconds: p.Median.Seconds(), ServingMedianSeconds: p.Usual.Seconds()}
		}
	}
	return summary
}
