package host

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/trial"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// The looks at a trial: so many on the way in each period, and so many periods at
// most, for a version that has failed or was slow too seldom to tell what that
// means. It gets largerShare of the starts as long as that is so, and after the
// first quarter of the period if few of its attempts have ended by then: what fails
// on a trial is not charged, a bad version that is promoted is.
const (
	looksAPeriod = 10
	longestTrial = 10
	largerShare  = 0.5
)

// look is one at a trial: how far it has come.
type look struct{ took, period time.Duration }

func (l look) late() bool { return l.took >= l.period/4 }
func (l look) over() bool { return l.took >= l.period }
func (l look) last() bool { return l.took >= longestTrial*l.period }

func (l look) odds() float64 {
	if l.over() {
		return trial.Final
	}
	return trial.Early
}

// try gives the candidate its share of the starts for a period, and longer while it
// looks worse and that may be chance. It returns what speaks against the candidate.
func (f *fleet) try(ctx context.Context, g *generation, period time.Duration) error {
	version := f.setOnTrial(g, true)
	defer f.setOnTrial(g, false)
	f.log.Info("plugin version on trial", "plugin_version", version.Version, "digest", version.Digest, "period", period)
	looks := time.NewTicker(max(period/looksAPeriod, time.Millisecond))
	defer looks.Stop()
	begun := time.Now()
	for {
		select {
		case <-looks.C:
		case <-g.news:
		case <-ctx.Done():
			return f.brokenOff(ctx)
		}
		now := look{time.Since(begun), period}
		unsure, err := f.verdict(g, now)
		if err != nil || now.over() && !unsure {
			return err
		}
	}
}

func (f *fleet) setOnTrial(g *generation, on bool) job.PluginVersion {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onTrial, f.share, f.due = on, f.config.Canary.Share, 1
	if on {
		g.trial, f.current.trial = trial.Tally{}, trial.Tally{}
		f.current.durations.BeginTrial()
	} else {
		g.tried = f.compareLocked(g, false)
	}
	return g.version()
}

// provenBy is how many successes a candidate must have on its trial for a death of
// a process to be the doing of a job, as it may be on any version.
const provenBy = 3

// excuses reports whether a death of a candidate does not speak against it: one,
// after it has proved that it can do its work. The fleet is locked.
func (f *fleet) excuses(g *generation) bool {
	if !f.onTrial || g.excused || g.trial.Ended-g.trial.Failed < provenBy {
		return false
	}
	g.excused = true
	return true
}

// verdict returns what speaks against a candidate on trial, and whether it is too
// early to tell. Then the candidate is given more to do, and also if it is late
// and little of it is known.
func (f *fleet) verdict(g *generation, now look) (unsure bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g.fault != nil {
		return false, g.fault
	}
	c := f.compareLocked(g, now.last())
	if trial.Worse(c.candidate, c.serving, now.odds()) {
		return false, fmt.Errorf("it fails more often: %s", c.failures())
	}
	unsure = trial.Unsure(c.candidate, c.serving)
	if unsure && now.last() {
		return false, fmt.Errorf("it could not show that it fails no more often: %s", c.failures())
	}
	for _, p := range c.paces {
		switch {
		case p.Slower(now.odds()):
			return false, fmt.Errorf("it is slower: %s", inWordsOf(p))
		case now.last() && p.Doubtful():
			return false, fmt.Errorf("it could not show that it is no slower: %s", inWordsOf(p))
		}
		unsure = unsure || p.Unsure() && !now.last()
	}
	f.share = f.config.Canary.Share
	if unsure || now.late() && trial.Few(g.trial) {
		f.share = max(f.share, largerShare)
	}
	return unsure, nil
}

// comparison is what is known of a candidate beside the version that serves.
type comparison struct {
	candidate, serving trial.Tally
	paces              []trial.Pace
}

func (c comparison) failures() string {
	return fmt.Sprintf("of its attempts %s, of those of the version that serves %s", c.candidate, c.serving)
}

func inWordsOf(p trial.Pace) string {
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

// compareLocked compares the candidate with the version that serves. With all, also
// the attempts are compared that began before their process had done anything.
func (f *fleet) compareLocked(g *generation, all bool) comparison {
	c := comparison{candidate: g.trial, serving: f.current.trial}
	if c.serving.Ended == 0 {
		c.serving = f.current.lifetime
	}
	if slowdown := g.config.Canary.MaxSlowdown; slowdown > 0 {
		now := time.Now()
		c.paces = trial.Paces(
			trial.Work{Durations: &g.durations, Running: g.underWay(now, all)},
			trial.Work{Durations: &f.current.durations, Running: f.current.underWay(now, true)}, slowdown)
	}
	return c
}

// underWay is what the generation's processes have under way. The fleet is locked.
func (g *generation) underWay(now time.Time, all bool) []trial.Running {
	var running []trial.Running
	for _, p := range g.live {
		running = append(running, p.underWay(now, all)...)
	}
	return running
}

func (p *process) underWay(now time.Time, all bool) []trial.Running {
	p.mu.Lock()
	defer p.mu.Unlock()
	running := make([]trial.Running, 0, len(p.attempts))
	for _, a := range p.attempts {
		running = append(running, trial.Running{JobType: a.jobType, For: now.Sub(a.begun), Early: !all && !p.wasWarmFor(a)})
	}
	return running
}

// wasWarmFor reports whether the process had done something when the attempt began.
// The fleet is locked.
func (p *process) wasWarmFor(a *attempt) bool { return !p.warm.IsZero() && a.begun.After(p.warm) }

// time notes how long an attempt took that succeeded, but for those that began when
// its process was new: they may have waited for what is loaded once. The fleet is
// locked.
func (g *generation) time(p *process, a *attempt, ended time.Time) {
	switch {
	case p.alone: // it is not compared with those that share a process
	case p.warm.IsZero():
		p.warm = ended
	case p.wasWarmFor(a):
		g.durations.Add(a.jobType, ended.Sub(a.begun))
	}
}

// shown is the comparison as operators see it.
func (c comparison) shown() job.Trial {
	shown := job.Trial{
		Ended: c.candidate.Ended, Failed: c.candidate.Failed,
		ServingEnded: c.serving.Ended, ServingFailed: c.serving.Failed,
	}
	worst := 0.0
	for _, p := range c.paces {
		if p.Ratio() > worst {
			worst = p.Ratio()
			shown.Slowest = &job.Pace{JobType: p.JobType, Median: p.Median, ServingMedian: p.Usual}
		}
	}
	return shown
}
