package runtime

import (
	"context"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

// maintenance is the loops that belong to no process's own jobs. Any number of processes run
// them at once; there is no leader. Where two must not do the same, the database lets one of
// them work at a time.
type maintenance struct {
	lookout   *lookout
	reaper    *reaper
	scheduler *scheduler
	admitter  *admitter
	follower  *follower
	expirer   *expirer
	ticker    *ticker
	ager      *ager
	tally     *tallyRollUp
	unique    *uniqueTidier
	deleter   *deleter
	eraser    *eraser
	operator  *operator
	prints    *fingerprinter
}

// newMaintenance also makes the service leave to these loops what other processes must be
// told of.
func newMaintenance(cfg Config, store Store, service *jobs.Service, p *path, lost loop.Signal) *maintenance {
	service.Maintains()
	admits, follows := service.Admits(), service.Follows()
	return &maintenance{
		lookout:   &lookout{cfg: cfg, store: store, jobs: service, admits: admits, follows: follows},
		reaper:    &reaper{cfg: cfg, store: store, jobs: service, path: p, lost: lost},
		scheduler: &scheduler{cfg: cfg, store: store, jobs: service},
		admitter:  &admitter{cfg: cfg, store: store, jobs: service, wake: admits, uncertain: true},
		follower: &follower{
			cfg: cfg, store: store, jobs: service, wake: follows, workflows: &workflowSweep{store: store, jobs: service},
		},
		expirer:  &expirer{cfg: cfg, store: store, jobs: service},
		ticker:   newTicker(cfg, store, service),
		ager:     &ager{cfg: cfg, store: store, jobs: service},
		tally:    &tallyRollUp{store: store, pace: service.Pace, log: cfg.Log},
		unique:   &uniqueTidier{store: store, pace: service.Pace, log: cfg.Log},
		deleter:  newDeleter(cfg, store, service),
		eraser:   &eraser{cfg: cfg, store: store, jobs: service},
		operator: &operator{cfg: cfg, store: store, jobs: service},
		prints:   &fingerprinter{store: store, pace: service.Pace, log: cfg.Log},
	}
}

func (m *maintenance) loops() []func(context.Context) {
	return []func(context.Context){
		m.lookout.run, m.reaper.run, m.scheduler.run, m.admitter.run, m.follower.run, m.expirer.run, m.ticker.run, m.ager.run,
		m.tally.run, m.unique.run, m.deleter.run, m.eraser.run, m.operator.run, m.prints.run,
	}
}
